"""Figures of the op pages: what the device can do, and the time of its cores."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import Any

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.base.words import NO_PEAK_FLOPS, NO_TIME_SCALE
from tpuprof.parsers.pages.ops.ops import OpsPage
from tpuprof.tui.draw.format import byte_rate, percent, with_unit
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.ops.fields.common import MEMORIES, memory_words
from tpuprof.tui.report.fields import Metric, attribute
from tpuprof.tui.report.units import COUNT, FLAG, GFLOPS, GIGABYTES, INTENSITY, NUMBER, TEXT, TIME_PS


def _peak(memory: str, key: str) -> Metric[Any]:
    meaning = f"peak of one core: {memory_words(memory)}"
    what, heading = ("HBM bandwidth", "peak HBM B/s") if memory == "hbm" else (f"of {key.replace('_', ' ')}", "")
    null, name = f"the device plane gives no peak {what}", f"peaks.{memory}"
    return attribute(f"device.peak_{key}_gigabytes_per_second", GIGABYTES, meaning, heading, null=null, name=name)


_CORES = "TensorCores, or GPUs, over all hosts; 1 where the ops are the host's own"
_PEAK, _FLOPS = "peak FLOP/s of a core", "peaks.flops_per_second"
_RIDGE = "FLOPs per byte of HBM traffic above which compute, not HBM, bounds a program"
_NO_RIDGE = "the device plane lacks the peak FLOPS or the peak HBM bandwidth"
DEVICE: tuple[Metric[Any], ...] = (
    attribute("device.type", TEXT, "the device's type", null="no device plane names its type", name="device_type"),
    attribute("device.cores", COUNT, _CORES, name="core_count"),
    attribute("device.peak_gflops_per_second", GFLOPS, "peak of one core", _PEAK, null=NO_PEAK_FLOPS, name=_FLOPS),
    *(_peak(memory, key) for memory, key in MEMORIES.items()),
    attribute("device.ridge_point", INTENSITY, _RIDGE, "ridge point, FLOP/B", null=_NO_RIDGE, name="peaks.ridge_point"),
)
"""What the device can do at most, one core of it; of an `OpsPage`."""


def whole_and_idle(
    kind: str, whole: str, of_whole: str, null: str, heading: str = ""
) -> tuple[Metric[Any], Metric[Any]]:
    """The time of all cores or threads, and what of it is idle; both unknown where there is none.

    Args:
        kind: what the names of both in the source begin with, and their keys.
        whole, of_whole: what they mean.
    """
    total, idle = attrgetter(f"{kind}total_ps"), attrgetter(f"{kind}idle_ps")
    return (
        Metric(f"{kind}total_time_ps", TIME_PS, lambda page: total(page) or None, whole, null, heading),
        Metric(f"{kind}idle_time_ps", TIME_PS, lambda page: idle(page) if total(page) else None, of_whole, null),
    )


_WHOLE = "the cores' whole time, summed over them"
WHOLE_TIME = whole_and_idle("", _WHOLE, "the part of it without an op", "no op took any time", "time over all cores")

TIME_SCALE = attribute(
    "time_scale", NUMBER, "self time at the nominal clock over self time measured", null=NO_TIME_SCALE
)
SIMULATED = attribute("simulated", FLAG, "whether the profile's times are made up, not measured")
OP_COUNT: Metric[OpsPage] = Metric("op_count", COUNT, len, "HLO ops before any limit")


def time_metrics(page: OpsPage) -> tuple[Metric[Any], ...]:
    """`WHOLE_TIME` with the page's own reason where it has one."""
    return tuple(replace(figure, null=page.unknown.get("ops", figure.null)) for figure in WHOLE_TIME)


def machine_line(page: OpsPage, pen: Pen) -> Line:
    """What the ops ran on, and the device's peaks."""
    flops, hbm, scale = page.peaks.flops_per_second, page.peaks.hbm, page.time_scale
    parts = [(page.device_type or "device unknown"), counted(page.core_count, page.runs_on)]
    parts += [with_unit(GFLOPS.words(flops, False), "FLOP/s")] if flops is not None else []
    parts += [f"HBM {with_unit(byte_rate(hbm), 'B/s')}"] if hbm is not None else []
    parts += [f"clock {percent(100 * scale)} of nominal"] if scale is not None else []
    return pen.fit([(f" {pen.glyphs.dot} ".join(parts), "dim")])

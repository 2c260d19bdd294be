"""Figures of the op pages: what the device can do, and the time of its cores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tpuprof.parsers.pages.ops.ops import OpsPage
from tpuprof.tui.pages.ops.fields.common import MEMORIES, memory_words
from tpuprof.tui.report.fields import Figure
from tpuprof.tui.report.units import COUNT, FLAG, GFLOPS, GIGABYTES, INTENSITY, NUMBER, TEXT, TIME_PS


def _peak(memory: str) -> Callable[[OpsPage], float | None]:
    def read(page: OpsPage) -> float | None:
        peak: float | None = getattr(page.peaks, memory)
        return peak

    return read


DEVICE: tuple[Figure[OpsPage], ...] = (
    Figure("device.type", TEXT, lambda page: page.device_type, "the device's type", "no device plane names its type"),
    Figure("device.cores", COUNT, lambda page: page.core_count, "TensorCores over all hosts"),
    Figure(
        "device.peak_gflops_per_second",
        GFLOPS,
        lambda page: page.peaks.flops_per_second,
        "what one core can do at most",
        "the device plane gives no peak FLOPS",
        heading="peak FLOP/s of a core",
    ),
    *(
        Figure(
            f"device.peak_{key}_gigabytes_per_second",
            GIGABYTES,
            _peak(memory),
            f"what one core can move at most: {memory_words(memory)}",
            "the device plane gives no peak HBM bandwidth"
            if memory == "hbm"
            else f"the device plane gives no peak of {key.replace('_', ' ')}",
            heading="peak HBM B/s" if memory == "hbm" else "",
        )
        for memory, key in MEMORIES.items()
    ),
    Figure(
        "device.ridge_point",
        INTENSITY,
        lambda page: page.peaks.ridge_point,
        "FLOPs by byte of HBM traffic from which on compute bounds a program, and not HBM",
        "the device plane lacks the peak FLOPS or the peak HBM bandwidth",
        heading="ridge point, FLOP/B",
    ),
)
"""What the device can do at most, one core of it."""

WHOLE_TIME: tuple[Figure[OpsPage], ...] = (
    Figure(
        "total_time_ps",
        TIME_PS,
        lambda page: page.total_ps or None,
        "the cores' whole time, summed over them",
        "no op took any time",
        heading="time over all cores",
    ),
    Figure(
        "idle_time_ps",
        TIME_PS,
        lambda page: page.idle_ps if page.total_ps else None,
        "what of it no op fills",
        "no op took any time",
    ),
)


TIME_SCALE: Figure[OpsPage] = Figure(
    "time_scale",
    NUMBER,
    lambda page: page.time_scale,
    "self time at the nominal clock over self time measured",
    "no op event has a Time Scale Multiplier",
)
SIMULATED: Figure[OpsPage] = Figure(
    "simulated", FLAG, lambda page: page.simulated, "whether the profile's times were composed, not measured"
)
OP_COUNT: Figure[OpsPage] = Figure("op_count", COUNT, len, "HLO ops before any limit")


def time_figures(page: OpsPage) -> tuple[Figure[OpsPage], ...]:
    """`WHOLE_TIME` with the page's own reason where it has one."""
    why = page.unknown.get("ops")
    return tuple(replace(figure, null=why) for figure in WHOLE_TIME) if why else WHOLE_TIME

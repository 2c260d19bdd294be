"""What every table of ops holds: names, times and rates, with their words and styles; and figures of the device."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.base.record import replace
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.base.words import NO_PEAK_FLOPS, NO_TIME_SCALE
from tpuprof.parsers.ops.op_metadata import TRAFFIC
from tpuprof.parsers.ops.roofline import AT_THE_PEAK, BOUNDS, UNKNOWN_BOUND, WORK, Rates
from tpuprof.parsers.pages.ops.ops import UNKNOWN_PROGRAM, OpsPage
from tpuprof.tui.draw.format import byte_rate, percent, share, with_unit
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import CLASS_LETTER, CLASS_STYLE, Glyphs, Line, Span, StyleKey, small_bar
from tpuprof.tui.draw.table import Cells, each
from tpuprof.tui.report.fields import ColumnSpec, Field, Metric, Reader, Rows, attribute, column, in_order
from tpuprof.tui.report.shared.quantities import RANK
from tpuprof.tui.report.units import (
    COUNT,
    FLAG,
    GFLOPS,
    GIGABYTES,
    INTENSITY,
    NUMBER,
    SHARE,
    SHARE_PERCENT,
    TEXT,
    TIME_PS,
    WHOLE,
    Unit,
)

MEMORIES = {name: name.replace("on_chip", "sram") for name in TRAFFIC}
"""Names of the memories in keys, by their column of traffic; on-chip memory is `sram`, as in XProf."""

NO_FLOPS = "no FLOPs are counted for these ops (those of a while or call count where they run, inside it)"
NO_BYTES = "no bytes are counted for these ops (those of a while or call count where they run, inside it)"
NO_HBM_BYTES = f"{NO_BYTES}, or not by memory, as in a trace for a viewer"
NO_BREAKDOWN = "the profile does not break the bytes of these ops down by memory"
NO_PROGRAM = "the profile does not say which program these ops belong to"
NO_OCCURRENCES = "these ops have no occurrences"
NO_INTENSITY = "no FLOPs are counted for these ops, or no bytes"
NO_BOUND = "no FLOPs, and no bytes of a memory with a known peak, are counted for these ops"
NO_TIME = "the cores' whole time is unknown"
NO_BANDWIDTH = "no bytes are counted for these ops, or the peak of this memory is unknown"
NO_SOURCE = "the profile names no source line for these ops"
NO_DUPLICATE = "the compiler does not mark these ops as copies of others"
NO_SHAPE = "the profile gives no shape for the results of these ops"
NO_EXPRESSION = "the profile has lost the HLO text of these ops"

_MOVED = "bandwidth_gigabytes_per_second"
_ABOVE_1 = "above 1 where work and time do not match (above_peak_why says why)"
ABOVE_NOTE = ">100%! is more than the device can do: the op's card says why."
_COLOURS = f"Coloured where it bounds the op: green from 67% on, red below 33%. {ABOVE_NOTE}"

HBM = TRAFFIC.index("hbm")
BAR_WIDTH = 6


# --- words and styles


def used(utilization: float, _: bool = False) -> str:
    """A utilization; of an op whose work and time do not belong together, no more than that: `ABOVE_NOTE`."""
    return ">100%!" if utilization > AT_THE_PEAK else share(utilization)


def roof_style(rates: Rates, row: int, bound: str, kind: OpClass | None) -> StyleKey:
    """The colour of an op's use of one resource: by how near the op is to its roof where that resource bounds it.

    Green from two thirds of the roof on, red below a third. What does not bind the op says nothing about what there is
    to do, so it has no colour: a copy that uses no FLOPS is as it should be, and so is a collective that hardly uses
    HBM. (XProf colours each resource by itself.)
    """
    used = float(rates.efficiency[row])
    if not math.isfinite(used) or used > AT_THE_PEAK:
        return "dim"
    if int(rates.bound_by[row]) != BOUNDS.index(bound) or kind in ("collective", "host"):
        return "text"
    return "good" if used >= 2 / 3 else "bad" if used < 1 / 3 else "warn"


def short_program(name: str, glyphs: Glyphs) -> str:
    """A program's name with the last digits of its id alone: ``jit_step(…9734)``."""
    module, bracket, number = name.rpartition("(")
    if not bracket or len(number) <= 9 or not number[:-1].isdigit():
        return name
    return f"{module}({glyphs.ellipsis}{number[-5:]}"


def memory_words(memory: str) -> str:
    """A memory as a person reads it: ``HBM``, ``CMEM read``, ``on-chip write``."""
    name, _, way = memory.rpartition("_") if memory.endswith(("_read", "_write")) else (memory, "", "")
    return f"{'on-chip' if name == 'on_chip' else name.upper()} {way}".strip()


def known_program(name: str) -> str | None:
    """A program's name, None for the stand-in of a program that is not known."""
    return None if name == UNKNOWN_PROGRAM else name


# --- what every table of ops holds

_MEANINGS = {
    "rank": "the row's place by self time",
    "name": "the op's name",
    "class": "what the core does: compute (matrix unit), vector, copy, collective, host or unknown",
    "self_time_bar": "self time as a bar; that of the first op is the longest",
    "occurrences": "how often the op ran, over all cores",
    "total_time_ps": "time from begin to end, summed over all occurrences",
    "self_time_ps": "total time less the time of the ops that run inside, summed over all occurrences",
    "average_time_ps": "total time by occurrence",
    "average_self_time_ps": "self time by occurrence",
    "self_time_percent": "self time, of the cores' whole time, idle time included",
    "cumulative_percent": "self time of the op and of all before it by self time, of the cores' whole time",
    "gflops_per_second": "FLOPs over the total time",
    "flops_utilization": f"FLOP/s over the device's peak, at its nominal clock; {_ABOVE_1}",
    "hbm_bandwidth_utilization": f"HBM traffic a second over the peak of HBM; {_ABOVE_1}",
    "operational_intensity": "FLOPs per byte of all memory traffic",
    "hbm_intensity": "FLOPs per byte of HBM traffic",
    "bound_by": "the resource closest to its peak: compute, or a memory's reads or writes",
    "roofline_efficiency": "utilization of the resource that bounds it: how close it is to the roof",
    "model_gflops_per_second": "model FLOPs over the total time",
    "gigabytes_per_second": "bytes accessed, in all memories, over the total time",
    "hbm_gigabytes_per_second": "HBM traffic over the total time",
    **{f"{_MOVED}.{key}": f"{memory_words(name)} traffic over the total time" for name, key in MEMORIES.items()},
}

_LOOKS: dict[str, ColumnSpec[Any]] = {
    "occurrences": ColumnSpec("count", 8),
    "total_time_ps": ColumnSpec("total time", 10),
    "self_time_ps": ColumnSpec("self time", 9),
    "average_time_ps": ColumnSpec("avg total", 9),
    "average_self_time_ps": ColumnSpec("average", 9),
    "self_time_percent": ColumnSpec("time", 6, fixed=True),
    "cumulative_percent": ColumnSpec("cumul.", 6),
    "gflops_per_second": ColumnSpec("FLOP/s", 7),
    "flops_utilization": ColumnSpec("FLOPS", 6, words=used, note=_COLOURS),
    "hbm_bandwidth_utilization": ColumnSpec("HBM", 6, words=used, note=_COLOURS),
    "operational_intensity": ColumnSpec("FLOP/B", 7),
    "roofline_efficiency": ColumnSpec("of roof", 7, words=used, note=ABOVE_NOTE),
    "model_gflops_per_second": ColumnSpec("model/s", 7),
    "gigabytes_per_second": ColumnSpec("bytes/s", 7),
    "hbm_gigabytes_per_second": ColumnSpec("HBM B/s", 7),
    f"{_MOVED}.hbm": ColumnSpec("HBM B/s", 7),
    f"{_MOVED}.cmem_read": ColumnSpec("CMEM rd", 7),
    f"{_MOVED}.cmem_write": ColumnSpec("CMEM wr", 7),
    f"{_MOVED}.sram_read": ColumnSpec("chip rd", 7),
    f"{_MOVED}.sram_write": ColumnSpec("chip wr", 7),
}


def shown_field(
    looks: Mapping[str, ColumnSpec[Any]],
    key: str,
    unit: Unit,
    read: Reader[Any] | str,
    meaning: str,
    null: str = "",
    heading: str = "",
    sort: Callable[[Any], Sequence[Any] | NDArray[Any]] | None = None,
    filter: tuple[str, ...] = (),
) -> Field[Any]:
    """A field with its look among those of a table, if it has one; `read` may be the dotted name of a column."""
    reader = column(read) if isinstance(read, str) else read
    return Field(key, unit, reader, meaning, null, heading, looks.get(key), sort, filter)


def _field(key: str, unit: Unit, read: Reader[Any] | str, null: str = "", heading: str = "") -> Field[Any]:
    return shown_field(_LOOKS, key, unit, read, _MEANINGS[key], null, heading)


def not_zero(name: str) -> Reader[Any]:
    """Reads a column of whole numbers in which 0 stands for what is unknown."""
    whole = attrgetter(name)
    return lambda source, rows: [number or None for number in whole(source)[rows].tolist()]


def ratio(above: str, below: str, factor: int = 1) -> Reader[Any]:
    """Reads quotients of two columns, times a factor; NaN or infinite, which is unknown, for a division by zero."""
    both = attrgetter(above, below)

    def read(source: object, rows: Rows) -> NDArray[np.float64]:
        numerator, denominator = both(source)
        with np.errstate(divide="ignore", invalid="ignore"):
            quotient: NDArray[np.float64] = factor * numerator[rows] / denominator[rows]
        return quotient

    return read


def work_field(key: str, name: str, meaning: str, null: str) -> Field[Any]:
    """A column of `roofline.WORK`."""
    return Field(key, WHOLE, column("work", WORK.index(name)), meaning, null)


def _letters(op_class: str) -> Callable[[Any, Glyphs], Cells]:
    def cells(source: object, _: Glyphs) -> Cells:
        classes: Sequence[OpClass] = attrgetter(op_class)(source)
        return lambda rows: [(CLASS_LETTER[classes[row]], CLASS_STYLE[classes[row]]) for row in rows]

    return cells


def bars(
    fraction: str, kind: Callable[[Any, int], OpClass], most: Callable[[Any], float] | None = None
) -> ColumnSpec[Any]:
    """A column with bars of the share of time, as wide as it for the longest, which `most` finds, else the first."""

    def cells(source: object, glyphs: Glyphs) -> Cells:
        fractions = attrgetter(fraction)(source)
        longest = most(source) if most is not None else float(fractions[0]) if len(fractions) else 1.0

        def bar(row: int) -> Span:
            part = float(fractions[row])
            width = part / longest if longest > 0 else 0.0
            filled = small_bar(width, BAR_WIDTH, glyphs)[0] if math.isfinite(part) else ""
            return filled, CLASS_STYLE[kind(source, row)]

        return each(bar)

    return ColumnSpec("", BAR_WIDTH, cells=cells, is_left=True, fixed=True, keeps_style=True)


def name_fields(
    times: str, shares: str, width: int, filter_names: tuple[str, ...] = ("name",)
) -> tuple[Field[Any], ...]:
    """Rank, name and class of a row, its occurrences and its times.

    Args:
        times, shares: dotted names of the parts of the source that hold names and times, and classes and shares, each
            with a dot at its end.
        width: cells of the names.
        filter_names: what a filter calls the names.
    """
    occurrences, total, own = f"{times}occurrences", f"{times}total_ps", f"{times}self_ps"
    op_class, fraction = f"{shares}op_class", f"{shares}self_fraction"
    names: ColumnSpec[Any] = ColumnSpec("op", width, lambda _: "strong", fixed=True, grows=True)
    letters: ColumnSpec[Any] = ColumnSpec("", 1, cells=_letters(op_class), fixed=True, keeps_style=True)
    classes = attrgetter(op_class)
    of_time = bars(fraction, lambda source, row: classes(source)[row])
    share_of_time = _field("self_time_percent", SHARE_PERCENT, fraction, NO_TIME, "self")
    cumulative = _field("cumulative_percent", SHARE_PERCENT, f"{shares}cumulative_fraction", NO_TIME, "cumulative")
    return (
        _field("rank", RANK.unit, RANK.read),
        replace(_field("name", TEXT, f"{times}name", "", "op"), screen=names, filter=filter_names),
        replace(_field("class", TEXT, op_class, "", "class"), screen=letters),
        replace(_field("self_time_bar", SHARE, fraction), screen=of_time),
        _field("occurrences", COUNT, occurrences, "idle time has none", "count"),
        _field("total_time_ps", TIME_PS, total, NO_TIME, "total time"),
        _field("self_time_ps", TIME_PS, own, "", "self time"),
        _field("average_time_ps", TIME_PS, ratio(total, occurrences), NO_OCCURRENCES),
        _field("average_self_time_ps", TIME_PS, ratio(own, occurrences), NO_OCCURRENCES, "average"),
        replace(share_of_time, sort=attrgetter(own)),
        replace(cumulative, sort=lambda source: -attrgetter(f"{shares}cumulative_fraction")(source)),
    )


TIMES = ("occurrences", "total_time_ps", "self_time_ps", "average_time_ps", "average_self_time_ps")
SHARES = ("self_time_percent", "cumulative_percent")
SUMMED = ("occurrences", "self_time_ps", "self_time_percent")
"""What adds up over ops that no other of them contains."""

LEADING = ("class", "self_time_percent", "self_time_bar", "name")


def _bound_cells(rates: Callable[[Any], Rates]) -> Callable[[Any, Glyphs], Cells]:
    def cells(source: object, _: Glyphs) -> Cells:
        of = rates(source)

        def bound(row: int) -> Span:
            name = of.bound_name(row)
            if float(of.efficiency[row]) > AT_THE_PEAK:
                return "above peak", "dim"
            return name, "dim" if name == "unknown" else "text"

        return each(bound)

    return cells


KindOf = Callable[[Any, int], OpClass | None]


def _use_cells(rates: Callable[[Any], Rates], bound: str, kind: KindOf) -> Callable[[Any, Glyphs], Cells]:
    def cells(source: object, _: Glyphs) -> Cells:
        of = rates(source)
        use = of.flops_utilization if bound == "compute" else of.bandwidth_utilization[:, HBM]
        return each(lambda row: (used(float(use[row])), roof_style(of, row, bound, kind(source, row))))

    return cells


def rate_fields(where: str, kind: KindOf = lambda *_: None) -> tuple[Field[Any], ...]:
    """Rates at a dotted name: how fast work is done, against the device's peaks (see `parsers.ops.roofline`).

    Args:
        kind: the class of the ops of a row, where it is known.
    """
    rates: Callable[[Any], Rates] = attrgetter(where)
    no_flop_rate, no_byte_rate = f"{NO_FLOPS}, or they took no time", f"{NO_BYTES}, or they took no time"

    def bound_names(source: object, rows: Rows) -> list[str | None]:
        bounds: list[int] = rates(source).bound_by[rows].tolist()
        return [None if bound == UNKNOWN_BOUND else BOUNDS[bound] for bound in bounds]

    def use(key: str, bound: str, name: str, null: str, heading: str, index: int | None = None) -> Field[Any]:
        field = rate(key, SHARE, name, null, heading, index)
        return replace(field, screen=replace(_LOOKS[key], cells=_use_cells(rates, bound, kind)))

    def rate(key: str, unit: Unit, name: str, null: str, heading: str = "", index: int | None = None) -> Field[Any]:
        return _field(key, unit, column(f"{where}.{name}", index), null, heading)

    bound_by = replace(
        _field("bound_by", TEXT, bound_names, NO_BOUND, "bound by"),
        screen=ColumnSpec("bound by", 10, cells=_bound_cells(rates)),
        sort=lambda source: np.where(rates(source).bound_by < 0, np.nan, rates(source).bound_by),
        filter=("bound_by",),
        filter_unknown="unknown",
    )
    no_bytes_moved = {name: f"{NO_BREAKDOWN}, or they took no time" for name in MEMORIES} | {"hbm": no_byte_rate}
    return (
        rate("gflops_per_second", GFLOPS, "flops_per_second", no_flop_rate, "FLOP/s"),
        use("flops_utilization", "compute", "flops_utilization", f"{NO_FLOPS}, or the peak is unknown", "FLOPS"),
        use("hbm_bandwidth_utilization", "HBM", "bandwidth_utilization", NO_BANDWIDTH, "HBM", HBM),
        rate("operational_intensity", INTENSITY, "operational_intensity", NO_INTENSITY, "FLOP/B"),
        rate("hbm_intensity", INTENSITY, "hbm_intensity", "no FLOPs are counted for these ops, or no HBM bytes"),
        bound_by,
        rate("roofline_efficiency", SHARE, "efficiency", NO_BOUND, "of roof"),
        rate("model_gflops_per_second", GFLOPS, "model_flops_per_second", no_flop_rate),
        rate("gigabytes_per_second", GIGABYTES, "bytes_per_second", no_byte_rate),
        rate("hbm_gigabytes_per_second", GIGABYTES, "bandwidth", no_byte_rate, index=HBM),
        *(
            rate(f"{_MOVED}.{MEMORIES[name]}", GIGABYTES, "bandwidth", null, index=index)
            for index, (name, null) in enumerate(no_bytes_moved.items())
        ),
    )


WORK_RATES = in_order(
    "gflops_per_second flops_utilization hbm_bandwidth_utilization operational_intensity hbm_intensity bound_by",
    "roofline_efficiency",
)
"""Rates that every table of work has, in the order of JSON."""

READABLE_RATES = in_order(
    "flops_utilization hbm_bandwidth_utilization gflops_per_second operational_intensity bound_by roofline_efficiency"
)
"""Rates that Markdown shows, in its order."""


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
SIMULATED = attribute("simulated", FLAG, "whether the profile's times are simulated, not measured")
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

"""What every table of ops holds: names, times and rates, with their words and styles."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tpuprof.parsers.ops.op_metadata import TRAFFIC
from tpuprof.parsers.ops.roofline import UNKNOWN_BOUND, Rates
from tpuprof.parsers.pages.ops.ops import UNKNOWN_PROGRAM
from tpuprof.tui.draw.bars import CLASS_STYLE, small_bar
from tpuprof.tui.draw.format import share
from tpuprof.tui.draw.spans import CLASS_LETTER, Glyphs, Span, StyleKey
from tpuprof.tui.draw.table import Cells, each
from tpuprof.tui.report.fields import Field, OnScreen, Source
from tpuprof.tui.report.units import (
    COUNT,
    GFLOPS,
    GIGABYTES,
    INTENSITY,
    NUMBER,
    SHARE,
    SHARE_PERCENT,
    TEXT,
    TIME_PS,
    Unit,
    plain,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tpuprof.parsers.base.op_class import OpClass
    from tpuprof.tui.report.fields import Rows

MEMORIES = {name: name.replace("on_chip", "sram") for name in TRAFFIC}
"""Names of the memories in keys, by their column of traffic; on-chip memory is `sram`, as in XProf."""

NO_FLOPS = "no FLOPs are counted for these ops (those of a while or call count where they run, inside it)"
NO_BYTES = "no bytes are counted for these ops (those of a while or call count where they run, inside it)"
NO_BREAKDOWN = "the profile does not break the bytes of these ops down by memory"
NO_PROGRAM = "the profile does not say which program these ops belong to"
NO_BOUND = "no FLOPs, and no bytes of a memory with a known peak, are counted for these ops"
NO_TIME = "the cores' whole time is not known"
NO_BANDWIDTH = "no bytes are counted for these ops, or the peak of this memory is unknown"
NO_INTENSITY = "no FLOPs are counted for these ops, or no bytes"
NO_OCCURRENCES = "these ops have no occurrences"
NO_FRAMEWORK_OP = "the profile names no framework op for these ops"
NO_SOURCE = "the profile names no source line for these ops"
NO_SHAPE = "the profile gives no shape for the results of these ops"
NO_EXPRESSION = "the profile has lost the HLO text of these ops"
NO_CATEGORY = "the profile has no HLO category for these ops"

NAME_WIDTH = 26
SCOPE_WIDTH = 36
"""For names of framework ops, whose ends tell them apart."""
CATEGORY_WIDTH = 20
BAR_WIDTH = 6

IMPLAUSIBLE = 1.05
"""Utilization from which on an op's work can't have been done in its time: it runs asynchronously."""


# --- words and styles


def used(utilization: float) -> str:
    """A utilization; of an asynchronous op, whose work and time do not belong together, no more than that it is."""
    return ">100%" if utilization > IMPLAUSIBLE else share(utilization)


def flops_style(utilization: float) -> StyleKey:
    """Green from half of the peak on, red below a fifth: XProf's meaning (a busy matrix unit is good)."""
    if not math.isfinite(utilization) or utilization > IMPLAUSIBLE:
        return "dim"
    return "good" if utilization >= 0.5 else "bad" if utilization < 0.2 else "warn"


def bandwidth_style(utilization: float) -> StyleKey:
    """Red from two thirds of the peak on, green below a third: XProf's meaning (busy memory holds an op up)."""
    if not math.isfinite(utilization) or utilization > IMPLAUSIBLE:
        return "dim"
    return "bad" if utilization >= 2 / 3 else "good" if utilization < 1 / 3 else "warn"


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


def _used_words(utilization: float, _: bool) -> str:
    return used(utilization)


def _strong(_: object) -> StyleKey:
    return "strong"


PROGRAM = Unit("text", lambda values: [known_program(value) for value in values], lambda value, _: value, is_text=True)
"""Names of programs; null for machines where a program is not known."""

STALL = Unit("percent", plain, lambda value, _: share(value / 100))

# --- what every table of ops begins with


@dataclass(frozen=True, slots=True)
class Names:
    """Who the rows of a table are, and what share of the time each takes.

    Attributes:
        name: of each row.
        op_class: what the core does meanwhile.
        self_ps, self_fraction, cumulative_fraction: self time, and as a share of the whole.
    """

    name: Sequence[str]
    op_class: Sequence[OpClass]
    occurrences: NDArray[np.int64]
    total_ps: NDArray[np.int64]
    self_ps: NDArray[np.int64]
    self_fraction: NDArray[np.float64]
    cumulative_fraction: NDArray[np.float64]


def divide(numerator: NDArray[Any], denominator: NDArray[Any]) -> NDArray[np.float64]:
    """Quotients; NaN or infinite, which is unknown, where the denominator is zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient: NDArray[np.float64] = numerator / denominator
    return quotient


def picked(values: Sequence[Any], rows: Rows) -> Sequence[Any]:
    """Some entries of a column, in the order of the rows; the column itself where these are all rows."""
    if isinstance(rows, range) and rows == range(len(values)):
        return values
    return [values[row] for row in rows]


def _letters(names: Callable[[Source], Names]) -> Callable[[Source, Glyphs], Cells]:
    def cells(source: Source, _: Glyphs) -> Cells:
        classes = names(source).op_class
        return lambda rows: [(CLASS_LETTER[classes[row]], CLASS_STYLE[classes[row]]) for row in rows]

    return cells


def _bars(names: Callable[[Source], Names]) -> Callable[[Source, Glyphs], Cells]:
    """Bars of the share of time, the longest one the full width."""

    def cells(source: Source, glyphs: Glyphs) -> Cells:
        of = names(source)
        most = float(of.self_fraction[0]) if len(of.self_fraction) else 1.0

        def bar(row: int) -> Span:
            part = float(of.self_fraction[row])
            filled = small_bar(part / most if most > 0 else 0.0, BAR_WIDTH, glyphs)[0] if math.isfinite(part) else ""
            return filled, CLASS_STYLE[of.op_class[row]]

        return each(bar)

    return cells


def name_fields(
    names: Callable[[Source], Names], name_width: int, filter_names: tuple[str, ...] = ("name",)
) -> tuple[Field[Source], ...]:
    """Rank, name and class of a row, its occurrences and its times."""
    return (
        Field("rank", NUMBER, lambda _, rows: [int(row) + 1 for row in rows], "the row's place by self time"),
        Field(
            "name",
            TEXT,
            lambda source, rows: picked(names(source).name, rows),
            "the op's name",
            heading="op",
            screen=OnScreen("name", "op", name_width, _strong, fixed=True, grows=True),
            filter=filter_names,
        ),
        Field(
            "class",
            TEXT,
            lambda source, rows: picked(names(source).op_class, rows),
            "what the core does meanwhile: compute (matrix unit), vector, copy, collective, host or unknown",
            heading="class",
            screen=OnScreen("", "", 1, cells=_letters(names), fixed=True, keeps_style=True),
        ),
        Field(
            "self_time_bar",
            SHARE,
            lambda source, rows: names(source).self_fraction[rows],
            "self time as a bar; that of the first op is the longest",
            screen=OnScreen("", "", BAR_WIDTH, cells=_bars(names), is_left=True, fixed=True, keeps_style=True),
        ),
        Field(
            "occurrences",
            COUNT,
            lambda source, rows: names(source).occurrences[rows],
            "how often the op ran, over all cores",
            null="idle time has none",
            heading="count",
            screen=OnScreen("count", "count", 8),
        ),
        Field(
            "total_time_ps",
            TIME_PS,
            lambda source, rows: names(source).total_ps[rows],
            "time from begin to end, summed over all occurrences",
            null=NO_TIME,
            heading="total time",
            screen=OnScreen("total", "total time", 10),
        ),
        Field(
            "self_time_ps",
            TIME_PS,
            lambda source, rows: names(source).self_ps[rows],
            "total time less the time of the ops that run inside, summed over all occurrences",
            heading="self time",
            screen=OnScreen("self", "self time", 9),
        ),
        Field(
            "average_time_ps",
            TIME_PS,
            lambda source, rows: divide(names(source).total_ps[rows], names(source).occurrences[rows]),
            "total time by occurrence",
            null=NO_OCCURRENCES,
        ),
        Field(
            "average_self_time_ps",
            TIME_PS,
            lambda source, rows: divide(names(source).self_ps[rows], names(source).occurrences[rows]),
            "self time by occurrence",
            null=NO_OCCURRENCES,
            heading="average",
            screen=OnScreen("average", "average", 9),
        ),
        Field(
            "self_time_percent",
            SHARE_PERCENT,
            lambda source, rows: names(source).self_fraction[rows],
            "self time, of the cores' whole time, idle time included",
            null=NO_TIME,
            heading="self",
            screen=OnScreen("self", "time", 6, fixed=True),
            sort=lambda source: names(source).self_ps,
        ),
        Field(
            "cumulative_percent",
            SHARE_PERCENT,
            lambda source, rows: names(source).cumulative_fraction[rows],
            "self time of the op and of all before it by self time, of the cores' whole time",
            null=NO_TIME,
            heading="cumulative",
            screen=OnScreen("cumulative", "cumul.", 6),
            sort=lambda source: -names(source).cumulative_fraction,
        ),
    )


TIMES = ("occurrences", "total_time_ps", "self_time_ps", "average_time_ps", "average_self_time_ps")
SHARES = ("self_time_percent", "cumulative_percent")
LEADING = ("class", "self_time_percent", "self_time_bar", "name")

# --- rates


def _bound_cells(rates: Callable[[Source], Rates]) -> Callable[[Source, Glyphs], Cells]:
    def cells(source: Source, _: Glyphs) -> Cells:
        of = rates(source)

        def bound(row: int) -> Span:
            name = of.bound_name(row)
            if float(of.efficiency[row]) > IMPLAUSIBLE:
                return "async", "dim"
            return name, "dim" if name == "unknown" else "text"

        return each(bound)

    return cells


def rate_fields(rates: Callable[[Source], Rates]) -> tuple[Field[Source], ...]:
    """How fast work is done, against what the device can do (formulas in `parsers.ops.roofline`)."""
    hbm = TRAFFIC.index("hbm")

    def bounds(source: Source, rows: Rows) -> list[str | None]:
        of = rates(source)
        return [None if of.bound_by[row] == UNKNOWN_BOUND else of.bound_name(int(row)) for row in rows]

    return (
        Field(
            "gflops_per_second",
            GFLOPS,
            lambda source, rows: rates(source).flops_per_second[rows],
            "FLOPs over the total time",
            null=f"{NO_FLOPS}, or they took no time",
            heading="FLOP/s",
            screen=OnScreen("flops_rate", "FLOP/s", 7),
        ),
        Field(
            "flops_utilization",
            SHARE,
            lambda source, rows: rates(source).flops_utilization[rows],
            "FLOP/s over the device's peak, at its nominal clock; above 1 where work and time do not belong together",
            null=f"{NO_FLOPS}, or the peak is unknown",
            heading="FLOPS",
            screen=OnScreen("flops", "FLOPS", 6, flops_style, _used_words, note="Green from 50%, red below 20%."),
        ),
        Field(
            "hbm_bandwidth_utilization",
            SHARE,
            lambda source, rows: rates(source).bandwidth_utilization[rows, hbm],
            "HBM traffic a second over the peak of HBM; above 1 where work and time do not belong together",
            null=NO_BANDWIDTH,
            heading="HBM",
            screen=OnScreen("hbm", "HBM", 6, bandwidth_style, _used_words, note="Red from 67% on: memory holds it up."),
        ),
        Field(
            "operational_intensity",
            INTENSITY,
            lambda source, rows: rates(source).operational_intensity[rows],
            "FLOPs by byte of all memory traffic",
            null=NO_INTENSITY,
            heading="FLOP/B",
            screen=OnScreen("intensity", "FLOP/B", 7),
        ),
        Field(
            "hbm_intensity",
            INTENSITY,
            lambda source, rows: rates(source).hbm_intensity[rows],
            "FLOPs by byte of HBM traffic",
            null="no FLOPs are counted for these ops, or no HBM bytes",
        ),
        Field(
            "bound_by",
            TEXT,
            bounds,
            "the resource that is nearest to its peak: compute, or a memory's reads or writes",
            null=NO_BOUND,
            heading="bound by",
            screen=OnScreen("bound", "bound by", 10, cells=_bound_cells(rates)),
            sort=lambda source: np.where(rates(source).bound_by < 0, np.nan, rates(source).bound_by),
            filter=("bound_by",),
            filter_unknown="unknown",
        ),
        Field(
            "roofline_efficiency",
            SHARE,
            lambda source, rows: rates(source).efficiency[rows],
            "utilization of the resource that bounds it: how near it is to the roof",
            null=NO_BOUND,
            heading="of roof",
            screen=OnScreen("roof", "of roof", 7, words=_used_words),
        ),
        Field(
            "model_gflops_per_second",
            GFLOPS,
            lambda source, rows: rates(source).model_flops_per_second[rows],
            "FLOPs that the model asks for over the total time",
            null=f"{NO_FLOPS}, or they took no time",
            screen=OnScreen("model_rate", "model/s", 7),
        ),
        Field(
            "gigabytes_per_second",
            GIGABYTES,
            lambda source, rows: rates(source).bytes_per_second[rows],
            "bytes accessed, in all memories, over the total time",
            null=f"{NO_BYTES}, or they took no time",
            screen=OnScreen("all_rate", "bytes/s", 7),
        ),
        Field(
            "hbm_gigabytes_per_second",
            GIGABYTES,
            lambda source, rows: rates(source).bandwidth[rows, hbm],
            "HBM traffic over the total time",
            null=f"{NO_BYTES}, or they took no time",
            screen=OnScreen("hbm_rate", "HBM B/s", 7),
        ),
        *(_bandwidth_field(rates, name, column) for column, name in enumerate(TRAFFIC)),
    )


_BANDWIDTH_COLUMNS = {
    "hbm": ("hbm_rate", "HBM B/s"),
    "cmem_read": ("cmem_read", "CMEM rd"),
    "cmem_write": ("cmem_write", "CMEM wr"),
    "on_chip_read": ("chip_read", "chip rd"),
    "on_chip_write": ("chip_write", "chip wr"),
}


def _bandwidth_field(rates: Callable[[Source], Rates], memory: str, column: int) -> Field[Source]:
    names = _BANDWIDTH_COLUMNS.get(memory)
    return Field(
        f"bandwidth_gigabytes_per_second.{MEMORIES[memory]}",
        GIGABYTES,
        lambda source, rows: rates(source).bandwidth[rows, column],
        f"{memory_words(memory)} traffic over the total time",
        null=f"{NO_BYTES if memory == 'hbm' else NO_BREAKDOWN}, or they took no time",
        screen=OnScreen(*names, 7) if names else None,
    )


WORK_RATES = (
    "gflops_per_second",
    "flops_utilization",
    "hbm_bandwidth_utilization",
    "operational_intensity",
    "hbm_intensity",
    "bound_by",
    "roofline_efficiency",
)
"""Rates that every table of work has, in the order of JSON."""

PEOPLES_RATES = (
    "flops_utilization",
    "hbm_bandwidth_utilization",
    "gflops_per_second",
    "operational_intensity",
    "bound_by",
    "roofline_efficiency",
)
"""Rates that Markdown shows, in its order."""

"""The quantities of the page of counters: units, the counters themselves, and what custom calls use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tpuprof.parsers.pages.counters import CounterRow, CountersPage, KernelRow, UnitRow
from tpuprof.tui.draw.bars import small_bar
from tpuprof.tui.draw.format import UNKNOWN, duration
from tpuprof.tui.draw.spans import Glyphs, Span, StyleKey
from tpuprof.tui.draw.table import Cells, each
from tpuprof.tui.report.fields import ColumnSpec, Field, Metric, Table, attribute, in_order
from tpuprof.tui.report.units import (
    COUNT,
    FLAG,
    NUMBER,
    SHARE,
    SHARE_PERCENT,
    TEXT,
    TEXTS,
    TIME_MS,
    TIME_PS,
    VERBATIM,
    Unit,
    plain,
)

if TYPE_CHECKING:
    from tpuprof.tui.report.fields import Rows

Units = Sequence[UnitRow]
Counters = Sequence[CounterRow]
Kernels = Sequence[KernelRow]

BAR_WIDTH = 10
_HIGH, _LOW = 0.6, 0.2
_WHOLE = 1e7

NOT_SAMPLED = "none of its counters was sampled"
NO_PEAK = "the cycles of its core were not sampled, so that its peak is unknown"

SOURCES = {
    "reading": "read once from the registers",
    "periodic": "registers sampled over time",
    "LLO": "the compiler's count (LLO), over the measured time of custom calls",
}


_SHORT = {"ps": "time", "instructions": "instr."}
"""What is counted, in few cells."""


def _rounded(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() or abs(value) >= 100 else f"{value:.3g}"


def amount_words(value: float | None, measure: str, ascii_only: bool = False) -> str:
    """What was achieved, or could be, in few cells: ``1.20 s``, ``3.41G``."""
    if value is None:
        return UNKNOWN
    if measure == "ps":
        return duration(value, ascii_only)
    for factor, letter in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor:
            return f"{value / factor:.3g}{letter}"
    return _rounded(value)


def value_words(value: float | None, unit: str = "") -> str:
    """A counter's value with its unit; large whole numbers with their thousands apart."""
    if value is None:
        return UNKNOWN
    text = f"{value:,}" if isinstance(value, int) else f"{value:,.0f}" if abs(value) >= _WHOLE else f"{value:,.6g}"
    return f"{text} {unit}".rstrip()


_AMOUNT = Unit("what `measure` says", plain, lambda value, _: amount_words(value, ""))
_VALUE = Unit("what `unit` says", plain, lambda value, _: value_words(value))


def _of(read: Callable[[Any], Any]) -> Callable[[Sequence[Any], Rows], list[Any]]:
    return lambda items, rows: [read(items[row]) for row in rows]


def use_style(use: float | None) -> StyleKey:
    """How a share of the peak looks: near it, far from it, or neither."""
    if use is None:
        return "dim"
    return "good" if use >= _HIGH else "text" if use >= _LOW else "dim"


def _bars(units: Units, glyphs: Glyphs) -> Cells:
    """Bars of the use, the whole column for the peak; of a mere share dim."""

    def bar(row: int) -> Span:
        use = units[row].use
        filled, _ = small_bar(use.use or 0.0, BAR_WIDTH, glyphs)
        return filled, "dim" if use.is_share else "busy"

    return each(bar)


def _amounts(name: str) -> Callable[[Units, Glyphs], Cells]:
    def cells(units: Units, glyphs: Glyphs) -> Cells:
        def cell(row: int) -> Span:
            use = units[row].use
            return amount_words(getattr(use, name), use.measure, glyphs.is_ascii), "text"

        return each(cell)

    return cells


_UNIT_FIELDS: tuple[Field[Units], ...] = (
    Field("host", TEXT, _of(lambda row: row.host), "the host whose device it is", heading="host"),
    Field("device", TEXT, _of(lambda row: row.use.plane), "the device plane that has the counters", heading="device"),
    Field(
        "core",
        TEXT,
        _of(lambda row: row.core),
        "the core of the device's chip; what all cores share stands at the chip",
        heading="core",
        screen=ColumnSpec("core", "core", 18, is_left=True),
    ),
    Field(
        "kernel",
        TEXT,
        _of(lambda row: row.use.kernel),
        "what a reading of the registers is of",
        "it is of the whole capture",
        "kernel",
    ),
    Field(
        "sample",
        NUMBER,
        _of(lambda row: row.use.sample),
        "the id of the reading's line; 0 for what is sampled over time",
        heading="sample",
    ),
    Field(
        "source",
        TEXT,
        _of(lambda row: row.use.source),
        "how it is known: reading (once from the registers), periodic (sampled over time), LLO (the compiler's count)",
        heading="source",
        screen=ColumnSpec("source", "known by", 8, is_left=True),
    ),
    Field(
        "unit",
        TEXT,
        _of(lambda row: row.use.name),
        "the unit, or the share of cycles or bytes, as XProf calls it",
        heading="unit",
        screen=ColumnSpec("unit", "unit", 22, lambda _: "strong", is_left=True, fixed=True, grows=True),
    ),
    Field(
        "group",
        TEXT,
        _of(lambda row: row.use.group),
        "what it is of",
        heading="kind",
        screen=ColumnSpec("group", "kind", 12, is_left=True),
    ),
    Field(
        "use_percent",
        SHARE_PERCENT,
        _of(lambda row: row.use.use),
        "achieved over peak, over the time that was sampled",
        f"{NOT_SAMPLED}, or {NO_PEAK}",
        "use",
        ColumnSpec("use", "use", 6, use_style, fixed=True),
    ),
    Field(
        "use_bar",
        SHARE,
        _of(lambda row: row.use.use),
        "the same as a bar; the whole column is the peak",
        screen=ColumnSpec(
            "",
            "",
            BAR_WIDTH,
            cells=_bars,
            is_left=True,
            fixed=True,
            keeps_style=True,
            note="Dim for what is a share and has no peak.",
        ),
    ),
    Field(
        "achieved",
        _AMOUNT,
        _of(lambda row: row.use.achieved),
        "what it did while it was sampled, in `measure`; counters that were not sampled count as none",
        NOT_SAMPLED,
        "achieved",
        ColumnSpec("achieved", "achieved", 8, cells=_amounts("achieved")),
    ),
    Field(
        "peak",
        _AMOUNT,
        _of(lambda row: row.use.peak),
        "what it could have done in that time, in `measure`, by XProf's constants",
        NO_PEAK,
        "peak",
        ColumnSpec("peak", "peak", 8, cells=_amounts("peak")),
    ),
    Field(
        "measure",
        TEXT,
        _of(lambda row: row.use.measure),
        "what achieved and peak count",
        heading="in",
        screen=ColumnSpec("measure", "in", 6, words=lambda measure, _: _SHORT.get(measure, measure), is_left=True),
    ),
    Field(
        "sampled_ms",
        TIME_MS,
        _of(lambda row: row.use.sampled_ps),
        "for how long it was sampled: the cycles of its core at the nominal clock, or the time between samples",
        "the cycles of its core were not sampled",
        "sampled",
        ColumnSpec("sampled", "sampled", 9),
    ),
    Field(
        "searched",
        TEXT,
        _of(lambda row: f"{row.use.name} {row.use.group} {row.core} {row.use.kernel} {row.use.source}"),
        "what a filter looks at: unit, kind, core, kernel and how it is known",
        filter=("name",),
    ),
    Field(
        "is_share",
        FLAG,
        _of(lambda row: row.use.is_share),
        "whether it is a share of cycles or bytes, and no unit with a peak",
    ),
    Field("meaning", VERBATIM, _of(lambda row: row.use.meaning), "what it counts"),
)

UNITS: Table[Units] = Table(
    "units",
    _UNIT_FIELDS,
    len,
    json=in_order(
        "host device core source kernel sample unit group use_percent achieved peak measure sampled_ms is_share meaning"
    ),
    csv=in_order(
        "host device core source kernel sample unit group use_percent achieved peak measure sampled_ms is_share"
    ),
    markdown=in_order("core unit group use_percent achieved peak measure sampled_ms source"),
    screen=in_order("use_percent use_bar unit achieved peak measure group core sampled_ms source"),
)


def _hexadecimal(row: CounterRow) -> str | None:
    value = row.counter.value
    return hex(value) if row.counter.is_reading and isinstance(value, int) else None


def _values(name: str) -> Callable[[Counters, Glyphs], Cells]:
    def cells(counters: Counters, _: Glyphs) -> Cells:
        return each(lambda row: (value_words(getattr(counters[row].counter, name), counters[row].counter.unit), "text"))

    return cells


_COUNTER_FIELDS: tuple[Field[Counters], ...] = (
    Field("host", TEXT, _of(lambda row: row.host), "the host whose device it is", heading="host"),
    Field(
        "device",
        TEXT,
        _of(lambda row: row.counter.plane),
        "the device plane that has it",
        heading="device",
        screen=ColumnSpec(
            "device", "device", 10, words=lambda name, _: name.removeprefix("/device:").replace(":", " "), is_left=True
        ),
    ),
    Field(
        "kernel",
        TEXT,
        _of(lambda row: row.counter.kernel),
        "what a reading is of",
        "it is of the whole capture",
        "kernel",
    ),
    Field(
        "counter",
        TEXT,
        _of(lambda row: row.counter.name),
        "its name; a register's in lower case, as XProf has it",
        heading="counter",
        screen=ColumnSpec("counter", "counter", 40, lambda _: "strong", is_left=True, fixed=True, grows=True),
    ),
    Field("counter_id", NUMBER, _of(lambda row: row.counter.number), "the register's number", "it is no register"),
    Field(
        "register",
        TEXT,
        _of(lambda row: row.counter.register),
        "the register, where its number is known",
        "its number is not known",
        "register",
        ColumnSpec("register", "register", 30, is_left=True),
    ),
    Field("unit", TEXT, _of(lambda row: row.counter.unit), "the unit in its name", "its name says no unit", "unit"),
    Field(
        "value",
        _VALUE,
        _of(lambda row: row.counter.value),
        "its last value",
        heading="value",
        screen=ColumnSpec("value", "last", 18, cells=_values("value"), fixed=True),
    ),
    Field(
        "value_hex",
        TEXT,
        _of(_hexadecimal),
        "a register's value in hexadecimal",
        "it is no whole number of a register",
        "hex",
        ColumnSpec("hex", "hex", 12),
    ),
    Field(
        "mean",
        _VALUE,
        _of(lambda row: row.counter.mean),
        "its mean over the time that it was sampled, each value for as long as it holds",
        heading="mean",
        screen=ColumnSpec("mean", "mean", 14, cells=_values("mean")),
    ),
    Field(
        "minimum",
        _VALUE,
        _of(lambda row: row.counter.minimum),
        "its least value",
        heading="least",
        screen=ColumnSpec("least", "least", 12, cells=_values("minimum")),
    ),
    Field(
        "maximum",
        _VALUE,
        _of(lambda row: row.counter.maximum),
        "its greatest value",
        heading="greatest",
        screen=ColumnSpec("most", "most", 12, cells=_values("maximum")),
    ),
    Field(
        "samples",
        COUNT,
        _of(lambda row: row.counter.samples),
        "how many values there are",
        heading="samples",
        screen=ColumnSpec("samples", "samples", 8),
    ),
    Field(
        "sampled_ms",
        TIME_MS,
        _of(lambda row: row.counter.sampled_ps),
        "for how long it was sampled",
        "it has values at one instant, or is read as a whole",
        "sampled",
        ColumnSpec("sampled", "sampled", 9),
    ),
    Field(
        "first_ps",
        TIME_PS,
        _of(lambda row: row.counter.first_ps),
        "when the first value was taken, on the trace's clock",
    ),
    Field("last_ps", TIME_PS, _of(lambda row: row.counter.last_ps), "when the last value was taken, or ended"),
    Field(
        "set",
        TEXT,
        _of(lambda row: row.counter.sets),
        "the sets of counters that it is in",
        "the profile names none",
        "set",
        ColumnSpec("set", "set", 12, is_left=True),
    ),
    Field(
        "searched",
        TEXT,
        _of(
            lambda row: (
                f"{row.counter.name} {row.counter.register} {row.counter.sets} {row.device} {row.counter.kernel}"
            )
        ),
        "what a filter looks at: name, sets, device and kernel",
        filter=("name",),
    ),
    Field(
        "description",
        TEXT,
        _of(lambda row: row.counter.description),
        "what the profile says of it",
        "the profile says nothing",
        "description",
    ),
)

COUNTERS: Table[Counters] = Table(
    "counters",
    _COUNTER_FIELDS,
    len,
    json=tuple(quantity.key for quantity in _COUNTER_FIELDS if quantity.key != "searched"),
    markdown=in_order("device counter unit value value_hex mean minimum maximum samples sampled_ms set"),
    screen=in_order("counter value mean minimum maximum samples sampled_ms value_hex device set"),
)

REGISTERS: Table[Counters] = replace(
    COUNTERS, screen=in_order("counter value register value_hex device set samples mean minimum maximum sampled_ms")
)
"""The same on the screen where there are registers: of most of them there is one value."""


def on_screen(counters: Counters) -> Table[Counters]:
    """The table with the columns that have something to say."""
    return REGISTERS if any(row.counter.is_reading for row in counters) else COUNTERS


_KERNEL_FIELDS: tuple[Field[Kernels], ...] = (
    Field("host", TEXT, _of(lambda row: row.host), "the host that it ran on", heading="host"),
    Field("op", TEXT, _of(lambda row: row.use.name), "the custom call", heading="op"),
    Field("program_id", NUMBER, _of(lambda row: row.use.program_id), "id of its program, 0 where unknown"),
    Field("scope", TEXT, _of(lambda row: row.use.scope), "the scope in it", "it is the whole call", "scope"),
    Field("unit", TEXT, _of(lambda row: row.use.unit), "the unit, as the profile calls it", heading="unit"),
    Field(
        "use_percent",
        SHARE_PERCENT,
        _of(lambda row: row.share),
        "time in which the unit worked by the compiler's count, of the time that is known of",
        "no time of it is known",
        "use",
    ),
    Field("runs", COUNT, _of(lambda row: row.use.runs), "runs of the call over the host's cores", heading="runs"),
    Field(
        "time_ps",
        TIME_PS,
        _of(lambda row: row.use.time_ps),
        "time of the call or of the scope, over all runs",
        heading="time",
    ),
    Field("busy_ps", TIME_PS, _of(lambda row: round(row.use.busy_ps)), "time in which the unit worked"),
    Field("sampled_ps", TIME_PS, _of(lambda row: round(row.use.sampled_ps)), "time that is known of"),
)

KERNELS: Table[Kernels] = Table(
    "kernels",
    _KERNEL_FIELDS,
    len,
    json=tuple(quantity.key for quantity in _KERNEL_FIELDS),
    markdown=in_order("op scope unit use_percent runs time_ps"),
)

METRICS: tuple[Metric[CountersPage], ...] = (
    attribute("statement", VERBATIM, "what the program uses of the machine, in a sentence"),
    attribute(
        "captured_ms",
        TIME_MS,
        "how long the capture took",
        "captured",
        null="the profile does not record its start and stop",
    ),
    attribute(
        "sampled_ms",
        TIME_MS,
        "for how long the units of the statement were sampled",
        "sampled",
        null="no unit was sampled, or its clock was not",
    ),
    attribute("notes", TEXTS, "where the figures come from, and what of it was never seen on hardware"),
)

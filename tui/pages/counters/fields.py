"""The quantities of the page of counters: units, the counters themselves, and what custom calls use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

from tpuprof.parsers.base.record import replace
from tpuprof.parsers.base.words import NO_START
from tpuprof.parsers.pages.counters.page import CounterRow, CountersPage, UnitRow
from tpuprof.parsers.pages.ops.kernels.call_units import KernelRow
from tpuprof.tui.draw.format import UNKNOWN, duration, share
from tpuprof.tui.draw.spans import Glyphs, Span, StyleKey, small_bar
from tpuprof.tui.draw.table import Cells, by_row
from tpuprof.tui.report.fields import ColumnSpec, Field, Metric, Rows, Table, attribute, in_order, named, of_each
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

Units = Sequence[UnitRow]
Counters = Sequence[CounterRow]
Kernels = Sequence[KernelRow]

BAR_WIDTH = 10
_HIGH, _LOW = 0.6, 0.2
_WHOLE = 1e7

NOT_SAMPLED = "none of its counters was sampled"
NO_PEAK = "the cycles of its core were not sampled, so its peak is unknown"

SOURCES = {
    "reading": "read once from the registers",
    "periodic": "registers sampled over time",
    "LLO": "the compiler's count (LLO), over the measured time of custom calls",
}

_SHORT = {"ps": "time", "instructions": "instr."}  # what is counted, in few cells


def amount_words(value: float | None, measure: str, ascii_only: bool = False) -> str:
    """What was achieved, or could be, in few cells: ``1.20 s``, ``3.41G``."""
    if value is None:
        return UNKNOWN
    if measure == "ps":
        return duration(value, ascii_only)
    for factor, letter in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor:
            return f"{value / factor:.3g}{letter}"
    return f"{value:,.0f}" if float(value).is_integer() or abs(value) >= 100 else f"{value:.3g}"


def value_words(value: float | None, unit: str = "") -> str:
    """A counter's value with its unit; large whole numbers with their thousands apart."""
    if value is None:
        return UNKNOWN
    text = f"{value:,}" if isinstance(value, int) else f"{value:,.0f}" if abs(value) >= _WHOLE else f"{value:,.6g}"
    return f"{text} {unit}".rstrip()


_AMOUNT = Unit("what `measure` says", plain, lambda value, _: amount_words(value, ""))
_VALUE = Unit("what `unit` says", plain, lambda value, _: value_words(value))


def _field(
    of: str,
    key: str,
    unit: Unit,
    meaning: str,
    heading: str = "",
    width: int = 0,
    *,
    at: str = "",
    **more: Any,  # noqa: ANN401 - of `named`
) -> Field[Any]:
    return named(key, unit, of_each(at or f"{of}.{key}"), meaning, heading, width, **more)


_of_use, _of_counter = partial(_field, "use"), partial(_field, "counter")


def _share_of_peak(units: Units, _: Glyphs, row: int) -> Span:
    """The use: near the peak, far from it, or neither; of a mere share, such as idle cycles, more is not better."""
    use = units[row].use
    key: StyleKey = "dim" if use.use is None or use.use < _LOW else "text"
    return share(use.use), "good" if use.use is not None and use.use >= _HIGH and not use.is_share else key


def _bar(units: Units, glyphs: Glyphs, row: int) -> Span:
    """The use, the whole column for the peak; of a mere share dim."""
    use = units[row].use
    return small_bar(use.use or 0.0, BAR_WIDTH, glyphs)[0], "dim" if use.is_share else "busy"


def _amounts(name: str) -> Callable[[Units, Glyphs], Cells]:
    def amount(units: Units, glyphs: Glyphs, row: int) -> Span:
        use = units[row].use
        return amount_words(getattr(use, name), use.measure, glyphs.is_ascii), "text"

    return by_row(amount)


def _searched_units(units: Units, rows: Rows) -> list[str]:
    texts = attrgetter("use.name", "use.group", "core", "use.kernel", "use.source")
    return [" ".join(texts(units[row])) for row in rows]


_HOST = _of_use("host", TEXT, "the host whose device it is", "host", at="host")
_CORE = "the core of the device's chip; what all cores share stands at the chip"
_NAME_LOOK: dict[str, Any] = {"style": lambda _: "strong", "fixed": True, "grows": True}
_USE_LOOK: dict[str, Any] = {"cells": by_row(_share_of_peak), "fixed": True}
_SOURCE = "how it is known: reading (once from the registers), periodic (sampled over time), LLO (the compiler's count)"
_ACHIEVED = "its work while it was sampled, in `measure`; counters that were not sampled count as 0"
_MEASURE = "the quantity that achieved and peak count"
_PEAK = "its possible work in that time, in `measure`, by XProf's constants"
_SAMPLED = "for how long it was sampled: the cycles of its core at the nominal clock, or the time between samples"
_NO_CYCLES, _NO_KERNEL = "the cycles of its core were not sampled", "it is of the whole capture"
_DIM = "Dim for shares, which have no peak."
_BAR: ColumnSpec[Units] = ColumnSpec(
    "", BAR_WIDTH, cells=by_row(_bar), is_left=True, fixed=True, keeps_style=True, note=_DIM
)
_UNIT_NAME = "the unit, or the share of cycles or bytes, as XProf calls it"
_USE, _NO_USE = "achieved over peak, over the time that was sampled", f"{NOT_SAMPLED}, or {NO_PEAK}"
_SEARCHED_UNITS = "what a filter searches: unit, kind, core, kernel and source"

_UNIT_FIELDS: tuple[Field[Units], ...] = (
    _HOST,
    _of_use("device", TEXT, "the device plane that has the counters", "device", at="use.plane"),
    _of_use("core", TEXT, _CORE, "core", 18, at="core"),
    _of_use("kernel", TEXT, "what a reading of the registers is of", "kernel", null=_NO_KERNEL),
    _of_use("sample", NUMBER, "the id of the reading's line; 0 if it is sampled over time", "sample"),
    _of_use("source", TEXT, _SOURCE, "source", 8, title="known by"),
    _of_use("unit", TEXT, _UNIT_NAME, "unit", 22, at="use.name", **_NAME_LOOK),
    _of_use("group", TEXT, "what it is of", "kind", 12),
    _of_use("use_percent", SHARE_PERCENT, _USE, "use", 6, at="use.use", null=_NO_USE, **_USE_LOOK),
    Field("use_bar", SHARE, of_each("use.use"), "the same as a bar; the whole column is the peak", screen=_BAR),
    _of_use("achieved", _AMOUNT, _ACHIEVED, "achieved", 8, null=NOT_SAMPLED, cells=_amounts("achieved")),
    _of_use("peak", _AMOUNT, _PEAK, "peak", 8, null=NO_PEAK, cells=_amounts("peak")),
    _of_use("measure", TEXT, _MEASURE, "in", 6, words=lambda measure, _: _SHORT.get(measure, measure)),
    _of_use("sampled_ms", TIME_MS, _SAMPLED, "sampled", 9, at="use.sampled_ps", null=_NO_CYCLES),
    Field("searched", TEXT, _searched_units, _SEARCHED_UNITS, filter=("name",)),
    _of_use("is_share", FLAG, "whether it is a share of cycles or bytes, not a unit with a peak"),
    _of_use("meaning", VERBATIM, "what it counts"),
)

_UNIT_KEYS = in_order(
    "host device core source kernel sample unit group use_percent achieved peak measure sampled_ms is_share"
)
UNITS: Table[Units] = Table(
    "units",
    _UNIT_FIELDS,
    len,
    json=(*_UNIT_KEYS, "meaning"),
    csv=_UNIT_KEYS,
    markdown=in_order("core unit group use_percent achieved peak measure sampled_ms source"),
    screen=in_order("use_percent use_bar unit achieved peak measure group core sampled_ms source"),
)


def _hexadecimal(counters: Counters, rows: Rows) -> list[str | None]:
    read = [counters[row].counter for row in rows]
    return [hex(one.value) if one.is_reading and isinstance(one.value, int) else None for one in read]


def _searched_counters(counters: Counters, rows: Rows) -> list[str]:
    texts = attrgetter("counter.name", "counter.register", "counter.sets", "device", "counter.kernel")
    return [" ".join(texts(counters[row])) for row in rows]


def _device_words(name: str, _: bool) -> str:
    return name.removeprefix("/device:").replace(":", " ")


def _values(name: str) -> Callable[[Counters, Glyphs], Cells]:
    def value(counters: Counters, _: Glyphs, row: int) -> Span:
        return value_words(getattr(counters[row].counter, name), counters[row].counter.unit), "text"

    return by_row(value)


_COUNTER = "its name; a register's in lower case, as XProf has it"
_REGISTER, _NO_REGISTER = "the register, where its number is known", "its number is unknown"
_HEX, _NO_HEX = "a register's value in hexadecimal", "it is not a whole number from a register"
_MEAN = "its mean over the time that it was sampled, each value for as long as it holds"
_ONE_INSTANT = "it has values at one instant, or is read as a whole"

_COUNTER_FIELDS: tuple[Field[Counters], ...] = (
    _HOST,
    _of_counter("device", TEXT, "the device plane that has it", "device", 10, at="counter.plane", words=_device_words),
    _of_counter("kernel", TEXT, "what a reading is of", "kernel", null=_NO_KERNEL),
    _of_counter("counter", TEXT, _COUNTER, "counter", 40, at="counter.name", **_NAME_LOOK),
    _of_counter("counter_id", NUMBER, "the register's number", at="counter.number", null="it is no register"),
    _of_counter("register", TEXT, _REGISTER, "register", 30, null=_NO_REGISTER),
    _of_counter("unit", TEXT, "the unit in its name", "unit", null="its name says no unit"),
    _of_counter("value", _VALUE, "its last value", "value", 18, title="last", cells=_values("value"), fixed=True),
    named("value_hex", TEXT, _hexadecimal, _HEX, "hex", 12, null=_NO_HEX),
    _of_counter("mean", _VALUE, _MEAN, "mean", 14, cells=_values("mean")),
    _of_counter("minimum", _VALUE, "its least value", "least", 12, cells=_values("minimum")),
    _of_counter("maximum", _VALUE, "its greatest value", "greatest", 12, title="most", cells=_values("maximum")),
    _of_counter("samples", COUNT, "how many values there are", "samples", 8),
    _of_counter(
        "sampled_ms", TIME_MS, "for how long it was sampled", "sampled", 9, at="counter.sampled_ps", null=_ONE_INSTANT
    ),
    _of_counter("first_ps", TIME_PS, "when the first value was taken, on the trace's clock"),
    _of_counter("last_ps", TIME_PS, "when the last value was taken, or ended"),
    _of_counter(
        "set", TEXT, "the sets of counters that it is in", "set", 12, at="counter.sets", null="the profile names none"
    ),
    Field(
        "searched", TEXT, _searched_counters, "what a filter searches: name, sets, device and kernel", filter=("name",)
    ),
    _of_counter("description", TEXT, "the profile's description of it", "description", null="the profile says nothing"),
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


_KERNEL_USE = "time in which the unit worked by the compiler's count, as a share of the known time"
_KERNEL_FIELDS: tuple[Field[Kernels], ...] = (
    _of_use("host", TEXT, "the host that it ran on", "host", at="host"),
    _of_use("op", TEXT, "the custom call", "op", at="use.name"),
    _of_use("program_id", NUMBER, "id of its program, 0 where unknown"),
    _of_use("scope", TEXT, "the scope in it", "scope", null="it is the whole call"),
    _of_use("unit", TEXT, "the unit, as the profile calls it", "unit"),
    _of_use("use_percent", SHARE_PERCENT, _KERNEL_USE, "use", at="share", null="its time is unknown"),
    _of_use("runs", COUNT, "runs of the call over the host's cores", "runs"),
    _of_use("time_ps", TIME_PS, "time of the call or of the scope, over all runs", "time"),
    named("busy_ps", TIME_PS, of_each(lambda row: round(row.use.busy_ps)), "time in which the unit worked"),
    named("sampled_ps", TIME_PS, of_each(lambda row: round(row.use.sampled_ps)), "known time"),
)

KERNELS: Table[Kernels] = Table(
    "kernels", _KERNEL_FIELDS, len, markdown=in_order("op scope unit use_percent runs time_ps")
)

_STATEMENT = "for how long the units of the statement were sampled"
METRICS: tuple[Metric[CountersPage], ...] = (
    attribute("statement", VERBATIM, "how much of the machine the program uses, in a sentence"),
    attribute("captured_ms", TIME_MS, "how long the capture took", "captured", null=NO_START),
    attribute("sampled_ms", TIME_MS, _STATEMENT, "sampled", null="no unit was sampled, or its clock was not"),
    attribute("notes", TEXTS, "where the figures come from, and which of them are untested on hardware"),
)

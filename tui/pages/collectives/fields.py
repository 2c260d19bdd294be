"""The quantities of collectives."""

from __future__ import annotations

from typing import Any

from tpuprof.parsers.base.record import Sized, dataclass
from tpuprof.parsers.files.core_names import host_of
from tpuprof.parsers.pages.collectives.bandwidth import NO_GROUPS, NO_HBM_PEAK, NO_PEAK, NO_SIZE
from tpuprof.parsers.pages.collectives.host_sums import DCN
from tpuprof.parsers.pages.collectives.model import NO_LATE, NO_PARTNERS, Rows
from tpuprof.tui.draw.format import UNKNOWN, duration
from tpuprof.tui.draw.spans import Glyphs, Span
from tpuprof.tui.draw.table import Cells, by_row, each
from tpuprof.tui.report.fields import ColumnSpec, Field, Table, column, in_order, named
from tpuprof.tui.report.fields import Rows as Places
from tpuprof.tui.report.shared.quantities import RANK
from tpuprof.tui.report.units import BYTES, COUNT, FLAG, GIGABYTES, SHARE, SHARE_PERCENT, TEXT, TIME_MS, WHOLE, Unit

BAR = 8
_NO_AXIS = "the compiler names no mesh axis, and the groups have no single distance"
_NO_SCOPE = "the names of its framework ops do not say"
_NO_TIME = "it has no time in the steps"

RATE = Unit(GIGABYTES.name, GIGABYTES.machine, lambda value, _: _rate(value))
PAYLOAD = Unit(
    BYTES.name, WHOLE.machine, lambda value, _: UNKNOWN if _is_nan(value) else BYTES.words(int(value), False)
)
PER_STEP = Unit("count", COUNT.machine, lambda value, _: f"{value:,.1f}".removesuffix(".0"))


def _is_nan(value: float | None) -> bool:
    return value is None or value != value  # noqa: PLR0124 - the one that differs from itself


def _rate(value: float | None) -> str:
    if value is None or _is_nan(value):
        return UNKNOWN
    giga = value / 1e9
    return f"{giga:.0f}" if giga >= 9.95 else f"{giga:.1f}" if giga >= 0.05 else "<0.1"


@dataclass(frozen=True, slots=True)
class CollectiveRows(Sized):
    """Rows of a table, and how their names read."""

    rows: Rows
    are_groups: bool


def _field(
    key: str,
    unit: Unit,
    at: str,
    meaning: str,
    heading: str = "",
    width: int = 0,
    **more: Any,  # noqa: ANN401 - of `named`
) -> Field[CollectiveRows]:
    return named(key, unit, column(f"rows.{at}"), meaning, heading, width, **more)


def _name(source: CollectiveRows, glyphs: Glyphs, row: int) -> Span:
    name = source.rows.name[row]
    return f"{name} {glyphs.times}{int(source.rows.collectives[row]):,}" if source.are_groups else name, "strong"


def _axis(source: CollectiveRows, _: Glyphs, row: int) -> Span:
    if source.rows.network[row] == DCN:
        return DCN, "strong"
    axis = source.rows.axis[row]
    return (axis, "text") if axis else (UNKNOWN, "dim")


def bar_text(hidden: float, exposed: float, beside: float, cells: int, glyphs: Glyphs) -> str:
    """The parts of a time in so many cells: hidden full, beside blank, exposed light; what is not zero shows."""
    whole = hidden + exposed + beside
    if whole <= 0:
        return " " * cells
    full = round(cells * hidden / whole)
    light = round(cells * (hidden + exposed) / whole) - full
    if exposed > 0 and not light:
        full, light = min(full, cells - 1), 1
    hiding, exposing = "#." if glyphs.is_ascii else "▓░"
    return hiding * full + exposing * light + " " * (cells - full - light)


def _bar(source: CollectiveRows, glyphs: Glyphs, row: int) -> Span:
    rows = source.rows
    parts = float(rows.hidden_ps[row]), float(rows.exposed_ps[row]), float(rows.stalled_ps[row])
    return bar_text(*parts, BAR, glyphs), "class.collective"


def _rate_cell(source: CollectiveRows, glyphs: Glyphs, row: int) -> Span:
    words = RATE.words(float(source.rows.bus_rate[row]), glyphs.is_ascii)
    least = ">" if glyphs.is_ascii else "≥"
    return (f"{least}{words}" if source.rows.is_async[row] and words[0].isdigit() else words), "text"


def _late(source: CollectiveRows, glyphs: Glyphs) -> Cells:
    rows = source.rows
    is_one_host = len({host_of(core) for core in rows.cores}) <= 1

    def late(row: int) -> Span:
        core = int(rows.late_core[row])
        if core < 0:
            return glyphs.dash, "dim"
        name = rows.cores[core]
        label = f"c{name.rpartition(':')[2]}" if is_one_host else name
        return f"{duration(float(rows.late_ps[row]), glyphs.is_ascii)} {label}", "warn"

    return each(late)


def _groups_words(text: str | None, ascii_only: bool) -> str:
    words = text or UNKNOWN
    return words.replace("×", "x") if ascii_only else words


def _late_steps(source: CollectiveRows, places: Places) -> list[int | None]:
    late = source.rows.late_core
    return [int(source.rows.late_steps[row]) if late[row] >= 0 else None for row in places]


def _ops(source: CollectiveRows, places: Places) -> list[str]:
    rows = source.rows
    return [f"{rows.name[row]} ({rows.ops[row]})" if source.are_groups else rows.name[row] for row in places]


_NAME = "the kind of the collectives that a row sums and how many ops these are, or the op that starts it"
_AXIS = "the mesh axis of its groups where the compiled HLO names it, else by how much the ids of neighbours differ"
_DCN = "DCN: between slices"
_GROUPS = "replica groups and the devices of each, or the pairs of a permute; all: one group of all devices"
_UNTOLD = "neither the op's text nor the compiled HLO says so, or they differ"
_NETWORK = (
    "ICI: links between the chips of a slice; DCN: the data centre's network between slices; devices: links "
    "between GPUs, or between devices on the host's CPU"
)
_DIRECTION = "forward, backward, or recomputed, by the names of its framework ops"
_ASYNC = "whether it, or one that the row sums, is a start and a done, between which a core can work"
_PAYLOAD = (
    "size of its data per step and core, as nccl-tests count it: that of the result, for a reduce-scatter of the input"
)
_EACH = "size of the data of one occurrence, the mean of those that the row sums"
_ALGBW = (
    "algbw: that size over the time in transfers without waiting for late cores; a lower bound for an asynchronous one"
)
_CALLED = {"title": "algbw"}
_BUSBW = (
    "busbw in GB/s: algbw times what each device must send over the size: 2(n-1)/n for all-reduces, (n-1)/n for "
    "gathers, scatters and all-to-alls of n devices, 1 for the rest"
)
_AT_LEAST = "A sign before it marks a lower bound"
_BUSBW_LOOK: dict[str, Any] = {"title": "GB/s", "cells": by_row(_rate_cell), "note": _AT_LEAST}
_OF_PEAK = (
    "busbw as a share of what a chip can send over all its ICI links, as Cloud TPU's documents give it; one "
    "axis has only a part of the links"
)
_HIDDEN_SHARE = "the hidden part of the time in transfers"
_NAME_LOOK: dict[str, Any] = {"cells": by_row(_name), "fixed": True, "grows": True}
_BAR = ColumnSpec("hid exp", BAR, cells=by_row(_bar), is_left=True, keeps_style=True)
_PARTS = "the time in transfers: full where work hides it, light where it is exposed, blank for neither"
_TRANSFER = "time per step in which it is in flight: an op, or from its start op to the end of its done op"
_EXPOSED = "the part of it in its own ops: the core waits, or moves the data itself"
_BESIDE = "the rest: the core is idle, in another transfer's op, or waits for the host"
_WAITING = (
    "the part of the exposed time above the shortest over the cores in the step: waiting for the core that comes "
    "last; the rest is transfer. All cores that run it are compared, because the profile does not give the groups"
)
_LAST = (
    "the core that comes last, so waits least, in two thirds of the steps or more, and how much longer the others' "
    "median is in the collective"
)
_FIELDS: tuple[Field[CollectiveRows], ...] = (
    Field("rank", RANK.unit, RANK.read, "the row's place by exposed time"),
    _field("name", TEXT, "name", _NAME, "collective", 18, **_NAME_LOOK),
    Field("ops", TEXT, _ops, "the same, and in brackets the names of the ops", heading="ops", filter=("name",)),
    _field("kind", TEXT, "kind", "what it does, ``all-gather``", "kind", filter=("category",)),
    _field("axis", TEXT, "axis", _AXIS, "axis", 6, null=_NO_AXIS, cells=by_row(_axis), note=_DCN, filter=("program",)),
    _field("groups", TEXT, "groups", _GROUPS, "groups", 7, null=_UNTOLD, words=_groups_words),
    _field("network", TEXT, "network", _NETWORK, "network", 3, title="net"),
    _field("pass", TEXT, "pass_name", _DIRECTION, "pass", 9, null=_NO_SCOPE, filter=("framework_op",)),
    _field("is_async", FLAG, "is_async", _ASYNC, "async"),
    _field("collectives", COUNT, "collectives", "how many ops the row sums; a start and its done count as one", "ops"),
    _field("occurrences", PER_STEP, "count", "how often it runs in a step on a core, the mean", "a step", 6),
    _field("payload_bytes", PAYLOAD, "payload", _PAYLOAD, "data", 8, null=NO_SIZE),
    _field("payload_each_bytes", PAYLOAD, "payload_each", _EACH, "data each", 9, null=NO_SIZE),
    _field("algorithm_gigabytes_per_second", RATE, "algorithm_rate", _ALGBW, "algbw GB/s", 6, null=NO_SIZE, **_CALLED),
    _field("bus_gigabytes_per_second", RATE, "bus_rate", _BUSBW, "busbw GB/s", 5, null=NO_GROUPS, **_BUSBW_LOOK),
    _field("peak_percent", SHARE_PERCENT, "peak_share", _OF_PEAK, "of peak", 6, null=NO_PEAK, title="peak"),
    Field("parts_bar", SHARE, column("rows.hidden_share"), _PARTS, screen=_BAR),
    _field("transfer_time_ms", TIME_MS, "span_ps", _TRANSFER, "transfer", 8),
    _field("hidden_time_ms", TIME_MS, "hidden_ps", "the part of it in which the core computes or copies", "hidden", 8),
    _field(
        "exposed_time_ms", TIME_MS, "exposed_ps", _EXPOSED, "exposed", 8, style=lambda ms: "strong" if ms > 0 else "dim"
    ),
    _field("beside_time_ms", TIME_MS, "stalled_ps", _BESIDE, "beside", 8),
    _field("waiting_time_ms", TIME_MS, "waiting_ps", _WAITING, "waiting", 8, null=NO_PARTNERS),
    _field("hidden_percent", SHARE_PERCENT, "hidden_share", _HIDDEN_SHARE, "hidden", null=_NO_TIME),
    _field("late_core", TEXT, "late", _LAST, "late core", 10, null=NO_LATE, title="late", cells=_late),
    _field("late_by_ms", TIME_MS, "late_ps", "by how much it is late", "late by", null=NO_LATE),
    Field("late_steps", COUNT, _late_steps, "in how many steps it comes last", NO_LATE, "late in"),
)

_JSON = in_order(
    "name kind network axis groups pass is_async collectives occurrences payload_bytes payload_each_bytes",
    "algorithm_gigabytes_per_second bus_gigabytes_per_second peak_percent transfer_time_ms hidden_time_ms",
    "exposed_time_ms beside_time_ms waiting_time_ms hidden_percent",
)
_LATE = in_order("late_core late_by_ms late_steps")
_MARKDOWN = in_order(
    "name axis groups network pass occurrences payload_bytes bus_gigabytes_per_second peak_percent transfer_time_ms",
    "hidden_time_ms exposed_time_ms waiting_time_ms",
)
_SCREEN = in_order(
    "name exposed_time_ms parts_bar late_core axis payload_bytes bus_gigabytes_per_second peak_percent groups",
    "waiting_time_ms pass network occurrences transfer_time_ms hidden_time_ms beside_time_ms",
    "algorithm_gigabytes_per_second",
)
GROUPS: Table[CollectiveRows] = Table(
    "collective_groups", _FIELDS, len, (*_JSON, *_LATE), ("rank", *_JSON, *_LATE), (*_MARKDOWN, *_LATE), _SCREEN
)

_COPY = "what a row's copies do and how many ops these are; a start and its done count as one"
_FOR = "the framework op that reads what is copied, so waits for it; else the one that made it"
_COPIED = "its bytes over the time in flight, twice within HBM: read and written. It may end long before its done op"
_OF_HBM = "that as a share of HBM's peak"
_OF_COPIES = (
    _field("name", TEXT, "name", _COPY, "copy", 12, **_NAME_LOOK),
    _field("for", TEXT, "groups", _FOR, "for", 22, null=_NO_SCOPE, filter=("framework_op",)),
    _field("route", TEXT, "axis", "between which memories it goes", "route", 12, null=_UNTOLD, filter=("category",)),
    _field("payload_bytes", PAYLOAD, "payload", "of what is copied, per step and core", "size", 8, null=NO_SIZE),
    _field("gigabytes_per_second", RATE, "bus_rate", _COPIED, "GB/s", 5, null=NO_SIZE, cells=by_row(_rate_cell)),
    _field("peak_percent", SHARE_PERCENT, "peak_share", _OF_HBM, "peak", 6, null=NO_HBM_PEAK),
)
_COPIES = in_order(
    "name for route pass collectives occurrences payload_bytes gigabytes_per_second peak_percent transfer_time_ms",
    "hidden_time_ms exposed_time_ms beside_time_ms hidden_percent",
)
_COPIES_SCREEN = in_order(
    "name exposed_time_ms parts_bar for route payload_bytes gigabytes_per_second peak_percent transfer_time_ms",
    "hidden_time_ms beside_time_ms occurrences pass",
)
_FIELD_OF = {field.key: field for field in (*_FIELDS, *_OF_COPIES)}
COPIES: Table[CollectiveRows] = Table(
    "copies",
    tuple(_FIELD_OF[key] for key in ("rank", "ops", "parts_bar", *_COPIES)),
    len,
    _COPIES,
    ("rank", *_COPIES),
    _COPIES[:-1],
    _COPIES_SCREEN,
)

_NOT_LATE = tuple(key for key in _SCREEN if key != "late_core")
_OF_ONE = ("name", "payload_each_bytes", *_MARKDOWN[1:])
SINGLE: Table[CollectiveRows] = Table("collectives", _FIELDS, len, _JSON, ("rank", *_JSON), _OF_ONE, _NOT_LATE)

"""The quantities of collectives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.collectives.bandwidth import NO_GROUPS, NO_PEAK, NO_SIZE
from tpuprof.parsers.collectives.host import DCN
from tpuprof.parsers.pages.collectives.model import NO_LATE, Rows
from tpuprof.tui.draw.format import UNKNOWN, duration
from tpuprof.tui.draw.spans import Glyphs, Span, StyleKey
from tpuprof.tui.draw.table import Cells, each
from tpuprof.tui.report.fields import ColumnSpec, Field, Reader, Table, column, in_order
from tpuprof.tui.report.shared.quantities import RANK
from tpuprof.tui.report.units import (
    BYTES,
    COUNT,
    FLAG,
    GIGABYTES,
    NUMBER,
    SHARE,
    SHARE_PERCENT,
    TEXT,
    TIME_MS,
    WHOLE,
    Unit,
)

if TYPE_CHECKING:
    from tpuprof.tui.report.fields import Rows as Places

BAR = 8
_NO_AXIS = "the compiler names no mesh axis, and the groups follow no one distance"
_NO_SCOPE = "the names of its framework ops do not say"
_NO_TIME = "it has no time in the steps"

RATE = Unit(GIGABYTES.name, GIGABYTES.machine, lambda value, _: _rate(value))
PAYLOAD = Unit(
    BYTES.name, WHOLE.machine, lambda value, _: UNKNOWN if _is_nan(value) else BYTES.words(int(value), False)
)
PER_STEP = Unit("count", NUMBER.machine, lambda value, _: f"{value:,.1f}".removesuffix(".0"))


def _is_nan(value: float | None) -> bool:
    return value is None or value != value  # noqa: PLR0124 - the one that differs from itself


def _rate(value: float | None) -> str:
    if value is None or _is_nan(value):
        return UNKNOWN
    giga = value / 1e9
    return f"{giga:.0f}" if giga >= 9.95 else f"{giga:.1f}" if giga >= 0.05 else "<0.1"


@dataclass(frozen=True, slots=True)
class CollectiveRows:
    """Rows of a table, and how their names read.

    Attributes:
        rows: the collectives, or groups of them.
        are_groups: whether a row sums several.
    """

    rows: Rows
    are_groups: bool

    def __len__(self) -> int:
        return len(self.rows)


def _of(name: str) -> Reader[CollectiveRows]:
    return column(f"rows.{name}")


def _names(source: CollectiveRows, glyphs: Glyphs) -> Cells:
    rows = source.rows

    def name(row: int) -> Span:
        if not source.are_groups:
            return rows.name[row], "strong"
        number = int(rows.collectives[row])
        return f"{rows.name[row]} {glyphs.times}{number:,}", "strong"

    return each(name)


def _axes(source: CollectiveRows, glyphs: Glyphs) -> Cells:
    rows = source.rows

    def axis(row: int) -> Span:
        if rows.network[row] == DCN:
            return DCN, "class.host"
        return (rows.axis[row], "text") if rows.axis[row] else (UNKNOWN, "dim")

    return each(axis)


def parts_signs(glyphs: Glyphs) -> tuple[str, str, str]:
    """Signs of hidden and exposed time, and of none of them."""
    return ("#", ".", " ") if glyphs.is_ascii else ("▓", "░", " ")


def bar_text(hidden: float, exposed: float, beside: float, cells: int, glyphs: Glyphs) -> str:
    """The parts of a time in so many cells: hidden full, beside blank, exposed light; what is not zero shows."""
    whole = hidden + exposed + beside
    if whole <= 0:
        return " " * cells
    full = round(cells * hidden / whole)
    light = round(cells * (hidden + exposed) / whole) - full
    if exposed > 0 and not light:
        full, light = min(full, cells - 1), 1
    signs = parts_signs(glyphs)
    return signs[0] * full + signs[1] * light + signs[2] * (cells - full - light)


def _bars(source: CollectiveRows, glyphs: Glyphs) -> Cells:
    rows = source.rows

    def bar(row: int) -> Span:
        parts = float(rows.hidden_ps[row]), float(rows.exposed_ps[row]), float(rows.stalled_ps[row])
        return bar_text(*parts, BAR, glyphs), "class.collective"

    return each(bar)


def _rates(source: CollectiveRows, glyphs: Glyphs) -> Cells:
    rows = source.rows
    rates, least = rows.bus_rate, ">" if glyphs.is_ascii else "≥"

    def rate(row: int) -> Span:
        words = RATE.words(float(rates[row]), glyphs.is_ascii)
        return (f"{least}{words}" if rows.is_async[row] and words[0].isdigit() else words), "text"

    return each(rate)


def _late(source: CollectiveRows, glyphs: Glyphs) -> Cells:
    rows = source.rows
    is_one_host = len({core.rpartition(":")[0] for core in rows.cores}) <= 1

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


def _exposed_style(value: float) -> StyleKey:
    return "strong" if value > 0 else "dim"


_FIELDS: tuple[Field[CollectiveRows], ...] = (
    Field("rank", RANK.unit, RANK.read, "the row's place by exposed time"),
    Field(
        "name",
        TEXT,
        _of("name"),
        "the kind of the collectives that a row sums and how many ops these are, or the op, that which starts it",
        heading="collective",
        screen=ColumnSpec("name", "collective", 18, cells=_names, is_left=True, fixed=True, grows=True),
        filter=("name",),
    ),
    Field("kind", TEXT, _of("kind"), "what it does, ``all-gather``", heading="kind", filter=("category",)),
    Field(
        "axis",
        TEXT,
        _of("axis"),
        "the mesh axis of its groups where the compiled HLO names it, else by how much the ids of neighbours differ",
        _NO_AXIS,
        "axis",
        ColumnSpec("axis", "axis", 6, cells=_axes, is_left=True, note="DCN: between slices"),
        filter=("program",),
    ),
    Field(
        "groups",
        TEXT,
        _of("groups"),
        "replica groups and the devices of each, or the pairs of a permute; all: one group of all devices",
        "neither the op's text nor the compiled HLO tells, or they differ",
        "groups",
        ColumnSpec("groups", "groups", 7, words=_groups_words, is_left=True),
    ),
    Field(
        "network",
        TEXT,
        _of("network"),
        "ICI: links between the chips of a slice; DCN: the data centre's network between slices",
        heading="network",
        screen=ColumnSpec("network", "net", 3, is_left=True),
    ),
    Field(
        "pass",
        TEXT,
        _of("pass_name"),
        "forward, backward, or recomputed, by the names of its framework ops",
        _NO_SCOPE,
        "pass",
        ColumnSpec("pass", "pass", 9, is_left=True),
        filter=("framework_op",),
    ),
    Field(
        "is_async",
        FLAG,
        _of("is_async"),
        "whether it, or one that the row sums, is a start and a done, between which a core can work",
        heading="async",
    ),
    Field(
        "collectives",
        COUNT,
        _of("collectives"),
        "how many ops the row sums; a start and its done are one",
        heading="ops",
    ),
    Field(
        "occurrences",
        PER_STEP,
        _of("count"),
        "how often it runs in a step on a core, the mean",
        "",
        "a step",
        ColumnSpec("count", "a step", 6),
    ),
    Field(
        "payload_bytes",
        PAYLOAD,
        _of("payload"),
        "size of its data a step and core, as nccl-tests count it: the result's, of a reduce-scatter the input's",
        NO_SIZE,
        "data",
        ColumnSpec("size", "data", 8),
    ),
    Field(
        "algorithm_gigabytes_per_second",
        RATE,
        _of("algorithm_rate"),
        "algbw: that over the time in transfers without waiting for late cores; of an asynchronous one at least that",
        NO_SIZE,
        "algbw GB/s",
        ColumnSpec("algbw", "algbw", 6),
    ),
    Field(
        "bus_gigabytes_per_second",
        RATE,
        _of("bus_rate"),
        "busbw in GB/s: algbw times what each device must send over the size: 2(n-1)/n for all-reduces, (n-1)/n for "
        "gathers, scatters and all-to-alls of n devices, 1 for the rest",
        NO_GROUPS,
        "busbw GB/s",
        ColumnSpec("busbw", "GB/s", 5, cells=_rates, note="With a sign before it, it is at least that"),
    ),
    Field(
        "peak_percent",
        SHARE_PERCENT,
        _of("peak_share"),
        "busbw of what a chip can send over all its ICI links, as Cloud TPU's documents give it; one axis has a part",
        NO_PEAK,
        "of peak",
        ColumnSpec("peak", "peak", 6),
    ),
    Field(
        "parts_bar",
        SHARE,
        _of("hidden_share"),
        "the time in transfers: hidden by work full, exposed light, neither blank",
        screen=ColumnSpec("", "hid exp", BAR, cells=_bars, is_left=True, keeps_style=True),
    ),
    Field(
        "transfer_time_ms",
        TIME_MS,
        _of("span_ps"),
        "time a step in which it is under way: an op, or from the begin of its start to the end of its done",
        heading="transfer",
        screen=ColumnSpec("transfer", "transfer", 8),
    ),
    Field(
        "hidden_time_ms",
        TIME_MS,
        _of("hidden_ps"),
        "the part of it in which the core computes or copies",
        heading="hidden",
        screen=ColumnSpec("hidden", "hidden", 8),
    ),
    Field(
        "exposed_time_ms",
        TIME_MS,
        _of("exposed_ps"),
        "the part of it in the collective's own ops: the core waits, or moves the data itself",
        heading="exposed",
        screen=ColumnSpec("exposed", "exposed", 8, _exposed_style),
    ),
    Field(
        "beside_time_ms",
        TIME_MS,
        _of("stalled_ps"),
        "the rest of it: the core is idle, in another collective's op, or waits for the host",
        heading="beside",
        screen=ColumnSpec("beside", "beside", 8),
    ),
    Field(
        "waiting_time_ms",
        TIME_MS,
        _of("waiting_ps"),
        "the part of the exposed time above the shortest over the cores in the step: waiting for the core that comes "
        "last; the rest is transfer. All cores that run it are compared: the profile does not tell who forms a group",
        heading="waiting",
        screen=ColumnSpec("waiting", "waiting", 8),
    ),
    Field(
        "hidden_percent",
        SHARE_PERCENT,
        _of("hidden_share"),
        "the hidden part of the time in transfers",
        _NO_TIME,
        "hidden",
    ),
    Field(
        "late_core",
        TEXT,
        _of("late"),
        "the core that comes last, so waits least, in two thirds of the steps or more, and by how much the others' "
        "median is longer in the collective",
        NO_LATE,
        "late core",
        ColumnSpec("late", "late", 10, cells=_late, is_left=True),
    ),
    Field("late_by_ms", TIME_MS, _of("late_ps"), "by how much it is late", NO_LATE, "late by"),
    Field("late_steps", COUNT, _late_steps, "in how many steps it comes last", NO_LATE, "late in"),
)

_JSON = in_order(
    "name kind network axis groups pass is_async collectives occurrences payload_bytes",
    "algorithm_gigabytes_per_second bus_gigabytes_per_second peak_percent transfer_time_ms hidden_time_ms",
    "exposed_time_ms beside_time_ms waiting_time_ms hidden_percent",
)
_LATE = in_order("late_core late_by_ms late_steps")
_MARKDOWN = in_order(
    "name axis groups network pass occurrences payload_bytes bus_gigabytes_per_second peak_percent transfer_time_ms",
    "hidden_time_ms exposed_time_ms waiting_time_ms",
)
_SCREEN = in_order(
    "name exposed_time_ms parts_bar axis payload_bytes bus_gigabytes_per_second peak_percent late_core groups",
    "waiting_time_ms pass network occurrences transfer_time_ms hidden_time_ms beside_time_ms",
    "algorithm_gigabytes_per_second",
)
GROUPS: Table[CollectiveRows] = Table(
    "groups", _FIELDS, len, (*_JSON, *_LATE), ("rank", *_JSON, *_LATE), (*_MARKDOWN, *_LATE), _SCREEN
)
"""Groups of collectives."""

SINGLE: Table[CollectiveRows] = Table(
    "collectives",
    _FIELDS,
    len,
    _JSON,
    ("rank", *_JSON),
    _MARKDOWN,
    tuple(key for key in _SCREEN if key not in ("late_core",)),
)
"""Collectives one by one."""

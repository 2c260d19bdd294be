"""The quantities of a compiled module's memory: figures of a memory space, its buffers, groups of them, and modules."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.memory.model import CATEGORIES, Buffer, MemoryPage, ModulePeaks, SpaceMemory, space_name
from tpuprof.parsers.memory.modules.groups import BufferGroup, padding_of, scope_of
from tpuprof.tui.draw.buffers.words import expansion_style, expansion_words
from tpuprof.tui.draw.format import UNKNOWN, binary_short, binary_size, limit_size, percent
from tpuprof.tui.draw.pen import cut_begin
from tpuprof.tui.draw.spans import Glyphs, Span
from tpuprof.tui.draw.table import by_row
from tpuprof.tui.report.fields import ColumnSpec, Field, Metric, Table, attribute, in_order, metric_rows, object_table
from tpuprof.tui.report.shared.buffers import BUFFER_FIELDS, SHARED_KEYS, BufferRows, bar_field, size_bar
from tpuprof.tui.report.units import BYTES, BYTES_BY_NAME, COUNT, SHARE, VERBATIM

SMALL = 0.001  # padding below this share of what is in memory is not worth a colour
# --- figures of a memory space

_NO_CAPACITY = "the capacity of this memory is unknown"
_NO_TRACE = "the module has no heap trace of this memory space"
_GAPS = "(all allocations - peak) / (all allocations - those in memory throughout)"
_NO_TEMPORARIES = "the module has no temporary allocations in this memory"
_NO_ELEMENTS = "the size of some buffer's elements is unknown"
_SCOPED = "the largest scoped allocation that an instruction says it uses"
_NO_SCOPED = "no instruction says that it uses scoped memory"
_OF_THAT = "the part of that in elements, without padding"
_ROOM = "the memory for programs, without the system's reserve"


def _peak_words(space: SpaceMemory) -> str:
    size = binary_size(space.peak_bytes)
    if space.capacity is None or not space.capacity.size_bytes:
        return size
    return f"{size} ({percent(100 * space.peak_bytes / space.capacity.size_bytes)} of the capacity)"


def _capacity_words(space: SpaceMemory) -> str:
    if space.capacity is not None:
        return f"{limit_size(space.capacity.size_bytes)} ({space.capacity.source})"
    return f"{UNKNOWN}: {space.unknown['capacity']}" if "capacity" in space.unknown else UNKNOWN


def _outputs_words(space: SpaceMemory) -> str:
    shared = f" ({binary_size(space.aliased_bytes)} of them donated arguments)" if space.aliased_bytes else ""
    return binary_size(space.outputs_bytes) + shared


def _scoped_words(space: SpaceMemory) -> str | None:
    known = space.scoped_bytes is not None
    return f"{binary_size(space.scoped_bytes)} by {space.scoped_instruction}" if known else None


def _peak_at(space: SpaceMemory) -> str | None:
    words = f"point {space.peak_position:,} of {space.points - 1:,}: {space.peak_instruction}"
    return words if space.peak_instruction is not None else None


def _bytes(
    key: str, meaning: str, heading: str = "", null: str = "", words: Callable[[SpaceMemory], str | None] | None = None
) -> Metric[SpaceMemory]:
    return attribute(key, BYTES, meaning, heading, null=null, words=words)


_NO_DEVICE = "the profile does not say the device"
_HOW_KNOWN = "how the capacity is known"
_HEADROOM = "capacity less peak, and outside HBM less the largest scoped allocation; negative where it does not fit"
DEVICE: Metric[MemoryPage] = attribute("device_type", VERBATIM, "the device's type", null=_NO_DEVICE)

SPACE: tuple[Metric[SpaceMemory], ...] = (
    Metric("module", VERBATIM, lambda space: str(space.module), "the compiled module, with its program id"),
    attribute("memory_space", VERBATIM, "which memory the figures are of", name="name"),
    attribute(
        "capacity_bytes", BYTES, _ROOM, "capacity", null=_NO_CAPACITY, name="capacity.size_bytes", words=_capacity_words
    ),
    attribute("capacity_source", VERBATIM, _HOW_KNOWN, null=_NO_CAPACITY, name="capacity.source"),
    _bytes("headroom_bytes", _HEADROOM, "headroom", null=_NO_CAPACITY),
    _bytes("peak_bytes", "the most that is in use at once", "peak", words=_peak_words),
    _bytes(
        "peak_unpadded_bytes", "the part of the peak in elements, without padding", "unpadded peak", null=_NO_ELEMENTS
    ),
    attribute("peak_position", COUNT, "the first point of the program with that much in use"),
    attribute(
        "peak_instruction", VERBATIM, "the last instruction before the peak", "peak at", null=_NO_TRACE, words=_peak_at
    ),
    _bytes("total_allocation_bytes", "all allocations but thread-local ones, with gaps", "all allocations"),
    _bytes("arguments_bytes", "allocations of the program's parameters", "arguments"),
    _bytes("outputs_bytes", "allocations that may live on after the program", "outputs", words=_outputs_words),
    _bytes("aliased_bytes", "the part of the outputs that reuses donated arguments"),
    _bytes(
        "temporaries_bytes", "temporaries: the part of the peak that is allocated and freed", "temporaries at the peak"
    ),
    _bytes("constants_bytes", "allocations of constants", "constants"),
    _bytes("thread_local_bytes", "allocations inside fusions and similar ops, not in any other figure"),
    _bytes("padding_bytes", "peak less unpadded peak", "padding at the peak", null=_NO_ELEMENTS),
    attribute("fragmentation", SHARE, _GAPS, "fragmentation", null=_NO_TEMPORARIES),
    _bytes("scoped_bytes", _SCOPED, "largest scoped allocation", null=_NO_SCOPED, words=_scoped_words),
    attribute("scoped_instruction", VERBATIM, "which instruction says so", null=_NO_SCOPED),
    Metric("buffer_count", COUNT, lambda space: len(space.live_ranges), "buffers before any limit"),
    Metric("heap_bytes", BYTES, lambda space: space.heap_bytes.tolist(), "memory in use at each point"),
    Metric("heap_unpadded_bytes", BYTES, lambda space: space.heap_unpadded_bytes.tolist(), _OF_THAT),
)

_READABLE = in_order(
    "peak_bytes peak_unpadded_bytes capacity_bytes headroom_bytes arguments_bytes outputs_bytes temporaries_bytes",
    "constants_bytes padding_bytes total_allocation_bytes fragmentation scoped_bytes peak_instruction",
)


def readable_metrics(space: SpaceMemory) -> list[tuple[str, str]]:
    """Heading and words of each figure that people read, the most important first."""
    by_key = {figure.key: figure for figure in SPACE}
    return metric_rows([by_key[key] for key in _READABLE], space)


# --- words


def short_source(source: str | None) -> str:
    """The file's name and the line, without its folders."""
    return source.rpartition("/")[2] if source else "-"


@lru_cache(4096)
def short_op(framework_op: str) -> str:
    """A framework op without what transformations add: ``Model/h_7/attention/dot_general``.

    The path of an argument is written with dots: ``state.params.layers.up``.
    """
    if "/" not in framework_op:
        return _KEY.sub(r".\1", framework_op)
    scope, last = scope_of(framework_op), framework_op.rstrip(":").rpartition("/")[2]
    return f"{scope}/{last}" if scope else last


_KEY = pattern(r"\['([^'\[\]]*)'\]")

# --- buffers


class _Described:
    """Buffers of a memory space, or groups as one buffer each; described once, when they are asked for."""

    def __init__(self, space: SpaceMemory, entries: Int64s | Sequence[BufferGroup]) -> None:
        self._space, self._entries = space, entries
        self._known: dict[int, Buffer] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, row: int, /) -> Buffer:
        if row not in self._known:
            entry = self._entries[row]
            described = self._together(entry) if isinstance(entry, BufferGroup) else self._space.buffers[int(entry)]
            self._known[row] = described
        return self._known[row]

    def _together(self, group: BufferGroup) -> Buffer:
        is_temporary = bool((self._space.live_ranges.category[group.rows] >= CATEGORIES.index("temporary")).any())
        elements = group.size_bytes - group.padding_bytes
        return Buffer(group.name, "temporary" if is_temporary else "parameter", group.size_bytes, elements)


@dataclass(frozen=True, slots=True)
class ListedRows(BufferRows):
    """What the screen lists of a memory space.

    Attributes:
        entries: buffers by their rows of `SpaceMemory.live_ranges`, or groups.
        most_bytes: size of the largest, whose bar is the longest.
    """

    space: SpaceMemory
    entries: Any
    most_bytes: int

    @classmethod
    def of(
        cls, space: SpaceMemory, entries: Int64s | Sequence[BufferGroup], whole_bytes: int = 0, most_bytes: int = 0
    ) -> ListedRows:
        """These buffers or groups; `whole_bytes` is what is in memory."""
        return cls(_Described(space, entries), whole_bytes, space, entries, most_bytes)


def _bar(source: ListedRows, glyphs: Glyphs, row: int) -> Span:
    buffer = source.buffers[row]
    fraction = buffer.size_bytes / source.most_bytes if source.most_bytes > 0 else 0.0
    return size_bar(fraction, buffer.category in ("temporary", "scoped"), glyphs)


def _padding(source: ListedRows, _: Glyphs, row: int) -> Span:
    buffer = source.buffers[row]
    is_small = (buffer.padding_bytes or 0) < SMALL * (source.whole_bytes or 0)
    return expansion_words(buffer.expansion), "dim" if is_small else expansion_style(buffer.expansion)


def op_or_name(buffer: Buffer) -> str:
    """The framework op without what transformations add, else the instruction."""
    return short_op(buffer.framework_op) if buffer.framework_op else buffer.name


_LOOKS: dict[str, ColumnSpec[Any]] = {
    "expansion": ColumnSpec("pad", 5, cells=by_row(_padding)),
    "source": ColumnSpec("source", 20, words=lambda value, _: short_source(value), cut=cut_begin),
}
_SORTS: dict[str, Callable[[Any], Int64s]] = {
    "size_bytes": lambda source: source.space.live_ranges.size_bytes[source.entries],
    "expansion": lambda source: padding_of(source.space, source.entries),
}

_MARKDOWN = ("rank", "size_bytes", "share_percent", "expansion", "category", "shape", "name", "framework_op", "source")
_SCREEN = ("rank", "size_bytes", "share_percent", "size_bar", "expansion", "category", "shape", "source", "name", "op")

BUFFERS: Table[Any] = Table(
    "buffers",
    (
        *(replace(one, screen=_LOOKS.get(one.key, one.screen), sort=_SORTS.get(one.key)) for one in BUFFER_FIELDS),
        bar_field(by_row(_bar)),
        Field(
            "op",
            VERBATIM,
            lambda source, rows: [op_or_name(source.buffers[row]) for row in rows],
            "the framework op without names of transformations, else the instruction; sorts in the program's order",
            screen=ColumnSpec("op", 20, grows=True),
            sort=lambda source: source.space.live_ranges.born[source.entries],
        ),
    ),
    len,
    json=(*SHARED_KEYS, "opcode", "logical_buffer"),
    markdown=_MARKDOWN,
    screen=_SCREEN,
)
"""Buffers: `BufferRows` in reports, `ListedRows` on the screen."""

SEARCHED = ("name", "shape", "framework_op", "source")  # what a search looks at

# --- groups of buffers


def _group_padding(source: ListedRows, _: Glyphs, row: int) -> Span:
    value, expansion = source.buffers[row].padding_bytes or 0, source.buffers[row].expansion
    is_small = value < SMALL * (source.whole_bytes or 0)
    style = expansion_style(math.inf if value and expansion is None else expansion)
    return binary_short(value) if value else "-", "dim" if is_small else style


def _begins(source: ListedRows) -> Int64s:
    return np.array([source.space.live_ranges.born[group.rows].min() for group in source.entries], np.int64)


_GROUP_LOOKS: dict[str, ColumnSpec[Any]] = {
    "name": ColumnSpec("group", 1, lambda _: "strong", grows=True),
    "padding_bytes": ColumnSpec("padding", 7, cells=by_row(_group_padding)),
}

GROUPS: Table[Any] = Table(
    "groups",
    (
        *(
            replace(one, screen=_GROUP_LOOKS.get(one.key, one.screen), sort=_begins if one.key == "name" else None)
            for one in BUFFERS.fields
        ),
        Field(
            "buffer_count",
            COUNT,
            lambda source, rows: [len(source.entries[row].rows) for row in rows],
            "how many buffers a group has",
            screen=ColumnSpec("buffers", 7),
        ),
    ),
    len,
    json=("name", "size_bytes", "share_percent", "padding_bytes", "buffer_count"),
    screen=("rank", "size_bytes", "share_percent", "size_bar", "padding_bytes", "buffer_count", "name"),
)
"""Groups of buffers, whose quantities are those of all their buffers together."""

OF_GROUPS = ("name", "size_bytes", "share_percent", "unpadded_bytes", "padding_bytes", "buffer_count")
"""What a file that is written from the screen has of groups."""

# --- modules


def _peaks_by_name(module: ModulePeaks) -> dict[str, int]:
    return {space_name(space): peak for space, peak in sorted(module.peaks.items())}


def _peaks(module: ModulePeaks) -> str:
    return module.problem or ", ".join(f"{name} {binary_size(peak)}" for name, peak in _peaks_by_name(module).items())


_NO_ID = "the module comes from a file that does not say"
MODULES: Table[Sequence[ModulePeaks]] = object_table(
    "modules",
    (
        attribute("name", VERBATIM, "its name", name="module.name"),
        attribute("program_id", VERBATIM, "its id", null=_NO_ID, name="module.program_id"),
        attribute("origin", VERBATIM, "where it was read: the host, or the file's name", name="module.origin"),
        Metric("peak_bytes", BYTES_BY_NAME, _peaks_by_name, "the peak in each memory space that it uses"),
        Metric(
            "problems", VERBATIM, lambda module: [module.problem] * bool(module.problem), "why there are no figures"
        ),
    ),
    (
        Metric("module", VERBATIM, lambda module: str(module.module), "name and program id", heading="module"),
        Metric("peaks", VERBATIM, _peaks, "these peaks in words, or why there are none", heading="peaks"),
    ),
    markdown=("module", "peaks"),
)

"""The quantities of a buffer in memory, whether a compiled module or the text of an error describes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tpuprof.parsers.base.record import Sized, dataclass, replace
from tpuprof.parsers.memory.model import Buffer, Buffers
from tpuprof.tui.draw.buffers.fills import FILL, HELD_IN_BAND, USED_IN_BAND
from tpuprof.tui.draw.buffers.words import CATEGORY, CATEGORY_WORDS, expansion_style, expansion_words, short_shape
from tpuprof.tui.draw.format import UNKNOWN, binary_short, percent
from tpuprof.tui.draw.pen import cut
from tpuprof.tui.draw.spans import Glyphs, Key, Span, small_bar
from tpuprof.tui.draw.table import Cells
from tpuprof.tui.report.fields import ColumnSpec, Field, Rows, Source, Table, filter_texts, named, of_each
from tpuprof.tui.report.shared.quantities import RANK
from tpuprof.tui.report.units import BYTES, FLAG, NUMBER, PERCENT, VERBATIM, Unit, plain

BAR_WIDTH = 8


@dataclass(frozen=True, slots=True)
class BufferRows(Sized):
    """Buffers of a table.

    Attributes:
        buffers: by row; those of a module are described when they are asked for.
        whole_bytes: what sizes are shares of; None where it is unknown.
    """

    buffers: Sequence[Buffer] | Buffers
    whole_bytes: int | None


def _share(rows: BufferRows, chosen: Rows) -> list[float | None]:
    whole = rows.whole_bytes
    return [100 * rows.buffers[row].size_bytes / whole if whole else None for row in chosen]


def whole_share(value: float | None, _: bool) -> str:
    """A percentage; all of it without decimals, which fits a narrow column."""
    return "100%" if value == 100 else percent(value)


EXPANSION = Unit("ratio", plain, lambda value, _: UNKNOWN if value is None else f"{value:.1f}x" if value > 1 else "")
_NAME = replace(VERBATIM, words=lambda value, _: str(value))


def size_bar(fraction: float, is_temporary: bool, glyphs: Glyphs) -> Span:
    """A bar in the colour of what comes and goes, or of what is there throughout."""
    key: Key = "text" if glyphs.letters else (FILL[USED_IN_BAND if is_temporary else HELD_IN_BAND], "page")
    return small_bar(fraction, BAR_WIDTH, glyphs)[0], key


def rank_field(width: int) -> Field[Any]:
    """The number of a row."""
    return replace(RANK, screen=ColumnSpec("#", width, lambda _: "dim"))


def bar_field(cells: Callable[[Source, Glyphs], Cells]) -> Field[Source]:
    """Sizes as bars, which only the screen has."""
    screen: ColumnSpec[Source] = ColumnSpec("", BAR_WIDTH, cells=cells, is_left=True, keeps_style=True)
    meaning = "its size as a bar; the largest has the longest bar"
    return Field("size_bar", NUMBER, lambda _, rows: [None for _ in rows], meaning, screen=screen)


SIZE_LOOK: ColumnSpec[Any] = ColumnSpec("size", 6, lambda _: "strong", lambda value, _: binary_short(value))
"""A size as a narrow column."""

_LOOKS: dict[str, ColumnSpec[BufferRows]] = {
    "name": ColumnSpec("name", 24),
    "category": ColumnSpec(CATEGORY, 6, lambda _: "dim", lambda value, _: CATEGORY_WORDS[value], cut=cut),
    "size_bytes": SIZE_LOOK,
    "expansion": ColumnSpec("pad", 5, expansion_style, lambda value, _: expansion_words(value)),
    "shape": ColumnSpec("shape", 30, lambda _: "strong", lambda value, _: short_shape(value)),
}


def _own(key: str, unit: Unit, meaning: str, null: str = "", heading: str = "") -> Field[BufferRows]:
    filter = (key,) if unit.is_text else ()
    return Field(key, unit, of_each(key, "buffers"), meaning, null, heading, _LOOKS.get(key), filter=filter)


NO_ELEMENTS = "the size of its elements is unknown"
NO_ORIGIN = "the compiler does not say where it comes from"
NO_LOGICAL_BUFFER = "the allocation has no logical buffer"

_NO_SHAPE = "the module gives no shape for the buffer"
_CATEGORIES = "what holds it in memory: parameter, output, thread-local, constant, temporary or scoped"
_OF_ALL = "its size, of all that is in memory"
BUFFER_FIELDS: tuple[Field[BufferRows], ...] = (
    rank_field(2),
    _own("name", _NAME, "the instruction that defines it", heading="buffer"),
    _own("category", VERBATIM, _CATEGORIES, heading="category"),
    _own("size_bytes", BYTES, "its size with padding", heading="size"),
    named("share_percent", PERCENT, _share, _OF_ALL, "of peak", 5, title="%", words=whole_share),
    _own("unpadded_bytes", BYTES, "the size of its elements", NO_ELEMENTS),
    _own("expansion", EXPANSION, "size over unpadded size", f"{NO_ELEMENTS}, or there are none", "padding"),
    _own("padding_bytes", BYTES, "its size beyond its elements: tiles round its last dimensions up", NO_ELEMENTS),
    _own("shape", VERBATIM, "its shape with its layout, in XLA's notation", _NO_SHAPE, "shape"),
    _own("framework_op", VERBATIM, "the framework op that it comes from", NO_ORIGIN, "framework op"),
    _own("source", VERBATIM, "its source file and line", NO_ORIGIN, "source"),
    _own("allocation_type", VERBATIM, "the kind of its allocation", "the buffer assignment does not say"),
    _own("offset_bytes", BYTES, "where it begins in its allocation", NO_LOGICAL_BUFFER),
    _own("born", NUMBER, "the first point of the program at which it is in memory", "unknown"),
    _own("dies", NUMBER, "the first point of the program at which it no longer is", "unknown"),
    _own("at_peak", FLAG, "whether it is in memory at the peak"),
    _own("opcode", VERBATIM, "of the instruction that defines it", "no instruction of the module defines it"),
    _own("logical_buffer", NUMBER, "its id in the module's buffer assignment", NO_LOGICAL_BUFFER),
    _own("operator", VERBATIM, "the op's type, as the error's text gives it"),
    _own("tag", VERBATIM, "the tag that the error's text gives it"),
    replace(_own("label", VERBATIM, "the label that XLA gives it in the error's text"), key="xla_label"),
)
"""All quantities, with the reasons that hold for a compiled module."""

_SHARED = ("category", "size_bytes", "unpadded_bytes", "expansion", "padding_bytes", "shape", "framework_op", "source")
SHARED_KEYS = ("name", *_SHARED, "allocation_type", "offset_bytes", "born", "dies", "at_peak")
"""Keys of a buffer in every document."""


def searched(table: Table[Source], source: Source, keys: Sequence[str], between: str = "\n") -> list[str]:
    """What a search looks at in each row: the texts of some fields that are known, in lower case."""
    texts = filter_texts(table, source, keys)
    return [between.join(filter(None, row)).casefold() for row in zip(*texts.values(), strict=True)]

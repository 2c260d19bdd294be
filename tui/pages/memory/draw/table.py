"""The table of the buffers in memory at a point, or of groups of them; only rows that show are described."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import lru_cache

from tpuprof.parsers.memory.model import CATEGORIES, Buffer, SpaceMemory
from tpuprof.parsers.memory.modules.groups import Group, scope_of
from tpuprof.tui.draw.bars import small_bar
from tpuprof.tui.draw.buffers.fills import FILL, HELD_IN_BAND, USED_IN_BAND
from tpuprof.tui.draw.buffers.sizes import binary_short
from tpuprof.tui.draw.buffers.words import CATEGORY, CATEGORY_WORDS, expansion_style, expansion_words, short_shape
from tpuprof.tui.draw.format import UNKNOWN, count, percent
from tpuprof.tui.draw.layout import NARROW, clean, cut_begin, cut_middle, fit, rule
from tpuprof.tui.draw.spans import Glyphs, Key, Line, Span, StyleKey
from tpuprof.tui.draw.table import Column, each, header_line, row_lines
from tpuprof.tui.pages.memory.draw.listed import MemoryList

SMALL = 0.001
"""Padding below this share of what is in memory is not worth a colour."""

_BAR = 8
_BARRED = 104
"""Cells from which on rows are numbered and have a bar."""

_SHORT_OP = 20
"""Cells below which the end of an op's name is all that is shown of it."""

_KEY = re.compile(r"\['([^'\[\]]*)'\]")


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


def heading(page: SpaceMemory, listed: MemoryList, width: int, glyphs: Glyphs) -> Line:
    """``Buffers at the peak (24)`` and how they are sorted."""
    what = "Buffers" if listed.grouping == "none" else f"Buffers by {listed.grouping}"
    where = "at the peak" if listed.point == page.peak_position else f"at point {count(listed.point)}"
    if page.points == 1:
        where = "in memory throughout"
    number = count(len(listed))
    if listed.wanted:
        number = f"{count(listed.shown_count)} of {count(listed.in_memory_count)}"
    right = f"sort: {listed.order}"
    if listed.wanted:
        wanted = clean(listed.wanted, glyphs.name == "ascii")
        right = f"with {cut_middle(wanted, 20, glyphs)}: {binary_short(listed.shown_bytes)}; {right}"
    return rule(f"{what} {where} ({number})", width, glyphs, right)


def table_lines(
    page: SpaceMemory, listed: MemoryList, cursor: int, top: int, width: int, height: int, glyphs: Glyphs
) -> list[Line]:
    """The columns' titles and `height` - 1 rows from `top` on."""
    if not len(listed):
        words = "no buffer has this text" if listed.wanted else "no buffer is in memory here"
        return [fit([(f" {words}", "dim")], width, glyphs)]
    make = _buffer_columns if listed.grouping == "none" else _group_columns
    columns = make(page, listed, width, glyphs)
    lines = [header_line(columns, width, glyphs, listed.order, listed.order != "program")]
    return lines + row_lines(columns, range(top, min(len(listed), top + height - 1)), cursor, width, glyphs)


def _share(listed: MemoryList, size: int) -> Span:
    whole = listed.in_memory_bytes
    return (UNKNOWN if whole <= 0 else "100%" if size == whole else percent(100 * size / whole)), "text"


def _bar_column(listed: MemoryList, value: Callable[[int], tuple[int, bool]], glyphs: Glyphs) -> Column:
    """A bar of a size against the largest one."""

    def cell(at: int) -> Span:
        size, is_temporary = value(at)
        key: Key = (FILL[USED_IN_BAND if is_temporary else HELD_IN_BAND], "page")
        if glyphs.letters:
            key = "text"
        return small_bar(size / listed.most_bytes if listed.most_bytes > 0 else 0.0, _BAR, glyphs)[0], key

    return Column("", "", _BAR, each(cell), right=False, keeps_style=True)


class _Rows:
    """The buffers of a list by entry, described when a cell first asks."""

    def __init__(self, page: SpaceMemory, listed: MemoryList, glyphs: Glyphs) -> None:
        self._page, self._listed, self._glyphs = page, listed, glyphs
        self._described: dict[int, Buffer] = {}

    def row(self, at: int) -> int:
        """The row of `page.stays`."""
        entry = self._listed.row_of(at)
        assert entry is not None, "a list without groups has rows"
        return entry

    def buffer(self, at: int) -> Buffer:
        """The buffer, described once."""
        if at not in self._described:
            self._described[at] = self._page.buffers[self.row(at)]
        return self._described[at]

    def size(self, at: int) -> int:
        """What it takes."""
        return int(self._page.stays.size_bytes[self.row(at)])

    def padded(self, at: int) -> Span:
        """The expansion by padding."""
        size, elements = self.size(at), int(self._page.stays.unpadded_bytes[self.row(at)])
        expansion = size / elements if elements > 0 else None
        is_small = size - elements < SMALL * self._listed.in_memory_bytes
        return expansion_words(expansion), "dim" if is_small else expansion_style(expansion)

    def category(self, at: int) -> Span:
        """What holds it."""
        return CATEGORY_WORDS[self.buffer(at).category], "dim"

    def is_temporary(self, at: int) -> bool:
        """Whether it comes and goes."""
        return self.buffer(at).category in ("temporary", "scoped")

    def words(self, text: Callable[[Buffer], str], room: int, key: StyleKey = "text") -> Callable[[int], Span]:
        """A cell with a text of the buffer, cut in its middle."""
        ascii_only = self._glyphs.name == "ascii"
        return lambda at: (cut_middle(clean(text(self.buffer(at)), ascii_only), room, self._glyphs), key)

    def end(self, text: Callable[[Buffer], str], room: int) -> Callable[[int], Span]:
        """A cell with the end of a text of the buffer."""
        ascii_only = self._glyphs.name == "ascii"
        return lambda at: (cut_begin(clean(text(self.buffer(at)), ascii_only), room, self._glyphs), "text")


def _buffer_columns(page: SpaceMemory, listed: MemoryList, width: int, glyphs: Glyphs) -> list[Column]:
    """The columns that fit; what room there is, shape, source and op share."""
    rows = _Rows(page, listed, glyphs)
    columns = [Column("size", "size", 6, each(lambda at: (binary_short(rows.size(at)), "strong")))]
    if width >= NARROW:
        columns.append(Column("", "%", 5, each(lambda at: _share(listed, rows.size(at)))))
    if width >= _BARRED:
        digits = max(2, len(str(len(listed))))
        columns.insert(0, Column("", "#", digits, each(lambda at: (str(at + 1), "dim"))))
        columns.append(_bar_column(listed, lambda at: (rows.size(at), rows.is_temporary(at)), glyphs))
    columns.append(Column("padding", "pad", 5, each(rows.padded)))
    columns.append(Column("", CATEGORY, 6 if width >= NARROW else 5, each(rows.category), right=False))
    room = width - 1 - sum(column.width + 1 for column in columns)
    shape, source, name = _shared_out(room)
    shapes = rows.words(lambda one: short_shape(one.shape), shape, "strong")
    columns.append(Column("", "shape", shape, each(shapes), right=False))
    sources = rows.end(lambda one: short_source(one.source), source)
    columns.append(Column("", "source", source, each(sources), right=False))
    if name:
        columns.append(Column("", "name", name, each(rows.words(lambda one: one.name, name)), right=False))
    rest = max(1, width - 1 - sum(column.width + 1 for column in columns) - 1)
    ops = rows.end(_op, rest) if rest < _SHORT_OP else rows.words(_op, rest)
    return [*columns, Column("program", "op", rest, each(ops), right=False, grows=True)]


def _op(buffer: Buffer) -> str:
    return short_op(buffer.framework_op) if buffer.framework_op else buffer.name


def _shared_out(room: int) -> tuple[int, int, int]:
    """Cells for shape, source and name; the op gets the rest. 0 for a column that is left out."""
    shape_share, source_share = (38, 31) if room < 45 else (40, 24) if room < 70 else (30, 20)
    shape = min(30, max(12, room * shape_share // 100))
    source = min(20, max(6, room * source_share // 100))
    name = min(24, room // 5) if room >= 104 else 0
    return shape, source, name


def _group_columns(page: SpaceMemory, listed: MemoryList, width: int, glyphs: Glyphs) -> list[Column]:
    ascii_only = glyphs.name == "ascii"

    def group(at: int) -> Group:
        entry = listed.group_of(at)
        assert entry is not None, "a list of groups has no rows"
        return entry

    def padding(at: int) -> Span:
        value, size = group(at).padding_bytes, group(at).size_bytes
        expansion = size / (size - value) if 0 < value < size else 1.0 if value <= 0 else math.inf
        is_small = value < SMALL * listed.in_memory_bytes
        return binary_short(value) if value > 0 else "-", "dim" if is_small else expansion_style(expansion)

    def is_temporary(at: int) -> bool:
        return bool((page.stays.category[group(at).rows] >= CATEGORIES.index("temporary")).any())

    columns = [
        Column("size", "size", 6, each(lambda at: (binary_short(group(at).size_bytes), "strong"))),
        Column("", "%", 5, each(lambda at: _share(listed, group(at).size_bytes))),
        Column("padding", "padding", 7, each(padding)),
        Column("", "buffers", 7, each(lambda at: (count(len(group(at).rows)), "text"))),
    ]
    if width >= NARROW:
        columns.insert(2, _bar_column(listed, lambda at: (group(at).size_bytes, is_temporary(at)), glyphs))
        columns.insert(0, Column("", "#", 3, each(lambda at: (str(at + 1), "dim"))))
    rest = width - 1 - sum(column.width + 1 for column in columns) - 1
    name = Column(
        "program",
        {"source": "source line", "scope": "scope", "category": "category"}.get(listed.grouping, ""),
        max(1, rest),
        each(lambda at: (clean(group(at).name, ascii_only), "strong")),
        right=False,
        grows=True,
    )
    return [*columns, name]

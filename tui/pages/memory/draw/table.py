"""The list of the memory tab: the buffers in memory at a point, in order, or groups of them, as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from tpuprof.parsers.base.intervals import Int64s, no_ints
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.text import has_words
from tpuprof.parsers.memory.model import SpaceMemory
from tpuprof.parsers.memory.modules.groups import BufferGroup, group_rows
from tpuprof.tui.draw.format import binary_short, count
from tpuprof.tui.draw.pen import NARROW, Pen, cut_begin, cut_middle
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.draw.table import Column, Listing, header_line, row_lines
from tpuprof.tui.pages.memory.fields.module import BUFFERS, GROUPS, SEARCHED, ListedRows
from tpuprof.tui.report.fields import Table, screen_columns
from tpuprof.tui.report.fields import order as ordered
from tpuprof.tui.report.shared.buffers import searched

Grouping = Literal["none", "source", "scope", "category", "owner"]

GROUPINGS: tuple[Grouping, ...] = ("none", "source", "scope", "category", "owner")

_BARRED, _SHORT_OP = 104, 20
"""Cells from which on rows are numbered and have a bar, and below which only the end of an op's name is shown."""

GROUP_TITLES = {"source": "source line", "scope": "scope", "category": "category", "owner": "owner"}


@dataclass(frozen=True, slots=True)
class MemoryState(Listing):
    """What the user looks at.

    Attributes:
        point: the program point whose buffers are listed; the peak at first.
        grouping: of the list, whose entries the cursor is an index of.
        show_map: the allocation map stands in place of the working set.
    """

    point: int = 0
    sort: str = "size"
    grouping: Grouping = "none"
    show_map: bool = False

    @property
    def of_list(self) -> MemoryState:
        return replace(self, cursor=0, first=0, show_map=False)


@dataclass(frozen=True, slots=True)
class MemoryList:
    """The list, made once for a point, an order, a grouping and a filter.

    Attributes:
        rows: int64, buffers in order, rows of `SpaceMemory.live_ranges`; none where they are grouped.
        groups: of the buffers, in order; none where they are not grouped.
        state: what was asked for.
        in_memory_bytes, in_memory_count: all that is in memory at the point, whatever the filter leaves.
        shown_bytes, shown_count: what the filter leaves of that.
        most_bytes: the largest entry's size.
    """

    rows: Int64s
    groups: tuple[BufferGroup, ...]
    state: MemoryState
    in_memory_bytes: int
    in_memory_count: int
    shown_bytes: int
    shown_count: int
    most_bytes: int

    def __len__(self) -> int:
        return len(self.rows) + len(self.groups)

    def rows_of(self, entry: int) -> Int64s:
        """int64: rows of `SpaceMemory.live_ranges` behind an entry; none for an index that the list does not have."""
        group = self.group_of(entry)
        return group.rows if group is not None else self.rows[entry : entry + 1] if entry >= 0 else self.rows[:0]

    def row_of(self, entry: int) -> int | None:
        """The buffer's row; None for a group and for an index that the list does not have."""
        return int(self.rows[entry]) if 0 <= entry < len(self.rows) else None

    def group_of(self, entry: int) -> BufferGroup | None:
        """The group; None for a buffer and for an index that the list does not have."""
        return self.groups[entry] if 0 <= entry < len(self.groups) else None


NOTHING_LISTED = MemoryList(no_ints(), (), MemoryState(), 0, 0, 0, 0, 0)


def memory_list(
    page: SpaceMemory, state: MemoryState, within: Int64s | None = None, owners: Mapping[int, str] | None = None
) -> MemoryList:
    """The buffers in memory at a point, of these rows alone where there are any, or groups of them.

    Each buffer in memory is described for a filter, which looks at its name, shape, framework op and source, and for a
    grouping by source or scope. A grouping by owner needs `owners`, see `SpaceSummary`.
    """
    order, grouping = state.sort, state.grouping
    in_memory = page.at(min(max(state.point, 0), page.points - 1))
    rows = in_memory if within is None else in_memory[np.isin(in_memory, within)]
    if state.words:
        rows = rows[np.array(list(map(has_words(state.words), searched_texts(page, rows))), np.bool_)]
    sizes = page.live_ranges.size_bytes
    shown_bytes, shown_count, most = int(sizes[rows].sum()), len(rows), int(sizes[rows].max(initial=0))
    groups: tuple[BufferGroup, ...] = ()
    if grouping == "none":
        for name, down in (("size", True), (order, BUFFERS.is_down(state))):  # what is equal stays as it is
            rows = rows[ordered(BUFFERS, ListedRows.of(page, rows), name, down)]
    else:
        groups = group_rows(page, rows, grouping, owners)
        in_order = ordered(GROUPS, ListedRows.of(page, groups), order, GROUPS.is_down(state))
        groups, rows = tuple(groups[row] for row in in_order.tolist()), rows[:0]
        most = max((group.size_bytes for group in groups), default=0)
    in_memory_bytes = int(sizes[in_memory].sum())
    return MemoryList(rows, groups, state.of_list, in_memory_bytes, len(in_memory), shown_bytes, shown_count, most)


def table_of(state: MemoryState) -> Table[Any]:
    """The fields of the rows: of buffers, or of groups."""
    return BUFFERS if state.grouping == "none" else GROUPS


def searched_texts(page: SpaceMemory, rows: Int64s) -> list[str]:
    """What a filter looks at in each of some buffers."""
    return searched(BUFFERS, ListedRows.of(page, rows), SEARCHED)


def list_heading(page: SpaceMemory, listed: MemoryList, pen: Pen) -> Line:
    """``Buffers at the peak (24)`` and how they are sorted."""
    state = listed.state
    what = "Buffers" if state.grouping == "none" else f"Buffers by {state.grouping}"
    where = "at the peak" if state.point == page.peak_position else f"at point {count(state.point)}"
    where = "in memory throughout" if page.points == 1 else where
    number, right = count(len(listed)), f"sort: {state.in_words(state.sort)}"
    if state.words:
        number = f"{count(listed.shown_count)} of {count(listed.in_memory_count)}"
        right = f"with {cut_middle(state.words, 20, pen.glyphs)}: {binary_short(listed.shown_bytes)}; {right}"
    return pen.rule(f"{what} {where} ({number})", right)


def table_lines(page: SpaceMemory, listed: MemoryList, cursor: int, top: int, pen: Pen, height: int) -> list[Line]:
    """The columns' titles and `height` - 1 rows from `top` on."""
    if not len(listed):
        words = "no buffer has these words" if listed.state.words else "no buffer is in memory here"
        return [pen.fit([(f" {words}", "dim")])]
    order, is_grouped = listed.state.sort, listed.state.grouping != "none"
    columns = (_group_columns if is_grouped else _buffer_columns)(page, listed, pen)
    lines = [header_line(columns, pen, order, table_of(listed.state).is_down(listed.state))]
    return lines + row_lines(columns, range(top, min(len(listed), top + height - 1)), cursor, pen)


def _buffer_columns(page: SpaceMemory, listed: MemoryList, pen: Pen) -> list[Column]:
    """The columns that fit; what room there is, shape, source and op share."""
    source = ListedRows.of(page, listed.rows, listed.in_memory_bytes, listed.most_bytes)
    is_barred, is_narrow = pen.width >= _BARRED, pen.width < NARROW
    first: tuple[tuple[str, bool, Mapping[str, Any]], ...] = (
        ("rank", is_barred, {"width": max(2, len(str(len(listed))))}),
        ("size_bytes", True, {}),
        ("share_percent", not is_narrow, {}),
        ("size_bar", is_barred, {}),
        ("expansion", True, {}),
        ("category", True, {"width": 5 if is_narrow else 6}),
    )
    columns = screen_columns(BUFFERS, source, pen.glyphs, {key: look for key, is_shown, look in first if is_shown})
    shares = zip(("shape", "source", "name"), _shared_out(_room(columns, pen.width)), strict=True)
    columns += screen_columns(BUFFERS, source, pen.glyphs, {key: {"width": cells} for key, cells in shares if cells})
    rest = max(1, _room(columns, pen.width) - 1)
    op = {"width": rest, "cut": cut_begin if rest < _SHORT_OP else cut_middle}
    return columns + screen_columns(BUFFERS, source, pen.glyphs, {"op": op})


def _group_columns(page: SpaceMemory, listed: MemoryList, pen: Pen) -> list[Column]:
    source = ListedRows.of(page, listed.groups, listed.in_memory_bytes, listed.most_bytes)
    left_out = ("rank", "size_bar", "name") if pen.width < NARROW else ("name",)
    looks = {key: {"width": 3} if key == "rank" else {} for key in GROUPS.screen if key not in left_out}
    columns = screen_columns(GROUPS, source, pen.glyphs, looks)
    name = {"title": GROUP_TITLES[listed.state.grouping], "width": max(1, _room(columns, pen.width) - 1)}
    return columns + screen_columns(GROUPS, source, pen.glyphs, {"name": name})


def _room(columns: list[Column], width: int) -> int:
    return width - 1 - sum(column.width + 1 for column in columns)


def _shared_out(room: int) -> tuple[int, int, int]:
    """Cells for shape, source and name; the op gets the rest. 0 for a column that is left out."""
    shape_share, source_share = (38, 31) if room < 45 else (40, 24) if room < 70 else (30, 20)
    shape = min(30, max(12, room * shape_share // 100))
    source = min(20, max(6, room * source_share // 100))
    name = min(24, room // 5) if room >= 104 else 0
    return shape, source, name

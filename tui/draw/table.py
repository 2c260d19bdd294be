"""Tables of any length in cells: only the rows that show are drawn.

A table is a list of columns; a column draws the cells of the rows that show. Columns come in order of importance. Those
that fit beside the first ones, which always show, are drawn; a shift leaves some out to make room for later ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.tui.draw.format import count
from tpuprof.tui.draw.pen import Pen, cut, cut_middle, shown_top
from tpuprof.tui.draw.spans import Glyphs, Line, Span, line_width

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True, slots=True)
class Listing:
    """What a user looks at in a list of rows, wherever that stands: the cursor, the order, the filter.

    What a page has to choose besides derives from it.

    Attributes:
        cursor, first: index of the row under the cursor, and of the first one that shows.
        sort: what the rows are sorted by; empty for an order of their own.
        is_reversed: they stand in the other direction than that order has by nature.
        words: the filter, of which every word has to match.
    """

    cursor: int = 0
    first: int = 0
    sort: str = ""
    is_reversed: bool = False
    words: str = ""

    def at(self, row: int, count: int) -> Self:
        """With the cursor on a row of so many, or on the nearest that there is."""
        return replace(self, cursor=max(0, min(row, count - 1)))

    def anew(self, **changes: object) -> Self:
        """With changes that bring other rows, or another order: the first row is under the cursor."""
        every: dict[str, Any] = {**changes, "cursor": 0, "first": 0}
        return replace(self, **every)

    def sorted_by(self, order: str) -> Self:
        """In another order; turned round where it is in that order already."""
        return self.anew(sort=order, is_reversed=order == self.sort and not self.is_reversed)

    def in_words(self, order: str) -> str:
        return f"{order}, reversed" if self.is_reversed else order

    def shown_first(self, room: int, count: int) -> int:
        """The first of `count` rows that shows, where `room` of them fit: the cursor stays in sight."""
        return shown_top(self.cursor, self.first, room, count)


PLACES = frozenset(("source", "place", "called_from"))
"""Columns that name a file and a line; a printed table shows them whole."""

LEAST_WIDTH = 8  # cells that a column needs to be shown at all
Cells = Callable[[Sequence[int]], Sequence[Span]]
"""Draws the cells of some rows in one column: texts free of control characters, and their styles."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        key: what the table is sorted by when this column is chosen; empty for a picture.
        width: cells, without the blank that stands before it.
        cells: draws the rows that show.
        right: texts end at the right.
        fixed: always shown, at the left.
        grows: takes the room that is left.
        keeps_style: its style stays under the cursor, for signs whose colour says something.
    """

    key: str
    title: str
    width: int
    cells: Cells
    right: bool = True
    fixed: bool = False
    grows: bool = False
    keeps_style: bool = False


def each(cell: Callable[[int], Span]) -> Cells:
    """The cells of a column that is drawn row by row."""
    return lambda rows: [cell(row) for row in rows]


def by_row(cell: Callable[[Any, Glyphs, int], Span]) -> Callable[[Any, Glyphs], Cells]:
    """The cells of a column that is drawn row by row of what a table is of."""
    return lambda source, glyphs: each(partial(cell, source, glyphs))


def by_item(cell: Callable[[Any, Glyphs], Span]) -> Callable[[Any, Glyphs], Cells]:
    """The same where a table is of a sequence, an item a row."""
    return lambda source, glyphs: each(lambda row: cell(source[row], glyphs))


def chosen_columns(columns: Sequence[Column], width: int, shift: int = 0, sort: str = "") -> list[Column]:
    """The columns that fit: the fixed ones, then others from the one at `shift` on; the growing one gets the rest.

    Args:
        sort: key of the column that rows are sorted by, which always shows.
    """
    fixed = [column for column in columns if column.fixed]
    room = width - 1 - sum(column.width + 1 for column in fixed)
    shown = list(fixed)
    for column in [column for column in columns if not column.fixed][shift:]:
        if column.width + 1 > room:
            if shown[-1].fixed and room > LEAST_WIDTH:  # the only one is cut rather than left out
                shown.append(replace(column, width=room - 1))
                room = 0
            break
        shown.append(column)
        room -= column.width + 1
    if sort and sort in {column.key for column in columns} - {column.key for column in shown}:
        pinned = [replace(column, fixed=column.fixed or column.key == sort) for column in columns]
        return chosen_columns(pinned, width, shift)
    return [replace(column, width=column.width + room) if column.grows else column for column in shown]


def uncut(columns: Sequence[Column], width: int) -> list[Column]:
    """The columns where the first, a name, makes room for places in the source, by which people find them."""
    last = max((number for number, column in enumerate(columns) if column.key in PLACES), default=0)
    lacking = 1 + sum(column.width + 1 for column in columns[: last + 1]) - width
    if not last or lacking <= 0 or columns[0].width - lacking < LEAST_WIDTH:
        return list(columns)
    return [replace(columns[0], width=columns[0].width - lacking), *columns[1:]]


def most_shift(columns: Sequence[Column], width: int) -> int:
    """The shift at which the last column shows."""
    movable = sum(not column.fixed for column in columns)
    for shift in range(movable):
        if columns[-1].key in {column.key for column in chosen_columns(columns, width, shift)}:
            return shift
    return 0


def header_line(columns: Sequence[Column], pen: Pen, sort: str = "", descending: bool = True) -> Line:
    """The columns' titles; an arrow stands at the one that the table is sorted by."""
    spans: list[Span] = [(" ", "dim")]
    first = next((index for index, column in enumerate(columns) if sort and column.key == sort), -1)
    for index, column in enumerate(columns):
        is_sorted = index == first
        arrow = (pen.glyphs.down if descending else pen.glyphs.up) if is_sorted else ""
        title = cut(column.title, max(1, column.width - len(arrow)), pen.glyphs) + arrow
        text = f"{title:>{column.width}}" if column.right else f"{title:<{column.width}}"
        spans.append((f"{text} ", "strong" if is_sorted else "dim"))
    return pen.fit(spans)


def order_at(heads: Line, x: int, titles: Mapping[str, str]) -> str | None:
    """What rows are sorted by where a click on the columns' titles lies: a key of `titles`; None for no such column.

    A note may follow a title, after a comma.
    """
    ends = accumulate(len(text) for text, _ in heads)
    head = next((text.partition(",")[0].strip() for end, (text, _) in zip(ends, heads, strict=True) if x < end), "")
    stems = [head[:end] for end in range(len(head), max(0, len(head) - 3), -1)]  # without arrow, and ellipsis
    exact = next((order for stem in stems[:2] for order, title in titles.items() if title == stem), None)
    cut_short = (order for stem in stems[1:] for order, title in titles.items() if title.startswith(stem))
    return exact or next(cut_short, None)


def row_lines(columns: Sequence[Column], rows: Sequence[int], selected: int | None, pen: Pen) -> list[Line]:
    """Some rows, the `selected` one marked; by columns, which takes a third of the time that cell by cell takes."""
    drawn = [(column, column.cells(rows)) for column in columns]
    lines = []
    for index, row in enumerate(rows):
        is_selected = row == selected
        spans: list[Span] = [(pen.glyphs.mark if is_selected else " ", "mark" if is_selected else "text")]
        for column, cells in drawn:
            text, key = cells[index]
            text = cut_middle(text, column.width, pen.glyphs) if column.grows else cut(text, column.width, pen.glyphs)
            text = f"{text:>{column.width}}" if column.right else f"{text:<{column.width}}"
            spans.append((f"{text} ", "cursor" if is_selected and not column.keeps_style else key))
        lines.append(pen.fit(spans))
    return lines


def first_rows(columns: Sequence[Column], rows: Sequence[int], most: int, pen: Pen, sort: str = "time") -> list[Line]:
    """The heading and at most so many rows, 0 for all, in the columns that fit; then how many more there are."""
    shown = chosen_columns(columns, pen.width)
    kept = rows[:most] if most else rows
    lines = [header_line(shown, pen, sort), *row_lines(shown, kept, None, pen)]
    return lines + more_lines(len(rows) - len(kept), pen)


def more_lines(number: int, pen: Pen) -> list[Line]:
    """How many rows are left out, if any."""
    return [pen.fit([(f"  + {count(number)} more", "dim")])] if number > 0 else []


def views_line(titles: Mapping[str, str], at: str, status: str, pen: Pen) -> Line:
    """The views' titles, the shown one marked, and its status, for which titles before it give way."""
    spans: list[Span] = [(f" {title} ", "dim") for title in titles.values()]
    key: Span = (" v ", "key")
    passed, before = 0, list(titles).index(at)
    spans[before] = (f"[{titles[at]}]", "strong")

    def room() -> int:
        return pen.width - line_width((key, *spans)) - len(status) - 1

    while room() < 1 and passed < before:
        spans[: 1 + bool(passed)] = [(f" {pen.glyphs.ellipsis} ", "dim")]
        passed += 1
    return pen.fit([key, *spans, (" " * max(1, room()), "text"), (status, "dim")])


def view_at(line: Sequence[tuple[str, object]], titles: Mapping[str, str], x: int) -> str | None:
    """The view whose title a line with the views' titles has in a column."""
    words = "".join(text for text, _ in line)
    begins = {view: words.find(title) for view, title in titles.items()}
    return next((view for view, begin in begins.items() if 0 <= begin <= x < begin + len(titles[view])), None)

"""A list: rows with a cursor, an order and a filter. A tab, a screen or a popup holds one and draws it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.text import said_of
from tpuprof.tui.draw.pen import Composed, Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.draw.table import Listing, order_at, view_at
from tpuprof.tui.terminal.grammar import BY_NAME
from tpuprof.tui.widgets.chrome import KeyRow
from tpuprof.tui.widgets.tab import Tab

if TYPE_CHECKING:
    from _typeshed import SupportsLenAndGetItem

    from tpuprof.tui.report.fields import Table
    from tpuprof.tui.report.page import ShownPage
    from tpuprof.tui.report.shared.exporting import ShownTable

WORDS_ALONE = "no row; this list takes words alone, not columns"
Row = TypeVar("Row")
_Made = TypeVar("_Made")


@dataclass(frozen=True, slots=True)
class SortWanted:
    """What a key returns to have the user choose what a list is sorted by."""

    listed: ListView[Any]


class ListView(Generic[Row]):
    """Rows that are sorted and filtered, with a cursor over them; a subclass says what they are.

    Attributes:
        listing: the cursor, the order and the filter, and what else the user has chosen.
        composed: what was drawn last, and where the rows are in it.
        is_filter_wrong: what was typed last is no filter or keeps no row; the rows are those of the text before.
        keeps_last: they are; else there are none then.
    """

    listing: Any
    composed: Composed | None = None
    is_filter_wrong = False
    keeps_last: ClassVar[bool] = True
    _cached: tuple[object, Any] | None = None

    # --- what a kind of list says

    @property
    def rows(self) -> SupportsLenAndGetItem[Row]:
        raise NotImplementedError

    def compose(self, pen: Pen, height: int) -> Composed:
        """At most `height` lines, with the cursor's row among them."""
        raise NotImplementedError

    @property
    def searched(self) -> Sequence[str]:
        return ()

    @property
    def orders(self) -> Mapping[str, str]:
        """The titles of the columns that the rows can be sorted by, as they are drawn, by the names of these orders.

        Empty if their order is fixed.
        """
        return {} if self.sorts is None else {title: title for title in self.sorts.sorted_by}

    @property
    def sorts(self) -> Table[Any] | None:
        """The table by whose columns the rows can be sorted."""
        return None

    @property
    def keys(self) -> Sequence[KeyRow]:
        return ()

    def enter(self) -> bool:
        """Opens, closes or chooses the row under the cursor; False where there is nothing to do but show its card."""
        return False

    @property
    def shown_table(self) -> ShownTable | None:
        """The rows as they stand, for a file; None where they are no table of a report."""
        return None

    @property
    def selection(self) -> str | None:
        """Name of what is under the cursor; None where it has none."""
        return None

    def help_rows(self) -> Sequence[tuple[str, str]]:
        """What its columns are called and mean."""
        return ()

    @property
    def opened(self) -> dict[str, Callable[[], object]]:
        """What is open besides a filter, by its name: how to close it."""
        return {}

    # --- what all lists do

    @property
    def count(self) -> int:
        return len(self.rows)

    @property
    def cursor(self) -> int:
        return int(self.listing.cursor)

    @property
    def row(self) -> Row | None:
        rows, cursor = self.rows, self.cursor
        return rows[cursor] if 0 <= cursor < len(rows) else None

    def kept(self, key: object, make: Callable[[], _Made]) -> _Made:
        """What `make` returns, such as the rows, kept until the key changes: the part of the listing it depends on."""
        if self._cached is None or self._cached[0] != key:
            self._cached = (key, make())
        made: _Made = self._cached[1]
        return made

    def draw(self, pen: Pen, height: int) -> list[Line]:
        self.composed = self.compose(pen, height)
        self.listing = replace(self.listing, first=self.composed.first)
        return list(self.composed.lines)

    def point(self, row: int) -> None:
        """Puts the cursor on a row, or on the nearest that there is."""
        self.listing = self.listing.at(row, self.count)

    def step(self, rows: int, screens: float = 0.0) -> None:
        self.point(self.cursor + self.rows_in(rows, screens))

    def move(self, across: int, down: int) -> None:
        self.step(down)

    def rows_in(self, rows: int, screens: float) -> int:
        """How many rows so many rows and screens are together."""
        return rows + round(screens * self.room)

    @property
    def room(self) -> int:
        """How many rows fit."""
        return self.composed.room if self.composed is not None else 1

    def row_at(self, line: int) -> int | None:
        """The row that is drawn on a line; None where none is."""
        drawn = self.composed
        if drawn is None or not 0 <= line - drawn.first_row_line < drawn.room or drawn.first_row_line < 0:
            return None
        row = line - drawn.first_row_line + drawn.first
        return row if row < self.count else None

    def clicked(self, x: int, y: int, again: bool) -> str | None:
        """Takes a click (`tui.widgets.line_canvas.Clicked`): on a row it points, again: Enter; on a title it sorts."""
        row, drawn = self.row_at(y), self.composed
        if row is None:
            heads = drawn.lines[y] if drawn is not None and y == drawn.first_row_line - 1 >= 0 else ()
            order = order_at(heads, x, self.orders)
            return None if order is None else (self.sort_by(order), "")[1]
        if again or row == self.cursor:
            return "enter"
        self.point(row)
        return ""

    def sort_by(self, order: str) -> str:
        """Sorts by one of the orders, or turns it round where it is that already; says which it is."""
        self.listing = self.listing.sorted_by(order)
        return f"Sorted by {self.listing.in_words(self.orders[order])}."

    def reverse(self) -> str:
        """Turns the order round."""
        orders = self.orders
        return self.sort_by(self.listing.sort or next(iter(orders))) if orders else BY_NAME["sort"].absent

    def sort_like(self, other: Listing) -> None:
        """Takes the order of a list that it stands for from now on, where it has that order."""
        at = self.listing
        if other.sort in self.orders:
            for _ in range(other.is_reversed != at.is_reversed if other.sort == at.sort else 1 + other.is_reversed):
                self.sort_by(other.sort)

    def sorting_key(self, short: str = "sort", rank: int = 0, ask: Callable[[], object] | None = None) -> KeyRow:
        """The keys of the order; `ask` opens the list of the columns where a `SortWanted` can't ask for it."""
        acts: dict[str, Callable[..., object]] = {"sort": ask or partial(SortWanted, self), "reverse": self.reverse}
        return KeyRow("sort reverse", short, "Choose the column to sort by; turn the order round", acts, "s", rank)

    def filter(self, words: str) -> None:
        self.listing = self.listing.anew(words=words)

    @property
    def found(self) -> str:
        """How many rows a filter has left."""
        return f"{self.count:,} found"

    def search(self, text: str) -> str:
        """Filters; says how many rows are left, or, while none are and the last ones stay, what would leave some."""
        before = self.listing
        self.filter(text)
        said = said_of(text, self.found, self.count, lambda: self.searched)
        said = WORDS_ALONE if not self.count and not {*text}.isdisjoint("<>=") else said
        self.is_filter_wrong = bool(text.strip()) and not self.count
        if self.is_filter_wrong and self.keeps_last and text != before.words:
            self.listing = before
        return said


class ViewsTab(Tab):
    """A tab with several views, of which the one that is shown has the cursor, and stands from a line on."""

    view_line: int = 0

    @property
    def view(self) -> ListView[Any] | None:
        """The view that is shown; None where it is not there yet."""
        raise NotImplementedError

    @property
    def selection(self) -> str | None:
        return None if self.view is None else self.view.selection

    @property
    def shown_table(self) -> ShownTable | ShownPage | None:
        return None if self.view is None else self.view.shown_table

    @property
    def opened(self) -> Mapping[str, Callable[[], object]]:
        return {} if self.view is None else self.view.opened

    def clicked(self, x: int, y: int, again: bool) -> str | None:
        named = view_at(self.lines[y], self.views, x) if y == self.view_line - 1 else None
        if named is not None:
            self.do(partial(self.go_to, named, ""))
            return ""
        own = None if self.view is None else self.do(partial(self.view.clicked, x, y - self.view_line, again))
        return own if isinstance(own, str) else super().clicked(x, y, again)

    def column_help(self) -> Sequence[tuple[str, str]]:
        return () if self.view is None else self.view.help_rows()

    def move(self, across: int, down: int) -> None:
        if self.view is not None:
            self.view.move(across, down)
            self.redraw()

    def page(self, screens: float) -> None:
        room = self.view.room if self.view is not None else 1
        self.move(0, round(screens * max(1, room - 1)) or (1 if screens > 0 else -1))

    @property
    def search_failed(self) -> bool:
        return self.view is not None and self.view.is_filter_wrong

    def search(self, text: str) -> str:
        said = "" if self.view is None else self.view.search(text)
        self.redraw()
        return said

"""A table as a view of a tab: a list of rows that takes the filter's language, and a card on one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy

from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.text import counted, nothing_found
from tpuprof.parsers.ops.filtering.filter import Filter, FilterError, OpColumns, parse_filter
from tpuprof.parsers.ops.filtering.nearest import completions, nearest_filter
from tpuprof.tui.draw.format import count
from tpuprof.tui.draw.pen import Composed, Pen
from tpuprof.tui.draw.spans import Glyphs, Line
from tpuprof.tui.draw.table import Column, Listing, chosen_columns, header_line, most_shift, row_lines
from tpuprof.tui.report.choice import op_columns
from tpuprof.tui.report.fields import Table, columns, help_rows, order, screen_columns
from tpuprof.tui.report.shared.exporting import ShownTable, order_text
from tpuprof.tui.widgets.chrome import KeyRow, motion_keys
from tpuprof.tui.widgets.lists.view import ListView, Row
from tpuprof.tui.widgets.tab import Jump

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SEARCH = KeyRow("search", "search", rank=2)
"""What the footer of a table says of a search, which the app begins."""

MANY_ROWS = 1 << 16
"""More rows than these are sorted and filtered beside the screen's thread, which they would delay by 20 ms."""


@dataclass(frozen=True, slots=True, eq=False)
class Sorting:
    """Rows in another order."""

    listing: Listing
    table: Table[Any]
    source: Any

    def rows(self) -> NDArray[np.int64]:
        return order(self.table, self.source, self.listing.sort, self.table.is_down(self.listing))

    def is_as(self, other: Sorting) -> bool:
        mine, others = ((one.listing.sort, one.listing.is_reversed) for one in (self, other))
        return mine == others and self.source is other.source


class Filterable(ListView[Row]):
    """A view that takes a filter.

    Attributes:
        asked: a filter whose rows take a while to find, and its text; whoever finds them calls `keep` or `refuse`.
        sorting: an order that takes a while to make; whoever makes it calls `show_sorted`.
    """

    def __init__(self) -> None:
        self.asked: tuple[str, Filter] | None = None
        self.sorting: Sorting | None = None

    @property
    def is_long(self) -> bool:
        return False

    @property
    def search_columns(self) -> OpColumns:
        raise NotImplementedError

    def search(self, text: str) -> str:
        """Filters, or asks for what takes a while (`asked`); says how much was found."""
        text = text.strip()
        self.is_filter_wrong, self.asked = False, None
        try:
            wanted = parse_filter(text, self.search_columns.keys, self.search_columns.titles)
        except FilterError as error:
            return self.refuse(error)
        return self.find(text, wanted)

    def find(self, text: str, wanted: Filter) -> str:
        """Finds the rows at once, or asks for them; says how many, or that it searches."""
        if wanted.takes_time or (text and self.is_long):
            self.asked = text, wanted
            return "searching"
        return self.keep(text, wanted.mask(self.search_columns) if text else None)

    def keep(self, text: str, kept: NDArray[np.bool_] | None) -> str:
        """Shows the rows that a filter keeps; says how many."""
        raise NotImplementedError

    def nothing(self, text: str) -> str:
        """What is said of a filter that keeps no row: the nearest that would."""
        return nothing_found(nearest_filter(text, self.search_columns) if text else "")

    def words_for(self, begun: str) -> Sequence[str]:
        return completions(begun, self.search_columns)

    def prepare(self) -> None:
        """Makes what `keep` needs besides, on the thread that finds the rows."""

    def show_sorted(self, sorting: Sorting, rows: NDArray[np.int64]) -> str:
        """Shows all rows in an order, or those that the filter keeps; says which order."""
        raise NotImplementedError

    def refuse(self, error: FilterError) -> str:
        """Leaves the rows as they are; says why."""
        self.is_filter_wrong, self.asked = True, None
        return str(error)


class RowsView(Filterable[int]):
    """A table, one thing a row. Only indices are held: a million rows cost eight megabytes.

    Attributes:
        rows: int64[k]; the rows shown, in their order.
        listing: cursor and first row as indices into `rows`, the key of the column that they are sorted by, the filter.
        shift: columns that are left out at the left.
    """

    rows: NDArray[np.int64] = numpy.empty(0, numpy.int64)
    has_low_card = True
    MOTIONS: ClassVar[tuple[KeyRow, ...]] = motion_keys(short=("", "", "details"))  # what moves the cursor
    MEANINGS: ClassVar[Mapping[str, str]] = {}  # what its figures are called and mean besides its columns, for help
    ABSENT: ClassVar[str] = ""  # what is said of a name that no row has
    FIRST_SORT: ClassVar[str] = "time"
    page_name: ClassVar[str] = ""  # of its report; that of its table where it is empty
    NO_ROWS: ClassVar[str] = "no ops"
    TIMES: ClassVar[tuple[str, str]] = ("self_time_ps", "self_time_percent")
    """Keys of the fields that a filter by time and share looks at."""

    def __init__(self) -> None:
        super().__init__()
        table, source = self.table()
        self.rows = numpy.arange(table.length(source), dtype=numpy.int64)
        self.listing = Listing(sort=self.FIRST_SORT)
        self.shift = 0
        self._columns: tuple[Glyphs, list[Column]] | None = None
        self._looked_at: tuple[Table[Any], OpColumns] | None = None
        self._kept: NDArray[np.bool_] | None = None
        self._ordered: tuple[Sorting, NDArray[np.int64]] | None = None  # all rows, before the filter

    def table(self) -> tuple[Table[Any], Any]:
        raise NotImplementedError

    @property
    def meanings(self) -> Iterable[tuple[str, str]]:
        return self.MEANINGS.items()

    @property
    def names(self) -> Sequence[str]:
        return ()

    @property
    def headline(self) -> str:
        """The sentence above it that answers its question; empty where that of the tab stands."""
        return ""

    @property
    def note(self) -> str:
        return self.headline

    @property
    def search_columns(self) -> OpColumns:
        looked_at, (table, source) = self._looked_at, self.table()
        if looked_at is None or looked_at[0] is not table:
            looked_at = self._looked_at = table, op_columns(table, source, self.TIMES, self._later)
        return looked_at[1]

    _later: Callable[[str], Sequence[str]] | None = None
    """What reads the columns that a filter asks for first, where the table has them not."""

    def drawn_columns(self, glyphs: Glyphs) -> list[Column]:
        """All columns, made once for a set of characters."""
        if self._columns is None or self._columns[0] != glyphs:
            self._columns = glyphs, screen_columns(*self.table(), glyphs, self.looks(glyphs))
        return self._columns[1]

    def looks(self, glyphs: Glyphs) -> Mapping[str, Mapping[str, Any]] | None:
        """What of its columns looks other than their table says, by key (`screen_columns`); None for nothing."""
        return None

    @property
    def row(self) -> int | None:
        row = super().row
        return None if row is None else int(row)

    def compose(self, pen: Pen, height: int) -> Composed:
        above = self.lines_above(pen, height)
        room = max(1, height - len(above) - 1)
        first = self.listing.shown_first(room, len(self.rows))
        lines = [*above, *self._table_lines(pen, range(first, min(first + room, len(self.rows))))]
        return Composed(tuple(lines), len(above) + 1 if len(self.rows) else -1, first, room)

    def lines_above(self, pen: Pen, height: int) -> list[Line]:
        """What is drawn above the table, of so many lines in all."""
        return []

    def _table_lines(self, pen: Pen, shown: range) -> list[Line]:
        everything = self.drawn_columns(pen.glyphs)
        self.shift = min(self.shift, most_shift(everything, pen.width))
        columns = chosen_columns(everything, pen.width, self.shift, self.listing.sort)
        lines = [header_line(columns, pen, self.listing.sort, self.sorts.is_down(self.listing))]
        if not len(self.rows):
            wanted = self.listing.words
            words = f" no row matches {wanted}" if wanted else f" {self.NO_ROWS}"
            return [*lines, pen.fit([(words, "dim")])]
        return [*lines, *row_lines(columns, self.rows[shown.start : shown.stop].tolist(), self.row, pen)]

    def card(self, pen: Pen) -> list[Line]:
        raise NotImplementedError

    def status(self) -> str:
        place = f"{count(self.listing.cursor + 1 if len(self.rows) else 0)} of {count(len(self.rows))}"
        table, source = self.table()
        return f"{place} (filtered from {count(table.length(source))})" if self.listing.words else place

    def help_rows(self) -> list[tuple[str, str]]:
        """What its columns mean, the one that it is sorted by first."""
        return help_rows(self.table()[0], self.listing.sort)

    def move(self, across: int, down: int) -> None:
        if across:
            self.shift = max(0, self.shift + across)
        else:
            self.step(down)

    @property
    def keys(self) -> Sequence[KeyRow]:
        return (*self.MOTIONS, self.sorting_key(), SEARCH)

    @property
    def sorts(self) -> Table[Any]:
        return self.table()[0]

    def sort_by(self, order: str) -> str:
        listing = self.listing if self.sorting is None else self.sorting.listing
        wanted = Sorting(listing.sorted_by(order), *self.table())
        if self.is_long:
            self.sorting = wanted
            return f"sorting by {wanted.listing.sort}"
        return self.show_sorted(wanted, wanted.rows())

    @property
    def is_long(self) -> bool:
        table, source = self.table()
        return table.length(source) > MANY_ROWS

    def show_sorted(self, sorting: Sorting, rows: NDArray[np.int64]) -> str:
        self._ordered, self.sorting = (sorting, rows), None
        self.listing = replace(sorting.listing, words=self.listing.words)
        self._arrange()
        return f"sorted by {self.listing.sort}, {'largest' if self.sorts.is_down(self.listing) else 'smallest'} first"

    def prepare(self) -> None:
        wanted = Sorting(self.listing, *self.table())
        if wanted.listing.sort and (self._ordered is None or not self._ordered[0].is_as(wanted)):
            self._ordered = wanted, wanted.rows()

    def _arrange(self) -> None:
        self.prepare()
        kept, (table, source) = self._kept, self.table()
        rows = numpy.arange(table.length(source), dtype=numpy.int64)
        if self.listing.sort and self._ordered is not None:
            rows = self._ordered[1]
        self.rows = rows if kept is None else rows[kept[rows]]
        self.listing = self.listing.anew()

    def _read_anew(self, sort: str) -> None:
        """Other rows, by `sort` where the column that they are sorted by is another table's; the filter stays."""
        self._columns = self._looked_at = self._kept = self._ordered = self.sorting = None
        text = self.asked[0] if self.asked is not None else self.listing.words
        self.listing = self.listing.anew(words=text)
        if self.listing.sort not in self.orders:
            self.listing = self.listing.anew(sort=sort, is_reversed=False)
        self._arrange()
        self.search(text)

    def keep(self, text: str, kept: NDArray[np.bool_] | None) -> str:
        before = self.listing, self.rows, self._kept
        self._kept, self.asked = kept, None
        self.listing = self.listing.anew(words=text)
        self._arrange()
        if text and not len(self.rows):
            if text != before[0].words:  # the last good rows stay while it is typed
                self.listing, self.rows, self._kept = before
            self.is_filter_wrong = True
            return self.nothing(text)
        return counted(len(self.rows), "row") if text else ""

    @property
    def shown_table(self) -> ShownTable:
        table, source = self.table()
        sort = order_text(table, self.listing)
        return ShownTable(self.page_name or table.key, table, source, self.rows.tolist(), (), self.listing.words, sort)

    @property
    def source_line(self) -> str:
        """The source line of what is under the cursor; empty where its table has none."""
        table, source = self.table()
        if self.row is None or "source" not in table.by_key:
            return ""
        return str(columns(table, source, [self.row], ("source",))["source"][0] or "")

    def next_match(self, direction: int) -> str:
        self.step(direction)
        return f"row {self.listing.cursor + 1} of {len(self.rows)}" if len(self.rows) else "no match"

    def _go_to(self, row: int) -> None:
        places = (self.rows == row).nonzero()[0]
        if len(places):
            self.point(int(places[0]))

    @property
    def selection(self) -> str | None:
        return None if self.row is None or not self.names else self.names[self.row]

    @property
    def op_name(self) -> str | None:
        """Name of the HLO op under the cursor, which other pages know; None where it is of none."""
        return None

    timeline_words: ClassVar[str] = ""  # what the footer says of the key that goes to the timeline

    @property
    def on_timeline(self) -> Jump | None:
        """Where the timeline has more on the row under the cursor than on its op."""
        return None

    def show_named(self, name: str) -> str:
        """Goes to what has that name; says where there is nothing of that name."""
        if name not in self.names:
            return self.ABSENT.format(name)
        self._go_to(self.names.index(name))
        return ""


class PageView(RowsView):
    """A page that is a view of another page's tab: gets what its `load` published, and says what the rows are."""

    def __init__(self, page: Any) -> None:  # noqa: ANN401 - a subclass says which
        self._page = page
        super().__init__()

    @property
    def headline(self) -> str:
        statement: str = self._page.statement
        return statement

    @property
    def note(self) -> str:
        return " ".join((self.headline, *self._page.notes))

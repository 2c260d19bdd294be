"""The tables of the ops tab: HLO ops, framework ops, and the roofline with its plot above the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tpuprof.parsers.base.text import counted
from tpuprof.tui.draw.format import count
from tpuprof.tui.draw.layout import fit
from tpuprof.tui.draw.spans import Glyphs, Line
from tpuprof.tui.draw.table import Column, chosen_columns, header_line, most_shift, row_lines
from tpuprof.tui.pages.ops.card import framework_card
from tpuprof.tui.pages.ops.roofline import roofline_chart
from tpuprof.tui.pages.ops.shelf import OpPages, Shelf, hlo_card
from tpuprof.tui.pages.ops.table_state import TableState
from tpuprof.tui.report.fields import Table, filter_texts, help_rows, is_descending, screen_columns
from tpuprof.tui.report.fields import order as ordered

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tpuprof.parsers.ops.filter import OpColumns
    from tpuprof.parsers.pages.ops.framework_ops import FrameworkOpsPage
    from tpuprof.parsers.pages.ops.roofline import RooflinePage


class TableView:
    """The table of HLO ops; base of the other tables.

    Attributes:
        state: what it shows.
        is_filter_wrong: the text given last is no filter; the rows are those of the one before.
    """

    commands: tuple[str, ...] = ("sort", "reverse")
    has_low_card = True

    def __init__(self, pages: OpPages, shelf: Shelf) -> None:
        import numpy  # noqa: PLC0415 - not at start

        self._pages = pages
        self._shelf = shelf
        self.state = TableState(numpy.arange(self._length(), dtype=numpy.int64))
        self._columns: tuple[tuple[Glyphs, list[Column]], ...] = ()
        self._looked_at: OpColumns | None = None
        self.is_filter_wrong = False

    # --- what differs between tables

    def _length(self) -> int:
        return len(self._pages.ops)

    def _table(self) -> tuple[Table[Any], Any]:
        """The fields of the rows, and what they read."""
        from tpuprof.tui.pages.ops.fields.hlo_ops import HLO_OPS  # noqa: PLC0415 - numpy, not at start

        return HLO_OPS, self._pages.ops

    # ---

    @property
    def _search_columns(self) -> OpColumns:
        if self._looked_at is None:
            import numpy  # noqa: PLC0415 - not at start

            from tpuprof.parsers.ops.filter import OpColumns  # noqa: PLC0415

            table, source = self._table()
            texts = filter_texts(table, source, ("name", "category", "framework_op", "program", "bound_by"))
            rows = range(table.length(source))
            self._looked_at = OpColumns(
                **texts,
                source=lambda: filter_texts(table, source, ("source",))["source"],
                self_ps=numpy.asarray(table.by_key["self_time_ps"].read(source, rows)),
                self_share=numpy.asarray(table.by_key["self_time_percent"].read(source, rows)),
            )
        return self._looked_at

    def columns(self, glyphs: Glyphs) -> list[Column]:
        """All columns, made once for a set of characters."""
        if not self._columns or self._columns[0][0] != glyphs:
            self._columns = ((glyphs, screen_columns(*self._table(), glyphs)),)
        return self._columns[0][1]

    def lines(self, width: int, height: int, glyphs: Glyphs) -> list[Line]:
        """Heading and rows, at most `height` lines."""
        state = self.state
        room = max(1, height - 1)
        state.scroll(room)
        everything = self.columns(glyphs)
        state.shift = min(state.shift, most_shift(everything, width))
        columns = chosen_columns(everything, width, state.shift)
        lines = [header_line(columns, width, glyphs, state.sort, state.descending)]
        if not len(state.rows):
            words = f" no row matches {state.filter_text}" if state.filter_text else " no ops"
            return [*lines, fit([(words, "dim")], width, glyphs)]
        shown = state.rows[state.top : state.top + room].tolist()
        return [*lines, *row_lines(columns, shown, state.row, width, glyphs)]

    def card(self, width: int, glyphs: Glyphs) -> list[Line]:
        """All about what is under the cursor."""
        row = self.state.row
        return [] if row is None else hlo_card(self._pages, row, self._shelf, width, glyphs)

    def status(self) -> str:
        """How the view is grouped, sorted and filtered."""
        state = self.state
        place = f"{count(state.cursor + 1 if len(state.rows) else 0)} of {count(len(state.rows))}"
        return f"{place} (filtered from {count(state.total)})" if state.filter_text else place

    def help_rows(self) -> list[tuple[str, str]]:
        """What its columns mean, the one that it is sorted by first."""
        return help_rows(self._table()[0], self.state.sort)

    def move(self, across: int, down: int) -> None:
        """One step of the cursor."""
        if across:
            self.state.shift = max(0, self.state.shift + across)
        else:
            self.state.move(down)

    def jump(self, rows: int) -> None:
        """So many rows down."""
        self.state.move(rows)

    def enter(self) -> bool:
        """Opens or closes what is under the cursor; False where there is nothing to open."""
        return False

    def command(self, name: str) -> str:
        """Does one of `commands`; says what came of it."""
        state = self.state
        if name == "reverse":
            state.descending = not state.descending
        else:
            table, _ = self._table()
            state.next_sort(tuple(table.sorted_by), lambda name: is_descending(table, name))
        self._arrange(self._kept())
        return f"sorted by {state.sort}, {'largest' if state.descending else 'smallest'} first"

    def _kept(self) -> NDArray[np.bool_] | None:
        from tpuprof.parsers.ops.filter import parse_filter  # noqa: PLC0415

        return parse_filter(self.state.filter_text).mask(self._search_columns) if self.state.filter_text else None

    def _arrange(self, kept: NDArray[np.bool_] | None) -> None:
        order = ordered(*self._table(), self.state.sort, self.state.descending)
        self.state.show(order if kept is None else order[kept[order]])

    def search(self, text: str) -> str:
        """Filters, or moves to the first match; says how much was found."""
        from tpuprof.parsers.ops.filter import FilterError, parse_filter  # noqa: PLC0415

        try:
            kept = parse_filter(text).mask(self._search_columns) if text.strip() else None
        except FilterError as error:
            self.is_filter_wrong = True
            return str(error)
        self.is_filter_wrong = False
        self.state.filter_text = text.strip()
        self._arrange(kept)
        return counted(len(self.state.rows), "row") if text.strip() else ""

    def next_match(self, direction: int) -> str:
        """Moves to another match."""
        self.state.move(direction)
        return f"row {self.state.cursor + 1} of {len(self.state.rows)}" if len(self.state.rows) else "no match"

    def show_op(self, row: int) -> None:
        """Goes to an op; a filter that hides it is dropped."""
        if not self.state.go_to(row):
            self.state.filter_text = ""
            self._arrange(None)
            self.state.go_to(row)

    @property
    def selection(self) -> str | None:
        """The full name of what is under the cursor."""
        row = self.state.row
        return None if row is None else self._pages.ops.table.name[row]

    @property
    def op_row(self) -> int | None:
        """Row in the ops page of the op under the cursor."""
        return self.state.row


class FrameworkView(TableView):
    """The table of framework ops."""

    def __init__(self, pages: OpPages, shelf: Shelf, page: FrameworkOpsPage) -> None:
        self._page = page
        super().__init__(pages, shelf)

    def _length(self) -> int:
        return len(self._page)

    def _table(self) -> tuple[Table[Any], Any]:
        from tpuprof.tui.pages.ops.fields.framework_ops import FRAMEWORK_OPS, FrameworkOps  # noqa: PLC0415

        return FRAMEWORK_OPS, FrameworkOps(self._page, self._pages.ops)

    def card(self, width: int, glyphs: Glyphs) -> list[Line]:
        """All about what is under the cursor."""
        row = self.state.row
        return [] if row is None else framework_card(self._page, self._pages.ops, row, width, glyphs)

    def show_name(self, name: str) -> bool:
        """Goes to a framework op by its name; False where there is none."""
        if name not in self._page.name:
            return False
        self.show_op(self._page.name.index(name))
        return True

    @property
    def selection(self) -> str | None:
        """The full name of what is under the cursor."""
        row = self.state.row
        return None if row is None else self._page.name[row]

    @property
    def op_row(self) -> int | None:
        """Row in the ops page of the op under the cursor."""
        row = self.state.row
        position = -1 if row is None else int(self._page.main_op[row])
        return position if position >= 0 else None


class RooflineView(TableView):
    """The ops under the device's roof: a plot, and the table of the ops below it."""

    commands: tuple[str, ...] = ("sort", "reverse", "idle")
    has_low_card = False

    def __init__(self, pages: OpPages, shelf: Shelf) -> None:
        self._with_feeds = True
        super().__init__(pages, shelf)

    @property
    def page(self) -> RooflinePage:
        """The page with or without infeed and outfeed ops."""
        return self._pages.roofline if self._with_feeds else self._pages.roofline_without_feeds

    def _table(self) -> tuple[Table[Any], Any]:
        from tpuprof.tui.pages.ops.fields.hlo_ops import ROOFLINE_OPS  # noqa: PLC0415

        return ROOFLINE_OPS, self._pages.ops

    def lines(self, width: int, height: int, glyphs: Glyphs) -> list[Line]:
        """Heading and rows, at most `height` lines."""
        plot = min(22, height * 2 // 3) if height >= 12 else 0
        chart = roofline_chart(self.page, width, plot, glyphs, self.state.row) if plot else []
        return [*chart, *super().lines(width, height - len(chart), glyphs)]

    def command(self, name: str) -> str:
        """Does one of `commands`; says what came of it."""
        if name != "idle":
            return super().command(name)
        self._with_feeds = not self._with_feeds
        self._arrange(self._kept())
        return "infeed and outfeed count" if self._with_feeds else "infeed and outfeed are left out"

    def _arrange(self, kept: NDArray[np.bool_] | None) -> None:
        counts = self.page.counts
        super()._arrange(counts if kept is None else kept & counts)

    def status(self) -> str:
        """How the view is grouped, sorted and filtered."""
        return super().status() + ("" if self._with_feeds else ", without infeed and outfeed")

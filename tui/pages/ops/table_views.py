"""The tables of the ops tab: HLO ops, framework ops, and the roofline with its plot above the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tpuprof.parsers.base.text import counted
from tpuprof.tui.draw.format import count
from tpuprof.tui.draw.layout import fit, shown_top
from tpuprof.tui.draw.spans import Glyphs, Line
from tpuprof.tui.draw.table import Column, chosen_columns, header_line, most_shift, row_lines
from tpuprof.tui.pages.ops.card import framework_card, kernel_card
from tpuprof.tui.pages.ops.roofline import roofline_chart
from tpuprof.tui.pages.ops.shelf import (
    Filtering,
    OpPages,
    Shelf,
    framework_texts,
    group_of_ops_card,
    hlo_card,
    op_columns,
)
from tpuprof.tui.report.fields import Table, help_rows, is_descending, order, screen_columns

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tpuprof.parsers.ops.filter import OpColumns
    from tpuprof.parsers.pages.ops.framework_ops import FrameworkOpsPage
    from tpuprof.parsers.pages.ops.framework_types import FrameworkTypes
    from tpuprof.parsers.pages.ops.op_groups import OpGroups
    from tpuprof.parsers.pages.ops.roofline import RooflinePage

Groups = TypeVar("Groups", bound="OpGroups | FrameworkTypes")
"""How rows are grouped."""


class TableView(Filtering):
    """A table of ops, one a row; base of the views. Only indices are held: a million rows cost eight megabytes.

    Attributes:
        rows: int64[k]; the rows shown, in their order.
        cursor: index into `rows`; top: the first one on the screen.
        sort: key of the column that they are sorted by; descending: largest first.
        shift: columns that are left out at the left.
        filter_text: what the rows were filtered by.
    """

    commands: tuple[str, ...] = ("sort", "reverse")
    has_low_card = True

    def __init__(self, pages: OpPages, shelf: Shelf) -> None:
        import numpy  # noqa: PLC0415 - not at start

        super().__init__()
        self._pages = pages
        self._shelf = shelf
        table, source = self._table()
        self.rows: NDArray[np.int64] = numpy.arange(table.length(source), dtype=numpy.int64)
        self.cursor = self.top = self.shift = 0
        self.sort, self.descending = "self", True
        self.filter_text = ""
        self._columns: tuple[Glyphs, list[Column]] | None = None
        self._looked_at: tuple[Table[Any], OpColumns] | None = None
        self._kept: NDArray[np.bool_] | None = None

    def _table(self) -> tuple[Table[Any], Any]:
        """The fields of the rows, and what they read."""
        from tpuprof.tui.pages.ops.fields.hlo_ops import HLO_OPS  # noqa: PLC0415 - numpy, not at start

        return HLO_OPS, self._pages.ops

    @property
    def search_columns(self) -> OpColumns:
        """What a filter looks at."""
        looked_at, (table, source) = self._looked_at, self._table()
        if looked_at is None or looked_at[0] is not table:
            looked_at = self._looked_at = table, op_columns(table, source, self._later)
        return looked_at[1]

    _later: Callable[[str], Sequence[str]] | None = None
    """What reads the columns that a filter asks for first, where the table has them not."""

    def columns(self, glyphs: Glyphs) -> list[Column]:
        """All columns, made once for a set of characters."""
        if self._columns is None or self._columns[0] != glyphs:
            self._columns = glyphs, screen_columns(*self._table(), glyphs)
        return self._columns[1]

    @property
    def row(self) -> int | None:
        """The row under the cursor."""
        return int(self.rows[self.cursor]) if len(self.rows) else None

    def lines(self, width: int, height: int, glyphs: Glyphs) -> list[Line]:
        """Heading and rows, at most `height` lines."""
        room = max(1, height - 1)
        self.top = shown_top(self.cursor, self.top, room, len(self.rows))
        everything = self.columns(glyphs)
        self.shift = min(self.shift, most_shift(everything, width))
        columns = chosen_columns(everything, width, self.shift)
        lines = [header_line(columns, width, glyphs, self.sort, self.descending)]
        if not len(self.rows):
            words = f" no row matches {self.filter_text}" if self.filter_text else " no ops"
            return [*lines, fit([(words, "dim")], width, glyphs)]
        shown = self.rows[self.top : self.top + room].tolist()
        return [*lines, *row_lines(columns, shown, self.row, width, glyphs)]

    def card(self, width: int, glyphs: Glyphs) -> list[Line]:
        """All about what is under the cursor."""
        return [] if self.row is None else hlo_card(self._pages, self.row, self._shelf, width, glyphs)

    def status(self) -> str:
        """How the view is grouped, sorted and filtered."""
        place = f"{count(self.cursor + 1 if len(self.rows) else 0)} of {count(len(self.rows))}"
        table, source = self._table()
        return f"{place} (filtered from {count(table.length(source))})" if self.filter_text else place

    def help_rows(self) -> list[tuple[str, str]]:
        """What its columns mean, the one that it is sorted by first."""
        return help_rows(self._table()[0], self.sort)

    def move(self, across: int, down: int) -> None:
        """One step of the cursor."""
        if across:
            self.shift = max(0, self.shift + across)
        else:
            self.jump(down)

    def jump(self, rows: int) -> None:
        """So many rows down."""
        self.cursor = max(0, min(self.cursor + rows, len(self.rows) - 1))

    def enter(self) -> bool:
        """Nothing is to be opened or closed."""
        return False

    def command(self, name: str) -> str:
        """Does one of `commands`; says what came of it."""
        if name == "reverse":
            self.descending = not self.descending
        else:
            table, _ = self._table()
            names = list(table.sorted_by)
            self.sort = names[(names.index(self.sort) + 1) % len(names)]
            self.descending = is_descending(table, self.sort)
        self._arrange()
        return f"sorted by {self.sort}, {'largest' if self.descending else 'smallest'} first"

    def _arrange(self) -> None:
        rows, kept = order(*self._table(), self.sort, self.descending), self._kept
        self.rows = rows if kept is None else rows[kept[rows]]
        self.cursor = self.top = 0

    def keep(self, text: str, kept: NDArray[np.bool_] | None) -> str:
        """Shows the rows that a filter keeps; says how many."""
        self.filter_text, self._kept, self.asked = text, kept, None
        self._arrange()
        return counted(len(self.rows), "row") if text else ""

    def next_match(self, direction: int) -> str:
        """Moves to another row."""
        self.jump(direction)
        return f"row {self.cursor + 1} of {len(self.rows)}" if len(self.rows) else "no match"

    def show_op(self, row: int) -> None:
        """Goes to an op; a filter that hides it is dropped."""
        if row not in self.rows:
            self.keep("", None)
        self._go_to(row)

    def _go_to(self, row: int) -> None:
        """Puts the cursor on a row, if it is shown."""
        places = (self.rows == row).nonzero()[0]
        self.cursor = int(places[0]) if len(places) else self.cursor

    @property
    def selection(self) -> str | None:
        """The full name of what is under the cursor."""
        return None if self.row is None else self._pages.ops.table.name[self.row]

    @property
    def op_row(self) -> int | None:
        """Row in the ops page of the op under the cursor."""
        return self.row


class GroupedView(TableView, Generic[Groups]):
    """A table whose rows can be groups of its ops: one a row, each with its like, or the ops of one such group."""

    commands: tuple[str, ...] = ("group", "sort", "reverse")
    grouped_words = ""

    def __init__(self, pages: OpPages, shelf: Shelf) -> None:
        self._groups: Groups | None = None  # made when they are asked for first
        self._is_grouped = False
        self._opened = -1  # the group whose ops alone are shown; -1 for all
        super().__init__(pages, shelf)

    def _made_groups(self) -> Groups:
        """The groups, made on first use."""
        raise NotImplementedError

    @property
    def shown_groups(self) -> Groups | None:
        """The groups where these are the rows."""
        return self._groups if self._is_grouped else None

    def status(self) -> str:
        """How the view is grouped, sorted and filtered."""
        if self._is_grouped:
            return f"{super().status()}, grouped"
        return super().status() + (", one group" if self._opened >= 0 else "")

    def enter(self) -> bool:
        """Opens a group of several ops: shows these alone."""
        row, groups = self.row, self.shown_groups
        if row is None or groups is None or groups.op_count[row] == 1:
            return False
        self._show(is_grouped=False, opened=row)
        return True

    def command(self, name: str) -> str:
        """Does one of `commands`; says what came of it."""
        if name != "group":
            return super().command(name)
        row, was_grouped = self.row, self._is_grouped
        groups = self._groups = self._groups or self._made_groups()
        self._show(is_grouped=not was_grouped)
        if row is not None and was_grouped:
            self._go_to(int(groups.main[row]))
        elif row is not None and row < len(groups.group):
            self._go_to(int(groups.group[row]))
        return "one op a row" if was_grouped else self.grouped_words

    def _show(self, *, is_grouped: bool, opened: int = -1) -> None:
        """Shows groups, all ops, or those of one group, from the top; order and filter stay."""
        self._is_grouped, self._opened = is_grouped, opened
        self._columns = self._kept = None
        if self.sort not in self._table()[0].sorted_by:
            self.sort, self.descending = "self", True
        self._arrange()
        self.search(self.asked[0] if self.asked is not None else self.filter_text)

    def _arrange(self) -> None:
        super()._arrange()
        if self._opened >= 0 and self._groups is not None:
            of_groups = self.rows[self.rows < len(self._groups.group)]
            self.rows = of_groups[self._groups.group[of_groups] == self._opened]

    def show_op(self, row: int) -> None:
        """Goes to an op; a grouping or filter that hides it is dropped."""
        if self._is_grouped or row not in self.rows:
            self.keep("", None)
            self._show(is_grouped=False)
        super().show_op(row)

    @property
    def own_row(self) -> int | None:
        """The row of the table of ops under the cursor, of a group that of its longest op."""
        groups = self.shown_groups
        return self.row if self.row is None or groups is None else int(groups.main[self.row])


class HloView(GroupedView["OpGroups"]):
    """The table of HLO ops: one a row, each with its clones, or the ops of one such group."""

    grouped_words = "an op and its clones are one row; Enter shows them"

    def __init__(self, pages: OpPages, shelf: Shelf, chosen: tuple[str, ...] = ()) -> None:
        from tpuprof.tui.pages.ops.fields.hlo_ops import listed_ops  # noqa: PLC0415 - numpy, not at start

        self._listed_ops = listed_ops(chosen)
        self._chosen = chosen
        super().__init__(pages, shelf)

    def _table(self) -> tuple[Table[Any], Any]:
        from tpuprof.tui.pages.ops.fields.hlo_ops import grouped_ops  # noqa: PLC0415 - numpy, not at start

        groups = self.shown_groups
        if groups is None:
            return self._listed_ops, self._pages.listed
        return grouped_ops(groups.op_count, self._chosen), groups.page

    def card(self, width: int, glyphs: Glyphs) -> list[Line]:
        """All about what is under the cursor."""
        groups = self.shown_groups
        if self.row is None or groups is None:
            return super().card(width, glyphs)
        return group_of_ops_card(self._pages, groups, self.row, self._shelf, width, glyphs)

    def _made_groups(self) -> OpGroups:
        from tpuprof.parsers.pages.ops.op_groups import op_groups  # noqa: PLC0415 - numpy, not at start

        return op_groups(self._pages.ops)

    @property
    def selection(self) -> str | None:
        """The full name of what is under the cursor, of a group that of its longest op."""
        return None if self.own_row is None else self._pages.listed.table.name[self.own_row]

    @property
    def op_row(self) -> int | None:
        """Row in the ops page of the op under the cursor, or of the longest one of its group."""
        row = self.own_row
        return row if row is not None and row < len(self._pages.ops) else None


class FrameworkView(GroupedView["FrameworkTypes"]):
    """The table of framework ops: one a row, all of a type, or the ops of one type."""

    grouped_words = "all framework ops of a type are one row; Enter shows them"

    def __init__(self, pages: OpPages, shelf: Shelf, page: FrameworkOpsPage) -> None:
        self._page = page
        super().__init__(pages, shelf)

    def _table(self) -> tuple[Table[Any], Any]:
        from tpuprof.tui.pages.ops.fields import framework_ops  # noqa: PLC0415 - numpy, not at start

        groups = self.shown_groups
        if groups is None:
            return framework_ops.FRAMEWORK_OPS, framework_ops.FrameworkOps(self._page, self._pages.ops)
        return framework_ops.FRAMEWORK_TYPES, framework_ops.TypesOfOps(groups.page, self._pages.ops, groups)

    def _made_groups(self) -> FrameworkTypes:
        from tpuprof.parsers.pages.ops.framework_types import framework_types  # noqa: PLC0415 - numpy, not at start

        return framework_types(self._page, self._pages.ops)

    def _later(self, name: str) -> list[str]:
        return framework_texts(self._page, self._pages.ops, name, self.shown_groups)

    def card(self, width: int, glyphs: Glyphs) -> list[Line]:
        """All about what is under the cursor."""
        if self.row is None:
            return []
        groups = self.shown_groups
        page, number = (self._page, 1) if groups is None else (groups.page, int(groups.op_count[self.row]))
        return framework_card(page, self._pages.ops, self.row, width, glyphs, number)

    def show_name(self, name: str) -> bool:
        """Goes to a framework op by its name; False where there is none."""
        if name not in self._page.name:
            return False
        self.show_op(self._page.name.index(name))
        return True

    @property
    def selection(self) -> str | None:
        """The full name of what is under the cursor, of a type that of its longest op."""
        return None if self.own_row is None else self._page.name[self.own_row]

    @property
    def op_row(self) -> int | None:
        """Row in the ops page of the op under the cursor."""
        op = -1 if self.own_row is None else int(self._page.main_op[self.own_row])
        return op if op >= 0 else None


class KernelView(TableView):
    """The table of GPU kernels: by framework op and size of the launch, or one kernel a row."""

    commands: tuple[str, ...] = ("group", "sort", "reverse")

    def __init__(self, pages: OpPages, shelf: Shelf) -> None:
        from tpuprof.parsers.pages.ops.kernels import kernels_page  # noqa: PLC0415 - numpy, not at start

        self._is_grouped = False
        self._page, self._other = (kernels_page(pages.ops, by_name=by_name) for by_name in (False, True))
        super().__init__(pages, shelf)

    def command(self, name: str) -> str:
        """Does one of `commands`; says what came of it."""
        if name != "group":
            return super().command(name)
        self._is_grouped, self._page, self._other = not self._is_grouped, self._other, self._page
        self._columns = self._kept = self._looked_at = None
        self._arrange()
        self.search(self.filter_text)
        return (
            "all launches of a kernel are one row" if self._is_grouped else "a row for each op and size of the launch"
        )

    def status(self) -> str:
        """How the view is grouped, sorted and filtered."""
        return f"{super().status()}, grouped" if self._is_grouped else super().status()

    def _table(self) -> tuple[Table[Any], Any]:
        from tpuprof.tui.pages.ops.fields.kernels import KERNELS  # noqa: PLC0415

        return KERNELS, self._page

    def card(self, width: int, glyphs: Glyphs) -> list[Line]:
        """All about what is under the cursor."""
        return [] if self.row is None else kernel_card(self._page, self.row, width, glyphs)

    @property
    def selection(self) -> str | None:
        """The full name of what is under the cursor."""
        return None if self.row is None else self._page.kernels[self.row].name

    @property
    def op_row(self) -> int | None:
        """Row in the ops page of the op that the kernel is part of."""
        names = self._pages.ops.table.name
        op = "" if self.row is None else self._page.kernels[self.row].op
        return names.index(op) if op in names else None

    def show_op(self, row: int) -> None:
        """Goes to the first kernel of an op; a filter that hides it is dropped."""
        name = self._pages.ops.table.name[row]
        found = [place for place, kernel in enumerate(self._page.kernels) if kernel.op == name]
        if found:
            super().show_op(found[0])


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
        chart = roofline_chart(self.page, width, plot, glyphs, self.row) if plot else []
        return [*chart, *super().lines(width, height - len(chart), glyphs)]

    def command(self, name: str) -> str:
        """Does one of `commands`; says what came of it."""
        if name != "idle":
            return super().command(name)
        self._with_feeds = not self._with_feeds
        self._arrange()
        return "infeed and outfeed count" if self._with_feeds else "infeed and outfeed are left out"

    def _arrange(self) -> None:
        super()._arrange()
        self.rows = self.rows[self.page.counts[self.rows]]

    def status(self) -> str:
        """How the view is grouped, sorted and filtered."""
        return super().status() + ("" if self._with_feeds else ", without infeed and outfeed")

"""The tables of the ops tab: HLO ops, framework ops, and the roofline with its plot above the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tpuprof.parsers.pages.ops.framework_types import FrameworkTypes, framework_types
from tpuprof.parsers.pages.ops.kernels.gpu import kernels_page
from tpuprof.parsers.pages.ops.op_groups import OpGroups, op_groups
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.ops.details.card import framework_card, kernel_card
from tpuprof.tui.pages.ops.details.card_cache import CardCache, framework_texts, hlo_card
from tpuprof.tui.pages.ops.details.roofline import roofline_chart
from tpuprof.tui.pages.ops.fields import SIDE_FIRST, framework_ops
from tpuprof.tui.pages.ops.fields.hlo_ops import HLO_OPS, ROOFLINE_OPS, grouped_ops, listed_ops
from tpuprof.tui.pages.ops.fields.kernels import KERNELS
from tpuprof.tui.report.fields import Table
from tpuprof.tui.widgets.rows import RowsView

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tpuprof.parsers.pages.ops.framework_ops import FrameworkOpsPage
    from tpuprof.parsers.pages.ops.roofline import RooflinePage

Groups = TypeVar("Groups", bound="OpGroups | FrameworkTypes")  # how rows are grouped


class TableView(RowsView):
    """A table of ops, one a row; base of the views. `names` are the full names of the ops that it lists."""

    def __init__(self, cards: CardCache) -> None:
        self._pages, self._cards = cards.pages, cards
        self.names: Sequence[str] = cards.pages.ops.table.name
        super().__init__()

    def table(self) -> tuple[Table[Any], Any]:
        """The fields of the rows, and what they read."""
        return HLO_OPS, self._pages.ops

    def card(self, pen: Pen) -> list[Line]:
        """All about what is under the cursor."""
        return [] if self.row is None else hlo_card(self._cards, self.row, pen)

    def show_op(self, row: int) -> None:
        """Goes to an op; a filter that hides it is dropped."""
        if row not in self.rows:
            self.keep("", None)
        self._go_to(row)

    @property
    def own_row(self) -> int | None:
        """The row of `names` under the cursor, of a group that of its longest op."""
        return self.row

    @property
    def selection(self) -> str | None:
        """The full name of what is under the cursor, of a group that of its longest op."""
        return None if self.own_row is None else self.names[self.own_row]

    @property
    def op_row(self) -> int | None:
        """Row in the ops page of the op under the cursor, or of the longest one of its group."""
        row = self.own_row
        return row if row is not None and row < len(self._pages.ops) else None


class GroupedView(TableView, Generic[Groups]):
    """A table whose rows can be groups of its ops: one a row, each with its like, or the ops of one such group."""

    commands: tuple[str, ...] = ("group", "sort", "reverse")
    grouped_words = ""

    def __init__(self, cards: CardCache) -> None:
        self._groups: Groups | None = None  # made when they are asked for first
        self._is_grouped = False
        self._opened = -1  # the group whose ops alone are shown; -1 for all
        super().__init__(cards)

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

    @property
    def opened(self) -> dict[str, Callable[[], object]]:
        """The group whose ops alone are shown."""
        return {"group": self._close_group} if self._opened >= 0 else {}

    def _close_group(self) -> None:
        """Shows the groups again, the cursor on the one that was open."""
        group = self._opened
        self._show(is_grouped=True)
        self._go_to(group)

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
        self._read_anew("self")

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
        """The row of `names` under the cursor, of a group that of its longest op."""
        groups = self.shown_groups
        return self.row if self.row is None or groups is None else int(groups.main[self.row])


class HloView(GroupedView["OpGroups"]):
    """The table of HLO ops: one a row, each with its clones, or the ops of one such group."""

    grouped_words = "an op and its clones are one row; Enter shows them"
    page_name = "ops"

    def __init__(self, cards: CardCache, chosen: tuple[str, ...] = ()) -> None:
        ops, listed = cards.pages.ops, cards.pages.listed
        self._listed_ops, self._chosen = listed_ops(chosen or (SIDE_FIRST if len(listed) > len(ops) else ())), chosen
        super().__init__(cards)
        self.names = listed.table.name

    def table(self) -> tuple[Table[Any], Any]:
        """The fields of the rows, and what they read."""
        groups = self.shown_groups
        if groups is None:
            return self._listed_ops, self._pages.listed
        return grouped_ops(groups.op_count, self._chosen), groups.page

    def card(self, pen: Pen) -> list[Line]:
        """All about what is under the cursor."""
        return [] if self.row is None else hlo_card(self._cards, self.row, pen, self.shown_groups)

    def _made_groups(self) -> OpGroups:
        return op_groups(self._pages.ops)


class FrameworkView(GroupedView["FrameworkTypes"]):
    """The table of framework ops: one a row, all of a type, or the ops of one type."""

    grouped_words = "all framework ops of a type are one row; Enter shows them"
    page_name = "framework-ops"

    def __init__(self, cards: CardCache, page: FrameworkOpsPage) -> None:
        self._page = page
        super().__init__(cards)
        self.names = page.name

    def table(self) -> tuple[Table[Any], Any]:
        """The fields of the rows, and what they read."""
        groups = self.shown_groups
        if groups is None:
            return framework_ops.FRAMEWORK_OPS, framework_ops.FrameworkOps(self._page, self._pages.ops)
        return framework_ops.FRAMEWORK_TYPES, framework_ops.TypesOfOps(groups.page, self._pages.ops, groups)

    def _made_groups(self) -> FrameworkTypes:
        return framework_types(self._page, self._pages.ops)

    def _later(self, name: str) -> list[str]:
        return framework_texts(self._page, self._pages.ops, name, self.shown_groups)

    def card(self, pen: Pen) -> list[Line]:
        """All about what is under the cursor."""
        if self.row is None:
            return []
        groups = self.shown_groups
        page, number = (self._page, 1) if groups is None else (groups.page, int(groups.op_count[self.row]))
        return framework_card(page, self._pages.ops, self.row, pen, number)

    def show_named(self, name: str) -> str:
        """Goes to a framework op; says where there is none of that name."""
        if name not in self.names:
            return f"no op {name} ran in this profile"
        self.show_op(self.names.index(name))
        return ""

    @property
    def op_row(self) -> int | None:
        """Row in the ops page of the op under the cursor."""
        op = -1 if self.own_row is None else int(self._page.main_op[self.own_row])
        return op if op >= 0 else None


class KernelView(TableView):
    """The table of GPU kernels: by framework op and size of the launch, or one kernel a row."""

    commands: tuple[str, ...] = ("group", "sort", "reverse")
    page_name = "kernels"

    def __init__(self, cards: CardCache) -> None:
        self._is_grouped = False
        self._page, self._other = (kernels_page(cards.pages.ops, by_name=by_name) for by_name in (False, True))
        super().__init__(cards)

    def command(self, name: str) -> str:
        """Does one of `commands`; says what came of it."""
        if name != "group":
            return super().command(name)
        self._is_grouped, self._page, self._other = not self._is_grouped, self._other, self._page
        self._read_anew(self.FIRST_SORT)
        is_one_row = "all launches of a kernel are one row"
        return is_one_row if self._is_grouped else "a row for each op and size of the launch"

    def status(self) -> str:
        """How the view is grouped, sorted and filtered."""
        return f"{super().status()}, grouped" if self._is_grouped else super().status()

    def table(self) -> tuple[Table[Any], Any]:
        """The fields of the rows, and what they read."""
        return KERNELS, self._page

    def card(self, pen: Pen) -> list[Line]:
        """All about what is under the cursor."""
        return [] if self.row is None else kernel_card(self._page, self.row, pen)

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
    page_name = "roofline"
    has_low_card = False

    def __init__(self, cards: CardCache) -> None:
        self._with_feeds = True
        super().__init__(cards)

    @property
    def page(self) -> RooflinePage:
        """The page with or without infeed and outfeed ops."""
        return self._pages.roofline if self._with_feeds else self._pages.roofline_without_feeds

    def table(self) -> tuple[Table[Any], Any]:
        """The fields of the rows, and what they read."""
        return ROOFLINE_OPS, self._pages.ops

    def lines(self, pen: Pen, height: int) -> list[Line]:
        """Heading and rows, at most `height` lines."""
        plot = min(22, height * 2 // 3) if height >= 12 else 0
        chart = roofline_chart(self.page, pen, plot, self.row) if plot else []
        return [*chart, *super().lines(pen, height - len(chart))]

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

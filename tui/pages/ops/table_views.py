"""The tables of the ops tab: HLO ops, framework ops, and the roofline with its plot above the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Generic, TypeVar

from tpuprof.parsers.pages.ops.framework_ops import FrameworkOpsPage, FrameworkTypes
from tpuprof.parsers.pages.ops.kernels.gpu import kernels_page
from tpuprof.parsers.pages.ops.op_groups import OpGroups, op_groups
from tpuprof.parsers.pages.ops.roofline import RooflinePage
from tpuprof.tui.draw.pen import Pen, shared_prefix
from tpuprof.tui.draw.spans import Glyphs, Line
from tpuprof.tui.pages.ops.details.card import framework_card, kernel_card
from tpuprof.tui.pages.ops.details.card_cache import CardCache, framework_texts, hlo_card
from tpuprof.tui.pages.ops.details.roofline import roofline_chart
from tpuprof.tui.pages.ops.fields import framework_ops
from tpuprof.tui.pages.ops.fields.hlo_ops import HLO_OPS, OPS_OF_SEVERAL_KINDS, ROOFLINE_OPS, grouped_ops
from tpuprof.tui.pages.ops.fields.kernels import KERNELS
from tpuprof.tui.report.fields import Table
from tpuprof.tui.widgets.chrome import KeyRow, motion_keys, verb_row
from tpuprof.tui.widgets.lists.table import RowsView

ENTER = "The whole card; of hidden nodes and groups, all of them"
Groups = TypeVar("Groups", bound="OpGroups | FrameworkTypes")  # how rows are grouped


class TableView(RowsView):
    """A table of ops, one a row; base of the views. `names` are the full names of the ops that it lists."""

    MOTIONS = motion_keys(enter=ENTER, short=("", "", "details"))

    def __init__(self, cards: CardCache) -> None:
        self._pages, self._cards = cards.pages, cards
        super().__init__()

    @property
    def names(self) -> Sequence[str]:
        return self._pages.ops.table.name

    def table(self) -> tuple[Table[Any], Any]:
        return HLO_OPS, self._pages.ops

    def card(self, pen: Pen) -> list[Line]:
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
        return None if self.own_row is None else self.names[self.own_row]

    @property
    def op_name(self) -> str | None:
        return self.selection

    @property
    def op_row(self) -> int | None:
        """Row in the ops page of the op under the cursor, or of the longest one of its group."""
        row = self.own_row
        return row if row is not None and row < len(self._pages.ops) else None


class GroupedView(TableView, Generic[Groups]):
    """A table whose rows can be groups of its ops: one a row, each with its like, or the ops of one such group."""

    grouped_words = ""

    def __init__(self, cards: CardCache) -> None:
        self._groups: Groups | None = None  # made when they are asked for first
        self._is_grouped = False
        self._opened = -1  # the group whose ops alone are shown; -1 for all
        super().__init__(cards)

    def _made_groups(self) -> Groups:
        raise NotImplementedError

    @property
    def shown_groups(self) -> Groups | None:
        """The groups where these are the rows."""
        return self._groups if self._is_grouped else None

    def status(self) -> str:
        if self._is_grouped:
            return f"{super().status()}, grouped"
        return super().status() + (", one group" if self._opened >= 0 else "")

    @property
    def opened(self) -> dict[str, Callable[[], object]]:
        return {"group": self._close_group} if self._opened >= 0 else {}

    def _close_group(self) -> None:
        """Shows the groups again, the cursor on the one that was open."""
        group = self._opened
        self._show(is_grouped=True)
        self._go_to(group)

    def enter(self) -> bool:
        row, groups = self.row, self.shown_groups
        if row is None or groups is None or groups.op_count[row] == 1:
            return False
        self._show(is_grouped=False, opened=row)
        return True

    @property
    def keys(self) -> Sequence[KeyRow]:
        return (verb_row("group", self.group, short="group"), *super().keys)

    def group(self) -> str:
        """Groups the ops, or shows one a row again; the cursor stays at its op. Says which."""
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
        self._read_anew(self.FIRST_SORT)

    def _arrange(self) -> None:
        super()._arrange()
        if self._opened >= 0 and self._groups is not None:
            of_groups = self.rows[self.rows < len(self._groups.group)]
            self.rows = of_groups[self._groups.group[of_groups] == self._opened]

    def show_op(self, row: int) -> None:
        if self._is_grouped or row not in self.rows:
            self.keep("", None)
            self._show(is_grouped=False)
        super().show_op(row)

    @property
    def own_row(self) -> int | None:
        groups = self.shown_groups
        return self.row if self.row is None or groups is None else int(groups.main[self.row])


class HloView(GroupedView["OpGroups"]):
    """The table of HLO ops: one a row, each with its clones, or the ops of one such group."""

    grouped_words = "an op and its clones are one row; Enter shows them"
    page_name = "ops"

    def __init__(self, cards: CardCache) -> None:
        ops, listed = cards.pages.ops, cards.pages.listed
        self._listed_ops = OPS_OF_SEVERAL_KINDS if len(listed) > len(ops) else HLO_OPS
        self._grouped_ops: Table[Any] | None = None
        super().__init__(cards)

    @property
    def names(self) -> Sequence[str]:
        return self._pages.listed.table.name

    def table(self) -> tuple[Table[Any], Any]:
        groups = self.shown_groups
        if groups is None:
            return self._listed_ops, self._pages.listed
        self._grouped_ops = self._grouped_ops or grouped_ops(groups.op_count)
        return self._grouped_ops, groups.page

    def card(self, pen: Pen) -> list[Line]:
        return [] if self.row is None else hlo_card(self._cards, self.row, pen, self.shown_groups)

    def _made_groups(self) -> OpGroups:
        return op_groups(self._pages.ops)


class FrameworkView(GroupedView["FrameworkTypes"]):
    """The table of framework ops: one a row, all of a type, or the ops of one type."""

    grouped_words = "all framework ops of a type are one row; Enter shows them"
    page_name = "framework-ops"

    def __init__(self, cards: CardCache, page: FrameworkOpsPage) -> None:
        self._page, self._ops = page, framework_ops.FrameworkOps(page, cards.pages.ops)
        super().__init__(cards)

    @property
    def names(self) -> Sequence[str]:
        return self._page.name

    def table(self) -> tuple[Table[Any], Any]:
        if self.shown_groups is None:
            return framework_ops.FRAMEWORK_OPS, self._ops
        return framework_ops.FRAMEWORK_TYPES, self._types

    def looks(self, glyphs: Glyphs) -> Mapping[str, Mapping[str, Any]] | None:
        """Says once, in the head, what the ops of the longest one's program begin with."""
        program = f"{self.names[0].partition('/')[0]}/" if self.names else ""
        prefix = shared_prefix([name for name in self.names if name.startswith(program)])
        if not prefix or self.shown_groups is not None:
            return None
        short = f"{glyphs.ellipsis}/"

        def shortened(name: str, _: bool) -> str:
            return short + name.removeprefix(prefix) if name.startswith(prefix) else name

        other = {"title": f"op, {short} is {prefix}", "words": shortened}
        return {key: other if key == "name" else {} for key in framework_ops.FRAMEWORK_OPS.screen}

    @cached_property
    def _types(self) -> framework_ops.TypesOfOps:
        return framework_ops.TypesOfOps.of(self._page, self._pages.ops)

    def _made_groups(self) -> FrameworkTypes:
        return self._types.types

    def _later(self, name: str) -> list[str]:
        return framework_texts(self._page, self._pages.ops, name, self.shown_groups)

    def card(self, pen: Pen) -> list[Line]:
        if self.row is None:
            return []
        groups = self.shown_groups
        page, number = (self._page, 1) if groups is None else (groups.page, int(groups.op_count[self.row]))
        return framework_card(page, self._pages.ops, self.row, pen, number)

    def show_named(self, name: str) -> str:
        if name not in self.names:
            return f"no op {name} ran in this profile"
        self.show_op(self.names.index(name))
        return ""

    @property
    def op_row(self) -> int | None:
        op = -1 if self.own_row is None else int(self._page.main_op[self.own_row])
        return op if op >= 0 else None


class KernelView(TableView):
    """The table of GPU kernels: one kernel a row, or by framework op and size of the launch."""

    page_name = "kernels"

    def __init__(self, cards: CardCache) -> None:
        self._by_shape = False
        self._page, self._other = (kernels_page(cards.pages.ops, by_shape=by_shape) for by_shape in (False, True))
        super().__init__(cards)

    @property
    def keys(self) -> Sequence[KeyRow]:
        return (verb_row("group", self.group, short="group"), *super().keys)

    def group(self) -> str:
        """All launches of a kernel as one row, or a row for each op and size of the launch; says which."""
        self._by_shape, self._page, self._other = not self._by_shape, self._other, self._page
        self._read_anew(self.FIRST_SORT)
        one = "all launches of a kernel are one row"
        return "a row for each op and size of the launch" if self._by_shape else one

    def status(self) -> str:
        return f"{super().status()}, by shape" if self._by_shape else super().status()

    def table(self) -> tuple[Table[Any], Any]:
        return KERNELS, self._page

    def card(self, pen: Pen) -> list[Line]:
        return [] if self.row is None else kernel_card(self._page, self.row, pen)

    @property
    def names(self) -> Sequence[str]:
        return [kernel.name for kernel in self._page.kernels]

    @property
    def op_row(self) -> int | None:
        return None if self.row is None else self._cards.row_of(self._page.kernels[self.row].op)

    def show_op(self, row: int) -> None:
        name = self._pages.ops.table.name[row]
        found = [place for place, kernel in enumerate(self._page.kernels) if kernel.op == name]
        if found:
            super().show_op(found[0])


class RooflineView(TableView):
    """The ops under the device's roof: a plot, and the table of the ops below it."""

    page_name = "roofline"
    has_low_card = False

    def __init__(self, cards: CardCache) -> None:
        self._with_feeds = True
        super().__init__(cards)

    @property
    def page(self) -> RooflinePage:
        return self._pages.roofline if self._with_feeds else self._pages.roofline_without_feeds

    def table(self) -> tuple[Table[Any], Any]:
        return ROOFLINE_OPS, self._pages.ops

    def lines_above(self, pen: Pen, height: int) -> list[Line]:
        plot = min(22, height * 2 // 3) if height >= 12 else 0
        return roofline_chart(self.page, pen, plot, self.row) if plot else []

    @property
    def keys(self) -> Sequence[KeyRow]:
        return (*self.MOTIONS, self.sorting_key(), verb_row("exclude", self.leave_out_feeds))

    def leave_out_feeds(self) -> str:
        """Leaves infeed and outfeed out, or counts them again; says which."""
        self._with_feeds = not self._with_feeds
        self._arrange()
        return "infeed and outfeed count" if self._with_feeds else "infeed and outfeed are left out"

    def _arrange(self) -> None:
        super()._arrange()
        self.rows = self.rows[self.page.counts[self.rows]]

    def status(self) -> str:
        return super().status() + ("" if self._with_feeds else ", without infeed and outfeed")

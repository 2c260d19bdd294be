"""The views of the ops tab: which of them is shown, going from one to the other, and the op that is marked.

Behind those of the ops come other pages' views (`tui.pages.TabView`), which are read when they are shown first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tpuprof.parsers.ops.framework_op import parse_framework_op
from tpuprof.parsers.pages.ops.compare import OpComparison, compare_ops
from tpuprof.tui.pages.ops.details.card_cache import CardCache, OpPages
from tpuprof.tui.pages.ops.fields.hlo_ops import HLO_OPS
from tpuprof.tui.pages.ops.table_views import FrameworkView, HloView, KernelView, RooflineView, TableView
from tpuprof.tui.pages.ops.tree_view import TreeView
from tpuprof.tui.widgets.rows import RowsView

if TYPE_CHECKING:
    from tpuprof.tui.pages import TabView
    from tpuprof.tui.widgets.tab import Payload

View = TreeView | RowsView  # one way to look at the ops, or another page's view
TREE, HLO, FRAMEWORK, ROOFLINE, KERNELS = "tree", "hlo", "framework_ops", "roofline", "gpu_kernels"
TITLES = {TREE: "Profile", HLO: "HLO ops", FRAMEWORK: "Framework ops", ROOFLINE: "Roofline", KERNELS: "Kernels"}
"""What the views of the ops are called; those of other pages are called by them, and have the pages' names."""

NO_OP = "no single op under the cursor"


class Views:
    """The views of the ops of a run, none before these are there.

    Attributes:
        at: name of the view that is shown.
        others: other pages that are views here, where the run has something for them.
        marked: row in the table of ops of the op that others are compared with; None where none is marked.

    Args:
        want: of the card cache.
        columns: keys of the fields that the table of HLO ops shows; empty for the built-in ones.
    """

    def __init__(self, want: Callable[..., object], columns: tuple[str, ...] = ()) -> None:
        self._want = want
        self._columns = columns
        self.cards: CardCache | None = None
        self.at = TREE
        self.marked: int | None = None
        self._before: str | None = None  # the view that one has left for the same op in another
        self.others: tuple[TabView, ...] = ()
        self._views: dict[str, View] = {}
        self._wanted: dict[str, str] = {}  # what to go to in a view when it is there
        self._wanted_page = ""  # the other page to show when it is known which of them there are
        self._are_others_known = False

    def forget(self) -> None:
        """Drops what was shown."""
        self.cards, self.marked, self._before, self._views = None, None, None, {}
        self._are_others_known = False

    @property
    def pages(self) -> OpPages | None:
        """The pages of the ops, once they are there."""
        return None if self.cards is None else self.cards.pages

    def show_ops(self, pages: OpPages) -> str:
        """Has the ops of a run; the view stays, cursors go to the top, or to the op wanted; says what is not there."""
        cards = self.cards = CardCache(pages, self._want)
        self._views = {TREE: TreeView(cards), HLO: HloView(cards, self._columns), ROOFLINE: RooflineView(cards)}
        if pages.ops.kernels:
            self._views[KERNELS] = KernelView(cards)
        self._settle()
        wanted = self._wanted.pop(HLO, "")
        return self.show_named_op(wanted) if wanted else ""

    def show_others(self, others: tuple[TabView, ...]) -> str:
        """Has further views, to be read when they are shown; says what is not there of what was asked for."""
        self.others, self._are_others_known = others, True
        self._settle()
        page, self._wanted_page = self._wanted_page, ""
        return self.show_page(page, self._wanted.pop(page, "")) if page else ""

    def show_other(self, name: str, page: Payload) -> str:
        """Has the framework ops or another page; says what is not there of what was asked for in it."""
        if self.cards is None:
            return ""
        if name == FRAMEWORK:
            view: RowsView = FrameworkView(self.cards, page)
        else:
            view = next(view for view in self.others if view.name == name).load_view()(page)
        self._views[name], wanted = view, self._wanted.pop(name, "")
        return view.show_named(wanted) if wanted else ""

    def _settle(self) -> None:
        """Stays on a view that there is."""
        self.at = self.at if self.at in self.titles else TREE

    @property
    def titles(self) -> dict[str, str]:
        """What the views are called, by their names; kernels are those of GPUs."""
        own = {name: title for name, title in TITLES.items() if name != KERNELS or KERNELS in self._views}
        return own | {view.name: view.title for view in self.others}

    def turn(self, by: int) -> None:
        """Shows the view that is `by` further on."""
        names = list(self.titles)
        self.at, self._before = names[(names.index(self.at) + by) % len(names)], None

    @property
    def all(self) -> tuple[View, ...]:
        """Those that are there."""
        return tuple(self._views.values())

    @property
    def other(self) -> str:
        """Name of the other page whose view is shown; empty where that is one of the ops."""
        return "" if self.at in TITLES else self.at

    @property
    def other_view(self) -> RowsView | None:
        """That view, where it is read."""
        view = self._views.get(self.other)
        return view if isinstance(view, RowsView) else None

    @property
    def shown(self) -> View | None:
        """The view that is shown; None where it is not there yet."""
        return self._views.get(self.at)

    @property
    def headline(self) -> str:
        """The answer of the view that is shown, in a sentence; else that of the op profile."""
        shown = self.shown
        own = "" if shown is None else shown.headline
        return own or (self.pages.profile.headline if self.pages is not None else "")

    @property
    def op_name(self) -> str | None:
        """Name of the op under the cursor, or of the longest one of its line of code; else of what is there."""
        shown = self.shown
        return None if shown is None else shown.selection if isinstance(shown, TableView) else shown.op_name

    @property
    def op_row(self) -> int | None:
        """Row in the ops page of the op under the cursor."""
        shown, pages = self.shown, self.pages
        if isinstance(shown, TreeView | TableView):
            return shown.op_row
        names = pages.ops.table.name if pages is not None else ()
        return names.index(shown.op_name) if shown is not None and shown.op_name in names else None

    @property
    def listed_row(self) -> int | None:
        """The same in the table of ops, which has those of SparseCores too."""
        return self.shown.own_row if isinstance(self.shown, HloView) else self.op_row

    @property
    def status(self) -> str:
        """How the view is grouped, sorted and filtered, and which op is marked."""
        parts = [self.shown.status()] if self.shown is not None else []
        if self.marked is not None and self.pages is not None:
            parts.append(f"marked {self.pages.listed.table.name[self.marked]}")
        return ", ".join(parts)

    def refresh(self) -> None:
        """A module has come, or the ops by line of code: the tree has more rows, or others."""
        tree = self._views.get(TREE)
        if isinstance(tree, TreeView):
            tree.refresh()

    def same_op(self) -> str:
        """From a table to the op in the tree, from the tree to the op in the table."""
        row = self.op_row
        if row is None:
            return NO_OP
        before = self.at
        said = self._show_op(row, TREE if self.at in (HLO, ROOFLINE) else HLO)
        self._before = before
        return said

    @property
    def opened(self) -> dict[str, Callable[[], object]]:
        """What is open in the view that is shown, by its name: how to close it."""
        shown, found = self.shown, dict[str, Callable[[], object]]()
        if isinstance(shown, RowsView):
            found |= shown.opened
        if self.marked is not None:
            found["mark"] = self._unmark
        if self._before is not None:
            found[f"same op in {self.at}"] = self._go_back
        return found

    @property
    def source(self) -> str:
        """The source line of what is under the cursor, or of its op; empty where none is known."""
        own = "" if self.shown is None else self.shown.source_line
        return own or ("" if self.op_row is None else self._source_of(self.op_row))

    def source_of(self, op: str) -> str:
        """The source line of an op; of a framework op that of its longest HLO op."""
        if self.pages is None:
            return ""
        table = self.pages.ops.table
        if op in table.name:
            return self._source_of(table.name.index(op))
        texts = ((row, text) for row, text in enumerate(table.framework_op) if text)
        row = next((row for row, text in texts if parse_framework_op(text).name == op), None)  # ops come by self time
        return "" if row is None else self._source_of(row)

    def _source_of(self, row: int) -> str:
        return "" if self.pages is None else str(HLO_OPS.by_key["source"].read(self.pages.ops, [row])[0] or "")

    def why_not(self, verb: str) -> str:
        """Why a verb does nothing in the view that is shown; empty where the grammar says it."""
        words = {
            "exclude": "{} has nothing to leave out; the profile's tree and the roofline have.",
            "top": "Only the profile's tree is cut to ten of each.",
            "group": "Rows of {} have no groups.",
            "reverse": "The tree always has the largest first; `s` sorts by waste.",
            "figures": "All figures of a row are on its card: Enter.",
            "mark": "Nothing is marked here; `c` marks an op to compare.",
        }
        return words.get(verb, "").format(self.titles.get(self.at, ""))

    def _unmark(self) -> None:
        self.marked = None

    def _go_back(self) -> None:
        if self._before is not None:
            self.at, self._before = self._before, None

    def _show_op(self, row: int, at: str) -> str:
        self.at, view = at, self._views[at]
        if isinstance(view, TreeView | TableView):
            view.show_op(row)
        return f"the same op in {TITLES[at]}"

    def compare(self) -> OpComparison | str:
        """Marks the op under the cursor, or compares it with the marked one; on that one it takes the mark away."""
        row, pages = self.listed_row, self.pages
        if row is None or pages is None:
            return NO_OP
        if self.marked is None or self.marked == row:
            is_new, self.marked = self.marked is None, None if self.marked == row else row
            name = pages.listed.table.name[row]
            return f"{name} is marked: `c` on another op compares them" if is_new else f"{name} is no longer marked"

        return compare_ops(pages.listed, self.marked, row)

    def show_page(self, page: str, name: str) -> str:
        """Shows another page's view, and in it what has that name, now or when it is read; says what there is not."""
        if page not in self.titles:
            if self._are_others_known or page == FRAMEWORK:
                return f"this profile has nothing for {page}"
            self._wanted_page, self._wanted[page] = page, name
            return ""
        self.at, shown = page, self._views.get(page)
        if isinstance(shown, RowsView):
            return shown.show_named(name) if name else ""
        self._wanted[page] = name
        return ""

    def show_named_op(self, name: str) -> str:
        """Shows the HLO op of that name in the table, now or when the ops are there; else the framework op.

        Says where there is neither.
        """
        if self.pages is None:
            self._wanted[HLO] = name
            return ""
        names = self.pages.ops.table.name
        if name not in names:
            return self.show_framework_op(name)
        self._show_op(names.index(name), HLO)
        return ""

    def show_framework_op(self, name: str) -> str:
        """Shows a framework op, now or when the framework ops are there; says where there is none."""
        before, said = self.at, self.show_page(FRAMEWORK, name)
        self.at = before if said else FRAMEWORK
        return said

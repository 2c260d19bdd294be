"""The views of the ops tab: which of them is shown, going from one to the other, and the op that is marked."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tpuprof.tui.pages.ops.shelf import OpPages, Shelf
from tpuprof.tui.pages.ops.table_views import FrameworkView, HloView, KernelView, RooflineView, TableView
from tpuprof.tui.pages.ops.tree_view import TreeView

if TYPE_CHECKING:
    from tpuprof.parsers.pages.ops.compare import OpComparison
    from tpuprof.parsers.pages.ops.framework_ops import FrameworkOpsPage

View = TreeView | TableView
"""One way to look at the ops."""

TITLES = ("Profile", "HLO ops", "Framework ops", "Roofline", "Kernels")
TREE, HLO, FRAMEWORK, ROOFLINE, KERNELS = range(5)

NO_OP = "no single op under the cursor"


class Views:
    """The views of the ops of a run, none before these are there.

    Attributes:
        at: number of the view that is shown.
        marked: row in the table of ops of the op that others are compared with; None where none is marked.

    Args:
        want: starts to fetch a module or lines of a source file.
        columns: keys of the fields that the table of HLO ops shows; empty for the built-in ones.
    """

    def __init__(self, want: Callable[[int | str], None], columns: tuple[str, ...] = ()) -> None:
        self._want = want
        self._columns = columns
        self.pages: OpPages | None = None
        self.shelf = Shelf(want)
        self.at = TREE
        self.marked: int | None = None
        self._views: dict[int, View] = {}
        self._wanted_name = ""
        self._wanted_op = ""

    def forget(self) -> None:
        """Drops what was shown."""
        self.pages, self.marked, self._views = None, None, {}

    def show_ops(self, pages: OpPages) -> str:
        """Has the ops of a run; the view stays, cursors go to the top, or to the op wanted; says what is not there."""
        self.pages = pages
        named = frozenset(number for modules in pages.modules for number in modules.names)
        shelf = self.shelf = Shelf(self._want, named)
        hlo = HloView(pages, shelf, self._columns)
        self._views = {TREE: TreeView(pages, shelf), HLO: hlo, ROOFLINE: RooflineView(pages, shelf)}
        if pages.ops.kernels:
            self._views[KERNELS] = KernelView(pages, shelf)
        self.at = min(self.at, len(self.titles) - 1)
        return self.show_named_op(self._wanted_op) if self._wanted_op else ""

    def show_framework_ops(self, page: FrameworkOpsPage) -> str:
        """Has the framework ops too; says what is not there."""
        if self.pages is None:
            return ""
        view = self._views[FRAMEWORK] = FrameworkView(self.pages, self.shelf, page)
        wanted, self._wanted_name = self._wanted_name, ""
        return "" if not wanted or view.show_name(wanted) else _did_not_run(wanted)

    @property
    def titles(self) -> tuple[str, ...]:
        """What the views are called; kernels are those of GPUs."""
        return TITLES if KERNELS in self._views else TITLES[:KERNELS]

    @property
    def all(self) -> tuple[View, ...]:
        """Those that are there."""
        return tuple(self._views.values())

    @property
    def shown(self) -> View | None:
        """The view that is shown; None where it is not there yet."""
        return self._views.get(self.at)

    @property
    def op_row(self) -> int | None:
        """Row in the ops page of the op under the cursor."""
        return self.shown.op_row if self.shown is not None else None

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
        """A module has come: the tree has more rows."""
        tree = self._views.get(TREE)
        if isinstance(tree, TreeView):
            tree.refresh()

    def same_op(self) -> str:
        """From a table to the op in the tree, from the tree to the op in the table."""
        row = self.op_row
        if row is None:
            return NO_OP
        self.at = HLO if self.at in (TREE, FRAMEWORK, KERNELS) else TREE
        self._views[self.at].show_op(row)
        return f"the same op in {TITLES[self.at]}"

    def compare(self) -> OpComparison | str:
        """Marks the op under the cursor, or compares it with the marked one; on that one it takes the mark away."""
        row, pages = self.listed_row, self.pages
        if row is None or pages is None:
            return NO_OP
        if self.marked is None or self.marked == row:
            is_new, self.marked = self.marked is None, None if self.marked == row else row
            name = pages.listed.table.name[row]
            return f"{name} is marked: c on another op compares them" if is_new else f"{name} is no longer marked"
        from tpuprof.parsers.pages.ops.compare import compare_ops  # noqa: PLC0415 - for those who compare

        return compare_ops(pages.listed, self.marked, row)

    def show_named_op(self, name: str) -> str:
        """Shows the HLO op of that name in the table, now or when the ops are there; else the framework op.

        Says where there is neither.
        """
        if self.pages is None:
            self._wanted_op = name
            return ""
        self._wanted_op = ""
        names = self.pages.ops.table.name
        if name not in names:
            return self.show_framework_op(name)
        self.at = HLO
        self._views[HLO].show_op(names.index(name))
        return ""

    def show_framework_op(self, name: str) -> str:
        """Shows a framework op, now or when the framework ops are there; says where there is none."""
        before, self.at = self.at, FRAMEWORK
        view = self._views.get(FRAMEWORK)
        if not isinstance(view, FrameworkView):
            self._wanted_name = name
            return ""
        found = view.show_name(name)
        self.at = FRAMEWORK if found else before
        return "" if found else _did_not_run(name)


def _did_not_run(name: str) -> str:
    return f"no op {name} ran in this profile"

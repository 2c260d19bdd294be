"""What the op profile's tree shows: which nodes are open, how it is sorted, and where the cursor is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tpuprof.tui.pages.ops.tree import TreeRow

if TYPE_CHECKING:
    from tpuprof.parsers.formats.hlo.modules import Instruction
    from tpuprof.parsers.pages.ops.op_profile import Grouping, OpTree, SortBy

TOP = 10
"""Children of a node that are shown at first; the others are counted."""

Place = tuple[int, tuple[str, ...]]
"""A node, and for an instruction inside a fusion the names on the way to it."""

Fused = Callable[[int, tuple[str, ...]], "Sequence[Instruction] | None"]
"""Instructions inside the fusion of a node (or inside one of those); None where there are none, or none known yet."""


@dataclass(slots=True)
class TreeState:
    """The state of the tree view; `rows` follows from the rest.

    Attributes:
        tree: the tree shown.
        fused: looks into fusions.
        sort: longest or most wasteful first.
        top: at most `TOP` children of each node are shown.
        most: the children shown make up no more than 90 % of their parent.
        open: places whose children are shown.
        cursor: index into `rows`.
        rows: what is shown, from the first row on.
    """

    tree: OpTree
    fused: Fused
    sort: SortBy = "time"
    top: bool = True
    most: bool = False
    open: set[Place] = field(default_factory=set)
    cursor: int = 0
    rows: list[TreeRow] = field(default_factory=list)

    def __post_init__(self) -> None:
        first = self.tree.children(0)
        if len(first) and not self.open:  # the longest program or category
            longest = next((node for node in first.tolist() if self.tree.kind[node] != "idle"), None)
            if longest is not None:
                self.open.add((longest, ()))
        self.refresh()

    @property
    def by(self) -> Grouping:
        """What the tree is grouped by."""
        return self.tree.by

    @property
    def row(self) -> TreeRow | None:
        """The row under the cursor."""
        return self.rows[self.cursor] if self.rows else None

    def refresh(self) -> None:
        """Lists the rows anew; the cursor stays at its place, or at the nearest row above it."""
        place = _place(self.row) if self.rows and self.cursor < len(self.rows) else None
        self.rows = []
        stack = self._level(0, 0)[::-1]
        while stack:
            row = stack.pop()
            self.rows.append(row)
            if row.is_open:
                stack += self._under(row)[::-1]
        index = next((index for index, row in enumerate(self.rows) if not row.hidden and _place(row) == place), None)
        self.cursor = index if index is not None else max(0, min(self.cursor, len(self.rows) - 1))

    def _level(self, node: int, depth: int) -> list[TreeRow]:
        tree = self.tree
        shown, hidden = tree.top_children(node, self.sort, TOP if self.top else 0, self.most)
        rows = []
        for child in shown.tolist():
            has_children = tree.child_count(child) > 0 or self.fused(child, ()) is not None
            rows.append(TreeRow(child, depth, ((child, ()) in self.open) if has_children else None))
        return rows + ([TreeRow(node, depth, None, hidden)] if hidden else [])

    def _under(self, row: TreeRow) -> list[TreeRow]:
        if self.tree.child_count(row.node) and row.instruction is None:
            return self._level(row.node, row.depth + 1)
        rows = []
        for instruction in self.fused(row.node, row.path) or ():
            path = (*row.path, instruction.name)
            has_children = instruction.is_fusion and len(path) < 16
            is_open = (row.node, path) in self.open if has_children else None
            rows.append(TreeRow(row.node, row.depth + 1, is_open, 0, instruction, path))
        return rows

    # --- moving

    def move(self, rows: int) -> None:
        """So many rows down."""
        self.cursor = max(0, min(self.cursor + rows, len(self.rows) - 1))

    def toggle(self) -> None:
        """Opens or closes the row under the cursor, where it has children."""
        row = self.row
        if row is not None and row.is_open is not None:
            self.open.symmetric_difference_update({(row.node, row.path)})
            self.refresh()

    def show_hidden(self) -> bool:
        """On a row of hidden nodes shows them all, the cursor on the first of them; False on another row."""
        row = self.row
        if row is None or not row.hidden:
            return False
        siblings = self.tree.children(row.node, self.sort)
        first = int(siblings[len(siblings) - row.hidden])
        self.top, self.most = False, False
        self.refresh()
        self.cursor = self._find(first)
        return True

    def _find(self, node: int) -> int:
        """Index of a node's row; the cursor where it is not shown."""
        place = (node, ())
        return next(
            (index for index, row in enumerate(self.rows) if not row.hidden and _place(row) == place), self.cursor
        )

    def into(self) -> None:
        """Opens the row, or goes to its first child where it is open."""
        row = self.row
        if row is not None and row.hidden:
            self.show_hidden()
        elif row is not None and row.is_open:
            self.move(1)
        else:
            self.toggle()

    def out(self) -> None:
        """Closes the row, or goes to its parent where it is closed."""
        row = self.row
        if row is None:
            return
        if row.is_open:
            self.toggle()
            return
        above = (index for index in range(self.cursor - 1, -1, -1) if self.rows[index].depth < row.depth)
        self.cursor = next(above, self.cursor)

    def reveal(self, node: int) -> None:
        """Opens everything above a node and goes there, even where fewer children are to be shown."""
        for parent in self.tree.path(node)[1:-1]:
            self.open.add((parent, ()))
        self.refresh()
        if all(_place(row) != (node, ()) or row.hidden for row in self.rows):
            self.top, self.most = False, False
            self.refresh()
        self.cursor = self._find(node)

    def switch(self, tree: OpTree) -> None:
        """Shows another tree; the cursor goes to the same op where it has one."""
        row = self.row
        wanted = int(self.tree.row[row.node]) if row is not None and self.tree.kind[row.node] == "op" else -1
        self.tree, self.open, self.cursor, self.rows = tree, set(), 0, []
        self.__post_init__()
        if wanted >= 0:
            self.reveal(op_node(tree, wanted))

    def replace(self, tree: OpTree) -> None:
        """Shows the same tree with or without its last node, idle time: what is open stays open, the cursor stays."""
        self.tree = tree
        self.refresh()


def op_node(tree: OpTree, row: int) -> int:
    """The node of an op of the ops page; each has exactly one."""
    nodes: list[int] = (tree.row == row).nonzero()[0].tolist()
    return next(node for node in nodes if tree.kind[node] == "op")


def _place(row: TreeRow | None) -> Place | None:
    return None if row is None else (row.node, row.path)

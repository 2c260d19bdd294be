"""The op profile as a view of the ops tab."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.record import replace
from tpuprof.parsers.base.text import counted, has_words
from tpuprof.parsers.formats.hlo.modules import Instruction
from tpuprof.parsers.ops.filtering.filter import Filter, OpColumns
from tpuprof.parsers.pages.ops.op_profile import Grouping, OpProfilePage, OpTree, SortBy
from tpuprof.parsers.pages.ops.sources import short_names
from tpuprof.tui.draw.format import duration
from tpuprof.tui.draw.pen import Composed, Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.draw.table import Listing
from tpuprof.tui.pages.ops.details.card import group_card, instruction_card, line_card
from tpuprof.tui.pages.ops.details.card_cache import CardCache, hlo_card
from tpuprof.tui.pages.ops.fields.hlo_ops import HLO_OPS
from tpuprof.tui.pages.ops.fields.op_profile import NODES, WALKED, Nodes, WalkedNodes
from tpuprof.tui.pages.ops.table_views import ENTER
from tpuprof.tui.pages.ops.tree import NodePath, TreeRow, depth_first, tree_lines
from tpuprof.tui.report.choice import op_columns
from tpuprof.tui.report.shared.exporting import ShownTable
from tpuprof.tui.widgets.chrome import KeyRow, motion_keys, verb_row
from tpuprof.tui.widgets.lists.table import Filterable

TOP = 10  # children of a node that are shown at first; the others are counted
_MUCH = 0.01  # of all time: what takes less is no reason to open what it is in
_GROUPS: tuple[Grouping, ...] = ("program", "category", "provenance", "source")
_WORDS: dict[Grouping, str] = {"provenance": "framework scope", "source": "source line"}


def _by(grouping: Grouping) -> str:
    return _WORDS.get(grouping, grouping)


class TreeView(Filterable[TreeRow]):
    """The op profile.

    Attributes:
        top: at most `TOP` children of each node are shown.
        most: the children shown make up no more than 90% of their parent.
        open: places whose children are shown.
        rows: what is shown, from the first row on; it follows from the rest.
    """

    has_low_card = True
    rows: Sequence[TreeRow] = ()

    def __init__(self, cards: CardCache) -> None:
        super().__init__()
        self._pages, self._cards = cards.pages, cards
        self._with_idle = True
        self.listing = Listing(sort="time")
        self.top, self.most = True, False
        self._matches: tuple[int, ...] = ()
        self._match = -1
        self._awaits_sources = False
        self._files: dict[str, str] = {}
        self._show(cards.pages.profile.by_program)

    def _show(self, tree: OpTree) -> None:
        """Shows a tree, with its longest program, category or file open."""
        self.tree = tree
        nodes = [node for node in tree.children(0).tolist() if tree.kind[node] != "idle"]
        longest = next((node for node in nodes if tree.kind[node] != "line"), None)
        self.open: set[NodePath] = set() if longest is None else {(longest, ())}
        self.rows = []
        self.point(0)
        self._is_untouched = True
        self.refresh()

    def _open_for(self, room: int) -> None:
        """Opens the longest rows one after the other, as far as their children find room, until a key is pressed."""
        first = self.tree.children(0).tolist()
        while self._is_untouched:
            closed = [row for row in self.rows if row.is_open is False and self.tree.child_count(row.node)]
            of_open = [row for row in closed if row.node not in first and self._has_much(row.node)]
            longest = max(of_open, key=lambda row: int(self.tree.time_ps[row.node]), default=None)
            if longest is None or len(self.rows) + len(self._under(longest)) > room:
                return
            self.open.add(longest.place)
            self.refresh()

    def _has_much(self, node: int) -> bool:
        """Whether the longest child of a node is worth a look."""
        children = self.tree.children(node)
        return len(children) > 0 and float(self.tree.time_fraction[children].max()) >= _MUCH

    @property
    def _page(self) -> OpProfilePage:
        return self._pages.profile if self._with_idle else self._pages.profile_without_idle

    # --- rows

    def refresh(self) -> None:
        """Lists the rows anew; the cursor stays at its place, or at the nearest row above it."""
        if self._awaits_sources and self._cards.sources is not None:
            self._group_by("source")
            return
        place = self.rows[self.cursor].place if self.cursor < len(self.rows) else None
        self.rows = depth_first(self._level(0, 0), lambda row: self._under(row) if row.is_open else [])
        index = self._index(place)
        self.point(self.cursor if index is None else index)

    def _index(self, place: NodePath | None) -> int | None:
        return next((index for index, row in enumerate(self.rows) if row.place == place and not row.hidden), None)

    def _level(self, node: int, depth: int) -> list[TreeRow]:
        tree = self.tree
        limit, order = TOP if self.top else 0, self.listing
        shown, hidden = tree.top_children(node, order.sort, limit, self.most, order.is_reversed)
        rows = []
        for child in shown.tolist():
            has_children = tree.child_count(child) > 0 or self._fused(child, ()) is not None or self._beside(child)
            rows.append(TreeRow(child, depth, ((child, ()) in self.open) if has_children else None))
        return rows + ([TreeRow(node, depth, None, hidden)] if hidden else [])

    def _under(self, row: TreeRow) -> list[TreeRow]:
        if self.tree.child_count(row.node) and row.instruction is None:
            return self._level(row.node, row.depth + 1)
        rows = []
        for instruction in self._fused(row.node, row.path) or ():
            path = (*row.path, instruction.name)
            has_children = instruction.is_fusion and len(path) < 16
            is_open = (row.node, path) in self.open if has_children else None
            rows.append(TreeRow(row.node, row.depth + 1, is_open, 0, instruction, path))
        return rows if row.path else [*rows, *(self._of_sparse_core(row, op) for op in self._beside(row.node))]

    @cached_property
    def _ran_beside(self) -> dict[str, list[int]]:
        """Rows of what SparseCores ran, by the name of the op that they ran it for."""
        listed, found = self._pages.listed.table, dict[str, list[int]]()
        for row in range(len(self._pages.ops), len(listed)):
            found.setdefault(listed.parent[row], []).append(row)
        return found

    def _beside(self, node: int) -> Sequence[int]:
        """What SparseCores ran for the op of a node, longest first: rows among the ops that are listed."""
        tree, listed = self.tree, self._pages.listed.table
        if len(listed) == len(self._pages.ops) or tree.kind[node] != "op":
            return ()
        return self._ran_beside.get(listed.name[int(tree.row[node])], ())

    def _of_sparse_core(self, row: TreeRow, op: int) -> TreeRow:
        """A row for an op that a SparseCore ran: its time takes none of the node's."""
        table = self._pages.listed.table
        metrics = f"SparseCore, {duration(int(table.self_ps[op]))}"
        path = (*row.path, f"SparseCore {op}")
        return TreeRow(row.node, row.depth + 1, None, 0, None, path, table.name[op], metrics, op)

    def _fused(self, node: int, path: tuple[str, ...]) -> Sequence[Instruction] | None:
        """Instructions inside the fusion of a node, or inside one of those; None where there are none.

        Those of a fusion that is closed, or whose module is not fetched yet, are no instructions.
        """
        tree, table = self.tree, self._pages.ops.table
        row = int(tree.row[node])
        if row < 0 or tree.kind[node] != "op" or not (table.category[row] or "").endswith("fusion"):
            return None
        program = int(table.program_id[row])
        if program not in self._cards.named:
            return None
        module = self._cards.module(program) if path or (node, ()) in self.open else None
        return () if module is None else module.fused(path[-1] if path else table.name[row])

    # --- drawing

    def compose(self, pen: Pen, height: int) -> Composed:
        room, page, tree = max(1, height - 1), self._page, self.tree
        self._open_for(room)
        first = self.listing.shown_first(room, len(self.rows))
        shown = self.rows[first : first + room]
        if tree.by == "source":
            shown = [self._labelled(row) for row in shown]
        return Composed(tuple(tree_lines(page, tree, shown, self.cursor - first, self.listing, pen)), 1, first, room)

    def _labelled(self, row: TreeRow) -> TreeRow:
        """A row of the tree by source: a file by its short name, a line with its code where that is on this machine."""
        kind, sources = self.tree.kind[row.node], self._cards.sources
        if row.hidden or row.instruction is not None or sources is None or kind not in ("file", "line"):
            return row
        name = self.tree.name[row.node]
        if kind == "file":
            return replace(row, label=self._files.get(name, name))
        at = sources.row.get(name)
        if at is None:
            return row
        excerpt, line = self._cards.excerpt(name), name.rpartition(":")[2]
        code = excerpt.lines[excerpt.marked].strip() if excerpt is not None else ""
        beside = sources.page.function[at] or sources.page.scope[at] or ""
        return replace(row, label=f":{line}  {code}".rstrip(), beside=beside)

    def card(self, pen: Pen) -> list[Line]:
        row, tree = self.row, self.tree
        if row is None:
            return []
        if row.instruction is not None:
            return instruction_card(row.instruction, pen)
        if row.offloaded is not None:
            return hlo_card(self._cards, row.offloaded, pen)
        if tree.kind[row.node] == "op" and not row.hidden:
            return hlo_card(self._cards, int(tree.row[row.node]), pen)
        lines, sources = group_card(self._page, tree, row.node, pen), self._cards.sources
        if sources is None or tree.kind[row.node] != "line" or row.hidden:
            return lines
        at = sources.row.get(tree.name[row.node], sources.row.get("", 0))
        return [*lines, *line_card(sources.page, at, self._cards.excerpt(sources.page.source[at]), pen)]

    def status(self) -> str:
        parts = [f"by {_by(self.tree.by)}"]
        parts += [f"top {TOP}"] if self.top else []
        parts += ["top 90%"] if self.most else []
        parts += [] if self._with_idle else ["idle left out"]
        return ", ".join(parts)

    def help_rows(self) -> list[tuple[str, str]]:
        rows = [(quantity.heading, f"{quantity.meaning}.") for quantity in NODES.chosen(NODES.markdown[2:])]
        on_card = HLO_OPS.chosen(("bound_by", "roofline_efficiency"))
        return [*rows, *((quantity.heading, f"{quantity.meaning}.") for quantity in on_card)]

    # --- moving

    def move(self, across: int, down: int) -> None:
        """One step of the cursor; across opens the row or goes to its first child, closes it or goes to its parent."""
        row, self._is_untouched = self.row, False
        if row is None or not across:
            self.step(down)
        elif across > 0 and not self.enter():
            if row.is_open:
                self.step(1)
            else:
                self._toggle(row)
        elif across < 0 and row.is_open:
            self._toggle(row)
        elif across < 0:
            above = (index for index in range(self.cursor - 1, -1, -1) if self.rows[index].depth < row.depth)
            self.point(next(above, self.cursor))

    def _toggle(self, row: TreeRow) -> None:
        if row.is_open is not None:
            self.open ^= {row.place}
            self.refresh()

    def enter(self) -> bool:
        """On a row of hidden nodes shows them all, the cursor on the first of them; False on another row."""
        row = self.row
        if row is None or not row.hidden:
            return False
        siblings = self.tree.children(row.node, self.listing.sort, self.listing.is_reversed)
        self._go_to(int(siblings[len(siblings) - row.hidden]))
        return True

    def reveal(self, node: int) -> None:
        self._is_untouched = False
        self.open |= {(parent, ()) for parent in self.tree.path(node)[1:-1]}
        self.refresh()
        self._go_to(node)

    def _go_to(self, node: int) -> None:
        if self._index((node, ())) is None:
            self.top, self.most = False, False
            self.refresh()
        index = self._index((node, ()))
        self.point(self.cursor if index is None else index)

    @property
    def keys(self) -> Sequence[KeyRow]:
        return (
            verb_row("group", self._group, short="group by"),
            self.sorting_key(),
            verb_row("exclude", self._leave_out_idle),
            verb_row("top", self._show_top, "Ten children of each node, those that make up 90%, or all"),
            *motion_keys("row", "Open, close a node; into it, out of it", ENTER, short=("", "close, open", "")),
        )

    def _group(self) -> str:
        self._is_untouched = False
        following = _GROUPS[(_GROUPS.index(self.tree.by) + 1) % len(_GROUPS)]
        self._awaits_sources = following == "source" and self._cards.get(None) is None
        if self._awaits_sources:
            return "adding ops up by source line"
        self._group_by(following)
        return f"grouped by {_by(following)}"

    @property
    def orders(self) -> Mapping[str, str]:
        return {order: order for order in get_args(SortBy)}

    def sort_by(self, order: str) -> str:
        self._is_untouched = False
        there = self.listing.sorted_by(order)
        self.listing = replace(self.listing, sort=order, is_reversed=there.is_reversed)
        self.refresh()
        return f"sorted by {self.listing.in_words(order)}"

    def _leave_out_idle(self) -> str:
        """Without idle time, which is a tree's last node: what is open stays open, the cursor stays."""
        self._is_untouched = False
        self._with_idle = not self._with_idle
        self.tree = self._tree(self.tree.by)
        self.refresh()
        return "idle time counts" if self._with_idle else "idle time left out: shares are of the ops' time"

    def _show_top(self) -> str:
        """Ten of each, then those that make up most, then all."""
        self._is_untouched = False
        self.top, self.most = (False, True) if self.top else (not self.most, False)
        self.refresh()
        return f"{TOP} of each" if self.top else "those that make up 90%" if self.most else "all of them"

    def _tree(self, by: Grouping) -> OpTree:
        sources = self._cards.sources
        return sources.tree(self._with_idle) if by == "source" and sources is not None else self._page.tree(by)

    def _group_by(self, by: Grouping) -> None:
        """Shows the tree of a grouping; the cursor stays at its op."""
        self._awaits_sources = False
        row = self.row
        wanted = int(self.tree.row[row.node]) if row is not None and self.tree.kind[row.node] == "op" else -1
        tree = self._tree(by)
        if by == "source":
            kinds = zip(tree.kind, tree.name, strict=True)
            self._files = short_names([name for kind, name in kinds if kind == "file"])
        self._show(tree)
        if wanted >= 0:
            self.show_op(wanted)

    @property
    def headline(self) -> str:
        sources = self._cards.sources
        return sources.page.headline if self.tree.by == "source" and sources is not None else self._page.headline

    @cached_property
    def search_columns(self) -> OpColumns:
        return op_columns(HLO_OPS, self._pages.ops)

    def find(self, text: str, wanted: Filter) -> str:
        if not wanted.is_words:
            return super().find(text, wanted)
        is_wanted = has_words(text)
        return self._found(
            text, [node for node, name in enumerate(self.tree.name) if text and is_wanted(name.casefold())]
        )

    def keep(self, text: str, kept: NDArray[np.bool_] | None) -> str:
        self.asked, row = None, self.tree.row
        kinds = enumerate(self.tree.kind)
        found = [node for node, kind in kinds if kept is not None and kind == "op" and kept[row[node]]]
        return self._found(text, sorted(found, key=lambda node: int(row[node])))  # ops come by self time

    def _found(self, text: str, nodes: Sequence[int]) -> str:
        """Moves to the first of some nodes; says how many."""
        self._matches, self._match = tuple(nodes), -1
        if not nodes:
            return text and self.nothing(text)
        self.next_match(1)
        return counted(len(nodes), "node")

    def next_match(self, direction: int) -> str:
        if not self._matches:
            return "no match"
        self._match = (self._match + direction) % len(self._matches)
        self.reveal(self._matches[self._match])
        return f"match {self._match + 1} of {len(self._matches)}"

    def show_op(self, row: int) -> None:
        """Goes to an op of the ops page, which has exactly one node."""
        nodes: list[int] = (self.tree.row == row).nonzero()[0].tolist()
        self.reveal(next(node for node in nodes if self.tree.kind[node] == "op"))

    @property
    def selection(self) -> str | None:
        row = self.row
        if row is None or row.instruction is not None:
            return self.op_name
        if row.offloaded is not None:
            return self._pages.listed.table.name[row.offloaded]
        return self.source_line or self.op_name

    @property
    def source_line(self) -> str:
        row, sources = self.row, self._cards.sources
        if row is None or sources is None or self.tree.kind[row.node] != "line":
            return ""
        return self.tree.name[row.node] if self.tree.name[row.node] in sources.row else ""

    @property
    def shown_table(self) -> ShownTable:
        shown = [row for row in self.rows if row.instruction is None and row.offloaded is None and not row.hidden]
        names = [" > ".join(self.tree.name[node] for node in self.tree.path(row.node)[1:]) for row in shown]
        nodes, depths = [row.node for row in shown], [row.depth for row in shown]
        walked = WalkedNodes(Nodes(self._pages.ops, self.tree), nodes, depths, names, [0] * len(shown))
        return ShownTable("op-profile", WALKED, walked, range(len(shown)), (), "", "")

    @property
    def op_name(self) -> str | None:
        row, op = self.row, self.op_row
        if row is None:
            return None
        if row.instruction is not None:
            return row.instruction.name
        return (self.tree.name[row.node] if op is None else self._pages.ops.table.name[op]) or None

    @property
    def op_row(self) -> int | None:
        op = -1 if self.row is None else int(self.tree.row[self.row.node])
        return op if op >= 0 else None

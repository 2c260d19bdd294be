"""The op profile as a view of the ops tab."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tpuprof.parsers.base.text import counted
from tpuprof.tui.draw.spans import Glyphs, Line
from tpuprof.tui.pages.ops.card import group_card, instruction_card
from tpuprof.tui.pages.ops.shelf import OpPages, Shelf, hlo_card
from tpuprof.tui.pages.ops.tree import tree_header, tree_row
from tpuprof.tui.pages.ops.tree_state import TOP, TreeState, op_node

if TYPE_CHECKING:
    from tpuprof.parsers.formats.hlo.modules import Instruction
    from tpuprof.parsers.pages.ops.op_profile import Grouping, OpProfilePage


class TreeView:
    """The op profile."""

    commands: tuple[str, ...] = ("group", "sort", "idle", "top", "most")
    has_low_card = True

    def __init__(self, pages: OpPages, shelf: Shelf) -> None:
        self._pages = pages
        self._shelf = shelf
        self._with_idle = True
        self.state = TreeState(pages.profile.by_program, self._fused)
        self._top = 0
        self._matches: tuple[int, ...] = ()
        self._match = -1

    @property
    def _page(self) -> OpProfilePage:
        return self._pages.profile if self._with_idle else self._pages.profile_without_idle

    def _fused(self, node: int, path: tuple[str, ...]) -> Sequence[Instruction] | None:
        tree, ops = self.state.tree if hasattr(self, "state") else self._pages.profile.by_program, self._pages.ops
        row = int(tree.row[node])
        if row < 0 or tree.kind[node] != "op" or not (ops.table.category[row] or "").endswith("fusion"):
            return None
        program = int(ops.table.program_id[row])
        if program not in self._shelf.named:
            return None
        is_open = path or (hasattr(self, "state") and (node, ()) in self.state.open)
        module = self._shelf.module(program) if is_open else None
        return () if module is None else module.fused(path[-1] if path else ops.table.name[row])

    def refresh(self) -> None:
        """Something was fetched."""
        self.state.refresh()

    def lines(self, width: int, height: int, glyphs: Glyphs) -> list[Line]:
        """Heading and rows, at most `height` lines."""
        room = max(1, height - 1)
        self._top = max(self.state.cursor - room + 1, min(self._top, self.state.cursor))
        self._top = max(0, min(self._top, len(self.state.rows) - room))
        shown = self.state.rows[self._top : self._top + room]
        header = tree_header(width, glyphs, self.state.sort)
        return [
            header,
            *(
                tree_row(self._page, self.state.tree, row, place == self.state.cursor, width, glyphs)
                for place, row in enumerate(shown, self._top)
            ),
        ]

    def card(self, width: int, glyphs: Glyphs) -> list[Line]:
        """All about what is under the cursor."""
        row, tree = self.state.row, self.state.tree
        if row is None:
            return []
        if row.instruction is not None:
            return instruction_card(row.instruction, width, glyphs)
        if tree.kind[row.node] == "op" and not row.hidden:
            return hlo_card(self._pages, int(tree.row[row.node]), self._shelf, width, glyphs)
        return group_card(self._page, tree, row.node, width, glyphs)

    def status(self) -> str:
        """How the view is grouped, sorted and filtered."""
        by = "framework scope" if self.state.by == "provenance" else self.state.by
        parts = [f"by {by}"]
        parts += [f"top {TOP}"] if self.state.top else []
        parts += ["top 90%"] if self.state.most else []
        parts += [] if self._with_idle else ["idle left out"]
        return ", ".join(parts)

    def help_rows(self) -> list[tuple[str, str]]:
        """What its columns mean, and what the card adds to them."""
        from tpuprof.tui.pages.ops.fields.hlo_ops import HLO_OPS  # noqa: PLC0415 - numpy, not at start
        from tpuprof.tui.pages.ops.fields.op_profile import NODES  # noqa: PLC0415

        rows = [(quantity.heading, f"{quantity.meaning}.") for quantity in NODES.chosen(NODES.markdown[2:])]
        on_card = HLO_OPS.chosen(("bound_by", "roofline_efficiency"))
        return [*rows, *((quantity.heading, f"{quantity.meaning}.") for quantity in on_card)]

    def move(self, across: int, down: int) -> None:
        """One step of the cursor."""
        if across > 0:
            self.state.into()
        elif across < 0:
            self.state.out()
        else:
            self.state.move(down)

    def jump(self, rows: int) -> None:
        """So many rows down."""
        self.state.move(rows)

    def enter(self) -> bool:
        """Opens or closes what is under the cursor; False where there is nothing to open."""
        return self.state.show_hidden()

    def command(self, name: str) -> str:
        """Does one of `commands`; says what came of it."""
        state = self.state
        if name == "group":
            order: tuple[Grouping, ...] = ("program", "category", "provenance")
            following = order[(order.index(state.by) + 1) % len(order)]
            state.switch(self._page.tree(following))
            return f"grouped by {'framework scope' if following == 'provenance' else following}"
        if name == "idle":
            self._with_idle = not self._with_idle
            state.replace(self._page.tree(state.by))
            return "idle time counts" if self._with_idle else "idle time left out: shares are of the ops' time"
        if name == "sort":
            state.sort = "wasted" if state.sort == "time" else "time"
        elif name == "top":
            state.top = not state.top
        else:
            state.most = not state.most
        state.refresh()
        return ""

    def search(self, text: str) -> str:
        """Filters, or moves to the first match; says how much was found."""
        wanted = text.casefold()
        tree = self.state.tree
        self._matches = tuple(place for place, name in enumerate(tree.name) if text and wanted in name.casefold())
        self._match = -1
        if not text:
            return ""
        if self._matches:
            self.next_match(1)
        return counted(len(self._matches), "node") if self._matches else "no match"

    def next_match(self, direction: int) -> str:
        """Moves to another match."""
        if not self._matches:
            return "no match"
        self._match = (self._match + direction) % len(self._matches)
        self.state.reveal(self._matches[self._match])
        return f"match {self._match + 1} of {len(self._matches)}"

    def show_op(self, row: int) -> None:
        """Goes to an op."""
        self.state.reveal(op_node(self.state.tree, row))

    @property
    def selection(self) -> str | None:
        """The full name of what is under the cursor."""
        row, tree = self.state.row, self.state.tree
        if row is None:
            return None
        if row.instruction is not None:
            return row.instruction.name
        place = int(tree.row[row.node])
        name: str = self._pages.ops.table.name[place] if place >= 0 else tree.name[row.node]
        return name or None

    @property
    def op_row(self) -> int | None:
        """Row in the ops page of the op under the cursor."""
        row = self.state.row
        place = -1 if row is None else int(self.state.tree.row[row.node])
        return place if place >= 0 else None

"""The screen for the comparison of two runs, and the app around it for ``tpuprof-tui diff``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial

import numpy

from tpuprof.parsers.base.record import replace
from tpuprof.parsers.session.diff.model import Diff, OpChange
from tpuprof.tui.draw.pen import Composed, Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.commands.diff import changes
from tpuprof.tui.pages.commands.diff.changes import ChangeRow, ViewName
from tpuprof.tui.pages.commands.diff.details import OF_CARDS, change_card, meaning_lines, summary
from tpuprof.tui.pages.commands.diff.drawing import ORDERS, DiffView, compose, is_sortable, shown
from tpuprof.tui.pages.commands.diff.drawing import head_line as drawn_head
from tpuprof.tui.pages.commands.diff.fields import CHANGES, OPS, WRITTEN_ROWS
from tpuprof.tui.report.fields import searched_texts
from tpuprof.tui.report.shared.exporting import ShownTable, run_of_file
from tpuprof.tui.terminal.theme import AnyLine
from tpuprof.tui.widgets.chrome import HELPS, ROW_KEYS, KeyRow, verb_row
from tpuprof.tui.widgets.lists.screen import ListScreen, PageApp
from tpuprof.tui.widgets.lists.view import ListView
from tpuprof.tui.widgets.popup import Lines, meanings
from tpuprof.tui.widgets.tab import op_rows

_ALL_OF_IT = "All about the row: sources, HLO of both; of a phase: its ops"
_VIEWS = "Ops, categories, time, steps, memory, figures, phases, setup"
_BY_ITSELF = "The next, previous program alone: ops, categories, time per run"


class ChangeList(ListView[ChangeRow]):
    """What changed from one run to another, one view of it at a time."""

    listing: DiffView

    def __init__(self, diff: Diff) -> None:
        self.diff, self.listing = diff, DiffView()
        self._all: dict[tuple[ViewName, bool, str], tuple[ChangeRow, ...]] = {}

    @property
    def all_rows(self) -> tuple[ChangeRow, ...]:
        view = self.listing
        key = view.name, view.apart, view.phase
        if key not in self._all:
            self._all[key] = changes.entries(self.part, view.name, view.apart)
        return self._all[key]

    @property
    def part(self) -> Diff:
        """What the view is of: all programs together, or one of them."""
        return changes.part_of(self.diff, self.listing.name, self.listing.phase)

    @property
    def rows(self) -> tuple[ChangeRow, ...]:
        return self.kept(self.listing.anew(), lambda: shown(self.all_rows, self.listing))

    @property
    def searched(self) -> Sequence[str]:
        return searched_texts(CHANGES, shown(self.all_rows, self.listing.anew(words="")))

    @property
    def shown_table(self) -> ShownTable | None:
        view, rows, sides = self.listing, self.rows, (self.diff.before, self.diff.after)
        ops = [row.op for row in rows if row.op is not None and row.group is None]
        is_of_ops = view.name == "ops" and len(ops) == len(rows)
        if not rows:
            return None
        table, source = (OPS, ops) if is_of_ops else (WRITTEN_ROWS[rows[0].kind], rows)
        order = view.in_words(view.sort) if self.orders else ""
        run = run_of_file(f"{sides[0].name} and {sides[1].name}", sides[1].path)
        return ShownTable(f"diff-{view.name}", table, source, range(len(source)), (), view.words, order, run)

    def compose(self, pen: Pen, height: int) -> Composed:
        return compose(self.diff, self.listing, self.rows, len(self.all_rows), pen, height)

    @property
    def orders(self) -> Mapping[str, str]:
        return {sort: "op" if sort == "what" else sort for sort in ORDERS} if is_sortable(self.all_rows) else {}

    @property
    def opened(self) -> dict[str, Callable[[], object]]:
        return {"phase": partial(self._show_phase, "")} if self.listing.phase else {}

    @property
    def keys(self) -> Sequence[KeyRow]:
        view, hides = self.listing, self.listing.name in changes.HIDING
        same = ("show same" if view.hides_same else "hide same") if hides else ""
        has_phases = len(self.diff.phases) > 1 and view.name in (*changes.OF_PHASE, "phases")
        program = (view.phase or "all programs") if has_phases else ""
        clones = ("clones together" if view.apart else "clones apart") if self._has_groups else ""
        phases = {"next_step": partial(self._phase, 1), "previous_step": partial(self._phase, -1)}
        sort = "sort" if hides and view.name != "setup" else ""
        return (
            KeyRow("exclude", same, "Show or hide what is the same within the noise", {"exclude": self._hide}, rank=2),
            KeyRow("next_step previous_step", program, _BY_ITSELF, phases, "]", 1),
            KeyRow("group", clones, "An op and its clones as one row, or apart", {"group": self._group}, rank=3),
            self.sorting_key(sort, HELPS + 2),
        )

    def step(self, rows: int, screens: float = 0.0) -> None:
        if self.listing.name == "steps":
            self.listing = replace(self.listing, first=max(0, self.listing.first + self.rows_in(rows, screens)))
        else:
            super().step(rows, screens)

    def enter(self) -> bool:
        if self.row is None or self.row.phase is None:
            return False
        self.listing = self.listing.anew(name="ops", phase=self.row.name)
        return True

    def show(self, name: ViewName) -> str:
        """Another view; filter and order stay."""
        if name == self.listing.name:
            return "It is already shown."
        self.listing = self.listing.anew(name=name)
        return ""

    def _phase(self, by: int) -> str:
        names = ["", *(phase.name for phase in self.diff.phases)]
        if len(names) < 2 or self.listing.name not in changes.OF_PHASE:
            return "Programs are shown separately in ops, categories and time (1, 2, 3)."
        name = names[(names.index(self.listing.phase) + by) % len(names)]
        self._show_phase(name)
        return f"Only runs of {name}." if name else "All programs, together."

    def _show_phase(self, name: str) -> None:
        self.listing = self.listing.anew(phase=name)

    def _hide(self) -> str:
        """Shows or hides what is the same; the cursor stays on its row where that shows."""
        if self.listing.name not in changes.HIDING:
            return "This view shows all rows."
        row = self.row
        self.listing = self.listing.anew(hides_same=not self.listing.hides_same)
        if row is not None and row in self.rows:
            self.point(self.rows.index(row))
        return ""

    @property
    def _has_groups(self) -> bool:
        return self.listing.name == "ops" and changes.has_clones(self.part)

    def _group(self) -> str:
        """Puts clones of ops together or apart; the cursor goes to the op that it was on, or to its group."""
        if not self._has_groups:
            return "No row here has several ops."
        row = self.row
        self.listing = self.listing.anew(apart=not self.listing.apart)
        ops = self._ops_of(row) if row is not None else ()
        self.point(next((at for at, other in enumerate(self.rows) if set(ops) & set(self._ops_of(other))), 0))
        return ""

    def _ops_of(self, row: ChangeRow) -> Sequence[OpChange]:
        if row.group is not None:
            return [self.part.ops[number] for number in row.group.members]
        return [row.op] if row.op is not None else []


class DiffScreen(ListScreen):
    """The screen of a comparison."""

    content: Diff

    @cached_property
    def listed(self) -> ChangeList:
        return ChangeList(self.content)

    def head_line(self, pen: Pen) -> AnyLine:
        return drawn_head(self.content, pen)

    def meaning_lines(self, pen: Pen) -> list[Line]:
        return meaning_lines(self.content, pen)

    @property
    def keys(self) -> Sequence[KeyRow]:
        name, filters = self.listed.listing.name, self.listed.listing.name in changes.HIDING
        details = "" if name == "steps" else "its ops" if name == "phases" else "details"
        views: dict[str, Callable[..., object]] = {
            "pick": self._pick,
            **dict.fromkeys(("next_tab", "view"), partial(self._next_view, 1)),
            **dict.fromkeys(("previous_tab", "previous_view"), partial(self._next_view, -1)),
        }
        return (
            KeyRow("pick next_tab view", "view", _VIEWS, views, f"1-{len(changes.VIEWS)}"),
            *ROW_KEYS,
            KeyRow("open", details, _ALL_OF_IT, {"open": self.enter} if self.listed.row is not None else {}),
            *self.listed.keys,
            KeyRow(
                "search",
                "filter" if filters else "",
                "Only rows with these words",
                {"search": self.begin_filter} if self.listed.all_rows else {},
                rank=HELPS + 1,
            ),
            *self.last_keys(),
            *self._op_keys,
        )

    @property
    def _op_keys(self) -> Sequence[KeyRow]:
        """What there is to do with the op under the cursor, in run B where both have it; else a summary to copy."""
        op = None if self.listed.row is None else self.listed.row.op
        sides = () if op is None else zip((self.content.after, self.content.before), op.rows[::-1], strict=True)
        side, row = next(((side, row) for side, row in sides if row is not None), (None, 0))
        if side is None:
            return (verb_row("copy", lambda: self.copy(summary(self.content)), "Copy a summary", "copy", rank=4),)
        name, source = str(side.table.name[row]), side.table.texts("source", numpy.array([row]))[0]
        return (
            verb_row("copy", partial(self.copy, name), "Copy the op's name", "copy", rank=4),
            *(replace(key, short="") for key in op_rows(name, int(side.table.program_id[row]) or None, run=side.path)),
            verb_row("edit", partial(self.edit_source, source)),
        )

    def _pick(self, number: int) -> str:
        if number <= len(changes.VIEWS):
            return self.listed.show(changes.VIEWS[number - 1])
        return f"The views are 1 to {len(changes.VIEWS)}."

    def _next_view(self, by: int) -> str:
        at = changes.VIEWS.index(self.listed.listing.name) + by
        return self.listed.show(changes.VIEWS[at % len(changes.VIEWS)])

    def move(self, rows: int, screens: float) -> None:
        super().move(rows, screens)
        if self.listed.listing.name == "steps":
            self.body.redraw()  # which goes no further than the last line

    @property
    def card_of_row(self) -> tuple[str, Lines, Lines] | None:
        row = self.listed.row
        return None if row is None else ("Change", partial(change_card, self.listed.part, row), meanings(*OF_CARDS))


APP = partial(PageApp, DiffScreen)

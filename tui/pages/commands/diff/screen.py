"""The screen for the comparison of two runs, and the app around it for ``tpuprof-tui diff``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial

from tpuprof.parsers.session.diff.model import Diff, OpChange
from tpuprof.tui.draw.layout import Composed
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.commands.diff import changes
from tpuprof.tui.pages.commands.diff.changes import ChangeRow, ViewName
from tpuprof.tui.pages.commands.diff.details import OF_CARDS, change_card, meaning_lines, summary
from tpuprof.tui.pages.commands.diff.drawing import DiffView, compose, is_sortable, shown
from tpuprof.tui.pages.commands.diff.drawing import head_line as drawn_head
from tpuprof.tui.pages.commands.diff.fields import CHANGES, OPS, WRITTEN_ROWS
from tpuprof.tui.report.fields import searched_texts
from tpuprof.tui.report.shared.exporting import Shown, run_of_file
from tpuprof.tui.terminal.theme import AnyLine
from tpuprof.tui.widgets.chrome import ROW_KEYS, KeyRow
from tpuprof.tui.widgets.page_screen import HELPS, PageApp, PageScreen
from tpuprof.tui.widgets.popup import TextPopup, meanings

_ALL_OF_IT = "All about the row: sources, HLO of both; of a phase: its ops"
_VIEWS = "Ops, categories, time, steps, memory, figures, phases, setup"
_BY_ITSELF = "The next, previous program alone: ops, categories, time per run"


class DiffScreen(PageScreen[ChangeRow]):
    """Shows what changed from one run to another."""

    content: Diff
    view: DiffView = DiffView()

    @cached_property
    def _all(self) -> dict[tuple[ViewName, bool, str], tuple[ChangeRow, ...]]:
        """The rows of the views that were shown."""
        return {}

    @property
    def all_rows(self) -> tuple[ChangeRow, ...]:
        """Every row of the view."""
        key = self.view.name, self.view.apart, self.view.phase
        if key not in self._all:
            self._all[key] = changes.entries(self._part, self.view.name, self.view.apart)
        return self._all[key]

    @property
    def _part(self) -> Diff:
        """What the view is of: all programs together, or one of them."""
        return changes.part_of(self.content, self.view.name, self.view.phase)

    @property
    def rows(self) -> tuple[ChangeRow, ...]:
        """The rows that show."""
        return self.kept(self.view.anew(), lambda: shown(self.all_rows, self.view))

    @property
    def searched(self) -> Sequence[str]:
        """What a filter looks at in each row that can show."""
        return searched_texts(CHANGES, shown(self.all_rows, self.view.anew(words="")))

    @property
    def shown_table(self) -> Shown | None:
        """The rows as they are filtered and sorted: with all fields of ops where each row is of one op."""
        view, rows, sides = self.view, self.rows, (self.content.before, self.content.after)
        ops = [row.op for row in rows if row.op is not None and row.group is None]
        is_of_ops = view.name == "ops" and len(ops) == len(rows)
        if not rows:
            return None
        table, source = (OPS, ops) if is_of_ops else (WRITTEN_ROWS[rows[0].kind], rows)
        order = view.in_words(view.sort) if self.orders else ""
        run = run_of_file(f"{sides[0].name} and {sides[1].name}", sides[1].path)
        return Shown(f"diff-{view.name}", table, source, range(len(source)), (), view.words, order, run)

    def head_line(self, pen: Pen) -> AnyLine:
        """The two runs."""
        return drawn_head(self.content, pen)

    def compose_page(self, pen: Pen, height: int) -> Composed:
        """The verdict and the view."""
        return compose(self.content, self.view, self.rows, len(self.all_rows), pen, height)

    def meaning_lines(self, pen: Pen) -> list[Line]:
        """What the figures mean, and what is unknown."""
        return meaning_lines(self.content, pen)

    @property
    def keys(self) -> Sequence[KeyRow]:
        """The keys of the view."""
        view, hides = self.view, self.view.name in changes.HIDING
        details = "" if view.name == "steps" else "its ops" if view.name == "phases" else "details"
        same = ("show same" if view.hides_same else "hide same") if hides else ""
        has_phases = len(self.content.phases) > 1 and view.name in (*changes.OF_PHASE, "phases")
        program = (view.phase or "all programs") if has_phases else ""
        has_groups = view.name == "ops" and changes.has_clones(self._part)
        clones = ("clones together" if view.apart else "clones apart") if has_groups else ""
        sort, late = "sort" if hides and view.name != "setup" else "", HELPS + 1
        views: dict[str, Callable[..., object]] = {
            "pick": self._pick,
            **dict.fromkeys(("next_tab", "view"), partial(self._next_view, 1)),
            **dict.fromkeys(("previous_tab", "previous_view"), partial(self._next_view, -1)),
        }
        phases = {"next_step": partial(self._phase, 1), "previous_step": partial(self._phase, -1)}
        return (
            KeyRow("pick next_tab view", "view", _VIEWS, views, f"1-{len(changes.VIEWS)}"),
            *ROW_KEYS,
            KeyRow("open", details, _ALL_OF_IT, {"open": self.enter} if self.row is not None else {}),
            KeyRow("exclude", same, "Show or hide what is the same within the noise", {"exclude": self._hide}, rank=2),
            KeyRow("next_step previous_step", program, _BY_ITSELF, phases, "]", 1),
            KeyRow("group", clones, "An op and its clones as one row, or apart", {"group": self._group}, rank=3),
            self.sorting_key("Sort by the next order; reverse", sort, late + 1),
            KeyRow(
                "search",
                "filter" if hides else "",
                "Only rows with these words",
                {"search": self.begin_filter} if self.all_rows else {},
                rank=late,
            ),
            KeyRow("copy", "copy", "Copy a summary", {"copy": lambda: self.copy(summary(self.content))}, rank=4),
            *self.last_keys(),
        )

    def _pick(self, number: int) -> None:
        if number <= len(changes.VIEWS):
            self._show(changes.VIEWS[number - 1])
        else:
            self.flash = f"The views are 1 to {len(changes.VIEWS)}."

    def _next_view(self, by: int) -> None:
        self._show(changes.VIEWS[(changes.VIEWS.index(self.view.name) + by) % len(changes.VIEWS)])

    def _show(self, name: ViewName) -> None:
        """Another view; filter and order stay."""
        if name == self.view.name:
            self.flash = "It is already shown."
        else:
            self.view = self.view.anew(name=name)

    def move(self, rows: int, screens: float) -> None:
        """Moves the cursor, or scrolls the steps."""
        if self.view.name == "steps":
            self.view = replace(self.view, first=max(0, self.view.first + self.rows_in(rows, screens)))
            self.body.redraw()  # which goes no further than the last line
        else:
            super().move(rows, screens)

    def enter(self) -> None:
        """All of the change under the cursor; of a phase its ops."""
        if self.row is not None and self.row.phase is not None:
            self.view = self.view.anew(name="ops", phase=self.row.name)
        elif self.row is not None:
            self.open(TextPopup(self.look, "Change", partial(change_card, self._part, self.row), meanings(*OF_CARDS)))

    def _phase(self, by: int) -> None:
        """The next program by itself, or all together."""
        names = ["", *(phase.name for phase in self.content.phases)]
        if len(names) < 2 or self.view.name not in changes.OF_PHASE:
            self.flash = "Programs are shown separately in ops, categories and time (1, 2, 3)."
            return
        name = names[(names.index(self.view.phase) + by) % len(names)]
        self.view = self.view.anew(phase=name)
        self.flash = f"Only runs of {name}." if name else "All programs, together."

    @property
    def orders(self) -> Mapping[str, str]:
        """The orders of ops and categories."""
        return {sort: changes.SORT_WORDS[sort] for sort in changes.SORTS} if is_sortable(self.all_rows) else {}

    def _hide(self) -> None:
        """Shows or hides what is the same; the cursor stays on its row where that shows."""
        if self.view.name not in changes.HIDING:
            self.flash = "This view shows all rows."
            return
        row = self.row
        self.view = self.view.anew(hides_same=not self.view.hides_same)
        if row is not None and row in self.rows:
            self.point(self.rows.index(row))

    def _group(self) -> None:
        """Puts clones of ops together or apart; the cursor goes to the op that it was on, or to its group."""
        if self.view.name != "ops" or not changes.has_clones(self._part):
            self.flash = "No row here has several ops."
            return
        row = self.row
        self.view = self.view.anew(apart=not self.view.apart)
        ops = self._ops_of(row) if row is not None else ()
        self.point(next((at for at, other in enumerate(self.rows) if set(ops) & set(self._ops_of(other))), 0))

    def _ops_of(self, row: ChangeRow) -> Sequence[OpChange]:
        """The ops that a row is of."""
        if row.group is not None:
            return [self._part.ops[number] for number in row.group.members]
        return [row.op] if row.op is not None else []

    @property
    def opened(self) -> Mapping[str, Callable[[], object]]:
        """The filter, and one program by itself."""
        return {**super().opened, **({"phase": self._all_phases} if self.view.phase else {})}

    def _all_phases(self) -> None:
        self.view = self.view.anew(phase="")


APP = partial(PageApp, DiffScreen)

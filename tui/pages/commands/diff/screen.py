"""The screen for the comparison of two runs, and the app around it for ``tpuprof-tui diff``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from tpuprof.parsers.session.diff.model import Diff, OpChange
from tpuprof.tui.draw.layout import Composed
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.pages.commands.diff.changes import (
    HIDING,
    OF_PHASE,
    SORT_WORDS,
    SORTS,
    VIEWS,
    Entry,
    ViewName,
    entries,
    has_clones,
    part_of,
)
from tpuprof.tui.pages.commands.diff.details import OF_CARDS, card, foot_keys, help_lines, summary
from tpuprof.tui.pages.commands.diff.drawing import View, compose, is_sortable, shown
from tpuprof.tui.pages.commands.diff.drawing import head_line as drawn_head
from tpuprof.tui.terminal.theme import AnyLine
from tpuprof.tui.widgets.line_canvas import Look
from tpuprof.tui.widgets.popup import ABOUT_HELP, Reader, meanings
from tpuprof.tui.widgets.screen import PageScreen, ScreenApp

if TYPE_CHECKING:
    from tpuprof.tui.terminal.detect import Terminal


class DiffScreen(PageScreen[Entry]):
    """Shows what changed from one run to another.

    Args:
        note: a sentence that the footer shows at first.
        is_alone: it is the whole app, so that leaving it ends the app.
    """

    def __init__(
        self,
        diff: Diff,
        look: Look,
        *,
        environ: Mapping[str, str] | None = None,
        note: str = "",
        is_alone: bool = False,
    ) -> None:
        super().__init__(look, environ, note, is_alone)
        self.diff = diff
        self.view: View = View()
        self._all: dict[tuple[ViewName, bool, str], tuple[Entry, ...]] = {}

    @property
    def all_rows(self) -> tuple[Entry, ...]:
        """Every row of the view."""
        key = self.view.name, self.view.apart, self.view.phase
        if key not in self._all:
            self._all[key] = entries(self._part, self.view.name, self.view.apart)
        return self._all[key]

    @property
    def _part(self) -> Diff:
        """What the view is of: all programs together, or one of them."""
        return part_of(self.diff, self.view.name, self.view.phase)

    @property
    def rows(self) -> tuple[Entry, ...]:
        """The rows that show."""
        view = self.view
        key = (view.name, view.sort, view.words, view.hides_same, view.apart, view.phase)
        hides = view.hides_same and view.name in HIDING
        return self.kept(key, lambda: shown(self.all_rows, view.sort, view.words, hides))

    def head_line(self, pen: Pen) -> AnyLine:
        """The two runs."""
        return drawn_head(self.diff, pen)

    def compose_page(self, pen: Pen, height: int) -> Composed:
        """The verdict and the view."""
        return compose(self.diff, self.view, self.rows, len(self.all_rows), pen, height)

    def foot_keys(self) -> Sequence[tuple[str, str]]:
        """The keys of the view."""
        return foot_keys(self.view, self._is_alone, has_clones(self._part), len(self.diff.phases) > 1)

    @property
    def actions(self) -> Mapping[str, Callable[[], None]]:
        """The keys of this screen."""
        return {
            "enter": self.enter,
            "tab": lambda: self._show(VIEWS[(VIEWS.index(self.view.name) + 1) % len(VIEWS)]),
            "shift+tab": lambda: self._show(VIEWS[VIEWS.index(self.view.name) - 1]),
            "s": partial(self._sort, 1),
            "S": partial(self._sort, -1),
            "i": self._hide,
            "b": self._group,
            "p": partial(self._phase, 1),
            "P": partial(self._phase, -1),
            "slash": self._begin_filter,
            "y": lambda: self.copy(summary(self.diff)),
            "T": self.swap_background,
            "question_mark": self._help,
            "escape": self._back,
            "q": self.leave,
        }

    def number(self, number: int) -> None:
        """Another view."""
        if number <= len(VIEWS):
            self._show(VIEWS[number - 1])

    def _show(self, name: ViewName) -> None:
        """Another view; filter and order stay."""
        if name != self.view.name:
            self.view = replace(self.view, name=name, cursor=0, first=0)

    def move(self, rows: int, screens: float) -> None:
        """Moves the cursor, or scrolls the steps."""
        if self.view.name == "steps":
            first = self.view.first + self.rows_in(rows, screens)
            self.view = replace(self.view, first=max(0, min(first, 10**6)))
        else:
            super().move(rows, screens)

    def enter(self) -> None:
        """All of the change under the cursor; of a phase its ops."""
        if self.row is not None and self.row.phase is not None:
            self.view = replace(self.view, name="ops", phase=self.row.name, cursor=0, first=0)
        elif self.row is not None:
            self.open(Reader(self.look, "Change", partial(card, self._part, self.row), meanings(*OF_CARDS)))

    def _phase(self, by: int) -> None:
        """The next program by itself, or all together."""
        names = ["", *(phase.name for phase in self.diff.phases)]
        if len(names) < 2 or self.view.name not in OF_PHASE:
            self.flash = "Programs are apart in ops, categories and time (1, 2, 3)."
            return
        name = names[(names.index(self.view.phase) + by) % len(names)]
        self.view = replace(self.view, phase=name, cursor=0, first=0)
        self.flash = f"Runs of {name} by themselves." if name else "All programs, together."

    def _sort(self, by: int) -> None:
        if not is_sortable(self.all_rows):
            self.flash = "These rows have an order of their own."
            return
        place = (SORTS.index(self.view.sort) + by) % len(SORTS)
        self.view = replace(self.view, sort=SORTS[place], cursor=0, first=0)
        self.flash = f"Sorted by {SORT_WORDS[SORTS[place]]}."

    def _hide(self) -> None:
        """Shows or hides what is the same; the cursor stays on its row where that shows."""
        if self.view.name not in HIDING:
            self.flash = "All rows show here."
            return
        row = self.row
        self.view = replace(self.view, hides_same=not self.view.hides_same, cursor=0, first=0)
        if row is not None and row in self.rows:
            self.point(self.rows.index(row))

    def _group(self) -> None:
        """Puts clones of ops together or apart; the cursor goes to the op that it was on, or to its group."""
        if self.view.name != "ops" or not has_clones(self._part):
            self.flash = "No row here is of several ops."
            return
        row = self.row
        self.view = replace(self.view, apart=not self.view.apart, cursor=0, first=0)
        ops = self._ops_of(row) if row is not None else ()
        self.point(next((at for at, other in enumerate(self.rows) if set(ops) & set(self._ops_of(other))), 0))

    def _ops_of(self, row: Entry) -> Sequence[OpChange]:
        """The ops that a row is of."""
        if row.group is not None:
            return [self._part.ops[number] for number in row.group.members]
        return [row.op] if row.op is not None else []

    def _back(self) -> None:
        """One level back: the filter, the phase, then the screen, where one is below."""
        if self.view.words:
            self.filter("")
        elif self.view.phase:
            self.view = replace(self.view, phase="", cursor=0, first=0)
        elif not self._is_alone:
            self.leave()

    def _begin_filter(self) -> None:
        if self.all_rows:
            self.begin_filter()

    def _help(self) -> None:
        self.open(Reader(self.look, "Help", partial(help_lines, self.diff, self._is_alone), ABOUT_HELP))


class DiffApp(ScreenApp):
    """Shows a comparison."""

    def __init__(self, diff: Diff, terminal: Terminal, *, environ: Mapping[str, str] | None = None) -> None:
        super().__init__(terminal, environ)
        self.diff = diff

    def get_default_screen(self) -> DiffScreen:
        """The comparison."""
        return DiffScreen(self.diff, self.look, environ=self.environ, is_alone=True)


APP = DiffApp

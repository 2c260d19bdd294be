"""What tabs with a graph of steps above a list share: places, moving, search, and keeping the cursor in sight."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import ClassVar, Generic, Protocol, TypeVar, get_args

from textual.events import Resize

from tpuprof.parsers.base.text import counted, has_words, said_of
from tpuprof.tui.draw.columns import AXIS, ComposedGraph, Cursor, Panel, PanelItem, columns_of
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line, plain
from tpuprof.tui.draw.table import Listing
from tpuprof.tui.report.describe import Section, metric_lines
from tpuprof.tui.report.page import ShownPage
from tpuprof.tui.terminal.theme import AnyLine
from tpuprof.tui.widgets.chrome import TABS_KEY, KeyRow, State, motion_keys, state_lines, verb_row
from tpuprof.tui.widgets.line_canvas import ScreenLook
from tpuprof.tui.widgets.popup import TextPopup
from tpuprof.tui.widgets.tab import OpenPopup, Tab

_ANY = 2000  # cells in which every line has room
_LISTS: tuple[Panel, ...] = ("findings", "owners", "ops")
"""What stands one above the other; the cursor goes from each to the next."""


class NamedStep(Protocol):
    """A step of any page."""

    @property
    def name(self) -> str: ...


class StepGraphPage(Protocol):
    """A page with steps."""

    @property
    def steps(self) -> Sequence[NamedStep]: ...

    @property
    def unknown(self) -> Mapping[str, str]: ...


P = TypeVar("P", bound=StepGraphPage)  # a page


class StepGraphTab(Tab, Generic[P]):
    """A tab with a cursor over steps and another one over what is listed below."""

    OP: ClassVar[str] = "Op"  # what an op is called where it is shown in full

    def __init__(self, look: ScreenLook, *, id: str) -> None:
        super().__init__(look, id=id)
        self._page: P | None = None
        self._panel: Panel = "ops"
        self._lists: dict[Panel, Listing] = dict.fromkeys(_LISTS, Listing())
        """The cursor in each panel; in that of steps from when one goes there."""
        self._list: Panel = "ops"
        self._drawn: ComposedGraph | None = None
        self.matches: tuple[PanelItem, ...] = ()
        self._match = -1

    # --- what a page has of its own

    def _composed(self, page: P, width: int, height: int, cursor: Cursor) -> ComposedGraph:
        raise NotImplementedError

    def _listed(self, page: P) -> Mapping[Panel, Sequence[str]]:
        """The names of what is listed: ops, findings, owners of a step's time where these are drawn."""
        raise NotImplementedError

    def _searched(self, page: P) -> Mapping[Panel, Sequence[str]]:
        """The words of what is listed that a search looks at."""
        raise NotImplementedError

    def _steps(self, page: P) -> Sequence[NamedStep]:
        return page.steps

    def _sections(self, page: P) -> Sequence[Section]:
        raise NotImplementedError

    def _first_step(self, page: P) -> int:
        raise NotImplementedError

    def _line_on(self, page: P, place: PanelItem, pen: Pen) -> Line:
        raise NotImplementedError

    def _lines_on(self, page: P, place: PanelItem, pen: Pen) -> list[Line]:
        raise NotImplementedError

    # --- what they share

    def draw(self, width: int, height: int) -> Sequence[AnyLine]:
        if self._page is None:
            return state_lines(self._state, Pen(width, self.look.glyphs), height)
        finding, owner, op = (self._cursor_in(panel) if self._list == panel else None for panel in _LISTS)
        cursor = Cursor(self._cursor_in("steps"), op, finding, owner)
        self._drawn = self._composed(self._page, width, height, cursor)
        lines = self._drawn.lines
        words = self._words_below(Pen(width, self.look.glyphs), height - len(lines) - 1)
        blank: Line = ((" " * width, "text"),)
        return (*lines, *[blank] * (height - len(lines) - len(words)), *words) if words else lines

    def _words_below(self, pen: Pen, room: int) -> list[Line]:
        """What is under the cursor in words, where one line is too short for them and the page leaves as many free."""
        page, place = self._page, self.place
        words = "" if page is None or place is None else plain(self._line_on(page, place, pen.at(_ANY))).strip()
        lines = pen.wrap(words, "dim", [(" ", "text")], indent=1) if words else []
        return lines if 1 < len(lines) <= room else []

    @property
    def place(self) -> PanelItem | None:
        page, panel = self._page, self._panel
        index, count = self._cursor_in(panel), 0 if page is None else self._count(page, panel)
        return PanelItem(panel, min(index, count - 1)) if index is not None and count else None

    def _cursor_in(self, panel: Panel) -> int | None:
        return self._lists[panel].cursor if panel in self._lists else None

    def _count(self, page: P, panel: Panel) -> int:
        return len(self._steps(page) if panel == "steps" else self._listed(page).get(panel, ()))

    def _written(self, page: P) -> tuple[str, object]:
        """Name of the report that has what is shown, and what it is made of."""
        raise NotImplementedError

    @property
    def shown_table(self) -> ShownPage | None:
        if self._page is None:
            return None
        name, content = self._written(self._page)
        return ShownPage(name, lambda: (content, "the page"))

    def _first_panel(self, page: P) -> Panel:
        """The panel whose first entry shows with all that stands above it: the answer, if there is one."""
        first = next((panel for panel in _LISTS if self._count(page, panel)), None)
        return first or ("steps" if self._steps(page) else "ops")

    @property
    def selection(self) -> str | None:
        page, place = self._page, self.place
        if page is None or place is None:
            return None
        return page.steps[place.index].name if place.panel == "steps" else self._listed(page)[place.panel][place.index]

    @property
    def keys(self) -> Sequence[KeyRow]:
        page = self._page
        if page is None:
            return super().keys
        above, ops = any(self._count(page, panel) for panel in _LISTS[:-1]), self._count(page, "ops") > 0
        step = "step" if self._steps(page) else ""
        rows = "row" if above else "op" if ops else ""
        details = "details" if rows or step else ""
        enter = f"Details of the {rows or 'op'} or step"
        motions = motion_keys(rows or "op", "Next, previous step", enter, ends="one", short=(rows, step, details))
        figures = verb_row("figures", self._open_figures, short="figures" if details else "", rank=3)
        return (*([] if details else [TABS_KEY]), *motions, figures)

    def detail_line(self, width: int) -> AnyLine:
        page, place, pen = self._page, self.place, Pen(width, self.look.glyphs)
        if page is None or place is None:
            return pen.fit([])
        room = 0 if self._drawn is None else self.size.height - len(self._drawn.lines) - 1
        return pen.fit([]) if self._words_below(pen, room) else self._line_on(page, place, pen)

    def detail_lines(self, pen: Pen) -> list[Line]:
        page, place = self._page, self.place
        return [] if page is None or place is None else self._lines_on(page, place, pen)

    @property
    def details(self) -> tuple[str, Callable[[Pen], list[Line]]] | None:
        place = self.place
        if place is None:
            return None
        return self.OP if place.panel == "ops" else place.panel[:-1].capitalize(), self.detail_lines

    def _open_figures(self) -> None:
        if self._page is not None:
            lines = partial(metric_lines, self._sections(self._page), self._page.unknown)
            self.post_message(OpenPopup(TextPopup(self.look, "All figures", lines, self.meaning_lines)))

    def _keep_cursors(self, old: P | None, new: P) -> None:
        """Stays on the same op and step where the new page has them; forgets what was searched for."""
        at = self._cursor_in("steps")
        steps = old.steps if old is not None else ()
        step = step_at(new.steps, steps[at].name) if at is not None and at < len(steps) else None
        self._lists.pop("steps", None)
        if step is not None:
            self._lists["steps"] = Listing(step)
        listed, before = self._listed(new), self._listed(old) if old is not None else {}
        for panel in _LISTS[1:]:
            names, at = listed.get(panel, ()), self._lists[panel].cursor
            kept = before.get(panel, ())[at : at + 1]
            self._lists[panel] = Listing(names.index(kept[0]) if kept and kept[0] in names else 0)
        self._stay_on_a_list(new)
        self.matches, self._match = (), -1

    def _stay_on_a_list(self, page: P) -> None:
        """Leaves a list that is drawn no longer, such as the waterfall on a screen that has become too low for it."""
        first = self._first_panel(page)
        if self._panel != "steps" and not self._count(page, self._panel):
            self._panel = first
        if not self._count(page, self._list):
            self._list = first if first != "steps" else "ops"

    def _go(self, place: PanelItem) -> None:
        """Puts the cursor on a place and draws again with it in sight; with the first one all that stands above it."""
        page = self._page
        if page is None:
            return
        self._panel = place.panel
        self._list = self._list if place.panel == "steps" else place.panel
        self._lists[place.panel] = Listing().at(place.index, self._count(page, place.panel))
        self.redraw()
        if self.place == PanelItem(self._first_panel(page), 0):
            self.scroll_lines_to(0)
        for line in self._lines_of(place.panel):
            if line >= 0:
                self.scroll_to_line(line)

    def show_state(self, state: State) -> None:
        self.scroll_lines_to(0)
        super().show_state(state)

    def move(self, across: int, down: int) -> None:
        page = self._page
        if page is None:
            return
        if across and self._steps(page):
            at = self._cursor_in("steps")
            self._go(PanelItem("steps", self._first_step(page) if at is None else at + across))
        elif down and any(self._listed(page).values()):
            self._go(self._below(page, down))
        elif down:
            super().move(across, down)

    def clicked(self, x: int, y: int, again: bool) -> str | None:
        place = None if self._page is None else self._place_at(self._page, x, y)
        if place is None:
            return super().clicked(x, y, again)
        if again or place == self.place:
            return "enter"
        self._go(place)
        return ""

    def _place_at(self, page: P, x: int, y: int) -> PanelItem | None:
        """The row that is drawn there, or the step whose column is."""
        drawn, width, count = self._drawn, self.size.width, self._count(page, "steps")
        if drawn is None or y in drawn.rows or not (count and drawn.first_step_line <= y <= drawn.last_step_line):
            return None if drawn is None else drawn.rows.get(y)
        columns = columns_of([0.0] * count, width, self._cursor_in("steps"))
        column = (x - AXIS) // columns.pitch(width)
        return PanelItem("steps", columns.shown[column]) if 0 <= column < len(columns.shown) else None

    def _below(self, page: P, down: int) -> PanelItem:
        """The place so many rows down: lists stand above each other, and the cursor goes from each to the next."""
        lists = [panel for panel in _LISTS if self._count(page, panel)]
        at = lists.index(self._list) if self._list in lists else 0
        index = self._lists[lists[at]].cursor + down
        if index < 0 and at:
            return PanelItem(lists[at - 1], self._count(page, lists[at - 1]) - 1)
        if index >= self._count(page, lists[at]) and at + 1 < len(lists):
            return PanelItem(lists[at + 1], 0)
        return PanelItem(lists[at], index)

    def ends(self, direction: int) -> None:
        page = self._page
        if page is None:
            return
        if self._panel == "steps" and self._steps(page):
            self._go(PanelItem("steps", 0 if direction < 0 else len(page.steps) - 1))
        elif direction < 0:
            self._go(PanelItem(self._first_panel(page), 0))
        elif lists := [panel for panel in _LISTS if self._count(page, panel)]:
            self._go(PanelItem(lists[-1], self._count(page, lists[-1]) - 1))

    def _lines_of(self, panel: Panel) -> tuple[int, ...]:
        """The lines to bring in sight, the most important last: of the graph its end and its top, else the cursor's."""
        if self._drawn is None:
            return ()
        if panel == "steps":
            return (self._drawn.last_step_line, self._drawn.first_step_line)
        marked = (y for y, drawn in enumerate(self.lines) if (self.look.glyphs.mark, "mark") in drawn)
        return (next(marked, 0),)

    def on_resize(self, event: Resize) -> None:
        super().on_resize(event)
        if self._page is not None:
            self._stay_on_a_list(self._page)
        place = self.place
        if place is not None and (place.panel == "steps" or place.index):
            self._go(place)

    def search(self, text: str) -> str:
        self.matches, self._match = (self._find(text) if text else ()), -1
        if not text:
            return ""
        if self.matches:
            self.next_match(1)
        return said_of(text, found(self.matches), len(self.matches), lambda: self.searched)

    @property
    def searched(self) -> Sequence[str]:
        page = self._page
        return [] if page is None else [entry for panel in self._all_searched(page).values() for entry in panel]

    def _all_searched(self, page: P) -> Mapping[Panel, Sequence[str]]:
        return {**self._searched(page), "steps": [step.name for step in self._steps(page)]}

    def _find(self, text: str) -> tuple[PanelItem, ...]:
        """Places whose words hold every word of a text, in the order of the panels; case does not matter."""
        page, is_wanted = self._page, has_words(text)
        if page is None:
            return ()
        words = self._all_searched(page)
        return tuple(
            PanelItem(panel, index)
            for panel in get_args(Panel)
            for index, entry in enumerate(words.get(panel, ()))
            if is_wanted(entry.casefold())
        )

    def next_match(self, direction: int) -> str:
        if not self.matches:
            return "no match"
        self._match = (self._match + direction) % len(self.matches)
        self._go(self.matches[self._match])
        return f"match {self._match + 1} of {len(self.matches)}"


def found(matches: Sequence[PanelItem]) -> str:
    """``3 ops, 1 step``."""
    counts = [(sum(match.panel == panel for match in matches), panel[:-1]) for panel in get_args(Panel)]
    return ", ".join(counted(number, word) for number, word in counts if number) or "no match"


def step_at(steps: Sequence[NamedStep], name: str) -> int | None:
    """Index of the step of that name; None where there is none."""
    return next((position for position, step in enumerate(steps) if step.name == name), None)

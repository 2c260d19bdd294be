"""What tabs with a graph of steps above a list share: places, search, and keeping the cursor in sight."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, Literal, Protocol, TypeVar, get_args

from textual.events import Resize

from tpuprof.parsers.base.text import counted
from tpuprof.tui.draw.columns import Frame
from tpuprof.tui.draw.spans import Glyphs, Line
from tpuprof.tui.widgets.line_canvas import Look
from tpuprof.tui.widgets.states import Searching, State
from tpuprof.tui.widgets.tab import Tab

Panel = Literal["findings", "ops", "steps"]


@dataclass(frozen=True, slots=True)
class Place:
    """A finding, an op or a step of a page, by index."""

    panel: Panel
    index: int


class Named(Protocol):
    """A step of any page."""

    @property
    def name(self) -> str:
        """Its name."""


class GraphPage(Protocol):
    """A page with steps."""

    @property
    def steps(self) -> Sequence[Named]:
        """In order of time."""


P = TypeVar("P", bound=GraphPage)
"""A page."""


class GraphTab(Tab, Generic[P]):
    """A tab with a cursor over steps and another one over what is listed below."""

    TITLES: ClassVar[Mapping[Panel, str]] = {}
    """What a finding, op or step is called where it is shown in full."""

    def __init__(self, look: Look, *, id: str) -> None:
        super().__init__(look, id=id)
        self._page: P | None = None
        self._state: State = Searching("")
        self._panel: Panel = "ops"
        self._step: int | None = None
        self._op = 0
        self._finding = 0
        self._list: Panel = "ops"
        self._first_op_line = -1
        self._first_step_line = -1
        self._last_step_line = -1
        self._matches: tuple[Place, ...] = ()
        self._match = -1

    # --- what a page has of its own

    def _op_names(self, page: P) -> Sequence[str]:
        """The names of the ops that are listed."""
        raise NotImplementedError

    def _finding_count(self, page: P) -> int:
        """How many findings there are."""
        return 0

    def _first_panel(self, page: P) -> Panel:
        """The panel whose first entry shows with all that stands above it."""
        return "ops"

    def detail_lines(self, width: int, glyphs: Glyphs) -> list[Line]:
        """All there is to say about what is under the cursor."""
        raise NotImplementedError

    def find(self, text: str) -> tuple[Place, ...]:
        """Places whose words hold a text, in the order of the panels; case does not matter."""
        raise NotImplementedError

    # --- what they share

    @property
    def has_page(self) -> bool:
        """Whether a page is shown, rather than a state."""
        return self._page is not None

    @property
    def place(self) -> Place | None:
        """Where the cursor is."""
        page, panel = self._page, self._panel
        index = self._step if panel == "steps" else self._finding if panel == "findings" else self._op
        return Place(panel, index) if page is not None and index is not None and self._count(page, panel) else None

    def _count(self, page: P, panel: Panel) -> int:
        if panel == "findings":
            return self._finding_count(page)
        return len(page.steps if panel == "steps" else self._op_names(page))

    def _selected(self, panel: Panel) -> int | None:
        """Index of what is under the cursor in a panel; None where the cursor is not in it."""
        place = self.place
        return place.index if place is not None and place.panel == panel else None

    @property
    def details(self) -> tuple[str, Callable[[int, Glyphs], list[Line]]] | None:
        """What is under the cursor, in full."""
        place = self.place
        return None if place is None else (self.TITLES[place.panel], self.detail_lines)

    def _keep_cursors(self, old: P | None, new: P) -> None:
        """Stays on the same op and step where the new page has them; forgets what was searched for."""
        step = None if old is None or self._step is None or self._step >= len(old.steps) else old.steps[self._step].name
        self._step = None if step is None else step_at(new.steps, step)
        before = self._op_names(old) if old is not None else ()
        names = self._op_names(new)
        is_kept = self._op < len(before) and before[self._op] in names
        self._op = names.index(before[self._op]) if is_kept else 0
        self._matches, self._match = (), -1

    def go_to(self, what: str, name: str, program: int | None = None) -> str:
        """Moves to the step of that name, where there is one."""
        index = step_at(self._page.steps, name) if self._page is not None else None
        if index is not None:
            self._go(Place("steps", index))
        return ""

    def _go(self, place: Place) -> None:
        page = self._page
        if page is None:
            return
        self._panel = place.panel
        self._list = self._list if place.panel == "steps" else place.panel
        index = max(0, min(place.index, self._count(page, place.panel) - 1))
        if place.panel == "steps":
            self._step = index
        elif place.panel == "findings":
            self._finding = index
        else:
            self._op = index
        self._show_place(place, is_first=self.place == Place(self._first_panel(page), 0))

    def show_state(self, state: State) -> None:
        """Shows what is going on instead of a page."""
        self._page, self._state = None, state
        self.scroll_lines_to(0)
        self.redraw()

    def _drawn(self, page: Frame) -> Sequence[Line]:
        """The lines of a page, after noting where its parts are."""
        self._first_step_line, self._first_op_line = page.first_step_line, page.first_op_line
        self._last_step_line = page.last_step_line
        return page.lines

    def _show_place(self, place: Place, is_first: bool) -> None:
        """Draws again with a place in sight; with the first one all that stands above it."""
        self.redraw()
        if is_first:
            self.scroll_lines_to(0)
        for line in self._lines_of(place.panel):
            if line >= 0:
                self.scroll_to_line(line)

    def _lines_of(self, panel: Panel) -> tuple[int, ...]:
        """The lines to bring in sight, the most important last: of the graph its end and its top, else the cursor's."""
        if panel == "steps":
            return (self._last_step_line, self._first_step_line)
        marked = (y for y, drawn in enumerate(self.lines) if drawn and drawn[0][0] == self.look.glyphs.mark)
        return (next(marked, self._first_op_line if panel == "ops" else 0),)

    def on_resize(self, event: Resize) -> None:
        """Keeps what is under the cursor in sight."""
        super().on_resize(event)
        place = self.place
        if place is not None and (place.panel == "steps" or place.index):
            self._go(place)

    def search(self, text: str) -> str:
        """Finds places by a text and moves to the first; says how many of what there are."""
        self._matches, self._match = (self.find(text) if text else ()), -1
        if not text:
            return ""
        if self._matches:
            self.next_match(1)
        return found(self._matches)

    def next_match(self, direction: int) -> str:
        """Moves to the next match; says its number."""
        if not self._matches:
            return "no match"
        self._match = (self._match + direction) % len(self._matches)
        self._go(self._matches[self._match])
        return f"match {self._match + 1} of {len(self._matches)}"


def found(matches: Sequence[Place]) -> str:
    """``3 ops, 1 step``."""
    counts = [(sum(match.panel == panel for match in matches), panel[:-1]) for panel in get_args(Panel)]
    return ", ".join(counted(number, word) for number, word in counts if number) or "no match"


def steps_named(steps: Sequence[Named], text: str) -> tuple[Place, ...]:
    """The steps whose names hold a text."""
    wanted = text.casefold()
    return tuple(Place("steps", position) for position, step in enumerate(steps) if wanted in step.name.casefold())


def step_at(steps: Sequence[Named], name: str) -> int | None:
    """Index of the step of that name; None where there is none."""
    return next((position for position, step in enumerate(steps) if step.name == name), None)

"""What every tab can do, so that one set of keys works on all of them."""

from __future__ import annotations

from collections.abc import Callable

from textual.message import Message

from tpuprof.tui.draw.layout import fit
from tpuprof.tui.draw.spans import Glyphs, Line
from tpuprof.tui.terminal.theme import AnyLine
from tpuprof.tui.widgets.actions import MOTION_HELP
from tpuprof.tui.widgets.chrome import FootKey
from tpuprof.tui.widgets.line_canvas import LineCanvas


class Tab(LineCanvas):
    """One page of the app. The app calls these on the shown tab; a tab without a cursor only scrolls."""

    @property
    def foot_keys(self) -> tuple[FootKey, ...]:
        """Its own keys, for the footer."""
        return (FootKey("1-5", "tabs"),)

    @property
    def has_page(self) -> bool:
        """Whether it shows figures."""
        return False

    @property
    def selection(self) -> str | None:
        """The name under the cursor, for yank."""
        return None

    def move(self, across: int, down: int) -> None:
        """One step of a cursor."""
        self.scroll_lines_to(self.scroll_offset.y + down)

    def ends(self, direction: int) -> None:
        """To the first (-1) or last (1) of what the cursor moves over."""
        self.scroll_lines_to(0 if direction < 0 else len(self.lines))

    def page(self, screens: float) -> None:
        """So many screens down."""
        self.scroll_lines_to(self.scroll_offset.y + round(screens * self.size.height))

    def enter(self) -> str:
        """One level deeper: empty where that is done, "details" where the tab's `details` are to be opened."""
        return "details"

    def search(self, text: str) -> str:
        """Looks for a text and moves to its first match; says what was found. An empty text ends the search."""
        return ""

    def end_search(self) -> None:
        """Forgets the text searched for."""
        self.search("")

    def filter(self, text: str) -> str:
        """Shows only what has a text in its name, for tabs with the command; says how much that is."""
        return ""

    def back(self) -> bool:
        """One level back within the tab; False where there is nothing to go back from."""
        return False

    def next_match(self, direction: int) -> str:
        """Moves to the next (1) or previous (-1) match and says which one it is."""
        return ""

    @property
    def commands(self) -> tuple[str, ...]:
        """What keys do on this tab alone (`command`)."""
        return ()

    def command(self, name: str, by: int = 1) -> str:
        """Does one of `commands`; says what came of it, or nothing."""
        return ""

    @property
    def details(self) -> tuple[str, Callable[[int, Glyphs], list[Line]]] | None:
        """Title and text of what Enter opens on what is under the cursor."""
        return None

    @property
    def motions(self) -> tuple[tuple[str, str], ...]:
        """What the motions do here, for help: keys and meaning."""
        return MOTION_HELP

    def verdict_lines(self, width: int, glyphs: Glyphs) -> list[Line]:
        """What it says of the program, in full, for the notes; nothing where the overview's verdict stands."""
        return []

    @property
    def note(self) -> str:
        """A sentence on top of the notes."""
        return ""

    @property
    def search_failed(self) -> bool:
        """Whether the text searched for last can't be searched for."""
        return False

    def detail_line(self, width: int) -> AnyLine:
        """One line on what is under the cursor, where there is room for it."""
        return fit([], width, self.look.glyphs)

    def help_lines(self, width: int, glyphs: Glyphs) -> list[Line]:
        """What the numbers on this tab mean."""
        return []


class OpenText(Message):
    """A text is to be opened above the page."""

    def __init__(self, title: str, lines: Callable[[int, Glyphs], list[Line]]) -> None:
        super().__init__()
        self.title = title
        self.lines = lines


class Pointed(Message):
    """Something else than a key has moved the cursor, or has brought another page; `said` is what to say of it."""

    def __init__(self, said: str = "") -> None:
        super().__init__()
        self.said = said

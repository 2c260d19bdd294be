"""A screen with one page: a line on top, the page with a cursor over its rows, and the footer."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Protocol

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.events import Key, Resize
from textual.screen import Screen

from tpuprof.tui.draw.format import count as counted
from tpuprof.tui.draw.spans import Glyphs
from tpuprof.tui.terminal.clipboard import load_tmux_buffer, write_yank_file
from tpuprof.tui.terminal.theme import AnyLine, palette
from tpuprof.tui.widgets.chrome import (
    FootKey,
    is_too_small,
    keys_line,
    message_line,
    prompt_line,
    too_small_lines,
)
from tpuprof.tui.widgets.line_canvas import LineCanvas, Look
from tpuprof.tui.widgets.pointed import PointedCanvas
from tpuprof.tui.widgets.popup import MOVES, Popup, PopupLayer
from tpuprof.tui.widgets.terminal_app import APP_KEYS, Yanked


class Composed(Protocol):
    """A page that was drawn."""

    @property
    def first_row_line(self) -> int:
        """The line that the table's rows begin on; -1 without."""

    @property
    def first(self) -> int:
        """Index of the first row that shows."""

    @property
    def room(self) -> int:
        """How many rows fit."""


class PageView(Protocol):
    """What the user looks at."""

    @property
    def cursor(self) -> int:
        """Index of the row under the cursor."""

    @property
    def words(self) -> str:
        """The filter."""


class PageScreen(Screen[None]):
    """Takes the keys, to what is open: a popup, the filter, or the page; what the page is, a subclass says.

    Args:
        look: palette and glyphs.
        environ: for the clipboard.
        note: a sentence that the footer shows at first.
        is_alone: it is the whole app, so that leaving it ends the app.

    Attributes:
        view: what the user looks at.
        composed: the page that was drawn last.
    """

    view: PageView
    composed: Composed | None

    BINDINGS: ClassVar[list[BindingType]] = []
    AUTO_FOCUS = ""
    DEFAULT_CSS = """
    PageScreen { layers: base above; }
    PageScreen > #page-head { height: 1; }
    PageScreen > #page-body { height: 1fr; }
    PageScreen > #page-foot { height: 1; }
    PageScreen > #page-tiny { height: 1fr; display: none; }
    PageScreen.-small > #page-head, PageScreen.-small > #page-body { display: none; }
    PageScreen.-small > #page-foot, PageScreen.-small > PopupLayer { display: none; }
    PageScreen.-small > #page-tiny { display: block; }
    """

    def __init__(self, look: Look, environ: Mapping[str, str] | None, note: str, is_alone: bool) -> None:
        super().__init__()
        self.look = look
        self._environ = os.environ if environ is None else environ
        self._flash = note
        self._prompt: str | None = None
        self._is_alone = is_alone
        self.head = LineCanvas(look, self._draw_head, id="page-head")
        self.body = PointedCanvas(look, self._draw_body, self.point_at, self._wheel, id="page-body")
        self.foot = LineCanvas(look, self._draw_foot, background="bar", id="page-foot")
        self.tiny = LineCanvas(look, self._draw_tiny, id="page-tiny")
        self.popups = PopupLayer(look, id="page-popups")

    # --- what a kind of page says

    @property
    def rows(self) -> Sequence[object]:
        """The rows that pass the filter."""
        raise NotImplementedError

    @property
    def actions(self) -> Mapping[str, Callable[[], None]]:
        """The page's own keys; they go before those that move the cursor."""
        raise NotImplementedError

    def draw_head(self, width: int, glyphs: Glyphs) -> AnyLine:
        """The line on top."""
        raise NotImplementedError

    def draw_page(self, width: int, height: int, glyphs: Glyphs) -> Sequence[AnyLine]:
        """The page."""
        raise NotImplementedError

    def foot_keys(self) -> Sequence[tuple[str, str]]:
        """Keys and what they do, for the footer."""
        raise NotImplementedError

    def move(self, rows: int, screens: float) -> None:
        """Moves the cursor by rows and screens."""
        raise NotImplementedError

    def point(self, at: int) -> None:
        """Puts the cursor on a row, or on the nearest that there is."""
        raise NotImplementedError

    def enter(self) -> None:
        """What Enter and a click on the row under the cursor do."""
        raise NotImplementedError

    def number(self, number: int) -> None:
        """A digit from 1 on."""
        raise NotImplementedError

    def filter(self, words: str) -> None:
        """Shows the rows that hold all words."""
        raise NotImplementedError

    # --- widgets

    def compose(self) -> ComposeResult:
        """Head, page and footer."""
        yield from (self.head, self.body, self.foot, self.tiny, self.popups)

    def on_mount(self) -> None:
        """Draws the first frame."""
        self._lay_out(*self.app.size)

    def on_resize(self, event: Resize) -> None:
        """Lays everything out for the new size."""
        self._lay_out(*event.size)

    def _lay_out(self, width: int, height: int) -> None:
        small = is_too_small(width, height)
        self.set_class(small, "-small")
        if small:
            self.tiny.prepare(width, height)
            return
        self.head.prepare(width, 1)
        self.body.prepare(width, height - 2)
        self.foot.prepare(width, 1)
        self.popups.fit(self.app.size)

    # --- drawing

    def redraw(self) -> None:
        """Draws what has changed."""
        for canvas in (self.head, self.body, self.foot):
            canvas.redraw()

    def swap_background(self) -> None:
        """Changes between the dark and the light palette."""
        now = self.look.palette
        self.look = Look(palette(now.color, not now.light), self.look.glyphs)
        for canvas in (self.head, self.body, self.foot, self.tiny, self.popups):
            canvas.set_look(self.look)

    def _draw_head(self, width: int, height: int) -> list[AnyLine]:
        return [self.draw_head(width, self.look.glyphs)]

    def _draw_body(self, width: int, height: int) -> Sequence[AnyLine]:
        return self.draw_page(width, height, self.look.glyphs)

    def _draw_foot(self, width: int, height: int) -> list[AnyLine]:
        glyphs = self.look.glyphs
        if self._prompt is not None:
            return [prompt_line(self._prompt, f"{counted(len(self.rows))} found", width, glyphs)]
        if self._flash:
            return [message_line(self._flash, width, glyphs)]
        return [keys_line([FootKey(key, label) for key, label in self.foot_keys()], width)]

    def _draw_tiny(self, width: int, height: int) -> list[AnyLine]:
        return too_small_lines(width, height, self.look.glyphs)

    # --- keys and mouse

    def on_key(self, event: Key) -> None:
        """Every key but those of the app ends here."""
        if event.key in APP_KEYS:
            return
        event.stop()
        event.prevent_default()
        self.press(event.key, event.character)

    def press(self, key: str, character: str | None) -> None:
        """One key, to what is open: a popup, the filter, or the page."""
        if key == "Q" and self._prompt is None:
            self.leave()
        elif self.popups.popup is not None:
            self.popups.press(key, character)
        elif self._prompt is not None:
            self._prompt_key(key, character or "")
        else:
            self._flash = ""
            self._page_key(key)
            self.redraw()

    def _page_key(self, key: str) -> None:
        act = self.actions.get(key)
        if act is not None:
            act()
        elif key in MOVES:
            self.move(*MOVES[key])
        elif len(key) == 1 and key in "123456789":
            self.number(int(key))

    def _prompt_key(self, key: str, character: str) -> None:
        words = self._prompt or ""
        if key == "escape" or (key == "backspace" and not words):
            self._prompt, words = None, ""
        elif key == "enter":
            self._prompt = None
        elif key == "backspace":
            self._prompt = words = words[:-1]
        elif character.isprintable() and character:
            self._prompt = words = words + character
        if words != self.view.words:
            self.filter(words)
        self.redraw()

    def _wheel(self, by: int) -> None:
        """The wheel moves as a key does."""
        self.press("down" if by > 0 else "up", None)

    def point_at(self, y: int) -> None:
        """A click on a line of the page."""
        composed = self.composed
        if composed is None or self.popups.popup is not None or composed.first_row_line < 0:
            return
        at = y - composed.first_row_line + composed.first
        if not composed.first <= at < min(len(self.rows), composed.first + composed.room):
            return
        if at == self.view.cursor:
            self.enter()
        self.point(at)
        self.redraw()

    def leave(self) -> None:
        """Ends the app, or goes back to the screen below."""
        if self._is_alone:
            self.app.exit()
        else:
            self.dismiss()

    # --- popups, clipboard

    def open(self, popup: Popup) -> None:
        """Opens a popup above the page."""
        self.popups.open(popup, self.app.size)

    def copy(self, text: str) -> None:
        """Copies a text; the footer says where to."""
        self._yank(text.encode("utf-8", "replace").decode())

    @work(thread=True, group="yank", description="yank")
    def _yank(self, text: str) -> None:
        in_tmux = load_tmux_buffer(text, self._environ)
        message = Yanked(text, in_tmux, write_yank_file(text))
        if self.is_running:
            self.post_message(message)

    def on_yanked(self, message: Yanked) -> None:
        """Gives the terminal what was copied, and says where it went."""
        message.stop()
        self.app.copy_to_clipboard(message.text)
        lines = message.text.count("\n") + 1
        self._flash = f"Copied {lines} lines to {message.places}"
        self.redraw()

"""The one kind of screen: a head, a page and a footer, and keys that go to what is open.

`AppScreen` is the base of the main screen and of `PageScreen` (`lists/screen.py`). `ScreenApp` is the app around it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on, work
from textual.app import App, ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.events import Click, Key, MouseScrollDown, MouseScrollUp, Paste, Resize
from textual.screen import Screen

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.base.folders import write_state
from tpuprof.parsers.base.record import replace
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.base.urls import masked
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.terminal import ending
from tpuprof.tui.terminal.clipboard import YANK_FILE, load_tmux_buffer
from tpuprof.tui.terminal.detect import BACKGROUND_FILE, Terminal, kept_background
from tpuprof.tui.terminal.grammar import BY_NAME, KeysAhead
from tpuprof.tui.terminal.theme import AnyLine, palette
from tpuprof.tui.widgets import chrome
from tpuprof.tui.widgets.asking import ABOUT_EXPORT, SCREEN_WORDS, TABLE_WORDS, LineEditor, PromptPopup, remembered
from tpuprof.tui.widgets.chrome import KeyRow, footer
from tpuprof.tui.widgets.driver import Background, TerminalDriver, run_in_front
from tpuprof.tui.widgets.line_canvas import LineCanvas, ScreenLook, picture_of
from tpuprof.tui.widgets.popup import Lines, Popup, PopupLayer
from tpuprof.tui.widgets.tab import Yanked

if TYPE_CHECKING:
    from tpuprof.parsers.files.logdir import Logdir, Run
    from tpuprof.tui.report.page import Report, ShownPage
    from tpuprof.tui.report.shared.exporting import Export, Kind, ShownTable

_SOURCES = "tpuprof.parsers.files.source_lines"  # imported when a line of it is asked for
_EXPORTING = "tpuprof.tui.report.shared.exporting"  # imported when something is written
NOTHING_THERE = "Nothing here answers to a click."
APP_KEYS = ("ctrl+c", "ctrl+q", "ctrl+z", "ctrl+l")  # keys that mean the same whatever is open


class ScreenApp(App[Any]):
    """The app around screens: its keys, and its terminal; `environ` is for the clipboard and the editor."""

    TITLE = chrome.APP_NAME
    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS: ClassVar[str | None] = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c,ctrl+q", "quit", show=False, priority=True),
        Binding("ctrl+z", "suspend_process", show=False, priority=True),
        Binding("ctrl+l", "draw_anew", show=False, priority=True),
    ]

    def __init__(self, terminal: Terminal, environ: Mapping[str, str] | None = None) -> None:
        # Native colours: what the palette says goes to the terminal as it is.
        super().__init__(driver_class=TerminalDriver, ansi_color=True)
        self.look = ScreenLook.of(terminal)
        self.environ = os.environ if environ is None else environ
        self._loop_there: Future[asyncio.AbstractEventLoop] = Future()
        self._errors: list[str] = []
        self._signal: int | None = None

    def on_mount(self) -> None:
        """Asks for the terminal's background, and draws everything when the app comes back from behind others."""
        now = self.look.palette
        if self._driver is not None and now.color != "mono" and now.theme not in ("dark", "light"):
            self._driver.write(Background.ASKED)
        # The terminal comes back empty, and with the size it had: nothing else draws it.
        self.app_resume_signal.subscribe(self, lambda _: self.action_draw_anew())
        self._loop_there.set_result(asyncio.get_running_loop())

    def on_background(self, answer: Background) -> None:
        """Draws for the background that the terminal has; what the user chose stays where the page has its own."""
        if kept_background() is None or self.look.palette.color == "16":
            for screen in self.screen_stack:
                if isinstance(screen, AppScreen):
                    screen.set_background(answer.is_light)

    def action_draw_anew(self) -> None:
        """Writes the whole screen, for a terminal that shows anything else."""
        self.screen.refresh()

    def show(self, mouse: bool) -> int:
        """Shows the screen until the user leaves (0), a signal ends it (128 and its number) or an error does (1).

        Whatever ends it but the user is said on standard error.
        """
        with ending.ended_by_signals(self._leave, self._wake, self._is_spared):
            self.run(mouse=mouse)
        code = self.return_code or 0
        if self._exception is not None and not self._errors:  # one that knows how to show itself
            self._take_error("".join(traceback.format_exception(self._exception)))
        if self._errors or not self._exit:
            ending.write_stderr(f"{''.join(self._errors) or ending.NO_REASON}{ending.PLEASE_REPORT}\n")
            return code or 1
        if self._signal is not None:
            ending.write_stderr(ending.by_signal(self._signal))
        return code

    def _is_spared(self, number: int) -> bool:
        """Whether a key that sends a signal was pressed in another program, which has the terminal now."""
        is_aside = self._driver is not None and not self._driver._auto_restart
        return is_aside and number in (signal.SIGINT, signal.SIGQUIT)

    def _wake(self, number: int) -> None:
        """Wakes the app's loop from another thread, if it runs, after a signal."""
        with contextlib.suppress(FutureTimeout, RuntimeError):
            self._loop_there.result(0).call_soon_threadsafe(lambda: None)
            if isinstance(self._driver, TerminalDriver):
                self._driver.note(number)

    def _fatal_error(self) -> None:
        """Ends the app after an error in this program; what it was is said when the terminal is as it was."""
        self._take_error(traceback.format_exc())
        self.panic()

    def _take_error(self, said: str) -> None:
        """Keeps a traceback, without secrets: Textual's has locals. More than one may come while the app ends."""
        self._errors.append("".join(f"{printable(line)}\n" for line in masked(said, sys.argv).splitlines()))

    def _leave(self, exit_code: int) -> None:
        """Ends the app from another thread, once it runs; one that never will is ended without it."""
        self._signal = exit_code - 128
        with contextlib.suppress(FutureTimeout, RuntimeError):  # the loop may have ended just now
            loop = self._loop_there.result(ending.GRACE_SECONDS)
            loop.call_soon_threadsafe(partial(self.exit, return_code=exit_code))


class AppScreen(Screen[None]):
    """Lays out head, page and footer, and takes the keys: to a popup, to the prompt, else to the page.

    Attributes:
        flash: a sentence that the footer shows until the next key.
        prompt, matches: what is typed in the footer, to search or filter, None while nothing is; and what that finds.
    """

    HEAD_LINES: ClassVar[int] = 1
    BINDINGS: ClassVar[list[BindingType]] = []
    AUTO_FOCUS = ""
    DEFAULT_CSS = """
    AppScreen { layers: base above; }
    AppScreen > #head, AppScreen > #foot { height: 1; }
    AppScreen > #tiny { height: 1fr; display: none; }
    AppScreen.-small > LineCanvas { display: none; }
    AppScreen.-small > #tiny { display: block; }
    """

    def __init__(
        self, look: ScreenLook, environ: Mapping[str, str] | None, flash: str = "", *, id: str | None = None
    ) -> None:
        super().__init__(id=id)
        self.look = look
        self.environ = os.environ if environ is None else environ
        self.flash = flash
        self.prompt: LineEditor | None = None
        self.matches = ""
        self.card: Popup | None = None  # what is under the cursor, in full
        self._pointed: object = None  # where the mouse was clicked last, until a key is pressed
        self.ahead = KeysAhead()
        self.typed: list[str] = []  # into the prompt, the latest last
        self.answers: dict[str, list[str]] = {}  # to questions, by their titles
        self._writing = ""  # the file that is being written
        self.head = LineCanvas(look, self.draw_head, background="bar", id="head")
        self.foot = LineCanvas(look, self._draw_foot, background="bar", id="foot")
        self.tiny = LineCanvas(
            look, lambda width, height: chrome.too_small_lines(Pen(width, self.look.glyphs), height), id="tiny"
        )
        self.popups = PopupLayer(look, self.popup_turned, id="popups")

    # --- what a kind of screen says

    @property
    def page_canvases(self) -> Sequence[LineCanvas]:
        raise NotImplementedError

    def lay_out_page(self, width: int, height: int) -> None:
        """Prepares what is between head and footer for a screen of this size."""
        raise NotImplementedError

    def draw_head(self, width: int, height: int) -> Sequence[AnyLine]:
        raise NotImplementedError

    def foot_line(self, width: int) -> AnyLine:
        """The footer while nothing is typed and there is nothing to say."""
        raise NotImplementedError

    def redraw(self) -> None:
        for canvas in (self.head, *self.page_canvases, self.foot, self.popups):
            canvas.redraw()

    @property
    def page_keys(self) -> Sequence[KeyRow]:
        """The keys that work on the page now."""
        raise NotImplementedError

    def act(self, key: str) -> bool:
        """What a key means on the page; False where it is none of its keys."""
        raise NotImplementedError

    def search(self, text: str) -> str:
        """What is typed into the prompt so far; says what that finds."""
        raise NotImplementedError

    def keep_search(self, text: str) -> bool:
        """Enter was pressed in the prompt; False where it is to stay open, for what is wrong with it."""
        return True

    def end_search(self) -> None:
        raise NotImplementedError

    @property
    def syntax(self) -> str:
        return ""

    def words_for(self, begun: str) -> Sequence[str]:
        """What a word that is begun in the prompt may become."""
        return ()

    @property
    def awaited(self) -> str:
        """Name of what is still being read before keys can mean anything on it; empty where nothing is."""
        return ""

    def waits(self, key: str) -> bool:
        """Whether a key has to wait for what is `awaited`."""
        return True

    def type_kept(self, page: str) -> None:
        """Does what was typed ahead of a page, which is read now."""
        for key, character in self.ahead.take(page):
            self.press(key, character)

    def press_above(self, key: str, character: str | None) -> None:
        """Presses a key on the screen that has opened above this one, or on this, once it stands."""

        def press() -> None:
            if isinstance(screen := self.app.screen, AppScreen):
                screen.press(key, character)

        self.call_later(press)

    def leave(self) -> None:
        raise NotImplementedError

    # --- widgets

    @property
    def popup(self) -> Popup | None:
        """What is open above the page, whether its help is shown or not."""
        return self.popups.below or self.popups.popup

    def popup_turned(self) -> None:
        """A popup opens, closes or is on something else; the card's place on the page is blank while it is open."""
        self.foot.redraw()
        for canvas in self.page_canvases:
            canvas.cover_card(self.card is not None and self.popup is self.card)

    @property
    def _canvases(self) -> tuple[LineCanvas, ...]:
        return (self.head, *self.page_canvases, self.foot, self.tiny, self.popups)

    def compose(self) -> ComposeResult:
        yield from self._canvases

    def on_mount(self) -> None:
        self.lay_out(*self.app.size)

    def on_screen_suspend(self) -> None:
        """Says no longer what it said when another screen opens above it, which gets the next key."""
        self.flash = ""
        self.foot.redraw()

    def on_resize(self, event: Resize) -> None:
        self.lay_out(*event.size)

    def lay_out(self, width: int, height: int) -> None:
        """Shows what there is room for, and draws it before Textual comes round to it: each frame is painted once."""
        small = chrome.is_too_small(width, height)
        self.set_class(small, "-small")
        if small:
            self.tiny.prepare(width, height)
            return
        self.head.prepare(width, self.HEAD_LINES)
        self.lay_out_page(width, height)
        self.foot.prepare(width, 1)
        self.popups.fit(self.app.size)

    def swap_background(self) -> None:
        """Has the colours for the other background, also when it starts again."""
        self.set_background(not self.look.palette.light)
        write_state(BACKGROUND_FILE, "light" if self.look.palette.light else "dark")

    def set_background(self, light: bool) -> None:
        now = self.look.palette
        self.look = replace(self.look, palette=palette(now.color, light, now.theme))
        for canvas in self._canvases if now.light != light else ():
            canvas.set_look(self.look)

    def _draw_foot(self, width: int, height: int) -> list[AnyLine]:
        glyphs = self.look.glyphs
        if self.prompt is not None:
            words = chrome.as_many(self.prompt.offered, width // 2) or self.matches
            return [chrome.prompt_line(self.prompt.text, words, Pen(width, glyphs), self.prompt.cursor, self.syntax)]
        if self.flash:
            return [chrome.message_line(self.flash, Pen(width, glyphs))]
        popup = self.popups.popup
        if popup is None:
            return [self.foot_line(width)]
        return [chrome.keys_line(footer(popup.keys), width, 2 if popup.about is not None else 1)]

    # --- keys

    def on_key(self, event: Key) -> None:
        """Takes a key, at once: a binding would do it after the keys that came in the same moment."""
        if event.key not in APP_KEYS and self.press(event.key, event.character):
            event.stop()
            event.prevent_default()

    def press(self, key: str, character: str | None) -> bool:
        """Gives a key to what is open; False where it means nothing there."""
        popup, self._pointed = self.popups.popup, None
        if self.flash:
            self.flash = ""
            self.foot.redraw()
        awaited = self.awaited if popup is None and self.prompt is None else ""
        if key == "Q" and self.prompt is None and (popup is None or not popup.is_typing):
            self.leave()
        elif awaited and key == "escape" and self.ahead.forget():
            self.flash = "What was typed ahead is forgotten; Esc again cancels."
            self.foot.redraw()
        elif awaited and key != "escape" and (self.ahead.is_typing(awaited) or self.waits(key)):
            self.flash = self.ahead.keep(awaited, key, character)
            self.foot.redraw()
        elif popup is not None and self.popups.press_on_row(key, lambda: self.page_keys, self.act, self.copy):
            pass
        elif popup is not None:
            if said := self.popups.press(key, character):
                self.flash = said
                self.foot.redraw()
        elif self.prompt is not None:
            self._press_in_prompt(self.prompt, key, character)
        else:
            return self.act(key)
        return True

    def on_click(self, event: Click) -> None:
        """Hands a click to the canvas under it, but none below a popup; says where there is nothing to do."""
        canvas, region = self.get_widget_at(*event.screen_offset)
        (x, y), here = event.screen_offset - region.offset, (canvas, event.screen_offset)
        if not isinstance(canvas, LineCanvas):
            return
        is_below = self.popups.popup is not None and canvas not in (self.popups, self.foot)
        key = None if is_below else canvas.clicked(x, y + canvas.scroll_offset.y, here == self._pointed)
        if key:
            self.press(key, None)
        else:
            self.flash = "" if key is not None else BY_NAME["quit"].absent if is_below else NOTHING_THERE
            self.redraw()
        self._pointed = here

    @on(MouseScrollDown)
    @on(MouseScrollUp)
    def _wheel(self, event: MouseScrollDown | MouseScrollUp) -> None:
        self.press("down" if isinstance(event, MouseScrollDown) else "up", None)

    def _press_in_prompt(self, prompt: LineEditor, key: str, character: str | None) -> None:
        if key == "escape" or (key == "backspace" and not prompt.text):
            self.end_search()
            self.prompt = None
        elif key == "enter":
            remembered(self.typed, prompt.text)
            if self.keep_search(prompt.text):
                self.prompt = None
        elif prompt.press(key, character):
            self.matches = self.search(prompt.text)
        self.redraw()

    def open_prompt(self, text: str = "", matches: str = "") -> None:
        self.prompt, self.matches, self.flash = LineEditor(text, self.typed, self.words_for), matches, ""

    def on_paste(self, event: Paste) -> None:
        """Puts a text of the clipboard into the line that is open, if one is."""
        popup = self.popups.popup
        if isinstance(popup, PromptPopup):
            popup.editor.paste(event.text)
            self.popups.redraw()
        elif popup is None and self.prompt is not None:
            self.prompt.paste(event.text)
            self.matches = self.search(self.prompt.text)
            self.redraw()

    # --- popups, clipboard, editor

    def open_editor(self, path: str, line: int) -> str:
        """Runs ``$VISUAL``, ``$EDITOR`` or vi on a source line while the app steps aside; says what went wrong.

        ``+LINE`` before the name is what vi, nano, emacs and most others understand.
        """
        command = self.environ.get("VISUAL") or self.environ.get("EDITOR") or "vi"
        words: list[str] = []
        with contextlib.suppress(ValueError):
            words = shlex.split(command)
        if not words or not os.path.isfile(path):
            return f"{command} can't be run." if not words else f"{path} no longer exists."
        wrong = ""
        try:
            with self.app.suspend():
                try:
                    run_in_front([*words, f"+{line}", os.path.abspath(path)])
                except OSError as error:  # outside, it would keep the app from coming back
                    wrong = f"{words[0]} can't be run: {error.strerror}."
        except SuspendNotSupported:
            return "This terminal can't run an editor."
        return wrong

    def edit_source(self, source: str | None) -> str:
        """Opens the user's editor at ``path:line``, where that is known and the file is here; says what came of it."""
        if not source:
            return BY_NAME["edit"].absent
        excerpt = import_module(_SOURCES).source_excerpt(source)
        if excerpt is None:
            is_whole = source.startswith("/")
            where = "on this machine." if is_whole else "below this folder: start tpuprof-tui where the sources are."
            return f"{printable(source)} is not {where}"
        wrong = self.open_editor(excerpt.path, excerpt.first_line + excerpt.marked)
        return wrong or f"Opened {printable(source)} in your editor."

    def export_of(
        self,
        name: str,
        shown: ShownTable | ShownPage | None,
        run: Run | None,
        logdir: Logdir | None = None,
        report_of: Callable[[str], Report[Any]] | None = None,
    ) -> Export:
        """What of a page with that name can be written: see `tui.report.shared.exporting.export_of`."""
        export: Export = import_module(_EXPORTING).export_of(name, shown, self.picture, run, logdir, report_of)
        return export

    def ask_export(self, export: Export, words: Sequence[str] = (), about: Lines = ABOUT_EXPORT) -> None:
        """Asks which file to write what is shown to; the end of its name says what is written, as `words` say."""
        if self._writing:
            self.flash = f"Still writing {printable(self._writing)}."
            return
        title, has_table = "Write what is shown", ".csv" in export.kinds
        words = words or (*(TABLE_WORDS if has_table else ()), *SCREEN_WORDS)
        history, answered = self.answers.setdefault(title, []), partial(self._export, export)
        asked = PromptPopup(self.look, title, words, export.path, answered, about, does="write", history=history)
        self.popups.open(asked, self.app.size, above=True)

    def _export(self, export: Export, answer: str) -> str:
        """Begins to write a file; says what is wrong with its name."""
        path = os.path.expanduser(answer.strip())
        try:
            kind = import_module(_EXPORTING).kind_of(path, export)
        except (ProfileError, OSError) as error:
            return _not_written(path, error)
        self._writing, self.flash = path, f"Writing {printable(path)}"
        self._write(path, kind, export.is_private)
        return ""

    @work(thread=True, group="write", description="write")
    def _write(self, path: str, kind: Kind, is_private: bool) -> None:
        try:
            said = f"Wrote {import_module(_EXPORTING).write(path, kind, is_private)} to {printable(path)}"
        except (ProfileError, OSError) as error:
            said = _not_written(path, error)
        self.call_later(self._written, said)

    def _written(self, said: str) -> None:
        self._writing, self.flash = "", said
        self.redraw()

    @property
    def picture(self) -> Callable[[str], str]:
        """Draws the page as it stands, without what is open above it, as ``svg``, ``html`` or ``txt``."""
        canvases = (self.head, *self.page_canvases)
        lines = [canvas.render_line(y) for canvas in canvases if canvas.display for y in range(canvas.size.height)]
        return partial(picture_of, lines, self.app.size.width, self.look.palette.light, title=chrome.APP_NAME)

    def open(self, popup: Popup) -> None:
        self.popups.open(popup, self.app.size, self.page_keys if popup.is_card else ())

    @work(thread=True, group="yank", description="yank")
    def copy(self, text: str) -> None:
        """Copies a text as one line that does nothing where it is pasted; the footer says where to."""
        text = printable(text)
        message = Yanked(text, load_tmux_buffer(text, self.environ), write_state(YANK_FILE, text))
        if self.is_running:
            self.post_message(message)

    def on_yanked(self, message: Yanked) -> None:
        """Gives the terminal what was copied, and says where it went."""
        message.stop()
        self.app.copy_to_clipboard(message.text)
        tmux = "tmux, " if message.in_tmux else ""
        self.flash = f"Copied to {tmux}the terminal (if it takes OSC 52) and {message.where}"
        self.redraw()


def _not_written(path: str, error: ProfileError | OSError) -> str:
    if isinstance(error, ProfileError):
        return f"{error.sentence} Try: {error.hint}." if error.hint else error.sentence
    return f"{printable(path)} can't be written: {(error.strerror or str(error)).lower()}."

"""The app itself: tabs under a header, keys, and what the loading thread reports."""

from __future__ import annotations

import os
import time
from ast import literal_eval
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Click, Key, Resize
from textual.geometry import Size
from textual.screen import Screen

from tpuprof.parsers.files.remote.urls import shown
from tpuprof.tui.app.listings import heading, help_lines, note_lines, problems_of, sentences
from tpuprof.tui.app.loader import FindRuns, OpenSession, find_runs, open_session
from tpuprof.tui.app.loading import INPUT_TAB, MEMORY_TAB, OPS_TAB, TIMELINE_TAB
from tpuprof.tui.app.options import AppOptions
from tpuprof.tui.app.watching import WatchingApp
from tpuprof.tui.draw.spans import Glyphs, Line
from tpuprof.tui.pages.input.view import InputPipelineTab
from tpuprof.tui.pages.memory.view import MemoryTab, OpenChoice
from tpuprof.tui.pages.ops.view import HEADLINE_LINES, OpsTab, gutter_lines
from tpuprof.tui.pages.overview.view import OverviewTab
from tpuprof.tui.pages.timeline.view import OpenMeasurement, TimelineTab
from tpuprof.tui.terminal.clipboard import load_tmux_buffer, write_yank_file
from tpuprof.tui.terminal.detect import Terminal, detect
from tpuprof.tui.terminal.theme import AnyLine, palette
from tpuprof.tui.widgets.actions import ACTIONS, MOTIONS, TAB_NAMES, Action, Situation, by_name, key_of, possible
from tpuprof.tui.widgets.chrome import (
    APP_NAME,
    FootKey,
    header_lines,
    is_too_small,
    keys_line,
    message_line,
    progress_line,
    prompt_line,
    tab_at,
    too_small_lines,
)
from tpuprof.tui.widgets.line_canvas import LineCanvas, Look
from tpuprof.tui.widgets.popup import Choice, Chooser, Popup, PopupLayer, Reader
from tpuprof.tui.widgets.states import Searching
from tpuprof.tui.widgets.tab import OpenText, Pointed, Tab
from tpuprof.tui.widgets.terminal_app import APP_KEYS, Yanked, hold_terminal

SHORT = 28
"""Rows below which the line on what is under the cursor gives way to the page."""


class Header(LineCanvas):
    """The two lines on top; a click on a tab shows it."""

    def on_click(self, event: Click) -> None:
        """Shows the tab under the mouse."""
        app = self.app
        if event.y == 1 and isinstance(app, TpuprofApp) and app.popups.popup is None:
            index = tab_at(event.x, app.tab_index, self.size.width)
            if index is not None:
                app.action_show_tab(index)


class MainScreen(Screen[None]):
    """The one screen. Keys go to what is open, a popup or the search prompt, before they mean anything else."""

    BINDINGS: ClassVar[list[BindingType]] = []

    def on_key(self, event: Key) -> None:
        """Hands a key on."""
        app = self.app
        if isinstance(app, TpuprofApp) and app.take_key(event.key, event.character):
            event.stop()


def _parsed(action: str) -> tuple[str, tuple[object, ...]]:
    """Name and arguments of an action as it stands in the tables: ``move(0, 1)``."""
    name, bracket, rest = action.partition("(")
    arguments = literal_eval(f"({rest[:-1]},)") if bracket else ()
    return name, arguments


_LATER = ("quit", "suspend_process")
"""Actions that are Textual's own."""


def _at_once() -> dict[str, tuple[tuple[str, tuple[object, ...]], ...]]:
    """What each key does when nothing is open above the page: the first that is possible, where it does several."""
    named = [*((at.keys, at.name) for at in ACTIONS), *((tuple(keys.split(",")), name) for keys, name in MOTIONS)]
    found: dict[str, tuple[tuple[str, tuple[object, ...]], ...]] = {}
    for keys, action in named:
        for key in keys if action not in _LATER else ():
            found[key] = (*found.get(key, ()), _parsed(action))
    return found


_AT_ONCE = _at_once()


class TpuprofApp(WatchingApp):
    """Shows the profiles at a path.

    Args:
        path: anything `parsers.files.logdir.open_logdir` understands.
        options: what the command line asked for.
        terminal: what the terminal can do; read from the environment where it is not given.
        find: how to find runs; a test puts its own here.
        open_session: how to open one; likewise.
        now: seconds since 1970, for the age of runs.
    """

    CSS_PATH = "app.tcss"
    TITLE = APP_NAME
    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS: ClassVar[str | None] = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(",".join(at.keys), at.name, at.title, show=False) for at in ACTIONS if at.keys),
        *(Binding(keys, action, show=False) for keys, action in MOTIONS),
    ]

    def __init__(
        self,
        path: str,
        options: AppOptions,
        terminal: Terminal | None = None,
        *,
        find: FindRuns = find_runs,
        open_session: OpenSession = open_session,
        now: Callable[[], float] = time.time,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(path, options, find, open_session)
        self.environ = os.environ if environ is None else environ
        self.terminal = terminal or detect(
            self.environ, color=options.color, ascii_only=options.ascii, mouse=options.mouse
        )
        self.look = Look.of(self.terminal)
        self._now = now
        self._prompt: str | None = None
        self._is_filter = False
        self._found = ""
        self._said = ""
        self.header = Header(self.look, self._draw_header, background="bar", id="header")
        self.overview = OverviewTab(self.look, id="tab-0")
        self.input = InputPipelineTab(self.look, id=f"tab-{INPUT_TAB}")
        self.ops = OpsTab(self.look, id=f"tab-{OPS_TAB}")
        self.timeline = TimelineTab(self.look, id=f"tab-{TIMELINE_TAB}")
        self.memory = MemoryTab(self.look, id=f"tab-{MEMORY_TAB}")
        self.tabs: tuple[Tab, ...] = (self.overview, self.input, self.ops, self.timeline, self.memory)
        self.tab_index = options.tab
        self.tab.add_class("-shown")
        self.detail = LineCanvas(self.look, self._draw_detail, id="detail")
        self.footer = LineCanvas(self.look, self._draw_footer, background="bar", id="footer")
        self.tiny = LineCanvas(self.look, self._draw_tiny, id="tiny")
        self.gutter = LineCanvas(self.look, lambda _, height: gutter_lines(height, self.look.glyphs), id="gutter")
        self.popups = PopupLayer(self.look, id="popups")

    # --- widgets

    def get_default_screen(self) -> MainScreen:
        """The screen that everything is on."""
        return MainScreen(id="_default")

    def compose(self) -> ComposeResult:
        """Header, tabs, detail line and footer."""
        yield from (self.header, *self.tabs, self.detail, self.footer, self.tiny, self.gutter, self.popups)

    def on_mount(self) -> None:
        """Draws the first frame, and only then starts to look for profiles."""
        self.overview.show_state(Searching(shown(self.path)))
        self._lay_out(self.size)
        hold_terminal(self)
        self.call_after_refresh(self.load, self._wanted)

    def on_unmount(self) -> None:
        """Lets a decoding thread end at its next chunk, and a capture at once: leaving does not wait for them."""
        self._loader.cancel()
        self.end_watching()
        self.stop_capture()
        self.stop_capture()

    def on_resize(self, event: Resize) -> None:
        """Lays everything out for the new size."""
        self._lay_out(event.size)

    def _lay_out(self, size: Size) -> None:
        """Shows what there is room for, and draws it before Textual comes round to it: each frame is painted once."""
        width, height = size
        small, short = is_too_small(width, height), height < SHORT
        self.screen.set_class(small, "-small")
        self.screen.set_class(short, "-short")
        if small:
            self.tiny.prepare(width, height)
            return
        self.header.prepare(width, 2)
        self.tab.prepare(width, height - (3 if short else 4))
        self.detail.prepare(width, 1)
        self.footer.prepare(width, 1)
        self.popups.fit(size)
        self._place_gutter()

    def _place_gutter(self) -> None:
        """Puts the gutter over the rule between list and card, where the shown tab has one."""
        column = self.ops.gutter_column(self.size.width) if self.tab is self.ops else None
        top = 2 + HEADLINE_LINES
        rows = self.size.height - top - (1 if self.size.height < SHORT else 2)
        is_there = column is not None and rows > 0
        if is_there:
            self.gutter.styles.offset = (column or 0, top)
            self.gutter.styles.height = rows
        self.gutter.display = is_there

    @property
    def tab(self) -> Tab:
        """The tab that is shown."""
        return self.tabs[self.tab_index]

    def _open(self, popup: Popup) -> None:
        self.popups.open(popup, self.size)

    def take_key(self, key: str, character: str | None) -> bool:
        """Gives a key to the popup or the prompt that is open; False where it is neither's, or one for leaving."""
        self._clear_flash()
        popup = self.popups.popup
        is_prompting = self._prompt is not None
        if key in APP_KEYS:
            return False
        if popup is None and not is_prompting:
            return self._act(key)
        if key == "Q" and not is_prompting and popup is not None and not popup.is_typing:
            return False
        if popup is not None and key in popup.passes:
            self.popups.press("escape", None)
            return self._act(key)
        if popup is not None:
            self.popups.press(key, character)
        else:
            self._prompt_key(key, character or "")
        return True

    def _act(self, key: str) -> bool:
        """Does what a key means, at once: a binding would do it after the keys that came in the same moment."""
        for name, arguments in _AT_ONCE.get(key, ()):
            if self.check_action(name, arguments):
                getattr(self, f"action_{name}")(*arguments)
                break
        return key in _AT_ONCE

    # --- drawing

    def redraw_chrome(self) -> None:
        """Draws header, detail line and footer again, where they changed."""
        self._place_gutter()
        for canvas in (self.header, self.detail, self.footer):
            canvas.redraw()

    def _draw_header(self, width: int, height: int) -> list[AnyLine]:
        page = self.overview.page_shown
        where = shown(self.path), self.logdir, self.run_shown, self.host_shown
        words = heading(*where, page, self.tab_index, self.new_run)
        words = replace(words, notes_key=key_of(by_name("notes"), self.situation))
        return header_lines(words, width, self.look.glyphs)

    def _draw_detail(self, width: int, height: int) -> list[AnyLine]:
        return [self.tab.detail_line(width)]

    def _draw_footer(self, width: int, height: int) -> list[AnyLine]:
        glyphs = self.look.glyphs
        if self._prompt is not None:
            return [prompt_line(self._prompt, self._said, width, glyphs)]
        if self._flash:
            return [message_line(self._flash, width, glyphs)]
        if self.is_capturing:
            return [message_line(self.capture_words, width, glyphs)]
        if self.comparing_words:
            return [message_line(self.comparing_words, width, glyphs)]
        if self._loader.is_loading and self._progress is not None:
            return [progress_line(self._progress.progress, self._progress.seconds_left, width, glyphs)]
        return [keys_line(self._foot_keys(), width)]

    def _foot_keys(self) -> list[FootKey]:
        """At most seven keys: the tab's own, then what is possible now, help and quit."""
        situation = self.situation
        keys = list(self.tab.foot_keys)
        for action in map(by_name, ("cancel_load", "next_match", "search", "runs", "reload", "yank")):
            if action.possible(situation) and len(keys) < 5:
                keys.append(FootKey(key_of(action, situation), action.short))
        return [*keys, FootKey("?", "help"), FootKey("q", "quit")]

    def _draw_tiny(self, width: int, height: int) -> list[AnyLine]:
        return too_small_lines(width, height, self.look.glyphs)

    # --- what is possible

    @property
    def situation(self) -> Situation:
        """What the screen is at."""
        return Situation(
            tab=self.tab_index,
            loading=self._loader.is_loading,
            run_count=len(self.logdir.runs) if self.logdir else 0,
            host_count=len(self.run_shown.hosts) if self.run_shown else 0,
            note_count=len(sentences(self.overview.page_shown, problems_of(self.logdir, self.run_shown))),
            has_page=self.tab.has_page,
            selection=self.tab.selection,
            searching=bool(self._found),
            colorful=self.terminal.color != "mono",
            commands=self.tab.commands,
            can_capture=not self.is_capturing and not self.options.only_hlo,
        )

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys whose action would do nothing now do nothing."""
        called = f"{action}({', '.join(map(repr, parameters))})"
        named = next((at for at in ACTIONS if at.name in (action, called)), None)
        if named is None or named.name.startswith("show_tab") or not self.is_running:
            return True
        return named.possible(self.situation)

    def _clear_flash(self) -> None:
        """A message in the footer stays until the next key."""
        if self._flash:
            self._flash = ""
            self.footer.redraw()

    # --- actions

    def action_show_tab(self, index: int) -> None:
        """Shows a tab."""
        if index == self.tab_index:
            return
        self._came_from = None
        self._end_search()
        with self.batch_update():
            size = self.tab.size
            self.tab.remove_class("-shown")
            self.tab_index = index
            self.tab.prepare(*size)
            self.tab.add_class("-shown")
            self.redraw_chrome()
        self.load_tab()

    def action_next_tab(self, by: int) -> None:
        """Shows the next or previous tab, around the end."""
        self.action_show_tab((self.tab_index + by) % 5)

    def action_move(self, across: int, down: int) -> None:
        """One step of the tab's cursor."""
        self.tab.move(across, down)
        self.redraw_chrome()

    def action_ends(self, direction: int) -> None:
        """To the first or last."""
        self.tab.ends(direction)
        self.redraw_chrome()

    def action_page(self, screens: float) -> None:
        """Up or down by screens."""
        self.tab.page(screens)

    def action_enter(self) -> None:
        """Opens what is under the cursor."""
        if self.tab.enter() == "details" and self.tab.details is not None:
            title, lines = self.tab.details
            jumps = self.tab is self.overview and bool(self.tab.commands)
            self._open(Reader(self.look, title, lines, ("o", "O") if jumps else ()))
        self.redraw_chrome()

    def on_open_text(self, message: OpenText) -> None:
        """A tab has a text to read."""
        self._open(Reader(self.look, message.title, message.lines))

    def on_open_choice(self, message: OpenChoice) -> None:
        """A tab has a list to choose from."""
        self._open(Chooser(self.look, message.title, message.columns, message.choices, message.chosen, message.start))

    def on_pointed(self, message: Pointed) -> None:
        """A tab shows something else, not by a key."""
        self._flash = message.said
        self.redraw_chrome()

    def on_open_measurement(self, message: OpenMeasurement) -> None:
        """What ran in an interval is counted."""
        from tpuprof.tui.pages.timeline.popup import Measured  # noqa: PLC0415 - brings numpy

        self._open(
            Measured(
                self.look,
                message.measurement,
                message.kinds,
                message.use,
                partial(self.timeline.select, message.timeline),
            )
        )

    def action_go_back(self) -> None:
        """Cancels what loads, ends a search, or goes back to where a jump came from, else the overview; never quits."""
        if self.is_capturing:
            self.stop_capture()
        elif self.comparing_words:
            self.stop_comparing()
        elif self._loader.is_loading:
            self.action_cancel_load()
        elif self._found:
            self._end_search()
            self.redraw_chrome()
        elif self.tab.back():
            self.redraw_chrome()
        elif self.tab_index != 0:
            self.action_show_tab(self._came_from or 0)

    def action_notes(self) -> None:
        """Shows the verdict in full, and all that is wrong or unknown."""
        self._open(Reader(self.look, "Verdict and notes", self._note_lines))

    def action_help(self) -> None:
        """Shows the keys of this tab and what its numbers mean."""
        self._open(Reader(self.look, "Help", self._help_lines))

    def action_palette(self) -> None:
        """Lists what is possible now."""
        now = self.situation
        choices = [Choice((action.title, key_of(action, now)), action) for action in possible(now)]
        title = "What can be done now"
        self._open(Chooser(self.look, title, ("action", "key"), choices, self._run_chosen, typing=True))

    def _run_chosen(self, action: Action) -> None:
        self.call_later(self.run_action, action.name)

    def action_swap_background(self) -> None:
        """Changes between the dark and the light palette."""
        now = self.look.palette
        self.look = Look(palette(now.color, not now.light), self.look.glyphs)
        for canvas in (self.header, *self.tabs, self.detail, self.footer, self.tiny, self.gutter, self.popups):
            canvas.set_look(self.look)

    def action_yank(self) -> None:
        """Copies the selected name."""
        text = self.tab.selection
        if text is not None:
            self._yank(text.encode("utf-8", "replace").decode())

    @work(thread=True, group="yank", description="yank")
    def _yank(self, text: str) -> None:
        tmux = load_tmux_buffer(text, self.environ)
        self._post_if_running(Yanked(text, tmux, write_yank_file(text)))

    def on_yanked(self, message: Yanked) -> None:
        """Gives the terminal what was copied, and says where it went."""
        self.copy_to_clipboard(message.text)
        self._flash = f"Copied to {message.places}"
        self.redraw_chrome()

    # --- search

    def action_search(self) -> None:
        """Opens the prompt."""
        self._prompt, self._found, self._said, self._flash, self._is_filter = "", "", "", "", False
        self.redraw_chrome()

    def action_filter(self) -> None:
        """Opens the prompt for a filter of tracks."""
        self._prompt, self._said, self._flash, self._is_filter = "", "", "", True
        self.redraw_chrome()

    def _prompt_key(self, key: str, character: str) -> None:
        """One key in the prompt."""
        if key == "escape" or (key == "backspace" and not self._prompt):
            self._end_search()
        elif key == "enter":
            if self._prompt and self.tab.search_failed:
                return  # what is wrong with it stands beside it
            kept = bool(self._prompt)
            self._prompt = None
            if not kept:
                self._end_search()
        elif key == "backspace" or character.isprintable():
            self._prompt = (self._prompt or "")[:-1] if key == "backspace" else (self._prompt or "") + character
            if self._is_filter:
                self._said = self.tab.filter(self._prompt)
            else:
                self._found = self._said = self.tab.search(self._prompt)
        self.redraw_chrome()

    def action_next_match(self, direction: int) -> None:
        """Next or previous match."""
        self._flash = self.tab.next_match(direction)
        self.redraw_chrome()

    def _end_search(self) -> None:
        if self._prompt is not None and self._is_filter:
            self._prompt = None
            self.tab.filter("")
            return
        self._prompt, self._found = None, ""
        self.tab.end_search()

    # --- texts

    def _note_lines(self, width: int, glyphs: Glyphs) -> list[Line]:
        problems = problems_of(self.logdir, self.run_shown)
        words = self.tab.verdict_lines(width, glyphs)
        first = ("Ops" if self.tab is self.ops else TAB_NAMES[self.tab_index], self.tab.note)
        return note_lines(self.overview.page_shown, problems, first, width, glyphs, words)

    def _help_lines(self, width: int, glyphs: Glyphs) -> list[Line]:
        return help_lines(self.situation, self.tab.motions, self.tab.help_lines(width, glyphs), width, glyphs)

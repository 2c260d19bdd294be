"""The app: its main screen, which has the tabs and hands what keys ask for to the parts."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from textual.geometry import Region
from typing_extensions import Self

from tpuprof.parsers.base.urls import printable_url
from tpuprof.tui.app.capture import Captures
from tpuprof.tui.app.context import AppPart, N, WorkerNews
from tpuprof.tui.app.current_run import FIRST, CurrentRun, Jumps
from tpuprof.tui.app.keys import actions
from tpuprof.tui.app.keys.actions import (
    OF_THE_APP,
    UNREAD,
    VERB_OF_MOTION,
    Action,
    ScreenState,
    by_name,
    meant,
    why_nothing,
)
from tpuprof.tui.app.keys.searches import Searches
from tpuprof.tui.app.keys.waiting import Waiting
from tpuprof.tui.app.listings import (
    ABOUT_NOTES,
    ABOUT_PALETTE,
    header_lines,
    heading,
    help_lines,
    note_lines,
    sentences,
    tab_at,
)
from tpuprof.tui.app.loader import FindRuns, OpenSession, find_runs, open_session
from tpuprof.tui.app.options import AppOptions
from tpuprof.tui.app.runs import Comparisons, ListPopups
from tpuprof.tui.app.watch import RunWatcher
from tpuprof.tui.draw.layout import gutter_lines
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages import TAB_NAMES, TABS, load_above, report_named
from tpuprof.tui.terminal.detect import Terminal, detect
from tpuprof.tui.terminal.grammar import BY_NAME
from tpuprof.tui.terminal.theme import AnyLine
from tpuprof.tui.widgets.choosing import Choice, ChoicePopup
from tpuprof.tui.widgets.chrome import KeyRow, footer, is_too_small, keys_line, message_line, progress_line
from tpuprof.tui.widgets.line_canvas import LineCanvas, ScreenLook
from tpuprof.tui.widgets.popup import ABOUT_HELP, Lines, Popup, TextPopup
from tpuprof.tui.widgets.screen import AppScreen, ScreenApp
from tpuprof.tui.widgets.states import Searching, state_lines
from tpuprof.tui.widgets.tab import CursorMoved, OpenPopup, OpenScreen, PageWanted, Tab

SHORT = 28  # rows below which the line on what is under the cursor gives way to the page
RULE_CELLS = 3  # cells of the rule between list and card, as its style says

_JUMPS = {
    "same_op": KeyRow("there", "go there", "Go to its op, step or page"),
    "on_timeline": KeyRow("timeline", "timeline", "Go to its longest run on the timeline"),
}


class MainScreen(AppScreen):
    """The tabs under a header: the stage of the app's parts.

    Attributes:
        tabs, tab_name: all tabs by name, in their order, and the name of the one that is shown. One plain tab stands
            for all until the first frame is painted.
        shown: what they show.
    """

    HEAD_LINES = 2
    DEFAULT_CSS = """
    MainScreen > #head { height: 2; }
    MainScreen > #detail { height: 1; }
    /* Over the rule between list and card: the terminal is only sent the side of it that changed. */
    MainScreen > #rule { layer: above; width: 3; display: none; }
    MainScreen > Tab { height: 1fr; display: none; }
    MainScreen > Tab.-shown { display: block; }
    MainScreen.-small > Tab.-shown { display: none; }
    /* Where rows are few, the tables need them more than the line on what is under the cursor. */
    MainScreen.-short > #detail { display: none; }
    """

    def __init__(
        self,
        path: str,
        options: AppOptions,
        terminal: Terminal,
        environ: Mapping[str, str],
        find: FindRuns,
        open_session: OpenSession,
        now: Callable[[], float],
    ) -> None:
        look = ScreenLook.of(terminal)
        super().__init__(look, environ, id="_default")
        # What the tabs show with is imported when the first frame stands.
        self._searching = Tab(look, partial(self._draw_searching, path), classes="-shown")
        self.tabs: Mapping[str, Tab] = dict.fromkeys(TAB_NAMES, self._searching)
        self.tab_name = TAB_NAMES[options.tab]
        self.detail = LineCanvas(look, lambda width, _: [self.tab.detail_line(width)], id="detail")
        self.rule = LineCanvas(look, lambda _, height: gutter_lines(height, self.look.glyphs), id="rule")
        self.comparisons = Comparisons(self, options)
        self.current_run = CurrentRun(self, path, options, find, open_session)
        self.jumps = Jumps(self, self.current_run)
        self.captures = Captures(self, self.current_run, options.demo, options.only_hlo)
        self.lists = ListPopups(
            self, self.current_run, None if options.only_hlo else self.comparisons.compare, now, options
        )
        self.watcher = RunWatcher(self, self.current_run, options, self.captures, self.lists, now)
        self.current_run.loaded = self.watcher.begin  # what was asked for is there: time to look for what comes
        self.current_run.above = {"hosts": self.lists.show_hosts, "graph": self.jumps.show_graph}
        self.searches, self.waiting = Searches(self), Waiting(self, lambda: self.current_run)
        self._actions = self._named_actions()
        self._can_capture = not options.only_hlo
        self._card: TextPopup | None = None  # that on what is under the cursor, in full

    # --- the stage

    @property
    def tab(self) -> Tab:
        """The tab that is shown."""
        return self.tabs[self.tab_name]

    def show_tab(self, name: str) -> None:
        """Shows a tab, and loads what it lacks."""
        if name == self.tab_name:
            return
        self.jumps.forget()
        self.prompt = None
        with self.app.batch_update():
            size = self.tab.size
            self.tab.remove_class("-shown")
            self.tab_name = name
            self.tab.prepare(*size)
            self.tab.add_class("-shown")
            self.redraw()
        self.current_run.load_tab()
        self.waiting.tab_turned()

    def redraw(self) -> None:
        """Draws header, detail line, footer and what is open above the page again, where they changed."""
        self._place_rule()
        for canvas in (self.head, self.detail, self.foot, self.popups):
            canvas.redraw()

    def open_screen(self, name: str, content: object) -> None:
        """Opens a screen of the registry above this one."""
        self.app.push_screen(load_above(name)(content, self.look, environ=self.environ))
        self.waiting.opened_above()

    def open(self, popup: Popup) -> None:
        """Opens a popup above the page."""
        super().open(popup)
        self.waiting.opened_above()

    def work(self, group: str, job: Callable[[], object], *, exclusive: bool = True) -> None:
        """Does a job on a thread."""
        self.run_worker(job, group=group, description=group, exclusive=exclusive, thread=True)

    def post_news(self, part: AppPart[N], news: N) -> None:
        """Hands what a worker found to its part, on the screen's thread."""
        if self.is_running:
            self.post_message(WorkerNews(part, news))

    def on_worker_news(self, message: WorkerNews) -> None:
        """A worker has news for its part; everything that changes is painted at once."""
        with self.app.batch_update():
            message.part.take(message.news)
            self.jumps.tell_source()
            self.waiting.tab_turned()

    # --- widgets

    @property
    def page_canvases(self) -> Sequence[LineCanvas]:
        """The tabs, the line on what is under the cursor, and the rule over one of them."""
        return (*dict.fromkeys(self.tabs.values()), self.detail, self.rule)

    def on_mount(self) -> None:
        """Draws the first frame, and only then loads the tabs and starts to look for profiles."""
        self.call_after_refresh(self._begin)

    def _draw_searching(self, path: str, width: int, height: int) -> Sequence[AnyLine]:
        return state_lines(Searching(printable_url(path)), Pen(width, self.look.glyphs), height)

    def refresh(self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False) -> Self:
        """Paints, where a widget comes or goes, what that changes, and not the whole screen."""
        return super().refresh(*regions, repaint=repaint and not layout, layout=layout, recompose=recompose)

    async def _begin(self) -> None:
        """Puts the tabs in the place of what stood there in the first frame, unless a key has ended the app by now."""
        if not self.is_attached:
            return
        tabs = {tab.name: tab.load_view()(self.look, id=f"tab-{tab.name}") for tab in TABS}
        await self.mount(*tabs.values(), before=self.detail)
        size, self.tabs = self._searching.size, tabs
        self.tab.prepare(*size)
        self.tab.add_class("-shown")
        self._searching.remove_class("-shown").remove()
        self.call_after_refresh(self._load)

    def _load(self) -> None:
        self.waiting.has_begun = True
        self.current_run.begin()

    def on_unmount(self) -> None:
        """Lets a decoding thread end at its next chunk, and a capture at once: leaving does not wait for them."""
        for part in (self.current_run, self.watcher, self.comparisons, self.lists, self.captures):
            part.end()

    def lay_out_page(self, width: int, height: int) -> None:
        """Prepares the shown tab and the line on what is under the cursor, where there is room for it."""
        short = height < SHORT
        self.set_class(short, "-short")
        self.tab.prepare(width, height - (3 if short else 4))
        self.detail.prepare(width, 1)
        self._place_rule()

    def _place_rule(self) -> None:
        """Puts a canvas over the rule between list and card, where the shown tab has one."""
        width, height = self.app.size
        place = self.tab.rule_place(width)
        column, line = place or (0, 0)
        top = self.HEAD_LINES + line
        rows = height - top - (1 if height < SHORT else 2)
        is_there = place is not None and rows > 0
        if is_there:
            self.rule.styles.offset = (column, top)
            self.rule.styles.height = rows
            self.rule.prepare(RULE_CELLS, rows)  # it is hidden and shown at once and gets no Resize event
        self.rule.display = is_there

    def draw_head(self, width: int, height: int) -> Sequence[AnyLine]:
        """Where we are; and the tabs."""
        shows = self.current_run
        path, new_run = printable_url(shows.path), self.watcher.new_run
        keys, core = self.look.keys, shows.core
        words = heading(path, shows.logdir, shows.run, shows.host, shows.overview, new_run, core, keys)
        return header_lines(words, self.situation, Pen(width, self.look.glyphs), keys)

    def point_at_head(self, x: int, y: int) -> None:
        """Shows the tab under the mouse."""
        name = tab_at(x, self.tab_name, self.size.width) if y == 1 and self.popup is None else None
        if name is not None:
            self.show_tab(name)

    def foot_line(self, width: int) -> AnyLine:
        """What is running, else at most seven keys: the tab's own, then what is possible now, help and quit."""
        glyphs, progress = self.look.glyphs, self.current_run.progress
        if words := self.captures.words if self.captures.is_under_way else self.comparisons.words:
            return message_line(words, Pen(width, glyphs))
        if self.current_run.is_loading and progress is not None:
            return progress_line(progress.progress, progress.seconds_left, Pen(width, glyphs))
        situation, names = self.situation, ("cancel_load", "next_match", "search", "runs", "reload", "yank")
        possible = [action for action in map(by_name, names) if action.possible(situation)]
        own = footer(self.tab.keys)
        keys = [*own, *((action.shown, action.short) for action in possible)]
        graph = [("u", "graph")] if "graph" in situation.commands else []
        keys = [*keys[: max(5, len(own))], *graph, ("?", "help"), ("q", "quit")]
        return keys_line(self.look.keys.shown_pairs(keys), width, always=2)

    # --- what is possible

    @property
    def situation(self) -> ScreenState:
        """What the screen is at."""
        shows = self.current_run
        return ScreenState(
            tab=self.tab_name,
            loading=shows.is_loading,
            run_count=len(shows.logdir.runs) if shows.logdir else 0,
            host_count=len(shows.run.hosts) if shows.run else 0,
            note_count=len(sentences(shows.overview, shows.problems)),
            has_page=self.tab.has_page,
            selection=self.tab.selection,
            searching=self.searches.is_searched or self.tab.has_matches,
            has_source=self.tab.source is not None or self.tab.op_elsewhere is not None,
            colorful=self.look.palette.color != "mono",
            commands=self.tab.commands,
            can_capture=self._can_capture and not self.captures.is_under_way,
        )

    def act(self, key: str) -> bool:
        """Does what a key means now: the first of its actions that would do something; else says why not."""
        action = meant(key, self.situation)
        if action is not None:
            self.do(action)
        elif said := why_nothing(key, self.tab):
            self.flash = said
            self.redraw()
        else:
            return False
        return True

    @property
    def awaited(self) -> str:
        """What is still being read before keys can mean anything on it."""
        return self.waiting.awaited

    def waits(self, key: str) -> bool:
        """Whether a key has to wait for that."""
        return self.waiting.waits(key)

    def _named_actions(self) -> dict[str, Callable[..., object]]:
        """What does the actions of the tables, by their names; the motions are the tab's own."""
        return {
            "show_tab": self.show_tab,
            "next_tab": self._show_next_tab,
            "enter": self._enter,
            "tab_command": self.jumps.command,
            "search": partial(self.searches.begin, self.open_prompt, is_filter=False),
            "filter": partial(self.searches.begin, self.open_prompt, is_filter=True),
            "next_match": self._go_to_match,
            "yank": lambda: self.copy(self.tab.selection or ""),
            "edit": self._edit,
            "export": self._ask_export,
            "runs": self.lists.open_runs,
            "compare": self.lists.open_to_compare,
            "hosts": self.lists.open_hosts,
            "capture": self.captures.ask,
            "notes": partial(self._read, "Verdict and notes", self._note_lines, ABOUT_NOTES),
            "reload": self.watcher.open,
            "cancel_load": self.current_run.cancel,
            "swap_background": self.swap_background,
            "help": partial(self._read, "Help", self._help_lines, ABOUT_HELP),
            "palette": self._open_palette,
            "quit": self.leave,
            "go_back": self._go_back,
        }

    def do(self, action: str) -> None:
        """Does an action of the tables."""
        name, arguments = actions.parsed(action)
        act, before = self._actions.get(name) or getattr(self.tab, name), self._seen
        act(*arguments)
        if action in VERB_OF_MOTION and not self.flash and self._seen == before:
            self.flash = BY_NAME[VERB_OF_MOTION[action]].absent if self.tab.has_page else UNREAD
        self.searches.note()
        self.redraw()

    @property
    def _seen(self) -> object:
        """What a motion changes."""
        return self.tab.lines, self.tab.scroll_offset

    # --- actions

    def _show_next_tab(self, by: int) -> None:
        self.show_tab(TAB_NAMES[(TAB_NAMES.index(self.tab_name) + by) % len(TAB_NAMES)])

    def _enter(self) -> None:
        said, details = self.tab.enter(), self.tab.details
        if said != "details":
            self.flash = said
        elif details is None:
            self.flash = BY_NAME["open"].absent
        else:
            title, lines = details
            commands = self.tab.commands if self.tab_name == FIRST else ()
            jumps = tuple(key for name, key in _JUMPS.items() if name in commands)
            self.card = TextPopup(self.look, title, lines, self.tab.card_help_lines, jumps)
            self.open(self.card)

    def _go_back(self) -> None:
        """Cancels what is running, closes what was opened last, or goes back where a jump came from; never quits."""
        if self.captures.is_under_way:
            self.captures.stop()
        elif self.comparisons.words:
            self.comparisons.stop()
        elif self.current_run.is_loading:
            self.current_run.cancel()
        elif not self.searches.close_last() and not self.jumps.back():
            self.flash = BY_NAME["back"].absent

    def on_cursor_moved(self, message: CursorMoved) -> None:
        """A tab shows something else, not by a key."""
        if self.prompt is None:
            self.flash = message.said
        else:
            self.matches = message.said or self.matches
        self.redraw()

    def on_page_wanted(self, _: PageWanted) -> None:
        """A view of the shown tab is not read yet."""
        self.current_run.load_tab()

    def on_open_popup(self, message: OpenPopup) -> None:
        """A tab has something to open."""
        self.open(message.popup)

    def on_open_screen(self, message: OpenScreen) -> None:
        """A tab has what a screen of its own shows."""
        self.open_screen(message.name, message.content)

    def _read(self, title: str, lines: Lines, about: Lines) -> None:
        self.open(TextPopup(self.look, title, lines, about))

    def _open_palette(self) -> None:
        now = self.situation
        shown = self.look.keys.shown
        choices = [Choice((action.title, shown(action.shown)), action) for action in actions.possible(now)]
        title, columns = "Commands", ("action", "key")
        self.open(ChoicePopup(self.look, title, columns, choices, self._run_chosen, ABOUT_PALETTE, typing=True))

    def _run_chosen(self, action: Action) -> None:
        self.call_later(self.app.run_action if action.name in OF_THE_APP else self.do, action.name)

    def _edit(self) -> None:
        """Opens the user's editor at the source line of what is under the cursor."""

        def edit(source: str) -> None:
            self.flash = self.edit_source(source) if source else BY_NAME["edit"].absent
            self.redraw()

        source, op = self.tab.source, self.tab.op_elsewhere
        if source is not None:
            edit(source)
        elif op is not None:
            self.jumps.edit(op, edit)

    def _ask_export(self) -> None:
        shows = self.current_run
        self.ask_export(self.export_of(self.tab_name, self.tab.shown_table, shows.run, shows.logdir, report_named))

    def leave(self) -> None:
        """Ends the app."""
        self.call_later(self.app.run_action, "quit")

    # --- search

    @property
    def syntax(self) -> str:
        """What may be typed into the prompt."""
        return self.searches.syntax

    def words_for(self, begun: str) -> Sequence[str]:
        """What a word that is begun in the prompt may become."""
        return self.searches.words_for(begun)

    def search(self, text: str) -> str:
        """Searches or filters the tab."""
        return self.searches.search(text)

    def keep_search(self, text: str) -> bool:
        """Keeps what was found, unless there is something wrong with the text."""
        return self.searches.keep(text)

    def end_search(self) -> None:
        """Gives up what is typed."""
        self.prompt = None
        self.searches.give_up()

    def _go_to_match(self, direction: int) -> None:
        self.flash = self.tab.next_match(direction)

    # --- texts

    def _note_lines(self, pen: Pen) -> list[Line]:
        first = self.tabs[FIRST]
        verdict = self.tab.verdict_lines(pen) or first.verdict_lines(pen)
        note = TABS[TAB_NAMES.index(self.tab_name)].short_title, self.tab.note
        unknown = first.unknown_lines(pen)
        return note_lines(self.current_run.overview, self.current_run.problems, note, verdict, unknown, pen)

    def _help_lines(self, pen: Pen) -> list[Line]:
        return help_lines(self.situation, self.tab.keys, self.tab.meaning_lines(pen), pen)


class TpuprofApp(ScreenApp):
    """Shows the profiles at a path, on its screen `main`.

    Args:
        path: anything `parsers.files.logdir.open_logdir` understands.
        terminal: what the terminal can do; read from the environment where it is not given.
        find, open_session: how to find runs and to open one; a test puts its own here.
        now: seconds since 1970, for the age of runs.
    """

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
        known = os.environ if environ is None else environ
        if terminal is None:
            color, ascii_only = options.color, options.ascii
            terminal = detect(known, color=color, ascii_only=ascii_only, mouse=options.mouse, custom=options.custom)
        super().__init__(terminal, environ)
        self.main = MainScreen(path, options, terminal, self.environ, find, open_session, now)

    def get_default_screen(self) -> MainScreen:
        """The screen with the tabs."""
        return self.main

    async def action_quit(self) -> None:
        """Leaves; the first time during a capture it says only what that would cost, where there is room to."""
        if not self.main.captures.warns(has_room=not is_too_small(*self.size)):
            await super().action_quit()

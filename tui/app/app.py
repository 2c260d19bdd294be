"""The app: its main screen, which has the tabs and hands what keys ask for to the parts."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from textual.geometry import Region
from textual.screen import Screen
from typing_extensions import Self

from tpuprof.parsers.base.record import replace
from tpuprof.parsers.base.urls import printable_url
from tpuprof.tui.app import listings
from tpuprof.tui.app.capture import Captures
from tpuprof.tui.app.context import AppPart, N, WorkerNews
from tpuprof.tui.app.current_run import ABOVE, FIRST, CurrentRun, Jumps
from tpuprof.tui.app.keys import Searches, Waiting
from tpuprof.tui.app.loader import FindRuns, OpenSession, find_runs, opener
from tpuprof.tui.app.options import AppOptions
from tpuprof.tui.app.runs import Comparisons, ListPopups
from tpuprof.tui.app.watch import RunWatcher
from tpuprof.tui.draw.pen import WIDE, Pen, gutter_lines
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages import SYNONYMS, TAB_NAMES, TABS, load_above, report_named
from tpuprof.tui.report.page import ShownPage
from tpuprof.tui.terminal.detect import Terminal, detect
from tpuprof.tui.terminal.grammar import BY_NAME, verbs_of
from tpuprof.tui.terminal.theme import AnyLine
from tpuprof.tui.widgets import chrome
from tpuprof.tui.widgets.asking import ABOUT_EXPORT
from tpuprof.tui.widgets.chrome import KeyRow, verb_row
from tpuprof.tui.widgets.line_canvas import LineCanvas, ScreenLook
from tpuprof.tui.widgets.lists.popup import Act, ChoiceList, ChoiceRow, ListPopup, SortPopup, command_list, sort_rows
from tpuprof.tui.widgets.lists.view import SortWanted, ViewsTab
from tpuprof.tui.widgets.popup import ABOUT_HELP, Lines, Popup, TextPopup
from tpuprof.tui.widgets.screen import AppScreen, ScreenApp
from tpuprof.tui.widgets.tab import CursorMoved, FilterWanted, Jump, OpenPopup, OpenScreen, PageWanted, Tab

SHORT = 28  # rows below which the line on what is under the cursor gives way to the page
RULE_CELLS = 3  # cells of the rule between list and card, as its style says


class MainScreen(AppScreen):
    """The tabs under a header: the stage of the app's parts.

    Attributes:
        tabs, tab_name: all tabs by name, in their order, and the name of the one that is shown. One plain tab stands
            for all until the first frame is painted.
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
        self.lists = ListPopups(self, self.current_run, self.comparisons.compare, now, options)
        self.watcher = RunWatcher(self, self.current_run, options, self.captures, self.lists, now)
        self.current_run.loaded = self.watcher.begin  # what was asked for is there: time to look for what comes
        self.current_run.above = {"hosts": self.lists.show_hosts, "graph": self.jumps.show_graph}
        self.current_run.above["program"] = self.jumps.show_program
        self.jumps.lists = {"runs": self.lists.open_runs, "compare": self.lists.compare}
        self.searches, self.waiting = Searches(self), Waiting(self, self.current_run)
        self._can_capture = not options.only_hlo

    # --- the stage

    @property
    def tab(self) -> Tab:
        return self.tabs[self.tab_name]

    def show_tab(self, name: str) -> None:
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
        self._place_rule()
        for canvas in (self.head, self.detail, self.foot, self.popups):
            canvas.redraw()

    def open_screen(self, name: str, content: object) -> None:
        screen = load_above(name)(content, self.look, environ=self.environ)
        screen.lead = self._lead
        self.app.push_screen(screen)
        self.waiting.opened_above()

    def _lead(self, jump: Jump) -> None:
        """Goes where a screen above leads: to a graph above it, or to a tab, from which Escape leads back to it."""
        back, (_, lowest, *others) = None, self.app.screen_stack
        if jump.tab not in ABOVE:
            back = partial(self._open_again, lowest, self.tab_name)
            self.app.install_screen(lowest, f"{id(lowest)}")  # which keeps it as it is
            for screen in (*reversed(others), lowest):
                screen.dismiss()
        self.jumps.lead(jump, back)

    def _open_again(self, screen: Screen[Any], tab: str) -> None:
        self.show_tab(tab)
        self.app.uninstall_screen(screen)
        self.app.push_screen(screen)

    def open(self, popup: Popup) -> None:
        super().open(popup)
        self.waiting.opened_above()

    def work(self, group: str, job: Callable[[], object], *, exclusive: bool = True) -> None:
        self.run_worker(job, group=group, description=group, exclusive=exclusive, thread=True)

    def post_news(self, part: AppPart[N], news: N) -> None:
        """Hands what a worker found to its part, on the screen's thread."""
        if self.is_running:
            self.post_message(WorkerNews(part, news))

    def on_worker_news(self, message: WorkerNews) -> None:
        """A worker has news for its part; everything that changes is painted at once."""
        with self.app.batch_update():
            message.part.take(message.news)
            self.jumps.go_on()
            self.waiting.tab_turned()

    # --- widgets

    @property
    def page_canvases(self) -> Sequence[LineCanvas]:
        return (*dict.fromkeys(self.tabs.values()), self.detail, self.rule)

    def on_mount(self) -> None:
        self.call_after_refresh(self._begin)

    def _draw_searching(self, path: str, width: int, height: int) -> Sequence[AnyLine]:
        return chrome.state_lines(chrome.Searching(printable_url(path)), Pen(width, self.look.glyphs), height)

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
        shows = self.current_run
        path, new_run = printable_url(shows.path), self.watcher.new_run
        words = listings.heading(path, shows.logdir, shows.run, shows.host, shows.overview, new_run, shows.core)
        return listings.header_lines(words, self.tab_name, self._note_count, Pen(width, self.look.glyphs))

    def foot_line(self, width: int) -> AnyLine:
        glyphs, progress = self.look.glyphs, self.current_run.progress
        if words := self.captures.words if self.captures.is_under_way else self.comparisons.words:
            return chrome.message_line(words, Pen(width, glyphs))
        if self.current_run.is_loading and progress is not None:
            return chrome.progress_line(progress.progress, progress.seconds_left, Pen(width, glyphs))
        of_tab, of_all = self.tab.keys, self.keys
        own, general = (chrome.footer(key for key in keys if key.rank < chrome.HELPS) for keys in (of_tab, of_all))
        last = chrome.footer(key for key in (*of_tab, *of_all) if key.rank >= chrome.HELPS)
        first, least = [*dict.fromkeys((*own, *general))], max(5, len(own))
        more = first[least:7] if width >= WIDE else []
        return chrome.keys_line([*first[:least], *last[:-2], *more, *last[-2:]], width, always=2)

    # --- keys

    @property
    def _note_count(self) -> int:
        return len(listings.sentences(self.current_run.overview, self.current_run.problems))

    @property
    def _tab_keys(self) -> KeyRow:
        acts: dict[str, Callable[..., object]] = {
            "pick": self._show_number,
            "next_tab": partial(self._show_next_tab, 1),
            "previous_tab": partial(self._show_next_tab, -1),
        }
        return KeyRow("1-5, Tab", title="Show a tab, the next", acts=acts)

    @property
    def keys(self) -> Sequence[KeyRow]:
        """The keys that work on every tab now, unless the tab takes them itself."""
        shows, tab = self.current_run, self.tab
        has_page, runs = tab.has_page, len(shows.logdir.runs) if shows.logdir else 0
        is_searching = self.searches.is_searched or tab.has_matches
        has_source = tab.source is not None or tab.op_elsewhere is not None
        has_program = shows.run is not None and not any("program" in row.acts for row in tab.keys)
        can_capture = self._can_capture and not self.captures.is_under_way
        notes = partial(self._read, "Verdict and notes", self._note_lines, listings.ABOUT_NOTES)
        help_ = partial(self._read, "Help", self._help_lines, ABOUT_HELP)
        copy = partial(self.copy, tab.selection or "")
        search = partial(self.searches.begin, self.open_prompt, is_filter=False)
        possible = (
            (has_source, verb_row("edit", self._edit, "Open its source line in your editor")),
            (has_page, verb_row("search", search, short="search", rank=2)),
            (is_searching, verb_row("next_match", lambda: self.tab.next_match(1), short="next", rank=1)),
            (is_searching, verb_row("previous_match", lambda: self.tab.next_match(-1))),
            (tab.selection is not None, verb_row("copy", copy, "Copy the selected name", "copy name", rank=4)),
            (has_page, verb_row("export", self._ask_export)),
            (runs > 0, verb_row("runs", self.lists.open_runs, short="runs", rank=3)),
            (runs > 1, verb_row("compare", self.lists.compare)),
            (shows.run is not None and bool(shows.run.hosts), verb_row("hosts", self.lists.open_hosts)),
            (has_program, verb_row("program", self._program, short="" if self._can_capture else "program")),
            (can_capture, verb_row("capture", self.captures.ask, "Capture a profile from a running program")),
            (has_page or self._note_count > 0, verb_row("notes", notes)),
            (not shows.is_loading, verb_row("reload", self.watcher.open, short="reload", rank=3)),
            (shows.is_loading, verb_row("back", shows.cancel, "Cancel loading", "cancel")),
            (self.look.palette.color != "mono", verb_row("background", self.swap_background)),
            (True, verb_row("help", help_, short="help", rank=chrome.HELPS)),
            (True, verb_row("palette", self._list_commands)),
            (True, verb_row("back", self._go_back)),
            (True, verb_row("suspend", partial(self._run_in_app, "suspend_process"))),
            (True, verb_row("repaint", partial(self._run_in_app, "draw_anew"), "Paint the whole screen again")),
            (True, verb_row("quit", self.leave, "Quit (Q does from anywhere)", "quit", rank=chrome.LAST)),
        )
        return [row for is_possible, row in possible if is_possible]

    @property
    def page_keys(self) -> Sequence[KeyRow]:
        return (*self.tab.keys, *self.keys)

    @property
    def _motions(self) -> KeyRow:
        return KeyRow("open", acts={**self.tab.motions, "open": self._enter})

    def act(self, key: str) -> bool:
        if not verbs_of(key):
            return False
        if (of_tab := chrome.act_of(self.tab.keys, key)) is not None:
            self._do(partial(self.tab.do, of_tab))
        else:
            of_all = chrome.act_of((self._tab_keys, self._motions), key) or chrome.act_of(self.keys, key)
            self._do(of_all or partial(self.tab.why_nothing, key))
        return True

    def _do(self, act: Callable[[], object]) -> None:
        """Does something, then what its answer asks for: a jump, a filter, a sentence to be shown."""
        answer = act()
        if isinstance(answer, Jump):
            self.jumps.follow(answer)
        elif isinstance(answer, FilterWanted):
            self.searches.begin(self.open_prompt, is_filter=True)
        elif isinstance(answer, SortWanted):
            self.open(SortPopup(self.look, answer.listed, lambda act: self._do(partial(self.tab.do, act))))
        elif isinstance(answer, str):
            self.flash = answer
        self.searches.note()
        self.redraw()

    @property
    def awaited(self) -> str:
        return self.waiting.awaited

    def waits(self, key: str) -> bool:
        return self.waiting.waits(key)

    # --- what keys do

    def _show_number(self, number: int) -> str:
        if number > len(TAB_NAMES):
            return BY_NAME["pick"].absent
        if TAB_NAMES[number - 1] == self.tab_name:
            return "It is already shown."
        self.show_tab(TAB_NAMES[number - 1])
        return ""

    def _show_next_tab(self, by: int) -> None:
        self.show_tab(TAB_NAMES[(TAB_NAMES.index(self.tab_name) + by) % len(TAB_NAMES)])

    def _enter(self) -> str:
        said, details = self.tab.enter(), self.tab.details
        if said != "details":
            return said
        if details is None:
            return BY_NAME["open"].absent
        self.card = TextPopup(self.look, *details, self.tab.card_help_lines, is_card=True)
        self.open(self.card)
        return ""

    def _go_back(self) -> None:
        """Stops a capture or a comparison, closes what was opened last, or goes back where a jump came from."""
        if self.captures.is_under_way:
            self.captures.stop()
        elif self.comparisons.words:
            self.comparisons.stop()
        elif not self.searches.close_last() and not self.jumps.back():
            self.flash = BY_NAME["back"].absent

    def on_cursor_moved(self, message: CursorMoved) -> None:
        if self.prompt is None:
            self.flash = message.said
        else:
            self.matches = message.said or self.matches
        self.redraw()

    def on_page_wanted(self, _: PageWanted) -> None:
        self.current_run.load_tab()

    def on_open_popup(self, message: OpenPopup) -> None:
        self.open(message.popup)

    def on_open_screen(self, message: OpenScreen) -> None:
        self.open_screen(message.name, message.content)

    def _read(self, title: str, lines: Lines, about: Lines) -> None:
        self.open(TextPopup(self.look, title, lines, about))

    def _list_commands(self) -> None:
        motions = [self._motions] if self.tab.has_page else []
        keys, do = (self._tab_keys, *self.page_keys, *motions), partial(self.call_later, self._do)
        self.open(command_list(self.look, keys, self.act, do, self._places(), self._named))

    def _places(self) -> Iterator[ChoiceRow[Act]]:
        """The tabs, and their views besides the first."""
        for number, tab in enumerate(TABS, 1):
            unknown = "" if self.tabs[tab.name].is_ready else "if the profile has it"
            cells = f"Show {tab.title}", f"{number}"
            yield ChoiceRow(cells, partial(self.act, cells[1]), synonyms=f"{tab.name} {SYNONYMS[tab.name]}")
            for view, title in [*self.tabs[tab.name].views.items()][1:]:
                words, show = f"{title} {SYNONYMS.get(view, '')}", partial(Jump, tab.name, view)
                yield ChoiceRow((f"Show {title}", f"{number} v"), show, unknown, synonyms=words)

    def _named(self, is_wanted: Callable[[str], bool]) -> Iterator[ChoiceRow[Act]]:
        """The hosts, columns to sort by, ops and modules with a name that is wanted."""
        if (run := self.current_run.run) is not None:
            for host in (each.host for each in run.hosts if is_wanted(each.host.casefold())):
                yield ChoiceRow((host, "host"), partial(self.current_run.open_host, run, host))
        if isinstance(self.tab, ViewsTab) and self.tab.view is not None:
            for row in sort_rows(self.tab.view, is_wanted):
                yield replace(row, value=partial(self.tab.do, row.value))
        for tab in self.tabs.values():
            for (to, what), names in tab.names.items():
                for name in dict.fromkeys(name for name in names if is_wanted(name.casefold())):
                    yield ChoiceRow((name, what.removeprefix("framework_")), partial(Jump, to, what, name))

    def _edit(self) -> None:

        def edit(source: str) -> None:
            self.flash = self.edit_source(source)
            self.redraw()

        source, op = self.tab.source, self.tab.op_elsewhere
        if source is not None:
            edit(source)
        elif op is not None:
            self.jumps.edit(op, edit)

    def _program(self) -> Jump:
        """The program of the op under the cursor, or the longest one."""
        graph = next((row.acts["graph"]() for row in self.tab.keys if "graph" in row.acts), None)
        return replace(graph, tab="program") if isinstance(graph, Jump) else Jump("program")

    def _ask_export(self) -> None:
        """Asks for a file; first for what goes there, where the page has parts with reports of their own."""
        shows = self.current_run
        of = partial(self.export_of, self.tab_name, run=shows.run, logdir=shows.logdir, report_of=report_named)
        listed = None if self.popup is None else self.popup.listed
        shown = (None if listed is None else listed.shown_table) or self.tab.shown_table
        if not isinstance(shown, ShownPage) or not shown.parts:
            self.ask_export(of(shown))
            return
        rows = [ChoiceRow(("All of the page; as .csv its ops",), shown)]
        rows += [ChoiceRow((title,), part) for title, part in shown.parts.items()]
        choices = ChoiceList(("",), rows, lambda part: self.call_later(self.ask_export, of(part)), ABOUT_EXPORT)
        self.popups.open(ListPopup(self.look, "Write", choices), self.app.size, above=True)

    def leave(self) -> None:
        self._run_in_app("quit")

    def _run_in_app(self, action: str) -> None:
        self.call_later(self.app.run_action, action)

    # --- search

    @property
    def syntax(self) -> str:
        return self.searches.syntax

    def words_for(self, begun: str) -> Sequence[str]:
        return self.searches.words_for(begun)

    def search(self, text: str) -> str:
        return self.searches.search(text)

    def keep_search(self, text: str) -> bool:
        return self.searches.keep(text)

    def end_search(self) -> None:
        self.prompt = None
        self.searches.give_up()

    # --- texts

    def _note_lines(self, pen: Pen) -> list[Line]:
        first = self.tabs[FIRST]
        verdict = self.tab.verdict_lines(pen) or first.verdict_lines(pen)
        note = TABS[TAB_NAMES.index(self.tab_name)].short_title, self.tab.note
        unknown = first.unknown_lines(pen)
        return listings.note_lines(self.current_run.overview, self.current_run.problems, note, verdict, unknown, pen)

    def _help_lines(self, pen: Pen) -> list[Line]:
        own = self.tab.keys if self.tab.has_page else ()
        moving, acting = ([key for key in own if bool(key.acts) == acts] for acts in (False, True))
        return listings.help_lines((*moving, self._tab_keys, *acting, *self.keys), self.tab.meaning_lines(pen), pen)


class TpuprofApp(ScreenApp):
    """Shows the profiles at a path, on its screen `main`.

    Args:
        path: anything `parsers.files.logdir.open_logdir` understands.
        terminal: what the terminal can do; read from the environment where it is not given.
        find, open_session: how to find runs, and to open one if not as the options say; a test puts its own here.
        now: seconds since 1970, for the age of runs.
    """

    def __init__(
        self,
        path: str,
        options: AppOptions,
        terminal: Terminal | None = None,
        *,
        find: FindRuns = find_runs,
        open_session: OpenSession | None = None,
        now: Callable[[], float] = time.time,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        known = os.environ if environ is None else environ
        if terminal is None:
            color, ascii_only = options.color, options.ascii
            terminal = detect(known, color=color, ascii_only=ascii_only, mouse=options.mouse, theme=options.theme)
        super().__init__(terminal, environ)
        self.main = MainScreen(path, options, terminal, self.environ, find, open_session or opener(options), now)

    def get_default_screen(self) -> MainScreen:
        return self.main

    async def action_quit(self) -> None:
        """Leaves; the first time during a capture it says only what that would cost, where there is room to."""
        if not self.main.captures.warns(has_room=not chrome.is_too_small(*self.size)):
            await super().action_quit()

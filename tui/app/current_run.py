"""What the tabs show: which run and host of it, what is loaded and on its way; and jumps from one tab to another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from tpuprof.parsers.base.errors import Problem, ProfileError
from tpuprof.parsers.base.record import replace
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.base.urls import printable_url
from tpuprof.parsers.session.pages import ONLY_HLO
from tpuprof.tui.app import loader
from tpuprof.tui.app.context import AppContext
from tpuprof.tui.app.loader import FindRuns, LoadFailed, LoadNews, LoadProgress, OpenSession, PageReady, Request
from tpuprof.tui.app.options import AppOptions
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages import TAB_NAMES, tab_of
from tpuprof.tui.widgets.chrome import Decoding, Failed, Searching, State, Stopped
from tpuprof.tui.widgets.popup import TextPopup
from tpuprof.tui.widgets.tab import Jump

if TYPE_CHECKING:
    from tpuprof.parsers.files.logdir import Logdir, Run
    from tpuprof.parsers.pages.graph.programs import Programs
    from tpuprof.parsers.pages.overview.model import Overview

FIRST = TAB_NAMES[0]  # the tab that is loaded with a run: what it shows settles of which run and host the others are
_NO_LOGDIR = ("not_found", "unsupported_scheme", "unreadable", "driver_missing", "no_permission", "connection")
"""Codes of errors after which there are no runs to choose from."""


ABOVE = ("graph", "program")
"""What a jump may lead to that is a screen of its own above the tabs."""


class CurrentRun:
    """Loads what the tabs show.

    Attributes:
        path, logdir: where runs are looked for, and the runs that it led to.
        run, host: what the tabs show; core: the one core or chip that they are narrowed to, ``host:2``.
        progress: how far the running load is, where that is known.
        above: what shows a page that has no tab, by its name.
    """

    def __init__(
        self, context: AppContext, path: str, options: AppOptions, find: FindRuns, open_session: OpenSession
    ) -> None:
        self.path = path
        self.logdir: Logdir | None = None
        self.run: Run | None = None
        self.host: str | None = options.host
        self.core: str | None = options.core
        self.progress: LoadProgress | None = None
        self.loaded: Callable[[], object] = lambda: None
        self.above: Mapping[str, Callable[[Any], object]] = {}
        self._context = context
        self._is_of_hlo = options.only_hlo
        self._overview: Overview | None = None
        first = ("program",) * options.shows_program + (("memory",) if options.only_hlo else (FIRST,))
        self._asked = self._wanted = Request(path, options.run, options.host, pages=first, core=options.core)
        self._loader = loader.Loader(find, open_session, partial(context.post_news, self))

    # --- what is there

    @property
    def is_loading(self) -> bool:
        return self._loader.is_loading

    @property
    def is_loading_above(self) -> bool:
        return self.is_loading and not self._loads_tab

    @property
    def has_overview(self) -> bool:
        return self._context.tabs[FIRST].has_page

    @property
    def overview(self) -> Overview | None:
        return self._overview if self.has_overview else None

    @property
    def problems(self) -> list[Problem]:
        """What is wrong with the files of the run and with folders that belong to none."""
        return [problem for source in (self.run, self.logdir) if source is not None for problem in source.problems]

    def is_read(self, run: Run) -> bool:
        return self.run is not None and self.run.path == run.path and self.run.hosts == run.hosts

    @property
    def _logdir_as_read(self) -> Logdir | None:
        """The logdir with the shown run as it was read, so that all tabs are of the same hosts."""
        read, logdir = self.run, self.logdir
        if read is None or logdir is None:
            return logdir
        return replace(logdir, runs=tuple(read if run.path == read.path else run for run in logdir.runs))

    # --- what is asked for

    def begin(self) -> None:
        self.load(self._wanted)

    def load(self, request: Request) -> None:
        """Begins to load; what is being loaded is given up."""
        if request.pages == self._wanted.pages:  # else it is more of the run: r still loads what was asked for
            self._wanted = request
        self.progress, self._asked = None, request
        job = self._loader.begin(request)
        run = request.run_name if request.logdir else None
        self._show(Decoding(printable(run)) if run else Searching(printable_url(self.path)), waiting=True)
        self._context.work("load", partial(self._loader.work, job))
        self._context.redraw()

    def load_tab(self) -> None:
        """Loads what the shown tab needs, where it is not there yet and nothing else is being loaded."""
        name = self._context.tab_name
        tab = self._context.tabs[name]
        wanted = tab.wanted if tab.is_whole else name
        if wanted and self.has_overview and not self.is_loading:
            self.load_page(wanted, host=tab.wanted_host if tab.is_whole else None)

    def load_page(self, name: str, *, of_all_hosts: bool = False, host: str | None = None) -> None:
        """Loads another page of what is shown, of one of its hosts where that is named."""
        if self.run is not None:
            host, core = (None, None) if of_all_hosts else (host or self.host, self.core)
            self.load(Request(self.path, self.run.name, host, self._logdir_as_read, (name,), core))

    def reload(self) -> None:
        self.load(replace(self._wanted, logdir=None))
        self._show(Searching(printable_url(self.path)), late=True)

    def open_run(self, run: Run) -> None:
        self.run = run
        self._show(Decoding(printable(run.name)))
        self.load(Request(self.path, run.name, None, self.logdir, self._wanted.pages))

    def open_host(self, run: Run, host: str | None, core: str | None = None) -> None:
        """Opens a host or a core of the run; or all hosts, those too that other folders have of its capture."""
        from tpuprof.parsers.pages.shared.split_runs import whole_capture  # noqa: PLC0415 - the first frame comes sooner

        whole = None if host or core else whole_capture(run)
        self.load(Request(self.path, (whole or run).name, host, self.logdir, core=core))

    def cancel(self) -> None:
        """Stops loading: the screen says so at once, the thread follows at its next chunk."""
        if not self._loader.cancel():
            return
        progress = self.progress.progress if self.progress else None
        self.progress = None
        name = printable(self.run.name) if self.run else ""
        self._show(Stopped(name, progress), late=True, waiting=True)
        page, hosts = self.overview, len(self.run.hosts) if self.run else 0
        if page is not None and self.host is None and self.core is None and len(page.hosts) < hosts:
            self._context.flash = f"Cancelled: {len(page.hosts)} of {hosts} hosts were read. r loads again."
        elif page is not None:
            self._context.flash = "Cancelled; this is the page from before. r loads again."
        else:
            self._context.tabs[FIRST].show_state(Stopped(name, progress))
        self._context.redraw()

    def end(self) -> None:
        """Lets a decoding thread end at its next chunk, without a word."""
        self._loader.cancel()

    # --- news from its thread

    def take(self, news: LoadNews) -> None:
        """Shows what a load reports, unless a newer one has begun."""
        if not self._loader.is_current(news):
            return
        match news:
            case loader.RunsFound():
                self.logdir = news.logdir
                if not self.has_overview:
                    self.run = news.run
                self._show(Decoding(printable(news.run.name)), waiting=True)
            case LoadProgress():
                self.progress = news
                if self.run is not None:
                    state = Decoding(printable(self.run.name), news.progress, news.seconds_left)
                    self._show(state, waiting=True)
            case PageReady():
                self._take_page(news)
            case loader.LoadDone():
                self._loader.settle()
                self.progress = None
                self.loaded()
                self.load_tab()
            case LoadFailed():
                self._take_failure(news)
        self._context.redraw()

    def _show(self, state: State, *, late: bool = False, waiting: bool = False) -> None:
        """Shows a state in all tabs, in those that load when they are shown, or in those with nothing to show yet."""
        if waiting and not self._loads_tab:
            return
        for name, tab in self._context.tabs.items():
            if not (late and name == FIRST) and not (waiting and tab.is_whole):
                tab.show_state(state)

    @property
    def _loads_tab(self) -> bool:
        """Whether what was asked for last is a tab's page, and not one that opens above the tabs."""
        return any(page not in self.above for page in self._asked.pages)

    def _take_page(self, news: PageReady) -> None:
        name = tab_of(news.page)
        if name not in self._context.tabs:
            self.above[news.page](news.payload)
            return
        if news.page == FIRST:
            self._settle(news)
        words = self._context.tabs[name].show(news.part, news.payload)
        if words is not None:
            self._context.flash = words
        if self._is_of_hlo:
            self._leave_out_tabs()

    def _leave_out_tabs(self) -> None:
        """Says in the tabs that compiled programs do not have what these lack."""
        for name, tab in self._context.tabs.items():
            if name != "memory":
                tab.show_state(Failed(ProfileError("only_hlo", *ONLY_HLO)))

    def _settle(self, news: PageReady) -> None:
        """The first tab's page settles of which run and host all tabs are."""
        if (news.run, news.host, news.core) != (self.run, self.host, self.core):
            self._show(Decoding(printable(news.run.name)), late=True)
        self.run, self.host, self.core, self._overview = news.run, news.host, news.core, news.payload
        if news.part != "partial":  # of more hosts that are being read other news follow
            self.progress = None

    def _take_failure(self, news: LoadFailed) -> None:
        self._loader.settle()
        self.progress = None
        if not self._loads_tab:
            self._context.flash = news.error.sentence
            return
        if news.error.code in _NO_LOGDIR:
            self.logdir = None
        searched = self.logdir.searched if self.logdir else ()
        failed = Failed(news.error, searched, len(self.logdir.runs) if self.logdir else 0)
        tabs, name = self._context.tabs, self._context.tab_name
        is_more = self.has_overview and tabs[name].is_whole and tabs[name].wanted in self._asked.pages
        if self._is_of_hlo and self.run is not None:
            tabs["memory"].show_state(failed)
            self._leave_out_tabs()
        elif not is_more and (name == FIRST or not self.has_overview):
            self._show(failed)
            self._context.show_tab(FIRST)
        elif tabs[name].is_whole:
            self._context.flash = news.error.sentence
            tabs[name].show_failure(tabs[name].wanted, news.error)
        else:
            tabs[name].show_state(failed)


class Jumps:
    """Goes from one tab to where another one has more, and finds the way back.

    Attributes:
        lists: opens the lists of runs that a screen above the tabs may lead to, by their names.
    """

    def __init__(self, context: AppContext, current_run: CurrentRun) -> None:
        self._context = context
        self._current_run = current_run
        self._trail: list[Callable[[], object]] = []  # back to what jumps led away from
        self._wanted: Jump | None = None
        self._is_late = False  # what is wanted opens when its run is read
        self._wanted_source: tuple[str, Callable[[str], object]] | None = None
        self._kept: dict[str, tuple[object, Any]] = {}
        self.lists: Mapping[str, Callable[[], object]] = {}

    def follow(self, jump: Jump, back: Callable[[], object] | None = None) -> None:
        """Goes to a tab, from another one or from a screen above the tabs to which `back` leads; or opens a graph."""
        stage, before = self._context, self._context.tab_name
        if jump.tab in ABOVE:
            self._open_above(jump)
            return
        if jump.tab in self.lists:
            self._trail = [] if back is None else [back]
            self.lists[jump.tab]()
            return
        trail = self._trail
        stage.show_tab(jump.tab)
        if jump.what:
            stage.flash = stage.tabs[jump.tab].go_to(jump.what, jump.name, jump.program)
        if stage.tab_name != before or back is not None:
            self._trail = [*trail, back or partial(stage.show_tab, before)]

    def _open_above(self, jump: Jump) -> None:
        """Opens the graph or the program of an op; what that needs of the run is read the first time."""
        self._wanted, kept = jump, self._kept.get(jump.tab)
        if kept is not None and kept[0] == self._of:
            self._show(jump, kept[1])
        elif self._current_run.is_loading:
            self._is_late = True
            self._context.flash = f"The profile is still being read: the {jump.tab} opens then"
        else:
            self._current_run.load_page(jump.tab)

    @property
    def _of(self) -> object:
        """What the graphs are of: a run as it is, its host and core."""
        return self._current_run.run, self._current_run.host, self._current_run.core

    def show_graph(self, programs: Programs) -> None:
        self._kept["graph"] = self._of, programs
        if self._wanted is not None:
            self._show(self._wanted, programs)

    def show_program(self, content: Any) -> None:  # noqa: ANN401 - its screen knows it
        """Shows the program that is wanted, or why there is none.

        Of compiled programs alone it comes first, where more is known of it than its memory.
        """
        wanted = self._wanted if self._wanted is not None and self._wanted.tab == "program" else None
        if not isinstance(content, ProfileError):
            self._kept["program"] = self._of, content
            if wanted is None:
                self.forget()
            if wanted is not None or content[0].chosen.total is not None:
                self._show(wanted or Jump("program"), content)
        elif wanted is None:
            self._context.flash = content.sentence
        else:
            lines = partial(_why, content)
            self._context.open(TextPopup(self._context.look, "No compiled program", lines, None))

    def _show(self, jump: Jump, content: Any) -> None:  # noqa: ANN401 - its screen knows it
        self._wanted = None
        self._context.open_screen(jump.tab, (content, jump, self._current_run.run))

    def lead(self, jump: Jump, back: Callable[[], object] | None) -> None:
        """Goes where a screen above led, after opening its run where that is not the shown one."""
        shows = self._current_run
        runs = () if shows.logdir is None else shows.logdir.runs
        other = next((run for run in runs if run.path == jump.run and run != shows.run), None)
        if other is not None:
            shows.open_run(other)
        self.follow(jump, back)
        self._context.redraw()

    def forget(self) -> None:
        """A tab was shown that no jump led to, or a jump begins."""
        self._trail, self._is_late = [], False

    def back(self) -> bool:
        """Back to where the last jump came from; False where none led here."""
        if not self._trail:
            return False
        *trail, back = self._trail
        back()
        self._trail = trail
        return True

    def edit(self, op: str, found: Callable[[str], object]) -> None:
        """Calls `found` with the source line of an op, or nothing; what knows it is read first where it is not yet."""
        ops = self._context.tabs["op-profile"]
        self._wanted_source = op, found
        if ops.has_page:
            self.go_on()
        elif self._current_run.is_loading:
            self._wanted_source = None
            self._context.flash = "The profile is still being read: try again when it is done"
        else:
            self._context.flash = "Reading the ops' source lines"
            self._current_run.load_page("op-profile")

    def go_on(self) -> None:
        """Opens the graph of a run, and answers who asked for a source line, where what they need is read by now."""
        if self._is_late and self._wanted is not None and not self._current_run.is_loading:
            self._is_late = False
            self._open_above(self._wanted)
        ops, wanted = self._context.tabs["op-profile"], self._wanted_source
        if wanted is not None and ops.has_page:
            self._wanted_source = None
            wanted[1](ops.source_of(wanted[0]))


def _why(error: ProfileError, pen: Pen) -> list[Line]:
    """Why there is no program, and how to get one."""
    return [*pen.wrap(error.sentence, "text"), *pen.wrap(error.hint, "text", [("try: ", "key")])]

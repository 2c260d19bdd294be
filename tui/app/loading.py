"""Loading: what is asked for, what a thread reports of it, and which tab shows it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from textual import work
from textual.app import App
from textual.message import Message

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.files.remote.urls import shown
from tpuprof.tui.app.loader import FindRuns, Job, Loader, OpenSession, PageName, Request
from tpuprof.tui.app.messages import (
    FlowsReady,
    FrameworkOpsReady,
    InputReady,
    LoadDone,
    LoadFailed,
    LoadProgress,
    MemoryProfileReady,
    MemoryReady,
    OpsReady,
    OverviewReady,
    RunsFound,
    TimelineReady,
)
from tpuprof.tui.app.options import AppOptions
from tpuprof.tui.pages.input.view import InputPipelineTab
from tpuprof.tui.pages.memory.view import MemoryTab
from tpuprof.tui.pages.ops.view import OpsTab
from tpuprof.tui.pages.overview.view import OverviewTab
from tpuprof.tui.pages.timeline.view import TimelineTab
from tpuprof.tui.widgets.states import Decoding, Failed, Searching, State, Stopped

if TYPE_CHECKING:
    from tpuprof.parsers.files.logdir import Logdir, Run

INPUT_TAB, OPS_TAB, TIMELINE_TAB, MEMORY_TAB = 1, 2, 3, 4
"""Indices of the tabs that load on their own, when they are shown."""

_PAGES: dict[int, PageName] = {INPUT_TAB: "input", OPS_TAB: "ops", TIMELINE_TAB: "timeline", MEMORY_TAB: "memory"}


_NO_LOGDIR = ("not_found", "unsupported_scheme", "unreadable", "driver_missing", "no_permission", "connection")
"""Codes of errors after which there are no runs to choose from."""


class LoadingApp(App[None]):
    """The half of the app that loads; the other half, `shell.TpuprofApp`, draws and takes keys.

    Attributes:
        logdir: the runs that the path led to.
        run_shown, host_shown: what the tabs show.
    """

    overview: OverviewTab
    input: InputPipelineTab
    ops: OpsTab
    timeline: TimelineTab
    memory: MemoryTab

    def __init__(self, path: str, options: AppOptions, find: FindRuns, open_session: OpenSession) -> None:
        # Native colours: what the palette says goes to the terminal as it is.
        super().__init__(ansi_color=True)
        self.path = path
        self.options = options
        self.tab_index = 0
        self.logdir: Logdir | None = None
        self.run_shown: Run | None = None
        self.host_shown: str | None = options.host
        pages: tuple[PageName, ...] = ("memory",) if options.only_hlo else ("overview",)
        self._wanted = Request(path, options.run, options.host, pages=pages)
        self._loader = Loader(find, open_session, self._post_if_running)
        self._progress: LoadProgress | None = None
        self._flash = ""
        self._came_from: int | None = None

    @property
    def logdir_shown(self) -> Logdir | None:
        """The logdir with the shown run as it was read, so that all tabs are of the same hosts."""
        shown, logdir = self.run_shown, self.logdir
        if shown is None or logdir is None:
            return logdir
        return replace(logdir, runs=tuple(shown if run.path == shown.path else run for run in logdir.runs))

    @property
    def _late_tabs(self) -> dict[int, InputPipelineTab | OpsTab | TimelineTab | MemoryTab]:
        """The tabs that load when they are shown, by index."""
        return {INPUT_TAB: self.input, OPS_TAB: self.ops, TIMELINE_TAB: self.timeline, MEMORY_TAB: self.memory}

    def redraw_chrome(self) -> None:
        """Draws what surrounds the page."""
        raise NotImplementedError

    def action_show_tab(self, index: int) -> None:
        """Shows a tab."""
        raise NotImplementedError

    def load(self, request: Request) -> None:
        """Begins to load; what is being loaded is given up."""
        if request.pages == self._wanted.pages:  # else it is more of the run: r still loads what was asked for
            self._wanted = request
        self._progress = None
        job = self._loader.begin(request)
        run = request.run_name if request.logdir else None
        self._show_waiting(Decoding(printable(run)) if run else Searching(shown(self.path)))
        self._work(job)
        self.redraw_chrome()

    def _show_waiting(self, state: State) -> None:
        """Shows what goes on in the tabs that have nothing to show yet."""
        for tab in (self.overview, *self._late_tabs.values()):
            if not tab.has_page:
                tab.show_state(state)

    @work(thread=True, exclusive=True, group="load", description="load")
    def _work(self, job: Job) -> None:
        self._loader.work(job)

    def _post_if_running(self, message: Message) -> None:
        if self.is_running:
            self.post_message(message)

    def on_runs_found(self, message: RunsFound) -> None:
        """The path led somewhere."""
        if not self._loader.is_current(message):
            return
        self.logdir = message.logdir
        if not self.overview.has_page:
            self.run_shown = message.run
        self._show_waiting(Decoding(printable(message.run.name)))
        self.redraw_chrome()

    def on_load_progress(self, message: LoadProgress) -> None:
        """Decoding goes on."""
        if not self._loader.is_current(message):
            return
        self._progress = message
        if self.run_shown is not None:
            self._show_waiting(Decoding(printable(self.run_shown.name), message.progress, message.seconds_left))
        self.redraw_chrome()

    def on_overview_ready(self, message: OverviewReady) -> None:
        """A page is there."""
        if not self._loader.is_current(message):
            return
        if (message.run, message.host) != (self.run_shown, self.host_shown):
            for tab in self._late_tabs.values():
                tab.show_state(Decoding(printable(message.run.name)))
        self.run_shown, self.host_shown = message.run, message.host
        if not message.is_partial:
            self._progress = None
        self.overview.show_page(message.page)
        self.redraw_chrome()

    def on_input_ready(self, message: InputReady) -> None:
        """The input pipeline is there."""
        if self._loader.is_current(message):
            self.input.show_page(message.page)
            self.redraw_chrome()

    def on_ops_ready(self, message: OpsReady) -> None:
        """The ops are there."""
        if self._loader.is_current(message):
            with self.batch_update():
                self._flash = self.ops.show_pages(message.pages)
                self.redraw_chrome()

    def on_framework_ops_ready(self, message: FrameworkOpsReady) -> None:
        """The framework ops are there."""
        if self._loader.is_current(message):
            self._flash = self.ops.show_framework_ops(message.page) or self._flash
            self.redraw_chrome()

    def on_timeline_ready(self, message: TimelineReady) -> None:
        """All events are there."""
        if self._loader.is_current(message):
            hosts = len(self.run_shown.hosts) if self.run_shown else 1
            self._flash = self.timeline.show_timeline(message.timeline, hosts)
            if hosts > 1 and self.host_shown is None and not self._flash:
                self._flash = f"The timeline is of host {printable(message.timeline.host)}; H shows another"
            self.redraw_chrome()

    def on_flows_ready(self, message: FlowsReady) -> None:
        """The arrows of the timeline are there."""
        if self._loader.is_current(message):
            self.timeline.show_flows(message.flows)
            self.redraw_chrome()

    def on_memory_ready(self, message: MemoryReady) -> None:
        """The compiled modules are there."""
        if self._loader.is_current(message):
            self._flash = self.memory.show_pages(message.pages)
            if self.options.only_hlo:
                from tpuprof.parsers.session.hlo import ONLY_HLO  # noqa: PLC0415 - read by now

                for tab in (self.overview, self.input, self.ops, self.timeline):
                    tab.show_state(Failed(ProfileError("only_hlo", *ONLY_HLO)))
            self.redraw_chrome()

    def on_memory_profile_ready(self, message: MemoryProfileReady) -> None:
        """What the allocators reported is there."""
        if self._loader.is_current(message):
            self.memory.show_profile(message.page, message.runs)
            self.redraw_chrome()

    def on_load_done(self, message: LoadDone) -> None:
        """Nothing more is awaited, but what a tab wants that was shown meanwhile."""
        if self._loader.is_current(message):
            self._loader.settle()
            self._progress = None
            self.watch_runs()
            self.load_tab()
            self.redraw_chrome()

    def watch_runs(self) -> None:
        """Begins to watch for new runs."""
        raise NotImplementedError

    def load_tab(self) -> None:
        """Loads what the shown tab needs, where it is not there yet and nothing else is being loaded."""
        tab = self._late_tabs.get(self.tab_index)
        wants = tab is not None and not tab.has_page and self.overview.has_page
        if wants and not self._loader.is_loading and self.run_shown is not None:
            pages = (_PAGES[self.tab_index],)
            self.load(Request(self.path, self.run_shown.name, self.host_shown, self.logdir_shown, pages))

    def on_load_failed(self, message: LoadFailed) -> None:
        """There is no page, for a reason."""
        if not self._loader.is_current(message):
            return
        self._loader.settle()
        self._progress = None
        if message.error.code in _NO_LOGDIR:
            self.logdir = None
        searched = self.logdir.searched if self.logdir else ()
        runs = len(self.logdir.runs) if self.logdir else 0
        failed = Failed(message.error, searched, runs)
        tab = self._late_tabs.get(self.tab_index)
        if tab is not None and self.overview.has_page:
            if tab.has_page:
                self._flash = message.error.sentence
            else:
                tab.show_state(failed)
        else:
            for late in self._late_tabs.values():
                late.show_state(failed)
            self.overview.show_state(failed)
            self.action_show_tab(0)
        self.redraw_chrome()

    def action_cancel_load(self) -> None:
        """Stops loading: the screen says so at once, the thread follows at its next chunk."""
        if not self._loader.cancel():
            return
        progress = self._progress.progress if self._progress else None
        self._progress = None
        name = printable(self.run_shown.name) if self.run_shown else ""
        for tab in self._late_tabs.values():
            if not tab.has_page:
                tab.show_state(Stopped(name, progress))
        page, hosts = self.overview.page_shown, len(self.run_shown.hosts) if self.run_shown else 0
        if page is not None and self.host_shown is None and len(page.hosts) < hosts:
            self._flash = f"Cancelled: {len(page.hosts)} of {hosts} hosts were read. r loads again."
        elif page is not None:
            self._flash = "Cancelled; this is what was shown before. r loads again."
        else:
            self.overview.show_state(Stopped(name, progress))
        self.redraw_chrome()

    def action_reload(self) -> None:
        """Looks for runs again and loads the wanted one."""
        self.load(replace(self._wanted, logdir=None))
        for tab in self._late_tabs.values():
            tab.show_state(Searching(shown(self.path)))

    def open_run(self, run: Run) -> None:
        """Loads another run."""
        self.run_shown = run
        for tab in (self.overview, *self._late_tabs.values()):
            tab.show_state(Decoding(printable(run.name)))
        self.load(Request(self.path, run.name, None, self.logdir))

    def open_host(self, run: Run, host: str | None) -> None:
        """Loads one host of a run, or all."""
        self.load(Request(self.path, run.name, host, self.logdir))

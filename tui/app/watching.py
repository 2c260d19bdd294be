"""Runs: the list to open or compare them, and watching for new ones."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from textual import work
from textual.geometry import Size
from textual.message import Message

from tpuprof.parsers.base.errors import Cancelled, ProfileError
from tpuprof.parsers.base.text import printable
from tpuprof.tui.app.capture import CapturingApp
from tpuprof.tui.app.listings import changed_run_sentence, host_choices, new_run_sentence
from tpuprof.tui.app.loader import Request
from tpuprof.tui.app.messages import HostsReady
from tpuprof.tui.app.options import AppOptions
from tpuprof.tui.pages.hosts.popup import HostsPopup
from tpuprof.tui.pages.runs.popup import FactsJob, FactsReader, RunsPopup
from tpuprof.tui.widgets.popup import Chooser, PopupLayer

if TYPE_CHECKING:
    from tpuprof.parsers.diff.model import Diff
    from tpuprof.parsers.files.logdir import Logdir, Run
    from tpuprof.parsers.files.watch import Changes
    from tpuprof.tui.app.loader import FindRuns, OpenSession

WATCHED_EVERY_SECONDS = 2.0


class FactsMoved(Message):
    """More is known of the runs of the list."""


class RunsChanged(Message):
    """The logdir has new runs, or lost some."""

    def __init__(self, changes: Changes, logdir: Logdir | None) -> None:
        super().__init__()
        self.changes = changes
        self.logdir = logdir


class Compared(Message):
    """Two runs are compared, or can't be."""

    def __init__(self, job: threading.Event, diff: Diff | ProfileError) -> None:
        super().__init__()
        self.job = job
        self.diff = diff


class WatchingApp(CapturingApp):
    """The part of the app that knows other runs than the one that is shown.

    Attributes:
        new_run: one that has come since, or the shown one with other files than those that were read.
        comparing_words: what the footer says while two runs are compared; empty when none are.
    """

    popups: PopupLayer
    size: Size
    _now: Callable[[], float]

    def __init__(self, path: str, options: AppOptions, find: FindRuns, open_session: OpenSession) -> None:
        super().__init__(path, options, find, open_session)
        self._facts = FactsReader(lambda: self._post_if_running(FactsMoved()))
        self.new_run: Run | None = None
        self.comparing_words = ""
        self._comparison = threading.Event()
        self._unwatched = threading.Event()
        self._watched = ""

    # --- the list

    def action_runs(self) -> None:
        """Lists the runs: to open one, or to compare two."""
        self._list_runs(None)

    def action_compare(self) -> None:
        """Lists the runs, to compare one with the run that is shown."""
        self._list_runs(self.run_shown)

    def _list_runs(self, marked: Run | None) -> None:
        logdir = self.logdir
        if logdir is None:
            return
        title = f"Runs in {printable(logdir.query)}"
        popup = RunsPopup(
            self.look,
            title,
            logdir.runs,
            self._facts.facts,
            self.open_run,
            None if self.options.only_hlo else self.compare_runs,
            self._now,
            self.run_shown,
            self._facts.cancel,
            marked,
        )
        self.popups.open(popup, self.size)
        self._read_facts(self._facts.begin(logdir.runs))

    @work(thread=True, exclusive=True, group="facts", description="facts")
    def _read_facts(self, job: FactsJob) -> None:
        self._facts.work(job)

    def on_facts_moved(self, _: FactsMoved) -> None:
        """Draws what is known by now."""
        if isinstance(self.popups.popup, RunsPopup):
            self.popups.redraw()

    # --- hosts

    def action_hosts(self) -> None:
        """Compares the hosts of the run, or lists them where there is nothing to compare yet."""
        run = self.run_shown
        if run is None:
            return
        if len(run.hosts) > 1 and self.overview.has_page and not self._loader.is_loading:
            self._flash = f"Comparing {len(run.hosts)} hosts"
            self.load(Request(self.path, run.name, None, self.logdir_shown, ("hosts",)))
            return
        choices = host_choices(run)
        start = next((at for at, choice in enumerate(choices) if choice.value == self.host_shown), 0)
        title = f"Hosts of {printable(run.name)}"
        columns = ("host", "size")
        self.popups.open(Chooser(self.look, title, columns, choices, partial(self.open_host, run), start), self.size)

    def on_hosts_ready(self, message: HostsReady) -> None:
        """The hosts are compared."""
        run = self.run_shown
        if self._loader.is_current(message) and run is not None:
            self._flash = ""
            title = f"Hosts of {printable(run.name)}"
            popup = HostsPopup(self.look, title, message.page, partial(self.open_host, run), self.host_shown)
            self.popups.open(popup, self.size)

    # --- comparing

    def compare_runs(self, before: Run, after: Run) -> None:
        """Compares two runs, which takes decoding both; a comparison that is under way is given up."""
        self.stop_comparing()
        self.comparing_words = f"Comparing {printable(before.name)} with {printable(after.name)}; Esc cancels"
        self._comparison = threading.Event()
        self._compare(before, after, self._comparison)
        self.redraw_chrome()

    def stop_comparing(self) -> None:
        """Gives the comparison up."""
        self._comparison.set()
        if self.comparing_words:
            self.comparing_words = ""
            self._flash = "The comparison was given up"
            self.redraw_chrome()

    @work(thread=True, group="compare", description="compare")
    def _compare(self, before: Run, after: Run, job: threading.Event) -> None:
        from tpuprof.parsers.diff.compare import compare  # noqa: PLC0415 - brings the parsers
        from tpuprof.parsers.session.session import Session  # noqa: PLC0415

        scheduler = self.options.scheduler
        try:
            sessions = [Session(run, is_cancelled=job.is_set, scheduler=scheduler) for run in (before, after)]
            diff: Diff | ProfileError = compare(sessions[0], sessions[1], is_cancelled=job.is_set)
        except ProfileError as error:
            diff = error
        except Cancelled:
            return
        self._post_if_running(Compared(job, diff))

    def on_compared(self, message: Compared) -> None:
        """Shows what changed, on a screen of its own."""
        from tpuprof.tui.pages.diff.screen import DiffScreen  # noqa: PLC0415

        if message.job.is_set():  # given up since
            return
        self.comparing_words = ""
        if isinstance(message.diff, ProfileError):
            self._flash = message.diff.sentence
        else:
            self.push_screen(DiffScreen(message.diff, self.look, environ=self.environ))
        self.redraw_chrome()

    # --- new runs

    def watch_runs(self) -> None:
        """Begins to watch where the runs were found, once, and looks at what came while a run was being read."""
        if self.logdir is not None and self._watched != self.logdir.query and not self.options.only_hlo:
            self._watched = self.logdir.query
            self._unwatched.set()  # the thread that watches another one ends
            self._unwatched = threading.Event()
            # no worker of Textual's: it waits for all of these to end, and this one does not
            arguments = (self._watched, self._unwatched)
            threading.Thread(target=self._watch_logdir, args=arguments, name="watch", daemon=True).start()
        if self.new_run is not None and self._is_read(self.new_run):
            self.new_run = None
        elif self.new_run is not None:
            self._follow(self.new_run)

    def _is_read(self, run: Run) -> bool:
        """Whether a run is what is shown, as it is now."""
        return self.run_shown is not None and self.run_shown.path == run.path and self.run_shown.hosts == run.hosts

    def _watch_logdir(self, query: str, ended: threading.Event) -> None:
        from tpuprof.parsers.files.watch import LogdirWatch, follow  # noqa: PLC0415

        try:
            watched = LogdirWatch(self.logdir or query)
        except ProfileError:
            return  # gone since: looking again (r) will say so

        def tell(changes: Changes) -> None:
            if not ended.is_set():
                self._post_if_running(RunsChanged(changes, watched.logdir))

        follow(watched, tell, ended, WATCHED_EVERY_SECONDS)

    def on_runs_changed(self, message: RunsChanged) -> None:
        """Brings the list up to date, and says that a run has come or opens it where the newest is to be followed."""
        if message.logdir is not None:
            self.logdir = message.logdir
            self._refresh_list(message.logdir)
        shown, changes = self.run_shown, message.changes
        newer = [run for run in changes.new_runs if shown is None or run.modified >= shown.modified]
        newer += [run for run in changes.changed_runs if shown is not None and run.path == shown.path]
        newest = max(newer, key=lambda run: run.time, default=None)
        if newest is not None and not self._is_read(newest):
            self._follow(newest)
        self.redraw_chrome()

    def _refresh_list(self, logdir: Logdir) -> None:
        popup = self.popups.popup
        if isinstance(popup, RunsPopup):
            popup.set_runs(logdir.runs)
            self.popups.redraw()
            self._read_facts(self._facts.begin(logdir.runs))

    def _follow(self, run: Run) -> None:
        """Opens a run that has come, where the newest is to be followed, or else says which key does."""
        shown = self.run_shown
        self.new_run = run
        if self._loader.is_loading or self.is_capturing:
            return  # `watch_runs` comes back to it
        if self.options.latest:
            self.action_reload()
        elif shown is not None and shown.path == run.path:
            self._flash = changed_run_sentence(run, len(shown.hosts))
        else:
            self._flash = new_run_sentence(run, self._now())

    def action_reload(self) -> None:
        """Looks for runs again and loads the wanted one, or the new one that was announced."""
        new, self.new_run = self.new_run, None
        if new is None:
            super().action_reload()
        else:
            host = self.host_shown if self.run_shown is not None and self.run_shown.path == new.path else None
            self.load(Request(self.path, new.name, host))

    def end_watching(self) -> None:
        """Lets the threads of the list, of watching and of comparing end."""
        self._unwatched.set()
        self._comparison.set()
        self._facts.cancel()

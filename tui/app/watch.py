"""Watching for runs that come, and for hosts that come to the one that is shown."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.tui.app.capture import Captures
from tpuprof.tui.app.context import AppContext
from tpuprof.tui.app.current_run import CurrentRun
from tpuprof.tui.app.listings import changed_run_sentence, new_run_sentence
from tpuprof.tui.app.loader import Request
from tpuprof.tui.app.options import AppOptions
from tpuprof.tui.app.runs import ListPopups

if TYPE_CHECKING:
    from tpuprof.parsers.files.logdir import Logdir, Run
    from tpuprof.parsers.files.watch import Changes

WATCHED_EVERY_SECONDS = 2.0


class RunWatcher:
    """Looks for runs that come and says so, or opens them where the newest is to be followed.

    Attributes:
        new_run: one that has come since, or the shown one with other files than those that were read.
        logdir: what is watched; empty as long as nothing is.
    """

    def __init__(
        self,
        context: AppContext,
        current_run: CurrentRun,
        options: AppOptions,
        captures: Captures,
        lists: ListPopups,
        now: Callable[[], float],
    ) -> None:
        self.new_run: Run | None = None
        self._is_asked = False  # whether a key asked for what is being read
        self.logdir = ""
        self._context = context
        self._current_run = current_run
        self._is_needed = not options.only_hlo
        self._opens_newest = options.latest
        self._captures = captures
        self._lists = lists
        self._now = now
        self._ended = threading.Event()

    def begin(self) -> None:
        """Begins to watch where the runs were found, once, and looks at what came while a run was being read."""
        logdir = self._current_run.logdir
        if self._is_asked and not self._context.flash:
            self._context.flash = "Looked for runs again and read anew"
        self._is_asked = False
        if logdir is not None and self.logdir != logdir.query and self._is_needed:
            self.logdir = logdir.query
            self._ended.set()  # the thread that watches another one ends
            self._ended = threading.Event()
            # no worker of Textual's: it waits for all of these to end, and this one does not
            threading.Thread(target=self._follow, args=(logdir, self._ended), name="watch", daemon=True).start()
        if self.new_run is not None and self._current_run.is_read(self.new_run):
            self.new_run = None
        elif self.new_run is not None:
            self._announce(self.new_run)

    def end(self) -> None:
        self._ended.set()

    def _follow(self, logdir: Logdir, ended: threading.Event) -> None:
        from tpuprof.parsers.files.watch import LogdirWatch, follow  # noqa: PLC0415

        try:
            watched = LogdirWatch(logdir)
        except ProfileError:
            return  # gone since: looking again (r) will say so

        def tell(changes: Changes) -> None:
            if not ended.is_set():
                self._context.post_news(self, (changes, watched.logdir))

        follow(watched, tell, ended, WATCHED_EVERY_SECONDS)

    def take(self, news: tuple[Changes, Logdir]) -> None:
        """Says that a run has come, or opens it where the newest is to be followed."""
        run, (changes, self._current_run.logdir) = self._current_run.run, news
        self._lists.refresh()
        newer = [new for new in changes.new_runs if run is None or new.modified >= run.modified]
        newer += [new for new in changes.changed_runs if run is not None and new.path == run.path]
        newest = max(newer, key=lambda new: new.time, default=None)
        if newest is not None and not self._current_run.is_read(newest):
            self._announce(newest)
        self._context.redraw()

    def _announce(self, run: Run) -> None:
        """Opens a run that has come, where the newest is to be followed, or else says which key does."""
        before = self._current_run.run
        self.new_run = run
        if self._current_run.is_loading or self._captures.is_under_way:
            return  # `begin` comes back to it
        if self._opens_newest:
            self.open()
        elif before is not None and before.path == run.path:
            self._context.flash = changed_run_sentence(run, len(before.hosts))
        else:
            self._context.flash = new_run_sentence(run, self._now())

    def open(self) -> None:
        """Loads the run that was announced, else looks for runs again and loads the wanted one."""
        new, self.new_run = self.new_run, None
        if new is None:
            self._is_asked = True
            self._current_run.reload()
        else:
            is_shown = self._current_run.run is not None and self._current_run.run.path == new.path
            host, core = (self._current_run.host, self._current_run.core) if is_shown else (None, None)
            self._current_run.load(Request(self._current_run.path, new.name, host, core=core))

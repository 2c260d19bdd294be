"""Other runs and hosts than the shown ones: the lists to choose from, what is known of runs, and comparing two."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from tpuprof.parsers.base.errors import Cancelled, ProfileError
from tpuprof.parsers.base.record import dataclass, field
from tpuprof.parsers.base.text import counted, printable
from tpuprof.parsers.pages.shared.key import Later, named_in
from tpuprof.tui.app.context import AppContext
from tpuprof.tui.app.current_run import CurrentRun
from tpuprof.tui.app.loader import opener
from tpuprof.tui.app.options import AppOptions
from tpuprof.tui.pages import command_named, load_above
from tpuprof.tui.widgets.lists.popup import ChoiceList, ChoiceRow, ListPopup
from tpuprof.tui.widgets.popup import TextPopup, meanings

if TYPE_CHECKING:
    from tpuprof.parsers.files.logdir import Run
    from tpuprof.parsers.pages.hosts.model import HostsPage
    from tpuprof.parsers.session.known_runs import KnownRuns
    from tpuprof.parsers.session.run_facts import RunFacts
    from tpuprof.parsers.session.trend import Judged, KnownPoints, TrendPoint

TELL_SECONDS = 0.1  # the least time between two calls of `tell`
Facts = TypeVar("Facts")
Known = TypeVar("Known", "KnownRuns", "KnownPoints")
ReadFacts = Callable[["Run", Callable[[], bool]], Facts]


class Kept(Generic[Known]):
    """What is known of the runs of a list, for one worker thread, which reads the cache when it needs it first."""

    kind: ClassVar[str]
    """The class of `known`, ``module:name``, which is imported then."""

    def __init__(self, options: AppOptions) -> None:
        self._options = options
        self.place = ""
        """The path of the list's log folder; to be set before anything is read."""

    def keep(self) -> None:
        if "known" in vars(self):
            self.known.keep()

    @cached_property
    def known(self) -> Known:
        cache = named_in("tpuprof.parsers.session.opening:host_cache")(self._options.cache, self._options.cache_bytes)
        found: Known = named_in(self.kind)(cache, self.place)
        return found


class KeptFacts(Kept["KnownRuns"]):
    """Reads facts of the runs of a list, on one worker thread, and keeps them for the next time that the app runs."""

    kind = "tpuprof.parsers.session.known_runs:KnownRuns"

    def read(self, run: Run, is_cancelled: Callable[[], bool]) -> RunFacts:
        return self.known.facts(run, is_cancelled)


class KeptPoints(Kept["KnownPoints"]):
    """Reads what a series of runs needs of each, on one worker thread, and keeps it for the next time."""

    kind = "tpuprof.parsers.session.trend:KnownPoints"

    def read(self, run: Run, is_cancelled: Callable[[], bool]) -> TrendPoint | str:
        """The figures of a run, or why it can't be read."""
        open_run = opener(self._options)
        return self.known.point(run, lambda run: open_run(run, lambda _: None, is_cancelled))


_judge = Later("tpuprof.parsers.session.trend:judged")
_newest_first = Later("tpuprof.parsers.files.runs:newest_first")
_compared = Later("tpuprof.parsers.session.diff.compare:compare")
_compared_programs = Later("tpuprof.parsers.pages.program.changes:compare_programs")
_programs_at = Later("tpuprof.parsers.pages.program.programs:programs_at")
_ABOUT = meanings(("", "Files or folders in the same folder that hold compiled programs."))


def _identity(run: Run) -> tuple[str, float, int, int]:
    """What a run's facts belong to: its path and its files as they are."""
    return run.path, run.modified, run.size_bytes, len(run.hosts)


class Series:
    """The runs of a list as a series: what is known of each, and where it changed."""

    def __init__(self, context: AppContext, kept: KeptPoints, tell: Callable[[], object]) -> None:
        self._context, self._tell = context, tell
        self._reader: FactsReader[TrendPoint | str] = FactsReader(tell, kept.read, keep=kept.keep)
        self._judged: dict[object, Judged] = {}

    def begin(self, runs: Sequence[Run]) -> None:
        """Reads runs, the oldest first, as far as that is not done, then judges them."""
        self._context.work("trend", partial(self._work, self._reader.begin(runs), tuple(runs)))

    def _work(self, job: FactsJob, runs: Sequence[Run]) -> None:
        self._reader.work(job)
        if job.cancelled.is_set():
            return
        judged = _judge([self._reader.facts(run) for run in runs])
        self._judged = {_identity(run): of for run, of in zip(runs, judged, strict=True)}
        self._tell()

    def point(self, run: Run) -> TrendPoint | str | None:
        """The figures of a run, or why it can't be read; None as long as it has not been read."""
        return self._reader.facts(run)

    def judged(self, run: Run) -> Judged | None:
        """What a run is against those before it; None as long as that is unknown."""
        return self._judged.get(_identity(run))

    def cancel(self) -> None:
        self._reader.cancel()


@dataclass(slots=True)
class FactsJob:
    """Runs whose facts are to be read."""

    runs: tuple[Run, ...]
    cancelled: threading.Event = field(default_factory=threading.Event)


class FactsReader(Generic[Facts]):
    """Reads facts of runs, each once, and keeps them.

    `begin`, `cancel` and `facts` belong to the screen's thread, `work` to a worker thread.

    Args:
        tell: called on the worker's thread when facts have come, at most every `TELL_SECONDS` and at the end.
        read: reads one run's facts; a test puts its own here.
        keep: called on the worker's thread when a job ends, however it does.
        clock: seconds.
    """

    def __init__(
        self,
        tell: Callable[[], object],
        read: ReadFacts[Facts],
        clock: Callable[[], float] = time.monotonic,
        keep: Callable[[], object] = lambda: None,
    ) -> None:
        self._tell = tell
        self._read = read
        self._keep = keep
        self._clock = clock
        self._known: dict[object, Facts] = {}
        self._job: FactsJob | None = None

    def facts(self, run: Run) -> Facts | None:
        """What is known of a run as it is now; None as long as it has not been read."""
        return self._known.get(_identity(run))

    def begin(self, runs: Sequence[Run]) -> FactsJob:
        """Makes reading these runs the current job; any older one is cancelled. Its `work` remains to be done."""
        self.cancel()
        self._job = FactsJob(tuple(run for run in runs if _identity(run) not in self._known))
        return self._job

    def cancel(self) -> None:
        """Ends the current job, at its next line of a file."""
        if self._job is not None:
            self._job.cancelled.set()

    def work(self, job: FactsJob) -> None:
        try:
            self._read_all(job)
        finally:
            self._keep()

    def _read_all(self, job: FactsJob) -> None:
        last, is_told = self._clock(), True
        for run in job.runs:
            try:
                facts = self._read(run, job.cancelled.is_set)
            except Cancelled:
                return
            if job.cancelled.is_set():
                return
            self._known[_identity(run)] = facts
            is_told = self._clock() - last >= TELL_SECONDS
            if is_told:
                self._tell()
                last = self._clock()
        if not is_told:
            self._tell()


class ListPopups:
    """Opens the lists.

    Args:
        compare: called with the older and the newer of two runs, or with two files or folders of compiled programs.
        now: seconds since 1970, for the age of runs.
        options: what is kept of runs.
    """

    def __init__(
        self,
        context: AppContext,
        current_run: CurrentRun,
        compare: Callable[[Run, Run], object],
        now: Callable[[], float],
        options: AppOptions,
    ) -> None:
        self._context = context
        self._current_run = current_run
        self._compare = compare
        self._now = now
        self._is_of_hlo = options.only_hlo
        self._kept = KeptFacts(options)
        self._facts = FactsReader(lambda: context.post_news(self, None), self._kept.read, keep=self._kept.keep)
        self._points = KeptPoints(options)
        self._series = Series(context, self._points, lambda: context.post_news(self, None))
        self._list: Any = None

    def open_runs(self, marked: Run | None = None) -> None:
        """Lists the runs, to open one or to compare two, of which one may be marked already."""
        logdir = self._current_run.logdir
        if logdir is None:
            return
        if self._is_of_hlo:
            self._choose("Compiled programs beside this one", self._current_run.open_run)
            return
        self._kept.place = self._points.place = logdir.query
        shown, title = self._current_run, f"Runs in {printable(logdir.query)}"
        callbacks = self._facts.facts, shown.open_run, self._compare, self._now
        listed = load_above("runs")(logdir.runs, *callbacks, shown.run, marked, self._series)
        self._list = ListPopup(self._context.look, title, listed, closed=self.end)
        self._context.open(self._list)
        self._read_facts(logdir.runs)

    def compare(self) -> None:
        """Compares the shown run with the other one; lists the runs to choose from where there are several others."""
        runs = () if self._current_run.logdir is None else self._current_run.logdir.runs
        pair, shown = [run for run in runs if run.hosts], self._current_run.run
        if shown is not None and self._is_of_hlo:
            self._choose(f"Compare {printable(shown.name)} with", lambda run: self._compare(run, shown))
        elif len(pair) != 2:
            self.open_runs(self._current_run.run)
        else:
            self._compare(*_newest_first(pair)[::-1])

    def _choose(self, title: str, chosen: Callable[[Run], object]) -> None:
        """Lists the files or folders of compiled programs but the one that is shown."""
        shown, logdir = self._current_run.run, self._current_run.logdir
        runs = () if logdir is None else logdir.runs
        rows = [ChoiceRow((printable(run.name),), run) for run in runs if shown is None or run.path != shown.path]
        if rows:
            self._context.open(ListPopup(self._context.look, title, ChoiceList(("name",), rows, chosen, _ABOUT)))
        else:
            self._context.flash = "No other compiled program lies beside it."

    def refresh(self) -> None:
        logdir = self._current_run.logdir
        if logdir is not None and self._is_open:
            self._list.listed.set_runs(logdir.runs)
            self._context.redraw()
            self._read_facts(logdir.runs)

    @property
    def _is_open(self) -> bool:
        return self._list is not None and self._context.popup is self._list

    def _read_facts(self, runs: Sequence[Run]) -> None:
        self._context.work("facts", partial(self._facts.work, self._facts.begin(runs)))

    def take(self, news: None) -> None:
        if self._is_open:
            self._context.redraw()

    def open_hosts(self) -> None:
        """Compares the hosts of the run and their cores, where they are read by now."""
        run = self._current_run.run
        if run is None or not self._current_run.has_overview or self._current_run.is_loading:
            self._context.flash = "The hosts are not read yet: ctrl+p and the name of a host opens that one alone."
        else:
            self._context.flash = f"Comparing {counted(len(run.hosts), 'host')}" if len(run.hosts) > 1 else ""
            self._current_run.load_page("hosts", of_all_hosts=True)

    def show_hosts(self, page: HostsPage) -> None:
        run = self._current_run.run
        if run is not None:
            self._context.flash = ""
            title, chosen = f"Hosts and cores of {printable(run.name)}", partial(self._current_run.open_host, run)
            shown = self._current_run.core or self._current_run.host
            self._context.open(ListPopup(self._context.look, title, load_above("hosts")(page, chosen, shown)))

    def end(self) -> None:
        """Reads no more of the runs that a list had."""
        self._facts.cancel()
        self._series.cancel()


class Comparisons:
    """Compares runs, one pair at a time; `options` say how their hosts are read.

    While runs are compared the footer has `words`, which are empty else.
    """

    def __init__(self, context: AppContext, options: AppOptions) -> None:
        self.words = ""
        self._context = context
        self._options = options
        self._job = threading.Event()  # set when the comparison is given up

    def compare(self, before: Run, after: Run) -> None:
        """Compares two runs; a comparison that is running is given up."""
        self.stop()
        self.words = f"Comparing {printable(before.name)} with {printable(after.name)}; Esc cancels"
        self._job = threading.Event()
        self._context.work("compare", partial(self._work, before, after, self._job), exclusive=False)
        self._context.redraw()

    def stop(self) -> None:
        self.end()
        if self.words:
            self.words = ""
            self._context.flash = "The comparison was cancelled"
            self._context.redraw()

    def end(self) -> None:
        self._job.set()

    def _work(self, before: Run, after: Run, job: threading.Event) -> None:
        try:
            if self._options.only_hlo:
                diff = _compared_programs(
                    (before.path, after.path), *(_programs_at(run.path) for run in (before, after))
                )
            else:
                reading = opener(self._options)
                diff = _compared(*(reading(run, lambda _: None, job.is_set) for run in (before, after)))
        except ProfileError as error:
            diff = error
        except Cancelled:
            return
        self._context.post_news(self, (job, diff))

    def take(self, news: tuple[threading.Event, Any]) -> None:
        """Shows a comparison of runs or of programs, or says why there is none."""
        job, diff = news
        if job.is_set():  # given up since
            return
        self.words = ""
        if isinstance(diff, ProfileError):
            self._context.flash = diff.sentence
        elif self._options.only_hlo:
            lines = partial(command_named("diff-program").load_report().lines, diff)
            self._context.open(TextPopup(self._context.look, "What changed", lines, None))
        else:
            self._context.open_screen("diff", diff)
        self._context.redraw()

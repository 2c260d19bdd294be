"""Loading on a worker thread: from a path to runs to pages, reported to the screen by messages alone.

numpy, protobuf and the parsers are imported here, on the thread, when the first screen already stands.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from tpuprof.parsers.base.errors import Cancelled, ProfileError
from tpuprof.parsers.base.record import dataclass, field
from tpuprof.parsers.pages.shared.key import Later, named_in
from tpuprof.parsers.session.pages import NarrowPages, Pages
from tpuprof.tui.pages import TABS, load_of

if TYPE_CHECKING:
    from tpuprof.parsers.files.logdir import Logdir, Run
    from tpuprof.parsers.hosts.progress import Progress
    from tpuprof.parsers.session.session import Session
    from tpuprof.tui.app.options import AppOptions

PROGRESS_SECONDS = 0.15  # at most one progress message in this time, however fast chunks come
_ESTIMATE_FROM_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class LoadNews:
    """Something about load number `generation`; news of an older load are ignored."""

    generation: int


@dataclass(frozen=True, slots=True)
class RunsFound(LoadNews):
    """The path led to these runs, and this one is being read."""

    logdir: Logdir
    run: Run


@dataclass(frozen=True, slots=True)
class LoadProgress(LoadNews):
    """How far decoding is, and how many seconds it will take yet (None where that is too early to say)."""

    progress: Progress
    seconds_left: float | None


@dataclass(frozen=True, slots=True)
class PageReady(LoadNews):
    """A part of a page of a run is there, of one host or (None) of all, and of one core (``host:2``) or all.

    Attributes:
        page, part: name of the page, in the registry, and which part of it, as its `load` calls it.
        payload: what its view shows.
    """

    run: Run
    host: str | None
    page: str
    part: str
    payload: Any
    core: str | None = None


@dataclass(frozen=True, slots=True)
class LoadDone(LoadNews):
    """Everything that was asked for is there."""


@dataclass(frozen=True, slots=True)
class LoadFailed(LoadNews):
    """The load came to nothing, for a reason that a user can understand."""

    error: ProfileError


ProgressCallback = Callable[["Progress"], None]
OpenSession = Callable[["Run", ProgressCallback, Callable[[], bool]], "Pages"]
FindRuns = Callable[[str], "Logdir"]
Post = Callable[[LoadNews], object]


find_runs: FindRuns = Later("tpuprof.parsers.files.logdir:open_logdir")
find_hlo: Callable[..., Logdir] = Later("tpuprof.parsers.session.hlo:open_hlo_beside")
"""What find the runs, or the compiled modules, that a path leads to: to be called on a thread, as they import much."""


def opener(how: AppOptions) -> Callable[[Run, ProgressCallback, Callable[[], bool]], Session]:
    """What opens a run as the user wants it read: to be called on a thread, as it imports the parsers."""
    open_run = Later("tpuprof.parsers.session.opening:open_run")
    return partial(open_run, cache=how.cache, cache_bytes=how.cache_bytes, jobs=how.jobs)


def open_hlo_session(run: Run, _: object, is_cancelled: Callable[[], bool], device: str | None = None) -> Pages:
    """How compiled modules without a profile are opened, for a type of TPU."""

    def poll() -> None:
        if is_cancelled():
            raise Cancelled

    session: Pages = named_in("tpuprof.parsers.session.hlo:HloSession")(run, device, poll)
    return session


@dataclass(frozen=True, slots=True)
class Request:
    """What to load.

    Attributes:
        run_name: which run, by name or the beginning of one; None for the newest.
        host: which host of it; None for all merged.
        core: which core or chip alone, ``host:2``; None for all.
        logdir: the runs, where they are known already; None to look for them (again).
        pages: names of what of it to read, in this order.
    """

    path: str
    run_name: str | None = None
    host: str | None = None
    logdir: Logdir | None = None
    pages: tuple[str, ...] = (TABS[0].name,)
    core: str | None = None


@dataclass(slots=True)
class Job:
    """One running load.

    Attributes:
        generation: counts loads; messages carry it.
        cancelled: set to stop the work.
        finished: set when the thread is done with the session.
        is_settled: the screen has its answer; belongs to the screen's thread.
    """

    generation: int
    request: Request
    cancelled: threading.Event = field(default_factory=threading.Event)
    finished: threading.Event = field(default_factory=threading.Event)
    is_settled: bool = False


class Loader:
    """Runs loads one after the other and keeps the session of the last run, whose decoded hosts stay at hand.

    `begin`, `cancel` and `settle` belong to the screen's thread, `work` to a worker thread.

    Args:
        find, open_pages: turn a path into runs, and a run into pages.
        post: hands a message to the screen; called on the worker thread.
        clock: seconds, for progress and its estimate.
    """

    def __init__(
        self, find: FindRuns, open_pages: OpenSession, post: Post, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._find = find
        self._open_pages = open_pages
        self._post = post
        self._clock = clock
        self._generation = 0
        self._job: Job | None = None
        self._kept: _OpenRun | None = None
        self._replaced = False

    @property
    def is_loading(self) -> bool:
        return self._job is not None and not self._job.is_settled and not self._job.cancelled.is_set()

    def is_current(self, news: LoadNews) -> bool:
        """Whether a message is from the newest load and that one was not cancelled; others are out of date."""
        job = self._job
        return job is not None and news.generation == job.generation and not job.cancelled.is_set()

    def settle(self) -> None:
        """The screen has got a page or an error: nothing more is awaited."""
        if self._job is not None:
            self._job.is_settled = True

    def begin(self, request: Request) -> Job:
        """Makes a load the current one; any older one is cancelled. Its `work` remains to be run on a thread."""
        self.cancel()
        self._generation += 1
        self._job = Job(self._generation, request)
        return self._job

    def cancel(self) -> bool:
        """Stops the current load, if there is one: at once for the screen, at its next chunk for the thread."""
        was_loading = self.is_loading
        if self._job is not None:
            self._job.cancelled.set()
        return was_loading

    def work(self, job: Job) -> None:
        """Does a load and posts what comes of it; what is not the profile's fault is raised."""
        try:
            self._load(job)
        except ProfileError as error:
            self._tell(job, LoadFailed(job.generation, error))
        except Cancelled:
            pass  # the screen said so itself
        finally:
            job.finished.set()

    def _load(self, job: Job) -> None:
        request = job.request
        logdir = request.logdir or self._find(request.path)
        run = logdir.find_run(request.run_name)
        self._tell(job, RunsFound(job.generation, logdir, run))
        pages, looked_at, host = self._opened(job, run).pages, run, request.host
        if request.core is not None:
            if isinstance(pages, NarrowPages):
                pages = one = pages.of_core(request.core, host)
                looked_at = one.run
            else:
                looked_at = run.of_core(request.core, host)
            host = None
        core = looked_at.core or None
        for name in request.pages:

            def tell(part: str, payload: object, page: str = name) -> None:
                self._tell(job, PageReady(job.generation, run, host, page, part, payload, core))

            load_of(name)(pages, looked_at, host, tell)
        self._tell(job, LoadDone(job.generation))
        if self._replaced:
            self._replaced = False
            gc.collect()  # a session and its pages know each other: with --latest, old ones would pile up for long

    def _opened(self, job: Job, run: Run) -> _OpenRun:
        """The session of a run: the kept one where it is the same run and no other thread still uses it."""
        kept = self._kept
        if kept is not None and kept.run == run and kept.job.finished.is_set():
            kept.serve(job)
            return kept
        self._replaced = kept is not None
        opened = _OpenRun(run, job, self._tell, self._clock)
        opened.pages = self._open_pages(run, opened.on_progress, opened.is_cancelled)
        self._kept = opened
        return opened

    def _tell(self, job: Job, news: LoadNews) -> None:
        if not job.cancelled.is_set():
            self._post(news)


class _OpenRun:
    """A run's session, whose callbacks go to whichever load uses it now: progress thinned out, with an estimate."""

    pages: Pages

    def __init__(self, run: Run, job: Job, tell: Callable[[Job, LoadNews], None], clock: Callable[[], float]) -> None:
        self.run = run
        self._tell = tell
        self._clock = clock
        self._lock = threading.Lock()
        self.serve(job)

    def serve(self, job: Job) -> None:
        self.job = job
        self._start = self._clock()
        self._last = self._start - PROGRESS_SECONDS
        self._was_fetching = False

    def on_progress(self, progress: Progress) -> None:
        """Posts the progress unless one was posted just before; called on any decoding thread."""
        now = self._clock()
        with self._lock:
            if now - self._last < PROGRESS_SECONDS:
                return
            self._last = now
            if progress.is_fetching != self._was_fetching:  # how fast bytes come says nothing about decoding them
                self._start, self._was_fetching = now, progress.is_fetching
        elapsed, done, total = now - self._start, progress.bytes_done, progress.bytes_total
        is_early = elapsed < _ESTIMATE_FROM_SECONDS or not 0 < done <= total
        left = None if is_early else elapsed * (total - done) / done
        self._tell(self.job, LoadProgress(self.job.generation, progress, left))

    def is_cancelled(self) -> bool:
        return self.job.cancelled.is_set()

"""Loading on a worker thread: from a path to runs to a page, told to the screen by messages alone.

numpy, protobuf and the parsers are imported here, on the thread, when the first screen already stands.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from tpuprof.parsers.base.errors import Cancelled, ProfileError
from tpuprof.tui.app.messages import (
    FlowsReady,
    FrameworkOpsReady,
    HostsReady,
    InputReady,
    LoadDone,
    LoadFailed,
    LoadMessage,
    LoadProgress,
    MemoryProfileReady,
    MemoryReady,
    OpsReady,
    OverviewReady,
    RunsFound,
    TimelineReady,
)

if TYPE_CHECKING:
    from tpuprof.parsers.files.logdir import Logdir, Run
    from tpuprof.parsers.formats.hlo.programs import HloModules
    from tpuprof.parsers.hosts.progress import Progress
    from tpuprof.parsers.memory.allocators.model import MemoryProfilePage, ModuleRuns
    from tpuprof.parsers.pages.hosts.model import HostsPage
    from tpuprof.parsers.pages.input.model import InputPipelinePage
    from tpuprof.parsers.pages.memory import CompiledModules
    from tpuprof.parsers.pages.ops.framework_ops import FrameworkOpsPage
    from tpuprof.parsers.pages.ops.op_profile import OpProfilePage
    from tpuprof.parsers.pages.ops.roofline import RooflinePage
    from tpuprof.parsers.pages.overview.model import Overview
    from tpuprof.parsers.timeline.model import Timeline
    from tpuprof.parsers.timeline.read.flows import Flows
    from tpuprof.tui.pages.memory.modules import MemoryPages
    from tpuprof.tui.pages.ops.shelf import OpPages

PROGRESS_SECONDS = 0.15
"""At most one progress message in this time, however fast chunks come."""

_ESTIMATE_FROM_SECONDS = 0.5

PageName = Literal["overview", "input", "ops", "timeline", "memory", "hosts"]


class Pages(Protocol):
    """What the screen needs of a session (`parsers.session.session.Session`)."""

    def overview(self, host: str | None = None) -> Overview:
        """The overview of one host, or of all merged."""

    def input_pipeline(self, host: str | None = None) -> InputPipelinePage:
        """The input pipeline."""

    def op_profile(self, host: str | None = None, with_idle: bool = True) -> OpProfilePage:
        """The op profile's trees."""

    def framework_ops(self, host: str | None = None) -> FrameworkOpsPage:
        """Framework ops, on the device and on the host."""

    def roofline(self, host: str | None = None, with_infeed: bool = True) -> RooflinePage:
        """The roofline."""

    def modules(self, host: str | None = None) -> tuple[HloModules, ...]:
        """The HLO modules."""

    def timeline(self, host: str | None = None) -> Timeline:
        """All events of one host."""

    def flows(self, timeline: Timeline) -> Flows:
        """What leads from event to event."""

    def memory(self, host: str | None = None) -> CompiledModules:
        """The compiled modules."""

    def memory_profile(self, host: str | None = None) -> MemoryProfilePage:
        """What the allocators reported."""

    def module_runs(self, host: str | None = None) -> tuple[ModuleRuns, ...]:
        """Runs of compiled modules on the devices."""

    def hosts(self) -> HostsPage:
        """The hosts compared."""


@runtime_checkable
class PartialPages(Protocol):
    """Pages of which the overview is known before all hosts are read (`parsers.session.session.Session`)."""

    def overview_as_read(self, host: str | None, on_partial: Callable[[Overview, int, int], None]) -> Overview:
        """The overview; before that, now and then, one of the hosts read so far, their number, and of how many."""


ProgressCallback = Callable[["Progress"], None]
OpenSession = Callable[["Run", ProgressCallback, Callable[[], bool]], Pages]
FindRuns = Callable[[str], "Logdir"]
Post = Callable[[LoadMessage], object]


def find_runs(path: str) -> Logdir:
    """`parsers.files.logdir.open_logdir`, imported when called."""
    from tpuprof.parsers.files.logdir import open_logdir  # noqa: PLC0415 - keeps the first frame free of it

    return open_logdir(path)


def open_session(run: Run, on_progress: ProgressCallback, is_cancelled: Callable[[], bool]) -> Pages:
    """`parsers.session.session.Session`, imported when called."""
    from tpuprof.parsers.session.session import Session  # noqa: PLC0415 - brings numpy and protobuf

    return Session(run, on_progress, is_cancelled)


def open_scheduled(scheduler: str) -> OpenSession:
    """How to open runs whose hosts are read by the workers of a Dask scheduler."""

    def opened(run: Run, on_progress: ProgressCallback, is_cancelled: Callable[[], bool]) -> Pages:
        from tpuprof.parsers.session.session import Session  # noqa: PLC0415 - brings numpy and protobuf

        return Session(run, on_progress, is_cancelled, scheduler=scheduler)

    return opened


def find_hlo(path: str) -> Logdir:
    """`parsers.session.hlo.open_hlo`, imported when called."""
    from tpuprof.parsers.session.hlo import open_hlo  # noqa: PLC0415

    return open_hlo(path)


def open_hlo_session(device: str | None) -> OpenSession:
    """How to open compiled modules without a profile, for a type of TPU."""

    def opened(run: Run, on_progress: ProgressCallback, is_cancelled: Callable[[], bool]) -> Pages:
        from tpuprof.parsers.session.hlo import HloSession  # noqa: PLC0415

        return HloSession(run, device)

    return opened


def op_pages(pages: Pages, host: str | None) -> OpPages:
    """What the ops tab shows at first."""
    from tpuprof.tui.pages.ops.shelf import OpPages  # noqa: PLC0415 - when it is asked for

    for module in (
        "parsers.ops.filter",
        "parsers.pages.ops.details",
        "tui.pages.ops.fields.framework_ops",
        "tui.draw.source_lines",
    ):
        import_module(f"tpuprof.{module}")  # what keys need later is read here, and not on the screen's thread
    return OpPages(
        profile=pages.op_profile(host),
        profile_without_idle=pages.op_profile(host, with_idle=False),
        roofline=pages.roofline(host),
        roofline_without_feeds=pages.roofline(host, with_infeed=False),
        modules=pages.modules(host),
    )


def timeline_of(pages: Pages, host: str | None) -> Timeline:
    """What the timeline tab shows."""
    timeline = pages.timeline(host)
    # what takes a while, and what keys need later, is made and read here, and not on the screen's thread
    for module in (
        "tui.pages.timeline.draw.frame",
        "tui.pages.timeline.popup",
        "tui.pages.timeline.draw.event_details",
    ):
        import_module(f"tpuprof.{module}")
    from tpuprof.parsers.timeline.windows import prepare  # noqa: PLC0415

    prepare(timeline)
    return timeline


def memory_pages(pages: Pages, host: str | None) -> MemoryPages:
    """What the memory tab shows at first: all modules, and the one with the largest peak."""
    from tpuprof.tui.pages.memory.modules import MemoryPages  # noqa: PLC0415 - when it is asked for

    import_module(
        "tpuprof.tui.pages.memory.module_view"
    )  # what the screen needs at once is read here, not on its thread
    return MemoryPages.of(pages.memory(host))


@dataclass(frozen=True, slots=True)
class Request:
    """What to load.

    Attributes:
        path: where to look for runs.
        run_name: which run, by name or the beginning of one; None for the newest.
        host: which host of it; None for all merged.
        logdir: the runs, where they are known already; None to look for them (again).
        pages: what of it, in this order.
    """

    path: str
    run_name: str | None = None
    host: str | None = None
    logdir: Logdir | None = None
    pages: tuple[PageName, ...] = ("overview",)


@dataclass(slots=True)
class Job:
    """One load under way.

    Attributes:
        generation: counts loads; messages carry it.
        request: what is asked for.
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
        find: turns a path into runs.
        open_pages: turns a run into pages.
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

    @property
    def is_loading(self) -> bool:
        """Whether a load is under way that nobody cancelled."""
        return self._job is not None and not self._job.is_settled and not self._job.cancelled.is_set()

    def is_current(self, message: LoadMessage) -> bool:
        """Whether a message is from the newest load and that one was not cancelled; others are out of date."""
        job = self._job
        return job is not None and message.generation == job.generation and not job.cancelled.is_set()

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
        pages = self._opened(job, run).pages
        for name in request.pages:
            if name == "overview":
                self._tell(job, OverviewReady(job.generation, run, request.host, self._overview(job, run, pages)))
            elif name == "hosts":
                import_module("tpuprof.tui.pages.hosts.drawing")  # what the screen needs at once is read here
                self._tell(job, HostsReady(job.generation, pages.hosts()))
            elif name == "input":
                self._tell(job, InputReady(job.generation, pages.input_pipeline(request.host)))
            elif name == "timeline":
                timeline = timeline_of(pages, request.host)
                self._tell(job, TimelineReady(job.generation, timeline))
                self._tell(job, FlowsReady(job.generation, pages.flows(timeline)))
            elif name == "memory":
                self._tell(job, MemoryReady(job.generation, memory_pages(pages, request.host)))
                over_time = pages.memory_profile(request.host)
                self._tell(job, MemoryProfileReady(job.generation, over_time, pages.module_runs(request.host)))
            else:
                self._tell(job, OpsReady(job.generation, op_pages(pages, request.host)))
                self._tell(job, FrameworkOpsReady(job.generation, pages.framework_ops(request.host)))
        self._tell(job, LoadDone(job.generation))

    def _overview(self, job: Job, run: Run, pages: Pages) -> Overview:
        """The overview of all hosts; that of the first ones is told meanwhile."""
        host = job.request.host
        if not isinstance(pages, PartialPages):
            return pages.overview(host)

        def tell(page: Overview, done: int, total: int) -> None:
            self._tell(job, OverviewReady(job.generation, run, host, page, hosts_done=done, hosts_total=total))

        return pages.overview_as_read(host, tell)

    def _opened(self, job: Job, run: Run) -> _OpenRun:
        """The session of a run: the kept one where it is the same run and no other thread still uses it."""
        kept = self._kept
        meter = _Meter(job, self._tell, self._clock)
        if kept is not None and kept.run == run and kept.meter.job.finished.is_set():
            kept.meter = meter
            return kept
        opened = _OpenRun(run, meter)
        opened.pages = self._open_pages(run, opened.on_progress, opened.is_cancelled)
        self._kept = opened
        return opened

    def _tell(self, job: Job, message: LoadMessage) -> None:
        if not job.cancelled.is_set():
            self._post(message)


class _Meter:
    """Thins out progress by time and estimates what is left."""

    def __init__(self, job: Job, tell: Callable[[Job, LoadMessage], None], clock: Callable[[], float]) -> None:
        self.job = job
        self._tell = tell
        self._clock = clock
        self._lock = threading.Lock()
        self._start = clock()
        self._last = self._start - PROGRESS_SECONDS

    def report(self, progress: Progress) -> None:
        """Posts the progress unless one was posted just before; called on any decoding thread."""
        now = self._clock()
        with self._lock:
            if now - self._last < PROGRESS_SECONDS:
                return
            self._last = now
        self._tell(self.job, LoadProgress(self.job.generation, progress, self._left(progress, now - self._start)))

    @staticmethod
    def _left(progress: Progress, elapsed: float) -> float | None:
        """Seconds left at the speed so far."""
        done, total = progress.bytes_done, progress.bytes_total
        if elapsed < _ESTIMATE_FROM_SECONDS or done <= 0 or done > total:
            return None
        return elapsed * (total - done) / done


class _OpenRun:
    """A run's session, whose callbacks go to whichever load uses it now."""

    pages: Pages

    def __init__(self, run: Run, meter: _Meter) -> None:
        self.run = run
        self.meter = meter

    def on_progress(self, progress: Progress) -> None:
        """Passes progress on."""
        self.meter.report(progress)

    def is_cancelled(self) -> bool:
        """Whether the load that uses the session now is cancelled."""
        return self.meter.job.cancelled.is_set()

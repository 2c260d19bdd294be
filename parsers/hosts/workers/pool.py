"""Work on many hosts over processes of this machine.

A worker gets a file's path and returns a small summary. It hands out only a few hosts more than there are workers, so
that little is running when the work is cancelled.
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from multiprocessing import parent_process, resource_tracker
from multiprocessing.connection import wait
from multiprocessing.sharedctypes import RawArray
from typing import Any, Generic, TextIO

from tpuprof.parsers.base.errors import Cancelled, ProfileError, one_part
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.files.places import HostFile
from tpuprof.parsers.hosts.progress import HostAtWork, OnProgress, Progress, ProgressReceiver
from tpuprof.parsers.hosts.reduction import Result

Work = Callable[[HostFile, Any, ProgressReceiver, int], Result]
"""File, what the work is given besides, watch and number of threads; other processes import it by its name.

Raises `ProfileError` where the file cannot be read, and `Cancelled`.
"""

_CANCELLED, _COLUMNS = 1, 5
_PROCESS, _NEEDED, _BYTES, _EVENTS, _FETCHING = range(_COLUMNS)


class SharedProgress:
    """Numbers in shared memory: a flag to stop, and for each host its process, and its bytes and events so far.

    Only one process writes a host's numbers at a time; a reader may see one of them a moment before the others.

    Args:
        hosts: how many hosts there are.
    """

    def __init__(self, hosts: int) -> None:
        self._cells: ctypes.Array[ctypes.c_int64] = RawArray(ctypes.c_int64, _CANCELLED + _COLUMNS * hosts)

    def cancel(self) -> None:
        self._cells[0] = 1

    @property
    def is_cancelled(self) -> bool:
        return bool(self._cells[0])

    def begin(self, host: int, process: int) -> None:
        """Notes which process decodes a host; 0 for none."""
        self._write(host, (process, 0, 0, 0, 0))

    def end(self, host: int) -> None:
        self._cells[_CANCELLED + _COLUMNS * host + _PROCESS] = 0

    def report(self, host: int, needed: int, size: int, events: int, is_fetching: bool = False) -> None:
        """Notes the bytes to decode or to fetch, and the bytes and events so far."""
        self._write(host, (self.process(host), needed, size, events, int(is_fetching)))

    def is_fetching(self, host: int) -> bool:
        """Whether the bytes of a host are those that are fetched from afar."""
        return bool(self._cells[_CANCELLED + _COLUMNS * host + _FETCHING])

    def process(self, host: int) -> int:
        """The process that decodes a host now, or 0."""
        return int(self._cells[_CANCELLED + _COLUMNS * host + _PROCESS])

    def so_far(self, host: int) -> tuple[int, int, int]:
        """The bytes to decode (0 while unknown), and the bytes and events so far."""
        first = _CANCELLED + _COLUMNS * host
        return int(self._cells[first + _NEEDED]), int(self._cells[first + _BYTES]), int(self._cells[first + _EVENTS])

    def _write(self, host: int, values: tuple[int, ...]) -> None:
        first = _CANCELLED + _COLUMNS * host
        self._cells[first : first + _COLUMNS] = list(values)


class _SharedProgressWatch:
    """Reports one host's progress to the board, and stops the work when the board says so."""

    def __init__(self, shared: SharedProgress, host: int) -> None:
        self._shared = shared
        self._host = host
        self._lock = threading.Lock()
        self._needed = self._bytes = self._events = 0

    def fetched(self, done: int, total: int | None) -> None:
        self._shared.report(self._host, max(total or 0, done), done, 0, is_fetching=True)
        if self._shared.is_cancelled:
            raise Cancelled

    def opened(self, needed: int) -> None:
        self._needed = needed
        self.chunk(0, 0)

    def chunk(self, size: int, events: int) -> None:
        with self._lock:
            self._bytes += size
            self._events += events
            self._shared.report(self._host, self._needed, self._bytes, self._events)
        if self._shared.is_cancelled:
            raise Cancelled


class _Worker:
    """What a worker process knows. It gets the board when it starts, because a task cannot carry one."""

    shared: SharedProgress


def begin_worker(shared: SharedProgress) -> None:
    """Prepares a worker process: it writes nothing, leaves Ctrl+C to its parent, and ends when the parent has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):  # the screen is the parent's
        os.dup2(nowhere, stream)
    os.close(nowhere)
    _Worker.shared = shared
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)  # the work is for nobody


def do_work(work: Work[Result], file: HostFile, given: object, index: int, threads: int) -> Result | ProfileError:
    """Does the work on host number `index` of the run, in a worker; returns why that could not be done.

    Raises:
        Cancelled: the board said so.
    """
    shared = _Worker.shared
    if shared.is_cancelled:
        raise Cancelled
    shared.begin(index, os.getpid())
    try:
        return work(file, given, _SharedProgressWatch(shared, index), threads)
    except ProfileError as error:
        return error
    except MemoryError:
        sentence = f"{printable(file.host)} could not be read: this machine's memory was not enough for it."
        return ProfileError("memory", sentence, "close other programs, or look at one host at a time with --host")
    finally:
        shared.end(index)


POLL_SECONDS = 0.05
"""How often it reports progress and looks whether the user wants to stop."""

GRACE_SECONDS = 0.2
"""How long workers may take to stop by themselves before they are ended."""

Poll = Callable[["SharedProgress | None"], None]
"""Called every `POLL_SECONDS`; raises `Cancelled` to stop."""


@dataclass(frozen=True, slots=True)
class Task(Generic[Result]):
    """Work on the hosts of a run.

    Attributes:
        given: what the work is given besides each file; nothing where it is empty.
        threads: how many each worker uses.
    """

    work: Work[Result]
    files: Sequence[HostFile]
    poll: Poll
    given: Sequence[object] = ()
    threads: int = 1


def over_processes(
    task: Task[Result], workers: int, inline: Callable[[HostFile], Result | ProfileError]
) -> Iterator[tuple[int, Result | ProfileError]]:
    """Yields each host's index and outcome as processes finish them, which end with this one, whatever happens.

    When a process dies, it tries the hosts that were at work once more, one at a time, as together they may have needed
    too much memory. A host whose process dies again is a failure.

    Args:
        inline: does the work in this process where no other can be started.

    Raises:
        Cancelled: `Task.poll` said so.
    """
    waiting, suspects = deque(range(len(task.files))), deque[int]()
    shared = None
    with contextlib.suppress(OSError):  # processes cannot share memory
        shared = SharedProgress(len(task.files))
    while shared is not None and (waiting or suspects):
        is_retry = bool(suspects)
        batch, size = (suspects, 1) if is_retry else (waiting, workers)
        executor = _processes(shared, min(size, len(batch)))
        if executor is None:
            break
        gone: list[int] = []
        with _ended(executor, shared, len(task.files)):
            for index, outcome in _results(task, executor, batch, size + 1, shared):
                if outcome is None:
                    gone.append(index)
                else:
                    yield index, outcome
        blamed = [index for index in gone if shared.process(index)]
        batch.extendleft(index for index in reversed(gone) if index not in blamed)
        if batch and not blamed:
            break  # processes die before they begin: as well do without
        for index in blamed:
            shared.begin(index, 0)
            if is_retry:
                yield index, _died(task.files[index])
            else:
                suspects.append(index)
        workers = max(1, workers // 2) if blamed else workers
    for index in suspects:
        yield index, _died(task.files[index])
    for index in waiting:
        yield index, inline(task.files[index])


def _died(file: HostFile) -> ProfileError:
    sentence = f"{printable(file.path)} could not be read: the process that decoded it was ended from outside."
    return ProfileError(
        "worker_died", sentence, "it may have needed more memory than the machine has: check the system's log"
    )


def _results(
    task: Task[Result], executor: Executor, waiting: deque[int], window: int, shared: SharedProgress
) -> Iterator[tuple[int, Result | ProfileError | None]]:
    """Hands out waiting hosts and yields their outcomes, None where the worker died.

    Hosts that a broken executor refuses stay in `waiting`.
    """
    running: dict[Future[Result | ProfileError], int] = {}
    is_broken = False
    try:
        while running or (waiting and not is_broken):
            while waiting and len(running) < window and not is_broken:
                future = _submitted(task, executor, waiting[0])
                is_broken = future is None
                if future is not None:
                    running[future] = waiting.popleft()
            task.poll(shared)
            done, _ = futures.wait(running, POLL_SECONDS, futures.FIRST_COMPLETED)
            for future in done:
                index = running.pop(future)
                error = CancelledError() if future.cancelled() else future.exception()
                is_broken = is_broken or isinstance(error, BrokenExecutor)
                is_gone = isinstance(error, (BrokenExecutor, CancelledError))
                if is_gone:
                    yield index, None
                else:
                    outcome: Result | ProfileError = _outcome(task.files[index], future)
                    yield index, outcome
        task.poll(shared)  # the last reports
    finally:
        for future in running:
            future.cancel()


def _outcome(file: HostFile, future: Future[Result | ProfileError]) -> Result | ProfileError:
    """What came of a host, also where its summary does not come over from the other process."""
    try:
        with one_part(f"read {printable(file.path)}"):
            return future.result()
    except ProfileError as error:
        return error


def _submitted(task: Task[Result], executor: Executor, index: int) -> Future[Result | ProfileError] | None:
    """Hands out a host; returns None where the executor takes no more or cannot start a process."""
    file, given = task.files[index], task.given[index] if task.given else None
    with _without_interrupts():  # a process keeps what is blocked when it starts: Ctrl+C is for this one alone
        try:
            return executor.submit(do_work, task.work, file, given, index, task.threads)
        except (BrokenExecutor, OSError, RuntimeError):
            return None


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _processes(shared: SharedProgress, workers: int) -> Executor | None:
    """Makes processes from scratch (a copy of this one would lack its threads); None where the system refuses."""
    try:
        _begin_tracking()
        return futures.ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), begin_worker, (shared,))
    except (OSError, ImportError, NotImplementedError, ValueError):  # no semaphores here
        return None


def _begin_tracking() -> None:
    """Starts the process that cleans up semaphores after a crash; it needs standard error, which a screen may hide."""
    with contextlib.ExitStack() as stack:
        if sys.stderr is not None and _number(sys.stderr) < 0:
            stack.enter_context(contextlib.redirect_stderr(None))
        resource_tracker.ensure_running()


def _number(stream: TextIO) -> int:
    try:
        return stream.fileno()
    except (OSError, ValueError):  # it has none; that is heeded
        return 0


@contextlib.contextmanager
def _ended(executor: Executor, shared: SharedProgress, hosts: int) -> Iterator[None]:
    """Ends the processes; where the work ends early, it asks the busy ones to stop and then ends them."""
    try:
        yield
    except BaseException:
        shared.cancel()
        raise
    finally:
        at_work = {shared.process(host) for host in range(hosts)} - {0}
        executor.shutdown(wait=False, cancel_futures=True)
        until = time.monotonic() + GRACE_SECONDS
        children = [child for child in multiprocessing.active_children() if child.pid in at_work]
        for child in children:
            child.join(max(0.0, until - time.monotonic()))
            if child.is_alive():
                child.terminate()


class PoolMeter:
    """Adds up the progress of hosts that are decoded at once, as far as their workers report it.

    Args:
        files: all hosts of the page.
        todo: indices of the hosts that are decoded, in the order of the board.
    """

    def __init__(
        self, files: Sequence[HostFile], todo: Sequence[int], on_progress: OnProgress, is_cancelled: Callable[[], bool]
    ) -> None:
        self._files = files
        self._todo = todo
        self._on_progress = on_progress
        self._is_cancelled = is_cancelled
        self._known = set(range(len(files))) - set(todo)
        self._told: dict[int, tuple[int, int, int]] = {}
        self._fetching: set[int] = set()
        self._last: Progress | None = None

    def done(self, place: int) -> None:
        self._known.add(self._todo[place])

    def poll(self, shared: SharedProgress | None) -> None:
        """Reports what is new, from the board where there is one.

        Raises:
            Cancelled: the user wants to stop.
        """
        if self._is_cancelled():
            raise Cancelled
        if shared is not None:
            self._told = {index: shared.so_far(place) for place, index in enumerate(self._todo)}
            self._fetching = {index for place, index in enumerate(self._todo) if shared.is_fetching(place)}
        busy = [index for place, index in enumerate(self._todo) if shared is not None and shared.process(place)]
        progress = self._progress([index for index in busy if index not in self._known])
        if progress != self._last:
            self._last = progress
            self._on_progress(progress)

    def _progress(self, busy: Sequence[int]) -> Progress:
        so_far = self._told
        sizes = [so_far.get(index, (0, 0, 0))[0] or file.size_bytes for index, file in enumerate(self._files)]
        done = [
            size if index in self._known else min(size, so_far.get(index, (0, 0, 0))[1])
            for index, size in enumerate(sizes)
        ]
        first = busy[0] if busy else next((index for index in self._todo if index not in self._known), 0)
        return Progress(
            host=self._files[first].host,
            host_index=min(len(self._known), len(self._files) - 1),
            host_count=len(self._files),
            bytes_done=sum(done),
            bytes_total=sum(sizes),
            events_done=sum(events for _, _, events in so_far.values()),
            at_work=tuple(HostAtWork(self._files[index].host, done[index], sizes[index]) for index in busy),
            is_fetching=bool(busy) and self._fetching.issuperset(busy),
        )

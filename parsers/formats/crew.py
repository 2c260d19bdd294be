"""Threads that share work: as many as the user allows, and no more however many pieces of work there are."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from threading import Condition, Event, Lock, Thread
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from types import TracebackType

_Item = TypeVar("_Item")
_Part = TypeVar("_Part")


PIECE_BYTES = 1 << 20
"""A piece's columns stay in the processor's cache."""


class Task(Generic[_Part]):
    """Some work for another thread.

    `concurrent.futures` has more of all this, and takes 3 ms of each start to import.
    """

    def __init__(self, work: Callable[[], _Part]) -> None:
        self._work: Callable[[], _Part] | None = work
        self._claim = Lock()  # is taken once: by who does the work, or by who cancels it
        self._ended = Event()
        self._error: BaseException | None = None
        self._part: _Part

    def do(self) -> None:
        """Does the work, unless it was cancelled."""
        work = self._work
        if work is None or not self._claim.acquire(blocking=False):
            return
        try:
            self._part = work()
        except BaseException as error:  # noqa: BLE001 - it is raised where somebody waits
            self._error = error
        finally:
            self._work = None
            self._ended.set()

    def cancel(self) -> bool:
        """Whether the work has not begun; then it never will, and nothing of it is kept."""
        is_mine = self._claim.acquire(blocking=False)
        if is_mine:
            self._work = None
        return is_mine

    def done(self) -> bool:
        """Whether the work has ended."""
        return self._ended.is_set()

    def exception(self) -> BaseException | None:
        """Waits for the work, and returns what it has raised."""
        self._ended.wait()
        return self._error

    def result(self) -> _Part:
        """Waits for the work, and returns or raises what it did."""
        self._ended.wait()
        if self._error is not None:
            raise self._error
        return self._part


class _Pool:
    """Threads that do tasks in their order. One starts whenever more tasks wait than threads do."""

    def __init__(self, threads: int) -> None:
        self._most = threads
        self._tasks: deque[Task[Any]] = deque()
        self._threads: list[Thread] = []
        self._idle = 0
        self._is_over = False
        self._changed = Condition()

    def add(self, task: Task[_Part]) -> Task[_Part]:
        """Has a task done."""
        with self._changed:
            self._tasks.append(task)
            if self._idle < len(self._tasks) and len(self._threads) < self._most:
                self._threads.append(Thread(target=self._serve, name=f"crew {len(self._threads)}"))
                self._threads[-1].start()
            self._changed.notify()
        return task

    def _serve(self) -> None:
        while (task := self._next()) is not None:
            task.do()
            del task  # and with it what it has made

    def _next(self) -> Task[Any] | None:
        """Waits for a task; None when there will be no more."""
        with self._changed:
            self._idle += 1
            while not self._tasks and not self._is_over:
                self._changed.wait()
            self._idle -= 1
            return self._tasks.popleft() if self._tasks else None

    def end(self) -> None:
        """Cancels the tasks that wait, and waits for those that have begun."""
        with self._changed:
            self._is_over = True
            while self._tasks:
                self._tasks.popleft().cancel()
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()


class Crew:
    """Some threads, which start when there is work for a second one. Leave its context to end them.

    Attributes:
        threads: how many work at once, the caller's included; at least 1.
        piece_bytes: about how many bytes of a long line one of them decodes at a time.
    """

    def __init__(self, threads: int = 1, piece_bytes: int = PIECE_BYTES) -> None:
        self.threads = max(1, threads)
        self.piece_bytes = piece_bytes
        self._lock = Lock()
        self._waiting = self._running = 0  # items of `map`
        self._started: _Pool | None = None

    def __enter__(self) -> Crew:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._started is not None:
            self._started.end()
            self._started = None

    def submit(self, work: Callable[[_Item], _Part], item: _Item) -> Task[_Part]:
        """Does some work on another thread, when one is free."""
        return self._add(partial(work, item))

    def _add(self, work: Callable[[], _Part]) -> Task[_Part]:
        if self._started is None:
            self._started = _Pool(self.threads)
        return self._started.add(Task(work))

    def map(self, work: Callable[[_Item], _Part], items: Sequence[_Item]) -> list[_Part]:
        """Does some work on each item; when one fails, those that wait are not begun."""
        if self.threads == 1 or len(items) < 2:
            return [work(item) for item in items]
        with self._lock:
            self._waiting += len(items)

        def counted(item: _Item) -> _Part:
            with self._lock:
                self._waiting, self._running = self._waiting - 1, self._running + 1
            try:
                return work(item)
            finally:
                with self._lock:
                    self._running -= 1

        tasks = [self.submit(counted, item) for item in items]
        try:
            return [task.result() for task in tasks]
        finally:
            for task in tasks:
                task.cancel()

    @property
    def has_help(self) -> bool:
        """Whether a thread may be free soon: `map` has fewer items than threads, or the last one has begun."""
        with self._lock:
            return self.threads > 1 and (self._waiting == 0 or self._waiting + self._running < self.threads)

    def share(self, work: Callable[[], None]) -> None:
        """Calls `work` here, and once on each other thread that has nothing else to do before this call returns.

        The calls divide among themselves what there is to do. They begin at any time, also when nothing is left.

        Raises:
            Exception: what one of the calls raised.
        """
        if self.threads == 1:
            work()
            return
        helpers = [self._add(work) for _ in range(self.threads - 1)]
        try:
            work()
        finally:
            begun = [helper for helper in helpers if not helper.cancel()]
            failures = [helper.exception() for helper in begun]
        for failure in failures:
            if failure is not None:
                raise failure


ALONE = Crew(1)
"""The calling thread alone."""

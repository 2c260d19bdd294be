"""Threads that share work: as many as the user allows, and no more however many pieces of work there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor
    from types import TracebackType

_Item = TypeVar("_Item")
_Part = TypeVar("_Part")


PIECE_BYTES = 1 << 20
"""A piece's columns stay in the processor's cache."""


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
        self._started: ThreadPoolExecutor | None = None

    def __enter__(self) -> Crew:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._started is not None:
            self._started.shutdown(cancel_futures=True)
            self._started = None

    @property
    def _pool(self) -> ThreadPoolExecutor:
        if self._started is None:
            from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - it brings logging, which one core spares

            self._started = ThreadPoolExecutor(self.threads)
        return self._started

    def submit(self, work: Callable[[_Item], _Part], item: _Item) -> Future[_Part]:
        """Does some work on another thread, when one is free."""
        return self._pool.submit(work, item)

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

        return list(self._pool.map(counted, items))

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
        offered = [work]

        def help_out() -> None:
            for each in tuple(offered):
                each()

        helpers = [self._pool.submit(help_out) for _ in range(self.threads - 1)]
        try:
            work()
        finally:
            begun = [helper for helper in helpers if not helper.cancel()]
            offered.clear()  # a cancelled call waits in the queue for a thread, and would keep all that it works on
            failures = [helper.exception() for helper in begun]
        for failure in failures:
            if failure is not None:
                raise failure


ALONE = Crew(1)
"""The calling thread alone."""

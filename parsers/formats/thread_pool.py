"""Threads that share work: as many as the user allows, and no more however many items there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor
    from types import TracebackType

_Item = TypeVar("_Item")
_Part = TypeVar("_Part")


class ThreadPool:
    """Some threads, which start when there is work for a second one. Leave its context to end them.

    Attributes:
        threads: how many work at once, the caller's included; at least 1.
    """

    def __init__(self, threads: int) -> None:
        self.threads = max(1, threads)
        self._started: ThreadPoolExecutor | None = None

    def __enter__(self) -> ThreadPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._started is not None:
            self._started.shutdown(cancel_futures=True)
            self._started = None

    @property
    def _executor(self) -> ThreadPoolExecutor:
        if self._started is None:
            from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - it brings logging, which one core spares

            self._started = ThreadPoolExecutor(self.threads)
        return self._started

    def submit(self, work: Callable[[_Item], _Part], item: _Item) -> Future[_Part]:
        return self._executor.submit(work, item)

    def map(self, work: Callable[[_Item], _Part], items: Sequence[_Item]) -> list[_Part]:
        """Does some work on each item; when one fails, those that wait are not begun."""
        if self.threads == 1 or len(items) < 2:
            return [work(item) for item in items]
        return list(self._executor.map(work, items))

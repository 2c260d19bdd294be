"""A line of a terminal that is drawn over itself: how far decoding is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from tpuprof.parsers.base.text import printable
from tpuprof.tui.draw.format import size

if TYPE_CHECKING:
    from tpuprof.parsers.hosts.progress import Progress

FIRST_AFTER_SECONDS = 0.3
EVERY_SECONDS = 0.1
Say = Callable[[str], object]  # writes a text to standard error
_ERASED = "\r\x1b[K"  # the terminal's line, which what follows begins


class RedrawnLine:
    """A line that is drawn over itself on a terminal; what is longer than the terminal's line is cut."""

    def __init__(self, write: Say, width: int) -> None:
        self._write = write
        self._width = width
        self._is_shown = False

    def draw(self, text: str) -> None:
        self._write(f"{_ERASED}{text[: self._width - 1]}")
        self._is_shown = True

    def clear(self) -> None:
        if self._is_shown:
            self._write(_ERASED)
            self._is_shown = False


class ProgressLine(RedrawnLine):
    """Draws how far decoding is, rarely enough to cost nothing."""

    def __init__(self, write: Say, clock: Callable[[], float] = time.monotonic, width: int = 80) -> None:
        super().__init__(write, width)
        self._clock = clock
        self._due = clock() + FIRST_AFTER_SECONDS
        self._lock = threading.Lock()

    def __call__(self, progress: Progress) -> None:
        """Shows how far it is; called on any thread, and skipped when another one is just drawing."""
        if self._clock() < self._due or not self._lock.acquire(blocking=False):
            return
        try:
            self._due = self._clock() + EVERY_SECONDS
            share = 100 * progress.bytes_done // progress.bytes_total if progress.bytes_total else 100
            which = f" ({progress.host_index + 1} of {progress.host_count})" if progress.host_count > 1 else ""
            metrics = f"{share}%, {progress.events_done:,} events"
            if progress.is_fetching:
                metrics = f"{share}%, {size(progress.bytes_done)} of {size(progress.bytes_total)}"
            does = "fetching" if progress.is_fetching else "reading"
            self.draw(f"{does} {printable(progress.host)}{which}: {metrics}")
        finally:
            self._lock.release()

    def clear(self) -> None:
        """Takes the line away; what is read next has one again once it takes long."""
        with self._lock:
            super().clear()
            self._due = self._clock() + FIRST_AFTER_SECONDS

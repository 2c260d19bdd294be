"""The clock of a recorder, whose pauses end when recording is to end."""

from __future__ import annotations

import time

_NAP_SECONDS = 0.2
"""The longest sleep: Python runs the handler of a signal that comes just before a sleep only after that sleep."""


class Clock:
    """The machine's clock, whose pauses end when recording is to end.

    Args:
        length_seconds: how long recording may take; None for no limit.
    """

    def __init__(self, length_seconds: float | None = None) -> None:
        self._end = None if length_seconds is None else self.passed() + length_seconds
        self._is_ended = False

    def now(self) -> float:
        """Seconds since 1970."""
        return time.time()

    def passed(self) -> float:
        """Seconds since some moment; never set back."""
        return time.monotonic()

    def pause(self, seconds: float) -> None:
        """Waits this long, or until recording is to end."""
        until = self.passed() + seconds
        while not self.is_over() and (left := until - self.passed()) > 0:
            time.sleep(min(left, _NAP_SECONDS))

    def end(self) -> None:
        self._is_ended = True

    def is_over(self) -> bool:
        return self._is_ended or (self._end is not None and self.passed() >= self._end)

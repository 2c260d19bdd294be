"""As much of a page as a pipe is given unasked: as many of its first rows as fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tpuprof.tui.report.json import PIPE_BYTES
from tpuprof.tui.report.output import Produce

Made = str | Iterable[str] | Produce
"""What a writer makes of a page."""

_FIRST = 40  # rows that it tries first
_MANY = 200  # rows that surely do not fit
_MOST = PIPE_BYTES // 8  # of rows that might
_TRIES = 6


def fitting(make: Callable[[int | None], Made], rows: int) -> tuple[Made, bool]:
    """The page with as many rows as fit, and whether that is less than all of it.

    Args:
        make: makes the page with so many rows of its tables, of all (None).
        rows: how many the longest table has.

    Returns:
        At least the first row, although it may not fit; a page that is made in pieces as it is.
    """
    if rows <= _MANY:
        whole = make(None)
        if not isinstance(whole, str) or _size(whole) <= PIPE_BYTES:
            return whole, False
    low, high, guess, best = 0, _MOST, _FIRST, ""
    for _ in range(_TRIES):
        text = make(guess)
        assert isinstance(text, str), "pages of many rows are made whole"
        if (size := _size(text)) <= PIPE_BYTES:
            low, best = guess, text
        else:
            high = guess - 1
        if low >= high:
            break
        guess = min(max(int(guess * PIPE_BYTES / size), low + 1), high)
    return best or make(1), True


def _size(text: str) -> int:
    return len(text.encode("utf-8", "backslashreplace"))

"""Signals that end a capture in its own time, instead of raising wherever the program is."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType


@contextlib.contextmanager
def on_signals(act: Callable[[], None], *numbers: signal.Signals, ends: bool = False) -> Iterator[None]:
    """Makes signals call a function for as long as this lasts; only the main thread may do so, others do nothing.

    SIGHUP stays ignored where it is, as below ``nohup``.

    Args:
        ends: the first of these signals that came is raised again afterwards, and ends the program as ever.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    came: list[int] = []

    def on_signal(number: int, _frame: FrameType | None) -> None:
        came.append(number)
        act()

    is_nohup = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    taken = [number for number in numbers if number != signal.SIGHUP or not is_nohup]
    before = {number: signal.signal(number, on_signal) for number in taken}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if ends and came:
            signal.raise_signal(came[0])

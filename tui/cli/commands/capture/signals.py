"""Signals that end a capture in its own time, instead of raising wherever the program is."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType


@contextlib.contextmanager
def on_signals(act: Callable[[], None], *numbers: signal.Signals) -> Iterator[None]:
    """Makes signals call a function for as long as this lasts; only the main thread may do so, others do nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        act()

    before = {number: signal.signal(number, on_signal) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

"""Signals that end the screen, and those that do not."""

from __future__ import annotations

import os
import signal
from threading import Event

from tests.tui.terminal.pty.pty_app import DEADLINE_SECONDS
from tpuprof.tui.terminal.ending import ended_by_signals


def test_a_signal_that_ends_nothing_wakes_the_screen() -> None:
    """Else an app that comes back from the background may sleep on: its handler runs on the main thread alone."""
    woken, left = Event(), list[int]()
    before = signal.signal(signal.SIGWINCH, lambda *_: None)
    try:
        with ended_by_signals(left.append, woken.set):
            os.kill(os.getpid(), signal.SIGWINCH)
            assert woken.wait(DEADLINE_SECONDS)
    finally:
        signal.signal(signal.SIGWINCH, before)
    assert not left

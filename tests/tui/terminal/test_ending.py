"""Signals that end the screen, and those that do not."""

from __future__ import annotations

import os
import signal
import termios
from threading import Event

import pytest

from tests.tui.terminal.pty.pty_app import DEADLINE_SECONDS
from tpuprof.tui.terminal.ending import ENDING, _restore, ended_by_signals


@pytest.mark.parametrize("number", [signal.SIGWINCH, *ENDING])
def test_a_signal_ends_the_screen_with_its_code_or_wakes_it(number: int) -> None:
    """Else an app that comes back from the background may sleep on: its handler runs on the main thread alone."""
    told, left = Event(), list[int]()
    before = signal.signal(number, lambda *_: None)
    try:
        with ended_by_signals(lambda code: left.append(code) or told.set(), lambda _: told.set()):  # type: ignore[func-returns-value]
            os.kill(os.getpid(), number)
            assert told.wait(DEADLINE_SECONDS)
    finally:
        signal.signal(number, before)
    assert left == [128 + number] * (number in ENDING)


def test_a_terminal_is_set_as_it_was() -> None:
    ends = os.openpty()
    before, raw = termios.tcgetattr(ends[1]), termios.tcgetattr(ends[1])
    raw[3] &= ~(termios.ECHO | termios.ICANON)
    termios.tcsetattr(ends[1], termios.TCSANOW, raw)
    for saved, expected in ((None, raw), (before, before)):
        _restore(ends[1], saved)
        assert termios.tcgetattr(ends[1])[:6] == expected[:6]

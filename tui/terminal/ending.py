"""Ends the screen by a signal, whatever its thread is doing, leaves the terminal as it was, and says why it ended.

A terminal that is gone counts as SIGHUP, which the system sends to those alone that it controls. Textual would read
nothing from it for ever.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import termios
from collections.abc import Callable, Iterator
from threading import Event, Thread
from typing import Any

_STDERR = 2  # its descriptor
GRACE_SECONDS = 2.0  # the screen has so long to leave by itself
_NAMES = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGXCPU", "SIGALRM", "SIGUSR1", "SIGUSR2")
ENDING = tuple(signal.Signals[name] for name in _NAMES)  # the signals that end the app

# Synchronized output, mouse, focus, pasting, sizes in band, kitty's keys; then the other screen, wrapping, the cursor.
_LEAVE = (
    b"\x1b[?2026l\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1004l\x1b[?2004l\x1b[?2048l\x1b[<u"
    b"\x1b[?1049l\x1b[?7h\x1b[?25h"
)

PLEASE_REPORT = """This is an error in tpuprof-tui. Please report it: the lines above, the keys before it,
and what tpuprof-tui doctor prints; the file that it read, if you may share it."""

NO_REASON = "The screen ended by itself for an unknown reason.\n"


def by_signal(number: int) -> str:
    """The sentence on a signal that ended the app."""
    return f"tpuprof-tui was ended by {signal.Signals(number).name}.\n"


def write_stderr(text: str) -> None:
    """Writes to standard error at once, whatever Python's stream is now; nobody may be there to read it."""
    with contextlib.suppress(OSError):
        os.write(_STDERR, text.encode("utf-8", "backslashreplace"))


@contextlib.contextmanager
def ended_by_signals(
    leave: Callable[[int], None], wake: Callable[[int], None], is_spared: Callable[[int], bool] = lambda _: False
) -> Iterator[None]:
    """Has a signal end what runs inside; one that does not end in time is ended from a thread, without it.

    `leave` asks the screen to end with an exit code, unless it `is_spared` that signal. `wake` wakes the screen's
    thread after any other signal, whose handler waits for that thread: the system may give a signal to another one.
    All are called on a thread beside it.
    """
    terminal, before = _attributes()
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    ended = Event()

    def watch() -> None:
        number = _first_signal(reader, terminal, wake, is_spared)
        if number is None:
            return
        leave(128 + number)
        if not ended.wait(GRACE_SECONDS):
            _restore(terminal, before)
            write_stderr(by_signal(number))
            os._exit(128 + number)

    watcher = Thread(target=watch, name="signals", daemon=True)
    handlers = {number: signal.signal(number, lambda *_: None) for number in ENDING}
    last = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        signal.set_wakeup_fd(last)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        os.close(writer)
        watcher.join()
        os.close(reader)


def _first_signal(
    reader: int, terminal: int, wake: Callable[[int], None], is_spared: Callable[[int], bool]
) -> int | None:
    """Waits for a signal that ends the app, or for the terminal to hang up; None where the app has ended.

    The interpreter writes each signal's number to `reader` at once; its handlers wait for the main thread.
    """
    poll = select.poll()
    poll.register(reader, select.POLLIN)
    if terminal >= 0:
        poll.register(terminal, 0)  # hanging up is reported in any case
    while True:
        for descriptor, event in poll.poll():
            if descriptor == terminal:
                if event & select.POLLHUP:
                    return signal.SIGHUP
                poll.unregister(terminal)  # a system that can't poll terminals
                continue
            data = os.read(reader, 1)
            if not data:
                return None
            if data[0] in ENDING and not is_spared(data[0]):
                return data[0]
            wake(data[0])


def _attributes() -> tuple[int, list[Any] | None]:
    """The terminal that keys come from, and how it is set; None where it is none."""
    try:
        terminal = sys.__stdin__.fileno() if sys.__stdin__ else -1
        return terminal, termios.tcgetattr(terminal)
    except (OSError, ValueError, termios.error):
        return -1, None


def _restore(terminal: int, before: list[Any] | None) -> None:
    """Does what the screen does when it ends, and waits for nobody: the terminal may be stuck, or gone."""
    if before is None:
        return
    with contextlib.suppress(OSError, termios.error):
        termios.tcsetattr(terminal, termios.TCSANOW, before)
        os.set_blocking(terminal, False)
        os.write(terminal, _LEAVE)
        os.set_blocking(terminal, True)

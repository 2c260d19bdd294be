"""Textual's driver for a terminal that sends anything at all, and that comes and goes.

Textual decodes strictly and types a sequence that it does not know as letters; here each byte costs itself alone.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import termios
import time
from codecs import getincrementaldecoder
from collections.abc import Iterator, Sequence
from threading import Event
from typing import ClassVar

from textual._xterm_parser import XTermParser
from textual.constants import ESCAPE_DELAY
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Key, Paste
from textual.message import Message

_READ_BYTES = 1024
_BUSY_SECONDS = 5.0  # a screen that takes longer gets more to do all the same
_POLL_SECONDS = 0.05
_LONGEST_SEQUENCE = 64
_PASTE_BEGINS, _PASTE_ENDS = b"\x1b[200~", b"\x1b[201~"
_ESCAPE = re.compile(
    rb"""\x1b\[200~(?P<paste>.*?)\x1b\[201~
    | \x1b\[M(?P<mouse>.{3})  # with coordinates as bytes: of terminals that know no other form
    | (?P<keys>\x1b\[(?:\[[A-E]|(?!M|\[|200~)[0-?]*[ -/]*[@-~]))
    | \x1b\]11;rgba?:(?P<red>[\da-fA-F]+)/(?P<green>[\da-fA-F]+)/(?P<blue>[\da-fA-F]+)(?:/[\da-fA-F]+)?(?:\x07|\x1b\\)
    | \x1b[]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)  # a late answer to another program
    | (?P<begun>\x1b(?:\[(?:200~.*|M.{0,2}|\[|[0-?]*[ -/]*)?|[]PX^_][^\x07\x1b]*\x1b?)?\Z)
    | \x1b\[[0-?]*[ -/]*""",
    re.VERBOSE | re.DOTALL,
)
_NOT_ASKED = b"tR"  # reports of a size and of the cursor
# Scroll region, origin, inserting, reverse video, character set and style: whatever another program left.
_PLAIN = "\x1b[r\x1b[?6l\x1b[4l\x1b[?5l\x0f\x1b[m"


class Background(Message):
    """What a terminal answers that is asked for its background, if it knows the question: no one waits for that."""

    ASKED: ClassVar[str] = "\x1b]11;?\x1b\\"

    def __init__(self, *colour: bytes) -> None:
        """Takes red, green and blue as hexadecimal digits, of which all ones are full."""
        super().__init__()
        red, green, blue = (int(part, 16) / (16 ** len(part) - 1) for part in colour)
        self.is_light = 0.299 * red + 0.587 * green + 0.114 * blue > 0.5


class Input:
    """Turns the bytes of a terminal into messages, however they are cut."""

    def __init__(self) -> None:
        self._parser = XTermParser()
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._held = b""  # the beginning of a sequence or a paste
        self._button = 0  # the last that was pressed: a terminal of old does not say which was let go

    def read(self, data: bytes) -> Iterator[Message]:
        """What the next bytes mean together with those before; what is not UTF-8 becomes U+FFFD."""
        before, data, at = len(self._held), self._held + data, 0
        self._held = data
        if data.startswith(_PASTE_BEGINS) and data.find(_PASTE_ENDS, max(0, before - len(_PASTE_ENDS))) < 0:
            return
        self._held = b""
        for found in _ESCAPE.finditer(data):
            yield from self._typed(data[at : found.start()])
            at = found.end()
            if (paste := found["paste"]) is not None:
                yield Paste(paste.decode("utf-8", "replace").replace("\0", ""))
            elif found["red"]:
                yield Background(found["red"], found["green"], found["blue"])
            elif found["mouse"]:
                yield from self._parsed(self._modern(found["mouse"]), whole=True)
            elif (keys := found["keys"]) and len(keys) <= _LONGEST_SEQUENCE and keys[-1] not in _NOT_ASKED:
                yield from self._parsed(keys.decode("latin-1"), whole=True)
            begun = found["begun"] or b""
            self._held = begun if begun.startswith(_PASTE_BEGINS) else begun[: _LONGEST_SEQUENCE + 1]
        yield from self._typed(data[at:])

    def rest(self) -> Iterator[Message]:
        """What no byte has followed in time: Esc, or Alt and a key; a sequence that is begun waits for its end."""
        held = self._held
        if not held.startswith(b"\x1b["):
            self._held = b""
            if held == b"\x1b":
                yield Key("escape", "\x1b")
            elif len(held) == len(b"\x1b]"):
                yield from self._typed(held)
        yield from self._parser.tick()

    def _typed(self, data: bytes) -> Iterator[Message]:
        yield from self._parsed(self._decoder.decode(data))

    def _parsed(self, text: str, whole: bool = False) -> Iterator[Message]:
        """What Textual makes of it; nothing where it fails, or needs more than a whole sequence."""
        try:
            if text:
                yield from self._parser.feed(text)
            is_known = not whole or self._parser._timeout_time is None
        except (ArithmeticError, LookupError, ValueError):
            is_known = False
        if not is_known:
            self._parser = XTermParser()

    def _modern(self, mouse: bytes) -> str:
        """A mouse event in the form of today; empty where its place is beyond what a byte can say."""
        code, x, y = (byte - 32 for byte in mouse)
        if min(code, x - 1, y - 1) < 0:
            return ""
        is_release = code & 3 == 3 and not code & 96  # nor a move, nor the wheel
        if is_release:
            code += self._button - 3
        elif not code & 96:
            self._button = code & 3
        return f"\x1b[<{code};{x};{y}{'m' if is_release else 'M'}"


class TerminalDriver(LinuxDriver):
    """Reads with `Input`, and leaves the terminal and comes back in one place, on the thread of the app's loop.

    Textual does so in handlers of signals. One that the system gives to another thread waits until the main thread does
    something, and one that comes inside another starts a second reader.
    """

    _wanted: signal.Signals | None = None

    def note(self, number: int) -> None:
        """Takes a signal, on any thread, in the order in which they come: handlers run in that of their numbers."""
        if self._auto_restart and number in (signal.SIGTSTP, signal.SIGCONT):
            self._wanted = signal.Signals(number)
            self._loop.call_soon_threadsafe(self._step_back)

    def _sigtstp_application(self, *_: object) -> None:
        """Stops at once where another program has the terminal; else `_step_back` does."""
        if not self._auto_restart:
            signal.raise_signal(signal.SIGSTOP)

    def _sigcont_application(self, *_: object) -> None:
        """Comes before the app has stopped, or after somebody else stopped it: `_step_back` sets the terminal anew."""

    def _step_back(self) -> None:
        """Leaves the terminal, stops where that is still wanted, and comes back with the whole screen."""
        if self._wanted is None or self._app._exit:
            return
        self.suspend_application_mode()
        signal.signal(signal.SIGCONT, signal.SIG_DFL)  # one handler less that may come late
        if self._wanted is signal.SIGTSTP:
            signal.raise_signal(signal.SIGSTOP)  # and goes on here
        with contextlib.suppress(termios.error):  # in the background this stops, until it is in the foreground
            termios.tcsetattr(self.fileno, termios.TCSANOW, termios.tcgetattr(self.fileno))
        self._wanted = None
        signal.signal(signal.SIGCONT, self._sigcont_application)
        self._must_signal_resume = True
        self.resume_application_mode()

    @contextlib.contextmanager
    def no_automatic_restart(self) -> Iterator[None]:
        """Gives the terminal to another program, and sets it as it was before, whatever that program left."""
        with super().no_automatic_restart():
            yield
        os.set_blocking(self.fileno, True)
        if self.attrs_before is not None:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self.fileno, termios.TCSANOW, self.attrs_before)

    def start_application_mode(self) -> None:
        super().start_application_mode()  # type: ignore[no-untyped-call]
        self.write(_PLAIN)

    def run_input_thread(self) -> None:
        """Reads no more than the screen keeps up with: each key is a message, and a clipboard may hold a million."""
        terminal, has_room, until = Input(), Event(), 0.0

        def follow() -> None:
            if not self._app.screen.call_later(has_room.set):
                has_room.set()

        while not self.exit_event.is_set():
            if time.monotonic() < until and not has_room.wait(ESCAPE_DELAY):
                continue
            try:
                is_there = select.select([self.fileno], [], [], ESCAPE_DELAY)[0]
                data = os.read(self.fileno, _READ_BYTES) if is_there else b""
            except OSError:
                is_there, data = [self.fileno], b""
            if is_there and not data:  # the terminal is gone
                os.kill(os.getpid(), signal.SIGHUP)
                return
            messages = list(terminal.read(data) if data else terminal.rest())
            for message in messages:
                self.process_message(message)
            if messages:
                has_room.clear()
                until = time.monotonic() + _BUSY_SECONDS
                self._app.call_later(follow)


def run_in_front(command: Sequence[str]) -> None:
    """Runs a program that has the terminal until it ends, and stops with it, so that the shell has the terminal then.

    Raises:
        OSError: it can't be run.
    """
    process = os.posix_spawnp(command[0], list(command), os.environ, setsigdef=(signal.SIGPIPE, signal.SIGXFSZ))
    while True:
        done, status = os.waitpid(process, os.WNOHANG | os.WUNTRACED)
        if done and not os.WIFSTOPPED(status):
            return
        if done:
            os.killpg(0, signal.SIGTSTP)
        time.sleep(_POLL_SECONDS)  # without an end, no signal that another thread was given would be handled

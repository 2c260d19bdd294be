"""Runs the app in a real pseudo-terminal and reads its screen with a terminal emulator."""

from __future__ import annotations

import fcntl
import math
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

import pyte

DEADLINE_SECONDS = 60.0
"""Only a hang takes this long; no test measures time."""

START = "import sys; from tpuprof.tui.__main__ import run; sys.exit(run())"
_ENVIRONMENT = {"TERM": "xterm-256color", "LANG": "C.UTF-8"}
_ANSWER_SECONDS = 3.0
_QUIET_SECONDS = 0.2 if Path("/proc/self/task").exists() else 0.5
"""An app that neither writes nor works for so long rests; where only the former is known it takes longer to decide."""
_KEPT = ("PATH", "HOME", "PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "TMPDIR")


class _Screen(pyte.Screen):
    """pyte stumbles over private modes that it doesn't know and over `CSI > u` (the Kitty keyboard protocol)."""

    def report_device_status(self, mode: int, **kwargs: object) -> None:
        """Not answered."""


class PtyApp:
    """The command line in a terminal of a given size.

    Args:
        program: another program to run, for a pipe with the command line in it.

    Attributes:
        written: all bytes that the app wrote so far.
        process: its process id.
        screen: what the terminal shows.
    """

    def __init__(
        self,
        *arguments: str,
        width: int = 120,
        height: int = 40,
        environ: Mapping[str, str] | None = None,
        program: Sequence[str] = (sys.executable, "-c", START),
    ) -> None:
        self.written = b""
        self.exit_code: int | None = None
        self._has_answered = True
        self.screen = _Screen(width, height)
        self._stream = pyte.ByteStream(self.screen)
        self.process, self._terminal = pty.fork()
        if self.process == 0:
            kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
            os.execve(program[0], [*program, *arguments], {**kept, **_ENVIRONMENT, **(environ or {})})
        self._tasks = Path(f"/proc/{self.process}/task")
        self.resize(width, height, tell=False)
        self._attributes = termios.tcgetattr(self._terminal)

    @property
    def is_restored(self) -> bool:
        """Whether the terminal is as it was: cooked, on its first screen, with a cursor and no reports of its own."""
        modes = dict(re.findall(rb"\x1b\[\?(1049|25|1000|1003|1004|2004|2048|7)([hl])", self.written))
        asked = all(modes.pop(mode, b"h") == b"h" for mode in (b"25", b"7")) and b"h" not in modes.values()
        return asked and termios.tcgetattr(self._terminal) == self._attributes

    def __enter__(self) -> PtyApp:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.exit_code is None:
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
        if self._terminal >= 0:
            os.close(self._terminal)

    def resize(self, width: int, height: int, tell: bool = True) -> None:
        """Changes the terminal's size; told of it, an app draws anew, and `settle` waits for that."""
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        if tell:
            self._has_answered = False
            self.screen.resize(height, width)
            os.kill(self.process, signal.SIGWINCH)

    def clear(self) -> None:
        """Forgets what the terminal shows, and the app does not know."""
        self.screen.erase_in_display(2)

    def press(self, keys: str) -> None:
        self.send(keys.encode())

    def send(self, data: bytes) -> None:
        self._has_answered = False
        os.write(self._terminal, data)

    @property
    def lines(self) -> list[str]:
        return list(self.screen.display)

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def read(self, seconds: float) -> bool:
        """Takes what the app has written; False where nothing came in that time."""
        ready, _, _ = select.select([self._terminal], [], [], seconds)
        if not ready:
            return False
        try:
            data = os.read(self._terminal, 1 << 16)
        except OSError:  # Linux: the other end is closed
            return False
        if not data:
            return False
        self.written += data
        self._has_answered = True
        # pyte takes the ">" of `CSI > u` for text.
        self._stream.feed(re.sub(rb"\x1b\[[<>=]\d*u", b"", data))
        return True

    def wait_for(self, condition: Callable[[PtyApp], bool]) -> PtyApp:
        """Reads until the condition holds."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not condition(self):
            assert time.monotonic() < deadline, f"waited in vain; the screen shows:\n{self.text}"
            self.read(0.2)
        return self

    def wait_for_text(self, text: str) -> PtyApp:
        return self.wait_for(lambda app: text in app.text)

    def settle(self, quiet_seconds: float = _QUIET_SECONDS) -> int:
        """Reads until nothing more comes and the app rests; returns how many bytes the app has written in its life.

        Keys have an answer: the first bytes after `press` are waited for longer.
        """
        while True:
            before = self._ticks()
            seconds = quiet_seconds if self._has_answered else max(quiet_seconds, _ANSWER_SECONDS)
            if not self.read(seconds) and self._ticks() <= before + 1 < math.inf:
                return len(self.written)

    def _ticks(self) -> float:
        """What the app has worked, in the system's ticks; endless while a thread has work, 0 where that isn't known."""
        try:
            threads = [path.read_text().rpartition(")")[2].split() for path in self._tasks.glob("*/stat")]
        except OSError:
            return 0
        if any(state == "R" for state, *_ in threads):
            return math.inf
        return sum(int(figures[10]) + int(figures[11]) for _, *figures in threads)

    def hang_up(self) -> None:
        """Closes the terminal, as a lost connection does."""
        os.close(self._terminal)
        self._terminal = -1

    def has_ended(self) -> bool:
        """Whether the process has ended; takes note of its exit code, negative for a signal."""
        if self.exit_code is None:
            done, status = os.waitpid(self.process, os.WNOHANG)
            if done:
                self.exit_code = os.waitstatus_to_exitcode(status)
        return self.exit_code is not None

    def wait_for_exit(self) -> int:
        """Waits until the process has ended; returns its exit code, negative for a signal."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not self.has_ended():
            assert time.monotonic() < deadline, f"the app did not end; the screen shows:\n{self.text}"
            if self._terminal >= 0:
                self.read(0.05)
        if self._terminal >= 0:
            self.settle(0.05)
        assert self.exit_code is not None
        return self.exit_code

    def is_stopped(self) -> bool:
        """Whether the process is stopped (ctrl+z)."""
        done, status = os.waitpid(self.process, os.WNOHANG | os.WUNTRACED)
        if done and not os.WIFSTOPPED(status):
            self.exit_code = os.waitstatus_to_exitcode(status)
        return bool(done) and self.exit_code is None


def demo(
    width: int = 120, height: int = 40, program: Sequence[str] = (sys.executable, "-c", START), **environ: str
) -> PtyApp:
    """The demo profile on the screen, decoded."""
    app = PtyApp("demo", width=width, height=height, environ=environ, program=program)
    return app.wait_for(lambda at: "Top ops" in at.text and "dot_general" in at.text)

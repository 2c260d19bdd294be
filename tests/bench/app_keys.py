"""How long a user waits in the app: for the first figure, the timeline, and a tab that is there already.

    python -m tests.bench.app_keys PROFILE [--repeat 3]

It runs in a pseudo terminal of 120x40, as a user's own. A screen counts as there when its words have arrived: the
device on the overview, a track of ops on the timeline, the number of its events where no more of it is being read.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import re
import select
import signal
import statistics
import struct
import sys
import tempfile
import termios
import time
from collections.abc import Sequence
from pathlib import Path

from tests.bench.processes import said_load

_ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|\x1b\][^\x07]*\x07")


class Terminal:
    """A program in a terminal of its own, and what it has written since the last key."""

    def __init__(self, command: list[str]) -> None:
        self._written = b""
        self._begun = time.perf_counter()
        self.process, self.fd = pty.fork()
        if self.process == 0:
            os.environ |= {"TERM": "xterm-256color", "LANG": "C.UTF-8"}
            os.execv(command[0], command)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))

    def press(self, keys: str) -> None:
        """Types keys, from which on it counts the time."""
        os.write(self.fd, keys.encode())
        self._written = b""
        self._begun = time.perf_counter()

    def until(self, words: bytes, limit: float = 60.0) -> float:
        """Seconds from the last key, or the start, until these words are on the screen.

        Raises:
            TimeoutError: they never are.
        """
        while not re.search(words, _ESCAPES.sub(b"", self._written)):
            if time.perf_counter() - self._begun > limit:
                raise TimeoutError(f"never wrote {words!r}: {_ESCAPES.sub(b'', self._written)[-300:]!r}")
            if select.select([self.fd], [], [], 0.05)[0]:
                self._written += os.read(self.fd, 65536)
        return time.perf_counter() - self._begun

    def close(self) -> None:
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        os.close(self.fd)


def waits(profile: str, *options: str) -> dict[str, float]:
    """The waits of one run, by name."""
    terminal = Terminal([str(Path(sys.executable).parent / "tpuprof-tui"), profile, *options])
    try:
        out = {"command to first figure": terminal.until(rb"TPU v\d")}
        time.sleep(1)
        terminal.press("4")
        out["key to timeline"] = terminal.until(rb"XLA Ops")
        out["key to whole timeline"] = terminal.until(rb"events of host [^, ]+ ")
        time.sleep(1)
        terminal.press("1")
        out["key to a tab that is there"] = terminal.until(rb"TPU v\d|[Ss]tep time")
    finally:
        terminal.close()
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("profile")
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        os.environ["XDG_CACHE_HOME"] = cache
        _print("first look", [waits(arguments.profile, "--no-cache") for _ in range(arguments.repeat)])
        waits(arguments.profile)  # what it leaves is there at the second look
        _print("second look", [waits(arguments.profile) for _ in range(arguments.repeat)])


def _print(look: str, runs: Sequence[dict[str, float]]) -> None:
    for name in runs[0]:
        times = [run[name] for run in runs]
        print(f"{look}, {name}: {statistics.median(times):.2f} s ({min(times):.2f} to {max(times):.2f})")


if __name__ == "__main__":
    with said_load():
        main()

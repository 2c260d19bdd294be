"""Time from the command to the first painted frame, against a bare Textual hello-world in the same run.

    python tests/bench/first_frame.py [--repeat 7] [PATH]

Both run in a pseudo terminal of 120x40; the frame counts as painted when its last words have arrived.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import select
import statistics
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from pathlib import Path

HELLO = """
from textual.app import App
from textual.widgets import Static
class Hello(App):
    def compose(self):
        yield Static("painted first")
Hello().run()
"""


def seconds_until(command: Sequence[str], words: bytes, limit: float = 20.0) -> float:
    """Starts a command in a terminal of its own and waits until it has written some words.

    Raises:
        TimeoutError: it never did.
    """
    terminal, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    start = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=inner, stdout=inner, stderr=inner, env=environment, start_new_session=True
    )
    os.close(inner)
    written = b""
    try:
        while time.perf_counter() - start < limit:
            if select.select([terminal], [], [], 0.05)[0]:
                written += os.read(terminal, 65536)
                if words in written:
                    return time.perf_counter() - start
        raise TimeoutError(f"{command[0]} never wrote {words!r}: {written[-300:]!r}")
    finally:
        process.kill()
        process.wait()
        os.close(terminal)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", nargs="?", default="demo", help="what to open; the bundled demo by default")
    parser.add_argument("--repeat", type=int, default=7)
    arguments = parser.parse_args()
    app = [str(Path(sys.executable).parent / "tpuprof-tui"), arguments.path]
    hello: list[float] = []
    ours: list[float] = []
    for _ in range(arguments.repeat):
        hello.append(seconds_until([sys.executable, "-c", HELLO], b"painted first"))
        ours.append(seconds_until(app, b"Memory"))
    bare, frame = statistics.median(hello), statistics.median(ours)
    print(f"bare Textual {bare:.3f} s, tpuprof-tui {frame:.3f} s: {frame / bare:.2f} times")


if __name__ == "__main__":
    main()

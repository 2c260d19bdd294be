"""Time from the command to the first painted frame, against a bare Textual hello-world in the same run.

    python -m tests.bench.first_frame [--repeat 7] [PATH]

Both run in a pseudo terminal of 120x40; the frame counts as painted when its last words have arrived.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

from tests.bench.app_keys import Terminal
from tests.bench.processes import said_load

HELLO = """
from textual.app import App
from textual.widgets import Static
class Hello(App):
    def compose(self):
        yield Static("painted first")
Hello().run()
"""


def seconds_until(command: list[str], words: bytes) -> float:
    """Starts a command in a terminal of its own and waits until it has written some words."""
    terminal = Terminal(command)
    try:
        return terminal.until(words, 20)
    finally:
        terminal.close()


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
    with said_load():
        main()

"""Whether the app keeps its memory and its files over a long day: many keys on all tabs, many runs in a logdir.

    python -m tests.bench.soak PROFILE [--keys 100000] [--runs 1000]

Types keys at random (the same for the same `--seed`), then links the profile into a logdir as one new run after the
other while `--latest` follows it. Prints resident memory, open files and threads now and then; both should be flat
once everything has been seen.

Linux only.
"""

from __future__ import annotations

import argparse
import os
import random
import select
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.app_keys import Terminal
from tests.bench.processes import said_load

KEYS = (
    *"1234512345hjklhjklhjklwsadfgvbtiTpz[]{}.,0sSmMnoOBRHDxe?\t\r\x1b\x1b",
    "\x1b[A",
    "\x1b[B",
    "\x1b[5~",
    "\x1b[6~",
)
"""All but those that end the app or begin a capture; a search is typed whole."""

SEARCH = "/fusion\r"
_BATCH = 10
_QUIET_SECONDS = 0.02
_LINES = 20


class App(Terminal):
    """The app in a terminal of its own, of which nobody reads the screen."""

    def __init__(self, *arguments: str) -> None:
        super().__init__([sys.executable, "-m", "tpuprof.tui", *arguments])

    def press(self, keys: str) -> None:
        """Types, and reads until nothing more comes for a moment."""
        os.write(self.fd, keys.encode())
        self.drain(_QUIET_SECONDS)

    def drain(self, quiet_seconds: float) -> None:
        """Reads until nothing comes for so long."""
        while select.select([self.fd], [], [], quiet_seconds)[0]:
            if not os.read(self.fd, 1 << 16):
                raise EOFError

    def figures(self) -> str:
        """Memory, files and threads."""
        folder = Path(f"/proc/{self.process}")
        status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
        files = len(os.listdir(folder / "fd"))
        return f"{int(status['VmRSS'].split()[0]) / 1024:.0f} MB, {files} files, {status['Threads'].strip()} threads"


def soak_keys(profile: str, count: int, seed: int) -> None:
    """Types so many keys."""
    app, rng = App(profile), random.Random(seed)
    app.drain(3)
    typed, told = 0, 0
    while typed < count:
        batch = [rng.choice(KEYS) if rng.random() < 0.99 else SEARCH for _ in range(_BATCH)]
        app.press("".join(batch))
        typed += len(batch)
        if typed >= told:
            say(f"{typed:,} keys: {app.figures()}")
            told += max(count // _LINES, 1)
    app.close()


def soak_runs(profile: str, count: int) -> None:
    """Lets so many runs appear where the app looks."""
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder) / "plugins" / "profile"
        _add_run(runs, profile, 0)
        app = App("--latest", folder)
        app.drain(3)
        for number in range(1, count + 1):
            _add_run(runs, profile, number)
            app.drain(0.05)
            time.sleep(0.2)
            if number % max(count // _LINES, 1) == 0:
                app.drain(2)
                say(f"{number:,} runs: {app.figures()}")
        app.close()


def _add_run(runs: Path, profile: str, number: int) -> None:
    run = runs / f"run_{number:06}"
    run.mkdir(parents=True)
    (run / "host0.xplane.pb").write_bytes(Path(profile).read_bytes())


def say(text: str) -> None:
    """A line, at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("profile")
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if args.keys:
        soak_keys(args.profile, args.keys, args.seed)
    if args.runs:
        soak_runs(args.profile, args.runs)


if __name__ == "__main__":
    with said_load():
        main()

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
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.processes import said_load
from tests.tui.terminal.pty.pty_app import PtyApp

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


def drain(app: PtyApp, quiet_seconds: float) -> None:
    """Reads until nothing comes for so long, and forgets what came."""
    while app.read(quiet_seconds):
        app.written = b""


def figures(app: PtyApp) -> str:
    """Memory, files and threads."""
    folder = Path(f"/proc/{app.process}")
    status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
    files = len(os.listdir(folder / "fd"))
    return f"{int(status['VmRSS'].split()[0]) / 1024:.0f} MB, {files} files, {status['Threads'].strip()} threads"


def soak_keys(profile: str, count: int, seed: int) -> None:
    """Types so many keys."""
    rng, typed, told = random.Random(seed), 0, 0
    with PtyApp(profile) as app:
        drain(app, 3)
        while typed < count:
            app.press("".join(rng.choice(KEYS) if rng.random() < 0.99 else SEARCH for _ in range(_BATCH)))
            drain(app, _QUIET_SECONDS)
            typed += _BATCH
            if typed >= told:
                say(f"{typed:,} keys: {figures(app)}")
                told += max(count // _LINES, 1)


def soak_runs(profile: str, count: int) -> None:
    """Lets so many runs appear where the app looks."""
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder) / "plugins" / "profile"
        _add_run(runs, profile, 0)
        with PtyApp("--latest", folder) as app:
            drain(app, 3)
            for number in range(1, count + 1):
                _add_run(runs, profile, number)
                drain(app, 0.05)
                time.sleep(0.2)
                if number % max(count // _LINES, 1) == 0:
                    drain(app, 2)
                    say(f"{number:,} runs: {figures(app)}")


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

"""Whether the app keeps its memory and its files over a long day: many keys on all tabs, many runs in a logdir.

    python -m tests.bench.soak PROFILE [--keys 100000] [--runs 1000]
    python -m tests.bench.soak PROFILE... --sessions 500 [--keys 200]

Types keys at random (the same for the same `--seed`), then links the profile into a logdir as one new run after the
other while `--latest` follows it. Prints resident memory, open files and threads now and then; both should be flat
once everything has been seen.

With `--sessions` the app is opened so often, each time on the next of the profiles, some of which may be damaged; keys
and resizes come in between. A session that ends by itself is named with its number, and what it said; exits with 1
where one did, or where one does not end when it is asked to. Linux only.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import select
import signal
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
_PATIENCE_SECONDS = 20.0


class App(Terminal):
    """The app in a terminal of its own, of which nobody reads the screen.

    Attributes:
        exit_code: once it has ended; negative for a signal.
    """

    exit_code: int | None = None

    def __init__(self, *arguments: str, errors: Path | None = None) -> None:
        super().__init__([sys.executable, "-m", "tpuprof.tui", *arguments], errors)

    def has_ended(self) -> bool:
        if self.exit_code is None:
            done, status = os.waitpid(self.process, os.WNOHANG)
            if done:
                self.exit_code = os.waitstatus_to_exitcode(status)
        return self.exit_code is not None

    def press(self, keys: str) -> None:
        """Types, and reads until nothing more comes for a moment."""
        os.write(self.fd, keys.encode())
        self.drain(_QUIET_SECONDS)

    def drain(self, quiet_seconds: float) -> None:
        """Reads until nothing comes for so long."""
        while select.select([self.fd], [], [], quiet_seconds)[0]:
            if not os.read(self.fd, 1 << 16):
                raise EOFError

    def wait(self) -> None:
        """Reads until it has drawn something, and rests."""
        if not select.select([self.fd], [], [], _PATIENCE_SECONDS)[0]:
            raise TimeoutError("nothing was drawn")
        self.drain(0.3)

    def figures(self) -> str:
        """Memory, files and threads."""
        folder = Path(f"/proc/{self.process}")
        status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
        files = len(os.listdir(folder / "fd"))
        return f"{int(status['VmRSS'].split()[0]) / 1024:.0f} MB, {files} files, {status['Threads'].strip()} threads"

    def end(self) -> None:
        """Ends the app where it has not ended, and waits for it."""
        if not self.has_ended():
            os.kill(self.process, signal.SIGTERM)
        until = time.monotonic() + _PATIENCE_SECONDS
        while not self.has_ended():
            with contextlib.suppress(OSError, EOFError):
                self.drain(0.1)
            if time.monotonic() > until:
                os.kill(self.process, signal.SIGKILL)
        os.close(self.fd)


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
    app.end()


def soak_sessions(profiles: list[str], sessions: int, keys: int, seed: int) -> int:
    """Opens the app so often and types so many keys each time; returns how many sessions ended badly."""
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        errors = Path(folder) / "errors.txt"
        for number in range(sessions):
            profile = profiles[number % len(profiles)]
            ended = _session(profile, keys, random.Random(f"{seed} {number}"), errors)
            if ended:
                bad += 1
                text = errors.read_text(errors="replace").strip()
                say(f"session {number} of {profile}: {ended}; it said: {text or 'nothing'}")
    say(f"{sessions} sessions of {keys} keys over {len(profiles)} profiles: {bad} ended badly")
    return bad


def _session(profile: str, keys: int, rng: random.Random, errors: Path) -> str:
    """How one session ended, where it did not end as it should; empty where it did."""
    app = App(profile, errors=errors)
    try:
        app.wait()
        for _ in range(max(keys // _BATCH, 1)):
            app.press("".join(rng.choice(KEYS) if rng.random() < 0.99 else SEARCH for _ in range(_BATCH)))
            if rng.random() < 0.1:
                app.resize(rng.choice((20, 40, 80, 120, 300)), rng.choice((5, 24, 40, 90)))
            if app.has_ended():
                break
        app.drain(0.5)  # all keys are read by now
    except (OSError, EOFError):
        time.sleep(0.2)
    if app.has_ended():
        return f"ended by itself with {app.exit_code}"
    app.end()
    return "" if app.exit_code == 128 + signal.SIGTERM else f"asked to end, it did with {app.exit_code}"


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
        app.end()


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
    parser.add_argument("profile", nargs="+")
    parser.add_argument("--keys", type=int)
    parser.add_argument("--sessions", type=int, default=0)
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if args.sessions:
        sys.exit(int(soak_sessions(args.profile, args.sessions, args.keys or 200, args.seed) > 0))
    if args.keys is None or args.keys:
        soak_keys(args.profile[0], args.keys or 100_000, args.seed)
    if args.runs:
        soak_runs(args.profile[0], args.runs)


if __name__ == "__main__":
    with said_load():
        main()

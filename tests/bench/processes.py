"""Runs commands as fresh processes and measures what they cost."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

PLAIN = {"PYTHONDONTWRITEBYTECODE": ""}
"""What programs are run with: an installation has its modules compiled, a checkout keeps them from the first run on."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one process took: seconds of wall time, of CPU over all its threads, and bytes of peak resident memory."""

    wall: float
    cpu: float
    peak: int


def measure(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Cost:
    """Runs a command to its end.

    Raises:
        RuntimeError: it failed; its standard error is in the message.
    """
    start = time.perf_counter()
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, **PLAIN, **(environment or {})}
    ) as process:
        assert process.stderr is not None
        errors = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{errors.decode(errors='replace')[-2000:]}")
    unit = 1 if sys.platform == "darwin" else 1024
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit)


def best(costs: Sequence[Cost]) -> Cost:
    """The least of each figure: what the work takes when nothing else disturbs it."""
    return Cost(min(c.wall for c in costs), min(c.cpu for c in costs), min(c.peak for c in costs))


def environment_with(folder: Path, *packages: str) -> Path:
    """Python of a virtual environment with these packages, made when it is not there yet."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *packages], check=True)
    return python


def load() -> str:
    """The machine's load of the last minute."""
    return f"{os.getloadavg()[0]:.1f}"


def machine() -> str:
    """What the figures are of: ``Python 3.12.1, x86_64, 2 cores``."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"Python {platform.python_version()}, {platform.machine()}, {cores} cores"


@contextmanager
def said_load() -> Iterator[None]:
    """Prints the load before the work and after it: figures of a busy machine say little."""
    before = load()
    yield
    print(f"{machine()}; load {before} before, {load()} after")


def write_readme(readme: Path, begin: str, end: str, text: str) -> None:
    """Puts a text between two marks of the README of some tests.

    Raises:
        ValueError: it lacks them.
    """
    whole = readme.read_text("utf-8")
    before, opens, rest = whole.partition(begin)
    _, closes, after = rest.partition(end)
    if not opens or not closes:
        raise ValueError(f"{readme} lacks {begin} or {end}")
    readme.write_text(f"{before}{begin}\n{text}\n{end}{after}", "utf-8")

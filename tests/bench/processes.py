"""Runs commands as fresh processes and measures what they cost."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


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
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, **(environment or {})}
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


def least_seconds(work: Callable[[], object], times: int = 3, clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds of the fastest of some runs, by a clock."""
    taken = []
    for _ in range(times):
        begin = clock()
        work()
        taken.append(clock() - begin)
    return min(taken)

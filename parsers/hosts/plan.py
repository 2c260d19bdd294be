"""How many processes and threads decode a run's hosts: as many as cores and memory allow, or as the user says.

A process takes some tenths of a second to start. A single process decodes one host after the other, and each host's
lines on several threads, long ones in pieces.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.files.logdir import HostFile

WORKERS_VARIABLE = "TPUPROF_WORKERS"
"""Environment variable that sets the number of processes, however much there is to decode; 1 uses this one alone."""

LEAST_BYTES = 400_000_000
"""Below this many bytes of profiles it does not pay to start processes (half a second): threads need two seconds."""

MOST_WORKERS = 64

_RATIO = 10
_BASE_BYTES = 100_000_000  # interpreter, numpy and protobuf
_QUOTAS = (
    ("/sys/fs/cgroup/cpu.max",),
    ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "/sys/fs/cgroup/cpu/cpu.cfs_period_us"),
)
_MEMORY_SHARE = 0.5  # of what is available; the rest is for the merge, and for others

JOBS_VARIABLE = "TPUPROF_JOBS"
"""Environment variable that says how many cores reading may keep busy; 1 decodes on one thread of one process."""

MOST_THREADS = 32
"""Each thread takes some 6 MB for the piece that it decodes; more of them would wait for the interpreter lock."""


def decoding_threads(jobs: int | None = None) -> int:
    """How many threads decode at once; the compiled core releases the interpreter lock, and numpy mostly does.

    Args:
        jobs: how many cores may be busy, where the user has said so.

    Raises:
        ProfileError: ``TPUPROF_JOBS`` is not a number above 0; exit code 2.
    """
    return min(MOST_THREADS, _jobs(jobs))


def _jobs(jobs: int | None) -> int:
    """How many cores may be busy: as the user says, else as the environment does, else all that there are."""
    return jobs or _number_of(JOBS_VARIABLE, "cores", "one thread") or available_cores()


def available_cores() -> int:
    """Cores that this process may use: those of its affinity, or fewer where its control group allows less time."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _container_cores()
    return cores if quota is None else max(1, min(cores, quota))


def _container_cores() -> int | None:
    """How many cores' time the control group allows (either version), rounded up; None where it sets no bound."""
    for files in _QUOTAS:
        with suppress(ValueError, ZeroDivisionError):  # "max 100000" and "-1 100000" set no bound
            quota, period = (int(text) for path in files for line in _lines(path) for text in line.split())
            if quota > 0:
                return -(-quota // period)
    return None


def worker_count(files: Sequence[HostFile], jobs: int | None = None) -> int:
    """How many processes shall decode these hosts; 1 means this process alone.

    Args:
        jobs: how many cores may be busy, where the user has said so.

    Raises:
        ProfileError: ``TPUPROF_WORKERS`` or ``TPUPROF_JOBS`` is not a number above 0; exit code 2.
    """
    wanted = _number_of(WORKERS_VARIABLE, "processes", "one process")
    if wanted is not None:
        return min(wanted, MOST_WORKERS, max(1, len(files)))
    sizes = [file.size_bytes * (_RATIO if file.packed else 1) for file in files]
    if len(files) < 2 or sum(sizes) < LEAST_BYTES:
        return 1
    workers = min(_jobs(jobs), len(files), MOST_WORKERS)
    memory = available_memory()
    if memory is not None:
        workers = min(workers, int(_MEMORY_SHARE * memory / (_BASE_BYTES + max(sizes))))
    return max(1, workers)


def _number_of(variable: str, what: str, one: str) -> int | None:
    """The number that an environment variable sets; None where it sets none."""
    text = os.environ.get(variable, "").strip()
    if not text:
        return None
    if not re.fullmatch(r"[0-9]{1,9}", text) or not int(text):
        sentence = f"{variable} is {printable(text[:40])}, which is not a number of {what}."
        hint = f"{variable}=1 for {one}, or unset it: as many as cores and memory allow"
        raise ProfileError("usage", sentence, hint, EXIT_USAGE)
    return int(text)


def available_memory() -> int | None:
    """Free memory in bytes, of the machine or of this container, whichever has less; None where unknown."""
    known = [size for size in (_machine_memory(), _container_memory()) if size is not None]
    return min(known) if known else None


def _machine_memory() -> int | None:
    for line in _lines("/proc/meminfo"):
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            with suppress(ValueError, IndexError):
                return int(value.split()[0]) * 1024
    with suppress(ValueError, OSError, AttributeError):  # no Linux: half of what there is
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    return None


def _container_memory() -> int | None:
    """How many bytes the control group still allows (either version)."""
    for most, used in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):
        with suppress(ValueError, IndexError):  # "max" is no limit
            return max(0, int(_lines(most)[0]) - int(_lines(used)[0]))
    return None


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read(1 << 16).splitlines()
    except OSError:
        return []

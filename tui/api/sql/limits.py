"""Bounds of a query that somebody else wrote: how long it runs, and how much memory the process may take meanwhile.

DuckDB's own memory limit counts what its operators keep, and not a list that a function makes: the system bounds that.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from importlib import import_module

GRACE_SECONDS = 5.0
"""How long a query that is told to stop may take to do so."""

_MIB = 1 << 20
_SLACK = 256 * _MIB
"""Of address space, for threads and what the interpreter takes."""


@contextlib.contextmanager
def within(seconds: float, interrupt: Callable[[], object], give_up: Callable[[], object]) -> Iterator[None]:
    """Interrupts what runs inside after some time; gives up where that does not help.

    Args:
        interrupt: called from another thread once the time is over.
        give_up: called from another thread where the work goes on after `GRACE_SECONDS` more.
    """
    timers = [threading.Timer(seconds, interrupt), threading.Timer(seconds + GRACE_SECONDS, give_up)]
    for timer in timers:
        timer.daemon = True
        timer.start()
    try:
        yield
    finally:
        for timer in timers:
            timer.cancel()


@contextlib.contextmanager
def in_memory(most_bytes: int) -> Iterator[None]:
    """Lets the process take so much more memory than it has, where the system can bound that."""
    try:
        resource = import_module("resource")  # not on every system
        with open("/proc/self/statm", encoding="ascii") as file:
            pages = int(file.read().split()[0])
    except (ImportError, OSError):
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = pages * resource.getpagesize() + most_bytes + _SLACK
    bounds = [bound for bound in (soft, hard, most) if bound != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min(bounds), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))

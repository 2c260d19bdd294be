"""The work on one host's file, in this process or another, and how that process reports its progress.

This module knows nothing of sessions. Another process gets the path of a file and the name of a function, and returns a
small summary, never events.
"""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from collections.abc import Callable
from multiprocessing import parent_process
from multiprocessing.connection import wait
from multiprocessing.sharedctypes import RawArray
from typing import Any

from tpuprof.parsers.base.errors import Cancelled, ProfileError
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.files.places import HostFile
from tpuprof.parsers.hosts.progress import ProgressReceiver
from tpuprof.parsers.hosts.reduction import Result

Work = Callable[[HostFile, Any, ProgressReceiver, int], Result]
"""File, what the work is given besides, watch and number of threads; other processes import it by its name.

Raises `ProfileError` where the file cannot be read, and `Cancelled`.
"""

_CANCELLED, _COLUMNS = 1, 5
_PROCESS, _NEEDED, _BYTES, _EVENTS, _FETCHING = range(_COLUMNS)


class SharedProgress:
    """Numbers in shared memory: a flag to stop, and for each host its process, and its bytes and events so far.

    Only one process writes a host's numbers at a time; a reader may see one of them a moment before the others.

    Args:
        hosts: how many hosts there are.
    """

    def __init__(self, hosts: int) -> None:
        self._cells: ctypes.Array[ctypes.c_int64] = RawArray(ctypes.c_int64, _CANCELLED + _COLUMNS * hosts)

    def cancel(self) -> None:
        self._cells[0] = 1

    @property
    def is_cancelled(self) -> bool:
        return bool(self._cells[0])

    def begin(self, host: int, process: int) -> None:
        """Notes which process decodes a host; 0 for none."""
        self._write(host, (process, 0, 0, 0, 0))

    def end(self, host: int) -> None:
        self._cells[_CANCELLED + _COLUMNS * host + _PROCESS] = 0

    def report(self, host: int, needed: int, size: int, events: int, is_fetching: bool = False) -> None:
        """Notes the bytes to decode or to fetch, and the bytes and events so far."""
        self._write(host, (self.process(host), needed, size, events, int(is_fetching)))

    def is_fetching(self, host: int) -> bool:
        """Whether the bytes of a host are those that are fetched from afar."""
        return bool(self._cells[_CANCELLED + _COLUMNS * host + _FETCHING])

    def process(self, host: int) -> int:
        """The process that decodes a host now, or 0."""
        return int(self._cells[_CANCELLED + _COLUMNS * host + _PROCESS])

    def so_far(self, host: int) -> tuple[int, int, int]:
        """The bytes to decode (0 while unknown), and the bytes and events so far."""
        first = _CANCELLED + _COLUMNS * host
        return int(self._cells[first + _NEEDED]), int(self._cells[first + _BYTES]), int(self._cells[first + _EVENTS])

    def _write(self, host: int, values: tuple[int, ...]) -> None:
        first = _CANCELLED + _COLUMNS * host
        self._cells[first : first + _COLUMNS] = list(values)


class _SharedProgressWatch:
    """Reports one host's progress to the board, and stops the work when the board says so."""

    def __init__(self, shared: SharedProgress, host: int) -> None:
        self._shared = shared
        self._host = host
        self._lock = threading.Lock()
        self._needed = self._bytes = self._events = 0

    def fetched(self, done: int, total: int | None) -> None:
        self._shared.report(self._host, max(total or 0, done), done, 0, is_fetching=True)
        if self._shared.is_cancelled:
            raise Cancelled

    def opened(self, needed: int) -> None:
        self._needed = needed
        self.chunk(0, 0)

    def chunk(self, size: int, events: int) -> None:
        with self._lock:
            self._bytes += size
            self._events += events
            self._shared.report(self._host, self._needed, self._bytes, self._events)
        if self._shared.is_cancelled:
            raise Cancelled


class _Worker:
    """What a worker process knows. It gets the board when it starts, because a task cannot carry one."""

    shared: SharedProgress


def begin_worker(shared: SharedProgress) -> None:
    """Prepares a worker process: it writes nothing, leaves Ctrl+C to its parent, and ends when the parent has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):  # the screen is the parent's
        os.dup2(nowhere, stream)
    os.close(nowhere)
    _Worker.shared = shared
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)  # the work is for nobody


def do_work(work: Work[Result], file: HostFile, given: object, index: int, threads: int) -> Result | ProfileError:
    """Does the work on host number `index` of the run, in a worker; returns why that could not be done.

    Raises:
        Cancelled: the board said so.
    """
    shared = _Worker.shared
    if shared.is_cancelled:
        raise Cancelled
    shared.begin(index, os.getpid())
    try:
        return work(file, given, _SharedProgressWatch(shared, index), threads)
    except ProfileError as error:
        return error
    except MemoryError:
        sentence = f"{printable(file.host)} could not be read: this machine's memory was not enough for it."
        return ProfileError("memory", sentence, "close other programs, or look at one host at a time with --host")
    finally:
        shared.end(index)

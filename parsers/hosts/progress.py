"""Progress of the decoding of a run's hosts, added up over hosts, threads and processes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from tpuprof.parsers.base.errors import Cancelled
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.files.logdir import HostFile


@dataclass(frozen=True, slots=True)
class HostAtWork:
    """A host that is being decoded, and how many of its bytes are done."""

    host: str
    bytes_done: int
    bytes_total: int


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the decoding for a page has come.

    Attributes:
        host: name of the host that is being decoded, the first of several.
        host_index: how many hosts are done.
        host_count: how many hosts there are.
        bytes_done, bytes_total: bytes of the lines that the page needs, over all hosts; a host that is not open yet
            counts with its file size.
        events_done: events decoded so far.
        at_work: the hosts that are being decoded now.
        is_fetching: whether the bytes are those of files that are fetched from afar, before anything is decoded.
    """

    host: str
    host_index: int
    host_count: int
    bytes_done: int
    bytes_total: int
    events_done: int
    at_work: tuple[HostAtWork, ...] = ()
    is_fetching: bool = False


OnProgress = Callable[[Progress], None]


class ProgressReceiver(Protocol):
    """Receives the progress of the work on a host; its methods raise `Cancelled` to stop it."""

    def fetched(self, done: int, total: int | None) -> None:
        """So many bytes of a remote file are here, of so many where its server says; called on one thread."""

    def opened(self, needed: int) -> None:
        """The worker is about to decode this many bytes."""

    def chunk(self, size: int, events: int) -> None: ...


class Meter:
    """Adds up the progress of hosts that are decoded one after the other, each on several threads.

    Args:
        on_progress, is_cancelled: called for every chunk.
    """

    def __init__(self, files: Sequence[HostFile], on_progress: OnProgress, is_cancelled: Callable[[], bool]) -> None:
        self._files = files
        self._on_progress = on_progress
        self._is_cancelled = is_cancelled
        self._lock = threading.Lock()
        self._expected = [file.size_bytes for file in files]
        self._index = 0
        self._before = 0
        self._bytes = 0
        self._events = 0

    def begin(self, index: int) -> None:
        self._index = index
        self._before = self._bytes = sum(self._expected[:index])
        self._report()

    def fetched(self, done: int, total: int | None) -> None:
        self._expected[self._index] = max(total or self._expected[self._index], done)
        self._bytes = self._before + done
        self._report(is_fetching=True)

    def opened(self, needed: int) -> None:
        """The host at work needs this many bytes decoded."""
        self._expected[self._index] = needed
        self._bytes = self._before
        self._report()

    def chunk(self, size: int, events: int) -> None:
        with self._lock:
            self._bytes += size
            self._events += events
        self._report()

    def _report(self, is_fetching: bool = False) -> None:
        if self._is_cancelled():
            raise Cancelled
        file = self._files[self._index]
        total = sum(self._expected)
        done = min(self._bytes, total)
        here = HostAtWork(file.host, max(0, done - self._before), self._expected[self._index])
        hosts = len(self._files)
        self._on_progress(Progress(file.host, self._index, hosts, done, total, self._events, (here,), is_fetching))

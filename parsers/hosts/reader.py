"""Makes a summary of each of a run's hosts once: in this process, in several, or on an executor.

All hosts of a program have the same metadata of ops; where it is equal byte for byte, it is kept only once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from tpuprof.parsers.base.errors import Cancelled, ProfileError
from tpuprof.parsers.files.logdir import HostFile
from tpuprof.parsers.hosts.op_summary import OpSummary
from tpuprof.parsers.hosts.plan import available_cores, decoding_threads, worker_count
from tpuprof.parsers.hosts.progress import Meter, OnProgress
from tpuprof.parsers.ops.op_metadata import OpSource

if TYPE_CHECKING:  # multiprocessing, which one host does without
    from concurrent.futures import Executor

    from tpuprof.parsers.hosts.cache import HostCache, Slot
    from tpuprof.parsers.hosts.pool import PoolMeter, Task
    from tpuprof.parsers.hosts.work import Work

Summary = TypeVar("Summary", bound=OpSummary)

_EXECUTOR_WINDOW = 2
"""How many hosts an executor gets at a time for each core of this machine, as its number of workers is unknown."""


class HostReader(Generic[Summary]):
    """Reads hosts and keeps their summaries.

    Args:
        kind: the class of the summaries; work: makes the summary of one host's file.
        on_progress: called often, on any thread.
        is_cancelled: called while it reads.
        executor: reads the hosts where it is given; it must be able to call this package's functions by name.
        scheduler: address of a Dask scheduler whose workers read the hosts; they must see the same paths.
        cache: summaries of files that were read before, and will be again.

    Attributes:
        summaries, failed: the outcome of each host, by path.
    """

    def __init__(
        self,
        kind: type[Summary],
        work: Work[Summary],
        on_progress: OnProgress,
        is_cancelled: Callable[[], bool],
        executor: Executor | None = None,
        scheduler: str | None = None,
        cache: HostCache | None = None,
    ) -> None:
        self._kind = kind
        self._work = work
        self.summaries: dict[str, Summary] = {}
        self.failed: dict[str, ProfileError] = {}
        self._on_progress = on_progress
        self._is_cancelled = is_cancelled
        self._executor = executor
        self._scheduler = scheduler
        self._cache = cache
        self._slots: dict[str, Slot | None] = {}
        self._sources: dict[tuple[bytes, bytes], OpSource] = {}

    def knows(self, file: HostFile) -> bool:
        """Whether it has read a host, or tried to."""
        return file.path in self.summaries or file.path in self.failed

    def readable(self, files: Sequence[HostFile]) -> list[Summary]:
        """The summaries of some hosts, as far as it has them."""
        return [self.summaries[file.path] for file in files if file.path in self.summaries]

    def unreadable(self, files: Sequence[HostFile]) -> list[tuple[HostFile, ProfileError]]:
        """Those of some hosts that can't be read, and why."""
        return [(file, self.failed[file.path]) for file in files if file.path in self.failed]

    def read(self, files: Sequence[HostFile], on_host: Callable[[int], None] = lambda _: None) -> None:
        """Reads those of some hosts that have not been read yet.

        Args:
            on_host: called after each host with how many of `files` are known by now, readable or not.

        Raises:
            ProfileError: the scheduler cannot be reached.
            Cancelled: `is_cancelled` said so.
        """
        if self._is_cancelled():
            raise Cancelled
        todo = [place for place, file in enumerate(files) if not (self.knows(file) or self._recalls(file))]
        for done, (index, outcome) in enumerate(self._outcomes(files, todo) if todo else (), 1):
            file = files[index]
            if isinstance(outcome, ProfileError):
                self.failed[file.path] = outcome
            else:
                self.summaries[file.path] = self._sharing(outcome)
                if self._cache is not None:
                    self._cache.put(self._slots[file.path], outcome)
            on_host(len(files) - len(todo) + done)
        if self._cache is not None:
            self._cache.trim()

    def _recalls(self, file: HostFile) -> bool:
        """Takes a host's summary from the cache, where it has it."""
        if self._cache is None:
            return False
        slot = self._slots[file.path] = self._cache.slot((file,), self._kind.__name__)
        summary = self._cache.get(slot)
        if not isinstance(summary, self._kind):
            return False
        self.summaries[file.path] = self._sharing(summary)
        return True

    def _outcomes(self, files: Sequence[HostFile], todo: Sequence[int]) -> Iterator[tuple[int, Summary | ProfileError]]:
        """Yields each host's index and outcome, in the order in which they are done."""
        chosen = [files[index] for index in todo]
        workers = worker_count(chosen)
        if self._executor is None and self._scheduler is None and workers < 2:
            meter_here = Meter(files, self._on_progress, self._is_cancelled)
            for index in todo:
                meter_here.begin(index)
                yield index, self._read(files[index], meter_here)
            return
        from tpuprof.parsers.hosts.pool import PoolMeter  # noqa: PLC0415 - for several hosts

        meter = PoolMeter(files, todo, self._on_progress, self._is_cancelled)
        for place, outcome in self._over_workers(chosen, workers, meter):
            meter.done(place)
            yield todo[place], outcome
        meter.poll(None)

    def _over_workers(
        self, files: Sequence[HostFile], workers: int, meter: PoolMeter
    ) -> Iterator[tuple[int, Summary | ProfileError]]:
        from tpuprof.parsers.hosts.pool import Task, over_executor, over_processes  # noqa: PLC0415 - for several hosts

        task = Task(self._work, files, meter.poll)
        if self._scheduler is not None:
            yield from _over_dask(task, self._scheduler)
        elif self._executor is not None:
            yield from over_executor(task, self._executor, _EXECUTOR_WINDOW * available_cores())
        else:
            task = replace(task, threads=max(1, min(decoding_threads(), available_cores() // workers)))
            yield from over_processes(
                task, workers, lambda file: self._read(file, Meter((file,), lambda _: meter.poll(None), lambda: False))
            )

    def _read(self, file: HostFile, meter: Meter) -> Summary | ProfileError:
        """Reads a host in this process."""
        try:
            return self._work(file.path, file.host, meter, decoding_threads())
        except ProfileError as error:
            return error

    def _sharing(self, summary: Summary) -> Summary:
        """Replaces a summary's metadata by equal metadata that is kept already."""
        sources = tuple(self._known(source) for source in summary.table.sources)
        return replace(summary, table=replace(summary.table, sources=sources))

    def _known(self, source: OpSource) -> OpSource:
        first = self._sources.setdefault((source.events.body, source.stats.body), source)
        same = np.array_equal(first.events.ids, source.events.ids) and np.array_equal(first.stats.ids, source.stats.ids)
        return first if same else source


def _over_dask(task: Task[Summary], scheduler: str) -> Iterator[tuple[int, Summary | ProfileError]]:
    from tpuprof.parsers.hosts.dask import over_dask  # noqa: PLC0415 - an extra

    files = [replace(file, path=_absolute(file.path)) for file in task.files]
    return over_dask(replace(task, files=files), scheduler)


def _absolute(path: str) -> str:
    """A path that means the same in another folder."""
    return path if "://" in path else os.path.abspath(path)

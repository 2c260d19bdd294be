"""Reduces each of a run's hosts once: in this process or in several.

All hosts of a program have the same metadata of ops, and the same names: where they are equal, they are kept once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Generic, cast

import numpy as np

from tpuprof.parsers.base.errors import Cancelled, ProfileError, log_failed
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.files.logdir import HostFile
from tpuprof.parsers.hosts.plan import decoding_threads, worker_count
from tpuprof.parsers.hosts.progress import Meter, OnProgress
from tpuprof.parsers.hosts.reduction import Given, Made, Reduced, Reduction, Result, reduce_host
from tpuprof.parsers.ops.table import TEXTS, OpTable

if TYPE_CHECKING:  # multiprocessing, which one host does without
    from tpuprof.parsers.hosts.cache import HostCache, Slot
    from tpuprof.parsers.hosts.workers.pool import PoolMeter
    from tpuprof.parsers.ops.op_metadata import OpSource


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How hosts are read.

    Attributes:
        on_progress: called often, on any thread.
        is_cancelled: called while hosts are read.
        cache: summaries of files that were read before, and will be again.
        jobs: how many cores may be busy here; None for what `parsers.hosts.plan` finds.
    """

    on_progress: OnProgress = lambda _: None
    is_cancelled: Callable[[], bool] = lambda: False
    cache: HostCache | None = None
    jobs: int | None = None


class HostReader(Generic[Given, Result]):
    """Reduces hosts and keeps their summaries.

    Args:
        given: what the reduction is given besides a host's file.

    Attributes:
        summaries, failed: the outcome of each host, by path.
    """

    def __init__(
        self, reduction: Reduction[Given, Result], options: ReadOptions, given: Callable[[HostFile], Given]
    ) -> None:
        self.reduction = reduction
        self.summaries: dict[str, Result] = {}
        self.failed: dict[str, ProfileError] = {}
        self._without: dict[str, tuple[ProfileError, ...]] = {}
        self._options = options
        self._given = given
        self._slots: dict[str, Slot | None] = {}
        self._sources: dict[tuple[bytes, bytes], OpSource] = {}
        self._texts: dict[tuple[str | None, ...], tuple[str | None, ...]] = {}

    def knows(self, file: HostFile) -> bool:
        return file.path in self.summaries or file.path in self.failed

    def so_far(self, files: Sequence[HostFile]) -> Reduced[Result]:
        return Reduced(
            tuple((file, self.summaries[file.path]) for file in files if file.path in self.summaries),
            tuple((file, self.failed[file.path]) for file in files if file.path in self.failed),
            tuple((file, error) for file in files for error in self._without.get(file.path, ())),
        )

    def read(self, files: Sequence[HostFile], on_host: Callable[[int], None] = lambda _: None) -> Reduced[Result]:
        """Reads those of some hosts that have not been read yet; returns what it knows of all of these.

        Args:
            on_host: called after each host with how many of `files` are known by now, readable or not.

        Raises:
            Cancelled: `ReadOptions.is_cancelled` said so.
        """
        if self._options.is_cancelled():
            raise Cancelled
        cache = self._options.cache
        todo = [place for place, file in enumerate(files) if not (self.knows(file) or self._recalls(file))]
        for done, (index, outcome) in enumerate(self._outcomes(files, todo) if todo else (), 1):
            file = files[index]
            if isinstance(outcome, ProfileError):
                self.failed[file.path] = outcome
            else:
                summary, self._without[file.path] = outcome
                self.summaries[file.path] = self.sharing(summary)
                if cache is not None and not outcome[1]:  # what failed is to fail again, and say where
                    cache.put(self._slots[file.path], summary)
            on_host(len(files) - len(todo) + done)
        if cache is not None:
            cache.trim()
        return self.so_far(files)

    def _recalls(self, file: HostFile) -> bool:
        """Takes a host's summary from the cache, where it has it."""
        if (cache := self._options.cache) is None:
            return False
        slot = self._slots[file.path] = cache.slot((file,), self.reduction.name, self._given(file))
        larger = (cache.slot((file,), name, self._given(file)) for name in self.reduction.given_by)
        kept = map(cache.get, chain((slot,), larger))
        summary = next((found for found in kept if isinstance(found, self.reduction.kind)), None)
        if summary is None:
            return False
        self.summaries[file.path] = self.sharing(summary)
        return True

    def _outcomes(
        self, files: Sequence[HostFile], todo: Sequence[int]
    ) -> Iterator[tuple[int, Made[Result] | ProfileError]]:
        """Yields each host's index and outcome, in the order in which they are done."""
        chosen = [files[index] for index in todo]
        workers = worker_count(chosen, self._options.jobs)
        if workers < 2:
            meter_here = Meter(files, self._options.on_progress, self._options.is_cancelled)
            for index in todo:
                meter_here.begin(index)
                yield index, self._read(files[index], meter_here)
            return
        from tpuprof.parsers.hosts.workers.pool import PoolMeter  # noqa: PLC0415 - for several hosts

        meter = PoolMeter(files, todo, self._options.on_progress, self._options.is_cancelled)
        for place, outcome in self._over_workers(chosen, workers, meter):
            meter.done(place)
            for error in (outcome,) if isinstance(outcome, ProfileError) else outcome[1]:
                log_failed(error)  # another process has no log
            yield todo[place], outcome
        meter.poll(None)

    def _over_workers(
        self, files: Sequence[HostFile], workers: int, meter: PoolMeter
    ) -> Iterator[tuple[int, Made[Result] | ProfileError]]:
        from tpuprof.parsers.hosts.workers.pool import Task, over_processes  # noqa: PLC0415 - for several hosts

        work, given = partial(reduce_host, self.reduction), [self._given(file) for file in files]
        threads = max(1, decoding_threads(self._options.jobs) // workers)
        return over_processes(
            Task(work, files, meter.poll, given, threads),
            workers,
            lambda file: self._read(file, Meter((file,), lambda _: meter.poll(None), lambda: False)),
        )

    def _read(self, file: HostFile, meter: Meter) -> Made[Result] | ProfileError:
        try:
            return reduce_host(self.reduction, file, self._given(file), meter, decoding_threads(self._options.jobs))
        except ProfileError as error:
            return error

    def sharing(self, summary: Result) -> Result:
        """Replaces the metadata and the texts of a summary's tables by equal ones that are kept already."""
        tables: dict[str, OpTable] = {name: getattr(summary, name) for name in self.reduction.tables}
        shared = {name: self._shared(table) for name, table in tables.items()}
        record = cast("Any", summary)  # a frozen dataclass, which a type variable can't say
        changed: Result = replace(record, **shared) if shared else summary
        return changed

    def _shared(self, table: OpTable) -> OpTable:
        texts: dict[str, Any] = {name: getattr(table, name) for name in TEXTS}
        known: dict[str, Any] = {name: self._texts.setdefault(of, of) for name, of in texts.items()}
        return replace(table, sources=tuple(map(self._known, table.sources)), **known)

    def _known(self, source: OpSource) -> OpSource:
        first = self._sources.setdefault((source.events.body, source.stats.body), source)
        same = np.array_equal(first.events.ids, source.events.ids) and np.array_equal(first.stats.ids, source.stats.ids)
        return first if same else source

"""The facts of the runs of a list, kept from one look at it to the next."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from types import MappingProxyType
from typing import Generic, TypeVar

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.hosts.cache import HostCache
from tpuprof.parsers.session.opening import host_cache
from tpuprof.parsers.session.pages import OVERVIEW
from tpuprof.parsers.session.run_facts import OF_STEPS, RunFacts, run_facts
from tpuprof.parsers.session.session import Session
from tpuprof.parsers.steps.model import StepSource

FileStates = tuple[tuple[int, ...], ...]
"""Size, inode and times of each file of a run."""


def file_states(run: Run, cache: HostCache) -> FileStates | None:
    """The run's files as they are; None where one is remote or still being written."""
    try:
        states = [os.stat(file.path) for file in run.hosts]
    except OSError:
        return None
    if not all(cache.is_settled(max(state.st_mtime, state.st_ctime)) for state in states):
        return None
    return tuple((state.st_size, state.st_ino, state.st_mtime_ns, state.st_ctime_ns) for state in states)


Value = TypeVar("Value")
Entry = tuple[str, FileStates, Value]
"""A run's path, its files as they were, and what was made of them."""


class KeptByRun(Generic[Value]):
    """What was made of each run of a list, kept from one look to the next for as long as the run's files stay.

    Args:
        cache: where it is kept; None to keep none.
        name: what distinguishes it from all else in the cache.
        unpacked: the entries of what the cache gives back, which may be anything; packed: what the cache gets of them.
    """

    def __init__(
        self,
        cache: HostCache | None,
        name: str,
        unpacked: Callable[[object], Iterable[Entry[Value]]],
        packed: Callable[[Iterable[Entry[Value]]], object],
    ) -> None:
        self._cache = cache
        self._packed = packed
        self._slot = None if cache is None else cache.shelf(name)
        found = () if cache is None else unpacked(cache.get(self._slot))
        self._entries: dict[str, Entry[Value]] = {entry[0]: entry for entry in found}
        self._is_new = False

    def value(self, run: Run, make: Callable[[], Value]) -> Value:
        """What is kept of a run whose files are as they were, else what is made now; errors are those of `make`."""
        states, kept = self._states(run), self._entries.get(run.path)
        if kept is not None and states is not None and kept[1] == states:
            return kept[2]
        made = make()
        if states is not None and states == self._states(run):
            self._entries[run.path] = (run.path, states, made)
            self._is_new = True
        return made

    def keep(self) -> None:
        """Puts into the cache what is new since it was read; silent where that can't be done."""
        if self._cache is not None and self._is_new:
            self._cache.put(self._slot, self._packed(self._entries.values()))
            self._cache.trim()
            self._is_new = False

    def _states(self, run: Run) -> FileStates | None:
        return None if self._cache is None else file_states(run, self._cache)


@dataclass(frozen=True, slots=True)
class KeptFacts:
    """The facts of the run at a path, and its files as they were: size, inode and times of each."""

    path: str
    states: FileStates
    facts: RunFacts


@dataclass(frozen=True, slots=True)
class KeptList:
    """What one look at a list of runs leaves to the next."""

    runs: tuple[KeptFacts, ...]


class KnownRuns:
    """Finds the facts of the runs of a list, and keeps them from one look to the next.

    A run whose files are as they were isn't opened again. Where a run's small lines don't give its steps, an overview
    that someone has looked at does (`Session.kept_page`).

    Args:
        cache: where they are kept; None to keep none.
        place: what distinguishes the list from others, such as the path of its log folder.
    """

    def __init__(self, cache: HostCache | None, place: str) -> None:
        self._cache = cache
        name = f"facts of the runs in {os.path.abspath(place)}"
        self._known: KeptByRun[RunFacts] = KeptByRun(cache, name, _unpacked, _packed)

    def facts(self, run: Run, is_cancelled: Callable[[], bool] = lambda: False) -> RunFacts:
        """The facts of a run; errors as for `run_facts`."""
        return self._with_overview(run, self._known.value(run, lambda: run_facts(run, is_cancelled=is_cancelled)))

    def keep(self) -> None:
        """Puts into the cache what is new since it was read; silent where that can't be done."""
        self._known.keep()

    def _with_overview(self, run: Run, facts: RunFacts) -> RunFacts:
        """The facts, with the steps of an overview in the cache where they lack them."""
        if self._cache is None or facts.core_step_ps is not None or not run.hosts:
            return facts
        overview = Session(run, cache=self._cache).kept_page(OVERVIEW)
        step = None if overview is None else overview.performance.step_time
        return facts if step is None else _with_steps(facts, int(step.median_ps), step.count, step.source)


def _unpacked(found: object) -> Iterable[Entry[RunFacts]]:
    return [(run.path, run.states, run.facts) for run in found.runs] if isinstance(found, KeptList) else []


def _packed(entries: Iterable[Entry[RunFacts]]) -> KeptList:
    return KeptList(tuple(KeptFacts(*entry) for entry in entries))


def known_runs(place: str, *, cache: bool = False, cache_bytes: int | None = None) -> KnownRuns:
    """What finds the facts of the runs of a list; arguments as of `KnownRuns` and `open_run`."""
    return KnownRuns(host_cache(cache, cache_bytes), place)


def _with_steps(facts: RunFacts, median_ps: int, count: int, source: StepSource) -> RunFacts:
    unknown = {key: why for key, why in facts.unknown.items() if key not in OF_STEPS}
    known = {"core_step_ps": median_ps, "step_count": count, "step_source": source}
    return replace(facts, **known, unknown=MappingProxyType(unknown))  # type: ignore[arg-type]

"""What was made of each run of a folder, kept in the user's cache from one look at the folder to the next."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Generic, TypeVar

from tpuprof.parsers.base.folders import status
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.hosts.cache import HostCache

FileStates = tuple[tuple[int, ...], ...]
"""Size, inode and times of each file of a run."""


def file_states(run: Run, cache: HostCache) -> FileStates | None:
    """The run's files as they are; None where one is remote or still being written."""
    try:
        states = [status(file.path) for file in run.hosts]
    except OSError:
        return None
    if not all(cache.is_settled(max(state.st_mtime, state.st_ctime)) for state in states):
        return None
    return tuple((state.st_size, state.st_ino, state.st_mtime_ns, state.st_ctime_ns) for state in states)


Value = TypeVar("Value")


class KeptByRun(Generic[Value]):
    """What was made of each run of a folder, kept from one look to the next for as long as the run's files stay.

    Args:
        cache: where it is kept; None to keep none.
        what: what is kept, in a word or two: the cache keeps each kind of a folder apart.
        place: the path of the folder.
        kind: the class of what is kept.
    """

    def __init__(self, cache: HostCache | None, what: str, place: str, kind: type[Value]) -> None:
        self._cache = cache
        self._slot = None if cache is None else cache.shelf(f"{what} of the runs in {os.path.abspath(place)}")
        self._entries = {} if cache is None else _entries(cache.get(self._slot), kind)
        self._is_new = False

    def value(self, run: Run, make: Callable[[], Value]) -> Value:
        """What is kept of a run whose files are as they were, else what is made now; errors are those of `make`."""
        states, kept = self._states(run), self._entries.get(run.path)
        if kept is not None and states is not None and kept[0] == states:
            return kept[1]
        made = make()
        if states is not None and states == self._states(run):
            self._entries[run.path] = (states, made)
            self._is_new = True
        return made

    def keep(self) -> None:
        """Puts into the cache what is new since it was read; silent where that can't be done."""
        if self._cache is not None and self._is_new:
            states, values = zip(*self._entries.values(), strict=True)
            self._cache.put(self._slot, (tuple(self._entries), states, values))
            self._cache.trim()
            self._is_new = False

    def _states(self, run: Run) -> FileStates | None:
        return None if self._cache is None else file_states(run, self._cache)


def _entries(found: object, kind: type[Value]) -> dict[str, tuple[FileStates, Value]]:
    """By a run's path, its files as they were and what was made of them; nothing where the cache has something else."""
    match found:
        case (tuple() as paths, tuple() as states, tuple() as values) if len(paths) == len(states) == len(values):
            of_run = zip(paths, states, values, strict=True)
            return {path: (state, value) for path, state, value in of_run if isinstance(value, kind)}
    return {}

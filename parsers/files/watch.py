"""Watches a logdir for runs that come, change and go, by looking again.

Folders are compared by what they hold, no service of the operating system is asked, so it works on network disks too.
One look costs a `stat` for each folder that the search for runs enters, and a listing of those that changed and of the
newest runs. A run is reported only when a further look finds it unchanged: a capture that is still being written is not
reported. Whatever vanishes or is forbidden between two looks is treated as not there.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Callable, Iterable, Mapping

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.base.folders import listed
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.files.folder_search import DEFAULT_LIMITS, MAGIC, Folder, Walk, is_profile, is_trace
from tpuprof.parsers.files.logdir import Logdir, Run, is_remote, local_path, newest_first, open_logdir
from tpuprof.parsers.files.places import GONE

INTERVAL_SECONDS = 2.0
"""How often to look."""

PATIENCE = 5
"""Looks that a folder with an empty or half-written file must stay as it is before it counts as finished."""

MOST_LISTED = 16
"""Runs whose files are looked at each time, the newest; an older one when its folder changes."""

_FRESH_SECONDS = 3.0
"""A folder that changed so short a time ago may change again within the same tick of its clock."""

MOST_FILES = 2_000
"""Entries of a run's folder that are looked at."""

_UNFINISHED = (".tmp", ".part", ".partial", ".crdownload", ".gstmp")

State = tuple[tuple[str, int, int], ...]
"""The files of a run at one moment: name, size and time of change (nanoseconds since 1970) of each, in order."""

UNREADABLE: State = (("", -1, 0),)
"""The state of a run that seems to exist and cannot be looked at now."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What a look found.

    Attributes:
        new_runs: with at least one host; newest first.
        changed_runs: that have other files than before, as when a further host's arrives.
        gone: as they were.
    """

    new_runs: tuple[Run, ...] = ()
    changed_runs: tuple[Run, ...] = ()
    gone: tuple[Run, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.new_runs or self.changed_runs or self.gone)


class _Look(Walk):
    """A search that lists only folders that have changed since the last one, or may have.

    Attributes:
        listed: paths of those.
    """

    def __init__(self, before: Mapping[str, Folder], looked: float) -> None:
        super().__init__(DEFAULT_LIMITS)
        self.listed: set[str] = set()
        self._before, self._looked = before, looked

    def fill(self, folder: Folder) -> None:
        before = self._before.get(folder.path)
        # some network disks do not tell when a run comes to such a folder
        may_hide = os.path.basename(folder.path) == "profile" or abs(self._looked - folder.modified) <= _FRESH_SECONDS
        if before is not None and before.refusal is None and before.modified == folder.modified and not may_hide:
            folder.subfolders, folder.files = before.subfolders, before.files
            self._entries += len(folder.subfolders) + sum(map(len, folder.files.values()))
            return
        self.listed.add(folder.path)
        super().fill(folder)


class LogdirWatch:
    """Looks at a logdir again and again. One thread at a time.

    Args:
        logdir: what was found at first. What its path would lead to is what is watched: a path to one run is watched
            for changes of that run. URLs are not watched.
        clock: seconds since 1970.

    Attributes:
        logdir: as of the last change that was reported.
    """

    def __init__(self, logdir: Logdir, clock: Callable[[], float] = time.time) -> None:
        self.logdir = logdir
        self._clock = clock
        self._known = {run.path: run for run in logdir.runs if run.hosts}
        self._settled: dict[str, State] = {}
        """Runs, and their state when they were last compared."""
        self._pending: dict[str, tuple[State | None, int]] = {}
        """Runs that differ from that: their state, and for how many looks it has stayed the same."""
        start = local_path(logdir.query)
        tops = {os.path.dirname(path) for path in self._known} if MAGIC.search(start) else {start}
        self._tops = sorted(top for top in tops if os.path.isdir(top or "."))
        self._folders: dict[str, Folder] = {}
        self._looked = 0.0

    def poll(self) -> Changes:
        """Looks once. Never raises for what the file system does."""
        if is_remote(self.logdir.query):
            return Changes()
        ready = {path: self._pending[path][0] for path in self._candidates() if self._is_ready(path)}
        return self._compare(ready) if ready else Changes()

    def _candidates(self) -> Iterable[str]:
        """Paths of runs to look at: those pending, the newest, those whose folder is new or has changed, and those that
        the search did not find.
        """
        look = _Look(self._folders, self._looked)
        self._looked = self._clock()
        look.search(self._tops)
        self._folders = {folder.path: folder for folder in look.folders}
        runs = {folder.path or ".": folder for folder in look.folders if folder.profiles()}
        newest = sorted(runs, key=lambda path: runs[path].modified, reverse=True)[:MOST_LISTED]
        changed = [path for path, folder in runs.items() if folder.path in look.listed or path not in self._settled]
        elsewhere = [path for path in (*self._known, *self._settled) if path not in runs]
        return dict.fromkeys([*self._pending, *newest, *changed, *elsewhere])

    def _is_ready(self, path: str) -> bool:
        """Whether a run differs from what was compared and has not changed since the last look."""
        state = run_state(path)
        if state is UNREADABLE:
            return False
        if self._settled.get(path, UNREADABLE) == state:
            self._pending.pop(path, None)
            return False
        before, looks = self._pending.get(path, (UNREADABLE, 0))
        looks = looks + 1 if before == state else 0
        self._pending[path] = state, looks
        return looks >= (PATIENCE if _is_unfinished(state) else 1)

    def _compare(self, ready: dict[str, State | None]) -> Changes:
        """Searches the logdir anew and compares the runs that are ready with those that were reported."""
        found = self.logdir
        there: dict[str, Run] = {}
        try:
            found = open_logdir(self.logdir.query)
            there = {run.path: run for run in found.runs}
        except ProfileError:  # perhaps for a moment: only what is gone itself is believed to be
            ready = {path: state for path, state in ready.items() if state is None}
        for path, state in ready.items():
            del self._pending[path]
            self._settled.pop(path, None)
            if state is not None:
                self._settled[path] = state
        known = self._known
        now = {
            path: run for path, run in there.items() if run.hosts and (path in ready or _is_same(run, known.get(path)))
        }
        gone = tuple(known.pop(path) for path in ready if path in known and path not in now)
        new = tuple(run for path, run in now.items() if path not in known)
        changed = tuple(run for path, run in now.items() if path in known and not _is_same(run, known[path]))
        known.update(now)
        runs = [*known.values(), *(run for path, run in there.items() if path not in known and not run.hosts)]
        self.logdir = replace(found, runs=tuple(newest_first(runs)) or self.logdir.runs)
        return Changes(new, changed, gone)


def _is_same(run: Run, known: Run | None) -> bool:
    """Whether a run has the files that it had."""
    return known is not None and (run.hosts, run.problems) == (known.hosts, known.problems)


# --- the files of a run


def run_state(path: str) -> State | None:
    """The files of a run, None where it is gone; profiles, and what may become one."""
    try:
        status = os.stat(path)
        if not stat.S_ISDIR(status.st_mode):
            return ((os.path.basename(path), status.st_size, status.st_mtime_ns),)
        files: list[tuple[str, int, int]] = []
        with listed(path) as entries:
            for entry in entries:
                if len(files) < MOST_FILES and (_is_of_run(entry.name) or _may_become_profile(entry.name)):
                    files.append((entry.name, *_size_and_time(entry)))
    except OSError as error:
        return None if error.errno in GONE else UNREADABLE
    return tuple(sorted(files)) if any(_is_of_run(name) for name, _, _ in files) else None


def _is_of_run(name: str) -> bool:
    return is_profile(name) or is_trace(name)


def _size_and_time(entry: os.DirEntry[str]) -> tuple[int, int]:
    try:
        status = entry.stat()
    except OSError:
        return -1, 0
    return status.st_size, status.st_mtime_ns


def _may_become_profile(name: str) -> bool:
    """Whether a name is what copies and downloads give a profile that they have not finished."""
    return ".xplane." in name and not is_profile(name) and (name.startswith(".") or name.endswith(_UNFINISHED))


def _is_unfinished(state: State | None) -> bool:
    """Whether a run has a file that is empty or by its name not finished."""
    return state is not None and any(size <= 0 or _may_become_profile(name) for name, size, _ in state)


def follow(watched: LogdirWatch, tell: Callable[[Changes], object], stopped: threading.Event, interval: float) -> None:
    """Looks at a logdir until `stopped` is set, and reports each change; to be run on a thread of its own.

    On a slow disk it looks less often, so that looking takes at most a twentieth of the time.
    """
    pause = interval
    while not stopped.wait(pause):
        began = time.monotonic()
        changes = watched.poll()
        pause = max(interval, 20 * (time.monotonic() - began))
        if changes and not stopped.is_set():
            tell(changes)


# --- waiting for one


def wait_for_run(
    path: str,
    on_wait: Callable[[], object] = lambda: None,
    *,
    sleep: Callable[[float], object] = time.sleep,
    clock: Callable[[], float] = time.time,
) -> None:
    """Returns once a path leads to a finished run, which is at once where one is there: this is what ``--latest`` does.

    Args:
        path: as for `open_logdir`; one that does not exist yet is waited for as well.
        on_wait: called after each look that found nothing.
        sleep, clock: as in `time`.

    Raises:
        ProfileError: `not_found` (exit code 3), at once, for a path that can never lead to one.
    """
    if not path or "\0" in path or is_remote(path):
        try:
            open_logdir(path)
        except ProfileError as error:
            if error.code != "not_found" or not path or "\0" in path:
                raise
    seen: dict[str, State | None] = {}
    while not _has_finished_run(path, seen, clock()):
        on_wait()
        sleep(INTERVAL_SECONDS)


def _has_finished_run(path: str, seen: dict[str, State | None], now: float) -> bool:
    """Whether a run there was the same at the last look, or nobody has written to it for long.

    Args:
        seen: path to state at the last look; is brought up to date.
    """
    try:
        runs = [run for run in open_logdir(path).runs if run.hosts]
    except ProfileError:
        return False
    for run in runs:
        files = tuple((host.path, host.size_bytes, int(host.modified * 1e9)) for host in run.hosts)
        state = files if is_remote(path) else run_state(run.path)
        is_same = seen.get(run.path, ()) == state
        seen[run.path] = state
        if state is None or state is UNREADABLE:
            continue
        quiet_for = now - max(changed for _, _, changed in state) / 1e9
        is_patient = quiet_for >= PATIENCE * INTERVAL_SECONDS
        if is_patient or (not _is_unfinished(state) and (is_same or quiet_for > _FRESH_SECONDS)):
            return True
    return False

"""Watches a logdir for runs that come, change and go, by looking again.

Folders are compared by what they hold, no service of the operating system is asked, so it works on network disks too.
One look costs a `stat` for each folder that is watched, and a listing of those that changed and of the newest runs. A
run is reported only when a further look finds it unchanged: a capture that is still being written is not reported.
Whatever vanishes or is forbidden between two looks is treated as not there.
"""

from __future__ import annotations

import contextlib
import os
import stat
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.base.folders import listed
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import natural_key
from tpuprof.parsers.files import folder_search
from tpuprof.parsers.files.folder_search import DEFAULT_LIMITS, MAGIC, Folder, SearchLimits, Walk, is_profile, is_trace
from tpuprof.parsers.files.logdir import Logdir, Run, is_remote, local_path, newest_first, open_logdir
from tpuprof.parsers.files.places import GONE

INTERVAL_SECONDS = 2.0
"""How often to look."""

PATIENCE = 5
"""Looks that a folder with an empty or half-written file must stay as it is before it counts as finished."""

MOST_FOLDERS = 512
"""Folders that are watched for new ones inside, nearest first."""

MOST_LISTED = 16
"""Runs whose files are looked at each time, the newest; an older one when its folder changes."""

_FRESH_SECONDS = 3.0
"""A folder that changed so short a time ago may change again within the same tick of its clock."""

MOST_FILES = 2_000
"""Entries of a run's folder that are looked at."""

_UNFINISHED = (".tmp", ".part", ".partial", ".crdownload", ".gstmp", "_.gstmp")

State = tuple[tuple[str, int, int], ...]
"""The files of a run at one moment: name, size and time of change (nanoseconds since 1970) of each, in order."""

UNREADABLE: State = (("", -1, 0),)
"""The state of a run that seems to exist and cannot be looked at now."""

_BELOW = SearchLimits(max_depth=4, max_entries=5_000)
"""How far a new folder is searched for runs."""


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
        self._settled: dict[str, State | None] = {}
        self._pending: dict[str, tuple[State | None, int]] = {}
        """Folders that differ from what was reported: their state, and for how many looks it has stayed the same."""
        self._start = local_path(logdir.query)
        self._tops: frozenset[str] = frozenset()
        self._folders: dict[str, int] = {}
        self._subfolders: dict[str, frozenset[str]] = {}
        self._modified: dict[str, int] = {}
        self._is_remote = is_remote(logdir.query)
        self._begun = False

    def poll(self) -> Changes:
        """Looks once. Never raises for what the file system does."""
        if self._is_remote:
            return Changes()
        if not self._begun:
            self._begin()
        ready = [path for path in self._candidates() if self._is_ready(path)]
        return self._refresh(ready) if ready else Changes()

    # --- where to look

    def _begin(self) -> None:
        """Takes down what is there: folders in which runs may come, and the runs that are known."""
        self._begun = True
        tops = sorted({os.path.dirname(path) for path in self._known}) if MAGIC.search(self._start) else [self._start]
        tops = [top for top in tops if os.path.isdir(top or ".")]
        for run in self.logdir.runs:
            state = run_state(run.path)
            if not run.hosts or (state is not None and _agrees(run, state)):
                self._settled[run.path] = state
        self._tops = frozenset(tops)
        for path in self._watch_below(tops, DEFAULT_LIMITS):
            if path not in self._known and path not in self._settled:
                self._pending[path] = run_state(path), -1

    def _watch_below(self, tops: Sequence[str], limits: SearchLimits) -> list[str]:
        """Watches folders and what is below them but runs, which it returns."""
        walk = Walk(replace(limits, max_entries=min(limits.max_entries, _BELOW.max_entries)))
        walk.search(tops)
        runs = []
        for folder in walk.folders:
            if folder.profiles():
                runs.append(folder.path)
            if len(self._folders) < MOST_FOLDERS and (folder.subfolders or not folder.profiles()):
                self._folders[folder.path] = -1
                self._subfolders[folder.path] = frozenset(name for name, _ in folder.subfolders)
        return runs

    def _candidates(self) -> dict[str, None]:
        """Paths of runs that are to be looked at: those pending, new ones, the newest, those whose folder changed."""
        new = [path for folder in list(self._folders) for path in self._new_in(folder)]
        unread = [path for path in self._settled if path not in self._known][-MOST_LISTED:]
        known = [run.path for run in newest_first(self._known.values())]
        before = self._modified
        self._modified = {path: _modified(path) for path in known[MOST_LISTED:]}
        changed = [path for path, modified in self._modified.items() if before.get(path, modified) != modified]
        return dict.fromkeys([*self._pending, *new, *unread, *known[:MOST_LISTED], *changed])

    def _new_in(self, folder: str) -> list[str]:
        """New runs in a watched folder, which may have become one itself."""
        modified = _modified(folder)
        if not modified:
            self._lose(folder)
        is_quiet = modified == self._folders.get(folder) and os.path.basename(folder) != "profile"
        if not modified or is_quiet:
            return []
        if abs(self._clock() - modified / 1e9) > _FRESH_SECONDS:
            self._folders[folder] = modified
        listed = _listed(folder)
        names = frozenset(name for name, _ in listed.subfolders)
        new_names = sorted(names - self._subfolders[folder], key=natural_key)
        self._subfolders[folder] = names
        paths = [path for name in new_names if self._may_lead_to_runs(path := os.path.join(folder, name))]
        return ([folder] if listed.profiles() else []) + (self._watch_below(paths, _BELOW) if paths else [])

    def _lose(self, folder: str) -> None:
        """Forgets a folder that is not there, so that it is a new one for the folder above when it comes back."""
        self._subfolders[folder] = frozenset()
        if folder in self._tops:
            return
        del self._folders[folder], self._subfolders[folder]
        above, name = os.path.split(folder)
        if above in self._folders:
            self._folders[above] = -1
            self._subfolders[above] -= {name}

    def _may_lead_to_runs(self, path: str) -> bool:
        """Whether a new folder lies where the query leads, and is no link to a folder above it."""
        if os.path.basename(path) in DEFAULT_LIMITS.pruned:
            return False
        here, start = os.path.abspath(path) + os.sep, os.path.abspath(self._start) + os.sep
        is_on_the_way = here.startswith(start) or start.startswith(here) or bool(MAGIC.search(self._start))
        return is_on_the_way and not (
            os.path.islink(path) and folder_search.identity(path) in folder_search.folders_above(path)
        )

    # --- what is there

    def _is_ready(self, path: str) -> bool:
        """Whether a run differs from what was reported and has not changed since the last look."""
        state = run_state(path)
        if state is UNREADABLE:
            return False
        if path in self._settled and self._settled[path] == state:
            self._pending.pop(path, None)
            return False
        before, looks = self._pending.get(path, (UNREADABLE, 0))
        looks = looks + 1 if before == state else 0
        self._pending[path] = state, looks
        return looks >= (PATIENCE if _is_unfinished(state) else 1)

    def _refresh(self, ready: list[str]) -> Changes:
        """Searches the logdir anew and compares its runs with those that were reported."""
        for path in ready:
            self._settled[path] = self._pending.pop(path)[0]
        logdir = None
        with contextlib.suppress(ProfileError):
            logdir = open_logdir(self.logdir.query)
        there = logdir.runs if logdir is not None else ()
        asked = {os.path.abspath(path) for path in ready}
        for run in there:  # that came while this look went on
            if run.hosts and run.path not in self._known and os.path.abspath(run.path) not in asked:
                self._pending.setdefault(run.path, (run_state(run.path), 0))
        waiting = {os.path.abspath(path) for path in self._pending}
        runs = [run for run in there if os.path.abspath(run.path) not in waiting]
        if logdir is not None:
            kept = [run for path, run in self._known.items() if os.path.abspath(path) in waiting]
            order = newest_first((*runs, *kept))
            self.logdir = replace(logdir, runs=tuple(order)) if order else self.logdir
        now = {run.path: run for run in runs if run.hosts}
        known_before = [(run, self._known[path]) for path, run in now.items() if path in self._known]
        gone = [run for path, run in self._known.items() if path not in now and os.path.abspath(path) in asked]
        new = tuple(run for path, run in now.items() if path not in self._known)
        changed = tuple(run for run, old in known_before if (run.hosts, run.problems) != (old.hosts, old.problems))
        for run in gone:
            del self._known[run.path]
            self._settled.pop(run.path, None)
        self._known.update(now)
        return Changes(new, changed, tuple(gone))


# --- the files of a run


def run_state(path: str) -> State | None:
    """The files of a run, None where it is gone; profiles, and what may become one."""
    try:
        status = os.stat(path or ".")
        if not stat.S_ISDIR(status.st_mode):
            return ((os.path.basename(path), status.st_size, status.st_mtime_ns),)
        files: list[tuple[str, int, int]] = []
        with listed(path) as entries:
            for entry in entries:
                if len(files) < MOST_FILES and (
                    _may_become_profile(entry.name) or is_profile(entry.name) or is_trace(entry.name)
                ):
                    files.append((entry.name, *_size_and_time(entry)))
    except OSError as error:
        return None if error.errno in GONE else UNREADABLE
    if not any(is_profile(name) or is_trace(name) for name, _, _ in files):
        return None
    return tuple(sorted(files))


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


def _agrees(run: Run, state: State) -> bool:
    """Whether a run was read from these files: whatever is of no host then had a problem then."""
    now = {name: (size, changed) for name, size, changed in state}
    for host in run.hosts:
        size, changed = now.pop(os.path.basename(host.path), (-1, 0))
        if size != host.size_bytes or abs(changed - host.modified * 1e9) >= 1e6:
            return False
    return not now or bool(run.problems)


def _listed(path: str) -> Folder:
    """What a folder holds; nothing where it may not be listed."""
    folder = Folder(path)
    with contextlib.suppress(OSError), listed(path) as entries:
        for entry in entries:
            folder.take(entry)
    return folder


def _modified(path: str) -> int:
    """Nanoseconds since 1970, 0 where nothing is there."""
    try:
        return os.stat(path or ".").st_mtime_ns
    except OSError:
        return 0


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
        runs = open_logdir(path).runs
    except ProfileError:
        return False
    for run in runs:
        if not run.hosts:
            continue
        listed = tuple((host.path, host.size_bytes, int(host.modified * 1e9)) for host in run.hosts)
        state = listed if is_remote(path) else run_state(run.path)
        is_same = seen.get(run.path, ()) == state
        seen[run.path] = state
        if state is None or state is UNREADABLE:
            continue
        quiet_for = now - max(changed for _, _, changed in state) / 1e9
        if _is_unfinished(state) and quiet_for < PATIENCE * INTERVAL_SECONDS:
            continue
        if is_same or quiet_for > _FRESH_SECONDS:
            return True
    return False

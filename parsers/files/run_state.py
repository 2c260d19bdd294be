"""The files of a run as they are at one moment, to tell whether it changes and whether it is finished."""

from __future__ import annotations

import os
import stat

from tpuprof.parsers.files.folder_search import kind_of
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.files.places import GONE

MOST_FILES = 2_000
"""Entries of a run's folder that are looked at."""

_UNFINISHED = (".tmp", ".part", ".partial", ".crdownload", ".gstmp", "_.gstmp")

State = tuple[tuple[str, int, int], ...]
"""Name, size and time of change of a run's files, in order."""

UNREADABLE: State = (("", -1, 0),)
"""Of a run that is there, as far as one can tell, and cannot be looked at now."""


def run_state(path: str) -> State | None:
    """The files of a run, None where it is gone; profiles, and what may become one."""
    try:
        status = os.stat(path or ".")
        if not stat.S_ISDIR(status.st_mode):
            return ((os.path.basename(path), status.st_size, status.st_mtime_ns),)
        found: list[tuple[str, int, int]] = []
        with os.scandir(path or ".") as entries:
            for entry in entries:
                if len(found) < MOST_FILES and (_may_become_profile(entry.name) or is_profile(entry.name)):
                    found.append((entry.name, *_size_and_time(entry)))
    except OSError as error:
        return None if error.errno in GONE else UNREADABLE
    if not any(is_profile(name) for name, _, _ in found):
        return None
    return tuple(sorted(found))


def _size_and_time(entry: os.DirEntry[str]) -> tuple[int, int]:
    try:
        status = entry.stat()
    except OSError:
        return -1, 0
    return status.st_size, status.st_mtime_ns


def is_profile(name: str) -> bool:
    """Whether a file is a profile by its name."""
    return kind_of(name) in ("profile", "riegeli")


def _may_become_profile(name: str) -> bool:
    """Whether a name is what copies and downloads give a profile that they have not finished."""
    return ".xplane." in name and not is_profile(name) and (name.startswith(".") or name.endswith(_UNFINISHED))


def is_unfinished(state: State | None) -> bool:
    """Whether a run has a file that is empty or by its name not finished."""
    return state is not None and any(size <= 0 or _may_become_profile(name) for name, size, _ in state)


def agrees(run: Run, state: State) -> bool:
    """Whether a run was read from these files: whatever is of no host then had a problem then."""
    files = {os.path.basename(host.path): (host.size_bytes, host.modified) for host in run.hosts}
    here = {name: (size, at) for name, size, at in state}
    same = all(
        name in here and here[name][0] == size and abs(here[name][1] - modified * 1e9) < 1e6
        for name, (size, modified) in files.items()
    )
    others = [name for name in here if name not in files]
    return same and (not others or bool(run.problems))


def hosts_state(run: Run) -> State:
    """The state of a run by what its listing said."""
    return tuple((host.path, host.size_bytes, int(host.modified * 1e9)) for host in run.hosts)

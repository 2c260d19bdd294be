"""The files that an out-of-memory error is read from: logs, dumps of the compiler, and a device memory profile."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Sequence
from typing import BinaryIO

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_UNREADABLE, EXIT_USAGE, ProfileError
from tpuprof.parsers.base.folders import ONLY_BELOW, opened
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.text import counted, printable
from tpuprof.parsers.files.folder_search import is_pprof_name, is_profile
from tpuprof.parsers.formats.pprof.files import is_pprof
from tpuprof.parsers.memory.oom.dumps import Dumped, read_dumps, with_dumps
from tpuprof.parsers.memory.oom.model import OomLog
from tpuprof.parsers.memory.oom.read.scan import joined, scan_log

STREAM = "-"
"""Stands for standard input in the place of a path."""

_OF_DUMPS = re.compile(r"(?:\.hlo(?:_proto)?\.pb(?:\.gz)?|-memory-usage-report\.(?:pb|txt)|-buffer-assignment\.txt)$")
_STEMS = re.compile(r"module_\d+\..+\.pb$")


@dataclass(frozen=True, slots=True)
class OomFiles:
    """The files by what they are.

    Attributes:
        logs: paths, ``-`` for standard input.
        dumps: folders, and files of dumps.
        arrays: a device memory profile; None without one.
    """

    logs: tuple[str, ...]
    dumps: tuple[str, ...]
    arrays: str | None

    @property
    def first(self) -> str:
        return (self.logs or self.dumps)[0]


def sorted_files(paths: Sequence[str], arrays: str | None) -> OomFiles:
    """Sorts paths by their names and first bytes; `arrays` is one that was called a device memory profile.

    Raises:
        ProfileError: there are two device memory profiles, or standard input twice.
    """
    logs, dumps, profiles = [], [], [] if arrays is None else [arrays]
    for path in dict.fromkeys(paths):
        name = os.path.basename(path)
        if path == STREAM:
            logs.append(path)
        elif os.path.isdir(path) or _OF_DUMPS.search(name) or _STEMS.match(name):
            dumps.append(path)
        elif is_pprof(path):
            profiles.append(path)
        else:
            logs.append(path)
    if len(profiles) > 1:
        raise ProfileError("usage", "Two device memory profiles are given.", "tpuprof-tui oom --help", EXIT_USAGE)
    if profiles and not logs and not dumps:
        sentence = f"{printable(profiles[0])} is a device memory profile: it shows who holds memory, and has no error."
        raise ProfileError("no_oom", sentence, f"tpuprof-tui {printable(profiles[0])}", EXIT_NOT_FOUND)
    return OomFiles(tuple(logs), tuple(dumps), profiles[0] if profiles else None)


def named_dumps(names: Iterable[str], log: str) -> tuple[str, ...]:
    """The folders of dumps that a log's flags name and that are here: as they are named, or beside the log."""
    beside = "" if log == STREAM else os.path.dirname(log)
    found = dict[str, None]()
    for name in names:
        for path in (
            os.path.expanduser(name),
            os.path.join(beside, name),
            os.path.join(beside, os.path.basename(name)),
        ):
            if os.path.isdir(path):
                found[path] = None
                break
    return tuple(found)


def refuse_device(file: BinaryIO, shown: str) -> None:
    """Refuses what never ends, such as /dev/zero; a terminal and /dev/null do."""
    with contextlib.suppress(OSError, ValueError):  # what stands for standard input has no descriptor
        status = os.fstat(file.fileno())
        if stat.S_ISCHR(status.st_mode) and not file.isatty() and status.st_rdev != os.stat(os.devnull).st_rdev:
            raise ProfileError("not_a_file", f"{shown} is a device, not a log.", "tpuprof-tui oom LOG", EXIT_UNREADABLE)


def scan_file(path: str, on_progress: Callable[[int], None] | None = None) -> OomLog:
    """The errors of a log; `on_progress` gets how many bytes are read.

    Raises:
        ProfileError: it can't be read, or is none.
    """
    try:
        with opened_log(path) as file:
            refuse_device(file, printable(path))
            return scan_log(file, on_progress)
    except (FileNotFoundError, NotADirectoryError):
        sentence = f"There is no file {printable(path)}."
        raise ProfileError("not_found", sentence, "tpuprof-tui oom LOG", EXIT_NOT_FOUND) from None
    except (OSError, ValueError) as error:
        raise unreadable_log(path, error) from error


def opened_log(path: str) -> BinaryIO:
    """A log; one that waits for more though it is a file, as /proc/kmsg does, ends where that begins."""
    waits = ONLY_BELOW not in os.environ and not stat.S_ISREG(os.stat(path).st_mode)
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC) if waits else opened(path)
    return open(descriptor, "rb", buffering=0)


def unreadable_log(path: str, error: Exception) -> ProfileError:
    """Why a log can't be read."""
    reason = printable(getattr(error, "strerror", None) or str(error)).lower()
    return ProfileError("unreadable", f"{printable(path)} can't be read: {reason}.", "", EXIT_UNREADABLE)


def whole_log(given: OomFiles, logs: Sequence[OomLog], dumps: Sequence[Dumped]) -> OomLog:
    """The logs as one, each error with the buffers of the dump that is given, or that its log's flags name."""
    found = list(dumps)
    notes: list[str] = []
    for path, log in zip(given.logs, logs, strict=True):
        for folder in named_dumps(log.dumps, path) if log.reports and not dumps else ():
            try:
                found += read_dumps((folder,))
            except ProfileError as error:
                notes.append(f"The log names the dump {printable(folder)}, which is not read: {error.sentence}")
    log = joined([shown_name(path) for path in given.logs], logs)
    whole = with_dumps(log, found)
    return replace(whole, notes=(*whole.notes, *notes))


def errors_of(given: OomFiles) -> OomLog:
    """The errors in files, at least one.

    Raises:
        ProfileError: there is none, or a file can't be read.
    """
    log = whole_log(given, [scan_file(path) for path in given.logs], read_dumps(given.dumps))
    if not log.reports:
        raise nothing_found(given.first, log)
    return log


def nothing_found(path: str, log: OomLog) -> ProfileError:
    """There is no error in the log that this understands."""
    name = "Standard input" if path == STREAM else printable(path)
    sentence = f"{name} holds no out-of-memory error of a TPU program ({counted(log.lines, 'line')} read)."
    if log.notes:
        sentence += f" {log.notes[0]}"
    hint = "the log of the process that failed, with its standard error: python train.py 2>&1 | tpuprof-tui oom -"
    if os.path.isdir(path):
        sentence = f"No compile of the dump {name} ran out of memory."
        hint = f"tpuprof-tui {printable(path)}"
    elif is_profile(path) or is_pprof_name(path):
        hint = f"tpuprof-tui {printable(path)}"
    return ProfileError("no_oom", sentence, hint, EXIT_NOT_FOUND)


def shown_name(path: str) -> str:
    """A log's name before a line number: its last part, ``stdin`` for standard input."""
    return "stdin" if path == STREAM else path.rstrip("/").rpartition("/")[2] or path

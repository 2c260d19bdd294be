"""Where a report goes: standard output, or a file that is whole or not there, and never among the user's profiles."""

from __future__ import annotations

import contextlib
import io
import os
import stat
import sys

from tpuprof.parsers.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.folder_search import Kind, kind_of, names_in
from tpuprof.parsers.logdir import Logdir
from tpuprof.parsers.text import printable

_PROFILES: tuple[Kind, ...] = ("profile", "riegeli")
_NAMES_LOOKED_AT = 20_000


def write_stdout(text: str) -> None:
    """Writes a report to standard output in UTF-8, whatever the locale: no character makes it fail.

    Raises:
        BrokenPipeError: nobody reads it any more.
        ProfileError: it can't be written otherwise, as on a full disk.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _unwritable("Standard output", error) from error


def check_output(path: str, logdir: Logdir) -> None:
    """Sees, before any work, that `path` may be written: it is no profile and lies in no folder of profiles.

    Raises:
        ProfileError: it may not; exit code 2.
    """
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    shown = printable(path)
    if not path or os.path.isdir(target):
        raise ProfileError("output", f"{shown or 'An empty path'} is not a file.", "name a file", EXIT_USAGE)
    if not os.path.isdir(folder):
        sentence = f"The folder {printable(folder)} is not there, so {shown} can't be written."
        raise ProfileError("output", sentence, "create it first", EXIT_USAGE)
    if kind_of(name) in _PROFILES or _is_opened(target, logdir):
        sentence = f"{shown} is a profile, or named like one; a report is not written over it."
        raise ProfileError("output", sentence, "give the report another name", EXIT_USAGE)
    if _in_run_folder(folder) or any(kind_of(item) in _PROFILES for item in names_in(folder, _NAMES_LOOKED_AT)):
        sentence = f"{shown} lies in a folder of profiles; nothing is written beside them."
        raise ProfileError("output", sentence, "write it to another folder", EXIT_USAGE)


def write_file(path: str, text: str) -> None:
    """Writes a file in one move: a reader sees the old one or the whole new one. Devices and pipes are written into.

    Raises:
        ProfileError: it can't be written; nothing is left behind.
    """
    target = os.path.realpath(path)
    data = text.encode("utf-8", "backslashreplace")
    try:
        if os.path.exists(target) and not stat.S_ISREG(os.stat(target).st_mode):
            with open(target, "wb") as device:
                device.write(data)
            return
        _replace(target, data)
    except OSError as error:
        raise _unwritable(printable(path), error) from error


def _replace(target: str, data: bytes) -> None:
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name[:100]}.{os.getpid()}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(target):
            os.chmod(temporary, stat.S_IMODE(os.stat(target).st_mode))
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _is_opened(target: str, logdir: Logdir) -> bool:
    """Whether it is one of the profiles of this very call, which may have any name."""
    return any(os.path.realpath(host.path) == target for run in logdir.runs for host in run.hosts)


def _in_run_folder(folder: str) -> bool:
    """Whether ``…/plugins/profile`` is the folder or above it."""
    parts = folder.split(os.sep)
    return any(parts[at : at + 2] == ["plugins", "profile"] for at in range(len(parts)))


def _unwritable(what: str, error: OSError) -> ProfileError:
    reason = printable((error.strerror or str(error)).lower())
    return ProfileError("output", f"{what} can't be written: {reason}.", "write it somewhere else", EXIT_USAGE)

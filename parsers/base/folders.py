"""The folders that this program keeps files of its own in, XDG's on every system, and the one that it may be held in.

Whatever reads files of others opens them here: a process that is held below a folder then reads nothing else.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import stat
from collections.abc import Callable, Iterator

from tpuprof.parsers.base.errors import ProfileError, unreadable
from tpuprof.parsers.base.text import printable

NAME = "tpuprof-tui"

ONLY_BELOW = "TPUPROF_ONLY_BELOW"
"""The variable that holds a process, and all that it starts, below a folder whose path has no links."""

OUTSIDE = "it lies outside the folder that may be read"
"""Why something is not opened there."""

_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
_ON_THE_WAY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def opened(path: str, flags: int = 0) -> int:
    """A descriptor of a file or a folder to read, which the caller closes; it does not wait for the writer of a pipe.

    Where `ONLY_BELOW` is set, what is opened lies below that folder or the cache. Links on the way are resolved first.
    The way without links is then walked part by part, and no link is followed any more: whoever exchanges a part for a
    link meanwhile gains nothing.

    Raises:
        OSError: it can't be opened; PermissionError with `OUTSIDE` where it lies elsewhere; FileNotFoundError also if
            no file can have such a name.
    """
    if "\0" in path:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    if (folder := os.environ.get(ONLY_BELOW)) is None:
        return os.open(path, _FLAGS | flags)
    real = os.path.realpath(path)
    if not any(is_below(real, top) for top in (folder, os.path.realpath(cache_folder()))):
        raise PermissionError(errno.EACCES, OUTSIDE, path)
    *folders, name = real.split("/")[1:]
    way = os.open("/", _ON_THE_WAY)
    try:
        for part in folders:
            below = os.open(part, _ON_THE_WAY, dir_fd=way)
            os.close(way)
            way = below
        return os.open(name or ".", _FLAGS | flags | os.O_NOFOLLOW, dir_fd=way)
    finally:
        os.close(way)


@contextlib.contextmanager
def regular_file(path: str, open_it: Callable[[str], int] = opened) -> Iterator[int]:
    """A regular file's descriptor, opened by a function.

    Raises:
        ProfileError: it can't be opened, or is not a regular file; or it can't be read while this is open.
    """
    try:
        descriptor = open_it(path)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ProfileError("not_a_file", f"{printable(path)} is not a regular file.", "name a file, or its folder")
        yield descriptor
    except OSError as error:
        raise unreadable(path, error) from error
    finally:
        os.close(descriptor)


def read_at(descriptor: int, offset: int, length: int) -> bytes:
    """Bytes of a file; fewer only where it ends. Linux gives at most 2 GiB at a time."""
    data = os.pread(descriptor, length, offset)
    while len(data) < length and (more := os.pread(descriptor, length - len(data), offset + len(data))):
        data += more
    return data


def write_at(descriptor: int, offset: int, data: bytes | bytearray) -> None:
    """Writes all of some bytes to a file."""
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, offset)
        view, offset = view[written:], offset + written


def is_below(path: str, folder: str) -> bool:
    """Whether a path is that of a folder, or of something below it; neither has links."""
    return path == folder or path.startswith(os.path.join(folder, ""))


def status(path: str) -> os.stat_result:
    """What the system knows of a file, as `opened` would open it; raises as that does."""
    if ONLY_BELOW not in os.environ:
        return os.stat(path)
    descriptor = opened(path)
    try:
        return os.fstat(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def listed(folder: str) -> Iterator[Iterator[os.DirEntry[str]]]:
    """The entries of a folder, empty for the current one; they have a name but no path, and can't be asked afterwards.

    Raises:
        OSError: as `opened`.
    """
    descriptor = opened(folder or ".", os.O_DIRECTORY)
    try:
        with os.scandir(descriptor) as entries:
            yield entries
    finally:
        os.close(descriptor)


def content_below(folder: str, most_files: float = math.inf) -> tuple[int, int]:
    """Bytes and number of the files below a folder; counting stops after `most_files`, and links are not followed."""
    total = count = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(parent, name)).st_size
            count += 1
            if count > most_files:
                return total, count
    return total, count


def cache_folder() -> str:
    """``$XDG_CACHE_HOME/tpuprof-tui``, by default below ``~/.cache``: what can be had again."""
    return _own("XDG_CACHE_HOME", ".cache")


def state_folder() -> str:
    """``$XDG_STATE_HOME/tpuprof-tui``, by default below ``~/.local/state``: what is kept between runs."""
    return _own("XDG_STATE_HOME", ".local/state")


def write_state(name: str, text: str) -> str:
    """Writes a text to a file of that name in `state_folder`, for this user's eyes; returns its path, or why it
    could not be written.

    Whatever has the file's name is replaced in one move: a link or a pipe there is not written into.
    """
    folder = state_folder()
    path, partial = (os.path.join(folder, each) for each in (name, f"{name}.{os.urandom(8).hex()}.part"))
    if not os.path.isabs(path):
        return "not to a file (there is no home folder)"
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        try:
            with open(partial, "x", encoding="utf-8", opener=lambda of, flags: os.open(of, flags, 0o600)) as file:
                file.write(text + "\n")
            os.replace(partial, path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(partial)
    except OSError as error:
        return f"not to a file ({error.strerror})"
    return path


def read_state(name: str) -> str:
    """What `write_state` has written to the file of that name; empty where it has written nothing."""
    try:
        with open(os.path.join(state_folder(), name), encoding="utf-8") as file:
            return file.read().removesuffix("\n")
    except (OSError, ValueError):
        return ""


def _own(variable: str, default: str) -> str:
    """As XDG has it, a relative path counts as none: it would lead below the current folder, which may be a logdir."""
    given = os.environ.get(variable, "")
    return os.path.join(given if os.path.isabs(given) else os.path.join(os.path.expanduser("~"), default), NAME)

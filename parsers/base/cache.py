"""What can be had again is kept by one set of rules: summaries of hosts, copies of remote files, unpacked archives.

Each kind has a folder of its own in the user's cache folder, which nobody else may read (0700, files 0600). An entry is
a file or a folder. It gets its name when it is whole; until then a random number and ``.part`` stand behind that.
Processes that want the same at the same time each make it: of files the last stays, of folders the first. What is open
is locked, and never removed. Links are not followed, and what belongs to another user is not opened. All entries
together have a bound, those in the making too, and those that were used longest ago leave first: a file's access time
says when it was used, a folder's modification time. What killed processes left leaves after a day.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator

from tpuprof.parsers.base.folders import cache_folder, content_below
from tpuprof.parsers.base.record import dataclass

_ENDING = ".part"
_PARTIAL = re.compile(r"\.[0-9a-f]{16}\.part\Z")
_PARTIAL_SECONDS = 24 * 3600  # what was not written to for so long a killed process left
_SPARE_BYTES = 64 << 20  # left free on the disk while there are entries to remove instead
_UNLOCKABLE = frozenset({errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})
_UNWRITABLE = frozenset(
    {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EEXIST, errno.ENOTEMPTY, errno.ELOOP}
    | {errno.ENAMETOOLONG, errno.ENXIO, errno.EISDIR}
)
_OPENED = os.O_CLOEXEC | os.O_NOFOLLOW


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or a folder of a cache.

    Attributes:
        name: in the folder of its kind.
        size: bytes, of a folder those of all files below it.
        used, modified: seconds since 1970.
    """

    name: str
    size: int
    used: float
    modified: float


class CacheFolder:
    """The entries of one kind, as one process uses them; others may do so at the same time.

    Args:
        kind: the name of their folder.
        bound: bytes that all of them may take together.
    """

    def __init__(self, kind: str, bound: int) -> None:
        self.folder = os.path.join(cache_folder(), kind)
        self.bound = bound

    def place(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def make(self) -> None:
        """Makes the folder where it is not there yet.

        Raises:
            OSError: it can't be made, or there is no home folder: nothing is kept below the current one.
        """
        if not os.path.isabs(self.folder):
            raise FileNotFoundError(errno.ENOENT, "there is no home folder", self.folder)
        os.makedirs(self.folder, mode=0o700, exist_ok=True)

    def entries(self) -> list[Entry]:
        """All that is there: whole entries, what was begun, and what does not belong there; links and devices apart."""
        found = []
        with contextlib.suppress(FileNotFoundError), os.scandir(self.folder) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(status.st_mode):
                        found.append(Entry(entry.name, status.st_size, status.st_atime, status.st_mtime))
                    elif stat.S_ISDIR(status.st_mode):
                        found.append(Entry(entry.name, content_below(entry.path)[0], status.st_mtime, status.st_mtime))
        return found

    # --- using

    def open(self, name: str, is_folder: bool = False) -> int:
        """A descriptor of an entry, to be closed by the caller; while it is open the entry stays.

        Raises:
            FileNotFoundError: it is not there.
            OSError: it can't be read, is a link, of another user, or not the file or folder that it should be.
        """
        descriptor = os.open(self.place(name), os.O_RDONLY | os.O_NONBLOCK | _OPENED)
        try:
            if not _is_ours(os.fstat(descriptor), is_folder):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
            locked = _lock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            if is_folder and (locked is False or not _is_named(descriptor, self.place(name))):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)  # it is being removed
            note_use(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    # --- making

    @contextlib.contextmanager
    def new_folder(self, name: str) -> Iterator[str]:
        """The path of an empty folder for an entry, one for each who asks; it goes where it is not finished.

        Raises:
            OSError: it can't be made.
        """
        self.make()
        path = self._place_of_its_own(name)
        os.mkdir(path, 0o700)
        try:
            yield path
        finally:
            with contextlib.suppress(FileNotFoundError):  # it has its name
                _remove_tree(path)

    def new_file(self, name: str) -> tuple[str, int]:
        """An empty file for an entry, one for each who asks: its path, and a descriptor that keeps it while it is open.

        Raises:
            OSError: it can't be made.
        """
        self.make()
        path = self._place_of_its_own(name)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _OPENED, 0o600)
        _lock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return path, descriptor

    def finish(self, partial: str, name: str) -> None:
        """Gives what was made its name: a file replaces the one of that name, a folder leaves one that is there."""
        try:
            os.rename(partial, self.place(name))
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):  # another process made the same folder
                raise

    def put(self, name: str, parts: Iterable[bytes]) -> None:
        """Writes a whole file, or none; it replaces the one of that name.

        Raises:
            OSError: it can't be written.
        """
        partial, descriptor = self.new_file(name)
        try:
            with open(descriptor, "wb") as file:
                file.writelines(parts)
                file.flush()
                self.finish(partial, name)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(partial)
            raise

    def nameless(self) -> int:
        """A descriptor of a new file whose room is free again when it is closed.

        Where the folder can't be written it lies among temporary files.
        """
        try:
            path, descriptor = self.new_file("nameless")
        except OSError as error:
            if not is_unwritable(error):
                raise
            import tempfile  # noqa: PLC0415 - where there is no cache folder

            descriptor, path = tempfile.mkstemp(_ENDING, "tpuprof-tui-")
        os.unlink(path)
        return descriptor

    def _place_of_its_own(self, name: str) -> str:
        return self.place(f"{name}.{os.urandom(8).hex()}{_ENDING}")

    # --- removing

    def make_room(self, size: int = 0) -> bool:
        """Removes what was used longest ago until an entry of `size` bytes fits beside the rest.

        What killed processes left leaves in any case.

        Returns:
            Whether it does: not one larger than the bound, nor where others in use leave too little.

        Raises:
            OSError: ENOSPC where the disk has too little room as well.
        """
        self.make()
        entries = [entry for entry in self.entries() if not (_PARTIAL.search(entry.name) and self.remove(entry.name))]
        total = sum(entry.size for entry in entries) + size
        free = _free_bytes(self.folder)
        for entry in sorted(entries, key=lambda entry: (entry.used, entry.size)) if size <= self.bound else ():
            if total <= self.bound and (not size or size + _SPARE_BYTES <= free):
                break
            if self.remove(entry.name):
                total -= entry.size
                free += entry.size
        if size > _free_bytes(self.folder):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return total <= self.bound

    def remove(self, name: str) -> bool:
        """Removes an entry unless it is in use, or another process may still be making it; whether it did."""
        path = self.place(name)
        with contextlib.suppress(OSError):
            status = os.lstat(path)
            if _PARTIAL.search(name) and abs(time.time() - status.st_mtime) < _PARTIAL_SECONDS:
                return False
            is_folder = stat.S_ISDIR(status.st_mode)
            descriptor = os.open(path, (os.O_RDONLY if is_folder else os.O_RDWR) | os.O_NONBLOCK | _OPENED)
            try:
                if _lock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB) is not False:
                    if is_folder:  # it loses its name at once: nobody opens a part of it
                        removed = self._place_of_its_own(name.removesuffix(_ENDING))
                        os.rename(path, removed)
                        _remove_tree(removed)
                    else:
                        os.unlink(path)
                    return True
            finally:
                os.close(descriptor)
        return False


def is_unwritable(error: OSError) -> bool:
    """Whether the system says that a cache folder is not there, and can't be made or written, or is no folder.

    What was to be kept there serves this process alone then.
    """
    return error.errno in _UNWRITABLE


def note_use(descriptor: int) -> None:
    """Notes that an entry is used now; a file's modification time stays."""
    status, now = os.fstat(descriptor), time.time_ns()
    with contextlib.suppress(OSError):
        os.utime(descriptor, ns=(now, now if stat.S_ISDIR(status.st_mode) else status.st_mtime_ns))


def _is_ours(status: os.stat_result, is_folder: bool) -> bool:
    """Whether what is open is this user's file, or folder; no pipe, no device."""
    is_right = stat.S_ISDIR(status.st_mode) if is_folder else stat.S_ISREG(status.st_mode)
    return is_right and status.st_uid == os.getuid()


def _lock(descriptor: int, how: int) -> bool | None:
    """Locks a file or folder: False where another has it, None on file systems without locks."""
    try:
        fcntl.flock(descriptor, how)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _UNLOCKABLE:
            return None
        raise
    return True


def _is_named(descriptor: int, path: str) -> bool:
    """Whether a path still leads to what is open."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.lstat(path), os.fstat(descriptor))
    return False


def _remove_tree(path: str) -> None:
    from shutil import rmtree  # noqa: PLC0415 - it brings three compression libraries along

    rmtree(path)


def _free_bytes(folder: str) -> int:
    """How much may still be written to a folder's disk."""
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize

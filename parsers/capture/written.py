"""The runs that captures wrote, and how to remove these again and nothing else."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterator
from typing import BinaryIO

from tpuprof.parsers.base.record import dataclass

_PIECE = 1 << 20
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""How a folder is opened: never through a link, and where the system can, without the right to list it."""


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file that a capture wrote, as it was then.

    Attributes:
        path: where it was written.
        inode: which file it is, whatever its name. The device's number is not known: it may be another one tomorrow.
        size_bytes, sha256: what is in it.
    """

    path: str
    inode: int
    size_bytes: int
    sha256: bytes

    @property
    def name(self) -> str:
        return os.path.basename(self.path)


@dataclass(frozen=True, slots=True)
class WrittenRun:
    """The folder of a run, by its name and inode, and the files that a capture wrote into it."""

    name: str
    inode: int
    files: tuple[WrittenFile, ...]

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)

    def remove(self, folder: str) -> None:
        """Removes the files that still are what the capture wrote, then the run's folder where nothing else is in it.

        A file that was replaced, changed or moved stays, and so does all that others put into the folder. No link is
        followed, whoever puts one where at which moment: each name is looked up in the open folder before it.

        Args:
            folder: the folder of all runs, without a link in its path.
        """
        with contextlib.suppress(OSError), _opened(folder) as above, _opened(self.name, above) as opened:
            if os.fstat(opened).st_ino == self.inode:
                for file in self.files:
                    with contextlib.suppress(OSError):
                        _remove(file, opened)
                if os.path.samestat(os.stat(self.name, dir_fd=above, follow_symlinks=False), os.fstat(opened)):
                    os.rmdir(self.name, dir_fd=above)  # refused where something is in it


@contextlib.contextmanager
def _opened(path: str, folder: int | None = None) -> Iterator[int]:
    """A descriptor of a folder, reached name by name from the folder given, or from the root."""
    names = [name for name in path.split(os.sep) if name]
    descriptor = os.open(os.sep, _FOLDER) if folder is None else os.dup(folder)
    try:
        for name in names:
            below = os.open(name, _FOLDER, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


def _remove(file: WrittenFile, folder: int) -> None:
    """Removes a file if it is the one that was written, and nobody has changed it or put another in its place.

    Raises:
        OSError: it is gone, or a link, or can't be removed.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with open(os.open(file.name, flags, dir_fd=folder), "rb") as opened:
        facts = os.fstat(opened.fileno())
        known = (facts.st_ino, facts.st_size) == (file.inode, file.size_bytes) and stat.S_ISREG(facts.st_mode)
        if known and _digest(opened) == file.sha256:
            now = os.stat(file.name, dir_fd=folder, follow_symlinks=False)  # reading took a while
            if (now.st_dev, now.st_ino, now.st_mtime_ns) == (facts.st_dev, facts.st_ino, facts.st_mtime_ns):
                os.unlink(file.name, dir_fd=folder)


def _digest(file: BinaryIO) -> bytes:
    digest = hashlib.sha256()
    while piece := file.read(_PIECE):
        digest.update(piece)
    return digest.digest()

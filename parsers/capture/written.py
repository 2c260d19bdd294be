"""The files that captures wrote, and how to remove these again and nothing else."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterable
from typing import BinaryIO

from tpuprof.parsers.base.record import dataclass

_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file that a capture wrote, as it was then.

    Attributes:
        path: where it was written.
        device, inode: which file it is, whatever its name.
        size_bytes, sha256: what is in it.
    """

    path: str
    device: int
    inode: int
    size_bytes: int
    sha256: bytes


def remove_written(files: Iterable[WrittenFile]) -> None:
    """Removes the files of a run that still are what the capture wrote, then their folder where nothing else is in it.

    A file that was replaced, changed or moved stays, and so does all that others put into the folder.
    """
    folders = set()
    for file in files:
        folder = os.path.dirname(file.path)
        if not os.path.islink(folder) and _is_as_written(file):
            with contextlib.suppress(OSError):
                os.unlink(file.path)
        folders.add(folder)
    for folder in folders:
        with contextlib.suppress(OSError):
            os.rmdir(folder)  # refused where something is in it


def _is_as_written(file: WrittenFile) -> bool:
    """Whether the file at the path is the one that was written, and nobody has changed it; False where it is gone."""
    try:
        with open(os.open(file.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as opened:
            facts = os.fstat(opened.fileno())
            known = (facts.st_dev, facts.st_ino, facts.st_size) == (file.device, file.inode, file.size_bytes)
            return known and stat.S_ISREG(facts.st_mode) and _digest(opened) == file.sha256
    except OSError:
        return False


def _digest(file: BinaryIO) -> bytes:
    digest = hashlib.sha256()
    while piece := file.read(_PIECE):
        digest.update(piece)
    return digest.digest()

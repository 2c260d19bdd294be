"""The copies of remote profiles: what they are called, and how many bytes of them are kept.

They lie in ``$XDG_CACHE_HOME/tpuprof-tui/remote`` by the rules of all caches (`parsers.base.cache`). A copy's name is
made of hashes: one of the address, without what logs in, and one of the original's size and version. Its modification
time says when it was last compared with the original.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re

from tpuprof.parsers.base.cache import CacheFolder, Entry, is_unwritable
from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.base.urls import split, without_login

BOUND_VARIABLE = "TPUPROF_CACHE_BYTES"
DEFAULT_BOUND = 20_000_000_000
_COPY_NAME = re.compile(r"[0-9a-f]{32}-[0-9a-f]{16}")


def cache_bound() -> int:
    """Bytes that all copies may take together.

    Raises:
        ProfileError: ``TPUPROF_CACHE_BYTES`` is not a number; exit code 2.
    """
    text = os.environ.get(BOUND_VARIABLE, "").strip()
    if not text:
        return DEFAULT_BOUND
    if not re.fullmatch(r"[0-9][0-9_]{0,30}", text):
        sentence = f"{BOUND_VARIABLE} is {printable(text[:40])}, which is not a number of bytes."
        raise ProfileError("usage", sentence, f"{BOUND_VARIABLE}={DEFAULT_BOUND} is the default", EXIT_USAGE)
    return int(text.replace("_", ""))


def url_key(url: str) -> str:
    """Hash of an address, without password; anything else may distinguish one file from another, the user too."""
    begin, path, query = split(url)
    login, at, _ = begin.partition("://")[2].rpartition("@")
    user = login.partition(":")[0] + at
    return _hash(f"{user}{without_login(begin)}{path}?{query}")[:32]


def version_key(size: int | None, version: str) -> str:
    """Hash of what distinguishes one version of a file from another."""
    return _hash(f"{size} {version}")[:16]


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


class Store(CacheFolder):
    """The copies, by the rules of all caches."""

    def __init__(self) -> None:
        super().__init__("remote", cache_bound())

    def copies(self, key: str = "") -> list[Entry]:
        """Whole copies, of one address or of all."""
        return [copy for copy in self.entries() if copy.name.startswith(key) and _COPY_NAME.fullmatch(copy.name)]

    def use(self, name: str, size: int | None = None, compared: bool = False) -> int | None:
        """Opens a copy and locks it against removal; None where it is not there, not of that size, or no file of ours.

        Args:
            compared: it was like its original just now.
        """
        with contextlib.suppress(OSError):
            descriptor = self.open(name)
            if size is None or os.fstat(descriptor).st_size == size:
                if compared:
                    _note_compared(descriptor)
                return descriptor
            os.close(descriptor)
            self.remove(name)  # it is damaged
        return None

    def begin(self, name: str, size: int) -> tuple[str, int]:
        """A new file for a copy of `size` bytes: the path that `keep` wants, and a descriptor.

        The path is empty where nothing is kept, as the copy is larger than the cache or that can't be written.

        Raises:
            OSError: ENOSPC where the disk has too little room.
        """
        try:
            if self.make_room(size):
                return self.new_file(name)
        except OSError as error:
            if not is_unwritable(error):
                raise
        return "", self.nameless()

    def keep(self, download: str, descriptor: int, name: str) -> None:
        """Gives a whole download its name, and removes older versions of it."""
        os.fsync(descriptor)
        self.finish(download, name)
        _note_compared(descriptor)
        for older in self.copies(name.partition("-")[0]):
            if older.name != name:
                self.remove(older.name)
        self.make_room()


def _note_compared(descriptor: int) -> None:
    with contextlib.suppress(OSError):
        os.utime(descriptor)

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
import time

from tpuprof.parsers.base.cache import CacheFolder, Entry
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
        try:
            descriptor = self.open(name)
        except FileNotFoundError:
            return None
        except OSError:
            self.remove(name)
            return None
        if size is not None and os.fstat(descriptor).st_size != size:
            os.close(descriptor)
            self.remove(name)
            return None
        if compared:
            _note_compared(descriptor)
        return descriptor

    def distrust(self, name: str) -> None:
        """Has a copy compared before its next use."""
        with contextlib.suppress(OSError):
            os.utime(self.place(name), (time.time(), 0), follow_symlinks=False)

    def keep(self, partial: str, descriptor: int, name: str) -> int:
        """Gives a whole file its name; returns a descriptor of the copy, locked against removal."""
        os.fsync(descriptor)
        self.finish(partial, descriptor, name)
        _note_compared(descriptor)
        return os.dup(descriptor)


def _note_compared(descriptor: int) -> None:
    with contextlib.suppress(OSError):
        os.utime(descriptor)

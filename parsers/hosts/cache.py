"""The second look: summaries of hosts' files, and pages made of them, in the user's cache folder.

An entry is good for files as they were (path, size, inode, times) and for the code that made it. What is damaged,
foreign or out of date is no entry; then the files are read as if there were none. Entries hold numbers, names and
texts of profiles, so that only the user may read them. Nothing is ever written beside a profile.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from struct import Struct
from typing import TYPE_CHECKING
from zlib import crc32

try:
    from _blake2 import blake2b
except ImportError:  # not in every Python
    from hashlib import blake2b  # loads OpenSSL first, which takes 2 ms

from tpuprof.parsers.base.cache import CacheFolder
from tpuprof.parsers.base.folders import status
from tpuprof.parsers.base.record import dataclass

if TYPE_CHECKING:
    from tpuprof.parsers.files.logdir import HostFile

BOUND = 1_000_000_000
"""Bytes that all entries may take together where nothing else is said, and those that one may have."""

LEAST_BYTES = 2_000_000
"""Files smaller than this are read in no time."""

SETTLED_SECONDS = 2.0
"""A file that changed less than this ago may change once more without a trace in its times."""

_MAGIC = b"tpuprof of hosts"
_HEAD = Struct(f"<{len(_MAGIC)}sIIQ")  # magic, checksum of the rest, bytes of the key, bytes of the content
_PARSERS = os.path.dirname(os.path.dirname(__file__))


@dataclass(frozen=True, slots=True)
class Slot:
    """Where something about files is kept.

    Attributes:
        files: the files; what: what is kept of them.
        name: the entry's file name. A new entry replaces the one before, whatever state of the files that was of.
        key: what an entry must say to be of the files as they were when this slot was made.
    """

    files: Sequence[HostFile]
    what: str
    name: str
    key: str


class HostCache:
    """What was read of hosts' files, by all processes of this user.

    Args:
        now: seconds since 1970.
        bound: bytes that all entries may take together; None for `BOUND`.
    """

    def __init__(self, now: Callable[[], float] = time.time, bound: int | None = None) -> None:
        self.kept = CacheFolder("hosts", BOUND if bound is None else bound)
        self._now = now
        self._code = ""
        self._texts: dict[str, bytes] = {}
        self._has_written = False

    def slot(self, files: Sequence[HostFile], what: str, given: object = None) -> Slot | None:
        """Where something about files is kept; None where one is remote or still being written, or all are small.

        None as well where the user has no home folder: nothing is kept below the current one.

        Args:
            given: what it was made with besides the files: something that `codec.encode` takes.
        """
        if not os.path.isabs(self.kept.folder):
            return None
        try:
            states = [status(file.path) for file in files]
        except OSError:
            return None
        if not all(self.is_settled(max(state.st_mtime, state.st_ctime)) for state in states):
            return None
        if sum(state.st_size for state in states) < LEAST_BYTES:
            return None
        what += "" if given is None else f" {_digest(given)}"
        times = [(state.st_size, state.st_ino, state.st_mtime_ns, state.st_ctime_ns) for state in states]
        place = f"{what} {[(file.label, os.path.realpath(file.path)) for file in files]}"
        return self._slot(files, what, place, f" {times}")

    def shelf(self, what: str) -> Slot | None:
        """Where something is kept that says itself which files it is of, as they were; None as for `slot`."""
        return self._slot((), what, what, "") if os.path.isabs(self.kept.folder) else None

    def _slot(self, files: Sequence[HostFile], what: str, text: str, times: str) -> Slot:
        place, self._code = _encoded(text), self._code or code_version()
        name = f"{crc32(place):08x}{crc32(place[::-1]):08x}"  # of what share it, one is lost
        return Slot(files, what, name, f"{place!r}{times} {self._code}")

    def is_settled(self, modified: float) -> bool:
        """Whether a file that changed then, in seconds since 1970, shows any further change in its times."""
        return modified <= self._now() - SETTLED_SECONDS

    def get(self, slot: Slot | None) -> object | None:
        """What is kept there; None where there is no good entry."""
        if slot is None:
            return None
        from tpuprof.parsers.hosts.codec import DAMAGED, decode  # noqa: PLC0415 - small files do without

        try:
            return decode(_content(self._read(slot.name), slot.key), self._text)
        except (OSError, *DAMAGED):
            return None

    def put(self, slot: Slot | None, value: object) -> None:
        """Keeps something, unless a file has changed since the slot was made; silent where that can't be done."""
        if slot is None or (slot.files and self.slot(slot.files, slot.what) != slot):
            return
        from tpuprof.parsers.hosts.codec import encode  # noqa: PLC0415

        with contextlib.suppress(OSError):
            self._write(slot.name, slot.key, encode(value, self._keep))
            self._has_written = True

    def trim(self) -> None:
        """Removes the entries that were used longest ago, where this process has written some and all are too many."""
        if not self._has_written:
            return
        self._has_written = False
        with contextlib.suppress(OSError):
            self.kept.make_room()

    # --- texts that hosts share

    def _keep(self, text: bytes) -> str:
        name = f"text-{_digest_of(text)}"
        try:
            self._text(name)
        except (OSError, ValueError):  # it is not there yet, or damaged
            self._write(name, name, text)
        return name

    def _text(self, name: str) -> bytes:
        if name not in self._texts:
            if not (name.startswith("text-") and name[5:].isalnum()):
                raise ValueError(name)
            self._texts[name] = bytes(_content(self._read(name), name))
        return self._texts[name]

    # --- files

    def _read(self, name: str) -> bytes:
        """An entry's bytes.

        Raises:
            OSError: it can't be read, or is not to be trusted.
        """
        with open(self.kept.open(name), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > BOUND:
                raise PermissionError(name)
            return file.read(size)

    def _write(self, name: str, key: str, data: bytes) -> None:
        said = _encoded(key)
        self.kept.put(name, (_head(said, memoryview(data)), said, data))


def _digest(value: object) -> str:
    """What distinguishes a value from any other."""
    from tpuprof.parsers.hosts.codec import encode  # noqa: PLC0415

    return _digest_of(encode(value, _digest_of))


def _digest_of(content: bytes) -> str:
    return blake2b(content, digest_size=32).hexdigest()


def code_version() -> str:
    """What distinguishes the code that makes summaries from any other version: sizes and times of the files of
    `parsers`.
    """
    facts: list[tuple[str, int, int, int]] = []
    folders = [_PARSERS]
    while folders:
        with contextlib.suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                if not entry.is_dir():
                    status = entry.stat()
                    facts.append((entry.name, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
                elif entry.name != "__pycache__":
                    folders.append(entry.path)
    return f"{len(facts)}-{crc32(_encoded(repr(sorted(facts)))):08x}"


def _head(key: bytes, data: memoryview) -> bytes:
    checksum = crc32(data, crc32(key, crc32(_HEAD.pack(_MAGIC, 0, len(key), len(data)))))
    return _HEAD.pack(_MAGIC, checksum, len(key), len(data))


def _content(entry: bytes, key: str) -> memoryview:
    """What an entry holds.

    Raises:
        ValueError: it is damaged, or of another key.
    """
    wanted = _encoded(key)
    data = memoryview(entry)[_HEAD.size + len(wanted) :]
    if entry[: _HEAD.size + len(wanted)] != _head(wanted, data) + wanted:
        raise ValueError(key)
    return data


def _encoded(key: str) -> bytes:
    return key.encode("utf-8", "surrogateescape")

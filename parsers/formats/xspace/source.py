"""Random access to the bytes of one profile file, without mapping it.

A file that its writer truncates while it is mapped kills the reader with SIGBUS, so bytes are copied with `pread`, a
window or a chunk at a time.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Protocol

from tpuprof.parsers.base.errors import ProfileError, unreadable
from tpuprof.parsers.base.folders import read_at, regular_file
from tpuprof.parsers.base.urls import printable_url, scheme_of

RIEGELI_MAGIC = b"\x83\xaf\x70\xd1\x0d\x88\x4a\x3f"
"""How a Riegeli/records file begins: the hash of the same block header always."""
XSPACE_BEGINS = (b"\x0a", b"\x12", b"\x1a", b"\x22")
"""How an XSpace begins: with one of its fields."""
_JSON = (b"{", b"[", b" ", b"\t", b"\r", b"\n")
"""What may follow the line feed with which a text in JSON may begin."""


class ByteSource(Protocol):
    """Bytes at offsets. `read` may be called from several threads at once."""

    @property
    def name(self) -> str: ...

    @property
    def size(self) -> int: ...

    @property
    def file_size(self) -> int:
        """Bytes of the file as it lies there, compressed or not."""

    @property
    def note(self) -> str:
        """A sentence about bytes that could not be read (a cut gzip stream), or empty."""

    @property
    def origin(self) -> str:
        """A sentence on what the bytes were made from where that is not a profile, or empty."""

    def read(self, offset: int, length: int) -> bytes:
        """The `length` bytes at `offset`; fewer only where the source ends."""

    def close(self) -> None: ...


class MemorySource:
    """Bytes that are in memory already."""

    def __init__(self, data: bytes | bytearray | memoryview, name: str = "memory", note: str = "") -> None:
        self._data = memoryview(data)
        self.name = name
        self.size = self.file_size = len(data)
        self.note = note
        self.origin = ""

    def read(self, offset: int, length: int) -> bytes:
        return bytes(self._data[max(offset, 0) : max(offset, 0) + max(length, 0)])

    def close(self) -> None: ...


class FileSource:
    """A regular file, read with `pread`; its size is the one at the time of opening."""

    def __init__(self, descriptor: int, name: str) -> None:
        self._descriptor = descriptor
        self.name = name
        status = os.fstat(descriptor)
        self.size = self.file_size = status.st_size
        self.identity = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        """Changes when the file does."""
        self.note = self.origin = ""

    def read(self, offset: int, length: int) -> bytes:
        """See `ByteSource.read`. Reads no more than the file holds, even where a damaged header claims more.

        Raises:
            ProfileError: `changed` where the file got shorter since it was opened: what was read before and what would
                follow don't belong together; `unreadable` where the disk or the network fails.
        """
        length = min(length, self.size - offset)
        if length <= 0:
            return b""
        try:
            data = read_at(self._descriptor, offset, length)
        except OSError as error:
            raise unreadable(self.name, error) from error
        if len(data) < length:
            sentence = f"{self.name} got shorter than {self.size:,} bytes while it was read."
            raise ProfileError("changed", sentence, "open it again when nothing writes to it")
        return data

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __del__(self) -> None:
        self.close()


def begins_like_xspace(source: ByteSource) -> bool:
    """Whether the first bytes are those of an XSpace, and of nothing that is read otherwise."""
    first = source.read(0, 2)
    return first[:1] in XSPACE_BEGINS and first[1:] not in _JSON


OnFetched = Callable[[int, int | None], None]
"""Called with the bytes of a remote file that are here, and with all that there are, or None where nobody says."""


def open_source(path: str, on_fetched: OnFetched | None = None) -> FileSource:
    """Opens a file as it lies on disk.

    It first fetches a URL into the cache of `parsers.files.remote.cache`, unless a copy is there.

    Args:
        on_fetched: called while it does so; may raise `parsers.base.errors.Cancelled`.

    Raises:
        ProfileError: `not_found`, `unreadable`, or `not_a_file` for what is no regular file; for a URL what
            `parsers.files.remote.cache.open_remote` raises.
    """
    if scheme_of(path) and not os.path.lexists(path):
        from tpuprof.parsers.files.remote.cache import open_remote  # noqa: PLC0415 - for URLs alone

        return _source(open_remote(path, on_fetched or (lambda _done, _total: None)), printable_url(path))
    with regular_file(path) as descriptor:
        return _source(os.dup(descriptor), path)


def _source(descriptor: int, name: str) -> FileSource:
    """The bytes behind a descriptor; the source closes it."""
    try:
        return FileSource(descriptor, name)
    except OSError as error:
        os.close(descriptor)
        raise unreadable(name, error) from error

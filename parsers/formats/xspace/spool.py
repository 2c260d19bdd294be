"""Room for the bytes of an inflated profile: in memory while they are few, then in a file without a name."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Sequence

from tpuprof.parsers.base.cache import CacheFolder
from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.base.folders import read_at, write_at
from tpuprof.parsers.base.text import printable

IN_MEMORY = 32 << 20
"""How many bytes stay in memory."""


class Spool:
    """Bytes that are appended first and read, by several threads, later."""

    def __init__(self, in_memory: int = IN_MEMORY) -> None:
        self.size = 0
        self._in_memory = in_memory
        self._bytes = bytearray()
        self._descriptor = -1

    def append(self, data: bytes | bytearray) -> tuple[int, int]:
        """Puts bytes behind those that are there; returns where they begin and end.

        Raises:
            ProfileError: `disk_full` or `cache`: the file can't be written.
        """
        if self._descriptor < 0 and self.size + len(data) <= self._in_memory:
            self._bytes += data
        else:
            try:
                self._write(data)
            except OSError as error:
                sentence = f"The inflated profile can't be kept in {printable(_kept().folder)}: {error.strerror}."
                raise ProfileError(
                    "disk_full", sentence, "free some room, or set XDG_CACHE_HOME to a folder on a larger disk"
                ) from error
        begin, self.size = self.size, self.size + len(data)
        return begin, self.size

    def _write(self, data: bytes | bytearray) -> None:
        if self._descriptor < 0:
            self._descriptor = _kept().nameless()
            write_at(self._descriptor, 0, self._bytes)
            self._bytes = bytearray()
        write_at(self._descriptor, self.size, data)

    def cut(self, size: int) -> None:
        """Forgets what lies behind the first `size` bytes."""
        self.size = size
        if self._descriptor < 0:
            del self._bytes[size:]
        else:
            os.ftruncate(self._descriptor, size)

    def read(self, offset: int, length: int) -> bytes:
        """Up to `length` bytes at `offset`; fewer where the bytes end."""
        length = min(length, self.size - offset)
        if length <= 0:
            return b""
        if self._descriptor < 0:
            return bytes(memoryview(self._bytes)[offset : offset + length])
        return read_at(self._descriptor, offset, length)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        self._bytes, self.size = bytearray(), 0

    def __del__(self) -> None:
        self.close()


def _kept() -> CacheFolder:
    """Where the files without names lie: none stays, so none needs a bound."""
    return CacheFolder("inflated", 0)


class SpoolSource:
    """Spans of a spool, one after the other, as the bytes of one profile.

    Args:
        spool: where they lie; it goes with the last source that reads it.
        spans: begin and end of each, none empty.
        name, note, origin: see `ByteSource`.

    Attributes:
        file_size: see `ByteSource`; whoever unpacks a file sets it.
    """

    def __init__(
        self, spool: Spool, spans: Sequence[tuple[int, int]], name: str, note: str = "", origin: str = ""
    ) -> None:
        self.name = name
        self.note = note
        self.origin = origin
        self._spool = spool
        self._places = [begin for begin, _ in spans]
        self._starts = [0]
        for begin, end in spans:
            self._starts.append(self._starts[-1] + end - begin)
        self.size = self.file_size = self._starts[-1]

    def read(self, offset: int, length: int) -> bytes:
        offset = max(offset, 0)
        end = min(offset + length, self.size)
        parts = []
        while offset < end:
            span = bisect_right(self._starts, offset) - 1
            stop = min(end, self._starts[span + 1])
            part = self._spool.read(self._places[span] + offset - self._starts[span], stop - offset)
            if not part:
                break
            parts.append(part)
            offset += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def shared(self) -> SpoolSource:
        other = SpoolSource(self._spool, (), self.name, self.note, self.origin)
        other._places, other._starts, other.size = self._places, self._starts, self.size
        other.file_size = self.file_size
        return other

    def instead_of(self, sentence: str) -> SpoolSource:
        """The same for another file, of which a sentence says why it can't be read."""
        other = self.shared()
        other.origin = f"{sentence.rstrip('.')}; the file beside it is read instead: {self.origin}"
        return other

    def close(self) -> None:
        self._spool = Spool()

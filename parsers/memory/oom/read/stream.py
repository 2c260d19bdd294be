"""A log as lines, of which only those near something of interest are looked at; any size, in constant memory.

The bytes are read in chunks, inflated and decoded where a log is compressed or UTF-16, and searched for a few literals.
A line longer than `LONGEST_LINE` comes in pieces.
"""

from __future__ import annotations

import codecs
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO

from tpuprof.parsers.base.errors import Cancelled

LONGEST_LINE = 1 << 20
_BEFORE = 1 << 16
_LINES_BEFORE = 20

NEEDLES = (
    b"RESOURCE_EXHAUSTED",
    b"ut of memory",
    b"Attempting to ",
    b"exceed",
    b"Largest program allocations",
    b"std::bad_alloc",
    b"MemoryError",
    b"CUDA_ERROR_OUT_OF_MEMORY",
)
"""One of these stands in, or at most a few lines behind, the first line of everything that is to be found."""


CHUNK = 1 << 20
"""Bytes read at once: few enough to stay in the processor's cache while every literal is searched."""

_GZIP = b"\x1f\x8b\x08"
_WITH_GZIP_HEAD = 16 + zlib.MAX_WBITS
_MARKS = (
    (codecs.BOM_UTF8, "", ""),
    (codecs.BOM_UTF32_LE, "utf-32-le", "UTF-32"),
    (codecs.BOM_UTF16_LE, "utf-16-le", "UTF-16"),
    (codecs.BOM_UTF16_BE, "utf-16-be", "UTF-16"),
)

_AT_ONCE = 1 << 14
"""Compressed bytes inflated at once: what a member's end leaves of them is copied, and members may be tiny."""

_ENOUGH = 64
"""Bytes that tell a text of two bytes a character from odd bytes at a log's beginning: it has some that are 0."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the log or, where it is very long, a piece of one.

    Attributes:
        content: without what ends it.
        number: of the line, from 1.
        continues: whether it is a further piece of the line before it.
        is_whole: whether the line ends with it; also False for a last line that nothing ends.
    """

    content: bytes
    number: int
    continues: bool
    is_whole: bool


class LogReader:
    """Walks over a log once.

    Attributes:
        most_kept: the most bytes that were held at once.
    """

    def __init__(
        self,
        stream: BinaryIO,
        on_progress: Callable[[int], None] | None = None,
        is_cancelled: Callable[[], bool] | None = None,
    ) -> None:
        self._source = Source(stream)
        self._on_progress = on_progress
        self._is_cancelled = is_cancelled
        self._data = b""
        self._at = 0  # where the next line, or piece of one, begins
        self._number = 1  # of the line at `_at`
        self._inside = False  # whether `_at` is inside of a line
        self._ended = False
        self._hits = dict.fromkeys(NEEDLES, -1)  # where each needle is next; -1 for not searched, len for nowhere
        self.most_kept = 0

    @property
    def bytes_read(self) -> int:
        """Bytes taken from the stream so far."""
        return self._source.bytes_taken

    @property
    def notes(self) -> tuple[str, ...]:
        """What is odd about the bytes, a sentence each."""
        return tuple(self._source.notes)

    @property
    def lines(self) -> int:
        """Lines so far."""
        return self._number - 1 + (self._inside or self._at < len(self._data))

    def seek(self) -> bool:
        """Goes on to the next needle, a few lines before it where these were not read yet; False at the end.

        Raises:
            Cancelled: the caller wants no more.
        """
        while True:
            hit = self._next_hit()
            if hit is not None:
                self._move(self._some_before(hit))
                return True
            self._move(self._some_before(len(self._data)))
            if not self._more():
                self._move(len(self._data))
                return False

    def line(self) -> Line | None:
        """The next line or piece; None at the end.

        Raises:
            Cancelled: the caller wants no more.
        """
        end = self._data.find(b"\n", self._at, self._at + LONGEST_LINE)
        while end < 0 and len(self._data) - self._at < LONGEST_LINE and self._more():
            end = self._data.find(b"\n", self._at, self._at + LONGEST_LINE)
        begin, number, continues = self._at, self._number, self._inside
        if end >= 0:
            self._move(end + 1)
            return Line(self._data[begin:end], number, continues, True)
        if begin == len(self._data):
            return None
        if len(self._data) - begin < LONGEST_LINE:  # the last line
            end = len(self._data)
        else:
            end = _cut(self._data, begin, begin + LONGEST_LINE)
        self._move(end)
        return Line(self._data[begin:end], number, continues, False)

    @property
    def at_end(self) -> bool:
        """Whether nothing follows."""
        return self._ended and self._at == len(self._data)

    def _next_hit(self) -> int | None:
        """Where the first needle from here on is in what is held."""
        data, hits = self._data, self._hits
        for needle, hit in hits.items():
            if hit < self._at:
                position = data.find(needle, self._at)
                hits[needle] = position if position >= 0 else len(data)
        first = min(hits.values())
        return first if first < len(data) else None

    def _some_before(self, position: int) -> int:
        """Where to begin so that the line at `position` and some before it are read, not before what was read."""
        floor = max(self._at, position - _BEFORE)
        begin = position
        for _ in range(_LINES_BEFORE + 1):
            line_end = self._data.rfind(b"\n", floor, begin)
            if line_end < 0:
                return floor
            begin = line_end
        return begin + 1

    def _move(self, to: int) -> None:
        if to > self._at:
            self._number += self._data.count(b"\n", self._at, to)
            self._inside = self._data[to - 1] != 10
            self._at = to

    def _more(self) -> bool:
        """Reads a chunk behind what is still needed; False at the end."""
        if self._ended:
            return False
        if self._is_cancelled is not None and self._is_cancelled():
            raise Cancelled
        chunk = self._source.read()
        if not chunk:
            self._ended = True
            return False
        self._data = self._data[self._at :] + chunk
        self._at = 0
        self._hits = dict.fromkeys(NEEDLES, -1)
        self.most_kept = max(self.most_kept, len(self._data))
        if self._on_progress is not None:
            self._on_progress(self.bytes_read)
        return True


def _cut(data: bytes, begin: int, end: int) -> int:
    """Where to cut a long line: before a line end that is written out, between words, or anywhere."""
    for mark in (b"\\n", b" "):
        position = data.rfind(mark, (begin + end) // 2, end)
        if position > 0:
            while data[position - 1 : position] == b"\\" and position > begin + 1:
                position -= 1
            return position
    return end


class Source:
    """Gives what a stream holds as UTF-8, a piece at a time.

    Attributes:
        bytes_taken: from the stream so far, as they are there.
        notes: what was done to the bytes, and what of them can't be read, a sentence each.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._inflated: _Inflated | None = None
        self._decode: Callable[[bytes, bool], bytes] | None = None
        self._begun = self._ended = False
        self.bytes_taken = 0
        self.notes: list[str] = []

    def read(self) -> bytes:
        """What comes next, at most about two chunks; nothing at the end.

        Raises:
            OSError: the stream can't be read.
        """
        if not self._begun:
            self._begun = True
            return self._first()
        while True:
            data = self._bytes()
            if self._decode is None:
                return data
            text = self._decode(data, not data)
            if text or not data:
                return text

    def _first(self) -> bytes:
        """The first bytes; finds out what they are."""
        data = self._taken()
        while data and len(data) < len(_GZIP) and _GZIP.startswith(data) and (more := self._taken()):
            data += more
        if data.startswith(_GZIP):
            self._inflated = _Inflated(data, self._taken)
            data = self._bytes()
        while data and len(data) < _ENOUGH and any(data[:2] == mark[: len(data[:2])] for mark, _, _ in _MARKS):
            more = self._bytes()
            if not more:
                break
            data += more
        for mark, encoding, name in _MARKS:
            if data.startswith(mark) and (not encoding or 0 in data[len(mark) : CHUNK]):
                data = data[len(mark) :]
                if encoding:
                    self.notes.append(f"The log is {name}, and is read as such.")
                    self._decode = _decoder(encoding)
                    return self._decode(data, False) or self.read()
                break
        return data or self.read()

    def _bytes(self) -> bytes:
        if self._inflated is None:
            return self._taken()
        data = self._inflated.read()
        if not data and self._inflated.problem:
            self.notes.append(f"The log's compressed data {self._inflated.problem}; what follows there is not read.")
            self._inflated.problem = ""
        return data

    def _taken(self) -> bytes:
        if self._ended:  # a terminal would be asked once more
            return b""
        data = self._stream.read(CHUNK) or b""
        self._ended = not data
        self.bytes_taken += len(data)
        return data


class _Inflated:
    """What a gzip stream holds: all its members, at most a chunk at a time however well it is compressed.

    Attributes:
        problem: why it ends before its end.
    """

    def __init__(self, begin: bytes, more: Callable[[], bytes]) -> None:
        self._chunk, self._at = begin, 0
        self._more = more
        self._rest = b""  # of what was given to be inflated
        self._member = zlib.decompressobj(_WITH_GZIP_HEAD)
        self._between = False  # whether a member has ended, and no other begun
        self._ended = False
        self.problem = ""

    def read(self) -> bytes:
        """What comes next; nothing at the end."""
        texts: list[bytes] = []
        size = 0
        while size < CHUNK // 2 and not self._ended:
            text = self._some(CHUNK - size)
            texts.append(text)
            size += len(text)
        return b"".join(texts)

    def _some(self, most: int) -> bytes:
        data = self._rest or self._compressed()
        if self._between:  # zeros may fill up a block
            data = data.lstrip(b"\0")
            if data:
                self._member = zlib.decompressobj(_WITH_GZIP_HEAD)
                self._between = False
        if not data:
            self._rest = b""
            if not self._chunk:
                self._ended = True
                self.problem = "" if self._between else "ends in the middle"
            return b""
        try:
            text = self._member.decompress(data, most)
        except zlib.error:
            self._ended = True
            self.problem = "is damaged"
            return b""
        self._rest = self._member.unconsumed_tail
        if self._member.eof:
            self._rest, self._between = self._member.unused_data, True
        return text

    def _compressed(self) -> bytes:
        if self._at >= len(self._chunk):
            self._chunk, self._at = self._more(), 0
        self._at += _AT_ONCE
        return self._chunk[self._at - _AT_ONCE : self._at]


def _decoder(encoding: str) -> Callable[[bytes, bool], bytes]:
    """Of pieces of a text, any of which may end inside of a character, to UTF-8."""
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    return lambda data, is_last: decoder.decode(data, is_last).encode("utf-8", "replace")

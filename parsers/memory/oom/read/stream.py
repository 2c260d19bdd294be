"""A log as lines, of which only those near something of interest are looked at; any size, in constant memory.

The bytes are read in chunks and searched for a few literals. A line longer than `LONGEST_LINE` comes in pieces.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO

from tpuprof.parsers.base.errors import Cancelled
from tpuprof.parsers.memory.oom.read.source import Source

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
                found = data.find(needle, self._at)
                hits[needle] = found if found >= 0 else len(data)
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

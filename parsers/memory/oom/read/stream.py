"""A log as lines, of which only those near something of interest are looked at; any size, in constant memory.

The bytes are read in chunks, inflated and decoded where a log is compressed or UTF-16, and searched for a few literals.
A line longer than `LONGEST_LINE` comes in pieces.
"""

from __future__ import annotations

import codecs
import csv
import json
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, pairwise
from typing import BinaryIO

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.files.inflate import lines_of
from tpuprof.parsers.memory.oom.read.forms import MESSAGES, NEEDLES

LONGEST_LINE = 1 << 20
_BEFORE, _LINES_BEFORE = 1 << 16, 20

CHUNK = 1 << 20  # bytes read at once: few enough to stay in the processor's cache while every literal is searched
_GZIP = b"\x1f\x8b\x08"
_WITH_GZIP_HEAD = 16 + zlib.MAX_WBITS
_MARKS = (
    (codecs.BOM_UTF8, "", ""),
    (codecs.BOM_UTF32_LE, "utf-32-le", "UTF-32"),
    (codecs.BOM_UTF16_LE, "utf-16-le", "UTF-16"),
    (codecs.BOM_UTF16_BE, "utf-16-be", "UTF-16"),
)

# compressed bytes inflated at once: what a member's end leaves of them is copied, and members may be tiny
_AT_ONCE = 1 << 14
# bytes that distinguish a text of two bytes a character from odd bytes at a log's beginning: it has some that are 0
_ENOUGH = 64


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of the log or, where it is very long, a piece of one.

    Attributes:
        content, number: without what ends it; of the line, from 1.
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
        bytes_read: taken from the stream so far, as they are there.
        notes: what is odd about the bytes, a sentence each.
        numbers: of a log that is read from its end, where the file has each line so far; else empty.
        most_kept: the most bytes that were held at once.
    """

    def __init__(self, stream: BinaryIO, on_progress: Callable[[int], None] | None = None) -> None:
        self._stream = stream
        self.bytes_read = 0
        self.notes: list[str] = []
        self.numbers: list[int] = []
        texts = _records_of_table(_decoded(_inflated(self._chunks(), self.notes), self.notes))
        self._texts = filter(None, oldest_first(texts, self.notes, self.numbers))
        self._on_progress = on_progress
        self._data = b""
        self._at = 0  # where the next line, or piece of one, begins
        self._number = 1  # of the line at `_at`
        self._inside = False  # whether `_at` is inside of a line
        self._ended = False
        self._hits = dict.fromkeys(NEEDLES, -1)  # where each needle is next; -1 for not searched, len for nowhere
        self.most_kept = 0

    @property
    def lines(self) -> int:
        return self._number - 1 + (self._inside or self._at < len(self._data))

    @property
    def at_end(self) -> bool:
        return self._ended and self._at == len(self._data)

    def seek(self) -> bool:
        """Goes on to the next needle, a few lines before it where these were not read yet; False at the end."""
        while True:
            hit = self._next_hit()
            if hit is not None:
                self._move(self._some_before(hit))
                return True
            self._move(self._some_before(len(self._data)))
            if not self._more():
                self._move(len(self._data))
                return False

    def line(self) -> LogLine | None:
        """The next line or piece; None at the end."""
        end = self._data.find(b"\n", self._at, self._at + LONGEST_LINE)
        while end < 0 and len(self._data) - self._at < LONGEST_LINE and self._more():
            end = self._data.find(b"\n", self._at, self._at + LONGEST_LINE)
        begin, number, continues = self._at, self._number, self._inside
        if begin == len(self._data):
            return None
        is_whole = end >= 0
        if not is_whole:
            is_last = len(self._data) - begin < LONGEST_LINE
            end = len(self._data) if is_last else _cut(self._data, begin, begin + LONGEST_LINE)
        self._move(end + is_whole)
        return LogLine(self._data[begin:end], number, continues, is_whole)

    def skip(self, text: bytes) -> int:
        """Goes on behind all repetitions of a text that stand here, as far as they are held; how many there were."""
        times = 0
        while self._data.startswith(text, self._at):
            self._move(self._at + len(text))
            times += 1
        return times

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
        if self._ended:
            return False
        chunk = next(self._texts, b"")
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

    def _chunks(self) -> Iterator[bytes]:
        while chunk := self._stream.read(CHUNK):
            self.bytes_read += len(chunk)
            yield chunk


def _cut(data: bytes, begin: int, end: int) -> int:
    """Where to cut a long line: before a line end that is written out, between words, or anywhere."""
    for mark in (b"\\n", b" "):
        position = data.rfind(mark, (begin + end) // 2, end)
        if position > 0:
            while data[position - 1 : position] == b"\\" and position > begin + 1:
                position -= 1
            return position
    return end


def _inflated(chunks: Iterator[bytes], notes: list[str]) -> Iterator[bytes]:
    """What a gzip stream holds, at most a chunk at a time however well it is compressed; other bytes as they are."""
    begin = next(chunks, b"")
    while begin and len(begin) < len(_GZIP) and _GZIP.startswith(begin) and (more := next(chunks, b"")):
        begin += more
    if not begin.startswith(_GZIP):
        yield from chain((begin,), chunks)
        return
    texts: list[bytes] = []
    size = 0
    try:
        for text in _members(chain((begin,), chunks)):
            texts.append(text)
            size += len(text)
            if size >= CHUNK // 2:
                yield b"".join(texts)
                texts, size = [], 0
        problem = ""
    except (EOFError, zlib.error) as error:
        problem = "ends in the middle" if isinstance(error, EOFError) else "is damaged"
    yield b"".join(texts)
    if problem:
        notes.append(f"The log's compressed data {problem}; the rest is not read.")


def _members(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """What the members of a gzip stream hold, half a chunk at a time at most.

    Raises:
        EOFError: it ends inside of one.
        zlib.error: it is damaged.
    """
    member, is_between = zlib.decompressobj(_WITH_GZIP_HEAD), False
    for chunk in chunks:
        for begin in range(0, len(chunk), _AT_ONCE):
            data = chunk[begin : begin + _AT_ONCE]
            while data:
                if is_between:
                    member, data = zlib.decompressobj(_WITH_GZIP_HEAD), data.lstrip(b"\0")  # zeros may fill up a block
                text = member.decompress(data, CHUNK // 2)
                is_between = member.eof or (is_between and not data)
                data = member.unused_data if member.eof else member.unconsumed_tail
                yield text
    if not is_between:
        raise EOFError


def _decoded(pieces: Iterator[bytes], notes: list[str]) -> Iterator[bytes]:
    """A text in UTF-8, whatever a mark at its beginning says that it is in."""
    begin = next(pieces, b"")
    while len(begin) < _ENOUGH and any(begin[:2] == mark[: len(begin[:2])] for mark, _, _ in _MARKS):
        more = next(pieces, b"")
        if not more:
            break
        begin += more
    for mark, encoding, name in _MARKS:
        if begin.startswith(mark) and (not encoding or 0 in begin[len(mark) : CHUNK]):
            pieces = chain((begin[len(mark) :],), pieces)
            if encoding:
                notes.append(f"The log is {name}, and is read as such.")
                decoded = codecs.iterdecode(pieces, encoding, "replace")
                pieces = (text.encode("utf-8", "replace") for text in decoded)
            yield from pieces
            return
    yield from chain((begin,), pieces)


# --- tables

_COLUMN = re.compile(r"[A-Za-z_@][\w .:/@-]{0,99}")


def _records_of_table(texts: Iterator[bytes]) -> Iterator[bytes]:
    """The rows of a table (CSV) with a column of messages, each as a record in JSON; another text as it is.

    A row over several lines is one line and empty ones behind it, so that each row stays where it is.
    """
    begin = b""
    while b"\n" not in begin and len(begin) < _LOOKED_AT and (more := next(texts, b"")):
        begin += more
    names = next(csv.reader(begin[:_LOOKED_AT].decode("utf-8", "replace").splitlines()[:1]), [])
    has_messages = any(name.lower().rpartition(".")[2] in MESSAGES for name in names)
    if len(names) < 2 or not has_messages or not all(map(_COLUMN.fullmatch, names)):
        yield from chain((begin,), texts)
        return
    rows, number = csv.reader(line.replace("\r", "") for line in lines_of(chain((begin,), texts))), 0
    while True:
        try:
            row = next(rows, None)
        except csv.Error:  # a cell is longer than the reader takes
            row = []
        if row is None:
            return
        yield json.dumps(dict(zip(names, row, strict=False))).encode() + b"\n" * (rows.line_num - number)
        number = rows.line_num


# --- logs whose newest records stand first

MOST_BYTES = 1 << 26
"""A log of more bytes is read as it is."""

_LOOKED_AT = 1 << 16
_LEAST_PAIRS, _MOSTLY = 3, 4
_TIME = re.compile(rb"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?")
_BEGINS = re.compile(rb"([ \t]*)(?:\{|---)[ \t]*\r?$")


def oldest_first(texts: Iterator[bytes], notes: list[str], numbers: list[int]) -> Iterator[bytes]:
    """The text in order of time; as it is where its times do not fall.

    Args:
        notes: receives a sentence on a log that is turned round, or is too large for that.
        numbers: receives the line of the file, from 1, of each line of a log that is turned round.
    """
    begin = b""
    while len(begin) < _LOOKED_AT and (more := next(texts, b"")):
        begin += more
    lines = begin[:_LOOKED_AT].splitlines(keepends=True)
    if not _falls(_records(lines), lines):
        yield from chain((begin,), texts)
        return
    pieces, size = [begin], len(begin)
    for piece in texts:
        pieces.append(piece)
        size += len(piece)
        if size > MOST_BYTES:
            notes.append("The log has its newest lines first, and is too large to be read from its end.")
            yield from chain(pieces, texts)
            return
    notes.append("The log has its newest lines first: it is read from its end.")
    lines = b"".join(pieces).splitlines(keepends=True)
    for first, end in reversed([*pairwise([*_records(lines), len(lines)])]):
        numbers += range(first + 1, end + 1)
        text = b"".join(lines[first:end])
        yield text if text.endswith(b"\n") else text + b"\n"


def _records(lines: Sequence[bytes]) -> list[int]:
    """The lines with which records begin; what stands before the first one is one too."""
    found = [(at, match[1]) for at, line in enumerate(lines) if (match := _BEGINS.match(line)) is not None]
    if len(found) > 1:
        begins = [at for at, indent in found if indent == found[0][1]]
    else:
        begins = [at for at, line in enumerate(lines) if _TIME.search(line)]
    return begins if begins[:1] == [0] else [0, *begins]


def _falls(begins: Sequence[int], lines: Sequence[bytes]) -> bool:
    """Whether most records are older than the one before them."""
    found = (_TIME.search(b"".join(lines[first:end])) for first, end in pairwise([*begins, len(lines)]))
    times = [each[0].replace(b" ", b"T") for each in found if each is not None]
    falls = sum(first > second for first, second in pairwise(times))
    rises = sum(first < second for first, second in pairwise(times))
    return falls >= _LEAST_PAIRS and falls >= _MOSTLY * rises

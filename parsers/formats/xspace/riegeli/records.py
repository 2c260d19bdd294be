"""The records of a Riegeli/records file, inflated into a spool."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from tpuprof.parsers.base.budget import Budget, TooLarge
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.xspace.riegeli.blocks import Chunk, Losses, chunks
from tpuprof.parsers.formats.xspace.riegeli.codecs import NONE, UNREAD, Foreign, Malformed, inflate
from tpuprof.parsers.formats.xspace.source import ByteSource
from tpuprof.parsers.formats.xspace.spool import Spool

_RECORD = 250  # bytes that a record's size and span take, about
_MOST_RECORDS = 1 << 20  # in one chunk; a profile has one
_MOST_SIZE_BYTES = 10  # of a varint


def spool_records(source: ByteSource, spool: Spool, budget: Budget | None = None) -> tuple[list[tuple[int, int]], str]:
    """Inflates all records that are intact, as far as `parsers.base.budget` allows.

    Args:
        source: the file.
        spool: empty; where the records go.
        budget: of the file; None for one of its own.

    Returns:
        Begin and end of each record in the spool, and a sentence on what was left out (empty where nothing was).

    Raises:
        ProfileError: what `Spool.append` raises.
    """
    losses = Losses()
    spans: list[tuple[int, int]] = []
    budget = budget or Budget(source.size, source.name)
    for chunk in chunks(source, losses):
        begin = spool.size
        try:
            sizes = _simple(chunk, spool, budget.part(chunk.end - chunk.begin, source.size))
        except Foreign as error:
            losses.chunks[f"compressed with {error}, as no profiler writes them,"] += 1
        except Malformed:
            losses.add(chunk.end - chunk.begin)
        except TooLarge:
            losses.chunks["too large when inflated"] += 1
        else:
            for size in sizes:
                spans.append((begin, begin + size))
                begin += size
        spool.cut(begin)
    return spans, losses.note()


def _simple(chunk: Chunk, spool: Spool, budget: Budget) -> list[int]:
    """Appends the records of a simple chunk; returns their sizes."""
    if not chunk.is_intact():
        raise Malformed("the data is not what was written")
    code, length, at = _head_of(chunk)
    if code in UNREAD:
        raise Foreign(UNREAD[code])
    most = _MOST_SIZE_BYTES * min(chunk.records, _MOST_RECORDS)
    if chunk.records > _MOST_RECORDS:
        raise Malformed("more records than a profile can have")
    budget.takes(chunk.records, _RECORD, steps=chunk.records, inflated=chunk.decoded_size)
    _, inflated = _sized(code, chunk.pieces(at, length), length, most)
    reader = _Reader(b"".join(inflated))
    sizes = reader.varints(chunk.records)
    at += length
    size, values = _sized(code, chunk.pieces(at, chunk.size - at), chunk.size - at, chunk.decoded_size)
    if reader.at < len(reader.data) or sum(sizes) != chunk.decoded_size or size != chunk.decoded_size:
        raise Malformed("records are not as announced")
    for piece in values:
        spool.append(piece)
    return sizes


def _head_of(chunk: Chunk) -> tuple[int, int, int]:
    """How the data of a chunk begins: compression, length of its first block, and where that lies."""
    head = _Reader(chunk.read(0, 1 + _MOST_SIZE_BYTES))
    code, length = head.byte(), head.varint()
    if length > chunk.size - head.at:
        raise Malformed("a block is longer than its chunk")
    return code, length, head.at


def _sized(code: int, pieces: Iterator[bytes], length: int, most: int) -> tuple[int, Iterator[bytes]]:
    """A compressed block: how many bytes it stands for, and these bytes.

    Args:
        code: the compression.
        pieces: the block's bytes.
        length: how many there are of these.
        most: how many it may stand for.

    Raises:
        Malformed: it stands for more, or does not even say for how many.
    """
    if code == NONE:
        size, rest = length, pieces
    else:
        reader = _Reader(next(pieces, b""))
        size = reader.varint()
        rest = chain((reader.data[reader.at :],), pieces)
    if size > most:
        raise Malformed("a block stands for more bytes than it can")
    return size, inflate(code, rest, size)


@dataclass(slots=True)
class _Reader:
    """Bytes that are read from the front."""

    data: bytes
    at: int = 0

    def varint(self) -> int:
        value = 0
        for shift in range(0, 7 * _MOST_SIZE_BYTES, 7):
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise Malformed("a number is too large")

    def varints(self, count: int) -> list[int]:
        """Reads `count` varints; each takes at least one byte."""
        if count > len(self.data) - self.at:
            raise Malformed("numbers are missing")
        return [self.varint() for _ in range(count)]

    def byte(self) -> int:
        if self.at == len(self.data):
            raise Malformed("bytes are missing")
        self.at += 1
        return self.data[self.at - 1]

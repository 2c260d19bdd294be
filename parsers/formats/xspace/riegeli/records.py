"""The records of a Riegeli/records file, inflated into a spool."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from tpuprof.parsers.base.budget import Budget, TooLarge
from tpuprof.parsers.formats.xspace.riegeli.blocks import Chunk, Losses, chunks
from tpuprof.parsers.formats.xspace.riegeli.codecs import NONE, UNREAD, Foreign, Malformed, inflate
from tpuprof.parsers.formats.xspace.source import ByteSource
from tpuprof.parsers.formats.xspace.spool import Spool
from tpuprof.parsers.formats.xspace.walk import varint

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
    numbers, end, sizes = b"".join(inflated), 0, list[int]()
    while len(sizes) < chunk.records:
        size, end = _varint(numbers, end)
        sizes.append(size)
    at += length
    size, values = _sized(code, chunk.pieces(at, chunk.size - at), chunk.size - at, chunk.decoded_size)
    if end < len(numbers) or sum(sizes) != chunk.decoded_size or size != chunk.decoded_size:
        raise Malformed("records are not as announced")
    for piece in values:
        spool.append(piece)
    return sizes


def _head_of(chunk: Chunk) -> tuple[int, int, int]:
    """How the data of a chunk begins: compression, length of its first block, and where that lies."""
    head = chunk.read(0, 1 + _MOST_SIZE_BYTES)
    length, at = _varint(head, 1)
    if length > chunk.size - at:
        raise Malformed("a block is longer than its chunk")
    return head[0], length, at


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
        first = next(pieces, b"")
        size, at = _varint(first, 0)
        rest = chain((first[at:],), pieces)
    if size > most:
        raise Malformed("a block stands for more bytes than it can")
    return size, inflate(code, rest, size)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The number that begins at a place, and where it ends."""
    end = next((end for end, byte in enumerate(data[at : at + _MOST_SIZE_BYTES], at + 1) if byte < 0x80), None)
    if end is None:
        raise Malformed("a number is cut or too large")
    return varint(data[at:end], signed=False), end

"""The records of a Riegeli/records file, inflated into a spool."""

from __future__ import annotations

from collections.abc import Iterator

from tpuprof.parsers.base.budget import TOO_LARGE, Budget, inflated_room
from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.formats.xspace.riegeli.blocks import SIMPLE, Chunk, Losses, chunks
from tpuprof.parsers.formats.xspace.riegeli.codecs import Malformed, MissingCodec
from tpuprof.parsers.formats.xspace.riegeli.transposed import Reader, head_of, sized, transposed_records
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
        ProfileError: `codec_missing`, or what `Spool.append` raises.
    """
    losses = Losses()
    spans: list[tuple[int, int]] = []
    room, budget = inflated_room(source.size), budget or Budget(source.size, source.name)
    for chunk in chunks(source, losses):
        begin = spool.size
        if chunk.decoded_size > room - begin:
            losses.is_too_much = True
            break
        try:
            if not chunk.is_intact():
                raise Malformed("the data is not what was written")
            sizes = _simple(chunk, spool, budget) if chunk.kind == SIMPLE else _transposed(chunk, spool, budget)
        except Malformed:
            spool.cut(begin)
            losses.add(chunk.end - chunk.begin)
            continue
        except ProfileError as error:
            if error.code != TOO_LARGE:
                raise
            spool.cut(begin)
            losses.is_too_much = True
            break
        except MissingCodec as error:
            sentence = f"{source.name} is compressed with {error.codec}, and no package that reads it is installed."
            raise ProfileError("codec_missing", sentence, f"pip install '{error.package}'") from error
        for size in sizes:
            spans.append((begin, begin + size))
            begin += size
    return spans, losses.note()


def _simple(chunk: Chunk, spool: Spool, budget: Budget) -> list[int]:
    """Appends the records of a simple chunk; returns their sizes."""
    code, length, at = head_of(chunk)
    most = _MOST_SIZE_BYTES * min(chunk.records, _MOST_RECORDS)
    if chunk.records > _MOST_RECORDS:
        raise Malformed("more records than a profile can have")
    budget.takes(chunk.records, _RECORD, steps=chunk.records)
    _, inflated = sized(code, chunk.pieces(at, length), length, most)
    reader = Reader(b"".join(inflated))
    sizes = reader.varints(chunk.records)
    at += length
    size, values = sized(code, chunk.pieces(at, chunk.size - at), chunk.size - at, chunk.decoded_size)
    if not reader.is_at_end or sum(sizes) != chunk.decoded_size or size != chunk.decoded_size:
        raise Malformed("records are not as announced")
    _append(spool, values)
    return sizes


def _append(spool: Spool, pieces: Iterator[bytes]) -> None:
    for piece in pieces:
        spool.append(piece)


def _transposed(chunk: Chunk, spool: Spool, budget: Budget) -> list[int]:
    """Appends the records of a transposed chunk; returns their sizes."""
    if chunk.records > _MOST_RECORDS:
        raise Malformed("more records than a profile can have")
    budget.takes(chunk.records, _RECORD, steps=chunk.records)
    records, sizes = transposed_records(chunk, budget)
    spool.append(records)
    return sizes

"""Inflates the compressed parts of Riegeli chunks, in steps, and never past the size that was announced.

Brotli is what the profiler writes. The format has two other compressions, which are named and not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import brotli

STEP = 1 << 20
"""Bytes to read, and to inflate, at a time; Brotli gives up to twice as many at once."""

NONE, BROTLI = 0, ord("b")
UNREAD = {ord("z"): "Zstd", ord("s"): "Snappy"}
"""Names of the compressions that no profiler writes, by their byte in the file."""


class Malformed(ValueError):
    """Bytes that do not follow the format."""


class Foreign(Malformed):
    """Bytes in a compression that no profiler writes; its name."""


def inflate(code: int, pieces: Iterable[bytes], size: int) -> Iterator[bytes]:
    """Yields the bytes behind compressed ones.

    Args:
        code: the compression's byte in the file.
        pieces: the compressed bytes.
        size: how many bytes they stand for.

    Raises:
        Malformed: another compression, damaged bytes, or more or fewer bytes than `size`.
    """
    if code not in (NONE, BROTLI):
        raise Malformed(f"compression {code} is unknown")
    done = 0
    for piece in _brotli(pieces) if code == BROTLI else pieces:
        done += len(piece)
        if done > size:
            break
        yield piece
    if done != size:
        raise Malformed("the inflated bytes are not as many as announced")


def _brotli(pieces: Iterable[bytes]) -> Iterator[bytes]:
    stream = brotli.Decompressor()
    try:
        for piece in pieces:
            out, more = stream.process(piece, STEP), True
            while more:
                yield out
                more = bool(out) or not stream.can_accept_more_data()
                out = stream.process(b"", STEP) if more and not stream.is_finished() else b""
    except brotli.error as error:
        raise Malformed("damaged Brotli data") from error
    if not stream.is_finished():
        raise Malformed("cut Brotli data")

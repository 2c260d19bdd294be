"""Inflates gzip in steps, up to a bound: a few kilobytes can stand for gigabytes."""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Literal

GZIP_MAGIC = b"\x1f\x8b"
_FIRST = b"\x1f"
"""How a member begins."""

Stop = Literal["cut", "damaged", "too_large"]
"""Why a stream is not inflated to its end: it ends early, it is no gzip from there on, or it passes the bound."""


class Inflation(Exception):
    """A stream that is not inflated to its end.

    Args:
        stop: why.
        given: bytes that were inflated before.
    """

    def __init__(self, stop: Stop, given: int) -> None:
        super().__init__(f"{stop} after {given:,} bytes")
        self.stop = stop
        self.given = given


def inflated(chunks: Iterable[bytes], most: int, step: int = 1 << 20) -> Iterator[bytes]:
    """Yields what gzip stands for, member after member, at most `step` bytes at a time.

    Nothing is inflated before it is asked for, so a caller may look at the first bytes and stop.

    Args:
        chunks: the compressed bytes, in order.
        most: bytes to yield altogether.
        step: of the first piece too.

    Raises:
        Inflation: the stream ends early, is damaged, or grows past `most`; what came before was yielded.
    """
    inflater, given, is_begun = zlib.decompressobj(wbits=31), 0, False
    for chunk in chunks:
        data = chunk
        while data:
            if inflater.eof:  # what follows a member is another one, or padding, which is left alone
                if not data.startswith(_FIRST):
                    return
                inflater = zlib.decompressobj(wbits=31)
            is_begun = True
            try:
                piece = inflater.decompress(data, step)
            except zlib.error as error:
                raise Inflation("damaged", given) from error
            if given + len(piece) > most:
                yield piece[: most - given]
                raise Inflation("too_large", most)
            given += len(piece)
            if piece:
                yield piece
            data = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
    if is_begun and not inflater.eof:
        raise Inflation("cut", given)


def content(descriptor: int, most: int, step: int) -> Iterator[bytes]:
    """The content of a file in pieces, inflated where it begins like gzip.

    Raises:
        Inflation: as `inflated`; `too_large` for a file that is not compressed as well.
    """
    chunks = _chunks(descriptor, step)
    first = next(chunks, b"")
    if first.startswith(GZIP_MAGIC):
        yield from inflated(chain([first], chunks), most, step)
        return
    given = 0
    for chunk in chain([first], chunks):
        given += len(chunk)
        if given > most:
            yield chunk[: most - given]
            raise Inflation("too_large", most)
        yield chunk


def lines_of(pieces: Iterable[bytes], longest: int = sys.maxsize) -> Iterator[str]:
    """The lines of a text in pieces, each with its end; those of more than `longest` bytes in pieces too."""
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        yield from (line.decode("utf-8", "replace") + "\n" for line in lines)
        while len(rest) > longest:
            yield rest[:longest].decode("utf-8", "replace")
            rest = rest[longest:]
    if rest:
        yield rest.decode("utf-8", "replace")


def _chunks(descriptor: int, step: int) -> Iterator[bytes]:
    offset = 0
    while chunk := os.pread(descriptor, step, offset):
        offset += len(chunk)
        yield chunk

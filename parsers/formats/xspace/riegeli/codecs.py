"""Inflates the compressed parts of Riegeli chunks, in steps, and never past the size that was announced.

Brotli is what the profiler writes and comes with the program. Packages for the others are an extra, `riegeli`.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

STEP = 1 << 20
"""Bytes to read, and to inflate, at a time; Brotli gives up to twice as many at once."""


class Malformed(ValueError):
    """Bytes that do not follow the format."""


class MissingCodec(Exception):
    """No package here reads a compression.

    Args:
        codec: its name, such as ``Zstd``.
        package: the one that would.
    """

    def __init__(self, codec: str, package: str) -> None:
        super().__init__(f"{codec} needs {package}")
        self.codec = codec
        self.package = package


class _BrotliStream(Protocol):
    def process(self, data: bytes, output_buffer_limit: int) -> bytes: ...

    def can_accept_more_data(self) -> bool: ...

    def is_finished(self) -> bool: ...


class _ZstdStream(Protocol):
    eof: bool
    needs_input: bool

    def decompress(self, data: bytes, max_length: int) -> bytes: ...


def inflate(code: int, pieces: Iterable[bytes], size: int) -> Iterator[bytes]:
    """Yields the bytes behind compressed ones.

    Args:
        code: the compression's byte in the file; 0 for none.
        pieces: the compressed bytes.
        size: how many bytes they stand for.

    Raises:
        Malformed: another compression, damaged bytes, or more or fewer bytes than `size`.
        MissingCodec: the package for it is not installed.
    """
    codec = _CODECS.get(code)
    if codec is None:
        raise Malformed(f"compression {code} is unknown")
    done = 0
    for piece in codec(pieces, size):
        done += len(piece)
        if done > size:
            break
        yield piece
    if done != size:
        raise Malformed("the inflated bytes are not as many as announced")


def _none(pieces: Iterable[bytes], _size: int) -> Iterator[bytes]:
    return iter(pieces)


def _brotli(pieces: Iterable[bytes], _size: int) -> Iterator[bytes]:
    brotli = _package("Brotli", "brotli", "brotli>=1.2")
    stream: _BrotliStream = brotli.Decompressor()
    if not hasattr(stream, "can_accept_more_data"):  # before 1.2 a few bytes could grow without a bound
        raise MissingCodec("Brotli", "brotli>=1.2")
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


def _zstd(pieces: Iterable[bytes], _size: int) -> Iterator[bytes]:
    name = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    zstd = _package("Zstd", name, "backports.zstd")
    stream: _ZstdStream = zstd.ZstdDecompressor()
    try:
        for piece in pieces:
            yield stream.decompress(piece, STEP)
            while not stream.eof and not stream.needs_input:
                yield stream.decompress(b"", STEP)
    except (zstd.ZstdError, EOFError) as error:
        raise Malformed("damaged Zstd data") from error
    if not stream.eof:
        raise Malformed("cut Zstd data")


def _snappy(pieces: Iterable[bytes], size: int) -> Iterator[bytes]:
    """All at once: the format has no steps. It says its size itself, and must not say another."""
    cramjam = _package("Snappy", "cramjam", "cramjam")
    data = b"".join(pieces)
    try:
        if cramjam.snappy.decompress_raw_len(data) != size:
            raise Malformed("Snappy data of another size than announced")
        yield bytes(cramjam.snappy.decompress_raw(data))
    except cramjam.DecompressionError as error:
        raise Malformed("damaged Snappy data") from error


def _package(codec: str, name: str, wanted: str) -> Any:  # noqa: ANN401 - such modules have no types, or are not there
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingCodec(codec, wanted) from error


_CODECS: dict[int, Callable[[Iterable[bytes], int], Iterator[bytes]]] = {
    0: _none,
    ord("b"): _brotli,
    ord("z"): _zstd,
    ord("s"): _snappy,
}

"""A log's bytes as UTF-8, whether they are compressed or UTF-16; a piece at a time, in bounded memory."""

from __future__ import annotations

import codecs
import zlib
from collections.abc import Callable
from typing import BinaryIO

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


class Source:
    """Gives what a stream holds.

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
        while data and len(data) < len(_GZIP) and _GZIP.startswith(data):
            more = self._taken()
            if not more:
                break
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
            if self._at_end:
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

    @property
    def _at_end(self) -> bool:
        return not self._chunk


def _decoder(encoding: str) -> Callable[[bytes, bool], bytes]:
    """Of pieces of a text, any of which may end inside of a character, to UTF-8."""
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    return lambda data, is_last: decoder.decode(data, is_last).encode("utf-8", "replace")

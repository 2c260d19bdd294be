"""Fields of many messages of one kind at once, as columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.xspace.metadata import split_all
from tpuprof.parsers.formats.xspace.walk import LEN, VARINT

Spans = tuple[Int64s, Int64s]


class Damaged(ValueError):
    """The bytes are not a message of a schedule; the text says what is wrong, as the end of a sentence."""


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Fields of messages that lie one after another in `data`.

    Attributes:
        data: the bytes.
        number, wire: field number and wire type of each field.
        begin, end: where its payload lies.
        owner: which message it is of.
    """

    data: bytes
    number: NDArray[np.uint32]
    wire: NDArray[np.uint8]
    begin: Int64s
    end: Int64s
    owner: Int64s

    def spans(self, number: int) -> tuple[Spans, Int64s]:
        """Payloads of the fields of this number that have a length, and whose they are."""
        rows = np.flatnonzero((self.number == number) & (self.wire == LEN))
        return (self.begin[rows], self.end[rows]), self.owner[rows]

    def parts(self, number: int) -> list[bytes]:
        """The payloads of the fields of this number that have a length, in their order."""
        (begin, end), _ = self.spans(number)
        return [self.data[a:b] for a, b in zip(begin.tolist(), end.tolist(), strict=True)]

    def numbers(self, number: int, count: int, default: int = 0) -> Int64s:
        """The unsigned number in this field of each of `count` messages; the last one counts."""
        rows = np.flatnonzero((self.number == number) & (self.wire == VARINT))
        values = np.full(count, default, np.int64)
        values[self.owner[rows]] = varints(self.data, self.begin[rows], self.end[rows])
        return values


def columns(messages: Sequence[bytes]) -> Columns:
    """The fields of messages.

    Raises:
        Damaged: one of them breaks off, or holds something that is not a field.
    """
    borders = np.zeros(len(messages) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, messages), np.int64, len(messages)), out=borders[1:])
    fields = split_all(b"".join(messages), borders[:-1], borders[1:])
    if not fields.kept.all():
        raise Damaged("a message in it is cut or damaged")
    return Columns(fields.body, fields.number, fields.wire, fields.begin, fields.end, fields.owner)


def varints(data: bytes, begin: Int64s, end: Int64s) -> Int64s:
    """The numbers in these places, the low 63 bits of each."""
    raw = np.frombuffer(data, np.uint8)
    length = np.minimum(end - begin, 9)
    values = np.zeros(len(begin), np.int64)
    for place in range(int(length.max(initial=0))):
        rows = np.flatnonzero(length > place)
        values[rows] |= (raw[begin[rows] + place].astype(np.int64) & 0x7F) << (7 * place)
    return values


def packed(data: bytes) -> Int64s:
    """The numbers of a packed list."""
    raw = np.frombuffer(data, np.uint8)
    last = np.flatnonzero(raw < 0x80) + 1
    begin = np.concatenate([[0], last[:-1]]) if len(last) else last
    return varints(data, begin.astype(np.int64), last.astype(np.int64))


def signed(values: Int64s) -> Int64s:
    """Numbers that have their sign in the lowest bit."""
    return (values >> 1) ^ -(values & 1)

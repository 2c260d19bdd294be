"""Walks the fields of a message in a file, window by window, without reading what it skips."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.xspace.core.api import split_fields
from tpuprof.parsers.formats.xspace.core.types import INCOMPLETE, MALFORMED
from tpuprof.parsers.formats.xspace.source import ByteSource

WINDOW = 1 << 18
LEN = 2
VARINT = 0
FIXED64 = 1

MOST_OF_SIZE = 11
"""How many bytes before a message hold its size and the last byte of the field's number, at most."""


@dataclass(frozen=True, slots=True)
class FieldWindow:
    """Fields of one stretch of a message; positions are offsets in the file.

    Attributes:
        data: the bytes read.
        base: file offset of `data[0]`.
        number, wire: field numbers and wire types.
        begin, end: payloads in the file; the last one may pass the window, even the end of the file.
        tag: where each field starts, tag included.
        broken_at: file offset at which the message becomes unreadable, or -1; only in the last window.
        cut: whether the break is the end of the bytes (a truncated file) rather than nonsense in them.
    """

    data: bytes
    base: int
    number: NDArray[np.uint32]
    wire: NDArray[np.uint8]
    begin: Int64s
    end: Int64s
    tag: Int64s
    broken_at: int
    cut: bool

    def payload(self, index: int) -> bytes:
        """The payload of a field as far as this window holds it."""
        return self.data[int(self.begin[index]) - self.base : int(self.end[index]) - self.base]


def windows(source: ByteSource, begin: int, end: int) -> Iterator[FieldWindow]:
    """Yields the fields of the message body at `[begin, end)` of the source.

    It jumps over a payload that reaches past its window. The walk ends with the body or the source, or at the first
    bytes that are no field.
    """
    offset = begin
    stop = min(end, source.size)
    while offset < stop:
        data = source.read(offset, min(WINDOW, stop - offset))
        if not data:
            break
        fields = split_fields(data)
        begins, ends = fields.begin + offset, fields.end + offset
        tags = np.append(np.int64(offset), ends)[:-1]
        following = offset + fields.next
        at_end = offset + len(data) >= stop
        broken = fields.status == MALFORMED or (fields.status == INCOMPLETE and at_end)
        yield FieldWindow(
            data=data,
            base=offset,
            number=fields.number,
            wire=fields.wire,
            begin=begins,
            end=ends,
            tag=tags,
            broken_at=following if broken else -1,
            cut=broken and fields.status == INCOMPLETE,
        )
        if broken:
            return
        # one header longer than the window cannot be
        assert following > offset, "the wire core made no progress"
        offset = following


def varint(payload: bytes, signed: bool = True) -> int:
    """The value of a varint's bytes; the low 64 bits, as protobuf reads them."""
    value = 0
    for shift, byte in enumerate(payload[:10]):
        value |= (byte & 0x7F) << (7 * shift)
    value &= (1 << 64) - 1
    return value - (1 << 64) if signed and value >> 63 else value


def varints(data: bytes, begin: Int64s, end: Int64s) -> Int64s:
    """int64[n]: the values of the varints at these places, as `varint` reads each."""
    octets, out = np.frombuffer(data, np.uint8), np.zeros(len(begin), np.uint64)
    for offset in range(int((end - begin).max(initial=0))):
        longer = np.flatnonzero(begin + offset < end)
        bits = octets[begin[longer] + offset] & 0x7F
        out[longer] |= bits.astype(np.uint64) << np.uint64(7 * offset)
    return out.view(np.int64)


def encoded(value: int) -> bytes:
    """A number as a varint; a negative one as the 64 bits that hold it."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def header(field: int, size: int) -> bytes:
    """The tag and length of a field of bytes."""
    return encoded(field << 3 | LEN) + encoded(size)


def text(payload: bytes) -> str:
    """Text of a profile; bytes that are not UTF-8 become replacement characters."""
    return payload.decode("utf-8", "replace")


def sizes_before(data: bytes, places: Int64s) -> Int64s:
    """int64[n]: the sizes of messages that begin at some places of some bytes, as they stand before them.

    A size is a varint: seven bits a byte, the lowest first, and only the last byte is below 128. Before it stands the
    number of the message's field, whose last byte is below 128 too.
    """
    raw, at = np.frombuffer(data, np.uint8), places - 1
    size = raw[at].astype(np.int64)
    more = np.flatnonzero(raw[at - 1] >= 0x80)
    while len(more):
        at[more] -= 1
        size[more] = size[more] << 7 | raw[at[more]] & 0x7F
        more = more[raw[at[more] - 1] >= 0x80]
    return size


def message_at(source: ByteSource, begin: int) -> bytes:
    """The message that begins at an offset, of the size that stands before it."""
    before = source.read(max(0, begin - MOST_OF_SIZE), min(begin, MOST_OF_SIZE))
    return source.read(begin, int(sizes_before(before, np.array([len(before)]))[0]))


FAR_NS = 1 << 50
"""13 days: lines so far from a start have the time since 1970, whose picoseconds no int64 holds."""


def origin_ns(starts: Sequence[int], noted: object) -> int:
    """What lines with the time since 1970 count from: the noted start, else the earliest of them; 0 beside others."""
    first = min(start for start in starts if start >= FAR_NS)
    if isinstance(noted, int) and 0 <= first - noted < FAR_NS:
        return noted
    return 0 if any(0 < start < FAR_NS for start in starts) else first

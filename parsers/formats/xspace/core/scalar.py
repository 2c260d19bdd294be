"""Reads the wire format one field at a time; the numpy core uses it where there is nothing to batch."""

from __future__ import annotations

from typing import NamedTuple

from tpuprof.parsers.formats.xspace.core.types import INCOMPLETE, MALFORMED, OK

MAX_FIELD_NUMBER = (1 << 29) - 1
MAX_INT64 = (1 << 63) - 1
MAX_TAG_BYTES = 5
MAX_VARINT_BYTES = 10


class FieldRead(NamedTuple):
    """One field, or why there is none.

    Attributes:
        status: `OK`, `INCOMPLETE` or `MALFORMED`; the rest is 0 unless it is `OK`.
        number, wire: tag of the field.
        begin, end: where its value lies; `end` may be past the bytes for wire type 2.
    """

    status: int
    number: int = 0
    wire: int = 0
    begin: int = 0
    end: int = 0


def varint(data: bytes | memoryview, offset: int, end: int, limit: int = MAX_VARINT_BYTES) -> tuple[int, int]:
    """Value and following offset of the varint at `data[offset]`.

    The second item is -`INCOMPLETE` when `end` cuts it, -`MALFORMED` when it is longer than `limit` bytes. The value
    may have up to 70 bits.
    """
    value = 0
    for shift in range(limit):
        if offset + shift >= end:
            return 0, -INCOMPLETE
        byte = data[offset + shift]
        value |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return value, offset + shift + 1
    return 0, -MALFORMED


def step(data: bytes | memoryview, offset: int, end: int) -> FieldRead:
    """The field whose tag is at `data[offset]`, in a message that ends at `end`."""
    tag, offset = varint(data, offset, end, MAX_TAG_BYTES)
    if offset < 0:
        return FieldRead(-offset)
    number, wire = tag >> 3, tag & 7
    if not 1 <= number <= MAX_FIELD_NUMBER:
        return FieldRead(MALFORMED)
    if wire == 2:
        length, begin = varint(data, offset, end)
        if begin < 0:
            return FieldRead(-begin)
        if length > MAX_INT64 - begin:
            return FieldRead(MALFORMED)
        return FieldRead(OK, number, wire, begin, begin + length)
    if wire == 0:
        _, after = varint(data, offset, end)
        if after < 0:
            return FieldRead(-after)
        return FieldRead(OK, number, wire, offset, after)
    if wire in {1, 5}:
        after = offset + (8 if wire == 1 else 4)
        return FieldRead(OK, number, wire, offset, after) if after <= end else FieldRead(INCOMPLETE)
    return FieldRead(MALFORMED)


def to_int64(value: int) -> int:
    """The low 64 bits as a signed number."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def fields_with(
    data: bytes | memoryview, offset: int, stop: int, keys: frozenset[int]
) -> tuple[list[tuple[int, int, int]], bool]:
    """Key (number * 8 + wire type), begin and end of the fields with one of the keys; whether the message breaks off.

    It returns the fields before a break.
    """
    fields: list[tuple[int, int, int]] = []
    while offset < stop:
        field = step(data, offset, stop)
        if field.status != OK or field.end > stop:
            return fields, True
        key = field.number << 3 | field.wire
        if key in keys:
            fields.append((key, field.begin, field.end))
        offset = field.end
    return fields, False

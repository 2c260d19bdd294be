"""The wire format, and what the decoder makes of it, written as plainly as possible."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import suppress

from tpuprof.parsers.formats.proto.xplane_pb2 import XEvent, XEventMetadata, XPlane
from tpuprof.parsers.formats.xspace.core.types import (
    EVENT_MALFORMED,
    HAS_OCCURRENCES,
    HAS_OFFSET,
    INCOMPLETE,
    KIND_ABSENT,
    KIND_EMPTY,
    MALFORMED,
    OK,
)

MAX_INT64 = (1 << 63) - 1

Span = tuple[int, int, int, int]
"""Number, wire type, begin, end."""

Cell = tuple[int, int | bytes]
"""A stat's kind; and its 64 bits, or its payload."""

WIRE = {2: 1, 3: 0, 4: 0, 5: 2, 6: 2, 7: 0, 8: 2}
_NAMES = {
    "double_value": 2,
    "uint64_value": 3,
    "int64_value": 4,
    "str_value": 5,
    "bytes_value": 6,
    "ref_value": 7,
    "compressed_str_value": 8,
}


class BrokenError(Exception):
    """Carries the status."""


def signed(value: int) -> int:
    """The low 64 bits as a signed number."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def read_varint(data: bytes, at: int, most: int) -> tuple[int, int]:
    """A varint and what follows it."""
    value, shift = 0, 0
    for _ in range(most):
        if at == len(data):
            raise BrokenError(INCOMPLETE)
        value += (data[at] % 128) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at
    raise BrokenError(MALFORMED)


def read_one(data: bytes, at: int) -> Span:
    tag, at = read_varint(data, at, 5)
    number, wire = divmod(tag, 8)
    if number == 0 or number >= 1 << 29 or wire in {3, 4, 6, 7}:
        raise BrokenError(MALFORMED)
    if wire == 2:
        length, at = read_varint(data, at, 10)
        if at + length > MAX_INT64:
            raise BrokenError(MALFORMED)
        return number, wire, at, at + length
    end = read_varint(data, at, 10)[1] if wire == 0 else at + {1: 8, 5: 4}[wire]
    if end > len(data):
        raise BrokenError(INCOMPLETE)
    return number, wire, at, end


def fields_of(data: bytes, at: int = 0) -> tuple[list[Span], int, int]:
    """Spans, next and status, as `split_fields` has them."""
    spans = []
    try:
        while at < len(data):
            spans.append(read_one(data, at))
            at = spans[-1][3]
    except BrokenError as broken:
        return spans, at, int(broken.args[0])
    return spans, at, OK


def _whole(body: bytes) -> Iterator[Span]:
    """The fields of a message; raises `BrokenError` at one that is broken or goes beyond its end."""
    at = 0
    while at < len(body):
        span = read_one(body, at)
        at = span[3]
        if at > len(body):
            raise BrokenError
        yield span


def event_of(body: bytes) -> tuple[int, int, int, int]:
    """Metadata id, offset or occurrences, duration and flags of an event, as `scan_events` has them."""
    values = {1: 0, 2: 0, 3: 0}
    flags = 0
    try:
        for number, wire, begin, _ in _whole(body):
            if wire == 0 and number in {1, 2, 3, 5}:
                values[2 if number == 5 else number] = signed(read_varint(body, begin, 10)[0])
                flags = {2: HAS_OFFSET, 5: HAS_OCCURRENCES}.get(number, flags)
    except BrokenError:
        flags |= EVENT_MALFORMED
    return values[1], values[2], values[3], flags


def _stat_of(body: bytes) -> tuple[int, Cell]:
    stat_id = 0
    cell: Cell = KIND_EMPTY, 0
    for number, wire, begin, end in _whole(body):
        if (number, wire) == (1, 0):
            stat_id = signed(read_varint(body, begin, 10)[0])
        elif WIRE.get(number) == wire:
            raw = body[begin:end]
            if wire == 0:
                raw = struct.pack("<q", signed(read_varint(body, begin, 10)[0]))
            cell = number, raw if wire == 2 else int.from_bytes(raw, "little", signed=True)
    return stat_id, cell


def stats_of(body: bytes, stats_field: int, wanted: list[int]) -> list[Cell]:
    """A message's cells as `stat_columns` has them."""
    cells: dict[int, Cell] = {}
    with suppress(BrokenError):
        for number, wire, begin, end in _whole(body):
            if (number, wire) == (stats_field, 2):
                with suppress(BrokenError):
                    cells.setdefault(*_stat_of(body[begin:end]))
    return [cells.get(stat_id, (KIND_ABSENT, 0)) for stat_id in wanted]


def stats_by_protobuf(message: XEvent | XEventMetadata | XPlane, wanted: list[int]) -> list[Cell]:
    """The same of a message that protobuf has read."""
    cells: dict[int, Cell] = {}
    for stat in message.stats:
        name = stat.WhichOneof("value")
        value = getattr(stat, name) if name else 0
        if isinstance(value, float):
            value = struct.unpack("<q", struct.pack("<d", value))[0]
        kind = _NAMES[name] if name else KIND_EMPTY
        cells.setdefault(stat.metadata_id, (kind, value if isinstance(value, bytes) else signed(value)))
    return [cells.get(stat_id, (KIND_ABSENT, 0)) for stat_id in wanted]

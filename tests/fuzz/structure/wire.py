"""Changes messages of which there is no description here: fields of the wire format, and lengths made right again."""

from __future__ import annotations

import random

from tests.fuzz.mutate import mutated
from tests.support.files.wire import varint

_NUMBERS = (0, 1, 2, 3, 0x7F, 0x80, (1 << 31) - 1, 1 << 31, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
_Field = tuple[int, int, int | bytes]


def changed(rng: random.Random, data: bytes, depth: int = 4) -> bytes:
    """The message with one to some of its fields, or of those of its fields' messages, changed."""
    fields = _fields(data)
    if not fields:
        return mutated(rng, data)
    for _ in range(rng.choice((1, 1, 2, 4)) if depth == 4 else 1):
        if fields:
            _change(rng, fields, depth)
    return b"".join(_written(field) for field in fields)


def _change(rng: random.Random, fields: list[_Field], depth: int) -> None:
    at, how = rng.randrange(len(fields)), rng.randrange(10)
    number, wire, value = fields[at]
    if how < 4 and isinstance(value, bytes) and depth:
        fields[at] = number, wire, changed(rng, value, depth - 1)
    elif how == 4:
        del fields[at : at + rng.choice((1, 1, 5))]
    elif how == 5:
        fields[at:at] = [fields[at]] * rng.choice((1, 30))
    elif how == 6:
        rng.shuffle(fields)
    elif how == 7:
        fields[at] = rng.choice((number, rng.randrange(1, 16), 1 << 28)), wire, value
    elif isinstance(value, int):
        fields[at] = number, wire, rng.choice((*_NUMBERS, value + 1, max(value - 1, 0)))
    elif how == 8:
        fields[at] = number, 0, rng.choice(_NUMBERS)
    else:
        fields[at] = number, wire, b"".join(varint(rng.choice(_NUMBERS)) for _ in range(rng.randrange(5)))


def _fields(data: bytes) -> list[_Field]:
    """The fields of some bytes; none where these are no message."""
    fields: list[_Field] = []
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        if tag < 8 or at > len(data):
            return []
        wire = tag & 7
        if wire == 0:
            value, at = _varint(data, at)
            fields.append((tag >> 3, wire, value))
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            fields.append((tag >> 3, wire, data[at : at + size]))
            at += size
        elif wire == 2:
            size, at = _varint(data, at)
            fields.append((tag >> 3, wire, data[at : at + size]))
            at += size
        else:
            return []
    return fields if at == len(data) else []


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    while at < len(data):
        value |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 0x80:
            return value, at
    return 0, len(data) + 1


def _written(field: _Field) -> bytes:
    number, wire, value = field
    if isinstance(value, int):
        return varint(number << 3 | wire) + varint(value)
    if wire == 2:
        return varint(number << 3 | 2) + varint(len(value)) + value
    return varint(number << 3 | wire) + value

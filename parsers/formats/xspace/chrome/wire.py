"""Writes an XSpace: small messages one by one, the events of a line all at once, from columns.

A row of a byte matrix is an event; a mask says which of its bytes it has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Int64s
from tpuprof.parsers.formats.xspace.metadata import KIND_DOUBLE
from tpuprof.parsers.formats.xspace.walk import LEN, encoded, header

_EVENTS, _ID, _OFFSET, _DURATION, _STATS = 4, 1, 2, 3, 4  # of XLine, XEvent
_AT_ONCE = 1 << 14
_FIXED64 = 1

Block = tuple[NDArray[np.uint8], Bools]
"""Bytes of rows, uint8[n, w], and which of them count."""


class Column(NamedTuple):
    """A stat of a line's events.

    Attributes:
        number: its metadata id.
        rows: int64[k]; the events that have it, ascending.
        kind: uint8[k]; which field of XStat holds it: a double, an integer or a reference.
        value: int64[k]; a double by its bits.
    """

    number: int
    rows: Int64s
    kind: NDArray[np.uint8]
    value: Int64s


def number(field: int, value: int) -> bytes:
    """A field with a number."""
    return encoded(field << 3) + encoded(value)


def message(field: int, body: bytes) -> bytes:
    """A field with bytes, a text or a message."""
    return header(field, len(body)) + body


def stat(metadata_id: int, kind: int, value: int | bytes) -> bytes:
    """The body of an XStat that holds a text, an integer, or a double by its bits."""
    if isinstance(value, bytes):
        held = message(kind, value)
    elif kind == KIND_DOUBLE:
        held = encoded(kind << 3 | _FIXED64) + value.to_bytes(8, "little", signed=True)
    else:
        held = number(kind, value)
    return number(1, metadata_id) + held


def events(ids: Int64s, offset_ps: Int64s, duration_ps: Int64s, columns: Sequence[Column]) -> Iterator[bytes]:
    """The events of a line, some thousand at a time; times must not be negative."""
    for first in range(0, len(ids), _AT_ONCE):
        chosen = slice(first, min(first + _AT_ONCE, len(ids)))
        count = chosen.stop - first
        blocks = [
            _numbers(_ID, ids[chosen]),
            _numbers(_OFFSET, offset_ps[chosen]),
            _numbers(_DURATION, duration_ps[chosen]),
        ]
        for column in columns:
            begin, end = np.searchsorted(column.rows, (first, chosen.stop)).tolist()
            if begin < end:
                rows = column.rows[begin:end] - first
                part = Column(column.number, rows, column.kind[begin:end], column.value[begin:end])
                blocks += _stat_blocks(part, count)
        body = _side_by_side(blocks)
        size = body[1].sum(axis=1)
        data, mask = _side_by_side([*_lengths(_EVENTS, size), body])
        yield data[mask].tobytes()


def _stat_blocks(column: Column, count: int) -> list[Block]:
    """A stat of `count` events; a block for each type that its values have."""
    blocks = []
    head = np.frombuffer(number(1, column.number), np.uint8)
    for kind in np.unique(column.kind).tolist():
        of = column.kind == kind
        value = column.value[of]
        if kind == KIND_DOUBLE:
            held = np.empty((len(value), 9), np.uint8)
            held[:, 0] = KIND_DOUBLE << 3 | _FIXED64
            held[:, 1:] = value.astype("<i8").view(np.uint8).reshape(-1, 8)
            block = held, np.ones(held.shape, np.bool_)
        else:
            block = _numbers(kind, value)
        start = np.broadcast_to(head, (len(value), len(head)))
        body = _side_by_side([(start, np.ones(start.shape, np.bool_)), block])
        data, mask = _side_by_side([*_lengths(_STATS, body[1].sum(axis=1)), body])
        spread = np.zeros((count, data.shape[1]), np.uint8), np.zeros((count, data.shape[1]), np.bool_)
        rows = column.rows[of]
        spread[0][rows], spread[1][rows] = data, mask
        blocks.append(spread)
    return blocks


def _numbers(field: int, values: Int64s) -> Block:
    tag = np.full((len(values), 1), field << 3, np.uint8)
    return _side_by_side([(tag, np.ones(tag.shape, np.bool_)), _varints(values)])


def _lengths(field: int, sizes: Int64s) -> list[Block]:
    """The tag and length of a field with bytes, for each row."""
    tag = np.full((len(sizes), 1), field << 3 | LEN, np.uint8)
    return [(tag, np.ones(tag.shape, np.bool_)), _varints(sizes)]


def _varints(values: Int64s) -> Block:
    left = values.astype(np.int64).view(np.uint64)
    width = max(1, -(-int(left.max()).bit_length() // 7))
    data = np.empty((len(left), width), np.uint8)
    mask = np.ones((len(left), width), np.bool_)
    for place in range(width):
        more = left >= 0x80
        data[:, place] = (left & 0x7F) | (more.astype(np.uint64) << np.uint64(7))
        left = left >> np.uint64(7)
        if place + 1 < width:
            mask[:, place + 1] = more & mask[:, place]
    return data, mask


def _side_by_side(blocks: Sequence[Block]) -> Block:
    return np.concatenate([data for data, _ in blocks], axis=1), np.concatenate([mask for _, mask in blocks], axis=1)

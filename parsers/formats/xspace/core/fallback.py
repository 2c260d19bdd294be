"""The decoder without its compiled loops, where there was no compiler: many times slower, with the same answers.

It walks messages field by field in Python: only that finds where a text lies, and what stands before damaged bytes. The
rest is numpy. `api` says what the functions do, and checks the arguments.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Int64s, Intervals, interval_index
from tpuprof.parsers.formats.xspace.core import types

_VARINT, _FIXED64, _LEN, _FIXED32 = 0, 1, 2, 5
_SIZE = {_FIXED64: 8, _FIXED32: 4}
_MOST_TAG_BYTES, _MOST_VARINT_BYTES = 5, 10
_MOST, _MOST_LENGTH = (1 << 63) - 1, (1 << 32) - 1
_LOW, _WORD = (1 << 32) - 1, (1 << 64) - 1

# number * 8 + wire type of the fields of a line, an event and a stat
_EVENTS = _STATS = 4 << 3 | _LEN
_ID, _OFFSET, _DURATION, _OCCURRENCES = (number << 3 | _VARINT for number in (1, 2, 3, 5))
_TEXTS = tuple(number << 3 | _LEN for number in (5, 6, 8))
_VALUES = (2 << 3 | _FIXED64, *(number << 3 | _VARINT for number in (3, 4, 7)), *_TEXTS)

_Bytes = NDArray[np.uint8]
_Field = tuple[int, int, int, int]
_Stat = tuple[int, int, int]
_Event = tuple[int, int, int, int, dict[int, _Stat]]


class _BrokenError(Exception):
    """Ends a walk; its argument is the status."""


def _varint(data: memoryview, at: int, stop: int, most: int = _MOST_VARINT_BYTES) -> tuple[int, int]:
    """The varint at a place, with up to 70 bits, and what follows it."""
    if at < stop and data[at] < 0x80:  # as most are
        return data[at], at + 1
    value = 0
    for offset in range(at, at + most):
        if offset >= stop:
            raise _BrokenError(types.INCOMPLETE)
        byte = data[offset]
        value |= (byte & 0x7F) << 7 * (offset - at)
        if byte < 0x80:
            return value, offset + 1
    raise _BrokenError(types.MALFORMED)


def _field(data: memoryview, at: int, stop: int) -> _Field:
    """Key, begin and end of the field at a place, and its 64 bits; for a payload where it begins."""
    key, begin = _varint(data, at, stop, _MOST_TAG_BYTES)
    wire = key & 7
    if not 8 <= key <= _MOST_LENGTH or wire not in (_VARINT, _LEN, *_SIZE):
        raise _BrokenError(types.MALFORMED)
    if wire == _VARINT:
        value, end = _varint(data, begin, stop)
        return key, begin, end, _signed(value)
    if wire == _LEN:
        length, begin = _varint(data, begin, stop)
        if length > _MOST - begin:
            raise _BrokenError(types.MALFORMED)
        return key, begin, begin + length, begin
    end = begin + _SIZE[wire]
    if end > stop:
        raise _BrokenError(types.INCOMPLETE)
    return key, begin, end, int.from_bytes(data[begin:end], "little", signed=True)


def _signed(value: int) -> int:
    """The low 64 bits as a signed number."""
    value &= _WORD
    return value - (1 << 64) if value > _MOST else value


def _fields(data: memoryview, at: int, stop: int) -> Iterator[_Field]:
    """The fields of a message, all of whose bytes are there."""
    while at < stop:
        field = _field(data, at, stop)
        at = field[2]
        if at > stop:
            raise _BrokenError(types.INCOMPLETE)
        yield field


def _event(data: memoryview, at: int, stop: int, rows: Mapping[int, int], stats_key: int = _STATS) -> _Event:
    """Metadata id, offset or occurrences, duration and flags of an event, and its first stats of some ids.

    Args:
        rows: by stat id.
    """
    number = first = duration = flags = 0
    stats: dict[int, _Stat] = {}
    try:
        for key, begin, end, value in _fields(data, at, stop):
            if key == stats_key:
                if rows:
                    _take_stat(data, begin, end, rows, stats)
            elif key == _ID:
                number = value
            elif key == _OFFSET:
                first, flags = value, types.HAS_OFFSET
            elif key == _DURATION:
                duration = value
            elif key == _OCCURRENCES:
                first, flags = value, types.HAS_OCCURRENCES
    except _BrokenError:
        flags |= types.EVENT_MALFORMED
    return number, first, duration, flags, stats


def _take_stat(data: memoryview, at: int, stop: int, rows: Mapping[int, int], stats: dict[int, _Stat]) -> None:
    """Adds kind, value and length of a stat where it is sound, wanted, and the first of its id."""
    number, stat = 0, (types.KIND_EMPTY, 0, 0)
    try:
        for key, begin, end, value in _fields(data, at, stop):
            if key == _ID:
                number = value
            elif key in _VALUES:
                stat = key >> 3, value, end - begin if key in _TEXTS else 0
    except _BrokenError:
        return
    if number in rows:
        stats.setdefault(rows[number], stat)


def split_fields(data: _Bytes, start: int) -> types.Fields:
    """See `api.split_fields`."""
    view, fields, at, status = data.data, list[tuple[int, int, int, int]](), start, types.OK
    try:
        while at < len(view):
            key, begin, end, _ = _field(view, at, len(view))
            fields.append((key >> 3, key & 7, begin, end))
            at = end
    except _BrokenError as broken:
        (status,) = broken.args
    number, wire, begins, ends = np.array(fields, np.int64).reshape(-1, 4).T.copy()
    return types.Fields(number.astype(np.uint32), wire.astype(np.uint8), begins, ends, at, status)


def stat_columns(data: _Bytes, begin: Int64s, end: Int64s, stats_field: int, wanted: Int64s) -> types.StatFields:
    """See `api.stat_columns`."""
    view, rows, shape = data.data, _rows(wanted), (len(wanted), len(begin))
    out = types.StatFields(np.zeros(shape, np.uint8), np.zeros(shape, np.int64), np.zeros(shape, np.int64))
    for column, span in enumerate(zip(begin.tolist(), end.tolist(), strict=True)):
        for row, stat in _event(view, *span, rows, stats_field << 3 | _LEN)[4].items():
            out.kind[row, column], out.value[row, column], out.length[row, column] = stat
    return out


def _rows(wanted: Int64s) -> dict[int, int]:
    return {number: row for row, number in enumerate(wanted.tolist())}


def scan_events(
    data: _Bytes, base: int, start: int, wanted: Int64s, columns: types.EventColumns, at: int, chosen: Bools
) -> types.Scan:
    """See `api.scan_events`."""
    view, rows, ids = data.data, _rows(wanted), np.iinfo(columns.metadata_id.dtype)
    following, count, seen, status = start, 0, 0, types.OK
    try:
        while following < len(view):
            key, begin, end, _ = _field(view, following, len(view))
            if key == _EVENTS:
                if end > len(view):
                    raise _BrokenError(types.INCOMPLETE)
                event = _event(view, begin, end, rows)
                if not len(chosen) or (0 <= event[0] < len(chosen) and chosen[event[0]]):
                    if at + count == len(columns.flags):
                        raise _BrokenError(types.FULL)
                    if not ids.min <= event[0] <= ids.max:
                        raise _BrokenError(types.WIDE_ID)
                    seen |= _write(columns, at + count, base, (begin, end), event)
                    count += 1
            following = end
    except _BrokenError as broken:
        (status,) = broken.args
    return types.Scan(count, following, status, seen)


def _write(columns: types.EventColumns, at: int, base: int, span: tuple[int, int], event: _Event) -> int:
    """Puts an event into its place; returns its flags."""
    columns.metadata_id[at], columns.offset_ps[at], columns.duration_ps[at], flags, stats = event
    columns.flags[at] = flags
    if len(columns.begin):
        columns.begin[at], columns.length[at] = span[0] + base, min(span[1] - span[0], _MOST_LENGTH)
    columns.kind[:, at] = types.KIND_ABSENT
    for row, (kind, value, length) in stats.items():
        columns.kind[row, at], columns.value[row, at] = kind, value
        if kind << 3 | _LEN in _TEXTS:
            columns.value[row, at] = value + base
            columns.stat_length[row, at] = min(length, _MOST_LENGTH)
            flags |= types.HAS_TEXT
    return flags


def nest(start: Int64s, end: Int64s) -> types.Nesting:
    """See `api.nest`."""
    types.check_order(start, end)
    ends, parents, depths = end.tolist(), list[int](), list[int]()
    for event, stop in enumerate(ends):
        around = event - 1
        while around >= 0 and ends[around] < stop:
            around = parents[around]
        parents.append(around)
        depths.append(depths[around] + 1 if around >= 0 else 0)
    parent, duration = np.array(parents, np.int64), end - start
    self_ps, is_inside = duration.copy(), parent >= 0
    np.subtract.at(self_ps, parent[is_inside], duration[is_inside])
    return types.Nesting(parent, np.array(depths, np.int32), self_ps)


def lanes(start: Int64s, end: Int64s) -> NDArray[np.int32]:
    """See `api.lanes`."""
    types.check_order(start, end)
    out, free = np.empty(len(start), np.int32), list[int]()  # when each lane is free again
    for event, (begins, stops) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        lane = next((lane for lane, time in enumerate(free) if time <= begins), len(free))
        free[lane : lane + 1] = [min(max(stops, begins + 1), _MOST)]
        out[event] = lane
    return out


def in_order(ops: types.LanedEvents) -> types.KeyedSpans:
    """The events of all lanes in order of time."""
    at: NDArray[np.intp] = np.arange(len(ops.start))
    if len(ops.lane):
        at[np.argsort(ops.lane, kind="stable")] = np.arange(len(at))
    return types.KeyedSpans(*ops[:3]).take(at)


def runs(ops: types.LanedEvents, label: NDArray[np.int32], groups: Intervals, gap: int, nests: bool) -> types.Runs:
    """See `api.runs`."""
    start, end, key = in_order(ops)
    types.check_keys(key, len(label))
    out, before, reach, length = list[list[int]](), (-1, -1), 0, 0
    columns = (column.tolist() for column in (start, end, label[key], interval_index(start, *groups)))
    for begins, stops, of, group in zip(*columns, strict=True):
        if of < 0:
            continue
        is_apart = not out or group != before[0]
        is_new = is_apart or of != before[1]
        resets = not out if nests else is_new
        if group < 0 and not (is_apart if nests else is_new) and begins - reach > gap * length:
            is_apart = is_new = True
        if is_new:
            out.append([begins, stops, of, is_apart])
        out[-1][1] = max(out[-1][1], stops)
        reach = stops if resets else max(reach, stops)
        before, length = (group, of), stops - begins
    starts, ends, labels, apart = np.array(out, np.int64).reshape(-1, 4).T.copy()
    return types.Runs(starts, ends, labels.astype(np.int32), apart.astype(np.bool_))


_SHUFFLE = itemgetter(3, 12, 2, 5, 14, 1, 15, 0, 11, 4, 10, 13, 9, 6, 8, 7)
"""Where each byte of two words comes from."""


def hash_packets(data: _Bytes, state: NDArray[np.uint64]) -> None:
    """See `api.hash_packets`."""
    if len(data) % 32 or state.dtype != np.uint64 or state.shape != (16,):
        raise ValueError("the bytes are no whole packets, or the state is not 16 words")
    v0, v1, mul0, mul1 = state.reshape(4, 4).tolist()
    for packet in data.view("<u8").reshape(-1, 4).tolist():
        for lane, word in enumerate(packet):
            v1[lane] = v1[lane] + mul0[lane] + word & _WORD
            mul0[lane] ^= (v1[lane] & _LOW) * (v0[lane] >> 32)
            v0[lane] = v0[lane] + mul1[lane] & _WORD
            mul1[lane] ^= (v0[lane] & _LOW) * (v1[lane] >> 32)
        _add_shuffled(v0, v1)
        _add_shuffled(v1, v0)
    state[:] = np.array(v0 + v1 + mul0 + mul1, np.uint64)


def _add_shuffled(words: list[int], others: list[int]) -> None:
    """Adds pairs of words, their bytes shuffled."""
    shuffled = b"".join(bytes(_SHUFFLE(struct.pack("<2Q", *others[pair : pair + 2]))) for pair in (0, 2))
    words[:] = [word + other & _WORD for word, other in zip(words, struct.unpack("<4Q", shuffled), strict=True)]

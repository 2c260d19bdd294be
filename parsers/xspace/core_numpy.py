"""The wire-decoding core in numpy alone. See `core` for what the functions do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.xspace import core_scalar
from tpuprof.parsers.xspace.core_split import split
from tpuprof.parsers.xspace.core_types import (
    EVENT_MALFORMED,
    HAS_OCCURRENCES,
    HAS_OFFSET,
    OK,
    Buffer,
    EventFields,
    Fields,
    Nesting,
    StatFields,
    as_bytes,
    as_int64,
    as_keys,
    check_key_count,
    check_spans,
    check_start,
    check_wanted,
)

_STAT_WIRE = {2: 1, 3: 0, 4: 0, 5: 2, 6: 2, 7: 0, 8: 2}


def split_fields(buf: Buffer, start: int = 0) -> Fields:
    """See `core.split_fields`."""
    data = as_bytes(buf)
    check_start(len(data), start)
    return split(data, start)


def decode_events(buf: Buffer, begin: NDArray[np.int64], end: NDArray[np.int64]) -> EventFields:
    """See `core.decode_events`."""
    raw = as_bytes(buf)
    begin, end = as_int64(begin, "begin"), as_int64(end, "end")
    check_spans(len(raw), begin, end)
    data = memoryview(raw)
    out = np.zeros((3, len(begin)), np.int64)
    flags = np.zeros(len(begin), np.uint8)
    for i, (at, stop) in enumerate(zip(begin.tolist(), end.tolist(), strict=True)):
        while at < stop:
            field = core_scalar.step(data, at, stop)
            if field.status != OK or field.end > stop:
                flags[i] |= EVENT_MALFORMED
                break
            if field.wire == 0 and field.number in {1, 2, 3, 5}:
                value = core_scalar.to_int64(core_scalar.varint(data, field.begin, stop)[0])
                out[{1: 0, 2: 1, 3: 2, 5: 1}[field.number], i] = value
                if field.number in {2, 5}:
                    flags[i] = HAS_OFFSET if field.number == 2 else HAS_OCCURRENCES
            at = field.end
    return EventFields(out[0], out[1], out[2], flags)


def stat_columns(
    buf: Buffer,
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    stats_field: int,
    wanted: NDArray[np.int64],
) -> StatFields:
    """See `core.stat_columns`."""
    raw = as_bytes(buf)
    begin, end, wanted = as_int64(begin, "begin"), as_int64(end, "end"), as_int64(wanted, "wanted")
    check_spans(len(raw), begin, end)
    check_wanted(wanted)
    data = memoryview(raw)
    row_of = {stat_id: row for row, stat_id in enumerate(wanted.tolist())}
    shape = (len(wanted), len(begin))
    kind, value, length = np.zeros(shape, np.uint8), np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for i, (at, stop) in enumerate(zip(begin.tolist(), end.tolist(), strict=True)):
        while at < stop:
            field = core_scalar.step(data, at, stop)
            if field.status != OK or field.end > stop:
                break
            if field.number == stats_field and field.wire == 2:
                stat = _stat(data, field.begin, field.end)
                row = row_of.get(stat[0]) if stat else None
                if stat and row is not None and not kind[row, i]:
                    kind[row, i], value[row, i], length[row, i] = stat[1:]
            at = field.end
    return StatFields(kind, value, length)


def _stat(data: memoryview, at: int, stop: int) -> tuple[int, int, int, int] | None:
    """Id, kind, value and length of the XStat at `data[at:stop]`; None when it is malformed."""
    stat_id, kind, value, length = 0, 1, 0, 0
    while at < stop:
        field = core_scalar.step(data, at, stop)
        if field.status != OK or field.end > stop:
            return None
        if field.number == 1 and field.wire == 0:
            stat_id = core_scalar.to_int64(core_scalar.varint(data, field.begin, stop)[0])
        elif _STAT_WIRE.get(field.number) == field.wire:
            kind, length = field.number, 0
            if field.wire == 0:
                value = core_scalar.to_int64(core_scalar.varint(data, field.begin, stop)[0])
            elif field.wire == 1:
                value = int.from_bytes(data[field.begin : field.end], "little", signed=True)
            else:
                value, length = field.begin, field.end - field.begin
        at = field.end
    return stat_id, kind, value, length


def nest(start: NDArray[np.int64], end: NDArray[np.int64]) -> Nesting:
    """See `core.nest`."""
    start, end = as_int64(start, "start"), as_int64(end, "end")
    if len(start) != len(end):
        raise ValueError(f"{len(start)} starts and {len(end)} ends")
    if bool(((start[1:] < start[:-1]) | ((start[1:] == start[:-1]) & (end[1:] > end[:-1]))).any()):
        raise ValueError("events must be sorted by start, then by descending end")
    ends = end.tolist()
    parent: list[int] = []
    depth: list[int] = []
    for i, stop in enumerate(ends):
        top = i - 1
        while top >= 0 and ends[top] < stop:
            top = parent[top]
        parent.append(top)
        depth.append(depth[top] + 1 if top >= 0 else 0)
    parents = np.array(parent, np.int64)
    self_ps = end - start
    inner = parents >= 0
    np.subtract.at(self_ps, parents[inner], (end - start)[inner])
    return Nesting(parents, np.array(depth, np.int32), self_ps)


def _check_keys(keys: NDArray[np.integer], values: NDArray[np.int64], k: int) -> None:
    check_key_count(keys, values, k)
    if len(keys) and (int(keys.min()) < 0 or int(keys.max()) >= k):
        raise ValueError(f"a key lies outside [0, {k})")


def sum_by_key(keys: NDArray[np.integer], values: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """See `core.sum_by_key`."""
    keys, values = as_keys(keys), as_int64(values, "values")
    _check_keys(keys, values, k)
    out = np.zeros(k, np.int64)
    np.add.at(out, keys, values)
    return out


def min_by_key(keys: NDArray[np.integer], values: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """See `core.min_by_key`."""
    keys, values = as_keys(keys), as_int64(values, "values")
    _check_keys(keys, values, k)
    out = np.full(k, np.iinfo(np.int64).max, np.int64)
    np.minimum.at(out, keys, values)
    return out

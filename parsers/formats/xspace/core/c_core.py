"""The wire-decoding core in C: allocates outputs and calls the compiled loops. See `core` for what the functions do."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Floats, Int64s, Intervals, is_sorted, union_length, weighted_until
from tpuprof.parsers.formats.xspace.core import _core, types
from tpuprof.parsers.formats.xspace.core.op_pass import OpPass

if not hasattr(_core, "trim"):  # an editable installation keeps its module when the source moves on
    raise ImportError("the compiled core is older than this code")

_FULL = 3
_BYTES_A_FIELD = 24  # a guess at how many fields come; another block follows when there are more
_LEAST_BLOCK = 1024

_FIRST_LANES = 8
_MOST_MERGED = 16
_FREE = np.iinfo(np.int64).min  # when a lane that nothing was in is free


def split_fields(buf: types.Buffer, start: int = 0) -> types.Fields:
    """See `core.split_fields`."""
    data = types.as_bytes(buf)
    types.check_start(len(data), start)
    parts = []
    offset, status = start, _FULL
    while status == _FULL:
        # Pages of a block that stay unwritten take no memory.
        block = (len(data) - offset) // _BYTES_A_FIELD + _LEAST_BLOCK
        number, wire = np.empty(block, np.uint32), np.empty(block, np.uint8)
        begin, end = np.empty(block, np.int64), np.empty(block, np.int64)
        count, offset, status = _core.split(data, number, wire, begin, end, offset)
        parts.append((number[:count], wire[:count], begin[:count], end[:count]))
    if len(parts) == 1:
        return types.Fields(*parts[0], offset, status)
    numbers, wires, begins, ends = zip(*parts, strict=True)
    return types.Fields(
        np.concatenate(numbers), np.concatenate(wires), np.concatenate(begins), np.concatenate(ends), offset, status
    )


def decode_events(buf: types.Buffer, begin: Int64s, end: Int64s) -> types.EventFields:
    """See `core.decode_events`."""
    data, begin, end = types.as_bytes(buf), types.as_int64(begin, "begin"), types.as_int64(end, "end")
    types.check_spans(len(data), begin, end)
    n = len(begin)
    metadata_id, offset, duration = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    flags = np.empty(n, np.uint8)
    _core.events(data, begin, end, metadata_id, offset, duration, flags)
    return types.EventFields(metadata_id, offset, duration, flags)


def stat_columns(buf: types.Buffer, begin: Int64s, end: Int64s, stats_field: int, wanted: Int64s) -> types.StatFields:
    """See `core.stat_columns`."""
    data, wanted = types.as_bytes(buf), types.as_int64(wanted, "wanted")
    begin, end = types.as_int64(begin, "begin"), types.as_int64(end, "end")
    types.check_spans(len(data), begin, end)
    types.check_wanted(wanted)
    shape = (len(wanted), len(begin))
    kind, value, length = np.empty(shape, np.uint8), np.empty(shape, np.int64), np.empty(shape, np.int64)
    _core.stats(data, begin, end, wanted, kind, value, length, stats_field)
    return types.StatFields(kind, value, length)


def scan_events(
    buf: types.Buffer, base: int, start: int, wanted: Int64s, columns: types.EventColumns, place: int, chosen: Bools
) -> types.Scan:
    """See `core.scan_events`."""
    data, wanted = types.as_bytes(buf), types.as_int64(wanted, "wanted")
    types.check_wanted(wanted)
    types.check_columns(columns, len(wanted), place)
    to = columns
    return types.Scan(
        *_core.scan(
            data,
            wanted,
            np.ascontiguousarray(chosen, np.bool_).view(np.uint8),
            to.metadata_id,
            to.offset_ps,
            to.duration_ps,
            to.flags,
            to.begin,
            to.length,
            to.kind,
            to.value,
            to.stat_length,
            base,
            start,
            place,
        )
    )


def nest(start: Int64s, end: Int64s) -> types.Nesting:
    """See `core.nest`."""
    start, end = types.as_int64(start, "start"), types.as_int64(end, "end")
    n = len(start)
    parent, depth, self_ps = np.empty(n, np.int64), np.empty(n, np.int32), np.empty(n, np.int64)
    _core.nest(start, end, parent, depth, self_ps)
    return types.Nesting(parent, depth, self_ps)


def lanes(start: Int64s, end: Int64s) -> NDArray[np.int32]:
    """See `core.lanes`."""
    start, end = types.as_int64(start, "start"), types.as_int64(end, "end")
    lane = np.empty(len(start), np.int32)
    tree = np.full(2 * _FIRST_LANES, _FREE, np.int64)
    done = _core.lanes(start, end, lane, tree, 0)
    while done < len(start):
        tree = _twice(tree)
        done = _core.lanes(start, end, lane, tree, done)
    return lane


def _twice(tree: Int64s) -> Int64s:
    """The tree of `_core.lanes` with room for twice as many lanes."""
    lanes = len(tree) // 2
    out = np.full(4 * lanes, _FREE, np.int64)
    out[2 * lanes : 3 * lanes] = tree[lanes:]
    level = 2 * lanes
    while level > 1:
        below = out[level : 2 * level]
        out[level // 2 : level] = np.minimum(below[::2], below[1::2])
        level //= 2
    return out


def by_lane(lane: NDArray[np.int32], bounds: Int64s, *columns: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """See `core.by_lane`."""
    out = tuple(np.empty(len(lane), column.dtype) for column in columns)
    _core.by_lane(lane, *(np.require(column, requirements=["C", "A"]) for column in columns), bounds[:-1].copy(), *out)
    return out


def busy(start: Int64s, end: Int64s, bounds: Int64s) -> int:
    """See `core.busy`."""
    if len(bounds) - 1 > _MOST_MERGED:
        return union_length(start, end)
    return _core.busy(types.as_int64(start, "start"), types.as_int64(end, "end"), types.as_int64(bounds, "bounds"))


def in_order(ops: types.LanedEvents) -> types.LanedEvents:
    """See `core.in_order`."""
    return ops


def runs(ops: types.LanedEvents, label: NDArray[np.int32], groups: Intervals, gap: int, nests: bool) -> types.Runs:
    """See `core.runs`."""
    n = len(ops.start)
    # pages that stay unwritten take no memory
    out = types.Runs(np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int32), np.empty(n, np.bool_))
    places = ops.bounds[:-1].copy()
    count = _core.runs(*ops[:4], label, *groups, places, *out[:3], out.apart.view(np.uint8), gap, nests)
    columns: list[NDArray[Any]] = [column[:count].copy() for column in out]
    return types.Runs(*columns)


def self_sums(ops: types.LanedEvents, keys: int) -> Int64s:
    """See `core.self_sums`."""
    room, has_room, out = 64, False, np.zeros(keys, np.int64)
    while not has_room:
        out[:] = 0
        has_room = _core.self_sums(*ops[:4], ops.bounds[:-1].copy(), np.empty(3 * room, np.int64), out)
        room *= 2
    return out


def duration_sums(spans: types.KeyedSpans, classes: NDArray[np.uint8], count: int, block: int) -> Int64s:
    """See `core.duration_sums`."""
    out = np.zeros((-(-len(spans.start) // block), count), np.int64)
    _core.block_sums(*spans, classes, np.zeros(0), out, block)
    return out


def work_sums(key: NDArray[np.int32], work: Floats, block: int) -> Floats:
    """See `core.work_sums`."""
    out, none = np.zeros(-(-len(key) // block)), np.zeros(0, np.int64)
    if len(key) and not len(work):
        raise ValueError("a key lies outside the work")
    if len(key):
        _core.block_sums(none, none, key, np.zeros(0, np.uint8), work, out, block)
    return out


def cell_sums(
    cells: types.StepCells, kind: Int64s, kinds: int, weight: Floats, steps: int, by_op: bool
) -> types.CellSums:
    """See `core.cell_sums`."""
    step, row, count = (types.as_int32(getattr(cells, name), name) for name in ("step", "row", "count"))
    columns = step, row, types.as_int64(cells.self_ps, "self_ps"), count
    by_kind, weighted, events = np.zeros((steps, kinds), np.int64), np.zeros(steps), np.zeros(steps, np.int64)
    counts = np.zeros((steps, len(kind)) if by_op else (0, 0))
    _core.cell_sums(*columns, types.as_int64(kind, "kind"), weight, by_kind, weighted, events, counts)
    return types.CellSums(by_kind, weighted, events, counts if by_op else None)


def subtract(start: Int64s, end: Int64s, less_start: Int64s, less_end: Int64s) -> Intervals:
    """See `core.subtract`."""
    start, end = types.as_int64(start, "start"), types.as_int64(end, "end")
    less_start, less_end = types.as_int64(less_start, "less_start"), types.as_int64(less_end, "less_end")
    room = len(start) + len(less_start)
    out_start, out_end = np.empty(room, np.int64), np.empty(room, np.int64)
    count = _core.subtract(start, end, less_start, less_end, out_start, out_end)
    return out_start[:count], out_end[:count]


def until(times: Int64s, intervals: Int64s) -> Int64s:
    """See `core.until`."""
    order = None if is_sorted(times) else np.argsort(times, kind="stable")
    out = np.empty(len(times), np.int64)
    rows = np.ascontiguousarray(intervals, np.int64)
    if not _core.until(types.as_int64(times if order is None else times[order], "times"), rows.reshape(-1), out):
        return weighted_until(times, intervals)
    if order is None:
        return out
    back = np.empty_like(out)
    back[order] = out
    return back


def trim() -> None:
    """See `core.trim`."""
    _core.trim()


def sum_by_key(keys: NDArray[np.integer], values: Int64s, k: int) -> Int64s:
    """See `core.sum_by_key`."""
    keys, values = types.as_keys(keys), types.as_int64(values, "values")
    types.check_key_count(keys, values, k)
    out = np.zeros(k, np.int64)
    _core.sum_by_key(keys, values, out)
    return out


def min_by_key(keys: NDArray[np.integer], values: Int64s, k: int) -> Int64s:
    """See `core.min_by_key`."""
    keys, values = types.as_keys(keys), types.as_int64(values, "values")
    types.check_key_count(keys, values, k)
    out = np.full(k, np.iinfo(np.int64).max, np.int64)
    _core.min_by_key(keys, values, out)
    return out


def hash_packets(data: types.Buffer, state: NDArray[np.uint64]) -> None:
    """See `core.hash_packets`."""
    _core.hash_packets(types.as_bytes(data), state)


def op_pass(
    off_duty: Bools,
    code: NDArray[np.uint8],
    step_start: Int64s,
    step_end: Int64s,
    times: Int64s,
    room: int,
    spans: bool,
    time_span: Int64s | None,
) -> OpPass:
    """See `core.op_pass`."""
    return OpPass(off_duty, code, step_start, step_end, times, room, spans, time_span)

"""Decodes protobuf wire bytes into columns, and goes through columns of events: in compiled loops.

Where these are not built, `fallback` decodes, with the same answers, and numpy does the rest.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Int64s, Intervals
from tpuprof.parsers.formats.xspace.core import fallback, types
from tpuprof.parsers.formats.xspace.core.compiled import CORE

_BYTES_A_FIELD = 24
"""A guess at how many fields come; another block follows when there are more."""

_LEAST_BLOCK = 1024

_FIRST_LANES = 8
_FREE = np.iinfo(np.int64).min
"""When a lane that nothing was in is free."""


def core_name() -> Literal["c", "python"]:
    """What decodes: the compiled loops, or the fallback."""
    return "python" if CORE is None else "c"


def split_fields(buf: types.Buffer, start: int = 0) -> types.Fields:
    """Walks the fields of one message body in `buf[start:]`.

    Fields may come in any order. The payload of the last one may reach past the end of `buf`. It returns everything
    before the first unreadable bytes, whatever the status.

    Raises:
        ValueError: `start` lies outside `buf`.
    """
    data = types.as_bytes(buf)
    types.check_start(len(data), start)
    if CORE is None:
        return fallback.split_fields(data, start)
    parts = []
    offset, status = start, types.FULL
    while status == types.FULL:
        # Pages of a block that stay unwritten take no memory.
        block = (len(data) - offset) // _BYTES_A_FIELD + _LEAST_BLOCK
        number, wire = np.empty(block, np.uint32), np.empty(block, np.uint8)
        begin, end = np.empty(block, np.int64), np.empty(block, np.int64)
        count, offset, status = CORE.split(data, number, wire, begin, end, offset)
        parts.append((number[:count], wire[:count], begin[:count], end[:count]))
    if len(parts) == 1:
        return types.Fields(*parts[0], offset, status)
    numbers, wires, begins, ends = zip(*parts, strict=True)
    return types.Fields(
        np.concatenate(numbers), np.concatenate(wires), np.concatenate(begins), np.concatenate(ends), offset, status
    )


def stat_columns(buf: types.Buffer, begin: Int64s, end: Int64s, stats_field: int, wanted: Int64s) -> types.StatFields:
    """Picks stats out of the message bodies `buf[begin[i]:end[i]]`.

    Args:
        buf: the bytes.
        begin, end: where the messages lie.
        stats_field: the field number of `repeated XStat stats`: 4 in XEvent, 5 in XEventMetadata, 6 in XPlane.
        wanted: stat metadata ids, distinct.

    A message's first stat with a wanted id counts, and the last value in a stat. It leaves out malformed stats, and
    ends at a break in the message.

    Raises:
        ValueError: a span lies outside `buf`, or a wanted id comes twice.
    """
    data, wanted = types.as_bytes(buf), types.as_int64(wanted, "wanted")
    begin, end = types.as_int64(begin, "begin"), types.as_int64(end, "end")
    types.check_spans(len(data), begin, end)
    types.check_wanted(wanted)
    if CORE is None:
        return fallback.stat_columns(data, begin, end, stats_field, wanted)
    shape = (len(wanted), len(begin))
    kind, value, length = np.empty(shape, np.uint8), np.empty(shape, np.int64), np.empty(shape, np.int64)
    CORE.stats(data, begin, end, wanted, kind, value, length, stats_field)
    return types.StatFields(kind, value, length)


def scan_events(
    buf: types.Buffer,
    base: int,
    start: int,
    wanted: Int64s,
    columns: types.EventColumns,
    place: int,
    chosen: Bools = types.EVERY_EVENT,
) -> types.Scan:
    """Decodes the events in `buf[start:]`, a stretch of an XLine's body, into columns from `place` on.

    As in protobuf, the last occurrence of a field counts, `offset_ps` and `num_occurrences` exclude each other, and a
    known field with a foreign wire type is an unknown field. Stats are picked as by `stat_columns`. It skips other
    fields than events, and ends before an event that is incomplete in the bytes.

    Args:
        buf: the bytes.
        base: where they lie in the file; added to the places of events and of text.
        start: a field of the line begins here.
        wanted: ids of the stats that `columns` has rows for, distinct.
        columns: where to write; consistent lengths.
        place: first place to write.
        chosen: bool[ids], which events to decode by their metadata ids, without those of other ids; empty for all.

    Raises:
        ValueError: columns that do not fit together, a wanted id that comes twice, or a place outside.
    """
    data, wanted = types.as_bytes(buf), types.as_int64(wanted, "wanted")
    types.check_wanted(wanted)
    types.check_columns(columns, len(wanted), place)
    if CORE is None:
        types.check_start(len(data), start)
        return fallback.scan_events(data, base, start, wanted, columns, place, chosen)
    to = columns
    return types.Scan(
        *CORE.scan(
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
    """Nests the events of one line by time, as XProf does.

    An event's parent is the latest event before it that starts no later and ends no earlier. So an identical span is a
    child, and so is a zero-length event at the very end of another.

    Args:
        start, end: sorted by start ascending, then end descending; any one unit.

    Raises:
        ValueError: not sorted, or of different lengths.
    """
    start, end = types.as_int64(start, "start"), types.as_int64(end, "end")
    if CORE is None:
        return fallback.nest(start, end)
    n = len(start)
    parent, depth, self_ps = np.empty(n, np.int64), np.empty(n, np.int32), np.empty(n, np.int64)
    CORE.nest(start, end, parent, depth, self_ps)
    return types.Nesting(parent, depth, self_ps)


def self_times(start: Int64s, end: Int64s) -> Int64s:
    """int64[n]: each event's duration minus that of its children, and 0 where these overlap one another.

    Args and errors as for `nest`.
    """
    own = nest(start, end).self_ps
    return np.maximum(own, 0) if len(own) and int(own.min()) < 0 else own


def lanes(start: Int64s, end: Int64s) -> NDArray[np.int32]:
    """Puts the events of one line into lanes in which they do not overlap: int32[n], the lane of each.

    Each event gets the lowest lane that is free at its start. An event of no duration takes its lane for one unit, so
    that it is alone at its instant; at the largest int64 there is no such unit, and every event gets lane 0. Where
    events nest, the lane is the depth of `nest`, but for empty events at the very end of another.

    Args and errors as for `nest`.
    """
    start, end = types.as_int64(start, "start"), types.as_int64(end, "end")
    if CORE is None:
        return fallback.lanes(start, end)
    lane = np.empty(len(start), np.int32)
    tree = np.full(2 * _FIRST_LANES, _FREE, np.int64)
    done = CORE.lanes(start, end, lane, tree, 0)
    while done < len(start):
        tree = _twice(tree)
        done = CORE.lanes(start, end, lane, tree, done)
    return lane


def _twice(tree: Int64s) -> Int64s:
    """The tree of `CORE.lanes` with room for twice as many lanes."""
    lanes = len(tree) // 2
    out = np.full(4 * lanes, _FREE, np.int64)
    out[2 * lanes : 3 * lanes] = tree[lanes:]
    level = 2 * lanes
    while level > 1:
        below = out[level : 2 * level]
        out[level // 2 : level] = np.minimum(below[::2], below[1::2])
        level //= 2
    return out


def lane_bounds(lane: NDArray[np.int32]) -> Int64s:
    """int64[lanes + 1]: where each lane begins when events are put lane by lane."""
    return np.concatenate([[0], np.cumsum(np.bincount(lane))]).astype(np.int64)


def lane_order(lane: NDArray[np.int32]) -> NDArray[np.intp]:
    """intp[n]: the events lane by lane, within a lane in the order given; `lane` as of `lanes`."""
    few = not len(lane) or int(lane.max()) < 1 << 16  # numbers of two bytes are sorted a good deal faster
    return np.argsort(lane.astype(np.uint16) if few else lane, kind="stable")


def runs(ops: types.LanedEvents, label: NDArray[np.int32], groups: Intervals, gap: int, nests: bool) -> types.Runs:
    """Merges events in a row that have one label, passing over those without one.

    No two merge that begin in different groups. Those that begin in none merge where the gap between them is at most so
    many times as long as the first: from the latest end of those that merge so far or, where labels lie in one another,
    of all events so far.

    Args:
        label: int32[keys], by the events' keys; -1 for none.
        groups: starts and ends, in order, not overlapping.
        gap: how many times.
        nests: whether labels lie in one another.

    Raises:
        ValueError: a key outside of the labels, or lanes that do not fit.
    """
    if CORE is None:
        return fallback.runs(ops, label, groups, gap, nests)
    n = len(ops.start)
    # pages that stay unwritten take no memory
    out = types.Runs(np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int32), np.empty(n, np.bool_))
    places = ops.bounds[:-1].copy()
    count = CORE.runs(*ops[:4], label, *groups, places, *out[:3], out.apart.view(np.uint8), gap, nests)
    columns: list[NDArray[Any]] = [column[:count].copy() for column in out]
    return types.Runs(*columns)


def self_sums(ops: types.LanedEvents, keys: int) -> Int64s:
    """int64[keys]: the sums of `self_times` by key.

    Raises:
        ValueError: a key outside, lanes that do not fit, or events not in the order that `nest` wants.
    """
    if CORE is None:
        start, end, key = fallback.in_order(ops)
        return sum_by_key(key, self_times(start, end), keys)
    room, has_room, out = 64, False, np.zeros(keys, np.int64)
    while not has_room:
        out[:] = 0
        has_room = CORE.self_sums(*ops[:4], ops.bounds[:-1].copy(), np.empty(3 * room, np.int64), out)
        room *= 2
    return out


def trim() -> None:
    """Gives freed memory back to the system, where the C library can; else the process keeps much of it.

    It takes some milliseconds: call it after large columns were freed.
    """
    if CORE is not None:
        CORE.trim()


def sum_by_key(keys: NDArray[np.integer], values: Int64s, k: int) -> Int64s:
    """Exact sums of the values of each key in [0, k), int64[k]; they wrap around where int64 ends.

    Raises:
        ValueError: a key outside [0, k), or lengths that differ.
    """
    return _by_key(keys, values, k, 0, np.add)


def min_by_key(keys: NDArray[np.integer], values: Int64s, k: int) -> Int64s:
    """Smallest value of each key in [0, k), int64[k]; the largest int64 for keys that don't occur.

    Raises:
        ValueError: a key outside [0, k), or lengths that differ.
    """
    return _by_key(keys, values, k, np.iinfo(np.int64).max, np.minimum)


def _by_key(keys: NDArray[np.integer], values: Int64s, k: int, initial: int, combine: np.ufunc) -> Int64s:
    """Combines the values of each key with the initial value. numpy does it nearly as fast as a loop in C."""
    keys, values = types.as_keys(keys), types.as_int64(values, "values")
    types.check_key_count(keys, values, k)
    types.check_keys(keys, k)
    out = np.full(k, initial, np.int64)
    combine.at(out, keys, values)
    return out


def hash_packets(data: types.Buffer, state: NDArray[np.uint64]) -> None:
    """Takes whole packets of 32 bytes into the state of a HighwayHash; see `riegeli.hashing`.

    Args:
        data: the packets, one after the other.
        state: uint64[16], changed: v0, v1, mul0 and mul1 of the four lanes.

    Raises:
        ValueError: bytes that are no whole packets, or another state.
    """
    (fallback if CORE is None else CORE).hash_packets(types.as_bytes(data), state)

"""Puts events into lanes, and merges runs of them, with numpy.

A cluster is the events between two times at which nothing runs. Where its first event outlasts all others, it has the
lane to itself, and the others form clusters of their own one lane further down. So it assigns lanes level by level, for
the whole line at once. Only clusters whose events overlap in part go one event after the other.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Int64s, Intervals
from tpuprof.parsers.formats.xspace.core.types import LanedEvents, Runs, as_int64

_MOST = np.iinfo(np.int64).max
_MOST_LEVELS = 64  # deeper than that, or with few events left, one event after the other is faster
_FEW = 256
_BLOCK = 1 << 16  # events that are Python numbers at one time


def lanes(start: Int64s, end: Int64s) -> NDArray[np.int32]:
    """See `core.lanes`."""
    start, end = as_int64(start, "start"), as_int64(end, "end")
    if len(start) != len(end):
        raise ValueError(f"{len(start)} starts and {len(end)} ends")
    if bool(((start[1:] < start[:-1]) | ((start[1:] == start[:-1]) & (end[1:] > end[:-1]))).any()):
        raise ValueError("events must be sorted by start, then by descending end")
    lane = np.zeros(len(start), np.int32)
    within = int(np.searchsorted(start, _MOST))  # at the end of time itself every lane is free again
    start, stop = start[:within], np.maximum(end[:within], start[:within] + 1)
    rest = np.arange(within)  # events that are in no lane above `level`
    level = 0
    while len(rest) > _FEW and level < _MOST_LEVELS:
        first, in_part = _clusters(start, stop)
        inner = ~first
        if in_part is not None:
            lane[rest[in_part]] = _first_fit(start[in_part], stop[in_part]) + level
            inner &= ~in_part
        rest, start, stop = rest[inner], start[inner], stop[inner]
        level += 1
        lane[rest] = level
    if len(rest):
        lane[rest] = _first_fit(start, stop) + level
    return lane


def _clusters(start: Int64s, stop: Int64s) -> tuple[Bools, Bools | None]:
    """Which events begin a cluster, and which are in a cluster that its first event does not outlast (None: none)."""
    reach = np.maximum.accumulate(stop)[:-1]
    first: Bools = np.append(True, start[1:] >= reach)
    beyond = (stop[1:] > reach) & ~first[1:]
    if not beyond.any():
        return first, None
    cluster = np.cumsum(first) - 1
    in_part = np.zeros(int(cluster[-1]) + 1, np.bool_)
    in_part[cluster[1:][beyond]] = True
    return first, in_part[cluster]


def _first_fit(start: Int64s, stop: Int64s) -> NDArray[np.int32]:
    """Gives each event the lowest free lane, one event after the other; every event must stop after its start."""
    out = np.empty(len(start), np.int32)
    free: list[int] = []  # lanes below `used` with nothing in them
    taken: list[tuple[int, int]] = []  # when each of the others is free again, and which it is
    used = 0
    for low in range(0, len(start), _BLOCK):
        block = slice(low, low + _BLOCK)
        for i, (begins, stops) in enumerate(zip(start[block].tolist(), stop[block].tolist(), strict=True), low):
            while taken and taken[0][0] <= begins:
                heappush(free, heappop(taken)[1])
            if free:
                lane = heappop(free)
            else:
                lane = used
                used += 1
            out[i] = lane
            heappush(taken, (stops, lane))
    return out


def by_lane(lane: NDArray[np.int32], bounds: Int64s, *columns: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """See `core.by_lane`."""
    sizes = np.diff(bounds)
    if {len(column) for column in columns} - {len(lane)} or np.bincount(
        lane, minlength=len(sizes)
    ).tolist() != sizes.tolist():
        raise ValueError("an event has no lane, or its lane no place")
    short = lane.astype(np.uint16) if len(bounds) < 1 << 16 else lane  # numpy sorts such numbers by their digits
    order = np.argsort(short, kind="stable")
    return tuple(column[order] for column in columns)


def in_order(ops: LanedEvents) -> LanedEvents:
    """See `core.in_order`."""
    if not len(ops.lane):
        return ops
    (place,) = by_lane(ops.lane, ops.bounds, np.arange(len(ops.lane)))
    order = np.empty_like(place)
    order[place] = np.arange(len(place))
    return LanedEvents(ops.start[order], ops.end[order], ops.key[order], ops.lane[:0], ops.bounds[[0, -1]])


def check_keys(keys: NDArray[np.integer], count: int) -> None:
    """Raises ValueError for a key outside of [0, count)."""
    if len(keys) and (int(keys.min()) < 0 or int(keys.max()) >= count):
        raise ValueError(f"a key lies outside [0, {count})")


def runs(ops: LanedEvents, label: NDArray[np.int32], groups: Intervals, gap: int, nests: bool) -> Runs:
    """See `core.runs`."""
    start, end, key, *_ = in_order(ops)
    check_keys(key, len(label))
    group = np.full(len(start), -1, np.int32)
    for number, (a, b) in enumerate(zip(*(np.searchsorted(start, times).tolist() for times in groups), strict=True)):
        group[a:b] = number
    of = label[key]
    has_label = of >= 0
    start, end, of, group = start[has_label], end[has_label], of[has_label], group[has_label]
    if not len(of):
        return Runs(start, end, of, np.zeros(0, np.bool_))
    apart = np.append(True, group[1:] != group[:-1])
    begins = apart | np.append(True, of[1:] != of[:-1])
    outside = np.flatnonzero((group < 0) & ~(apart if nests else begins))
    if len(outside):
        reach = np.maximum.accumulate(end) if nests else _reach(end, begins)
        apart[outside] = start[outside] - reach[outside - 1] > gap * (end[outside - 1] - start[outside - 1])
        begins |= apart
    first = np.flatnonzero(begins)
    return Runs(start[first], np.maximum.reduceat(end, first), of[first], apart[first])


def _reach(end: Int64s, begins: Bools) -> Int64s:
    """int64[n]: the latest end so far, from each of the begins on."""
    place = np.arange(len(end))
    since = place - np.maximum.accumulate(np.where(begins, place, 0))
    out, step = end.copy(), 1
    while len(place := np.flatnonzero(since >= step)):
        out[place] = np.maximum(out[place], out[place - step])
        step *= 2
    return out

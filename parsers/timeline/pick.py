"""Finds single events of a timeline: under a cursor, next to one, or by name."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools
from tpuprof.parsers.ops.framework_op import parse_framework_op
from tpuprof.parsers.timeline.model import EventId, EventNames, Timeline, Track

_SEEN_IN_CELL = 4096
"""It looks for the longest among so many events of a cell."""


def longest_called(timeline: Timeline, name: str) -> EventId | None:
    """The longest event of that name: of an HLO op, else of a framework op, which its whole path names too."""
    wanted: dict[int, Bools | None] = {}  # many tracks share their names
    for kinds in (("ops", "async"), ("framework_ops",), ("modules", "traceme", "stream", "thread", "other")):
        candidates: list[tuple[int, EventId]] = []
        for place, _, track in timeline.tracks():
            if track.kind not in kinds:
                continue
            if id(track.names) not in wanted:
                wanted[id(track.names)] = _keys_called(track.names, name)
            keys = wanted[id(track.names)]
            rows = np.flatnonzero(keys[track.key]) if keys is not None else ()
            if len(rows):
                lasting = track.end_ps[rows] - track.start_ps[rows]
                longest = int(np.argmax(lasting))
                candidates.append((int(lasting[longest]), (*place, int(rows[longest]))))
        if candidates:
            return max(candidates)[1]
    return None


def _keys_called(names: EventNames, name: str) -> Bools | None:
    """bool[keys]: which keys have that long or short name, a framework op's without its type; None where none has."""
    out = np.zeros(len(names), np.bool_)
    for key in range(len(names)):
        long_name = names.long_name(key)
        out[key] = name in (names.name(key), long_name, parse_framework_op(long_name).name)
    return out if out.any() else None


def event_in_cell(track: Track, lane: int, instant: int, cell_start: int, cell_end: int) -> int | None:
    """The event of a lane at an instant, else the longest of its cell; None for an empty cell."""
    first, last = track.between(lane, cell_start, cell_end)
    if first == last:
        return None
    event = first + int(np.searchsorted(track.start_ps[first:last], instant, side="right")) - 1
    if event >= first and (track.end_ps[event] > instant or track.start_ps[event] == instant):
        return event
    last = min(last, first + _SEEN_IN_CELL)
    return first + int(np.argmax(track.end_ps[first:last] - track.start_ps[first:last]))


def deepest_lane(track: Track, cell_start: int, cell_end: int) -> range:
    """The deepest lane with an event in a cell; no lane where there is none."""
    start, end = track.start_ps, track.end_ps
    inside = np.flatnonzero((start < cell_end) & ((end > cell_start) | ((start == end) & (start == cell_start))))
    return _lane_alone(track, inside[-1:])


def nearest_lane(track: Track, here: tuple[int, int], direction: int) -> range:
    """The lane with the next (1) or previous (-1) event of a track, by start and then lane."""
    instant, at_lane = here
    border = int(track.lanes[max(0, min(at_lane + (direction > 0), track.depth))])
    near = np.flatnonzero(track.start_ps == instant)
    near = near[near >= border] if direction > 0 else near[near < border]
    if not len(near):
        near = np.flatnonzero(track.start_ps > instant if direction > 0 else track.start_ps < instant)
        start = track.start_ps[near]
        near = near[start == (start.min() if direction > 0 else start.max())] if len(near) else near
    return _lane_alone(track, near[:1] if direction > 0 else near[-1:])


def _lane_alone(track: Track, event: NDArray[np.intp]) -> range:
    """The lane of an event, if there is one."""
    lane = track.lane_of(int(event[0])) if len(event) else 0
    return range(lane, lane + len(event))


def event_beside(track: Track, lane: int, here: tuple[int, int], direction: int) -> tuple[int, int | None]:
    """The next event of a lane after (1) or before (-1) a place, in order of start and then lane."""
    part = track.lane(lane)
    instant, at_lane = here
    # of events that start together those of the lanes before this one are behind it, and those of later lanes ahead
    is_left = lane > at_lane if direction > 0 else lane >= at_lane
    event = part.start + int(np.searchsorted(track.start_ps[part], instant, side="left" if is_left else "right"))
    event -= direction < 0
    return lane, event if part.start <= event < part.stop else None

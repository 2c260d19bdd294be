"""Finds single events of a timeline: under a cursor, next to one, or by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools
from tpuprof.parsers.ops.framework_op import parse_framework_op
from tpuprof.parsers.timeline.model import EventId, EventNames, Timeline, Track

_SEEN_IN_CELL = 4096
"""It looks for the longest among so many events of a cell."""


def longest_called(timeline: Timeline, name: str) -> EventId | None:
    """The longest event of that name: of an HLO op, else of a framework op, which its whole path names too."""
    for kinds in (("ops", "async"), ("framework_ops",), ("modules", "traceme", "stream", "thread", "other")):
        candidates: list[tuple[int, EventId]] = []
        wanted: dict[int, Bools | None] = {}  # many tracks share their names
        for section, item, track in _tracks(timeline, kinds):
            if id(track.names) not in wanted:
                wanted[id(track.names)] = _keys_called(track.names, name)
            keys = wanted[id(track.names)]
            rows = np.flatnonzero(keys[track.key]) if keys is not None else ()
            if not len(rows):
                continue
            longest = int(rows[np.argmax(track.end_ps[rows] - track.start_ps[rows])])
            candidates.append((int(track.end_ps[longest] - track.start_ps[longest]), (section, item, longest)))
        if candidates:
            return max(candidates)[1]
    return None


def _keys_called(names: EventNames, name: str) -> Bools | None:
    """bool[keys]: which keys have that long or short name; None where none has."""
    keys = [key for key in range(len(names)) if name in (names.name(key), *_paths(names.long_name(key)))]
    if not keys:
        return None
    out = np.zeros(len(names), np.bool_)
    out[keys] = True
    return out


def _paths(long_name: str) -> tuple[str, str]:
    """A framework op's full name, with and without its type."""
    return long_name, parse_framework_op(long_name).name


def _tracks(timeline: Timeline, kinds: Sequence[str]) -> Iterator[tuple[int, int, Track]]:
    """The tracks of some kinds, with their places."""
    for section_number, section in enumerate(timeline.sections):
        for item, track in enumerate(section.tracks):
            if track.kind in kinds:
                yield section_number, item, track


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
    tied = np.flatnonzero(track.start_ps == instant)
    tied = tied[tied >= border] if direction > 0 else tied[tied < border]
    if len(tied):
        return _lane_alone(track, tied[:1] if direction > 0 else tied[-1:])
    beyond = np.flatnonzero(track.start_ps > instant if direction > 0 else track.start_ps < instant)
    start = track.start_ps[beyond]
    near = beyond[start == (start.min() if direction > 0 else start.max())] if len(beyond) else beyond
    return _lane_alone(track, near[:1] if direction > 0 else near[-1:])


def _lane_alone(track: Track, event: NDArray[np.intp]) -> range:
    """The lane of an event, if there is one."""
    lane = track.lane_of(int(event[0])) if len(event) else 0
    return range(lane, lane + len(event))


def event_beside(track: Track, lane: int, here: tuple[int, int], direction: int) -> tuple[int, int | None]:
    """The next event of a lane after (1) or before (-1) a place, in order of start and then lane."""
    part = track.lane(lane)
    base, count_ = int(part.start), int(part.stop) - int(part.start)
    instant, at_lane = here
    if direction > 0:
        event = int(np.searchsorted(track.start_ps[part], instant, side="left" if lane > at_lane else "right"))
        return lane, base + event if event < count_ else None
    event = int(np.searchsorted(track.start_ps[part], instant, side="right" if lane < at_lane else "left")) - 1
    return lane, base + event if event >= 0 else None

"""The gaps of a track, and the way from one long gap to the next."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpuprof.parsers.base.intervals import Bools, Int64s, Intervals, interval_index, no_ints, ranges, subtract, union
from tpuprof.parsers.timeline.flatten import MANY_LANES
from tpuprof.parsers.timeline.model import StepSpan, Timeline, Track

LEAST_FRACTION = 0.05
"""A gap is worth a look if it lasts this share of its step."""

_OF_TRACE = 200
"""Without steps it must last this fraction of the trace, one over it."""


def gaps(track: Track, least_ps: int = 1) -> Intervals:
    """When no event of a track ran, between its first event and its last: starts and ends, in order.

    An event of no duration fills no time, so it ends no gap.

    Args:
        least_ps: the least duration of a gap, at least 1.
    """
    least = max(least_ps, 1)
    if not len(track):
        return no_ints(), no_ints()
    if track.depth > MANY_LANES:
        filled = [union(track.start_ps, track.end_ps[:])]
    else:
        filled = [_filled(track, lane) for lane in range(track.depth)]
    filled = [of_lane for of_lane in filled if len(of_lane[0])]
    if not filled:
        return _lasting(np.array([track.span[0]]), np.array([track.span[1]]), least)
    begins, ends = filled[0]
    between = np.flatnonzero(begins[1:] - ends[:-1] >= least)
    start = np.concatenate([[track.span[0]], ends[between], ends[-1:]])
    end = np.concatenate([begins[:1], begins[between + 1], [track.span[1]]])
    start, end = _lasting(start, end, least)
    for begins, ends in filled[1:]:  # where events nest, the first lane's cover all others
        start, end = _lasting(*_less(start, end, begins, ends), least)
    return start, end


def next_gap(
    timeline: Timeline, track: Track, time_ps: int, direction: int = 1, fraction: float = LEAST_FRACTION
) -> tuple[int, int] | None:
    """The next or previous long gap of a track: start and end; None where there is none.

    A long gap lasts at least a fraction of the step that its middle lies in, or of the median step between steps, or
    without steps a 200th of the trace.

    Args:
        time_ps: the next gap starts after it, the previous one before it.
        direction: above 0 for the next, below for the previous one.
        fraction: the fraction of a step, above 0.
    """
    if not timeline.steps:
        start, end = gaps(track, (timeline.last_ps - timeline.first_ps) // _OF_TRACE)
    else:
        first, last, lasting = _step_columns(timeline.steps)
        some = float(np.median(lasting))
        start, end = gaps(track, int(min(float(lasting.min()), some) * fraction))
        step = interval_index(start + (end - start) // 2, first, last)
        is_long = end - start >= np.where(step >= 0, lasting[np.maximum(step, 0)], some) * fraction
        start, end = start[is_long], end[is_long]
    gap = int(np.searchsorted(start, time_ps, "right" if direction > 0 else "left")) - (direction <= 0)
    return (int(start[gap]), int(end[gap])) if 0 <= gap < len(start) else None


def _filled(track: Track, lane: int) -> Intervals:
    """The events of a lane that last some time."""
    events = track.lane(lane)
    start, end = track.start_ps[events], track.end_ps[events]
    lasts: Bools = end > start
    return (start, end) if lasts.all() else (start[lasts], end[lasts])


def _lasting(start: Int64s, end: Int64s, least: int) -> Intervals:
    long_ = np.flatnonzero(end - start >= least)
    return start[long_], end[long_]


def _less(start: Int64s, end: Int64s, begins: Int64s, ends: Int64s) -> Intervals:
    """Takes a lane's events away from gaps; it looks only at events in gaps."""
    first = np.searchsorted(ends, start, side="right")
    last = np.searchsorted(begins, end, side="left")
    gap, event = ranges(first, last)
    if not len(gap):
        return start, end
    event = event[np.append(True, event[1:] != event[:-1])]  # an event may reach over several gaps
    return subtract(start, end, begins[event], ends[event])


def _step_columns(steps: Sequence[StepSpan]) -> tuple[Int64s, Int64s, Int64s]:
    """Starts, ends and durations of steps in order; where two overlap, the earlier ends where the later begins."""
    order = sorted(steps, key=lambda step: step.start_ps)
    start = np.array([step.start_ps for step in order], np.int64)
    lasting = np.maximum(np.array([step.end_ps for step in order], np.int64) - start, 0)
    return start, np.minimum(start + lasting, np.append(start[1:], np.iinfo(np.int64).max)), lasting

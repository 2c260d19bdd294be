"""The gaps of a track, and the way from one long gap to the next."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpuprof.parsers.base.intervals import Int64s, Intervals, interval_index, no_ints, union
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
    if not len(track):
        return no_ints(), no_ints()
    filled = union(track.start_ps, track.end_ps[:])
    start, end = np.append(track.span[0], filled[1]), np.append(filled[0], track.span[1])
    long_ = np.flatnonzero(end - start >= max(least_ps, 1))
    return start[long_], end[long_]


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


def _step_columns(steps: Sequence[StepSpan]) -> tuple[Int64s, Int64s, Int64s]:
    """Starts, ends and durations of steps in order; where two overlap, the earlier ends where the later begins."""
    order = sorted(steps, key=lambda step: step.start_ps)
    start = np.array([step.start_ps for step in order], np.int64)
    lasting = np.maximum(np.array([step.end_ps for step in order], np.int64) - start, 0)
    return start, np.minimum(start + lasting, np.append(start[1:], np.iinfo(np.int64).max)), lasting

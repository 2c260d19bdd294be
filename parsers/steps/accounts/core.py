"""The account of one core: the time of each of its steps, and between them, divided among owners.

Each row adds up to its time to the picosecond, and no cell is negative. An op counts in the step in which it starts, as
far as it fits there: what outlasts the step is the next one's.
"""

from __future__ import annotations

import numpy as np

from tpuprof.parsers.base import intervals
from tpuprof.parsers.base.intervals import Bools, Floats, Int64s, Intervals
from tpuprof.parsers.formats.xspace.core.api import sum_by_key
from tpuprof.parsers.steps.accounts.causes import IdleCauses
from tpuprof.parsers.steps.accounts.owners import OWNERS, owner_index
from tpuprof.parsers.steps.boundaries.markers import CoreSteps


def core_account(
    steps: CoreSteps, busy: Intervals, by_owner: Int64s, at_roof: Floats, causes: IdleCauses, lost: Intervals
) -> tuple[Int64s, Int64s]:
    """Divides the time of a core's steps, and the time between them.

    Args:
        busy: when an op ran, on the trace's clock.
        by_owner: int64[steps, len(OWNERS)], the self time of the ops that start in each step, none of it `ideal`.
        at_roof: float64[steps], the part of that time that these ops would take at their roof.
        lost: when programs ran whose ops were not recorded.

    Returns:
        int64[steps, len(OWNERS)], each row of which adds up to the step's duration; and the same of the time from each
        step's end to the start of the next one, as `where_known`. Ops that run there, in no step, are `uncounted`.
    """
    count = len(steps)
    of_ops, loss, ideal = by_owner.copy(), owner_index("loss"), owner_index("ideal")
    of_ops[:, ideal] = np.minimum(np.rint(at_roof).astype(np.int64), of_ops[:, loss])
    of_ops[:, loss] -= of_ops[:, ideal]
    between = np.append(steps.start_ps[1:] - steps.end_ps[:-1], np.zeros(min(count, 1), np.int64))
    between = np.maximum(between, 0)
    between -= intervals.overlap(steps.end_ps, steps.end_ps + between, *causes.unasked)
    owner_ps = within_steps(of_ops, np.maximum(steps.duration_ps, 0), between)
    ran = np.diff(intervals.covered(np.stack([steps.end_ps, steps.end_ps + between], axis=1).ravel(), *busy))[::2]
    spans = _interleaved(steps.start_ps, steps.end_ps), _interleaved(steps.end_ps, steps.end_ps + between)
    idle_ps = idle_by_owner(spans, _interleaved(steps.duration_ps - owner_ps.sum(axis=1), between - ran), busy, causes)
    owner_ps += idle_ps[::2]
    between_ps = idle_ps[1::2]
    between_ps[:, owner_index("uncounted")] += ran
    holds_lost = intervals.overlap(steps.end_ps, steps.end_ps + between, *intervals.union(*lost)) > 0
    return owner_ps, where_known(between_ps, ~holds_lost)


def where_known(between_ps: Int64s, is_known: Bools) -> Int64s:
    """int64[steps, owners]: the time from each step to the next; the mean of the others where it is not known.

    After the last step it is 0.

    Args:
        is_known: bool[steps].
    """
    out, is_known = between_ps.copy(), np.append(is_known[:-1], True)[: len(is_known)]
    known = np.flatnonzero(is_known[:-1])
    out[~is_known] = out[known].mean(axis=0) if len(known) else 0
    out[-1:] = 0
    return out


def _interleaved(of_steps: Int64s, of_gaps: Int64s) -> Int64s:
    """int64[2 * steps]: what is of each step, and then of the time up to the next one."""
    return np.stack([of_steps, of_gaps], axis=1).ravel()


def within_steps(of_ops: Int64s, duration_ps: Int64s, between_ps: Int64s) -> Int64s:
    """Cuts what ops have beyond their step and gives it to the next one, as far as that has room.

    Sums by step do not show which op ran across the border, so all owners of the step are cut alike.

    Args:
        of_ops: int64[steps, owners], time of the ops that start in each step.
        between_ps: int64[steps], time from each step's end to the next one's start.

    Returns:
        int64[steps, owners], where no row exceeds its step.
    """
    total = of_ops.sum(axis=1)
    if (total <= duration_ps).all():
        return of_ops
    kept = scaled_down(of_ops, np.minimum(total, duration_ps))
    later = np.maximum(total - duration_ps - between_ps, 0)[:-1]
    moved = np.minimum(later, np.maximum(duration_ps - total, 0)[1:])
    kept[1:] += scaled_down(np.maximum(of_ops - kept, 0)[:-1], moved)
    return kept


def scaled_down(parts: Int64s, total: Int64s) -> Int64s:
    """Scales each row of parts down to a total that is at most its sum: whole numbers that add up to it."""
    running = np.cumsum(parts, axis=1)
    factor = total / np.maximum(running[:, -1], 1)
    scaled = np.minimum(np.floor(running * factor[:, None]).astype(np.int64), total[:, None])
    scaled[:, -1] = total
    reached = running == running[:, -1:]  # nothing may be left for an owner without time
    scaled = np.where(reached, total[:, None], scaled)
    return np.diff(scaled, axis=1, prepend=0)


def idle_by_owner(spans: Intervals, idle_ps: Int64s, busy: Intervals, causes: IdleCauses) -> Int64s:
    """int64[n, len(OWNERS)]: divides the time of some spans in which no op ran; each row adds up to `idle_ps`.

    Args:
        spans: disjoint and in order, on the trace's clock.
        idle_ps: int64[n], by the device's clock. Shares are taken from the trace's.
        busy: when an op ran.
    """
    count, known = len(idle_ps), causes.in_order()
    borders = intervals.distinct(np.concatenate([*spans, *(column for _, of in known for column in of)]))
    middle = borders[:-1]
    span = intervals.interval_index(middle, *spans)
    idle = np.diff(borders) - np.diff(intervals.covered(borders, *busy))
    owner = np.full(len(middle), owner_index(causes.rest), np.int64)
    for name, of in reversed(known):
        if len(of[0]):
            owner[intervals.interval_index(middle, *of) >= 0] = owner_index(name)
    chosen = (span >= 0) & (idle > 0)
    key = span[chosen] * len(OWNERS) + owner[chosen]
    on_trace = sum_by_key(key, idle[chosen], count * len(OWNERS)).reshape(count, len(OWNERS))
    unseen = np.maximum(idle_ps, 0) - on_trace.sum(axis=1)  # the clocks differ, or an op reaches in from the last step
    on_trace[:, owner_index("between_ops")] += np.maximum(unseen, 0)
    return scaled_down(on_trace, np.maximum(idle_ps, 0))

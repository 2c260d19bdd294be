"""The events of few ops of a core, kept one by one, and when its other ops work beside them.

What the core does at an instant is what its innermost op does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Int64s, Intervals
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.xspace.core.api import nest
from tpuprof.parsers.ops.table import OpTable

OTHER, WORK, TRACED = 0, 1, 2
"""What an op counts as: work, such as computing and copying; one whose events are kept; or neither."""

Roles = NDArray[np.uint8]
"""What each of some ops counts as."""


@dataclass(frozen=True, slots=True)
class OpRoles:
    """How ops are distinguished; the times of their events do not matter.

    Attributes:
        of_category: what all ops of an HLO category count as; None where this depends on the op.
        of_ops: what the ops of a table count as.
    """

    of_category: Callable[[str | None], int | None]
    of_ops: Callable[[OpTable], Roles]


Weighted = Int64s
"""int64[n, 3]: start and end of intervals, and what each counts, 1 or -1: their weighted sum is a time."""


@dataclass(frozen=True, slots=True)
class TracedEvents:
    """The events of the traced ops of one core, in order of start, longer ones first.

    Attributes:
        row: int64[n], the op of each in the core's table.
        start_ps, end_ps, self_ps: int64[n], by the device's clock.
        own_start_ps: int64[n], on the trace's clock.
        work, within: the time in which the innermost op works, and that in which it is a traced one; by the device's
            clock. Intervals of one weight are in order of start, and none ends where the next one starts.
    """

    row: Int64s
    start_ps: Int64s
    end_ps: Int64s
    self_ps: Int64s
    own_start_ps: Int64s
    work: Weighted
    within: Weighted


def times_by_role(start: Int64s, end: Int64s, role: Roles) -> tuple[Weighted, Weighted]:
    """See `TracedEvents.work` and `TracedEvents.within`.

    Args:
        start, end, role: of a core's events, in the order that nesting needs.
    """
    parent = nest(start, end).parent
    around = np.where(parent >= 0, role[np.maximum(parent, 0)], OTHER) if len(role) else role
    changes = (role != around) & (end > start)

    def runs(chosen: Bools) -> Intervals:
        begins, ends = start[chosen & changes], end[chosen & changes]
        opens, closes = np.ones(len(begins), np.bool_), np.ones(len(begins), np.bool_)
        opens[1:] = closes[:-1] = begins[1:] != ends[:-1]
        return begins[opens], ends[closes]

    work, within = (_weighted([runs(role == of), runs(around == of)]) for of in (WORK, TRACED))
    return work, within


def _weighted(spans: Sequence[Intervals]) -> Weighted:
    """The intervals that a time consists of, and then those that interrupt it."""
    (start, end), (less_start, less_end) = spans
    weights = np.repeat(np.array([1, -1], np.int64), [len(start), len(less_start)])
    return np.stack([np.concatenate([start, less_start]), np.concatenate([end, less_end]), weights], axis=1)

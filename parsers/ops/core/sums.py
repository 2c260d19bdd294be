"""What one core's op events add up to, in one pass over the line's bytes.

The compiled core decodes a chunk of the line, adds it up while it is in the processor's cache, and forgets it.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tpuprof.parsers.base.intervals import Int64s, Intervals, no_ints, union
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.formats.xspace.core.pass_sums import StepCells
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Plane
from tpuprof.parsers.ops.core import ops as core_ops
from tpuprof.parsers.ops.core.one_pass import Wanted, in_one_pass
from tpuprof.parsers.ops.core.plain_pass import device_times
from tpuprof.parsers.ops.core.traced import OpRoles, TracedEvents
from tpuprof.parsers.ops.table import OpTable


@dataclass(frozen=True, slots=True)
class OpSums:
    """The sums of one core's op events over the whole profile.

    Attributes:
        table: time and work by op.
        op_events: number of events.
        span: from the first start to the last end by the device's clock; None without events.
    """

    table: OpTable
    op_events: int
    span: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class CoreSums(OpSums):
    """The sums of one core's op events by step too, and when the core worked.

    Attributes:
        own_span: the same as `span` on the trace's clock.
        cells: sums by step and op.
        all_reduce_step, all_reduce_id, all_reduce_ps: int64[k], an entry for each all-reduce event inside a step, by
            the device's clock.
        busy: when an op ran; like all intervals here on the trace's clock, disjoint and in order.
        working: when an op ran that is on duty.
        waiting: when an op ran that is off duty (`device.OFF_DUTY`).
        inside_waits: spans of ops on duty that begin inside the waiting of others; in order of start, not disjoint.
        device_times: int64[n], the device's time at each of the times asked for; None where ops have one clock only.
        traced: the events of the ops that are traced; None where none was asked for.
    """

    own_span: tuple[int, int] | None
    cells: StepCells
    all_reduce_step: Int64s
    all_reduce_id: Int64s
    all_reduce_ps: Int64s
    busy: Intervals
    working: Intervals
    waiting: Intervals
    inside_waits: Intervals
    device_times: Int64s | None
    traced: TracedEvents | None = None

    def without_intervals(self) -> CoreSums:
        """The same without the cells and intervals, which take the most memory."""
        none = no_ints(), no_ints()
        return replace(self, cells=StepCells(*none, *none), busy=none, working=none, waiting=none, inside_waits=none)


def core_sums(
    plane: Plane, steps: Intervals, times: Int64s, on_chunk: ChunkDone | None = None, roles: OpRoles | None = None
) -> CoreSums:
    """Decodes the op events of one core and adds them up.

    Args:
        steps, times, roles: see `Wanted`.
    """
    sums, totals = in_one_pass(plane, Wanted(steps, times, True, roles), on_chunk)
    waiting, row_of = union(*sums.off), np.zeros(len(sums.occurrences), np.int64)
    row_of[sums.occurrences > 0] = np.arange(len(totals.ids))  # of each metadata id, in the table of ops
    ids, start, end, own, own_start = sums.traced.T  # no copies: there may be many
    return CoreSums(
        table=core_ops.op_table(plane, totals),
        op_events=sums.events,
        span=sums.span,
        own_span=sums.own_span,
        cells=replace(sums.cells, row=row_of.astype(np.int32)[sums.cells.row]),
        all_reduce_step=sums.reduces[:, 0],
        all_reduce_id=sums.reduces[:, 1],
        all_reduce_ps=sums.reduces[:, 2],
        busy=sums.busy,
        working=sums.working,
        waiting=waiting,
        inside_waits=_begun_inside(*sums.inside, waiting),
        device_times=device_times(sums.times, sums.time_span) if sums.has_two_clocks else None,
        traced=None if roles is None else TracedEvents(row_of[ids], start, end, own, own_start, sums.work, sums.within),
    )


def op_sums(plane: Plane, on_chunk: ChunkDone | None = None) -> OpSums:
    """The same without steps: only what the pages of ops show."""
    none = no_ints()
    sums, totals = in_one_pass(plane, Wanted((none, none), none, False), on_chunk)
    return OpSums(core_ops.op_table(plane, totals), sums.events, sums.span)


@dataclass(frozen=True, slots=True)
class ModuleHoles:
    """How many runs a module has on some cores, and how many of them have no ops, or lack some that the others have
    (`parsers.steps.boundaries.recorded`).

    Attributes:
        module: its name, ``jit_f(12190760917235803885)``.
        lost: the ops of which most is lacking there.
    """

    module: str
    runs: int
    without_ops: int
    lacking_some: int
    lost: tuple[str, ...] = ()


def joined_holes(parts: Iterable[ModuleHoles]) -> tuple[ModuleHoles, ...]:
    """The modules of several cores that have holes."""
    joined: dict[str, ModuleHoles] = {}
    for of in parts:
        before = joined.get(of.module, ModuleHoles(of.module, 0, 0, 0))
        counts = (before.runs + of.runs, before.without_ops + of.without_ops, before.lacking_some + of.lacking_some)
        joined[of.module] = ModuleHoles(of.module, *counts, tuple(dict.fromkeys(before.lost + of.lost)))
    return tuple(of for of in joined.values() if of.without_ops or of.lacking_some)


def _begun_inside(start: Int64s, end: Int64s, waiting: Intervals) -> Intervals:
    """Those spans that begin strictly inside one of the disjoint, sorted intervals, without empty ones."""
    if not len(start) or not len(waiting[0]):
        return no_ints(), no_ints()
    before = np.searchsorted(waiting[0], start, side="left") - 1
    inside = (before >= 0) & (start < waiting[1][np.maximum(before, 0)]) & (end > start)
    return start[inside], end[inside]

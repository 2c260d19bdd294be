"""What one core's op events add up to, in one pass over the line's bytes.

The compiled core decodes a chunk of the line, adds it up while it is in the processor's cache, and forgets it. What the
pass can't take (several op lines, events out of order, absurd times or ids) goes by columns over all events, in numpy,
and so does everything where the compiled core is absent. Both give the same sums.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Int64s, Intervals, distinct, is_sorted, no_ints, place, union
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.crew import ALONE, Crew
from tpuprof.parsers.formats.xspace.core.api import sum_by_key
from tpuprof.parsers.formats.xspace.core.types import StepCells
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Plane
from tpuprof.parsers.ops.core import ops as core_ops
from tpuprof.parsers.ops.core.one_pass import Progress, in_one_pass
from tpuprof.parsers.ops.core.traced import Coding, TracedEvents, traced_events, traced_of_events
from tpuprof.parsers.ops.table import OpTable

_Indices = NDArray[np.signedinteger]

_DENSE = 4
"""Sums by step and op are dense up to this many cells per event."""


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
class StepSums(OpSums):
    """The sums of one core's op events, and how many of these start in each step.

    Attributes:
        op_count: int64[steps].
        device_times: int64[n], the device's time at each of the times asked for; None where ops have one clock only.
    """

    op_count: Int64s
    device_times: Int64s | None


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
        cells = _cells(*none, *none)
        return replace(self, cells=cells, busy=none, working=none, waiting=none, inside_waits=none)


def core_sums(
    plane: Plane,
    steps: Intervals,
    times: Int64s,
    on_chunk: ChunkDone | None = None,
    coding: Coding | None = None,
    crew: Crew = ALONE,
) -> CoreSums:
    """Decodes the op events of one core and adds them up.

    Args:
        steps: where the core's steps begin and end on the trace's clock, in order, not overlapping.
        times: int64[n], ascending; times on the trace's clock whose device times are wanted.
        coding: what ops count as, where the events of some are wanted one by one.
        crew: the threads that may help; the sums are the same whatever their number.
    """
    progress = Progress(on_chunk)
    done = in_one_pass(plane, steps, times, progress, True, coding, crew)
    if done is None:
        return sums_of_events(core_ops.core_ops(plane, progress.again(), crew), steps, times, coding)
    sums, totals = done
    waiting = union(*sums.off)
    row_of = np.zeros(len(sums.occurrences), np.int64)
    row_of[totals.ids] = np.arange(len(totals.ids))
    cells = sums.cells
    return CoreSums(
        table=core_ops.op_table(plane, totals),
        op_events=sums.events,
        span=sums.span,
        own_span=sums.own_span,
        cells=StepCells(cells.step, row_of.astype(np.int32)[cells.metadata_id], cells.self_ps, cells.count),
        all_reduce_step=sums.reduces[:, 0],
        all_reduce_id=sums.reduces[:, 1],
        all_reduce_ps=sums.reduces[:, 2],
        busy=sums.busy,
        working=sums.working,
        waiting=waiting,
        inside_waits=_begun_inside(*sums.inside, waiting),
        device_times=_device_times(sums.times, *sums.time_span.T) if sums.has_two_clocks else None,
        traced=None if coding is None else traced_events(sums.traced, sums.work, sums.within, row_of),
    )


def op_sums(plane: Plane, on_chunk: ChunkDone | None = None, crew: Crew = ALONE) -> OpSums:
    """The same without steps: only what the pages of ops show."""
    progress = Progress(on_chunk)
    none = no_ints()
    done = in_one_pass(plane, (none, none), none, progress, False, None, crew)
    if done is None:
        ops = core_ops.core_ops(plane, progress.again(), crew)
        return OpSums(ops.table, len(ops.events.key), _span(ops.events.start_ps, ops.events.end_ps))
    sums, totals = done
    return OpSums(core_ops.op_table(plane, totals), sums.events, sums.span)


def step_sums(
    plane: Plane, steps: Intervals, times: Int64s, on_chunk: ChunkDone | None = None, crew: Crew = ALONE
) -> StepSums:
    """The same as `core_sums` without the times by step, and without when the core worked; arguments as there."""
    progress = Progress(on_chunk)
    done = in_one_pass(plane, steps, times, progress, False, None, crew)
    if done is None:
        found = sums_of_events(core_ops.core_ops(plane, progress.again(), crew), steps, times)
        count = _op_count(found.cells.step, found.cells.count, len(steps[0]))
        return StepSums(found.table, found.op_events, found.span, count, found.device_times)
    sums, totals = done
    return StepSums(
        core_ops.op_table(plane, totals),
        sums.events,
        sums.span,
        _op_count(sums.cells.step, sums.cells.count, len(steps[0])),
        _device_times(sums.times, *sums.time_span.T) if sums.has_two_clocks else None,
    )


def _op_count(step: NDArray[np.int32], count: NDArray[np.int32], steps: int) -> Int64s:
    """int64[steps]: the events of cells by their steps."""
    return np.bincount(step, count, steps).astype(np.int64)


# --- in one pass ---------------------------------------------------------------------------------------------------


def _begun_inside(start: Int64s, end: Int64s, waiting: Intervals) -> Intervals:
    """Those spans that begin strictly inside one of the disjoint, sorted intervals, without empty ones."""
    if not len(start) or not len(waiting[0]):
        return no_ints(), no_ints()
    before = np.searchsorted(waiting[0], start, side="left") - 1
    inside = (before >= 0) & (start < waiting[1][np.maximum(before, 0)]) & (end > start)
    return start[inside], end[inside]


def _device_times(times: Int64s, left: Int64s, right: Int64s, left_device: Int64s, right_device: Int64s) -> Int64s:
    """Device times of times on the trace's clock: by the op under way, else between the ends of the ops around."""
    length = np.maximum(right - left, 1)
    share = np.clip((times - left) / length, 0.0, 1.0)
    beyond = np.where(times > right, times - right, np.where(times < left, times - left, 0))  # outside all ops
    out: Int64s = left_device + np.rint(share * (right_device - left_device)).astype(np.int64) + beyond
    return out


# --- by columns ----------------------------------------------------------------------------------------------------


def sums_of_events(ops: core_ops.CoreOps, steps: Intervals, times: Int64s, coding: Coding | None = None) -> CoreSums:
    """The same sums of events that are decoded already; arguments as for `core_sums`."""
    events, start, end = ops.events, ops.event_start_ps, ops.event_end_ps
    step = place(start[events.all_reduce], *steps)
    chosen = events.all_reduce[step >= 0]
    busy = union(start, end)
    working, waiting, inside = busy, (no_ints(), no_ints()), (no_ints(), no_ints())
    if ops.off_duty.any():
        is_off = ops.off_duty[events.key]
        waiting = union(start[is_off], end[is_off])
        on_start, on_end = start[~is_off], end[~is_off]
        working = union(on_start, on_end)
        order = None if is_sorted(on_start) else np.argsort(on_start, kind="stable")
        inside = _begun_inside(*((on_start, on_end) if order is None else (on_start[order], on_end[order])), waiting)
    return CoreSums(
        table=ops.table,
        op_events=len(events.key),
        span=_span(events.start_ps, events.end_ps),
        own_span=_span(start, end),
        cells=_step_cells(steps, start, events.key, events.self_ps, len(ops.table)),
        all_reduce_step=step[step >= 0],
        all_reduce_id=events.all_reduce_id[step >= 0],
        all_reduce_ps=events.end_ps[chosen] - events.start_ps[chosen],
        busy=busy,
        working=working,
        waiting=waiting,
        inside_waits=inside,
        device_times=_device_times_of_events(ops, times),
        traced=None if coding is None else traced_of_events(ops, coding.of_ops(ops.table)),
    )


def _span(start: Int64s, end: Int64s) -> tuple[int, int] | None:
    """From the first start to the last end."""
    return (int(start.min()), int(end.max())) if len(start) else None


def _step_cells(steps: Intervals, times: Int64s, key: NDArray[np.integer], self_ps: Int64s, rows: int) -> StepCells:
    """Sums of events by the step in which they start, and by op."""
    count = len(steps[0])
    if not count or not len(times):
        return _cells(no_ints(), no_ints(), no_ints(), no_ints())
    if is_sorted(times) and count * rows <= _DENSE * len(times):
        first = np.searchsorted(times, steps[0]).tolist()
        last = np.searchsorted(times, steps[1]).tolist()
        counts = np.stack([np.bincount(key[a:b], minlength=rows) for a, b in zip(first, last, strict=True)])
        keys = key.astype(np.int32)
        sums = np.stack([sum_by_key(keys[a:b], self_ps[a:b], rows) for a, b in zip(first, last, strict=True)])
        step, row = np.nonzero(counts)
        return _cells(step, row, sums[step, row], counts[step, row])
    step_of_event = place(times, *steps)
    inside = np.flatnonzero(step_of_event >= 0)
    code = step_of_event[inside] * rows + key[inside]
    codes = distinct(code)
    cell = np.searchsorted(codes, code)
    self_sums = sum_by_key(cell, self_ps[inside], len(codes))
    return _cells(codes // rows, codes % rows, self_sums, np.bincount(cell, minlength=len(codes)))


def _cells(step: _Indices, row: _Indices, self_ps: Int64s, count: _Indices) -> StepCells:
    return StepCells(step.astype(np.int32), row.astype(np.int32), self_ps, count.astype(np.int32))


def _device_times_of_events(ops: core_ops.CoreOps, times: Int64s) -> Int64s | None:
    """See `CoreSums.device_times`; None too where events are not in order on the trace's clock."""
    events, start, end = ops.events, ops.event_start_ps, ops.event_end_ps
    if len(start) < 2 or not is_sorted(start) or np.array_equal(events.start_ps, start):
        return None
    outer = _outer(end)
    own_start, own_end, device_start, device_end = (
        column[outer] for column in (start, end, events.start_ps, events.end_ps)
    )
    op = np.maximum(np.searchsorted(own_start, times, side="right") - 1, 0)
    after = np.minimum(op + 1, len(outer) - 1)
    inside: Bools = (times <= own_end[op]) | (after == op)
    return _device_times(
        times,
        np.where(inside, own_start[op], own_end[op]),
        np.where(inside, own_end[op], own_start[after]),
        np.where(inside, device_start[op], device_end[op]),
        np.where(inside, device_end[op], device_start[after]),
    )


def _outer(end: Int64s) -> NDArray[np.intp]:
    """The events, in order of start, that do not lie inside an earlier one."""
    latest = np.maximum.accumulate(end)
    return np.flatnonzero(np.append(True, end[1:] > latest[:-1]))

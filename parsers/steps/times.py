"""Where the time of one core's steps went: self time of its ops by step, part and class.

An op belongs to the step in which it starts; one that starts where a step ends belongs to the next step. (XProf lets
touching spans overlap, so it counts such ops for the earlier step: its first step gets them twice, its last one none.)

Ops are placed by the clock that steps are marked on; their durations are by the device's own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Floats, Int64s, Intervals, covered, distinct, is_sorted, place
from tpuprof.parsers.base.op_class import OP_CLASSES
from tpuprof.parsers.formats.xspace.core.api import sum_by_key
from tpuprof.parsers.ops.core_ops import CoreOps
from tpuprof.parsers.ops.roofline import WORK_COUNT, feeds, summed_rows, work_of
from tpuprof.parsers.steps.markers import CoreSteps

COMPUTE, INFEED, OUTFEED, HOST_TRANSFER, MEGACORE, ASYNC_DONE, SPARSE_CORE_WAIT = range(7)
PART_COUNT = 7

SPARSE_CORE_OUTFEED = 7
"""A part only on the way: the time of sending to an embedding core tells how long the core waits for it."""

_PARTS = {
    "infeed": INFEED,
    "outfeed": OUTFEED,
    "host send": HOST_TRANSFER,
    "host send-done": HOST_TRANSFER,
    "host recv": HOST_TRANSFER,
    "host recv-done": HOST_TRANSFER,
    "megacore fusion": MEGACORE,
    "async-done": ASYNC_DONE,
    "sparsecorev0 infeed": SPARSE_CORE_WAIT,
    "sparsecorev0 outfeed": SPARSE_CORE_OUTFEED,
}

INFEEDS = frozenset({"infeed", "sparsecorev0 infeed"})
"""HLO categories of ops that wait for input."""

_DENSE = 4
"""A table of steps by ops is the cheapest way to sum by step up to so many cells per event."""

_MOST_SLICES = 1 << 14
"""Up to so many steps it is cheaper to go step by step than to look up each event's step."""

SLOW_STEP = 1.15
"""A step is slow from this multiple of the median step on."""

_SLOW_OPS = 5


@dataclass(frozen=True, slots=True)
class SlowOp:
    """An op that took longer in a slow step than in the median step: by how much, on one core."""

    step: str
    op: str
    excess_ps: int


@dataclass(frozen=True, slots=True)
class CoreStepTimes:
    """Self time of one core by step and part.

    Attributes:
        steps: the core's steps.
        part_ps: int64[steps, PART_COUNT], columns COMPUTE, INFEED and so on.
        class_ps: int64[steps, len(OP_CLASSES)], the same time by class of op; the rest of the step is idle.
        input_ps: int64[steps], idle time in which the host waited for input or sent it.
        op_count: int64[steps], number of op events that start in each step.
        work, feed_work: float64[steps, WORK_COUNT], work of the ops that start in each step (`roofline.work_of`), and
            the part of it that infeed and outfeed ops do.
        all_reduce_step, all_reduce_id, all_reduce_ps: int64[k], one entry for each all-reduce event inside a step.
        slow_ops: the ops that the slowest step has more of than the median step, where it is slow.
    """

    steps: CoreSteps
    part_ps: Int64s
    class_ps: Int64s
    input_ps: Int64s
    op_count: Int64s
    work: Floats
    feed_work: Floats
    all_reduce_step: Int64s
    all_reduce_id: Int64s
    all_reduce_ps: Int64s
    slow_ops: tuple[SlowOp, ...]


def core_step_times(
    steps: CoreSteps,
    ops: CoreOps,
    waits: Intervals | None = None,
    busy: Intervals | None = None,
) -> CoreStepTimes:
    """Adds up the self time of a core's ops by step, part and class.

    Args:
        waits: disjoint intervals in order in which the host waited for input or sent it.
        busy: disjoint intervals in order in which the core ran an op; needed where there are waits.
    """
    events, times = ops.events, ops.event_start_ps
    parts = np.array([_PARTS.get(category or "", COMPUTE) for category in ops.table.category], np.int64)
    classes = np.array([OP_CLASSES.index(name) for name in ops.table.classes()], np.int64)
    pairs, kind_of_row = np.unique(parts * len(OP_CLASSES) + classes, return_inverse=True)
    by_kind = sum_by_step_and_kind(events.self_ps, times, kind_of_row.astype(np.int8)[events.key], len(pairs), steps)
    part_ps = np.zeros((len(steps), PART_COUNT + 1), np.int64)
    class_ps = np.zeros((len(steps), len(OP_CLASSES)), np.int64)
    for kind, pair in enumerate(pairs.tolist()):
        part_ps[:, pair // len(OP_CLASSES)] += by_kind[:, kind]
        class_ps[:, pair % len(OP_CLASSES)] += by_kind[:, kind]
    class_ps[:, OP_CLASSES.index("idle")] = np.maximum(steps.duration_ps - class_ps.sum(axis=1), 0)
    step = place(times[events.all_reduce], steps.start_ps, steps.end_ps)
    inside = step >= 0
    chosen = events.all_reduce[inside]
    work = work_of(ops.table)
    return CoreStepTimes(
        steps=steps,
        part_ps=_with_sparse_core_wait(part_ps),
        class_ps=class_ps,
        input_ps=np.minimum(_idle_within(steps, waits, busy), class_ps[:, OP_CLASSES.index("idle")]),
        op_count=_counts(times, steps),
        work=work_by_step(steps, ops, work),
        feed_work=work_by_step(steps, ops, np.where(feeds(ops.table)[:, None], work, np.nan)),
        all_reduce_step=step[inside],
        all_reduce_id=events.all_reduce_id[inside],
        all_reduce_ps=events.end_ps[chosen] - events.start_ps[chosen],
        slow_ops=_slow_ops(steps, ops),
    )


def device_durations(start_ps: Int64s, end_ps: Int64s, ops: CoreOps) -> Int64s:
    """int64[n]: how long spans on the trace's clock are by the device's clock, as far as the ops tell.

    The profiler maps device times to the host's clock anew every now and then, so that a step may seem a quarter longer
    or shorter than it is. An op has both times, so it tells the device's time at a border inside or near it.
    """
    own, events = end_ps - start_ps, ops.events
    if not len(own) or len(events.key) < 2 or not is_sorted(ops.event_start_ps):
        return own
    if np.array_equal(events.start_ps, ops.event_start_ps):
        return own
    duration = _device_time(end_ps, ops) - _device_time(start_ps, ops)
    out: Int64s = np.where(duration > 0, duration, own)
    return out


def on_device_clock(steps: CoreSteps, ops: CoreOps) -> CoreSteps:
    """Measures steps by the device's clock where only the ops have it, and not the steps' markers."""
    if not (steps.duration_ps == steps.end_ps - steps.start_ps).all():
        return steps
    return replace(steps, duration_ps=device_durations(steps.start_ps, steps.end_ps, ops))


def _device_time(times: Int64s, ops: CoreOps) -> Int64s:
    """Device times of host times: from the op under way, else between the ends of the ops around."""
    outer = _outer(ops.event_end_ps)
    start, end = ops.event_start_ps[outer], ops.event_end_ps[outer]
    device_start, device_end = ops.events.start_ps[outer], ops.events.end_ps[outer]
    op = np.maximum(np.searchsorted(start, times, side="right") - 1, 0)
    after = np.minimum(op + 1, len(start) - 1)
    inside = (times <= end[op]) | (after == op)
    left, left_device = np.where(inside, start[op], end[op]), np.where(inside, device_start[op], device_end[op])
    right = np.where(inside, end[op], start[after])
    right_device = np.where(inside, device_end[op], device_start[after])
    length = np.maximum(right - left, 1)
    share = np.clip((times - left) / length, 0.0, 1.0)
    beyond = np.where(times > right, times - right, np.where(times < left, times - left, 0))  # outside all ops
    out: Int64s = left_device + np.rint(share * (right_device - left_device)).astype(np.int64) + beyond
    return out


def _outer(end: Int64s) -> NDArray[np.intp]:
    """The events, in order of start, that do not lie inside an earlier one."""
    latest = np.maximum.accumulate(end)
    return np.flatnonzero(np.append(True, end[1:] > latest[:-1]))


def _with_sparse_core_wait(part_ps: Int64s) -> Int64s:
    """Splits the infeed from an embedding core into waiting and transforming.

    Sending to that core is the same transformation as receiving from it. So the time that receiving takes beyond that
    is waiting (`BreakdownSparseCoreV0Infeed`); the rest is compute.
    """
    out = part_ps[:, :PART_COUNT].copy()
    wait = np.maximum(part_ps[:, SPARSE_CORE_WAIT] - part_ps[:, SPARSE_CORE_OUTFEED], 0)
    out[:, COMPUTE] += part_ps[:, SPARSE_CORE_WAIT] - wait + part_ps[:, SPARSE_CORE_OUTFEED]
    out[:, SPARSE_CORE_WAIT] = wait
    return out


def _idle_within(steps: CoreSteps, waits: Intervals | None, busy: Intervals | None) -> Int64s:
    """int64[steps]: time of each step inside `waits` in which the core ran no op, by the device's clock."""
    if waits is None or busy is None or not len(waits[0]) or not len(steps):
        return np.zeros(len(steps), np.int64)
    borders = distinct(np.concatenate([*waits, steps.start_ps, steps.end_ps]))  # no stretch between two crosses a step
    middle = borders[:-1]
    within = place(middle, *waits) >= 0
    step = place(middle, steps.start_ps, steps.end_ps)
    idle = np.diff(borders) - np.diff(covered(borders, *busy))
    chosen = within & (step >= 0)
    on_trace = sum_by_key(step[chosen], idle[chosen], len(steps))
    by_device = on_trace * (steps.duration_ps / np.maximum(steps.end_ps - steps.start_ps, 1))
    out: Int64s = np.rint(by_device).astype(np.int64)
    return out


def _counts(times: Int64s, steps: CoreSteps) -> Int64s:
    """int64[steps]: how many times lie in each step."""
    if is_sorted(times):
        return np.searchsorted(times, steps.end_ps).astype(np.int64) - np.searchsorted(times, steps.start_ps)
    step = place(times, steps.start_ps, steps.end_ps)
    return np.bincount(step[step >= 0], minlength=len(steps)).astype(np.int64)


def sum_by_step_and_kind(
    values: Int64s, times: Int64s, kind: NDArray[np.integer], kinds: int, steps: CoreSteps
) -> Int64s:
    """int64[steps, kinds]: sums of the values of each kind whose time lies in each step."""
    if not len(values) or not len(steps) or not kinds:
        return np.zeros((len(steps), kinds), np.int64)
    if not is_sorted(times) or len(steps) > _MOST_SLICES:
        step = place(times, steps.start_ps, steps.end_ps)
        inside = step >= 0
        cells = step[inside] * kinds + kind[inside]
        return sum_by_key(cells, values[inside], len(steps) * kinds).reshape(len(steps), kinds)
    first, last = np.searchsorted(times, steps.start_ps), np.searchsorted(times, steps.end_ps)
    keys = kind.astype(np.int32)
    return np.stack(
        [sum_by_key(keys[a:b], values[a:b], kinds) for a, b in zip(first.tolist(), last.tolist(), strict=True)]
    )


def _slow_ops(steps: CoreSteps, ops: CoreOps) -> tuple[SlowOp, ...]:
    """The ops that the slowest step has more of than the median step, where it is slow."""
    if len(steps) < 3:
        return ()
    order = np.argsort(steps.duration_ps, kind="stable")
    slowest, middle = int(order[-1]), int(order[len(order) // 2])
    if steps.duration_ps[slowest] < SLOW_STEP * steps.duration_ps[middle]:
        return ()
    more = _op_times(steps, ops, slowest) - _op_times(steps, ops, middle)
    longest = np.argsort(-more, kind="stable")[:_SLOW_OPS]
    name = steps.names[slowest]
    return tuple(SlowOp(name, ops.table.name[row], int(more[row])) for row in longest.tolist() if more[row] > 0)


def _op_times(steps: CoreSteps, ops: CoreOps, step: int) -> Int64s:
    """int64[ops]: self time of each op in one step."""
    inside = (ops.event_start_ps >= steps.start_ps[step]) & (ops.event_start_ps < steps.end_ps[step])
    return sum_by_key(ops.events.key[inside], ops.events.self_ps[inside], len(ops.table))


def work_by_step(steps: CoreSteps, ops: CoreOps, work: Floats) -> Floats:
    """float64[steps, WORK_COUNT]: work of the ops that start in each step; NaN where none of them has a count.

    Args:
        work: float64[ops, WORK_COUNT], work of all occurrences of each op. Each occurrence counts with their mean.
    """
    key, times = ops.events.key, ops.event_start_ps
    known: Bools = np.isfinite(work)
    out = np.full((len(steps), WORK_COUNT), np.nan)
    rows = np.logical_or.reduce(known, axis=1)
    if not len(steps) or not len(key) or not rows.any():
        return out
    once = work / np.maximum(ops.table.occurrences, 1)[:, None]
    if is_sorted(times) and len(steps) * len(once) <= _DENSE * len(key):
        both = np.concatenate([np.where(known, once, 0.0), known], axis=1)
        first, last = np.searchsorted(times, steps.start_ps), np.searchsorted(times, steps.end_ps)
        for step in range(len(steps)):  # a slice of the events each: one pass over them, and a product as large as it
            sums = np.bincount(key[first[step] : last[step]], minlength=len(once)).astype(np.float64) @ both
            out[step] = np.where(sums[WORK_COUNT:] > 0, sums[:WORK_COUNT], np.nan)
        return out
    step_of_event = place(times, steps.start_ps, steps.end_ps)
    chosen = np.flatnonzero((step_of_event >= 0) & rows[key])
    step_of_event, key = step_of_event[chosen], key[chosen]
    columns = [summed_rows(once[key, column, None], step_of_event, len(steps)) for column in range(WORK_COUNT)]
    return np.concatenate(columns, axis=1)

"""Where the time of one core's steps went: self time of its ops by step, part and class.

An op belongs to the step in which it starts; one that starts where a step ends belongs to the next step. (XProf lets
touching spans overlap, so it counts such ops for the earlier step: its first step gets them twice, its last one none.)

Ops are placed by the clock that steps are marked on; their durations are by the device's own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpuprof.parsers.base import intervals
from tpuprof.parsers.base.intervals import Bools, Floats, Int64s, Intervals, no_ints
from tpuprof.parsers.base.op_class import OP_CLASSES
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.formats.hlo.shapes import shapes_in
from tpuprof.parsers.formats.thread_pool import ThreadPool
from tpuprof.parsers.formats.xspace.core.api import sum_by_key
from tpuprof.parsers.formats.xspace.core.pass_sums import StepCells
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Plane
from tpuprof.parsers.ops.core.sums import CoreSums, core_sums
from tpuprof.parsers.ops.core.traced import OpRoles
from tpuprof.parsers.ops.device import STAGES, Peaks, kind_by_name
from tpuprof.parsers.ops.roofline import WORK_COUNT, feeds, work_of
from tpuprof.parsers.ops.table import OpTable
from tpuprof.parsers.steps.accounts.causes import IdleCauses
from tpuprof.parsers.steps.accounts.core import core_account
from tpuprof.parsers.steps.accounts.owners import OWNERS, Modules, op_owners
from tpuprof.parsers.steps.boundaries.markers import CoreSteps, ends_of
from tpuprof.parsers.steps.boundaries.recorded import Pieces, Recorded, device_durations, recorded_runs
from tpuprof.parsers.steps.boundaries.runs import ModuleRuns, module_runs
from tpuprof.parsers.steps.boundaries.unrecorded import runs_on_all

COMPUTE, INFEED, OUTFEED, HOST_TRANSFER, MEGACORE, ASYNC_DONE, SPARSE_CORE_WAIT = range(7)
PART_COUNT = 7

SPARSE_CORE_OUTFEED = 7
"""An intermediate part: the time of sending to an embedding core is how long the core waits for it."""

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

SLOW_FACTOR = 1.15
"""A step is slow from this multiple of the median step on."""

_SLOW_OPS = 5

MOST_COLLECTIVES = 64
"""How many collectives are kept by step; the rest count together."""


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
        collective_names, collective_ps: the collectives with most time, and int64[steps, k], their self time by step;
            that of all others together stands under an empty name.
        hops: int64[3, k], of those that send to a next stage: the shortest transfer, that times how often it ends in a
            step, and its bytes; 0 for others, and for what begins a transfer.
        slow_ops: the ops that the slowest step has more of than the median step, where it is slow.
        owner_ps, between_ps: see `core_account`.
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
    collective_names: tuple[str, ...]
    collective_ps: Int64s
    hops: Int64s
    slow_ops: tuple[SlowOp, ...]
    owner_ps: Int64s
    between_ps: Int64s


def core_step_times(
    steps: CoreSteps,
    sums: CoreSums,
    waits: Intervals | None = None,
    peaks: Peaks | None = None,
    causes: IdleCauses | None = None,
    modules: Modules = tuple,
    lost: Intervals | None = None,
) -> CoreStepTimes:
    """Adds up the self time of a core's ops by step, part and class, and divides the steps among owners.

    Args:
        sums: the core's ops, with cells of these steps.
        waits: disjoint intervals in order in which the host waited for input or sent it.
        peaks: the peaks of the core, as far as the profile has them.
        causes: what is known to keep the core from running ops.
        modules: see `op_owners`.
        lost: when programs ran whose ops were not recorded.
    """
    table, cells = sums.table, sums.cells
    parts = np.array([_PARTS.get(category or "", COMPUTE) for category in table.category], np.int64)
    classes = np.array([OP_CLASSES.index(name) for name in table.classes()], np.int64)
    owners = op_owners(table, peaks or Peaks(), modules)
    collectives, column = _collectives(table, owners.are("collective_transfer"))
    kind = intervals.numbered(parts, classes, owners.owner, column)
    by_kind = np.ascontiguousarray(cells.by_kind(kind, int(kind.max(initial=0)) + 1, len(steps)).T)
    class_ps = _together(by_kind, kind, classes, len(OP_CLASSES))
    class_ps[:, OP_CLASSES.index("idle")] = np.maximum(steps.duration_ps - class_ps.sum(axis=1), 0)
    both = _work_by_step(cells, table, len(steps))
    of_ops = _together(by_kind, kind, owners.owner, len(OWNERS))
    none = no_ints(), no_ints()
    ideal = cells.weighted(owners.ideal, len(steps))
    account = core_account(steps, sums.busy, of_ops, ideal, causes or IdleCauses(), lost or none)
    return CoreStepTimes(
        steps=steps,
        part_ps=_with_sparse_core_wait(_together(by_kind, kind, parts, PART_COUNT + 1)),
        class_ps=class_ps,
        input_ps=np.minimum(_idle_within(steps, waits, sums.busy), class_ps[:, OP_CLASSES.index("idle")]),
        op_count=cells.work(np.ones((len(table), 1)), len(steps))[:, 0].astype(np.int64),
        work=both[:, :WORK_COUNT],
        feed_work=both[:, WORK_COUNT:],
        all_reduce_step=sums.all_reduce_step,
        all_reduce_id=sums.all_reduce_id,
        all_reduce_ps=sums.all_reduce_ps,
        collective_names=collectives,
        collective_ps=_together(by_kind, kind, column, len(collectives)),
        hops=_hops(table, cells, collectives, column, len(steps)),
        slow_ops=_slow_ops(steps, sums),
        owner_ps=account[0],
        between_ps=account[1],
    )


def _together(by_kind: Int64s, kind: Int64s, group: Int64s, groups: int) -> Int64s:
    """int64[steps, groups]: times by step and kind added up by the group of each op; below 0 it is in none.

    Args:
        by_kind: int64[kinds, steps]; kind, group: int64[ops]. All ops of a kind are of one group.
    """
    out = np.zeros((groups, by_kind.shape[1]), np.int64)
    of_kind = dict(zip(kind.tolist(), group.tolist(), strict=True))
    for each, of in of_kind.items():
        if of >= 0:
            out[of] += by_kind[each]
    return np.ascontiguousarray(out.T)


def _collectives(table: OpTable, are_collective: Bools) -> tuple[tuple[str, ...], Int64s]:
    """See `CoreStepTimes.collective_names`, and the column of each op there; -1 for ops that are none."""
    rows = np.flatnonzero(are_collective)
    rows = rows[np.argsort(-table.self_ps[rows], kind="stable")]
    named = rows[:MOST_COLLECTIVES]
    column = np.full(len(table), -1, np.int64)
    column[rows] = len(named)
    column[named] = np.arange(len(named))
    return (*(table.name[row] for row in named.tolist()), *[""] * (len(rows) > len(named))), column


def _hops(table: OpTable, cells: StepCells, names: Sequence[str], column: Int64s, steps: int) -> Int64s:
    """See `CoreStepTimes.hops`."""
    out = np.zeros((3, len(names)), np.int64)
    kinds = [(row, table.category[row] or "") for row in np.flatnonzero(column >= 0).tolist() if names[column[row]]]
    rows = [
        row for row, kind in kinds if STAGES.match(kind_by_name(kind, table.name[row])) and not _BEGINS.search(kind)
    ]
    occurrences = cells.by_op(len(table), np.ones(steps, np.bool_))[1] if rows else no_ints()
    for row in rows:
        often = int(occurrences[row]) / max(steps, 1)
        sizes = [found.shape.unpadded_bytes or 0 for found in shapes_in(table.expression(row))]
        shortest = max(int(table.minimum_ps[row]), 1)
        out[:, column[row]] = shortest, round(shortest * often), max(sizes, default=0)
    return out


_BEGINS = pattern(r"-start$|^(send|recv)$")
"""Categories of ops that begin a transfer, and wait for none."""


STEADY = 0.9
"""A first or last step is cut if it has less than this share of the others' ops and time."""

_LEAST_STEPS_TO_TELL = 4


def cut_steps(op_count: Int64s, duration_ps: Int64s) -> list[int]:
    """Which of the first and the last step the capture cut into: it has fewer ops and less time than all others.

    None where the other steps do not have nearly the same number of ops.

    Args:
        op_count, duration_ps: int64[steps].
    """
    if len(op_count) < _LEAST_STEPS_TO_TELL:
        return []
    ops, time = (STEADY * np.sort(of)[len(of) // 2] for of in (op_count, duration_ps))
    if not ops or int(op_count[1:-1].min()) < ops:
        return []
    return [step for step in (0, len(op_count) - 1) if op_count[step] < ops and duration_ps[step] < time]


def recorded_core(
    plane: Plane, runs: ModuleRuns, steps: CoreSteps, on_chunk: ChunkDone | None = None, roles: OpRoles | None = None
) -> tuple[CoreSums, Recorded]:
    """The ops of a core by piece (see `core_sums`), and what of its runs was recorded."""
    pieces = Pieces.of(steps, runs)
    sums = core_sums(plane, (pieces.times[:-1], pieces.times[1:]), pieces.times, on_chunk, roles)
    return sums, recorded_runs(runs, pieces, sums.cells, steps, sums.device_times, sums.table)


def recorded_on_all(planes: Sequence[Plane], pool: ThreadPool) -> list[tuple[CoreSums, Recorded]]:
    """The same of the cores of a host, where nothing is asked of steps."""
    runs, none = runs_on_all(planes, list(map(module_runs, planes))), ends_of(no_ints())

    def of_core(core: int) -> tuple[CoreSums, Recorded]:
        return recorded_core(planes[core], runs[core], none)

    return pool.map(of_core, range(len(planes)))


def on_device_clock(steps: CoreSteps, times: Int64s, device_times: Int64s | None) -> CoreSteps:
    """Measures steps by the device's clock where only the ops have it, and not the steps' markers."""
    if not (steps.duration_ps == steps.end_ps - steps.start_ps).all():
        return steps
    return replace(steps, duration_ps=device_durations(steps.start_ps, steps.end_ps, times, device_times))


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


def _idle_within(steps: CoreSteps, waits: Intervals | None, busy: Intervals) -> Int64s:
    """int64[steps]: time of each step inside `waits` in which the core ran no op, by the device's clock."""
    if waits is None or not len(waits[0]) or not len(steps):
        return np.zeros(len(steps), np.int64)
    # no stretch between two crosses a step
    borders = intervals.distinct(np.concatenate([*waits, steps.start_ps, steps.end_ps]))
    middle = borders[:-1]
    within = intervals.interval_index(middle, *waits) >= 0
    step = intervals.interval_index(middle, steps.start_ps, steps.end_ps)
    idle = np.diff(borders) - np.diff(intervals.covered(borders, *busy))
    chosen = within & (step >= 0)
    on_trace = sum_by_key(step[chosen], idle[chosen], len(steps))
    by_device = on_trace * (steps.duration_ps / np.maximum(steps.end_ps - steps.start_ps, 1))
    out: Int64s = np.rint(by_device).astype(np.int64)
    return out


def _slow_ops(steps: CoreSteps, sums: CoreSums) -> tuple[SlowOp, ...]:
    """The ops that the slowest step has more of than the median step, where it is slow."""
    if len(steps) < 3:
        return ()
    order = np.argsort(steps.duration_ps, kind="stable")
    slowest, middle = int(order[-1]), int(order[len(order) // 2])
    if steps.duration_ps[slowest] < SLOW_FACTOR * steps.duration_ps[middle]:
        return ()
    chosen = (np.arange(len(steps)) == step for step in (slowest, middle))
    more = np.subtract(*(sums.cells.by_op(len(sums.table), step)[0] for step in chosen))
    longest = np.argsort(-more, kind="stable")[:_SLOW_OPS]
    name = steps.names[slowest]
    return tuple(SlowOp(name, sums.table.name[row], int(more[row])) for row in longest.tolist() if more[row] > 0)


def _work_by_step(cells: StepCells, table: OpTable, steps: int) -> Floats:
    """float64[steps, 2 * WORK_COUNT]: `CoreStepTimes.work` and `feed_work`; NaN where none of the ops has a count.

    Each occurrence of an op counts with the mean of all.
    """
    work = work_of(table)
    work = np.concatenate([work, np.where(feeds(table)[:, None], work, np.nan)], axis=1)
    known = np.isfinite(work)
    once = np.where(known, work, 0.0) / np.maximum(table.occurrences, 1)[:, None]
    columns, out = np.flatnonzero(known.any(axis=0)), np.full((steps, work.shape[1]), np.nan)
    both = cells.work(np.concatenate([known[:, columns], once[:, columns]], axis=1), steps)
    out[:, columns] = np.where(both[:, : len(columns)] > 0, both[:, len(columns) :], np.nan)
    return out

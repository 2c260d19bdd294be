"""Steps: where one begins and ends on each core, and where its time went.

Markers are the events of a core's `Steps` line. Where no core has one, steps are inferred: a step is the time from one
start of the busiest HLO module to its next start. Steps of several cores are matched by name, and a step that a core
lacks is left out, as XProf does.

An op belongs to the step in which it starts; one that starts where a step ends belongs to the next step. (XProf lets
touching spans overlap, so it counts such ops for the earlier step: its first step gets them twice, its last one none.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.intervals import Int64s, is_sorted, place
from tpuprof.parsers.opstats import MODULES_LINE, STEPS_LINE, CoreOps, event_spans
from tpuprof.parsers.pages.overview_page import StepBreakdown, StepSource
from tpuprof.parsers.roofline import WORK_COUNT, feeds, work_of
from tpuprof.parsers.xspace.core import sum_by_key
from tpuprof.parsers.xspace.trace import Plane

COMPUTE, INFEED, OUTFEED, HOST_TRANSFER, MEGACORE = range(5)
PART_COUNT = 5

_PARTS = {
    "infeed": INFEED,
    "outfeed": OUTFEED,
    "host send": HOST_TRANSFER,
    "host send-done": HOST_TRANSFER,
    "host recv": HOST_TRANSFER,
    "host recv-done": HOST_TRANSFER,
    "megacore fusion": MEGACORE,
}

_DENSE = 4
"""Cells of a table of steps by ops, an event, up to which such a table is the cheapest way to sum by step."""

MINIMUM_RUNS = 3
"""Runs of a module from which on its periods are taken as steps."""


@dataclass(frozen=True, slots=True)
class CoreSteps:
    """The steps of one core, in order of time, not overlapping.

    Attributes:
        names: one a step.
        start_ps, end_ps: int64[n], on the trace's clock.
    """

    names: tuple[str, ...]
    start_ps: Int64s
    end_ps: Int64s

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True, slots=True)
class ModuleRuns:
    """The module events of one core: `name[i]` ran from `start_ps[i]` to `end_ps[i]`, in order of start."""

    name: tuple[str, ...]
    start_ps: Int64s
    end_ps: Int64s


@dataclass(frozen=True, slots=True)
class CoreStepTimes:
    """Self time of one core by step and part.

    Attributes:
        steps: the core's steps.
        part_ps: int64[steps, PART_COUNT], columns COMPUTE, INFEED, OUTFEED, HOST_TRANSFER, MEGACORE.
        work, feed_work: float64[steps, WORK_COUNT], what the ops that start in each step do (`roofline.work_of`), and
            what of it infeed and outfeed ops do.
        all_reduce_step, all_reduce_id, all_reduce_ps: int64[k], one entry for each all-reduce event inside a step.
    """

    steps: CoreSteps
    part_ps: Int64s
    work: NDArray[np.float64]
    feed_work: NDArray[np.float64]
    all_reduce_step: Int64s
    all_reduce_id: Int64s
    all_reduce_ps: Int64s


def _named_spans(plane: Plane, line_name: str) -> tuple[list[str], Int64s, Int64s]:
    """Names and spans of the events of a line (several lines of one name are taken together), in order of start."""
    names: list[str] = []
    starts, ends = [], []
    for line in plane.lines:
        if line.name != line_name:
            continue
        events = line.events()
        start, end = event_spans(line, events)
        ids = events.metadata_id.tolist()
        named = {number: _event_name(plane, number) for number in set(ids)}
        names += [named[number] for number in ids]
        starts.append(start)
        ends.append(end)
    if not starts:
        return [], np.zeros(0, np.int64), np.zeros(0, np.int64)
    start, end = np.concatenate(starts), np.concatenate(ends)
    order = np.argsort(start, kind="stable")
    return [names[at] for at in order], start[order], end[order]


def _event_name(plane: Plane, metadata_id: int) -> str:
    """Name of an event; its number where the profile has lost or never had its metadata."""
    row = plane.event_metadata.row(metadata_id)
    return (plane.event_metadata.name(row) if row is not None else "") or f"event {metadata_id}"


def marked_steps(plane: Plane) -> CoreSteps:
    """The steps that a core's `Steps` line marks; none where it has no such line or it is empty."""
    names, start, end = _named_spans(plane, STEPS_LINE)
    kept = np.flatnonzero(end > start)
    start, end = start[kept], end[kept]
    if len(end) > 1:  # overlapping markers would count an op twice
        end = np.minimum(end, np.append(start[1:], end[-1]))
        filled = end > start  # of markers with one start the last is kept
        kept, start, end = kept[filled], start[filled], end[filled]
    return CoreSteps(tuple(names[at] for at in kept), start, end)


def module_runs(plane: Plane) -> ModuleRuns:
    """The runs of HLO modules on a core."""
    names, start, end = _named_spans(plane, MODULES_LINE)
    return ModuleRuns(tuple(names), start, end)


def busiest_module(runs: Sequence[ModuleRuns]) -> tuple[str, float] | None:
    """The module with the most time over all cores that ran often enough on each, and its share of module time."""
    totals: dict[str, int] = {}
    counts: dict[str, list[int]] = {}
    for at, core in enumerate(runs):
        for name, duration in zip(core.name, (core.end_ps - core.start_ps).tolist(), strict=True):
            totals[name] = totals.get(name, 0) + duration
            counts.setdefault(name, [0] * len(runs))[at] += 1
    often = [name for name, count in counts.items() if min(count) >= MINIMUM_RUNS]
    if not often:
        return None
    best = max(often, key=lambda name: (totals[name], name))
    return best, totals[best] / max(1, sum(totals.values()))


def inferred_steps(runs: ModuleRuns, module: str) -> CoreSteps:
    """Periods of a module on one core: from each start to the next. The last run has no period and is left out."""
    start = runs.start_ps[[at for at, name in enumerate(runs.name) if name == module]]
    start = start[np.append(True, np.diff(start) > 0)] if len(start) else start
    if len(start) < 2:
        return CoreSteps((), start[:0], start[:0])
    return CoreSteps(tuple(str(n) for n in range(len(start) - 1)), start[:-1], start[1:])


def core_step_times(steps: CoreSteps, ops: CoreOps) -> CoreStepTimes:
    """Adds up the self time of a core's ops by step and part."""
    count = len(steps)
    events = ops.events
    part_of_row = np.array([_PARTS.get(category or "", COMPUTE) for category in ops.table.category], np.int64)
    part_ps = np.zeros((count, PART_COUNT), np.int64)
    part_ps[:, COMPUTE] = sum_by_step(events.self_ps, events.start_ps, steps)
    special = np.flatnonzero((part_of_row != COMPUTE)[events.key]) if part_of_row.any() else np.zeros(0, np.intp)
    step = place(events.start_ps[special], steps.start_ps, steps.end_ps)
    special, step = special[step >= 0], step[step >= 0]
    cells = step * PART_COUNT + part_of_row[events.key[special]]
    others = sum_by_key(cells, events.self_ps[special], count * PART_COUNT).reshape(count, PART_COUNT)
    part_ps[:, COMPUTE] -= others.sum(axis=1)
    step = place(events.start_ps[events.all_reduce], steps.start_ps, steps.end_ps)
    inside = step >= 0
    chosen = events.all_reduce[inside]
    return CoreStepTimes(
        steps=steps,
        part_ps=part_ps + others,
        work=work_by_step(steps, ops, work_of(ops.table)),
        feed_work=work_by_step(steps, ops, np.where(feeds(ops.table)[:, None], work_of(ops.table), np.nan)),
        all_reduce_step=step[inside],
        all_reduce_id=events.all_reduce_id[inside],
        all_reduce_ps=events.end_ps[chosen] - events.start_ps[chosen],
    )


def work_by_step(steps: CoreSteps, ops: CoreOps, work: NDArray[np.float64]) -> NDArray[np.float64]:
    """float64[steps, WORK_COUNT]: work of the ops that start in each step; NaN where none of them has a count.

    Args:
        work: float64[ops, WORK_COUNT], over all occurrences of each op. An occurrence counts with the mean of them.
    """
    key, times = ops.events.key, ops.events.start_ps
    known: NDArray[np.bool_] = np.isfinite(work)
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
    at = place(times, steps.start_ps, steps.end_ps)
    chosen = np.flatnonzero((at >= 0) & rows[key])
    at, key = at[chosen], key[chosen]
    for column in range(WORK_COUNT):
        counted = known[key, column]
        sums = np.bincount(at[counted], once[key[counted], column], minlength=len(steps))
        out[:, column] = np.where(np.bincount(at[counted], minlength=len(steps)) > 0, sums, np.nan)
    return out


def sum_by_step(values: Int64s, times: Int64s, steps: CoreSteps) -> Int64s:
    """Sum of the values whose time lies in each step. Times in order cost one pass, not a search each."""
    if not len(steps) or not len(values):
        return np.zeros(len(steps), np.int64)
    if not is_sorted(times):
        at = place(times, steps.start_ps, steps.end_ps)
        return sum_by_key(at[at >= 0], values[at >= 0], len(steps))
    first, last = np.searchsorted(times, steps.start_ps), np.searchsorted(times, steps.end_ps)
    end = len(values)
    borders = np.stack([first, last], axis=1).reshape(-1)  # sums of [first, last) and, thrown away, of the gaps
    sums = np.add.reduceat(values, np.minimum(borders, end - 1))[::2]
    sums += np.where((last == end) & (first < end - 1), values[-1], 0)  # a border cannot lie behind the last value
    return np.where(last > first, sums, 0)


@dataclass(frozen=True, slots=True)
class StepGrid:
    """The steps that all cores share.

    Attributes:
        names: one a step.
        source: markers or inferred periods.
        start_ps: int64[steps], the earliest core's start.
        duration_ps: int64[cores, steps].
        part_ps: int64[cores, steps, PART_COUNT].
        work, feed_work: float64[cores, steps, WORK_COUNT].
        all_reduce: for each core the step, id and duration of its all-reduces, as in `CoreStepTimes`.
        dropped: steps of some core that another one lacks.
    """

    names: tuple[str, ...]
    source: StepSource
    start_ps: Int64s
    duration_ps: Int64s
    part_ps: Int64s
    work: NDArray[np.float64]
    feed_work: NDArray[np.float64]
    all_reduce: tuple[tuple[Int64s, Int64s, Int64s], ...]
    dropped: int

    def __len__(self) -> int:
        return len(self.names)

    @property
    def longest_ps(self) -> Int64s:
        """int64[steps]: duration on the slowest core."""
        longest: Int64s = self.duration_ps.max(axis=0)
        return longest


def align(cores: Sequence[CoreStepTimes], source: StepSource) -> StepGrid | None:
    """Matches the steps of several cores, by name where each core's names are unique, else in lock step from the first.

    Returns:
        None where there is nothing to match: no core, or no step on all of them.
    """
    if not cores or any(not len(core.steps) for core in cores):
        return None
    unique = all(len(set(core.steps.names)) == len(core.steps.names) for core in cores)
    if unique:
        shared = set(cores[0].steps.names).intersection(*(core.steps.names for core in cores[1:]))
        names = tuple(name for name in cores[0].steps.names if name in shared)
        where = [{name: at for at, name in enumerate(core.steps.names)} for core in cores]
        index = np.array([[at[name] for name in names] for at in where], np.int64).reshape(len(cores), len(names))
        seen = len(set().union(*(core.steps.names for core in cores)))
    else:
        count = min(len(core.steps) for core in cores)
        names = cores[0].steps.names[:count]
        index = np.tile(np.arange(count), (len(cores), 1))
        seen = max(len(core.steps) for core in cores)
    if not names:
        return None
    return StepGrid(
        names=names,
        source=source,
        start_ps=np.min([core.steps.start_ps[at] for core, at in zip(cores, index, strict=True)], axis=0),
        duration_ps=np.stack(
            [(core.steps.end_ps - core.steps.start_ps)[at] for core, at in zip(cores, index, strict=True)]
        ),
        part_ps=np.stack([core.part_ps[at] for core, at in zip(cores, index, strict=True)]),
        work=np.stack([core.work[at] for core, at in zip(cores, index, strict=True)]),
        feed_work=np.stack([core.feed_work[at] for core, at in zip(cores, index, strict=True)]),
        all_reduce=tuple(_renumber(core, at) for core, at in zip(cores, index, strict=True)),
        dropped=seen - len(names),
    )


def _renumber(core: CoreStepTimes, index: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """All-reduces of a core with the steps' numbers in the grid; those of dropped steps are left out."""
    number = np.full(len(core.steps), -1, np.int64)
    number[index] = np.arange(len(index))
    step = number[core.all_reduce_step]
    kept = step >= 0
    return step[kept], core.all_reduce_id[kept], core.all_reduce_ps[kept]


def breakdowns(grid: StepGrid) -> tuple[StepBreakdown, ...]:
    """Where each step's time went over all cores.

    XProf's formulas (`ComputeTpuPerStepDataAcrossCores`), every core with the slowest core's step time: infeed is the
    core that waits most, compute the least busy core, outfeed the mean, host transfer the most, idle what is left of
    the step (never below 0). All-reduces: of the core with the largest sum, the shortest duration of each over all
    cores is its compute, the rest synchronisation.
    """
    step = grid.longest_ps.astype(np.float64)
    infeed, outfeed = grid.part_ps[:, :, INFEED], grid.part_ps[:, :, OUTFEED]
    compute = grid.part_ps[:, :, COMPUTE].min(axis=0).astype(np.float64)
    slowest_infeed = infeed.max(axis=0).astype(np.float64)
    mean_outfeed = outfeed.mean(axis=0)
    idle = np.maximum(0.0, step - compute - slowest_infeed - mean_outfeed)
    percent = 100.0 * infeed / step
    reduce_compute, reduce_sync = _all_reduce(grid)
    columns = (
        compute,
        grid.part_ps[:, :, COMPUTE].mean(axis=0),
        slowest_infeed,
        mean_outfeed,
        idle,
        grid.part_ps[:, :, HOST_TRANSFER].max(axis=0).astype(np.float64),
        reduce_compute,
        reduce_sync,
        percent.mean(axis=0),
        percent.min(axis=0),
        percent.max(axis=0),
    )
    return tuple(map(StepBreakdown, *(column.tolist() for column in columns)))


def _all_reduce(grid: StepGrid) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute and synchronisation time of all-reduces in each step, of the core whose all-reduces take longest."""
    count, cores = len(grid), len(grid.all_reduce)
    core = np.repeat(np.arange(cores), [len(step) for step, _, _ in grid.all_reduce])
    step, ids, duration = (np.concatenate([part[at] for part in grid.all_reduce]) for at in range(3))
    if not len(step):
        return np.zeros(count), np.zeros(count)
    order = np.lexsort((ids, step))
    core, step, ids, duration = core[order], step[order], ids[order], duration[order]
    opens = np.append(True, (step[1:] != step[:-1]) | (ids[1:] != ids[:-1]))
    shortest = np.minimum.reduceat(duration, np.flatnonzero(opens))[np.cumsum(opens) - 1]
    cell = core * count + step
    compute = sum_by_key(cell, shortest, cores * count).reshape(cores, count)
    total = sum_by_key(cell, duration, cores * count).reshape(cores, count)
    most, every = total.argmax(axis=0), np.arange(count)
    return compute[most, every].astype(np.float64), (total - compute)[most, every].astype(np.float64)

"""Which runs of modules have their ops in the profile.

A compiled program runs the same ops each time. So a run is a hole in the record, neither idle nor busy, where

- no op starts in it, although its module's other runs have ops; or no run of the module has any, and together they take
  1 % of the time of all runs or more (a small module may have no op at all);
- it lacks ops that all quiet runs of its module have, those with hardly any time without an op, or has them less often
  than any of these. And it has more time without an op than they have: 1 % of the run or more, and half of what the
  missing ops take at least.

Neither suffices alone: a branch that is not taken, or a loop that ends sooner, runs fewer ops but leaves no silence; a
stall leaves silence, but no op is missing. Where ops end amid a run, and where only collectives are missing, both hold.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tpuprof.parsers.base.intervals import Bools, Int64s, Intervals, distinct, interval_index, opens
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.xspace.core.api import min_by_key, sum_by_key
from tpuprof.parsers.formats.xspace.core.types import StepCells
from tpuprof.parsers.ops.core.sums import CoreSums, ModuleHoles
from tpuprof.parsers.steps.boundaries.markers import CoreSteps
from tpuprof.parsers.steps.boundaries.runs import ModuleRuns

LEAST_LOST = 0.01
"""A run, or a step, lost ops where these took at least this share of its time."""

_LONGEST_RUN = 1.25
"""A run that takes longer than this multiple of a step is of several."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """A core's time, cut where its steps and its runs of modules begin and end.

    Markers of steps and events of runs need not agree to the nanosecond, and their clocks may drift apart. A run that
    begins a little before the marker of its step is of that step as a whole.

    Attributes:
        times: int64[n + 1], the borders on the trace's clock.
        step, run: int64[n], the step and the run that hold each piece; -1 for none.
    """

    times: Int64s
    step: Int64s
    run: Int64s

    @classmethod
    def of(cls, steps: CoreSteps, runs: ModuleRuns) -> Pieces:
        times = distinct(np.concatenate([steps.start_ps, steps.end_ps, runs.start_ps, runs.end_ps]))
        step, run = (interval_index(times[:-1], of.start_ps, of.end_ps) for of in (steps, runs))
        own = np.append(_steps_of_runs(steps, runs), -1)[run]
        return cls(times, np.where(own >= 0, own, step), run)

    @property
    def spans(self) -> Intervals:
        return self.times[:-1], self.times[1:]

    def in_steps(self, cells: StepCells) -> StepCells:
        """Cells of pieces as cells of steps."""
        step = self.step[cells.step]
        kept = step >= 0
        return StepCells(step[kept].astype(np.int32), cells.row[kept], cells.self_ps[kept], cells.count[kept])

    def sums_in_steps(self, sums: CoreSums) -> CoreSums:
        """The sums of a core's ops by piece as sums by step."""
        step = self.step[sums.all_reduce_step]
        kept = step >= 0
        return replace(
            sums,
            cells=self.in_steps(sums.cells),
            all_reduce_step=step[kept],
            all_reduce_id=sums.all_reduce_id[kept],
            all_reduce_ps=sums.all_reduce_ps[kept],
        )


@dataclass(frozen=True, slots=True)
class Recorded:
    """What of a core's runs was recorded.

    Attributes:
        lost_ps: int64[runs], by the device's clock: the time in which a run's ops were not recorded; 0 in a whole run.
            Where whole runs of its module have time without an op too, that is left out.
        modules: each module's runs, and how many of them are holes.
        lost_steps: bool[steps], the steps that holes take much of.
        is_known: whether runs of some length are whole, or none is a hole: else nothing shows how busy the core was.
    """

    lost_ps: Int64s
    modules: tuple[ModuleHoles, ...]
    lost_steps: Bools
    is_known: bool

    def marked(self, steps: CoreSteps) -> CoreSteps:
        """The steps, which know that they are lost."""
        return replace(steps, lost=self.lost_steps) if self.lost_steps.any() else steps

    def spans(self, runs: ModuleRuns) -> Intervals:
        """When the runs that are not whole ran."""
        rows = self.lost_ps > 0
        return runs.start_ps[rows], runs.end_ps[rows]


def recorded_runs(runs: ModuleRuns, run_ps: Int64s, pieces: Pieces, cells: StepCells, steps: CoreSteps) -> Recorded:
    """Finds the runs that lost ops.

    Args:
        run_ps: int64[runs], duration of each run by the device's clock.
        cells: sums of the core's ops by piece.
    """
    run = pieces.run[cells.step]
    inside = run >= 0
    run, row, self_ps = run[inside], cells.row[inside].astype(np.int64), cells.self_ps[inside]
    count = cells.count[inside].astype(np.int64)
    own = sum_by_key(run, self_ps, len(runs))
    lost, modules = np.zeros(len(runs), np.int64), list[ModuleHoles]()
    is_hole, total = np.zeros(len(runs), np.bool_), int(run_ps.sum())
    judged = np.flatnonzero(_alone(runs) & (run_ps > 0))
    judged = judged[np.argsort(runs.module[judged], kind="stable")]
    silence = 1.0 - np.minimum(own / np.maximum(run_ps, 1), 1.0)
    for rows in np.split(judged, np.flatnonzero(opens(runs.module[judged]))[1:]):
        empty = own[rows] == 0
        if not len(rows) or (empty.all() and run_ps[rows].sum() < LEAST_LOST * total):
            continue
        more = silence[rows] - silence[rows].min()
        lacking = ~empty & (more >= LEAST_LOST)
        if lacking.any():
            of_module = np.zeros(len(runs), np.bool_)
            of_module[rows] = True
            chosen = of_module[run]
            quiet = rows[more < LEAST_LOST]
            missing = _missing_ps(run[chosen], row[chosen], self_ps[chosen], count[chosen], quiet, len(runs))[rows]
            lacking &= (missing > 0) & (2 * more * run_ps[rows] >= missing)
        in_hole = empty | lacking
        name = runs.names[int(runs.module[rows[0]])]
        modules.append(ModuleHoles(name, len(rows), int(empty.sum()), int(lacking.sum())))
        if in_hole.any():
            usual = 0.0 if in_hole.all() else float(np.median(silence[rows[~in_hole]]))
            lost_ps = np.rint((silence[rows] - usual) * run_ps[rows]).astype(np.int64)
            lost[rows] = np.where(in_hole, np.maximum(lost_ps, 0), 0)
            is_hole[rows] = in_hole
    is_known = not is_hole.any() or bool(run_ps[is_hole].sum() < (1 - LEAST_LOST) * total)
    return Recorded(lost, tuple(modules), _lost_steps(lost / np.maximum(run_ps, 1), pieces, steps), is_known)


def _steps_of_runs(steps: CoreSteps, runs: ModuleRuns) -> Int64s:
    """int64[runs]: the step that a run is of, which has most of it; -1 where none has, and for runs of many steps."""
    if not len(steps):
        return np.full(len(runs), -1, np.int64)
    step = interval_index((runs.start_ps + runs.end_ps) // 2, steps.start_ps, steps.end_ps)
    inside = np.minimum(runs.end_ps, steps.end_ps[step]) - np.maximum(runs.start_ps, steps.start_ps[step])
    length, of_step = runs.end_ps - runs.start_ps, (steps.end_ps - steps.start_ps)[step]
    return np.where((step >= 0) & (2 * inside > length) & (length <= _LONGEST_RUN * of_step), step, -1)


def _alone(runs: ModuleRuns) -> Bools:
    """bool[runs]: those that share no time with others, so that the ops inside are theirs."""
    latest = np.maximum.accumulate(runs.end_ps)
    after = np.append(True, runs.start_ps[1:] >= latest[:-1])[: len(runs)]
    before = np.append(latest[:-1] <= runs.start_ps[1:], True)[: len(runs)]
    alone: Bools = after & before
    return alone


def _missing_ps(run: Int64s, row: Int64s, self_ps: Int64s, count: Int64s, quiet: Int64s, runs: int) -> Int64s:
    """int64[runs]: the least time of the occurrences of ops that a run lacks of those that all quiet runs have.

    Args:
        run, row, self_ps, count: int64[n], the ops of one module's runs, their self time and occurrences; what has one
            run and row adds up.
    """
    order = np.lexsort((row, run))
    run, row = run[order], row[order]
    first = np.flatnonzero(opens(run, row))
    run, row = run[first], row[first]
    self_ps, count = (np.add.reduceat(of[order], first) for of in (self_ps, count))
    ops, is_quiet = int(row.max()) + 1, np.zeros(runs, np.bool_)
    is_quiet[quiet] = True
    everywhere = np.bincount(row[is_quiet[run]], minlength=ops) == len(quiet)
    of_quiet = np.flatnonzero(is_quiet[run])
    least_ps, often = (min_by_key(row[of_quiet], of[of_quiet], ops) for of in (self_ps, count))
    least_ps = np.where(everywhere, least_ps, 0)
    there = np.rint(least_ps[row] * np.minimum(count / often[row], 1.0)).astype(np.int64)
    missing: Int64s = int(least_ps.sum()) - sum_by_key(run, there, runs)
    return missing


def _lost_steps(share: np.ndarray, pieces: Pieces, steps: CoreSteps) -> Bools:
    """bool[steps]: those that lost much.

    Args:
        share: float64[runs], what each run lost of its time.
    """
    if not share.any():
        return np.zeros(len(steps), np.bool_)
    lost = np.diff(pieces.times) * np.append(share, 0.0)[pieces.run]
    in_step = np.bincount(pieces.step + 1, lost, len(steps) + 1)[1:]
    much: Bools = in_step >= LEAST_LOST * np.maximum(steps.end_ps - steps.start_ps, 1)
    return much

"""Which runs of modules have their ops in the profile.

A compiled program runs the same ops each time. So a run is a hole in the record, neither idle nor busy, where

- no op starts in it, although its module's other runs have ops; or no run of the module has any, and together they take
  1 % of the time of all runs or more (a small module may have no op at all);
- it lacks ops that all other runs of its module have, or has them less often than any of these. And it has more silence
  than the quietest run: 1 % of the run or more, and half of what the missing ops take at least. Silence is time without
  an op, or in an op that holds others, such as a loop, and in none of those.

Neither suffices alone: a branch that is not taken, or a loop that ends sooner, runs fewer ops but leaves no silence; a
stall leaves silence, but no op is missing. Where ops end amid a run, where only collectives are missing, and where a
loop lost its body, both hold.
"""

from __future__ import annotations

import numpy as np

from tpuprof.parsers.base.intervals import Bools, Int64s, Intervals, distinct, interval_index, opens
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.formats.xspace.core.api import min_by_key, sum_by_key
from tpuprof.parsers.formats.xspace.core.pass_sums import StepCells
from tpuprof.parsers.ops.core.sums import CoreSums, ModuleHoles
from tpuprof.parsers.ops.device import HOLDS_OPS
from tpuprof.parsers.ops.table import OpTable
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

    def sums_in_steps(self, sums: CoreSums) -> CoreSums:
        """The sums of a core's ops by piece as sums by step."""
        of = self.step[sums.all_reduce_step]
        inside = of >= 0
        return replace(
            sums,
            cells=sums.cells.moved(self.step),
            all_reduce_step=of[inside],
            all_reduce_id=sums.all_reduce_id[inside],
            all_reduce_ps=sums.all_reduce_ps[inside],
        )


@dataclass(frozen=True, slots=True)
class Recorded:
    """What of a core's runs was recorded.

    Attributes:
        pieces, cells, device_times: see `recorded_runs`.
        run_ps: int64[runs], duration of each run by the device's clock.
        holes: bool[runs], those that are not whole.
        lost_ps: int64[runs], by the device's clock: the time of a hole in which no op was recorded. Where whole runs of
            its module have time without an op too, that is left out.
        modules: each module's runs, and how many of them are holes.
        lost_steps: bool[steps], the steps that holes take much of; None where that is none.
        is_known: whether runs of some length are whole, or none is a hole: else nothing shows how busy the core was.
    """

    pieces: Pieces
    cells: StepCells
    device_times: Int64s | None
    run_ps: Int64s
    holes: Bools
    lost_ps: Int64s
    modules: tuple[ModuleHoles, ...]
    lost_steps: Bools | None
    is_known: bool

    def whole(self, table: OpTable) -> OpTable:
        """A table of the core's ops without those of holes."""
        self_ps, count = self.cells.by_op(len(table), np.append(self.holes, False)[self.pieces.run])
        return table.without(count, self_ps)

    def span(self) -> Intervals:
        """From where the first run starts to where the last one ends, by the device's clock."""
        inside = np.flatnonzero(self.pieces.run >= 0)
        times = self.pieces.times if self.device_times is None else self.device_times
        return times[inside[:1]], times[inside[-1:] + 1]


def recorded_runs(
    runs: ModuleRuns, pieces: Pieces, cells: StepCells, steps: CoreSteps, device_times: Int64s | None, table: OpTable
) -> Recorded:
    """Finds the runs that lost ops.

    Args:
        cells: sums of the core's ops by piece.
        device_times: those of the borders of the pieces (`CoreSums.device_times`).
        table: the core's ops; empty where none holds others.
    """
    run_ps = device_durations(runs.start_ps, runs.end_ps, pieces.times, device_times)
    holds = np.zeros(max(len(table), int(cells.row.max(initial=-1)) + 1), np.int64)
    holds[: len(table)] = [category in HOLDS_OPS for category in table.category]
    by_run = np.zeros((len(runs) + 1, 2), np.int64)
    np.add.at(by_run, pieces.run, cells.by_kind(holds, 2, len(pieces.run)))  # the last is of no run
    own, inner = by_run[:-1].sum(axis=1), by_run[:-1, 0]
    silence, without_op = (1.0 - np.minimum(of / np.maximum(run_ps, 1), 1.0) for of in (inner, own))
    share, lost, modules = np.zeros(len(runs)), np.zeros(len(runs)), list[ModuleHoles]()
    holes, total = np.zeros(len(runs), np.bool_), int(run_ps.sum())
    judged = np.flatnonzero(_alone(runs) & (run_ps > 0))
    judged = judged[np.argsort(runs.module[judged], kind="stable")]
    for rows in np.split(judged, np.flatnonzero(opens(runs.module[judged]))[1:]):
        empty = own[rows] == 0
        if not len(rows) or (empty.all() and run_ps[rows].sum() < LEAST_LOST * total):
            continue
        more = silence[rows] - silence[rows].min()
        lacking, names = ~empty & (more >= LEAST_LOST), tuple[str, ...]()
        ops = _run_ops(pieces, cells.each(), rows) if lacking.any() else None
        while ops is not None and lacking.any():
            by_run, by_op = _missing_ps(ops, rows[lacking], rows[~(empty | lacking)], len(runs))
            clear = (by_run == 0) | (2 * more[lacking] * run_ps[rows[lacking]] < by_run)
            if not clear.any():
                most = np.argsort(-by_op, kind="stable")[:2].tolist()
                names = tuple(table.name[op] for op in most if by_op[op] > 0 and len(table))
                break
            lacking[np.flatnonzero(lacking)[clear]] = False  # others may lack what these lack
        in_hole = empty | lacking
        counts = len(rows), int(empty.sum()), int(lacking.sum())
        modules.append(ModuleHoles(runs.names[int(runs.module[rows[0]])], *counts, names))
        if in_hole.any():
            holes[rows] = in_hole
            for out, of in ((share, silence), (lost, without_op)):
                usual = 0.0 if in_hole.all() else float(np.median(of[rows[~in_hole]]))
                out[rows] = np.where(in_hole, np.maximum(of[rows] - usual, 0.0), 0.0)
    is_known = not holes.any() or bool(run_ps[holes].sum() < (1 - LEAST_LOST) * total)
    lost_ps, lost_steps = np.rint(lost * run_ps).astype(np.int64), _lost_steps(share, pieces, steps)
    return Recorded(pieces, cells, device_times, run_ps, holes, lost_ps, tuple(modules), lost_steps, is_known)


def device_durations(start_ps: Int64s, end_ps: Int64s, times: Int64s, device_times: Int64s | None) -> Int64s:
    """int64[n]: how long spans on the trace's clock are by the device's clock, as far as the ops show.

    The profiler maps device times to the host's clock anew every now and then, so that a step may seem a quarter longer
    or shorter than it is. An op has both times, so it gives the device's time at a border inside or near it.

    Args:
        times, device_times: int64[m]; times on the trace's clock, ascending, the spans' borders among them, and the
            device's time at each (`CoreSums.device_times`).
    """
    own = end_ps - start_ps
    if device_times is None or not len(own):
        return own
    duration = device_times[np.searchsorted(times, end_ps)] - device_times[np.searchsorted(times, start_ps)]
    return np.where(duration > 0, duration, own)


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


def _run_ops(pieces: Pieces, cells: StepCells, rows: Int64s) -> tuple[Int64s, ...]:
    """The ops of some runs: run, row, self time and occurrences; what has one run and row adds up.

    Args:
        cells: sums by piece.
        rows: the runs.
    """
    run = pieces.run[cells.step]
    chosen, ops = np.flatnonzero(np.isin(run, rows)), int(cells.row.max()) + 1
    key = run[chosen] * ops + cells.row[chosen]
    order = np.argsort(key, kind="stable")
    key, chosen = key[order], chosen[order]
    first = np.flatnonzero(opens(key))
    self_ps, count = (np.add.reduceat(of[chosen].astype(np.int64), first) for of in (cells.self_ps, cells.count))
    return key[first] // ops, key[first] % ops, self_ps, count


def _missing_ps(of: tuple[Int64s, ...], lacking: Int64s, others: Int64s, runs: int) -> tuple[Int64s, Int64s]:
    """The least time of the occurrences that runs lack of ops (`_run_ops`) that all others have, by run and by op."""
    run, row, self_ps, count = of
    ops, mine, theirs = int(row.max()) + 1, np.isin(run, lacking), np.isin(run, others)
    everywhere = np.bincount(row[theirs], minlength=ops) == len(others)
    least_ps, often = (min_by_key(row[theirs], column[theirs], ops) for column in (self_ps, count))
    least_ps = np.where(everywhere, least_ps, 0)
    there = np.rint(least_ps[row[mine]] * np.minimum(count[mine] / often[row[mine]], 1.0)).astype(np.int64)
    by_run = int(least_ps.sum()) - sum_by_key(run[mine], there, runs)[lacking]
    return by_run, len(lacking) * least_ps - sum_by_key(row[mine], there, ops)


def _lost_steps(share: np.ndarray, pieces: Pieces, steps: CoreSteps) -> Bools | None:
    """See `Recorded`.

    Args:
        share: float64[runs], what each run lost of its time.
    """
    if not share.any():
        return None
    lost = np.diff(pieces.times) * np.append(share, 0.0)[pieces.run]
    in_step = np.bincount(pieces.step + 1, lost, len(steps) + 1)[1:]
    much: Bools = in_step >= LEAST_LOST * np.maximum(steps.end_ps - steps.start_ps, 1)
    return much if much.any() else None

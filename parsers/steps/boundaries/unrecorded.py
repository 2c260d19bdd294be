"""Runs of programs that are not in the profile at all, although it must have been taken while they ran.

A tracer whose buffer is full, or a file that lost a part, leaves out whole runs: then the time is neither idle nor the
host's. That a run is missing is known where

- the core's run ids leave some out between two runs of a program, and the program's period fits into the time between
  these just as often; or
- another core, which begins the same runs at the same time and needs this one for its collectives, has a run with an id
  that this one has not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpuprof.parsers.base.intervals import Int64s, median, overlap, union
from tpuprof.parsers.formats.xspace.trace import Plane
from tpuprof.parsers.ops.core.ops import CATEGORY
from tpuprof.parsers.ops.device import op_class
from tpuprof.parsers.ops.host_events.events import Ends
from tpuprof.parsers.ops.op_metadata import MetadataStats, OpSource
from tpuprof.parsers.steps.boundaries.core_groups import by_program
from tpuprof.parsers.steps.boundaries.runs import MINIMUM_RUNS, ModuleRuns

_AS_LONG = 0.1
"""Runs are missing where the time fits their number to this share."""

_TOGETHER = 0.05
"""Cores begin runs together where half of them begin within this share of a period."""

_MOST = 1000
"""A file that lost more runs than this in a row says nothing of them: what it holds may be made up."""

_LEAST_AT_ENDS = 2
"""Cores need not be traced from the same run on; with more runs than one missing, it is another cause."""


def runs_on_all(planes: Sequence[Plane], cores: Sequence[ModuleRuns]) -> list[ModuleRuns]:
    """The runs of a host's cores, and those that were not recorded: their `place` is -1."""
    out = list(map(_between_ids, cores))
    for part in by_program(cores):
        most = max((out[core] for core in part), key=len)
        fewer = [core for core in part if len(out[core]) < len(most)]
        if fewer and any(_has_collectives(planes[core]) for core in part):
            out = [_of_other(runs, most) if core in fewer else runs for core, runs in enumerate(out)]
    return out


def _has_collectives(plane: Plane) -> bool:
    metadata = plane.event_metadata
    stats = MetadataStats(OpSource(metadata, plane.stat_metadata), np.arange(len(metadata)), (CATEGORY,))
    return any(op_class(category or None) == "collective" for category in set(stats.texts(CATEGORY)))


def _counts(runs: ModuleRuns) -> bool:
    """Whether each run has an id of its own, which grows with time."""
    return len(runs) > 0 and int(runs.run_id[0]) >= 0 and bool((np.diff(runs.run_id) > 0).all())


def _between_ids(runs: ModuleRuns) -> ModuleRuns:
    """With the runs of each program that its run ids leave out."""
    if not _counts(runs) or len(runs) == int(runs.run_id[-1]) - int(runs.run_id[0]) + 1:
        return runs
    for module in range(len(runs.names)):
        own = np.flatnonzero((runs.module == module) & (runs.place >= 0))
        if len(own) < MINIMUM_RUNS:
            continue
        start, ids = runs.start_ps[own], runs.run_id[own]
        length = int(median((runs.end_ps[own] - start).astype(np.float64)))
        apart = np.diff(ids)
        usual = int(apart.min())
        number, period = apart // usual, median(np.diff(start)[apart == usual].astype(np.float64))
        fits = np.abs(np.diff(start) - number * period) <= _AS_LONG * number * period
        known = (number > 1) & (number <= _MOST) & (number * usual == apart) & fits
        for at in np.flatnonzero(known).tolist():
            turns = np.arange(1, number[at])
            begin = start[at] + np.rint(turns * ((start[at + 1] - start[at]) / number[at])).astype(np.int64)
            runs = _with(runs, np.full(len(turns), module), begin, begin + length, ids[at] + turns * usual)
    return runs


def _of_other(runs: ModuleRuns, other: ModuleRuns) -> ModuleRuns:
    """With the runs that another core has, which it begins together with this one."""
    if not (_counts(runs) and _counts(other)):
        return runs
    _, mine, its = np.intersect1d(runs.run_id, other.run_id, assume_unique=True, return_indices=True)
    if len(mine) < MINIMUM_RUNS:
        return runs
    apart = np.abs(runs.start_ps[mine] - other.start_ps[its])
    if median(apart.astype(np.float64)) > _TOGETHER * median(np.diff(other.start_ps).astype(np.float64)):
        return runs
    number = np.array([runs.names.index(name) if name in runs.names else -1 for name in other.names], np.int64)
    missing = ~np.isin(other.run_id, runs.run_id) & (number[other.module] >= 0)
    for side in (other.run_id < runs.run_id[0], other.run_id > runs.run_id[-1]):
        missing &= ~side | (np.count_nonzero(missing & side) >= _LEAST_AT_ENDS)
    columns = (of[missing] for of in (number[other.module], other.start_ps, other.end_ps, other.run_id))
    return _with(runs, *columns)


def _with(runs: ModuleRuns, module: Int64s, start_ps: Int64s, end_ps: Int64s, run_id: Int64s) -> ModuleRuns:
    """With these runs, but for those that share time with others."""
    free = overlap(start_ps, end_ps, *union(runs.start_ps, runs.end_ps)) == 0
    joined = [
        np.concatenate([of, more[free]])
        for of, more in (
            (runs.module, module),
            (runs.start_ps, start_ps),
            (runs.end_ps, end_ps),
            (runs.run_id, run_id),
            (runs.place, np.full(len(start_ps), -1, np.int64)),
        )
    ]
    order = np.argsort(joined[1], kind="stable")
    module, start_ps, end_ps, run_id, place = (of[order] for of in joined)
    return ModuleRuns(runs.ordinal, runs.names, module, start_ps, end_ps, run_id, Ends.joined([]), place)

"""XProf's own split of a step's time, as its overview and input pages show it.

Its parts overlap, mix cores, and leave out what they don't name, so they are no account of the step: that is
`parsers.steps.step_account`, which pages show and reasons read. XProf's stays for comparison with XProf, under its
names.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tpuprof.parsers.base.intervals import Floats, Int64s, distinct, no_ints
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.xspace.core.api import sum_by_key
from tpuprof.parsers.steps.aligned import AlignedSteps
from tpuprof.parsers.steps.times import ASYNC_DONE, COMPUTE, HOST_TRANSFER, INFEED, MEGACORE, OUTFEED, SPARSE_CORE_WAIT

_BLOCK = 1 << 16
"""How many all-reduces and steps of cores are looked at in one go, about."""


@dataclass(frozen=True, slots=True)
class XprofBreakdown:
    """Where XProf says that one step's time went, over all cores, in picoseconds (formulas in `xprof_breakdowns`).

    `compute_ps` is that of the least busy core, `active_ps` the mean over the cores. `infeed_ps` is the time in infeed
    ops, or, without any, the idle time in which the host waited for input. `sparse_core_ps` is waiting for an embedding
    core. All-reduces are None where no event says which of them belong together.
    """

    compute_ps: float
    active_ps: float
    infeed_ps: float
    outfeed_ps: float
    idle_ps: float
    host_transfer_ps: float
    all_reduce_compute_ps: float | None
    all_reduce_sync_ps: float | None
    sparse_core_ps: float
    infeed_percent_average: float
    infeed_percent_minimum: float
    infeed_percent_maximum: float


def xprof_breakdowns(grid: AlignedSteps) -> tuple[XprofBreakdown, ...]:
    """XProf's split of each step over all cores.

    `active_ps` leaves out waiting for asynchronous ops and for a chip's other core, which compute includes. The rest
    are XProf's formulas (`ComputeTpuPerStepDataAcrossCores`), with the step time of a host's slowest core for all its
    cores: infeed is that of the core that waits most, compute that of the least busy core, outfeed the mean, host
    transfer the longest, and idle the rest of the fastest host's step (never below 0). All-reduces are those of the
    core with the largest sum; the shortest duration of each over all cores is its compute, the rest synchronisation.
    """
    step = grid.longest_of_host_ps.astype(np.float64)
    infeed, outfeed = grid.part_ps[:, :, INFEED], grid.part_ps[:, :, OUTFEED]
    active = grid.part_ps[:, :, COMPUTE]
    compute = (active + grid.part_ps[:, :, [MEGACORE, ASYNC_DONE]].sum(axis=2)).min(axis=0).astype(np.float64)
    slowest_infeed = infeed.max(axis=0).astype(np.float64)
    mean_outfeed = outfeed.mean(axis=0)
    sparse_core = grid.part_ps[:, :, SPARSE_CORE_WAIT].max(axis=0).astype(np.float64)
    idle = np.maximum(0.0, step.min(axis=0) - compute - slowest_infeed - mean_outfeed - sparse_core)
    percent = 100.0 * infeed / np.maximum(step, 1.0)
    times = [of.tolist() for of in all_reduce_times(grid)]
    reduces = any(name.startswith("all-reduce") for name in grid.collective_names)
    if reduces and not any(len(ids) for _, ids, _ in grid.all_reduce):
        times = [[None] * len(grid)] * 2
    columns = (
        compute,
        active.mean(axis=0),
        slowest_infeed,
        mean_outfeed,
        idle,
        grid.part_ps[:, :, HOST_TRANSFER].max(axis=0).astype(np.float64),
        *times,
        sparse_core,
        percent.mean(axis=0),
        percent.min(axis=0),
        percent.max(axis=0),
    )
    return tuple(map(XprofBreakdown, *(of if isinstance(of, list) else of.tolist() for of in columns)))


def all_reduce_times(grid: AlignedSteps) -> tuple[Floats, Floats]:
    """Compute and synchronisation time of all-reduces in each step, on the core whose all-reduces take longest."""
    count, every = len(grid), np.arange(len(grid))
    compute, longest = np.zeros(count, np.int64), np.zeros(count, np.int64)
    known = distinct(np.concatenate([no_ints(), *(distinct(ids) for _, ids, _ in grid.all_reduce)]))
    reduction, shortest = no_ints(), no_ints()  # of each id in each step
    for _, step, ids, duration in _blocks(grid):
        of = np.concatenate([reduction, step * len(known) + np.searchsorted(known, ids)])
        order = np.argsort(of, kind="stable")
        first = np.flatnonzero(np.append(True, np.diff(of[order]) != 0))
        shortest = np.minimum.reduceat(np.concatenate([shortest, duration])[order], first)
        reduction = of[order[first]]
    for core, step, ids, duration in _blocks(grid):
        least = shortest[np.searchsorted(reduction, step * len(known) + np.searchsorted(known, ids))]
        cell, cores = core * count + step, int(core[-1]) + 1
        its_compute, total = (sum_by_key(cell, time, cores * count).reshape(cores, count) for time in (least, duration))
        most = total.argmax(axis=0)
        longer = total[most, every] > longest  # of several cores the first
        compute = np.where(longer, its_compute[most, every], compute)
        longest = np.where(longer, total[most, every], longest)
    return compute.astype(np.float64), (longest - compute).astype(np.float64)


def _blocks(grid: AlignedSteps) -> Iterator[tuple[Int64s, Int64s, Int64s, Int64s]]:
    """The all-reduces of some cores after those of others: core, counted from the block's first, step, id, duration.

    A block has at least one all-reduce. Thousands of cores have too many to look at in one go.
    """
    block: list[tuple[Int64s, Int64s, Int64s]] = []
    size = 0
    for number, part in enumerate(grid.all_reduce, 1):
        block.append(part)
        size += len(part[0]) + len(grid)
        if size < _BLOCK and number < len(grid.all_reduce):
            continue
        step, ids, duration = (np.concatenate(column) for column in zip(*block, strict=True))
        if len(step):
            yield np.repeat(np.arange(len(block)), [len(of) for of, *_ in block]), step, ids, duration
        block, size = [], 0

"""How long the runs of each HLO module took, over the cores that ran them together, and how long they waited to start.

The profile does not say which cores' runs are one, because `run_id` counts each core's launches separately. So it
matches runs by `run_id`, by order from the first, or by order from the last, whichever joins runs that ran at the same
time. Where none of these does so for half of the runs, each core ran on its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from tpuprof.parsers.base.intervals import Columns, Int64s, distinct, median, overlap, totals, union
from tpuprof.parsers.base.record import Sized, dataclass
from tpuprof.parsers.formats.xspace.core.api import min_by_key
from tpuprof.parsers.steps.launches import NEVER, LaunchedRuns

TOGETHER = 0.5
"""Runs belong together if in most of them all cores run at once for at least this share of the time."""


@dataclass(frozen=True, slots=True)
class ModuleLatency(Sized):
    """The runs of one module.

    Attributes:
        name: ``jit_f(12190760917235803885)``.
        cores: how many cores ran it.
        is_joined: whether runs of several cores were joined.
        start_ps, duration_ps: int64[n], by time; from the first core's start to the last core's end, or how long the
            slowest core took by the device's clock.
        launched: int64[m], ascending; the runs whose launch the host's events record.
        wait_ps: int64[m]; time from the launch's start to the run's.
        queued_ps: int64[m]; the part of it that the core spent on other runs.
        core_ps: time of the runs, added up over the cores.
    """

    sized_by = "start_ps"
    name: str
    cores: int
    is_joined: bool
    start_ps: Int64s
    duration_ps: Int64s
    launched: Int64s
    wait_ps: Int64s
    queued_ps: Int64s
    core_ps: float


@dataclass(frozen=True, slots=True)
class _CoreRuns(Columns):
    """Module runs of a core in order of start: int64[n] each. `launch` is `NEVER` where it is unknown."""

    module: Int64s
    start: Int64s
    end: Int64s
    duration: Int64s
    run_id: Int64s
    launch: Int64s
    queued: Int64s


def module_shares(modules: Iterable[ModuleLatency]) -> dict[str, float]:
    """Which part of the modules' time each one takes, 0-1 by name: of all hosts and cores, each core's runs alone."""
    times = totals((module.name, module.core_ps) for module in modules)
    whole = sum(times.values())
    return {name: time / whole if whole else 0.0 for name, time in times.items()}


def module_latencies(
    cores: Sequence[LaunchedRuns], durations: Sequence[Int64s] | None = None, lead_ps: int = 0
) -> tuple[ModuleLatency, ...]:
    """The runs of each module, the module with the most time first.

    Args:
        cores: the runs of each TensorCore.
        durations: for each core int64[n], how long each run took by the device's clock, in order of start; then the
            slowest core's counts. (Spans on the trace's clock are off by up to a quarter, see `parsers.steps.times`.)
        lead_ps: how far the devices' clocks run ahead of the host's.
    """
    names: dict[str, int] = {}
    known: Sequence[Int64s | None] = durations if durations is not None else [None] * len(cores)
    runs = [_core_runs(core, names, taken, lead_ps) for core, taken in zip(cores, known, strict=True)]
    latencies = []
    for name, number in names.items():
        parts = [part for core in runs if len(part := core.take(core.module == number))]
        if parts:
            latencies.append(_latency(name, parts, durations is not None))
    latencies.sort(key=lambda latency: (-int(latency.duration_ps.sum()), latency.name))
    return tuple(latencies)


def _core_runs(core: LaunchedRuns, names: dict[str, int], taken: Int64s | None, lead_ps: int) -> _CoreRuns:
    """The module runs of one core; it adds new names to `names`."""
    runs = core.runs
    number = np.array([names.setdefault(name, len(names)) for name in runs.names], np.int64)
    start, end = runs.start_ps, runs.end_ps
    duration = end - start if taken is None or len(taken) != len(runs) else taken
    launch = np.where(core.launch_ps == NEVER, NEVER, core.launch_ps - lead_ps)
    launch = np.where(launch > start, NEVER, launch)  # what comes later did not launch it
    busy = union(start, end)
    queued = overlap(np.minimum(launch, start), start, *busy)
    return _CoreRuns(number[runs.module], start, end, duration, runs.run_id, launch, queued).take(end > start)


# --- runs over cores -----------------------------------------------------------------------------------------------


def _latency(name: str, parts: Sequence[_CoreRuns], by_device: bool) -> ModuleLatency:
    """Joins the runs of several cores; every part has a run."""
    every = _CoreRuns.joined(parts)
    number = _numbers(parts, every)
    runs = np.arange(len(every)) if number is None else np.unique(number, return_inverse=True)[1]
    count = int(runs.max()) + 1
    first = min_by_key(runs, every.start, count)
    ended = -min_by_key(runs, -every.end, count)
    taken = -min_by_key(runs, -every.duration, count) if by_device else ended - first
    launched = min_by_key(runs, every.launch, count)
    by_run = np.lexsort((every.start, runs))
    waited = every.queued[by_run[np.searchsorted(runs[by_run], np.arange(count))]]  # of the core that began the run
    order = np.argsort(first, kind="stable")
    first, taken, launched, waited = first[order], taken[order], launched[order], waited[order]
    known = np.flatnonzero(launched != NEVER).astype(np.int64)
    wait = np.maximum(first[known] - launched[known], 0)
    return ModuleLatency(
        name=name,
        cores=len(parts),
        is_joined=number is not None,
        start_ps=first,
        duration_ps=taken,
        launched=known,
        wait_ps=wait,
        queued_ps=np.clip(waited[known], 0, wait),
        core_ps=float(every.duration.astype(np.float64).sum()),
    )


def _numbers(parts: Sequence[_CoreRuns], every: _CoreRuns) -> Int64s | None:
    """Numbers the cores' runs; runs that belong together have one number. None where each core ran on its own."""
    if len(parts) == 1:
        return None
    longest = max(map(len, parts))
    candidates = [
        np.concatenate([np.arange(len(part)) for part in parts]),
        np.concatenate([np.arange(longest - len(part), longest) for part in parts]),
    ]
    if all(len(distinct(part.run_id)) == len(part) and (part.run_id >= 0).all() for part in parts):
        candidates.insert(0, every.run_id)
    scores = [_together(number, every.start, every.end) for number in candidates]
    best = int(np.argmax(scores))
    return candidates[best] if scores[best] >= TOGETHER else None


def _together(number: Int64s, start: Int64s, end: Int64s) -> float:
    """The median share of time in which all cores run, over the runs that several cores have; 0 without any."""
    runs, which, counts = np.unique(number, return_inverse=True, return_counts=True)
    shared = counts > 1
    if not shared.any():
        return 0.0
    n = len(runs)
    first, last = min_by_key(which, start, n), -min_by_key(which, -end, n)
    last_start, first_end = -min_by_key(which, -start, n), min_by_key(which, end, n)
    share = np.maximum(first_end - last_start, 0) / np.maximum(last - first, 1)
    return median(share[shared])

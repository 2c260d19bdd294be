"""How long the runs of each HLO module took, over the cores that ran them together, and how long they waited to start.

The profile does not say which cores' runs are one, because `run_id` counts each core's launches separately. So it
matches runs by `run_id`, by order from the first, or by order from the last, whichever joins runs that ran at the same
time. Where none of these does so for half of the runs, each core ran on its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Int64s, covered, no_ints, positions, union
from tpuprof.parsers.formats.xspace.core.api import min_by_key
from tpuprof.parsers.formats.xspace.events import Events
from tpuprof.parsers.formats.xspace.metadata import KIND_INT64, KIND_UINT64
from tpuprof.parsers.formats.xspace.trace import Plane
from tpuprof.parsers.ops.core_ops import MODULES_LINE, event_spans
from tpuprof.parsers.ops.device import device_ordinal
from tpuprof.parsers.ops.host.events import HostEvents, integers_at

TOGETHER = 0.5
"""Runs belong together if in most of them all cores run at once for at least this share of the time."""

_LAUNCHERS = ("DoEnqueueProgram", "DoEnqueueContinuationProgram")
_RUN_ID_BITS = (1 << 27) - 1
"""The device keeps these bits of a run id."""

_NEVER = np.int64(1 << 62)


@dataclass(frozen=True, slots=True)
class ModuleLatency:
    """The runs of one module.

    Attributes:
        name: ``jit_f(12190760917235803885)``.
        cores: how many cores ran it.
        is_joined: whether runs of several cores were joined.
        start_ps, duration_ps: int64[n], by time; from the first core's start to the last core's end, or how long the
            slowest core took by the device's clock.
        launched: int64[m], ascending; the runs whose launch the host's events tell.
        wait_ps: int64[m]; time from the launch's start to the run's.
        queued_ps: int64[m]; the part of it that the core spent on other runs.
    """

    name: str
    cores: int
    is_joined: bool
    start_ps: Int64s
    duration_ps: Int64s
    launched: Int64s
    wait_ps: Int64s
    queued_ps: Int64s

    def __len__(self) -> int:
        return len(self.start_ps)


@dataclass(frozen=True, slots=True)
class _CoreRuns:
    """Module runs of a core in order of start: int64[n] each. `launch` is `_NEVER` where it is unknown."""

    module: Int64s
    start: Int64s
    end: Int64s
    duration: Int64s
    run_id: Int64s
    launch: Int64s
    queued: Int64s

    def take(self, rows: NDArray[np.intp]) -> _CoreRuns:
        columns = (self.module, self.start, self.end, self.duration, self.run_id, self.launch, self.queued)
        return _CoreRuns(*(column[rows] for column in columns))


def module_latencies(
    host: HostEvents | None, cores: Sequence[Plane], durations: Sequence[Int64s] | None = None
) -> tuple[ModuleLatency, ...]:
    """The runs of each module, the module with the most time first.

    Args:
        host: decoded with the stats `_pt`, `_p`, `run_id` and `device_ordinal`; None for a profile without a host.
        cores: planes of TensorCores.
        durations: for each core int64[n], how long each run took by the device's clock, in order of start; then the
            slowest core's counts. (Spans on the trace's clock are off by up to a quarter, see `parsers.steps.times`.)
    """
    names: dict[str, int] = {}
    launches = _Launches.of(host)
    known: Sequence[Int64s | None] = durations if durations is not None else [None] * len(cores)
    runs = [_core_runs(plane, names, launches, taken) for plane, taken in zip(cores, known, strict=True)]
    latencies = []
    for name, number in names.items():
        parts = [core.take(np.flatnonzero(core.module == number)) for core in runs]
        parts = [part for part in parts if len(part.start)]
        if parts:
            latencies.append(_latency(name, parts, durations is not None))
    latencies.sort(key=lambda latency: (-int(latency.duration_ps.sum()), latency.name))
    return tuple(latencies)


def _core_runs(plane: Plane, names: dict[str, int], launches: _Launches, taken: Int64s | None) -> _CoreRuns:
    """The module runs of one core; it adds new names to `names`."""
    parts = []
    for line in plane.lines:
        if line.name != MODULES_LINE:
            continue
        events = line.events(("_ct", "_c", "run_id"), places=False)
        start, end = event_spans(line, events)
        ids, which = np.unique(events.metadata_id, return_inverse=True)
        numbers = [names.setdefault(plane.event_metadata.label(number), len(names)) for number in ids.tolist()]
        run_id = _integers(events, "run_id")
        launch = launches.of_runs(events, run_id, device_ordinal(plane)) if len(start) else start
        parts.append((np.array(numbers, np.int64)[which], start, end, run_id, launch))
    if not parts:
        none = no_ints()
        return _CoreRuns(none, none, none, none, none, none, none)
    module, start, end, run_id, launch = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(start, kind="stable")
    duration = end[order] - start[order] if taken is None or len(taken) != len(order) else taken
    filled = end[order] > start[order]
    order, duration = order[filled], duration[filled]
    module, start, end, run_id, launch = (column[order] for column in (module, start, end, run_id, launch))
    launch = np.where(launch > start, _NEVER, launch)  # what comes later did not launch it
    busy = union(start, end)
    since = np.minimum(launch, start)
    queued = covered(start, *busy) - covered(since, *busy)
    return _CoreRuns(module, start, end, duration, run_id, launch, queued)


def _integers(events: Events, name: str) -> Int64s:
    """An integer stat, -1 where an event lacks it."""
    column = events.stats.get(name)
    if column is None:
        return np.full(len(events), -1, np.int64)
    return np.where(np.isin(column.kind, (KIND_INT64, KIND_UINT64)), column.value, -1).astype(np.int64)


# --- launches ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Launches:
    """What the host's events say of launches: int64[n] each, by number.

    Attributes:
        links: for each type of link its distinct ids, ascending, and the earliest start of each id's producers.
        by_run: the same for each device ordinal and its run ids.
    """

    links: dict[int, tuple[Int64s, Int64s]]
    by_run: dict[int, tuple[Int64s, Int64s]]

    @classmethod
    def of(cls, host: HostEvents | None) -> _Launches:
        """The launches of a host."""
        kinds: list[tuple[Int64s, Int64s, Int64s]] = []
        runs: list[tuple[Int64s, Int64s, Int64s]] = []
        table = host.plane.event_metadata if host is not None else None
        ids = list(table.find_names(_LAUNCHERS).values()) if table is not None else []
        for thread in host.threads if host is not None else ():
            kind, ordinal = thread.stats.get("_pt"), thread.stats.get("device_ordinal")
            if kind is not None:
                link, has = integers_at(thread.stats.get("_p"), kind.rows)
                kinds.append((kind.values.integers()[has], link[has], thread.start_ps[kind.rows[has]]))
            if ordinal is not None and ids:
                run, has = integers_at(thread.stats.get("run_id"), ordinal.rows)
                has &= np.isin(thread.metadata_id[ordinal.rows], ids)
                rows = ordinal.rows[has]
                runs.append((ordinal.values.integers()[has], run[has] & _RUN_ID_BITS, thread.start_ps[rows]))
        return cls(_first_of_each(kinds), _first_of_each(runs))

    def of_runs(self, events: Events, run_id: Int64s, ordinal: int) -> Int64s:
        """When each run of a core was launched; `_NEVER` where that is unknown."""
        out = np.full(len(events), _NEVER)
        kind, link = _integers(events, "_ct"), _integers(events, "_c")
        has_link = np.zeros(len(events), np.bool_)
        if "_c" in events.stats:
            has_link = events.stats["_c"].kind != 0
        for link_kind, table in self.links.items():
            rows = np.flatnonzero((kind == link_kind) & has_link)
            out[rows] = np.minimum(out[rows], _looked_up(link[rows], *table))
        if ordinal in self.by_run:
            rows = np.flatnonzero((out == _NEVER) & (run_id >= 0))
            out[rows] = _looked_up(run_id[rows] & _RUN_ID_BITS, *self.by_run[ordinal])
        return out


def _first_of_each(parts: Sequence[tuple[Int64s, Int64s, Int64s]]) -> dict[int, tuple[Int64s, Int64s]]:
    """For each value of the first column: the second one's values, ascending, and the least of the third for each."""
    if not parts:
        return {}
    by, number, start = (np.concatenate(column) for column in zip(*parts, strict=True))
    out = {}
    for value in np.unique(by).tolist():
        rows = np.flatnonzero(by == value)
        ids, which = np.unique(number[rows], return_inverse=True)
        out[value] = ids, min_by_key(which, start[rows], len(ids))
    return out


def _looked_up(number: Int64s, ids: Int64s, start: Int64s) -> Int64s:
    place = positions(number, ids)
    return np.where(place >= 0, start[place], _NEVER)


# --- runs over cores -----------------------------------------------------------------------------------------------


def _latency(name: str, parts: Sequence[_CoreRuns], by_device: bool) -> ModuleLatency:
    """Joins the runs of several cores; every part has a run."""
    start, end, launch, queued = (
        np.concatenate([getattr(part, column) for part in parts]) for column in ("start", "end", "launch", "queued")
    )
    number = _numbers(parts, start, end)
    is_joined = number is not None and len(parts) > 1
    runs = np.arange(len(start)) if number is None else np.unique(number, return_inverse=True)[1]
    count = int(runs.max()) + 1
    first = min_by_key(runs, start, count)
    last = -min_by_key(runs, -end, count)
    durations = np.concatenate([part.duration for part in parts])
    taken = -min_by_key(runs, -durations, count) if by_device else last - first
    launched = min_by_key(runs, launch, count)
    waited = _of_first(runs, start, queued, count)
    order = np.argsort(first, kind="stable")
    first, taken, launched, waited = first[order], taken[order], launched[order], waited[order]
    known = np.flatnonzero(launched != _NEVER).astype(np.int64)
    wait = np.maximum(first[known] - launched[known], 0)
    return ModuleLatency(
        name=name,
        cores=len(parts),
        is_joined=is_joined,
        start_ps=first,
        duration_ps=taken,
        launched=known,
        wait_ps=wait,
        queued_ps=np.clip(waited[known], 0, wait),
    )


def _of_first(runs: NDArray[np.intp], start: Int64s, values: Int64s, count: int) -> Int64s:
    """The value of the core that began each run."""
    order = np.lexsort((start, runs))
    return values[order[np.searchsorted(runs[order], np.arange(count))]]


def _numbers(parts: Sequence[_CoreRuns], start: Int64s, end: Int64s) -> Int64s | None:
    """Numbers the cores' runs; runs that belong together have one number. None where each core ran on its own."""
    if len(parts) == 1:
        return None
    longest = max(len(part.start) for part in parts)
    candidates = [
        np.concatenate([np.arange(len(part.start)) for part in parts]),
        np.concatenate([np.arange(longest - len(part.start), longest) for part in parts]),
    ]
    if all(len(np.unique(part.run_id)) == len(part.run_id) and (part.run_id >= 0).all() for part in parts):
        candidates.insert(0, np.concatenate([part.run_id for part in parts]))
    scores = [_together(number, start, end) for number in candidates]
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
    return float(np.median(share[shared]))

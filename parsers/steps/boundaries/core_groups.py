"""Which cores of a host depend on each other: these form a group, and only inside it does a core wait for another.

Cores that run one program are a group where its collectives, sends or barriers join them. Without any of these, one
launch may still start them together: then the host waits for the slowest before it launches again, and the steps are
common. Whether it does is read from the runs: they begin together on all cores, time after time. Engines that were
started side by side run the same program too, but drift apart. Where little is known, cores are joined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from tpuprof.parsers.base.intervals import median
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.ops.device import kind_by_name
from tpuprof.parsers.ops.table import OpTable
from tpuprof.parsers.steps.boundaries.replica_groups import groups_in
from tpuprof.parsers.steps.boundaries.runs import MINIMUM_RUNS, NEARLY_ALL, ModuleRuns

_TOGETHER, _TOGETHER_BY_ID, _DRIFT_BY_ID, _MOST_BY_ID = 0.01, 0.05, 0.005, 0.25
"""Runs begin together where they begin within this share of the time from one to the next. Where the host gave them one
run id, it is the second share, and the third more for each run before, up to the fourth: without a collective, a chip
that is a little slower falls behind until the host waits for it."""

LOST_NAME = pattern(r"event \d+")
"""What the decoder calls events whose names a damaged file has lost."""


@dataclass(frozen=True, slots=True)
class JoinedCores:
    """Some cores, by their places among a host's, that depend on each other.

    `devices` and `sends` are those of `parsers.hosts.step_summary.HostGroup`.
    """

    cores: tuple[int, ...]
    devices: int | None
    sends: bool = False


def by_program(runs: Sequence[ModuleRuns]) -> list[list[int]]:
    """The cores in parts of which none runs the busiest program of another; a core without runs goes to the first."""
    often = [runs_often(core) for core in runs]
    known = [core for core, programs in enumerate(often) if programs]
    parts = sorted(united(known, lambda a, b: often[a][0] in often[b] or often[b][0] in often[a])) or [[]]
    parts[0] = sorted([*parts[0], *(core for core, programs in enumerate(often) if not programs)])
    return sorted(filter(None, parts))


def united(places: Iterable[int], are_joined: Callable[[int, int], bool]) -> list[list[int]]:
    """The groups of places of which some are joined in pairs."""
    groups: list[list[int]] = []
    for place in places:
        mine = [of for of in groups if any(are_joined(place, at) for at in of)]
        groups = [of for of in groups if of not in mine]
        groups.append(sorted([place, *(at for of in mine for at in of)]))
    return groups


def runs_often(core: ModuleRuns) -> list[str]:
    """The programs that a core runs often, most time first; none whose name a damaged file has lost."""
    counts, times = np.bincount(core.module, minlength=len(core.names)), core.module_ps
    return [
        core.names[at]
        for at in np.argsort(-times, kind="stable").tolist()
        if counts[at] >= MINIMUM_RUNS and not LOST_NAME.fullmatch(core.names[at])
    ]


def joined_cores(
    runs: Sequence[ModuleRuns], tables: Sequence[OpTable], at_barrier: Callable[[int], bool], processes: Sequence[int]
) -> list[JoinedCores]:
    """The groups of a host's cores, the largest first: the most cores, of these the most time in ops.

    Args:
        processes: the process that launched each core's programs: no launch is of two.
        at_barrier: whether a core waits for others at barriers.
    """
    if not runs:
        return []
    found: list[JoinedCores] = []
    sending: list[int] = []
    for part in by_program(runs):
        table, rows = _collectives([tables[core] for core in part])
        kinds = [kind_by_name(table.category[row] or "", table.name[row]) for row in rows]
        if any(kind.startswith(("send", "recv")) for kind in kinds):
            sending += part  # to whichever program receives it
        elif kinds or any(map(at_barrier, part)):
            devices = _devices(table, rows)
            engines = _started_together(part, runs, processes)
            is_apart = 0 < devices < len(part) and all(len(engine) == devices for engine in engines)
            found += [JoinedCores(tuple(sorted(engine)), devices) for engine in (engines if is_apart else [part])]
        else:
            found += [JoinedCores(tuple(sorted(engine)), None) for engine in _started_together(part, runs, processes)]
    found += [JoinedCores(tuple(sorted(sending)), 0, True)] if sending else []
    busy = [int(table.self_ps.sum()) for table in tables]
    return sorted(found, key=lambda group: (-len(group.cores), -sum(busy[core] for core in group.cores)))


def _collectives(tables: Sequence[OpTable]) -> tuple[OpTable, list[int]]:
    """The ops that move data to other cores or wait for them, of the first core that has some: all run one program."""
    for table in tables:
        kinds = zip(table.classes(), table.category, strict=True)
        rows = [
            row for row, (kind, category) in enumerate(kinds) if kind == "collective" and category != "partition-id"
        ]
        if rows:
            return table, rows
    return tables[0], []


def _devices(table: OpTable, rows: Sequence[int]) -> int:
    """How many devices these collectives need; 0 where one needs all, or no text says it."""
    groups = [found for row in rows if (found := groups_in(table.expression(row))) is not None]
    sizes = [0 if of.are_pairs else of.count * of.size for of in groups]
    return 0 if not sizes or 0 in sizes else max(sizes)


def _started_together(part: Sequence[int], runs: Sequence[ModuleRuns], processes: Sequence[int]) -> list[list[int]]:
    """The cores of a part in those whose runs begin together; cores without runs go with the first."""
    engines: list[list[int]] = []
    for core in sorted(part, key=lambda core: not runs_often(runs[core])):
        of_process = [of for of in engines if processes[of[0]] == processes[core]]
        engine = next((engine for engine in of_process if begin_together(runs[engine[0]], runs[core])), None)
        if engine is None:
            engines.append([core])
        else:
            engine.append(core)
    return engines


def begin_together(first: ModuleRuns, second: ModuleRuns) -> bool:
    """Whether two cores begin the runs of their busiest program together, as far as they have some."""
    shared = [name for name in runs_often(first) if name in second.names]
    if not shared or not len(second):
        return not runs_often(first) or not runs_often(second)
    mine, its = (core.module == core.names.index(shared[0]) for core in (first, second))
    fewer, more = sorted((first.start_ps[mine], second.start_ps[its]), key=len)
    period = median(np.diff(more).astype(np.float64))
    after = np.clip(np.searchsorted(more, fewer), 1, len(more) - 1)
    apart = np.minimum(np.abs(more[after] - fewer), np.abs(fewer - more[after - 1]))
    ids = [core.run_id[chosen] for core, chosen in ((first, mine), (second, its))]
    is_one_launch = len(ids[0]) == len(ids[1]) and bool((ids[0] == ids[1]).all()) and bool((ids[0] >= 0).all())
    drifted = np.minimum(_TOGETHER_BY_ID + _DRIFT_BY_ID * np.arange(len(apart)), _MOST_BY_ID)
    within = apart <= (drifted if is_one_launch else _TOGETHER) * period
    return bool(np.count_nonzero(within) >= NEARLY_ALL * len(within))

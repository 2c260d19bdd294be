"""When the host launched the runs of modules, and how far the devices' clocks run ahead of the host's.

A run can neither start before the host launches it nor end after the host knows that it has. Where the profile says so,
the clocks differ: by at least what the runs start too early, and at most how much too late the host learns of an end.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpuprof.parsers.base.intervals import Int64s, Intervals, distinct, is_among, no_ints, positions, union
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.xspace.core.api import min_by_key
from tpuprof.parsers.ops.host_events.events import HostEvents
from tpuprof.parsers.steps.boundaries.markers import LaunchingSteps
from tpuprof.parsers.steps.boundaries.runs import ModuleRuns
from tpuprof.parsers.steps.groups.links import RUN_ID_BITS

NEVER = np.int64(1 << 62)

_LAUNCHERS = ("DoEnqueueProgram", "DoEnqueueContinuationProgram")
_ENDERS = ("tpu::System::Execute=>Done",)

_LEAST_LEAD = 10_000_000  # ps: the clocks are not known more exactly
_MOST_LEAD = 100_000_000_000  # ps: more than that is no lead but a launch of something else


@dataclass(frozen=True, slots=True)
class ClockLead:
    """How far the devices' clocks run ahead of the host's.

    Attributes:
        least_ps: by how much a run starts before its own launch.
        most_ps: the least time from a run's end to when the host knows of it; None where it is unknown.
    """

    least_ps: int
    most_ps: int | None

    @property
    def shift_ps(self) -> int:
        """What to add to device times: halfway between the bounds, or the lower one where there is no other."""
        return self.least_ps if self.most_ps is None else (self.least_ps + self.most_ps) // 2


@dataclass(frozen=True, slots=True)
class LaunchedRuns:
    """The runs of a core's modules, and when the host launched each.

    Attributes:
        runs: the runs.
        launch_ps: int64[n], when the launch of each began; `NEVER` where that is unknown.
        done_ps: int64[n], when the host first knew that each had ended; `NEVER` where that is unknown.
    """

    runs: ModuleRuns
    launch_ps: Int64s
    done_ps: Int64s


def clock_lead(cores: Sequence[LaunchedRuns]) -> ClockLead | None:
    """How far the devices' clocks run ahead; None where no run starts before its launch, or the bounds disagree."""
    early, late = [no_ints()], [no_ints()]
    for core in cores:
        known = core.launch_ps != NEVER
        early.append(core.launch_ps[known] - core.runs.start_ps[known])
        known = core.done_ps != NEVER
        late.append(core.done_ps[known] - core.runs.end_ps[known])
    least = int(np.concatenate(early).max(initial=0))
    most = int(np.concatenate(late).min(initial=int(NEVER)))
    if not _LEAST_LEAD <= least <= _MOST_LEAD or most < least:
        return None
    return ClockLead(least, None if most == NEVER else most)


def annotated_steps(host: HostEvents, core: LaunchedRuns) -> LaunchingSteps:
    """Which annotation with a step's number was open when the host launched each run of a core.

    It takes the thread with most such annotations. For profiles whose events are not linked to each other.
    """
    none = LaunchingSteps(no_ints(), {})
    thread = max(host.threads, key=lambda thread: len(thread.stat("step_num").rows), default=None)
    if thread is None or not len(thread.stat("step_num").rows):
        return none
    rows = thread.stat("step_num").rows
    order = rows[np.argsort(thread.start_ps[rows], kind="stable")]
    start, end = thread.start_ps[order], thread.end_ps[order]
    number = thread.integers("step_num", -1)[order]
    launch = np.empty(len(core.runs), np.int64)
    launch[core.runs.place] = core.launch_ps
    at = np.searchsorted(start, launch, side="right") - 1
    inside = (launch != NEVER) & (at >= 0) & (launch < end[np.maximum(at, 0)])
    return LaunchingSteps(np.where(inside, at, -1), dict(enumerate(number.tolist())))


def waiting_to_run(core: LaunchedRuns, shift_ps: int) -> Intervals:
    """When the host had launched a program that had not started on the core yet; disjoint and in order.

    Args:
        shift_ps: what to add to the device's times to compare them with the host's.
    """
    start, launch = core.runs.start_ps, core.launch_ps - shift_ps
    waits = launch < start
    return union(launch[waits], start[waits])


@dataclass(frozen=True, slots=True)
class Launches:
    """What the host's events say of launches: int64[n] each, by number.

    Attributes:
        links: for each type of link its distinct ids, ascending, and the earliest start of each id's producers.
        by_run: the same for each device ordinal and its run ids.
        done: for each device ordinal its run ids, ascending, and when the host first knew that each had ended.
    """

    links: dict[int, tuple[Int64s, Int64s]]
    by_run: dict[int, tuple[Int64s, Int64s]]
    done: dict[int, tuple[Int64s, Int64s]]

    @classmethod
    def of(cls, host: HostEvents | None) -> Launches:
        """The launches of a host, decoded with the stats `_pt`, `_p`, `run_id` and `device_ordinal`."""
        kinds, runs, done = ([(no_ints(),) * 3] for _ in range(3))
        launchers, enders = (_ids(host, names) for names in (_LAUNCHERS, _ENDERS))
        for thread in host.threads if host is not None else ():
            ends, ordinal = thread.producers(), thread.stat("device_ordinal")
            kinds.append((ends.kind, ends.id, thread.start_ps[ends.rows]))
            run, has = thread.stat("run_id").integers_at(ordinal.rows)
            for ids, out in ((launchers, runs), (enders, done)):
                chosen = has & is_among(thread.metadata_id[ordinal.rows], ids)
                starts = thread.start_ps[ordinal.rows[chosen]]
                out.append((ordinal.values.integers()[chosen], run[chosen] & RUN_ID_BITS, starts))
        return cls(_first_of_each(kinds), _first_of_each(runs), _first_of_each(done))

    def of_runs(self, runs: ModuleRuns) -> LaunchedRuns:
        """The runs of a core with their launches: what a link leads from, else the launch with the run's id."""
        launch, done, links = np.full(len(runs), NEVER), np.full(len(runs), NEVER), runs.started_by
        for kind, table in self.links.items():
            of = links.take(links.kind == kind)
            launch[of.rows] = np.minimum(launch[of.rows], _looked_up(of.id, *table))
        for times, by_core in ((launch, self.by_run), (done, self.done)):
            if runs.ordinal in by_core:
                rows = np.flatnonzero((times == NEVER) & (runs.run_id >= 0))
                times[rows] = _looked_up(runs.run_id[rows] & RUN_ID_BITS, *by_core[runs.ordinal])
        return LaunchedRuns(runs, launch, done)


def _first_of_each(parts: Sequence[tuple[Int64s, ...]]) -> dict[int, tuple[Int64s, Int64s]]:
    """For each value of the first column: the second one's values, ascending, and the least of the third for each."""
    by, number, start = (np.concatenate(column) for column in zip(*parts, strict=True))
    out = {}
    for value in distinct(by).tolist():
        ids, which = np.unique(number[by == value], return_inverse=True)
        out[value] = ids, min_by_key(which, start[by == value], len(ids))
    return out


def _looked_up(number: Int64s, ids: Int64s, start: Int64s) -> Int64s:
    place = positions(number, ids)
    return np.where(place >= 0, start[place], NEVER)


def _ids(host: HostEvents | None, names: Sequence[str]) -> list[int]:
    return [] if host is None else list(host.plane.event_metadata.find_names(names).values())

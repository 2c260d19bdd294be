"""What one TensorCore adds to the pages: sums by op and by step, and its idle times; never single events."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tpuprof.parsers.base.intervals import Int64s, Intervals, intersect, no_ints, subtract, union, union_of
from tpuprof.parsers.base.record import dataclass, fields, replace
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Plane
from tpuprof.parsers.hosts.op_summary import CoreTotals, core_totals
from tpuprof.parsers.ops.core.kernel_work import KernelWorks
from tpuprof.parsers.ops.core.ops import OPS_LINE, event_spans
from tpuprof.parsers.ops.core.sums import CoreSums
from tpuprof.parsers.ops.core.traced import OpRoles
from tpuprof.parsers.ops.device import HOST_TRANSFER, DeviceInfo
from tpuprof.parsers.ops.host_events.activity import Activity, activities
from tpuprof.parsers.ops.host_events.events import HostEvents
from tpuprof.parsers.ops.table import OpTable
from tpuprof.parsers.steps import times
from tpuprof.parsers.steps.accounts.causes import IdleCauses
from tpuprof.parsers.steps.boundaries.duty import CoreDuty, core_duty
from tpuprof.parsers.steps.boundaries.markers import CoreSteps
from tpuprof.parsers.steps.boundaries.observed import Ran
from tpuprof.parsers.steps.boundaries.runs import ModuleRuns
from tpuprof.parsers.steps.permutes import PERMUTES, Permute, permutes_of

MUCH_IDLE = 0.02
"""A core that is idle for less than this share of its time needs no look at its gaps."""

_LONG_GAP = 1e-3
"""A gap is long from this share of the median step on, or of the whole time where there are no steps."""


@dataclass(frozen=True, slots=True)
class CoreSummary(CoreTotals):
    """One TensorCore's totals, by step too, and its idle times.

    Attributes:
        duty: what the core adds to its chip's duty cycle.
        step_times: self time by step and part.
        run_ps: int64[n]; duration of each run of a module in the profile by the device's clock, in order of start.
        lost_ps: the time of its runs whose ops were not recorded.
        is_recorded: whether some run of it was recorded (`Recorded.is_known`).
        ran: when it ran ops, or programs whose ops were not recorded.
        permutes: its collective-permutes, see `permutes_of`.
        gaps: the long gaps between its ops (from the first step to the last where there are steps), disjoint and in
            order, on the trace's clock; none where the core is hardly idle.
    """

    duty: CoreDuty
    step_times: times.CoreStepTimes
    run_ps: Int64s
    lost_ps: int
    is_recorded: bool
    ran: Ran | None
    permutes: Mapping[str, Permute]
    gaps: Intervals

    @property
    def gap_ps(self) -> int:
        return int((self.gaps[1] - self.gaps[0]).sum())


@dataclass(frozen=True, slots=True)
class OfCore:
    """What else a reduction takes from the pass over a core's ops.

    Attributes:
        roles: see `core_sums`; None where it needs no single events.
        take: receives each core with its steps and sums, on the thread that decoded it.
    """

    roles: OpRoles | None
    take: Callable[[Plane, CoreSteps, CoreSums], None]


def has_infeed(table: OpTable) -> bool:
    """Whether ops wait for input on the device (`HasTpuInfeedOp`)."""
    return any(category in times.INFEEDS for category in table.category)


def summarise_core(
    plane: Plane,
    info: DeviceInfo,
    steps: CoreSteps,
    runs: ModuleRuns,
    shares_chip: bool,
    waits: Intervals,
    causes: IdleCauses,
    modules: HloModules,
    works: KernelWorks,
    on_chunk: ChunkDone | None = None,
    more: OfCore | None = None,
) -> CoreSummary:
    """Decodes one core's events and adds them up.

    Args:
        runs: of its modules, with those that are not in the profile (`boundaries.unrecorded`).
        shares_chip: whether its chip has other cores in this profile.
        waits: disjoint intervals in order in which the host waited for input or sent it.
        causes: what is known to keep the core from running ops. Input counts only without infeed ops.
        modules: the compiled programs of the profile; works: the work of their kernels.
        more: what else is taken from the pass.
    """
    roles = PERMUTES if more is None or more.roles is None else more.roles
    sums, recorded = times.recorded_core(plane, runs, steps, on_chunk, roles)
    sums = replace(recorded.pieces.sums_in_steps(sums), table=works.applied(sums.table))
    steps = times.on_device_clock(steps, recorded.pieces.times, sums.device_times)
    steps = replace(steps, lost=recorded.lost_steps)
    needs_busy, holes = len(waits[0]) > 0 and not has_infeed(sums.table), recorded.holes
    step_times = times.core_step_times(
        steps,
        sums,
        waits if needs_busy else None,
        info.peaks,
        causes if needs_busy else replace(causes, input=(no_ints(), no_ints())),
        lambda: (modules,),
        (runs.start_ps[holes], runs.end_ps[holes]),
    )
    left_out = steps.lost_among(np.arange(len(steps)))
    left_out[times.cut_steps(step_times.op_count, steps.duration_ps)] = True
    in_steps_ps, _ = sums.cells.by_op(len(sums.table), ~left_out)
    table = replace(sums.table, in_steps_ps=in_steps_ps)
    totals = core_totals(plane, table, sums, recorded)
    is_watched = needs_busy or totals.total_ps - int(totals.table.self_ps.sum()) >= MUCH_IDLE * totals.total_ps
    busy = union_of((sums.busy, (runs.start_ps[holes], runs.end_ps[holes]))) if holes.any() else sums.busy
    made = CoreSummary(
        **{field.name: getattr(totals, field.name) for field in fields(totals)},
        lost_ps=int(recorded.lost_ps.sum()),
        permutes={} if sums.traced is None else permutes_of(sums.table, sums.traced),
        duty=core_duty(info.chip, sums, runs, shares_chip, recorded),
        step_times=step_times,
        run_ps=recorded.run_ps[runs.place >= 0],
        is_recorded=recorded.is_known,
        ran=Ran.of(busy),
        gaps=_long_gaps(busy if is_watched and recorded.is_known else None, causes.behind, steps),
    )
    if more is not None:
        if more.roles is not None:
            sums = sums.without_intervals()  # as large as what is made of the traced events now
        more.take(plane, steps, sums)
    return made


def _long_gaps(busy: Intervals | None, behind: Intervals, steps: CoreSteps) -> Intervals:
    """The gaps between busy intervals, from the first step to the last where there are steps, that matter.

    The first step's time ahead of all ops is one, too: a program that is compiled first begins so. While the host waits
    for another one (`behind`) nothing is the matter with this core.
    """
    none = no_ints()
    if busy is None or not len(busy[0]):
        return none, none
    first, last = int(busy[0][0]), int(busy[1][-1])
    if len(behind[0]):
        first, last = min(first, int(behind[0].min())), max(last, int(behind[1].max()))
    usual = int(np.sort(steps.duration_ps)[len(steps) // 2]) if len(steps) else last - first
    least = max(1, int(_LONG_GAP * usual))
    start, end = np.append(steps.start_ps[:1] if len(steps) else first, busy[1]), np.append(busy[0], last)
    gaps = subtract(*_long(start, end, least), *union(*behind))
    return _long(*(intersect(*gaps, steps.start_ps[:1], steps.end_ps[-1:]) if len(steps) else gaps), least)


def _long(start: Int64s, end: Int64s, least: int) -> Intervals:
    chosen = end - start >= least
    return start[chosen], end[chosen]


LEAST_FED = 0.05
"""What the host did while it waited for input is looked at from this share of the gaps on."""


def serving(plane: Plane, table: OpTable, host: HostEvents | None, shift_ps: int) -> tuple[tuple[Activity, ...], int]:
    """See `IdleTime.serving`."""
    of_host = [row for row, category in enumerate(table.category) if category and HOST_TRANSFER.search(category)]
    line = next((line for line in plane.lines if line.name == OPS_LINE), None)
    if host is None or line is None or table.self_ps[of_host].sum() < LEAST_FED * table.self_ps.sum():
        return (), 0
    events = line.events(places=False)
    row = plane.event_metadata.rows(events.metadata_id.astype(np.int64))
    inside = union(*(of[np.isin(row, table.metadata_row[of_host])] for of in event_spans(line, events)))
    outside = subtract(inside[0][:1], inside[1][-1:], *inside)
    length, rest = (int((of[1] - of[0]).sum()) for of in (inside, outside))
    during, else_did = (activities(host, (of[0] + shift_ps, of[1] + shift_ps)) for of in (inside, outside))
    other = {(each.thread, each.name): each.overlap_ps for each in else_did}
    kept = (each for each in during if 2 * other.get((each.thread, each.name), 0) * length <= each.overlap_ps * rest)
    return tuple(kept), length

"""The roofline page: the device's peaks, and the program, its steps and its ops under them (XProf's `roofline_model`).

The program's time is the cores' whole time with idle time; its work is that of all ops that hold no others. Without
infeed and outfeed ops it leaves out their time as well. Different from XProf, a step's time is the sum over the cores'
own steps and not the longest core's step times their number, and an op that starts where a step ends is the next one's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from tpuprof.parsers.base.intervals import Bools, Floats, Int64s, no_ints
from tpuprof.parsers.base.record import Sized, dataclass
from tpuprof.parsers.hosts.summary import HostSummary
from tpuprof.parsers.ops.roofline import WORK_COUNT, Rates, added, feeds, rates_of_cores, work_of
from tpuprof.parsers.pages.ops.key import OPS
from tpuprof.parsers.pages.ops.ops import OpsPage
from tpuprof.parsers.pages.shared.common import why_no_ops
from tpuprof.parsers.pages.shared.key import PageKey, PageSession
from tpuprof.parsers.pages.shared.steps import common_steps
from tpuprof.parsers.pages.shared.summaries import read
from tpuprof.parsers.steps.aligned import AlignedSteps
from tpuprof.parsers.steps.model import StepSource
from tpuprof.parsers.steps.times import INFEED, OUTFEED

LONGEST_PS = 2**63 - 1


@dataclass(frozen=True, slots=True)
class RooflinePoints(Sized):
    """Some points under the roof, one row each.

    Attributes:
        name: ``program``, or the step's name.
        total_ps: int64[n]; time over all cores.
        work: float64[n, WORK_COUNT].
        rates: the rates of that work in that time.
    """

    name: tuple[str, ...]
    total_ps: Int64s
    work: Floats
    rates: Rates


@dataclass(frozen=True, slots=True)
class RooflinePage:
    """The roofline.

    Attributes:
        ops: the ops with their rates, and the peaks.
        with_infeed: whether infeed and outfeed ops count.
        counts: bool[n] over the rows of `ops`; False for infeed and outfeed ops that do not count.
        program: one point for the whole capture.
        average_step: one point for the mean over all steps; none without steps.
        steps: one point for each step, in order of time.
        step_source: whether steps are marked or inferred; None without steps.
        unknown: dotted JSON key to the reason why figures are missing.
        warnings: plain sentences about the profile itself.
    """

    ops: OpsPage
    with_infeed: bool
    counts: Bools
    program: RooflinePoints
    average_step: RooflinePoints
    steps: RooflinePoints
    step_source: StepSource | None
    unknown: Mapping[str, str]
    warnings: tuple[str, ...]


def roofline_page(ops: OpsPage, summaries: Sequence[HostSummary], with_infeed: bool = True) -> RooflinePage:
    """Makes the page over some hosts of a run, given its HLO ops."""
    is_feed = feeds(ops.table)
    counts = np.ones(len(ops), np.bool_) if with_infeed else ~is_feed
    left_out = 0 if with_infeed else int(ops.table.self_ps[is_feed].sum())
    work = added(work_of(ops.table)[counts])
    time = np.array([min(max(0, ops.total_ps - left_out), LONGEST_PS)], np.int64)
    program = _points(("program",), time, work[None], ops)
    common = common_steps(summaries)
    grid = common.grid
    unknown = dict(ops.unknown)
    unknown.pop("time_scale", None)
    if grid is None:
        unknown["steps"] = why_no_ops(summaries) or common.note
    times, step_work = _steps(grid, with_infeed) if grid is not None else (no_ints(), np.zeros((0, WORK_COUNT)))
    mean, mean_work = times, step_work
    if len(times):
        mean, mean_work = times.sum(keepdims=True) // len(times), added(step_work)[None] / len(times)
    return RooflinePage(
        ops=ops,
        with_infeed=with_infeed,
        counts=counts,
        program=program,
        average_step=_points(("average step",) * min(1, len(times)), mean, mean_work, ops),
        steps=_points(() if grid is None else grid.names, times, step_work, ops),
        step_source=None if grid is None else grid.source,
        unknown=unknown,
        warnings=tuple(dict.fromkeys((*ops.warnings, *common.remarks))),
    )


def _points(names: tuple[str, ...], times: Int64s, work: Floats, ops: OpsPage) -> RooflinePoints:
    whole = (ops.total_ps, ops.idle_ps)
    return RooflinePoints(names, times, work, rates_of_cores(work, times, whole, ops.time_scale, ops.peaks))


def _steps(grid: AlignedSteps, with_infeed: bool) -> tuple[Int64s, Floats]:
    """Time and work of each step over all cores.

    An op counts for the step in which it begins. So where infeed does not count and an infeed reaches into the next
    step, its own step loses that time and the next one keeps it; their sum is right.
    """
    times = grid.duration_ps.sum(axis=0)
    work = added(grid.work)
    if not with_infeed:  # an infeed may be longer than the step that it began in
        ops = [INFEED, OUTFEED] if grid.input_source == "infeed" else [OUTFEED]  # else infeed is idle time, no ops
        times = np.maximum(times - grid.part_ps[:, :, ops].sum(axis=(0, 2)), 0)
        work = np.maximum(work - np.nan_to_num(added(grid.feed_work)), 0.0)
    return times, work


def roofline_of_run(session: PageSession, host: str | None, with_infeed: bool) -> RooflinePage:
    """The roofline, with infeed and outfeed ops or without."""
    summaries = read(session, host).summaries  # before the ops: what can't be read any more is in neither
    return roofline_page(session.page(OPS, host), summaries, with_infeed)


ROOFLINE = PageKey(partial(roofline_of_run, with_infeed=True))
ROOFLINE_WITHOUT_INFEED = PageKey(partial(roofline_of_run, with_infeed=False))

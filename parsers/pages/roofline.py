"""The roofline page: the device's peaks, and the program, its steps and its ops under them (XProf's `roofline_model`).

The program's time is the cores' whole time with idle; its work that of all ops but those which hold others. Without
infeed and outfeed ops, their time is left out of it as well. Different from XProf: a step's time is the sum of each
core's own step, not the longest core's times their number; ops that start where a step ends belong to the next one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.intervals import Int64s
from tpuprof.parsers.pages.ops import OpsPage
from tpuprof.parsers.pages.overview import common_steps, why_no_ops
from tpuprof.parsers.pages.overview_page import StepSource
from tpuprof.parsers.roofline import WORK_COUNT, Rates, rates, work_of
from tpuprof.parsers.steps import INFEED, OUTFEED, StepGrid
from tpuprof.parsers.summary import HostSummary

INFEED_AND_OUTFEED = frozenset({"infeed", "outfeed"})


@dataclass(frozen=True, slots=True)
class RooflinePoints:
    """Some points under the roof, one row each.

    Attributes:
        name: ``program``, or the step's name.
        total_ps: int64[n]; time over all cores.
        work: float64[n, WORK_COUNT].
        rates: of that work in that time.
    """

    name: tuple[str, ...]
    total_ps: Int64s
    work: NDArray[np.float64]
    rates: Rates

    def __len__(self) -> int:
        return len(self.name)


@dataclass(frozen=True, slots=True)
class RooflinePage:
    """The roofline.

    Attributes:
        ops: the ops with their rates, and the peaks.
        with_infeed: whether infeed and outfeed ops count.
        counts: bool[n] over the rows of `ops`; False for infeed and outfeed ops that are left out.
        program: one point over the whole capture.
        average_step: one point over all complete steps, none without steps; its time is the sum over the steps.
        steps: a point a step, in order of time.
        step_source: markers or inferred periods, None without steps.
        unknown: dotted JSON key to the reason why figures are missing.
    """

    ops: OpsPage
    with_infeed: bool
    counts: NDArray[np.bool_]
    program: RooflinePoints
    average_step: RooflinePoints
    steps: RooflinePoints
    step_source: StepSource | None
    unknown: Mapping[str, str]


def roofline_page(ops: OpsPage, summaries: Sequence[HostSummary], with_infeed: bool = True) -> RooflinePage:
    """The roofline over some hosts of a run, given its HLO ops."""
    feeds = np.array([category in INFEED_AND_OUTFEED for category in ops.table.category], np.bool_)
    counts = np.ones(len(ops), np.bool_) if with_infeed else ~feeds
    scale = ops.time_scale or 1.0
    left_out = 0 if with_infeed else int(ops.table.total_ps[feeds].sum())
    work = _added(work_of(ops.table)[counts])
    program = _points(("program",), np.array([ops.total_ps - left_out], np.int64), work[None], ops, scale)
    grid, (note, _) = common_steps(summaries)
    unknown = dict(ops.unknown)
    unknown.pop("time_scale", None)
    if grid is None:
        unknown["steps"] = why_no_ops(summaries) or note
    times, step_work = (
        _steps(grid, with_infeed) if grid is not None else (np.zeros(0, np.int64), np.zeros((0, WORK_COUNT)))
    )
    whole, whole_work = (times.sum(keepdims=True), _added(step_work)[None]) if len(times) else (times, step_work)
    return RooflinePage(
        ops=ops,
        with_infeed=with_infeed,
        counts=counts,
        program=program,
        average_step=_points(("average step",) * min(1, len(times)), whole, whole_work, ops, scale),
        steps=_points(() if grid is None else grid.names, times, step_work, ops, scale),
        step_source=None if grid is None else grid.source,
        unknown=unknown,
    )


def _points(
    names: tuple[str, ...], times: Int64s, work: NDArray[np.float64], ops: OpsPage, scale: float
) -> RooflinePoints:
    total = times.astype(np.float64)
    return RooflinePoints(names, times, work, rates(work, total, total * scale, ops.peaks))


def _steps(grid: StepGrid, with_infeed: bool) -> tuple[Int64s, NDArray[np.float64]]:
    """Time and work of each step over all cores."""
    times = grid.duration_ps.sum(axis=0)
    if not with_infeed:
        times = times - grid.part_ps[:, :, [INFEED, OUTFEED]].sum(axis=(0, 2))
    return times, np.stack([_added(grid.work[:, at]) for at in range(len(grid))])


def _added(work: NDArray[np.float64]) -> NDArray[np.float64]:
    """float64[WORK_COUNT]: the sum over rows, NaN where no row has the count."""
    known = np.isfinite(work).any(axis=0)
    return np.where(known, np.nansum(work, axis=0), np.nan)

"""What several pages say about a run's hosts: the device, the steps that all share, what is missing or odd."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tpuprof.parsers.base.intervals import Floats, median
from tpuprof.parsers.hosts.summary import HostSummary
from tpuprof.parsers.ops.device import DeviceInfo, merge_devices
from tpuprof.parsers.steps.grid import StepGrid, join_hosts
from tpuprof.parsers.steps.model import StepSource, StepTime

NO_DEVICE = "no device plane in this profile"
NO_OPS = "no XLA Ops line in this profile"


def why_no_ops(summaries: Sequence[HostSummary]) -> str:
    """Why there are no ops, or empty when there are."""
    if any(len(summary.table) for summary in summaries):
        return ""
    if any(summary.core_count for summary in summaries):
        return NO_OPS
    if any(summary.gpu_count for summary in summaries):
        return "GPU planes have no XLA Ops line"
    return NO_DEVICE


def device_of(summaries: Sequence[HostSummary]) -> DeviceInfo | None:
    """The device as the hosts' planes describe it; each figure comes from the first host that has it."""
    return merge_devices([summary.device for summary in summaries if summary.device is not None])[0]


@dataclass(frozen=True, slots=True)
class CommonSteps:
    """The steps that the cores of all hosts share.

    Attributes:
        grid: the steps; None where there are none.
        note: how steps were inferred, or why there are none; empty for marked steps.
        remarks: sentences on steps that were left out.
    """

    grid: StepGrid | None
    note: str
    remarks: tuple[str, ...]


def common_steps(summaries: Sequence[HostSummary]) -> CommonSteps:
    """Joins the steps of all hosts that have some; marked steps count before inferred ones."""
    having = [(summary.steps, summary.step_note) for summary in summaries if summary.steps is not None]
    if not having:
        return CommonSteps(None, next((summary.step_note for summary in summaries if summary.step_note), "no step"), ())
    source: StepSource = "steps" if any(grid.source == "steps" for grid, _ in having) else "modules"
    grids = [grid for grid, _ in having if grid.source == source]
    note = "" if source == "steps" else having[0][1]
    joined = join_hosts(grids)
    if not len(joined):
        remark = f"the hosts share no step: the steps shown are those of {grids[0].core_names[0].rpartition(':')[0]}"
        return CommonSteps(grids[0], note, (remark, *_remarks(grids[0])))
    return CommonSteps(joined, note, _remarks(joined))


def _remarks(grid: StepGrid) -> tuple[str, ...]:
    if not grid.dropped:
        return grid.incomplete
    were, them = ("step was", "it") if grid.dropped == 1 else ("steps were", "them")
    return (f"{grid.dropped} {were} left out: not every core has {them}", *grid.incomplete)


def step_time(durations: Floats, source: StepSource, note: str = "") -> StepTime:
    """Summary over at least one step, each with its slowest core (`ComputeStepTimeSummaryInMs`)."""
    return StepTime(*spread(durations), len(durations), source, note)


def spread(values: Floats) -> tuple[float, float, float, float, float]:
    """Mean, standard deviation of the sample, median, least and largest of at least one value."""
    deviation = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return float(values.mean()), deviation, median(values), float(values.min()), float(values.max())


def complaints(summary: HostSummary) -> list[str]:
    """Sentences on what is wrong with a host's file, and on what its profiler reported."""
    sentences = [problem.sentence for problem in summary.problems]
    return sentences + [f"the profiler reports: {text}" for text in summary.warnings]


def warnings_of(summaries: Sequence[HostSummary], remarks: Sequence[str] = ()) -> tuple[str, ...]:
    """Plain sentences about the profile itself: what is damaged, left out or missing."""
    sentences = [sentence for summary in summaries for sentence in (*complaints(summary), *summary.remarks)]
    if len(summaries) > 1:
        sentences += merge_devices([summary.device for summary in summaries if summary.device is not None])[1]
    sentences += remarks
    without = [summary.host for summary in summaries if not summary.core_count and not summary.gpu_count]
    if without:
        sentences.append(f"no device plane on {', '.join(without)}: no accelerator there, or the device tracer was off")
    return tuple(dict.fromkeys(sentences))

"""The input pipeline page: how long the steps wait for input, what the host does to make it, and what to do about it.

Formulas are XProf's (`op_stats_to_input_pipeline_analysis.cc`), with these differences:

- The page also lists what plain JAX and PyTorch/XLA programs record (`parsers.ops.host.input_events`). These rows make
  a group of their own. Percentages are of the self time of the row's group, so that those of XProf's ops stay XProf's.
- A step in which no core waits has no worst core; where nothing tells waiting, percentages are `None` and not 0.
- The breakdown is unknown, not 0, where the host ran no input op. It is only of XProf's ops.
- What to do next is about the largest part of this profile; XProf prints the same five sentences for all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tpuprof.parsers.base.intervals import Floats
from tpuprof.parsers.hosts.summary import HostSummary
from tpuprof.parsers.ops.host.input_events import InputRows, merge_input_rows, xprof_category
from tpuprof.parsers.ops.host.ops import HostOps, merge_host_ops
from tpuprof.parsers.pages.common import common_steps, spread
from tpuprof.parsers.pages.input.advice import Waiting, advice_of
from tpuprof.parsers.pages.input.model import InfeedPercent, InputBreakdown, InputOp, InputPipelinePage, Stage, StepWait
from tpuprof.parsers.pages.overview.model import Overview
from tpuprof.parsers.pages.words import percent_of
from tpuprof.parsers.steps.grid import StepGrid
from tpuprof.parsers.steps.model import GenericBreakdown
from tpuprof.parsers.steps.times import INFEED

NO_INPUT_OPS = "no tf.data op, pipeline stage, infeed enqueue or host-to-device copy on the host"
APART = (
    "the program has no infeed ops, and few steps have an event of the host in them that waits for input or sends it"
)

_PREFIXES = 64
"""How many stages around an op it looks for; no pipeline nests deeper."""


def input_pipeline_page(summaries: Sequence[HostSummary], overview: Overview) -> InputPipelinePage:
    """The page over some hosts of a run.

    Args:
        summaries: at least one; each host's own, in the order of the hosts.
        overview: the overview of the same hosts: it has the step time, the verdict, warnings and reasons.
    """
    return page_of(
        overview,
        common_steps(summaries).grid,
        merge_host_ops([summary.host_ops for summary in summaries]),
        merge_input_rows([summary.input_rows for summary in summaries]),
    )


def page_of(overview: Overview, grid: StepGrid | None, host_ops: HostOps, rows: InputRows) -> InputPipelinePage:
    """The page from what the hosts add up to.

    Args:
        grid: the steps that all cores share, `None` where there are none.
        host_ops, rows: of all hosts.
    """
    unknown = {key: why for key, why in overview.unknown.items() if key.startswith("bottleneck.")}
    step_time = overview.performance.step_time
    if step_time is None:
        unknown["device.step_time_ms"] = overview.unknown.get("performance.step_time_ms", "no step")
    bottleneck = overview.bottleneck
    steps = _steps(grid, bottleneck.input_percent is not None) if grid is not None else _generic_steps(overview)
    infeed = _infeed_percent(steps)
    ops = (*_input_ops(host_ops), *_feed_ops(rows))
    if infeed is None:
        unknown["device.infeed_percent"] = _why_unknown(unknown, grid, ops)
    breakdown = _breakdown(ops, host_ops.enqueue_ratio)
    if breakdown is None:
        unknown["breakdown_us"] = NO_INPUT_OPS
    return InputPipelinePage(
        hosts=overview.hosts,
        step_time=step_time,
        source=None if grid is None else grid.input_source,
        infeed_percent=infeed,
        steps=steps,
        breakdown=breakdown,
        ops=ops,
        stages=stages_of(ops),
        bottleneck=bottleneck,
        next_steps=advice_of(
            parts=_parts(breakdown),
            ops=ops,
            bottleneck=bottleneck,
            source=None if grid is None else grid.input_source,
            waiting=None if infeed is None else _waiting(steps, infeed),
            has_steps=bool(steps),
        ),
        unknown=unknown,
        warnings=overview.warnings,
    )


# --- device side ---------------------------------------------------------------------------------------------------


def _shares(grid: StepGrid) -> Floats:
    """float64[cores, steps]: percent of each step's longest duration that a core waits for input."""
    return 100.0 * grid.part_ps[:, :, INFEED] / np.maximum(grid.longest_ps, 1)


def _infeed_percent(steps: Sequence[StepWait]) -> InfeedPercent | None:
    """Summary over the steps, each with the core that waits most; None where nothing tells."""
    worst = np.array([step.percent_maximum for step in steps if step.percent_maximum is not None], np.float64)
    if not len(worst):
        return None
    return InfeedPercent(*spread(worst))


def _waiting(steps: Sequence[StepWait], infeed: InfeedPercent) -> Waiting:
    worst = max(steps, key=lambda step: step.percent_maximum or 0.0)
    return Waiting(worst.name, infeed.maximum, infeed.median)


def _why_unknown(unknown: Mapping[str, str], grid: StepGrid | None, ops: Sequence[InputOp]) -> str:
    if grid is not None and grid.input_source is None and ops:
        return APART
    return unknown.get("bottleneck.input_percent") or unknown.get("device.step_time_ms", "the steps hold no time")


def _generic_steps(overview: Overview) -> tuple[StepWait, ...]:
    """How steps wait on GPUs: all GPUs together wait for copies from the host."""
    waits_of_steps = []
    for step in overview.steps:
        if isinstance(step.breakdown, GenericBreakdown):
            share = 100.0 * step.breakdown.input_ps / max(1, step.duration_ps)
            waits = round(step.breakdown.input_ps)
            waits_of_steps.append(StepWait(step.name, step.duration_ps, waits, share, share, share, None))
    return tuple(waits_of_steps)


def _steps(grid: StepGrid, is_known: bool) -> tuple[StepWait, ...]:
    """How the steps of TensorCores wait."""
    durations = grid.longest_ps.tolist()
    if not is_known:
        names = zip(grid.names, durations, strict=True)
        return tuple(StepWait(name, duration, None, None, None, None, None) for name, duration in names)
    shares, waits = _shares(grid), grid.part_ps[:, :, INFEED]
    worst = waits.argmax(axis=0)
    most = waits.max(axis=0).tolist()
    cores = [grid.core_names[core] if wait > 0 else None for core, wait in zip(worst.tolist(), most, strict=True)]
    columns = (shares.mean(axis=0).tolist(), shares.min(axis=0).tolist(), shares.max(axis=0).tolist())
    return tuple(map(StepWait, grid.names, durations, most, *columns, cores))


# --- host side -----------------------------------------------------------------------------------------------------


def _input_ops(host: HostOps) -> list[InputOp]:
    """The ops that XProf takes for input ops; their order is that of `HostOps`, by self time."""
    categories = [xprof_category(name, kind) for name, kind in zip(host.name, host.type, strict=True)]
    everything = sum(own for own, category in zip(host.self_ps.tolist(), categories, strict=True) if category)
    columns = (host.stage_id.tolist(), host.occurrences.tolist(), host.total_ps.tolist(), host.self_ps.tolist())
    ops = []
    for name, category, stage, count, total, own in zip(host.name, categories, *columns, strict=True):
        if category:
            shares = (percent_of(total, everything) or 0.0, percent_of(own, everything) or 0.0)
            ops.append(InputOp(name, category, "input_op", stage, count, total, own, *shares))
    return sorted(ops, key=lambda op: (-op.self_ps, op.name))


def _feed_ops(rows: InputRows) -> list[InputOp]:
    everything = sum(rows.self_ps.tolist())
    columns = (rows.occurrences.tolist(), rows.total_ps.tolist(), rows.self_ps.tolist())
    ops = []
    for name, category, count, total, own in zip(rows.name, rows.category, *columns, strict=True):
        shares = (percent_of(total, everything) or 0.0, percent_of(own, everything) or 0.0)
        ops.append(InputOp(name, category, "device_feed", 0, count, total, own, *shares))
    return ops


def _breakdown(ops: Sequence[InputOp], enqueue_ratio: float | None) -> InputBreakdown | None:
    """XProf's `GenerateHostResult`; its other source for the ratio, host-to-device time in steps, is 0 on TPU."""
    sums: dict[str, int] = {}
    for op in ops:
        if op.group == "input_op":
            sums[op.category] = sums.get(op.category, 0) + op.self_ps
    if not sums:
        return None
    enqueue = float(sums.get("Enqueue", 0))
    parts = [sums.get(name, 0) for name in ("Demanded file read", "Advanced file read", "Preprocessing")]
    whole = sum(parts)
    ratio = min(1.0, enqueue_ratio or 0.0)
    rest = enqueue * (1.0 - ratio) / ratio if ratio > 0 else float(whole)
    demanded, advanced, preprocessing = (rest * part / whole if whole else 0.0 for part in parts)
    return InputBreakdown(enqueue, demanded, advanced, preprocessing, 0.0 if whole else rest)


def _parts(breakdown: InputBreakdown | None) -> Mapping[str, float]:
    if breakdown is None:
        return {}
    return {
        "Enqueue": breakdown.enqueue_ps,
        "Demanded file read": breakdown.demanded_file_read_ps,
        "Advanced file read": breakdown.advanced_file_read_ps,
        "Preprocessing": breakdown.preprocessing_ps,
        "Unknown": breakdown.unclassified_ps,
    }


# --- stages --------------------------------------------------------------------------------------------------------


def stages_of(ops: Sequence[InputOp]) -> tuple[Stage, ...]:
    """The rows as a forest, ``Iterator::A::B`` below ``Iterator::A``, or below the nearest stage that is a row.

    Parents come before what is inside them. Siblings, and rows without a parent, come by total time, XProf's ops before
    the others.
    """
    row_of = {op.name: row_number for row_number, op in reversed(list(enumerate(ops))) if op.group == "input_op"}
    parents = [_parent(op, row_of) if op.group == "input_op" else -1 for op in ops]
    children: dict[int, list[int]] = {}
    for row_number in sorted(
        range(len(ops)),
        key=lambda row_number: (ops[row_number].group != "input_op", -ops[row_number].total_ps, row_number),
    ):
        children.setdefault(parents[row_number], []).append(row_number)
    stages: list[Stage] = []
    waiting = [(row, -1) for row in reversed(children.get(-1, []))]
    while waiting:
        row, parent = waiting.pop()
        around = stages[parent] if parent >= 0 else None
        label = ops[row].name if around is None else ops[row].name[len(ops[around.op].name) + 2 :]
        stages.append(Stage(row, label, 0 if around is None else around.depth + 1, parent))
        waiting += [(child, len(stages) - 1) for child in reversed(children.get(row, []))]
    return tuple(stages)


def _parent(op: InputOp, row_of: Mapping[str, int]) -> int:
    """Row of the innermost stage around a stage of tf.data; -1 for none."""
    if not op.name.startswith("Iterator::"):
        return -1
    end = len(op.name)
    for _ in range(_PREFIXES):
        end = op.name.rfind("::", 0, end)
        if end <= 0:
            break
        if op.name[:end] in row_of:
            return row_of[op.name[:end]]
    return -1

"""The input pipeline page: how long the steps wait for input, what the host does to make it, and what to do about it.

Formulas are XProf's (`op_stats_to_input_pipeline_analysis.cc`), with these differences:

- The page also lists what plain JAX and PyTorch/XLA programs record (`parsers.ops.host_events.input_events`). These
  rows make a group of their own. Percentages are of the self time of the row's group, so that those of XProf's ops stay
  XProf's.
- A step in which no core waits has no worst core; where waiting is unknown, percentages are `None` and not 0.
- The breakdown is unknown, not 0, where the host ran no input op. It is only of XProf's ops.
- What to do next is about the largest part of this profile; XProf prints the same five sentences for all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from itertools import repeat
from typing import get_args

import numpy as np

from tpuprof.parsers.base.words import percent_of
from tpuprof.parsers.hosts.summary import HostSummary
from tpuprof.parsers.ops.host_events.input_events import InputRows, XprofCategory, merge_input_rows, xprof_category
from tpuprof.parsers.ops.host_events.ops import HostOps, merge_host_ops
from tpuprof.parsers.pages.input import model
from tpuprof.parsers.pages.input.advice import advice_of
from tpuprof.parsers.pages.input.model import InputPipelinePage
from tpuprof.parsers.pages.overview.model import OVERVIEW, Overview
from tpuprof.parsers.pages.shared.key import PageKey, PageSession
from tpuprof.parsers.pages.shared.steps import common_steps, mean_and_range
from tpuprof.parsers.pages.shared.summaries import read
from tpuprof.parsers.steps.aligned import AlignedSteps
from tpuprof.parsers.steps.model import GenericBreakdown
from tpuprof.parsers.steps.times import INFEED

NO_INPUT_OPS = "no tf.data op, pipeline stage, infeed enqueue or host-to-device copy on the host"
APART = "the program has no infeed ops, and few steps contain a host event that waits for input or sends it"

_PREFIXES = 64
"""How many stages around an op it looks for; no pipeline nests deeper."""


def input_pipeline_page(summaries: Sequence[HostSummary], overview: Overview) -> model.InputPipelinePage:
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


def page_of(
    overview: Overview, grid: AlignedSteps | None, host_ops: HostOps, rows: InputRows
) -> model.InputPipelinePage:
    """The page from what the hosts add up to.

    Args:
        grid: the steps that all cores share, `None` where there are none.
        host_ops, rows: of all hosts.
    """
    unknown = {key: why for key, why in overview.unknown.items() if key.startswith("bottleneck.")}
    step_time, bottleneck = overview.performance.step_time, overview.bottleneck
    if step_time is None:
        unknown["device.step_time_ms"] = overview.unknown.get("performance.step_time_ms", "no step")
    source = None if grid is None else grid.input_source
    steps = _generic_steps(overview) if grid is None else _steps(grid, bottleneck.input_percent is not None)
    ops = (*_input_ops(host_ops), *_feed_ops(rows))
    shares = [step.percent_maximum for step in steps if step.percent_maximum is not None]
    infeed = model.InfeedPercent(*mean_and_range(np.array(shares, np.float64))) if shares else None
    if infeed is None:
        why = unknown.get("bottleneck.input_percent") or unknown.get(
            "device.step_time_ms", "the steps have no duration"
        )
        unknown["device.infeed_percent"] = APART if grid is not None and source is None and ops else why
    breakdown = _breakdown(ops, host_ops.enqueue_ratio)
    if breakdown is None:
        unknown["breakdown_us"] = NO_INPUT_OPS
    parts = {} if breakdown is None else dict(zip(get_args(XprofCategory), astuple(breakdown), strict=True))
    return model.InputPipelinePage(
        hosts=overview.hosts,
        step_time=step_time,
        source=source,
        infeed_percent=infeed,
        steps=steps,
        breakdown=breakdown,
        ops=ops,
        stages=stages_of(ops),
        bottleneck=bottleneck,
        next_steps=advice_of(parts, ops, bottleneck, source, steps, infeed),
        unknown=unknown,
        warnings=overview.warnings,
    )


# --- device side ---------------------------------------------------------------------------------------------------


def _generic_steps(overview: Overview) -> tuple[model.StepWait, ...]:
    """How steps wait on GPUs: all GPUs together wait for copies from the host. On CPUs the host itself waits."""
    is_one = overview.environment.device_core_count == 0 and len(overview.hosts) == 1
    on_cpu = f"{overview.hosts[0]}:0" if is_one else None
    waits_of_steps = []
    for step in overview.steps:
        if isinstance(step.breakdown, GenericBreakdown):
            waits, share = step.breakdown.input_ps, 100.0 * step.breakdown.input_ps / max(1, step.duration_ps)
            core = on_cpu if waits > 0 else None
            waits_of_steps.append(model.StepWait(step.name, step.duration_ps, round(waits), share, share, share, core))
    return tuple(waits_of_steps)


def _steps(grid: AlignedSteps, is_known: bool) -> tuple[model.StepWait, ...]:
    """How the steps of TensorCores wait."""
    durations = grid.longest_ps.tolist()
    if not is_known:
        return tuple(map(model.StepWait, grid.names, durations))
    waits = grid.part_ps[:, :, INFEED]
    shares = 100.0 * waits / np.maximum(grid.longest_of_host_ps, 1)
    worst, most = waits.argmax(axis=0).tolist(), waits.max(axis=0).tolist()
    cores = [grid.core_names[core] if wait > 0 else None for core, wait in zip(worst, most, strict=True)]
    columns = (shares.mean(axis=0).tolist(), shares.min(axis=0).tolist(), shares.max(axis=0).tolist())
    return tuple(map(model.StepWait, grid.names, durations, most, *columns, cores))


# --- host side -----------------------------------------------------------------------------------------------------


def _input_ops(host: HostOps) -> list[model.InputOp]:
    """The ops that XProf takes for input ops."""
    categories = map(xprof_category, host.name, host.type)
    columns = (host.stage_id.tolist(), host.occurrences.tolist(), host.total_ps.tolist(), host.self_ps.tolist())
    rows = [row for row in zip(host.name, categories, *columns, strict=True) if row[1] is not None]
    return sorted(_ops("input_op", rows), key=lambda op: (-op.self_ps, op.name))


def _feed_ops(rows: InputRows) -> list[model.InputOp]:
    columns = (rows.occurrences.tolist(), rows.total_ps.tolist(), rows.self_ps.tolist())
    return _ops("device_feed", list(zip(rows.name, rows.category, repeat(0), *columns, strict=False)))


_Row = tuple[str, model.Category, int, int, int, int]


def _ops(group: model.InputOpGroup, rows: Sequence[_Row]) -> list[model.InputOp]:
    """Rows of name, category, stage, occurrences, total and self time, with their shares of the group's self time."""
    everything = sum(own for *_, own in rows)
    ops = []
    for name, category, stage, count, total, own in rows:
        shares = (percent_of(total, everything) or 0.0, percent_of(own, everything) or 0.0)
        ops.append(model.InputOp(name, category, group, stage, count, total, own, *shares))
    return ops


def _breakdown(ops: Sequence[model.InputOp], enqueue_ratio: float | None) -> model.InputBreakdown | None:
    """XProf's `GenerateHostResult`; its other source for the ratio, host-to-device time in steps, is 0 on TPU."""
    sums: Counter[str] = Counter()
    for op in ops:
        if op.group == "input_op":
            sums[op.category] += op.self_ps
    if not sums:
        return None
    enqueue = float(sums["Enqueue"])
    parts = [sums[name] for name in ("Demanded file read", "Advanced file read", "Preprocessing")]
    whole = sum(parts)
    ratio = min(1.0, enqueue_ratio or 0.0)
    rest = enqueue * (1.0 - ratio) / ratio if ratio > 0 else float(whole)
    demanded, advanced, preprocessing = (rest * part / whole if whole else 0.0 for part in parts)
    return model.InputBreakdown(enqueue, demanded, advanced, preprocessing, 0.0 if whole else rest)


# --- stages --------------------------------------------------------------------------------------------------------


def stages_of(ops: Sequence[model.InputOp]) -> tuple[model.PipelineStage, ...]:
    """The rows as a forest, ``Iterator::A::B`` below ``Iterator::A``, or below the nearest stage that is a row.

    Parents come before what is inside them. Siblings, and rows without a parent, come by total time, XProf's ops before
    the others.
    """
    row_of = {op.name: row for row, op in reversed(list(enumerate(ops))) if op.group == "input_op"}
    children: dict[int, list[int]] = {}
    for row, op in sorted(enumerate(ops), key=lambda item: (item[1].group != "input_op", -item[1].total_ps, item[0])):
        children.setdefault(_parent(op, row_of), []).append(row)
    stages: list[model.PipelineStage] = []
    waiting = [(row, -1) for row in reversed(children.get(-1, []))]
    while waiting:
        row, parent = waiting.pop()
        around = stages[parent] if parent >= 0 else None
        label = ops[row].name if around is None else ops[row].name[len(ops[around.op].name) + 2 :]
        stages.append(model.PipelineStage(row, label, 0 if around is None else around.depth + 1, parent))
        waiting += [(child, len(stages) - 1) for child in reversed(children.get(row, []))]
    return tuple(stages)


def _parent(op: model.InputOp, row_of: Mapping[str, int]) -> int:
    """Row of the innermost stage around a stage of tf.data; -1 for none."""
    name = op.name if op.group == "input_op" and op.name.startswith("Iterator::") else ""
    for _ in range(_PREFIXES):
        name = name.rpartition("::")[0]
        if not name or name in row_of:
            break
    return row_of.get(name, -1) if name else -1


def input_of_run(session: PageSession, host: str | None) -> InputPipelinePage:
    """The input pipeline."""
    page = session.page(OVERVIEW, host)
    return input_pipeline_page(read(session, host).summaries, page)


INPUT = PageKey(input_of_run)

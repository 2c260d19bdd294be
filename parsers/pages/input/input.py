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
from itertools import repeat
from typing import get_args

import numpy as np

from tpuprof.parsers.base.intervals import grouped, totals
from tpuprof.parsers.base.record import asdict
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.words import percent_of
from tpuprof.parsers.hosts.summary import HostSummary
from tpuprof.parsers.ops.host_events import input_events
from tpuprof.parsers.ops.host_events.input_events import PRODUCE, TRANSFER, WAIT, InputRows, XprofCategory
from tpuprof.parsers.ops.host_events.ops import HostOps, merge_host_ops
from tpuprof.parsers.pages.input import model
from tpuprof.parsers.pages.input.model import InfeedPercent, InputOp, InputPipelinePage, StepWait
from tpuprof.parsers.pages.overview.model import OVERVIEW, Bottleneck, Overview
from tpuprof.parsers.pages.shared.key import PageKey, PageSession
from tpuprof.parsers.pages.shared.steps import common_steps, mean_and_range
from tpuprof.parsers.pages.shared.summaries import read
from tpuprof.parsers.steps.aligned import AlignedSteps, InputSource
from tpuprof.parsers.steps.model import GenericBreakdown
from tpuprof.parsers.steps.times import INFEED

_LONGEST_NAME = 80
"""How many characters of an op's name a sentence shows, those at its end, which says most."""

NO_EVENTS = (
    "The profile holds no input events: no infeed on the device, and no tf.data, Grain or transfer event on the host.",
    "Capture with host_tracer_level=2, and for a loader written in Python with python_tracer_level=1.",
    "Feed the program through tf.data or Grain, which record their stages, or wrap the loader's next() in "
    "jax.profiler.TraceAnnotation('IteratorGetNext').",
    "Mark steps with jax.profiler.StepTraceAnnotation, so that waiting can be distinguished from other idle time.",
)
"""Advice where a profile has nothing about input: what to turn on."""

NO_HOST_EVENTS = (
    "The steps wait for input, and no host event shows for what: capture with host_tracer_level=2, load through "
    "tf.data or Grain, whose stages show here, or put jax.profiler.TraceAnnotation around the loader's own.",
)
_UNKNOWN = "Whether the steps wait for input is unknown, so this is about the largest part of the host's input work."
_APART = (
    "Few steps, if any, have an event that waits for input or sends input: whether the host's input work delays them "
    "is unknown."
)

_PARTS: Mapping[str, str] = {
    "Enqueue": "Handing data to the device takes most of the host's input time, mostly {op}: send fewer and larger "
    "arrays, and hand over the next batch while the device works on this one.",
    "Demanded file read": "Reading files as they are asked for takes most of the host's input time, mostly {op}: "
    "read ahead of the need, with prefetch(tf.data.AUTOTUNE) behind it or a parallel interleave over the files.",
    "Advanced file read": "Reading files takes most of the host's input time although it runs ahead, mostly {op}: "
    "read more files at once (cycle_length and num_parallel_calls of interleave), use a larger read buffer, or bring "
    "the files nearer.",
    "Preprocessing": "Preprocessing takes most of the host's input time, mostly {op}: {hint}.",
    "Unknown": "No op says what the host does for most of its input time: read and preprocess through tf.data or "
    "Grain, whose stages show here, or put jax.profiler.TraceAnnotation around the loader's own.",
    WAIT: "The loader is slower than the device: the program waits in {op}. Give it more workers or threads, let it "
    "prefetch more, or let it do less for each batch.",
    TRANSFER: "Moving data to the device takes most of the input time, mostly {op}: put the next batch on the "
    "device while a step runs (device_put one step ahead, prefetch_to_device), and send small types (uint8, bfloat16), "
    "converting on the device.",
    PRODUCE: "Making batches takes the time, mostly {op}: give it more workers, or less to do for each batch.",
}
_INSIDE = (
    "What the loader does in there is not in the profile: capture with python_tracer_level=1, or load through tf.data "
    "or Grain, whose stages record themselves."
)

_HINTS: Mapping[str, str] = {
    "generator": "it runs Python for one element after the other, so let several generators run under interleave, or "
    "use ops of tf.data",
    "parallelmap": "it is parallel already, so batch before mapping, cache what does not change, or do it offline",
    "map": "set num_parallel_calls=tf.data.AUTOTUNE (in Grain more workers), batch before mapping, or cache what does "
    "not change",
    "shuffle": "take a smaller buffer, and shuffle the names of files instead",
    "batch": "set num_parallel_calls of batch, and hand it elements of one shape",
    "": "run it in parallel (num_parallel_calls=tf.data.AUTOTUNE; in Grain more workers), cache what does not change, "
    "or do it offline",
}
"""What helps a stage, by what its name holds; the first that fits counts."""

_GRAIN = pattern(
    r"(?:\w+MapDataset|Source|Prefetch|Batch|Map|Shuffle)\w*\.(?:__getitem__|_getitem)|\w*DatasetIterator\.__next__|PyGrain"
)
"""How Grain names its stages."""

_OF_GRAIN: Mapping[str, str] = {
    "Demanded file read": "Reading elements from the source takes most of the host's input time, mostly {op}: give "
    "Grain more threads and a larger buffer (grain.ReadOptions), or several workers (mp_prefetch).",
    "Preprocessing": "Preprocessing in Grain takes most of the host's input time, mostly {op}: {hint}.",
    WAIT: "Grain is slower than the device: the program waits in {op}. Give it more threads and a larger buffer "
    "(grain.ReadOptions), several workers (mp_prefetch), or let it do less for each batch.",
}
_HINTS_OF_GRAIN: Mapping[str, str] = {
    "shuffle": "shuffle indices and not elements",
    "batch": "hand it elements of one shape, and batch in the workers",
    "": "give it more threads and a larger buffer (grain.ReadOptions), or several workers (mp_prefetch), cache what "
    "does not change, or do it offline",
}
"""The same where Grain reads and preprocesses."""

MUCH_WAITING = 20.0
"""A step that waits for this share of its time, in percent, is worth a sentence where most steps wait less."""


def advice_of(
    parts: Mapping[str, float],
    ops: Sequence[InputOp],
    bottleneck: Bottleneck,
    source: InputSource | None,
    steps: Sequence[StepWait],
    infeed: InfeedPercent | None,
) -> tuple[str, ...]:
    """What to do, most useful first.

    Args:
        parts: the breakdown: time by XProf's categories; empty where it is unknown.
        ops: all rows of the op table.
        source: what the time that steps wait is measured by.
        infeed: how the steps wait; None where it is unknown.
    """
    if bottleneck.is_input_bound is False:
        return _nothing_to_do(bottleneck, steps, infeed)
    if not ops and source is None:
        return NO_EVENTS[:-1] if steps else NO_EVENTS
    part = _largest(parts, ops)
    if bottleneck.input_percent is not None:
        return _about(part or "Unknown", ops) if ops else NO_HOST_EVENTS
    if not steps:
        return (_UNKNOWN, *_about(part or "Unknown", ops))
    return (_APART, *(_about(part, ops) if part is not None and part in parts else ()))


def _nothing_to_do(bottleneck: Bottleneck, steps: Sequence[StepWait], infeed: InfeedPercent | None) -> tuple[str, ...]:
    told = " ".join((bottleneck.statement, *bottleneck.next_steps))
    waits = bottleneck.classification in ("host", "both")
    words = f"{told} No event says that the host is at input then." if waits else f"Little to gain here. {told}"
    if infeed is None or infeed.maximum < MUCH_WAITING or infeed.median >= infeed.maximum / 2:
        return (words,)
    worst = max(steps, key=lambda step: step.percent_maximum or 0.0).name
    stands = f"Step {worst} stands out: it waits {infeed.maximum:.1f}% of its time (median step: "
    return (words, f"{stands}{infeed.median:.1f}%). See what the host did before step {worst}.")


def _about(part: str, ops: Sequence[InputOp]) -> tuple[str, ...]:
    """Advice on one part, with the op to begin with."""
    name = _name_in(part, ops)
    if name is None:
        return (_PARTS["Unknown"],)
    stage = name.rpartition("::")[2].lower()
    is_grain = any(_GRAIN.match(op.name) for op in ops)
    hint = next(hint for word, hint in (_HINTS_OF_GRAIN if is_grain else _HINTS).items() if word in stage)
    words = (_OF_GRAIN if is_grain else _PARTS).get(part, _PARTS[part])
    is_traced = any(op.name.startswith("$") and ":" in op.name for op in ops)
    return (words.format(op=name, hint=hint), *([_INSIDE] if part == WAIT and not (is_traced or is_grain) else []))


def _largest(parts: Mapping[str, float], ops: Sequence[InputOp]) -> str | None:
    """The part to begin with: moving data where that takes longer than waiting for it, else what makes the data."""
    feeding = {kind: sum(op.self_ps for op in ops if op.category == kind) for kind in (WAIT, TRANSFER, PRODUCE)}
    if feeding[TRANSFER] > max(feeding[WAIT], *parts.values(), 0):
        return TRANSFER
    if any(parts.values()):
        return max(parts, key=lambda part: parts[part])
    best = max(feeding, key=lambda kind: feeding[kind])
    return best if feeding[best] else None


def _name_in(part: str, ops: Sequence[InputOp]) -> str | None:
    """The op of a part with the most self time; one that only waits for the stage before it (prefetch) comes last."""
    rows = [op for op in ops if op.category == part and op.self_ps > 0]
    if not rows:
        return None
    name = max(rows, key=lambda op: (not op.name.endswith("::Prefetch"), op.self_ps)).name
    return name if len(name) <= _LONGEST_NAME else f"...{name[-_LONGEST_NAME:]}"


NO_INPUT_OPS = "no tf.data op, pipeline stage or infeed enqueue on the host"
APART = "the program has no infeed ops, and few steps contain a host event that waits for input or sends input"

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
        input_events.merge_input_rows([summary.input_rows for summary in summaries]),
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
    parts = {} if breakdown is None else dict(zip(get_args(XprofCategory), asdict(breakdown).values(), strict=True))
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
    categories = map(input_events.xprof_category, host.name, host.type)
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
    sums = Counter(totals((op.category, op.self_ps) for op in ops if op.group == "input_op"))
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
    ordered = sorted(enumerate(ops), key=lambda item: (item[1].group != "input_op", -item[1].total_ps, item[0]))
    children = grouped((_parent(op, row_of), row) for row, op in ordered)
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

"""The verdict in words, with XProf's thresholds: whether the steps wait for input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from tpuprof.parsers.base.intervals import median
from tpuprof.parsers.ops.table import OpTable
from tpuprof.parsers.pages.overview.model import Bottleneck, Share, Step, TopOp, percent_of_steps
from tpuprof.parsers.steps.aligned import InputSource
from tpuprof.parsers.steps.times import SLOW_STEP
from tpuprof.parsers.steps.xprof_view import XprofBreakdown

HIGHLY_INPUT_BOUND = 20.0
MODERATELY_INPUT_BOUND = 5.0
HIGH_IDLE = 3.0
MUCH_ALL_REDUCE = 6.0
MUCH_SPARSE_CORE = 10.0
FEW_SLOW_STEPS = 0.2
MINIMUM_STEPS_TO_COMPARE = 4

NO_INPUT_EVENTS = (
    "the program has no infeed ops, and few steps contain a host event that waits for input or sends it; so "
    "waiting for input shows as idle time"
)
NO_OUTFEED = "the program has no outfeed ops"


def bottleneck_of(
    steps: Sequence[Step],
    table: OpTable,
    source: InputSource | None,
    shares: Sequence[Share],
    top_ops: Sequence[TopOp],
    unknown: dict[str, str],
    numbered: bool = False,
) -> Bottleneck:
    """Judges whether the steps wait for input; unknown where neither the program nor the host shows it.

    Args:
        source: what the time that steps wait for input is measured by.
        unknown: receives the reasons for unknown figures, by JSON key.
        numbered: whether the host's annotations number steps.
    """
    has_parts = any(isinstance(step.breakdown, XprofBreakdown) for step in steps)
    if not has_parts or not any(step.duration_ps for step in steps):
        keys = ("performance.device_duty_cycle_percent", "performance.step_time_ms")
        reason = next((unknown[key] for key in keys if key in unknown), "no step time")
        return _unknown(reason, unknown, _marking_advice(table, numbered))

    percent = partial(percent_of_steps, steps)
    has_outfeed = "outfeed" in table.category
    idle = percent("idle_ps")
    outfeed = percent("outfeed_ps") if has_outfeed or source == "infeed" else None
    if outfeed is None:
        unknown["bottleneck.output_percent"] = NO_OUTFEED
    if source is None:
        unknown["bottleneck.input_percent"] = NO_INPUT_EVENTS
        bottleneck = _by_idle_time(shares, top_ops, idle)
    else:
        bottleneck = _input_bottleneck(percent("infeed_ps"), idle)
    bottleneck = replace(bottleneck, output_percent=outfeed, statement=bottleneck.statement + _output(outfeed or 0.0))
    words = _communication(
        percent("all_reduce_compute_ps"), percent("all_reduce_sync_ps"), bottleneck.input_percent or 0.0
    )
    words += _sparse_core(percent("sparse_core_ps"))
    return with_slow_steps(replace(bottleneck, statement=bottleneck.statement + words), steps)


def _output(outfeed: float) -> str:
    """A sentence on results that go to the host, with the same thresholds as input."""
    if outfeed < MODERATELY_INPUT_BOUND:
        return ""
    how = "highly" if outfeed >= HIGHLY_INPUT_BOUND else "moderately"
    return f" It is {how} output-bound: {outfeed:.1f}% of step time sends results to the host."


def _communication(compute: float, sync: float, infeed: float) -> str:
    """A sentence on all-reduces, from 6 % of step time beyond what waits for input."""
    if compute + sync - infeed < MUCH_ALL_REDUCE:
        return ""
    return f" All-reduces take {compute + sync:.1f}%: {sync:.1f}% waits for other cores, {compute:.1f}% is the work."


def _sparse_core(wait: float) -> str:
    """A sentence on waiting for an embedding core, where there is any."""
    if wait <= 0:
        return ""
    also = " It is the place to start." if wait >= MUCH_SPARSE_CORE else ""
    return f" {wait:.1f}% of step time waits for the SparseCore.{also}"


def with_slow_steps(bottleneck: Bottleneck, steps: Sequence[Step]) -> Bottleneck:
    """Adds the advice to look at the slowest step where it stands out and few others do."""
    if len(steps) < MINIMUM_STEPS_TO_COMPARE:
        return bottleneck
    durations = np.array([step.duration_ps for step in steps], np.float64)
    ratio = durations / median(durations)
    slow = int((ratio >= SLOW_STEP).sum())
    if not 0 < slow <= len(steps) * FEW_SLOW_STEPS:
        return bottleneck
    name = steps[int(ratio.argmax())].name
    others = f" ({slow} steps are slow)" if slow > 1 else ""
    advice = f"Step {name} takes {ratio.max():.2f} times the median step{others}: see what it does more of."
    return replace(bottleneck, next_steps=(*bottleneck.next_steps[:1], advice, *bottleneck.next_steps[1:]))


def _by_idle_time(shares: Sequence[Share], top_ops: Sequence[TopOp], idle: float) -> Bottleneck:
    """The verdict where the waiting for input is unknown: it is at most the idle time."""
    is_bound = idle < MODERATELY_INPUT_BOUND
    if is_bound:
        little = f"only {idle:.1f}%" if idle >= 0.05 or not idle else "less than 0.1%"
        words = f"The program is not input-bound: its cores are idle for {little} of step time."
    else:
        words = f"{idle:.1f}% of step time is idle; how much of that waits for input is unknown."
    statement, advice = _what_takes_time(shares, top_ops, idle, words)
    return Bottleneck("device" if is_bound and top_ops else "unknown", None, None, idle, statement, advice)


def _what_takes_time(
    shares: Sequence[Share], top_ops: Sequence[TopOp], idle_percent: float, idle: str
) -> tuple[str, tuple[str, ...]]:
    """Statement and advice on what takes the cores' time."""
    busy = [share for share in shares if share.op_class != "idle"]
    if not busy or not top_ops:
        return f"The steps hold no op events. {idle}", ()
    largest = max(busy, key=lambda share: share.time_ps)
    top = top_ops[0]
    name = "/".join(top.name.split("/")[-2:])
    statement = (
        f"{largest.op_class.capitalize()} ops take {100 * largest.fraction:.1f}% of device time; "
        f"the top op, {name}, {top.self_time_percent:.1f}% of op time."
    )
    statement = f"{idle} {statement}" if idle_percent < MODERATELY_INPUT_BOUND else f"{statement} {idle}"
    first = f"Look at {name} first."
    if idle_percent >= max(HIGH_IDLE, 100 * largest.fraction):
        return statement, ("Idle time first: see what the host does in the gaps.", first)
    return statement, (first,) if idle_percent < HIGH_IDLE else (first, "Then at the idle time between ops.")


def _unknown(reason: str, unknown: dict[str, str], advice: tuple[str, ...]) -> Bottleneck:
    for key in ("input_percent", "output_percent", "idle_percent"):
        unknown[f"bottleneck.{key}"] = reason
    return Bottleneck("unknown", None, None, None, f"Whether it waits for input is unknown: {reason}.", advice)


def _marking_advice(table: OpTable, numbered: bool) -> tuple[str, ...]:
    if not len(table):
        return ()
    if numbered:
        return ("Profile for longer: the capture holds too few of the steps that the program marks.",)
    return ("Mark steps with jax.profiler.StepTraceAnnotation, or profile for longer than one step.",)


def _input_bottleneck(infeed: float, idle: float) -> Bottleneck:
    advice: list[str] = []
    if infeed >= HIGHLY_INPUT_BOUND:
        kind, words = "host", f"The program is highly input-bound: {infeed:.1f}% of step time waits for input."
        advice.append("Reduce the input time first: the device is faster than the input.")
    elif infeed >= MODERATELY_INPUT_BOUND:
        kind, words = "both", f"The program is moderately input-bound: {infeed:.1f}% of step time waits for input."
        advice.append("Reduce both input time and device time.")
    else:
        kind, words = "device", f"The program is not input-bound: only {infeed:.1f}% of step time waits for input."
        advice.append("Reduce device time: the top ops are the place to look.")
    if idle >= HIGH_IDLE:
        words += f" {idle:.1f}% of step time is idle for other reasons than input."
        advice.append("Idle time: look for gaps between ops and what the host does meanwhile.")
    return Bottleneck(kind, infeed, None, idle, words, tuple(advice))  # type: ignore[arg-type]

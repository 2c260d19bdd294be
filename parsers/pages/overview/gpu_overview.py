"""The overview of a profile with GPUs: generic step breakdown, XProf's thresholds (`ComputeBottleneckAnalysis`)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.hosts.summary import HostSummary
from tpuprof.parsers.ops.device import op_class
from tpuprof.parsers.ops.framework_op import is_gradient
from tpuprof.parsers.ops.host.ops import merge_host_ops
from tpuprof.parsers.pages.common import warnings_of
from tpuprof.parsers.pages.findings.finding import KINDS
from tpuprof.parsers.pages.overview.bottleneck import HIGHLY_INPUT_BOUND, MODERATELY_INPUT_BOUND, with_slow_steps
from tpuprof.parsers.pages.overview.model import Bottleneck, Environment, Overview, Performance, Step, TopOp
from tpuprof.parsers.pages.overview.performance import first_start, host_figures, step_parts
from tpuprof.parsers.pages.steps import step_time
from tpuprof.parsers.pages.words import percent_of
from tpuprof.parsers.steps.gpu.steps import GpuSummary
from tpuprof.parsers.steps.model import GenericBreakdown

TOP_OPS = 10
MODERATE = 3.0
"""It names other time and collectives from this share of step time on; XProf calls them high from 15 %."""

NO_STEPS = "no step of the host launched work on a GPU: nothing marks steps in this profile"
NOT_OF_GPUS = "computed for TPUs only, and these are GPUs"

_OF_TPUS = (
    "device_duty_cycle",
    "device_idle",
    "mxu_utilization",
    "hbm_utilization",
    "flops_utilization",
    "roofline_efficiency",
    "memory_bandwidth_utilization",
)
_COPIES = ("memcpy", "memset", "copy")


def gpu_overview(summaries: Sequence[HostSummary]) -> Overview:
    """The overview over some hosts of a run whose devices are GPUs.

    Args:
        summaries: at least one with GPUs. Of several hosts it shows the steps of the host with most steps.
    """
    gpus = [summary.gpu for summary in summaries if summary.gpu is not None]
    most = max(gpus, key=lambda gpu: len(gpu.steps))
    steps = tuple(
        Step(step.name, step.group_id, step.start_ps, step.duration_ps, step.breakdown) for step in most.steps
    )
    unknown: dict[str, str] = {}
    remarks = [f"{most.dropped} steps at the ends of the capture were left out"] * (most.dropped > 0)
    if len(gpus) > 1 and steps:
        remarks.append("the steps shown are those of the host with most of them: hosts with GPUs are not merged")
    top_ops = _top_ops(gpus)
    names = [op.name for op in top_ops]
    durations = [s.profile_duration_ps for s in summaries if s.profile_duration_ps is not None]
    if not durations:
        unknown["environment.profile_duration_ms"] = "the profile does not record its start and stop"
    if not names:
        unknown["environment.is_training"] = "no op carries a framework name"
    return Overview(
        hosts=tuple(summary.host for summary in summaries),
        environment=Environment(
            host_count=len(summaries),
            task_count=max(1, len(gpus)),
            device_type=most.device_type,
            device_core_count=sum(gpu.device_count for gpu in gpus),
            is_training=any(map(is_gradient, names)) if names else None,
            profile_duration_ps=max(durations) if durations else None,
            simulated=any(summary.simulated for summary in summaries),
            profile_start_ns=first_start(summaries, unknown),
        ),
        performance=_performance(summaries, gpus, steps, unknown),
        shares=(),
        steps=steps,
        step_parts=step_parts(steps),
        findings=(),
        untold=dict.fromkeys(KINDS, NOT_OF_GPUS),
        top_ops=top_ops,
        bottleneck=_bottleneck(steps, unknown),
        inference=None,
        op_count=sum(len(gpu.ops) for gpu in gpus),
        op_event_count=sum(op.occurrences for gpu in gpus for op in gpu.ops),
        unknown=unknown,
        warnings=warnings_of(summaries, remarks),
    )


def _top_ops(gpus: Sequence[GpuSummary]) -> tuple[TopOp, ...]:
    """The ops with the most self time over all hosts; ties go by name."""
    rows: dict[tuple[str, str], list[int]] = {}
    for op in (op for gpu in gpus for op in gpu.ops):
        row = rows.setdefault((op.name, op.type), [0, 0])
        row[0] += op.self_ps
        row[1] += op.occurrences
    everything = sum(row[0] for row in rows.values())
    top: list[TopOp] = []
    cumulative = 0.0
    for (name, kind), (self_ps, occurrences) in sorted(rows.items(), key=lambda item: (-item[1][0], item[0]))[:TOP_OPS]:
        percent = 100.0 * self_ps / everything if everything else 0.0
        cumulative += percent
        top.append(TopOp(name, kind, _class_of(name), None, percent, cumulative, self_ps, occurrences, None))
    return tuple(top)


def _class_of(name: str) -> OpClass:
    """What a GPU does during an op of this name."""
    lowered = name.lower()
    if "nccl" in lowered or op_class(lowered.rpartition("/")[2]) == "collective":
        return "collective"
    return "copy" if any(word in lowered for word in _COPIES) else "compute"


def _performance(
    summaries: Sequence[HostSummary], gpus: Sequence[GpuSummary], steps: Sequence[Step], unknown: dict[str, str]
) -> Performance:
    host = merge_host_ops([summary.host_ops for summary in summaries])
    figures = host_figures(host, sum(op.occurrences for gpu in gpus for op in gpu.ops))
    bits16, bits32 = (sum(getattr(gpu, f"compute_{bits}bit_ps") for gpu in gpus) for bits in (16, 32))
    unknown.update({f"performance.{key}_percent": NOT_OF_GPUS for key in _OF_TPUS})
    unknown.update({f"performance.{key}": why for key, (value, why) in figures.items() if value is None})
    if not bits16 + bits32:
        reason = "no compute of a GPU belongs to a step"
        unknown.update({f"performance.compute_precision.bits{bits}_percent": reason for bits in (16, 32)})
    if not steps:
        unknown["performance.step_time_ms"] = NO_STEPS
    return Performance(
        step_time=step_time(np.array([step.duration_ps for step in steps], np.float64), "steps") if steps else None,
        device_duty_cycle_percent=None,
        device_idle_percent=None,
        host_idle_percent=figures["host_idle_percent"][0],
        mxu_utilization_percent=None,
        hbm_utilization_percent=None,
        flops_utilization_percent=None,
        roofline_efficiency_percent=None,
        memory_bandwidth_utilization_percent=None,
        host_op_percent=figures["op_placement.host_percent"][0],
        device_op_percent=figures["op_placement.device_percent"][0],
        eager_host_percent=figures["eager_percent.host"][0],
        eager_device_percent=None,
        bits16_percent=percent_of(bits16, bits16 + bits32),
        bits32_percent=percent_of(bits32, bits16 + bits32),
    )


def _bottleneck(steps: Sequence[Step], unknown: dict[str, str]) -> Bottleneck:
    """Judges whether the steps wait for input: for copies from the host, or in much other time."""
    parts = [step.breakdown for step in steps if isinstance(step.breakdown, GenericBreakdown)]
    total = math.fsum(step.duration_ps for step in steps)
    if not parts or not total:
        unknown.update({f"bottleneck.{key}_percent": NO_STEPS for key in ("input", "output", "idle")})
        return Bottleneck("unknown", None, None, None, f"Unknown: {NO_STEPS}.", ())

    def percent(field: str) -> float:
        return 100.0 * math.fsum(getattr(part, field) for part in parts) / total

    compute, collectives = percent("device_compute_ps"), percent("device_collectives_ps")
    waits, sends, other = percent("input_ps"), percent("output_ps"), percent("all_other_ps")
    idle = max(0.0, 100.0 - waits - sends - compute - collectives)
    if waits >= MODERATELY_INPUT_BOUND:
        how = "highly" if waits >= HIGHLY_INPUT_BOUND else "moderately"
        words = f"The program is {how} input-bound: {waits:.1f}% of step time copies input to the device."
        kind, advice = "host" if waits >= HIGHLY_INPUT_BOUND else "both", "Reduce the input time first."
    elif other >= MODERATE:
        words = f"The program may be input-bound: {other:.1f}% of step time no GPU did anything."
        kind, advice = "both", "See what the host does in that time: input, Python, or launching kernels."
    else:
        words = f"The program is not input-bound: only {waits:.1f}% of step time copies input to the device."
        kind, advice = "device", "Reduce device time: the top ops are the place to look."
    if collectives >= MODERATE:
        words += f" {collectives:.1f}% is collective communication."
    return with_slow_steps(Bottleneck(kind, waits, sends, idle, words, (advice,)), steps)  # type: ignore[arg-type]

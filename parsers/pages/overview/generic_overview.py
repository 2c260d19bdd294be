"""The overview of a profile with GPUs, or with neither TPU nor GPU: generic steps, XProf's thresholds.

Sources: `ComputeBottleneckAnalysis`, `ComputeAnalysisResult`. Different from XProf on GPUs: it shows no idle time, and
takes copies and kernels of no op for idle. In a profile without a device the steps and ops are the host's own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpuprof.parsers.base.words import NO_DEVICE, NO_SCOPES, NO_START, percent_of, short
from tpuprof.parsers.files.core_names import core_label
from tpuprof.parsers.hosts.summary import HostSummary
from tpuprof.parsers.ops.device import Peaks
from tpuprof.parsers.ops.framework_op import is_gradient, parse_framework_op
from tpuprof.parsers.ops.host.ops import merge_host_ops
from tpuprof.parsers.ops.roofline import table_rates
from tpuprof.parsers.ops.table import OpTable, framework_groups, merge_tables, most_frequent
from tpuprof.parsers.pages.common import damage_of, warnings_of
from tpuprof.parsers.pages.findings.finding import KINDS
from tpuprof.parsers.pages.findings.on_cpu import KINDS_ON_CPU
from tpuprof.parsers.pages.inference import InferencePage, inference
from tpuprof.parsers.pages.overview.bottleneck import HIGHLY_INPUT_BOUND, MODERATELY_INPUT_BOUND, with_slow_steps
from tpuprof.parsers.pages.overview.by_op import shares_of, top_ops_of
from tpuprof.parsers.pages.overview.ledger import StepAccount, step_account
from tpuprof.parsers.pages.overview.model import (
    Bottleneck,
    Environment,
    Overview,
    Performance,
    Step,
    percent_of_steps,
)
from tpuprof.parsers.pages.overview.on_cpu import account_on_cpu, bottleneck_on_cpu, left_out, on_cpu, steps_on_cpu
from tpuprof.parsers.pages.overview.performance import first_start, host_figures, step_parts
from tpuprof.parsers.pages.steps import step_time
from tpuprof.parsers.steps.accounts.owners import op_owners
from tpuprof.parsers.steps.generic.step_events import GenericSummary
from tpuprof.parsers.steps.ledger import Ledger, generic_ledger
from tpuprof.parsers.steps.model import GenericBreakdown

MODERATE = 3.0
"""It names other time and collectives from this share of step time on; XProf calls them high from 15 %."""

NO_STEPS = "no step of the host launched work on a GPU: nothing marks steps in this profile"
NO_STEPS_ON_CPU = "no annotation of the host (StepTraceAnnotation) marks steps in this profile"
NOT_OF_GPUS = "computed for TPUs only, and these are GPUs"
NOT_OF_CPU = "computed for devices only, and this program ran on the host's CPU"
ON_CPU = (
    "the steps are the host's own: the spans of its annotations; work that runs on after a span ends is not counted"
)

_OF_TPUS = (
    "device_duty_cycle",
    "mxu_utilization",
    "hbm_utilization",
    "flops_utilization",
    "roofline_efficiency",
    "memory_bandwidth_utilization",
)


_MOST_NAMED = 4
"""GPUs that a sentence names."""


def generic_overview(summaries: Sequence[HostSummary]) -> Overview:
    """The overview over some hosts of a run whose devices are GPUs, or that has none.

    Args:
        summaries: at least one with steps or ops of GPUs or of its CPU. Of several hosts it shows the steps of the host
            with most steps.
    """
    generic = [summary.generic for summary in summaries if summary.generic is not None]
    most = max(generic, key=lambda of_host: len(of_host.steps))
    is_cpu = not any(of_host.device_count for of_host in generic)
    steps = tuple(
        Step(step.name, step.group_id, step.start_ps, step.duration_ps, step.breakdown) for step in most.steps
    )
    table = merge_tables([summary.table for summary in summaries])
    unknown: dict[str, str] = {}
    remarks = [f"{most.dropped} steps at the ends of the capture were left out"] * (most.dropped > 0)
    if len(generic) > 1 and steps and not is_cpu:
        remarks.append("the steps shown are those of the host with most of them: hosts without TPUs are not merged")
    remarks += [] if is_cpu else _which_gpus(summaries)
    durations = [s.profile_duration_ps for s in summaries if s.profile_duration_ps is not None]
    if not durations:
        unknown["environment.profile_duration_ms"] = NO_START
    names = [parse_framework_op(op).name for op in set(table.framework_op) if op]
    if not names:
        unknown["environment.is_training"] = NO_SCOPES
    on_host = is_cpu and any(summary.thread_count for summary in summaries)
    cpu = on_cpu(summaries) if is_cpu else None
    account, found = (_account(summaries, table), ()) if cpu is None else account_on_cpu(cpu, table)
    why_no_steps = most.why_no_steps or (NO_STEPS_ON_CPU if is_cpu else NO_STEPS)
    bottleneck = _bottleneck(steps, unknown, why_no_steps, is_cpu)
    if cpu is not None:
        steps = steps_on_cpu(cpu, summaries)
        remarks += [left_out(cpu)] * bool(left_out(cpu))
        bottleneck = with_slow_steps(bottleneck_on_cpu(cpu), steps)
        if bottleneck.input_percent is None:
            unknown["bottleneck.input_percent"] = bottleneck.statement
    if is_cpu and not on_host:
        unknown["environment.device_type"] = NO_DEVICE
    return Overview(
        hosts=tuple(summary.host for summary in summaries),
        environment=Environment(
            host_count=len(summaries),
            task_count=max(1, len(generic)),
            device_type=most.device_type if on_host or not is_cpu else None,
            device_core_count=sum(of_host.device_count for of_host in generic),
            is_training=any(map(is_gradient, names)) if names else None,
            profile_duration_ps=max(durations) if durations else None,
            simulated=any(summary.simulated for summary in summaries),
            profile_start_ns=first_start(summaries, unknown),
            damage=tuple(damage for damage in map(damage_of, summaries) if damage is not None),
        ),
        performance=_performance(summaries, generic, table, steps, unknown, why_no_steps),
        shares=shares_of(table, summaries),
        steps=steps,
        step_parts=step_parts(steps),
        findings=found,
        undetectable={
            kind: NOT_OF_CPU if is_cpu else NOT_OF_GPUS for kind in KINDS if cpu is None or kind not in KINDS_ON_CPU
        },
        top_ops=top_ops_of(table),
        bottleneck=bottleneck,
        inference=_offered(summaries, any(map(is_gradient, names)) if names else None),
        op_count=len(table),
        op_event_count=sum(summary.op_events for summary in summaries),
        unknown=unknown,
        warnings=warnings_of(summaries, remarks, [summary.clocks for summary in summaries]),
        account=account,
    )


def _offered(summaries: Sequence[HostSummary], is_training: bool | None) -> InferencePage | None:
    """What may be taken for the requests of a program; None where nothing may."""
    page = inference([summary.requests for summary in summaries], [of.host for of in summaries], is_training)
    return page if page.source is not None or page.offers else None


def _which_gpus(summaries: Sequence[HostSummary]) -> list[str]:
    """A sentence on which GPUs worked; none where all of them did."""
    gpus = [
        (core_label(summary.host, gpu.number), gpu)
        for summary in summaries
        for gpu in (summary.generic.busy if summary.generic is not None else ())
    ]
    busy = sorted(((name, gpu.busy_ps) for name, gpu in gpus if gpu.busy_ps), key=lambda pair: -pair[1])
    if not busy or len(busy) == len(gpus):
        return []
    names = ", ".join(short(name) for name, _ in busy[:_MOST_NAMED])
    more = f" and {len(busy) - _MOST_NAMED:,} more" if len(busy) > _MOST_NAMED else ""
    return [f"{len(busy):,} of {len(gpus):,} GPUs ran something: {names}{more}, the one with most time first"]


def generic_steps(summaries: Sequence[HostSummary]) -> Ledger | None:
    """The account of the steps that `generic_overview` shows; None without steps."""
    cpu = on_cpu(summaries)
    if cpu is not None:
        return cpu.ledger
    having = [(summary.generic, summary.host) for summary in summaries if summary.generic is not None]
    most, host = max(having, key=lambda of_host: len(of_host[0].steps))
    return generic_ledger(most.steps, f"{host}:0")


def _account(summaries: Sequence[HostSummary], table: OpTable) -> StepAccount | None:
    """Where the mean step goes; None without steps."""
    account = generic_steps(summaries)
    if account is None:
        return None
    return step_account(account, table, table_rates(table, Peaks()), op_owners(table, Peaks()))


def _performance(
    summaries: Sequence[HostSummary],
    generic: Sequence[GenericSummary],
    table: OpTable,
    steps: Sequence[Step],
    unknown: dict[str, str],
    why_no_steps: str,
) -> Performance:
    is_cpu = not any(of_host.device_count for of_host in generic)
    host = merge_host_ops([summary.host_ops for summary in summaries])
    figures = host_figures(host, _placed(table))
    bits16, bits32 = (sum(getattr(gpu, f"compute_{bits}bit_ps") for gpu in generic) for bits in (16, 32))
    unknown.update({f"performance.{key}_percent": NOT_OF_CPU if is_cpu else NOT_OF_GPUS for key in _OF_TPUS})
    unknown.update({f"performance.{key}": why for key, (value, why) in figures.items() if value is None})
    total, busy = (sum(getattr(summary, key) for summary in summaries) for key in ("total_ps", "self_ps"))
    idle = None if is_cpu else percent_of(total - busy, total)
    if idle is None:
        unknown["performance.device_idle_percent"] = NOT_OF_CPU if is_cpu else "no event ran on a GPU"
    if not bits16 + bits32:
        reason = NOT_OF_CPU if is_cpu else "no compute of a GPU belongs to a step"
        unknown.update({f"performance.compute_precision.bits{bits}_percent": reason for bits in (16, 32)})
    if not steps:
        unknown["performance.step_time_ms"] = why_no_steps
    durations = np.array([step.duration_ps for step in steps], np.float64)
    told = [gpu.eager_ps for gpu in generic if gpu.eager_ps is not None]
    eager = percent_of(sum(told), busy) if told else None
    if eager is not None:
        unknown.pop("performance.eager_percent.device", None)
    return Performance(
        step_time=step_time(durations, "steps", ON_CPU if is_cpu else "") if steps else None,
        device_duty_cycle_percent=None,
        device_idle_percent=idle,
        host_idle_percent=figures["host_idle_percent"][0],
        mxu_utilization_percent=None,
        hbm_utilization_percent=None,
        flops_utilization_percent=None,
        roofline_efficiency_percent=None,
        memory_bandwidth_utilization_percent=None,
        host_op_percent=figures["op_placement.host_percent"][0],
        device_op_percent=figures["op_placement.device_percent"][0],
        eager_host_percent=figures["eager_percent.host"][0],
        eager_device_percent=eager,
        bits16_percent=percent_of(bits16, bits16 + bits32),
        bits32_percent=percent_of(bits32, bits16 + bits32),
    )


def _placed(table: OpTable) -> int:
    """How often framework ops ran on the device; what stands for itself is none."""
    rows = np.array([bool(op) for op in table.framework_op], np.bool_) | (table.program_id > 0)
    chosen = table.take(np.flatnonzero(rows))
    groups = framework_groups(chosen)
    return int(most_frequent(groups.group, chosen.occurrences, len(groups.name)).sum())


def _bottleneck(steps: Sequence[Step], unknown: dict[str, str], why: str, is_cpu: bool) -> Bottleneck:
    """Judges whether the steps wait: for input, or in much time in which no GPU does anything."""
    has_parts = any(isinstance(step.breakdown, GenericBreakdown) for step in steps)
    if not has_parts or not any(step.duration_ps for step in steps):
        unknown.update({f"bottleneck.{key}_percent": why for key in ("input", "output", "idle")})
        return Bottleneck("unknown", None, None, None, f"Whether it waits for input is unknown: {why}.", ())

    def percent(*fields: str) -> float:
        return percent_of_steps(steps, *(f"{field}_ps" for field in fields))

    collectives, launch, compiles = percent("device_collectives"), percent("kernel_launch"), percent("compile")
    waits, sends, of_host = percent("input"), percent("output"), percent("host_compute", "host_ops")
    other = percent("all_other") + (0.0 if is_cpu else of_host + launch + compiles)
    idle = max(0.0, 100.0 - waits - sends - collectives - percent("device_compute", "device_to_device", "host_ops"))
    if waits >= MODERATELY_INPUT_BOUND:
        how = "highly" if waits >= HIGHLY_INPUT_BOUND else "moderately"
        words = f"The program is {how} input-bound: {waits:.1f}% of step time waits for input or copies it."
        kind, advice = "host" if waits >= HIGHLY_INPUT_BOUND else "both", "Reduce the input time first."
        if launch > waits:
            advice = "Reduce the time to launch kernels first, with fewer and larger ones, then that of the input."
    elif other >= MODERATE:
        nobody = "nothing was traced" if is_cpu else "no GPU did anything"
        words = f"The program may be input-bound: {other:.1f}% of step time {nobody}."
        kind, advice = "both", "See what the host does in that time: input, Python, or launching kernels."
    else:
        words = f"The program is not input-bound: only {waits:.1f}% of step time waits for input or copies it."
        kind, advice = "device", "Reduce the ops' time: the top ops are the place to look."
    for share, what in (
        (launch, "launching kernels"),
        (compiles, "compiling"),
        (collectives, "collective communication"),
    ):
        if share >= MODERATE:
            words += f" {share:.1f}% is {what}."
    return with_slow_steps(Bottleneck(kind, waits, sends, idle, words, (advice,)), steps)  # type: ignore[arg-type]

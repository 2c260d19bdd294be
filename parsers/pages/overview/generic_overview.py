"""The overview of a profile without TPUs: steps on GPUs or the host's CPU, the CPU's with account and verdict.

Source: `ComputeAnalysisResult`. Different from XProf on GPUs: it shows no idle time, and
takes copies and kernels of no op for idle. In a profile without a device the steps and ops are the host's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tpuprof.parsers.base.intervals import grouped
from tpuprof.parsers.base.record import fields, replace
from tpuprof.parsers.base.text import counted, examples
from tpuprof.parsers.base.words import NO_DEVICE, NO_SCOPES, NO_START, percent_of, share, shortened, time
from tpuprof.parsers.files.core_names import core_label, host_of
from tpuprof.parsers.hosts.summary import HostSummary
from tpuprof.parsers.ops.device import Peaks
from tpuprof.parsers.ops.framework_op import is_gradient, parse_framework_op
from tpuprof.parsers.ops.host_events.ops import merge_host_ops
from tpuprof.parsers.ops.roofline import table_rates
from tpuprof.parsers.ops.streams.attribution import is_callback
from tpuprof.parsers.ops.table import OpTable, framework_groups, merge_tables, most_frequent
from tpuprof.parsers.pages.findings.finding import Finding
from tpuprof.parsers.pages.findings.generic.on_cpu import (
    KINDS_ON_CPU,
    KINDS_ON_GPUS,
    OnCpu,
    findings_on_cpu,
    findings_on_gpus,
)
from tpuprof.parsers.pages.findings.idle.outside import longest_outside, outside_words
from tpuprof.parsers.pages.findings.why_slow import KINDS
from tpuprof.parsers.pages.overview import performance
from tpuprof.parsers.pages.overview.bottleneck import of_account, told, unknown_bottleneck
from tpuprof.parsers.pages.overview.by_op import shares_of, top_ops_of
from tpuprof.parsers.pages.overview.ledger import MeanStep, mean_step, of_group_shown, with_claims
from tpuprof.parsers.pages.overview.model import MODERATELY_INPUT_BOUND, Bottleneck, Overview, Performance, Step
from tpuprof.parsers.pages.overview.verdict import LEAST_BOUND, Verdict, VerdictKind
from tpuprof.parsers.pages.shared.common import warnings_of
from tpuprof.parsers.pages.shared.groups import group_shown, in_group, shown_words
from tpuprof.parsers.pages.shared.steps import group_rows, step_time
from tpuprof.parsers.steps.accounts.owners import OpOwners, op_owners, owner_index
from tpuprof.parsers.steps.boundaries.observed import idle_percent
from tpuprof.parsers.steps.generic.programs import NOT_MARKED
from tpuprof.parsers.steps.generic.step_events import GenericSummary
from tpuprof.parsers.steps.model import GenericBreakdown
from tpuprof.parsers.steps.step_account import Account, cpu_account, steps_kept

_VERDICTS: Mapping[str, VerdictKind] = {
    "input": "input-bound",
    "compilation": "compiling",
    "host": "host-bound",
    "idle": "untraced",
    "straggler": "waiting",
}

INPUT_NOT_TRACED = (
    "for much of the steps' time no op runs, and what the host does then is not traced: python_tracer_level=1 shows it"
)

_MOST_NAMED = 4
"""Hosts or GPUs that a sentence names."""

FROM_STEP_TO_STEP = "the time from a step to the next"


def on_cpu(summaries: Sequence[HostSummary]) -> OnCpu | None:
    """The account of the steps on the CPUs of some hosts; None without steps, or with a device."""
    hosts = [(summary.host, summary.on_cpu) for summary in summaries if summary.on_cpu is not None]
    account = cpu_account(hosts)
    if account is None:
        return None
    names = [host_of(name) for name in account.core_names]
    has_ops = any(summary.thread_count for summary in summaries)
    return OnCpu(account, tuple(pair for pair in hosts if pair[0] in names), has_ops)


def on_gpus(summaries: Sequence[HostSummary]) -> OnCpu | None:
    """The account of the steps on the GPUs of hosts that keep step, else of the one with most; None without steps."""
    accounts = [(of.host, None if of.generic is None else of.generic.account) for of in summaries]
    hosts = [(host, account) for host, account in accounts if account is not None]
    if hosts and not steps_kept([steps for _, steps in hosts]):
        hosts = [max(hosts, key=lambda pair: len(pair[1]))]
    account = cpu_account(hosts)
    return None if account is None else OnCpu(account, tuple(hosts))


def account_on_cpu(of: OnCpu, table: OpTable, failed: list[str]) -> tuple[MeanStep, tuple[Finding, ...]]:
    """Where the mean step goes, and why; `failed` gets a sentence on what could not be looked for."""
    found = findings_on_cpu(of, failed)
    account = mean_step(of.account, table, table_rates(table, Peaks()), _owners(table))
    verdict = _verdict(of, found, account.verdict)
    return with_claims(replace(account, verdict=verdict), found), found


def _owners(table: OpTable) -> OpOwners:
    """Whose the time of the ops is: that of those that call the host's Python is the host's."""
    owners = op_owners(table, Peaks())
    rows = [
        row
        for row, (name, framework_op) in enumerate(zip(table.name, table.framework_op, strict=True))
        if is_callback(table.expression(row), name, framework_op or "")
    ]
    owners.owner[rows] = owner_index("host")
    return owners


def _verdict(of: OnCpu, found: Sequence[Finding], of_ops: Verdict) -> Verdict:
    """The finding that is worth most, or the ops where they take longer than what it is about."""
    first = next((finding for finding in found if finding.kind in _VERDICTS), None)
    caused = sum(claim.time_ps for claim in first.claims if claim.owner == "uncounted") if first is not None else 0.0
    ops = (float(of.cells().mean(axis=0)[owner_index("uncounted")]) - caused) / of.whole_ps
    if first is None or first.worth_ps is None or first.worth_ps < max(LEAST_BOUND, ops) * of.whole_ps:
        return of_ops
    whole = FROM_STEP_TO_STEP if of.account.steps_lie_apart else "a step"
    part = f"{share(first.worth_ps / of.whole_ps)} of {whole} ({time(first.worth_ps)} of {time(of.whole_ps)})"
    kind = _VERDICTS[first.kind]
    return Verdict(kind, first.worth_ps / of.whole_ps, "", f"{first.title}, {part}.", first.advice)


def left_out(of: OnCpu) -> str:
    """A sentence on processes whose profiles are not there; empty where all are, or nobody says."""
    devices = max((steps.devices for _, steps in of.hosts), default=0)
    here = sum(steps.local_devices for _, steps in of.hosts)
    if not 0 < here < devices:
        return ""
    return (
        f"the program runs on {devices:,} devices, and {here:,} of them are in this run: the profiles of other "
        "processes are missing; processes of one machine that write into one folder use one file name, and only "
        "the last file stays"
    )


def not_shown(of: OnCpu, summaries: Sequence[HostSummary]) -> str:
    """A sentence on hosts that do not keep step with the one that is shown; empty where there are none."""
    shown = [host for host, _ in of.hosts]
    others = [(of.host, of.on_cpu) for of in summaries if of.on_cpu is not None and of.host not in shown]
    if not others:
        return ""
    each = [f"{shortened(host)} takes {time(float(steps.step_ps.mean()))}" for host, steps in others]
    return (
        f"the hosts do not keep step, and none waits for another: the steps shown are those of {shortened(shown[0])}, "
        f"which takes longest, {time(of.account.mean_step_ps)}; "
        f"{examples(each, _MOST_NAMED)}"
    )


def steps_on_cpu(of: OnCpu, summaries: Sequence[HostSummary]) -> tuple[Step, ...]:
    """The steps that the account has: means over processes, of the duration on the slowest one."""
    names = [name for name, _ in of.hosts]
    shown = [of.generic for of in summaries if of.generic is not None and of.host in names]
    breakdowns = grouped((step.name, step) for generic in shown for step in generic.steps)
    steps = []
    for name, duration in zip(of.account.names, of.account.step_ps.tolist(), strict=True):
        first = breakdowns[name][0]
        parts = {
            part.name: sum(getattr(step.breakdown, part.name) for step in breakdowns[name]) / len(breakdowns[name])
            for part in fields(first.breakdown)
        }
        parts["all_other_ps"] += duration - sum(step.duration_ps for step in breakdowns[name]) / len(breakdowns[name])
        steps.append(Step(name, first.group_id, first.start_ps, duration, GenericBreakdown(**parts)))
    return tuple(steps)


def bottleneck_on_cpu(of: OnCpu, verdict: Verdict) -> Bottleneck:
    """What limits the steps; how long they wait for input is unknown where much of their time is not traced."""
    cells = of.cells().mean(axis=0) * (100.0 / of.whole_ps)
    waits, ops = float(cells[owner_index("input")]), float(cells[owner_index("uncounted")])
    sends = float(cells[owner_index("host_transfer")])
    idle = max(0.0, 100.0 - ops - waits - sends - float(cells[owner_index("collective_transfer")]))
    untraced = 100.0 * float(of.untraced_ps().mean()) / of.whole_ps
    is_unknown = waits < MODERATELY_INPUT_BOUND <= untraced
    return told(verdict, None if is_unknown else waits, sends, idle, of.account.steps_lie_apart)


NO_STEPS = "no step of the host launched work on a GPU: nothing marks steps in this profile"
NO_STEPS_ON_CPU = f"{NOT_MARKED} in this profile, and no program runs often"
NOT_OF_GPUS = "not computed for GPUs"
NO_COMPUTE = "no compute of a GPU belongs to a step"
LOST_KERNELS = "the profiler lost kernels of GPUs"
NO_TYPES = "no event of a GPU tells the types of the tensors that its kernel works on"
NOT_OF_CPU = "computed for devices only, and this program ran on the host's CPU"
ON_CPU = (
    "the steps are the host's own: the spans of its annotations; work that runs on after a span ends is not counted"
)

_OF_TPUS = (
    "device_duty_cycle_percent",
    "xprof_duty_cycle_percent",
    "mxu_utilization_percent",
    "hbm_utilization_percent",
    "flops_utilization_percent",
    "roofline_efficiency_percent",
    "memory_bandwidth_utilization_percent",
)


def generic_overview(summaries: Sequence[HostSummary], of_group: Sequence[HostSummary] = ()) -> Overview:
    """The overview over some hosts of a run whose devices are GPUs, or that has none.

    Args:
        summaries: at least one with steps or ops of GPUs or of its CPU. Of several hosts with GPUs it shows the steps
            of the host with most of them.
        of_group: the summaries of one group of devices alone, where there are several: findings are of its ops.
    """
    main, of_main = group_shown(summaries), _with_steps(summaries)
    generic = [summary.generic for summary in of_main if summary.generic is not None]
    is_cpu = not any(of_host.device_count for of_host in generic)
    cpu = on_cpu(of_main)
    shown_on = cpu or on_gpus(of_main)
    hosts = () if shown_on is None else [host for host, _ in shown_on.hosts]
    shown = [(of.host, of.generic) for of in of_main if of.generic is not None and of.host in (hosts or [of.host])]
    host, most = max(shown, key=lambda of: len(of[1].steps))
    kept = {step.name for step in most.steps} if shown_on is None else set(shown_on.account.names)
    parts = [(step.name, step.group_id, step.start_ps, step.duration_ps, step.breakdown) for step in most.steps]
    steps = steps_on_cpu(cpu, of_main) if cpu is not None else tuple(Step(*of) for of in parts if of[0] in kept)
    table = merge_tables([summary.table for summary in summaries])
    shown_table = merge_tables([summary.table for summary in of_group]) if of_group else table
    unknown: dict[str, str] = {}
    remarks = [f"{most.dropped} steps at the ends of the capture were left out"] * (most.dropped > 0)
    if len(generic) > 1 and steps and not is_cpu:
        whose = "the host with most of them: hosts with GPUs whose collectives do not end together are not merged"
        whose = f"{shortened(host)}, as in XProf, and their account is of all hosts" if len(hosts) > 1 else whose
        remarks.append(f"the parts of steps are those of {whose}")
    if not is_cpu:
        remarks += [*_which_gpus(summaries), *_lost_kernels([each for of in summaries for each in of.generics])]
    names = [parse_framework_op(op).name for op in set(table.framework_op) if op]
    if not names:
        unknown["environment.is_training"] = NO_SCOPES
    on_host = is_cpu and any(summary.thread_count for summary in summaries)
    account, found = (
        _on_gpus(shown_on, shown_table, remarks) if cpu is None else account_on_cpu(cpu, shown_table, remarks)
    )
    looked = KINDS_ON_CPU if cpu is not None else KINDS_ON_GPUS if shown_on is not None else frozenset()
    why_no_steps = most.why_no_steps or (NO_STEPS_ON_CPU if is_cpu else NO_STEPS)
    if account is not None and main is not None:
        account, remarks = of_group_shown(account, main.label), [shown_words(main), *remarks]
    if account is None or not steps:
        bottleneck = unknown_bottleneck(why_no_steps, unknown)
    else:
        bottleneck = of_account(account, True, 100 * account.share("host_transfer"))
    if cpu is not None and account is not None:
        remarks += filter(
            None, (*map(outside_words, longest_outside(summaries)), left_out(cpu), not_shown(cpu, summaries))
        )
        bottleneck = bottleneck_on_cpu(cpu, account.verdict)
        if bottleneck.input_percent is None:
            unknown["bottleneck.input_percent"] = INPUT_NOT_TRACED
    if is_cpu and not on_host:
        unknown["environment.device_type"] = NO_DEVICE
    device = most.device_type if on_host or not is_cpu else None, sum(summary.gpu_count for summary in summaries)
    tasks = max(1, sum(summary.generic is not None for summary in summaries))
    training = any(map(is_gradient, names)) if names else None
    environment = performance.environment_of(summaries, unknown, NO_START, tasks, device, training)
    if environment.first_op_ps is not None and environment.silence_ps is None and not is_cpu:
        unknown["environment.longest_silence_ms"] = LOST_KERNELS
    return Overview(
        hosts=tuple(summary.host for summary in summaries),
        environment=environment,
        performance=_performance(summaries, table, steps, unknown, why_no_steps, most),
        shares=shares_of(table, summaries),
        steps=steps,
        step_parts=performance.step_parts(steps),
        findings=found,
        undetectable={kind: NOT_OF_CPU if is_cpu else NOT_OF_GPUS for kind in KINDS if kind not in looked},
        top_ops=top_ops_of(table),
        bottleneck=bottleneck,
        inference=performance.latencies_of(summaries, training, without_runs=True),
        op_count=len(table),
        op_event_count=sum(summary.op_events for summary in summaries),
        unknown=unknown,
        warnings=warnings_of(summaries, remarks, [summary.clocks for summary in summaries]),
        account=account,
        groups=group_rows(summaries),
        group=None if main is None else main.number,
    )


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
    names = examples([shortened(name) for name, _ in busy], _MOST_NAMED)
    return [f"{len(busy):,} of {len(gpus):,} GPUs ran something: {names}, the one with most time first"]


def _lost_kernels(generic: Sequence[GenericSummary]) -> list[str]:
    """A sentence on kernels that were not recorded; none where all were."""
    keys = ("launches", "lost_launches", "lost_steps")
    launches, lost, steps = (sum(getattr(of, key) for of in generic) for key in keys)
    have = "has no kernel" if lost == 1 else "have no kernels"
    words = [f"of {launches:,} launches, {lost:,} {have}: the profiler lost them"] * (lost > 0)
    lack = f"{counted(steps, 'step')} {'lacks' if steps == 1 else 'lack'} kernels that the others have"
    return [*words, *[f"{lack}: they were not recorded, and figures are of the other steps"] * (steps > 0)]


def _with_steps(summaries: Sequence[HostSummary]) -> Sequence[HostSummary]:
    """The hosts whose steps count, of the group that is shown: where some have GPUs, these."""
    main = group_shown(summaries)
    of_main = summaries if main is None else in_group(summaries, main)
    return [of for of in of_main if of.generic is not None and of.generic.device_count] or of_main


def generic_steps(summaries: Sequence[HostSummary]) -> Account | None:
    """The account of the steps that `generic_overview` shows; None without steps."""
    having = _with_steps(summaries)
    of = on_cpu(having) or on_gpus(having)
    return None if of is None else of.account


def _on_gpus(of: OnCpu | None, table: OpTable, failed: list[str]) -> tuple[MeanStep | None, tuple[Finding, ...]]:
    """Where the mean step goes, and why; None without steps. What could not be looked for is told in `failed`."""
    if of is None:
        return None, ()
    found = findings_on_gpus(of, failed)
    mean = mean_step(of.account, table, table_rates(table, Peaks()), op_owners(table, Peaks()))
    return with_claims(mean, found), found


def _performance(
    summaries: Sequence[HostSummary],
    table: OpTable,
    steps: Sequence[Step],
    unknown: dict[str, str],
    why_no_steps: str,
    most: GenericSummary,
) -> Performance:
    is_cpu, generic = not most.device_count, [each for summary in summaries for each in summary.generics]
    host = merge_host_ops([summary.host_ops for summary in summaries])
    bits16, bits32 = (sum(getattr(gpu, f"compute_{bits}bit_ps") for gpu in generic) for bits in (16, 32))
    total, busy, span = (sum(getattr(of, key) for of in summaries) for key in ("total_ps", "self_ps", "span_ps"))
    observed = [of for summary in summaries for of in summary.observed]
    told = [gpu.eager_ps for gpu in generic if gpu.eager_ps is not None]
    no_compute = NOT_OF_CPU if is_cpu else NO_TYPES if steps else NO_COMPUTE
    no_idle = LOST_KERNELS if any(of.lost_ps is None for of in observed) else "no event ran on a GPU"
    figures: dict[str, performance.Known] = {
        **dict.fromkeys(_OF_TPUS, (None, NOT_OF_CPU if is_cpu else NOT_OF_GPUS)),
        **performance.host_figures(host, _placed(table)),
        "device_idle_percent": (None, NOT_OF_CPU) if is_cpu else (idle_percent(observed), no_idle),
        "xprof_idle_percent": (None, NOT_OF_CPU)
        if is_cpu
        else (percent_of(total - busy, span), "no event ran on a GPU"),
        "eager_device_percent": (percent_of(sum(told), busy) if told else None, performance.NO_EAGER),
        "bits16_percent": (percent_of(bits16, bits16 + bits32), no_compute),
        "bits32_percent": (percent_of(bits32, bits16 + bits32), no_compute),
    }
    durations = np.array([step.duration_ps for step in steps], np.float64)
    note = most.note or (ON_CPU if is_cpu else "")
    time = step_time(durations, most.source, note) if steps else None
    return performance.known_figures(time, why_no_steps, figures, unknown)


def _placed(table: OpTable) -> int:
    """How often framework ops ran on the device; what stands for itself is none."""
    rows = np.array([bool(op) for op in table.framework_op], np.bool_) | (table.program_id > 0)
    chosen = table.take(np.flatnonzero(rows))
    groups = framework_groups(chosen)
    return int(most_frequent(groups.group, chosen.occurrences, len(groups.name)).sum())

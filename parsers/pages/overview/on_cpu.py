"""The overview of a program on the host's CPU: the account of its steps, the verdict and its evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

from tpuprof.parsers.base.text import examples
from tpuprof.parsers.base.words import share, shortened, time
from tpuprof.parsers.files.core_names import host_of
from tpuprof.parsers.hosts.summary import HostSummary
from tpuprof.parsers.ops.device import Peaks
from tpuprof.parsers.ops.roofline import table_rates
from tpuprof.parsers.ops.streams.attribution import is_callback
from tpuprof.parsers.ops.table import OpTable
from tpuprof.parsers.pages.findings.finding import Finding
from tpuprof.parsers.pages.findings.generic.on_cpu import OnCpu, findings_on_cpu
from tpuprof.parsers.pages.overview.bottleneck import told
from tpuprof.parsers.pages.overview.ledger import MeanStep, mean_step, with_claims
from tpuprof.parsers.pages.overview.model import MODERATELY_INPUT_BOUND, Bottleneck, Step
from tpuprof.parsers.pages.overview.verdict import LEAST_BOUND, Verdict, VerdictKind
from tpuprof.parsers.steps.accounts.owners import OpOwners, op_owners, owner_index
from tpuprof.parsers.steps.generic.step_events import GenericStep
from tpuprof.parsers.steps.model import GenericBreakdown
from tpuprof.parsers.steps.step_account import cpu_account, steps_kept

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
"""Hosts that a sentence names."""

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
    breakdowns: dict[str, list[GenericStep]] = {}
    names = [name for name, _ in of.hosts]
    for summary in summaries:
        for step in summary.generic.steps if summary.generic is not None and summary.host in names else ():
            breakdowns.setdefault(step.name, []).append(step)
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

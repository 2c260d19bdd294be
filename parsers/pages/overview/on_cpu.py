"""The overview of a program on the host's CPU: the account of its steps, the verdict and its evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

from tpuprof.parsers.base.words import share, time
from tpuprof.parsers.files.core_names import host_of
from tpuprof.parsers.hosts.summary import HostSummary
from tpuprof.parsers.ops.device import Peaks
from tpuprof.parsers.ops.roofline import table_rates
from tpuprof.parsers.ops.table import OpTable
from tpuprof.parsers.pages.findings.finding import Finding, FindingKind
from tpuprof.parsers.pages.findings.on_cpu import NOT_TRACED, OnCpu, findings_on_cpu
from tpuprof.parsers.pages.overview.bottleneck import HIGHLY_INPUT_BOUND, MODERATELY_INPUT_BOUND
from tpuprof.parsers.pages.overview.ledger import StepAccount, step_account, with_claims
from tpuprof.parsers.pages.overview.model import Bottleneck, Step
from tpuprof.parsers.pages.overview.verdict import LEAST_BOUND, Verdict, VerdictKind
from tpuprof.parsers.steps.accounts.owners import op_owners, owner_index
from tpuprof.parsers.steps.generic.step_events import GenericStep
from tpuprof.parsers.steps.ledger import cpu_ledger
from tpuprof.parsers.steps.model import GenericBreakdown

_VERDICTS: Mapping[FindingKind, VerdictKind] = {
    "input": "input-bound",
    "compilation": "compiling",
    "host": "host-bound",
    "idle": "untraced",
    "straggler": "waiting",
}

FROM_STEP_TO_STEP = "the time from a step to the next"


def on_cpu(summaries: Sequence[HostSummary]) -> OnCpu | None:
    """The account of the steps on the CPUs of some hosts; None without steps, or with a device."""
    accounts = [
        (summary.host, summary.generic.account)
        for summary in summaries
        if summary.generic is not None and summary.generic.account is not None and summary.thread_count
    ]
    ledger = cpu_ledger(accounts)
    if ledger is None:
        return None
    names = [host_of(name) for name in ledger.core_names]
    return OnCpu(ledger, tuple(pair for pair in accounts if pair[0] in names))


def account_on_cpu(of: OnCpu, table: OpTable) -> tuple[StepAccount, tuple[Finding, ...]]:
    """Where the mean step goes, and why."""
    found = findings_on_cpu(of)
    account = step_account(of.ledger, table, table_rates(table, Peaks()), op_owners(table, Peaks()))
    verdict = _verdict(of, found, account.verdict)
    return with_claims(replace(account, verdict=verdict), found), found


def _verdict(of: OnCpu, found: Sequence[Finding], of_ops: Verdict) -> Verdict:
    """The finding that is worth most, or the ops where they take longer than what it is about."""
    ops = float(of.cells().mean(axis=0)[owner_index("uncounted")]) / of.whole_ps
    first = next((finding for finding in found if finding.kind in _VERDICTS), None)
    if first is None or first.worth_ps is None or first.worth_ps < max(LEAST_BOUND, ops) * of.whole_ps:
        return of_ops
    whole = FROM_STEP_TO_STEP if of.ledger.steps_lie_apart else "a step"
    part = f"{share(first.worth_ps / of.whole_ps)} of {whole} ({time(first.worth_ps)} of {time(of.whole_ps)})"
    kind = _VERDICTS[first.kind]
    return Verdict(kind, first.worth_ps / of.whole_ps, "", f"{first.title}, {part}.", first.advice)


def left_out(of: OnCpu) -> str:
    """A sentence on processes whose profiles are not there; empty where all are, or nobody says."""
    devices = max((account.devices for _, account in of.hosts), default=0)
    here = sum(account.local_devices for _, account in of.hosts)
    if not 0 < here < devices:
        return ""
    return (
        f"the program runs on {devices:,} devices, and {here:,} of them are in this run: the profiles of other "
        "processes are missing; processes of one machine that write into one folder use one file name, and only "
        "the last file stays"
    )


def steps_on_cpu(of: OnCpu, summaries: Sequence[HostSummary]) -> tuple[Step, ...]:
    """The steps that the account has: means over processes, of the duration on the slowest one."""
    breakdowns: dict[str, list[GenericStep]] = {}
    names = [name for name, _ in of.hosts]
    for summary in summaries:
        for step in summary.generic.steps if summary.generic is not None and summary.host in names else ():
            breakdowns.setdefault(step.name, []).append(step)
    steps = []
    for name, duration in zip(of.ledger.names, of.ledger.step_ps.tolist(), strict=True):
        first = breakdowns[name][0]
        parts = {
            part.name: sum(getattr(step.breakdown, part.name) for step in breakdowns[name]) / len(breakdowns[name])
            for part in fields(first.breakdown)
        }
        parts["all_other_ps"] += duration - sum(step.duration_ps for step in breakdowns[name]) / len(breakdowns[name])
        steps.append(Step(name, first.group_id, first.start_ps, duration, GenericBreakdown(**parts)))
    return tuple(steps)


def bottleneck_on_cpu(of: OnCpu) -> Bottleneck:
    """Whether the steps wait for input; unknown where much of their time is not traced."""
    cells = of.cells().mean(axis=0) * (100.0 / of.whole_ps)
    waits, ops = float(cells[owner_index("input")]), float(cells[owner_index("uncounted")])
    sends = float(cells[owner_index("host_transfer")])
    idle = max(0.0, 100.0 - ops - waits - sends - float(cells[owner_index("collective_transfer")]))
    untraced = 100.0 * float(of.untraced_ps().mean()) / of.whole_ps
    whole = FROM_STEP_TO_STEP if of.ledger.steps_lie_apart else "step time"
    if waits >= MODERATELY_INPUT_BOUND:
        how = "highly" if waits >= HIGHLY_INPUT_BOUND else "moderately"
        words = f"The program is {how} input-bound: {waits:.1f}% of {whole} waits for, makes or sends input."
        advice = ("Reduce the input time first.",)
        return Bottleneck("host" if how == "highly" else "both", waits, sends, idle, words, advice)
    if untraced >= MODERATELY_INPUT_BOUND:
        words = f"Whether it waits for input is unknown: in {untraced:.1f}% of {whole} no op runs, and what the "
        words += f"host does is {NOT_TRACED}."
        return Bottleneck("unknown", None, sends, idle, words, ("Capture with python_tracer_level=1.",))
    words = f"The program is not input-bound: only {waits:.1f}% of {whole} waits for input."
    return Bottleneck("device", waits, sends, idle, words, ())

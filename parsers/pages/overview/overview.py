"""Computes the overview page from what the hosts of a run add up to.

Formulas are XProf's (`op_stats_to_overview_page.cc`, `op_stats_to_input_pipeline_analysis.cc`) except in these places,
where XProf is wrong or silent:

- An op that starts where a step ends counts for the next step, not for both neighbours' earlier one
  (`parsers.steps.times`).
- A first or last step that the capture cut into is left out and named; XProf counts it.
- Without infeed ops, the time that waits for input is idle time during which the host waits for input. XProf moves as
  much idle time there as the host waits in all, even while the device is busy.
- The share of step time spent waiting for input is of the step time; XProf divides by step time plus all-reduce time.
- FLOPS and bandwidth utilization and roofline efficiency are computed; XProf's overview always prints 0.0 %.
- Without step markers, step time is the period of the busiest module, and says so; XProf has none.
- A figure that the profile does not provide is `None` with a reason; XProf prints 0.0 % (host idle time: 100.0 %).
- The precision of matrix ops comes from the types in their HLO; XProf leaves it empty on TPU.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tpuprof.parsers.base.errors import behind_wall
from tpuprof.parsers.base.intervals import Int64s, interval_index, median
from tpuprof.parsers.base.record import replace
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.words import NO_DEVICE, NO_DEVICE_NAME, NO_SCOPES, NO_SPAN, shortened
from tpuprof.parsers.files.core_names import core_label, host_of, labels_together
from tpuprof.parsers.files.places import HostFile
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.hosts.summary import SUMMARY_OF_HOST, HostSummary
from tpuprof.parsers.ops.core.calls import merged_calls
from tpuprof.parsers.ops.core.times import join_core_ops
from tpuprof.parsers.ops.device import Peaks
from tpuprof.parsers.ops.framework_op import is_gradient, parse_framework_op
from tpuprof.parsers.ops.roofline import above_peak_words, table_rates
from tpuprof.parsers.ops.table import OpTable, merge_tables
from tpuprof.parsers.pages.findings.budget import Budget, budget
from tpuprof.parsers.pages.findings.capture import NO_DEVICE as NO_DEVICE_EVENTS
from tpuprof.parsers.pages.findings.capture import why_no_device
from tpuprof.parsers.pages.findings.finding import Evidence, Finding, InCapture, Unit
from tpuprof.parsers.pages.findings.idle.outside import longest_outside, outside_words
from tpuprof.parsers.pages.findings.ops.losses import losses
from tpuprof.parsers.pages.findings.why_slow import look_for_findings, undetectable
from tpuprof.parsers.pages.ops.ops import programs_of
from tpuprof.parsers.pages.overview import performance as figures
from tpuprof.parsers.pages.overview.accounts_of_ops import OpAccounts, op_accounts
from tpuprof.parsers.pages.overview.bottleneck import bottleneck_of
from tpuprof.parsers.pages.overview.by_op import shares_of, top_ops_of
from tpuprof.parsers.pages.overview.generic_overview import generic_overview, generic_steps
from tpuprof.parsers.pages.overview.ledger import MeanStep, mean_step, of_group_shown, with_claims
from tpuprof.parsers.pages.overview.model import Environment, Overview, Step
from tpuprof.parsers.pages.overview.verdict import Verdict
from tpuprof.parsers.pages.shared.common import device_of, warnings_of, why_no_ops
from tpuprof.parsers.pages.shared.groups import CoreGroup, group_shown
from tpuprof.parsers.pages.shared.key import OnPartial, PageSession
from tpuprof.parsers.pages.shared.modules import modules_in
from tpuprof.parsers.pages.shared.partials import Partials
from tpuprof.parsers.pages.shared.steps import common_steps, group_rows
from tpuprof.parsers.pages.shared.summaries import note_programs, read
from tpuprof.parsers.steps.accounts.owners import op_owners
from tpuprof.parsers.steps.aligned import AlignedSteps
from tpuprof.parsers.steps.boundaries.observed import idle_percent
from tpuprof.parsers.steps.boundaries.replica_groups import lacking_partners
from tpuprof.parsers.steps.model import SparseCoreTime, StepSource
from tpuprof.parsers.steps.requests.module_latency import ModuleLatency
from tpuprof.parsers.steps.requests.serving import answers_requests, trains
from tpuprof.parsers.steps.step_account import Account, tpu_account
from tpuprof.parsers.steps.xprof_view import xprof_breakdowns

_PRODUCT = pattern(r"MatMul|Conv\dD|Einsum")
"""Types of framework ops that a device would run, if there were one."""


def overview(
    summaries: Sequence[HostSummary], modules: Sequence[HloModules] = (), shown: Sequence[HostSummary] = ()
) -> Overview:
    """The overview over some hosts of a run.

    Args:
        summaries: at least one; each host's own, in the order of the hosts.
        modules: the hosts' HLO modules, for the shapes and types of matrix ops; parsed as they are needed.
        shown: the summaries of one group of cores alone, where there are several: steps and findings are its own.
    """
    if _is_generic(summaries):
        page = generic_overview(summaries, shown)
        if page.shares or page.environment.device_core_count:
            return page
        evidence = evidence_of(summaries, merge_tables([]), None, modules)  # a device may be there, but was not traced
        looked = look_for_findings(evidence, None)
        types = {kind for summary in summaries for kind in summary.host_ops.type}
        is_there = any(map(_PRODUCT.search, types))  # TensorFlow without XLA: its kernels ran on the host's threads
        return replace(
            page,
            findings=(
                *page.findings,
                *(of for of in looked.found if not (is_there and of.kind == NO_DEVICE_EVENTS.name)),
            ),
            undetectable=undetectable(evidence, looked.failed),
            warnings=(*page.warnings, *looked.failed),
        )
    table = merge_tables([summary.table for summary in summaries])
    common = common_steps(summaries)
    unknown: dict[str, str] = {}
    shown_table = table
    if shown:
        of_shown = common_steps(shown)
        common = replace(common, grid=of_shown.grid, note=of_shown.note, spans=of_shown.spans)
        shown_table = merge_tables([summary.table for summary in shown])
    steps = _steps(common.spans)
    environment = _environment(summaries, table, unknown)
    performance = figures.performance_of(summaries, table, common, modules, unknown)
    shares, top_ops = shares_of(table, summaries), top_ops_of(table)
    numbered = any(summary.has_step_numbers for summary in summaries)
    infers = _infers(summaries, environment.is_training, None if common.grid is None else common.grid.source)
    evidence = evidence_of(shown or summaries, shown_table, common.grid, modules, environment.is_training is False)
    if common.grid is not None:
        evidence = replace(evidence, units=_units(shown or summaries, common.grid, infers))
    source = common.grid.input_source if common.grid is not None else None
    of = tpu_account(common.grid)
    whole = budget(evidence, of)
    looked = look_for_findings(evidence, whole)
    failed = list(looked.failed)
    account = None if of is None or whole is None else _account(of, whole, looked.found, failed)
    main = group_shown(summaries)
    if account is not None and main is not None:
        account = of_group_shown(account, main.label)
    outside, partners = map(outside_words, evidence.outside), lacking_partners(table, environment.device_core_count)
    above = above_peak_words(evidence.table, evidence.rates)
    remarks = (*common.remarks, *outside, *figures.counted_words(table), *above, partners, *failed)
    return Overview(
        hosts=tuple(summary.host for summary in summaries),
        environment=environment,
        performance=performance,
        shares=shares,
        steps=steps,
        step_parts=figures.step_parts(steps),
        findings=looked.found,
        undetectable=undetectable(evidence, looked.failed),
        top_ops=top_ops,
        bottleneck=bottleneck_of(steps, table, source, account, unknown, numbered),
        inference=figures.latencies_of(shown or summaries, environment.is_training, modules),
        infers=infers,
        account=account,
        groups=group_rows(summaries),
        group=None if main is None else main.number,
        op_count=len(table),
        op_event_count=sum(summary.op_events for summary in summaries),
        unknown=unknown,
        warnings=warnings_of(summaries, tuple(filter(None, remarks)), [summary.clocks for summary in summaries]),
    )


def ledger_of(summaries: Sequence[HostSummary]) -> Account | None:
    """The account of the steps by core and step, of which the overview has the means; None without steps."""
    return generic_steps(summaries) if _is_generic(summaries) else tpu_account(common_steps(summaries).grid)


def op_accounts_of(summaries: Sequence[HostSummary], modules: Sequence[HloModules] = ()) -> OpAccounts | None:
    """The account of the mean step by op; None where no ops of TPUs ran in steps.

    Args:
        modules: as of `overview`.
    """
    grid = None if _is_generic(summaries) else common_steps(summaries).grid
    of, device = tpu_account(grid), device_of(summaries)
    if of is None or grid is None:
        return None
    table = merge_tables([summary.table for summary in summaries])
    peaks = device.peaks if device is not None else Peaks()
    owners = op_owners(table, peaks, lambda: modules)
    return op_accounts(of, grid, table, owners, table_rates(table, peaks), programs_of(table, summaries))


def _is_generic(summaries: Sequence[HostSummary]) -> bool:
    """Whether there are no cores of a TPU, but GPUs, or the host's own steps."""
    return any(summary.generic is not None for summary in summaries) and not any(s.core_count for s in summaries)


def _account(of: Account, whole: Budget, found: Sequence[Finding], failed: list[str]) -> MeanStep:
    """Where the mean step goes, why its ops take longer than at their roof, and what findings claim of it.

    Args:
        failed: gets a sentence where it could not look for causes.
    """
    account = mean_step(of, whole.evidence.table, whole.evidence.rates, whole.owners, whole.evidence.gaps, found)
    if not len(whole.evidence.table):
        account = replace(account, verdict=Verdict("unknown", None, "", "The steps hold no op events.", ""))
    lost_ps = account.fraction("loss") * account.step_ps
    causes = behind_wall("look for the causes of loss", lambda: losses(whole, lost_ps, failed), failed)
    return with_claims(replace(account, losses=causes or ()), found)


def _infers(summaries: Sequence[HostSummary], is_training: bool | None, source: StepSource | None) -> bool:
    """Whether a program does not train, or serves requests, as its events or the names of its modules say.

    Programs that take turns in a cycle, or run in steps that the host numbers, answer no requests.
    """
    parts = [summary.requests for summary in summaries]
    if any(len(part) for part in parts):
        return True
    if source in ("annotations", "cycle"):
        return False
    names = (module.name for part in parts for module in part.modules)
    return is_training is False or (is_training is None and source != "steps" and any(map(answers_requests, names)))


_TRAINS_BY_NAME = "no op's framework name comes from a gradient, although a program's name says that it trains"


def _environment(summaries: Sequence[HostSummary], table: OpTable, unknown: dict[str, str]) -> Environment:
    device = device_of(summaries)
    if device is None or device.device_type is None:
        has_cores = any(summary.core_count or summary.gpu_count for summary in summaries)
        unknown["environment.device_type"] = NO_DEVICE_NAME if has_cores else NO_DEVICE
    scopes = [parse_framework_op(op).name for op in set(table.framework_op) if op]
    is_training = any(map(is_gradient, scopes)) if scopes else None
    if is_training is None:
        unknown["environment.is_training"] = why_no_ops(summaries) or NO_SCOPES
    elif not is_training and trains(module.name for summary in summaries for module in summary.requests.modules):
        is_training, unknown["environment.is_training"] = None, _TRAINS_BY_NAME
    has_device = [summary.core_count + summary.gpu_count for summary in summaries]
    of_device = device.device_type if device else None, sum(has_device)
    return figures.environment_of(summaries, unknown, NO_SPAN, sum(map(bool, has_device)), of_device, is_training)


def _steps(grid: AlignedSteps | None) -> tuple[Step, ...]:
    if grid is None:
        return ()
    parts = [None] * len(grid) if grid.are_lost else xprof_breakdowns(grid)
    columns = zip(grid.names, grid.start_ps.tolist(), grid.longest_ps.tolist(), parts, strict=True)
    beside: list[SparseCoreTime | None] = [None] * len(grid)
    if grid.sparse_core is not None:
        times = np.nan_to_num(grid.sparse_core.T, nan=-1).astype(np.int64).tolist()
        beside = [SparseCoreTime(*parts) if min(parts) >= 0 else None for parts in times]
    return tuple(
        Step(name, number, start, duration, breakdown, beside[number])
        for number, (name, start, duration, breakdown) in enumerate(columns)
    )


def evidence_of(
    summaries: Sequence[HostSummary],
    table: OpTable,
    grid: AlignedSteps | None,
    modules: Sequence[HloModules],
    serves: bool = False,
) -> Evidence:
    """What is known of the program: its steps, its ops, its gaps and what the host did.

    Args:
        table: time by op over all hosts.
        grid: the steps that all cores share.
        serves: whether the program is known not to train.
    """
    device, ran = device_of(summaries), _modules_of_steps(summaries, grid)
    peaks = device.peaks if device is not None else Peaks()
    return Evidence(
        grid=grid,
        table=table,
        rates=table_rates(table, peaks),
        peaks=peaks,
        device_type=device.device_type if device is not None else None,
        total_ps=_recorded_ps(summaries),
        core_count=sum(summary.core_count for summary in summaries),
        gaps=max(filter(None, (summary.idle for summary in summaries)), key=lambda idle: idle.gap_ps, default=None),
        host_gaps={summary.host: summary.idle for summary in summaries if summary.idle is not None},
        runs=_runs(ran),
        ran_on={} if grid is None else {of.name: min(1.0, of.cores / int((grid.hosts == 0).sum())) for of in ran},
        barriers={name: ps for summary in summaries for name, ps in summary.barriers.items()},
        offloaders=frozenset(name for summary in summaries for name in summary.offloaded.parent if name),
        compilations=tuple(compilation for summary in summaries for compilation in summary.compilations),
        modules=modules,
        core_ops=join_core_ops([summary.core_ops for summary in summaries if summary.core_ops.cores]),
        memory=max(
            filter(None, (summary.memory for summary in summaries)), key=lambda use: use[0] / use[1], default=None
        ),
        calls=merged_calls(call for summary in summaries for call in summary.calls),
        serves=_served(summaries) if serves else (),
        outside=() if grid is None or grid.lost else longest_outside(summaries),  # steps of lost ops are no rest
        slow_link=max(
            filter(None, (summary.slow_link for summary in summaries)), key=lambda link: link.excess_ps, default=None
        ),
        no_device="" if len(table) else _no_device(summaries),
        observed=in_capture(summaries),
    )


def in_capture(summaries: Sequence[HostSummary]) -> InCapture | None:
    """When the cores of the host with the longest silence ran ops; None where no silence is long, or it is unknown."""
    having = [(summary, summary.silence) for summary in summaries if summary.silence is not None]
    if not having:
        return None
    summary, silence = max(having, key=lambda each: each[1].gap_ps)
    worked = [(of, of.ran.span) for of in summary.observed if of.ran is not None]
    begin = worked[0][0].capture.span[0]
    return InCapture(
        captured_ps=worked[0][0].capture.length_ps,
        ops=(min(span[0] for _, span in worked) - begin, max(span[1] for _, span in worked) - begin),
        busy=1.0 - (idle_percent([of for of, _ in worked]) or 0.0) / 100,
        core=core_label(summary.host, silence.core),
        silence=replace(silence, longest=(silence.longest[0] - begin, silence.longest[1] - begin)),
    )


def _recorded_ps(summaries: Sequence[HostSummary]) -> int:
    """The cores' whole time; 0 where no core has its ops."""
    lost = [of.lost_ps for summary in summaries for of in summary.observed]
    if lost and all(lost_ps is None for lost_ps in lost):
        return 0
    return sum(summary.total_ps for summary in summaries)


def _modules_of_steps(summaries: Sequence[HostSummary], grid: AlignedSteps | None) -> Sequence[ModuleLatency]:
    """The runs of modules on the first host with steps."""
    host = host_of(grid.core_names[0]) if grid is not None and grid.core_names else ""
    return next((summary.requests.modules for summary in summaries if summary.host == host), ())


def _runs(modules: Sequence[ModuleLatency]) -> dict[str, tuple[Int64s, Int64s]]:
    """When modules ran, and how long each run took.

    Where the runs of several cores could not be joined, so many after each other are one.
    """
    each = {module.name: slice(None, None, 1 if module.is_joined else module.cores) for module in modules}
    return {
        module.name: (module.start_ps[each[module.name]], module.duration_ps[each[module.name]]) for module in modules
    }


_ONE = 0.01
"""A step is a run of a program that has one in each, give or take so many."""


def _units(summaries: Sequence[HostSummary], grid: AlignedSteps, serves: bool) -> Mapping[int, Unit]:
    """What reasons are told of where a program serves: requests where they are known, else runs of a program."""
    order = np.argsort(grid.start_ps)
    begin, end = grid.start_ps[order], grid.end_ps[order]
    until = np.minimum(end, np.append(begin[1:], end[-1:]))  # a core may begin a step before another has ended one

    def of_step(start_ps: Int64s) -> float:
        return int(np.count_nonzero(interval_index(start_ps, begin, until) >= 0)) / len(grid)

    requests = sum(of_step(summary.requests.known_ps) for summary in summaries)
    if requests:
        return {-1: Unit("request", requests)}
    if not serves or grid.source != "modules":
        return {}
    runs = {name: of_step(start_ps) for name, (start_ps, _) in _runs(_modules_of_steps(summaries, grid)).items()}
    programs = {name: name.rpartition("(")[2].removesuffix(")") for name in runs}
    return {
        int(programs[name]): Unit(f"run of {shortened(name.partition('(')[0])}", per_step)
        for name, per_step in runs.items()
        if programs[name].isdecimal() and per_step and abs(per_step - 1) > _ONE
    }


def _served(summaries: Sequence[HostSummary]) -> tuple[tuple[str, int, float], ...]:
    modules = max((summary.requests.modules for summary in summaries), key=len, default=())
    return tuple(
        (module.name.partition("(")[0], len(module), median(module.duration_ps.astype(np.float64)))
        for module in modules
        if len(module)
    )


def _no_device(summaries: Sequence[HostSummary]) -> str:
    launched = [summary.launched for summary in summaries if summary.launched is not None]
    cores = sum(summary.core_count for summary in summaries)
    compiled = sum(each.duration_ps for summary in summaries for each in summary.compilations)
    on_cpu = sum(summary.ran_on_cpu for summary in summaries)
    runs = sum(len(module) for summary in summaries for module in summary.requests.modules) if cores else 0
    return why_no_device(cores, sum(launched) if launched else None, bool(launched), compiled, on_cpu, runs)


# --- of a run


def overview_of_run(
    session: PageSession, host: str | None, on_host: Callable[[int], None] = lambda _: None
) -> Overview:
    """The overview."""
    found = read(session, host, on_host)
    shown = group_shown(found.summaries)
    of_group = () if shown is None else read(_only(session, shown), None).summaries
    page = overview(found.summaries, modules_in(session, found.files), of_group)
    return replace(page, warnings=(*page.warnings, *found.left_out, *session.problems))


def _only(session: PageSession, shown: CoreGroup) -> PageSession:
    return session.of_core(labels_together(shown.core_names))


def overview_as_read(session: PageSession, host: str | None, on_partial: OnPartial[Overview]) -> Overview:
    """The overview; before that, now and then, one of the hosts that are read so far."""

    def so_far(files: Sequence[HostFile], done: int) -> Overview | None:
        found = session.reduced_so_far(SUMMARY_OF_HOST, host)
        if not found.read:
            return None
        note_programs(session, found)
        page = overview(found.summaries, modules_in(session, found.files))
        note = f"{done:,} of {len(files):,} hosts so far: the others are still being read"
        return replace(page, warnings=(note, *page.warnings, *found.left_out))

    return overview_of_run(session, host, Partials(so_far, session.run.files(host), on_partial))


def ledger_of_run(session: PageSession, host: str | None) -> Account | None:
    """The account of the steps by core and step, of which the overview has the means; None without steps."""
    return ledger_of(read(session, host).summaries)


def op_accounts_of_run(session: PageSession, host: str | None) -> OpAccounts | None:
    """The account of the mean step by op; None where no ops of TPUs ran in steps."""
    found = read(session, host)
    shown = group_shown(found.summaries)
    found = found if shown is None else read(_only(session, shown), None)
    return op_accounts_of(found.summaries, modules_in(session, found.files))

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

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tpuprof.parsers.base.intervals import Int64s, median
from tpuprof.parsers.base.words import NO_DEVICE, NO_DEVICE_NAME, NO_SCOPES, NO_SPAN
from tpuprof.parsers.collectives.groups import lacking_partners
from tpuprof.parsers.files.core_names import host_of
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.hosts.summary import HostSummary
from tpuprof.parsers.ops.core.calls import merged_calls
from tpuprof.parsers.ops.core.times import join_core_ops
from tpuprof.parsers.ops.device import Peaks
from tpuprof.parsers.ops.framework_op import is_gradient, parse_framework_op
from tpuprof.parsers.ops.roofline import table_rates
from tpuprof.parsers.ops.table import OpTable, merge_tables
from tpuprof.parsers.pages.common import damage_of, device_of, warnings_of, why_no_ops
from tpuprof.parsers.pages.findings.budget import Budget, budget
from tpuprof.parsers.pages.findings.capture import why_no_device
from tpuprof.parsers.pages.findings.finding import Evidence, Finding
from tpuprof.parsers.pages.findings.ops.arrays import ModuleArrays, large_arrays
from tpuprof.parsers.pages.findings.ops.losses import losses
from tpuprof.parsers.pages.findings.ops.products import Products, products_of
from tpuprof.parsers.pages.findings.ops.trips import Loop, loops_of
from tpuprof.parsers.pages.findings.why_slow import findings, findings_of, undetectable
from tpuprof.parsers.pages.inference import inference
from tpuprof.parsers.pages.ops.ops import programs_of
from tpuprof.parsers.pages.overview.accounts_of_ops import OpAccounts, op_accounts
from tpuprof.parsers.pages.overview.bottleneck import bottleneck_of
from tpuprof.parsers.pages.overview.by_op import shares_of, top_ops_of
from tpuprof.parsers.pages.overview.generic_overview import generic_overview, generic_steps
from tpuprof.parsers.pages.overview.ledger import StepAccount, step_account, with_claims
from tpuprof.parsers.pages.overview.model import Environment, Overview, Step
from tpuprof.parsers.pages.overview.performance import counted_words, first_start, performance_of, step_parts
from tpuprof.parsers.pages.steps import common_steps
from tpuprof.parsers.steps.accounts.owners import op_owners
from tpuprof.parsers.steps.aligned import AlignedSteps
from tpuprof.parsers.steps.ledger import Ledger, ledger
from tpuprof.parsers.steps.model import SparseCoreTime
from tpuprof.parsers.steps.requests.serving import answers_requests
from tpuprof.parsers.steps.xprof_view import xprof_breakdowns

if TYPE_CHECKING:
    from tpuprof.parsers.pages.inference import InferencePage


def overview(summaries: Sequence[HostSummary], modules: Sequence[HloModules] = ()) -> Overview:
    """The overview over some hosts of a run.

    Args:
        summaries: at least one; each host's own, in the order of the hosts.
        modules: the hosts' HLO modules, for the shapes and types of matrix ops; parsed as they are needed.
    """
    if _is_generic(summaries):
        page = generic_overview(summaries)
        if page.shares or page.environment.device_core_count:
            return page
        evidence = evidence_of(summaries, merge_tables([]), None, modules)  # a device may be there, but was not traced
        return replace(page, findings=findings(evidence), undetectable=undetectable(evidence))
    table = merge_tables([summary.table for summary in summaries])
    common = common_steps(summaries)
    unknown: dict[str, str] = {}
    steps = _steps(common.grid)
    environment = _environment(summaries, table, unknown)
    performance = performance_of(summaries, table, common, modules, unknown)
    remarks = (*common.remarks, *counted_words(table), lacking_partners(table, environment.device_core_count))
    shares, top_ops = shares_of(table, summaries), top_ops_of(table)
    numbered = any(summary.has_step_numbers for summary in summaries)
    evidence = evidence_of(summaries, table, common.grid, modules, environment.is_training is False)
    source = common.grid.input_source if common.grid is not None else None
    of = ledger(common.grid)
    whole = budget(evidence, of)
    products = None if whole is None else products_of(whole)
    programs = () if whole is None else large_arrays(whole)
    loops = () if whole is None else tuple(loops_of(whole))
    found = findings_of(evidence, whole, products, programs, loops)
    return Overview(
        hosts=tuple(summary.host for summary in summaries),
        environment=environment,
        performance=performance,
        shares=shares,
        steps=steps,
        step_parts=step_parts(steps),
        findings=found,
        undetectable=undetectable(evidence),
        top_ops=top_ops,
        bottleneck=bottleneck_of(steps, table, source, shares, top_ops, unknown, numbered),
        inference=_latencies(summaries, environment.is_training, modules),
        infers=_infers(summaries, environment.is_training, common.grid is not None and common.grid.source == "steps"),
        account=None if of is None or whole is None else _account(of, whole, products, programs, loops, found),
        op_count=len(table),
        op_event_count=sum(summary.op_events for summary in summaries),
        unknown=unknown,
        warnings=warnings_of(summaries, tuple(filter(None, remarks)), [summary.clocks for summary in summaries]),
    )


def ledger_of(summaries: Sequence[HostSummary]) -> Ledger | None:
    """The account of the steps by core and step, of which the overview has the means; None without steps."""
    return generic_steps(summaries) if _is_generic(summaries) else ledger(common_steps(summaries).grid)


def op_accounts_of(summaries: Sequence[HostSummary], modules: Sequence[HloModules] = ()) -> OpAccounts | None:
    """The account of the mean step by op; None where no ops of TPUs ran in steps.

    Args:
        modules: as of `overview`.
    """
    grid = None if _is_generic(summaries) else common_steps(summaries).grid
    of, device = ledger(grid), device_of(summaries)
    if of is None or grid is None:
        return None
    table = merge_tables([summary.table for summary in summaries])
    peaks = device.peaks if device is not None else Peaks()
    owners = op_owners(table, peaks, lambda: modules)
    return op_accounts(of, grid, table, owners, table_rates(table, peaks), programs_of(table, summaries))


def _is_generic(summaries: Sequence[HostSummary]) -> bool:
    """Whether there are no cores of a TPU, but GPUs, or the host's own steps."""
    return any(summary.generic is not None for summary in summaries) and not any(s.core_count for s in summaries)


def _account(
    of: Ledger,
    whole: Budget,
    products: Products | None,
    programs: Sequence[ModuleArrays],
    loops: Sequence[Loop],
    found: Sequence[Finding],
) -> StepAccount:
    """Where the mean step goes, why its ops take longer than at their roof, and what findings claim of it."""
    account = step_account(of, whole.evidence.table, whole.evidence.rates, whole.owners, whole.evidence.gaps, found)
    causes = losses(whole, products, account.fraction("loss") * account.step_ps, programs, loops)
    return with_claims(replace(account, losses=causes), found)


def _latencies(
    summaries: Sequence[HostSummary], is_training: bool | None, modules: Sequence[HloModules]
) -> InferencePage | None:
    """Latencies of requests or runs of modules; None without any."""
    parts = [summary.requests for summary in summaries]
    if not any(len(part) or part.modules or part.annotated for part in parts):
        return None

    page = inference(parts, [summary.host for summary in summaries], is_training, programs=modules)
    return page if page.source is not None or page.offers else None


def _infers(summaries: Sequence[HostSummary], is_training: bool | None, is_marked: bool) -> bool:
    """Whether a program does not train, or serves requests, as its events or the names of its modules say."""
    parts = [summary.requests for summary in summaries]
    if is_training is False or any(len(part) for part in parts):
        return True
    names = (module.name for part in parts for module in part.modules)
    return is_training is None and not is_marked and any(map(answers_requests, names))


def _environment(summaries: Sequence[HostSummary], table: OpTable, unknown: dict[str, str]) -> Environment:
    device = device_of(summaries)
    if device is None or device.device_type is None:
        has_cores = any(summary.core_count or summary.gpu_count for summary in summaries)
        unknown["environment.device_type"] = NO_DEVICE_NAME if has_cores else NO_DEVICE
    scopes = [parse_framework_op(op).name for op in set(table.framework_op) if op]
    is_training = any(map(is_gradient, scopes)) if scopes else None
    if is_training is None:
        unknown["environment.is_training"] = why_no_ops(summaries) or NO_SCOPES
    durations = [s.profile_duration_ps for s in summaries if s.profile_duration_ps is not None]
    if not durations:
        unknown["environment.profile_duration_ms"] = NO_SPAN
    return Environment(
        host_count=len(summaries),
        task_count=max(1, sum(summary.core_count + summary.gpu_count > 0 for summary in summaries)),
        device_type=device.device_type if device else None,
        device_core_count=sum(summary.core_count + summary.gpu_count for summary in summaries),
        is_training=is_training,
        profile_duration_ps=max(durations) if durations else None,
        simulated=any(summary.simulated for summary in summaries),
        profile_start_ns=first_start(summaries, unknown),
        damage=tuple(damage for damage in map(damage_of, summaries) if damage is not None),
    )


def _steps(grid: AlignedSteps | None) -> tuple[Step, ...]:
    if grid is None:
        return ()
    columns = zip(grid.names, grid.start_ps.tolist(), grid.longest_ps.tolist(), xprof_breakdowns(grid), strict=True)
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
    device = device_of(summaries)
    peaks = device.peaks if device is not None else Peaks()
    return Evidence(
        grid=grid,
        table=table,
        rates=table_rates(table, peaks),
        peaks=peaks,
        device_type=device.device_type if device is not None else None,
        total_ps=sum(summary.total_ps for summary in summaries),
        core_count=sum(summary.core_count for summary in summaries),
        gaps=max(filter(None, (summary.idle for summary in summaries)), key=lambda idle: idle.gap_ps, default=None),
        host_gaps={summary.host: summary.idle for summary in summaries if summary.idle is not None},
        runs=_runs(summaries, grid),
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
        no_device="" if len(table) else _no_device(summaries),
    )


def _runs(summaries: Sequence[HostSummary], grid: AlignedSteps | None) -> dict[str, tuple[Int64s, Int64s]]:
    """When the first host with steps ran its modules, and how long each run took."""
    host = host_of(grid.core_names[0]) if grid is not None and grid.core_names else ""
    modules = next((summary.requests.modules for summary in summaries if summary.host == host), ())
    return {module.name: (module.start_ps, module.duration_ps) for module in modules}


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
    return why_no_device(cores, sum(launched) if launched else None, bool(launched), compiled, on_cpu)

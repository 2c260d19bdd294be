"""The page of all HLO ops: one row an op, as columns, with rates and what bounds each (XProf's `hlo_stats`).

Shares are XProf's (`op_stats_to_hlo_stats.cc`): of the cores' whole time, idle time included. Different from XProf, a
figure that the profile lacks is NaN and not 0, and a program that only the `XLA Modules` lines name has that name and
not ``main``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Floats
from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.base.record import Sized, dataclass, replace
from tpuprof.parsers.base.words import NO_PEAK_FLOPS, NO_PEAK_HBM, NO_TIME_SCALE
from tpuprof.parsers.hosts.op_summary import OPS_OF_HOST, OpSummary, added_kernels
from tpuprof.parsers.ops.device import Peaks
from tpuprof.parsers.ops.roofline import Rates, above_peak_words, table_rates, time_scale
from tpuprof.parsers.ops.table import EMPTY_TABLE, OpTable, appended, merge_tables
from tpuprof.parsers.pages.shared.common import (
    ExecutionUnit,
    device_of,
    execution_unit_count,
    holes_in_words,
    runs_on,
    warnings_of,
    why_no_ops,
)
from tpuprof.parsers.pages.shared.key import PageSession

if TYPE_CHECKING:
    from tpuprof.parsers.ops.streams.kernels import Kernel

NO_COUNTS: Mapping[ExecutionUnit, str] = {
    "GPU": "GPU events have no FLOPs or bytes; XProf estimates them from the HLO with XLA's cost model",
    "host thread": "events of the host's CPU have no FLOPs or bytes",
}
OF_COUNTS = (
    *("gflops_per_second", "flops_utilization", "hbm_bandwidth_utilization", "operational_intensity", "hbm_intensity"),
    *("bound_by", "roofline_efficiency", "model_gflops_per_second", "gigabytes_per_second"),
)
"""Figures that need counts of FLOPs or bytes."""

UNKNOWN_PROGRAM = "unknown program"


@dataclass(frozen=True, slots=True)
class OpsPage(Sized):
    """All HLO ops of some hosts by self time, longest first; ties go by name.

    Attributes:
        hosts: names of the hosts that the figures cover.
        device_type: the device as the profile names it; None where it does not.
        core_count: number of TensorCores, GPUs or host threads over all hosts; times are summed over them.
        runs_on: which of these ran the ops.
        kernels: those of GPUs, most time first.
        peaks: the peaks of one core.
        table: time and work, n rows.
        offloaded: those of SparseCores, for ops of the table (`OpTable.parent`); no time or share here counts them.
        program: name of each row's HLO module with its program id, ``jit_step(7)``, or without where the profile gives
            none; `UNKNOWN_PROGRAM` without either.
        op_class: what the core does during each row.
        rates: rates over the rows' total time.
        total_ps, idle_ps: the cores' whole time, and how much of it no op fills.
        self_fraction, cumulative_fraction: float64[n]; self time as a fraction (0-1) of the whole, NaN without any.
        time_scale: self time at the nominal clock over self time measured (DVFS), None where the profile does not say.
        simulated: the profile says of itself that its times were composed, not measured.
        unknown: dotted JSON key to the reason why figures are missing.
        warnings: plain sentences about the profile itself.
    """

    sized_by = "table"
    hosts: tuple[str, ...]
    device_type: str | None
    core_count: int
    peaks: Peaks
    table: OpTable
    offloaded: OpTable
    program: tuple[str, ...]
    op_class: tuple[OpClass, ...]
    rates: Rates
    total_ps: int
    idle_ps: int
    self_fraction: Floats
    cumulative_fraction: Floats
    time_scale: float | None
    simulated: bool
    unknown: Mapping[str, str]
    warnings: tuple[str, ...]
    runs_on: ExecutionUnit = "core"
    kernels: tuple[Kernel, ...] = ()


def ops_page(summaries: Sequence[OpSummary]) -> OpsPage:
    """Makes the page over at least one of a run's hosts."""
    merged = merge_tables([summary.table for summary in summaries])
    table = merged.take(by_self_time(merged))
    offloaded = merge_tables([summary.offloaded for summary in summaries])
    device = device_of(summaries)
    peaks = device.peaks if device is not None else Peaks()
    total = sum(summary.total_ps for summary in summaries)
    busy = sum(summary.self_ps for summary in summaries)
    rates = table_rates(table, peaks)
    self_fraction = table.self_ps / total if total else np.full(len(table), np.nan)
    has_scale = table.has_time_scale
    unknown: dict[str, str] = {}
    why = why_no_ops(summaries)
    if why:
        unknown["ops"] = why
    place = runs_on(summaries)
    if place != "core" and not why:
        counted = NO_COUNTS[place]
        unknown |= {f"ops[].{key}": counted for key in OF_COUNTS} if np.isnan(table.flops).all() else {}
    for key, peak, reason in (
        ("flops_utilization", peaks.flops_per_second, NO_PEAK_FLOPS),
        ("hbm_bandwidth_utilization", peaks.hbm, NO_PEAK_HBM),
    ):
        if peak is None:
            unknown.setdefault(f"ops[].{key}", why or reason)
    if not (has_scale and busy):
        unknown["time_scale"] = "no op took any time" if has_scale else NO_TIME_SCALE
    return OpsPage(
        hosts=tuple(summary.host for summary in summaries),
        device_type=device.device_type if device is not None else None,
        core_count=execution_unit_count(summaries),
        peaks=peaks,
        table=table,
        offloaded=offloaded.take(by_self_time(offloaded)),
        program=programs_of(table, summaries),
        op_class=table.classes(),
        rates=rates,
        total_ps=total,
        idle_ps=total - busy,
        self_fraction=self_fraction,
        cumulative_fraction=np.cumsum(self_fraction),
        time_scale=time_scale(table, busy),
        simulated=any(summary.simulated for summary in summaries),
        unknown=unknown,
        warnings=(*warnings_of(summaries), *holes_in_words(summaries), *above_peak_words(table, rates)),
        runs_on=place,
        kernels=added_kernels(kernel for summary in summaries for kernel in summary.kernels),
    )


def with_offloaded(page: OpsPage) -> OpsPage:
    """The page with what SparseCores ran behind its own rows: that takes none of the cores' time, so has no share."""
    more = page.offloaded
    if not len(more):
        return page
    table = appended(page.table, more)
    named = dict(zip(page.table.program_id.tolist(), page.program, strict=True))
    ids = more.program_id.tolist()
    programs = (named.get(number, f"program({number})" if number else UNKNOWN_PROGRAM) for number in ids)
    no_share = np.full(len(more), np.nan)
    return replace(
        page,
        table=table,
        offloaded=EMPTY_TABLE,
        program=(*page.program, *programs),
        op_class=page.op_class + more.classes(),
        rates=table_rates(table, page.peaks),
        self_fraction=np.append(page.self_fraction, no_share),
        cumulative_fraction=np.append(page.cumulative_fraction, no_share),
    )


def by_self_time(table: OpTable) -> NDArray[np.intp]:
    """Rows by self time, longest first; ties by name."""
    names = sorted(range(len(table)), key=table.name.__getitem__)
    rank = np.empty(len(table), np.int64)
    rank[names] = np.arange(len(table))
    return np.lexsort((rank, -table.self_ps))


def programs_of(table: OpTable, summaries: Sequence[OpSummary]) -> tuple[str, ...]:
    """The module of each op, ``jit_step(7)``; `UNKNOWN_PROGRAM` without an id."""
    known: dict[int, str] = {}
    modules: dict[int, str] = {}
    for summary in reversed(summaries):
        known.update(summary.programs)
        modules.update(summary.modules)
    ids = table.program_id.tolist()
    shown = {number: f"{known.get(number, 'program')}({number})" for number in set(ids) if number or number in known}
    if not modules:
        return tuple(shown.get(number, UNKNOWN_PROGRAM) for number in ids)
    symbols = zip(ids, table.symbol_id.tolist(), strict=True)
    return tuple(shown.get(number) or modules.get(symbol, UNKNOWN_PROGRAM) for number, symbol in symbols)


def ops_of_run(session: PageSession, host: str | None) -> OpsPage:
    """All HLO ops."""
    found = session.reduced(OPS_OF_HOST, host)
    page = ops_page(found.summaries)
    return replace(page, warnings=(*page.warnings, *found.left_out, *session.problems))

"""Puts together what findings are looked for in, over the hosts of a run."""

from __future__ import annotations

from collections.abc import Sequence

from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.hosts.summary import HostSummary, IdleTime
from tpuprof.parsers.ops.device import Peaks
from tpuprof.parsers.ops.roofline import table_rates
from tpuprof.parsers.ops.table import OpTable
from tpuprof.parsers.pages.common import device_of
from tpuprof.parsers.pages.findings.finding import Evidence, GapActivity
from tpuprof.parsers.steps.grid import StepGrid


def evidence_of(
    summaries: Sequence[HostSummary], table: OpTable, grid: StepGrid | None, modules: Sequence[HloModules]
) -> Evidence:
    """What is known of the program: its steps, its ops, its gaps and what the host did.

    Args:
        table: time by op over all hosts.
        grid: the steps that all cores share.
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
        gaps=_gaps(summaries),
        compilations=tuple(found for summary in summaries for found in summary.compilations),
        modules=modules,
    )


def _gaps(summaries: Sequence[HostSummary]) -> GapActivity | None:
    """The gaps of the core that is idle most, of all hosts."""
    most: IdleTime | None = max(
        (summary.idle for summary in summaries if summary.idle is not None), key=lambda idle: idle.gap_ps, default=None
    )
    if most is None:
        return None
    async_op, async_ps = next(iter(most.flying.items()), (None, 0))
    return GapActivity(
        gap_ps=most.gap_ps,
        activities=most.activities,
        longest_ps=most.longest[1] - most.longest[0],
        count=most.count,
        async_op=async_op,
        async_ps=async_ps,
    )

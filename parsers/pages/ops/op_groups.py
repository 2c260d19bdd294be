"""HLO ops with their clones: one row for each group of ops that differ by a number alone, over one program."""

from __future__ import annotations

import numpy as np

from tpuprof.parsers.base.intervals import Floats, Int64s, coded
from tpuprof.parsers.base.record import Sized, dataclass, replace
from tpuprof.parsers.formats.xspace.core.api import min_by_key, sum_by_key
from tpuprof.parsers.ops.roofline import summed_rows, table_rates
from tpuprof.parsers.ops.table import OpTable, clone_keys
from tpuprof.parsers.pages.ops.ops import OpsPage, by_self_time


@dataclass(frozen=True, slots=True)
class OpGroups(Sized):
    """Groups of clones by self time, longest first.

    Attributes:
        page: one row a group: names, texts and class are those of its longest op, times and work are sums, and rates
            are those of the sums.
        op_count: int64[groups]; how many ops each adds up.
        main: int64[groups]; row in the ops page of each one's longest op.
        group: int64[ops]; the group of each row of the ops page.
    """

    page: OpsPage
    op_count: Int64s
    main: Int64s
    group: Int64s


def op_groups(ops: OpsPage) -> OpGroups:
    """Groups the ops of a page with their clones of the same program (`clone_keys`)."""
    table = ops.table
    found, pairs = coded(zip(table.program_id.tolist(), clone_keys(table), strict=True))
    # the ops come by self time: a group's first is its longest
    first = min_by_key(found, np.arange(len(table)), len(pairs))
    summed = _summed(table, found, first)
    order = by_self_time(summed)
    summed, main = summed.take(order), first[order]
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    shares = summed.self_ps / ops.total_ps if ops.total_ps else np.full(len(order), np.nan)
    page = replace(
        ops,
        table=summed,
        program=tuple(ops.program[row] for row in main.tolist()),
        op_class=tuple(ops.op_class[row] for row in main.tolist()),
        rates=table_rates(summed, ops.peaks),
        self_fraction=shares,
        cumulative_fraction=np.cumsum(shares),
    )
    return OpGroups(page, np.bincount(found, minlength=len(order))[order], main, place[found])


def _summed(table: OpTable, group: Int64s, first: Int64s) -> OpTable:
    """The table of the groups' first ops, with the times and the work of all of theirs."""
    count = len(first)
    work = np.stack([table.dma_stall_ps, table.flops, table.model_flops, table.bytes_accessed], axis=1)
    normalized: Floats = np.bincount(group, table.normalized_ps, minlength=count).astype(np.float64)
    stall, flops, model_flops, everything = summed_rows(work, group, count).T
    return replace(
        table.take(first.astype(np.intp)),
        occurrences=sum_by_key(group, table.occurrences, count),
        total_ps=sum_by_key(group, table.total_ps, count),
        self_ps=sum_by_key(group, table.self_ps, count),
        minimum_ps=min_by_key(group, table.minimum_ps, count),
        normalized_ps=normalized,
        dma_stall_ps=stall,
        flops=flops,
        model_flops=model_flops,
        bytes_accessed=everything,
        traffic=summed_rows(table.traffic, group, count),
    )

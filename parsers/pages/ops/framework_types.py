"""Framework ops by their type: how much of the time all ``dot_general`` take, and so on (XProf groups them so too)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Floats, Int64s
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.xspace.core.api import sum_by_key
from tpuprof.parsers.ops.framework_op import UNKNOWN_TYPE
from tpuprof.parsers.ops.roofline import above_peak, rates, summed_rows, work_of
from tpuprof.parsers.ops.table import framework_groups
from tpuprof.parsers.pages.ops.framework_ops import FrameworkOpsPage
from tpuprof.parsers.pages.ops.ops import OpsPage

NO_OP_ALONE = "none of its HLO ops is: some took no time, or their time is that of the ops inside them"


@dataclass(frozen=True, slots=True)
class FrameworkTypes:
    """Types of framework ops, those of the device first, each side by self time.

    Attributes:
        page: one row a type of a side, whose name it is: times, occurrences and work are sums over its framework ops,
            and rates are those of the sums.
        op_count: int64[types]; how many framework ops each adds up.
        main: int64[types]; row in the page of framework ops of each one's longest op.
        group: int64[ops]; the type of each row of that page.
    """

    page: FrameworkOpsPage
    op_count: Int64s
    main: Int64s
    group: Int64s

    def __len__(self) -> int:
        return len(self.page)


def framework_rows(page: FrameworkOpsPage, ops: OpsPage) -> Int64s:
    """int64[HLO ops]: the row of the framework op that each comes from."""
    groups = framework_groups(ops.table)
    device = np.flatnonzero(~page.is_host).tolist()
    row_of = {page.name[row]: row for row in device}
    return np.array([row_of[name] for name in groups.name], np.int64)[groups.group]


def above_peak_of_ops(page: FrameworkOpsPage, ops: OpsPage, rows: NDArray[np.integer]) -> list[str | None]:
    """Why utilizations of some framework ops are above 1: what is so of the one of their HLO ops that moves most.

    None for a framework op that has none above 1.
    """
    used = np.nan_to_num(np.column_stack([page.rates.flops_utilization, page.rates.bandwidth_utilization])[rows])
    above = (used > 1).any(axis=1)
    found: list[str | None] = [None] * len(rows)
    if above.any():
        of_ops = framework_rows(page, ops)
        for place in np.flatnonzero(above).tolist():
            found[place] = most_above(ops, np.flatnonzero(of_ops == rows[place]))
    return found


def most_above(ops: OpsPage, rows: NDArray[np.integer]) -> str | None:
    """Why the utilization of some ops together is above 1: the reason of the one with most work above a peak."""
    reasons = above_peak(ops.table, ops.rates, rows)
    used = np.column_stack([ops.rates.flops_utilization[rows], ops.rates.bandwidth_utilization[rows]])
    weight = np.nan_to_num(used).max(axis=1, initial=0) * ops.table.total_ps[rows]
    known = [place for place in np.argsort(-weight).tolist() if reasons[place] is not None]
    if not known:
        return NO_OP_ALONE
    return f"{ops.table.name[int(rows[known[0]])]}: {reasons[known[0]]}"


def framework_types(page: FrameworkOpsPage, ops: OpsPage) -> FrameworkTypes:
    """Groups the framework ops of a page by side and type."""
    number: dict[tuple[bool, str], int] = {}
    kinds = (kind or UNKNOWN_TYPE for kind in page.type)
    pairs = zip(page.is_host.tolist(), kinds, strict=True)
    found = np.array([number.setdefault(pair, len(number)) for pair in pairs], np.int64)
    count = len(number)
    is_host = np.array([host for host, _ in number], np.bool_)
    self_ps = sum_by_key(found, page.self_ps, count)
    types = [kind for _, kind in number]
    order = np.array(sorted(range(count), key=lambda row: (is_host[row], -int(self_ps[row]), types[row])), np.int64)
    place = np.empty(count, np.int64)
    place[order] = np.arange(count)
    group = place[found]
    first = np.full(count, len(page), np.int64)
    np.minimum.at(first, group, np.arange(len(page)))  # each side comes by self time: a type's first op is its longest
    total_ps = sum_by_key(group, page.total_ps, count)
    of_ops = group[framework_rows(page, ops)] if len(ops) else np.zeros(0, np.int64)
    normalized = np.bincount(of_ops, ops.table.normalized_ps, minlength=count)
    fraction: Floats = np.bincount(group, page.self_fraction, minlength=count).astype(np.float64)
    sides = ~is_host[order], is_host[order]
    summed = replace(
        page,
        name=tuple(types[row] for row in order.tolist()),
        type=tuple(types[row] for row in order.tolist()),
        is_host=is_host[order],
        op_class=tuple(page.op_class[row] for row in first.tolist()),
        occurrences=sum_by_key(group, page.occurrences, count),
        total_ps=total_ps,
        self_ps=self_ps[order],
        self_fraction=fraction,
        cumulative_fraction=np.concatenate([np.cumsum(fraction[side]) for side in sides]),
        rates=rates(
            summed_rows(work_of(ops.table), of_ops, count),
            total_ps.astype(np.float64),
            np.where(is_host[order], total_ps.astype(np.float64), normalized),
            ops.peaks,
        ),
        main_op=page.main_op[first],
    )
    return FrameworkTypes(summed, np.bincount(group, minlength=count), first, group)

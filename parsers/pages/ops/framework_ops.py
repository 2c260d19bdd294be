"""The page of framework ops, on the device and on the host (XProf's `framework_op_stats`).

On the device it adds up HLO ops by the framework op that they come from; an HLO op without one stands for itself, with
the type `Unknown`. As in XProf (`op_stats_to_tf_stats.cc`), a framework op occurs as often as its most frequent HLO op,
times include the ops inside, and shares are of the side's whole time with idle time. Two things differ from XProf: it
has no limit of 500 rows a side, and it counts traffic by memory where the profile records it (XProf counts all bytes as
HBM's here, so it calls ops HBM-bound that work in VMEM).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Floats, Int64s, coded
from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.base.record import Sized, dataclass, replace
from tpuprof.parsers.base.words import NO_HOST_OPS
from tpuprof.parsers.formats.xspace.core.api import min_by_key, sum_by_key
from tpuprof.parsers.hosts.framework_summary import FRAMEWORK_OPS_OF_HOST
from tpuprof.parsers.ops.framework_op import UNKNOWN_TYPE
from tpuprof.parsers.ops.host_events.ops import HostOps, merge_host_ops
from tpuprof.parsers.ops.roofline import WORK_COUNT, Rates, above_peak, rates, summed_rows, work_of
from tpuprof.parsers.ops.table import framework_groups, most_frequent
from tpuprof.parsers.pages.ops.key import OPS
from tpuprof.parsers.pages.ops.ops import OpsPage
from tpuprof.parsers.pages.shared.key import PageKey, PageSession


@dataclass(frozen=True, slots=True)
class FrameworkOpsPage(Sized):
    """Framework ops: device rows first, each side by self time (ties by name).

    Attributes:
        hosts: names of the hosts that the figures cover.
        name, type: of each row; type such as ``dot_general``, ``Dataset``, `UNKNOWN_TYPE`.
        is_host: bool[n].
        op_class: what the core does during most of a device row's time; host rows are "host".
        occurrences, total_ps, self_ps: int64[n]; summed over cores, or over host threads.
        self_fraction, cumulative_fraction: float64[n], of the side's whole time (0-1).
        rates: over `total_ps`; NaN for host rows.
        main_op: int64[n]; row in the ops page of the HLO op with most self time, -1 for host rows.
        device_total_ps, device_idle_ps, host_total_ps, host_idle_ps: whole time of each side and what of it is idle.
        unknown: dotted JSON key to the reason why figures are missing.
        warnings: plain sentences about the profile itself.
    """

    sized_by = "name"
    hosts: tuple[str, ...]
    name: tuple[str, ...]
    type: tuple[str, ...]
    is_host: Bools
    op_class: tuple[OpClass, ...]
    occurrences: Int64s
    total_ps: Int64s
    self_ps: Int64s
    self_fraction: Floats
    cumulative_fraction: Floats
    rates: Rates
    main_op: Int64s
    device_total_ps: int
    device_idle_ps: int
    host_total_ps: int
    host_idle_ps: int
    unknown: Mapping[str, str]
    warnings: tuple[str, ...]


def framework_ops_page(ops: OpsPage, host_ops: Sequence[HostOps]) -> FrameworkOpsPage:
    """Framework ops over some hosts of a run, given its HLO ops and what each host's threads ran."""
    groups = framework_groups(ops.table)
    count = len(groups.name)
    table = ops.table
    self_ps = sum_by_key(groups.group, table.self_ps, count)
    order = sorted(range(count), key=lambda group: (-int(self_ps[group]), groups.name[group]))
    total_ps = sum_by_key(groups.group, table.total_ps, count)
    normalized = np.bincount(groups.group, table.normalized_ps, minlength=count)
    occurrences = most_frequent(groups.group, table.occurrences, count)
    main = np.full(count, -1, np.int64)
    main[groups.group[::-1]] = np.arange(len(table))[::-1]  # the ops come by self time: a group's first is its longest
    host = merge_host_ops(host_ops)
    work = summed_rows(work_of(table), groups.group, count)
    of_host: list[OpClass] = ["host"] * len(host)
    nothing = np.full((len(host), WORK_COUNT), np.nan)
    self_fraction = np.concatenate([_fractions(self_ps[order], ops.total_ps), _fractions(host.self_ps, host.whole_ps)])
    times = np.concatenate([total_ps[order], host.total_ps])
    return FrameworkOpsPage(
        hosts=ops.hosts,
        name=(*(groups.name[row] for row in order), *host.name),
        type=(*(groups.type[row] for row in order), *host.type),
        is_host=np.repeat([False, True], [count, len(host)]),
        op_class=(*(ops.op_class[main[row]] for row in order), *of_host),
        occurrences=np.concatenate([occurrences[order], host.occurrences]),
        total_ps=times,
        self_ps=np.concatenate([self_ps[order], host.self_ps]),
        self_fraction=self_fraction,
        cumulative_fraction=np.concatenate([np.cumsum(self_fraction[:count]), np.cumsum(self_fraction[count:])]),
        rates=rates(
            np.concatenate([work[order], nothing]),
            times.astype(np.float64),
            np.concatenate([normalized[order], host.total_ps.astype(np.float64)]),
            ops.peaks,
        ),
        main_op=np.concatenate([main[order], np.full(len(host), -1, np.int64)]),
        device_total_ps=ops.total_ps,
        device_idle_ps=ops.idle_ps,
        host_total_ps=host.whole_ps,
        host_idle_ps=host.idle_ps,
        unknown=_unknown(ops, host),
        warnings=ops.warnings,
    )


def _fractions(times: Int64s, whole: int) -> Floats:
    return times / whole if whole else np.full(len(times), np.nan)


def _unknown(ops: OpsPage, host: HostOps) -> dict[str, str]:
    reasons = {key: why for key, why in ops.unknown.items() if key != "time_scale"}
    if not host.whole_ps:
        reasons["host_idle_time_ps"] = NO_HOST_OPS
    return reasons


# --- by type

NO_OP_ALONE = "none of its HLO ops is: some took no time, or their time is that of the ops inside them"


@dataclass(frozen=True, slots=True)
class FrameworkTypes(Sized):
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
    found, sorts = coded(zip(page.is_host.tolist(), (kind or UNKNOWN_TYPE for kind in page.type), strict=True))
    count = len(sorts)
    is_host = np.array([host for host, _ in sorts], np.bool_)
    self_ps = sum_by_key(found, page.self_ps, count)
    types = [kind for _, kind in sorts]
    order = np.array(sorted(range(count), key=lambda row: (is_host[row], -int(self_ps[row]), types[row])), np.int64)
    place = np.empty(count, np.int64)
    place[order] = np.arange(count)
    group = place[found]
    first = min_by_key(group, np.arange(len(page)), count)  # each side comes by self time: the first op is the longest
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


def framework_ops_of_run(session: PageSession, host: str | None) -> FrameworkOpsPage:
    """Framework ops, on the device and on the host."""
    summaries = session.reduced(FRAMEWORK_OPS_OF_HOST, host).summaries  # the ops are made of them
    return framework_ops_page(session.page(OPS, host), [summary.host_ops for summary in summaries])


FRAMEWORK_OPS = PageKey(framework_ops_of_run)

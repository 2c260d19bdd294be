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

from tpuprof.parsers.base.intervals import Bools, Floats, Int64s
from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.words import NO_HOST_OPS
from tpuprof.parsers.formats.xspace.core.api import sum_by_key
from tpuprof.parsers.ops.host.ops import HostOps, merge_host_ops
from tpuprof.parsers.ops.roofline import WORK_COUNT, Rates, rates, summed_rows, work_of
from tpuprof.parsers.ops.table import framework_groups, most_frequent
from tpuprof.parsers.pages.ops.ops import OpsPage


@dataclass(frozen=True, slots=True)
class FrameworkOpsPage:
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

    def __len__(self) -> int:
        return len(self.name)


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

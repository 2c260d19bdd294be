"""What the overview says of ops: time by class, and the ops that take most of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpuprof.parsers.base.op_class import OP_CLASSES, OpClass
from tpuprof.parsers.formats.xspace.core.api import sum_by_key
from tpuprof.parsers.hosts.summary import HostSummary
from tpuprof.parsers.ops.table import OpTable, framework_groups, most_frequent
from tpuprof.parsers.pages.overview.model import Share, TopOp

TOP_OPS = 10


def shares_of(table: OpTable, summaries: Sequence[HostSummary]) -> tuple[Share, ...]:
    """The cores' time by class of op, idle time included; nothing without ops.

    The idle time of GPUs is a share of the time that passes, and their ops share the rest: streams run side by side.
    """
    total, span = (sum(getattr(summary, key) for summary in summaries) for key in ("total_ps", "span_ps"))
    if not total or not len(table):
        return ()
    times: dict[OpClass, int] = dict.fromkeys(OP_CLASSES, 0)
    for op_class, self_ps in zip(table.classes(), table.self_ps.tolist(), strict=True):
        times[op_class] += self_ps
    idle = times["idle"] = total - sum(summary.self_ps for summary in summaries)
    wholes = dict.fromkeys(OP_CLASSES, total if span >= total else (total - idle) * span / (span - idle))
    wholes["idle"] = min(span, total)
    return tuple(Share(kind, times[kind], times[kind] / wholes[kind]) for kind in OP_CLASSES if times[kind] > 0)


def top_ops_of(table: OpTable) -> tuple[TopOp, ...]:
    """The framework ops with the most self time; HLO ops without a framework name stand for themselves.

    As in XProf, occurrences of a framework op are those of its most frequent HLO op, and percentages are of the self
    time of all ops, idle left out. Ties go by name.
    """
    groups = framework_groups(table)
    count = len(groups.name)
    self_ps, total_ps = (sum_by_key(groups.group, column, count) for column in (table.self_ps, table.total_ps))
    occurrences = most_frequent(groups.group, table.occurrences, count)
    everything = int(self_ps.sum())
    classes = table.classes()
    top = []
    cumulative = 0.0
    for group in sorted(range(count), key=lambda group: (-int(self_ps[group]), groups.name[group]))[:TOP_OPS]:
        members = np.flatnonzero(groups.group == group)
        main = int(members[np.argmax(table.self_ps[members])])
        percent = 100.0 * int(self_ps[group]) / everything if everything else 0.0
        cumulative += percent
        nanoseconds = float(total_ps[group]) / 1000.0
        flops = table.flops[members]
        rate = float(np.nansum(flops)) / nanoseconds if nanoseconds and np.isfinite(flops).any() else None
        top.append(
            TopOp(
                name=groups.name[group],
                category=groups.type[group],
                op_class=classes[main],
                hlo_category=table.category[main],
                self_time_percent=percent,
                cumulative_percent=cumulative,
                self_time_ps=int(self_ps[group]),
                occurrences=int(occurrences[group]),
                gflops_per_second=rate,
            )
        )
    return tuple(top)

"""What the overview says of ops: time by class, and the ops that take most of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Int64s, coded
from tpuprof.parsers.base.op_class import OP_CLASSES, OpClass
from tpuprof.parsers.formats.xspace.core.api import sum_by_key
from tpuprof.parsers.hosts.summary import HostSummary
from tpuprof.parsers.ops.table import OpTable, clone_keys, framework_groups, most_frequent
from tpuprof.parsers.pages.overview.model import Share, TopOp

TOP_OPS = 10
_LEAST_SHARE = 0.02
"""Share of the longest op below which single ops say too little: ten of them are not a fifth of the time."""


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
    time of all ops, idle left out. Ties go by name. Where the first op has under `_LEAST_SHARE` of the time, as in a
    model whose layers are unrolled, a row is an op with its clones (`clone_keys`), and the first ten say more.
    """
    groups = framework_groups(table)
    count = len(groups.name)
    self_ps = sum_by_key(groups.group, table.self_ps, count)
    occurrences = most_frequent(groups.group, table.occurrences, count)
    everything = int(self_ps.sum())
    row_of = np.arange(count)
    if everything and int(self_ps.max()) < _LEAST_SHARE * everything:
        row_of, _ = coded(clone_keys(table, _longest(groups.group, table.self_ps)))
    row_of_op = row_of[groups.group]
    names = [groups.name[group] for group in _longest(row_of, self_ps).tolist()]
    row_ps, total_ps = (sum_by_key(row_of_op, column, len(names)) for column in (table.self_ps, table.total_ps))
    types = dict(zip(groups.name, groups.type, strict=True))
    classes = table.classes()
    top = []
    cumulative = 0.0
    for row in sorted(range(len(names)), key=lambda row: (-int(row_ps[row]), names[row]))[:TOP_OPS]:
        members = np.flatnonzero(row_of_op == row)
        main = int(members[np.argmax(table.self_ps[members])])
        percent = 100.0 * int(row_ps[row]) / everything if everything else 0.0
        cumulative += percent
        nanoseconds = float(total_ps[row]) / 1000.0
        flops = table.flops[members]
        rate = float(np.nansum(flops)) / nanoseconds if nanoseconds and np.isfinite(flops).any() else None
        top.append(
            TopOp(
                name=names[row],
                category=types[names[row]],
                op_class=classes[main],
                hlo_category=table.category[main],
                self_time_percent=percent,
                cumulative_percent=cumulative,
                self_time_ps=int(row_ps[row]),
                occurrences=int(occurrences[row_of == row].sum()),
                gflops_per_second=rate,
                clones=int((row_of == row).sum()),
            )
        )
    return tuple(top)


def _longest(group: Int64s, self_ps: Int64s) -> NDArray[np.intp]:
    """Of each group the row with the most self time, the first of equals."""
    order = np.lexsort((-self_ps, group))
    return order[np.unique(group[order], return_index=True)[1]]

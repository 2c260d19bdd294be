"""A finding about SparseCores: the TensorCore waits for what it gave one to do."""

from __future__ import annotations

import re

import numpy as np

from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.base.words import short, size
from tpuprof.parsers.pages.findings.budget import Budget, Claim, Rows
from tpuprof.parsers.pages.findings.finding import Place
from tpuprof.parsers.pages.findings.ops.groups import groups_of, module_of, named

LEAST_OFFLOADED = 0.03
"""From this share of the time on it pays to start the work earlier. XProf speaks from 10 % on, of collectives alone."""

_COLLECTIVES = re.compile(r"^(all-gather|all-reduce|all-to-all|ragged-all-to-all|reduce-gather|reduce-scatter)(\.|$)")
_CLASSES: tuple[OpClass, ...] = ("collective", "vector", "copy", "unknown", "host")


def sparse_core_waits(budget: Budget, claimed_ps: float) -> tuple[Claim, Rows]:
    """Time in which TensorCores wait for the end of work on a SparseCore, and the ops in which they do.

    These are the ends of asynchronous ops (category ``async-done``) that have a collective's name, by which XProf tells
    them too, or whose start began a run on a SparseCore.

    Args:
        claimed_ps: collective time that other findings count.
    """
    table = budget.evidence.table
    parts = [(budget.rows[name], budget.op_ps(budget.rows[name], name)) for name in _CLASSES]
    rows, times = (np.concatenate(column) for column in zip(*parts, strict=True))
    chosen = np.array(
        [table.category[row] == "async-done" and _offloaded(budget, row) for row in rows.tolist()], np.bool_
    )
    rows, times = rows[chosen], times[chosen]
    of_collectives = min(float(times[: int(chosen[: len(parts[0][0])].sum())].sum()), budget.class_ps["collective"])
    worth = float(times.sum()) - of_collectives + max(0.0, of_collectives - claimed_ps)
    if worth < LEAST_OFFLOADED * budget.whole_ps or not len(rows):
        return Claim(), np.zeros(0, np.intp)
    groups = groups_of(table, rows, times)
    first, memory = groups[0].first, budget.evidence.memory
    room = ""
    if memory is not None:
        room = (
            f"{size(max(0, memory[1] - memory[0]))} of {size(memory[1])} of HBM are free at the peak for what starts "
        )
        room += "earlier."
    finding = budget.finding(
        "sparse-core",
        f"TensorCores wait for SparseCores: {short(groups[0].label)}",
        worth,
        "Mean self time over cores of the ends of offloaded ops: what ran beside the computation is not in it.",
        [
            f"The ends of what SparseCores do take {budget.amount(float(times.sum()))} on the TensorCores: "
            f"{named(groups)}.",
            budget.largest(first, float(times[rows == first][0])),
            "The compiler counted on less: it put too little work between their start and their end.",
            room,
        ],
        Place("timeline", table.name[first]),
    )
    return Claim(finding, max(0.0, of_collectives - claimed_ps)), rows


def _offloaded(budget: Budget, row: int) -> bool:
    name, offloaders = budget.evidence.table.name[row], budget.evidence.offloaders
    if _COLLECTIVES.match(name):
        return True
    if not offloaders:
        return False
    module = module_of(budget.evidence, row)
    proto = module.instruction_proto(name) if module is not None else None
    start = module.operand_protos(proto)[0] if module is not None and proto is not None and proto.operand_ids else None
    began = start.name.decode("utf-8", "replace") if start is not None else name.replace("-done", "-start")
    return began in offloaders

"""The finding about TensorCores that wait for work on a SparseCore."""

from __future__ import annotations

import numpy as np

from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.words import shortened, size
from tpuprof.parsers.pages.findings.budget import NOTHING, Budget, Claimed, detects
from tpuprof.parsers.pages.findings.finding import JumpTarget, Kind
from tpuprof.parsers.pages.findings.ops.groups import groups_of, module_of, named

LEAST_OFFLOADED = 0.03
"""From this share of the time on it pays to start the work earlier. XProf speaks from 10 % on, of collectives alone."""

_ON_SPARSE_CORES = pattern(r"^(all-gather|all-reduce|all-to-all|ragged-all-to-all|reduce-gather|reduce-scatter)(\.|$)")
_WAITING_CLASSES: tuple[OpClass, ...] = ("collective", "vector", "copy", "unknown", "host")

SPARSE_CORE = Kind(
    "sparse-core",
    "waits for SparseCores",
    advice=(
        "Start it earlier, or give it less to do. For a collective, raise the latency that the compiler "
        "assumes: --xla_tpu_sparse_core_all_gather_latency_multiplier above 1, or the same flag for "
        "all-reduce or reduce-scatter; this takes more memory."
    ),
    rank=15,
    page="sparse-core",
    can_overlap=True,
    on_hardware=False,
)


@detects(SPARSE_CORE)
def sparse_core_waits(budget: Budget) -> Claimed:
    """Time in which TensorCores wait for the end of work on a SparseCore, and the ops in which they do.

    These are the ends of asynchronous ops (category ``async-done``) that have a collective's name, by which XProf
    recognises them too, or whose start began a run on a SparseCore.
    """
    table = budget.evidence.table
    if "async-done" not in table.category:
        return NOTHING
    rows, times = budget.ops(*_WAITING_CLASSES)
    chosen = np.array(
        [table.category[row] == "async-done" and _offloaded(budget, row) for row in rows.tolist()], np.bool_
    )
    rows, times = rows[chosen], times[chosen]
    claim = budget.take_ops(rows, times, goes_away=True)
    worth = claim.worth_ps
    if worth < LEAST_OFFLOADED * budget.whole_ps or not len(rows):
        return NOTHING
    groups = groups_of(table, rows, times)
    first, memory = groups[0].first, budget.evidence.memory
    room = ""
    if memory is not None:
        free = size(max(0, memory[1] - memory[0]))
        room = f"{free} of {size(memory[1])} of HBM are free at the peak for ops that start earlier."
    return budget.finding(
        SPARSE_CORE,
        claim,
        f"TensorCores wait for SparseCores: {shortened(groups[0].label)}",
        "Mean self time over cores of the done ops of offloaded work, without time hidden by compute.",
        [
            f"TensorCores wait for work on SparseCores for {budget.amount(float(times.sum()))}: {named(groups)}.",
            budget.largest(first, float(times[rows == first][0])),
            "Too little runs between their start ops and their done ops to hide them.",
            ""
            if budget.evidence.offloaders
            else "No run on a SparseCore was traced: these ops are recognised by their names.",
            room,
        ],
        JumpTarget("timeline", table.name[first]),
    )


def _offloaded(budget: Budget, row: int) -> bool:
    name, offloaders = budget.evidence.table.name[row], budget.evidence.offloaders
    if _ON_SPARSE_CORES.match(name):
        return True
    if not offloaders:
        return False
    module = module_of(budget.evidence, row)
    proto = module.instruction_proto(name) if module is not None else None
    start = module.operand_protos(proto)[0] if module is not None and proto is not None and proto.operand_ids else None
    began = start.name.decode("utf-8", "replace") if start is not None else name.replace("-done", "-start")
    return began in offloaders

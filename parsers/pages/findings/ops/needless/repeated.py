"""What the trips of a loop repeat: casts of the same weights, and products that read their weights for a few rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.base.words import sentence_name, share, size
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.shapes import element_bits, elements
from tpuprof.parsers.pages.findings.budget import NOTHING, Budget, Claimed, detects
from tpuprof.parsers.pages.findings.ops.arrays import ModuleArrays, OpArrays, large_arrays
from tpuprof.parsers.pages.findings.ops.bandwidth import MEMORY_BOUND
from tpuprof.parsers.pages.findings.ops.groups import code_name, reached, worthwhile
from tpuprof.parsers.pages.findings.ops.products import products_of
from tpuprof.parsers.pages.findings.ops.trips import LEAST_LOOP, Loop, loops_of

# --- casts

_CASTS = frozenset(
    (
        *(b"parameter", b"convert", b"bitcast", b"copy", b"transpose", b"reshape", b"tuple", b"get-tuple-element"),
        *(b"constant", b"slice", b"dynamic-slice"),
    )
)
"""What a fusion that only casts an array holds."""

MOVING: tuple[OpClass, ...] = ("vector", "copy")
"""The classes of ops that may do nothing but cast."""

_CAST_ADVICE = (
    "Cast the weights once, outside the loop (before lax.scan over micro-batches), or keep a copy in the narrow "
    "type beside them."
)


@detects(MEMORY_BOUND)
def repeated_casts(budget: Budget) -> Claimed:
    """Arrays that every trip of a loop casts to a narrower type, although they stay the same."""
    table = budget.evidence.table
    rows, times = budget.ops(*MOVING)
    own = dict(zip(rows.tolist(), times.tolist(), strict=True))
    parts = [program.of(own.keys()) for program in budget.once(large_arrays)]
    cast = {of.row: of for part in parts for of in part.once("casts", _casts)}
    budget.needs(sum(own[row] for row in cast), LEAST_LOOP)
    trips = dict.fromkeys(cast, 1.0)
    around: dict[int, int] = {}
    for loop in budget.once(loops_of):
        for row in set(loop.inside.tolist()) & cast.keys():
            if cast[row].proto.id not in loop.varying:
                trips[row] *= loop.trips
                around[row] = loop.row
    saved = np.array([own[row] * (1 - 1 / trips[row]) if row in around else 0.0 for row in rows.tolist()])

    losing = worthwhile(budget, rows, saved, goes_away=True)
    first = losing.first
    moved = sum(array.bytes for array in cast[first].reads)
    return losing.finding(
        MEMORY_BOUND,
        f"Each of {trips[first]:,.0f} trips casts the same weights: {code_name(table, losing.groups[0].rows)}",
        "Time of these casts, except one of each: their bytes need not move again.",
        [
            losing.words(),
            f"{budget.described(first)} casts {size(moved)} in every trip of "
            f"{sentence_name(table.name[around[first]])}, and no trip changes them.",
        ],
        advice=_CAST_ADVICE,
    )


def is_cast(module: HloModule, of: OpArrays) -> bool:
    """Whether an op does nothing but cast a large array to a narrower type, and move it perhaps."""
    inside = module.inside(of.proto)
    if not of.reads or not {each.opcode for each in inside} <= _CASTS:
        return False
    for each in inside:
        before = module.operand_protos(each)[0] if each.opcode == b"convert" and each.operand_ids else None
        if before is not None and 0 < element_bits(each.shape) < element_bits(before.shape):
            return True
    return False


# --- few rows

_MOST_FLOPS = 1.0  # a product takes more of HBM's peak than of the peak FLOP/s: memory limits it

_ROWS_ADVICE = (
    "Make fewer, larger micro-batches, as far as memory allows (rematerialise or shard activations to make room): each "
    "of them reads all weights and writes all gradients, however few rows it has."
)


def _casts(program: ModuleArrays) -> Iterator[OpArrays]:
    return (of for of in program.ops.values() if is_cast(program.module, of))


@detects(MEMORY_BOUND)
def few_rows(budget: Budget) -> Claimed:
    """Micro-batches of so few rows that their products wait for the weights, which every trip reads again.

    A loop whose trips hold a forward and a backward pass goes over micro-batches. Larger ones have the same FLOPs, and
    read the weights and write their gradients less often.
    """
    products = budget.once(products_of)
    loops = [loop for loop in budget.once(loops_of) if loop.is_over_batches]
    loops = [one for one in loops if not any(one is not other and other.row in one.inside for other in loops)]
    if not loops:
        return NOTHING
    free = set(budget.rows["compute"].tolist())
    used, bandwidth = np.nan_to_num(products.used), np.nan_to_num(products.bandwidth)
    best = reached(budget, products.used, products.times)
    fastest = reached(budget, products.bandwidth, products.times)
    saved, fewest = np.zeros(len(products.rows)), {}
    arrays = {of.row: of for program in budget.once(large_arrays) for of in program.ops.values()}
    for loop in loops:
        mine = [row for row in loop.inside.tolist() if row in free and row in products.rows]
        for row in mine:
            at = products.at(row)
            sizes = products.sizes(row)
            if row not in arrays or sizes is None or bandwidth[at] <= used[at] * _MOST_FLOPS:
                continue
            part = _of_weights(loop, arrays[row], sizes)
            moving = bandwidth[at] * (1 - part + part / loop.trips) / fastest
            saved[at] = products.times[at] * max(0.0, 1 - max(used[at] / best, moving))
            fewest[row] = min(sizes), loop

    losing = worthwhile(budget, products.rows, saved, goes_away=True)
    first = losing.first
    rows, loop = fewest[first]
    used_by_all = sum(
        products.times[products.at(row)] * used[products.at(row)] for group in losing.groups for row in group.rows
    )
    return losing.finding(
        MEMORY_BOUND,
        f"Micro-batches of {rows:,} rows leave matrix products waiting for their weights",
        f"Time of these products above that of one micro-batch with all rows: the same FLOPs at {share(best)} "
        f"of the peak, or the weights read once and the other arrays as now at {share(fastest)} of HBM's.",
        [
            losing.words(more=f", at {share(used_by_all / losing.ps)} of the peak FLOP/s"),
            f"{budget.described(loop.row)} makes {counted(round(loop.trips), 'trip')}, each with a forward and a "
            "backward pass, and each reads the weights again.",
            budget.largest(first, losing.groups[0].ps / len(losing.groups[0].rows)),
            _room(budget),
        ],
        advice=_ROWS_ADVICE,
    )


def _of_weights(loop: Loop, of: OpArrays, sizes: tuple[int, int, int]) -> float:
    """The part (0-1) of a product's arrays that does not grow with the rows of a micro-batch.

    Weights are an operand that no trip changes; their gradients are a result whose contraction is over the rows.
    """
    m, k, n = sizes
    counts = {"left": m * k, "right": k * n, "out": m * n}
    largest = max(counts, key=counts.__getitem__)
    if largest != "out":
        kept = [
            operand
            for operand in loop.module.operand_protos(of.proto)
            if operand is not None and operand.id not in loop.varying and elements(operand.shape) >= counts[largest]
        ]
        if not kept:
            return 0.0
    return counts[largest] / sum(counts.values())


def _room(budget: Budget) -> str:
    memory = budget.evidence.memory
    return (
        ""
        if memory is None
        else f"{size(max(0, memory[1] - memory[0]))} of {size(memory[1])} of HBM are free at the peak."
    )

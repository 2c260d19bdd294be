"""What the trips of a loop repeat: casts of the same weights, and products that read their weights for a few rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.base.words import sentence_name, share, size
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.shapes import element_bits
from tpuprof.parsers.pages.findings.budget import Budget
from tpuprof.parsers.pages.findings.finding import Finding, JumpTarget
from tpuprof.parsers.pages.findings.ops.arrays import ModuleArrays, OpArrays
from tpuprof.parsers.pages.findings.ops.groups import (
    NOTHING,
    Claimed,
    CloneGroup,
    code_name,
    named,
    op_finding,
    reached,
)
from tpuprof.parsers.pages.findings.ops.products import Products
from tpuprof.parsers.pages.findings.ops.trips import LEAST_LOOP, Loop

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


def repeated_casts(budget: Budget, programs: Sequence[ModuleArrays], loops: Sequence[Loop]) -> Claimed:
    """Arrays that every trip of a loop casts to a narrower type, although they stay the same.

    Args:
        programs: what the large ops read and write.
        loops: of the programs.
    """
    table = budget.evidence.table
    rows, times = budget.ops(*MOVING)
    own = dict(zip(rows.tolist(), times.tolist(), strict=True))
    parts = [program.of(own.keys()) for program in programs]
    cast = {of.row: of for part in parts for of in part.once("casts", _casts)}
    if sum(own[row] for row in cast) < LEAST_LOOP * budget.whole_ps:
        return NOTHING
    trips = dict.fromkeys(cast, 1.0)
    around: dict[int, int] = {}
    for loop in loops:
        for row in set(loop.inside.tolist()) & cast.keys():
            if cast[row].proto.id not in loop.varying:
                trips[row] *= loop.trips
                around[row] = loop.row
    saved = np.array([own[row] * (1 - 1 / trips[row]) if row in around else 0.0 for row in rows.tolist()])

    def make(groups: list[CloneGroup], worth: float) -> Finding | None:
        first = groups[0].first
        moved = sum(array.bytes for array in cast[first].reads)
        return budget.finding(
            "memory-bound",
            f"Each of {trips[first]:,.0f} trips casts the same weights: {code_name(table, groups[0].rows)}",
            worth,
            "Time of these casts, except one of each: their bytes need not move again.",
            [
                f"They take {budget.amount(sum(group.ps for group in groups))}: {named(groups)}.",
                f"{budget.described(first)} casts {size(moved)} in every trip of "
                f"{sentence_name(table.name[around[first]])}, and no trip changes them.",
            ],
            JumpTarget("op-profile", table.name[first]),
            is_estimate=True,
            advice=_CAST_ADVICE,
        )

    return op_finding(budget, rows, saved, make, goes_away=True)


def is_cast(module: HloModule, of: OpArrays) -> bool:
    """Whether an op does nothing but cast a large array to a narrower type, and move it perhaps."""
    computation = module.wrapped(of.proto)
    inside = [of.proto] if computation is None else list(computation.instructions)
    if not of.reads or not {each.opcode for each in inside} <= _CASTS:
        return False
    for each in inside:
        before = module.operand_protos(each)[0] if each.opcode == b"convert" and each.operand_ids else None
        if before is not None and 0 < element_bits(each.shape) < element_bits(before.shape):
            return True
    return False


# --- few rows

_MOST_FLOPS = 1.0  # a product takes more of HBM's peak than of the peak FLOP/s: memory holds it up

_ROWS_ADVICE = (
    "Make fewer, larger micro-batches, as far as memory allows (rematerialise or shard activations to make room): each "
    "of them reads all weights and writes all gradients, however few rows it has."
)


def _casts(program: ModuleArrays) -> Iterator[OpArrays]:
    return (of for of in program.ops.values() if is_cast(program.module, of))


def few_rows(budget: Budget, products: Products, programs: Sequence[ModuleArrays], loops: Sequence[Loop]) -> Claimed:
    """Micro-batches of so few rows that their products wait for the weights, which every trip reads again.

    A loop whose trips hold a forward and a backward pass goes over micro-batches. Larger ones have the same FLOPs, and
    read the weights and write their gradients less often.

    Args:
        products: the large matrix products.
        programs: what the large ops read and write.
        loops: of the programs.
    """
    table = budget.evidence.table
    loops = [loop for loop in loops if loop.is_over_batches]
    loops = [one for one in loops if not any(one is not other and other.row in one.inside for other in loops)]
    if not loops:
        return NOTHING
    free = set(budget.rows["compute"].tolist())
    used, bandwidth = np.nan_to_num(products.used), np.nan_to_num(products.bandwidth)
    best = reached(budget, products.rows, products.used, products.times)
    fastest = reached(budget, products.rows, products.bandwidth, products.times)
    saved, fewest = np.zeros(len(products.rows)), {}
    arrays = {of.row: of for program in programs for of in program.ops.values()}
    for loop in loops:
        mine = [row for row in loop.inside.tolist() if row in free and row in products.rows]
        for row in mine:
            at = products.at(row)
            sizes = _sizes(products, at)
            if row not in arrays or sizes is None or bandwidth[at] <= used[at] * _MOST_FLOPS:
                continue
            part = _of_weights(loop, arrays[row], sizes)
            moving = bandwidth[at] * (1 - part + part / loop.trips) / fastest
            saved[at] = products.times[at] * max(0.0, 1 - max(used[at] / best, moving))
            fewest[row] = min(sizes), loop

    def make(groups: list[CloneGroup], worth: float) -> Finding | None:
        first = groups[0].first
        rows, loop = fewest[first]
        together = sum(group.ps for group in groups)
        used_by_all = sum(
            products.times[products.at(row)] * used[products.at(row)] for group in groups for row in group.rows
        )
        return budget.finding(
            "memory-bound",
            f"Micro-batches of {rows:,} rows leave matrix products waiting for their weights",
            worth,
            f"Time of these products above that of one micro-batch with all rows: the same FLOPs at {share(best)} "
            f"of the peak, or the weights read once and the other arrays as now at {share(fastest)} of HBM's.",
            [
                f"They take {budget.amount(together)}, at {share(used_by_all / together)} of the peak FLOP/s: "
                f"{named(groups)}.",
                f"{budget.described(loop.row)} makes {counted(round(loop.trips), 'trip')}, each with a forward and a "
                "backward pass, and each reads the weights again.",
                budget.largest(first, groups[0].ps / len(groups[0].rows)),
                _room(budget),
            ],
            JumpTarget("op-profile", table.name[first]),
            is_estimate=True,
            advice=_ROWS_ADVICE,
        )

    return op_finding(budget, products.rows, saved, make, goes_away=True)


def _sizes(products: Products, at: int) -> tuple[int, int, int] | None:
    """m, k and n of an op's only product; None where it has several, batched ones, or unknown ones."""
    works = products.products[at].works
    if len(works) != 1 or works[0].batch != 1:
        return None
    work = works[0]
    return (work.m, work.k, work.n) if work.m and work.k and work.n else None


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
            for operand in of.proto.operand_ids
            if operand not in loop.varying and _count(loop.module, operand) >= counts[largest]
        ]
        if not kept:
            return 0.0
    return counts[largest] / sum(counts.values())


def _count(module: HloModule, number: int) -> int:
    proto = module.instruction_by_id(number)
    return 0 if proto is None else prod(proto.shape.dimensions)


def _room(budget: Budget) -> str:
    memory = budget.evidence.memory
    return (
        ""
        if memory is None
        else f"{size(max(0, memory[1] - memory[0]))} of {size(memory[1])} of HBM are free at the peak."
    )

"""Attention whose scores go through HBM: batched products that make a large array of small ones, or use it up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.base.words import share, size
from tpuprof.parsers.ops.roofline import holds_ops
from tpuprof.parsers.pages.findings.budget import Budget
from tpuprof.parsers.pages.findings.finding import Finding, JumpTarget
from tpuprof.parsers.pages.findings.ops.arrays import Key, ModuleArrays, OpArrays, arrays_of
from tpuprof.parsers.pages.findings.ops.groups import (
    HBM,
    NOTHING,
    REACHED,
    USUAL,
    CloneGroup,
    OpFinding,
    capped,
    code_name,
    named,
    op_finding,
)
from tpuprof.parsers.pages.findings.ops.products import Products

_LEAST_OP = 2e-4
"""An op counts from this share of the time on: one of the layers takes little, all of them much."""

_LONGER = 4
"""Both sides of an array of scores are so many times as long as the contraction that makes it, at least: a result that
is hardly larger than its operands has to be written."""

ADVICE = (
    "Compute attention in one kernel that keeps the scores on the chip: splash_attention or flash_attention of "
    "jax.experimental.pallas.ops.tpu, or jax.nn.dot_product_attention(implementation=...) with one that is fused on "
    "this device."
)


@dataclass(frozen=True, slots=True)
class _Scores:
    """The ops around the scores of one attention, forward or backward; bytes: of one array of scores, the largest."""

    ops: tuple[OpArrays, ...]
    count: int
    bytes: int


def scores_in_hbm(budget: Budget, products: Products) -> OpFinding:
    """Attention that writes its scores to HBM and reads them again.

    A batched product of a short contraction writes more than it reads, so that memory holds it up; then come ops on
    arrays of that size, and batched products that use them up. One kernel for all of them keeps the arrays on the chip.

    Args:
        products: the large matrix products.
    """
    ridge, rates = budget.evidence.peaks.ridge_point, budget.evidence.rates
    made = {row: count for row in products.rows.tolist() if ridge and (count := _scores_of(products, row, ridge))}
    rows, times = budget.ops("compute", "vector", "copy")
    chosen = (times >= _LEAST_OP * budget.whole_ps) & ~holds_ops(budget.evidence.table)[rows]
    own = dict(zip(rows[chosen].tolist(), times[chosen].tolist(), strict=True))
    made = {row: count for row, count in made.items() if row in own}
    if not made:
        return NOTHING
    batched = {row for row in products.rows.tolist() if _is_batched(products, row)}
    others = {row for row in products.rows.tolist() if row not in batched}
    programs = arrays_of(budget, [row for row in own if row not in others])
    found = [each for program in programs for each in _of_program(program, made, batched)]
    if not found:
        return NOTHING
    flops = np.nan_to_num(capped(rates.flops_utilization))
    moved = np.nan_to_num(capped(rates.bandwidth_utilization[:, HBM]))
    place = {row: at for at, row in enumerate(rows.tolist())}
    saved = np.zeros(len(rows))
    for each in found:
        before = sum(own[of.row] for of in each.ops)
        computing = sum(own[of.row] * float(flops[of.row]) for of in each.ops) / USUAL
        moving = sum(own[of.row] * float(moved[of.row]) * _beside(budget, of, each.count) for of in each.ops) / REACHED
        part = max(0.0, 1 - max(computing, moving) / before) if before > 0 else 0.0
        for of in each.ops:
            saved[place[of.row]] = own[of.row] * part

    def make(groups: list[CloneGroup], worth: float) -> Finding | None:
        largest = max(found, key=lambda each: each.bytes)
        of_products = sorted((of.row for of in largest.ops if of.row in batched), key=lambda row: -own[row])
        first, ops = of_products[0], sum(len(each.ops) for each in found)
        return budget.finding(
            "unfused",
            f"Attention keeps its scores in HBM: {code_name(budget.evidence.table, of_products)}",
            worth,
            f"Time of these ops above what their FLOPs take at {share(USUAL)} of the peak, or their other arrays at "
            f"{share(REACHED)} of HBM's. The scores need not move at all, so their time at the roof is part of it.",
            [
                f"{counted(ops, 'op')} on arrays of scores, {size(largest.bytes)} the largest, take "
                f"{budget.amount(sum(group.ps for group in groups))}: {named(groups)}.",
                budget.largest(first, own[first], "The largest product"),
            ],
            JumpTarget("op-profile", budget.evidence.table.name[first]),
            is_estimate=True,
            advice=ADVICE,
        )

    return op_finding(budget, rows, saved, times, make)


def _scores_of(products: Products, row: int, ridge: float) -> int:
    """How many elements of scores a product makes; 0 where it is no such product.

    Args:
        ridge: FLOPs a byte below which memory bounds an op. A contraction of that many elements takes as long as
            writing its result in 16 bits; one of twice as many does so in 32.
    """
    for work in products.products[products.at(row)].works:
        if work.m and work.n and work.k and work.batch and work.batch > 1:
            is_short = work.k <= 2 * ridge and _LONGER * work.k <= min(work.m, work.n)
            if is_short:
                return work.batch * work.m * work.n
    return 0


def _is_batched(products: Products, row: int) -> bool:
    return any((work.batch or 0) > 1 for work in products.products[products.at(row)].works)


def _of_program(program: ModuleArrays, made: Mapping[int, int], batched: set[int]) -> Iterator[_Scores]:
    """The attentions of a program: ops that pass arrays of one size to each other, from a product to a product.

    Args:
        made: elements of the scores that some rows make.
        batched: rows of batched products.
    """
    users: dict[Key, list[int]] = {}
    for number, of in program.ops.items():
        for array in (*of.reads, *of.writes):
            users.setdefault(array.key, []).append(number)
    seen: set[int] = set()
    for start, first in program.ops.items():
        count = made.get(first.row, 0)
        if not count or start in seen or not any(array.count == count for array in first.writes):
            continue
        members, waiting = {start: first}, [first]
        while waiting:
            of = waiting.pop()
            for array in (*of.reads, *of.writes):
                for number in users[array.key] if array.count == count else ():
                    other = program.ops[number]
                    if number not in members and other.computation == first.computation:
                        members[number] = other
                        waiting.append(other)
        seen |= members.keys()
        uses_up = [of for of in members.values() if of.row in batched and _uses_up(of, count)]
        if uses_up:
            sizes = [array.bytes for of in members.values() for array in of.writes if array.count == count]
            yield _Scores(tuple(members.values()), count, max(sizes))


def _uses_up(of: OpArrays, count: int) -> bool:
    """Whether an op makes a smaller array of scores."""
    return any(array.count == count for array in of.reads) and all(array.count != count for array in of.writes)


def _beside(budget: Budget, of: OpArrays, count: int) -> float:
    """The part (0-1) of the bytes of an op that are no scores."""
    table = budget.evidence.table
    moved = float(table.hbm_bytes[of.row]) / max(int(table.occurrences[of.row]), 1)
    scores = sum(array.bytes for array in (*of.reads, *of.writes) if array.count == count)
    return max(0.0, 1 - scores / moved) if moved > 0 else 0.0

"""Findings about ops that work below what the device can do: padded matrix products, and ops bound by memory."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from tpuprof.parsers.base.intervals import Floats
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.formats.hlo.matrix import MatrixWork, matrix_works, mxu_side
from tpuprof.parsers.ops.op_metadata import TRAFFIC
from tpuprof.parsers.ops.roofline import BOUNDS, holds_ops
from tpuprof.parsers.ops.table import OpTable
from tpuprof.parsers.pages.findings.budget import Budget
from tpuprof.parsers.pages.findings.finding import Evidence, Finding, Place
from tpuprof.parsers.pages.findings.moving import op_shapes
from tpuprof.parsers.pages.words import share, short, size

LEAST_MATRIX_OP = 0.05
"""It looks at the shapes of ops from this share of the time on, because it must parse their programs."""

FILLED = 0.6
"""Padding is no finding where an op fills this share of the matrix unit: new shapes would gain too little."""

_PLAUSIBLE = 1.05
"""The compiler laid out an op otherwise if it is faster than its padded shape allows; then the estimate is wrong."""

LEAST_WORTH = 0.01
"""Below this share of the time an estimate is not worth a line."""

LEAST_MEMORY_BOUND = 0.10
"""Ops bound by memory must take this share of the time together; every program has some."""

SATURATED = 0.4
"""Bandwidth slows an op down from this share of HBM's peak on; below, latency or the op's size does."""

_FLOATS = 0.5  # share of an op's bytes in f32 from which on bf16 is mentioned
_LARGE = 1 << 20  # bytes of an array whose type matters
_HBM, _VMEM = 0, 1  # memory spaces in layouts
_MOST_READ = 20  # ops whose text is read for types
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class _Padded:
    """A matrix op with padding: its row, how much of the matrix unit it fills (0-1), padding time, worst product."""

    row: int
    filled: float
    waste_ps: float
    work: MatrixWork


def matrix_padding(budget: Budget) -> Finding | None:
    """Large matrix ops whose dimensions are not multiples of the matrix unit's side."""
    side, rows = mxu_side(budget.evidence.device_type), budget.rows["compute"]
    if side is None:
        return None
    times = zip(rows.tolist(), budget.op_ps(rows, "compute").tolist(), strict=True)
    large = [(row, ps) for row, ps in times if ps >= LEAST_MATRIX_OP * budget.whole_ps]
    padded_ops = [padded for row, ps in large if (padded := _padded(budget.evidence, row, ps, side)) is not None]
    worth = math.fsum(padded.waste_ps for padded in padded_ops)
    if not padded_ops or worth < LEAST_WORTH * budget.whole_ps:
        return None
    padded_ops.sort(key=lambda padded: -padded.waste_ps)
    name = budget.evidence.table.name[padded_ops[0].row]
    title = f"{short(name)} fills {share(padded_ops[0].filled)} of the matrix unit"
    if len(padded_ops) > 1:
        title = f"{short(name)} and {len(padded_ops) - 1} more pad the matrix unit"
    return budget.finding(
        "padding",
        title,
        worth,
        f"Self time times the share of the multiplications that is padding, in a unit of {side}x{side}; "
        "less where they are slower than padding explains.",
        [_padded_words(budget, padded) for padded in padded_ops[:_MOST_NAMED]],
        Place("op-profile", name),
        is_estimate=True,
    )


def _padded(evidence: Evidence, row: int, op_ps: float, side: int) -> _Padded | None:
    """What an op wastes on padding; None where it fills the unit, or where its shapes cannot be the reason."""
    used = float(evidence.rates.flops_utilization[row])
    if used >= FILLED:
        return None  # whatever its shapes are: the program need not be parsed
    program = int(evidence.table.program_id[row])
    modules = (program_modules.module(program) for program_modules in evidence.modules)
    module = next((module for module in modules if module is not None), None)
    works = () if module is None else matrix_works(module, evidence.table.name[row], side)
    filled = _filled(works)
    if filled is None or filled >= FILLED or used > _PLAUSIBLE * filled:
        return None
    waste = op_ps * (1 - filled)
    if math.isfinite(used):
        waste *= min(1.0, used / filled)  # the time that the unit needs for the padded product at all
    bandwidth = float(evidence.rates.bandwidth_utilization[row, TRAFFIC.index("hbm")])
    if math.isfinite(bandwidth):  # without padding it would still have to move its bytes
        waste = min(waste, op_ps * max(0.0, 1 - bandwidth))
    worst = min(works, key=lambda work: work.share if work.share is not None else 1.0)
    return _Padded(row, filled, waste, worst)


def _filled(works: Iterable[MatrixWork]) -> float | None:
    """The share of some products' multiplications that is not padding; None where one product is unknown."""
    plain = padded = 0
    for work in works:
        if (
            work.m is None or work.k is None or work.n is None or work.batch is None
            or work.padded_m is None or work.padded_k is None or work.padded_n is None
        ):  # fmt: skip
            return None
        plain += work.batch * work.m * work.k * work.n
        padded += work.batch * work.padded_m * work.padded_k * work.padded_n
    return plain / padded if padded else None


def _padded_words(budget: Budget, padded: _Padded) -> str:
    work = padded.work
    sizes = " x ".join(
        f"{letter} {plain or 0:,}" + ("" if plain == full else f" (padded to {full or 0:,})")
        for letter, plain, full in zip(
            "mkn", (work.m, work.k, work.n), (work.padded_m, work.padded_k, work.padded_n), strict=True
        )
    )
    op_ps = float(budget.op_ps(np.array([padded.row]), "compute")[0])
    most = f", most in {work.padded_dimension} ({work.meaning})" if work.padded_dimension else ""
    name = budget.described(padded.row)
    return f"{name} takes {budget.amount(op_ps)} and fills {share(padded.filled)}: {sizes}{most}."


def memory_bound(budget: Budget) -> Finding | None:
    """Ops without matrix products that run near HBM's peak bandwidth."""
    table, rates, rows = budget.evidence.table, budget.evidence.rates, budget.rows["vector"]
    if budget.evidence.peaks.hbm is None or not len(rows):
        return None
    used = rates.bandwidth_utilization[rows, TRAFFIC.index("hbm")]
    bound = rates.bound_by[rows] == BOUNDS.index("HBM")
    chosen = bound & (np.nan_to_num(used) >= SATURATED) & ~holds_ops(table)[rows]
    rows, used = rows[chosen], np.minimum(used[chosen], 1.0)
    op_ps = budget.op_ps(rows, "vector")
    together = float(op_ps.sum())
    if together < LEAST_MEMORY_BOUND * budget.whole_ps:
        return None
    above = float((op_ps * (1 - used)).sum())
    halved = _halved(table, op_ps * used, rows.tolist())
    worth = max(above, halved)
    if worth < LEAST_WORTH * budget.whole_ps:
        return None
    basis = "Time that these ops take above what HBM's peak bandwidth allows for their bytes."
    if halved > above:
        basis = "Half of the time that HBM needs, at its peak, for the f32 bytes of these ops."
    rate = float((op_ps * used).sum()) / together
    first = int(rows[0])
    return budget.finding(
        "memory-bound",
        f"Memory-bound fusions take {share(together / budget.whole_ps)} of "
        f"{'the capture' if budget.steps is None else 'step time'}",
        worth,
        basis,
        [
            f"HBM, at {share(rate)} of its peak, holds up {counted(len(rows), 'op')} without matrix products, "
            f"{budget.amount(together)} together.",
            budget.largest(first, float(op_ps[0])),
            f"Much of their data is f32; as bf16 it is half the bytes, {budget.amount(halved)} less." if halved else "",
            _bytes_words(float(table.hbm_bytes[first]), int(table.occurrences[first])),
        ],
        Place("op-profile", table.name[first]),
        is_estimate=True,
    )


def _bytes_words(moved: float, occurrences: int) -> str:
    """A sentence on the bytes that an op moves each time."""
    if not math.isfinite(moved) or occurrences <= 0:
        return ""
    return f"It moves {size(moved / occurrences)} to and from HBM each time."


def _halved(table: OpTable, hbm_ps: Floats, rows: list[int]) -> float:
    """Time for HBM traffic that bf16 would save in the largest ops whose large arrays are mostly f32."""
    saved = 0.0
    for row, ps in zip(rows[:_MOST_READ], hbm_ps.tolist(), strict=False):
        arrays = [shape for shape in op_shapes(table, row) if shape.memory_space == _HBM]
        everything = math.fsum(shape.padded_bytes or shape.unpadded_bytes or 0 for shape in arrays)
        sizes = [shape.padded_bytes or 0 for shape in arrays if shape.element_type == "f32"]
        floats = math.fsum(array for array in sizes if array >= _LARGE)
        if everything > 0 and floats >= _FLOATS * everything:
            saved += ps * floats / everything / 2
    return saved

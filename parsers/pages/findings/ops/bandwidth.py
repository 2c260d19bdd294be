"""Findings about ops that memory limits: by bandwidth, by latency, or because they are not fused."""

from __future__ import annotations

import math
import re
from functools import partial

import numpy as np

from tpuprof.parsers.base.intervals import is_among
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.base.words import sentence_name, share, size
from tpuprof.parsers.formats.hlo.shapes import element_type
from tpuprof.parsers.ops.framework_op import pass_of
from tpuprof.parsers.ops.roofline import BOUNDS, holds_ops
from tpuprof.parsers.ops.table import OpTable
from tpuprof.parsers.pages.findings.budget import NOTHING, Budget, Claimed, detects
from tpuprof.parsers.pages.findings.claims import Rows
from tpuprof.parsers.pages.findings.finding import PEAKS, JumpTarget, Kind
from tpuprof.parsers.pages.findings.ops.groups import (
    HBM,
    LEAST_WORTH,
    SHORT_PS,
    USUAL,
    capped,
    groups_of,
    inside,
    module_of,
    named,
    reached,
    read_of_groups,
    subject,
    worthwhile,
)
from tpuprof.parsers.pages.findings.ops.moving import op_shapes
from tpuprof.parsers.pages.findings.ops.trips import loops_of

LEAST_MEMORY_BOUND = 0.10
"""Ops bound by memory must take this share of the time together; every program has some."""

SATURATED = 0.4
"""Bandwidth slows an op down from this share of HBM's peak on; below, latency or the op's size does."""

_FLOATS = 0.5  # share of an op's bytes in f32 from which on bf16 is mentioned
_LARGE = 1 << 20  # bytes of an array whose type matters
_HBM, _VMEM = 0, 1  # memory spaces in layouts

_OF_OPTIMIZER = pattern(r"adam|optim|opt_state|apply_updates|sgd|momentum|lamb|adafactor|shampoo", re.IGNORECASE)

MEMORY_BOUND = Kind(
    "memory-bound",
    "ops limited by HBM",
    advice="Move fewer bytes: fuse these ops with the writers and readers of their arrays, and recompute cheap ones.",
    rank=32,
    needs=(PEAKS,),
)


@detects(MEMORY_BOUND)
def memory_bound(budget: Budget) -> Claimed:
    """Ops without matrix products that run near HBM's peak bandwidth, against what the best of them reach."""
    table, rates, rows = budget.evidence.table, budget.evidence.rates, budget.rows["vector"]
    if budget.evidence.peaks.hbm is None or not len(rows):
        return NOTHING
    used = capped(rates.bandwidth_utilization[rows, HBM])
    bound = rates.bound_by[rows] == BOUNDS.index("HBM")
    chosen = bound & (np.nan_to_num(used) >= SATURATED) & ~holds_ops(table)[rows]
    rows, used = rows[chosen], np.minimum(used[chosen], 1.0)
    op_ps = budget.op_ps(rows)
    together = float(op_ps.sum())
    budget.needs(together, LEAST_MEMORY_BOUND)
    best = reached(budget, used, op_ps)
    picks = op_ps >= _LEAST_OP * budget.whole_ps
    picks[picks] = [_picks(budget, row) for row in rows[picks].tolist()]
    most = np.where(picks, min(best, USUAL), best)  # rows by index come slower than those in order, however narrow
    above = op_ps * np.maximum(1 - used / most, 0.0)
    groups = groups_of(table, rows, op_ps)
    fewer = op_ps * np.minimum(used / most, 1.0) * read_of_groups(groups, rows, partial(_halved, table))
    fewer[picks | is_among(rows, _sums_of_gradients(budget, rows[fewer > 0]))] = 0.0
    moves_fewer = float(fewer.sum()) > float(above.sum())
    claim = budget.take_ops(rows, fewer if moves_fewer else above, moves_fewer)
    worth, halved = claim.worth_ps, float(fewer.sum())
    budget.needs(worth, LEAST_WORTH)
    basis = f"Time lost against {share(best)} of HBM's peak, the rate of large ops."
    if moves_fewer:
        basis = "Half of the time that HBM needs for the f32 bytes of these ops, at the rate that they reach."
    rate = float((op_ps * used).sum()) / together
    first = groups[0].first
    largest = "largest op," if len(groups[0].rows) == 1 else "largest group, ops like"
    return budget.finding(
        MEMORY_BOUND,
        claim.about(rows),
        f"Memory-bound fusions take {share(together / budget.whole_ps)} of "
        f"{'the capture' if budget.steps is None else 'step time'}",
        basis,
        [
            f"{counted(len(rows), 'op')} without matrix products {'takes' if len(rows) == 1 else 'take'} "
            f"{budget.amount(together)}, limited by HBM at {share(rate)} of its peak: {named(groups)}.",
            f"The {largest} {budget.described(first)}, takes {budget.amount(groups[0].ps)}.",
            _bytes_words(table, first),
            f"Much of these ops' data is f32: bf16 would halve those bytes and save {budget.amount(halved)}."
            if halved
            else "",
        ],
        JumpTarget("op-profile", table.name[first]),
        is_estimate=True,
        advice=_NARROW if halved else "",
    )


_NARROW = (
    "Move fewer bytes: use bfloat16 for these arrays, fuse the ops that write and read them, recompute cheap ones."
)


def _bytes_words(table: OpTable, row: int) -> str:
    """A sentence on the bytes that an op moves each time; empty where they are unknown."""
    moved = float(table.hbm_bytes[row]) / max(int(table.occurrences[row]), 1)
    return (
        f"{sentence_name(table.name[row])} moves {size(moved)} to and from HBM a run." if math.isfinite(moved) else ""
    )


def _halved(table: OpTable, row: int) -> float:
    """The part of an op's HBM traffic that bf16 would save; 0 where its large arrays are not mostly f32.

    The optimizer's state is left out: it needs its 32 bits.
    """
    if _OF_OPTIMIZER.search(table.framework_op[row]):
        return 0.0
    arrays = [shape for shape in op_shapes(table, row) if shape.memory_space == _HBM]
    everything = math.fsum(shape.memory_bytes or 0 for shape in arrays)
    sizes = [shape.padded_bytes or 0 for shape in arrays if shape.element_type == "f32"]
    floats = math.fsum(array for array in sizes if array >= _LARGE)
    return floats / everything / 2 if everything > 0 and floats >= _FLOATS * everything else 0.0


def _sums_of_gradients(budget: Budget, rows: Rows) -> Rows:
    """Which of some ops add to f32 arrays in each trip over micro-batches: sums of gradients, which need their 32 bits.

    They add up what the passes give, in neither of them, and write an array like one that they read.
    """
    adds_up = rows[np.array([_adds_up(budget, row) for row in rows.tolist()], np.bool_)]
    if not len(adds_up):
        return adds_up
    inside = [loop.inside for loop in budget.once(loops_of) if loop.is_over_batches]
    return adds_up[is_among(adds_up, np.concatenate([rows[:0], *inside]))]


def _adds_up(budget: Budget, row: int) -> bool:
    table = budget.evidence.table
    if pass_of(table.framework_op[row], table.is_rematerialized(row)):
        return False
    module = module_of(budget.evidence, row)
    proto = module.instruction_proto(table.name[row]) if module is not None else None
    if module is None or proto is None:
        return False
    read = {
        (each.shape.element_type, *each.shape.dimensions) for each in module.operand_protos(proto) if each is not None
    }
    written = [part for part in proto.shape.tuple_shapes or [proto.shape] if part.dimensions]
    keeps = [element_type(part) == "f32" and (part.element_type, *part.dimensions) in read for part in written]
    return bool(keeps) and all(keeps) and any(each.opcode == b"add" for each in module.inside(proto))


# --- latency -------------------------------------------------------------------------------------------------------

_LATENT = 0.2
"""Share of HBM's peak below which an op that gathers or scatters waits for single accesses."""

_LEAST_OP = 2e-4
"""An op counts from this share of the time on: one of the clones of a layer takes little, all of them much."""

PICKS = pattern(r"gather|scatter|dynamic[-_](update[-_])?slice|take|embedding|sort", re.IGNORECASE)
_PICKING = frozenset({b"gather", b"scatter", b"dynamic-slice", b"dynamic-update-slice", b"sort"})

LATENCY_BOUND = Kind(
    "latency-bound",
    "ops limited by latency",
    advice="Make the slices larger: sort or block the indices, or use a one-hot product for small tables.",
    rank=29,
    needs=(PEAKS,),
)


@detects(LATENCY_BOUND)
def latency_bound(budget: Budget) -> Claimed:
    """Gathers, scatters and dynamic slices at a few percent of HBM's bandwidth: single accesses limit them."""
    table, rates = budget.evidence.table, budget.evidence.rates
    rows, times = budget.ops("vector", "copy")
    used, flops = capped(rates.bandwidth_utilization[rows, HBM]), np.nan_to_num(capped(rates.flops_utilization[rows]))
    mean_ps = table.self_ps[rows] / np.maximum(table.occurrences[rows], 1)
    slow = (used < _LATENT) & (flops < _LATENT) & (mean_ps >= SHORT_PS) & (used > 0)
    slow &= (times >= _LEAST_OP * budget.whole_ps) & ~holds_ops(table)[rows]
    slow[slow] = [_picks(budget, row) for row in rows[slow].tolist()]
    best = reached(budget, used, times)
    saved = np.where(slow, times * np.maximum(1 - np.nan_to_num(used) / best, 0.0), 0.0)

    losing = worthwhile(budget, rows, saved)
    first = losing.groups[0]
    rate = float(used[rows == first.first][0])
    moved = float(table.hbm_bytes[first.first]) / max(int(table.occurrences[first.first]), 1)
    return losing.finding(
        LATENCY_BOUND,
        f"{subject(table, first)} accesses single elements at {share(rate)} of HBM's peak",
        f"The ops' time beyond what their bytes need at {share(best)} of HBM's peak.",
        [
            losing.words("Gathers, scatters and dynamic slices"),
            budget.largest(first.first, float(times[rows == first.first][0])),
            f"It moves {size(moved)} each time: the single accesses limit it, not the bytes.",
        ],
    )


def _picks(budget: Budget, row: int) -> bool:
    """Whether an op picks elements, by its category, its name, its framework op, or by what it fuses."""
    table = budget.evidence.table
    texts = (table.category[row] or "", table.name[row], table.framework_op[row].rpartition("/")[2])
    if any(PICKS.search(text) for text in texts):
        return True
    return any(each.opcode in _PICKING for each in inside(budget.evidence, row))

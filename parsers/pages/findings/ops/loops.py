"""Findings about work that is done again, and about loops whose trips are too small."""

from __future__ import annotations

import numpy as np

from tpuprof.parsers.base.intervals import Floats, is_among, median
from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.words import multiple, share, shortened, size, time
from tpuprof.parsers.pages.findings.budget import NOTHING, Budget, Claimed, detects
from tpuprof.parsers.pages.findings.claims import Rows
from tpuprof.parsers.pages.findings.finding import HLO, JumpTarget, Kind
from tpuprof.parsers.pages.findings.ops.groups import HBM, USUAL, capped, code_name, groups_of, module_of, named
from tpuprof.parsers.pages.findings.ops.trips import in_loop

LEAST_RECOMPUTED = 0.02
"""A little is always recomputed; from this share of the time on it pays to see what it saves."""

_WORKING: tuple[OpClass, ...] = ("compute", "vector", "copy", "unknown")

RECOMPUTATION = Kind(
    "recomputation",
    "recomputed activations",
    advice="Save more activations (another checkpoint policy) as far as memory allows.",
    rank=27,
)


@detects(RECOMPUTATION)
def recomputation(budget: Budget) -> Claimed:
    """What is computed a second time in the backward pass, to save memory."""
    table = budget.evidence.table
    rows = np.concatenate([budget.rows[name] for name in _WORKING])
    rows = rows[np.array([table.is_rematerialized(row) for row in rows.tolist()], np.bool_)]
    times = budget.op_ps(rows)
    claim = budget.take_ops(rows, times, goes_away=True)
    worth = claim.worth_ps
    budget.needs(worth, LEAST_RECOMPUTED)
    groups = groups_of(table, rows, times)
    memory = budget.evidence.memory
    saves = "How much memory that saves is unknown here: the memory page has the compiled program's peak."
    if memory is not None:
        room = max(0, memory[1] - memory[0])
        saves = f"{size(room)} of {size(memory[1])} of HBM are free at the peak: " + (
            "there may be room to save more activations." if room > _ROOM * memory[1] else "the memory is needed."
        )
    return budget.finding(
        RECOMPUTATION,
        claim,
        f"Recomputing activations takes {share(worth / budget.whole_ps)}, mostly "
        f"{code_name(table, groups[0].rows[:1])}",
        "Self time of ops that recompute what the forward pass did not keep, found by their names and scopes.",
        [
            f"{len(rows):,} ops take {budget.amount(worth)}: {named(groups)}.",
            budget.largest(groups[0].first, float(budget.op_ps(groups[0].rows[:1])[0])),
            saves,
        ],
        JumpTarget("op-profile", table.name[groups[0].first]),
    )


_ROOM = 0.15  # share of HBM's capacity from which on there is room for more activations

# --- loops ---------------------------------------------------------------------------------------------------------

LEAST_LOOP = 0.01
MANY_TRIPS = 64
"""A loop over layers or micro-batches has fewer trips."""

TINY_PS = 10e6
"""An op of a loop is tiny below this mean time; starting it takes a part of that."""

_MOST_USED = 0.5  # share of the time that the loop's work needs at the roof from which on the loop is no matter


@dataclass(frozen=True, slots=True)
class _Loop:
    """A while of many trips: its row, rows of the ops in it, trips of a run, its time, and that of its work.

    `work_ps` is float64[inside], the time that the work of each op in it would take, `own_ps` the while's own time.
    """

    row: int
    inside: Rows
    trips: float
    ps: float
    work_ps: Floats
    own_ps: float

    @property
    def rows(self) -> Rows:
        return np.append(self.inside, self.row)


TINY_LOOP = Kind(
    "tiny-loop",
    "loops of tiny ops",
    advice="Process many elements per trip: vectorise the loop, unroll it, or use an associative scan.",
    rank=28,
    needs=(HLO,),
)


@detects(TINY_LOOP)
def tiny_loops(budget: Budget) -> Claimed:
    """Loops of hundreds of trips whose ops take microseconds: starting them takes longer than their work."""
    table = budget.evidence.table
    whiles = [row for row in range(len(table)) if table.category[row] == "while" and table.occurrences[row] > 0]
    large = [row for row in whiles if table.total_ps[row] / max(1, int(table.total_ps.max())) >= LEAST_LOOP / 4]
    loops = [loop for row in large if (loop := _loop(budget, row)) is not None]
    kept: list[_Loop] = []
    for loop in sorted(loops, key=lambda loop: -loop.ps):  # a loop in a loop counts once
        if not any(is_among(loop.inside, other.inside).any() for other in kept):
            kept.append(loop)
    if not kept:
        return NOTHING
    rows = np.concatenate([loop.rows for loop in kept])
    needed = np.concatenate([np.append(loop.work_ps, 0.0) for loop in kept])
    claim = budget.take_ops(rows, budget.op_ps(rows) - needed)
    worth, first = claim.worth_ps, kept[0]
    budget.needs(worth, LEAST_LOOP)
    mean = float(table.self_ps[first.inside].sum()) / max(1, int(table.occurrences[first.inside].sum()))
    more = f", and {len(kept) - 1} more loops" if len(kept) > 1 else ""
    groups = groups_of(table, first.inside, table.self_ps[first.inside].astype(np.float64))
    return budget.finding(
        TINY_LOOP,
        claim.about(rows),
        f"Loop {shortened(table.name[first.row])} makes {first.trips:,.0f} trips of tiny ops{more}",
        f"Time of the loop above what its FLOPs and bytes take at {share(USUAL)} of the roof.",
        [
            f"{budget.described(first.row)} takes {budget.amount(first.ps)}: {multiple(first.trips)} trips each time, "
            f"{len(first.inside)} ops a trip, {time(mean)} each.",
            f"Its work would take {time(float(first.work_ps.sum()))}; {time(first.own_ps)} lies between its ops.",
            f"Most time goes to {named(groups)}.",
        ],
        JumpTarget("op-profile", table.name[first.row]),
        is_estimate=True,
    )


def _loop(budget: Budget, row: int) -> _Loop | None:
    """What a while does; None unless it makes many trips of tiny ops, most of whose time is not work."""
    table, rates = budget.evidence.table, budget.evidence.rates
    same = np.flatnonzero(table.program_id == table.program_id[row])
    often = table.occurrences[same] >= MANY_TRIPS * table.occurrences[row]
    module = module_of(budget.evidence, row) if often.any() else None
    if module is None:
        return None
    names = set(in_loop(module, table.name[row]))
    inside = np.array([other for other in same.tolist() if table.name[other] in names], np.intp)
    if not len(inside):
        return None
    trips = median(table.occurrences[inside].astype(np.float64)) / int(table.occurrences[row])
    mean = float(table.self_ps[inside].sum()) / max(1, int(table.occurrences[inside].sum()))
    if trips < MANY_TRIPS or mean > TINY_PS:
        return None
    used = np.fmax(capped(rates.flops_utilization[inside]), capped(rates.bandwidth_utilization[inside, HBM]))
    times, own = budget.op_ps(inside), float(budget.op_ps(np.array([row]))[0])
    work = times * np.minimum(np.nan_to_num(used, nan=0.0) / USUAL, 1.0)
    whole = float(times.sum()) + own
    return None if float(work.sum()) > _MOST_USED * whole else _Loop(row, inside, trips, whole, work, own)

"""What no other finding explains: computing ops that take longer than at their roof, by their largest groups."""

from __future__ import annotations

import numpy as np

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.base.words import sentence_name, share
from tpuprof.parsers.pages.findings.budget import NOTHING, Budget, Claimed, detects
from tpuprof.parsers.pages.findings.finding import PEAKS, JumpTarget, Kind
from tpuprof.parsers.pages.findings.ops.groups import USUAL, CloneGroup, groups_of, subject

LEAST_UNEXPLAINED = 0.05
"""From this share of the time on it is named; less is what any program loses here and there."""

_MOST_NAMED = 3


UNEXPLAINED = Kind(
    "unexplained",
    "unexplained losses",
    advice="In the op profile, check the shapes and layouts of these ops, and what is fused in them.",
    rank=33,
    needs=(PEAKS,),
)


@detects(UNEXPLAINED)
def unexplained(budget: Budget) -> Claimed:
    """Where ops are far from their roof although no finding says why.

    Nothing reaches its peak, so that an op at `USUAL` of its roof loses nothing here.

    Args:
        budget: without the ops that other findings are about.
    """
    table, rates = budget.evidence.table, budget.evidence.rates
    ideal = budget.owners.ideal
    rows, times = budget.losing_ops()
    lost = times * np.maximum(1.0 - ideal[rows] / USUAL, 0.0)
    together = float(lost.sum())
    if together < LEAST_UNEXPLAINED * budget.whole_ps:
        return NOTHING
    roof = dict(zip(rows.tolist(), ideal[rows].tolist(), strict=True))
    own = dict(zip(rows.tolist(), times.tolist(), strict=True))
    groups = [group for group in groups_of(table, rows, lost) if group.ps > 0]
    first = groups[0]

    def words(group: CloneGroup) -> str:
        time = sum(own[row] for row in group.rows.tolist())
        reached = sum(own[row] * roof[row] for row in group.rows.tolist()) / time if time else 0.0
        bound = rates.bound_name(group.first)
        by = f" ({bound})" if bound != "unknown" else ""
        return f"{sentence_name(group.label)} takes {budget.amount(time)}, at {share(reached)} of its roof{by}."

    return budget.of_unknown_worth(
        UNEXPLAINED,
        f"Ops lose {share(min(1.0, together / budget.whole_ps))} for no known reason, mostly in "
        f"{subject(table, first)}",
        f"Time of compute ops above what they would take at {share(USUAL)} of their roof, without ops that other "
        "findings cover. How much could be saved is unknown because the cause is unknown.",
        (
            f"{_lose(len(rows), 'compute op')} {budget.amount(together)} against "
            f"{'its' if len(rows) == 1 else 'their'} roof, mean over cores.",
            *map(words, groups[:_MOST_NAMED]),
            f"The other {_lose(len(groups) - _MOST_NAMED, 'group')} "
            f"{budget.amount(sum(group.ps for group in groups[_MOST_NAMED:]))}."
            if len(groups) > _MOST_NAMED
            else "",
        ),
        JumpTarget("op-profile", table.name[first.first]),
        rows,
    )


def _lose(number: int, noun: str) -> str:
    """``1 compute op loses``, ``7 compute ops lose``."""
    return f"{counted(number, noun)} {'loses' if number == 1 else 'lose'}"

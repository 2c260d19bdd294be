"""The finding about waits at barriers."""

from __future__ import annotations

from tpuprof.parsers.base.words import time
from tpuprof.parsers.pages.findings.budget import NOTHING, Budget, Claimed, detects
from tpuprof.parsers.pages.findings.finding import CORES, JumpTarget, Kind, Need

LEAST_BARRIER = 0.02
"""Cores wait a little before every program; from this share of the time on it matters. XProf speaks from 10 % on."""

_LATE = 0.5
"""A core that waits less than this share of the mean is what the others wait for."""

BARRIERS = Need("no core has a line of barriers (XLA TraceMe)", lambda of: bool(of.barriers))
BARRIER = Kind(
    "barrier",
    "waits at barriers",
    advice=(
        "Balance the work before the barrier, launch programs on all hosts at the same time, and use fewer, "
        "larger programs."
    ),
    rank=11,
    owners=("barrier",),
    needs=(CORES, BARRIERS),
    page="cores",
)


@detects(BARRIER)
def at_barriers(budget: Budget) -> Claimed:
    """Time in which cores wait for one another at barriers (`barrier-cores`), in which they run no op."""
    waits, steps = budget.evidence.barriers, budget.steps
    if len(waits) < 2:
        return NOTHING
    parts = 1 if steps is None else len(steps)
    mean = sum(waits.values()) / len(waits) / parts
    claim = budget.take_mean(("barrier",) if steps is not None else ("between_ops",), mean)
    worth = claim.worth_ps
    budget.needs(worth, LEAST_BARRIER)
    least, most = min(waits, key=waits.__getitem__), max(waits, key=waits.__getitem__)
    late = waits[least] / parts < _LATE * mean
    title = f"Cores wait for core {least} at barriers" if late else "Cores wait for each other at barriers"
    a_step = "" if steps is None else " a step"
    spread = f"Core {most} waits longest, {time(waits[most] / parts)}{a_step}; core {least} shortest, "
    spread += f"{time(waits[least] / parts)}" + (": it comes last." if late else ".")
    return budget.finding(
        BARRIER,
        claim,
        title,
        "Mean over cores of the time in barrier-cores events, without time at barriers that other findings count.",
        [f"Cores wait at barriers, with no op running, for {budget.amount(worth)}.", spread],
        JumpTarget("timeline"),
    )

"""A finding about barriers: cores that wait until all others have come, with no op on any line meanwhile."""

from __future__ import annotations

from tpuprof.parsers.base.words import time
from tpuprof.parsers.pages.findings.budget import Budget, Claim
from tpuprof.parsers.pages.findings.finding import Place

LEAST_BARRIER = 0.02
"""Cores wait a little before every program; from this share of the time on it matters. XProf speaks from 10 % on."""

_LATE = 0.5
"""A core that waits less than this share of the mean is what the others wait for."""


def at_barriers(budget: Budget, claimed_ps: float) -> Claim:
    """Time in which cores wait for one another at barriers (`barrier-cores`), which is idle time of theirs.

    Args:
        claimed_ps: idle time that other findings count.
    """
    waits, steps = budget.evidence.barriers, budget.steps
    if len(waits) < 2:
        return Claim()
    idle = budget.class_ps["idle"]
    if steps is not None:
        idle = float(steps.gaps.mean()) + budget.between_ps
    parts = 1 if steps is None else len(steps)
    mean = sum(waits.values()) / len(waits) / parts
    worth = min(mean, idle - claimed_ps)
    if worth < LEAST_BARRIER * budget.whole_ps:
        return Claim()
    least, most = min(waits, key=waits.__getitem__), max(waits, key=waits.__getitem__)
    late = waits[least] / parts < _LATE * mean
    title = f"Cores wait for core {least} at barriers" if late else "Cores wait for each other at barriers"
    a_step = "" if steps is None else " a step"
    spread = f"Core {most} waits longest, {time(waits[most] / parts)}{a_step}; core {least} shortest, "
    spread += f"{time(waits[least] / parts)}" + (": it comes last." if late else ".")
    finding = budget.finding(
        "barrier",
        title,
        worth,
        "Mean over cores of the time in barrier-cores events, up to the idle time that no other finding counts.",
        [f"No op runs while cores wait at barriers, {budget.amount(worth)}.", spread],
        Place("timeline"),
    )
    return Claim(finding, 0.0, worth)

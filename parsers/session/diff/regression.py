"""Whether a run got slower by more than is allowed, as a check in continuous integration asks."""

from __future__ import annotations

from typing import Literal

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.session.diff.model import Diff

Outcome = Literal["slower", "passed", "unknown"]


@dataclass(frozen=True, slots=True)
class Regression:
    """The answer of such a check.

    Attributes:
        allowed: the fraction by which step time may grow.
        outcome: `slower` where it grew by more than that and beyond the noise; `unknown` where that cannot be decided.
        sentence: why; empty for a pass, unless the noise is larger than what is allowed.
    """

    allowed: float
    outcome: Outcome
    sentence: str


def slower(step: str, than: str, change: float, allowed: float) -> Regression:
    """A failure: a step takes longer than another by more than is allowed, as a fraction."""
    grown = f"The {step} step takes {100 * change:.1f}% longer than {than}"
    return Regression(allowed, "slower", f"{grown}, more than the {100 * allowed:g}% allowed.")


def noisy(noise: float, allowed: float, what: str = "steps") -> Regression:
    """A pass that more steps, or launches, may turn into a failure: the noise, as a fraction, exceeds what is allowed.

    That of the mean step counts where that takes longer by more than is allowed, such as for odd steps of one run.
    """
    sentence = (
        f"The noise ({100 * noise:.1f}%) is larger than the {100 * allowed:g}% allowed: more {what} would decide."
    )
    return Regression(allowed, "passed", sentence)


def regression(diff: Diff, allowed: float) -> Regression:
    """Judges the typical step, and the mean step: steps that became odd don't change the typical one."""
    if diff.different:
        sentence = f"Nothing can be said about a regression: {diff.different}."
        return Regression(allowed, "unknown", sentence)
    steps = diff.steps
    if steps is None:
        why = diff.unknown.get("steps", "the profiles have no steps")
        return Regression(allowed, "unknown", f"Step times are unknown, so nothing can be said of a regression: {why}.")
    if steps.typical.noise is None:
        sentence = "A run with one step says nothing about the noise, so nothing can be said about a regression."
        return Regression(allowed, "unknown", sentence)
    for name, change in (("typical", steps.typical), ("mean", steps.mean)):
        if change.mark == "more" and change.relative is not None and change.relative > allowed:
            return slower(name, "before", change.relative, allowed)
    for change in (steps.typical, steps.mean):
        base, noise = change.before or 0.0, change.noise or 0.0
        is_open = change is steps.typical or (change.relative or 0.0) > allowed
        if change.mark == "same" and is_open and noise > allowed * base > 0:
            return noisy(noise / base, allowed, "steps" if diff.launches is None else "launches")
    return Regression(allowed, "passed", "")

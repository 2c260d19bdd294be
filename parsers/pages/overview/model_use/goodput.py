"""Goodput: the share of the time from the first step to the end of the last one in which the program trained."""

from __future__ import annotations

from collections.abc import Mapping

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.words import NO_TIMED_STEPS
from tpuprof.parsers.pages.overview.model import Overview
from tpuprof.parsers.steps.accounts.owners import Owner

NO_TRAINING = "no op belongs to a backward pass: the program does not train"
UNKNOWN_TRAINING = "no op has a framework name, so whether the program trains is unknown"

IDLE: tuple[Owner, ...] = ("input", "compile", "host", "dispatch", "barrier")
"""The owners of a step's time in which training makes no progress: the program waits, and none of its ops runs."""


@dataclass(frozen=True, slots=True)
class Goodput:
    """Goodput of the steps in the capture.

    Attributes:
        fraction: 0-1; None where unknown, and `unknown` says why.
        elapsed_ps: from the start of the first step to the end of the last one, with the time that follows each step.
        lost_ps: the time of each owner that is not training, in steps and between them.
    """

    fraction: float | None
    elapsed_ps: float | None
    lost_ps: Mapping[Owner, float]
    unknown: str = ""


def goodput(page: Overview) -> Goodput:
    """The goodput of a run's capture.

    Time counts as training where ops of a step run or follow one another, waits inside collectives included. The time
    between steps does not count, and neither do a step's waits: for input, the host, a compiler, or a late core.
    """
    account, is_training = page.account, page.environment.is_training
    if account is None or not account.step_ps or not account.period_ps or not page.steps:
        return Goodput(None, None, {}, NO_TIMED_STEPS)
    elapsed = account.period_ps * len(page.steps)
    if is_training is not True:
        return Goodput(None, elapsed, {}, UNKNOWN_TRAINING if is_training is None else NO_TRAINING)
    lost: dict[Owner, float] = {}
    for each in account.owners:
        time = each.between_ps + (each.time_ps if each.owner in IDLE else 0.0)
        if time > 0:
            lost[each.owner] = time * len(page.steps)
    return Goodput(1.0 - sum(lost.values()) / elapsed, elapsed, lost)

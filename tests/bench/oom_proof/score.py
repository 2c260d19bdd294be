"""How well the advice held: predicted against compiled savings, and what was said to fit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.bench.oom_proof.tries import FAR, Try
from tpuprof.parsers.base.record import dataclass


@dataclass(frozen=True, slots=True)
class Score:
    """Counts over some tries.

    Attributes:
        tries: how many changes were compiled.
        judged: of those, with a predicted and a compiled saving.
        near, far: of these, off by at most 10 % or inside of the range that was given, by more than 25 % and outside.
        said, wrong: said to fit; of those that do not.
        fitting: that fit; of those `said - wrong` were said to.
    """

    tries: int
    judged: int
    near: int
    far: int
    said: int
    wrong: int
    fitting: int

    @classmethod
    def of(cls, tries: Iterable[Try]) -> Score:
        """Counts."""
        every = list(tries)
        judged = [each for each in every if each.error is not None]
        said = [each for each in every if each.said_fits]
        return cls(
            tries=len(every),
            judged=len(judged),
            near=sum(each.is_near for each in every),
            far=sum(each.error > FAR and not each.is_near for each in judged if each.error),
            said=len(said),
            wrong=sum(not each.fits for each in said),
            fitting=sum(each.fits for each in every),
        )


def table(tries: Sequence[Try]) -> str:
    """The table of README.md: a row for each half, and one for all."""
    lines = [
        "| programs | changes compiled | saving within 10 % or its range | off by more than 25 % "
        "| said to fit, and does | fits, and was said to |",
        "|---|---|---|---|---|---|",
    ]
    for name, half in (("tuned on", "tuned"), ("held back", "held"), ("all", "")):
        some = [each for each in tries if not half or each.half == half]
        score, programs = Score.of(some), len({each.case for each in some})
        right = score.said - score.wrong
        lines.append(
            f"| {name}: {programs} | {score.tries} | {score.near} of {score.judged} | {score.far} of {score.judged} "
            f"| {right} of {score.said} | {right} of {score.fitting} |"
        )
    return "\n".join(lines)

"""Asks the program why each case is slow, and compares its answers with the truth."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.insight.cases.case import WORTHLESS, Case, Half, Truth
from tests.insight.simulator.space import spaces
from tests.support.build import present
from tpuprof.parsers.files.logdir import Run, open_logdir
from tpuprof.parsers.pages.findings.finding import Finding
from tpuprof.parsers.pages.overview import verdict as program
from tpuprof.parsers.pages.overview.model import OVERVIEW, Overview
from tpuprof.parsers.pages.overview.verdict import LEAST_BOUND, VerdictKind
from tpuprof.parsers.session.session import Session

_WORD = re.compile(r"[\w.-]*\w")

TOLERANCE = 0.2
"""A finding's worth may be off by this share."""

LEAST_ALARM = 0.03
"""A healthy program has no finding above this share of its step."""

FALSE_ALARM_WEIGHS = 2

FAR_FROM_ROOF = 0.6
"""A program below this share of its roof is told something, whatever that is worth."""

NO_CLAIM = ("uncounted",)
"""Kinds that say where the time is, not what could be won: an answer only where such a problem was planted."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a finding compares with the truth."""

    cause: bool
    place: bool
    worth: bool

    @property
    def is_right(self) -> bool:
        """Whether everything is."""
        return self.cause and self.place and self.worth


NOTHING = Verdict(False, False, False)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the program says of a case.

    Attributes:
        tops: for each problem that is planted, the largest first, the verdict on the finding at its place among those
            that claim time, or that need not; where the time is, is no claim.
        best: for each of them, the best verdict on any finding.
        alarms: findings of a healthy program that are above `LEAST_ALARM`.
        says_when: whether a finding of the right cause says in which steps the problem is.
        at_roof: the share of a step that is at the roof.
        contradicts: whether the verdict names another cause than the first reason, or another amount of it.
        verdict: the cause that the overview names, in its words.
    """

    case: Case
    findings: tuple[Finding, ...]
    tops: tuple[Verdict, ...] = ()
    best: tuple[Verdict, ...] = ()
    alarms: tuple[Finding, ...] = ()
    says_when: bool = False
    at_roof: float = 1.0
    contradicts: bool = False
    verdict: str = ""

    @property
    def is_right(self) -> bool:
        """Whether the first findings are right, in their order, or a healthy program is left alone."""
        return not self.alarms if self.case.is_healthy else all(one.is_right for one in self.tops)

    @property
    def is_silent(self) -> bool:
        """Whether a problem that costs time leaves no finding that claims any."""
        costs = any(planted.kind not in WORTHLESS for planted in self.case.planted)
        return costs and not any(finding.worth_fraction for finding in self.findings)

    @property
    def leaves_alone(self) -> bool:
        """Whether a program that is far from its roof is told nothing at all."""
        return self.at_roof < FAR_FROM_ROOF and not self.findings

    @property
    def is_anywhere(self) -> bool:
        """Whether each problem is named correctly, in any order."""
        return all(one.is_right for one in self.best)


def write(case: Case, folder: Path) -> Path:
    """Writes a case's profile as a log folder; returns its run's folder."""
    run = folder / case.name / "plugins" / "profile" / "2025_07_01_09_00_00"
    run.mkdir(parents=True)
    for host, data in enumerate(spaces(case.scene, case.played)):
        (run / f"host-{host}.xplane.pb").write_bytes(data)
    return run


def overview_of(case: Case, folder: Path) -> Overview:
    """The overview of a case's profile."""
    write(case, folder)
    return Session(open_run(case, folder)).page(OVERVIEW)


def open_run(case: Case, folder: Path) -> Run:
    """The run that `write` wrote."""
    (run,) = open_logdir(folder / case.name).runs
    return run


def answer(case: Case) -> Answer:
    """Asks the program about a case."""
    with tempfile.TemporaryDirectory() as folder:
        page = overview_of(case, Path(folder))
    found, account = page.findings, page.account
    at_roof = 1.0 if account is None else account.fraction("ideal")
    contradicts = account is not None and _contradicts(account.verdict, found)
    says = "" if account is None else account.verdict.statement
    if case.is_healthy:
        alarms = tuple(finding for finding in found if (finding.worth_fraction or 0) > LEAST_ALARM)
        return Answer(case, found, alarms=alarms, at_roof=at_roof, contradicts=contradicts, verdict=says)
    others = [kind for kind in WORTHLESS if kind not in NO_CLAIM or kind in case.kinds]
    claims = [finding for finding in found if finding.worth_fraction or finding.kind in others]
    tops, best = [], []
    for place, planted in enumerate(case.planted):
        verdicts = [verdict(planted, planted.truth, finding) for finding in claims]
        tops.append(verdicts[place] if place < len(claims) else NOTHING)
        best.append(max(verdicts, key=lambda of: (of.is_right, of.cause, of.place, of.worth), default=NOTHING))
    says_when = any(
        re.search(planted.when, "\n".join((finding.title, *finding.evidence)))
        for planted in case.planted
        for finding in claims
        if planted.when and finding.kind in planted.kinds
    )
    return Answer(case, found, tuple(tops), tuple(best), (), says_when, at_roof, contradicts, says)


_ONE_CAUSE = ("input-bound", "host-bound", "compiling", "waiting")
_VERDICTS: Mapping[str, tuple[VerdictKind, ...]] = {
    "input": ("input-bound",),
    "compilation": ("compiling",),
    "host": ("host-bound",),
    "serving": ("host-bound",),
    "slow-core": ("waiting",),
    "straggler": ("waiting",),
    "imbalance": ("waiting",),
    "barrier": ("waiting",),
    "idle": ("host-bound", "idle"),
}


def _contradicts(verdict: program.Verdict, found: Sequence[Finding]) -> bool:
    """Whether verdict and first reason name two causes, or the reasons of the verdict's cause add up to another amount.

    The amounts may differ by a tenth, and by 1 % of a step that no reason has.
    """
    first = next((finding for finding in found if finding.worth_fraction and finding.kind in _VERDICTS), None)
    if first is None or first is not next((finding for finding in found if finding.worth_fraction), None):
        return False
    if verdict.kind not in _VERDICTS[first.kind]:
        return verdict.kind in _ONE_CAUSE and present(first.worth_fraction) >= LEAST_BOUND
    worth = sum(each.worth_fraction or 0.0 for each in found if verdict.kind in _VERDICTS.get(each.kind, ()))
    return not 0.9 * worth <= present(verdict.fraction) <= 1.1 * worth + 0.01


def verdict(case: Case, truth: Truth, finding: Finding) -> Verdict:
    """Compares a finding with the truth."""
    text = "\n".join((finding.title, *finding.evidence, finding.place.tab, finding.place.target or ""))
    said: float | None = finding.worth_ps
    right = truth.step_ps if finding.per == "step" else truth.capture_ps
    if not case.has_plain_steps:  # what a step is may be seen otherwise
        said, right = finding.worth_fraction, truth.fraction
    worth = case.kind in WORTHLESS or (said is not None and abs(said - right) <= TOLERANCE * right)
    placed = (
        not case.place or any(name in text for name in case.place) or not case.op_names.isdisjoint(_WORD.findall(text))
    )
    return Verdict(finding.kind in case.kinds, placed, worth)


@dataclass(frozen=True, slots=True)
class Score:
    """The result of a half: problems that are found correctly, of how many; healthy programs left alone, of how many.

    `anywhere` counts problems that any finding names correctly, whichever comes first; a pair of problems is one.
    `timed` problems are not in all steps, and of so many the program `says_when`; `silent` ones get no claim at all.
    """

    right: int
    anywhere: int
    problems: int
    quiet: int
    healthy: int
    says_when: int
    timed: int
    silent: int

    @property
    def points(self) -> int:
        """Right answers less false alarms, which weigh double."""
        return self.right - FALSE_ALARM_WEIGHS * (self.healthy - self.quiet)


def score(answers: Iterable[Answer], halves: dict[str, Half], half: Half | None = None) -> Score:
    """Adds up a half, or all."""
    chosen = [one for one in answers if half is None or halves[one.case.name] == half]
    problems = [one for one in chosen if not one.case.is_healthy]
    healthy = [one for one in chosen if one.case.is_healthy]
    right, anywhere = sum(a.is_right for a in problems), sum(a.is_anywhere for a in problems)
    timed = [one for one in problems if any(planted.when for planted in one.case.planted)]
    silent = sum(a.is_silent for a in problems)
    quiet, says_when = sum(a.is_right for a in healthy), sum(a.says_when for a in timed)
    return Score(right, anywhere, len(problems), quiet, len(healthy), says_when, len(timed), silent)


def table(answers: Sequence[Answer]) -> str:
    """A line a case: what is true, what the first finding says, and where the right one stands."""
    return "\n".join(_row(one) for one in answers)


def _row(one: Answer) -> str:
    case = one.case
    mark = "ok " if one.is_right else "BAD"
    firsts = one.findings[: max(1, len(case.planted))]
    said = "; ".join(f"{a.kind} {a.worth_fraction or 0:.1%} “{a.title}”" for a in firsts) or "nothing"
    if case.is_healthy:
        said = "; ".join(f"{a.kind} {a.worth_fraction:.1%} “{a.title}”" for a in one.alarms) or f"quiet ({said})"
        return f"{mark} {case.name:32} healthy            {said}"
    why = " ".join(map(_flags, one.tops))
    elsewhere = ", right one further down" if one.is_anywhere and not one.is_right else ""
    true = " + ".join(f"{planted.kind} {planted.truth.fraction:.1%}" for planted in case.planted)
    return f"{mark} {case.name:32} {true:20} {why} {said}{elsewhere}"


def _flags(of: Verdict) -> str:
    right = of.cause, of.place, of.worth
    return "".join(letter if held else "-" for letter, held in zip("cpw", right, strict=True))

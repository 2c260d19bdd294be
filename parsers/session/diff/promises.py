"""Whether the promise of a finding was kept: what it was worth before, what came of it, and what came instead.

A finding promises the time that it costs in a mean step. It is kept where its cause costs less after, and the mean step
takes less by as much as was promised, but for the noise of the mean step or a twentieth of the promise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, ProfileError
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.pages.findings.finding import KIND_OWNERS, KINDS, Finding, FindingKind
from tpuprof.parsers.pages.overview.model import Overview
from tpuprof.parsers.session.diff.groups import owners_together
from tpuprof.parsers.session.diff.model import UNKNOWN_CHANGE, Change, Diff, OwnerChange, change

Outcome = Literal["kept", "partly", "moved", "not kept", "unknown"]
"""`moved`: the cause costs less, but the step takes no less: something came instead."""

NEARLY_ALL = 0.95
"""What of a promise has to come to be called kept, where that is less than the promise without the noise: findings say
what can be won at most."""

_FELL, _ROSE = ("less", "gone"), ("more", "new")


@dataclass(frozen=True, slots=True)
class Cause:
    """All findings of a kind together, in both runs.

    Attributes:
        title: of the one that is worth most, before where it was there.
        cost: what they are worth in a mean step, in picoseconds; None on a side that has none of the kind. Its noise is
            that of `time` where that is known, else that of the mean step.
        time: of the mean step, what those have whose time the kind is about; unknown where it is about a part of it.
        is_estimate: whether a model gives what it is worth, before where it was there.
        is_claim: whether its promise is looked at.
        unknown: why what it costs is not known on a side; empty where it is.
    """

    kind: FindingKind
    title: str
    cost: Change
    time: Change
    is_estimate: bool
    is_claim: bool
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class Verified:
    """What came of promises.

    Attributes:
        diff: the comparison behind it.
        causes: the kinds of findings of either run, the one that was worth most before first.
        outcome: of the claims together.
        promised_ps: what they were worth in a mean step, together; None where nothing is claimed.
        step: the mean step; unknown without steps in both.
        instead: causes that cost more than before, or are new, beyond their noise; owners: those whose time grew by
            more than the noise of the mean step. The largest first.
        why: why the outcome is unknown; empty where it is known.
    """

    diff: Diff
    causes: tuple[Cause, ...]
    outcome: Outcome
    promised_ps: float | None
    step: Change
    instead: tuple[Cause, ...]
    owners: tuple[OwnerChange, ...]
    why: str = ""

    @property
    def claims(self) -> tuple[Cause, ...]:
        """The causes whose promise is looked at."""
        return tuple(cause for cause in self.causes if cause.is_claim)

    @property
    def got_ps(self) -> float | None:
        """How much less a mean step takes; negative where it takes more."""
        return None if self.step.delta is None else -self.step.delta


def verify(diff: Diff, before: Overview, after: Overview, claims: Sequence[str] = ()) -> Verified:
    """Looks at what came of the promises of findings.

    Args:
        diff: of the two runs; before, after: their overviews.
        claims: kinds of findings of the run before; none for those that cost less after, beyond the noise.

    Raises:
        ProfileError: `unknown_finding`, exit code 3: the run before has no such finding, or it promises nothing.
    """
    step = diff.steps.mean if diff.steps is not None else UNKNOWN_CHANGE
    causes = [_cause(kind, before, after, step) for kind in KINDS if _of_kind(before, kind) or _of_kind(after, kind)]
    causes.sort(key=lambda cause: -(cause.cost.before or 0.0))
    promising = [cause for cause in causes if cause.cost.before]
    for claim in claims:
        if claim not in [cause.kind for cause in promising]:
            raise _no_promise(claim, before, promising)
    chosen = {*claims} or {cause.kind for cause in promising if cause.cost.mark in _FELL}
    marked = tuple(replace(cause, is_claim=cause.kind in chosen) for cause in causes)
    claimed = [cause for cause in marked if cause.is_claim]
    promised = sum(cause.cost.before or 0.0 for cause in claimed) if claimed else None
    why = _why_unknown(diff, step, claimed, promised, bool(promising))
    instead = sorted((of for of in marked if of.cost.mark in _ROSE), key=lambda of: -(of.cost.delta or 0.0))
    grown = (of for of in diff.owners if of.mean.mark in _ROSE and (of.mean.delta or 0.0) > (step.noise or 0.0))
    owners = sorted(grown, key=lambda of: -(of.mean.delta or 0.0))
    outcome: Outcome = "unknown" if why else _outcome(step, claimed, promised)
    return Verified(diff, marked, outcome, promised, step, tuple(instead), tuple(owners), why)


def _of_kind(page: Overview, kind: FindingKind) -> list[Finding]:
    """Findings of a kind with a worth a step, and those without any."""
    return [finding for finding in page.findings if finding.kind == kind]


def _cause(kind: FindingKind, before: Overview, after: Overview, step: Change) -> Cause:
    sides = [_of_kind(page, kind) for page in (before, after)]
    shown = max(sides[0] or sides[1], key=lambda finding: finding.worth_ps or 0.0)
    time = owners_together(before.account, after.account, KIND_OWNERS.get(kind, ()))
    noise = step.noise if time.noise is None else time.noise
    known = [[each.worth_ps for each in side if each.worth_ps is not None and each.per == "step"] for side in sides]
    blind = [page.undetectable.get(kind, "") for page in (before, after)]
    why = next((words for words, side in zip(blind, sides, strict=True) if words and not side), "")
    if not why and any(side and not worth for side, worth in zip(sides, known, strict=True)):
        why = "how much of it a step can save is unknown"
    worth = [sum(values) if values else None for values in known]
    return Cause(kind, shown.title, _cost(worth[0], worth[1], noise, bool(why)), time, shown.is_estimate, False, why)


def _cost(before: float | None, after: float | None, noise: float | None, is_unknown: bool) -> Change:
    """The change of a cost; where one run has no such finding, the other's is compared with nothing."""
    if is_unknown or (before is None and after is None):
        return Change(before, after, None, "unknown")
    compared = change(before or 0.0, after or 0.0, noise)
    if before is not None and after is not None:
        return compared
    gone: Literal["gone", "new"] = "gone" if after is None else "new"
    return Change(before, after, noise, gone if compared.mark in ("less", "more") else compared.mark)


def _why_unknown(diff: Diff, step: Change, claimed: Sequence[Cause], promised: float | None, has_promises: bool) -> str:
    """Why nothing can be said; empty where something can."""
    if diff.different:
        return diff.different
    if diff.steps is None:
        return diff.unknown.get("steps", "the profiles have no steps")
    if step.noise is None:
        return "a run with one step says nothing about the noise"
    if not has_promises:
        return "no finding of the earlier run promises anything"
    for cause in claimed:
        if cause.unknown:
            return f"{cause.kind}: {cause.unknown}"
    if promised is not None and promised <= step.noise and step.mark == "same":
        return "the promise is smaller than the noise of the step: more steps would decide"
    return ""


def _outcome(step: Change, claimed: Sequence[Cause], promised: float | None) -> Outcome:
    if promised is None or not any(cause.cost.mark in _FELL for cause in claimed):
        return "not kept"
    if step.mark != "less":
        return "moved"
    wanted = min(promised - (step.noise or 0.0), NEARLY_ALL * promised)
    return "kept" if -(step.delta or 0.0) >= wanted else "partly"


def _no_promise(claim: str, before: Overview, promising: Sequence[Cause]) -> ProfileError:
    """Why a finding can't be verified."""
    kinds = ", ".join(cause.kind for cause in promising)
    hint = f"one of: {kinds}" if kinds else "tpuprof-tui report findings lists what was found"
    there = any(finding.kind == claim for finding in before.findings)
    why = "promises nothing: how much it can save is unknown" if there else "is not in the earlier run"
    return ProfileError("unknown_finding", f"The finding {claim} {why}.", hint, EXIT_NOT_FOUND)

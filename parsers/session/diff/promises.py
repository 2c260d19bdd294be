"""Whether the promise of a finding was kept: what it was worth before, what came of it, and what came instead.

A finding promises the time that it costs in a mean step. It is kept where its cause costs less after, and the mean step
takes less by as much as was promised, but for the noise of the mean step or a twentieth of the promise.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, ProfileError
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.text import nearest
from tpuprof.parsers.pages.findings.finding import Finding, names_of
from tpuprof.parsers.pages.findings.subject import Subject
from tpuprof.parsers.pages.findings.why_slow import KINDS
from tpuprof.parsers.pages.overview.model import Overview
from tpuprof.parsers.session.diff.groups import owners_together
from tpuprof.parsers.session.diff.model import UNKNOWN_CHANGE, Change, Diff, OwnerChange, change

Outcome = Literal["kept", "partly", "moved", "not kept", "unknown"]
"""`moved`: the cause costs less, but the step takes no less: something came instead."""

NEARLY_ALL = 0.95
"""What of a promise has to come to be called kept, where that is less than the promise without the noise: findings say
what can be won at most."""

Pair = tuple[Finding | None, Finding | None]
"""A finding before and after; None on the side that has none of the subject."""

_NAMED_CORES = re.compile(r"(?<!\S)[^\s:]+:\d+(?![^\s,.])")
_NUMBER = re.compile(r"[.:]\d+\Z")
_FELL, _ROSE = ("less", "gone"), ("more", "new")


@dataclass(frozen=True, slots=True)
class Cause:
    """A finding in both runs: of one kind, and about the same ops, lines or cores.

    Attributes:
        name: what the run before calls it (`names_of`); of what only the run after has, the next number of its kind.
        title: before where it was there.
        cost: what it is worth in a mean step, in picoseconds; None on a side that has no such finding. Its noise is
            that of `time` where that is known, else that of the mean step.
        time: of the mean step, what those have whose time the kind is about; unknown where it is about a part of it.
        is_estimate: whether a model gives what it is worth, before where it was there.
        is_claim: whether its promise is looked at.
        unknown: why what it costs is not known on a side; empty where it is.
    """

    kind: str
    name: str
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
        causes: the findings of either run, the one that was worth most before first.
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
        return tuple(cause for cause in self.causes if cause.is_claim)

    @property
    def got_ps(self) -> float | None:
        """How much less a mean step takes; negative where it takes more."""
        return None if self.step.delta is None else -self.step.delta


def verify(diff: Diff, before: Overview, after: Overview, claims: Sequence[str] = ()) -> Verified:
    """Looks at what came of the promises of findings.

    Args:
        diff: of the two runs; before, after: their overviews.
        claims: names of causes of the run before, or kinds, for all of a kind; none for those that cost less after,
            beyond the noise.

    Raises:
        ProfileError: `unknown_finding`, exit code 3: the run before has no such finding, or it promises nothing.
    """
    step = diff.steps.mean if diff.steps is not None else UNKNOWN_CHANGE
    names = {id(found): name for found, name in zip(before.findings, names_of(before.findings), strict=True)}
    causes = [cause for kind in KINDS for cause in _causes(kind, diff, before, after, names)]
    causes.sort(key=lambda cause: -(cause.cost.before or 0.0))
    promising = [cause for cause in causes if cause.cost.before]
    for claim in claims:
        if not any(claim in (cause.kind, cause.name) for cause in promising):
            raise _no_promise(claim, before, promising)
    chosen = {*claims} or {cause.name for cause in promising if cause.cost.mark in _FELL}
    marked = tuple(replace(cause, is_claim=not chosen.isdisjoint({cause.kind, cause.name})) for cause in causes)
    claimed = [cause for cause in marked if cause.is_claim]
    promised = sum(cause.cost.before or 0.0 for cause in claimed) if claimed else None
    why = _why_unknown(diff, step, claimed, promised, bool(promising))
    instead = sorted((of for of in marked if of.cost.mark in _ROSE), key=lambda of: -(of.cost.delta or 0.0))
    grown = (of for of in diff.owners if of.mean.mark in _ROSE and (of.mean.delta or 0.0) > (step.noise or 0.0))
    owners = sorted(grown, key=lambda of: -(of.mean.delta or 0.0))
    outcome: Outcome = "unknown" if why else _outcome(step, claimed, promised)
    return Verified(diff, marked, outcome, promised, step, tuple(instead), tuple(owners), why)


def _of_kind(page: Overview, kind: str) -> list[Finding]:
    """Findings of a kind, the one that is worth most first."""
    return sorted((found for found in page.findings if found.kind == kind), key=lambda found: -(found.worth_ps or 0.0))


def _causes(kind: str, diff: Diff, before: Overview, after: Overview, names: Mapping[int, str]) -> list[Cause]:
    """The findings of a kind in both runs, those about the same together.

    Args:
        names: of the findings before, by `id`; those that only the run after has are counted on from them.
    """
    step = diff.steps.mean if diff.steps is not None else UNKNOWN_CHANGE
    pairs = paired(_of_kind(before, kind), _of_kind(after, kind), _now_called(diff))
    time = owners_together(before.account, after.account, KINDS[kind].owners)
    if diff.launches is not None:  # how much the step differs from launch to launch goes for its parts
        time = change(time.before, time.after, step.noise)
    blind = [page.undetectable.get(kind, "") for page in (before, after)]
    counted = (kind if len(pairs) == 1 else f"{kind}-{number}" for number in range(1, len(pairs) + 1))
    called = [name if pair[0] is None else names[id(pair[0])] for name, pair in zip(counted, pairs, strict=True)]
    return [_cause(name, pair, time, step, blind) for name, pair in zip(called, pairs, strict=True)]


def _cause(name: str, pair: Pair, time: Change, step: Change, blind: Sequence[str]) -> Cause:
    """A cause.

    Args:
        time: of the owners that its kind is about.
        blind: why each run can't show the kind; empty where it can.
    """
    shown = next(finding for finding in pair if finding is not None)
    why = next((words for words, finding in zip(blind, pair, strict=True) if words and finding is None), "")
    worth = [found.worth_ps if found is not None and found.per == "step" else None for found in pair]
    if not why and any(finding is not None and ps is None for finding, ps in zip(pair, worth, strict=True)):
        why = "how much of it a step can save is unknown"
    cost = _cost(worth[0], worth[1], step.noise if time.noise is None else _noise(time, worth), bool(why))
    return Cause(shown.kind, name, shown.title, cost, time, shown.is_estimate, False, why)


def _noise(time: Change, worth: Sequence[float | None]) -> float:
    """The noise of a cost: that of the time that it is about, and more where all cores wait for that of one."""
    times = (time.before or 0.0, time.after or 0.0)
    larger = max((cost or 0.0) / of if of > 0 else 0.0 for cost, of in zip(worth, times, strict=True))
    return (time.noise or 0.0) * max(1.0, larger)


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
            return f"{cause.name}: {cause.unknown}"
    if promised is not None and promised <= step.noise and step.mark == "same":
        return "the promise is smaller than the noise of the step: more steps would decide"
    return ""


def _outcome(step: Change, claimed: Sequence[Cause], promised: float | None) -> Outcome:
    if promised is None or not any(_fell(cause.cost) for cause in claimed):
        return "not kept"
    if step.mark != "less":
        return "moved"
    wanted, got = min(promised - (step.noise or 0.0), NEARLY_ALL * promised), -(step.delta or 0.0)
    return "kept" if got >= wanted else "partly" if got >= (1 - NEARLY_ALL) * promised else "not kept"


def _fell(cost: Change) -> bool:
    """Whether a cause costs less, by a share of it that is worth the word."""
    return cost.mark in _FELL and -(cost.delta or 0.0) >= (1 - NEARLY_ALL) * (cost.before or 0.0)


def _no_promise(claim: str, before: Overview, promising: Sequence[Cause]) -> ProfileError:
    """Why a finding can't be verified."""
    names = [cause.name for cause in promising]
    near = nearest(claim, names) or names
    hint = f"one of: {', '.join(near)}" if near else "tpuprof-tui report findings lists what was found"
    there = claim in names_of(before.findings) or any(finding.kind == claim for finding in before.findings)
    why = "promises nothing: how much it can save is unknown" if there else "is not in the earlier run"
    return ProfileError("unknown_finding", f"The finding {claim} {why}.", hint, EXIT_NOT_FOUND)


# --- which findings of two runs are the same


def _now_called(diff: Diff) -> dict[str, str]:
    """What each op of the run before is called after: a compiler numbers ops anew. Empty for one that is gone."""
    old = [op for op in diff.ops if op.rows[0] is not None]
    return {op.old_name or op.name: "" if op.matched_by == "none" else op.name for op in old}


def paired(before: Sequence[Finding], after: Sequence[Finding], now_called: Mapping[str, str]) -> list[Pair]:
    """Puts findings of one kind in pairs by what they are about; a finding without a match stands alone.

    Args:
        before, after: of one kind, the one that is worth most first.
        now_called: what ops before are called after; those that it does not have keep their names.
    """
    alike = [
        (_likeness(old, new, now_called), -abs(row - column), row, column)
        for row, old in enumerate(before)
        for column, new in enumerate(after)
    ]
    rows, columns = dict[int, int](), set[int]()
    for likeness, _, row, column in sorted(alike, reverse=True):
        if likeness and row not in rows and column not in columns:
            rows[row] = column
            columns.add(column)
    pairs: list[Pair] = [(old, after[rows[row]] if row in rows else None) for row, old in enumerate(before)]
    return [*pairs, *((None, new) for column, new in enumerate(after) if column not in columns)]


def _likeness(old: Finding, new: Finding, now_called: Mapping[str, str]) -> int:
    """How much two findings of a kind are about the same; 0 where they are about something else.

    Ops are the same by what they compute or by source line; after a change of the code also by their names without
    numbers in the same file. Findings without ops differ where their titles name other cores.
    """
    mine, other = old.subject, new.subject
    if mine.ops and other.ops:
        names = {now_called.get(op.name, op.name) for op in mine.ops} & {op.name for op in other.ops}
        return 4 * len(names) + 2 * len(_lines(mine) & _lines(other)) + len(_families(mine) & _families(other))
    cores = [set(_NAMED_CORES.findall(finding.title)) for finding in (old, new)]
    return 0 if all(cores) and not cores[0] & cores[1] else 1


def _lines(subject: Subject) -> set[str]:
    return {op.source for op in subject.ops if op.source}


def _families(subject: Subject) -> set[tuple[str, str]]:
    """Names without their numbers, and the files that they are from."""
    return {(_NUMBER.sub("", op.name), _NUMBER.sub("", op.source)) for op in subject.ops if op.source}

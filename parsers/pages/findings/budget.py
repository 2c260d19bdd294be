"""The time that findings divide among themselves: that of a mean step, or of the whole capture without steps.

It is that of the account (`parsers.steps.step_account`): time by core, step and owner, of which each finding claims
a part (`claims`). Times are means over cores and steps. Time by op is that in steps, where the profile has any.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeVar

import numpy as np

from tpuprof.parsers.base.errors import behind_wall, could_not
from tpuprof.parsers.base.intervals import Floats, is_among
from tpuprof.parsers.base.op_class import OP_CLASSES, OpClass
from tpuprof.parsers.base.record import Sized, dataclass, field, replace
from tpuprof.parsers.base.words import path_end, sentence_name, share, time
from tpuprof.parsers.pages.findings import claims as account_claims
from tpuprof.parsers.pages.findings.figures import with_figures
from tpuprof.parsers.pages.findings.finding import Evidence, Finding, JumpTarget, Kind, OwnerClaim, with_own_figures
from tpuprof.parsers.pages.findings.subject import LEAST_LARGE, Subject, SubjectOps, subject_of, unnamed
from tpuprof.parsers.steps.accounts.owners import OWNERS, OpOwners, Owner, op_owners, owner_index
from tpuprof.parsers.steps.aligned import AlignedSteps
from tpuprof.parsers.steps.step_account import Account

_Read = TypeVar("_Read")

IDLE_OWNERS: tuple[Owner, ...] = ("host", "dispatch", "between_ops")
"""Who has the time in which no op runs, where a core waits neither for input or the compiler nor for other cores."""


@dataclass(frozen=True, slots=True)
class Steps(Sized):
    """The complete steps that the time is of: the account has their time, the grid what else is known of them."""

    account: Account
    grid: AlignedSteps

    @property
    def core_count(self) -> int:
        """How many cores share the steps."""
        return len(self.account.owner_ps)

    @property
    def names(self) -> tuple[str, ...]:
        return self.account.names

    @property
    def longest_ps(self) -> Floats:
        """float64[steps]: duration on the slowest core."""
        return self.account.step_ps.astype(np.float64)

    def of(self, *owners: Owner) -> Floats:
        """float64[cores, steps]: the time of some owners."""
        return self.account.of(*owners).astype(np.float64)

    def core(self, index: int) -> str:
        return self.account.core_names[index] if index < len(self.account.core_names) else str(index)


@dataclass(frozen=True, slots=True)
class Budget:
    """The time that findings divide.

    Attributes:
        evidence: what is known of the program.
        whole_ps: what shares are of: the mean step time (slowest core of each step), with the time up to the next step
            where steps lie apart, or a core's mean time in the capture. Above 0.
        between_ps: the mean time between a step and the next where steps lie apart, else 0; it is part of `whole_ps`.
        whole_cells: float64[cores, steps, len(OWNERS)], the account; its mean is `whole_ps`. A step's cells have the
            time up to the next step too where steps lie apart. Of a capture without steps, one core and one step.
        cells: the part of them that no finding claims yet.
        steps: the single steps; None where the time is of the capture.
        op_time_ps: float64[ops], self time of the table's ops, as a mean over cores, and steps where there are any.
        rows: rows of the op table by class, most of that time first; with steps only ops that ran in them; without
            those that a finding claims.
        owners: whose the time of each op is.
    """

    evidence: Evidence
    whole_ps: float
    between_ps: float
    whole_cells: Floats
    cells: Floats
    steps: Steps | None
    op_time_ps: Floats
    rows: Mapping[OpClass, account_claims.Rows]
    owners: OpOwners
    _whole: Budget | None = field(default=None, repr=False, compare=False)
    _known: dict[Callable[[Budget], Any], Any] = field(default_factory=dict, repr=False, compare=False)

    def needs(self, worth_ps: float, least: float) -> None:
        """Ends a detector (`NothingFound`) whose time is less than that fraction of the whole."""
        if worth_ps < least * self.whole_ps:
            raise NothingFound

    def once(self, read: Callable[[Budget], _Read]) -> _Read:
        """What a function reads of the whole time and its programs; it reads once, whoever asks and how often."""
        if read not in self._known:
            self._known[read] = read(self._whole or self)
        known: _Read = self._known[read]
        return known

    @property
    def per(self) -> Literal["step", "capture"]:
        """What the time is of."""
        return "capture" if self.steps is None else "step"

    # --- what there is -------------------------------------------------------------------------------------------

    def op_ps(self, rows: account_claims.Rows) -> Floats:
        """float64[rows]: time of some ops in the budget."""
        return self.op_time_ps[rows]

    def ops(self, *classes: OpClass) -> tuple[account_claims.Rows, Floats]:
        """The rows of some classes, one class behind the other, and float64[rows], their time in the budget."""
        rows = np.concatenate([self.rows[name] for name in classes])
        return rows, self.op_ps(rows)

    @property
    def computing_ps(self) -> float:
        """The time of ops that compute: what transfers could hide behind."""
        whole = account_claims.mean_of(self.whole_cells)
        return float(sum(whole[owner_index(owner)] for owner in ("loss", "ideal", "uncounted")))

    def left(self, *owners: Owner) -> float:
        """The time of some owners that no finding claims yet, as a mean over cores and steps."""
        return float(account_claims.mean_of(self.cells)[[owner_index(owner) for owner in owners]].sum())

    def claimed(self, *owners: Owner) -> float:
        """The time of some owners that findings claim already."""
        whole = account_claims.mean_of(self.whole_cells)[[owner_index(owner) for owner in owners]].sum()
        return max(0.0, float(whole) - self.left(*owners))

    # --- claims --------------------------------------------------------------------------------------------------

    def take(self, owners: Sequence[Owner], wanted_ps: Floats) -> account_claims.Claim:
        """Claims what is wanted of some owners on each core in each step; see `claims.taken`."""
        return account_claims.Claim.of_cells(account_claims.taken(self.cells, owners, wanted_ps))

    def take_all(self, *owners: Owner) -> account_claims.Claim:
        """Claims all that some owners have left."""
        return account_claims.Claim.of_cells(account_claims.everything(self.cells, owners))

    def take_mean(self, owners: Sequence[Owner], mean_ps: float) -> account_claims.Claim:
        """Claims an amount of some owners' time wherever it is; see `claims.spread_evenly`."""
        return account_claims.Claim.of_cells(account_claims.spread_evenly(self.cells, owners, mean_ps))

    def take_ops(self, rows: account_claims.Rows, saved_ps: Floats, goes_away: bool = False) -> account_claims.Claim:
        """Claims a part of some ops' time; nothing of those that a finding is about already.

        Args:
            saved_ps: float64[rows], the part of each.
            goes_away: whether work or bytes of these ops can go away, so that time at their roof can as well.
        """
        free = is_among(rows, np.concatenate(list(self.rows.values())))
        times, saved_ps = self.op_ps(rows), np.where(free, saved_ps, 0.0)
        ideal_ps = times * self.owners.ideal[rows]
        return account_claims.of_ops(self.cells, rows, self.owners.owner[rows], ideal_ps, times, saved_ps, goes_away)

    def after(self, *claims: account_claims.Claim) -> Budget:
        rows = np.concatenate([each.rows for each in claims])
        kept = {name: of[~is_among(of, rows)] for name, of in self.rows.items()} if len(rows) else self.rows
        return replace(self, cells=account_claims.after(self.cells, *claims), rows=kept, _whole=self._whole or self)

    # --- words ---------------------------------------------------------------------------------------------------

    def amount(self, ps: float) -> str:
        """A time with its share: ``3.10 ms a step (12.3%)``."""
        words = f"{time(ps)}{' a step' if self.steps is not None else ''} ({share(ps / self.whole_ps)})"
        return with_figures(words, (ps / 1e9, "ms"), (ps / self.whole_ps, "fraction"))

    def described(self, row: int) -> str:
        """An op for a sentence: its name, and where it comes from as far as known (framework op, source line)."""
        table = self.evidence.table
        source = table.texts("source", np.array([row]))[0]
        origin = [path_end(part) for part in (table.framework_op[row].rstrip(":"), source) if part]
        return sentence_name(table.name[row]) + (f" ({', '.join(origin)})" if origin else "")

    def largest(self, row: int, ps: float, which: str = "The largest") -> str:
        """A sentence on the op that a finding is about most."""
        return f"{which} is {self.described(row)}, {self.amount(ps)}."

    def finding(
        self,
        kind: Kind,
        claim: account_claims.Claim,
        title: str,
        basis: str,
        evidence: Sequence[str],
        place: JumpTarget,
        is_estimate: bool = False,
        advice: str = "",
    ) -> Claimed:
        """A finding, without the empty sentences of its evidence, and its claim; None for one that is worth nothing."""
        if not claim.worth_ps > 0:
            return None, claim
        worth = min(claim.worth_ps, self.whole_ps)
        finding = Finding(
            kind.name,
            title,
            worth,
            self.per,
            worth / self.whole_ps,
            self.whole_ps - worth,
            is_estimate,
            basis if kind.on_hardware else f"{basis} {_NEVER_SEEN}",
            tuple(filter(None, evidence)),
            advice or kind.advice,
            place,
        )
        return finding, claim

    def of_unknown_worth(
        self, kind: Kind, title: str, basis: str, evidence: Sequence[str], place: JumpTarget, rows: account_claims.Rows
    ) -> Claimed:
        """A finding about some ops of which nobody knows what they cost; it claims nothing."""
        return kind.of_unknown_worth(
            title, self.per, basis, evidence, place, self.subject(rows)
        ), account_claims.NO_CLAIM

    def with_claim(self, finding: Finding, claim: account_claims.Claim, can_overlap: bool = False) -> Finding:
        """A finding with what it claims, and with words on what of that is hard to win.

        Time at the roof goes only with work or bytes. What could run beside the computation can hide behind that for no
        longer than it takes.

        Args:
            can_overlap: whether it is about what could run beside the computation.
        """
        claims = tuple(
            OwnerClaim(owner, ps) for owner, ps in zip(OWNERS, claim.owner_ps.tolist(), strict=True) if ps > 0
        )
        at_roof, basis, advice = claim.of("ideal"), finding.basis, finding.advice
        if at_roof >= _NAMED * claim.worth_ps:
            basis += f" {time(at_roof)} of the saving is time at the roof: it needs less work or fewer bytes."
        if can_overlap and claim.worth_ps > self.computing_ps:
            advice += f" Compute takes {time(self.computing_ps)}, the most that overlap can hide."
        subject, table = self.subject(claim.rows, claim.op_ps, claim.cells.sum(axis=2)), self.evidence.table
        words, least = (finding.title, *finding.evidence), LEAST_LARGE * self.whole_ps
        places = unnamed(table, claim.rows, self.op_ps(claim.rows), least, words)
        more = tuple(f"{place} takes {self.amount(ps)}." for place, ps in places.items())
        evidence = (*finding.evidence, *more)
        return replace(finding, claims=claims, basis=basis, evidence=evidence, advice=advice, subject=subject)

    def subject(
        self, rows: account_claims.Rows, claimed_ps: Floats | None = None, cells: Floats | None = None
    ) -> Subject:
        """What a finding is about as data: some ops, and the time that it claims; see `subject_of`."""
        claimed = np.zeros(len(rows)) if claimed_ps is None else claimed_ps
        ops = SubjectOps(self.evidence.table, self.evidence.rates, rows, self.op_ps(rows), claimed)
        steps = self.steps
        return subject_of(ops, cells, *(((), None) if steps is None else (steps.account.core_names, steps.grid)))


_NAMED = 0.01
"""Time at the roof is named in a finding's basis from this share of its worth on."""

_NEVER_SEEN = "Untested on hardware: such ops are recognised as XProf's source does."

Claimed = tuple[Finding | None, account_claims.Claim]
"""A finding, and the time that it claims."""

NOTHING: Claimed = (None, account_claims.NO_CLAIM)


class NothingFound(Exception):
    """A detector has found nothing of weight, and answers `NOTHING`."""


@dataclass(frozen=True, slots=True)
class Detector:
    """Looks for findings of some kinds in the time that is left."""

    kinds: tuple[Kind, ...]
    detect: Callable[[Budget], Claimed | list[Claimed]]

    def claims(self, left: Budget, failed: list[str]) -> list[Claimed]:
        """What it finds; where it fails, nothing but a sentence, which `failed` gets."""
        return behind_wall(self.kinds[0].search, partial(self._detected, left), failed) or []

    def look(self, left: Budget, failed: list[str]) -> tuple[list[Finding], Budget]:
        """The same as findings for people, and the time that they leave; each one claims what those before it leave."""
        return behind_wall(self.kinds[0].search, partial(self._findings, left), failed) or ([], left)

    def has_failed(self, failed: Sequence[str]) -> bool:
        """Whether one of the sentences in `failed` is about this detector."""
        return any(each.startswith(could_not(self.kinds[0].search, "")) for each in failed)

    def _detected(self, left: Budget) -> list[Claimed]:
        try:
            found = self.detect(left)
        except NothingFound:
            found = NOTHING
        return found if isinstance(found, list) else [found]

    def _findings(self, left: Budget) -> tuple[list[Finding], Budget]:
        kinds = {kind.name: kind for kind in self.kinds}
        out = []
        for finding, claim in self._detected(left):
            if finding is not None:
                is_claim = claim is not account_claims.NO_CLAIM
                whole = left.with_claim(finding, claim, kinds[finding.kind].can_overlap) if is_claim else finding
                out.append(with_own_figures(whole.told_of(left.evidence.units)))
                left = left.after(claim)
        return out, left


def detects(*kinds: Kind) -> Callable[[Callable[[Budget], Claimed | list[Claimed]]], Detector]:
    """Makes a detector of a function that looks for findings of some kinds."""
    return partial(Detector, kinds)


def budget(evidence: Evidence, account: Account | None) -> Budget | None:
    """The time to divide; None where there is none.

    Args:
        account: of the evidence's steps; None without any.
    """
    table, grid = evidence.table, evidence.grid
    owners = op_owners(table, evidence.peaks, lambda: evidence.modules)
    self_ps = np.maximum(table.self_ps.astype(np.float64), 0.0)
    steps = Steps(account, grid) if account is not None and grid is not None else None
    if steps is not None and steps.account.mean_whole_ps > 0:
        cells = steps.account.owner_ps.astype(np.float64)
        if steps.account.steps_lie_apart:
            cells += between_cells(steps.account)
        whole = steps.account.mean_whole_ps
        between = whole - steps.account.mean_step_ps
        in_steps = np.maximum(table.in_steps_ps.astype(np.float64), 0.0)
        ran = table.occurrences >= len(steps) / 2  # what ran before the steps only is not part of them
        self_ps = in_steps if in_steps.any() else np.where(ran, self_ps, 0.0)
        most = steps.account.mean_ps  # the capture is more than the steps, so ops get at most their owner's time
        are_of_more = (steps.grid.dropped or steps.grid.lost or steps.grid.incomplete) and in_steps.any()
        # the most of an op's time that counts; of more steps than these, each has its share of its owner's time here
        most_of_self = np.inf if are_of_more else 1 / (steps.core_count * len(steps))
    elif evidence.core_count > 0 and evidence.total_ps > 0:
        steps, between, most_of_self = None, 0.0, 1 / evidence.core_count
        whole = float(evidence.total_ps) / evidence.core_count
        cells, most = _of_capture(owners, self_ps / evidence.core_count, whole), np.full(len(OWNERS), np.inf)
    else:
        return None
    op_time_ps = np.zeros(len(table))
    for owner in OWNERS:
        mine = owners.are(owner)
        together = float(self_ps[mine].sum())
        limit = float(most[[owner_index(each) for each in account_claims.OF_OPS.get(owner, (owner,))]].sum())
        factor = limit / together if together > 0 else 0.0
        op_time_ps[mine] = self_ps[mine] * min(most_of_self, factor)
    order = np.argsort(-self_ps, kind="stable")
    order = order[self_ps[order] > 0]
    classes = np.array([OP_CLASSES.index(name) for name in table.classes()], np.int64)
    rows = {name: order[classes[order] == index] for index, name in enumerate(OP_CLASSES)}
    return Budget(evidence, whole, between, cells, cells, steps, op_time_ps, rows, owners)


def between_cells(account: Account) -> Floats:
    """float64[cores, steps, len(OWNERS)]: the time from each step to the next, as a part of the mean step.

    There is one such time fewer than steps: each is scaled up so that their mean over steps is their own mean.
    """
    return account.between_ps.astype(np.float64) * (len(account) / max(len(account) - 1, 1))


def _of_capture(owners: OpOwners, op_ps: Floats, whole: float) -> Floats:
    """float64[1, 1, len(OWNERS)]: the account of a capture without steps.

    Ops are their owners'; the rest is between ops, whatever else is known of it.
    """
    ideal: Floats = np.bincount(owners.owner, op_ps * owners.ideal, len(OWNERS)).astype(np.float64)
    out: Floats = np.bincount(owners.owner, op_ps, len(OWNERS)).astype(np.float64) - ideal
    out[owner_index("ideal")] += ideal.sum()
    out *= min(1.0, whole / max(float(out.sum()), 1.0))  # ops of a damaged profile may take longer than there is time
    out[owner_index("between_ops")] += max(0.0, whole - float(out.sum()))
    return out[None, None]

"""What no pattern explains: the places that take most of what is left of a step, each by its name, and the rest.

Nothing but its size decides whether a share is told: from `LEAST_NAMED` of the time on a place has a name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tpuprof.parsers.base.intervals import Floats, grouped, is_among
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.base.words import sentence_name, share, time
from tpuprof.parsers.ops.roofline import uncounted
from tpuprof.parsers.pages.findings.budget import NOTHING, Budget, Claimed, detects
from tpuprof.parsers.pages.findings.claims import Rows
from tpuprof.parsers.pages.findings.finding import PEAKS, JumpTarget, Kind
from tpuprof.parsers.pages.findings.ops.groups import HBM, SHORT_PS, USUAL, capped
from tpuprof.parsers.pages.findings.subject import LEAST_LARGE, in_a_line, is_kernel_call, lines, what_it_does
from tpuprof.parsers.steps.accounts.owners import OWNER_TITLES, OWNERS, Owner, owner_index

LEAST_NAMED = 0.03
"""A place that loses this share of the time has a name, unless it is `NEAR` its roof."""

NEAR = 0.5
"""What reaches this share of its roof is no reason by itself: good kernels for attention reach no more."""

LEAST_REST = 0.05
"""What is lost in smaller places is named from this share on; less is what any program loses here and there."""

_MOST_NAMED = 3
_OWNERS: tuple[Owner, ...] = ("loss", "uncounted", "copy", "host_transfer")

UNEXPLAINED = Kind(
    "unexplained",
    "time that no pattern explains",
    advice="No known pattern fits these ops: start at their source lines, with what they read and write.",
    rank=33,
    needs=(PEAKS,),
)


@dataclass(frozen=True, slots=True)
class Place:
    """Ops that come from one place.

    Attributes:
        name: what they do, and where.
        rows: of the op table, the one that takes longest first; ps: their time in the budget.
        reached: the share of their roof that they reach; None where one of them has none.
        lost_ps: float64[rows], what each takes above `USUAL` of its roof; all that it takes where it has none.
    """

    name: str
    rows: Rows
    ps: float
    reached: float | None
    lost_ps: Floats

    @property
    def first(self) -> int:
        return int(self.rows[0])

    @property
    def is_far(self) -> bool:
        """Whether it may be a reason."""
        return self.reached is None or self.reached < NEAR

    @property
    def all_lost_ps(self) -> float:
        return float(self.lost_ps.sum())


@detects(UNEXPLAINED)
def unexplained(budget: Budget) -> list[Claimed]:
    """Where ops take time that no finding is about: by place, the largest first.

    Nothing reaches its peak, so that an op at `USUAL` of its roof loses nothing here.

    Args:
        budget: without the ops that other findings are about.
    """
    if budget.evidence.peaks.hbm is None:
        return [NOTHING]
    left, places, table = _Left.of(budget), list[Place](), budget.evidence.table
    for names_of in (in_a_line, lines):  # what is small in one sense may be large in the next
        found = left.places(names_of(table, left.rows))
        places += [place for place in found if left.has_name(place)]
        left = left.only([place for place in found if not left.has_name(place)])
    claimed = list[Claimed]()
    for place in sorted(places, key=lambda place: -place.ps):
        claimed.append(_of_place(budget, place))
        budget = budget.after(claimed[-1][1])
    return [*claimed, _of_rest(budget, left.places([table.category[row] or "" for row in left.rows.tolist()]))]


@dataclass(frozen=True, slots=True)
class _Left:
    """Ops that no place with a name has yet: their rows, time, share of the roof (NaN: none), and time above it."""

    budget: Budget
    rows: Rows
    times: Floats
    reached: Floats
    lost: Floats

    @classmethod
    def of(cls, budget: Budget) -> _Left:
        """Those that no finding is about. Kernels of unknown work are a reason of their own, if all together."""
        table, rates = budget.evidence.table, budget.evidence.rates
        rows = np.concatenate([budget.rows[name] for name in ("compute", "vector", "copy", "host", "unknown")])
        mine = is_among(budget.owners.owner[rows], np.array([owner_index(owner) for owner in _OWNERS]))
        rows = rows[mine & ~uncounted(table)[rows]]
        times, moves = budget.op_ps(rows), capped(rates.bandwidth_utilization[rows, HBM])
        # the FLOPs of what is no kernel are few where nobody counted them
        by_bytes = (moves > 0) & ~np.array([is_kernel_call(table, row) for row in rows.tolist()], np.bool_)
        is_loss = budget.owners.are("loss")[rows]
        reached = np.where(is_loss, budget.owners.ideal[rows], np.where(by_bytes, moves, np.nan))
        is_short = table.self_ps[rows] < SHORT_PS * table.occurrences[rows]
        reached[is_short & (reached < NEAR)] = np.nan
        lost = times * np.maximum(1.0 - np.nan_to_num(reached) / USUAL, 0.0)
        may = np.flatnonzero(~is_loss | (reached < NEAR) | np.isnan(reached))  # what is near its roof is no reason
        return cls(budget, rows[may], times[may], reached[may], lost[may])

    def only(self, places: Sequence[Place]) -> _Left:
        """What some places are made of."""
        at = np.flatnonzero(np.isin(self.rows, np.concatenate([np.zeros(0, np.intp), *(each.rows for each in places)])))
        return _Left(self.budget, self.rows[at], self.times[at], self.reached[at], self.lost[at])

    def has_name(self, place: Place) -> bool:
        """Whether a place is told by its name."""
        computes = self.budget.owners.are("loss")[place.first]
        is_large = not computes and place.ps >= LEAST_LARGE * self.budget.whole_ps
        return is_large or (place.is_far and place.all_lost_ps >= LEAST_NAMED * self.budget.whole_ps)

    def places(self, names: Sequence[str]) -> list[Place]:
        """These ops by owner and name; those near their roof, and those without one, by themselves."""
        owners = self.budget.owners.owner[self.rows].tolist()
        near, unknown = (self.reached >= NEAR).tolist(), np.isnan(self.reached).tolist()
        order = np.argsort(-self.times, kind="stable").tolist()
        members = grouped(((owners[at], near[at], unknown[at], names[at]), at) for at in order)
        return [self._place(key[-1], np.array(of, np.intp)) for key, of in members.items()]

    def _place(self, name: str, at: Rows) -> Place:
        ps = float(self.times[at].sum())
        reached = float((self.times[at] * self.reached[at]).sum()) / ps if ps else np.nan
        return Place(name, self.rows[at], ps, None if np.isnan(reached) else reached, self.lost[at])


def _of_place(budget: Budget, place: Place) -> Claimed:
    table, count = budget.evidence.table, len(place.rows)
    name, target = place.name or what_it_does(table, place.first), JumpTarget("op-profile", table.name[place.first])
    whole = "the capture" if budget.steps is None else "a step"
    title = f"{name}: {share(min(1.0, place.ps / budget.whole_ps))} of {whole}"
    runs = int(table.occurrences[place.rows].sum())
    mean = float(table.self_ps[place.rows].sum()) / max(runs, 1)
    if place.reached is not None:
        title += f", at {share(place.reached)} of {budget.evidence.rates.peak_name(place.first)}"
        basis = "The saving is unknown: these ops only move data, and that as fast as memory can."
    elif mean < SHORT_PS:
        title += f", in ops of {time(mean)}"
        basis = "The saving is unknown: an op takes a microsecond or two, however little it does."
    else:
        basis = "The saving is unknown: the profile does not count all their work."
    evidence = (
        f"{counted(count, 'op')} {'takes' if count == 1 else 'take'} {budget.amount(place.ps)}, mean over cores; "
        f"{'its' if count == 1 else 'their'} {counted(runs, 'run')} "
        f"{'takes' if runs == 1 else 'average'} {time(mean)}.",
        budget.largest(place.first, float(budget.op_ps(place.rows[:1])[0])) if count > 1 else "",
        f"Then come {', '.join(others)}." if (others := _others(budget, place)) else "",
    )
    claim = budget.take_ops(place.rows, place.lost_ps)
    if place.reached is None or claim.worth_ps < LEAST_NAMED * budget.whole_ps:
        return budget.of_unknown_worth(UNEXPLAINED, title, basis, evidence, target, place.rows)
    basis = f"The ops' time beyond what their counted work needs at {share(USUAL)} of their roof."
    return budget.finding(UNEXPLAINED, claim, title, basis, evidence, target, is_estimate=True)


def _others(budget: Budget, place: Place) -> list[str]:
    """The ops of a place beside its first that take so much that they are told by name, with their shares."""
    table, shares = budget.evidence.table, (budget.op_ps(place.rows) / budget.whole_ps).tolist()
    pairs = list(zip(place.rows.tolist(), shares, strict=True))[1:]
    return [f"{sentence_name(table.name[row])} ({share(of)})" for row, of in pairs if of >= LEAST_LARGE]


def _of_rest(budget: Budget, rest: Sequence[Place]) -> Claimed:
    """What is lost in places without a name of their own."""
    losing = sorted((place for place in rest if place.is_far), key=lambda place: -place.all_lost_ps)
    together = sum(place.all_lost_ps for place in losing)
    if together < LEAST_REST * budget.whole_ps:
        return NOTHING
    rows = np.concatenate([place.rows for place in losing])
    whole = "the capture" if budget.steps is None else "a step"
    return budget.of_unknown_worth(
        UNEXPLAINED,
        f"Losses under {share(LEAST_NAMED)} each take {share(min(1.0, together / budget.whole_ps))} of {whole}",
        f"Time of ops in no other finding, beyond what their counted work needs at {share(USUAL)} of their roof. The "
        "saving is unknown because the cause is unknown.",
        tuple(_words(budget, losing)),
        JumpTarget("op-profile", budget.evidence.table.name[losing[0].first]),
        rows,
    )


def _words(budget: Budget, losing: Sequence[Place]) -> Iterator[str]:
    for place in losing[:_MOST_NAMED]:
        owner = OWNERS[int(budget.owners.owner[place.first])]
        where = OWNER_TITLES[owner] if owner == "loss" else f"in {OWNER_TITLES[owner]}"
        what = counted(len(place.rows), f"{sentence_name(place.name)} op")
        yield f"{what} {'loses' if len(place.rows) == 1 else 'lose'} {budget.amount(place.all_lost_ps)} {where}."
    others = losing[_MOST_NAMED:]
    if others:
        what = "another category loses" if len(others) == 1 else f"{len(others)} other categories lose"
        yield f"{what[0].upper()}{what[1:]} {budget.amount(sum(of.all_lost_ps for of in others))}."

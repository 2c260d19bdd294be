"""Claims on an account: which time a finding is about.

A claim takes cells of the account: time of an owner, on a core, in a step. What one claim has taken is gone for the
claims that come later, so that no two of them hold the same time, and none holds more than there is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Floats, Int64s, distinct, is_among
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.steps.accounts.owners import OWNERS, Owner, owner_index

Rows = NDArray[np.intp]

COMPUTING: tuple[Owner, ...] = ("loss", "ideal")
"""Who has the time of a computing op. A claim takes what it loses first: that can go away without less work."""

COLLECTIVE_OWNERS: tuple[Owner, ...] = ("collective_wait", "collective_transfer")
"""Who has the time of a collective; waiting comes first."""

OF_OPS: Mapping[Owner, tuple[Owner, ...]] = {"loss": COMPUTING, "collective_transfer": COLLECTIVE_OWNERS}
"""Who has the time of the ops that `OpOwners` gives to these owners; that of other ops is their owner's alone."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The time that a finding is about.

    Attributes:
        cells: float64[cores, steps, len(OWNERS)], none negative; of a capture without steps one core and one step.
        rows: ops that no other finding may be about: rows of the op table.
        op_ps: float64[rows], the part of each op's time that is claimed, a mean over cores and steps.
    """

    cells: Floats
    rows: Rows
    op_ps: Floats

    @classmethod
    def of_cells(cls, cells: Floats) -> Claim:
        """A claim that is not about ops."""
        return cls(cells, np.zeros(0, np.intp), np.zeros(0))

    @property
    def owner_ps(self) -> Floats:
        """float64[len(OWNERS)]: means over cores and steps."""
        return mean_of(self.cells)

    @property
    def worth_ps(self) -> float:
        """What the claim holds in all, as a mean over cores and steps."""
        return float(self.owner_ps.sum())

    def of(self, *owners: Owner) -> float:
        """What it holds of some owners, as a mean over cores and steps."""
        return float(self.owner_ps[[owner_index(owner) for owner in owners]].sum())

    def about(self, rows: Rows) -> Claim:
        """The same, about more ops, of whose time it takes nothing."""
        more = rows[~is_among(rows, self.rows)]
        return Claim(self.cells, np.append(self.rows, more), np.append(self.op_ps, np.zeros(len(more))))


NO_CLAIM = Claim.of_cells(np.zeros((1, 1, len(OWNERS))))


def mean_of(cells: Floats) -> Floats:
    """float64[len(OWNERS)]: means over cores and steps; 0 where there are none."""
    out: Floats = cells.sum(axis=(0, 1)) / max(cells.shape[0] * cells.shape[1], 1)
    return out


def joined(*claims: Claim) -> Claim:
    """Several claims of one finding, which have no time in common."""
    cells = reduce(np.add, (each.cells for each in claims))
    return Claim(cells, np.concatenate([each.rows for each in claims]), np.concatenate([each.op_ps for each in claims]))


def after(left: Floats, *claims: Claim) -> Floats:
    """What some claims leave of the cells: float64[cores, steps, len(OWNERS)], none negative."""
    for each in claims:
        less = left - each.cells
        left = np.maximum(less, 0.0, out=less)
    return left


def taken(left: Floats, owners: Sequence[Owner], wanted: Floats) -> Floats:
    """Takes from some owners what is wanted on each core in each step, as far as it is there.

    Args:
        left: float64[cores, steps, len(OWNERS)], what is not claimed yet.
        owners: the first one gives what it has before the next one does.
        wanted: what to take, of any shape that fits float64[cores, steps]; nothing where it is negative.

    Returns:
        float64[cores, steps, len(OWNERS)].
    """
    out = np.zeros_like(left)
    rest = np.maximum(np.broadcast_to(wanted, left.shape[:2]), 0.0)
    for owner in owners:
        at = owner_index(owner)
        out[:, :, at] = np.minimum(left[:, :, at], rest)
        rest = rest - out[:, :, at]
    return out


def filled(left: Floats, owners: Sequence[Owner], wanted: Floats) -> Floats:
    """The same as `taken`, but what a core has too little of in one step is taken in its others, as far as it is there.

    Of times that belong together and vary by step, such as a core's delay and what another one waits for it.
    """
    out = taken(left, owners, wanted)
    columns = [owner_index(owner) for owner in owners]
    rest = (left - out)[:, :, columns]
    have = rest.sum(axis=(1, 2))
    short = np.maximum(np.broadcast_to(wanted, left.shape[:2]), 0.0).sum(axis=1) - out.sum(axis=(1, 2))
    part = np.divide(np.maximum(short, 0.0), have, out=np.zeros(len(have)), where=have > 0)
    out[:, :, columns] += rest * np.minimum(part, 1.0)[:, None, None]
    return out


def everything(left: Floats, owners: Sequence[Owner]) -> Floats:
    """Takes all that some owners have: float64[cores, steps, len(OWNERS)]."""
    return taken(left, owners, np.array(np.inf))


def spread_evenly(left: Floats, owners: Sequence[Owner], mean_ps: float) -> Floats:
    """Takes from some owners an amount of which only the mean is known: the same in each step, as steps run the same.

    What a cell has too little of is taken from the others, in parts that go by what they have left.

    Args:
        owners: the first one gives what it has before the next one does.
        mean_ps: what to take, as a mean over cores and steps; less where there is less.

    Returns:
        float64[cores, steps, len(OWNERS)].
    """
    out, have, wanted = np.zeros_like(left), mean_of(left), max(mean_ps, 0.0)
    for owner in owners:
        at = owner_index(owner)
        of_owner, amount = left[:, :, at], min(wanted, float(have[at]))
        even = np.minimum(of_owner, amount)
        rest, short = float(have[at] - even.mean()) if even.size else 0.0, amount - float(even.mean())
        out[:, :, at] = even + (of_owner - even) * (min(1.0, short / rest) if rest > 0 and short > 0 else 0.0)
        wanted -= amount
    return out


def of_ops(
    left: Floats, rows: Rows, owner: Int64s, ideal_ps: Floats, op_ps: Floats, saved_ps: Floats, goes_away: bool
) -> Claim:
    """Takes parts of some ops' time from those who own it.

    Of an op only the mean over cores and steps is known; see `spread_evenly`.

    Args:
        left: float64[cores, steps, len(OWNERS)], what is not claimed yet.
        rows: the ops; owner: int64[rows], whose they are, see `OpOwners`.
        ideal_ps: float64[rows], the part of each op's time that is at the roof; op_ps: float64[rows], its whole time.
            Both are means over cores and steps, as all times here.
        saved_ps: float64[rows], what to take of each.
        goes_away: whether work or bytes of computing ops can go away; else the time at their roof is never taken.

    Returns:
        The claim; where its owners have too little left, of each op as much less.
    """
    saved = np.clip(np.nan_to_num(saved_ps), 0.0, op_ps)
    computes = owner == owner_index("loss")
    lost = np.where(computes, np.minimum(saved, np.maximum(op_ps - ideal_ps, 0.0)), saved)
    parts: list[tuple[Bools, Sequence[Owner], Floats]] = [
        (owner == at, OF_OPS.get(OWNERS[at], (OWNERS[at],)), lost) for at in distinct(owner[~computes]).tolist()
    ]
    parts += [(computes, ("loss",), lost), (computes, ("ideal",), (saved - lost) * goes_away)]
    cells, kept = np.zeros_like(left), np.zeros(len(rows))
    for mine, owners, wanted in parts:
        amount = float(wanted[mine].sum())
        if amount > 0:
            got = spread_evenly(left, owners, amount)
            cells += got
            kept[mine] += wanted[mine] * (float(mean_of(got).sum()) / amount)
    chosen = saved > 0
    return Claim(cells, rows[chosen], kept[chosen])

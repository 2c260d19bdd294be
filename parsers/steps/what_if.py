"""What if: the steps without some of their owners, the cores' schedules played again with their meetings.

A core that becomes faster helps only as far as the others wait for it. A core's own time is its step without waits for
others; a step takes as long as its slowest core's own time, and the other cores wait for the rest of it. Where cores
take turns in being late within a step, all of them wait, and the step is longer than any core's own time: that
difference stays as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.intervals import Bools, Floats
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import nearest, printable
from tpuprof.parsers.steps.accounts.owners import OWNER_GROUPS, OWNERS, WAITS, Owner, owner_index
from tpuprof.parsers.steps.step_account import Account


@dataclass(frozen=True, slots=True)
class Without:
    """Steps as they would be without some owners.

    Attributes:
        of: the steps as they are.
        owners: who is taken away, in the order of `OWNERS`.
        step_ps: float64[steps], duration of each step.
        owner_ps: float64[steps, len(OWNERS)], means over cores, none negative; each row adds up to `step_ps`.
        between_ps: float64[steps], the time from each step to the next, mean over cores.
    """

    of: Account
    owners: tuple[Owner, ...]
    step_ps: Floats
    owner_ps: Floats
    between_ps: Floats

    @property
    def mean_step_ps(self) -> float:
        return float(self.step_ps.mean())

    @property
    def mean_period_ps(self) -> float:
        """The same with the time up to the next step."""
        return self.mean_step_ps + float(self.between_ps.sum()) / max(len(self.step_ps) - 1, 1)

    @property
    def saved_ps(self) -> float:
        return max(0.0, self.of.mean_period_ps - self.mean_period_ps)

    @property
    def saved_fraction(self) -> float:
        """The same as part of that time as it is, 0-1."""
        return self.saved_ps / self.of.mean_period_ps


KnownOwners = Mapping[str, tuple[Owner, ...]]
"""What names stand for."""

OWNERS_BY_NAME: KnownOwners = {**{owner: (owner,) for owner in OWNERS}, **OWNER_GROUPS}
"""Owners and groups of them by name; a group goes before the owner of the same name."""


def owners_named(names: str, known: KnownOwners = OWNERS_BY_NAME) -> tuple[Owner, ...]:
    """The owners of a list of names with commas between them.

    Args:
        known: what each name stands for.

    Raises:
        ProfileError: one of the names is not known.
    """
    asked = [name.strip() for name in names.split(",")]
    for name in asked:
        if name not in known:
            sentence = (
                f"{printable(name)!r} is not an owner of a step's time: the owners are {', '.join(sorted(known))}."
            )
            near = nearest(name, known)
            raise ProfileError(
                "usage", sentence, f"--without {','.join(near[:1] or ('input', 'collective'))}", EXIT_USAGE
            )
    chosen = {owner for name in asked for owner in known[name]}
    return tuple(owner for owner in OWNERS if owner in chosen)


def without(of: Account, owners: Collection[Owner]) -> Without:
    """The steps without the time of some owners.

    Without `collective_wait` and `barrier` the cores are even: a step takes the mean of their own times. Without one of
    the two, what that saves is divided by the waits that each has in the step.
    """
    taken = np.array([owner in owners for owner in OWNERS])
    waits = np.array([owner in WAITS for owner in OWNERS])
    own = of.owner_ps[:, :, ~waits].sum(axis=2)
    in_turns = of.step_ps - own.max(axis=0)
    left = of.owner_ps[:, :, ~waits & ~taken].sum(axis=2)
    longest, mean = left.max(axis=0) + in_turns, left.mean(axis=0)
    waiting = of.owner_ps[:, :, waits].sum(axis=(0, 2))
    chosen = of.owner_ps[:, :, waits & taken].sum(axis=(0, 2))
    even = np.divide(chosen, waiting, out=np.full(len(of), float(taken[waits].all())), where=waiting > 0)
    step_ps = (1 - even) * longest + even * mean
    return Without(
        of,
        tuple(owner for owner in OWNERS if owner in owners),
        step_ps,
        _by_owner(of, taken, waits, step_ps - mean),
        of.between_ps[:, :, ~taken].sum(axis=2).mean(axis=0),
    )


def _by_owner(of: Account, taken: Bools, waits: Bools, waiting_ps: Floats) -> Floats:
    """float64[steps, len(OWNERS)]: the owners' means over cores where cores wait for `waiting_ps` of each step."""
    kept: Floats = of.owner_ps.mean(axis=0) * ~taken
    before = kept[:, waits].sum(axis=1)
    scale = np.divide(waiting_ps, before, out=np.zeros(len(of)), where=before > 0)
    kept[:, waits] *= scale[:, None]
    anew = owner_index("barrier" if taken[owner_index("collective_wait")] else "collective_wait")
    kept[:, anew] += np.where(before > 0, 0.0, waiting_ps)
    return kept

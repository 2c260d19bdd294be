"""The bars of a step: an owner each, or the smallest ones together, on a screen of any height."""

from __future__ import annotations

from collections.abc import Mapping

from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.pages.overview.ledger import MeanStep, OwnerTime
from tpuprof.parsers.steps.accounts.owners import OWNER_TITLES, OWNERS, Owner
from tpuprof.tui.draw.pen import TALL
from tpuprof.tui.draw.spans import CLASS_STYLE, StyleKey

OWNER_CLASS: Mapping[Owner, OpClass] = {
    "input": "host",
    "compile": "idle",
    "host": "idle",
    "dispatch": "idle",
    "barrier": "collective",
    "collective_wait": "collective",
    "collective_transfer": "collective",
    "host_transfer": "host",
    "copy": "copy",
    "loss": "vector",
    "uncounted": "unknown",
    "between_ops": "idle",
    "ideal": "compute",
}
"""The class of ops whose colour each owner has."""

OWNER_LETTER: Mapping[Owner, str] = dict(zip(OWNERS, "ICHDAWNTMLUGR", strict=True))
"""Stands for an owner where colours or room are missing."""

_LEAST_PART = 0.005
"""Owners with less of a step than this stand together in the one bar of a low screen."""

_LEAST_WATERFALL = 5


@dataclass(frozen=True)
class Bar:
    """A bar of the waterfall, or a part of the one bar: an owner or the smallest owners together."""

    owners: tuple[OwnerTime, ...]

    @property
    def label(self) -> str:
        return OWNER_TITLES[self.owners[0].owner] if len(self.owners) == 1 else f"{len(self.owners)} others"

    @property
    def letter(self) -> str:
        """What stands for it where there is no room for that."""
        return OWNER_LETTER[self.owners[0].owner] if len(self.owners) == 1 else "O"

    @property
    def op_class(self) -> OpClass:
        return OWNER_CLASS[self.owners[0].owner] if len(self.owners) == 1 else "unknown"

    @property
    def style(self) -> StyleKey:
        """Its colour; none for several owners."""
        return CLASS_STYLE[self.op_class] if len(self.owners) == 1 else "dim"

    @property
    def time_ps(self) -> float:
        return sum((each.time_ps for each in self.owners), 0.0)

    @property
    def names(self) -> frozenset[Owner]:
        return frozenset(each.owner for each in self.owners)


def bars(account: MeanStep, most: int | None = None) -> tuple[Bar, ...]:
    """The bars of the waterfall, the largest first and what is ideal last.

    Args:
        most: how many at most; the smallest owners are put together where there are more.
    """
    owners = _with_time(account)
    ideal = [Bar((each,)) for each in owners if each.owner == "ideal"]
    others = [each for each in owners if each.owner != "ideal"]
    room = len(others) if most is None else max(1, most - 1 - len(ideal))
    shown = [Bar((each,)) for each in others]
    if len(shown) > room:
        shown = [*shown[: room - 1], Bar(tuple(others[room - 1 :]))]
    return (*shown, *ideal)


def _with_time(account: MeanStep) -> list[OwnerTime]:
    """Owners with time in the step, the largest first."""
    return sorted((each for each in account.owners if each.time_ps > 0), key=lambda each: -each.time_ps)


def parts(account: MeanStep) -> tuple[Bar, ...]:
    """The parts of the one bar of a low screen: what is ideal first, then the largest; the smallest are together."""
    owners = sorted(_with_time(account), key=lambda each: each.owner != "ideal")
    large = [each for each in owners if each.fraction >= _LEAST_PART]
    small = tuple(each for each in owners if each.fraction < _LEAST_PART)
    return (*(Bar((each,)) for each in large), *((Bar(small),) if small else ()))


def most_bars(height: int | None) -> int | None:
    """Lines of the waterfall on a screen that has room for one; None in a report, which has them all."""
    return None if height is None else _LEAST_WATERFALL + (height - TALL) // 3


def shown_bars(account: MeanStep | None, height: int) -> tuple[Bar, ...]:
    """The bars that the cursor can be on: those of the waterfall, or the parts of the one bar of a low screen."""
    if account is None:
        return ()
    return parts(account) if height < TALL else bars(account, most_bars(height))

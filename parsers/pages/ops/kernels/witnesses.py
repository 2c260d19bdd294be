"""What says how much work a kernel does, and whether that can be: shapes, schedule, trace points, the compiler's count.

Of a kernel's work there are several accounts, and some are wrong: the compiler's count takes the body of a grid once,
whatever the grid. A witness is refused where its figure contradicts the arithmetic: more than the peak allows in the
time that was measured, or less than the shapes need.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.words import share
from tpuprof.parsers.ops.core.kernel_work import LEAST
from tpuprof.parsers.ops.roofline import AT_THE_PEAK

Witness = Literal["shapes", "schedule", "trace points", "count", "operands"]

WITNESSES: Mapping[Witness, str] = {
    "shapes": "the kernel's grid, block shapes and matrix products, as its module in the profile has them",
    "schedule": "the compiler's static schedule: cycles in which the unit's slots are used, at the nominal clock",
    "trace points": "the schedule over measured time, from one trace point in the kernel to the next",
    "count": "the compiler's count in the profile: the author's estimate (pl.CostEstimate) where a kernel has one",
    "operands": "operands and results, each moved once",
}
"""What each witness goes by."""

_NEAR = 0.05  # of a grid step: what a body does besides its products


@dataclass(frozen=True, slots=True)
class Statement:
    """What one witness says.

    Attributes:
        value: in the figure's unit.
        refused: why it can't be, a clause; empty where nothing contradicts it.
    """

    witness: Witness
    value: float
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """A quantity by its witnesses, the best first; `why` says why none is believed, where that is so."""

    statements: tuple[Statement, ...]
    why: str = ""

    @property
    def best(self) -> Statement | None:
        """The first witness that nothing contradicts; None without one."""
        return next((each for each in self.statements if not each.refused), None)

    @property
    def value(self) -> float | None:
        return None if self.best is None else self.best.value

    @property
    def witness(self) -> Witness | None:
        return None if self.best is None else self.best.witness

    @property
    def reason(self) -> str:
        """Why the value is unknown; empty where it is known."""
        if self.best is not None:
            return ""
        return "; ".join(f"{each.witness}: {each.refused}" for each in self.statements) or self.why


def work(
    said: Sequence[tuple[Witness, float | None]],
    most: float | None,
    why: str,
    least: float | None = None,
    steps: int | None = None,
) -> Figure:
    """A kernel's work in a run, FLOPs or bytes.

    Args:
        said: what each witness says, the best first; None where it says nothing.
        most: what the device can do in the time of a run; None where its peak is unknown.
        why: why it is unknown where no witness says anything.
        least: what the shapes need at least; None where they do not say.
        steps: of the grid; a count that is that of some of them says so.
    """
    known = [(witness, value) for witness, value in said if value]
    refused = (_refused(value, most, least, steps) for _, value in known)
    return Figure(tuple(Statement(*each, why_not) for each, why_not in zip(known, refused, strict=True)), why)


def use(said: Sequence[tuple[Witness, float | None]], why: str) -> Figure:
    """How much of a unit was used (0-1): of the witnesses the first is what the shapes need."""
    least = next((value for witness, value in said if witness == "shapes"), None)
    known = [(witness, value) for witness, value in said if value is not None]
    return Figure(tuple(Statement(witness, value, _refused(value, 1.0, least)) for witness, value in known), why)


def _refused(value: float, most: float | None, least: float | None, steps: int | None = None) -> str:
    if most is not None and value > AT_THE_PEAK * most:
        return f"{value / most:.3g} times what the device can do in that time"
    if least is not None and value < LEAST * least:
        words = f"{share(value / least)} of what the shapes need"
        counted = value / least * steps if steps is not None else 0.0
        is_whole = round(counted) >= 1 and abs(counted - round(counted)) < _NEAR
        return f"{words}: it counts {round(counted)} of {steps:,} grid steps" if is_whole else words
    return ""

"""How many runs of a module lost their ops (`parsers.steps.boundaries.recorded`)."""

from __future__ import annotations

from collections.abc import Iterable

from tpuprof.parsers.base.record import dataclass


@dataclass(frozen=True, slots=True)
class ModuleHoles:
    """How many runs a module has on some cores, and how many of them have no ops, or lack some that the others have.

    Attributes:
        module: its name, ``jit_f(12190760917235803885)``.
    """

    module: str
    runs: int
    without_ops: int
    lacking_some: int


def joined_holes(parts: Iterable[ModuleHoles]) -> tuple[ModuleHoles, ...]:
    """The modules of several cores that have holes."""
    joined: dict[str, ModuleHoles] = {}
    for of in parts:
        before = joined.get(of.module, ModuleHoles(of.module, 0, 0, 0))
        joined[of.module] = ModuleHoles(
            of.module,
            before.runs + of.runs,
            before.without_ops + of.without_ops,
            before.lacking_some + of.lacking_some,
        )
    return tuple(of for of in joined.values() if of.without_ops or of.lacking_some)

"""How often each region of a kernel's schedule runs in one call.

The schedule holds the bounds of its loops, and not which turns meet a condition. The Mosaic module does: its ops are
followed through the grid, and both name the calls in the source that they come from. So a region under a condition runs
as often as the ops that come from the same calls as its instructions.
"""

from __future__ import annotations

import numpy as np

from tpuprof.parsers.base.intervals import Bools, Int64s
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.llo.schedule import Regions, Schedule
from tpuprof.parsers.formats.mosaic.spec import KernelSpec

_AGREED = 0.9
"""Share of a region's instructions that one number must suit: the others have places that the compiler merged."""


@dataclass(frozen=True, slots=True, eq=False)
class Executed:
    """What a call of a kernel runs of its schedule.

    Attributes:
        runs: how often each region runs, in the order of `Schedule.regions`; -1 where it is not known.
        is_sure: for each region whether its loops and the places of its instructions say so; else it is the most that
            there can be.
    """

    runs: Int64s
    is_sure: Bools


def executed(schedule: Schedule, spec: KernelSpec) -> Executed:
    """What a call of this kernel runs of this schedule, which is of the same program."""
    regions = schedule.regions
    said = _said(schedule, dict(spec.runs))
    runs = np.full(len(regions), -1, np.int64)
    is_sure = np.zeros(len(regions), np.bool_)
    for row in range(len(regions)):  # a region comes behind the one around it
        around = int(regions.parent[row])
        runs[row], is_sure[row] = _inherited(regions, runs, row, around), around < 0 or is_sure[around]
        if regions.kind[row] == "predicated":
            known = said[row]
            is_sure[row] = known is not None
            if known is not None and (runs[row] < 0 or known <= runs[row]):
                runs[row] = known
    return Executed(runs, is_sure)


def _inherited(regions: Regions, runs: Int64s, row: int, around: int) -> int:
    """How often a region runs by the one around it and its own loop; at most, where that does not divide."""
    turns = int(regions.turns[row])
    if around < 0:
        return turns
    before, outer = int(runs[around]), int(regions.turns[around])
    if before < 0 or turns < 0 or outer < 0:
        return -1
    return -(-turns * before // outer) if outer else 0


def _said(schedule: Schedule, runs: dict[tuple[str, ...], tuple[int, ...]]) -> list[int | None]:
    """How often each region runs by its own instructions, where their places leave one number."""
    of_origin = [runs.get(tuple(dict.fromkeys(origin.places)), ()) for origin in schedule.origins]
    instructions, found = schedule.instructions, list[int | None]()
    for row in range(len(schedule.regions)):
        own = instructions.origin[(instructions.region == row) & (instructions.origin >= 0)]
        counts = np.bincount(own, minlength=len(of_origin)).tolist() if len(own) else []
        known = [(count, numbers) for count, numbers in zip(counts, of_origin, strict=False) if count and numbers]
        total = sum(count for count, _ in known)
        candidates = {number for _, numbers in known for number in numbers}
        suited = [
            number
            for number in candidates
            if sum(count for count, numbers in known if number in numbers) >= _AGREED * total
        ]
        found.append(suited[0] if len(suited) == 1 else None)
    return found

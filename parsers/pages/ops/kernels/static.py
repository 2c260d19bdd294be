"""The compiler's schedule of a kernel beside its runs: which regions run how often, what each holds, from which line.

A schedule says what is in each bundle, and how often a region runs where all conditions hold. How often a body under a
condition runs, the spans say: those of the scope that its instructions are in. Without spans it follows from the grid
and the kernel's Mosaic module, unless the condition depends on numbers that the program gets when it runs. Cycles of
bundles are no time: a bundle that waits takes longer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from tpuprof.parsers.base.intervals import Floats, Int64s
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.llo.schedule import UNITS, Schedule
from tpuprof.parsers.formats.mosaic.executed import executed
from tpuprof.parsers.formats.mosaic.spec import KernelSpec

_MOST_REGIONS = 12
_PREDICATED = "predicated"


@dataclass(frozen=True, slots=True)
class RegionUse:
    """A region of a kernel's schedule, without those inside it.

    Attributes:
        kind: ``loop body``, ``predicated`` and so on, as the compiler calls it.
        bundles: how many it has.
        runs: how often it runs in a run of the kernel; is_measured: whether spans say so, and not the program alone.
        fraction: its bundles, as often as they run, of those of all regions (0-1).
        shares: of its slots what each unit uses (0-1), by unit.
        place: ``file:line`` that most of its instructions come from; empty where the compiler does not say.
        scope: the scope that most of them are in; empty for none.
    """

    kind: str
    bundles: int
    runs: float
    is_measured: bool
    fraction: float
    shares: Mapping[str, float]
    place: str
    scope: str


@dataclass(frozen=True, slots=True)
class StaticSchedule:
    """What the compiler's schedule says of a kernel; nothing of it is time.

    Attributes:
        bundles: in the program; run_bundles: those that run in one run of the kernel, each as often as it does; None
            where a loop's bounds are not constant, or neither a span nor the program says how often a condition holds.
        busy: cycles in which a unit's slots are used in a run, all slots together as one, by unit; empty likewise.
        shares: of the slots of all bundles what each unit uses (0-1), each bundle once.
        spills, fills: registers that are written to memory because there are too few, and read back, each bundle once.
        spill_bytes: memory in VMEM for these.
        regions: those with most bundles, as often as they run.
    """

    bundles: int
    run_bundles: float | None
    busy: Mapping[str, float]
    shares: Mapping[str, float]
    spills: int
    fills: int
    spill_bytes: int
    regions: tuple[RegionUse, ...]


def static_schedule(schedule: Schedule, spans: Mapping[str, float], spec: KernelSpec | None = None) -> StaticSchedule:
    """Sums a schedule up.

    Args:
        spans: how many spans of each scope there are in a run of the kernel, measured; empty where none are known.
        spec: what the program says of the kernel; None where it says nothing.
    """
    regions = schedule.regions
    own, used = _own(schedule)
    origins = [_origins(schedule, row) for row in range(len(regions))]
    runs, measured = _runs(schedule, [scope for _, scope in origins], spans)
    is_open = np.array([kind == _PREDICATED for kind in regions.kind], np.bool_) & ~measured
    if spec is not None:
        followed = executed(schedule, spec)
        rows = followed.is_sure & ~measured & (followed.runs >= 0)
        runs[rows], is_open[rows] = followed.runs[rows], False
    is_known = bool(((runs >= 0) | (own == 0)).all()) and not bool((is_open & (own > 0)).any())
    times = np.maximum(runs, 0.0)
    weight = own * times
    slots = np.maximum(np.array(schedule.slots), 1)
    busy = (used * times).sum(axis=1) / slots
    order = [row for row in np.argsort(-weight, kind="stable").tolist() if weight[row] > 0][:_MOST_REGIONS]
    whole = float(weight.sum())
    return StaticSchedule(
        bundles=schedule.bundles,
        run_bundles=whole if is_known else None,
        busy=dict(zip(UNITS, busy.tolist(), strict=True)) if is_known else {},
        shares={unit: share for unit, share in zip(UNITS, schedule.shares(), strict=True) if share is not None},
        spills=int(schedule.spills.sum()),
        fills=int(schedule.fills.sum()),
        spill_bytes=schedule.spill_bytes,
        regions=tuple(
            RegionUse(
                regions.kind[row],
                int(own[row]),
                float(runs[row]),
                bool(measured[row]),
                float(weight[row]) / whole,
                dict(zip(UNITS, (used[:, row] / (own[row] * slots)).tolist(), strict=True)),
                *origins[row],
            )
            for row in order
        ),
    )


def _own(schedule: Schedule) -> tuple[Int64s, Int64s]:
    """int64[regions] bundles of each region, and int64[units, regions] the slots used in them, without those inside."""
    regions = schedule.regions
    owner = schedule.owner
    bundles = np.bincount(owner, minlength=len(regions)).astype(np.int64)
    used = [np.bincount(owner, each, minlength=len(regions)) for each in schedule.used]
    return bundles, np.array(used, np.int64).reshape(len(schedule.used), len(regions))


def _runs(schedule: Schedule, scopes: list[str], spans: Mapping[str, float]) -> tuple[Floats, np.ndarray]:
    """float64[regions] how often each runs in a run of the kernel, -1 where unknown; and which of it spans say."""
    regions = schedule.regions
    runs, measured = regions.turns.astype(np.float64), np.zeros(len(regions), np.bool_)
    for row, parent in enumerate(regions.parent.tolist()):
        if regions.kind[row] == _PREDICATED and scopes[row] in spans:
            runs[row], measured[row] = spans[scopes[row]], True
        elif parent >= 0 and measured[parent] and regions.turns[parent] > 0 and regions.turns[row] >= 0:
            runs[row] = regions.turns[row] / regions.turns[parent] * runs[parent]
            measured[row] = True
    return runs, measured


def _origins(schedule: Schedule, region: int) -> tuple[str, str]:
    """The place and the scope that most instructions of a region come from; empty where they have none."""
    rows = schedule.instructions.origin[schedule.instructions.region == region]
    counts = np.bincount(rows[rows >= 0], minlength=len(schedule.origins))
    places, scopes = Counter[str](), Counter[str]()
    for number in np.flatnonzero(counts).tolist():
        origin, count = schedule.origins[number], int(counts[number])
        places[origin.places[0] if origin.places else ""] += count
        for scope in origin.scopes:
            scopes[scope] += count
    del places[""]
    own = Counter({scope: count for scope, count in scopes.items() if not scope.startswith("ep_")})
    return (places.most_common(1)[0][0] if places else "", own.most_common(1)[0][0] if own else "")

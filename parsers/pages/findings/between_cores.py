"""Findings about cores that wait for each other: collectives that nothing hides, and a core or host that is late."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property

import numpy as np

from tpuprof.parsers.base.intervals import Floats
from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.pages.findings.budget import Budget, Claim, Rows, StepTimes
from tpuprof.parsers.pages.findings.finding import Finding, Place
from tpuprof.parsers.pages.words import sentence_name, share, short, time
from tpuprof.parsers.steps.grid import all_reduce_times

LEAST_COLLECTIVE = 0.05
"""Every program waits a little for other cores; less than this share is rarely worth hiding."""

_MOSTLY = 0.5
"""A part goes into the title from this share of the finding on."""

_HARDLY = 0.01  # share of waiting in all-reduces that is nothing

BUSIER = 1.05
"""A core is late when it computes this much longer than the median of the others: single steps vary by 1-2 %."""

_MOST_STEPS = 2 / 3
"""A straggler is late in at least this share of the steps; a core that is late now and then is none."""

_LEAST_STEPS = 3
_LEAST_WAIT = 0.01
"""The others wait at least this share of step time for a straggler; steps vary by less anyway."""

_FEW = 4
"""One of so many cores may be a straggler; where more are late, the work is divided unevenly on purpose."""

_BUSY: tuple[OpClass, ...] = ("compute", "vector", "copy", "unknown")


def exposed_collectives(budget: Budget, claimed_ps: float) -> Finding | None:
    """Collectives on the line of ops, during which nothing else ran on the core.

    Args:
        claimed_ps: collective time that other findings count.
    """
    worth = budget.class_ps["collective"] - claimed_ps
    if worth < LEAST_COLLECTIVE * budget.whole_ps:
        return None
    rows = budget.rows["collective"]
    transfer, sync = _all_reduces(budget)
    waiting = sync / (transfer + sync) if transfer + sync > 0 else 0.0
    title, place = "Collectives are not hidden behind compute", Place("timeline")
    if len(rows):
        name = budget.evidence.table.name[rows[0]]
        title, place = f"{short(name)} is not hidden by compute", Place("timeline", name)
        if transfer + sync >= _MOSTLY * worth and waiting >= _MOSTLY:
            title = f"Cores wait for each other in {short(name)}"
        elif len(rows) > 1:
            title = f"Exposed collectives, {short(name)} most"
    arrival = "Its all-reduces start at the same time on all cores: none waits for another."
    if waiting >= _HARDLY:
        arrival = (
            f"All-reduces take up to {time(transfer + sync)} a step: {time(sync)} waiting for the last core to "
            f"arrive, {time(transfer)} reducing."
        )
    rest = f"; {time(claimed_ps)} of waiting that other findings count is left out" if claimed_ps >= 1 else ""
    return budget.finding(
        "collective",
        title,
        worth,
        f"Mean self time of collective ops (waits for asynchronous ones included) on the cores' line of ops{rest}.",
        [
            f"Cores do nothing but collectives for {budget.amount(budget.class_ps['collective'])}.",
            *_largest(budget, rows),
            arrival if transfer + sync > 0 else "",
        ],
        place,
    )


def _largest(budget: Budget, rows: Rows) -> Iterator[str]:
    if not len(rows):
        return
    name = sentence_name(budget.evidence.table.name[rows[0]])
    which = "The largest of " + counted(len(rows), "op") if len(rows) > 1 else "The only op"
    yield budget.largest(int(rows[0]), float(budget.op_ps(rows, "collective")[0]), which)
    if "-done" in name:
        yield f"{name} waits for a transfer that runs by itself: there is too little to compute meanwhile."


def _all_reduces(budget: Budget) -> tuple[float, float]:
    """Mean time a step of reducing, and of waiting for the last core, on the core where all-reduces take longest.

    Only all-reduces whose ids tell which belong together count; 0 for both where there are none.
    """
    steps = budget.steps
    if steps is None or len(steps.grid.all_reduce) < 2:  # one core alone does not tell for whom it waits
        return 0.0, 0.0
    transfer, sync = (sum(times.tolist()) / len(steps.grid) for times in all_reduce_times(steps.grid))
    return (transfer, sync) if math.isfinite(transfer + sync) and min(transfer, sync) >= 0 else (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class _Late:
    """Some cores that are late.

    Attributes:
        label: their name in sentences.
        rows: indices of the cores.
        steps: in how many steps they are late.
        busy_ps, others_ps: float64[steps], how long they compute, and the median of the others.
        collective_ps, idle_ps: how much longer the others are in collectives, and idle, in a mean step.
        worth_ps: how much longer the others wait than they, at most how much longer they compute, in a mean step.
    """

    label: str
    rows: Rows
    steps: int
    busy_ps: Floats
    others_ps: Floats
    collective_ps: float
    idle_ps: float
    worth_ps: float


def straggling(budget: Budget) -> Claim:
    """A core, or all cores of a host, that computes longer than the others in most steps while these wait for it."""
    steps = budget.steps
    if steps is None or len(steps) < _LEAST_STEPS or len(steps.class_ps) < 2:
        return Claim()
    waits = _Waits(steps)
    maybe = waits.maybe_late()
    candidates = list(filter(None, (_late(waits, *cores) for cores in _hosts(steps, maybe))))
    if not candidates:
        cores = [(f"Core {short(steps.core(core))}", np.array([core])) for core in maybe.tolist()]
        candidates = list(filter(None, (_late(waits, *core) for core in cores)))
        if not 0 < len(candidates) <= max(1, len(steps.class_ps) // _FEW):
            return Claim()
    late = max(candidates, key=lambda late: late.worth_ps)
    if late.worth_ps < _LEAST_WAIT * budget.whole_ps:
        return Claim()
    busy, others = float(late.busy_ps.mean()), float(late.others_ps.mean())
    excess = {kind: -float(RankedTimes(steps.of(kind)).longer(late.rows).mean()) for kind in _BUSY}
    most = max(_BUSY, key=lambda kind: excess[kind])
    finding = budget.finding(
        "straggler",
        f"{late.label} computes {share(busy / others - 1)} longer than the others",
        late.worth_ps,
        "Time by which its ops, collectives aside, take longer than the others' median, as far as those wait for it.",
        [
            f"It computes {time(busy)} a step, the median of the others {time(others)}; "
            f"so in {late.steps:,} of {counted(len(steps), 'step')}.",
            f"The others are {time(late.collective_ps)} longer in collectives, {time(late.idle_ps)} longer idle.",
            f"It has most more of {most} ops, {time(excess[most])} a step." if excess[most] > 0 else "",
        ],
        Place("timeline", steps.grid.names[int((late.busy_ps - late.others_ps).argmax())]),
        is_estimate=True,
    )
    worth = late.worth_ps * (1 - len(late.rows) / len(steps.class_ps))  # a mean over all cores
    in_collectives = worth * late.collective_ps / (late.collective_ps + late.idle_ps)
    return Claim(finding, in_collectives, worth - in_collectives)


def _hosts(steps: StepTimes, late: Rows) -> Iterator[tuple[str, Rows]]:
    """Label and cores of each host with several cores that may all be late; a host with one is late as that core."""
    hosts = steps.grid.hosts[: len(steps.class_ps)]
    cores, late_cores = np.bincount(hosts), np.bincount(hosts[late], minlength=int(hosts.max()) + 1)
    for host in np.flatnonzero((cores > 1) & (cores == late_cores) & (cores < len(hosts))).tolist():
        rows = np.flatnonzero(hosts == host)
        yield f"Host {short(steps.core(int(rows[0])).rpartition(':')[0]) or host}", rows


class RankedTimes:
    """Times by core and step, ranked once: the median of all other cores then costs the same for each of many cores.

    Args:
        values: float64[cores, steps].
    """

    def __init__(self, values: Floats) -> None:
        self.values = values
        order = np.argsort(values, axis=0, kind="stable")
        self.ordered: Floats = np.take_along_axis(values, order, axis=0)
        self._rank = np.empty_like(order)
        np.put_along_axis(self._rank, order, np.arange(len(order))[:, None], axis=0)

    def others(self, rows: Rows) -> Floats:
        """float64[steps]: the median of all cores but some."""
        middle, is_odd = divmod(len(self.values) - len(rows), 2)
        left_out = np.sort(self._rank[rows], axis=0)
        upper = self._of_others(middle, left_out)
        return upper if is_odd else (self._of_others(middle - 1, left_out) + upper) / 2

    def _of_others(self, place: int, left_out: Rows) -> Floats:
        """float64[steps]: the value at one place in the order of those that are not left out; these by their ranks."""
        places = np.full(left_out.shape[1], place)
        for rank in left_out:
            places += rank <= places
        found: Floats = self.ordered[places, np.arange(len(places))]
        return found

    def longer(self, rows: Rows) -> Floats:
        """float64[steps]: by how much other cores take longer than some cores."""
        more: Floats = self.others(rows) - self.values[rows].mean(axis=0)
        return more


class _Waits:
    """How long each core computes, and how long it waits, ranked when they are asked for."""

    def __init__(self, steps: StepTimes) -> None:
        self._steps = steps
        self.busy = RankedTimes(steps.of(*_BUSY))

    @cached_property
    def collective(self) -> RankedTimes:
        return RankedTimes(self._steps.of("collective"))

    @cached_property
    def idle(self) -> RankedTimes:
        return RankedTimes(self._steps.gaps)

    def maybe_late(self) -> Rows:
        """The cores that may be late: compared with the least that the median of the others can be."""
        hosts = self._steps.grid.hosts[: len(self.busy.values)]
        fewest = len(hosts) - np.maximum(1, np.bincount(hosts)[hosts])  # others of a core, or of its whole host
        least = self.busy.ordered[np.maximum(0, fewest - 1) // 2]
        late = (least >= 0) & (self.busy.values >= BUSIER * least)
        return np.flatnonzero(late.sum(axis=1) >= _MOST_STEPS * late.shape[1])


def _late(waits: _Waits, label: str, rows: Rows) -> _Late | None:
    """How late some cores are; None where they are not late."""
    busy, others = waits.busy.values[rows], waits.busy.others(rows)
    late = (others > 0) & (busy >= BUSIER * others).all(axis=0)
    if late.sum() < _MOST_STEPS * len(late):
        return None
    excess = -waits.busy.longer(rows)
    collective, idle = waits.collective.longer(rows), waits.idle.longer(rows)
    lost = collective + idle
    if not 0 < _MOSTLY * excess.sum() <= lost.sum():
        return None  # nobody waits for it: it may have another task
    in_collectives, in_gaps = max(0.0, float(collective.mean())), max(0.0, float(idle.mean()))
    worth = float(min(excess.mean(), lost.mean()))
    return _Late(label, rows, int(late.sum()), busy.mean(axis=0), others, in_collectives, in_gaps, worth)

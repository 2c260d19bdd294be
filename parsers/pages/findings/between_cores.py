"""Findings about cores that wait for each other: collectives that nothing hides, and a core or host that is late."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tpuprof.parsers.base.intervals import Floats, medians
from tpuprof.parsers.base.op_class import OP_CLASSES, OpClass
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.pages.findings.budget import Budget, Claim, Rows, StepTimes, described
from tpuprof.parsers.pages.findings.finding import Evidence, Finding, Place
from tpuprof.parsers.pages.words import sentence_name, share, short, time
from tpuprof.parsers.steps.grid import breakdowns

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


def exposed_collectives(evidence: Evidence, budget: Budget, claimed_ps: float) -> Finding | None:
    """Collectives on the line of ops, during which nothing else ran on the core.

    Args:
        claimed_ps: collective time that other findings count.
    """
    worth = budget.class_ps["collective"] - claimed_ps
    if worth < LEAST_COLLECTIVE * budget.whole_ps:
        return None
    table, rows = evidence.table, budget.rows["collective"]
    sync = _all_reduces(budget)
    title, place = "Collectives are not hidden behind compute", Place("timeline")
    if len(rows):
        name = table.name[rows[0]]
        waits = sync is not None and sync.total_ps >= _MOSTLY * worth and sync.waiting >= _MOSTLY
        title = f"Cores wait for each other in {short(name)}" if waits else f"{short(name)} is not hidden by compute"
        if len(rows) > 1 and not waits:
            title = f"Exposed collectives, {short(name)} most"
        place = Place("timeline", name)
    rest = f"; {time(claimed_ps)} of waiting that other findings count is left out" if claimed_ps >= 1 else ""
    return budget.finding(
        "collective",
        title,
        worth,
        f"Mean self time of collective ops (waits for asynchronous ones included) on the cores' line of ops{rest}.",
        [
            f"Cores do nothing but collectives for {budget.amount(budget.class_ps['collective'])}.",
            *_largest(evidence, budget, rows),
            "" if sync is None else sync.words(),
        ],
        place,
    )


def _largest(evidence: Evidence, budget: Budget, rows: Rows) -> list[str]:
    if not len(rows):
        return []
    table, row = evidence.table, int(rows[0])
    times = budget.op_ps(table, rows, "collective")
    name = sentence_name(table.name[row])
    which = "The largest of " + counted(len(rows), "op") if len(rows) > 1 else "The only op"
    words = f"{which} is {described(table, row)}, {budget.amount(float(times[0]))}."
    if "-done" not in name:
        return [words]
    return [
        words,
        f"{name} waits for a transfer that runs by itself: there is too little to compute meanwhile.",
    ]


@dataclass(frozen=True, slots=True)
class _AllReduces:
    """Mean time a step of all-reduces whose ids tell which belong together, on the core where they take longest."""

    transfer_ps: float
    sync_ps: float

    @property
    def total_ps(self) -> float:
        return self.transfer_ps + self.sync_ps

    @property
    def waiting(self) -> float:
        """The share of the time that is waiting for other cores."""
        return self.sync_ps / self.total_ps

    def words(self) -> str:
        if self.waiting < _HARDLY:
            return "Its all-reduces start at the same time on all cores: none waits for another."
        return (
            f"All-reduces take up to {time(self.total_ps)} a step: {time(self.sync_ps)} waiting for the last core to "
            f"arrive, {time(self.transfer_ps)} reducing."
        )


def _all_reduces(budget: Budget) -> _AllReduces | None:
    steps = budget.steps
    if steps is None or len(steps.grid.all_reduce) < 2:  # one core alone does not tell for whom it waits
        return None
    parts = breakdowns(steps.grid)
    transfer = sum(part.all_reduce_compute_ps for part in parts) / len(parts)
    sync = sum(part.all_reduce_sync_ps for part in parts) / len(parts)
    known = math.isfinite(transfer + sync) and min(transfer, sync) >= 0 and transfer + sync > 0
    return _AllReduces(transfer, sync) if known else None


@dataclass(frozen=True, slots=True)
class _Group:
    """Cores that may be late together.

    Attributes:
        label: the name of the cores in sentences.
        rows: indices of the cores.
    """

    label: str
    rows: Rows


@dataclass(frozen=True, slots=True)
class _Late:
    """How late some cores are, as means a step.

    Attributes:
        busy_ps, others_ps: how long they compute, and the median of the others.
        worth_ps: how much longer the others wait than they, at most how much longer they compute.
        collective_ps, idle_ps: how much longer the others are in collectives, and idle.
        steps: in how many steps they are late.
        worst: the step in which they are latest.
        most: the class of ops that exceeds the others' time most, and by how much.
    """

    group: _Group
    busy_ps: float
    others_ps: float
    worth_ps: float
    collective_ps: float
    idle_ps: float
    steps: int
    worst: int
    most: tuple[OpClass, float]


def straggling(budget: Budget) -> Claim:
    """A core, or all cores of a host, that computes longer than the others in most steps while these wait for it."""
    steps = budget.steps
    if steps is None or len(steps.names) < _LEAST_STEPS or len(steps.class_ps) < 2:
        return Claim()
    hosts = [late for group in _hosts(steps) if (late := _late(steps, group)) is not None]
    if hosts:
        chosen = max(hosts, key=lambda late: late.worth_ps)
    else:
        cores = [late for group in _cores(steps) if (late := _late(steps, group)) is not None]
        if not 0 < len(cores) <= max(1, len(steps.class_ps) // _FEW):
            return Claim()
        chosen = max(cores, key=lambda late: late.worth_ps)
    if chosen.worth_ps < _LEAST_WAIT * budget.whole_ps:
        return Claim()
    longer = share(chosen.busy_ps / chosen.others_ps - 1)
    kind, excess = chosen.most
    finding = budget.finding(
        "straggler",
        f"{chosen.group.label} computes {longer} longer than the others",
        chosen.worth_ps,
        "Time by which its ops, collectives aside, take longer than the others' median, as far as those wait for it.",
        [
            f"It computes {time(chosen.busy_ps)} a step, the median of the others {time(chosen.others_ps)}; "
            f"so in {chosen.steps:,} of {counted(len(steps.names), 'step')}.",
            f"The others are {time(chosen.collective_ps)} longer in collectives, {time(chosen.idle_ps)} longer idle.",
            f"It has most more of {kind} ops, {time(excess)} a step." if excess > 0 else "",
        ],
        Place("timeline", steps.names[chosen.worst]),
        is_estimate=True,
    )
    part = (len(steps.class_ps) - len(chosen.group.rows)) / len(steps.class_ps)  # a mean over all cores
    in_collectives = chosen.collective_ps / (chosen.collective_ps + chosen.idle_ps)
    worth = chosen.worth_ps * part
    return Claim(finding, worth * in_collectives, worth * (1 - in_collectives))


def _hosts(steps: StepTimes) -> Iterator[_Group]:
    """Hosts with several cores; a host with one core is late as that core."""
    hosts = steps.grid.hosts[: len(steps.class_ps)]
    for host in np.unique(hosts).tolist():
        rows = np.flatnonzero(hosts == host)
        if 1 < len(rows) < len(steps.class_ps):
            name = steps.core(int(rows[0])).rpartition(":")[0]
            yield _Group(f"Host {short(name) or host}", rows)


def _cores(steps: StepTimes) -> Iterator[_Group]:
    for core in range(len(steps.class_ps)):
        yield _Group(f"Core {short(steps.core(core))}", np.array([core]))


def _of(steps: StepTimes, *classes: OpClass) -> Floats:
    """float64[cores, steps]: time in some classes."""
    total: Floats = steps.class_ps[:, :, [OP_CLASSES.index(name) for name in classes]].sum(axis=2)
    return total


def _late(steps: StepTimes, group: _Group) -> _Late | None:
    """How late a group of cores is; None where it is not late."""
    others = np.setdiff1d(np.arange(len(steps.class_ps)), group.rows)
    busy = _of(steps, *_BUSY)
    theirs = medians(busy[others])
    late = (theirs > 0) & (busy[group.rows] >= BUSIER * theirs).all(axis=0)
    if late.sum() < _MOST_STEPS * len(late):
        return None

    def longer(values: Floats) -> Floats:
        """By how much the others take longer in something, by step."""
        more: Floats = medians(values[others]) - values[group.rows].mean(axis=0)
        return more

    excess = -longer(busy)
    collective, idle = longer(_of(steps, "collective")), longer(steps.gaps)
    waits = collective + idle
    if not 0 < _MOSTLY * excess.sum() <= waits.sum():
        return None  # nobody waits for it: it may have another task
    of_class: dict[OpClass, float] = {name: -float(longer(_of(steps, name)).mean()) for name in _BUSY}
    most = max(of_class, key=lambda name: of_class[name])
    in_collectives, in_gaps = max(0.0, float(collective.mean())), max(0.0, float(idle.mean()))
    return _Late(
        group=group,
        busy_ps=float(busy[group.rows].mean()),
        others_ps=float(theirs.mean()),
        worth_ps=float(min(excess.mean(), waits.mean())),
        collective_ps=in_collectives,
        idle_ps=in_gaps,
        steps=int(late.sum()),
        worst=int(excess.argmax()),
        most=(most, of_class[most]),
    )

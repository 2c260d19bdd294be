"""Findings about cores that are late: the others wait for them, in collectives, at barriers or idle."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from tpuprof.parsers.base.intervals import Bools, Floats, distinct, medians
from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.base.words import share, short, time
from tpuprof.parsers.pages.findings.budget import Budget, Claim, Rows, StepTimes
from tpuprof.parsers.pages.findings.finding import Finding, JumpTarget

BUSIER = 1.05
"""A core is late when it computes this much longer than the median of the others: single steps vary by 1-2 %."""

_MOSTLY = 0.5

_MOST_STEPS = 2 / 3
"""A straggler is late in at least this share of the steps; a core that is late now and then is none."""

_LEAST_STEPS = 3
_LEAST_WAIT = 0.01
"""The others wait at least this share of step time for a straggler; steps vary by less anyway."""

_SLOWER = 1.02
"""A core is slower than the others from this multiple on, if it is so at nearly all ops."""

_NEARLY_ALL = 0.9
_LEAST_OPS = 5

LEAST_LATE = 0.02
"""A host is late if the others wait at least this share of step time for it."""

_FEW = 4
"""One core in this many may be a straggler; where more are late, the work is divided unevenly on purpose."""

_BUSY: tuple[OpClass, ...] = ("compute", "vector", "copy", "unknown")


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


@dataclass(frozen=True, slots=True)
class _Late:
    """Some cores that are late.

    Attributes:
        label: their name in sentences.
        rows: indices of the cores.
        steps: in how many steps they are late.
        own_ps, others_ps: float64[steps], how long they compute (or are idle), and the median of the others.
        collective_ps, idle_ps: how much longer the others are in collectives, and idle, in a mean step.
        worth_ps: how much longer the others wait than they, at most how much longer they compute, in a mean step.
    """

    label: str
    rows: Rows
    steps: int
    own_ps: Floats
    others_ps: Floats
    collective_ps: float
    idle_ps: float
    worth_ps: float


def straggling(budget: Budget) -> Claim:
    """A core, or all cores of a host, that computes longer than the others in most steps while these wait for it."""
    steps = budget.steps
    if steps is None or len(steps) < _LEAST_STEPS or len(steps.class_ps) < 2:
        return Claim()
    busy = steps.of(*_BUSY)
    slower = _slower(budget)
    late = _Waits(steps, busy, BUSIER).latest()
    if late is None and slower is not None:
        late = _Waits(steps, busy, _SLOWER).latest()
    if late is None or late.worth_ps < _LEAST_WAIT * budget.whole_ps:
        return Claim()
    if slower is not None and slower.core not in late.rows:
        slower = None
    of_late, others = float(late.own_ps.mean()), float(late.others_ps.mean())
    if not others > 0:  # the others have another task
        return Claim()
    excess = {kind: -float(RankedTimes(steps.of(kind)).longer(late.rows).mean()) for kind in _BUSY}
    most = max(_BUSY, key=lambda kind: excess[kind])
    title, words = f"{late.label} computes {share(of_late / others - 1)} longer than the others", ""
    if slower is not None and len(late.rows) == 1:
        title = f"{late.label} is {share(slower.factor - 1)} slower than the others at the same ops"
        words = f"It is slower at {slower.at} of the {counted(slower.ops, 'largest op')}: the chip, not its work."
    finding = budget.finding(
        "straggler" if slower is None or len(late.rows) > 1 else "slow-core",
        title,
        late.worth_ps,
        "Time by which its ops, collectives aside, take longer than the others' median, as far as those wait for it.",
        [
            f"It computes {time(of_late)} a step, the median of the others {time(others)}; "
            f"so in {late.steps:,} of {counted(len(steps), 'step')}.",
            f"The others are {time(late.collective_ps)} longer in collectives, {time(late.idle_ps)} longer idle.",
            words or (f"It has most more of {most} ops, {time(excess[most])} a step." if excess[most] > 0 else ""),
        ],
        JumpTarget("timeline", steps.grid.names[int((late.own_ps - late.others_ps).argmax())]),
        is_estimate=True,
    )
    return _claim(steps, finding, late)


def _claim(steps: StepTimes, finding: Finding | None, late: _Late, own_idle_ps: float = 0.0) -> Claim:
    """What a finding about late cores takes from others: what the others wait, as a mean over all cores."""
    worth = late.worth_ps * (1 - len(late.rows) / len(steps.class_ps))
    in_collectives = worth * late.collective_ps / max(late.collective_ps + late.idle_ps, 1.0)
    own = own_idle_ps * len(late.rows) / len(steps.class_ps)
    return Claim(finding, in_collectives, worth - in_collectives + own)


def late_host(budget: Budget) -> Claim:
    """A host whose cores get their work later than those of the others, which wait for them in collectives."""
    steps = budget.steps
    if steps is None or len(steps) < _LEAST_STEPS or len(distinct(steps.grid.hosts)) < 2:
        return Claim()
    late = _Waits(steps, steps.gaps, 1.0, _LEAST_WAIT * budget.whole_ps).latest(whole_hosts=True)
    if late is None or late.worth_ps < LEAST_LATE * budget.whole_ps or late.collective_ps < late.idle_ps:
        return Claim()
    label = late.label if late.label.startswith("Host") else f"The host of {late.label.lower()}"
    finding = budget.finding(
        "host",
        f"{label} starts its cores later than the others",
        late.worth_ps,
        "Time by which its cores are idle longer than the others' median, as far as those wait for it in collectives.",
        [
            f"Its cores are idle for {time(float(late.own_ps.mean()))} a step, those of the others for "
            f"{time(float(late.others_ps.mean()))}; so in {late.steps:,} of {counted(len(steps), 'step')}.",
            f"Meanwhile the others are {time(late.collective_ps)} longer in collectives.",
        ],
        JumpTarget("timeline", steps.grid.names[int((late.own_ps - late.others_ps).argmax())]),
    )
    return _claim(steps, finding, late, late.worth_ps)


@dataclass(frozen=True, slots=True)
class _Slower:
    """A core that is slower at the same ops: which, by what factor, at how many of how many ops."""

    core: int
    factor: float
    at: int
    ops: int


def _slower(budget: Budget) -> _Slower | None:
    """The core that takes longer than the others for nearly all of the largest ops; None where none does."""
    known, steps = budget.evidence.core_ops, budget.steps
    if known is None or steps is None or len(known.cores) < 3:
        return None
    table = budget.evidence.table
    kinds = dict(zip(zip(table.program_id.tolist(), table.name, strict=True), table.classes(), strict=True))
    works = np.array([kinds.get(op, "idle") in _BUSY for op in known.ops], np.bool_)
    chosen = works & (known.self_ps > 0).all(axis=0) & (known.occurrences == known.occurrences[0]).all(axis=0)
    times = known.self_ps[:, chosen].astype(np.float64)
    if times.shape[1] < _LEAST_OPS:
        return None
    factors = times / medians(times)
    # weighted by time: what a core takes longer in all
    overall = times.sum(axis=1) / medians(times).sum()
    core = int(overall.argmax())
    at = int((factors[core] >= 1 + (overall[core] - 1) / 2).sum())
    if overall[core] < _SLOWER or at < _NEARLY_ALL * times.shape[1]:
        return None
    if known.cores[core] not in steps.grid.core_names:
        return None
    return _Slower(steps.grid.core_names.index(known.cores[core]), float(overall[core]), at, times.shape[1])


def _hosts(steps: StepTimes, late: Rows) -> Iterator[tuple[str, Rows]]:
    """Label and cores of each host with several cores that may all be late; a host with one is late as that core."""
    hosts = steps.grid.hosts[: len(steps.class_ps)]
    cores, late_cores = np.bincount(hosts), np.bincount(hosts[late], minlength=int(hosts.max()) + 1)
    for host in np.flatnonzero((cores > 1) & (cores == late_cores) & (cores < len(hosts))).tolist():
        rows = np.flatnonzero(hosts == host)
        yield f"Host {short(steps.core(int(rows[0])).rpartition(':')[0]) or host}", rows


class _Waits:
    """What some cores may have more of than the others, and how long these wait, ranked when they are asked for.

    Args:
        own: float64[cores, steps], what they may have more of.
        factor, more_ps: by how much more than the others' median.
    """

    def __init__(self, steps: StepTimes, own: Floats, factor: float, more_ps: float = 0.0) -> None:
        self.steps, self.factor, self.more_ps = steps, factor, more_ps
        self.own = RankedTimes(own)

    @cached_property
    def collective(self) -> RankedTimes:
        return RankedTimes(self.steps.of("collective"))

    @cached_property
    def idle(self) -> RankedTimes:
        return RankedTimes(self.steps.gaps)

    def maybe_late(self) -> Rows:
        """The cores that may be late: compared with the least that the median of the others can be."""
        hosts = self.steps.grid.hosts[: len(self.own.values)]
        fewest = len(hosts) - np.maximum(1, np.bincount(hosts)[hosts])  # others of a core, or of its whole host
        least = self.own.ordered[np.maximum(0, fewest - 1) // 2]
        late = self.own.values >= self.factor * least + self.more_ps
        return np.flatnonzero(late.sum(axis=1) >= _MOST_STEPS * late.shape[1])

    def latest(self, whole_hosts: bool = False) -> _Late | None:
        """The cores of a host, else one core, that have most more than the others; None where none has.

        Args:
            whole_hosts: whether only all cores of a host count, as far as hosts have several.
        """
        maybe = self.maybe_late()
        candidates = list(filter(None, (self._late(*cores) for cores in _hosts(self.steps, maybe))))
        hosts = self.steps.grid.hosts
        if not candidates and not (whole_hosts and len(distinct(hosts)) < len(hosts)):
            cores = [(f"Core {short(self.steps.core(core))}", np.array([core])) for core in maybe.tolist()]
            candidates = list(filter(None, (self._late(*core) for core in cores)))
            if not 0 < len(candidates) <= max(1, len(self.steps.class_ps) // _FEW):
                return None
        return max(candidates, key=lambda late: late.worth_ps, default=None)

    def _late(self, label: str, rows: Rows) -> _Late | None:
        """How late some cores are; None where they are not late."""
        own, others = self.own.values[rows], self.own.others(rows)
        late: Bools = np.all((own > 0) & (own >= self.factor * others + self.more_ps), axis=0)
        if late.sum() < _MOST_STEPS * len(late):
            return None
        excess = -self.own.longer(rows)
        collective, idle = self.collective.longer(rows), self.idle.longer(rows)
        lost = np.maximum(collective, 0.0) + np.maximum(idle, 0.0)
        if not 0 < _MOSTLY * excess.sum() <= lost.sum():
            return None  # nobody waits for it: it may have another task
        in_collectives, in_gaps = max(0.0, float(collective.mean())), max(0.0, float(idle.mean()))
        worth = float(min(excess.mean(), lost.mean()))
        return _Late(label, rows, int(late.sum()), own.mean(axis=0), others, in_collectives, in_gaps, worth)


# --- barriers ------------------------------------------------------------------------------------------------------

LEAST_BARRIER = 0.02
"""Cores wait a little before every program; from this share of the time on it matters. XProf speaks from 10 % on."""

_LATE = 0.5
"""A core that waits less than this share of the mean is what the others wait for."""


def at_barriers(budget: Budget, claimed_ps: float) -> Claim:
    """Time in which cores wait for one another at barriers (`barrier-cores`), which is idle time of theirs.

    Args:
        claimed_ps: idle time that other findings count.
    """
    waits, steps = budget.evidence.barriers, budget.steps
    if len(waits) < 2:
        return Claim()
    idle = budget.class_ps["idle"]
    if steps is not None:
        idle = float(steps.gaps.mean()) + budget.between_ps
    parts = 1 if steps is None else len(steps)
    mean = sum(waits.values()) / len(waits) / parts
    worth = min(mean, idle - claimed_ps)
    if worth < LEAST_BARRIER * budget.whole_ps:
        return Claim()
    least, most = min(waits, key=waits.__getitem__), max(waits, key=waits.__getitem__)
    late = waits[least] / parts < _LATE * mean
    title = f"Cores wait for core {least} at barriers" if late else "Cores wait for each other at barriers"
    a_step = "" if steps is None else " a step"
    spread = f"Core {most} waits longest, {time(waits[most] / parts)}{a_step}; core {least} shortest, "
    spread += f"{time(waits[least] / parts)}" + (": it comes last." if late else ".")
    finding = budget.finding(
        "barrier",
        title,
        worth,
        "Mean over cores of the time in barrier-cores events, up to the idle time that no other finding counts.",
        [f"No op runs while cores wait at barriers, {budget.amount(worth)}.", spread],
        JumpTarget("timeline"),
    )
    return Claim(finding, 0.0, worth)

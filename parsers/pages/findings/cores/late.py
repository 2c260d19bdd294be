"""Findings about cores that are late: the others wait for them, in collectives, at barriers or idle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from tpuprof.parsers.base.intervals import Bools, Floats, distinct, median
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.text import counted, examples
from tpuprof.parsers.base.words import sentence_name, share, shortened, time
from tpuprof.parsers.files.core_names import host_of
from tpuprof.parsers.ops.host_events.activity import IdleTime
from tpuprof.parsers.pages.findings.budget import IDLE_OWNERS, NOTHING, Budget, Claimed, Steps, detects
from tpuprof.parsers.pages.findings.claims import COLLECTIVE_OWNERS, NO_CLAIM, Claim, Rows, filled
from tpuprof.parsers.pages.findings.cores.same_ops import BUSY_OWNERS, SLOWER, SlowerCore, slower_core
from tpuprof.parsers.pages.findings.finding import CORES, STEPS, JumpTarget, Kind
from tpuprof.parsers.pages.findings.idle.meanwhile import behind_one_pool, do_the_same, main_activity, titled
from tpuprof.parsers.pages.findings.idle.waiting import HOST, IDLE, SERVING, gaps_of_all, waits_for_the_last
from tpuprof.parsers.pages.findings.when import When, when
from tpuprof.parsers.steps.accounts.owners import WAITS, Owner

BUSIER = 1.05
"""A core is late when it computes this much longer than the median of the others: single steps vary by 1-2 %."""

STANDS_OUT = 4.0
"""From `SLOWER` on it is late, too, where its excess is this many times that of the next busiest of the others."""

_MOSTLY = 0.5

_MOST = 2 / 3
"""Cores are late if they are so in at least this share of the steps, or if at least this share of the time by which any
core is late is theirs, more than half where they are late at a rhythm. A core that is late now and then, as others are,
is none."""

_LEAST_STEPS = 3
_LEAST_WAIT = 0.01
"""The others wait at least this share of step time for a straggler; steps vary by less anyway."""

LEAST_LATE = 0.02
"""A host is late if the others wait at least this share of step time for it."""

_UNLIKE = 2.0
"""All hosts pause in a step in which they are idle for more than this multiple of the median step's idle time."""

_SHARED = 0.25
"""Hosts have one cause to be late where the others are idle for at least this share of the time of the latest one."""

_FEW = 4
"""One core in this many may be a straggler; where more are late, the work is divided unevenly on purpose."""


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

    def next_of_others(self, rows: Rows) -> Floats:
        """float64[steps]: the most that any core but some has."""
        return self._of_others(len(self.values) - len(rows) - 1, np.sort(self._rank[rows], axis=0))

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
        late: bool[steps], in which steps they are late; when: the same in words.
        excess_ps: float64[steps], by how much; below 0 where they are early.
        own_ps, others_ps: float64[steps], how long they compute (or are idle), and the median of the others.
        collective_ps, idle_ps: how much longer the others are in collectives, and idle, in a mean step.
        worth_ps: how much longer the others wait than they, at most how much longer they compute, in a mean step.
    """

    label: str
    rows: Rows
    late: Bools
    excess_ps: Floats
    when: When
    own_ps: Floats
    others_ps: Floats
    collective_ps: float
    idle_ps: float
    worth_ps: float

    @property
    def name(self) -> str:
        """The name of the core, or of the host, by itself."""
        return self.label.partition(" ")[2]

    @property
    def factor(self) -> float:
        """How many times as long as the others they take in the steps in which they are late."""
        return float(self.own_ps[self.late].mean() / max(float(self.others_ps[self.late].mean()), 1.0))

    def step(self, steps: Steps) -> JumpTarget:
        """The step in which they are latest."""
        return JumpTarget("timeline", steps.names[int((self.own_ps - self.others_ps).argmax())])


SLOW_CORE = Kind(
    "slow-core",
    "a slow core",
    advice="Check that chip's clock, temperature and power; have it replaced if it stays slow.",
    rank=9,
    owners=WAITS,
    needs=(CORES, STEPS),
    page="cores",
)


@detects(SLOW_CORE)
def slow_core(budget: Budget) -> Claimed:
    """A core that is slower than the others at the same ops, while these wait for it: its chip is slow."""
    slower, steps = slower_core(budget), budget.steps
    late = _latest(budget, slower)
    if steps is None or slower is None or late is None or late.rows.tolist() != [slower.core]:
        return NOTHING
    claim = _claim(budget, late, BUSY_OWNERS)
    budget.needs(claim.worth_ps, _LEAST_WAIT)
    of_it = slower.factor - 1 if not late.when.is_regular else late.factor - 1
    which = f"{late.label} is"
    if len(slower.too) == 1:
        which = f"Cores {late.name} and {shortened(steps.core(slower.too[0][0]))} are up to"
    elif slower.too:
        which = f"{late.label} and {len(slower.too):,} others are up to"
    return budget.finding(
        SLOW_CORE,
        claim,
        f"{which} {share(of_it)} slower than the others at the same {slower.what}s{late.when.after}",
        _LONGER,
        [
            *_sentences(late, steps),
            f"It is slower at {slower.at} of the {counted(slower.ops, f'largest {slower.what}')}: the chip is "
            "slow, its work is the same.",
            _slow_too(slower, late, steps),
        ],
        late.step(steps),
        is_estimate=True,
    )


def _slow_too(slower: SlowerCore, late: _Late, steps: Steps) -> str:
    """A sentence on other slow cores, and what the slowest one alone costs; empty where there are none."""
    if not slower.too:
        return ""
    named = examples([f"{shortened(steps.core(core))} by {share(factor - 1)}" for core, factor in slower.too], _FEW)
    next_ps = RankedTimes(steps.of(*BUSY_OWNERS)).next_of_others(late.rows)
    alone = float(np.maximum(late.own_ps - next_ps, 0.0).mean())
    return f"Slow too: {named}. Without core {late.name} alone, a step takes {time(alone)} less."


_LONGER = "Time by which its ops, without collectives, exceed the others' median, as far as the others wait for it."

STRAGGLER = Kind(
    "straggler",
    "stragglers",
    advice="Balance the cores' work: the shards, the batch, or work that only this core or host does.",
    rank=10,
    owners=WAITS,
    needs=(CORES, STEPS),
    page="cores",
    unless=("slow-core", "imbalance", "pipeline"),
)


@detects(STRAGGLER)
def straggling(budget: Budget) -> Claimed:
    """A core, or all cores of a host, that computes longer than the others while these wait for it."""
    late, steps = _latest(budget, slower_core(budget)), budget.steps
    if steps is None or late is None or not float(late.others_ps.mean()) > 0:  # the others have another task
        return NOTHING
    claim = _claim(budget, late, BUSY_OWNERS)
    budget.needs(claim.worth_ps, _LEAST_WAIT)
    excess = {owner: -float(RankedTimes(steps.of(owner)).longer(late.rows).mean()) for owner in BUSY_OWNERS}
    most = max(BUSY_OWNERS, key=lambda owner: excess[owner])
    return budget.finding(
        STRAGGLER,
        claim,
        f"{late.label} computes {share(late.factor - 1)} longer than the others{late.when.after}",
        _LONGER,
        [
            *_sentences(late, steps),
            f"Of this, {time(excess[most])} a step is time {_TIME[most]}." if excess[most] > 0 else "",
        ],
        late.step(steps),
        is_estimate=True,
    )


_TIME: Mapping[Owner, str] = {
    "loss": "below the roof of its ops",
    "ideal": "at the roof of its ops",
    "uncounted": "in ops of unknown work",
    "copy": "in copies",
}


def _latest(budget: Budget, slower: SlowerCore | None) -> _Late | None:
    """The cores that compute longer than the others, as far as it matters; a slower core is late from less on."""
    steps = budget.steps
    if steps is None or len(steps) < _LEAST_STEPS or steps.core_count < 2:
        return None
    busy = steps.of(*BUSY_OWNERS)
    late = _Waits(steps, busy, BUSIER).latest()
    if late is None:
        late = _Waits(steps, busy, SLOWER, apart=0.0 if slower is not None else STANDS_OUT).latest()
    return None if late is None or late.worth_ps < _LEAST_WAIT * budget.whole_ps else late


def _sentences(late: _Late, steps: Steps) -> Iterator[str]:
    """How long late cores compute in the steps in which they are late, and what the others do meanwhile."""
    yield late.when.sentence("it is behind the others by")
    yield (
        f"It computes for {time(float(late.own_ps[late.late].mean()))} a step, the median of the others for "
        f"{time(float(late.others_ps[late.late].mean()))}; this holds for {int(late.late.sum()):,} of "
        f"{counted(len(steps), 'step')}."
    )
    yield f"The others spend {time(late.collective_ps)} more in collectives and idle for {time(late.idle_ps)} more."


def _claim(budget: Budget, late: _Late, owners: Sequence[Owner]) -> Claim:
    """What late cores have more than the others, and what these wait for them: about the same on each core.

    Args:
        owners: of what late cores have more.

    Returns:
        Nothing where the others wait for less than half as long: something else has their time.
    """
    more = np.where(late.late, np.maximum(late.excess_ps, 0.0), 0.0)
    more *= late.worth_ps / float(more.mean())
    mine = np.zeros((len(budget.cells), 1, 1))
    mine[late.rows] = 1.0
    cells = budget.cells * late.late[:, None]
    theirs = filled(cells * (1.0 - mine), (*WAITS, *IDLE_OWNERS), more)
    if float(theirs.sum()) < _MOSTLY * float(more.sum()) * (len(cells) - len(late.rows)):
        return NO_CLAIM
    return Claim.of_cells(theirs + filled(cells * mine, owners, more))


@detects(HOST, IDLE, SERVING)
def late_host(budget: Budget) -> Claimed:
    """A host whose cores get their work later than those of the others, which wait for them in collectives.

    Where all hosts wait for the same kind of work, none is the late one: then it is what all cores are idle for.
    """
    steps = budget.steps
    if steps is None or len(steps) < _LEAST_STEPS or len(distinct(steps.account.hosts)) < 2:
        return NOTHING
    late = _Waits(steps, steps.of(*IDLE_OWNERS), 1.0, _LEAST_WAIT * budget.whole_ps, fewest=1).latest(whole_hosts=True)
    if late is None:
        return _in_turns(budget, steps)
    if late.worth_ps < LEAST_LATE * budget.whole_ps or late.collective_ps < late.idle_ps:
        return NOTHING
    late, pauses = _but_for_pauses_of_all(late)
    is_shared = float(late.others_ps[late.late].mean()) >= _SHARED * float(late.own_ps[late.late].mean())
    hosts = dict.fromkeys(host_of(name) for name in steps.account.core_names)
    of_hosts = [budget.evidence.host_gaps.get(host, IdleTime()) for host in hosts]
    if is_shared and (behind_one_pool(of_hosts) or do_the_same(of_hosts, _MOSTLY * int(late.late.sum()))):
        return gaps_of_all(budget, True)
    claim = _claim(budget, late, IDLE_OWNERS)
    budget.needs(claim.worth_ps, LEAST_LATE)
    calm = late.late & ~pauses
    in_collectives = late.collective_ps
    if pauses.any():
        in_collectives = float(RankedTimes(steps.of(*COLLECTIVE_OWNERS)).longer(late.rows)[calm].mean())
    label = late.label if late.label.startswith("Host") else f"The host of core {late.name}"
    host = host_of(steps.core(int(late.rows[0])))
    gaps = budget.evidence.host_gaps.get(host, IdleTime())
    doing = main_activity(gaps)
    if doing is not None and doing.occurrences < _MOSTLY * late.late.sum():
        doing = None  # it is late without that too
    title = f"{label} starts its cores later than the others{late.when.after}"
    if doing is not None:
        rhythm = f"{late.when.after}: it is in" if late.when.words else " while it runs"
        title = f"{label} starts its cores late{rhythm} {titled(doing.name)}"
    return budget.finding(
        HOST,
        claim,
        title,
        "Time by which its cores are idle beyond the others' median, as far as the others wait for it in collectives.",
        [
            late.when.sentence("its cores are idle longer than the others by"),
            f"Its cores are idle for {time(float(late.own_ps[calm].mean()))} a step, those of the others for "
            f"{time(float(late.others_ps[calm].mean()))}; this holds for {int(calm.sum()):,} of "
            f"{counted(len(steps), 'step')}.",
            f"In {int(pauses.sum()):,} more, all hosts pause: there its delay counts for no more than in the others."
            if pauses.any()
            else "",
            f"Meanwhile the others spend {time(in_collectives)} more in collectives.",
            ""
            if doing is None
            else f"In its long gaps {sentence_name(doing.thread) or 'a host thread'} is in {sentence_name(doing.name)} "
            f"for {share(min(1.0, doing.overlap_ps / max(gaps.gap_ps, 1)))} of the time "
            f"({counted(doing.occurrences, 'time')}).",
        ],
        late.step(steps),
    )


def _in_turns(budget: Budget, steps: Steps) -> Claimed:
    """Hosts of which now one and now another is late, such as for garbage collection: one cause, whoever has it.

    What the others wait in such a step belongs to the host that is late in it.
    """
    hosts, idle = steps.account.hosts, steps.of(*IDLE_OWNERS)
    of_host = np.stack([idle[hosts == host].mean(axis=0) for host in distinct(hosts).tolist()])
    latest, usual = of_host.argmax(axis=0), np.median(of_host, axis=0)
    excess = of_host.max(axis=0) - usual
    late = excess >= _LEAST_WAIT * budget.whole_ps
    if len(distinct(latest[late].astype(np.int64))) < 2:
        return NOTHING
    waits = waits_for_the_last(budget, idle).cells.sum(axis=2)
    others = hosts[:, None] != distinct(hosts)[latest]
    waited = np.where(others & late, waits, 0.0)
    if waited.mean() < LEAST_LATE * budget.whole_ps or waited.sum() < _MOSTLY * (others * excess * late).sum():
        return NOTHING
    return gaps_of_all(budget, True)


def _but_for_pauses_of_all(late: _Late) -> tuple[_Late, Bools]:
    """A late host, and bool[steps]: where all hosts pause, such as for a checkpoint that all of them write.

    By how much longer one of them pauses then is part of that pause: there it is as late as elsewhere, and no later.
    """
    usual = median(late.others_ps)
    pauses = late.late & (late.others_ps > _UNLIKE * usual) & (late.others_ps > usual + late.excess_ps)
    if not pauses.any() or not (late.late & ~pauses).any():
        return late, np.zeros(len(pauses), np.bool_)
    most = median(late.excess_ps[late.late & ~pauses])
    excess = np.where(pauses, np.minimum(late.excess_ps, most), late.excess_ps)
    worth = late.worth_ps * float(excess.mean() / late.excess_ps.mean())
    return replace(late, excess_ps=excess, worth_ps=worth), pauses


def _hosts(steps: Steps, late: Rows) -> Iterator[tuple[str, Rows]]:
    """Label and cores of each host with several cores that may all be late; a host with one is late as that core."""
    hosts = steps.account.hosts
    cores, late_cores = np.bincount(hosts), np.bincount(hosts[late], minlength=int(hosts.max()) + 1)
    for host in np.flatnonzero((cores > 1) & (cores == late_cores) & (cores < len(hosts))).tolist():
        rows = np.flatnonzero(hosts == host)
        yield f"Host {shortened(steps.core(int(rows[0])).rpartition(':')[0]) or host}", rows


class _Waits:
    """What some cores may have more of than the others, and how long these wait, ranked when they are asked for.

    Args:
        own: float64[cores, steps], what they may have more of.
        factor, more_ps: by how much more than the others' median.
        apart: how many times as far from that as the next of the others.
        fewest: steps in which they have it. A host that pauses once is late; a chip that is slow once is not.
    """

    def __init__(
        self,
        steps: Steps,
        own: Floats,
        factor: float,
        more_ps: float = 0.0,
        apart: float = 0.0,
        fewest: int = _LEAST_STEPS,
    ) -> None:
        self.steps, self.factor, self.more_ps, self.apart = steps, factor, more_ps, apart
        self.fewest = fewest
        self.own = RankedTimes(own)

    @cached_property
    def collective(self) -> RankedTimes:
        return RankedTimes(self.steps.of(*COLLECTIVE_OWNERS))

    @cached_property
    def idle(self) -> RankedTimes:
        return RankedTimes(self.steps.of("barrier", *IDLE_OWNERS))

    def maybe_late(self) -> Rows:
        """The cores that may be late: compared with the least that the median of the others can be."""
        hosts = self.steps.account.hosts
        fewest = len(hosts) - np.maximum(1, np.bincount(hosts)[hosts])  # others of a core, or of its whole host
        least = self.own.ordered[np.maximum(0, fewest - 1) // 2]
        late = self.own.values >= self.factor * least + self.more_ps
        return np.flatnonzero(late.sum(axis=1) >= min(self.fewest, _MOST * late.shape[1]))

    @cached_property
    def lateness(self) -> float:
        """The time by which any core is later than the first one, over all steps in which one is late."""
        most, least = self.own.ordered[-1], self.own.ordered[0]
        return float((most - least)[most >= self.factor * least + self.more_ps].sum())

    def latest(self, whole_hosts: bool = False) -> _Late | None:
        """The cores of a host, else one core, that have most more than the others; None where none has.

        Args:
            whole_hosts: whether only all cores of a host count, as far as hosts have several.
        """
        maybe = self.maybe_late()
        candidates = list(filter(None, (self._late(*cores) for cores in _hosts(self.steps, maybe))))
        hosts = self.steps.account.hosts
        if not candidates and not (whole_hosts and len(distinct(hosts)) < len(hosts)):
            cores = [(f"Core {shortened(self.steps.core(core))}", np.array([core])) for core in maybe.tolist()]
            candidates = list(filter(None, (self._late(*core) for core in cores)))
            if not 0 < len(candidates) <= max(1, self.steps.core_count // _FEW):
                return None
        return max(candidates, key=lambda late: late.worth_ps, default=None)

    def _late(self, label: str, rows: Rows) -> _Late | None:
        """How late some cores are; None where they are not late."""
        own, others = self.own.values[rows], self.own.others(rows)
        late: Bools = np.all((own > 0) & (own >= self.factor * others + self.more_ps), axis=0)
        if self.apart:
            late &= np.all(own - others >= self.apart * (self.own.next_of_others(rows) - others), axis=0)
        excess = -self.own.longer(rows)
        if not late.any():
            return None
        timing = when(np.where(late, excess, 0.0), self.steps.names, _LEAST_WAIT * float(excess[late].mean()))
        theirs = float(excess[late].sum()) / max(self.lateness, 1.0)
        is_theirs = theirs >= _MOST or (timing.is_regular and theirs > _MOSTLY)
        if late.sum() < _MOST * len(late) and (late.sum() < self.fewest or not is_theirs):
            return None
        collective, idle = self.collective.longer(rows), self.idle.longer(rows)
        lost = np.maximum(collective, 0.0) + np.maximum(idle, 0.0)
        if not 0 < _MOSTLY * excess.sum() <= lost.sum():
            return None  # nobody waits for it: it may have another task
        in_collectives, in_gaps = max(0.0, float(collective.mean())), max(0.0, float(idle.mean()))
        worth = float(min(excess.mean(), lost.mean()))
        return _Late(label, rows, late, excess, timing, own.mean(axis=0), others, in_collectives, in_gaps, worth)

"""How far the clocks of hosts are apart, by the collectives that both ran.

Nobody leaves an all-reduce before everybody has come to it. So each collective that two hosts share says that one's
clock can't be further ahead of the other's than from its arrival there to the end here, and the other way round.

A core that waits for a collective leaves it when it is complete, as all who wait do, at the same time. Where both hosts
waited, the ends, each by its host's clock, are as far apart as the clocks are. Of all these the densest half says how
far that is; others that are close to it count too, and how far they scatter is the error. One that is asynchronous may
be complete before its host asks: then it only gives bounds, and so do all of them where one host is always late.

What a host sends to a single other one (collective-permute, send, recv) is left out. Which steps of two hosts are the
same is a matter of `parsers.steps.boundaries.matching`; hosts without steps are matched by their collectives, as if
these were the steps.

The captures' beginnings by the hosts' own clocks count where they agree with the bounds, or where there are none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Int64s, distinct, interval_index, no_ints, numbered, opens, positions
from tpuprof.parsers.base.record import Sized, dataclass, replace
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.steps.boundaries.matching import CLOCKS_APART_PS, HostSteps, by_name, matched, repeats
from tpuprof.parsers.timeline.model import CLASSES, Clock, Section, Timeline, Track
from tpuprof.parsers.timeline.read.async_ops import op_pairs

MOST_RUNS = 1 << 14
"""Of a host so many collectives are looked at, the first ones."""

_UNKNOWN = np.iinfo(np.int64).min
_NAME_SEEN = 200
_LEAST = 3
"""Fewer collectives may agree by chance."""

_FLOOR_PS = 1_000_000
"""Ends that are no further from the densest half's middle than this always count; a microsecond is below any effect."""

_NEAR = 8
"""Ends that are so many times further from the middle than the densest half reaches still count."""

_NINE_IN_TEN = 0.9
_COLLECTIVE = CLASSES.index("collective")
_NOT_OF_ALL = pattern(r"(?i)-start|permute|send|recv|partition-id")
_OUTLIERS = 0.02  # of the bounds, those at the end that are left out on either side: a pair may be of different runs
_DRIFT_PS = 50_000_000
"""Bounds that contradict each other by no more than this are of clocks that drift; by more, of other runs."""

_WAITED_PS = 1_000_000
"""An op that ends an asynchronous collective and takes no longer did not wait for it."""


@dataclass(frozen=True, slots=True, eq=False)
class CollectiveRuns(Sized):
    """The collectives that a core of a host ran, and what else says how its clock goes.

    Attributes:
        names, key: names of the collectives, and int64[n], which of them each run is of, in order of time.
        arrive_ps, end_ps: int64[n], when the core came to it, and when it was done with it, by the host's own clock.
        waited: int64[n], 1 where the core waited until it was complete, else 0.
        steps: the core's steps; None where nothing marks them.
        first_ps, last_ps: of the whole capture.
        began_ns: when the capture began by the host's clock, in nanoseconds since 1970; None where that is unknown.
    """

    sized_by = "key"
    names: tuple[str, ...]
    key: Int64s
    arrive_ps: Int64s
    end_ps: Int64s
    waited: Int64s
    steps: HostSteps | None
    first_ps: int
    last_ps: int
    began_ns: int | None

    @classmethod
    def of(cls, timeline: Timeline) -> CollectiveRuns:
        """Those of a host's first core, or GPU, that has any events; its times are by its own clock."""
        sections = (section for section in timeline.sections if section.kind in ("core", "gpu"))
        section = next((each for each in sections if any(map(len, each.tracks))), None)
        names, (key, arrive, end, waited) = _collectives(section)
        steps = None if section is None else _steps(section)
        return cls(names, key, arrive, end, waited, steps, timeline.first_ps, timeline.last_ps, timeline.began_ns)

    def later(self, by_ps: int) -> CollectiveRuns:
        """The same by a clock that is so much ahead."""
        steps = self.steps
        if steps is not None:
            steps = HostSteps(steps.names, steps.is_numbered, steps.start_ps + by_ps, steps.end_ps + by_ps)
        return replace(
            self,
            arrive_ps=self.arrive_ps + by_ps,
            end_ps=self.end_ps + by_ps,
            steps=steps,
            first_ps=self.first_ps + by_ps,
            last_ps=self.last_ps + by_ps,
        )


def _collectives(section: Section | None) -> tuple[tuple[str, ...], tuple[Int64s, ...]]:
    """Names, and key, arrival, end and whether it waited of each run, in order of arrival."""
    tracks = [] if section is None else [each for each in section.tracks if each.kind in ("ops", "stream")]
    known: dict[str, int] = {}
    columns = [(no_ints(),) * 4, *(_runs_of(track, known) for track in tracks)]
    joined = [np.concatenate(parts) for parts in zip(*columns, strict=True)]
    order = np.argsort(joined[1], kind="stable")[:MOST_RUNS]
    return tuple(known), tuple(column[order] for column in joined)


def _runs_of(track: Track, known: dict[str, int]) -> tuple[Int64s, ...]:
    """The same of one track; new names are put among the known ones."""
    number = np.full(len(track.names), -1, np.int64)
    is_done = np.zeros(len(track.names), np.bool_)
    for key in np.flatnonzero((track.names.classes == _COLLECTIVE) & (track.counts > 0)).tolist():
        name = track.names.name(key)
        if not _NOT_OF_ALL.search(name[:_NAME_SEEN]):
            number[key] = known.setdefault(name, len(known))
            is_done[key] = "-done" in name[:_NAME_SEEN]
    rows = np.flatnonzero(number[track.key] >= 0)
    arrive = track.start_ps[rows].copy()
    waits = is_done[track.key[rows]]
    if waits.any():
        starts, dones = op_pairs(track)
        begun = positions(rows[waits], distinct(dones))
        first = track.start_ps[starts[np.argsort(dones, kind="stable")]]
        arrive[waits] = np.where(begun >= 0, first[np.maximum(begun, 0)] if len(first) else 0, _UNKNOWN)
    waited = ~waits | (track.lasting[rows] > _WAITED_PS)
    kept = np.flatnonzero(arrive != _UNKNOWN)
    rows, arrive, waited = rows[kept], arrive[kept], waited[kept]
    return number[track.key[rows]], arrive, track.end_ps[rows], waited.astype(np.int64)


def _steps(section: Section) -> HostSteps | None:
    """The steps that a core's own marks give, in order."""
    track = next((each for each in section.tracks if each.kind == "steps" and len(each)), None)
    if track is None:
        return None
    lane = track.lane(0)
    start, end = track.start_ps[lane], track.end_ps[lane]
    return HostSteps(tuple(track.label(index) for index in range(lane.start, lane.stop)), True, start, end)


class HostClocks:
    """Brings the clocks of hosts to one axis: that of the first host that is read.

    The first host with collectives is the one that the others are compared with.
    """

    def __init__(self) -> None:
        self._axis: CollectiveRuns | None = None
        self._chief: CollectiveRuns | None = None  # by the axis' clock
        self._known: dict[str, Clock] = {}

    def clock(self, timeline: Timeline) -> Clock:
        """The clock of a host; the same one whenever it is asked for again."""
        known = self._known.get(timeline.path)
        if known is None:
            known = self._known[timeline.path] = self._new(CollectiveRuns.of(timeline))
        return known

    def _new(self, host: CollectiveRuns) -> Clock:
        clock = Clock()
        if self._axis is None:
            self._axis = host
        else:
            clock = clock_of(self._chief or self._axis, host, self._axis)
        if self._chief is None and len(host):
            self._chief = host.later(clock.shift_ps)
        return clock


def clock_of(chief: CollectiveRuns, host: CollectiveRuns, axis: CollectiveRuns) -> Clock:
    """How a host's clock comes to the axis' clock.

    Args:
        chief: a host that is there already, by the axis' clock.
        axis: the host whose clock is the axis.
    """
    by_start = _by_start_times(axis, host)
    found = [(shift, apart) for shift in {0, by_start or 0} if (apart := _apart(chief, host.later(shift))) is not None]
    shift, best = min(found, key=lambda each: (not each[1].is_exact, each[1].error_ps), default=(0, None))
    own = next((apart for shift, apart in found if shift == by_start and not apart.is_exact), None)
    if by_start is not None and (best is None or (not best.is_exact and own and abs(own.apart_ps) <= own.error_ps)):
        return Clock("start times", by_start, *((own.collectives, own.error_ps) if own else ()))
    if best is not None:
        return Clock("collectives", shift - best.apart_ps, best.collectives, best.error_ps)
    return Clock("none")


def _by_start_times(axis: CollectiveRuns, host: CollectiveRuns) -> int | None:
    """How much later a host's capture began than the axis' by their own clocks; None unless both ran at once then."""
    if axis.began_ns is None or host.began_ns is None:
        return None
    later = (host.began_ns - axis.began_ns) * 1000
    meet = host.first_ps + later < axis.last_ps and axis.first_ps < host.last_ps + later
    return later if meet else None


class _Apart(NamedTuple):
    """How far a host's clock is ahead of the chief's, give or take an error, by how many collectives.

    It is exact where both waited for these, and else the middle between bounds, half of which is the error.
    """

    apart_ps: int
    collectives: int
    error_ps: int
    is_exact: bool


def _apart(chief: CollectiveRuns, host: CollectiveRuns) -> _Apart | None:
    """What the collectives that two hosts share say; None where they share too few, or these do not agree."""
    ways = (_said(chief, host, *pairs) for pairs in _shared(chief, host))
    return next((said for said in ways if said is not None), None)


def _said(chief: CollectiveRuns, host: CollectiveRuns, mine: Int64s, its: Int64s) -> _Apart | None:
    """What pairs of runs say, if each is of one collective."""
    if len(mine) < _LEAST:
        return None
    waited, waits = chief.waited[mine] > 0, host.waited[its] > 0
    end, its_end = chief.end_ps[mine], host.end_ps[its]
    both = waited & waits
    exact = _densest(its_end[both] - end[both])
    if exact is not None and _have_met(chief, host, mine[both], its[both], exact):
        return exact
    # nobody leaves before the last one has come, or before it is complete, which is when one who waits leaves
    least = np.where(waits, its_end, host.arrive_ps[its]) - end
    most = its_end - np.where(waited, end, chief.arrive_ps[mine])
    low, high = int(np.quantile(least, 1 - _OUTLIERS)), int(np.quantile(most, _OUTLIERS))
    if low - high > _DRIFT_PS:
        return None
    low, high = min(low, high), max(low, high)
    error = (high - low + 1) // 2
    return _Apart(low + error, len(mine), error, False) if error <= CLOCKS_APART_PS else None


def _densest(apart: Int64s) -> _Apart | None:
    """Where most of some differences lie; None where too few do."""
    if len(apart) < _LEAST:
        return None
    apart = np.sort(apart)
    half = len(apart) // 2 + 1
    width = apart[half - 1 :] - apart[: len(apart) - half + 1]
    begin = int(width.argmin())
    middle = int(apart[begin + half // 2])
    off = np.abs(apart - middle)
    off = off[off <= max(_NEAR * int(width[begin]) // 2, _FLOOR_PS)]
    error = int(np.quantile(off, _NINE_IN_TEN))
    return _Apart(middle, len(off), error, True) if len(off) >= _LEAST and error <= CLOCKS_APART_PS else None


def _have_met(chief: CollectiveRuns, host: CollectiveRuns, mine: Int64s, its: Int64s, apart: _Apart) -> bool:
    """Whether most runs overlap if the clocks are so far apart: others can't be of one collective."""
    begin, end = host.arrive_ps[its] - apart.apart_ps, host.end_ps[its] - apart.apart_ps
    overlap = (end >= chief.arrive_ps[mine] - apart.error_ps) & (chief.end_ps[mine] >= begin - apart.error_ps)
    return 2 * int(np.count_nonzero(overlap)) > len(mine)


def _shared(chief: CollectiveRuns, host: CollectiveRuns) -> Iterator[tuple[Int64s, Int64s]]:
    """Which runs of two hosts may be of the same collectives: their indices on either, the likeliest way first.

    Steps of one name come first, where the program numbers them.
    """
    if not (len(chief) and len(host)):
        return
    ids = {name: number for number, name in enumerate(dict.fromkeys((*chief.names, *host.names)))}
    names = [np.array([ids[name] for name in each.names], np.int64)[each.key] for each in (chief, host)]
    if chief.steps is None or host.steps is None:
        mine, its = matched([_as_steps(chief), _as_steps(host)])
        same = names[0][mine] == names[1][its]
        yield mine[same].astype(np.int64), its[same].astype(np.int64)
        return
    of_steps = [chief.steps, host.steps]
    ways = [] if any(repeats(steps.names) for steps in of_steps) else [by_name([steps.names for steps in of_steps])[1]]
    for pairs in (*ways, matched(of_steps)):
        places = [_in_steps(each, rows) for each, rows in zip((chief, host), pairs, strict=True)]
        keys = [np.stack([step, name, _rank(step, name)]) for step, name in zip(places, names, strict=True)]
        number = numbered(*np.concatenate(keys, axis=1))
        rows = [np.flatnonzero(step >= 0) for step in places]
        of_rows = number[: len(chief)][rows[0]], number[len(chief) :][rows[1]]
        _, mine, its = np.intersect1d(*of_rows, return_indices=True)
        yield rows[0][mine].astype(np.int64), rows[1][its].astype(np.int64)


def _as_steps(host: CollectiveRuns) -> HostSteps:
    return HostSteps(tuple(host.names[key] for key in host.key.tolist()), False, host.arrive_ps, host.end_ps)


def _in_steps(host: CollectiveRuns, rows: NDArray[np.intp]) -> Int64s:
    """int64[n]: which of some of the host's steps each collective is in; -1 for none."""
    steps = host.steps
    assert steps is not None, "the caller has seen to that"
    of = interval_index(host.arrive_ps, steps.start_ps, steps.end_ps)
    shared = np.full(len(steps) + 1, -1, np.int64)  # the last one is for what is in no step
    shared[rows] = np.arange(len(rows))
    return shared[of]


def _rank(step: Int64s, name: Int64s) -> Int64s:
    """int64[n]: how many runs of the same name come before each one in its step."""
    order = np.lexsort((np.arange(len(step)), name, step))
    first = np.flatnonzero(opens(step[order], name[order]))
    group = np.cumsum(opens(step[order], name[order])) - 1
    rank = np.empty(len(step), np.int64)
    rank[order] = np.arange(len(step)) - first[group]
    return rank

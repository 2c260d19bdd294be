"""How long a host was profiled, and what was observed of each of its cores and GPUs in that time.

The profiler notes when it starts and stops, in nanoseconds since 1970, and the events of the file count from that
start. Where it noted nothing, or events lie far outside, the capture lasts from the file's first event to the last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tpuprof.parsers.base.intervals import Bools, Intervals
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.words import percent_of
from tpuprof.parsers.formats.xspace.trace import Plane

_OUTSIDE = 0.05
"""Events end after the noted stop by up to this share of the capture: the tracers stop one after the other."""

_OUTSIDE_PS = 100_000_000_000
"""They do so by up to a tenth of a second however short the capture is."""

_LONGEST_NS = 30 * 86400 * 10**9
"""No capture takes a month."""

Span = tuple[int, int]
"""Start and end on the trace's clock, in picoseconds."""


@dataclass(frozen=True, slots=True)
class Capture:
    """When a host was profiled.

    Attributes:
        span: from start to stop, on the trace's clock.
        is_noted: whether the profiler noted them; else they are those of the events.
    """

    span: Span
    is_noted: bool

    @property
    def length_ps(self) -> int:
        return self.span[1] - self.span[0]


@dataclass(frozen=True, slots=True)
class Ran:
    """When a core or a GPU ran ops, or programs whose ops were not recorded.

    Attributes:
        span: from the first start to the last end, on the trace's clock.
        gap: the longest time in between in which it ran none; empty where there is none.
    """

    span: Span
    gap: Span

    @classmethod
    def of(cls, busy: Intervals) -> Ran | None:
        """Of disjoint intervals in order; None without any."""
        if not len(busy[0]):
            return None
        first, last = int(busy[0][0]), int(busy[1][-1])
        if len(busy[0]) < 2:
            return cls((first, last), (last, last))
        longest = int((busy[0][1:] - busy[1][:-1]).argmax())
        return cls((first, last), (int(busy[1][longest]), int(busy[0][longest + 1])))


@dataclass(frozen=True, slots=True)
class Observed:
    """What was observed of a core or a GPU.

    Attributes:
        name: ``host:2``.
        capture: when its host was profiled.
        ran: when it ran ops; None where it ran none.
        busy_ps: how long ops ran, by the device's clock.
        lost_ps: how long more ran that were not recorded; None where that is unknown.
    """

    name: str
    capture: Capture
    ran: Ran | None
    busy_ps: int
    lost_ps: int | None

    @property
    def idle_ps(self) -> int | None:
        """The time of the capture in which no op ran; None where it is unknown."""
        if self.lost_ps is None:
            return None
        return max(0, self.capture.length_ps - self.busy_ps - self.lost_ps)

    @property
    def silence(self) -> Span | None:
        """The longest time of the capture in which it ran nothing; None where it never did, or that is unknown."""
        if self.ran is None or self.lost_ps is None:
            return None
        (start, stop), (first, last) = self.capture.span, self.ran.span
        spans = (start, max(start, first)), self.ran.gap, (min(last, stop), stop)
        return max(spans, key=lambda span: span[1] - span[0])


def idle_percent(observed: Sequence[Observed]) -> float | None:
    """The share of the capture in which cores or GPUs ran no op; None where it is unknown of any.

    Those that ran nothing at all do not count, unless none did: the program may not use them.
    """
    observed = [of for of in observed if of.ran is not None] or observed
    idle = [of.idle_ps for of in observed if of.idle_ps is not None]
    whole = sum(of.capture.length_ps for of in observed)
    return percent_of(sum(idle), whole) if len(idle) == len(observed) else None


_SEVERAL = 3
"""A thread that records nothing for so many steps, although it does in every other one, lost its events there."""


def without_record(threads: Sequence[Intervals], spans: Intervals) -> Bools:
    """bool[n]: the steps in which a thread of the host lost its events.

    Args:
        threads: start and end of each thread's events, in any order; most steps have some.
        spans: start and end of the steps, in order, on the trace's clock.
    """
    lost = np.zeros(len(spans[0]), np.bool_)
    for start, end in threads:
        order = np.argsort(start, kind="stable")
        latest = np.append(spans[0].min(initial=0) - 1, np.maximum.accumulate(end[order]))
        quiet = latest[np.searchsorted(start[order], spans[1])] <= spans[0]
        borders = np.flatnonzero(np.diff(np.concatenate([[False], quiet, [False]])))
        if 2 * np.count_nonzero(quiet) < len(quiet) and (borders[1::2] - borders[::2] >= _SEVERAL).all():
            lost |= quiet
    return lost


@dataclass(frozen=True, slots=True)
class WhenRan:
    """When some cores or GPUs ran something, counted from where the capture of their host began.

    Attributes:
        first_op_ps, last_op_ps: the first start and the last end; None where none ran.
        silence_ps: the longest time of the capture in which one that ran something ran nothing; None where unknown.
        busy_between_percent: how much of the time from the first start to the last end, as far as their hosts were
            profiled, those that ran something were busy; None where unknown.
    """

    first_op_ps: int | None
    last_op_ps: int | None
    silence_ps: int | None
    busy_between_percent: float | None

    @classmethod
    def of(cls, observed: Sequence[Observed]) -> WhenRan:
        ran = [(of, of.ran.span) for of in observed if of.ran is not None]
        silences = [silence[1] - silence[0] for of in observed if (silence := of.silence) is not None]
        first = min((span[0] - of.capture.span[0] for of, span in ran), default=None)
        last = max((span[1] - of.capture.span[0] for of, span in ran), default=None)
        seen = [min(last or 0, of.capture.length_ps) - (first or 0) for of, _ in ran]
        busy = [of.capture.length_ps - of.idle_ps for of, _ in ran if of.idle_ps is not None]
        share = percent_of(sum(busy), sum(seen)) if len(busy) == len(ran) else None
        return cls(first, last, max(silences, default=None), None if share is None else min(100.0, share))


def noted_span(environment: Plane | None) -> Span | None:
    """The start and stop that the profiler noted, on the trace's clock; None where it did not."""
    stats: Mapping[str, object] = {} if environment is None else environment.stats
    start, stop = stats.get("profile_start_time"), stats.get("profile_stop_time")
    if isinstance(start, int) and isinstance(stop, int) and 0 < stop - start < _LONGEST_NS and start > 0:
        return 0, (stop - start) * 1000
    return None


def capture_of(environment: Plane | None, spans: Sequence[Span]) -> Capture | None:
    """When a host was profiled; None where neither the profiler nor any event shows it.

    Args:
        spans: of the events of all lines.
    """
    noted, filled = noted_span(environment), [span for span in spans if span[1] > span[0]]
    if not filled:
        return None if noted is None else Capture(noted, True)
    seen = min(first for first, _ in filled), max(last for _, last in filled)
    if noted is None:
        return Capture(seen, False)
    far = max(int(_OUTSIDE * noted[1]), _OUTSIDE_PS)
    if seen[0] < -far or seen[1] > noted[1] + far:
        return Capture(seen, False)
    return Capture(noted, True)

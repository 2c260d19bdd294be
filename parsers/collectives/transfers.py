"""Transfers of one core: when each was under way, and what the core did meanwhile.

A transfer is one occurrence of a collective: a synchronous op's span, or the time from the begin of an asynchronous
op's start to the end of its done. What the core does at an instant is what its innermost op does. So a transfer's time
falls into three parts that add up to it:

* hidden: the core computes, copies, or runs ops of unknown class;
* exposed: the core is in one of the transfer's own ops, which is waiting, or moving data itself;
* beside: the core does neither: it is idle, in an op of another collective, or waits for the host.

So no instant counts as exposed for two collectives at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Int64s, Intervals, no_ints, ranges
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.xspace.core.api import nest, sum_by_key
from tpuprof.parsers.timeline.read.async_ops import latest

OTHER, WORK, COLLECTIVE = 0, 1, 2
"""What an op counts as: waiting for the host and the like; computing and copying; communication."""


@dataclass(frozen=True, slots=True)
class Transfers:
    """Transfers, in no particular order.

    Attributes:
        op: int64[n], which collective each is of.
        begin_ps, end_ps: int64[n].
        own_ps: int64[n], time in the transfer's own ops.
        at_ps: int64[n], when its first op starts on the trace's clock, which determines its step.
    """

    op: Int64s
    begin_ps: Int64s
    end_ps: Int64s
    own_ps: Int64s
    at_ps: Int64s

    def __len__(self) -> int:
        return len(self.op)

    def take(self, rows: Bools | NDArray[np.integer]) -> Transfers:
        """Some of them."""
        columns = (self.op, self.begin_ps, self.end_ps, self.own_ps, self.at_ps)
        return Transfers(*(column[rows] for column in columns))

    @classmethod
    def joined(cls, parts: Sequence[Transfers]) -> Transfers:
        """Those of several lists."""
        names = ("op", "begin_ps", "end_ps", "own_ps", "at_ps")
        return cls(*(np.concatenate([no_ints(), *(getattr(part, name) for part in parts)]) for name in names))


class InnermostOpTime:
    """How long a core did something up to an instant; at any time its innermost op decides what it does.

    Args:
        start, end: int64[n], the core's ops in the order that nesting needs.
        code: int64[n], what each counts as.
    """

    def __init__(self, start: Int64s, end: Int64s, code: NDArray[np.integer]) -> None:
        self._start, self._end, self._code = start, end, code
        self._parent = nest(start, end).parent

    def until(self, what: int) -> TimeUntil:
        """The time spent on it up to any instant."""
        inside = np.where(self._parent >= 0, self._code[np.maximum(self._parent, 0)] == what, False)
        weight = (self._code == what).astype(np.int64) - inside
        chosen = np.flatnonzero(weight)
        return TimeUntil(self._start[chosen], self._end[chosen], weight[chosen])


class TimeUntil:
    """The sum of weighted intervals up to an instant.

    Sums of products of times wrap around in 64 bits; the differences, which are what counts, come out right.
    """

    def __init__(self, start: Int64s, end: Int64s, weight: Int64s) -> None:
        self._sides = []
        for times in (start, end):
            order = np.argsort(times, kind="stable")
            ordered, weights = times[order], weight[order]
            before = np.append(0, np.cumsum(weights)), np.append(0, np.cumsum(weights * ordered))
            self._sides.append((ordered, *before))

    def __call__(self, times: Int64s) -> Int64s:
        """int64[n]: the sum up to each of some instants."""
        sums = np.zeros(len(times), np.int64)
        for sign, (ordered, weights, products) in zip((1, -1), self._sides, strict=True):
            at = np.searchsorted(ordered, times, side="left")
            sums += sign * (weights[at] * times - products[at])
        return sums

    def within(self, begin: Int64s, end: Int64s) -> Int64s:
        """int64[n]: the sum within each of some intervals."""
        return self(end) - self(begin)


def paired(
    op: Int64s, start: Int64s, end: Int64s, self_ps: Int64s, at: Int64s, is_done: Bools
) -> tuple[Transfers, int]:
    """Transfers of two ops each: a done belongs to the last start of its collective before it that has no done yet.

    Args:
        op: int64[n], the collective of each start and done.
        is_done: bool[n].

    Returns:
        The transfers. A half whose other half the capture does not have is left out: how many are.
    """
    starts, dones = np.flatnonzero(~is_done), np.flatnonzero(is_done)
    of_done = latest(op[starts], start[starts], op[dones], start[dones])
    dones, of_done = dones[of_done >= 0], of_done[of_done >= 0]
    first = np.lexsort((start[dones], of_done))
    kept = first[np.append(True, np.diff(of_done[first]) != 0)[: len(first)]]
    begins, ends = starts[of_done[kept]], dones[kept]
    pairs = Transfers(op[begins], start[begins], end[ends], self_ps[begins] + self_ps[ends], at[begins])
    return pairs, len(op) - 2 * len(begins)


@dataclass(frozen=True, slots=True)
class OverlapTimes:
    """How the time of some transfers overlaps with work: int64[n] each, in picoseconds; they add up to `span_ps`."""

    hidden_ps: Int64s
    exposed_ps: Int64s
    stalled_ps: Int64s

    @property
    def span_ps(self) -> Int64s:
        """The time of each."""
        return self.hidden_ps + self.exposed_ps + self.stalled_ps


def overlap_times(transfers: Transfers, work: TimeUntil) -> OverlapTimes:
    """What the core did during each transfer; see the module's text."""
    span = np.maximum(transfers.end_ps - transfers.begin_ps, 0)
    hidden = np.clip(work.within(transfers.begin_ps, transfers.end_ps), 0, span)
    exposed = np.clip(transfers.own_ps, 0, span - hidden)
    return OverlapTimes(hidden, exposed, span - hidden - exposed)


def sum_in(windows: Intervals, spans: Intervals, until: TimeUntil | None) -> Int64s:
    """int64[windows]: how long a core did something within disjoint spans, by window.

    Args:
        windows, spans: disjoint and in order each.
        until: the time spent on it; None counts all of the spans' time.
    """
    first = np.searchsorted(spans[1], windows[0], side="right")
    last = np.searchsorted(spans[0], windows[1], side="left")
    window, span = ranges(first, last)
    begin = np.maximum(spans[0][span], windows[0][window])
    end = np.minimum(spans[1][span], windows[1][window])
    held = end - begin if until is None else until.within(begin, end)
    return sum_by_key(window, held, len(first))


def shares(borders: Int64s, spans: Intervals, until: TimeUntil | None = None) -> NDArray[np.uint8]:
    """uint8[cells]: the share (0-255) of each cell of a strip that a core spent on something within some spans.

    Args:
        borders: int64[cells + 1], ascending.
        spans: disjoint and in order.
    """
    length = np.maximum(np.diff(borders), 1)
    held = sum_in((borders[:-1], borders[1:]), spans, until)
    return np.clip(np.rint(255 * held / length), 0, 255).astype(np.uint8)

"""Transfers of one core: when each was in flight, and what the core did meanwhile.

A transfer is one occurrence of a collective, or of an asynchronous copy: a synchronous op's span, or the time from the
begin of an asynchronous op's start to the end of its done. What the core does at an instant is what its innermost op
does. So a transfer's time falls into three parts that add up to it:

* hidden: the core computes, copies by itself, or runs ops of unknown class;
* exposed: the core is in one of the transfer's own ops, which is waiting, or moving data itself;
* beside: the core does neither: it is idle, in an op of another transfer, or waits for the host.

So no instant counts as exposed for two collectives at once.
"""

from __future__ import annotations

import numpy as np

from tpuprof.parsers.base.intervals import Bools, Columns, Int64s, Intervals, union, weighted_until
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.ops.core.traced import Weighted
from tpuprof.parsers.timeline.read.async_ops import latest


@dataclass(frozen=True, slots=True)
class Transfers(Columns):
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


class TimeUntil:
    """The sum of weighted intervals up to an instant.

    Args:
        intervals: see `weighted_until`.
        less: what is taken away from that.
    """

    def __init__(self, intervals: Weighted, less: TimeUntil | None = None) -> None:
        self._intervals, self._less = intervals, less

    @classmethod
    def within(cls, start: Int64s, end: Int64s) -> TimeUntil:
        """The time in any of some spans."""
        spans = union(start, end)
        return cls(np.stack([*spans, np.ones(len(spans[0]), np.int64)], axis=1))

    def __call__(self, times: Int64s) -> Int64s:
        """int64[n]: the sum up to each of some instants."""
        return weighted_until(times, self._intervals) - (0 if self._less is None else self._less(times))

    def at(self, spans: Intervals) -> Intervals:
        """The sums up to the starts and the ends of some spans."""
        sums = self(np.stack(spans, axis=1).ravel())  # in order, or nearly
        return sums[::2], sums[1::2]


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


class TransferOverlap:
    """What one core did during its transfers; see the module's text.

    Args:
        work: the time that the core worked; communication: that it was in the ops of collectives.

    Attributes:
        parts: int64[3, transfers], what of each one's time was hidden, exposed and beside; they add up to it.
    """

    def __init__(self, transfers: Transfers, work: TimeUntil, communication: TimeUntil) -> None:
        self._until = (work, communication)
        worked = work.at((transfers.begin_ps, transfers.end_ps))
        span = np.maximum(transfers.end_ps - transfers.begin_ps, 0)
        hidden = np.clip(worked[1] - worked[0], 0, span)
        exposed = np.clip(transfers.own_ps, 0, span - hidden)
        self.parts = np.stack([hidden, exposed, span - hidden - exposed])
        self._spans, held = joined_spans((transfers.begin_ps, transfers.end_ps), worked)
        self._held = held, communication.at(self._spans)

    def within(self, windows: Intervals) -> Int64s:
        """int64[3, windows]: the parts of the time in which any transfer was in flight, each instant once.

        Of the time beside work the second part is that in the ops of any transfer.

        Args:
            windows: disjoint and in order.
        """
        any_time = sum_in(windows, self._spans)
        worked, communicated = (
            sum_in(windows, self._spans, side.at(windows), held)
            for side, held in zip(self._until, self._held, strict=True)
        )
        hidden = np.clip(worked, 0, any_time)
        communicating = np.clip(communicated, 0, any_time - hidden)
        return np.stack([hidden, communicating, any_time - hidden - communicating])


def joined_spans(spans: Intervals, values: Intervals) -> tuple[Intervals, Intervals]:
    """The union of some spans, and values at its borders.

    Args:
        values: at the start and the end of each span, of something that never decreases with time.
    """
    filled = np.flatnonzero(spans[1] > spans[0])
    order = filled[np.argsort(spans[0][filled], kind="stable")]
    start, reach = spans[0][order], np.maximum.accumulate(spans[1][order])
    first = np.flatnonzero(np.append(True, start[1:] > reach[:-1])[: len(start)])
    last = np.append(first[1:], len(start))[: len(first)] - 1
    of_start, of_reach = values[0][order[first]], np.maximum.accumulate(values[1][order])[last]
    return (start[first], reach[last]), (of_start, of_reach)


def sum_in(
    windows: Intervals, spans: Intervals, of_windows: Intervals | None = None, of_spans: Intervals | None = None
) -> Int64s:
    """int64[windows]: the time of some spans within each window, or what a core spent of it on something.

    Args:
        windows, spans: disjoint and in order each.
        of_windows, of_spans: the time spent on it up to their starts and ends.
    """
    first = np.searchsorted(spans[1], windows[0], side="right")
    last = np.searchsorted(spans[0], windows[1], side="left")
    outer, inner = of_windows or windows, of_spans or spans
    before = np.append(0, np.cumsum(inner[1] - inner[0]))
    any_time = np.flatnonzero(last > first)
    first, last = first[any_time], last[any_time]
    early = np.maximum(outer[0][any_time] - inner[0][first], 0)  # what the first span has before the window
    late = np.maximum(inner[1][last - 1] - outer[1][any_time], 0)
    out = np.zeros(len(windows[0]), np.int64)
    out[any_time] = before[last] - before[first] - early - late
    return out

"""What a pass over the op events of a line makes of them, by step and op too.

Where most ops run in most steps, sums by step and op are a table; else each has an entry of its own.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Floats, Int64s, Intervals, opens
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.xspace.core.api import sum_by_key

_Number = TypeVar("_Number", np.int64, np.float64)


@dataclass(frozen=True, slots=True)
class StepCells:
    """Sums by step and op; a step and op may have several entries, which add up.

    Attributes:
        step, row: int[n]; which step, and which op.
        self_ps: int[n], the self time of the op's events that start in the step; count: int[n], how many they are.
    """

    step: NDArray[np.signedinteger]
    row: NDArray[np.signedinteger]
    self_ps: NDArray[np.signedinteger]
    count: NDArray[np.signedinteger]

    def each(self) -> StepCells:
        """The same one by one."""
        return self

    def moved(self, to: Int64s) -> StepCells:
        """The same by other steps.

        Args:
            to: int64[steps], which step each one is now; those below 0 are left out.
        """
        step = to[self.step]
        kept = step >= 0
        return StepCells(step[kept], self.row[kept], self.self_ps[kept], self.count[kept])

    def by_kind(self, kind: Int64s, kinds: int, steps: int) -> Int64s:
        """int64[steps, kinds]: self time by the kind of each op; it wraps around where int64 ends.

        Args:
            kind: int64[ops], in [0, kinds).
        """
        keys = self.step.astype(np.int64) * kinds + kind[self.row]
        return sum_by_key(keys, self.self_ps, steps * kinds).reshape(steps, kinds)

    def weighted(self, weight: Floats, steps: int) -> Floats:
        """float64[steps]: self time multiplied by each op's weight, float64[ops]."""
        return np.bincount(self.step, self.self_ps * weight[self.row], steps).astype(np.float64, copy=False)

    def work(self, once: Floats, steps: int) -> Floats:
        """float64[steps, k]: what the events do, when each does its op's part of float64[ops, k]."""
        out = np.zeros((steps, once.shape[1]))
        for column, of in enumerate(once.T):
            out[:, column] = np.bincount(self.step, of[self.row] * self.count, steps)
        return out

    def by_op(self, ops: int, chosen: Bools) -> tuple[Int64s, Int64s]:
        """int64[ops] twice: self time and events of each op in those steps that are chosen, bool[steps]."""
        inside = chosen[self.step]
        row, count = self.row[inside], self.count[inside].astype(np.int64)
        return sum_by_key(row, self.self_ps[inside], ops), sum_by_key(row, count, ops)


@dataclass(frozen=True, slots=True)
class StepTable(StepCells):
    """The same as a table.

    Attributes:
        step: int[n], the step of each row; several rows of a step add up. row: int[m], the op of each column, of
            which none comes twice.
        self_ps: int64[n, m]; count: int32[n, m].
    """

    def each(self) -> StepCells:
        at, column = np.nonzero(self.count)
        return StepCells(self.step[at], self.row[column], self.self_ps[at, column], self.count[at, column])

    def moved(self, to: Int64s) -> StepTable:
        step = to[self.step]
        kept = step >= 0
        return StepTable(step[kept], self.row, self.self_ps[kept], self.count[kept])

    def by_kind(self, kind: Int64s, kinds: int, steps: int) -> Int64s:
        out = np.zeros((kinds, len(self.step)), np.int64)
        for of, times in zip(kind[self.row].tolist(), np.ascontiguousarray(self.self_ps.T), strict=True):
            out[of] += times
        return self._by_step(out.T, steps)

    def weighted(self, weight: Floats, steps: int) -> Floats:
        return np.bincount(self.step, self.self_ps @ weight[self.row], steps).astype(np.float64, copy=False)

    def work(self, once: Floats, steps: int) -> Floats:
        return self._by_step(self.count @ once[self.row], steps)

    def _by_step(self, rows: NDArray[_Number], steps: int) -> NDArray[_Number]:
        order = np.argsort(self.step, kind="stable")
        step, out = self.step[order], np.zeros((steps, rows.shape[1]), rows.dtype)
        first = np.flatnonzero(opens(step))
        out[step[first]] = np.add.reduceat(rows[order], first, axis=0)
        return out

    def by_op(self, ops: int, chosen: Bools) -> tuple[Int64s, Int64s]:
        inside, out = chosen[self.step], np.zeros((2, ops), np.int64)
        out[:, self.row] = self.self_ps[inside].sum(axis=0), self.count[inside].sum(axis=0)
        return out[0], out[1]


@dataclass(frozen=True, slots=True)
class PassSums:
    """What a pass over a line's op events makes of them.

    Attributes:
        occurrences, total_ps, self_ps, minimum_ps: int64[ids], by metadata id.
        events: how many events there were.
        span, own_span: from the first start to the last end, by the device's clock and on the trace's; None without
            events.
        has_two_clocks: whether there are two events, and one of all has another start by the device's clock.
        times: int64[n], as given; time_span: int64[n, 4], see `OpPass`.
        cells: sums by step and op, whose row is its metadata id here.
        busy, working: when an op ran, and when one on duty ran; disjoint, in order.
        off, inside: spans of ops off duty, and of ops on duty that begin while others wait, or just where they begin
            or end.
        reduces: int64[m, 3]: step, id and duration of each all-reduce inside a step.
        traced: int64[m, 5]: metadata id, start, end, self time and start on the trace's clock of each event of a traced
            op.
        work, within: int64[m, 3]: start, end and weight, see `parsers.ops.core.traced.TracedEvents`.
    """

    occurrences: Int64s
    total_ps: Int64s
    self_ps: Int64s
    minimum_ps: Int64s
    events: int
    span: tuple[int, int] | None
    own_span: tuple[int, int] | None
    has_two_clocks: bool
    times: Int64s
    time_span: Int64s
    cells: StepCells
    busy: Intervals
    working: Intervals
    off: Intervals
    inside: Intervals
    reduces: Int64s
    traced: Int64s
    work: Int64s
    within: Int64s

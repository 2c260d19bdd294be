"""One pass of the compiled core over the op events of a line, block by block, or over some pieces of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Int64s, Intervals
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.xspace.core import _core
from tpuprof.parsers.formats.xspace.core.types import EventColumns, as_int64

if not hasattr(_core, "op_border"):  # an editable installation keeps its module when the source moves on
    raise ImportError("the compiled core is older than this code")

_DONE, _NO_ROOM = 0, 1

# places in the state, see _core.c
_EVENTS, _FIRST, _LAST, _OWN_FIRST, _OWN_LAST, _TWO_CLOCKS = 0, 4, 5, 6, 7, 10
_LAST_EVENT = slice(1, 4)
_DURATIONS = slice(8, 10)
_DEPTH, _STEP, _STEP_OF_SUMS, _TOUCHED = 11, 12, 13, 14
_OFF_TO, _OUTER, _TIME = 19, 20, 25
_OUTPUTS = 26
_RUNS = 35
_INHERITED = 43
_STATE_SIZE = 44
_GOES_ON, _IS_END, _IS_BORDER = 0, 1, 2
_NO_SPANS, _ONLY_TIMES, _WITHOUT_WORKING, _ALL_SPANS = 0, 1, 2, 3
_BORDER_SIZE = 10
_STACK_SELF, _STACK_TRACED = 3, 4
_TRACED, _TRACED_SELF = 6, 3
_LOW_BITS = (1 << 32) - 1
MOST_DURATION = 1 << 56
"""So long a line's events may take together."""
_LOWEST, _HIGHEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max

_STACK_COLUMNS = 5
_OUTPUT_COLUMNS = (3, 2, 2, 2, 2, 3, 5, 3, 3)
"""Of cells, busy, working, off, inside, reduces, traced, work and within."""

_MOST_WRITTEN = 4
"""How many rows of an output, other than cells, one event may write at most."""


@dataclass(frozen=True, slots=True)
class Before:
    """What the events before a piece of a line leave for it.

    Attributes:
        open: the events that are open, outermost first, int64[n, 3]: end by the device's clock, metadata id, and step
            or -1.
        last: of the last event: start and end by the device's clock, and start on the trace's.
        off_to: the latest end of an op off duty.
        has_outer: whether there was an event.
        outer: start and end of the latest event that ends behind all earlier ones, on the trace's clock and by the
            device's.
        times_done: how many of the times asked for lie before an outer event that is not the first.
        is_first_outer: whether the outer event is the line's first.
    """

    open: Int64s
    last: tuple[int, int, int]
    off_to: int
    has_outer: bool
    outer: tuple[int, int, int, int]
    times_done: int
    is_first_outer: bool


BEFORE_ALL = Before(
    np.zeros((0, 3), np.int64), (_LOWEST, _LOWEST, _LOWEST), _LOWEST, False, (_LOWEST, _LOWEST, 0, 0), 0, False
)


@dataclass(frozen=True, slots=True)
class Cells:
    """Sums by step and op; a step and op may have several entries, which add up."""

    step: NDArray[np.int32]
    metadata_id: NDArray[np.int32]
    self_ps: Int64s
    count: NDArray[np.int32]


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
        cells: sums by step and op.
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
    cells: Cells
    busy: Intervals
    working: Intervals
    off: Intervals
    inside: Intervals
    reduces: Int64s
    traced: Int64s
    work: Int64s
    within: Int64s


class Border:
    """A look at a piece's events: what they leave for the next piece, whatever came before.

    Attributes:
        before_all: what comes before the first piece.
    """

    before_all = BEFORE_ALL

    def __init__(self) -> None:
        self._out = np.zeros(_BORDER_SIZE, np.int64)
        self._open = np.empty((64, 3), np.int64)
        self._depth = self._count = 0

    def look(self, columns: EventColumns, count: int, shift: int, rows: tuple[int, int, int], off_duty: Bools) -> None:
        """Looks at the first `count` events; arguments as for `OpPass.take`."""
        if columns.metadata_id.dtype != np.int32:
            return  # the pass refuses them
        self._count, self._depth = count, len(self._open) + 1
        while self._depth > len(self._open):
            if self._depth > len(self._open) + 1:
                self._open = np.empty((self._depth, 3), np.int64)
            self._depth = _core.op_border(
                columns.metadata_id,
                columns.offset_ps,
                columns.duration_ps,
                columns.kind,
                columns.value,
                off_duty.view(np.uint8),
                self._out,
                self._open,
                shift,
                count,
                *rows[:2],
            )

    def behind(self, before: Before, step_start: Int64s, step_end: Int64s, times: Int64s) -> Before:
        """What the piece leaves, after what came before it; other arguments as for `OpPass`."""
        if not self._count:
            return before
        *last, latest, off_to, own_start, own_end, start, end, at = self._out.tolist()
        opened = self._open[: self._depth][::-1].copy()
        step = np.searchsorted(step_start, opened[:, 2], side="right") - 1
        is_in = step >= 0
        is_in[is_in] = opened[is_in, 2] < step_end[step[is_in]]
        opened[:, 2] = np.where(is_in, step, -1)
        outer, is_first = before.outer, before.is_first_outer
        if not before.has_outer or own_end > outer[1]:
            outer, is_first = (own_start, own_end, start, end), not before.has_outer and at == 0
        return Before(
            open=np.concatenate([before.open[before.open[:, 0] >= latest], opened]),
            last=(last[0], last[1], last[2]),
            off_to=max(before.off_to, off_to),
            has_outer=True,
            outer=outer,
            times_done=0 if is_first else int(np.searchsorted(times, outer[0], side="left")),
            is_first_outer=is_first,
        )


class OpPass:
    """The sums of a line's events so far, or of those of some pieces of it.

    Args:
        off_duty: bool[ids], by metadata id.
        code: uint8[ids], what each op counts as (`parsers.ops.core.traced`); empty where `traced`, `work` and
            `within` are not wanted.
        step_start, step_end: int64[steps], in order, not overlapping.
        times: int64[n], ascending.
        room: how many rows the outputs have at first; those that nobody writes take no memory.
        spans: whether `busy`, `working`, `off` and `inside` are wanted.
        time_span: where to put them; made where it is None.

    Attributes:
        occurrences, total_ps, self_ps, minimum_ps: int64[ids].
        device_duration: int64, how long each event of the last block took by the device's clock.
        times: as given.
        time_span: int64[n, 4]; the start and end of the op, or of the gap between ops, around each of the times; and
            the same by the device's clock.
    """

    def __init__(
        self,
        off_duty: Bools,
        code: NDArray[np.uint8],
        step_start: Int64s,
        step_end: Int64s,
        times: Int64s,
        room: int,
        spans: bool,
        time_span: Int64s | None = None,
    ) -> None:
        ids = len(off_duty)
        self._has_off_duty = bool(off_duty.any())
        of_all = _ALL_SPANS if self._has_off_duty else _WITHOUT_WORKING
        self._spans = of_all if spans else _ONLY_TIMES if len(times) else _NO_SPANS
        self._inputs = (off_duty.view(np.uint8), code, as_int64(step_start, "start"), as_int64(step_end, "end"))
        self.times = as_int64(times, "times")
        self._state = np.zeros(_STATE_SIZE, np.int64)
        self._state[1:_OUTPUTS] = [
            *(_LOWEST, _LOWEST, _LOWEST, _HIGHEST, _LOWEST, _HIGHEST, _LOWEST, 0, 0, 0, 0, -1, -1, 0),
            *(_LOWEST, _LOWEST, _LOWEST, _LOWEST, _LOWEST, 0, 0, 0, 0, 0, 0),
        ]
        self._state[_RUNS:_INHERITED] = _LOWEST
        self.device_duration = np.zeros(0, np.int64)
        self.occurrences, self.total_ps, self.self_ps = (np.zeros(ids, np.int64) for _ in range(3))
        self.minimum_ps = np.full(ids, _HIGHEST)
        self._by_step = (np.zeros(ids, np.int64), np.zeros(ids, np.int64), np.zeros(ids, np.int32))
        self._stack = np.empty((64, _STACK_COLUMNS), np.int64)
        self._inherited_self = np.zeros(0, np.int64)
        self._outputs = [np.empty((room, columns), np.int64) for columns in _OUTPUT_COLUMNS]
        self.time_span = np.zeros((len(times), 4), np.int64) if time_span is None else time_span

    def take(self, columns: EventColumns, count: int, shift: int, rows: tuple[int, int, int]) -> bool:
        """Adds the first `count` events of a block.

        Args:
            shift: when the line's clock starts, in picoseconds.
            rows: which rows of the columns hold the device offset, the device duration and the all-reduce id; -1 for
                a stat that the plane does not have.

        Returns:
            False where the pass can't take an event: out of order, wide ids, absurd times. The sums are void then.
        """
        if columns.metadata_id.dtype != np.int32:
            return False
        if len(self.device_duration) != len(columns.flags):
            self.device_duration = np.empty(len(columns.flags), np.int64)
        return self._run(columns, shift, count, _GOES_ON, rows)

    def end(self) -> bool:
        """Closes what is still open behind the last event; see `take`."""
        return self._close(_IS_END)

    def _close(self, behind: int) -> bool:
        ids, lengths = np.zeros(0, np.int32), np.zeros(0, np.uint32)
        times, flags = np.zeros(0, np.int64), np.zeros(0, np.uint8)
        self.device_duration = times
        columns = EventColumns(ids, times, times, flags, times, lengths, flags, times, lengths)
        return self._run(columns, 0, 0, behind, (-1, -1, -1))

    def begin_piece(self, before: Before) -> None:
        """Goes on with a piece of the line that does not follow the last one."""
        state, depth = self._state, len(before.open)
        if len(self._stack) <= depth:
            self._stack = np.empty((2 * depth, _STACK_COLUMNS), np.int64)
        self._stack[:depth, :_STACK_SELF] = before.open
        self._stack[:depth, _STACK_SELF] = 0
        self._stack[:depth, _STACK_TRACED] = -1
        self._inherited_self = np.zeros(depth, np.int64)
        state[_DEPTH] = state[_INHERITED] = depth
        state[_LAST_EVENT] = before.last
        state[_OFF_TO] = before.off_to
        state[_OUTER : _TIME + 1] = (before.has_outer, *before.outer, before.times_done)

    def end_piece(self) -> tuple[Int64s, int, Int64s]:
        """Ends a piece.

        Returns:
            By event that was open before the piece, int64: minus the time that the piece's events take from its self
            time. How many of those are still open. And the events of the piece that are open behind it, outermost
            first, int64[n, 5]: end, metadata id, step, self time so far, and row among the traced events of this pass,
            -1 for none.
        """
        self._close(_IS_BORDER)
        depth, inherited = int(self._state[_DEPTH]), int(self._state[_INHERITED])
        self._inherited_self[:inherited] = self._stack[:inherited, _STACK_SELF]
        own = self._stack[inherited:depth].copy()
        self._state[_DEPTH] = self._state[_INHERITED] = 0
        return self._inherited_self, inherited, own

    def set_traced_self(self, row: int, self_ps: int) -> None:
        """Completes a traced event that was open behind its piece."""
        traced = self._outputs[_TRACED]
        traced[row, _TRACED_SELF] = self_ps

    def border(self) -> Border:
        """What looks at the events of pieces."""
        return Border()

    def end_line(self, before: Before | None) -> bool:
        """Ends the last piece that this pass took; answers the times behind the last event where `before` says so."""
        self._state[_OUTER] = 0
        if before is not None:
            self.begin_piece(before)
            self._state[_DEPTH] = self._state[_INHERITED] = 0
        return self.end()

    def counts(self) -> list[int]:
        """How many rows of each output are written."""
        counts: list[int] = self._state[_OUTPUTS:_RUNS].tolist()
        return counts

    def absorb(self, other: OpPass) -> bool:
        """Adds the sums of a pass over other pieces of the line, but for the outputs.

        Returns:
            False where the events take too long together, as in `take`.
        """
        mine, others = self._state, other._state
        mine[_EVENTS] += others[_EVENTS]
        mine[_DURATIONS] += others[_DURATIONS]
        mine[_TWO_CLOCKS] |= others[_TWO_CLOCKS]
        for place, choose in ((_FIRST, min), (_LAST, max), (_OWN_FIRST, min), (_OWN_LAST, max)):
            mine[place] = choose(mine[place], others[place])
        self.occurrences += other.occurrences
        self.total_ps += other.total_ps
        self.self_ps += other.self_ps
        np.minimum(self.minimum_ps, other.minimum_ps, out=self.minimum_ps)
        return int(mine[_DURATIONS].max()) <= MOST_DURATION

    def _run(self, columns: EventColumns, shift: int, count: int, behind: int, rows: tuple[int, int, int]) -> bool:
        at, status = 0, _NO_ROOM
        while status == _NO_ROOM:
            at, status = _core.op_pass(
                columns.metadata_id,
                columns.offset_ps,
                columns.duration_ps,
                columns.kind,
                columns.value,
                *self._inputs,
                self.times,
                self._state,
                self.device_duration,
                self.occurrences,
                self.total_ps,
                self.self_ps,
                self.minimum_ps,
                *self._by_step,
                self._stack,
                *self._outputs,
                self.time_span,
                self._inherited_self,
                shift,
                at,
                count,
                behind,
                self._spans,
                *rows,
            )
            if status == _NO_ROOM:
                self._grow()
        return status == _DONE

    def _grow(self) -> None:
        """Makes more room wherever less than an eighth is left."""
        depth, touched = int(self._state[_DEPTH]), int(self._state[_TOUCHED])
        if 8 * depth >= 7 * len(self._stack):
            self._stack = _larger(self._stack, depth, 2 * len(self._stack))
        for index, rows in enumerate(self._outputs):
            used = int(self._state[_OUTPUTS + index])
            needed = used + (touched + depth if index == 0 else _MOST_WRITTEN)
            if 8 * needed >= 7 * len(rows):
                self._outputs[index] = _larger(rows, used, max(2 * len(rows), 2 * needed))

    def sums(self, outputs: list[list[Int64s]] | None = None) -> PassSums:
        """The sums of all events, and the outputs, which the pass gives away.

        Args:
            outputs: the rows of each, in the line's order, where this pass did not take all of its events; emptied.
        """
        state = self._state.tolist()
        left = [[rows] for rows in self.hand_over()] if outputs is None else outputs
        left.reverse()  # from here on each is let go when its columns are made: they are as large
        cells, busy, working = _cells(left.pop()), _union(left.pop()), _union(left.pop())
        return PassSums(
            occurrences=self.occurrences,
            total_ps=self.total_ps,
            self_ps=self.self_ps,
            minimum_ps=self.minimum_ps,
            events=state[_EVENTS],
            span=(state[_FIRST], state[_LAST]) if state[_EVENTS] else None,
            own_span=(state[_OWN_FIRST], state[_OWN_LAST]) if state[_EVENTS] else None,
            has_two_clocks=state[_EVENTS] > 1 and bool(state[_TWO_CLOCKS]),
            times=self.times,
            time_span=self.time_span,
            cells=cells,
            busy=busy,
            working=working if self._has_off_duty else busy,
            off=_columns(left.pop()),
            inside=_columns(left.pop()),
            reduces=_rows(left.pop()),
            traced=_rows(left.pop()),
            work=_runs(left.pop()),
            within=_runs(left.pop()),
        )

    def hand_over(self) -> list[Int64s]:
        """Rows of columns, each int64[m, k], in the order of the attributes of `PassSums`; the pass lets them go."""
        outputs, self._outputs = self._outputs, []
        return [rows[:count] for rows, count in zip(outputs, self.counts(), strict=True)]


def _cells(parts: list[Int64s]) -> Cells:
    """The columns of the rows of steps and ops, each part of which is let go when it is copied."""
    count = sum(map(len, parts))
    step, ids, counts = (np.empty(count, np.int32) for _ in range(3))
    out, at = Cells(step, ids, np.empty(count, np.int64), counts), 0
    while parts:
        rows = parts.pop()
        to = slice(at, at + len(rows))
        np.right_shift(rows[:, 0], 32, out=step[to], casting="unsafe")
        np.bitwise_and(rows[:, 0], _LOW_BITS, out=ids[to], casting="unsafe")
        out.self_ps[to], counts[to] = rows[:, 1], rows[:, 2]
        at += len(rows)
        del rows
    return out


def _rows(parts: Sequence[Int64s]) -> Int64s:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _columns(parts: Sequence[Int64s]) -> Intervals:
    return np.concatenate([rows[:, 0] for rows in parts]), np.concatenate([rows[:, 1] for rows in parts])


def _union(parts: Sequence[Int64s]) -> Intervals:
    """The union of disjoint intervals in order; those of a part begin no earlier than those of the parts before it."""
    kept: list[Int64s] = []
    for rows in parts:
        joins = int(np.searchsorted(rows[:, 0], kept[-1][-1, 1], side="right")) if kept else 0
        if joins:
            kept[-1][-1, 1] = max(kept[-1][-1, 1], rows[joins - 1, 1])
        if joins < len(rows):
            kept.append(rows[joins:])
    return _columns(kept or [np.zeros((0, 2), np.int64)])


def _runs(parts: Sequence[Int64s]) -> Int64s:
    """Runs of either weight, of which none ends where the next one of its weight starts."""
    if len(parts) == 1:
        return parts[0]
    rows = np.concatenate(parts)
    out = []
    for weight in (1, -1):
        of = rows[rows[:, 2] == weight]
        opens = np.ones(len(of), np.bool_)
        opens[1:] = of[1:, 0] != of[:-1, 1]
        closes = np.append(opens[1:], True)[: len(of)]
        joined = of[opens]
        joined[:, 1] = of[closes, 1]
        out.append(joined)
    return np.concatenate(out)


def _larger(rows: Int64s, used: int, count: int) -> Int64s:
    out = np.empty((count, rows.shape[1]), np.int64)
    out[:used] = rows[:used]
    return out

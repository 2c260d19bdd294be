"""One pass of the compiled core over the op events of a line, block by block."""

from __future__ import annotations

from mmap import mmap

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Int64s, Intervals
from tpuprof.parsers.formats.xspace.core.compiled import CORE
from tpuprof.parsers.formats.xspace.core.pass_sums import PassSums, StepCells, StepTable
from tpuprof.parsers.formats.xspace.core.types import EventColumns, as_int64

_DONE, _NO_ROOM = 0, 1

# places in the state, see _core.c
_EVENTS, _FIRST, _LAST, _OWN_FIRST, _OWN_LAST, _TWO_CLOCKS = 0, 4, 5, 6, 7, 10
_DEPTH, _TABLE_STEPS, _TABLE_IDS = 11, 13, 14
_OUTPUTS = 26
_RUNS = 35
_STATE_SIZE = 43
_NO_SPANS, _ONLY_TIMES, _WITHOUT_WORKING, _ALL_SPANS = 0, 1, 2, 3
_LOWEST, _HIGHEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max

_STACK_COLUMNS = 5
_OUTPUT_COLUMNS = (3, 2, 2, 2, 2, 3, 5, 3, 3)
"""Of cells, busy, working, off, inside, reduces, traced, work and within."""

_MOST_WRITTEN = 4
"""How many rows of an output, other than cells, one event may write at most."""

_MOST_CELLS = 2
"""The table of steps by ops has at most this many times the cells that the outputs have rows at first."""


class OpPass:
    """The sums of a line's events so far.

    Args:
        off_duty: bool[ids], by metadata id.
        roles: uint8[ids], what each op counts as (`parsers.ops.core.traced`); empty where `traced`, `work` and
            `within` are not wanted.
        step_start, step_end: int64[steps], in order, not overlapping.
        times: int64[n], ascending.
        room: how many rows the outputs have at first; those that nobody writes take no memory.
        spans: whether `busy`, `working`, `off` and `inside` are wanted.

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
        roles: NDArray[np.uint8],
        step_start: Int64s,
        step_end: Int64s,
        times: Int64s,
        room: int,
        spans: bool,
    ) -> None:
        ids = len(off_duty)
        self._has_off_duty = bool(off_duty.any())
        of_all = _ALL_SPANS if self._has_off_duty else _WITHOUT_WORKING
        self._spans = of_all if spans else _ONLY_TIMES if len(times) else _NO_SPANS
        self._inputs = (off_duty.view(np.uint8), roles, as_int64(step_start, "start"), as_int64(step_end, "end"))
        self.times = as_int64(times, "times")
        self._state = np.zeros(_STATE_SIZE, np.int64)
        self._state[1:_OUTPUTS] = [
            *(_LOWEST, _LOWEST, _LOWEST, _HIGHEST, _LOWEST, _HIGHEST, _LOWEST, 0, 0, 0, 0, -1, 0, 0),
            *(_LOWEST, _LOWEST, _LOWEST, _LOWEST, _LOWEST, 0, 0, 0, 0, 0, 0),
        ]
        self._state[_RUNS:] = _LOWEST
        self.device_duration = np.zeros(0, np.int64)
        self.occurrences, self.total_ps, self.self_ps = (np.zeros(ids, np.int64) for _ in range(3))
        self.minimum_ps = np.full(ids, _HIGHEST)
        size = len(step_start), min(ids, _MOST_CELLS * room // max(len(step_start), 1))
        # not numpy's zeros, which it may write: pages of the table that stay unwritten take no memory
        cells = size[0] * size[1]
        memory = mmap(-1, 12 * cells + 1)
        self_ps, count = np.frombuffer(memory, np.int64, cells), np.frombuffer(memory, np.int32, cells, 8 * cells)
        self._table = self_ps.reshape(size), count.reshape(size)
        self._table_of = (np.full(ids, -1, np.int32), np.zeros(len(step_start), np.int64))
        self._stack = np.empty((64, _STACK_COLUMNS), np.int64)
        self._outputs = [np.empty((room, columns), np.int64) for columns in _OUTPUT_COLUMNS]
        self.time_span = np.zeros((len(times), 4), np.int64)

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
        return self._run(columns, shift, count, False, rows)

    def end(self) -> bool:
        """Closes what is still open behind the last event; see `take`."""
        ids, lengths = np.zeros(0, np.int32), np.zeros(0, np.uint32)
        times, flags = np.zeros(0, np.int64), np.zeros(0, np.uint8)
        self.device_duration = times
        columns = EventColumns(ids, times, times, flags, times, lengths, flags, times, lengths)
        return self._run(columns, 0, 0, True, (-1, -1, -1))

    def _run(self, columns: EventColumns, shift: int, count: int, is_end: bool, rows: tuple[int, int, int]) -> bool:
        at, status = 0, _NO_ROOM
        while status == _NO_ROOM:
            at, status = CORE.add_ops(
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
                *self._table,
                *self._table_of,
                self._stack,
                *self._outputs,
                self.time_span,
                shift,
                at,
                count,
                is_end,
                self._spans,
                *rows,
            )
            if status == _NO_ROOM:
                self._grow()
        return status == _DONE

    def _grow(self) -> None:
        """Makes more room wherever less than an eighth is left."""
        depth = int(self._state[_DEPTH])
        if 8 * depth >= 7 * len(self._stack):
            self._stack = _larger(self._stack, depth, 2 * len(self._stack))
        for index, rows in enumerate(self._outputs):
            used = int(self._state[_OUTPUTS + index])
            needed = used + (depth if index == 0 else _MOST_WRITTEN)
            if 8 * needed >= 7 * len(rows):
                self._outputs[index] = _larger(rows, used, max(2 * len(rows), 2 * needed))

    def sums(self) -> PassSums:
        """The sums of all events, and the outputs, which the pass gives away."""
        state = self._state.tolist()
        left = [rows[:count] for rows, count in zip(self._outputs, state[_OUTPUTS:_RUNS], strict=True)][::-1]
        self._outputs = []  # from here on each is let go when its columns are made: they are as large
        cells, busy, working, off, inside = self._cells(left.pop()), *(_columns(left.pop()) for _ in range(4))
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
            off=off,
            inside=inside,
            reduces=left.pop(),
            traced=left.pop(),
            work=left.pop(),
            within=left.pop(),
        )

    def _cells(self, others: Int64s) -> StepCells:
        """The table by step and op; with the rows of the ops that it has no room for, where there are such."""
        steps, ids = self._state[[_TABLE_STEPS, _TABLE_IDS]].tolist()
        column, step = self._table_of
        self_ps, count = self._table
        row = np.argsort(column, kind="stable")[len(column) - ids :]  # those without a column come first
        table = StepTable(step[:steps].astype(np.int32), row, self_ps[:steps, :ids], count[:steps, :ids])
        if not len(others):
            return table
        each, (at, of, own_ps) = table.each(), others.T
        return StepCells(
            np.append(each.step, at),
            np.append(each.row, of),
            np.append(each.self_ps, own_ps),
            np.append(each.count, np.ones(len(others), np.int32)),
        )


def _columns(rows: Int64s) -> Intervals:
    return rows[:, 0].copy(), rows[:, 1].copy()


def _larger(rows: Int64s, used: int, count: int) -> Int64s:
    out = np.empty((count, rows.shape[1]), np.int64)
    out[:used] = rows[:used]
    return out

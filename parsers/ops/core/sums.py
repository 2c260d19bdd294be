"""What one core's op events add up to, in one pass over the line's bytes.

The compiled core decodes a chunk of the line, adds it up while it is in the processor's cache, and forgets it. What the
pass can't take (several op lines, events out of order, absurd times or ids) goes by columns over all events, in numpy,
and so does everything where the compiled core is absent. Both give the same sums.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Floats, Int64s, Intervals, distinct, is_sorted, no_ints, place, union
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.xspace.core.api import op_pass, sum_by_key
from tpuprof.parsers.formats.xspace.core.types import HAS_OCCURRENCES
from tpuprof.parsers.formats.xspace.events import ColumnRoom, StatColumn
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Plane
from tpuprof.parsers.ops.core import ops as core_ops
from tpuprof.parsers.ops.core.traced import Codes, Coding, TracedEvents, traced_events, traced_of_events
from tpuprof.parsers.ops.device import OFF_DUTY
from tpuprof.parsers.ops.op_metadata import MetadataStats, OpSource
from tpuprof.parsers.ops.table import OpTable

if TYPE_CHECKING:
    from tpuprof.parsers.formats.xspace.core.op_pass import OpPass

_MOST_IDS = 1 << 20
"""The most metadata ids that the pass has sums for; a plane with higher ids goes by columns."""

_BYTES_AN_EVENT = 32
"""About how many bytes an event takes, for a first guess at how many there are."""

_MOST_ROOM = 1 << 22
"""The most rows that the outputs have room for before anything is written."""

_DENSE = 4
"""Sums by step and op are dense up to this many cells per event."""


@dataclass(frozen=True, slots=True)
class StepCells:
    """Sums by step and op; a step and op may have several entries, which add up.

    Attributes:
        step: int64[m]; the step in which an op's events start. Events outside of steps are in no cell.
        row: int64[m]; the op's row in the table.
        self_ps: int64[m]; their self time.
        count: int64[m]; how many events these are.
    """

    step: Int64s
    row: Int64s
    self_ps: Int64s
    count: Int64s

    def by_kind(self, kind: Int64s, kinds: int, steps: int) -> Int64s:
        """int64[steps, kinds]: self time by step and by the kind of each op.

        Args:
            kind: int64[ops].
        """
        key = self.step * kinds + kind[self.row]
        return sum_by_key(key, self.self_ps, steps * kinds).reshape(steps, kinds)


@dataclass(frozen=True, slots=True)
class OpSums:
    """The sums of one core's op events over the whole profile.

    Attributes:
        table: time and work by op.
        op_events: number of events.
        span: from the first start to the last end by the device's clock; None without events.
    """

    table: OpTable
    op_events: int
    span: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class CoreSums(OpSums):
    """The sums of one core's op events by step too, and when the core worked.

    Attributes:
        own_span: the same as `span` on the trace's clock.
        cells: sums by step and op.
        all_reduce_step, all_reduce_id, all_reduce_ps: int64[k], an entry for each all-reduce event inside a step, by
            the device's clock.
        busy: when an op ran; like all intervals here on the trace's clock, disjoint and in order.
        working: when an op ran that is on duty.
        waiting: when an op ran that is off duty (`device.OFF_DUTY`).
        inside_waits: spans of ops on duty that begin inside the waiting of others; in order of start, not disjoint.
        device_times: int64[n], the device's time at each of the times asked for; None where ops have one clock only.
        traced: the events of the ops that are traced; None where none was asked for.
    """

    own_span: tuple[int, int] | None
    cells: StepCells
    all_reduce_step: Int64s
    all_reduce_id: Int64s
    all_reduce_ps: Int64s
    busy: Intervals
    working: Intervals
    waiting: Intervals
    inside_waits: Intervals
    device_times: Int64s | None
    traced: TracedEvents | None = None


def core_sums(
    plane: Plane, steps: Intervals, times: Int64s, on_chunk: ChunkDone | None = None, coding: Coding | None = None
) -> CoreSums:
    """Decodes the op events of one core and adds them up.

    Args:
        steps: where the core's steps begin and end on the trace's clock, in order, not overlapping.
        times: int64[n], ascending; times on the trace's clock whose device times are wanted.
        coding: what ops count as, where the events of some are wanted one by one.
    """
    progress = _Progress(on_chunk)
    done = _in_one_pass(plane, steps, times, progress.chunk, spans=True, coding=coding)
    if done is None:
        return sums_of_events(core_ops.core_ops(plane, progress.again), steps, times, coding)
    sums, totals = done
    cells, busy, working, off, inside, reduces, traced, work, within = sums.outputs()
    waiting = union(*_columns(off))
    row_of = np.zeros(len(sums.occurrences), np.int64)
    row_of[totals.ids] = np.arange(len(totals.ids))
    return CoreSums(
        table=core_ops.op_table(plane, totals),
        op_events=sums.events,
        span=sums.span,
        own_span=sums.own_span,
        cells=StepCells(cells[:, 0] >> 32, row_of[cells[:, 0] & 0xFFFFFFFF], cells[:, 1], cells[:, 2]),
        all_reduce_step=reduces[:, 0],
        all_reduce_id=reduces[:, 1],
        all_reduce_ps=reduces[:, 2],
        busy=_columns(busy),
        working=_columns(working),
        waiting=waiting,
        inside_waits=_begun_inside(*_columns(inside), waiting),
        device_times=_device_times(sums.times, *sums.time_span.T) if sums.has_two_clocks else None,
        traced=None if coding is None else traced_events(traced, work, within, row_of),
    )


def op_sums(plane: Plane, on_chunk: ChunkDone | None = None) -> OpSums:
    """The same without steps: only what the pages of ops show."""
    progress = _Progress(on_chunk)
    none = no_ints()
    done = _in_one_pass(plane, (none, none), none, progress.chunk, spans=False)
    if done is None:
        ops = core_ops.core_ops(plane, progress.again)
        return OpSums(ops.table, len(ops.events.key), _span(ops.events.start_ps, ops.events.end_ps))
    sums, totals = done
    return OpSums(core_ops.op_table(plane, totals), sums.events, sums.span)


class _Progress:
    """Passes progress on; it does not report bytes that are decoded a second time."""

    def __init__(self, on_chunk: ChunkDone | None) -> None:
        self._on_chunk = on_chunk
        self._size = self._events = 0

    def chunk(self, size: int, events: int) -> None:
        """Tells of a chunk; see `ChunkDone`."""
        self._size += size
        self._events += events
        if self._on_chunk is not None:
            self._on_chunk(size, events)

    def again(self, size: int, events: int) -> None:
        """Reports a chunk as far as it goes beyond what `chunk` reported."""
        old_size, old_events = min(self._size, size), min(self._events, events)
        self._size -= old_size
        self._events -= old_events
        if self._on_chunk is not None:
            self._on_chunk(size - old_size, events - old_events)


# --- in one pass ---------------------------------------------------------------------------------------------------


def _in_one_pass(
    plane: Plane,
    steps: Intervals,
    times: Int64s,
    on_chunk: ChunkDone,
    spans: bool,
    coding: Coding | None = None,
) -> tuple[OpPass, core_ops.OpTotals] | None:
    """The pass over a core's op line, and its sums by op; None where the pass can't make them."""
    lines = [line for line in plane.lines if line.name == core_ops.OPS_LINE]
    metadata = plane.event_metadata
    ids = int(metadata.ids[-1]) + 1 if len(metadata) else 0
    if len(lines) != 1 or not 0 < ids <= _MOST_IDS or int(metadata.ids[0]) < 0:
        return None
    line = lines[0]
    room = min(line.size // _BYTES_AN_EVENT, _MOST_ROOM) if spans else 0
    codes = np.zeros(0, np.uint8) if coding is None else _codes(plane, ids, coding)
    sums = op_pass(_off_duty(plane, ids), codes, *steps, times, room=room, spans=spans)
    if sums is None:
        return None
    names = core_ops.event_stats(plane)
    known = list(plane.stat_ids(names))
    offset, duration, reduce = (
        known.index(name) if name in known else -1 for name in (*core_ops.DEVICE_SPAN, core_ops.ALL_REDUCE_ID)
    )
    others = {name: row for row, name in enumerate(known) if row not in (offset, duration, reduce)}
    stat_sums: dict[str, core_ops.StatSum] = {}
    normalized = np.zeros(ids, np.float64)
    shift = core_ops.line_start(line)
    for block in line.blocks(names, on_chunk):
        is_taken = sums.take(block.columns, block.count, shift, (offset, duration, reduce))
        if block.seen & HAS_OCCURRENCES or not is_taken:
            return None
        _take_figures(block, others, sums.device_duration, stat_sums, normalized)
    return (sums, _totals_of(sums, stat_sums, normalized)) if sums.end() else None


def _off_duty(plane: Plane, ids: int) -> Bools:
    """bool[ids]: which metadata ids are ops during which the core waits or moves data for the host."""
    metadata = plane.event_metadata
    stats = MetadataStats(OpSource(metadata, plane.stat_metadata), np.arange(len(metadata)), (core_ops.CATEGORY,))
    out = np.zeros(ids, np.bool_)
    out[metadata.ids] = stats.is_one_of(core_ops.CATEGORY, OFF_DUTY)
    return out


def _codes(plane: Plane, ids: int, coding: Coding) -> Codes:
    """uint8[ids]: what each metadata id counts as."""
    metadata = plane.event_metadata
    stats = MetadataStats(OpSource(metadata, plane.stat_metadata), np.arange(len(metadata)), (core_ops.CATEGORY,))
    categories = [category or None for category in stats.texts(core_ops.CATEGORY)]
    known = {category: coding.of_category(category) for category in set(categories)}
    codes = np.array([-1 if (code := known[category]) is None else code for category in categories], np.int64)
    open_ids = metadata.ids[codes < 0]
    one = np.ones(len(open_ids), np.int64)
    if len(open_ids):
        table = core_ops.op_table(plane, core_ops.OpTotals(open_ids, one, one, one, one, None, {}))
        codes[codes < 0] = coding.of_ops(table)
    out = np.zeros(ids, np.uint8)
    out[metadata.ids] = codes
    return out


def _take_figures(
    room: ColumnRoom,
    rows: Mapping[str, int],
    duration: Int64s,
    stat_sums: dict[str, core_ops.StatSum],
    normalized: Floats,
) -> None:
    """Adds the stats of a block's events that few profiles have, and the compiled core leaves to numpy.

    Args:
        rows: which rows of the columns hold the stats.
        duration: how long the events took by the device's clock.
        stat_sums: sums by metadata id of the stats that some event had; updated.
        normalized: float64[ids], time at the device's nominal clock, where the plane has that stat; updated.
    """
    n, columns = room.count, room.columns
    ids = columns.metadata_id[:n]
    nominal: NDArray[np.generic] = duration[:n]
    for name, row in rows.items():
        column = StatColumn(columns.kind[row, :n], columns.value[row, :n], np.zeros(0, np.uint32))
        if column.kind.any() and column.is_number.any():
            part = core_ops.stat_sum(ids, column.floats(), len(normalized))
            so_far = stat_sums.get(name)
            stat_sums[name] = (
                part if so_far is None else core_ops.StatSum(so_far.count + part.count, so_far.total + part.total)
            )
            nominal = core_ops.scaled(duration[:n], column.floats()) if name == core_ops.TIME_SCALE else nominal
    if core_ops.TIME_SCALE in rows:
        normalized += np.bincount(ids, nominal, minlength=len(normalized))


def _totals_of(sums: OpPass, stat_sums: Mapping[str, core_ops.StatSum], normalized: Floats) -> core_ops.OpTotals:
    """The sums of the metadata ids that have events."""
    ids = np.flatnonzero(sums.occurrences).astype(np.int64)
    return core_ops.OpTotals(
        ids=ids,
        occurrences=sums.occurrences[ids],
        total_ps=sums.total_ps[ids],
        self_ps=sums.self_ps[ids],
        minimum_ps=sums.minimum_ps[ids],
        normalized_ps=normalized[ids] if core_ops.TIME_SCALE in stat_sums else None,
        stat_sums={name: core_ops.StatSum(figure.count[ids], figure.total[ids]) for name, figure in stat_sums.items()},
    )


def _columns(rows: Int64s) -> Intervals:
    """The two columns of rows of spans."""
    return rows[:, 0].copy(), rows[:, 1].copy()


def _begun_inside(start: Int64s, end: Int64s, waiting: Intervals) -> Intervals:
    """Those spans that begin strictly inside one of the disjoint, sorted intervals, without empty ones."""
    if not len(start) or not len(waiting[0]):
        return no_ints(), no_ints()
    before = np.searchsorted(waiting[0], start, side="left") - 1
    inside = (before >= 0) & (start < waiting[1][np.maximum(before, 0)]) & (end > start)
    return start[inside], end[inside]


def _device_times(times: Int64s, left: Int64s, right: Int64s, left_device: Int64s, right_device: Int64s) -> Int64s:
    """Device times of times on the trace's clock: by the op under way, else between the ends of the ops around."""
    length = np.maximum(right - left, 1)
    share = np.clip((times - left) / length, 0.0, 1.0)
    beyond = np.where(times > right, times - right, np.where(times < left, times - left, 0))  # outside all ops
    out: Int64s = left_device + np.rint(share * (right_device - left_device)).astype(np.int64) + beyond
    return out


# --- by columns ----------------------------------------------------------------------------------------------------


def sums_of_events(ops: core_ops.CoreOps, steps: Intervals, times: Int64s, coding: Coding | None = None) -> CoreSums:
    """The same sums of events that are decoded already; arguments as for `core_sums`."""
    events, start, end = ops.events, ops.event_start_ps, ops.event_end_ps
    step = place(start[events.all_reduce], *steps)
    chosen = events.all_reduce[step >= 0]
    busy = union(start, end)
    working, waiting, inside = busy, (no_ints(), no_ints()), (no_ints(), no_ints())
    if ops.off_duty.any():
        is_off = ops.off_duty[events.key]
        waiting = union(start[is_off], end[is_off])
        on_start, on_end = start[~is_off], end[~is_off]
        working = union(on_start, on_end)
        order = None if is_sorted(on_start) else np.argsort(on_start, kind="stable")
        inside = _begun_inside(*((on_start, on_end) if order is None else (on_start[order], on_end[order])), waiting)
    return CoreSums(
        table=ops.table,
        op_events=len(events.key),
        span=_span(events.start_ps, events.end_ps),
        own_span=_span(start, end),
        cells=_step_cells(steps, start, events.key, events.self_ps, len(ops.table)),
        all_reduce_step=step[step >= 0],
        all_reduce_id=events.all_reduce_id[step >= 0],
        all_reduce_ps=events.end_ps[chosen] - events.start_ps[chosen],
        busy=busy,
        working=working,
        waiting=waiting,
        inside_waits=inside,
        device_times=_device_times_of_events(ops, times),
        traced=None if coding is None else traced_of_events(ops, coding.of_ops(ops.table)),
    )


def _span(start: Int64s, end: Int64s) -> tuple[int, int] | None:
    """From the first start to the last end."""
    return (int(start.min()), int(end.max())) if len(start) else None


def _step_cells(steps: Intervals, times: Int64s, key: NDArray[np.integer], self_ps: Int64s, rows: int) -> StepCells:
    """Sums of events by the step in which they start, and by op."""
    count = len(steps[0])
    if not count or not len(times):
        return StepCells(no_ints(), no_ints(), no_ints(), no_ints())
    if is_sorted(times) and count * rows <= _DENSE * len(times):
        first = np.searchsorted(times, steps[0]).tolist()
        last = np.searchsorted(times, steps[1]).tolist()
        counts = np.stack([np.bincount(key[a:b], minlength=rows) for a, b in zip(first, last, strict=True)])
        keys = key.astype(np.int32)
        sums = np.stack([sum_by_key(keys[a:b], self_ps[a:b], rows) for a, b in zip(first, last, strict=True)])
        step, row = np.nonzero(counts)
        return StepCells(step.astype(np.int64), row.astype(np.int64), sums[step, row], counts[step, row])
    step_of_event = place(times, *steps)
    inside = np.flatnonzero(step_of_event >= 0)
    code = step_of_event[inside] * rows + key[inside]
    codes = distinct(code)
    cell = np.searchsorted(codes, code)
    return StepCells(
        codes // rows,
        codes % rows,
        sum_by_key(cell, self_ps[inside], len(codes)),
        np.bincount(cell, minlength=len(codes)).astype(np.int64),
    )


def _device_times_of_events(ops: core_ops.CoreOps, times: Int64s) -> Int64s | None:
    """See `CoreSums.device_times`; None too where events are not in order on the trace's clock."""
    events, start, end = ops.events, ops.event_start_ps, ops.event_end_ps
    if len(start) < 2 or not is_sorted(start) or np.array_equal(events.start_ps, start):
        return None
    outer = _outer(end)
    own_start, own_end, device_start, device_end = (
        column[outer] for column in (start, end, events.start_ps, events.end_ps)
    )
    op = np.maximum(np.searchsorted(own_start, times, side="right") - 1, 0)
    after = np.minimum(op + 1, len(outer) - 1)
    inside: Bools = (times <= own_end[op]) | (after == op)
    return _device_times(
        times,
        np.where(inside, own_start[op], own_end[op]),
        np.where(inside, own_end[op], own_start[after]),
        np.where(inside, device_start[op], device_end[op]),
        np.where(inside, device_end[op], device_start[after]),
    )


def _outer(end: Int64s) -> NDArray[np.intp]:
    """The events, in order of start, that do not lie inside an earlier one."""
    latest = np.maximum.accumulate(end)
    return np.flatnonzero(np.append(True, end[1:] > latest[:-1]))

"""Time by HLO op, which several pages share.

A core's `XLA Ops` events nest by containment. An event's self time is its duration minus that of its direct children.
Events add up by event metadata within a core, and by (program id, symbol id) across cores. Formulas are XProf's
(`xplane_to_op_metrics_db.cc`) unless a docstring says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Floats, Int64s, Intervals, nesting_order, no_ints
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.crew import ALONE, Crew
from tpuprof.parsers.formats.xspace.core.api import min_by_key, self_times, sum_by_key
from tpuprof.parsers.formats.xspace.events import Events, StatColumn
from tpuprof.parsers.formats.xspace.metadata import KIND_INT64, KIND_UINT64, MetadataTable
from tpuprof.parsers.formats.xspace.pieces import line_events
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Line, Plane
from tpuprof.parsers.ops.device import CUSTOM_CALL, OFF_DUTY
from tpuprof.parsers.ops.op_metadata import TRAFFIC, MetadataStats, OpSource, is_count
from tpuprof.parsers.ops.table import OpTable

OPS_LINE = "XLA Ops"
ASYNC_OPS_LINE = "Async XLA Ops"
MODULES_LINE = "XLA Modules"
STEPS_LINE = "Steps"
TRACE_ME_LINE = "XLA TraceMe"
SPARSE_OPS_LINE = "Sparse Core Ops"
SPARSE_MODULES_LINE = "Sparse Core Modules"

DEVICE_SPAN = ("device_offset_ps", "device_duration_ps")
ALL_REDUCE_ID = "all_reduce_unique_id"
TIME_SCALE = "Time Scale Multiplier"
DMA_STALL = "dma_stall_duration_ps"
ENERGY = "vdd_energy_j"

CATEGORY = "hlo_category"
COUNTS = ("flops", "model_flops", "bytes_accessed")
"""Work as the compiler counts it, for one occurrence in an op's metadata; events of custom calls may have their own."""

FAR_PS = 1 << 60
"""Two weeks: no profile is longer, and the times of some cores still add up within 64 bits."""

MOST_PS = 1 << 56
"""20 hours: a line's events take at most so long together, so that a profile's lines add up within 64 bits."""

Keys = NDArray[np.int32] | Int64s
"""Metadata ids or rows of events: four bytes each, where they fit."""


@dataclass(frozen=True, slots=True)
class OpEvents:
    """The op events of one core, sorted by start, longer ones first.

    Attributes:
        key: int32[n] or int64[n]; row of each event in the core's op rows (`CoreOps.table`).
        start_ps, end_ps: int64[n]; the device's time span where the event has one, else its own, on the trace's clock.
        self_ps: int64[n].
        all_reduce: which events are all-reduces, int64[m], ascending.
        all_reduce_id: int64[m]; the same id on several cores is one all-reduce.
    """

    key: Keys
    start_ps: Int64s
    end_ps: Int64s
    self_ps: Int64s
    all_reduce: Int64s
    all_reduce_id: Int64s


@dataclass(frozen=True, slots=True)
class CoreOps:
    """One core's ops.

    Attributes:
        table: a row for each event metadata that has events, ordered by metadata id.
        events: the single events.
        event_start_ps, event_end_ps: int64[n], the events' own spans (not the device's), in the order of `events`.
        off_duty: bool[rows of table]; whether the row's category does not count for the duty cycle.
    """

    table: OpTable
    events: OpEvents
    event_start_ps: Int64s
    event_end_ps: Int64s
    off_duty: Bools


def line_start(line: Line) -> int:
    """When a line's clock starts, in picoseconds."""
    return max(-FAR_PS, min(line.timestamp_ns * 1000, FAR_PS))


class EventTimes(Protocol):
    """Events with the times that the file has, relative to their line's clock: int64[n]."""

    @property
    def offset_ps(self) -> Int64s:
        """When each starts."""

    @property
    def duration_ps(self) -> Int64s:
        """How long it takes."""


def event_spans(line: Line, events: EventTimes, in_place: bool = False) -> Intervals:
    """Start and end of each event on the trace's clock, in picoseconds; `in_place` overwrites the events' columns."""
    shift = line_start(line)
    start = _within(events.offset_ps)
    start = _within(np.add(start, np.int64(shift), out=start if in_place else None)) if shift else start
    end = _lasting(events.duration_ps, in_place)
    end += start
    return start, end


def _within(times: Int64s) -> Int64s:
    """Cuts times to `FAR_PS` on either side; only a damaged profile has others."""
    if not len(times) or (int(times.max()) <= FAR_PS and int(times.min()) >= -FAR_PS):
        return times
    return np.clip(times, -FAR_PS, FAR_PS)


def _lasting(durations: Int64s, in_place: bool = False) -> Int64s:
    """Copies durations, and cuts them so that none is negative and their sum is at most `MOST_PS`."""
    out = durations if in_place else durations.copy()
    if not len(out) or (int(out.min()) >= 0 and float(out.sum(dtype=np.float64)) <= MOST_PS):
        return out
    return np.clip(out, 0, MOST_PS // len(out), out=out)


def device_spans(events: Events, start: Int64s, end: Int64s) -> Intervals:
    """The device's own time span of events that have both its stats, else the span given (XProf's device timespan)."""
    columns = [events.stats.get(name) for name in DEVICE_SPAN]
    if columns[0] is None or columns[1] is None:
        return start, end
    offset = _within(columns[0].integers()).copy()  # a view of it would keep the columns of all stats
    device_end = _lasting(columns[1].integers())
    device_end += offset
    if all(column.uniform_kind in (KIND_UINT64, KIND_INT64) for column in columns if column is not None):
        return offset, device_end
    both = columns[0].is_number & columns[1].is_number
    return np.where(both, offset, start), np.where(both, device_end, end)


def line_spans(plane: Plane, name: str, device: bool = False, on_chunk: ChunkDone | None = None) -> list[Intervals]:
    """Spans of the events of each line of that name; with `device` by the device's clock."""
    spans = []
    for line in plane.lines:
        if line.name == name:
            events = line.events(DEVICE_SPAN if device else (), on_chunk)
            start, end = event_spans(line, events)
            spans.append(device_spans(events, start, end) if device else (start, end))
    return spans


def time_span(spans: Sequence[Intervals]) -> tuple[int, int]:
    """From the first start to the last end; zeros without any event."""
    filled = [(start, end) for start, end in spans if len(start)]
    if not filled:
        return 0, 0
    return min(int(start.min()) for start, _ in filled), max(int(end.max()) for _, end in filled)


def as_interval(span: tuple[int, int]) -> Intervals:
    """One span as intervals."""
    return np.array(span[:1]), np.array(span[1:])


@dataclass(frozen=True, slots=True)
class _LineOps:
    """The sorted events of one op line; see `OpEvents` and `CoreOps`.

    Attributes:
        stat_sums: stats of single events that the line has, by name, NaN where an event has none: float64[n].
    """

    metadata_id: Keys
    start_ps: Int64s
    end_ps: Int64s
    own_start_ps: Int64s
    own_end_ps: Int64s
    self_ps: Int64s
    all_reduce: Int64s
    all_reduce_id: Int64s
    stat_sums: Mapping[str, Floats]


def core_ops(plane: Plane, on_chunk: ChunkDone | None = None, crew: Crew = ALONE) -> CoreOps:
    """Decodes and sums the op events of one core; a plane without an `XLA Ops` line gives an empty table."""
    stats = event_stats(plane)
    ops = _join([_line_ops(line, stats, on_chunk, crew) for line in plane.lines if line.name == OPS_LINE])
    key, metadata_ids = _dense(ops.metadata_id)
    table = op_table(plane, _totals(key, metadata_ids, ops))
    return CoreOps(
        table=table,
        events=OpEvents(key, ops.start_ps, ops.end_ps, ops.self_ps, ops.all_reduce, ops.all_reduce_id),
        event_start_ps=ops.own_start_ps,
        event_end_ps=ops.own_end_ps,
        off_duty=np.array([category in OFF_DUTY for category in table.category], np.bool_),
    )


def event_stats(plane: Plane) -> tuple[str, ...]:
    """The stats to read of each op event; only custom calls need the counts of single events."""
    stats = (*DEVICE_SPAN, ALL_REDUCE_ID, TIME_SCALE, DMA_STALL, ENERGY)
    category = CUSTOM_CALL.encode()
    may_have_calls = category in plane.event_metadata.body or category in plane.stat_metadata.body
    return (*stats, *COUNTS) if may_have_calls else stats


def _join(lines: Sequence[_LineOps]) -> _LineOps:
    """Joins the op lines of a core; nearly always there is just one."""
    if len(lines) == 1:
        return lines[0]
    if not lines:
        none = no_ints()
        return _LineOps(none, none, none, none, none, none, none, none, {})
    shift = np.cumsum([0, *(len(line.start_ps) for line in lines)])
    joined = _LineOps(
        metadata_id=np.concatenate([line.metadata_id for line in lines]),
        start_ps=np.concatenate([line.start_ps for line in lines]),
        end_ps=np.concatenate([line.end_ps for line in lines]),
        own_start_ps=np.concatenate([line.own_start_ps for line in lines]),
        own_end_ps=np.concatenate([line.own_end_ps for line in lines]),
        self_ps=np.concatenate([line.self_ps for line in lines]),
        all_reduce=np.concatenate(
            [line.all_reduce + first for line, first in zip(lines, shift.tolist(), strict=False)]
        ),
        all_reduce_id=np.concatenate([line.all_reduce_id for line in lines]),
        stat_sums={
            name: np.concatenate([line.stat_sums.get(name, np.full(len(line.start_ps), np.nan)) for line in lines])
            for name in dict.fromkeys(name for line in lines for name in line.stat_sums)
        },
    )
    order = nesting_order(joined.start_ps, joined.end_ps)
    return joined if order is None else _sorted(joined, order)


def _sorted(ops: _LineOps, order: NDArray[np.intp]) -> _LineOps:
    """Events in this order."""
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    reduced = np.argsort(place[ops.all_reduce])
    return _LineOps(
        metadata_id=ops.metadata_id[order],
        start_ps=ops.start_ps[order],
        end_ps=ops.end_ps[order],
        own_start_ps=ops.own_start_ps[order],
        own_end_ps=ops.own_end_ps[order],
        self_ps=ops.self_ps[order],
        all_reduce=place[ops.all_reduce][reduced],
        all_reduce_id=ops.all_reduce_id[reduced],
        stat_sums={name: values[order] for name, values in ops.stat_sums.items()},
    )


def _line_ops(line: Line, stats: Sequence[str], on_chunk: ChunkDone | None, crew: Crew) -> _LineOps:
    events = line_events(line, stats, on_chunk, places=False, crew=crew)
    own_start, own_end = event_spans(line, events)
    start, end = device_spans(events, own_start, own_end)
    ids: Keys = events.metadata_id
    order = nesting_order(start, end)
    if order is not None:
        ids, start, end = ids[order], start[order], end[order]
        own_start, own_end = own_start[order], own_end[order]
    reduced, reduced_ids = _all_reduces(events.stats.get(ALL_REDUCE_ID), order)
    stat_sums = {
        name: column.floats() if order is None else column.floats()[order]
        for name, column in events.stats.items()
        if name in (TIME_SCALE, DMA_STALL, ENERGY, *COUNTS) and column.is_number.any()
    }
    return _LineOps(ids, start, end, own_start, own_end, self_times(start, end), reduced, reduced_ids, stat_sums)


def _all_reduces(column: StatColumn | None, order: NDArray[np.intp] | None) -> tuple[Int64s, Int64s]:
    """The few of the sorted events that have an all-reduce id other than 0, and these ids."""
    if column is None:
        return no_ints(), no_ints()
    kind = column.kind if order is None else column.kind[order]
    reducing = np.flatnonzero((kind == KIND_UINT64) | (kind == KIND_INT64)).astype(np.int64)
    ids = column.value[reducing if order is None else order[reducing]]
    return reducing[ids != 0], ids[ids != 0]


def _dense(ids: Keys) -> tuple[Keys, Int64s]:
    """Maps metadata ids to rows: returns each event's row and the rows' ids, ascending."""
    if not len(ids):
        return ids, ids.astype(np.int64)
    low, high = int(ids.min()), int(ids.max())
    if low < 0 or high > 4 * len(ids) + 1_000_000:
        distinct_ids, key = np.unique(ids, return_inverse=True)
        return key.astype(np.int64), distinct_ids.astype(np.int64)
    used = np.zeros(high + 1, np.bool_)
    used[ids] = True
    rows = np.flatnonzero(used).astype(np.int64)
    lookup = np.zeros(high + 1, np.int32)
    lookup[rows] = np.arange(len(rows))
    return lookup[ids], rows


_OP_STATS = (
    "program_id",
    "symbol_id",
    CATEGORY,
    "tf_op",
    "memory_access_breakdown",
    *COUNTS,
)


@dataclass(frozen=True, slots=True)
class StatSum:
    """A stat of single events by op: `count` (int64[n]) events have it, and it adds up to `total` (float64[n])."""

    count: Int64s
    total: Floats


@dataclass(frozen=True, slots=True)
class OpTotals:
    """Sums of a core's events by op.

    Attributes:
        ids: int64[n], ascending; the ops' metadata ids.
        occurrences, total_ps, self_ps, minimum_ps: int64[n], as in `OpTable`.
        normalized_ps: float64[n], total time at the nominal clock; None where no event records it.
        stat_sums: sums of stats of single events, by name, without those that no event has.
    """

    ids: Int64s
    occurrences: Int64s
    total_ps: Int64s
    self_ps: Int64s
    minimum_ps: Int64s
    normalized_ps: Floats | None
    stat_sums: Mapping[str, StatSum]


def stat_sum(key: NDArray[np.integer], values: Floats, n: int) -> StatSum:
    """Sums the events' values that are counts (see `is_count`) by key in [0, n)."""
    known = is_count(values)
    key = key[known]
    return StatSum(
        np.bincount(key, minlength=n).astype(np.int64), np.bincount(key, values[known], minlength=n).astype(np.float64)
    )


def scaled(duration: Int64s, scale: Floats) -> Floats:
    """float64[n]: durations at the nominal clock; one with no multiplier, or an absurd one, counts as it is."""
    factor: Floats = np.where((scale > 0) & (scale < 1e3), scale, 1.0)
    return factor * duration


def _totals(key: Keys, metadata_ids: Int64s, ops: _LineOps) -> OpTotals:
    """Sums the events by their row."""
    return totals_of(key, metadata_ids, ops.end_ps - ops.start_ps, ops.self_ps, ops.stat_sums)


def totals_of(
    key: Keys, metadata_ids: Int64s, duration: Int64s, self_ps: Int64s, stat_sums: Mapping[str, Floats]
) -> OpTotals:
    """Sums of events by their row.

    Args:
        key: the row of each event; metadata_ids: of each row.
        duration, self_ps: int64[events].
        stat_sums: stats of single events by name, NaN where an event has none: float64[events].
    """
    n = len(metadata_ids)
    scale = stat_sums.get(TIME_SCALE)
    return OpTotals(
        ids=metadata_ids,
        occurrences=np.bincount(key, minlength=n).astype(np.int64),
        total_ps=sum_by_key(key, duration, n),
        self_ps=sum_by_key(key, self_ps, n),
        minimum_ps=min_by_key(key, duration, n),
        normalized_ps=None if scale is None else np.bincount(key, scaled(duration, scale), n).astype(np.float64),
        stat_sums={name: stat_sum(key, values, n) for name, values in stat_sums.items()},
    )


def op_table(plane: Plane, totals: OpTotals, parent: tuple[str, ...] | None = None) -> OpTable:
    """A row for each metadata id with its sums, and what the profile says about the op.

    Args:
        parent: for what op of a TensorCore a SparseCore ran each row; None on a TensorCore.
    """
    metadata = plane.event_metadata
    rows = metadata.rows(totals.ids)
    source = OpSource(metadata, plane.stat_metadata)
    columns = MetadataStats(source, rows, _OP_STATS)
    occurrences, stat_sums = totals.occurrences, totals.stat_sums
    category = tuple(value or None for value in columns.texts(CATEGORY))
    names = tuple(op_name(metadata, int(row), int(mid)) for row, mid in zip(rows, totals.ids, strict=True))
    program, has_program = columns.unsigned("program_id")
    symbol, has_symbol = columns.unsigned("symbol_id")
    is_call = np.array([value == CUSTOM_CALL for value in category], np.bool_)
    flops, model_flops, bytes_accessed = (
        _counted(columns.number(name), occurrences, is_call, stat_sums.get(name)) for name in COUNTS
    )
    traffic = columns.memory_access() * occurrences.astype(np.float64)[:, None]
    # a kernel that nobody counted has the counts 0 (Pallas without a cost estimate); that is no work of none
    flops[is_call & (flops == 0)] = np.nan
    is_moving = np.nan_to_num(bytes_accessed) + np.nan_to_num(traffic).sum(axis=1) > 0
    bytes_accessed[is_call & ~is_moving] = np.nan
    traffic[is_call & ~is_moving] = np.nan
    # XProf's rule: where the profile has no bytes by memory, all count as HBM's; where it had some, they are not known
    undivided = ~columns.has("memory_access_breakdown")
    traffic[undivided, TRAFFIC.index("hbm")] = bytes_accessed[undivided]
    return OpTable(
        program_id=program,
        symbol_id=symbol,
        has_ids=has_program & has_symbol,
        name=names,
        category=category,
        framework_op=tuple(value or "" for value in columns.texts("tf_op")),
        occurrences=occurrences,
        total_ps=totals.total_ps,
        self_ps=totals.self_ps,
        minimum_ps=totals.minimum_ps,
        in_steps_ps=np.zeros(len(rows), np.int64),
        normalized_ps=totals.total_ps.astype(np.float64) if totals.normalized_ps is None else totals.normalized_ps,
        dma_stall_ps=_of_events(stat_sums.get(DMA_STALL), len(rows)),
        flops=flops,
        # XProf's rule: model FLOPs are the FLOPs where the profile gives none of their own
        model_flops=np.where(np.nan_to_num(model_flops) > 0, model_flops, flops),
        bytes_accessed=bytes_accessed,
        traffic=traffic,
        energy_j=_of_events(stat_sums.get(ENERGY), len(rows)),
        parent=("",) * len(rows) if parent is None else parent,
        source=np.where(rows >= 0, 0, -1).astype(np.int64),
        metadata_row=rows,
        sources=(source,),
        has_time_scale=totals.normalized_ps is not None,
    )


def _counted(of_one: Floats, occurrences: Int64s, is_call: Bools, of_events: StatSum | None) -> Floats:
    """Work over all occurrences: the metadata's count for each, or the event's own count where a custom call has one.

    Recent versions of XProf add up both; 2.24.2 does not know counts of events.
    """
    work: Floats = of_one * occurrences
    if of_events is None or not is_call.any():
        return work
    rest = np.where(of_events.count < occurrences, of_one * (occurrences - of_events.count), 0.0)
    return np.where(is_call & (of_events.count > 0), of_events.total + np.nan_to_num(rest), work)


def _of_events(figure: StatSum | None, count: int) -> Floats:
    """float64[count]: what a stat of the events adds up to, NaN where none has it."""
    return np.full(count, np.nan) if figure is None else np.where(figure.count > 0, figure.total, np.nan)


def op_name(metadata: MetadataTable, row: int, metadata_id: int) -> str:
    """Short name of an op: the display name, else the name before ``=`` in its text, else its metadata id."""
    if row < 0:
        return f"event {metadata_id}"
    return metadata.display_name(row) or metadata.name(row).partition(" = ")[0].lstrip("%") or f"event {metadata_id}"

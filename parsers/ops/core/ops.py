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

from tpuprof.parsers.base.intervals import Bools, Floats, Int64s, Intervals
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.xspace.core.api import min_by_key, sum_by_key
from tpuprof.parsers.formats.xspace.events import Events
from tpuprof.parsers.formats.xspace.metadata import KIND_INT64, KIND_UINT64, MetadataTable
from tpuprof.parsers.formats.xspace.trace import Line, Plane
from tpuprof.parsers.ops.device import CUSTOM_CALL
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


def line_start(line: Line) -> int:
    """When a line's clock starts, in picoseconds."""
    return max(-FAR_PS, min(line.timestamp_ns * 1000, FAR_PS))


class EventTimes(Protocol):
    """Events with the times that the file has, relative to their line's clock: int64[n]."""

    @property
    def offset_ps(self) -> Int64s: ...

    @property
    def duration_ps(self) -> Int64s: ...


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


def line_spans(plane: Plane, name: str, device: bool = False) -> list[Intervals]:
    """Spans of the events of each line of that name; with `device` by the device's clock."""
    spans = []
    for line in plane.lines:
        if line.name == name:
            events = line.events(DEVICE_SPAN if device else ())
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


def event_stats(plane: Plane) -> tuple[str, ...]:
    """The stats to read of each op event; only custom calls need the counts of single events."""
    stats = (*DEVICE_SPAN, ALL_REDUCE_ID, TIME_SCALE, DMA_STALL, ENERGY)
    category = CUSTOM_CALL.encode()
    may_have_calls = category in plane.event_metadata.body or category in plane.stat_metadata.body
    return (*stats, *COUNTS) if may_have_calls else stats


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

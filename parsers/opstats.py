"""Time by HLO op: what several pages share.

A core's `XLA Ops` events nest by containment; the self time of an event is its duration less that of its direct
children. Events add up by event metadata within a core, by (program id, symbol id) across cores. Formulas are XProf's
(`xplane_to_op_metrics_db.cc`) except where a docstring says otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from tpuprof.parsers.device import OFF_DUTY, op_class
from tpuprof.parsers.intervals import Int64s, nesting_order
from tpuprof.parsers.pages.overview_page import OpClass
from tpuprof.parsers.proto import xplane_pb2
from tpuprof.parsers.xspace.core import min_by_key, nest, sum_by_key
from tpuprof.parsers.xspace.events import Events, StatColumn
from tpuprof.parsers.xspace.metadata import KIND_BYTES, KIND_INT64, KIND_REF, KIND_STR, KIND_UINT64, MetadataTable
from tpuprof.parsers.xspace.trace import ChunkDone, Line, Plane
from tpuprof.parsers.xspace.walk import text

OPS_LINE = "XLA Ops"
MODULES_LINE = "XLA Modules"
STEPS_LINE = "Steps"

_DEVICE_SPAN = ("device_offset_ps", "device_duration_ps")
ALL_REDUCE_ID = "all_reduce_unique_id"

_HBM = 1

Keys = NDArray[np.int32] | NDArray[np.int64]
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
class OpTable:
    """One row for each distinct HLO op.

    Attributes:
        program_id, symbol_id: uint64[n]; 0 with `has_ids` False for an op that the profile doesn't identify.
        has_ids: bool[n].
        name: short name of the op (``fusion.7``).
        category: HLO category, None where missing.
        framework_op: the `tf_op` stat (``jit(f)/…/dot_general:``), empty where missing.
        occurrences: int64[n].
        total_ps, self_ps, minimum_ps: int64[n]; sums over occurrences, and the shortest one.
        flops, model_flops, hbm_bytes, other_bytes: float64[n]; over all occurrences, NaN where the profile has none.
    """

    program_id: NDArray[np.uint64]
    symbol_id: NDArray[np.uint64]
    has_ids: NDArray[np.bool_]
    name: tuple[str, ...]
    category: tuple[str | None, ...]
    framework_op: tuple[str, ...]
    occurrences: Int64s
    total_ps: Int64s
    self_ps: Int64s
    minimum_ps: Int64s
    flops: NDArray[np.float64]
    model_flops: NDArray[np.float64]
    hbm_bytes: NDArray[np.float64]
    other_bytes: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.name)

    def classes(self) -> tuple[OpClass, ...]:
        """What the core does during each row's ops."""
        with_flops = np.nan_to_num(self.flops) > 0
        return tuple(map(op_class, self.category, self.name, with_flops.tolist()))


@dataclass(frozen=True, slots=True)
class CoreOps:
    """One core's ops.

    Attributes:
        table: a row for each event metadata that has events, ordered by metadata id.
        events: the single events.
        event_start_ps, event_end_ps: int64[n], the events' own spans in the order of `events` (not the device's).
        off_duty: bool[rows of table]; the row's category is not part of the duty cycle.
    """

    table: OpTable
    events: OpEvents
    event_start_ps: Int64s
    event_end_ps: Int64s
    off_duty: NDArray[np.bool_]


def event_spans(line: Line, events: Events) -> tuple[Int64s, Int64s]:
    """Start and end of each event on the trace's clock, in picoseconds."""
    start = events.offset_ps + np.int64(line.timestamp_ns) * np.int64(1000) if line.timestamp_ns else events.offset_ps
    end = np.maximum(events.duration_ps, 0)
    end += start
    return start, end


def device_spans(events: Events, start: Int64s, end: Int64s) -> tuple[Int64s, Int64s]:
    """The device's own time span where an event has both its stats, else the span given (XProf's device timespan)."""
    columns = [events.stats.get(name) for name in _DEVICE_SPAN]
    if columns[0] is None or columns[1] is None:
        return start, end
    offset, device_end = columns[0].integers(), np.maximum(columns[1].integers(), 0)
    device_end += offset
    if all(column.uniform_kind in (KIND_UINT64, KIND_INT64) for column in columns if column is not None):
        return offset, device_end
    both = columns[0].is_number & columns[1].is_number
    return np.where(both, offset, start), np.where(both, device_end, end)


@dataclass(frozen=True, slots=True)
class _LineOps:
    """The sorted events of one op line; see `OpEvents` and `CoreOps`."""

    metadata_id: Keys
    start_ps: Int64s
    end_ps: Int64s
    own_start_ps: Int64s
    own_end_ps: Int64s
    self_ps: Int64s
    all_reduce: Int64s
    all_reduce_id: Int64s


def core_ops(plane: Plane, on_chunk: ChunkDone | None = None) -> CoreOps:
    """Decodes and sums the op events of one core. A plane without an `XLA Ops` line gives an empty table."""
    ops = _join([_line_ops(line, on_chunk) for line in plane.lines if line.name == OPS_LINE])
    key, metadata_ids = _dense(ops.metadata_id)
    table = _op_rows(plane, metadata_ids, key, ops.end_ps - ops.start_ps, ops.self_ps)
    return CoreOps(
        table=table,
        events=OpEvents(key, ops.start_ps, ops.end_ps, ops.self_ps, ops.all_reduce, ops.all_reduce_id),
        event_start_ps=ops.own_start_ps,
        event_end_ps=ops.own_end_ps,
        off_duty=np.array([category in OFF_DUTY for category in table.category], np.bool_),
    )


def _join(lines: Sequence[_LineOps]) -> _LineOps:
    """Puts the op lines of a core together; nearly always there is just one."""
    if len(lines) == 1:
        return lines[0]
    if not lines:
        none = np.zeros(0, np.int64)
        return _LineOps(none, none, none, none, none, none, none, none)
    shift = np.cumsum([0, *(len(line.start_ps) for line in lines)])
    return _LineOps(
        metadata_id=np.concatenate([line.metadata_id for line in lines]),
        start_ps=np.concatenate([line.start_ps for line in lines]),
        end_ps=np.concatenate([line.end_ps for line in lines]),
        own_start_ps=np.concatenate([line.own_start_ps for line in lines]),
        own_end_ps=np.concatenate([line.own_end_ps for line in lines]),
        self_ps=np.concatenate([line.self_ps for line in lines]),
        all_reduce=np.concatenate([line.all_reduce + at for line, at in zip(lines, shift.tolist(), strict=False)]),
        all_reduce_id=np.concatenate([line.all_reduce_id for line in lines]),
    )


def _line_ops(line: Line, on_chunk: ChunkDone | None) -> _LineOps:
    events = line.events(stats=(*_DEVICE_SPAN, ALL_REDUCE_ID), on_chunk=on_chunk, places=False)
    own_start, own_end = event_spans(line, events)
    start, end = device_spans(events, own_start, own_end)
    ids: Keys = events.metadata_id
    order = nesting_order(start, end)
    if order is not None:
        ids, start, end = ids[order], start[order], end[order]
        own_start, own_end = own_start[order], own_end[order]
    reduced, reduced_ids = _all_reduces(events.stats.get(ALL_REDUCE_ID), order)
    return _LineOps(ids, start, end, own_start, own_end, nest(start, end).self_ps, reduced, reduced_ids)


def _all_reduces(column: StatColumn | None, order: NDArray[np.intp] | None) -> tuple[Int64s, Int64s]:
    """Which of the sorted events have an all-reduce id other than 0, and the ids: few events of many."""
    if column is None:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    kind = column.kind if order is None else column.kind[order]
    at = np.flatnonzero((kind == KIND_UINT64) | (kind == KIND_INT64)).astype(np.int64)
    ids = column.value[at if order is None else order[at]]
    return at[ids != 0], ids[ids != 0]


def _dense(ids: Keys) -> tuple[Keys, Int64s]:
    """Maps metadata ids to rows: returns each event's row and the rows' ids, ascending."""
    if not len(ids):
        return ids, ids.astype(np.int64)
    low, high = int(ids.min()), int(ids.max())
    if low < 0 or high > 4 * len(ids) + 1_000_000:
        found, key = np.unique(ids, return_inverse=True)
        return key.astype(np.int64), found.astype(np.int64)
    used = np.zeros(high + 1, np.bool_)
    used[ids] = True
    rows = np.flatnonzero(used).astype(np.int64)
    lookup = np.zeros(high + 1, np.int32)
    lookup[rows] = np.arange(len(rows))
    return lookup[ids], rows


_OP_STATS = (
    "program_id",
    "symbol_id",
    "hlo_category",
    "tf_op",
    "flops",
    "model_flops",
    "memory_access_breakdown",
)


def _op_rows(plane: Plane, metadata_ids: Int64s, key: Keys, duration: Int64s, self_ps: Int64s) -> OpTable:
    """Sums the events of each metadata id and looks up what the profile says of the op."""
    n = len(metadata_ids)
    metadata = plane.event_metadata
    rows = metadata.rows(metadata_ids)
    columns = _MetadataStats(plane, metadata, rows)
    occurrences = np.bincount(key, minlength=n).astype(np.int64)
    times = occurrences.astype(np.float64)
    names = tuple(_op_name(metadata, int(row), int(mid)) for row, mid in zip(rows, metadata_ids, strict=True))
    program, has_program = columns.unsigned("program_id")
    symbol, has_symbol = columns.unsigned("symbol_id")
    flops = columns.number("flops")
    model_flops = columns.number("model_flops")
    hbm, other = columns.memory_access()
    return OpTable(
        program_id=program,
        symbol_id=symbol,
        has_ids=has_program & has_symbol,
        name=names,
        category=tuple(value or None for value in columns.texts("hlo_category")),
        framework_op=tuple(value or "" for value in columns.texts("tf_op")),
        occurrences=occurrences,
        total_ps=sum_by_key(key, duration, n),
        self_ps=sum_by_key(key, self_ps, n),
        minimum_ps=min_by_key(key, duration, n),
        flops=flops * times,
        # XProf's rule: model FLOPs are the FLOPs where the profile gives none of their own
        model_flops=np.where(np.nan_to_num(model_flops) > 0, model_flops, flops) * times,
        hbm_bytes=hbm * times,
        other_bytes=other * times,
    )


def _op_name(metadata: MetadataTable, row: int, metadata_id: int) -> str:
    """Short name of an op: the display name, else what stands before ``=`` in its text, else its metadata id."""
    if row < 0:
        return f"event {metadata_id}"
    return metadata.display_name(row) or metadata.name(row).partition(" = ")[0].lstrip("%") or f"event {metadata_id}"


class _MetadataStats:
    """Columns of event-metadata stats for chosen rows (-1: a row without metadata)."""

    def __init__(self, plane: Plane, metadata: MetadataTable, rows: Int64s) -> None:
        self._plane = plane
        self._body = metadata.body
        self._known = np.flatnonzero(rows >= 0)
        self._n = len(rows)
        ids = plane.stat_ids(_OP_STATS)
        self._at = {name: at for at, name in enumerate(ids)}
        self._fields = metadata.stats(np.array(list(ids.values()), np.int64), rows[self._known])

    def _column(self, name: str) -> tuple[NDArray[np.uint8], Int64s, Int64s]:
        at = self._at.get(name)
        if at is None:
            empty = np.zeros(len(self._known), np.int64)
            return np.zeros(len(self._known), np.uint8), empty, empty
        return self._fields.kind[at], self._fields.value[at], self._fields.length[at]

    def unsigned(self, name: str) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """Integer ids and where there is a non-zero one."""
        kind, value, _ = self._column(name)
        out = np.zeros(self._n, np.uint64)
        out[self._known] = np.where((kind == 3) | (kind == 4), value, 0).view(np.uint64)
        return out, out != 0

    def number(self, name: str) -> NDArray[np.float64]:
        """Numbers, NaN where the stat is missing or of another type."""
        kind, value, _ = self._column(name)
        out = np.full(self._n, np.nan)
        known = np.full(len(self._known), np.nan)
        for code, dtype in ((2, np.float64), (3, np.uint64), (4, np.int64)):
            chosen = kind == code
            known[chosen] = value[chosen].view(dtype)
        known[~np.isfinite(known)] = np.nan
        out[self._known] = known
        return out

    def _bytes(self, name: str) -> list[bytes | None]:
        out: list[bytes | None] = [None] * self._n
        kind, value, length = self._column(name)
        for at in np.flatnonzero((kind == KIND_STR) | (kind == KIND_BYTES)):
            begin = int(value[at])
            out[self._known[at]] = self._body[begin : begin + int(length[at])]
        return out

    def texts(self, name: str) -> list[str | None]:
        """Texts; references are looked up."""
        out = [None if raw is None else text(raw) for raw in self._bytes(name)]
        kind, value, _ = self._column(name)
        names: dict[int, str | None] = {}
        for at in np.flatnonzero(kind == KIND_REF):
            reference = int(value[at])
            if reference not in names:
                row = self._plane.stat_metadata.row(reference)
                names[reference] = None if row is None else self._plane.stat_metadata.name(row)
            out[self._known[at]] = names[reference]
        return out

    def memory_access(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Bytes read and written in HBM and in other memories, NaN where the profile has no breakdown."""
        hbm, other = np.full(self._n, np.nan), np.full(self._n, np.nan)
        parsed: dict[bytes, tuple[float, float] | None] = {}
        for at, raw in enumerate(self._bytes("memory_access_breakdown")):
            if raw is None:
                continue
            if raw not in parsed:
                try:
                    access = xplane_pb2.MemoryAccessBreakdown.FromString(raw).memory_accessed
                except DecodeError:
                    parsed[raw] = None
                else:
                    sums = [0, 0]
                    for entry in access:
                        sums[entry.memory_space != _HBM] += entry.bytes_accessed
                    parsed[raw] = (float(sums[0]), float(sums[1]))
            found = parsed[raw]
            if found is not None:
                hbm[at], other[at] = found
        return hbm, other


def merge_tables(tables: Sequence[OpTable]) -> OpTable:
    """Adds the rows of several cores or hosts: by (program id, symbol id), ops without ids by name."""
    tables = [table for table in tables if len(table)]
    if not tables:
        return EMPTY_TABLE
    names = [name for table in tables for name in table.name]
    categories = [category for table in tables for category in table.category]
    framework = [op for table in tables for op in table.framework_op]
    has_ids = np.concatenate([table.has_ids for table in tables])
    program = np.where(has_ids, np.concatenate([table.program_id for table in tables]), np.uint64(0))
    symbol = np.where(has_ids, np.concatenate([table.symbol_id for table in tables]), np.uint64(0))
    by_name: dict[str, int] = {}
    for at in np.flatnonzero(~has_ids):
        symbol[at] = by_name.setdefault(names[at], len(by_name))
    order = np.lexsort((symbol, program, has_ids))
    changes = [column[order][1:] != column[order][:-1] for column in (has_ids, program, symbol)]
    first = np.flatnonzero(np.append(True, changes[0] | changes[1] | changes[2]))
    lead = order[first]

    def total(column: str) -> NDArray[np.generic]:
        values = np.concatenate([getattr(table, column) for table in tables])[order]
        if values.dtype == np.float64:  # unknown only where every part is
            unknown = np.logical_and.reduceat(np.isnan(values), first)
            return np.where(unknown, np.nan, np.add.reduceat(np.nan_to_num(values), first))
        result: NDArray[np.generic] = np.add.reduceat(values, first)
        return result

    return OpTable(
        program_id=program[lead],
        symbol_id=np.where(has_ids[lead], symbol[lead], np.uint64(0)),
        has_ids=has_ids[lead],
        name=tuple(names[at] for at in lead),
        category=tuple(categories[at] for at in lead),
        framework_op=tuple(framework[at] for at in lead),
        occurrences=total("occurrences").astype(np.int64),
        total_ps=total("total_ps").astype(np.int64),
        self_ps=total("self_ps").astype(np.int64),
        minimum_ps=np.minimum.reduceat(np.concatenate([table.minimum_ps for table in tables])[order], first),
        flops=total("flops").astype(np.float64),
        model_flops=total("model_flops").astype(np.float64),
        hbm_bytes=total("hbm_bytes").astype(np.float64),
        other_bytes=total("other_bytes").astype(np.float64),
    )


_NO_INTS = np.zeros(0, np.int64)
_NO_FLOATS = np.zeros(0, np.float64)
EMPTY_TABLE = OpTable(
    program_id=np.zeros(0, np.uint64),
    symbol_id=np.zeros(0, np.uint64),
    has_ids=np.zeros(0, np.bool_),
    name=(),
    category=(),
    framework_op=(),
    occurrences=_NO_INTS,
    total_ps=_NO_INTS,
    self_ps=_NO_INTS,
    minimum_ps=_NO_INTS,
    flops=_NO_FLOATS,
    model_flops=_NO_FLOATS,
    hbm_bytes=_NO_FLOATS,
    other_bytes=_NO_FLOATS,
)

"""The events that allocators leave in a host's profile, as columns.

An allocator (of a device's HBM, of a GPU, of pinned host memory) marks each allocation and deallocation on the thread
that asks for it, with what is in use then as stats. Those are few among a host's events, so their stats are decoded
from the places of these events alone, a few thousand at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Floats, Int64s
from tpuprof.parsers.base.record import Sized, dataclass, fields
from tpuprof.parsers.formats.xspace.core.api import stat_columns
from tpuprof.parsers.formats.xspace.events import StatColumn
from tpuprof.parsers.formats.xspace.metadata import KIND_BYTES, KIND_REF, KIND_STR, STATS_OF_EVENT
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Plane, Trace
from tpuprof.parsers.formats.xspace.walk import text
from tpuprof.parsers.ops.core.ops import event_spans
from tpuprof.parsers.ops.host_events.events import HOST_PLANE

ALLOCATION, DEALLOCATION = "MemoryAllocation", "MemoryDeallocation"

OF_DEVICE, OF_NAME = ("index_on_host", "device_ordinal"), "allocator_name"
"""Stats that number the device whose memory it is; one of another kind has a name instead."""

_BYTES = {
    "stack_bytes": "bytes_reserved",
    "heap_bytes": "bytes_allocated",
    "free_bytes": "bytes_available",
    "lifetime_peak_bytes": "peak_bytes_in_use",
    "requested_bytes": "requested_bytes",
    "allocated_bytes": "allocation_bytes",
}
"""Stat of each column of bytes."""

_STATS = (*OF_DEVICE, OF_NAME, *_BYTES.values(), "fragmentation", "addr")

MOST_BYTES = 1 << 60
"""No memory has more; such a number is damage, and unknown. Three of them add up within 64 bits."""

_CHUNK_EVENTS, _CHUNK_BYTES, _MOST_TEXT = 1 << 14, 1 << 24, 1 << 12
"""What is read at a time, of a longer event only as much; and bytes of a text that are kept."""


@dataclass(frozen=True, slots=True)
class AllocatorEvents(Sized):
    """The events of all allocators of a host: columns over n events, in the order of the file.

    Attributes:
        ids: names of the allocators; the number of a device as text.
        is_device: which of them are devices, one an id.
        allocator: int32[n], index into `ids`.
        time_ps: int64[n], on the trace's clock.
        is_allocation: bool[n].
        stack_bytes, heap_bytes, free_bytes: int64[n], after the event; -1 where the event does not record it.
        lifetime_peak_bytes: int64[n], most on the heap since the process began; -1 where unknown.
        requested_bytes, allocated_bytes: int64[n], of the event itself; -1 where unknown.
        fragmentation: float64[n], 0 to 1; NaN where unknown.
        address: int64[n], 64 bits whatever their sign.
        has_address: bool[n].
        begin, length: int64[n] and uint32[n], where each event lies in the file.
    """

    sized_by = "time_ps"
    ids: tuple[str, ...]
    is_device: tuple[bool, ...]
    allocator: NDArray[np.int32]
    time_ps: Int64s
    is_allocation: NDArray[np.bool_]
    stack_bytes: Int64s
    heap_bytes: Int64s
    free_bytes: Int64s
    lifetime_peak_bytes: Int64s
    requested_bytes: Int64s
    allocated_bytes: Int64s
    fragmentation: Floats
    address: Int64s
    has_address: NDArray[np.bool_]
    begin: Int64s
    length: NDArray[np.uint32]

    def take(self, rows: NDArray[np.int64]) -> AllocatorEvents:
        columns = (getattr(self, field.name)[rows] for field in fields(self)[2:])
        return AllocatorEvents(self.ids, self.is_device, *columns)


def host_plane(trace: Trace) -> Plane | None:
    """The plane of the host's threads: ``/host:CPU``, or the first whose name begins so."""
    return trace.plane(HOST_PLANE) or next((plane for plane in trace.planes if plane.name.startswith(HOST_PLANE)), None)


def allocator_events(plane: Plane, on_chunk: ChunkDone | None = None) -> AllocatorEvents | None:
    """Reads the events of all allocators; None where the plane has none.

    Args:
        plane: of the host's threads.
        on_chunk: progress of the decoding; what it raises ends it.
    """
    allocations, deallocations = (_ids_named(plane, name) for name in (ALLOCATION, DEALLOCATION))
    if not allocations and not deallocations:
        return None
    columns: list[tuple[NDArray[Any], ...]] = []
    for line in plane.lines:
        events = line.events((), on_chunk)
        rows = np.flatnonzero(np.isin(events.metadata_id, allocations + deallocations))
        if len(rows):
            is_allocation = np.isin(events.metadata_id[rows], allocations)
            columns.append((events.begin[rows], events.length[rows], event_spans(line, events)[0][rows], is_allocation))
    return _decoded(plane, *map(np.concatenate, zip(*columns, strict=True))) if columns else None


def _ids_named(plane: Plane, name: str) -> list[int]:
    """Metadata ids of the events with a name, which may stand more than once."""
    table = plane.event_metadata
    rows = np.flatnonzero(table.name_end - table.name_begin == len(name)).tolist()
    return [int(table.ids[row]) for row in rows if table.name(row) == name]


def _decoded(
    plane: Plane, begin: Int64s, length: NDArray[np.uint32], time: Int64s, is_allocation: NDArray[np.bool_]
) -> AllocatorEvents:
    count = len(begin)
    numbers = {name: np.full(count, -1, np.int64) for name in _BYTES}
    fragmentation = np.full(count, np.nan)
    address, has_address = np.zeros(count, np.int64), np.zeros(count, np.bool_)
    allocator = np.zeros(count, np.int32)
    names = _Names()
    for rows, columns, body in stats_at(plane, begin, length, _STATS):
        for name, stat in _BYTES.items():
            if stat in columns:
                numbers[name][rows] = _sizes(columns[stat])
        if "fragmentation" in columns:
            share = columns["fragmentation"].floats()
            fragmentation[rows] = np.where((share >= 0) & (share <= 1), share, np.nan)
        if "addr" in columns:
            has_address[rows] = columns["addr"].is_number
            address[rows] = columns["addr"].integers()
        allocator[rows] = names.of(plane, columns, body, len(rows))
    ids, is_device = zip(*names.known, strict=True)
    return AllocatorEvents(
        ids=ids,
        is_device=is_device,
        allocator=allocator,
        time_ps=time,
        is_allocation=is_allocation,
        **numbers,
        fragmentation=fragmentation,
        address=address,
        has_address=has_address,
        begin=begin,
        length=length,
    )


def _sizes(column: StatColumn) -> Int64s:
    """A stat in bytes; -1 where it is missing, no number, negative, or more than any memory has."""
    value = column.integers(-1)
    return np.where(column.is_number & (value >= 0) & (value <= MOST_BYTES), value, np.int64(-1))


class _Names:
    """Numbers the allocators as they come: by name, or else by the device's number."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, bool], int] = {}

    def of(self, plane: Plane, columns: Mapping[str, StatColumn], body: bytes, count: int) -> NDArray[np.int32]:
        """int32[count]: index of each event's allocator; events without any are of one without a name."""
        out = np.full(count, -1, np.int32)
        if OF_NAME in columns:
            texts, which = distinct_texts(plane, columns[OF_NAME], body)
            named = [self._index(name, False) if name else -1 for name in texts]
            out = np.array([*named, -1], np.int32)[which]
        for stat in OF_DEVICE:
            if stat in columns:
                rows = np.flatnonzero(columns[stat].is_number & (out < 0))
                numbers, chosen = np.unique(columns[stat].integers()[rows], return_inverse=True)
                index = [self._index(str(number), True) for number in numbers.tolist()]
                out[rows] = np.array(index, np.int32)[chosen]
        if (out < 0).any():
            out[out < 0] = self._index("", False)
        return out

    def _index(self, name: str, is_device: bool) -> int:
        return self.known.setdefault((name, is_device), len(self.known))


def stats_at(
    plane: Plane, begin: Int64s, length: NDArray[np.uint32], names: Sequence[str]
) -> Iterator[tuple[Int64s, Mapping[str, StatColumn], bytes]]:
    """Decodes some stats of events, some thousand events at a time.

    Args:
        begin, length: where the events lie in the file, in any order.
        names: of the stats.

    Yields:
        Rows of `begin`; the stats by name, one value a row, those left out that the plane does not define; and the
        bytes that the texts lie in: their `value` is an offset into these.
    """
    ids = plane.stat_ids(names)
    wanted = np.array(list(ids.values()), np.int64)
    order = np.argsort(begin, kind="stable").astype(np.int64)
    ordered, first = begin[order], 0
    while first < len(order):
        last = min(first + _CHUNK_EVENTS, int(np.searchsorted(ordered, ordered[first] + _CHUNK_BYTES)))
        rows = order[first:last]
        start = ordered[first:last] - ordered[first]
        stop = start + np.minimum(length[rows].astype(np.int64), _CHUNK_BYTES)
        body = plane.source.read(int(ordered[first]), int(stop.max()))
        within = np.minimum(stop, len(body))
        decoded = stat_columns(body, np.minimum(start, within), within, STATS_OF_EVENT, wanted)
        parts = zip(decoded.kind, decoded.value, decoded.length.astype(np.uint32), strict=True)
        yield rows, {name: StatColumn(*part) for name, part in zip(ids, parts, strict=True)}, body
        first = last


def distinct_texts(plane: Plane, column: StatColumn, body: bytes) -> tuple[list[str], NDArray[np.int32]]:
    """The different texts of a stat, each once, and which of them each event has: int32[n], -1 for none.

    Args:
        column: its texts lie in `body`, where `value` says.
    """
    which = np.full(len(column.kind), -1, np.int32)
    texts: list[str] = []
    refs = np.flatnonzero(column.kind == KIND_REF)
    if len(refs):
        numbers, chosen = np.unique(column.value[refs], return_inverse=True)
        rows = plane.stat_metadata.rows(numbers)
        known = np.where(rows >= 0, np.cumsum(rows >= 0) - 1, -1).astype(np.int32)
        which[refs] = known[chosen]
        texts += [plane.stat_metadata.name(row) for row in rows[rows >= 0].tolist()]
    raw = np.frombuffer(body, np.uint8)
    own = np.flatnonzero((column.kind == KIND_STR) | (column.kind == KIND_BYTES))
    sizes = np.minimum(column.length[own], _MOST_TEXT) if len(column.length) else np.zeros(len(own), np.uint32)
    for size in np.unique(sizes).tolist():
        rows = own[sizes == size]
        if not size:
            which[rows] = len(texts)
            texts.append("")
            continue
        # texts of one length compare as fixed-size strings do, zero bytes at their ends and all
        cells = np.ascontiguousarray(raw[column.value[rows][:, None] + np.arange(size)]).view(f"S{size}")
        different, inverse = np.unique(cells[:, 0], return_inverse=True)
        which[rows] = len(texts) + inverse.astype(np.int32)
        texts += [text(cell.ljust(size, b"\0")) for cell in different.tolist()]
    return texts, which

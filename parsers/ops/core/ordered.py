"""The op events of a core in the order that nesting needs, with times within reason, whatever its lines are like."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Int64s, nesting_order, no_ints
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.xspace.core.types import EventColumns
from tpuprof.parsers.formats.xspace.metadata import KIND_INT64
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Line, Plane
from tpuprof.parsers.ops.core import ops as core_ops


@dataclass(frozen=True, slots=True)
class OrderedEvents:
    """The op events of a core, by the device's clock: those that start first come first, of these the longer ones.

    Attributes:
        ids: int64[k], the metadata ids that have events, ascending.
        columns: the events. The metadata id of each is its row in `ids`, its offset its start on the trace's clock.
        stats: the names of the rows of stats. The first two hold start and duration by the device's clock, as integers.
    """

    ids: Int64s
    columns: EventColumns
    stats: tuple[str, ...]


def ordered_events(plane: Plane, on_chunk: ChunkDone | None) -> OrderedEvents:
    """Decodes the events of all op lines of a core, most of which have one, and sorts them."""
    names = core_ops.event_stats(plane)
    stats = tuple(name for name in plane.stat_ids(names) if name not in core_ops.DEVICE_SPAN)
    lines = [line for line in plane.lines if line.name == core_ops.OPS_LINE]
    parts = [_columns(line, names, stats, on_chunk) for line in lines]
    none = no_ints()
    metadata_id = np.concatenate([none, *(part.metadata_id for part in parts)])
    offset, own = (
        np.concatenate([none, *(getattr(part, name) for part in parts)]) for name in ("offset_ps", "duration_ps")
    )
    kind = np.concatenate([np.zeros((2 + len(stats), 0), np.uint8), *(part.kind for part in parts)], axis=1)
    value = np.concatenate([np.zeros((2 + len(stats), 0), np.int64), *(part.value for part in parts)], axis=1)
    value[1] = _together(value[1])
    own = _together(own)
    order = nesting_order(value[0], value[0] + value[1])
    if order is not None:
        metadata_id, offset, own = metadata_id[order], offset[order], own[order]
        kind, value = kind.take(order, axis=1), value.take(order, axis=1)
    ids, row = np.unique(metadata_id, return_inverse=True)
    return OrderedEvents(ids, _events(row.astype(np.int32), offset, own, kind, value), (*core_ops.DEVICE_SPAN, *stats))


def _columns(line: Line, names: Sequence[str], stats: Sequence[str], on_chunk: ChunkDone | None) -> EventColumns:
    events = line.events(names, on_chunk, places=False)
    own_start, own_end = core_ops.event_spans(line, events)
    start, end = core_ops.device_spans(events, own_start, own_end)
    integer = np.full(len(start), KIND_INT64, np.uint8)
    others = [events.stats[name] for name in stats]
    kind = np.stack([integer, integer, *(column.kind for column in others)])
    value = np.stack([start, end - start, *(column.value for column in others)])
    return _events(events.metadata_id, own_start, own_end - own_start, kind, value)


def _together(durations: Int64s) -> Int64s:
    """Cuts durations of several lines so that they add up within reason too; those of one line do already."""
    total = float(durations.sum(dtype=np.float64))
    return durations if 2 * total <= core_ops.MOST_PS else np.minimum(durations, core_ops.MOST_PS // len(durations))


def _events(
    metadata_id: core_ops.Keys, offset_ps: Int64s, duration_ps: Int64s, kind: NDArray[np.uint8], value: Int64s
) -> EventColumns:
    flags, lengths = np.zeros(len(metadata_id), np.uint8), np.zeros((len(kind), 0), np.uint32)
    return EventColumns(metadata_id, offset_ps, duration_ps, flags, no_ints(), lengths[0], kind, value, lengths)

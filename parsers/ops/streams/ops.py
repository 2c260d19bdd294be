"""The table of ops of one GPU, or of a host's CPU: a row an op, as of a TPU's core.

Streams and threads run side by side. So the time of ops is theirs added up, and idle is the time in which no event of
any stream runs: the whole time is both together, which is the time from the first event to the last where streams take
turns. XProf takes that time for the whole even where they overlap, and for idle what the ops leave of it. The share of
idle time is of the time from the first event to the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tpuprof.parsers.base.intervals import Int64s, in_nesting_order, no_ints, union_length
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.proto import xplane_pb2
from tpuprof.parsers.formats.xspace.core.api import self_times
from tpuprof.parsers.formats.xspace.trace import Plane, Trace
from tpuprof.parsers.ops.core.ops import op_table, totals_of
from tpuprof.parsers.ops.host_events.events import HostThread
from tpuprof.parsers.ops.streams.attribution import Attribution, StreamOp
from tpuprof.parsers.ops.table import OpTable


@dataclass(frozen=True, slots=True)
class StreamSums:
    """What the events of one device's streams add up to.

    Attributes:
        table: time by op.
        op_events: number of events.
        span_ps: from the first event to the last; idle_ps: of that, when none ran.
    """

    table: OpTable
    op_events: int
    span_ps: int
    idle_ps: int

    @property
    def total_ps(self) -> int:
        """The time of the ops, and idle time."""
        return int(self.table.self_ps.sum()) + self.idle_ps


def stream_sums(streams: Sequence[HostThread], attribution: Attribution, *, nested: bool = False) -> StreamSums:
    """Adds up the events of the streams of one device.

    Args:
        attribution: the ops of all their events.
        nested: whether events lie inside one another, as on host threads, and not only side by side.
    """
    start, end, number, own = (
        np.concatenate(column) for column in zip(*_columns(streams, attribution, nested), strict=True)
    )
    used, key = np.unique(number, return_inverse=True)
    totals = totals_of(key, np.arange(1, len(used) + 1, dtype=np.int64), end - start, own, {})
    ops = [attribution.ops[place] for place in used.tolist()]
    table = op_table(_described(ops), totals)
    symbol = np.array([op.symbol for op in ops], np.uint64)
    if symbol.any():  # ops whose program's name alone is known stay apart from those of that name in other programs
        table = replace(table, symbol_id=symbol, has_ids=symbol > 0)
    span = int(end.max()) - int(start.min()) if len(start) else 0
    return StreamSums(table, len(start), span, max(0, span - union_length(start, end)))


def _columns(
    streams: Sequence[HostThread], attribution: Attribution, nested: bool
) -> list[tuple[Int64s, Int64s, Int64s, Int64s]]:
    """Start, end, op and self time of the events of each stream; at least one part."""
    none = no_ints()
    parts = [(none, none, none, none)]
    for stream, of_stream in zip(streams, attribution.numbers, strict=True):
        start, end, number = stream.start_ps, stream.end_ps, of_stream
        if nested:
            start, end, number = in_nesting_order(start, end, number)
        parts.append((start, end, number, self_times(start, end) if nested else end - start))
    return parts


def _described(ops: Sequence[StreamOp]) -> Plane:
    """A plane whose event metadata describes ops, numbered from 1 on, as a TPU's plane describes its own."""
    space = xplane_pb2.XSpace()
    plane = space.planes.add(name=b"ops")
    texts = ("hlo_category", "tf_op", "source", "source_stack", "deduplicated_name", "shape_with_layout")
    names = ("program_id", *texts)
    for stat, name in enumerate(names, 1):
        plane.stat_metadata[stat].id, plane.stat_metadata[stat].name = stat, name.encode()
    for number, op in enumerate(ops, 1):
        entry = plane.event_metadata[number]
        entry.id, entry.name, entry.display_name = number, _bytes(op.expression), _bytes(op.name)
        if op.program:
            entry.stats.add(metadata_id=1, uint64_value=op.program)
        values = op.category, op.framework_op, op.source, op.source_stack, op.deduplicated_name, op.shape
        for stat, value in enumerate(values, 2):
            if value:
                entry.stats.add(metadata_id=stat, str_value=_bytes(value))
    return Trace.from_bytes(space.SerializeToString()).planes[0]


def _bytes(words: str) -> bytes:
    return words.encode("utf-8", "replace")

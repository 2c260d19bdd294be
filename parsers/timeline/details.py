"""Everything that a profile tells about one event."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

import numpy as np
from google.protobuf.message import DecodeError

from tpuprof.parsers.formats.proto import xplane_pb2
from tpuprof.parsers.formats.xspace.metadata import StatValue
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.ops.op_metadata import TRAFFIC, MetadataStats
from tpuprof.parsers.timeline.model import Track
from tpuprof.parsers.timeline.windows import busy_in_lane

_SOURCE_STATS = ("tf_op", "source", "hlo_category", "flops", "bytes_accessed", "memory_access_breakdown", "program_id")


@dataclass(frozen=True, slots=True)
class OpFacts:
    """What the metadata of an event's op tells; None where it tells nothing.

    Attributes:
        framework_op: the framework op, such as ``jit(f)/add:``.
        source: ``file:line``.
        category: HLO category.
        flops, bytes_accessed, hbm_bytes: work of one occurrence, as the compiler counts it.
        program_id: program id of the compiled module that the op is in.
    """

    framework_op: str | None = None
    source: str | None = None
    category: str | None = None
    flops: float | None = None
    bytes_accessed: float | None = None
    hbm_bytes: float | None = None
    program_id: int | None = None


@dataclass(frozen=True, slots=True)
class EventStats:
    """Every stat of an event.

    Attributes:
        of_event, of_metadata: name and value of each stat; references are resolved to their text.
    """

    of_event: tuple[tuple[str, StatValue], ...]
    of_metadata: tuple[tuple[str, StatValue], ...]


def op_facts(track: Track, index: int) -> OpFacts:
    """Reads what the metadata of an event's op tells; nothing for a derived event."""
    source, key = track.names.source, int(track.key[index])
    if source is None or key >= track.names.metadata_rows:
        return OpFacts()
    columns = MetadataStats(source, np.array([key], np.int64), _SOURCE_STATS)
    hbm = float(columns.memory_access()[0, TRAFFIC.index("hbm")])
    return OpFacts(
        framework_op=columns.texts("tf_op")[0] or None,
        source=columns.texts("source")[0] or None,
        category=columns.texts("hlo_category")[0] or None,
        flops=_known(float(columns.number("flops")[0])),
        bytes_accessed=_known(float(columns.number("bytes_accessed")[0])),
        hbm_bytes=_known(hbm),
        program_id=int(columns.unsigned("program_id")[0][0]) or None,
    )


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value


def self_time(track: Track, index: int) -> int:
    """An event's duration without the events nested in it, in picoseconds; asynchronous events do not nest."""
    start, end = int(track.start_ps[index]), int(track.end_ps[index])
    lane = track.lane_of(index) + 1
    covered = busy_in_lane(track, lane, start, end) if lane < track.depth and track.kind != "async" else 0
    return end - start - covered


def read_event_stats(path: str, track: Track, index: int) -> EventStats:
    """Opens a profile and reads every stat of one event.

    Raises:
        ProfileError: the file cannot be read any more.
    """
    with closing(Trace.open(path)) as trace:
        return event_stats(trace, track, index)


def event_stats(trace: Trace, track: Track, index: int) -> EventStats:
    """Reads every stat of one event and of its metadata; nothing for a derived event.

    It leaves out damaged messages.
    """
    if track.is_derived:
        return EventStats((), ())
    plane = trace.planes[track.plane_index]
    of_event: tuple[tuple[str, StatValue], ...] = ()
    of_metadata: tuple[tuple[str, StatValue], ...] = ()
    try:
        begin = plane.lines[track.line_index].begin + int(track.place[index])
        event = xplane_pb2.XEvent.FromString(trace.source.read(begin, int(track.length[index])))
        of_event = tuple((plane.stat_name(stat.metadata_id), plane.stat_value(stat)) for stat in event.stats)
    except DecodeError:
        pass
    key = int(track.key[index])
    if key < len(plane.event_metadata):
        try:
            message = plane.event_metadata.message(key)
            of_metadata = tuple((plane.stat_name(stat.metadata_id), plane.stat_value(stat)) for stat in message.stats)
        except DecodeError:
            pass
    return EventStats(of_event, of_metadata)

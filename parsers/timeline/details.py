"""Everything that a profile tells about one event."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing, suppress
from dataclasses import dataclass
from math import isnan
from typing import NamedTuple

import numpy as np
from google.protobuf.message import DecodeError

from tpuprof.parsers.formats.proto import xplane_pb2
from tpuprof.parsers.formats.xspace.metadata import StatValue
from tpuprof.parsers.formats.xspace.trace import Plane, Trace
from tpuprof.parsers.ops.op_metadata import TRAFFIC, MetadataStats
from tpuprof.parsers.timeline.model import Track
from tpuprof.parsers.timeline.windows import lane_window

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


Stats = tuple[tuple[str, StatValue], ...]
"""Name and value of each stat; references are resolved to their text."""


class EventStats(NamedTuple):
    """Every stat of an event, and of its metadata."""

    of_event: Stats
    of_metadata: Stats


def op_facts(track: Track, index: int) -> OpFacts:
    """Reads what the metadata of an event's op tells; nothing for a derived event."""
    source, key = track.names.source, int(track.key[index])
    if source is None or key >= track.names.metadata_rows:
        return OpFacts()
    columns = MetadataStats(source, np.array([key], np.int64), _SOURCE_STATS)
    framework_op, line, category = (columns.texts(stat)[0] or None for stat in ("tf_op", "source", "hlo_category"))
    hbm = columns.memory_access()[:, TRAFFIC.index("hbm")]
    amounts = (float(column[0]) for column in (columns.number("flops"), columns.number("bytes_accessed"), hbm))
    flops, bytes_accessed, hbm_bytes = (None if isnan(amount) else amount for amount in amounts)
    program_id = int(columns.unsigned("program_id")[0][0]) or None
    return OpFacts(framework_op, line, category, flops, bytes_accessed, hbm_bytes, program_id)


def self_time(track: Track, index: int) -> int:
    """An event's duration without the events nested in it, in picoseconds; asynchronous events do not nest."""
    start, end = int(track.start_ps[index]), int(track.end_ps[index])
    lane = track.lane_of(index) + 1
    if start == end or lane == track.depth or track.kind == "async":
        return end - start
    return end - start - int(lane_window(track, lane, np.array([start, end], np.int64)).busy_ps.sum())


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
    return EventStats(own_stats(trace, track, index), metadata_stats(trace, track, index))


def own_stats(trace: Trace, track: Track, index: int) -> Stats:
    """An event's own stats, without those of its metadata; none where it is damaged or derived."""
    if track.is_derived:
        return ()
    plane = trace.planes[track.plane_index]
    begin = plane.lines[track.line_index].begin + int(track.place[index])
    with suppress(DecodeError):
        return _named(plane, xplane_pb2.XEvent.FromString(trace.source.read(begin, int(track.length[index]))).stats)
    return ()


def metadata_stats(trace: Trace, track: Track, index: int) -> Stats:
    """The stats of an event's metadata, which all events of its name share; none where these are damaged or derived."""
    key = int(track.key[index])
    if track.is_derived or key >= len(trace.planes[track.plane_index].event_metadata):
        return ()
    plane = trace.planes[track.plane_index]
    with suppress(DecodeError):
        return _named(plane, plane.event_metadata.message(key).stats)
    return ()


def _named(plane: Plane, stats: Iterable[xplane_pb2.XStat]) -> Stats:
    return tuple((plane.stat_name(stat.metadata_id), plane.stat_value(stat)) for stat in stats)

"""Single events of a timeline: what the profile says about one, and how one is found by place or by name."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing, suppress
from math import isnan
from typing import NamedTuple

import numpy as np
from google.protobuf.message import DecodeError

from tpuprof.parsers.base.intervals import Bools, no_ints
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.proto import xplane_pb2
from tpuprof.parsers.formats.xspace.metadata import StatValue
from tpuprof.parsers.formats.xspace.trace import Plane, Trace
from tpuprof.parsers.formats.xspace.walk import message_at
from tpuprof.parsers.ops.framework_op import parse_framework_op
from tpuprof.parsers.ops.op_metadata import TRAFFIC, MetadataStats
from tpuprof.parsers.timeline.model import EventId, EventNames, Section, Timeline, Track
from tpuprof.parsers.timeline.read.device_clock import durations
from tpuprof.parsers.timeline.windows import lane_window

_SOURCE_STATS = ("tf_op", "source", "hlo_category", "flops", "bytes_accessed", "memory_access_breakdown", "program_id")


@dataclass(frozen=True, slots=True)
class OpFacts:
    """What the metadata of an event's op says; None where it says nothing.

    Attributes:
        framework_op, source, category: such as ``jit(f)/add:``; ``file:line``; the HLO category.
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
    """Every stat of an event, and of its metadata; and how long it took by the device's clock, where that is known."""

    of_event: Stats
    of_metadata: Stats
    device_ps: int | None = None


def op_facts(track: Track, index: int) -> OpFacts:
    """Reads what the metadata of an event's op says; nothing for a derived event."""
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


def read_event_stats(path: str, section: Section, track: Track, index: int) -> EventStats:
    """Opens a profile and reads every stat of one event, and what its device's clock says.

    Raises:
        ProfileError: the file cannot be read any more.
    """
    with closing(Trace.open(path)) as trace:
        taken = durations(trace, section, track, np.array([index], np.int64))[0]
        stats = own_stats(trace, track, index), metadata_stats(trace, track, index)
        return EventStats(*stats, int(taken) if taken >= 0 else None)


def own_stats(trace: Trace, track: Track, index: int) -> Stats:
    """An event's own stats, without those of its metadata; none where it is damaged or derived."""
    if track.is_derived:
        return ()
    plane = trace.planes[track.plane_index]
    begin = plane.lines[track.line_index].begin + int(track.place[index])
    with suppress(DecodeError):
        return _named(plane, xplane_pb2.XEvent.FromString(message_at(trace.source, begin)).stats)
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


# --- finding events

_SEEN_IN_CELL = 4096
"""How many events of a cell it searches for the longest one."""


def longest_called(timeline: Timeline, name: str, program: int | None = None) -> EventId | None:
    """The longest event of that name: of an HLO op, of a program where given, else of a framework op (its path too)."""
    wanted: dict[int, Bools | None] = {}  # many tracks share their names
    for kinds in (("ops", "async"), ("framework_ops",), ("modules", "traceme", "stream", "thread", "other")):
        candidates: list[tuple[int, EventId]] = []
        for place, _, track in timeline.tracks():
            if track.kind not in kinds:
                continue
            if id(track.names) not in wanted:
                wanted[id(track.names)] = keys_called(track.names, name, program)
            keys = wanted[id(track.names)]
            rows = np.flatnonzero(keys[track.key]) if keys is not None else no_ints()
            if len(rows):
                lasting = track.lasting[rows]
                longest = int(np.argmax(lasting))
                candidates.append((int(lasting[longest]), (*place, int(rows[longest]))))
        if candidates:
            return max(candidates)[1]
    return None


def keys_called(names: EventNames, name: str, program: int | None = None) -> Bools | None:
    """bool[keys]: which have that long or short name (a framework op's has no type) in that program; None for none."""
    out = np.zeros(len(names), np.bool_)
    for key in range(len(names)):
        long_name = names.long_name(key)
        out[key] = name in (names.name(key), long_name, parse_framework_op(long_name).name)
    if program is not None and names.source is not None:
        rows = np.flatnonzero(out[: names.metadata_rows])
        of, is_known = MetadataStats(names.source, rows, ("program_id",)).unsigned("program_id")
        out[rows[is_known & (of != np.uint64(program % (1 << 64)))]] = False
    return out if out.any() else None


def event_in_cell(track: Track, lane: int, instant: int, cell_start: int, cell_end: int) -> int | None:
    """The event of a lane at an instant, else the longest of its cell; None for an empty cell."""
    first, last = track.between(lane, cell_start, cell_end)
    if first == last:
        return None
    event = first + int(np.searchsorted(track.start_ps[first:last], instant, side="right")) - 1
    if event >= first and (track.end_ps[event] > instant or track.start_ps[event] == instant):
        return event
    last = min(last, first + _SEEN_IN_CELL)
    return first + int(np.argmax(track.lasting[first:last]))


def adjacent_event(track: Track, lane: int, here: tuple[int, int], direction: int) -> tuple[int, int | None]:
    """The next event of a lane after (1) or before (-1) a place, in order of start and then lane."""
    part = track.lane(lane)
    instant, at_lane = here
    # of events that start together those of the lanes before this one are behind it, and those of later lanes ahead
    is_left = lane > at_lane if direction > 0 else lane >= at_lane
    event = part.start + int(np.searchsorted(track.start_ps[part], instant, side="left" if is_left else "right"))
    event -= direction < 0
    return lane, event if part.start <= event < part.stop else None

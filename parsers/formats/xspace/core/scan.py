"""`scan_events` out of the three functions that it does the work of: what the numpy core uses."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.formats.xspace.core.types import (
    FULL,
    HAS_TEXT,
    INCOMPLETE,
    WIDE_ID,
    Core,
    EventColumns,
    EventFields,
    Fields,
    Scan,
    StatFields,
    check_columns,
    check_wanted,
)

_EVENTS_FIELD = 4
_STATS_FIELD = 4
_LEN = 2
_TEXT_KINDS = (5, 6, 8)
_UINT32_MAX = (1 << 32) - 1


def scan(
    core: Core,
    data: NDArray[np.uint8],
    base: int,
    start: int,
    wanted: NDArray[np.int64],
    columns: EventColumns,
    at: int,
) -> Scan:
    """See `core.scan_events`; the arguments are checked here."""
    check_wanted(wanted)
    check_columns(columns, len(wanted), at)
    fields = core.split_fields(data, start)
    begin, end, following, status = _whole_events(fields, start, len(data), len(columns.flags) - at)
    events = core.decode_events(data, begin, end)
    if columns.metadata_id.dtype == np.int32:
        wide = np.flatnonzero(events.metadata_id != events.metadata_id.astype(np.int32))
        if len(wide):
            first = int(wide[0])
            following, status = _tag_before(fields, start, int(begin[first])), WIDE_ID
            begin, end = begin[:first], end[:first]
            events = core.decode_events(data, begin, end)
    stats = core.stat_columns(data, begin, end, _STATS_FIELD, wanted)
    seen = _write(columns, at, base, begin, end, events, stats)
    return Scan(len(begin), following, status, seen)


def _whole_events(
    fields: Fields, start: int, size: int, room: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], int, int]:
    """The events that the bytes hold whole and the columns have room for; where to go on, and why to stop."""
    chosen = (fields.number == _EVENTS_FIELD) & (fields.wire == _LEN)
    following, status = fields.next, fields.status
    if len(chosen) and chosen[-1] and fields.end[-1] > size:
        following, status = _tag_before(fields, start, int(fields.begin[-1])), INCOMPLETE
        chosen[-1] = False
    every = bool(chosen.all())
    begin = fields.begin if every else fields.begin[chosen]
    end = fields.end if every else fields.end[chosen]
    if len(begin) > room:
        following, status = _tag_before(fields, start, int(begin[room])), FULL
        begin, end = begin[:room], end[:room]
    return begin, end, following, status


def _tag_before(fields: Fields, start: int, begin: int) -> int:
    """Where the field starts whose payload begins at `begin`."""
    index = int(np.searchsorted(fields.begin, begin))
    return int(fields.end[index - 1]) if index else start


def _write(
    columns: EventColumns,
    at: int,
    base: int,
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    events: EventFields,
    stats: StatFields,
) -> int:
    """Puts decoded events into the columns; returns the flags seen."""
    to = slice(at, at + len(begin))
    columns.metadata_id[to] = events.metadata_id
    columns.offset_ps[to] = events.offset_ps
    columns.duration_ps[to] = events.duration_ps
    columns.flags[to] = events.flags
    if len(columns.begin):
        columns.begin[to] = begin + base
        columns.length[to] = np.minimum(end - begin, _UINT32_MAX)
    columns.kind[:, to] = stats.kind
    textual = np.isin(stats.kind, _TEXT_KINDS)
    has_text = bool(textual.any())
    columns.value[:, to] = np.where(textual, stats.value + base, stats.value) if has_text else stats.value
    if has_text:
        columns.stat_length[:, to] = np.minimum(stats.length, _UINT32_MAX)
    seen = int(np.bitwise_or.reduce(events.flags)) if len(events.flags) else 0
    return seen | (HAS_TEXT if has_text else 0)

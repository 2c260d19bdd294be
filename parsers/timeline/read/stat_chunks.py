"""Reads every stat of a track's events as columns, some thousand events at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Int64s, is_sorted
from tpuprof.parsers.formats.proto import xplane_pb2
from tpuprof.parsers.formats.xspace.core.api import split_fields, stat_columns
from tpuprof.parsers.formats.xspace.core.types import StatFields
from tpuprof.parsers.formats.xspace.metadata import STATS_OF_EVENT
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.formats.xspace.walk import LEN, MOST_OF_SIZE, message_at, sizes_before
from tpuprof.parsers.timeline.model import Track

CHUNK_EVENTS = 1 << 13
_CHUNK_BYTES = 1 << 24
_MOST_CELLS = 1 << 22
"""A chunk with more cells, stats times events, is cut in two."""

_ID_TAG = 0x08
"""The first byte of a stat that begins with its metadata id, as all writers write it."""


class StatChunk(NamedTuple):
    """The stats of some events.

    Attributes:
        events: int64[n], indices into the track's columns.
        ids: int64[k], metadata ids of the stats that any of these events has.
        stats: their values, `[k, n]`; text lies in `body`.
        body: bytes that the texts' offsets point into.
    """

    events: NDArray[np.intp]
    ids: Int64s
    stats: StatFields
    body: bytes


def stat_chunks(trace: Trace, track: Track, events: NDArray[np.intp]) -> Iterator[StatChunk]:
    """Reads events of a track that is not derived, each once, in the order of the file.

    Args:
        events: int64[n], indices into the track's columns, in any order.
    """
    place = track.place[events].astype(np.int64)
    if not is_sorted(place):
        order = np.argsort(place, kind="stable")
        events, place = events[order], place[order]
    place += trace.planes[track.plane_index].lines[track.line_index].begin
    first = 0
    while first < len(events):
        last = min(first + CHUNK_EVENTS, int(np.searchsorted(place, place[first] + _CHUNK_BYTES)))
        chosen = events[first:last]
        begin, end = max(0, int(place[first]) - MOST_OF_SIZE), int(place[last - 1])
        data, offset = trace.source.read(begin, end - begin), place[first : last - 1] - begin
        spans = zip(offset.tolist(), (offset + sizes_before(data, offset)).tolist(), strict=True)
        yield from _chunks(chosen, [*(data[a:b] for a, b in spans), message_at(trace.source, end)])
        first = last


def _chunks(events: NDArray[np.intp], bodies: list[bytes]) -> Iterator[StatChunk]:
    """Yields one chunk, or several where the table of all stats would be large."""
    body = b"".join(bodies)
    borders = np.cumsum([0, *map(len, bodies)]).astype(np.int64)
    ids = _stat_ids(body, borders)
    if len(ids) * len(events) > _MOST_CELLS and len(events) > 1:
        half = len(events) // 2
        yield from _chunks(events[:half], bodies[:half])
        yield from _chunks(events[half:], bodies[half:])
        return
    yield StatChunk(events, ids, stat_columns(body, borders[:-1], borders[1:], STATS_OF_EVENT, ids), body)


def _stat_ids(body: bytes, borders: Int64s) -> Int64s:
    """The distinct metadata ids of the stats of messages that lie one after the other."""
    fields = split_fields(body)
    spans = [(fields.begin, fields.end, fields.number, fields.wire)]
    ends = np.append(np.int64(0), fields.end)
    nearest = ends[np.minimum(np.searchsorted(ends, borders), len(ends) - 1)]
    if fields.status or fields.next != len(body) or not np.array_equal(nearest, borders):
        spans = []  # a damaged event would spoil those behind it
        for a, b in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
            fields = split_fields(body[a:b])
            spans.append((fields.begin + a, np.minimum(fields.end + a, b), fields.number, fields.wire))
    begin, end, number, wire = (np.concatenate(column) for column in zip(*spans, strict=True))
    chosen = (number == STATS_OF_EVENT) & (wire == LEN) & (end > begin)
    return _ids_at(body, begin[chosen], end[chosen])


def _ids_at(body: bytes, begin: Int64s, end: Int64s) -> Int64s:
    """The distinct metadata ids of the stats at `body[begin:end]`."""
    raw = np.frombuffer(body, np.uint8)
    usual = (raw[begin] == _ID_TAG) & (begin + 1 < end) if len(begin) else np.zeros(0, np.bool_)
    offsets, last = begin[usual] + 1, end[usual]
    ids, open_ = np.zeros(len(offsets), np.uint64), np.arange(len(offsets))
    for shift in range(0, 70, 7):
        if not len(open_):
            break
        byte = raw[offsets[open_]]
        ids[open_] |= (byte & 0x7F).astype(np.uint64) << np.uint64(min(shift, 63))
        offsets[open_] += 1
        open_ = open_[(byte >= 0x80) & (offsets[open_] < last[open_])]
    distinct_ids: set[int] = set(np.unique(ids).view(np.int64).tolist())
    for a, b in zip(begin[~usual].tolist(), end[~usual].tolist(), strict=True):
        with suppress(DecodeError):
            distinct_ids.add(xplane_pb2.XStat.FromString(body[a:b]).metadata_id)
    return np.array(sorted(distinct_ids), np.int64)

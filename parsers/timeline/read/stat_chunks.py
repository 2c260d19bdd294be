"""Reads every stat of a track's events as columns, some thousand events at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Int64s, distinct, is_sorted
from tpuprof.parsers.formats.xspace.core.api import stat_columns
from tpuprof.parsers.formats.xspace.core.types import StatFields
from tpuprof.parsers.formats.xspace.metadata import STATS_OF_EVENT, split_all
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.formats.xspace.walk import LEN, MOST_OF_SIZE, message_at, sizes_before
from tpuprof.parsers.timeline.model import Track

CHUNK_EVENTS = 1 << 13
_CHUNK_BYTES = 1 << 24
_MOST_CELLS = 1 << 22
"""A chunk with more cells, stats times events, is cut in two."""


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
    events = split_all(body, borders[:-1], borders[1:])
    chosen = (events.number == STATS_OF_EVENT) & (events.wire == LEN) & (events.end > events.begin)
    return distinct(split_all(events.body, events.begin[chosen], events.end[chosen]).integers(1))

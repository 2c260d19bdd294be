"""Flattens a track of several lanes into one, with the deepest event at each instant, which is the most specific."""

from __future__ import annotations

import numpy as np

from tpuprof.parsers.base.intervals import Int64s, distinct, no_ints
from tpuprof.parsers.timeline.durations import Durations
from tpuprof.parsers.timeline.model import Track

MOST_EVENTS = 4000
"""The most events of a window that is flattened; with more of them its cells hide most of them anyway."""


def flattened(track: Track, start_ps: int, end_ps: int) -> tuple[Track, Int64s] | None:
    """Flattens the part of a track that lies in a window into a track of one lane.

    Events of no duration last one picosecond here, so that they are not lost.

    Returns:
        The track, and the event of the given track that each of its events is (a part of); None for a window with too
        many events.
    """
    picked = _touched(track, start_ps, end_ps)
    if picked is None:
        return None
    start, end = track.start_ps[picked], np.maximum(track.end_ps[picked], track.start_ps[picked] + 1)
    borders, last = deepest(start, end)
    owner = np.where(last >= 0, picked[np.maximum(last, 0)], -1) if len(picked) else last
    opens = np.flatnonzero(np.append(True, owner[1:] != owner[:-1])) if len(owner) else np.zeros(0, np.intp)
    closes = np.append(opens[1:], len(owner) - 1)[: len(opens)]
    held = (owner[opens] >= 0) & (closes > opens)
    opens, closes = opens[held], closes[held]
    events = owner[opens]
    start, key = borders[opens], track.key[events]
    lasting, lanes = Durations.of(borders[closes] - start), np.array([0, len(events)], np.int64)
    return Track(track.name, track.kind, track.names, start, lasting, key, lanes, is_derived=True), events


def deepest(start: Int64s, end: Int64s) -> tuple[Int64s, Int64s]:
    """At each instant the event that is last in the list, which is the deepest of a track's events.

    Args:
        start, end: int64[n], spans of events that last some time, in any order.

    Returns:
        int64[m], the instants at which an event begins or ends; and the event in the stretch behind each of them, -1
        for none.
    """
    borders = distinct(np.concatenate([start, end]))
    claims = np.full(len(borders), -1, np.int64)
    if not len(start):
        return borders, claims
    first, last = np.searchsorted(borders, start), np.searchsorted(borders, end)
    # an event claims two runs of 2^k stretches that together are its own; each run hands its claim on to its halves
    level = np.frexp((last - first).astype(np.float64))[1] - 1
    events = np.arange(len(start))
    for k in range(int(level.max()), -1, -1):
        claiming = np.flatnonzero(level == k)
        np.maximum.at(claims, first[claiming], events[claiming])
        np.maximum.at(claims, last[claiming] - (1 << k), events[claiming])
        if k:
            half = 1 << (k - 1)
            handed = claims[:-half].copy()
            np.maximum(claims[half:], handed, out=claims[half:])
    return borders, claims


def _touched(track: Track, start_ps: int, end_ps: int) -> Int64s | None:
    """The events that a window touches, in order; None where there are too many."""
    spans = [track.between(lane, start_ps, end_ps) for lane in range(track.depth)]
    if sum(last - first for first, last in spans) > MOST_EVENTS:
        return None
    return np.concatenate([no_ints(), *(np.arange(first, last) for first, last in spans)])

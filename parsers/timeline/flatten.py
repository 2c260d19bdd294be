"""A track of several lanes as one: at each instant the deepest event, which says most about what goes on."""

from __future__ import annotations

import numpy as np

from tpuprof.parsers.intervals import Int64s, ranges
from tpuprof.parsers.timeline.model import Track

MOST_EVENTS = 4000
"""Events in a window up to which it is flattened; beyond, its cells hide most of them anyhow."""


def flattened(track: Track, start_ps: int, end_ps: int) -> tuple[Track, Int64s] | None:
    """What of a track lies in a window, as a track of one lane.

    Events of no duration last one picosecond here, so that they are not lost.

    Returns:
        The track, and the event of the given track that each of its events is (a part of); None for a window with too
        many events.
    """
    spans = [_lane_range(track, lane, start_ps, end_ps) for lane in range(track.depth)]
    if sum(last - first for first, last in spans) > MOST_EVENTS:
        return None
    picked = np.concatenate([np.zeros(0, np.int64), *(np.arange(first, last) for first, last in spans)])
    start, end = track.start_ps[picked], np.maximum(track.end_ps[picked], track.start_ps[picked] + 1)
    borders = np.sort(np.concatenate([start, end]))
    borders = borders[np.append(True, borders[1:] != borders[:-1])] if len(borders) else borders
    # deeper lanes come later, and the last one to claim a stretch between two borders keeps it
    of, at = ranges(np.searchsorted(borders, start), np.searchsorted(borders, end))
    owner = np.full(len(borders), -1, np.int64)
    owner[at] = picked[of]
    opens = np.flatnonzero(np.append(True, owner[1:] != owner[:-1])) if len(owner) else np.zeros(0, np.intp)
    closes = np.append(opens[1:], len(owner) - 1)[: len(opens)]
    held = (owner[opens] >= 0) & (closes > opens)
    opens, closes = opens[held], closes[held]
    events = owner[opens]
    flat = Track(
        name=track.name,
        kind=track.kind,
        names=track.names,
        start_ps=borders[opens],
        end_ps=borders[closes],
        key=track.key[events],
        lanes=np.array([0, len(events)], np.int64),
        is_derived=True,
    )
    return flat, events


def _lane_range(track: Track, lane: int, start_ps: int, end_ps: int) -> tuple[int, int]:
    """First and last-but-one event of a lane that a window touches."""
    begin, stop = int(track.lanes[lane]), int(track.lanes[lane + 1])
    first = begin + int(np.searchsorted(track.end_ps[begin:stop], start_ps, side="left"))
    last = begin + int(np.searchsorted(track.start_ps[begin:stop], end_ps, side="left"))
    return first, max(first, last)

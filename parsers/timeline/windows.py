"""The part of a track in each cell of a window: counts, busy time by class, work. Exact, and never event by event.

A lane's events are disjoint and in order. So the time that they cover before an instant is a running sum up to the last
event that began by then, minus the part of that event which is still to come. It keeps the sum for every 64th event,
and adds up the rest of a block only for the cells' edges. A row of 160 cells costs the same with five million events as
with a thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Floats, Int64s, covered, ranges, union_length
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.timeline.flatten import deepest
from tpuprof.parsers.timeline.model import CLASSES, CounterTrack, RateTrack, Timeline, Track, busy_between

_LARGE = 1 << 16
"""From so many events on one would notice the time that running sums take."""

LANE_EVENTS_A_BLOCK = 64
"""Events between two entries of a track's running sums."""

_SUMMED = 1 << 18
"""Events, whole blocks of them, that running sums are made of at a time."""

MANY_LANES = 48
"""From this many lanes on it goes through all events of a track at once, and not lane by lane."""

_FEW_A_LANE = 200
"""With fewer events per lane on average, it is faster to go through a track of many lanes as a whole."""


@dataclass(frozen=True, slots=True)
class LaneWindow:
    """One lane in the cells of a window.

    Attributes:
        edges: int64[cells + 1].
        first, last: int64[cells]; the events [first, last) of the track overlap the cell or, of no duration, lie in it.
        busy_ps: int64[cells, classes]; time that the lane's events cover, by class (`model.CLASSES`).
    """

    edges: Int64s
    first: Int64s
    last: Int64s
    busy_ps: Int64s


@dataclass(frozen=True, slots=True)
class TrackWindow:
    """All lanes of a track as one row.

    Attributes:
        edges: int64[cells + 1].
        count: int64[cells]; number of events of all lanes.
        busy_ps: int64[cells, classes]; a deeper event covers the one above it. The covered time of a lane is spread
            over its classes by their shares of the cell, so that the sum over classes is exact.
    """

    edges: Int64s
    count: Int64s
    busy_ps: Int64s


def cell_edges(start_ps: int, end_ps: int, cells: int) -> Int64s:
    """int64[cells + 1]: the borders of the cells of a window, which lasts at least one picosecond a cell."""
    span = max(end_ps - start_ps, cells)
    # integers all the way: at a large offset a float would lose picoseconds
    whole, rest = divmod(span, cells)
    steps = np.arange(cells + 1, dtype=np.int64)
    return start_ps + steps * whole + steps * rest // cells


def lane_window(track: Track, lane: int, edges: Int64s) -> LaneWindow:
    """One lane of a track in the cells between `edges`."""
    part = track.lane(lane)
    first = track.first_within(part, edges[:-1])
    last = np.maximum(first, part.start + np.searchsorted(track.start_ps[part], edges[1:], side="left"))
    before = _covered(track, part, edges, _class_sums(track))
    return LaneWindow(edges, first, last, np.diff(before, axis=0))


def track_window(track: Track, edges: Int64s) -> TrackWindow:
    """All lanes of a track, flattened into one row."""
    if _has_many_lanes(track):
        return _many_lanes(track, edges)
    cells = len(edges) - 1
    count, busy = np.zeros(cells, np.int64), np.zeros((cells, len(CLASSES)), np.int64)
    below = np.zeros(cells, np.int64)  # what the deeper lanes cover
    width = np.diff(edges)
    for lane in reversed(range(track.depth)):
        part = track.lane(lane)
        if part.start == part.stop or track.start_ps[part.start] >= edges[-1] or track.end_ps[part.stop - 1] < edges[0]:
            continue
        window = lane_window(track, lane, edges)
        count += window.last - window.first
        total = window.busy_ps.sum(axis=1)
        # nested events add nothing below their parents; overlapping ones at most fill the cell
        own = np.minimum(np.maximum(total - below, 0), width - np.minimum(below, width))
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(total > 0, own / total, 0.0)
        spread = np.floor(window.busy_ps * share[:, None]).astype(np.int64)
        spread[np.arange(cells), window.busy_ps.argmax(axis=1)] += own - spread.sum(axis=1)
        busy += spread
        below = np.minimum(below + own, width)
    return TrackWindow(edges, count, busy)


def _has_many_lanes(track: Track) -> bool:
    """Whether it is faster to go through all events at once than through one lane after the other."""
    return track.depth > MANY_LANES and len(track) < _FEW_A_LANE * track.depth


def _many_lanes(track: Track, edges: Int64s) -> TrackWindow:
    """`track_window` of a track with many lanes and few events in each: goes through these at once."""
    cells, classes = len(edges) - 1, len(CLASSES)
    events, first, last = _events_in(track, edges)
    start, end = track.start_ps[events], track.end_ps[events]
    opens, closes = np.bincount(first, minlength=cells + 1), np.bincount(last, minlength=cells + 1)
    lasts = end > start
    events, start, end = events[lasts], start[lasts], end[lasts]
    borders, owner = deepest(start, end)
    busy = np.zeros((cells, classes), np.int64)
    held = np.flatnonzero(owner >= 0)
    code = track.names.classes[track.key[events[owner[held]]]]
    for number in range(classes):
        of = held[code == number]
        busy[:, number] = np.diff(covered(edges, borders[of], borders[of + 1]))
    return TrackWindow(edges, np.cumsum(opens - closes)[:cells].astype(np.int64), busy)


def _events_in(track: Track, edges: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """The events that a window touches, and the cells [first, last) that each is in."""
    low, high = int(edges[0]), int(edges[-1])
    events = np.flatnonzero((track.start_ps < high) & (track.end_ps[:] >= low)).astype(np.int64)
    start, end = track.start_ps[events], track.end_ps[events]
    inside = (end > low) | (start == end)
    events, start, end = events[inside], start[inside], end[inside]
    first = np.maximum(np.searchsorted(edges, start, side="right") - 1, 0)
    last = np.minimum(np.maximum(np.searchsorted(edges, end, side="left"), first + 1), len(edges) - 1)
    return events, first, last


def rate_window(rate: RateTrack, edges: Int64s) -> Floats:
    """float64[cells]: work per second of the ops in each cell, each op's spread evenly over its duration."""
    track, sums, before = rate.ops, _work_sums(rate), np.zeros(len(edges))
    for lane in range(track.depth):
        before += _covered(track, track.lane(lane), edges, sums)[:, 0]
    return np.maximum(np.diff(before), 0.0) / (np.diff(edges) / 1e12)


def mean_rate(rate: RateTrack, start_ps: int, end_ps: int) -> float:
    """Work per second between two instants, the second one later."""
    return float(rate_window(rate, np.array([start_ps, end_ps], np.int64))[0])


def counter_window(counter: CounterTrack, edges: Int64s) -> Floats:
    """float64[cells]: the greatest value that the counter has in each cell; NaN where it has none yet."""
    time = counter.time_ps
    cells = len(edges) - 1
    first = np.maximum(np.searchsorted(time, edges[:-1], side="right") - 1, 0)
    last = np.searchsorted(time, edges[1:], side="left")
    out = np.full(cells, np.nan)
    some = np.flatnonzero(last > first)
    if len(some):
        # a cell's values are from the one that holds at its begin to the last one before its end
        begin, end = int(first[some[0]]), int(last[some[-1]])
        value = counter.value[begin:end]
        bounds = np.stack([first[some], last[some]], axis=1).ravel() - begin
        out[some] = np.fmax.reduceat(np.append(np.where(np.isfinite(value), value, np.nan), np.nan), bounds)[::2]
    return out


def held_values(counter: CounterTrack, start_ps: int, end_ps: int) -> tuple[Floats, Floats]:
    """A counter's values between two instants, the one that holds at the first among them; and how long each holds.

    Returns:
        float64[n] each, the second in picoseconds; without values that are no numbers.
    """
    first, last = (int(index) for index in np.searchsorted(counter.time_ps, [start_ps, end_ps], side="left"))
    is_new = first < len(counter.time_ps) and int(counter.time_ps[first]) == start_ps
    holds = first if is_new else max(0, first - 1)
    time, value = counter.time_ps[holds:last], counter.value[holds:last]
    known = np.isfinite(value)
    borders = np.append(np.maximum(time, start_ps), end_ps)
    return value[known], np.maximum(np.diff(borders), 0)[known].astype(np.float64)


def mean_value(counter: CounterTrack, start_ps: int, end_ps: int) -> float | None:
    """A counter's mean between two instants, each value for as long as it holds; None where it has none by then."""
    value, weight = held_values(counter, start_ps, end_ps)
    if not len(value):
        return None
    if not weight.any():
        weight = np.ones(len(value))
    share = weight / weight.sum()
    return float((value * share).sum())


def busy_share(track: Track, start_ps: int, end_ps: int) -> float | None:
    """The share of a window in which at least one event of a track ran, 0-1.

    Where events nest, the outermost lane has it at once. Where they overlap it goes through the events of the window,
    and answers None where these are so many that a screen would wait.
    """
    if end_ps <= start_ps:
        return None
    if not len(track):
        return 0.0
    edges = np.array([start_ps, end_ps], np.int64)
    if _has_many_lanes(track):
        events = _events_in(track, edges)[0]
        starts, ends = np.maximum(track.start_ps[events], start_ps), np.minimum(track.end_ps[events], end_ps)
        return union_length(starts, ends) / (end_ps - start_ps)
    if track.depth == 1 or _is_nested(track):
        return int(np.diff(_covered(track, track.lane(0), edges, _class_sums(track)), axis=0).sum()) / (
            end_ps - start_ps
        )
    spans = (track.between(lane, start_ps, end_ps) for lane in range(track.depth))
    if sum(last - first for first, last in spans) > _LARGE:
        return None
    return busy_between(track, start_ps, end_ps) / (end_ps - start_ps)


def _is_nested(track: Track) -> bool:
    """Whether the outermost lane is busy whenever another one is; of a large track only once `busy_ps` is known."""
    if len(track) > _LARGE and "busy_ps" not in track.__dict__:
        return False
    first = track.lane(0)
    return int(track.lasting[first].sum()) == track.busy_ps


def prepare(timeline: Timeline) -> None:
    """Makes the running sums of the larger tracks, so that a screen need not wait."""
    for *_, track in timeline.tracks():
        if len(track) > _LARGE:
            _class_sums(track)
            _ = track.counts
    for section in timeline.sections:
        for rate in section.rates:
            _work_sums(rate)


# --- running sums

_Number = TypeVar("_Number", np.int64, np.float64)

Parts = Callable[[Int64s, Int64s | slice, int, Int64s | None], NDArray[_Number]]
"""Adds up some events by group, `[groups, columns]`.

Takes which group each event is of, the events, the number of groups, and how much of each event's time counts, None for
all of it.
"""

_Sums = tuple[Parts[_Number], NDArray[_Number]]
"""How events are added up, and the sums over all events before each block, `[blocks + 1, columns]`."""


def _covered(track: Track, part: slice, edges: Int64s, sums: _Sums[_Number]) -> NDArray[_Number]:
    """The sum of a lane's events `part` before each edge; an event under way counts in proportion."""
    add_up, before_block = sums
    if part.start == part.stop:
        return np.zeros((len(edges), before_block.shape[1]), before_block.dtype)
    after = part.start + np.searchsorted(track.start_ps[part], edges, side="left")  # began before the edge
    block = after // LANE_EVENTS_A_BLOCK
    edge, event = ranges(block * LANE_EVENTS_A_BLOCK, after)
    begun = before_block[block] + add_up(edge, event, len(edges), None)
    open_ = np.flatnonzero(after > part.start)
    last = after[open_] - 1
    left = track.end_ps[last] - edges[open_]  # of the last one, which alone can be under way
    under_way = left > 0
    ended: NDArray[_Number] = begun - add_up(open_[under_way], last[under_way], len(edges), left[under_way])
    return ended


def _class_sums(track: Track) -> _Sums[np.int64]:
    """Adds up durations, or given times, by class."""

    def parts(of: Int64s, events: Int64s | slice, groups: int, time: Int64s | None) -> Int64s:
        time = track.lasting[events] if time is None else time
        cell = of * len(CLASSES) + track.names.classes.take(track.key[events])
        sums = np.bincount(cell, time, groups * len(CLASSES))  # exact: up to 2^53 ps, two and a half hours
        return sums.astype(np.int64).reshape(groups, len(CLASSES))

    return parts, _running(track, "_class_sums", parts)


def _work_sums(rate: RateTrack) -> _Sums[np.float64]:
    """Adds up the work of ops, or the part of it in given times; one column."""

    def parts(of: Int64s, events: Int64s | slice, groups: int, time: Int64s | None) -> Floats:
        work = rate.work.take(rate.ops.key[events])
        if time is not None:
            work = work * (time / rate.ops.lasting[events])
        return np.bincount(of, work, groups).astype(np.float64)[:, None]

    return parts, _running(rate.ops, f"_work_sums_{rate.name}", parts)


def _running(track: Track, name: str, add_up: Parts[_Number]) -> NDArray[_Number]:
    """Sums over all events before each block, made once: the track keeps them by their name."""
    if name not in track.__dict__:
        sums = np.concatenate([_by_block(events, add_up) for events in _slices(len(track))])
        out = np.zeros((len(track) // LANE_EVENTS_A_BLOCK + 2, sums.shape[1]), sums.dtype)
        np.cumsum(sums, axis=0, out=out[1 : len(sums) + 1])
        out[len(sums) + 1 :] = out[len(sums)]
        track.__dict__[name] = out
    kept: NDArray[_Number] = track.__dict__[name]
    return kept


def _slices(count: int) -> Iterator[slice]:
    """All events in slices, each so long that sums over it take little memory; at least one slice."""
    for first in range(0, max(count, 1), _SUMMED):
        yield slice(first, min(first + _SUMMED, count))


def _by_block(events: slice, add_up: Parts[_Number]) -> NDArray[_Number]:
    """Sums over events in a row, which begin with a block, by block."""
    count = events.stop - events.start
    blocks = -(-count // LANE_EVENTS_A_BLOCK)
    return add_up(np.repeat(np.arange(blocks), LANE_EVENTS_A_BLOCK)[:count], events, blocks, None)

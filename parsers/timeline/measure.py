"""Measures an interval: how busy each track was, and with which events."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from operator import attrgetter
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Int64s, covered, distinct, no_ints, ranges
from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.base.record import Sized, dataclass, replace
from tpuprof.parsers.formats.xspace.core.api import min_by_key, sum_by_key
from tpuprof.parsers.timeline.model import CLASSES, EventNames, Timeline, Track, TrackId, TrackKind, busy_between
from tpuprof.parsers.timeline.windows import mean_rate

_NAME_SEEN = 400
"""How many characters of a name distinguish it from others."""

_Number = TypeVar("_Number", bound=np.generic)


@dataclass(frozen=True, slots=True)
class TrackShare:
    """How busy one track was in an interval.

    Attributes:
        section, track, place: label of the section, name of the track, and where it is in the timeline.
        busy_ps: time in which at least one event ran.
        events: number of events that overlap the interval or, lasting no time, lie in it.
        busy_fraction: busy share of the interval, 0-1; None for an interval of no duration.
        kind: what the track holds.
    """

    section: str
    track: str
    place: TrackId
    busy_ps: int
    events: int
    busy_fraction: float | None
    kind: TrackKind


@dataclass(frozen=True, slots=True)
class MeasuredRow:
    """The events of one name in one track, as far as they lie in an interval.

    Attributes:
        section, track, place: the track, see `TrackShare`.
        key, name, op_class: key, name and class of the events in the track's `EventNames`.
        occurrences: number of events that overlap the interval.
        total_ps, self_ps: their time inside the interval, and that time without the events nested in them.
        longest: index of the event with the longest time inside the interval, the first of several.
        time_ps: the time of its tracks in the interval; 0 where their events run side by side.
    """

    section: str
    track: str
    place: TrackId
    key: int
    name: str
    op_class: OpClass
    occurrences: int
    total_ps: int
    self_ps: int
    longest: int
    time_ps: int

    @property
    def share(self) -> float | None:
        """Self time over the time of its tracks, 0-1; None where these have none, or events that cross."""
        return self.self_ps / self.time_ps if 0 <= self.self_ps <= self.time_ps > 0 else None

    @property
    def average_ps(self) -> int:
        """Mean time of an occurrence inside the interval."""
        return self.total_ps // self.occurrences

    def with_more(self, *others: MeasuredRow) -> MeasuredRow:
        """The row with the occurrences and times of others added to its own."""
        rows = (self, *others)
        occurrences, total, own = (sum(map(attrgetter(name), rows)) for name in ("occurrences", "total_ps", "self_ps"))
        return replace(self, occurrences=occurrences, total_ps=total, self_ps=own)


@dataclass(frozen=True, slots=True, eq=False)
class Measurement(Sized):
    """What ran in an interval.

    Attributes:
        start_ps, end_ps: the interval, without its end.
        tracks: the measured tracks, also those in which nothing ran.
        names: the names of the events of each of `tracks`.
        of_track: int32[rows]; the index in `tracks` of each row's track.
        key, occurrences, total_ps, self_ps, longest: int64[rows], see `MeasuredRow`.
    """

    sized_by = "key"
    start_ps: int
    end_ps: int
    tracks: tuple[TrackShare, ...]
    names: tuple[EventNames, ...]
    of_track: NDArray[np.int32]
    key: Int64s
    occurrences: Int64s
    total_ps: Int64s
    self_ps: Int64s
    longest: Int64s

    @property
    def duration_ps(self) -> int:
        return self.end_ps - self.start_ps

    def rows(self, limit: int | None = None, places: Collection[TrackId] | None = None) -> tuple[MeasuredRow, ...]:
        """The rows, those with most self time first, then by what distinguishes them.

        Args:
            limit: how many rows at most; None for all.
            places: only rows of these tracks; None for all.
        """
        order = np.lexsort((self.key, self.of_track, -self.total_ps, -self.self_ps))
        if places is not None:
            order = order[self._is_of(places)[order]]
        known: dict[tuple[int, int], str] = {}  # tracks share names, and one may be a megabyte
        return tuple(self._row(row, known) for row in order[:limit].tolist())

    def count(self, places: Collection[TrackId]) -> int:
        return int(np.count_nonzero(self._is_of(places)))

    def _is_of(self, places: Collection[TrackId]) -> Bools:
        """bool[rows]: the rows of some tracks."""
        chosen = np.array([share.place in places for share in self.tracks], np.bool_)
        return chosen[self.of_track] if len(chosen) else np.zeros(len(self), np.bool_)

    def _row(self, row: int, known: dict[tuple[int, int], str]) -> MeasuredRow:
        number, key = int(self.of_track[row]), int(self.key[row])
        share, names = self.tracks[number], self.names[number]
        if (id(names), key) not in known:
            known[id(names), key] = names.name(key)
        op_class = CLASSES[int(names.classes[key])]
        columns = self.occurrences, self.total_ps, self.self_ps, self.longest
        occurrences, total, own, longest = (int(column[row]) for column in columns)
        of = share.section, share.track, share.place, key, known[id(names), key], op_class
        return MeasuredRow(*of, occurrences, total, own, longest, 0 if share.kind == "async" else self.duration_ps)


def merged_over_tracks(rows: Sequence[MeasuredRow]) -> list[MeasuredRow]:
    """The rows with those of one name put together over all tracks of one name, as the cores' are: sums.

    The longest event is that of the row with the longest time on average.
    """
    groups: dict[tuple[str, str], list[MeasuredRow]] = {}
    for row in rows:
        groups.setdefault((row.track, row.name), []).append(row)
    out = []
    for group in groups.values():
        slowest = max(group, key=lambda row: row.average_ps)
        tracks = len({row.place for row in group})
        merged = slowest.with_more(*(row for row in group if row is not slowest))
        out.append(
            merged if tracks == 1 else replace(merged, section=f"{tracks} tracks", time_ps=tracks * slowest.time_ps)
        )
    return sorted(out, key=lambda row: -row.self_ps)


def mean_use(timeline: Timeline, start_ps: int, end_ps: int) -> dict[str, float | None]:
    """The mean share of the peak of each rate, such as ``FLOPS``, between two instants, over the cores that have it.

    It is None where a core's peak is unknown.
    """
    shares: dict[str, list[float | None]] = {}
    for section in timeline.sections:
        for rate in section.rates:
            share = mean_rate(rate, start_ps, max(end_ps, start_ps + 1)) / rate.peak if rate.peak else None
            shares.setdefault(rate.name, []).append(share)
    return {name: None if None in cores else sum(filter(None, cores)) / len(cores) for name, cores in shares.items()}


def measure(timeline: Timeline, a: int, b: int, tracks: Sequence[TrackId] | None = None) -> Measurement:
    """Measures what ran between two instants; it cuts events to the interval.

    Self times are those of the cut events, so that the self times of an interval's parts add up to the whole's. Where
    events nest, a track's self times add up to its busy time.

    Args:
        a, b: picoseconds, in any order; the interval ends before the later one.
        tracks: the tracks to measure; None for all except derived tracks, whose time is that of the ops again.
    """
    start, end = min(a, b), max(a, b)
    if tracks is None:
        tracks = [place for place, _, track in timeline.tracks() if not track.is_derived]
    shares: list[TrackShare] = []
    parts: list[_Rows] = []
    small: list[tuple[int, _Inside]] = []
    for number, place in enumerate(tracks):
        track = timeline.track(place)
        busy, inside = _measured(track, start, end)
        fraction = busy / (end - start) if end > start else None
        title = timeline.sections[place[0]].label
        shares.append(TrackShare(title, track.name, place, busy, len(inside.key), fraction, track.kind))
        if not len(inside.key):
            continue
        if len(inside.key) < len(track.names):
            small.append((number, inside))  # of thousands of threads each has a few
        else:
            rows = _rows(inside, len(track.names))
            parts.append((np.full(len(rows[0]), number, np.int32), *rows))
    parts.append(_sparse_rows(small))
    names = tuple(timeline.track(place).names for place in tracks)
    return Measurement(start, end, tuple(shares), names, *map(np.concatenate, zip(*parts, strict=True)))


class _Inside(NamedTuple):
    """The events of a track inside an interval: their keys, times inside, self times, and their indices."""

    key: NDArray[np.int32]
    total_ps: Int64s
    self_ps: Int64s
    event: Int64s


_Rows = tuple[NDArray[np.int32], Int64s, Int64s, Int64s, Int64s, Int64s]
"""Rows of some tracks: the columns of `Measurement`."""


@dataclass(frozen=True, slots=True)
class _Lane(Sized):
    """The events [first, first + n) of a track, all of one lane, cut to an interval. int64[n] each."""

    sized_by = "start_ps"
    first: int
    start_ps: Int64s
    end_ps: Int64s


def _measured(track: Track, start: int, end: int) -> tuple[int, _Inside]:
    """Busy time of a track in an interval, and its events there."""
    lanes: list[_Lane] = []
    if start < end and len(track) and track.span[0] < end and track.span[1] >= start:
        lanes = [_cut(track, lane, start, end) for lane in range(track.depth)]
    while lanes and not len(lanes[-1]):
        lanes.pop()
    if not lanes:
        none = no_ints()
        return 0, _Inside(none.astype(np.int32), none, none, none)
    totals = [lane.end_ps - lane.start_ps for lane in lanes]
    own, nested = totals, False
    if track.kind != "async":  # these run side by side, none of them on another one's time
        own, nested = _self_times(lanes, totals)
    busy = int(totals[0].sum()) if nested else busy_between(track, start, end)
    key = _joined([track.key[lane.first : lane.first + len(lane)] for lane in lanes]).astype(np.int32, copy=False)
    index = _joined([np.arange(lane.first, lane.first + len(lane)) for lane in lanes])
    key = _by_name(key, track.names) if track.kind == "async" else key
    return busy, _Inside(key, _joined(totals), _joined(own), index)


def _joined(columns: Sequence[NDArray[_Number]]) -> NDArray[_Number]:
    return columns[0] if len(columns) == 1 else np.concatenate(columns)


def _by_name(keys: NDArray[np.int32], names: EventNames) -> NDArray[np.int32]:
    """int32[n]: replaces keys by the first key with the same name, as many instructions make ops of one name."""
    firsts: dict[str, int] = {}
    present = distinct(keys.astype(np.int64))
    first = [firsts.setdefault(names.name(key)[:_NAME_SEEN], key) for key in present.tolist()]
    return np.array(first, np.int32)[np.searchsorted(present, keys)]


def _cut(track: Track, lane: int, start: int, end: int) -> _Lane:
    """Cuts a lane to an interval; only the first and last event can reach beyond it."""
    first, last = track.between(lane, start, end)
    begins, ends = track.start_ps[first:last], track.end_ps[first:last]
    if last > first and begins[0] < start:
        begins = begins.copy()
        begins[0] = start
    if last > first and ends[-1] > end:
        ends = ends.copy()
        ends[-1] = end
    return _Lane(first, begins, ends)


def _self_times(lanes: Sequence[_Lane], totals: Sequence[Int64s]) -> tuple[list[Int64s], bool]:
    """Time of each event that the next lane's events do not cover, and whether all of these lie inside, lane by lane.

    Where events nest, an event's lane is its depth. An event that overlaps another only in part keeps the rest.
    """
    own, nested = [], True
    for lane, below, total in zip(lanes, lanes[1:], totals, strict=False):
        if len(below) < len(lane):  # then not all of them contain others
            first = np.searchsorted(lane.end_ps, below.start_ps, side="right")
            last = np.searchsorted(lane.start_ps, below.end_ps, side="left")
            around = distinct(ranges(first, last)[1])
        else:
            around = np.arange(len(lane))
        before = covered(lane.start_ps[around], below.start_ps, below.end_ps)
        inside = covered(lane.end_ps[around], below.start_ps, below.end_ps) - before
        left = total.copy()
        left[around] -= inside
        own.append(left)
        nested &= int(inside.sum()) == int((below.end_ps - below.start_ps).sum())
    return [*own, totals[len(own)]], nested


def _rows(inside: _Inside, kinds: int) -> tuple[Int64s, Int64s, Int64s, Int64s, Int64s]:
    """The rows of one track, by keys below `kinds`: key, occurrences, total and self time, longest event."""
    occurrences = np.bincount(inside.key, minlength=kinds).astype(np.int64)
    rows = np.flatnonzero(occurrences)
    most = -min_by_key(inside.key, -inside.total_ps, kinds)
    longest_events = np.flatnonzero(inside.total_ps == most[inside.key])[::-1]
    longest = np.full(kinds, -1, np.int64)
    longest[inside.key[longest_events]] = inside.event[longest_events]  # of several the first, which is written last
    total, own = (sum_by_key(inside.key, time, kinds)[rows] for time in (inside.total_ps, inside.self_ps))
    return rows, occurrences[rows], total, own, longest[rows]


def _sparse_rows(tracks: Sequence[tuple[int, _Inside]]) -> _Rows:
    """The rows of tracks with fewer events than names; only for the names that occur."""
    none = no_ints()
    pair = np.concatenate([none, *(inside.key.astype(np.int64) + (number << 32) for number, inside in tracks)])
    present = distinct(pair)
    total, own, event = (np.concatenate([none, *(inside[column] for _, inside in tracks)]) for column in (1, 2, 3))
    key = np.searchsorted(present, pair).astype(np.int32)
    figures = _rows(_Inside(key, total, own, event), len(present))[1:]
    return ((present >> 32).astype(np.int32), present & 0xFFFFFFFF, *figures)

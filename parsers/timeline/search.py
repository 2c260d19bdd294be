"""Searches the names of all events of a timeline, and moves among the events that match.

It looks at a name once, however many events have it. Where few events of a track match, it keeps their places in order
of time; where many do, it counts them in blocks of the track.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Int64s, no_ints, ranges
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import PYTHON_FILE
from tpuprof.parsers.ops.op_metadata import MetadataStats
from tpuprof.parsers.timeline.details import keys_called
from tpuprof.parsers.timeline.model import EventId, EventNames, Timeline, Track, TrackId
from tpuprof.parsers.timeline.windows import MANY_LANES, lane_window

FEW = 1 << 16
"""It keeps the places of up to so many matches of a track; each takes 24 bytes."""

_MOST_NAMES = 4_000
_STATS = {
    "": ("hlo_category", "tf_op"),
    "name": (),
    "hlo": (),
    "cat": ("hlo_category",),
    "op": ("tf_op",),
    "src": ("source",),
}
"""Stats of an event's metadata in which a word is looked for, by what stands before its colon."""

_BLOCK = 512
_SCAN = 1 << 18


@dataclass(frozen=True, slots=True)
class TrackMatches:
    """A track with events that match.

    Attributes:
        place, track: which one.
        matching: bool[keys]; whether a name matches.
        count: events that match.
    """

    place: TrackId
    track: Track
    matching: Bools
    count: int


@dataclass(frozen=True, eq=False)
class Matches:
    """The events of a timeline that match a text.

    They are in order of their starts, and at one instant by section, track, and place in the track.

    Attributes:
        text, tracks: what was searched for, and the tracks with matching events.
        names: number of distinct names of matching events.
    """

    text: str
    tracks: tuple[TrackMatches, ...]
    names: int

    @property
    def total(self) -> int:
        return sum(track.count for track in self.tracks)

    def is_match(self, event: EventId) -> bool:
        track = self._by_place.get(event[:2])
        return track is not None and bool(track.matching[track.track.key[event[2]]])

    def next_after(self, time_ps: int, direction: int = 1, event: EventId | None = None) -> EventId | None:
        """The next or previous match; None where there is none. It does not wrap round.

        Args:
            time_ps: where to search from; it does not find a match that starts there.
            direction: above 0 for the next match, below 0 for the previous one.
            event: an event at `time_ps` to search from; then it also finds other events that start there.
        """
        candidates = [matches.nearest(time_ps, direction, event) for matches in self._parts]
        hits = [candidate for candidate in candidates if candidate is not None]
        return (min if direction > 0 else max)(hits)[1] if hits else None

    def position(self, event: EventId) -> int:
        """The number of a match, counted from 1; for an event that is no match, the number that it would have.

        Raises:
            KeyError: no event of its track matches.
        """
        start = int(self._by_place[event[:2]].track.start_ps[event[2]])
        return 1 + sum(matches.before(start, event) for matches in self._parts)

    def label(self, event: EventId) -> str:
        """Returns ``3 of 1,204``; only the total for an event that is no match."""
        return f"{self.position(event):,} of {self.total:,}" if self.is_match(event) else f"{self.total:,}"

    def marks(self, edges: Int64s) -> Bools:
        """bool[cells]: whether a match overlaps the cell or, lasting no time, lies in it.

        Args:
            edges: int64[cells + 1], ascending.
        """
        marks: Bools = np.any([matches.marks(edges) for matches in self._parts], axis=0)
        return marks

    def matching(self, place: TrackId) -> Bools | None:
        """bool[keys]: the names of a track that match; None where no event of it does."""
        track = self._by_place.get(place)
        return None if track is None else track.matching

    @cached_property
    def _by_place(self) -> dict[TrackId, TrackMatches]:
        return {track.place: track for track in self.tracks}

    @cached_property
    def _parts(self) -> list[_Few | _Many]:
        few: list[TrackMatches] = []
        many: list[TrackMatches] = []
        for track in self.tracks:
            # going through very many lanes would take longer than keeping the places of many matches
            (few if track.count <= FEW or track.track.depth > MANY_LANES else many).append(track)
        return [_Few(few), *map(_Many, many)]


def find(timeline: Timeline, text: str) -> Matches:
    """Searches all events for every word of a text (`matching_keys`).

    A text without words matches nothing.
    """
    words = text.split()
    of_names: dict[int, list[tuple[TrackId, Track]]] = {}
    for place, _, track in timeline.tracks() if words else ():
        of_names.setdefault(id(track.names), []).append((place, track))
    matches: list[TrackMatches] = []
    distinct: set[str] = set()
    for placed in of_names.values():
        names = placed[0][1].names
        matching = np.logical_and.reduce([matching_keys(names, word) for word in words])
        if not matching.any():
            continue
        counts, seen = _counts([track for _, track in placed], matching)
        matches += [TrackMatches(*of, matching, count) for of, count in zip(placed, counts, strict=True) if count]
        distinct.update(names.name(key) for key in np.flatnonzero(seen).tolist())
    return Matches(text, tuple(sorted(matches, key=lambda match: match.place)), len(distinct))


def event_names(timeline: Timeline) -> list[str]:
    """Names of events, at most the first 4,000 of each plane."""
    names = {id(track.names): track.names for _, _, track in timeline.tracks()}
    return [each.name(key) for each in names.values() for key in range(min(len(each), _MOST_NAMES))]


def runs_of(timeline: Timeline, event: EventId, name: str, program: int | None = None) -> Matches:
    """The events of that name and program on the track of one of them, as `details.longest_called` finds it."""
    place, track = event[:2], timeline.track(event)
    matching = keys_called(track.names, name, program)
    if matching is None:
        matching = np.zeros(len(track.names), np.bool_)
    (counted,), seen = _counts([track], matching)
    return Matches(name, (TrackMatches(place, track, matching, counted),), int(seen.sum()))


def matching_keys(names: EventNames, word: str) -> Bools:
    """bool[keys]: which names contain a word, ignoring case, where the filter of ops looks for it.

    That is the name on the screen, the HLO category and the framework op, of a Python file also the source line. The
    operands of an op are in its HLO text, which ``hlo:`` looks at alone; ``name:``, ``cat:``, ``op:`` and ``src:`` too
    name one place.
    """
    lead, _, needle = word.lower().partition(":")
    if lead not in _STATS or not needle:
        lead, needle = "", word.lower()
    stats = (*_STATS[lead], "source") if not lead and PYTHON_FILE.fullmatch(word) else _STATS[lead]
    out = np.zeros(len(names), np.bool_)
    if lead in ("", "name"):
        out[names.metadata_rows :] = [needle in name.lower() for name in names.texts]
    source = names.source
    if source is None:
        return out
    table = source.events
    is_short = (table.display_end > table.display_begin) & (lead != "hlo")
    begin, end = np.where(is_short, (table.display_begin, table.display_end), (table.name_begin, table.name_end))
    if lead in ("", "name", "hlo"):
        out[: len(table)] = _holding(table.body, begin, end, needle)
    for stat in source.stats.find_names(stats):
        rows = np.flatnonzero(~out[: len(table)])
        texts = MetadataStats(source, rows.astype(np.int64), (stat,)).texts(stat)
        out[rows] = [text is not None and needle in text.lower() for text in texts]
    return out


def _holding(body: bytes, begin: Int64s, end: Int64s, needle: str) -> list[bool]:
    """Which texts contain another one, ignoring case."""
    spans = zip(begin.tolist(), end.tolist(), strict=True)
    if needle.isascii():
        wanted = needle.encode()
        return [wanted in body[a:b].lower() for a, b in spans]
    return [needle in body[a:b].decode("utf-8", "replace").lower() for a, b in spans]


def _counts(tracks: Sequence[Track], matching: Bools) -> tuple[list[int], Bools]:
    """How many events of each track match, and bool[keys], the keys that they have."""
    present = np.zeros(len(matching), np.bool_)
    out = []
    for track in tracks:
        if len(track) < len(matching):  # its counts by key would be larger than the track
            keys = track.key[matching[track.key]]
            present[keys] = True
            out.append(len(keys))
        else:
            counts = np.where(matching, track.counts, 0)
            present |= counts > 0
            out.append(int(counts.sum()))
    return out, present


def events_of(matches: TrackMatches, number: int) -> tuple[NDArray[np.int32], NDArray[np.int32], Int64s, Int64s]:
    """All matches of a track: its number, their places in it, starts and ends."""
    rows = np.flatnonzero(matches.matching[matches.track.key])
    of = np.full(len(rows), number, np.int32)
    return of, rows.astype(np.int32), matches.track.start_ps[rows], matches.track.end_ps[rows]


class _Few:
    """The matches of tracks with few of them, in order."""

    def __init__(self, tracks: Sequence[TrackMatches]) -> None:
        self._places = [matches.place for matches in tracks]
        none = no_ints()
        parts = [(none.astype(np.int32), none.astype(np.int32), none, none)]
        parts += [events_of(matches, number) for number, matches in enumerate(tracks)]
        of, index, start, end = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.lexsort((index, of, start))
        self._start, self._end, self._of, self._index = start[order], end[order], of[order], index[order]

    def nearest(
        self, time_ps: int, direction: int, event: EventId | None
    ) -> tuple[tuple[int, EventId], EventId] | None:
        """The match before or behind an instant or event, with the key that orders it."""
        if event is None:
            index = int(np.searchsorted(self._start, time_ps, side="right" if direction > 0 else "left"))
        else:
            index = self.before(time_ps, event)
            index += direction > 0 and index < len(self._start) and self._place(index) == event
        index -= direction < 0
        if not 0 <= index < len(self._start):
            return None
        place = self._place(index)
        return (int(self._start[index]), place), place

    def before(self, time_ps: int, event: EventId) -> int:
        """How many matches come before an event that starts at an instant."""
        low = int(np.searchsorted(self._start, time_ps, side="left"))
        high = int(np.searchsorted(self._start, time_ps, side="right"))
        # those that start together are in order of their places
        return low + bisect_left(range(low, high), event, key=self._place)

    def _place(self, index: int) -> EventId:
        return *self._places[int(self._of[index])], int(self._index[index])

    def marks(self, edges: Int64s) -> Bools:
        cells = len(edges) - 1
        first = np.searchsorted(edges, self._start, side="right") - 1
        last = np.maximum(np.searchsorted(edges, self._end, side="left"), first + 1)
        first, last = np.maximum(first, 0), np.minimum(last, cells)
        inside = first < last
        opens = np.bincount(first[inside], minlength=cells + 1)
        closes = np.bincount(last[inside], minlength=cells + 1)
        return np.cumsum(opens - closes)[:cells] > 0


class _Many:
    """The matches of a track with many of them, counted before each block of its events."""

    def __init__(self, matches: TrackMatches) -> None:
        self._place, self._track, self._matching = matches.place, matches.track, matches.matching
        n = len(self._track)
        sums = np.zeros(n // _BLOCK + 2, np.int64)
        for first in range(0, n, _SCAN):
            hits = self._hits(first, min(n, first + _SCAN))
            of = np.add.reduceat(hits, np.arange(0, len(hits), _BLOCK), dtype=np.int64)
            sums[first // _BLOCK + 1 :][: len(of)] = of
        self._sums = np.cumsum(sums)

    def _hits(self, first: int, last: int) -> Bools:
        return self._matching[self._track.key[first:last]]

    def _counted(self, places: Int64s) -> Int64s:
        """int64[n]: how many matches come before each of some places of the track."""
        block = places // _BLOCK
        place, event = ranges(block * _BLOCK, places)
        hits = self._matching[self._track.key[event]]
        return self._sums[block] + np.bincount(place[hits], minlength=len(places))

    def _match(self, number: int) -> int:
        """The place of a match, counted from 0 on."""
        block = int(np.searchsorted(self._sums, number, side="right")) - 1
        hits = np.flatnonzero(self._hits(block * _BLOCK, (block + 1) * _BLOCK))
        return block * _BLOCK + int(hits[number - int(self._sums[block])])

    def _reached(self, time_ps: int, event: EventId | None, after: bool) -> Int64s:
        """The first event of each lane that is not before an instant or event; with `after`, the first one behind it.

        In a lane no two events start together.
        """
        track = self._track
        out = np.empty(track.depth, np.int64)
        for lane in range(track.depth):
            part = track.lane(lane)
            index = part.start + int(np.searchsorted(track.start_ps[part], time_ps, side="left"))
            if index < part.stop and int(track.start_ps[index]) == time_ps:
                place = (*self._place, index)
                index += after if event is None or place == event else place < event
            out[lane] = index
        return out

    def nearest(
        self, time_ps: int, direction: int, event: EventId | None
    ) -> tuple[tuple[int, EventId], EventId] | None:
        reached = self._counted(self._reached(time_ps, event, direction > 0))
        if direction > 0:
            numbers = reached[reached < self._counted(self._track.lanes[1:])]
        else:
            numbers = reached[reached > self._counted(self._track.lanes[:-1])] - 1
        places = [(*self._place, self._match(number)) for number in numbers.tolist()]
        hits = [((int(self._track.start_ps[place[2]]), place), place) for place in places]
        return (min if direction > 0 else max)(hits, default=None)

    def before(self, time_ps: int, event: EventId) -> int:
        reached = self._counted(self._reached(time_ps, event, False))
        return int((reached - self._counted(self._track.lanes[:-1])).sum())

    def marks(self, edges: Int64s) -> Bools:
        out = np.zeros(len(edges) - 1, np.bool_)
        for lane in range(self._track.depth):
            window = lane_window(self._track, lane, edges)
            out |= self._counted(window.last) > self._counted(window.first)
        return out

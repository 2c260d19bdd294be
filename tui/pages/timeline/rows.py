"""Which rows the timeline has: sections and tracks, folded, pinned, filtered and sorted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from tpuprof.parsers.timeline.model import Section, Timeline, Track, TrackId, TrackKind

RowKind = Literal["section", "lane", "flat", "rate", "counter"]

_OPEN_UP_TO: dict[TrackKind, int] = {"ops": 6, "async": 3, "modules": 2, "steps": 2}
"""Lanes up to which a track shows them all at first."""

_STANDS_FOR: tuple[TrackKind, ...] = ("ops", "modules", "stream", "steps")

_OPEN_CORES = 2
"""Cores whose sections are open at first where there are more than twice as many."""


class Row(NamedTuple):
    """One row of the screen.

    Attributes:
        kind: a section's heading, one lane, a track's lanes as one, or a graph.
        section: index in `Timeline.sections`.
        item: index of the track, rate or counter in its section; -1 for a heading.
        lane: of the track; 0 for others.
        is_pinned: it stands above the others and does not scroll.
    """

    kind: RowKind
    section: int
    item: int = -1
    lane: int = 0
    is_pinned: bool = False

    @property
    def track_id(self) -> TrackId | None:
        """The row's track; None for headings and graphs."""
        return (self.section, self.item) if self.kind in ("lane", "flat") else None


@dataclass(frozen=True, slots=True)
class Folding:
    """How the rows are arranged.

    Attributes:
        closed: sections of which only the heading shows.
        turned: tracks that are open though they start closed, or the other way round.
        pinned: tracks on top, in order.
        wanted: only tracks and sections whose name holds this text, in whatever case.
        by_busy: tracks of a section by the time in which they are busy, most first.
    """

    closed: frozenset[int] = frozenset()
    turned: frozenset[TrackId] = frozenset()
    pinned: tuple[TrackId, ...] = ()
    wanted: str = ""
    by_busy: bool = False

    def with_section(self, section: int) -> Folding:
        """Opens or closes a section."""
        return replace(self, closed=self.closed ^ {section})

    def with_track(self, track: TrackId) -> Folding:
        """Opens or closes a track."""
        return replace(self, turned=self.turned ^ {track})

    def with_pin(self, track: TrackId) -> Folding:
        """Pins a track, or lets it go."""
        kept = tuple(one for one in self.pinned if one != track)
        return replace(self, pinned=kept if track in self.pinned else (*self.pinned, track))


def first_folding(timeline: Timeline) -> Folding:
    """All sections open, but of many cores only the first ones."""
    cores = [at for at, section in enumerate(timeline.sections) if section.kind != "host"]
    return Folding(closed=frozenset(cores[_OPEN_CORES:]) if len(cores) > 2 * _OPEN_CORES else frozenset())


def is_open(track: Track, track_id: TrackId, folding: Folding) -> bool:
    """Whether each lane of a track has a row of its own."""
    return (track.depth <= _OPEN_UP_TO.get(track.kind, 1)) != (track_id in folding.turned)


def rows_of(timeline: Timeline, folding: Folding) -> list[Row]:
    """The rows from top to bottom, pinned ones first."""
    rows: list[Row] = []
    for pinned in folding.pinned:
        rows += _track_rows(timeline.sections[pinned[0]].tracks[pinned[1]], pinned, folding, is_pinned=True)
    for at, section in enumerate(timeline.sections):
        rows += _section_rows(section, at, folding)
    return rows


def _section_rows(section: Section, at: int, folding: Folding) -> Iterator[Row]:
    """A section's heading and what is under it."""
    wanted = folding.wanted.casefold()
    everything = wanted in section.title.casefold()
    items = [item for item, track in enumerate(section.tracks) if everything or wanted in track.name.casefold()]
    rates = [item for item, rate in enumerate(section.rates) if everything or wanted in rate.name.casefold()]
    counters = [item for item, one in enumerate(section.counters) if everything or wanted in one.name.casefold()]
    if not (items or rates or counters):
        return
    yield Row("section", at)
    if at in folding.closed:
        return
    if folding.by_busy:
        items.sort(key=lambda item: -section.tracks[item].busy_ps)
    for item in items:
        track = section.tracks[item]
        if (at, item) not in folding.pinned:
            yield from _track_rows(track, (at, item), folding)
        if rates and track.kind == "ops":
            yield from (Row("rate", at, rate) for rate in rates)
            rates = []
    yield from (Row("rate", at, rate) for rate in rates)
    yield from (Row("counter", at, counter) for counter in counters)


def _track_rows(track: Track, track_id: TrackId, folding: Folding, is_pinned: bool = False) -> Iterator[Row]:
    if track.depth > 1 and not is_open(track, track_id, folding):
        yield Row("flat", *track_id, 0, is_pinned)
        return
    for lane in range(track.depth):
        yield Row("lane", *track_id, lane, is_pinned)


def overall_track(timeline: Timeline) -> Track | None:
    """The track that stands for the whole trace: the first core's, else the one with the most events."""
    tracks = [(section, section.tracks[at]) for section in timeline.sections if (at := main_track(section)) is not None]
    cores = [track for section, track in tracks if section.kind == "core"]
    return cores[0] if cores else max((track for _, track in tracks), key=len, default=None)


def main_track(section: Section) -> int | None:
    """The track that stands for a closed section: its ops or fullest stream; None for threads, which are many."""
    most: dict[TrackKind, int] = {}
    for item, track in enumerate(section.tracks if section.kind not in ("host", "other") else ()):
        if track.kind not in most or len(track) > len(section.tracks[most[track.kind]]):
            most[track.kind] = item
    for kind in _STANDS_FOR:
        if kind in most:
            return most[kind]
    return 0 if len(section.tracks) == 1 else None

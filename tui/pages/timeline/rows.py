"""What of the timeline is in sight: the window of time, and the rows: sections and tracks, folded, pinned, sorted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.timeline.model import CounterTrack, RateTrack, Section, Timeline, Track, TrackId, TrackKind
from tpuprof.parsers.timeline.windows import cell_edges

RowKind = Literal["host", "section", "lane", "flat", "rate", "counter"]

_OPEN_UP_TO: dict[TrackKind, int] = {"ops": 6, "async": 3, "modules": 2, "steps": 2}
"""Lanes up to which a track shows them all at first."""

_STANDS_FOR: tuple[TrackKind, ...] = ("ops", "modules", "stream", "steps")

_OPEN_CORES = 2  # cores whose sections are open at first where there are more than twice as many
_MARGIN = 20  # one part of so many of a window is left free on either side of what is fitted into it
_SMALL_PART = 2
"""A trace that is longer than so many times the stretch in which devices worked is first shown on that stretch."""


class TimelineRow(NamedTuple):
    """One row of the screen.

    Attributes:
        kind: a host's or a section's heading, one lane, a track's lanes as one, or a graph.
        section: index in `Timeline.sections`; of a host's heading, where there are several hosts, that in
            `Timeline.hosts`.
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
        hosts: hosts of which a single row shows.
        cell_ps: how long a cell is.
        kept: tracks that show however short their events are.
    """

    closed: frozenset[int] = frozenset()
    turned: frozenset[TrackId] = frozenset()
    pinned: tuple[TrackId, ...] = ()
    wanted: str = ""
    by_busy: bool = False
    hosts: frozenset[int] = frozenset()
    cell_ps: int = 0
    kept: frozenset[TrackId] = frozenset()

    def left_out(self, section: Section, number: int) -> list[int]:
        """The tracks beside a device's steps, modules and ops whose mean event is less than half a cell wide."""
        if self.wanted or not _is_device(section) or {of.kind for of in section.tracks}.isdisjoint(_STANDS_FOR):
            return []
        tracks = ((item, of) for item, of in enumerate(section.tracks) if (number, item) not in self.kept)
        return [item for item, of in tracks if of.kind not in _STANDS_FOR and of.mean_ps * 2 < self.cell_ps]

    def turned_over(self, timeline: Timeline, sections: frozenset[int]) -> Folding:
        """Closed sections open; open ones show what they leave out, or close where they leave out nothing."""
        if self.closed & sections:
            kept = frozenset(place for place in self.kept if place[0] not in sections)
            return replace(self, closed=self.closed - sections, kept=kept)
        more = {(number, item) for number in sections for item in self.left_out(timeline.sections[number], number)}
        return replace(self, kept=self.kept | more) if more else replace(self, closed=self.closed | sections)


def first_folding(timeline: Timeline) -> Folding:
    """All sections open, but of many cores only the first ones; of several hosts one, with its first section."""
    if timeline.hosts:
        parts = list(enumerate(timeline.hosts))
        with_device = (
            number for number, part in parts if any(map(_is_device, timeline.sections[part.first : part.last]))
        )
        opened = next(with_device, next((number for number, part in parts if part.first < part.last), 0))
        closed = (section for _, part in parts for section in range(part.first + 1, part.last))
        return Folding(closed=frozenset(closed), hosts=frozenset(range(len(parts))) - {opened})
    cores = [number for number, section in enumerate(timeline.sections) if section.kind != "host"]
    return Folding(closed=frozenset(cores[_OPEN_CORES:]) if len(cores) > 2 * _OPEN_CORES else frozenset())


def _is_device(section: Section) -> bool:
    return section.kind in ("core", "sparse_core", "gpu")


def rows_of(timeline: Timeline, folding: Folding) -> list[TimelineRow]:
    """The rows from top to bottom, pinned ones first."""
    rows: list[TimelineRow] = []
    for pinned in folding.pinned:
        rows += _track_rows(timeline.track(pinned), pinned, folding, is_pinned=True)
    if timeline.hosts:
        for number in range(len(timeline.hosts)):
            rows += _host_rows(timeline, number, folding)
        return rows
    for number, section in enumerate(timeline.sections):
        rows += _section_rows(section, number, folding)
    return rows


def _host_rows(timeline: Timeline, number: int, folding: Folding) -> Iterator[TimelineRow]:
    """A host's heading and its sections; a filter that its name holds takes it whole."""
    part = timeline.hosts[number]
    is_named = folding.wanted.casefold() in part.host.casefold()
    inner = replace(folding, wanted="") if is_named else folding
    places = range(part.first, part.last)
    below = [row for place in places for row in _section_rows(timeline.sections[place], place, inner)]
    if is_named or below:
        yield TimelineRow("host", number)
        if number not in folding.hosts:
            yield from below


def host_of(timeline: Timeline, section: int) -> int | None:
    """Which of several hosts a section is of; None where there is one, or no such section."""
    return next((at for at, part in enumerate(timeline.hosts) if part.first <= section < part.last), None)


def host_track(timeline: Timeline, host: int) -> TrackId | None:
    """The track that stands for a folded host: that of its first device; None without one."""
    part = timeline.hosts[host]
    mains = ((place, main_track(timeline.sections[place])) for place in range(part.first, part.last))
    return next(((place, item) for place, item in mains if item is not None), None)


def renumbered(folding: Folding, sections: Mapping[int, int], timeline: Timeline) -> Folding:
    """The same folding after more was read, or less; new sections of hosts are folded as they would be at first.

    Args:
        sections: where sections are now, by where they were.
    """
    new = first_folding(timeline).closed - set(sections.values()) if timeline.hosts else frozenset()
    return replace(
        folding,
        closed=new | {sections[old] for old in folding.closed if old in sections},
        turned=frozenset((sections[old], item) for old, item in folding.turned if old in sections),
        pinned=tuple((sections[old], item) for old, item in folding.pinned if old in sections),
        kept=frozenset((sections[old], item) for old, item in folding.kept if old in sections),
    )


def _section_rows(section: Section, number: int, folding: Folding) -> Iterator[TimelineRow]:
    """A section's heading and what is under it."""
    wanted = folding.wanted.casefold()

    def chosen(named: Sequence[Track | RateTrack | CounterTrack]) -> list[int]:
        everything = wanted in section.title.casefold()
        return [item for item, row in enumerate(named) if everything or wanted in row.name.casefold()]

    left_out = folding.left_out(section, number)
    items = [item for item in chosen(section.tracks) if item not in left_out]
    rates, counters = chosen(section.rates), chosen(section.counters)
    if not (items or rates or counters or (not section.is_read and wanted in section.title.casefold())):
        return
    yield TimelineRow("section", number)
    if number in folding.closed:
        return
    if folding.by_busy:
        items.sort(key=lambda item: -section.tracks[item].busy_ps)
    for item in items:
        track = section.tracks[item]
        if (number, item) not in folding.pinned:
            yield from _track_rows(track, (number, item), folding)
        if rates and track.kind == "ops":
            yield from (TimelineRow("rate", number, rate) for rate in rates)
            rates = []
    yield from (TimelineRow("rate", number, rate) for rate in rates)
    yield from (TimelineRow("counter", number, counter) for counter in counters)


def _track_rows(track: Track, track_id: TrackId, folding: Folding, is_pinned: bool = False) -> Iterator[TimelineRow]:
    is_open = (track.depth <= _OPEN_UP_TO.get(track.kind, 1)) != (track_id in folding.turned)
    if track.depth > 1 and not is_open:
        yield TimelineRow("flat", *track_id, 0, is_pinned)
    else:
        yield from (TimelineRow("lane", *track_id, lane, is_pinned) for lane in range(track.depth))


def overall_track(timeline: Timeline) -> Track | None:
    """The track that stands for the whole trace: the first core's, else the one with the most events."""
    mains = ((section, main_track(section)) for section in timeline.sections)
    tracks = [(section.kind, section.tracks[item]) for section, item in mains if item is not None]
    cores = [track for kind, track in tracks if kind == "core"]
    return cores[0] if cores else max((track for _, track in tracks), key=len, default=None)


def main_track(section: Section) -> int | None:
    """The track that stands for a closed section: its ops or fullest stream; None for threads, which are many."""
    most: dict[TrackKind, int] = {}
    for item, track in enumerate(section.tracks if section.kind not in ("host", "other") else ()):
        if track.kind not in most or len(track) > len(section.tracks[most[track.kind]]):
            most[track.kind] = item
    first = 0 if len(section.tracks) == 1 else None
    return next((most[kind] for kind in _STANDS_FOR if kind in most), first)


class RowList:
    """The rows, with the cursor on one of them, and which of them are in sight.

    Attributes:
        folding, all: how they are arranged, and all of them, from top to bottom.
        cursor: index of the cursor's row.
        top: of the first row in sight below the pinned ones, counted from these.
        height: rows that fit.
    """

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._lay_out(first_folding(timeline))
        self.cursor = next((number for number, row in enumerate(self.all) if row.kind not in ("host", "section")), 0)
        self.top = 0
        self.height = 20
        self._host = self.host

    @property
    def pinned(self) -> int:
        """How many rows do not scroll."""
        return next((number for number, row in enumerate(self.all) if not row.is_pinned), len(self.all))

    @property
    def current(self) -> TimelineRow | None:
        return self.all[self.cursor] if self.cursor < len(self.all) else None

    @property
    def host(self) -> int | None:
        """Which of several hosts the cursor is on; None where there is one."""
        return None if self.current is None else self.host_at(self.current)

    def host_at(self, row: TimelineRow) -> int | None:
        """Which of several hosts a row is of; None where there is one."""
        return row.section if row.kind == "host" else host_of(self._timeline, row.section)

    @property
    def hosts_in_sight(self) -> list[int]:
        hosts = dict.fromkeys(self.host_at(self.all[number]) for number in self.in_sight)
        return [host for host in hosts if host is not None]

    def reveal_host(self, host: int) -> None:
        """Moves to the row of a host that is the cursor's row on its own, else to its heading."""
        row, parts = self.current, self._timeline.hosts
        here = self.host
        wanted = TimelineRow("host", host)
        if row is not None and row.kind != "host" and here is not None:
            section = row.section - parts[here].first + parts[host].first
            same = row._replace(section=section, is_pinned=False)
            wanted = same if section < parts[host].last and same in self.all else wanted
        if wanted not in self.all:
            self._lay_out(replace(self.folding, wanted=""))
        self._center(self.all.index(wanted))

    @property
    def in_sight(self) -> list[int]:
        pinned = min(self.pinned, max(0, self.height - 1))
        first = self.pinned + self.top
        return [*range(pinned), *range(first, min(len(self.all), first + self.height - pinned))]

    def shows(self, track: TrackId) -> bool:
        return track in self._first_rows

    def extend(self, timeline: Timeline, sections: Mapping[int, int]) -> None:
        """The same timeline, more of which is read, or less; `sections` says where these are now."""
        is_untouched, row = replace(self.folding, cell_ps=0) == first_folding(self._timeline), self.current
        self._timeline = timeline
        if row is not None and row.kind != "host":
            host = host_of(timeline, sections[row.section]) if row.section in sections else None
            gone = TimelineRow("host", self._host or 0) if timeline.hosts and host is None else row
            row = row._replace(section=sections[row.section]) if row.section in sections else gone
        changed = first_folding(timeline) if is_untouched else renumbered(self.folding, sections, timeline)
        self._lay_out(changed)
        if row is not None:
            self.cursor = self._place_of(row)
            self._scroll()
        self._host = self.host

    def resize(self, height: int) -> None:
        self.height = height
        self._scroll()

    def move(self, by: int) -> None:
        self.cursor = max(0, min(self.cursor + by, len(self.all) - 1))
        self._scroll()

    def reveal(self, section: int, item: int, lane: int) -> None:
        """Moves to the row of a lane, opening its section and lifting a filter that hides it."""
        host = host_of(self._timeline, section)
        hosts = self.folding.hosts if host is None else self.folding.hosts - {host}
        kept = self.folding.kept | {(section, item)}
        opened = replace(self.folding, closed=self.folding.closed - {section}, hosts=hosts, kept=kept)
        for folding in (self.folding, opened, replace(opened, wanted="")):
            if folding != self.folding:
                self._lay_out(folding)
            first = self._first_rows.get((section, item))
            if first is not None:
                self._center(first + (lane if self.all[first].kind == "lane" else 0))
                return

    def reveal_counter(self, place: str) -> str:
        """Moves to the row of a counter, ``/device:TPU:0 / MXU``, opening its section; says where there is none."""
        for number, section in enumerate(self._timeline.sections):
            names = [f"{section.plane} / {counter.name}" for counter in section.counters]
            if place in names:
                hosts = self.folding.hosts - {host_of(self._timeline, number) or 0}
                self._lay_out(replace(self.folding, closed=self.folding.closed - {number}, wanted="", hosts=hosts))
                self._center(self.all.index(TimelineRow("counter", number, names.index(place))))
                return ""
        return f"no track of {place.rpartition(' / ')[2][:60]} on this host's timeline"

    def arrange(self, folding: Folding) -> bool:
        """Lays the rows out anew, with the cursor on the same track or section; whether it was on any."""
        before, cursor = self.current, self.cursor
        self._lay_out(folding)
        if before is not None:
            self.cursor = self._place_of(before)
            self.top += self.cursor - cursor  # it stays where it is on the screen
            self._scroll()
        return before is not None

    def _lay_out(self, folding: Folding) -> None:
        self.folding = folding
        self.all = rows_of(self._timeline, folding)
        self.__dict__.pop("_first_rows", None)

    def _scroll(self) -> None:
        pinned = min(self.pinned, max(0, self.height - 1))
        room = max(1, self.height - pinned)
        self.cursor = max(0, min(self.cursor, len(self.all) - 1))
        below = self.cursor - self.pinned
        if below >= 0:
            self.top = max(below - room + 1, min(self.top, below))
            above = self.all[self.pinned : self.cursor]
            if below < room and all(row.kind in ("host", "section") for row in above):
                self.top = 0  # with the heading of the first section
        self.top = max(0, min(self.top, len(self.all) - self.pinned - room))

    def _center(self, row: int) -> None:
        """Moves to a row; one that was out of sight comes to the middle."""
        below, room = row - self.pinned, max(1, self.height - self.pinned)
        if not self.top <= below < self.top + room:
            self.top = max(0, below - room // 2)
        self.cursor = row
        self._scroll()

    def _place_of(self, row: TimelineRow) -> int:
        """Where a row is now: itself, else its track's first, else its section's heading."""
        headings = [] if row.kind == "host" else [TimelineRow("section", row.section)]
        host = self.host_at(row)
        headings += [] if host is None else [TimelineRow("host", host)]
        for wanted in (row, *headings):
            if wanted in self.all:
                return self.all.index(wanted)
            if row.track_id in self._first_rows:
                return self._first_rows[row.track_id]
        return self.cursor

    @cached_property
    def _first_rows(self) -> dict[TrackId, int]:
        """The first row of each track that is shown; those of its other lanes come next."""
        rows = reversed(list(enumerate(self.all)))
        return {row[1:3]: number for number, row in rows if row.kind in ("lane", "flat")}


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """What the canvas shows, in `cells` cells.

    Attributes:
        start_ps, end_ps: from when to when.
        cells: width of the canvas.
        first_ps, last_ps: of the whole trace, which the window does not leave.
    """

    start_ps: int
    end_ps: int
    cells: int
    first_ps: int
    last_ps: int

    @property
    def span_ps(self) -> int:
        return self.end_ps - self.start_ps

    @property
    def on_trace(self) -> tuple[int, int]:
        """From when to when, without what lies before and behind the trace; a picosecond at least."""
        start = max(self.start_ps, min(self.first_ps, self.end_ps - 1))
        return start, max(start + 1, min(self.end_ps, self.last_ps))

    @property
    def edges(self) -> Int64s:
        """int64[cells + 1]: the borders of the cells."""
        return cell_edges(self.start_ps, self.end_ps, self.cells)

    def cell_of(self, instant_ps: int) -> int:
        """The cell of an instant, the nearest one where that is out of sight."""
        return max(0, min(int(np.searchsorted(self.edges, instant_ps, side="right")) - 1, self.cells - 1))

    def moved(self, start_ps: int, end_ps: int) -> TimeWindow:
        """A window of that length that lies on the trace, with a cell's width around it at least."""
        first, last = self.first_ps, self.last_ps
        edge = max((last - first) // 50, self.cells)
        span = max(self.cells, min(end_ps - start_ps, last - first + 2 * edge))
        edge = min(edge, span // 2)  # a close window lies on the trace with half of itself at least
        start = max(first - edge, min(start_ps, last + edge - span))
        return replace(self, start_ps=start, end_ps=start + span)

    def shifted(self, by_ps: int) -> TimeWindow:
        return self.moved(self.start_ps + by_ps, self.end_ps + by_ps)

    def resized(self, cells: int) -> TimeWindow:
        return replace(self, cells=cells).moved(self.start_ps, self.end_ps)

    def zoomed(self, factor: int, instant_ps: int) -> TimeWindow:
        """Twice as close (2) or half as close (-2), with an instant where it is."""
        span = self.span_ps
        longer = max(self.cells, span // 2 if factor > 0 else span * 2)
        start = instant_ps - (instant_ps - self.start_ps) * longer // span
        return self.moved(start, start + longer)

    def fitted(self, start_ps: int, end_ps: int, parts: int = _MARGIN) -> TimeWindow:
        """A stretch of time with one of so many parts of it free on either side."""
        margin = (end_ps - start_ps) // parts
        return self.moved(start_ps - margin, end_ps + margin)

    def whole(self) -> TimeWindow:
        return self.fitted(self.first_ps, self.last_ps, 100)


def small_part(timeline: Timeline) -> tuple[int, int] | None:
    """The stretch in which devices worked, where that is a small part of the trace; else None."""
    worked = timeline.worked_ps
    is_small = worked and 0 < (worked[1] - worked[0]) * _SMALL_PART < timeline.last_ps - timeline.first_ps
    return worked if is_small else None


def opening(timeline: Timeline, window: TimeWindow) -> TimeWindow:
    """What of a timeline is shown first, in a window of so many cells."""
    part = small_part(timeline)
    return window.whole() if part is None else window.fitted(*part)


def opening_instant(timeline: Timeline) -> int:
    """Where the cursor is first: where devices began to work, or with the first step."""
    part = small_part(timeline) or timeline.worked_ps
    if timeline.steps and part is not None:
        return max(part[0], min(timeline.steps[0].start_ps, part[1]))
    return part[0] if part is not None else timeline.first_ps

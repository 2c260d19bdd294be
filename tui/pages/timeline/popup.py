"""The lists above the timeline: what ran in an interval, by name or by track, and what a search has found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.timeline.measure import MeasuredRow, Measurement, merged_over_tracks
from tpuprof.parsers.timeline.model import EventId, TrackId, TrackKind
from tpuprof.tui.draw.format import share
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.widgets.chrome import KeyRow
from tpuprof.tui.widgets.lists.popup import PanelList
from tpuprof.tui.widgets.lists.table import RowsView
from tpuprof.tui.widgets.popup import CLOSE, Lines, meanings

if TYPE_CHECKING:
    from tpuprof.parsers.ops.filtering.filter import Filter
    from tpuprof.parsers.timeline.model import Timeline
    from tpuprof.tui.pages.timeline.state import TimelineView
    from tpuprof.tui.report.fields import Table

_READ = "tpuprof.tui.pages.timeline.report.read"  # imported when rows are listed
_MOST_ROWS = 12_000  # that are listed, and put together over cores: of a part of them the sums would be wrong
_AROUND: tuple[TrackKind, ...] = ("steps", "modules")  # which contain all the rest, so that they are tracks but no rows

_ABOUT_FOUND = meanings(
    ("", "The events that the search has found. When the list is closed, n and N go from one to the next."),
    ("start", "when the event began, in milliseconds on the trace's clock."),
    ("duration", "how long it took on that clock, with the events nested in it."),
)
_ABOUT_RAN = meanings(
    ("", "What ran between the two marks, or in the window. Events are cut at its ends."),
    (
        "self",
        "time without the events nested in it, summed over the row's tracks; share: of the time of these tracks in the "
        "interval, which asynchronous ops have none of: they run side by side.",
    ),
    ("busy", "of a track: share of the interval in which at least one event ran; time: that time."),
    ("total, average", "whole durations, on wide screens."),
    ("FLOPS HBM", "mean share of the peak over the cores, by the compiler's count of FLOPs and bytes."),
)


class Group(NamedTuple):
    """One grouping of the rows: its name, the table and the rows, what is said of them, and the event of each row."""

    name: str
    table: Table[Any]
    rows: Sequence[Any]
    said: str
    event_of: Callable[[int], EventId]


class EventList(PanelList[int], RowsView):
    """Rows that stand for events, of which Enter goes to one.

    Args:
        timeline: whose events they are.
        groups: the ways to group them, of which a key shows the next.
        chosen: called with the event to go to.
    """

    leave_key = CLOSE
    FIRST_SORT = ""  # as they come

    def __init__(
        self, about: Lines, timeline: Timeline, groups: Sequence[Group], chosen: Callable[[EventId], object]
    ) -> None:
        self.about, self._timeline, self._groups, self._chosen = about, timeline, groups, chosen
        self._shown = 0
        super().__init__()

    @property
    def group(self) -> Group:
        return self._groups[self._shown]

    def table(self) -> tuple[Table[Any], Any]:
        return self.group.table, self.group.rows

    @property
    def selection(self) -> str | None:
        event = None if self.row is None else self.group.event_of(self.row)
        return None if event is None else self._timeline.track(event).label(event[2])

    @property
    def total(self) -> int:
        return len(self.group.rows)

    @property
    def most_lines(self) -> int:
        return max(len(group.rows) for group in self._groups) + 2

    @property
    def keys(self) -> Sequence[KeyRow]:
        there: dict[str, Callable[[], object]] = dict.fromkeys(("open", "timeline"), self.enter)
        keys = [KeyRow("open", "go there", "Go to the event, the longest one of the row", there)]
        if len(self._groups) > 1:
            name = self._groups[(self._shown + 1) % len(self._groups)].name
            title, acts = "This track, all tracks, cores apart, or by track", {"group": self._next_group}
            keys.append(KeyRow("group", name, title, acts))
        return keys

    def _next_group(self) -> None:
        self._shown = (self._shown + 1) % len(self._groups)
        self._read_anew("")

    def lines_above(self, pen: Pen, height: int) -> list[Line]:
        return [pen.fit([(self.group.said, "dim")])]

    def find(self, text: str, wanted: Filter) -> str:
        return self.keep(text, wanted.mask(self.search_columns) if text else None)

    def enter(self) -> bool:
        self.is_left = self.point_page()
        return True

    def point_page(self) -> bool:
        if self.row is not None:
            self._chosen(self.group.event_of(self.row))
        return self.row is not None


def found_list(view: TimelineView, chosen: Callable[[EventId], object]) -> EventList:
    """The events that a search has found; of very many the longest ones."""
    matches = view.matches
    assert matches is not None, "something is searched for"
    read = import_module(_READ)
    rows = read.found_events(view.timeline, matches, _MOST_ROWS)
    events: list[EventId] = [(*row.place, row.number) for row in rows]
    longest = f"the {len(rows):,} longest are listed" if len(rows) < matches.total else ""
    of = f"{counted(matches.total, 'event')} of {counted(matches.names, 'name')}"
    group = Group("", read.fields.FOUND, rows, "; ".join(filter(None, (of, longest, view.so_far))), events.__getitem__)
    found = EventList(_ABOUT_FOUND, view.timeline, [group], chosen)
    found.point(events.index(view.event) if view.event in events else 0)
    return found


def measured_list(
    timeline: Timeline,
    measurement: Measurement,
    use: Mapping[str, float | None],
    chosen: Callable[[EventId], object],
    here: TrackId | None = None,
) -> EventList:
    """What ran in an interval: on the cursor's track, or by name over all cores or for each, or how busy tracks were.

    Args:
        use: of each rate its mean share of the peak, 0-1, over the cores; None where there is no peak.
        here: the cursor's track; None where it is on none.
    """
    read = import_module(_READ)
    tracks = [of for of in measurement.tracks if not timeline.track(of.place).is_derived]
    places = {of.place for of in tracks if of.kind not in _AROUND}
    rates = "".join(f"   {name} {share(fraction)}" for name, fraction in use.items())

    def by_name(name: str, rows: Sequence[MeasuredRow], of: str) -> Group:
        every = measurement.count(places) if name == "cores apart" else len(rows)
        said = f"{counted(every, 'row')} of {of}{f', {len(rows):,} are listed' if len(rows) < every else ''}"
        return Group(name, read.fields.RAN, rows, said, lambda row: (*rows[row].place, rows[row].longest))

    def longest(row: int) -> EventId:
        of = max(measurement.rows(None, (busy[row].place,)), key=lambda of: of.total_ps)
        return *of.place, of.longest

    cut, everywhere = "; cut to the interval", f"all tracks; cut to the interval{rates}"
    rows = measurement.rows(_MOST_ROWS, places)
    busy = sorted((of for of in tracks if of.events), key=lambda of: -of.busy_ps)
    groups = [
        by_name("this track", measurement.rows(_MOST_ROWS, (here,)), f"{of.section[:80]}, {of.track[:80]}{cut}")
        for of in measurement.tracks
        if of.place == here and of.kind not in _AROUND
    ]
    if measurement.count(places) <= _MOST_ROWS:
        groups.append(by_name("all tracks", merged_over_tracks(rows), everywhere))
    groups.append(by_name("cores apart", rows, everywhere))
    said = f"{counted(len(busy), 'track')}; cut to the interval{rates}"
    groups.append(
        Group("by track", read.fields.BUSY, [read.timeline_part.busy_row(timeline, of) for of in busy], said, longest)
    )
    return EventList(_ABOUT_RAN, timeline, groups, chosen)

"""What ran in an interval: a sortable list for a popup, by name or by track."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.timeline.measure import MeasuredRow, Measurement, SortKey, TrackShare
from tpuprof.parsers.timeline.model import EventId, TrackKind
from tpuprof.tui.draw.format import count, duration, percent, share
from tpuprof.tui.draw.pen import Composed, Pen, cut_middle
from tpuprof.tui.draw.spans import CLASS_LETTER, Line, Span, StyleKey
from tpuprof.tui.draw.table import Listing
from tpuprof.tui.widgets.chrome import KeyRow
from tpuprof.tui.widgets.line_canvas import ScreenLook
from tpuprof.tui.widgets.lists.popup import ListPopup, PanelList, centred_top
from tpuprof.tui.widgets.popup import CLOSE, meanings

_MOST_ROWS = 2000  # rows that are listed; what comes after them takes next to no time
_MOST_MERGED = 12_000  # rows up to which they are put together over cores: of a part of them the sums would be wrong
_WIDE = 92  # cells from which on there is room for all figures
_ROOM_FOR_TRACK = 40
_FIGURE, _LEAST_NAME = 9, 5  # cells of a figure, and those that a name keeps beside figures

_ABOUT = meanings(
    ("", "What ran between the two marks, or in the window. Events are cut at its ends."),
    (
        "self",
        "time without the events nested in it, summed over the row's tracks; share: of the time of these tracks in the "
        "interval, which asynchronous ops have none of: they run side by side.",
    ),
    ("busy", "of a track: time in which at least one event ran; share: of the interval."),
    ("total, average", "whole durations, on wide screens."),
    ("FLOPS HBM", "mean share of the peak over the cores, by the compiler's count of FLOPs and bytes."),
)


class _Listed(NamedTuple):
    """A row of the list, and how many tracks it is the sum of."""

    row: MeasuredRow
    tracks: int = 1


def merged_over_tracks(rows: Sequence[MeasuredRow]) -> list[_Listed]:
    """The rows with those of one name put together over all tracks of one name, as the cores' are: sums.

    The event to go to is that of the row with the longest time on average.
    """
    groups: dict[tuple[str, str], list[MeasuredRow]] = {}
    for row in rows:
        groups.setdefault((row.track, row.name), []).append(row)
    out = []
    for group in groups.values():
        slowest = max(group, key=lambda row: row.average_ps)
        tracks = len({row.place for row in group})
        merged = slowest.with_more(*(row for row in group if row is not slowest))
        out.append(_Listed(merged if tracks == 1 else replace(merged, section=f"{tracks} tracks"), tracks))
    return out


_ORDER: Mapping[SortKey, Callable[[_Listed], tuple[object, ...]]] = {
    "name": lambda listed: (listed.row.name, -listed.row.self_ps),
    "track": lambda listed: (listed.row.track, -listed.row.self_ps),
    "self": lambda listed: (-listed.row.self_ps,),
    "share": lambda listed: (-listed.row.self_ps / listed.tracks,),
    "count": lambda listed: (-listed.row.occurrences,),
    "total": lambda listed: (-listed.row.total_ps,),
    "average": lambda listed: (-listed.row.average_ps,),
}


_OF_TRACKS = {"track": "track", "self": "busy", "share": "share", "count": "events"}


@dataclass(frozen=True, slots=True)
class _View(Listing):
    """The list, sorted by one of the orders: of tracks, or of names, those of one name over all cores or apart."""

    sort: SortKey = "self"
    by_track: bool = False
    is_apart: bool = False


class MeasuredList(PanelList[_Listed | TrackShare]):
    """What ran in an interval, over all cores or for each.

    Steps and module runs, which contain all the rest, are tracks of the list but no names.

    Args:
        kinds: of the tracks, in the order of `Measurement.tracks`.
        use: of each rate its mean share of the peak, 0-1, over the cores; None where there is no peak.
        chosen: called with the event to go to: the longest of the row that was chosen.
    """

    about = staticmethod(_ABOUT)
    takes_filter = False
    leave_key = CLOSE
    listing: _View

    def __init__(
        self,
        measurement: Measurement,
        kinds: Sequence[TrackKind],
        use: Mapping[str, float | None],
        chosen: Callable[[EventId], object],
    ) -> None:
        self._measurement = measurement
        self._chosen = chosen
        places = [(share.place, kind) for share, kind in zip(measurement.tracks, kinds, strict=True)]
        self._places = {place for place, kind in places if kind not in ("steps", "modules")}
        self._overlapping = {place for place, kind in places if kind == "async"}
        self._busy = [share for share in measurement.tracks if share.events]
        self._use = use
        self._rows_apart = measurement.count(self._places)
        self._can_merge = self._rows_apart <= _MOST_MERGED
        self.listing = _View(is_apart=not self._can_merge)
        self.point(0)  # the rows are made here, on the thread that measures

    @property
    def rows(self) -> Sequence[_Listed | TrackShare]:
        return self.kept(self.listing.anew(), self._listed)

    def _listed(self) -> Sequence[_Listed | TrackShare]:
        view, step = self.listing, -1 if self.listing.is_reversed else 1
        if view.by_track:
            orders = {"track": lambda share: 0, "count": lambda share: -share.events}
            return sorted(self._busy, key=orders.get(view.sort, lambda share: -share.busy_ps))[::step]
        if view.is_apart:
            return list(map(_Listed, self._measurement.rows(step * _MOST_ROWS, view.sort, self._places)))
        return sorted(self._merged, key=_ORDER[view.sort])[::step][:_MOST_ROWS]

    @cached_property
    def _merged(self) -> list[_Listed]:
        return merged_over_tracks(self._measurement.rows(_MOST_MERGED, "self", self._places))

    @property
    def total(self) -> int:
        if self.listing.by_track:
            return len(self._busy)
        return self._rows_apart if self.listing.is_apart else len(self._merged)

    @property
    def most_lines(self) -> int:
        by_name = self._rows_apart if self.listing.is_apart or not self._can_merge else len(self._merged)
        return max(min(by_name, _MOST_ROWS), len(self._busy), 1) + 2

    @property
    def orders(self) -> Mapping[str, str]:
        return _OF_TRACKS if self.listing.by_track else {order: order for order in _ORDER}

    @property
    def keys(self) -> Sequence[KeyRow]:
        words = "by name" if self.listing.by_track else "by track" if self.listing.is_apart else "cores apart"
        there: dict[str, Callable[[], object]] = dict.fromkeys(("open", "timeline"), self.enter)
        return [
            KeyRow("open", "go there", "Go to the longest event of the row", there),
            KeyRow("group", words, "By name, the cores together or apart; by track", {"group": self._group}),
        ]

    def _group(self) -> None:
        """By name with the cores together, where they can be; by name with the cores apart; by track."""
        view = self.listing
        if view.by_track:
            self.listing = view.anew(by_track=False, is_apart=not self._can_merge)
        else:
            self.listing = view.anew(by_track=view.is_apart, is_apart=True)

    def compose(self, pen: Pen, height: int) -> Composed:
        room = height - 2
        top = centred_top(self.cursor, self.count, room)
        lines = [self._summary(pen), self._heading(pen)]
        if not self.count:
            lines.append(pen.fit([("nothing ran here", "dim")]))
        lines += [self._line(number, row, pen) for number, row in enumerate(self.rows[top : top + room], top)]
        return Composed(tuple(lines), 2, top, room)

    def _summary(self, pen: Pen) -> Line:
        by, what = str(self.listing.sort), "row"
        if self.listing.by_track:
            by, what = _OF_TRACKS.get(by, "busy"), "track"
        listed = f", the first {count(self.count)} are listed" if self.total > self.count else ""
        spans: list[Span] = [("sorted by ", "dim"), (by, "key")]
        spans.append((f"   {counted(self.total, what)}{listed}; cut to the interval", "dim"))
        for name, fraction in self._use.items():
            spans += [(f"   {name} ", "dim"), (share(fraction), "strong")]
        return pen.fit(spans)

    def _heading(self, pen: Pen) -> Line:
        name, track, *metrics = ("track", "", "busy", "share", "events") if self.listing.by_track else _ORDER
        words = re.findall(r"\s*\S+", _cells("  ", name, track, metrics, pen))
        return pen.fit(
            [(word, "strong" if word.strip() == self.orders[self.listing.sort] else "dim") for word in words]
        )

    def _line(self, number: int, row: _Listed | TrackShare, pen: Pen) -> Line:
        is_ascii = pen.glyphs.is_ascii
        mark = pen.glyphs.mark if number == self.cursor else " "
        key: StyleKey = "cursor" if number == self.cursor else "text"
        if isinstance(row, TrackShare):
            part = percent(None if row.busy_fraction is None else 100 * row.busy_fraction)
            names, metrics = (_place(row), ""), [duration(row.busy_ps, is_ascii), part, count(row.events)]
        else:
            of, length = row.row, self._measurement.duration_ps * row.tracks
            part = percent(100 * of.self_ps / length if length else None)
            part = pen.glyphs.dash if of.place in self._overlapping or of.self_ps > length else part
            names = (f"{CLASS_LETTER[of.op_class]} {of.name[:200]}", _place(of))
            own, total, average = (duration(ps, is_ascii) for ps in (of.self_ps, of.total_ps, of.average_ps))
            metrics = [own, part, count(of.occurrences), total, average]
        return pen.fit([(_cells(f"{mark} ", *names, metrics, pen), key)])

    def enter(self) -> bool:
        self.is_left = self.point_page()
        return True

    def point_page(self) -> bool:
        row = self.row
        if row is not None:
            longest = row.row if isinstance(row, _Listed) else self._measurement.rows(1, "total", (row.place,))[0]
            self._chosen((*longest.place, longest.longest))
        return row is not None


def _cells(mark: str, name: str, track: str, metrics: Sequence[str], pen: Pen) -> str:
    """Name and track at the left, figures at the right; the track goes first where room is scarce, then figures."""
    shown = len(metrics) if pen.width >= _WIDE else max(0, min(3, (pen.width - len(mark) - _LEAST_NAME) // _FIGURE))
    right = "".join(f"{figure:>{_FIGURE}}" for figure in metrics[:shown])
    room = max(1, pen.width - len(mark) - len(right) - 1)
    second = min(34, room * 2 // 5) if track and room >= _ROOM_FOR_TRACK else 0
    texts = [(name, room - second - bool(second)), (track, second)][: 1 + bool(second)]
    cut = (f"{cut_middle(text, cells, pen.glyphs):<{cells}}" for text, cells in texts)
    return f"{mark}{' '.join(cut)} {right}"


def _place(of: TrackShare | MeasuredRow) -> str:
    return f"{of.section[:80]}, {of.track[:200]}"


def measured_popup(
    look: ScreenLook,
    measurement: Measurement,
    kinds: Sequence[TrackKind],
    use: Mapping[str, float | None],
    chosen: Callable[[EventId], object],
) -> ListPopup:
    """The list in a popup."""
    title = f"What ran in {duration(measurement.duration_ps, look.glyphs.is_ascii)}"
    return ListPopup(look, title, MeasuredList(measurement, kinds, use, chosen))

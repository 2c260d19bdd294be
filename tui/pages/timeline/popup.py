"""What ran in an interval: a sortable list above the page, by name or by track."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.timeline.measure import MeasuredRow, Measurement, SortKey, TrackShare
from tpuprof.parsers.timeline.model import EventId, TrackKind
from tpuprof.tui.draw.format import count, duration, percent, share
from tpuprof.tui.draw.layout import cut_middle
from tpuprof.tui.draw.spans import CLASS_LETTER
from tpuprof.tui.draw.table import Listing
from tpuprof.tui.terminal.theme import AnyKey, AnyLine, AnySpan
from tpuprof.tui.widgets.choosing import ListPopup
from tpuprof.tui.widgets.chrome import KeyRow, pad
from tpuprof.tui.widgets.line_canvas import ScreenLook
from tpuprof.tui.widgets.popup import meanings

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


def together(rows: Sequence[MeasuredRow]) -> list[_Listed]:
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


_ORDER: dict[SortKey, Callable[[_Listed], tuple[object, ...]]] = {
    "self": lambda listed: (-listed.row.self_ps,),
    "total": lambda listed: (-listed.row.total_ps,),
    "count": lambda listed: (-listed.row.occurrences,),
    "name": lambda listed: (listed.row.name, -listed.row.self_ps),
    "track": lambda listed: (listed.row.track, -listed.row.self_ps),
}


@dataclass(frozen=True, slots=True)
class _View(Listing):
    """The list, sorted by one of the orders: of tracks, or of names, those of one name over all cores or apart."""

    sort: SortKey = "self"
    by_track: bool = False
    is_apart: bool = False


class MeasurementPopup(ListPopup):
    """Lists what ran in an interval, over all cores or for each.

    Steps and module runs, which contain all the rest, are tracks of the list but no names.

    Args:
        measurement: what was counted.
        kinds: of the tracks, in the order of `Measurement.tracks`.
        use: of each rate its mean share of the peak, 0-1, over the cores; None where there is no peak.
        chosen: called with the event to go to: the longest of the row that was chosen.
    """

    CHOOSES_AT_ONCE = False
    listing: _View

    def __init__(
        self,
        look: ScreenLook,
        measurement: Measurement,
        kinds: Sequence[TrackKind],
        use: Mapping[str, float | None],
        chosen: Callable[[EventId], object],
    ) -> None:
        super().__init__(look, f"What ran in {duration(measurement.duration_ps, look.glyphs.is_ascii)}", _ABOUT)
        self._measurement = measurement
        self._chosen = chosen
        places = zip(measurement.tracks, kinds, strict=True)
        self._places = {share.place for share, kind in places if kind not in ("steps", "modules")}
        self._overlapping = {
            share.place for share, kind in zip(measurement.tracks, kinds, strict=True) if kind == "async"
        }
        self._busy = [share for share in measurement.tracks if share.events]
        self._use = use
        self._rows_apart = measurement.count(self._places)
        self._can_merge = self._rows_apart <= _MOST_MERGED
        self._listed: Sequence[_Listed] = ()
        self._tracks: Sequence[TrackShare] = ()
        self._show(_View(is_apart=not self._can_merge))

    def _show(self, view: _View) -> None:
        """Lists anew, from the first row on."""
        self.listing, step = view.anew(), -1 if view.is_reversed else 1
        if view.by_track:
            by_time = sorted(self._busy, key=lambda share: 0 if view.sort == "track" else -share.busy_ps)
            self._tracks = by_time[::step]
        elif view.is_apart:
            rows = self._measurement.rows(step * _MOST_ROWS, view.sort, self._places)
            self._listed = tuple(map(_Listed, rows))
        else:
            self._listed = sorted(self._merged, key=_ORDER[view.sort])[::step][:_MOST_ROWS]

    @cached_property
    def _merged(self) -> list[_Listed]:
        """The rows over all cores."""
        return together(self._measurement.rows(_MOST_MERGED, "self", self._places))

    @property
    def total(self) -> int:
        """How many rows are listed."""
        return len(self._tracks if self.listing.by_track else self._listed)

    def row_count(self) -> int:
        """Two lines of headings and the longer of both lists, so that the panel stays."""
        return max(len(self._listed), len(self._busy), 1) + self.HEAD

    @property
    def own_keys(self) -> Sequence[KeyRow]:
        """Sorting, and what a row is of."""
        view, show = self.listing, self._show
        orders = {
            "sort": lambda: show(view.sorted_by_next(tuple(_ORDER))),
            "reverse": lambda: show(view.turned_round()),
        }
        sorting = "Sort by self time, total, count, name, track; reverse the order"
        words = "by name" if view.by_track else "by track" if view.is_apart else "cores apart"
        grouped = "By name, the cores together or apart; by track"
        return [
            KeyRow("open", "go there", "Go to the longest event of the row", {"open": self.choose}),
            KeyRow("sort reverse", "sort", sorting, orders),
            KeyRow("group", words, grouped, {"group": self._group}),
        ]

    def _group(self) -> None:
        """By name with the cores together, where they can be; by name with the cores apart; by track."""
        view = self.listing
        if view.by_track:
            self._show(view.anew(by_track=False, is_apart=not self._can_merge))
        else:
            self._show(view.anew(by_track=view.is_apart, is_apart=True))

    def rows(self, first: int, count_: int, width: int) -> list[AnyLine]:
        """The headings, and the rows around the cursor."""
        room = count_ - self.HEAD
        top = self.first(room)
        lines = [self._summary(width), self._heading(width)]
        if not self.total:
            return [*lines, pad([("nothing ran here", "panel.dim")], width, "panel")]
        return [*lines, *(self._line(number, width) for number in range(top, min(self.total, top + room)))]

    def _summary(self, width: int) -> AnyLine:
        if self.listing.by_track:
            sort, what, total = "track" if self.listing.sort == "track" else "busy", "track", self.total
        else:
            sort, what = self.listing.sort, "row"
            total = self._rows_apart if self.listing.is_apart else len(self._merged)
        listed = f", the first {count(self.total)} are listed" if total > self.total else ""
        spans: list[AnySpan] = [("sorted by ", "panel.dim"), (sort, "panel.key")]
        spans.append((f"   {counted(total, what)}{listed}; cut to the interval", "panel.dim"))
        for name, fraction in self._use.items():
            spans += [(f"   {name} ", "panel.dim"), (share(fraction), "panel.strong")]
        return pad(spans, width, "panel")

    def _heading(self, width: int) -> AnyLine:
        titles: tuple[str, ...] = ("name", "track", "self", "share", "count", "total", "average")
        name, track, *metrics = ("track", "", "busy", "share", "events") if self.listing.by_track else titles
        return pad([(self._cells("  ", name, track, metrics, width), "panel.dim")], width, "panel")

    def _line(self, number: int, width: int) -> AnyLine:
        ascii_only = self.look.glyphs.is_ascii
        is_current = number == self.cursor
        mark = self.look.glyphs.mark if is_current else " "
        key: AnyKey = "panel.cursor" if is_current else "panel"
        if self.listing.by_track:
            track = self._tracks[number]
            part = percent(None if track.busy_fraction is None else 100 * track.busy_fraction)
            names = (_place(track), "")
            metrics: tuple[str, ...] = (duration(track.busy_ps, ascii_only), part, count(track.events))
        else:
            row, tracks = self._listed[number]
            length = self._measurement.duration_ps * tracks
            part = percent(100 * row.self_ps / length if length else None)
            part = self.look.glyphs.dash if row.place in self._overlapping or row.self_ps > length else part
            names = (f"{CLASS_LETTER[row.op_class]} {row.name[:200]}", _place(row))
            own, total, average = (duration(ps, ascii_only) for ps in (row.self_ps, row.total_ps, row.average_ps))
            metrics = (own, part, count(row.occurrences), total, average)
        return pad([(self._cells(f"{mark} ", *names, metrics, width), key)], width, key)

    def _cells(self, mark: str, name: str, track: str, metrics: Sequence[str], width: int) -> str:
        """Name and track at the left, figures at the right; the track goes first where room is scarce, then figures."""
        glyphs = self.look.glyphs
        shown = len(metrics) if width >= _WIDE else max(0, min(3, (width - len(mark) - _LEAST_NAME) // _FIGURE))
        right = "".join(f"{figure:>{_FIGURE}}" for figure in metrics[:shown])
        room = max(1, width - len(mark) - len(right) - 1)
        second = min(34, room * 2 // 5) if track and room >= _ROOM_FOR_TRACK else 0
        texts = [(name, room - second - bool(second)), (track, second)][: 1 + bool(second)]
        cut = (f"{cut_middle(text, cells, glyphs):<{cells}}" for text, cells in texts)
        return f"{mark}{' '.join(cut)} {right}"

    def choose(self) -> None:
        """Goes to the longest event of the row under the cursor."""
        if not self.total:
            return
        self.is_open = False
        if self.listing.by_track:
            longest = self._measurement.rows(1, "total", (self._tracks[self.cursor].place,))[0]
        else:
            longest = self._listed[self.cursor].row
        self._chosen((*longest.place, longest.longest))


def _place(of: TrackShare | MeasuredRow) -> str:
    """Which track of which section; names may be of any length."""
    return f"{of.section[:80]}, {of.track[:200]}"

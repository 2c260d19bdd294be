"""The timeline tab's lines: axis and minimap on top, the rows that fit, and what is under the cursor below."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.timeline import windows
from tpuprof.parsers.timeline.details import op_facts
from tpuprof.parsers.timeline.flatten import flattened
from tpuprof.parsers.timeline.hosts.joined import clock_words, clocks_sentence
from tpuprof.parsers.timeline.model import CLASSES, Section, Timeline, Track, TrackId
from tpuprof.tui.draw.axis import cells_at, mark_line, tick_line, ticks
from tpuprof.tui.draw.format import duration, share
from tpuprof.tui.draw.pen import Pen, cut, cut_middle, filled
from tpuprof.tui.draw.spans import Fill, Glyphs, Line, Span, StyleKey, line_width
from tpuprof.tui.pages.timeline.draw import lanes
from tpuprof.tui.pages.timeline.draw.cells import fill_of
from tpuprof.tui.pages.timeline.draw.panel import base_name, facts_of, hint_of, panel_lines
from tpuprof.tui.pages.timeline.hosts import Hosts
from tpuprof.tui.pages.timeline.rows import TimelineRow, host_track, main_track, overall_track
from tpuprof.tui.pages.timeline.state import TimelineView

TOP_LINES = 3  # lines of the axis and the minimap
_LOW = 20  # rows below which the pane at the bottom has none for the colours beside three of facts
_TALL = 42  # rows from which on it has all its lines
_PANEL_LOW, _PANEL_MIDDLE, _PANEL_HIGH = 3, 4, 6

_MOST_AVERAGES = 1000  # labels whose averages are kept
_NEAR_AN_END = 1  # columns from an end of the marked interval at which the mouse takes hold of it
_GRAPHS: dict[str, Fill] = {"FLOPS": "compute", "HBM": "copy"}


class _Canvas(NamedTuple):
    """What all rows of a frame have in common: the borders of their cells, and pens for these and for what is left."""

    edges: Int64s
    pen: Pen
    left: Pen

    @property
    def glyphs(self) -> Glyphs:
        return self.pen.glyphs


class TimelinePage:
    """Draws what is shown of the timeline (`view`): of one host of as many `hosts` as the run has, or of `several`.

    Rows are kept from frame to frame for as long as nothing in them changes.
    """

    def __init__(self, timeline: Timeline, hosts: int = 1, several: Hosts | None = None) -> None:
        self.view = TimelineView(timeline, several)
        self._hosts = hosts
        self._gutter = 0
        self._forget()

    def extend(self, timeline: Timeline) -> None:
        self.view.extend(timeline)
        self._forget()

    def _forget(self) -> None:
        timeline = self.view.timeline
        self._rows: dict[object, Line] = {}
        self._map: tuple[object, windows.TrackWindow] | None = None
        self._marks: tuple[object, NDArray[np.bool_] | None] = (None, None)
        self._count: tuple[object, Line] | None = None
        self._averages: dict[object, tuple[str, ...]] = {}
        self._overall = overall_track(timeline)
        self._events = [sum(len(t) for t in section.tracks if not t.is_derived) for section in timeline.sections]

    @property
    def op_program(self) -> int | None:
        """Program id of the op that the selected event ran; None where the profile does not say."""
        return None if self.view.selected is None else op_facts(*self.view.selected).program_id

    def lines(self, pen: Pen, height: int) -> list[Line]:
        view = self.view
        panel = _PANEL_LOW if height < _LOW else _PANEL_MIDDLE if height < _TALL else _PANEL_HIGH
        self._gutter = 19 if pen.width < 100 else 26 if pen.width < 150 else 32
        view.resize(pen.width - self._gutter, height - TOP_LINES - panel - 1)
        canvas = _Canvas(view.window.edges, pen.at(view.window.cells), pen.at(self._gutter))
        rows = filled([*self._top(canvas), *self._body(canvas)], pen.width, TOP_LINES + view.rows.height)
        marks = [mark - view.base_ps for mark in view.marks]
        facts = panel_lines(facts_of(view), pen, panel, marks, base_name(view), hint_of(view))
        return [*rows, self._counts(canvas), *facts]

    @property
    def clocks(self) -> str:
        said = clocks_sentence(self.view.timeline)
        return f"{said[:1].upper()}{said[1:]}." if said else ""

    def status_line(self, pen: Pen) -> Line:
        """What the capture lacks, or how many events there are."""
        view, timeline = self.view, self.view.timeline
        if timeline.lost and not view.so_far:
            return pen.fit([(" incomplete: ", "warn"), (timeline.lost[0][:1000], "dim")])
        words = f" {counted(sum(self._events), 'event')} of host {timeline.host[:200]}"
        if timeline.hosts:
            words = f" {counted(sum(self._events), 'event')} of {counted(len(timeline.hosts), 'host')}"
            said = filter(None, (words, clocks_sentence(timeline), view.so_far))
            return pen.fit([(", ".join(said), "dim")])
        if view.so_far:
            words += f", {view.so_far}"
        elif self._hosts > 1:
            words += f", one of {counted(self._hosts, 'host')}: H shows another"
        return pen.fit([(words, "dim")])

    def point(self, x: int, y: int) -> None:
        """Moves the cursor to a place on the screen; one outside of the marked interval clears that."""
        view = self.view
        if view.interval is not None and x >= self._gutter:
            begin, end = cells_at(view.window.edges, (view.interval[0], view.interval[1] - 1))
            if not begin - 1 <= x - self._gutter <= end + 1:
                view.clear_marks()
        shown, line = view.rows.in_sight, y - TOP_LINES
        if 0 <= line < len(shown):
            view.move_rows(shown[line] - view.rows.cursor)
        if x >= self._gutter:
            view.move_cells(x - self._gutter - view.cursor_cell)

    def instant_at(self, x: int) -> int | None:
        """When the cell of a column of the screen begins; None over the names."""
        return None if x < self._gutter else int(self.view.window.edges[self._cell(x)])

    def drag(self, first_x: int, last_x: int) -> None:
        view, edges = self.view, self.view.window.edges
        begin, end = map(self._cell, sorted((first_x, last_x)))
        view.marks = (int(edges[begin]), int(edges[end + 1]))
        view.cursor_ps = view.marks[0]

    def other_end(self, x: int) -> int | None:
        """The end of the marked interval that stays where the mouse takes hold of the other one; None where of none."""
        view = self.view
        if view.interval is None or x < self._gutter:
            return None
        begin, end = view.interval
        window = view.window
        cells = cells_at(window.edges, (begin, end - 1))
        near = [
            (abs(x - self._gutter - cell), fixed)
            for instant, cell, fixed in ((begin, cells[0], end), (end, cells[1], begin))
            if window.start_ps <= instant <= window.end_ps
        ]
        distance, fixed = min(near, default=(_NEAR_AN_END + 1, 0))
        return fixed if distance <= _NEAR_AN_END else None

    def drag_end(self, fixed_ps: int, x: int) -> None:
        """The marked interval reaches from an end that stays to a column of the screen, which it takes in."""
        begin, end = self.view.window.edges[self._cell(x) :][:2].tolist()
        self.view.stretch(fixed_ps, begin if begin < fixed_ps else end)

    def _cell(self, x: int) -> int:
        """The cell of a column of the screen, the nearest one where that is in the margin."""
        return max(0, min(x - self._gutter, self.view.window.cells - 1))

    # --- above the rows

    def _top(self, canvas: _Canvas) -> list[Line]:
        view, window, glyphs = self.view, self.view.window, canvas.glyphs
        timeline, ascii_only = view.timeline, glyphs.is_ascii
        whose = counted(len(timeline.hosts), "host") if timeline.hosts else timeline.host
        marked = ticks(window.start_ps, window.end_ps, view.base_ps, canvas.pen.width, ascii_only)
        base = "from mark" if view.base == "mark" else "time"
        if view.base == "step" and view.step is not None:
            base = f"in step {timeline.steps[view.step].name[:20]}"
        begin, end = window.on_trace
        span = duration(end - begin, ascii_only)
        shows = f" shows {span}, averaged"  # and what stands beside the tracks is averaged over it
        heads: tuple[Span, ...] = (
            (" incomplete: W", "warn") if timeline.lost else (f" {whose[:80]}", "dim"),
            (f" {base} {marked.offset}", "strong" if marked.offset else "dim"),
            (shows if len(shows) < canvas.left.width else f" avg over {span}", "dim"),
        )
        bodies = (
            self._minimap(canvas),
            tick_line(marked, canvas.edges, glyphs, with_offset=False),
            mark_line(canvas.edges, glyphs, cursor_ps=view.cursor_ps, marks=view.marks, steps=timeline.steps),
        )
        return [(*canvas.left.fit([head]), *body) for head, body in zip(heads, bodies, strict=True)]

    def _minimap(self, canvas: _Canvas) -> Line:
        """The first section's ops, or whatever stands for it, over the whole trace."""
        timeline, track, window = self.view.timeline, self._overall, self.view.window
        cells = canvas.pen.width
        edges = windows.cell_edges(timeline.first_ps, timeline.last_ps, cells)
        if self._map is None or self._map[0] != cells:
            none = np.zeros((cells, len(CLASSES)), np.int64)
            empty = windows.TrackWindow(edges, none[:, 0], none)
            self._map = cells, empty if track is None else windows.track_window(track, edges)
        return lanes.minimap_line(
            self._map[1],
            canvas.glyphs,
            view=(window.start_ps, window.end_ps),
            fill=None if track is None else fill_of(track.kind),
            match_cells=self._found_in(edges),
            lost_from_ps=None if track is None else _lost_from(track),
        )

    def _found_in(self, edges: Int64s) -> NDArray[np.bool_] | None:
        """bool[cells]: where over the whole trace a search found something."""
        matches = self.view.matches
        if self._marks[0] != (matches, len(edges)):
            self._marks = (matches, len(edges)), None if matches is None else matches.marks(edges)
        return self._marks[1]

    # --- rows

    def _body(self, canvas: _Canvas) -> list[Line]:
        view = self.view
        kept: dict[object, Line] = {}
        lines = []
        arrows = self._arrow_ends(canvas)
        for number in view.rows.in_sight:
            row = view.rows.all[number]
            label = self._label(row, number == view.rows.cursor, canvas.glyphs)
            if row.kind == "host" and (row.section not in view.rows.folding.hosts or view.track_of(row) is None):
                lines.append(self._host_heading(row.section, label, canvas))
                continue
            if row.kind == "section" and row.section not in view.rows.folding.closed:
                lines.append(self._heading(row.section, label, canvas))
                continue
            key = (row, view.window, canvas.pen, self._selected_in(row), self._found_on(row))
            cells = kept[key] = self._rows.get(key) or self._cells(row, canvas)
            for lane, cell in arrows.get(row.track_id, ()):
                if row.kind == "flat" or lane == row.lane:
                    cells = lanes.with_sign(cells, cell, canvas.glyphs.arrow)
            if number == view.rows.cursor:
                cells = lanes.with_cursor(cells, view.cursor_cell, canvas.glyphs)
            lines.append((*gutter_line(label, canvas.left), *cells))
        self._rows = kept
        return lines

    def _arrow_ends(self, canvas: _Canvas) -> dict[TrackId | None, set[tuple[int, int]]]:
        """Lanes and cells in which events begin that arrows join to the selected one, by track."""
        ends: dict[TrackId | None, set[tuple[int, int]]] = {}
        for flow in self.view.flows_here():
            place = (flow.section, flow.track)
            track = self.view.timeline.track(place)
            start = int(track.start_ps[flow.event])
            if canvas.edges[0] <= start < canvas.edges[-1]:
                end = track.lane_of(flow.event), cells_at(canvas.edges, (start,))[0]
                ends.setdefault(place, set()).add(end)
        return ends

    def _selected_in(self, row: TimelineRow) -> int | None:
        event = self.view.event
        return None if event is None or row.track_id != event[:2] else event[2]

    def _found_on(self, row: TimelineRow) -> bytes | None:
        """Which names of a row's track a search has found; None where it has found none."""
        place = host_track(self.view.timeline, row.section) if row.kind == "host" else row.track_id
        matches = self.view.matches
        found = None if matches is None or place is None else matches.matching(place)
        return None if found is None else found.tobytes()

    def _cells(self, row: TimelineRow, canvas: _Canvas) -> Line:
        if row.kind == "host":  # one that is folded shows the track that stands for it
            place = host_track(self.view.timeline, row.section)
            return canvas.pen.fit([]) if place is None else self._cells(TimelineRow("flat", *place), canvas)
        section, edges, glyphs = self.view.timeline.sections[row.section], canvas.edges, canvas.glyphs
        if row.kind == "section":
            return self._closed(section, canvas)
        if row.kind == "rate":
            rate = section.rates[row.item]
            return lanes.rate_line(
                windows.rate_window(rate, edges), rate.peak, glyphs, _GRAPHS.get(rate.name, "vector")
            )
        if row.kind == "counter":
            return lanes.counter_line(section.counters[row.item], edges, glyphs)
        track, selected, matches = section.tracks[row.item], self._selected_in(row), self.view.matches
        is_match = None if matches is None else matches.matching((row.section, row.item))
        fill, lost, lane = fill_of(track.kind, row.lane), _lost_from(track), row.lane
        if row.kind == "flat":  # slices of the deepest events where these are few, else how busy each cell is
            slices = flattened(track, int(edges[0]), int(edges[-1]))
            if slices is None or len(slices[0]) > 2 * canvas.pen.width:
                span = None if selected is None else (int(track.start_ps[selected]), int(track.end_ps[selected]))
                busy = windows.track_window(track, edges)
                return lanes.track_line(busy, glyphs, fill=fill, selected=span, lost_from_ps=lost)
            track, events = slices
            chosen = np.flatnonzero(events == selected).tolist() if selected is not None else []
            selected, lane = next(iter(chosen), None), 0
        window = windows.lane_window(track, lane, edges)
        return lanes.lane_line(
            track, window, glyphs, fill=fill, selected=selected, is_match=is_match, lost_from_ps=lost
        )

    def _closed(self, section: Section, canvas: _Canvas) -> Line:
        """A closed section: how busy the track is that stands for it."""
        item = main_track(section)
        if item is None:
            return canvas.pen.fit([(counted(len(section.tracks), "track") if section.is_read else "reading", "dim")])
        track = section.tracks[item]
        return lanes.track_line(windows.track_window(track, canvas.edges), canvas.glyphs, fill=fill_of(track.kind))

    def _heading(self, index: int, label: Label, canvas: _Canvas) -> Line:
        section = self.view.timeline.sections[index]
        left_out = [section.tracks[item] for item in self.view.rows.folding.left_out(section, index)]
        folded = f" ({len(left_out)} folded: z)" if left_out else ""
        words = f"{counted(len(section.tracks), 'track')}{folded}, {counted(self._events[index], 'event')}"
        words = words if section.is_read else "reading"
        words += f"  {section.core[:200]}" if section.core else ""
        words += f"  {section.plane[:200]}" if section.plane != section.title else ""
        words += f"  folded: {', '.join(track.name[:_SEEN] for track in left_out)}" if left_out else ""
        return self._over_all(section.title, label, (words, "dim"), canvas)

    def _host_heading(self, number: int, label: Label, canvas: _Canvas) -> Line:
        """A host's name, how much of it is read and how its clock was aligned; or why it can't be read."""
        part = self.view.timeline.hosts[number]
        if part.problem:
            return self._over_all(part.host, label, (part.problem[:400], "warn"), canvas)
        sections = range(part.first, part.last)
        events = counted(sum(self._events[section] for section in sections), "event")
        words = f"{counted(len(sections), 'section')}, {events}" if part.is_whole else "reading"
        words = "not read yet" if part.clock is None else words
        words += f"  clock {clock_words(part.clock)}" if part.clock is not None and part.clock.source != "axis" else ""
        return self._over_all(part.host, label, (words, "dim"), canvas)

    def _over_all(self, title: str, label: Label, said: Span, canvas: _Canvas) -> Line:
        glyphs, width = canvas.glyphs, canvas.left.width + canvas.pen.width
        gutter = gutter_line(label, canvas.left.at(max(canvas.left.width, min(len(title) + 5, width // 2))))
        line = glyphs.horizontal
        rest: list[Span] = [(f"{line} ", "rule"), (canvas.pen.text(said[0]), said[1]), (" " + line * width, "rule")]
        return (*gutter, *Pen(width - line_width(gutter), replace(glyphs, ellipsis=line)).fit(rest))

    def _label(self, row: TimelineRow, is_current: bool, glyphs: Glyphs) -> Label:
        if row.kind == "host":
            part = self.view.timeline.hosts[row.section]
            return Label("section", part.host, row.section not in self.view.rows.folding.hosts, is_current=is_current)
        section = self.view.timeline.sections[row.section]
        if row.kind == "section":
            is_open = row.section not in self.view.rows.folding.closed
            return Label("section", section.title, is_open, is_current=is_current)
        notes = self._notes(row, glyphs)
        if row.kind in ("rate", "counter"):
            graph = section.rates[row.item] if row.kind == "rate" else section.counters[row.item]
            return Label("graph", graph.name, is_current=is_current, notes=notes)
        track = section.tracks[row.item]
        if row.kind == "lane" and row.lane:
            return Label("lane", str(row.lane), None, row.is_pinned, is_current)
        folds = None if track.depth < 2 else row.kind == "lane"
        title = f"{track.name} {section.title[:80].partition(':')[0]}" if row.is_pinned else track.name
        return Label("track", title, folds, row.is_pinned, is_current, notes)

    def _notes(self, row: TimelineRow, glyphs: Glyphs) -> tuple[str, ...]:
        """Averages over the window, to stand beside a track: kept for as long as that stays."""
        view = self.view
        section, (begin, end) = view.timeline.sections[row.section], view.window.on_trace
        key = (row[:4], begin, end, glyphs.name)
        if key in self._averages:
            return self._averages[key]
        if len(self._averages) > _MOST_AVERAGES:
            self._averages.clear()
        notes: tuple[str, ...] = ()
        if row.kind == "rate":
            rate = section.rates[row.item]
            notes = (share(windows.mean_rate(rate, begin, end) / rate.peak if rate.peak else None),)
        elif row.kind == "counter":
            counter = section.counters[row.item]
            mean = lanes.mean_label(counter, begin, end, glyphs)
            notes = (f"{mean} of {lanes.range_label(counter, glyphs)}", mean)
        elif not row.lane and not (track := section.tracks[row.item]).is_derived and track.kind != "steps":
            busy = windows.busy_share(track, begin, end)
            notes = () if busy is None else (share(busy),)
        self._averages[key] = notes
        return notes

    # --- below the rows

    def _counts(self, canvas: _Canvas) -> Line:
        """How many events each cell of the cursor's row holds."""
        view, row, glyphs = self.view, self.view.rows.current, canvas.glyphs
        found = view.track_of(row)
        label = canvas.left.fit([(" events a cell", "dim")])
        if row is None or found is None:
            return (*label, (glyphs.horizontal * canvas.pen.width, "rule"))
        key = (row, view.window, canvas.pen)
        if self._count is None or self._count[0] != key:
            if row.kind == "lane":
                window = windows.lane_window(found[1], row.lane, canvas.edges)
                counts = window.last - window.first
            else:
                counts = windows.track_window(found[1], canvas.edges).count
            self._count = key, lanes.count_line(counts)
        return (*label, *self._count[1])


def _lost_from(track: Track) -> int | None:
    """From when on a track lacks events that the file has lost."""
    return track.span[1] if track.lost_bytes and len(track) else None


LabelKind = Literal["section", "track", "lane", "graph"]

_SEEN = 200  # characters of a name that are looked at


@dataclass(frozen=True, slots=True)
class Label:
    """What a row is called.

    Attributes:
        kind: a section's heading, the first row of a track, another lane of it, or a graph.
        text: title or name; for a lane its number.
        is_open: a section or a track of several lanes is open, or closed; None for what can't be opened.
        is_pinned: the track stands on top.
        is_current: the cursor is on the row.
        notes: forms of what stands at the right side, such as ``93%`` or ``80 W of 61–143 W``: the first with room
            beside the name; of a graph the last one otherwise, and the name is cut.
    """

    kind: LabelKind
    text: str
    is_open: bool | None = None
    is_pinned: bool = False
    is_current: bool = False
    notes: tuple[str, ...] = ()


def gutter_line(label: Label, pen: Pen) -> Line:
    """The label in exactly `width` cells, the last of which is a rule; names are cut in the middle."""
    rule: Line = ((pen.glyphs.vertical, "rule"),)
    if pen.width < 2:
        return rule[: pen.width]
    is_section = label.kind == "section"
    pin = "*" if pen.glyphs.is_ascii else "◆"
    fold = "" if label.is_open is None else (pen.glyphs.open if label.is_open else pen.glyphs.closed) + " "
    head: list[Span] = [
        (pen.glyphs.mark if label.is_current else " ", "mark"),
        ("" if is_section else pin if label.is_pinned else " ", "key"),
        (fold if is_section else fold or "  ", "key"),
        ("  " if label.kind == "lane" else "", "text"),
    ]
    room = max(0, pen.width - 1 - line_width(head))
    text = pen.text(label.text[:_SEEN])
    if len(text) > room and not is_section:  # the number and the kind of a stream say which one it is
        text = text.removeprefix("Stream ")
    notes = [pen.text(note[:_SEEN]) for note in label.notes]
    note = next((note for note in notes if len(text) + 1 + len(note) <= room), "")
    if notes and not note and label.kind == "graph" and len(notes[-1]) + 1 + min(len(text), 8) <= room:
        note = notes[-1]
    name_room = room - (len(note) + 1 if note else 0)
    name = (cut if is_section else cut_middle)(text, name_room, pen.glyphs)
    usual: StyleKey = "strong" if label.is_current else "dim" if label.kind == "lane" else "text"
    head += [(f"{name:<{name_room}}", "title" if is_section else usual), (f" {note}" if note else "", "dim")]
    return pen.narrower(1).fit(head) + rule

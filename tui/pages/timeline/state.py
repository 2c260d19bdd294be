"""Where a user is on a timeline, and what each key makes of it. No drawing, and nothing of the screen but its size."""

from __future__ import annotations

from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.base.record import replace
from tpuprof.parsers.base.text import counted, nearest_words, nothing_found, printable, said_of
from tpuprof.parsers.timeline.details import adjacent_event, event_in_cell, longest_called
from tpuprof.parsers.timeline.gaps import next_gap
from tpuprof.parsers.timeline.hosts.joined import clock_words
from tpuprof.parsers.timeline.model import EventId, StepSpan, Timeline, Track, TrackId
from tpuprof.parsers.timeline.read.flows import Flow, Flows
from tpuprof.parsers.timeline.search import Matches, event_names, find, runs_of
from tpuprof.tui.draw.format import duration
from tpuprof.tui.pages.timeline import rows
from tpuprof.tui.pages.timeline.hosts import Hosts, section_numbers
from tpuprof.tui.pages.timeline.marks import Marks

_MOST_FLOWS = 1000  # arrows from an event, or to it, that are looked at


class TimelineView(Marks):
    """The state of the timeline tab.

    Attributes:
        timeline, window: what is looked at, and what is shown of it.
        flows: what leads from event to event; None while they are not read yet, and where there are several hosts.
        hosts: what is read of several hosts; None where there is one.
        rows: sections and tracks, with the cursor on one of them.
        matches: of the text searched for.
    """

    def __init__(self, timeline: Timeline, hosts: Hosts | None = None) -> None:
        super().__init__(timeline)
        self.hosts = hosts
        self.flows: Flows | None = None
        self.rows = rows.RowList(timeline)
        self.matches: Matches | None = None
        self._flows_of: tuple[tuple[Flows, EventId], tuple[Flow, ...]] | None = None
        self._wants_all = False
        window = rows.TimeWindow(timeline.first_ps, timeline.last_ps, 80, timeline.first_ps, timeline.last_ps)
        self.window = rows.opening(timeline, window)
        self.cursor_ps = rows.opening_instant(timeline)
        self._select_opening()

    def extend(self, timeline: Timeline) -> None:
        """The same timeline, more of which is read: where one is stays; who went nowhere is where it would open."""
        before, window = self.timeline, replace(self.window, first_ps=timeline.first_ps, last_ps=timeline.last_ps)
        if self.is_at_opening:
            window = rows.opening(timeline, window)
        elif self.window == self.window.whole():
            window = window.whole()
        self.window = window
        if self.cursor_ps == rows.opening_instant(before):
            self.cursor_ps = rows.opening_instant(timeline)
        sections = section_numbers(before, timeline)
        if self.event is not None:
            section, *rest = self.event
            self.event = (sections[section], rest[0], rest[1]) if section in sections else None
        self.timeline = timeline
        self.rows.extend(timeline, sections)
        self._select_opening()
        if self.matches is not None:
            self.matches = find(timeline, self.matches.text)

    def _select_opening(self) -> None:
        """The first event of the row is selected, unless the cursor went elsewhere."""
        if self.event is None and self.cursor_ps == rows.opening_instant(self.timeline):
            self.event = self._under_cursor()

    @property
    def is_at_opening(self) -> bool:
        """Whether the window is the one that it opened with, and nobody asked for all."""
        return not self._wants_all and self.window == rows.opening(self.timeline, self.window)

    @property
    def is_on_a_part(self) -> bool:
        """Whether it shows the stretch in which devices worked because that is a small part of the trace."""
        return self.is_at_opening and rows.small_part(self.timeline) is not None

    @property
    def so_far(self) -> str:
        """Returns ``2 of 5 sections are read`` for as long as not all are; of several hosts how many of these."""
        if self.hosts is not None and not self.timeline.unread:
            read, hosts = self.hosts.read, len(self.timeline.hosts)
            folded = sum(not part.is_whole and part.first < part.last for part in self.timeline.hosts)
            words = f"{read:,} of {hosts:,} hosts are read" if read < hosts else ""
            less = f"of {counted(folded, 'folded host')} the first section" if folded else ""
            return ", ".join(filter(None, (words, less)))
        unread, sections = self.timeline.unread, len(self.timeline.sections)
        verb = "is" if sections - unread == 1 else "are"
        return f"{sections - unread} of {sections} sections {verb} read" if unread else ""

    # --- what is where

    def track_of(self, row: rows.TimelineRow | None) -> tuple[TrackId, Track] | None:
        """The track that a row is about: of a heading the one that stands for its section, of a graph the ops."""
        if row is None:
            return None
        if row.kind == "host":
            place = rows.host_track(self.timeline, row.section)
            return None if place is None else (place, self.timeline.track(place))
        section = self.timeline.sections[row.section]
        item: int | None = row.item
        if row.kind == "rate":
            item = section.tracks.index(section.rates[row.item].ops)
        elif row.track_id is None:
            item = rows.main_track(section) if row.kind == "section" else None
        return None if item is None else ((row.section, item), section.tracks[item])

    @property
    def _here(self) -> tuple[rows.TimelineRow, TrackId, Track] | None:
        """The cursor's row, and the track that it is about; None where it is about none."""
        row = self.rows.current
        found = self.track_of(row)
        return None if row is None or found is None else (row, *found)

    @property
    def cursor_cell(self) -> int:
        return self.window.cell_of(self.cursor_ps)

    @property
    def cursor_edges(self) -> Int64s:
        """int64[2]: begin and end of the cursor's cell."""
        cell = self.cursor_cell
        return self.window.edges[cell : cell + 2]

    def resize(self, cells: int, height: int) -> None:
        """The canvas has so many cells and rows; what was in sight stays."""
        self.window = self.window.resized(max(1, cells))
        self.rows.resize(max(1, height))
        folding, row = self.rows.folding, self.rows.current
        shown = replace(folding, cell_ps=self.window.span_ps // self.window.cells)
        if (
            row is not None
            and row.track_id
            and row.item in shown.left_out(self.timeline.sections[row.section], row.section)
        ):
            shown = replace(shown, kept=shown.kept | {row.track_id})
        if shown != folding:
            self.rows.arrange(shown)

    # --- moving over rows and cells

    def move_rows(self, by: int) -> None:
        self.rows.move(by)
        self.event = self._under_cursor()

    def move_cells(self, by: int) -> None:
        """Moves the cursor `by` cells to the right; beyond the edge the window follows."""
        cells, cell = self.window.cells, self.cursor_cell + by
        if not 0 <= cell < cells:
            width = max(1, self.window.span_ps // cells)
            self.window = self.window.shifted(width * (cell if cell < 0 else cell - cells + 1))
            cell = max(0, min(cell, cells - 1))
        begin, end = self.window.edges[cell : cell + 2].tolist()
        self.cursor_ps = begin + (end - begin) // 2
        self.event = self._under_cursor()

    def pan(self, quarters: int) -> str:
        """Moves the window by quarters of itself, and the cursor with it; says where there is no more."""
        before = self.window.start_ps
        self.window = self.window.shifted(self.window.span_ps * quarters // 4)
        self.cursor_ps += self.window.start_ps - before
        self.event = self._under_cursor()
        return "" if self.window.start_ps != before else f"no more of the trace {_side(quarters)} this"

    def zoom(self, factor: int, at_ps: int | None = None) -> str:
        """Twice as close (2) or half as close (-2), with an instant, else the cursor, where it is; says why not."""
        before = self.window
        self.window = self.window.zoomed(factor, self.cursor_ps if at_ps is None else at_ps)
        if self.event is None:
            self.event = self._under_cursor()
        is_same = self.window == before
        return "" if not is_same else "this is as close as it goes" if factor > 0 else "the whole trace is shown"

    def show_all(self) -> str:
        """The whole trace; says where that is shown already."""
        before, self.window = self.window, self.window.whole()
        self._wants_all = True
        return "the whole trace is shown" if self.window == before else ""

    def fit(self) -> str:
        """What lies between the marks fills the window; again: the selected event; and again: the step around it."""
        step = None if self.step is None else self.timeline.steps[self.step]
        spans = (
            ("the marked interval", self.interval),
            ("", self.event_span()),
            (f"step {step.name}", (step.start_ps, step.end_ps)) if step is not None else ("", None),
        )
        fits = [(self.window.fitted(*span), words) for words, span in spans if span is not None]
        if not fits:
            return "nothing to fit: no event under the cursor, no interval and no step"
        windows = [window for window, _ in fits]
        number = (windows.index(self.window) + 1) % len(windows) if self.window in windows else 0
        self.window, words = fits[number]
        return words

    # --- events

    def _lanes(self, row: rows.TimelineRow, track: Track) -> range:
        return range(row.lane, row.lane + 1) if row.kind == "lane" else range(track.depth)

    def _under_cursor(self) -> EventId | None:
        """The event of the cursor's row at its instant, else the longest in its cell; of several lanes the deepest."""
        here = self._here
        if here is None or here[0].kind == "rate":
            return None
        row, place, track = here
        begin, end = self.cursor_edges.tolist()
        events = [event_in_cell(track, lane, self.cursor_ps, begin, end) for lane in self._lanes(row, track)]
        index = next((event for event in reversed(events) if event is not None), None)
        return None if index is None else (*place, index)

    def _nearest(self, here: tuple[int, int], direction: int) -> EventId | None:
        """The event of the row that comes next after (1) or before (-1) an instant and a lane (`adjacent_event`)."""
        if self._here is None:
            return None
        row, place, track = self._here
        near = [adjacent_event(track, lane, here, direction) for lane in self._lanes(row, track)]
        keys = [(int(track.start_ps[index]), lane, index) for lane, index in near if index is not None]
        return (*place, (min(keys) if direction > 0 else max(keys))[2]) if keys else None

    def next_event(self, direction: int) -> str:
        """To the next (1) or previous (-1) event of the row, in order of time."""
        found = self._here
        if found is None:
            return "no events on this row"
        _, place, track = found
        here = (self.cursor_ps, -1 if direction > 0 else track.depth)
        if self.event is not None and self.event[:2] == place:
            here = (int(track.start_ps[self.event[2]]), track.lane_of(self.event[2]))
        event = self._nearest(here, direction)
        if event is None:
            return f"no event {_side(direction)} this one on the row"
        self.select(event, keep_row=True)
        return ""

    def first_or_last(self, direction: int) -> None:
        if self._here is None:
            self.cursor_ps = self.timeline.first_ps if direction < 0 else self.timeline.last_ps
        elif event := self._nearest((direction << 62, 0), -direction):
            self.select(event, keep_row=True)

    def select(self, event: EventId, keep_row: bool = False) -> None:
        """Moves to an event, and the window as far as needed; `keep_row` where it is on the cursor's row."""
        track, index = self.timeline.track(event), event[2]
        start, end = int(track.start_ps[index]), int(track.end_ps[index])
        if not keep_row:
            self.rows.reveal(*event[:2], track.lane_of(index))
        self.event, self.cursor_ps = event, start
        span = self.window.span_ps
        inside = self.window.start_ps <= start < self.window.end_ps
        if not inside or (end > self.window.end_ps and end - start < span):
            middle = start + min(end - start, span // 2) // 2
            self.window = self.window.moved(middle - span // 2, middle + (span + 1) // 2)

    # --- steps, gaps, flows

    def next_step(self, direction: int) -> str:
        """The next (1) or previous (-1) step fills the window."""
        steps, now = self.timeline.steps, self.step
        if not steps:
            return "this profile has no steps"
        number = (0 if direction > 0 else -1) if now is None else now + direction
        if now is not None:
            span = steps[now].start_ps, steps[now].end_ps
            is_wide = self.window.span_ps > 2 * (span[1] - span[0])
            if is_wide or (direction < 0 and self.window != self.window.fitted(*span)):
                number = now  # first the one that the cursor is in
        if not 0 <= number < len(steps):
            return f"no step {_side(direction)} this one"
        self._enter_step(steps[number])
        what = "~step" if self.timeline.steps_are_inferred else "step"
        return f"{what} {steps[number].name}, {number + 1} of {len(steps)}"

    def _enter_step(self, step: StepSpan) -> None:
        """A step fills the window, with the cursor at its begin and the row's first event in it selected."""
        self.cursor_ps = step.start_ps
        self.window = self.window.fitted(step.start_ps, step.end_ps)
        self.event = None
        event = self._nearest((step.start_ps, -1), 1)
        is_graph = self.rows.current is not None and self.rows.current.kind == "rate"
        if event is not None and not is_graph and self.timeline.track(event).start_ps[event[2]] < step.end_ps:
            self.event = event

    def next_gap(self, direction: int, ascii_only: bool = False) -> str:
        """To the next (1) or previous (-1) long gap of the row's track."""
        here = self._here
        if here is None:
            return "no gaps on this row: choose a track"
        gap = next_gap(self.timeline, here[2], self.cursor_ps, direction)
        if gap is None:
            return f"no long gap {_side(direction)} this instant"
        start, end = gap
        self.cursor_ps, self.event = start, None
        is_in_sight = self.window.start_ps <= start < end <= self.window.end_ps
        if not is_in_sight or (end - start) * 20 < self.window.span_ps:
            self.window = self.window.moved(start - (end - start), end + (end - start))
        return f"gap of {duration(end - start, ascii_only)}"

    def flows_here(self) -> tuple[Flow, ...]:
        """What leads to or from the selected event, as far as anyone could look at."""
        if self.event is None:
            return ()
        if self.hosts is not None:
            return self.hosts.flows_of(self.timeline, self.event, _MOST_FLOWS)
        if self.flows is None:
            return ()
        key = (self.flows, self.event)
        if self._flows_of is None or self._flows_of[0] != key:
            self._flows_of = key, self.flows.of(*self.event, _MOST_FLOWS)
        return self._flows_of[1]

    def follow(self, direction: int) -> str:
        """Along an arrow from (1) or against one to (-1) the selected event."""
        if self.flows is None and (self.hosts is None or self.rows.host not in self.hosts.flows):
            return "the arrows are still being read"
        if self.event is None:
            return "no event under the cursor"
        wanted = "out" if direction > 0 else "in"
        arrows = [flow for flow in self.flows_here() if flow.direction == wanted]
        if not arrows:
            return f"no arrow {'leaves' if direction > 0 else 'leads to'} this event"
        _, kind, *event = arrows[0]
        self.select((event[0], event[1], event[2]))
        number = f"{len(arrows):,}" if len(arrows) < _MOST_FLOWS else "very many"
        return kind + (f", 1 of {number}" if len(arrows) > 1 else "")

    def show_step(self, name: str) -> str:
        step = next((step for step in self.timeline.steps if step.name == name), None)
        if step is None:
            return f"step {name} is not on this host's timeline"
        self._enter_step(step)
        return f"step {name}"

    def show_op(self, name: str, program: int | None = None) -> str:
        """To the longest event of an op, of the program with that id where it has one, with some time around it."""
        event = longest_called(self.timeline, name, program)
        if event is None:
            return f"no event of {name[:80]} on this host's timeline"
        self.select(event)
        begin, end = self.event_span() or (0, 0)
        self.window = self.window.moved(begin - 2 * (end - begin), end + 2 * (end - begin))
        self.matches = runs_of(self.timeline, event, name, program)
        runs = self.matches.total
        number = f"{self.matches.label(event)} by start; n N go to the others" if runs > 1 else "its only one"
        return f"longest run of {printable(name)[:60]}: {number}"

    # --- rows

    def fold(self) -> None:
        """Opens or closes the section or track under the cursor."""
        row = self.rows.current
        if row is None:
            return
        track_id, folding = row.track_id, self.rows.folding
        if row.kind == "host":
            self._arrange(replace(folding, hosts=folding.hosts ^ {row.section}))
            return
        if track_id is None or self.timeline.track(track_id).depth < 2:
            self._arrange(folding.turned_over(self.timeline, frozenset({row.section})))
        else:
            self._arrange(replace(folding, turned=folding.turned ^ {track_id}))

    def fold_all(self) -> None:
        """Closes all sections, or opens them; of several hosts closes them all, or opens the cursor's."""
        folding, hosts = self.rows.folding, frozenset(range(len(self.timeline.hosts)))
        if hosts:
            here = self.rows.host
            self._arrange(replace(folding, hosts=hosts if folding.hosts < hosts else hosts - {here or 0}))
            return
        self._arrange(folding.turned_over(self.timeline, frozenset(range(len(self.timeline.sections)))))

    def pin(self) -> str:
        """Pins the track under the cursor on top, or lets it go."""
        here, folding = self._here, self.rows.folding
        if here is None or here[0].kind == "rate":
            return "only tracks can be pinned"
        others = tuple(pin for pin in folding.pinned if pin != here[1])
        is_new = here[1] not in folding.pinned
        self._arrange(replace(folding, pinned=(*others, here[1]) if is_new else others))
        return "pinned" if is_new else "no longer pinned"

    def next_host(self, direction: int) -> str:
        """To the next (1) or previous (-1) host, on its row and in its collective; says how its clock was aligned."""
        hosts, here = self.timeline.hosts, self.rows.host
        if len(hosts) < 2:
            return "there is one host here; H chooses hosts"
        number = 0 if here is None else here + direction
        if not 0 <= number < len(hosts):
            return f"no host {'below' if direction > 0 else 'above'} this one"
        if self.selected is not None and self.selected[0].event_class(self.selected[1]) == "collective":
            self.cursor_ps = (self.event_span() or (0, 1))[1] - 1  # all who take part leave it together
        self.rows.reveal_host(number)
        self.event = self._under_cursor()
        part = hosts[number]
        said = f": clock {clock_words(part.clock)}" if part.clock is not None and part.clock.source != "axis" else ""
        return f"{printable(part.host)}, {number + 1:,} of {len(hosts):,}{said}"

    def sort(self) -> str:
        self._arrange(replace(self.rows.folding, by_busy=not self.rows.folding.by_busy))
        return "tracks by busy time" if self.rows.folding.by_busy else "tracks in their own order"

    def filter(self, text: str) -> str:
        """Shows only tracks whose names hold a text; says how many."""
        self._arrange(replace(self.rows.folding, wanted=text))
        every = rows.rows_of(
            self.timeline, replace(self.rows.folding, closed=frozenset(), pinned=(), hosts=frozenset(), cell_ps=0)
        )
        shown = {row[1:3] for row in every if row.track_id is not None}
        graphs = sum(row.kind in ("rate", "counter") for row in every)
        count = len(shown) + graphs
        if count or not text:
            return counted(count, "track") if text else ""
        sections = self.timeline.sections
        named = [
            *(row.name for of in sections for row in of.tracks),
            *(row.name for of in sections for row in of.rates),
        ]
        near = nearest_words(text, named)
        return nothing_found(near if any(near.casefold() in name.casefold() for name in named) else "")

    @property
    def names(self) -> list[str]:
        return event_names(self.timeline)

    def _arrange(self, folding: rows.Folding) -> None:
        """Lays the rows out anew; the selected event stays selected where it is still shown."""
        if self.rows.arrange(folding) and (self.event is None or not self.rows.shows(self.event[:2])):
            self.event = self._under_cursor()

    def search(self, text: str) -> str:
        """Finds events by a text and moves to the first from the cursor on; says how many there are."""
        self.matches = find(self.timeline, text) if text else None
        if self.matches is None:
            return ""
        match = self.matches.next_after(self.cursor_ps - 1) or self.matches.next_after(self.timeline.first_ps - 1)
        if match is None:
            return said_of(text, "", 0, lambda: self.names)
        self.select(match)
        found = (counted(self.matches.total, "event"), counted(self.matches.names, "name"), self.so_far)
        return ", ".join(filter(None, found))

    def next_match(self, direction: int) -> str:
        matches, selected = self.matches, self.selected
        if matches is None:
            return "no match"
        here = self.cursor_ps if selected is None else int(selected[0].start_ps[selected[1]])
        beyond = self.timeline.first_ps - 1 if direction > 0 else self.timeline.last_ps + 1
        match = matches.next_after(here, direction, self.event) or matches.next_after(beyond, direction)
        if match is None:
            return "no match"
        self.select(match)
        return f"match {matches.label(match)}"


def _side(direction: int) -> str:
    return "after" if direction > 0 else "before"

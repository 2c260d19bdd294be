"""The timeline tab: every event of a host on one time axis, zoomed, searched, marked and measured with keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from textual import on, work
from textual.events import MouseDown, MouseMove, MouseScrollDown, MouseScrollUp, MouseUp

from tpuprof.parsers.base.text import printable
from tpuprof.parsers.ops.framework_op import parse_framework_op
from tpuprof.parsers.pages.shared.key import Later
from tpuprof.parsers.timeline.measure import mean_use, measure
from tpuprof.tui.draw.format import duration
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.pages.timeline.popup import found_list, measured_list
from tpuprof.tui.terminal.theme import AnyLine
from tpuprof.tui.widgets.chrome import Decoding, KeyRow, State, state_lines, verb_row
from tpuprof.tui.widgets.line_canvas import ScreenLook
from tpuprof.tui.widgets.lists.popup import ListPopup
from tpuprof.tui.widgets.popup import Popup, TextPopup, meanings
from tpuprof.tui.widgets.tab import CursorMoved, FilterWanted, OpenPopup, Payload, Tab, op_rows

if TYPE_CHECKING:  # numpy comes with the page, not with the first frame
    from tpuprof.parsers.timeline.model import EventId, Timeline
    from tpuprof.parsers.timeline.read.flows import Flow
    from tpuprof.tui.pages.timeline.draw.frame import TimelinePage
    from tpuprof.tui.pages.timeline.hosts import Hosts
    from tpuprof.tui.pages.timeline.load import HostTimeline
    from tpuprof.tui.pages.timeline.state import TimelineView
    from tpuprof.tui.report.page import ShownPage

_READ = "tpuprof.tui.pages.timeline.report.read"  # imported when events are written

_LEAST_DRAG = 2  # columns that the mouse moves with its button down to mark an interval

_GAP = "{} gap longer than 5% of a step"
_MOTIONS = (
    KeyRow("left right", title="Select: the cursor, a cell to the left or right"),
    KeyRow("down up", title="Next, previous row"),
    KeyRow("first last", title="First, last event of the row"),
    KeyRow("page_down page_up", title="One screen of rows down, up"),
    KeyRow("open", title="Everything about the event; a section opens or closes"),
    KeyRow("mouse", title="Click to point, drag to mark or to move an end; the wheel zooms, with Ctrl it scrolls"),
)
_MEANINGS = {
    "Time": "the trace's clock, to which the profiler maps the devices' clocks; durations use that clock too.",
    "Slices": "one event each, with edges to an eighth of a cell; thin lines separate neighbours of one colour.",
    "Shades": "a cell with several events has the colour of the class with most of its time, and is filled as far "
    "as the cell is busy.",
    "C V D N H . ?": "compute (matrix unit), vector, copy (DMA), collective (network), host, waiting, unknown; one "
    "colour each.",
    "Events a cell": "of the cursor's row: a dot for one, 2 to 9, + from 10 on, # from 100 on.",
    "Lanes": "rows of a track with nested or overlapping events; a folded track shows the deepest event at each "
    "instant.",
    "Folded": "tracks of a device whose events are less than half a cell wide on average do not show; the heading of "
    "their section names them, z shows them, and so does zooming in.",
    "FLOPS HBM": "FLOP/s and HBM bytes/s by the compiler's count as a share of the device's peak, each op spread "
    "over its time. Asynchronous ops are left out: their bytes move between start and done.",
    "Averages": "right of the names, for the window shown: the busy share of a track, a rate's share of the peak, "
    "and a counter's mean (each value for as long as it holds) within its range in the whole trace.",
    "Scopes, ops": "name scopes and framework ops are derived: neighbouring HLO ops of one name are one slice.",
    "Hosts": "all hosts of a run share one time axis. Each is read when it comes into view; a folded host shows "
    "its first device's ops. Clocks are aligned by collectives, which all cores leave together, as "
    "closely as the collectives agree; without collectives by the hosts' own time, which is unchecked.",
    "Matches": "Enter ends a search with a list of what it has found, which is sorted and written as any list is.",
    "Self": "duration of an event without the events nested in it.",
    "Busy": "time in which at least one event of a track ran.",
    "n/a": "unknown, which is never shown as 0.",
}

_OF_EVENTS: tuple[tuple[str, str], ...] = (
    ("", "One event of the trace, its arrows, and its stats as in the profile."),
    ("starts at", "by the trace's clock, from the start of the profile."),
    ("self time", "without the events nested in it, and the share of it."),
    ("in step", "the step in which it began, and how far into the step."),
    ("occurrences", "events of this name on the same track."),
    ("> <", "arrows: what it launched or started, and what launched it; > and < on the timeline follow them."),
    ("Stats", "of the event itself, then those that all events of its name share. Times in ps are shown with units."),
)


_new_page = Later("tpuprof.tui.pages.timeline.draw.frame:TimelinePage")


class TimelineTab(Tab):
    """Shows a host's timeline, or the state of loading it."""

    MEANINGS = _MEANINGS

    def __init__(self, look: ScreenLook, *, id: str) -> None:
        super().__init__(look, id=id)
        self._page: TimelinePage | None = None
        self._hosts: Hosts | None = None
        self._wanted: tuple[str, str, int | None] | None = None
        self._pressed_at: int | None = None
        self._fixed_end: int | None = None

    # --- what it shows

    def show(self, part: str, payload: Payload) -> str | None:
        if part == "timeline":
            return self._show_timeline(payload)
        if part in ("hosts", "host", "host_flows"):
            return self._show_hosts(part, payload)
        if self._view is not None:
            self._view.flows = payload
            self.redraw()
        return None

    def _show_timeline(self, shown: HostTimeline) -> str:
        """Shows a timeline; goes to what was asked for while it was not there, and says so, or whose timeline it is."""
        if self._page is None or self.is_whole:
            self._page = _new_page(shown.timeline, shown.run_hosts, None)
        else:
            self._page.extend(shown.timeline)
        self.redraw()
        if not self.is_whole:
            return ""
        wanted, self._wanted = self._wanted, None
        words = self.go_to(*wanted) if wanted is not None else ""
        if words:
            return words
        notes = []
        if self._view is not None and self._view.is_on_a_part:
            notes.append("It opens where devices worked; 0 shows all")
        if shown.run_hosts > 1 and not shown.is_chosen:
            notes.append(f"The timeline is of host {printable(shown.timeline.host)}; H shows another")
        return ". ".join(notes)

    def _show_hosts(self, part: str, payload: Payload) -> str | None:
        """Shows what is read of several hosts, on one time axis; the first time it says that there are several."""
        if part == "hosts":
            self._page, self._hosts = None, payload
            return None
        hosts = self._hosts
        if hosts is None:
            return None
        if part == "host_flows":
            number, flows = payload
            hosts.flows[number] = flows
            self.redraw()
            return None
        hosts.take(*payload)
        if not hosts.read:
            return None
        is_new = self._page is None
        if self._page is None:
            self._page = _new_page(hosts.timeline, len(hosts.reads), hosts)
        else:
            self._page.extend(hosts.timeline)
            if hosts.trim(self._page.view.rows.hosts_in_sight):
                self._page.extend(hosts.timeline)
        self.redraw()
        wanted, self._wanted = (self._wanted, None) if self.is_whole else (None, self._wanted)
        words = self.go_to(*wanted) if wanted is not None else ""
        return words or ("All hosts on one time axis: J next host, Z one row each, H one host" if is_new else "")

    @property
    def wanted(self) -> str:
        return self._next_host[0]

    @property
    def wanted_host(self) -> str | None:
        return self._next_host[1] or None

    @property
    def _next_host(self) -> tuple[str, str]:
        view = self._view
        if view is None or view.hosts is None:
            return "", ""
        return view.hosts.wanted(view.rows.hosts_in_sight, view.rows.folding.hosts) or ("", "")

    def show_state(self, state: State) -> None:
        if self._page is None or not isinstance(state, Decoding) or state.progress is None:
            super().show_state(state)

    @property
    def is_whole(self) -> bool:
        return self._view is not None and not self._view.timeline.unread

    @property
    def _view(self) -> TimelineView | None:
        return None if self._page is None else self._page.view

    def draw(self, width: int, height: int) -> Sequence[AnyLine]:
        pen = Pen(width, self.look.glyphs)
        return state_lines(self._state, pen, height) if self._page is None else self._page.lines(pen, height)

    def detail_line(self, width: int) -> AnyLine:
        pen = Pen(width, self.look.glyphs)
        return pen.fit([]) if self._page is None else self._page.status_line(pen)

    @property
    def keys(self) -> Sequence[KeyRow]:
        view = self._view
        if view is None:
            return super().keys
        is_ascii = self.look.glyphs.is_ascii
        step, host = "step" if view.timeline.steps else "", "host" if view.timeline.hosts else ""
        return (
            *_MOTIONS,
            verb_row("zoom_in", partial(view.zoom, 2), short="zoom pan", foot="wasd"),
            verb_row("zoom_out", partial(view.zoom, -2)),
            verb_row("pan_left", partial(view.pan, -1)),
            verb_row("pan_right", partial(view.pan, 1)),
            verb_row("fit", view.fit),
            verb_row("whole", view.show_all, "The whole trace"),
            verb_row("previous_step", partial(view.next_step, -1), "Previous step", step, foot="[ ]"),
            verb_row("next_step", partial(view.next_step, 1), "Next step"),
            verb_row("previous_peak", partial(view.next_gap, -1, is_ascii), _GAP.format("Previous"), "gap", foot="{ }"),
            verb_row("next_peak", partial(view.next_gap, 1, is_ascii), _GAP.format("Next")),
            verb_row("next_event", partial(view.next_event, 1), short="event", foot=". ,"),
            verb_row("previous_event", partial(view.next_event, -1), "Previous event of the row"),
            verb_row("mark", self._mark, "Timing: mark begin, then end; lists what ran between", "mark"),
            verb_row("interval_begin", partial(view.move_end, -1, is_ascii)),
            verb_row("interval_end", partial(view.move_end, 1, is_ascii)),
            verb_row("figures", self._measure_window, "What ran in the interval, or in the window"),
            verb_row("follow", partial(view.follow, 1), "Follow an arrow: to what the event launches or starts"),
            verb_row("follow_back", partial(view.follow, -1), "Follow an arrow back"),
            verb_row("base", view.next_base),
            verb_row("fold", view.fold),
            verb_row("fold_all", view.fold_all, "Close or open all sections; with several hosts, all hosts"),
            verb_row("next_host", partial(view.next_host, 1), "Next host, on the same row", host, foot="J K"),
            verb_row("previous_host", partial(view.next_host, -1)),
            verb_row("hold", view.pin, "Pin the track on top"),
            verb_row("reverse", view.sort, "Tracks by busy time, or in their own order"),
            verb_row("filter_tracks", FilterWanted),
            *op_rows(self.op_name, None if self._page is None else self._page.op_program, but=("timeline",)),
        )

    @property
    def selection(self) -> str | None:
        selected = None if self._view is None else self._view.selected
        return None if selected is None else selected[0].label(selected[1])

    @property
    def op_name(self) -> str | None:
        selected = None if self._view is None else self._view.selected
        if selected is None or selected[0].kind not in ("ops", "async", "framework_ops"):
            return None

        track, index = selected
        text = track.names.long_name(int(track.key[index]))
        if track.kind == "framework_ops":
            return parse_framework_op(text).name or track.label(index)
        instruction, is_hlo, _ = text.partition(" = ")  # an asynchronous op's label is not the op's name
        return instruction.lstrip("%") if is_hlo and track.kind == "async" else track.label(index)

    @property
    def note(self) -> str:
        view = self._view
        if view is None or self._page is None:
            return ""
        return " ".join(filter(None, (self._page.clocks, *view.timeline.lost, *view.timeline.warnings)))

    # --- moving

    def _act(self, act: Callable[[TimelineView], str | None]) -> str:
        """Does something to the timeline, where it is there, and draws it anew; what there is to say of it."""
        message = None if self._view is None else act(self._view)
        if self._view is not None:
            self.redraw()
            self.ask_for_page()
        return message or ""

    def move(self, across: int, down: int) -> None:
        if across:
            self._act(lambda view: view.move_cells(across))
        if down:
            self._act(lambda view: view.move_rows(down))

    def ends(self, direction: int) -> None:
        self._act(lambda view: view.first_or_last(direction))

    def page(self, screens: float) -> None:
        self._act(lambda view: view.move_rows(round(screens * view.rows.height)))

    def enter(self) -> str:
        view = self._view
        if view is None:
            return ""
        if view.rows.current is not None and view.rows.current.kind in ("host", "section"):
            self._act(lambda view: view.fold())
        elif view.event is not None:
            self._fetch_stats(view.timeline, view.event, view.flows_here())
        else:
            return "There is no event under the cursor."
        return ""

    def do(self, act: Callable[[], object]) -> object:
        answer = super().do(act)
        self.ask_for_page()
        return answer

    def _mark(self) -> str | None:
        """Marks the begin of an interval, or its end and shows what ran in it."""
        view = self._view
        said = None if view is None else view.mark()
        if view is None or view.interval is None:
            return said
        self._measure(view, *view.interval)
        return view.so_far

    def _measure_window(self) -> str:
        """Shows what ran in the marked interval, else in the window."""
        view = self._view
        if view is None:
            return ""
        self._measure(view, *(view.interval or (view.window.start_ps, view.window.end_ps)))
        return view.so_far

    @property
    def opened(self) -> Mapping[str, Callable[[], object]]:
        view = self._view
        if view is None:
            return {}
        marks = {"mark": partial(self._act, lambda view: view.clear_marks())} if view.marks else {}
        return marks | ({"filter": partial(self.filter, "")} if view.rows.folding.wanted else {})

    @property
    def shown_table(self) -> ShownPage | None:
        view = self._view
        if view is None or not self.is_whole:
            return None
        interval = view.interval or (view.window.start_ps, view.window.end_ps)
        shown: ShownPage | None = import_module(_READ).shown_page(view.timeline, interval, view.rows.folding.wanted)
        return shown

    @property
    def searched(self) -> Sequence[str]:
        return () if self._view is None else self._view.names

    @property
    def has_matches(self) -> bool:
        return self._view is not None and self._view.matches is not None

    @property
    def op_elsewhere(self) -> str | None:
        return self.op_name

    @property
    def syntax(self) -> str:
        return "fusion  cat:copy  op:attention  hlo:gather(  src:model.py  all have to match"

    def why_not(self, verb: str) -> str:
        words = {
            "there": "The event under the cursor belongs to no op.",
            "view": "The timeline has one view: z folds, F filters its tracks.",
            "group": "Tracks are in their own order; S sorts them by busy time.",
            "exclude": "Nothing is left out here; F filters tracks.",
            "timeline": "This is the timeline.",
            "edit": "The event under the cursor belongs to no op.",
        }
        return words.get(verb, "") if self._view is not None else ""

    def go_to(self, what: str, name: str, program: int | None = None) -> str:
        if not self.is_whole:
            self._wanted = (what, name, program)
            return ""
        if what == "counter":
            return self._act(lambda view: view.rows.reveal_counter(name))
        return self._act(lambda view: view.show_step(name) if what == "step" else view.show_op(name, program))

    # --- searching

    def search(self, text: str) -> str:
        return self._act(lambda view: view.search(text))

    @property
    def found_list(self) -> Popup | None:
        view = self._view
        if view is None or view.matches is None or view.matches.total < 2:
            return None
        found = found_list(view, partial(self.select, view.timeline))
        return ListPopup(self.look, f"Matches of {printable(view.matches.text)}", found)

    def next_match(self, direction: int) -> str:
        return self._act(lambda view: view.next_match(direction))

    def filter(self, text: str) -> str:
        return self._act(lambda view: view.filter(text))

    # --- work that takes time

    @work(thread=True, exclusive=True, group="stats", description="stats")
    def _fetch_stats(self, timeline: Timeline, event: EventId, flows: Sequence[Flow]) -> None:
        from tpuprof.tui.pages.timeline.draw.event_details import read_event  # noqa: PLC0415 - protobuf

        lines = read_event(timeline, event, flows)
        self.post_message(OpenPopup(TextPopup(self.look, "Event", lines, meanings(*_OF_EVENTS), is_card=True)))

    @work(thread=True, exclusive=True, group="measure", description="measure")
    def _measure(self, view: TimelineView, start_ps: int, end_ps: int) -> None:
        timeline, found = view.timeline, view.track_of(view.rows.current)
        here = None if found is None else found[0]
        tracks = [place for place, _, track in timeline.tracks() if place == here or not track.is_derived]
        measurement = measure(timeline, start_ps, end_ps, tracks)
        use = mean_use(timeline, start_ps, end_ps)
        measured = measured_list(timeline, measurement, use, partial(self.select, timeline), here)
        lasting = duration(measurement.duration_ps, self.look.glyphs.is_ascii)
        self.post_message(OpenPopup(ListPopup(self.look, f"What ran in {lasting}", measured)))

    def select(self, timeline: Timeline, event: EventId) -> None:
        """Goes to an event of a timeline, as one chosen from a list; nowhere if another one is shown by now."""
        if self._view is not None and self._view.timeline is timeline:
            self._act(lambda view: view.select(event))

    # --- mouse

    def on_mouse_down(self, event: MouseDown) -> None:
        """Where a mark may begin, or an end of the marked interval is taken hold of."""
        self._pressed_at = event.x
        self._fixed_end = None if self._page is None else self._page.other_end(event.x)
        if self._fixed_end is not None:
            self.capture_mouse()  # or it would hold on to the end where the button is let go elsewhere

    def on_mouse_move(self, event: MouseMove) -> None:
        if self._page is not None and self._pressed_at is not None and self._fixed_end is not None:
            self._page.drag_end(self._fixed_end, event.x)
            self.redraw()

    def on_mouse_up(self, event: MouseUp) -> None:
        """A drag marks an interval and shows what ran in it, or moves an end of it; a press points."""
        pressed_at, self._pressed_at = self._pressed_at, None
        fixed_end, self._fixed_end = self._fixed_end, None
        if fixed_end is not None:
            self.release_mouse()
        if self._page is None or pressed_at is None:
            return
        view, said = self._page.view, ""
        if fixed_end is not None and event.x != pressed_at:
            self._page.drag_end(fixed_end, event.x)
            said = view.interval_words(self.look.glyphs.is_ascii)
        elif abs(event.x - pressed_at) < _LEAST_DRAG:
            self._page.point(event.x, event.y)
        else:
            self._page.drag(pressed_at, event.x)
            if view.interval is not None:
                self._measure(view, *view.interval)
        self.redraw()
        self.post_message(CursorMoved(said))

    def clicked(self, x: int, y: int, again: bool) -> str | None:
        return super().clicked(x, y, again) if self._page is None else "enter" if again else ""

    @on(MouseScrollDown)
    @on(MouseScrollUp)
    def _wheel(self, event: MouseScrollDown | MouseScrollUp) -> None:
        """The wheel zooms at the pointer, in where it is turned up; over the names, or with Ctrl, it goes over rows."""
        event.stop()
        up = 1 if isinstance(event, MouseScrollUp) else -1
        at_ps = None if self._page is None or event.ctrl else self._page.instant_at(event.x)
        self._act(lambda view: view.move_rows(-3 * up) if at_ps is None else view.zoom(2 * up, at_ps))

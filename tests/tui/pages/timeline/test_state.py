"""What keys do to the timeline's state, without a screen."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.timeline.build import timeline, track
from tests.support.made.timelines import timeline_keys, two_cores
from tpuprof.parsers.timeline.measure import measure, merged_over_tracks
from tpuprof.parsers.timeline.model import StepSpan, Timeline
from tpuprof.tui.pages.timeline.draw.panel import facts_of, hint_of
from tpuprof.tui.pages.timeline.rows import TimelineRow
from tpuprof.tui.pages.timeline.state import TimelineView

MS = 10**9


def _timeline() -> Timeline:
    ops = track(
        [(0, at * 10 * MS, at * 10 * MS + 7 * MS, at % 4) for at in range(20)]
        + [(1, at * 10 * MS + MS, at * 10 * MS + 2 * MS, 3) for at in range(20)],
        kind="ops",
        name="XLA Ops",
    )
    steps = [StepSpan(str(at), at * 50 * MS, (at + 1) * 50 * MS) for at in range(4)]
    modules = track(
        [(0, at * 50 * MS, at * 50 * MS + 48 * MS, 0) for at in range(4)], ("jit_f",), "modules", "XLA Modules"
    )
    host = track([(0, 0, 200 * MS, 0), (1, 5 * MS, 6 * MS, 1), (2, 5 * MS, 5 * MS, 2)], name="python")
    return timeline([modules, ops], [host], steps=steps)


@pytest.fixture
def view() -> TimelineView:
    made = TimelineView(_timeline())
    made.resize(100, 10)
    return made


def _label(view: TimelineView) -> str | None:
    return None if view.selected is None else view.selected[0].label(view.selected[1])


def test_it_begins_with_everything_on_the_first_track(view: TimelineView) -> None:
    assert view.rows.all[view.rows.cursor] == TimelineRow("lane", 0, 0, 0)
    assert view.window.start_ps <= 0 and view.window.end_ps >= 200 * MS


def test_steps_fill_the_window_one_after_the_other(view: TimelineView) -> None:
    assert view.next_step(1) == "step 0, 1 of 4"
    assert view.next_step(1) == "step 1, 2 of 4"
    assert view.window.start_ps <= 50 * MS and view.window.end_ps >= 100 * MS
    assert view.window.span_ps < 60 * MS
    assert view.next_step(1) == "step 2, 3 of 4"
    view.move_cells(30)
    view.zoom(2)
    assert view.next_step(-1) == "step 2, 3 of 4"  # first the one that the cursor is in
    assert view.next_step(-1) == "step 1, 2 of 4"
    view.next_step(-1)
    assert view.next_step(-1) == "no step before this one"


def test_events_of_a_row_come_one_after_the_other(view: TimelineView) -> None:
    view.move_rows(1)
    assert view.rows.current == TimelineRow("lane", 0, 1, 0)
    view.first_or_last(-1)
    assert (view.cursor_ps, _label(view)) == (0, "alpha")
    view.next_event(1)
    assert (view.cursor_ps, _label(view)) == (10 * MS, "beta")
    view.next_event(-1)
    assert view.next_event(-1) == "no event before this one on the row"
    view.first_or_last(1)
    assert view.cursor_ps == 190 * MS
    assert view.next_event(1) == "no event after this one on the row"


def test_a_folded_track_goes_through_the_events_of_all_its_lanes(view: TimelineView) -> None:
    view.move_rows(1)
    view.fold()
    assert view.rows.current == TimelineRow("flat", 0, 1, 0)
    view.first_or_last(-1)
    seen = []
    for _ in range(4):
        seen.append((view.cursor_ps // MS, _label(view)))
        view.next_event(1)
    assert seen == [(0, "alpha"), (1, "delta"), (10, "beta"), (11, "delta")]


def test_zoom_keeps_the_cursor_where_it_is(view: TimelineView) -> None:
    view.move_cells(40)
    column, instant = view.cursor_cell, view.cursor_ps
    for _ in range(12):
        view.zoom(2)
        assert abs(view.cursor_cell - column) <= 1
        assert view.cursor_ps == instant
    for _ in range(20):
        view.zoom(-2)
    assert view.window.start_ps <= 0 and view.window.end_ps >= 200 * MS


def test_with_two_marks_fit_begins_with_the_interval(view: TimelineView) -> None:
    view.move_rows(1)
    view.first_or_last(-1)
    assert view.mark() == "marked; space again ends the interval"
    view.next_event(1)
    view.next_event(1)
    view.mark()
    assert view.interval == (0, 27 * MS), "from event to event the second mark takes in the last one"
    assert view.fit() == "the marked interval" and view.window.span_ps < 35 * MS
    assert view.fit() == "" and view.window.span_ps < 10 * MS
    assert view.fit() == "step 0"


def test_the_ends_of_an_interval_move_to_the_cursor(view: TimelineView) -> None:
    view.move_rows(1)
    assert view.move_end(1).startswith("no interval")
    view.first_or_last(-1)
    view.mark()
    assert view.move_end(1).startswith("no interval") and view.marks == (0,)
    view.next_event(1)
    view.mark()
    view.next_event(1)
    assert view.move_end(1) == "27.0000 ms; i lists what ran in it"
    assert view.interval == (0, 27 * MS), "up to the end of the event that the cursor is at the start of"
    view.next_event(-1)
    view.move_end(-1)
    assert view.interval == (10 * MS, 27 * MS)
    view.first_or_last(1)
    view.move_end(-1)
    assert view.interval == (27 * MS, 190 * MS), "beyond the other end, begin and end change places"
    view.base = "mark"
    assert view.base_ps == 27 * MS
    view.clear_marks()
    assert view.interval is None and view.base_ps == 0


def test_a_step_selects_the_rows_first_event_in_it_and_counts_for_it() -> None:
    spans = [StepSpan("0", 0, 1005), StepSpan("1", 1000, 2000)]  # this core's marker is 3 ps later than the earliest
    marks = track([(0, 3, 1003, 0), (0, 1003, 2000, 1)], ("0", "1"), "steps", "Steps")
    view = TimelineView(timeline([marks], steps=spans))
    view.resize(50, 5)
    for name in ("0", "1"):
        assert view.next_step(1).startswith(f"step {name},")
        assert _label(view) == name
        facts = facts_of(view)
        assert facts is not None and facts.step == name
    assert view.next_step(-1).startswith("step 0,") and _label(view) == "0"


def test_the_pane_tells_a_graphs_value_at_the_cursor() -> None:
    view = TimelineView(two_cores())
    view.resize(100, 12)
    while view.rows.current is not None and view.rows.current.kind != "rate":
        view.move_rows(1)
    view.window = view.window.fitted(40 * MS, 60 * MS)  # inside fusion.1: 8e12 FLOPs in 36 ms
    view.cursor_ps = 40 * MS
    view.move_cells(50)
    assert hint_of(view) == "FLOPS in the cursor's cell: 222 TFLOP/s, 111.1% of peak; 111.1% over the window"


def test_in_a_gap_the_pane_says_how_long_it_is_and_between_what(view: TimelineView) -> None:
    view.move_rows(1)
    view.window = view.window.fitted(0, 20 * MS)
    view.cursor_ps, view.event = 8 * MS, None
    assert hint_of(view) == "Chip 0, XLA Ops: nothing for 3.00 ms, from alpha to beta"
    view.move_rows(-1)
    view.cursor_ps, view.event = 199 * MS, None
    assert hint_of(view).startswith("Chip 0, XLA Modules: no event here")


def test_what_ran_is_put_together_over_the_cores() -> None:
    made = two_cores()
    apart = measure(made, 0, 120 * MS).rows()
    merged = {row.name: row for row in merged_over_tracks(apart)}
    fusion, host = merged["fusion.1"], merged["Execute"]
    assert (fusion.section, fusion.occurrences, fusion.self_ps, fusion.share) == ("2 tracks", 2, 72 * MS, 0.3)
    assert host.section == "Host threads"
    assert sum(row.self_ps for row in merged.values()) == sum(row.self_ps for row in apart)
    slowest = merged["all-reduce.2"]
    assert (slowest.place, slowest.self_ps) == ((0, 2), 36 * MS), "the event to go to is the slower core's"


def test_a_filter_leaves_what_it_names_and_search_lifts_it(view: TimelineView) -> None:
    assert view.filter("python") == "1 track"
    assert {row.section for row in view.rows.all} == {1}
    assert view.search("jit_f") == "4 events, 1 name"
    assert view.rows.current == TimelineRow("lane", 0, 0, 0)
    assert view.next_match(1) == "match 2 of 4"
    assert view.next_match(-1) == "match 1 of 4"
    assert view.next_match(-1) == "match 4 of 4"
    assert view.search("qqqqq") == "no row"


def test_tracks_of_events_too_short_to_be_seen_fold_until_one_zooms_in_or_asks() -> None:
    short = track([(0, at * MS, at * MS + MS // 2, 0) for at in range(200)], ("short",), "traceme", "TraceMe")
    made = _timeline()
    core = replace(made.sections[0], tracks=(*made.sections[0].tracks, short))
    view, seen = TimelineView(replace(made, sections=(core, *made.sections[1:]))), list[bool]()
    for key in "0zzzwwww0Z":
        timeline_keys(view)[key]()
        view.resize(50, 20)
        seen.append(view.rows.shows((0, 2)))
    assert seen == [False, True, False, False, False, False, True, True, False, True]
    view.fold_all()
    view.fold_all()
    assert view.search("short") == "200 events, 1 name" and view.rows.shows((0, 2)), "what is gone to shows"


def test_pinned_tracks_stand_on_top(view: TimelineView) -> None:
    view.move_rows(1)
    assert view.pin() == "pinned"
    assert [row.is_pinned for row in view.rows.all[:3]] == [True, True, False]
    assert view.pin() == "no longer pinned"
    assert not any(row.is_pinned for row in view.rows.all)


def test_an_op_is_shown_with_its_longest_run(view: TimelineView) -> None:
    assert view.show_op("gamma") == "longest run of gamma: 1 of 5 by start; n N go to the others"
    assert view.next_match(1) == "match 2 of 5" and _label(view) == "gamma"
    assert view.next_match(-1) == "match 1 of 5"
    assert _label(view) == "gamma"
    assert view.window.span_ps < 50 * MS
    assert "no event of omega" in view.show_op("omega")
    assert view.show_step("2") == "step 2"
    assert view.show_step("9") == "step 9 is not on this host's timeline"


_KEYS = st.lists(st.sampled_from([*"wsadf0[]{}.,mtzZpbgG/", "hjkl"]), max_size=40)


@given(_KEYS, st.integers(1, 200), st.integers(1, 30), st.data())
def test_no_sequence_of_keys_loses_the_place(keys: list[str], cells: int, height: int, data: st.DataObject) -> None:
    view = TimelineView(_timeline())
    view.resize(cells, height)
    moves = timeline_keys(view)
    for key in keys:
        if key == "hjkl":
            view.move_cells(data.draw(st.integers(-3, 3)))
            view.move_rows(data.draw(st.integers(-3, 3)))
        else:
            moves[key]()
        assert 0 <= view.rows.cursor < len(view.rows.all)
        assert view.window.span_ps >= view.window.cells
        assert view.window.start_ps <= view.timeline.last_ps and view.window.end_ps >= view.timeline.first_ps
        assert 0 <= view.cursor_cell < view.window.cells
        assert 0 <= view.rows.top <= len(view.rows.all)
        if view.rows.cursor >= view.rows.pinned and view.rows.height > view.rows.pinned:
            assert (
                view.rows.top
                <= view.rows.cursor - view.rows.pinned
                < view.rows.top + view.rows.height - view.rows.pinned
            )
        if view.event is not None:
            section, item, index = view.event
            assert 0 <= index < len(view.timeline.sections[section].tracks[item])

"""Tracks of very many lanes are gone through in another way, which finds the same."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.timeline.build import NAMES, LaneEvent, loose_events, nested_events, timeline, track
from tpuprof.parsers.timeline import flatten, gaps, windows
from tpuprof.parsers.timeline.flatten import deepest, flattened
from tpuprof.parsers.timeline.model import CLASSES, EventId, EventNames
from tpuprof.parsers.timeline.windows import cell_edges, track_window
from tpuprof.tui.pages.timeline import state as timeline_view
from tpuprof.tui.pages.timeline.state import TimelineView

_CLASSED = EventNames(None, NAMES, np.array([0, 1, 2, 1], np.uint8))
_any_events = st.one_of(nested_events(), loose_events())
_spans = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 20)), max_size=30)


@given(_spans)
def test_the_last_of_the_list_is_the_deepest(spans: list[tuple[int, int]]) -> None:
    start = np.array([begin for begin, _ in spans], np.int64)
    end = start + np.array([length for _, length in spans], np.int64)
    borders, owner = deepest(start, end)
    assert borders.tolist() == sorted({*start.tolist(), *end.tolist()})
    for at, event in zip(borders.tolist(), owner.tolist(), strict=True):
        running = [number for number in range(len(spans)) if start[number] <= at < end[number]]
        assert event == max(running, default=-1)


@given(_any_events, st.integers(-5, 60), st.integers(1, 70), st.integers(1, 9))
def test_cells_hold_the_class_of_the_deepest_event(events: list[LaneEvent], first: int, span: int, cells: int) -> None:
    one = track(events, of=_CLASSED)
    edges = cell_edges(first, first + span, cells)
    with patch.object(windows, "MANY_LANES", -1):
        window = track_window(one, edges)
    spans = list(zip(one.start_ps.tolist(), one.end_ps[:].tolist(), one.key.tolist(), strict=True))
    for cell in range(cells):
        a, b = int(edges[cell]), int(edges[cell + 1])
        inside = [True for start, end, _ in spans if start < b and (end > a or start == end >= a)]
        assert int(window.count[cell]) == len(inside)
        wanted = [0] * len(CLASSES)
        for at in range(a, b):
            running = [key for start, end, key in spans if start <= at < end]
            if running:
                wanted[_CLASSED.classes[running[-1]]] += 1
        assert window.busy_ps[cell].tolist() == wanted


@given(_any_events, st.integers(-5, 55), st.integers(1, 70))
def test_flattened_windows_are_the_same(events: list[LaneEvent], first: int, span: int) -> None:
    one = track(events)
    usual = flattened(one, first, first + span)
    with patch.object(flatten, "MANY_LANES", -1):
        other = flattened(one, first, first + span)
    assert usual is not None and other is not None
    assert usual[1].tolist() == other[1].tolist()
    assert usual[0].start_ps.tolist() == other[0].start_ps.tolist()
    assert usual[0].end_ps[:].tolist() == other[0].end_ps[:].tolist()


@given(_any_events, st.integers(1, 9))
def test_gaps_are_the_same(events: list[LaneEvent], least: int) -> None:
    one = track(events)
    usual = gaps.gaps(one, least)
    with patch.object(gaps, "MANY_LANES", -1):
        other = gaps.gaps(one, least)
    assert [column.tolist() for column in usual] == [column.tolist() for column in other]


@given(_any_events, st.lists(st.integers(-40, 40), max_size=6))
def test_keys_find_the_same_events(events: list[LaneEvent], moves: list[int]) -> None:
    def walked() -> list[EventId | None]:
        view = TimelineView(timeline([track(events, kind="thread")]))
        view.resize(50, 10)
        seen = [view.event]
        for move in moves:
            view.move_cells(move)
            seen.append(view.event)
            view.next_event(1 if move % 3 else -1)
            seen.append(view.event)
        for direction in (1, -1):
            while not view.next_event(direction):
                seen.append(view.event)
        return seen

    if not events:
        return
    usual = walked()
    with patch.object(timeline_view, "MANY_LANES", -1):
        assert walked() == usual

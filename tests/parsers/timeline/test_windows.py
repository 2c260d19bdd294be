"""Cells of a window against counting event by event; tracks of many lanes take another way to the same result."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.timeline.build import NAMES, LaneEvent, loose_events, nested_events, track
from tests.support.build import present
from tpuprof.parsers.timeline import windows
from tpuprof.parsers.timeline.flatten import deepest, flattened
from tpuprof.parsers.timeline.model import CLASSES, CounterTrack, EventNames, RateTrack, Track, busy_between
from tpuprof.parsers.timeline.windows import busy_share, cell_edges, lane_window, mean_value, rate_window, track_window

_CLASSED = EventNames(None, NAMES, np.array([0, 1, 2, 1], np.uint8))
_any_events = st.one_of(nested_events(), loose_events())


def _track(events: list[LaneEvent]) -> Track:
    return track(events, of=_CLASSED)


def _union(events: list[tuple[int, int]], a: int, b: int) -> int:
    return sum(any(start <= at < end for start, end in events) for at in range(a, b))


@given(_any_events, st.integers(-5, 60), st.integers(1, 70), st.integers(1, 9), st.sampled_from([1, 2, 64]))
def test_a_lanes_cells_hold_what_lies_in_them(
    events: list[LaneEvent], first: int, span: int, cells: int, block: int
) -> None:
    one = _track(events)
    edges = cell_edges(first, first + span, cells)
    for lane in range(one.depth):
        with patch.object(windows, "LANE_EVENTS_A_BLOCK", block):
            window = lane_window(_track(events), lane, edges)
        part = one.lane(lane)
        spans = list(zip(one.start_ps[part].tolist(), one.end_ps[part].tolist(), strict=True))
        for cell in range(cells):
            a, b = int(edges[cell]), int(edges[cell + 1])
            inside = [
                part.start + at for at, (start, end) in enumerate(spans) if start < b and (end > a or start == end >= a)
            ]
            assert list(range(int(window.first[cell]), int(window.last[cell]))) == inside
            wanted = np.zeros(len(CLASSES), np.int64)
            for start, end, key in zip(
                one.start_ps[part].tolist(), one.end_ps[part].tolist(), one.key[part], strict=True
            ):
                wanted[_CLASSED.classes[key]] += max(0, min(end, b) - max(start, a))
            assert window.busy_ps[cell].tolist() == wanted.tolist()


@given(loose_events(), st.integers(1, 9))
def test_overlapping_lanes_never_overfill_a_cell(events: list[LaneEvent], cells: int) -> None:
    edges = cell_edges(0, 60, cells)
    window = track_window(_track(events), edges)
    assert (window.busy_ps.sum(axis=1) <= np.diff(edges)).all()
    assert (window.busy_ps >= 0).all()


@given(_any_events, st.integers(0, 60), st.integers(0, 60))
def test_busy_time_is_that_of_the_union(events: list[LaneEvent], a: int, b: int) -> None:
    assert busy_between(_track(events), a, b) == _union([(start, end) for _, start, end, _ in events], a, b)


@given(_any_events, st.integers(-5, 60), st.integers(1, 70))
def test_the_busy_share_of_a_window_is_that_of_the_union(events: list[LaneEvent], first: int, span: int) -> None:
    made = _track(events)
    share = busy_share(made, first, first + span)
    assert share is not None and round(share * span) == busy_between(made, first, first + span)
    large = _track(events)
    with patch.object(windows, "_LARGE", -1):  # as of a track too large to go through
        assert busy_share(large, first, first + span) in ((share,) if large.depth < 2 else (None, share))
        first_lane = sum(end - start for lane, start, end, _ in events if lane == 0)
        if large.busy_ps == first_lane:
            assert busy_share(large, first, first + span) == share


def test_there_is_no_share_of_no_time() -> None:
    assert busy_share(track([(0, 0, 5, 0)]), 3, 3) is None


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(-9, 9)), max_size=8), st.integers(-5, 60), st.integers(1, 60))
def test_a_counters_mean_is_that_of_each_picosecond(values: list[tuple[int, int]], first: int, span: int) -> None:
    values = sorted({time: value for time, value in values}.items())
    counter = CounterTrack(
        "Power", np.array([time for time, _ in values], np.int64), np.array([value for _, value in values], np.float64)
    )
    held = [[value for time, value in values if time <= at][-1:] for at in range(first, first + span)]
    expected = [value for values_ in held for value in values_]
    mean = mean_value(counter, first, first + span)
    assert mean is None if not expected else mean == pytest.approx(sum(expected) / len(expected))


@given(_any_events, st.integers(1, 9))
def test_work_adds_up_over_the_cells(events: list[LaneEvent], cells: int) -> None:
    work = np.array([100.0, 0.0, 3.0, 7.0])
    rate = RateTrack("FLOPS", _track(events), work, None)
    edges = cell_edges(0, 60, cells)
    done = float((rate_window(rate, edges) * np.diff(edges) / 1e12).sum())
    wanted = sum(work[key] for _, start, _, key in events if start < 60)  # those of no duration do theirs at once
    assert abs(done - wanted) < 1e-6


@given(_any_events, st.integers(-5, 55), st.integers(1, 70))
def test_a_flattened_window_shows_the_deepest_event_at_each_instant(
    events: list[LaneEvent], first: int, span: int
) -> None:
    one = _track(events)
    flat, origin = present(flattened(one, first, first + span))
    assert (flat.start_ps[1:] >= flat.end_ps[:-1]).all()
    for at in range(first, first + span):
        deepest = -1
        for lane in range(one.depth):
            for index in range(*one.lane(lane).indices(len(one))):
                if one.start_ps[index] <= at < max(one.end_ps[index], one.start_ps[index] + 1):
                    deepest = index
        shown = np.flatnonzero((flat.start_ps <= at) & (at < flat.end_ps[:]))
        assert [int(origin[row]) for row in shown] == ([deepest] if deepest >= 0 else [])


def test_edges_keep_every_picosecond_far_from_zero() -> None:
    start = 3 * 10**17
    edges = cell_edges(start, start + 1000, 7)
    assert edges[0] == start and edges[-1] == start + 1000
    assert set(np.diff(edges).tolist()) <= {142, 143}
    assert cell_edges(5, 5, 4).tolist() == [5, 6, 7, 8, 9]


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


@given(
    st.tuples(_any_events, st.just(-1)) | st.tuples(nested_events(), st.just(windows.MANY_LANES)),
    st.integers(-5, 60),
    st.integers(1, 70),
    st.integers(1, 9),
)
def test_cells_hold_the_class_of_the_deepest_event(
    made: tuple[list[LaneEvent], int], first: int, span: int, cells: int
) -> None:
    """Where lanes are many; where they are few, all classes together are exact, of events that lie in each other."""
    events, many = made
    one = track(events, of=_CLASSED)
    edges = cell_edges(first, first + span, cells)
    with patch.object(windows, "MANY_LANES", many):
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
        assert (window.busy_ps[cell] >= 0).all() and int(window.busy_ps[cell].sum()) == sum(wanted)
        assert many >= 0 or window.busy_ps[cell].tolist() == wanted

"""Idle gaps, against a count of unit cells."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.timeline.build import LaneEvent, loose_events, nested_events, timeline, track
from tpuprof.parsers.timeline.gaps import gaps, next_gap
from tpuprof.parsers.timeline.model import StepSpan, busy_between

EVENTS = st.one_of(nested_events(), loose_events())


def pairs(columns: tuple[np.ndarray, np.ndarray]) -> list[tuple[int, int]]:
    return list(zip(columns[0].tolist(), columns[1].tolist(), strict=True))


def runs(cells: list[int]) -> list[tuple[int, int]]:
    """Stretches of consecutive cells."""
    out: list[tuple[int, int]] = []
    for cell in cells:
        if out and out[-1][1] == cell:
            out[-1] = (out[-1][0], cell + 1)
        else:
            out.append((cell, cell + 1))
    return out


@given(EVENTS, st.integers(-1, 8))
def test_gaps_are_the_cells_that_no_event_covers(events: list[LaneEvent], least: int) -> None:
    busy = {cell for _, start, end, _ in events for cell in range(start, end)}
    first, last = min((e[1] for e in events), default=0), max((e[2] for e in events), default=0)
    idle = runs([cell for cell in range(first, last) if cell not in busy])
    assert pairs(gaps(track(events), least)) == [(a, b) for a, b in idle if b - a >= least]


@given(EVENTS)
def test_gaps_and_busy_time_make_up_the_track(events: list[LaneEvent]) -> None:
    one = track(events)
    start, end = gaps(one)
    assert int((end - start).sum()) + busy_between(one, *one.span) == one.span[1] - one.span[0]
    assert all(busy_between(one, a, b) == 0 for a, b in pairs((start, end)))


@given(EVENTS, st.integers(0, 60), st.lists(st.integers(0, 60), max_size=5), st.sampled_from([0.01, 0.2, 0.9]))
def test_the_next_gap_is_the_nearest_long_one(
    events: list[LaneEvent], time: int, borders: list[int], fraction: float
) -> None:
    one = track(events)
    borders = sorted(borders)
    steps = [StepSpan(str(a), a, b) for a, b in pairwise(borders)]
    whole = timeline([one], steps=steps)
    long_ = []
    for a, b in pairs(gaps(one)):
        inside = [step for step in steps if step.start_ps <= a + (b - a) // 2 < step.end_ps]
        lasting = [step.end_ps - step.start_ps for step in inside or steps]
        wanted = float(np.median(lasting)) * fraction if lasting else (whole.last_ps - whole.first_ps) // 200
        if b - a >= wanted:
            long_.append((a, b))
    later, earlier = [gap for gap in long_ if gap[0] > time], [gap for gap in long_ if gap[0] < time]
    assert next_gap(whole, one, time, 1, fraction) == (later[0] if later else None)
    assert next_gap(whole, one, time, -1, fraction) == (earlier[-1] if earlier else None)


def test_one_goes_from_gap_to_gap_and_back() -> None:
    one = track([(0, 0, 100, 0), (0, 110, 200, 0), (0, 201, 300, 0), (0, 340, 400, 0)], kind="ops")
    whole = timeline([one], steps=[StepSpan("0", 0, 200), StepSpan("1", 200, 400)])
    assert next_gap(whole, one, -1) == (100, 110)
    assert next_gap(whole, one, 100) == (300, 340)  # 1 ps between the steps is no twentieth
    assert next_gap(whole, one, 300) is None
    assert next_gap(whole, one, 300, -1) == (100, 110)
    assert next_gap(whole, one, 100, -1) is None


def test_without_steps_a_gap_is_measured_by_the_trace() -> None:
    one = track([(0, 0, 500, 0), (0, 504, 700, 0), (0, 705, 1000, 0)])
    assert next_gap(timeline([one]), one, 0) == (705 - 5, 705)


@pytest.mark.parametrize("events", [[], [(0, 5, 5, 0)], [(0, 5, 9, 0)]])
def test_a_track_of_nothing_between_its_ends_has_no_gap(events: list[LaneEvent]) -> None:
    assert pairs(gaps(track(events))) == []


def test_instants_alone_leave_one_gap() -> None:
    assert pairs(gaps(track([(0, 5, 5, 0), (0, 8, 8, 0), (1, 20, 20, 0)]))) == [(5, 20)]


def test_times_far_apart_do_not_overflow() -> None:
    far = 1 << 61
    one = track([(0, -far, 1 - far, 0), (0, far - 1, far, 0)])
    assert next_gap(timeline([one], steps=[StepSpan("0", -far, far)]), one, -far) == (1 - far, far - 1)

"""Idle gaps, against a count of unit cells."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.timeline.build import LaneEvent, loose_events, nested_events, timeline, track
from tpuprof.parsers.timeline.gaps import gaps, next_gap
from tpuprof.parsers.timeline.model import StepSpan

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


@st.composite
def rows_of_steps(draw: st.DrawFn) -> tuple[list[LaneEvent], list[StepSpan]]:
    """Events with gaps between them, and steps, some of which are missing."""
    at, events = 0, []
    for idle, busy in draw(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), max_size=9)):
        at += idle
        events.append((0, at, at + busy, 0))
        at += max(busy, 1)
    borders = sorted(draw(st.lists(st.integers(0, 60), max_size=6)))
    steps = [StepSpan(str(a), a, b) for a, b in pairwise(borders) if a < b and draw(st.integers(0, 3))]
    return events, steps


FAR = 3 << 60


@given(rows_of_steps(), st.sampled_from([0.01, 0.1, 0.2, 0.5, 0.9]), st.sampled_from([0, FAR, -FAR]))
def test_the_next_gap_is_the_nearest_long_one(
    case: tuple[list[LaneEvent], list[StepSpan]], fraction: float, shift: int
) -> None:
    """And it is the same one however late the clock is."""
    events, steps = case
    one = track([(lane, start + shift, end + shift, key) for lane, start, end, key in events])
    whole = timeline([one], steps=[StepSpan(step.name, step.start_ps + shift, step.end_ps + shift) for step in steps])
    long_ = []
    for a, b in pairs(gaps(track(events))):
        inside = [step for step in steps if step.start_ps <= a + (b - a) // 2 < step.end_ps]
        lasting = [step.end_ps - step.start_ps for step in inside or steps]
        wanted = float(np.median(lasting)) * fraction if lasting else (whole.last_ps - whole.first_ps) // 200
        if b - a >= wanted:
            long_.append((a + shift, b + shift))
    for now in range(shift - 1, shift + 62):
        later, earlier = [gap for gap in long_ if gap[0] > now], [gap for gap in long_ if gap[0] < now]
        assert next_gap(whole, one, now, 1, fraction) == (later[0] if later else None)
        assert next_gap(whole, one, now, -1, fraction) == (earlier[-1] if earlier else None)

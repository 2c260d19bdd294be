"""Weighted intervals; events in lanes, their runs and sums, with and without the compiled loops."""

from __future__ import annotations

from itertools import pairwise
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tpuprof.parsers.base.intervals import weighted_until
from tpuprof.parsers.formats.xspace.core.api import lane_order
from tpuprof.parsers.formats.xspace.core.types import LanedEvents

Spans = list[tuple[int, int]]


def columns(spans: Spans) -> tuple[np.ndarray, np.ndarray]:
    both = np.array(spans, np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9), st.sampled_from((1, -1))), max_size=9),
    st.lists(st.integers(-2, 55), max_size=9),
)
@settings(max_examples=2 * EXAMPLES)
def test_the_time_of_weighted_intervals_up_to_any_instant(spans: list[tuple[int, int, int]], times: list[int]) -> None:
    """They may overlap and touch, and the instants come in any order."""
    rows = np.array([(begin, begin + length, weight) for begin, length, weight in sorted(spans)], np.int64)
    found = weighted_until(np.array(times, np.int64), rows.reshape(-1, 3))
    expected = [sum(w * max(0, min(begin + length, at) - begin) for begin, length, w in spans) for at in times]
    assert found.tolist() == expected


def test_the_time_of_intervals_wraps_around_where_int64_ends() -> None:
    low, high = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    found = weighted_until(np.array([0, high], np.int64), np.array([[low, high, 1]], np.int64))
    assert found.tolist() == [low, -1]


# --- events in lanes

KEYS = 4

Event = tuple[int, int, int]
"""Start, end and key."""


@st.composite
def events(draw: st.DrawFn, most: int = 40) -> list[Event]:
    """Events in order of time, the outer first; many at one time, some of no duration."""
    spans = draw(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12), st.integers(0, KEYS - 1)), max_size=most))
    return sorted(((start, start + length, key) for start, length, key in spans), key=lambda one: (one[0], -one[1]))


def laid(core: ModuleType, ordered: list[Event]) -> LanedEvents:
    start, end, key = (np.array([one[at] for one in ordered], np.int64) for at in range(3))
    lane = core.lanes(start, end)
    bounds = np.concatenate([[0], np.cumsum(np.bincount(lane))]).astype(np.int64)
    order = lane_order(lane)
    return LanedEvents(start[order], end[order], key[order].astype(np.int32), lane, bounds)


@given(events())
def test_rows_are_put_lane_by_lane(core: ModuleType, ordered: list[Event]) -> None:
    found = laid(core, ordered)
    lanes = [[one for one, of in zip(ordered, found.lane.tolist(), strict=True) if of == at] for at in range(40)]
    rows = zip(found.start.tolist(), found.end.tolist(), found.key.tolist(), strict=True)
    assert list(rows) == [one for lane in lanes for one in lane]
    assert np.diff(found.bounds).tolist() == [len(lane) for lane in lanes if lane]


def plain_runs(
    ordered: list[Event], label: list[int], groups: list[tuple[int, int]], nests: bool
) -> list[tuple[int, int, int, bool]]:
    """Start, end and label of each run, and whether it is apart; event by event, with gaps of up to twice an event."""
    out: list[tuple[int, int, int, bool]] = []
    reach, length, before = 0, 0, (-1, -1)
    for start, end, key in ordered:
        of = label[key]
        if of < 0:
            continue
        group = next((at for at, (a, b) in enumerate(groups) if a <= start < b), -1)
        apart = not out or group != before[1]
        new = apart or of != before[0]
        resets = not out if nests else new
        if group < 0 and not (apart if nests else new) and start - reach > 2 * length:
            apart = new = True
        if new:
            out.append((start, end, of, apart))
        else:
            out[-1] = (out[-1][0], max(out[-1][1], end), of, out[-1][3])
        reach = end if resets else max(reach, end)
        length, before = end - start, (of, group)
    return out


LABELS = st.lists(st.integers(-1, 2), min_size=KEYS, max_size=KEYS)
GROUPS = st.lists(st.integers(0, 50), max_size=6).map(lambda borders: list(pairwise(sorted(borders)))[::2])


@given(events(), LABELS, GROUPS, st.booleans(), st.booleans())
@settings(max_examples=3 * EXAMPLES)
def test_runs_are_those_of_a_plain_loop(
    core: ModuleType, ordered: list[Event], label: list[int], groups: list[tuple[int, int]], nests: bool, in_lanes: bool
) -> None:
    found = laid(core, ordered)
    if not in_lanes:
        columns = (np.array([one[at] for one in ordered], np.int64) for at in range(3))
        one_lane = np.array([0, len(ordered)], np.int64)
        found = LanedEvents(
            next(columns), next(columns), next(columns).astype(np.int32), np.zeros(0, np.int32), one_lane
        )
    runs = core.runs(found, np.array(label, np.int32), columns_of(groups), 2, nests)
    assert list(zip(*(column.tolist() for column in runs), strict=True)) == plain_runs(ordered, label, groups, nests)


def columns_of(groups: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    """Starts and ends, without groups that last no time: nothing begins in them."""
    start, end = columns([group for group in groups if group[0] < group[1]])
    return np.ascontiguousarray(start), np.ascontiguousarray(end)


@given(events())
def test_self_times_by_key_are_those_of_the_nesting(core: ModuleType, ordered: list[Event]) -> None:
    start, end = columns([one[:2] for one in ordered])
    own = np.maximum(core.nest(start, end).self_ps, 0).tolist()
    wanted = [sum(ps for ps, one in zip(own, ordered, strict=True) if one[2] == key) for key in range(KEYS)]
    assert core.self_sums(laid(core, ordered), KEYS).tolist() == wanted


def test_self_times_of_a_deep_tower(core: ModuleType) -> None:
    tower = laid(core, [(at, 2000 - at, at % KEYS) for at in range(1000)])
    assert core.self_sums(tower, KEYS).tolist() == [500, 500, 500, 500]


def test_what_does_not_fit_is_refused(core: ModuleType) -> None:
    found = laid(core, [(0, 9, 0), (1, 5, 1), (2, 3, 3)])
    labels, nothing = np.zeros(KEYS - 1, np.int32), columns_of([])
    with pytest.raises(ValueError, match="key"):
        core.runs(found, labels, nothing, 2, nests=False)
    with pytest.raises(ValueError, match="key"):
        core.self_sums(found, KEYS - 1)
    backwards = LanedEvents(
        found.start[::-1].copy(), found.end[::-1].copy(), found.key, labels[:0], found.bounds[[0, -1]]
    )
    with pytest.raises(ValueError, match="sorted"):
        core.self_sums(backwards, KEYS)

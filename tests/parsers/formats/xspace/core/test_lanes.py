"""Lanes, with and without compiled loops: no two events of one overlap, and each has the lowest that is free."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

LOW, HIGH = -(1 << 63), (1 << 63) - 1

Spans = list[tuple[int, int]]


def ordered(spans: Spans) -> Spans:
    return sorted(spans, key=lambda span: (span[0], -span[1]))


def columns(spans: Spans) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return np.array([start for start, _ in spans], np.int64), np.array([end for _, end in spans], np.int64)


def lanes(core: ModuleType, spans: Spans) -> list[int]:
    found = core.lanes(*columns(spans))
    assert found.dtype == np.int32
    out: list[int] = found.tolist()
    return out


def stop_of(start: int, end: int) -> int:
    """When an event's lane is free again: an event of no duration counts as one unit long."""
    return min(max(end, start + 1), HIGH)


def first_fit(spans: Spans) -> list[int]:
    """The rule, word for word."""
    free_at: list[int] = []
    out = []
    for start, end in spans:
        lane = next((at for at, time in enumerate(free_at) if time <= start), len(free_at))
        free_at[lane : lane + 1] = [stop_of(start, end)]
        out.append(lane)
    return out


@st.composite
def nested(draw: st.DrawFn) -> Spans:
    """Distinct spans of which no two overlap in part: each has up to two shorter ones in it."""
    out: Spans = []
    open_: Spans = [(at, at + draw(st.integers(1, 60))) for at in range(0, 100 * draw(st.integers(1, 4)), 100)]
    while open_:
        low, high = open_.pop()
        out.append((low, high))
        if high - low < 3 or len(out) > 60:
            continue
        cut = draw(st.integers(low + 1, high - 1))
        parts = draw(st.sampled_from([[], [(low, cut)], [(cut, high)], [(low, cut), (cut, high)], [(cut, cut + 1)]]))
        open_ += [(a, b) for a, b in parts if a < b]
    return ordered(out)


TIMES = st.integers(0, 30)
SPANS = st.lists(st.tuples(TIMES, st.integers(0, 12)), max_size=40).map(
    lambda pairs: ordered([(start, start + length) for start, length in pairs])
)
EXTREME = st.one_of(
    st.sampled_from([LOW, LOW + 1, LOW + 2, -5, 0, 7, HIGH - 2, HIGH - 1, HIGH]), st.integers(LOW, HIGH), TIMES
)
ANY = st.lists(st.tuples(EXTREME, EXTREME), max_size=30).map(ordered)


@given(SPANS)
def test_each_event_has_the_lowest_free_lane(core: ModuleType, spans: Spans) -> None:
    assert lanes(core, spans) == first_fit(spans)


@given(ANY)
def test_any_numbers_at_all(core: ModuleType, spans: Spans) -> None:
    """Ends before starts, spans longer than int64, and the ends of time."""
    assert lanes(core, spans) == first_fit(spans)


@given(nested())
def test_where_spans_nest_the_lane_is_the_depth(core: ModuleType, spans: Spans) -> None:
    assert lanes(core, spans) == core.nest(*columns(spans)).depth.tolist()


def test_nothing_lasts_beyond_the_end_of_time(core: ModuleType) -> None:
    """Nor does one unit from there fit: such an event has ended when the next of the same instant begins."""
    assert lanes(core, [(HIGH - 1, HIGH), (HIGH - 1, HIGH - 1), (HIGH, HIGH), (HIGH, LOW)]) == [0, 1, 0, 0]
    assert lanes(core, [(LOW, HIGH), (LOW, LOW), (LOW + 1, 0), (HIGH, HIGH)]) == [0, 1, 1, 0]


def test_any_number_of_lanes(core: ModuleType) -> None:
    n = 1000
    starts = np.arange(n, dtype=np.int64)
    assert np.array_equal(core.lanes(starts, np.full(n, 10 * n, np.int64)), starts)
    assert np.array_equal(core.lanes(starts, starts + n), starts)
    assert int(core.lanes(np.append(starts, 10 * n), np.append(np.full(n, 10 * n), 10 * n + 1))[-1]) == 0


def many(longest: int, seed: int) -> Spans:
    """Events that overlap in part, some inside spans of their own and some in the open, and empty ones."""
    rng = np.random.default_rng(seed)
    spans = []
    for loop in range(0, 200_000, 1000):
        inner = [(loop + int(at), int(rng.integers(longest))) for at in rng.integers(0, 900, 15)]
        spans += [(at, at + length) for at, length in inner]
        if loop % 3000:
            spans.append((loop, loop + 990))
    return ordered(spans)


@pytest.mark.parametrize("longest", [2, 20, 90, 5000])
def test_many_events(core: ModuleType, longest: int) -> None:
    spans = many(longest, seed=longest)
    assert lanes(core, spans) == first_fit(spans)


def test_unsorted_or_uneven_columns_are_refused(core: ModuleType) -> None:
    for starts, ends in (([1, 0], [2, 2]), ([0, 0], [1, 2]), ([HIGH, HIGH], [0, 1])):
        with pytest.raises(ValueError, match="events must be sorted by start, then by descending end"):
            core.lanes(np.array(starts, np.int64), np.array(ends, np.int64))
    late = np.append(np.arange(500), 3)  # the compiled core has asked for more room by then
    with pytest.raises(ValueError, match="sorted by start"):
        core.lanes(late, np.full(501, 1000))
    with pytest.raises(ValueError):
        core.lanes(np.zeros(2, np.int64), np.zeros(1, np.int64))

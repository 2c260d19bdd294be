"""Lanes, on both cores: no two events of one overlap, and each event has the lowest one that is free."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tpuprof.parsers.formats.xspace.core import lanes as lanes_module
from tpuprof.parsers.formats.xspace.core import numpy_core
from tpuprof.parsers.formats.xspace.core.types import Core

LOW, HIGH = -(1 << 63), (1 << 63) - 1

Spans = list[tuple[int, int]]


def ordered(spans: Spans) -> Spans:
    return sorted(spans, key=lambda span: (span[0], -span[1]))


def columns(spans: Spans) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return np.array([start for start, _ in spans], np.int64), np.array([end for _, end in spans], np.int64)


def lanes(core: Core, spans: Spans) -> list[int]:
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


def apart(spans: Spans, found: list[int]) -> bool:
    """Whether an event begins in a lane only when the one before it in that lane has ended."""
    stops: dict[int, int] = {}
    for (start, end), lane in zip(spans, found, strict=True):
        if stops.get(lane, LOW) > start:
            return False
        stops[lane] = stop_of(start, end)
    return True


@given(SPANS)
def test_each_event_has_the_lowest_free_lane(core: Core, spans: Spans) -> None:
    assert lanes(core, spans) == first_fit(spans)


@given(ANY)
def test_any_numbers_at_all(core: Core, spans: Spans) -> None:
    """Ends before starts, spans longer than int64, and the ends of time."""
    found = lanes(core, spans)
    assert found == first_fit(spans)
    assert apart(spans, found)


@given(SPANS)
def test_no_two_events_of_a_lane_overlap(core: Core, spans: Spans) -> None:
    found = lanes(core, spans)
    assert apart(spans, found)
    taken = [(lane, at) for (start, end), lane in zip(spans, found, strict=True) for at in range(start, end)]
    assert len(taken) == len(set(taken))


@given(SPANS)
def test_as_few_lanes_as_events_run_at_one_time(core: Core, spans: Spans) -> None:
    running = [sum(start <= at < stop_of(start, end) for start, end in spans) for at in range(31)]
    assert max(lanes(core, spans), default=-1) + 1 == max(running)


@given(nested())
def test_where_spans_nest_the_lane_is_the_depth(core: Core, spans: Spans) -> None:
    assert lanes(core, spans) == core.nest(*columns(spans)).depth.tolist()


class TestWaysOfNumpy:
    """Level by level, one event after the other for what is deep or small, and from one to the other."""

    @pytest.fixture(params=[(0, 1 << 20), (1 << 40, 64), (3, 2)], ids=["levels", "one by one", "both"])
    def core(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Core:
        few, levels = request.param
        monkeypatch.setattr(lanes_module, "_FEW", few)
        monkeypatch.setattr(lanes_module, "_MOST_LEVELS", levels)
        monkeypatch.setattr(lanes_module, "_BLOCK", 4)
        return numpy_core

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
    @given(st.one_of(SPANS, nested()))
    def test_each_event_has_the_lowest_free_lane(self, core: Core, spans: Spans) -> None:
        assert lanes(core, spans) == first_fit(spans)

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
    @given(ANY)
    def test_any_numbers_at_all(self, core: Core, spans: Spans) -> None:
        assert lanes(core, spans) == first_fit(spans)


def test_nested_and_touching_spans(core: Core) -> None:
    spans = [(0, 100), (0, 50), (10, 20), (20, 50), (60, 100), (60, 61), (100, 110)]
    assert lanes(core, spans) == [0, 1, 2, 2, 1, 2, 0]
    assert lanes(core, []) == []
    assert lanes(core, [(3, 9)]) == [0]


def test_spans_that_overlap_in_part_stack(core: Core) -> None:
    assert lanes(core, [(0, 10), (5, 15), (8, 30), (12, 20), (15, 16), (20, 22)]) == [0, 1, 2, 0, 1, 0]


def test_events_of_no_duration_are_alone_at_their_instant(core: Core) -> None:
    assert lanes(core, [(5, 5), (5, 5), (5, 5), (6, 6)]) == [0, 1, 2, 0]
    assert lanes(core, [(0, 5), (5, 5), (5, 5)]) == [0, 0, 1]
    assert lanes(core, [(0, 6), (5, 6), (5, 5), (5, 2)]) == [0, 1, 2, 3]


def test_nothing_lasts_beyond_the_end_of_time(core: Core) -> None:
    """Nor does one unit from there fit: such an event has ended when the next of the same instant begins."""
    assert lanes(core, [(HIGH - 1, HIGH), (HIGH - 1, HIGH - 1), (HIGH, HIGH), (HIGH, LOW)]) == [0, 1, 0, 0]
    assert lanes(core, [(LOW, HIGH), (LOW, LOW), (LOW + 1, 0), (HIGH, HIGH)]) == [0, 1, 1, 0]


def test_any_number_of_lanes(core: Core) -> None:
    n = 3000
    starts = np.arange(n, dtype=np.int64)
    assert np.array_equal(core.lanes(starts, np.full(n, 10 * n, np.int64)), starts)
    assert np.array_equal(core.lanes(starts, starts + n), starts)
    assert int(core.lanes(np.append(starts, 10 * n), np.append(np.full(n, 10 * n), 10 * n + 1))[-1]) == 0


@pytest.mark.parametrize("depth", [10, 63, 64, 65, 3000])
def test_a_tower_of_any_depth(core: Core, depth: int) -> None:
    spans = [(i, 10_000 - i) for i in range(depth)] + [(10_000 + 2 * i, 10_001 + 2 * i) for i in range(400)]
    assert lanes(core, spans) == [*range(depth), *[0] * 400]


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
def test_many_events(core: Core, longest: int) -> None:
    spans = many(longest, seed=longest)
    found = lanes(core, spans)
    assert found == first_fit(spans)
    assert apart(spans, found)


def test_unsorted_or_uneven_columns_are_refused(core: Core) -> None:
    for starts, ends in (([1, 0], [2, 2]), ([0, 0], [1, 2]), ([HIGH, HIGH], [0, 1])):
        with pytest.raises(ValueError, match="events must be sorted by start, then by descending end"):
            core.lanes(np.array(starts, np.int64), np.array(ends, np.int64))
    late = np.append(np.arange(500), 3)  # the compiled core has asked for more room by then
    with pytest.raises(ValueError, match="sorted by start"):
        core.lanes(late, np.full(501, 1000))
    with pytest.raises(ValueError):
        core.lanes(np.zeros(2, np.int64), np.zeros(1, np.int64))


def test_only_clusters_that_overlap_in_part_go_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    plain = lanes_module._first_fit

    def counted(start: NDArray[np.int64], stop: NDArray[np.int64]) -> NDArray[np.int32]:
        seen.append(len(start))
        return plain(start, stop)

    monkeypatch.setattr(lanes_module, "_first_fit", counted)
    monkeypatch.setattr(lanes_module, "_FEW", 0)
    spans = [(0, 10), (2, 4), (20, 30), (25, 35), (26, 27), (40, 60), (41, 43), (44, 50), (49, 51), (55, 56), (70, 80)]
    assert lanes(numpy_core, spans) == [0, 1, 0, 1, 2, 0, 1, 1, 2, 1, 0]
    assert seen == [3, 2]  # those from 20, and those from 44 inside another

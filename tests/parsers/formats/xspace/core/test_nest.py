"""Nesting of events by time, on both cores."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.parsers.formats.xspace.core.test_lanes import columns, ordered
from tpuprof.parsers.formats.xspace.core import nest as nest_module
from tpuprof.parsers.formats.xspace.core import numpy_core
from tpuprof.parsers.formats.xspace.core.types import Core, Nesting

LIMIT = 1 << 63


def by_stack(spans: list[tuple[int, int]]) -> tuple[list[int], list[int], list[int]]:
    """Parents, depths and self times as the rule has them: pop what does not include the event, look at the top."""
    parents, depths, own = [], [], []
    stack: list[int] = []
    for i, (start, end) in enumerate(spans):
        while stack and not (spans[stack[-1]][0] <= start and end <= spans[stack[-1]][1]):
            stack.pop()
        parents.append(stack[-1] if stack else -1)
        depths.append(len(stack))
        own.append(end - start)
        if stack:
            own[stack[-1]] -= end - start
        stack.append(i)
    return parents, depths, [(value + LIMIT) % (2 * LIMIT) - LIMIT for value in own]


def nest(core: Core, spans: list[tuple[int, int]]) -> Nesting:
    return core.nest(*columns(spans))


def check(core: Core, spans: list[tuple[int, int]]) -> Nesting:
    """Compares with the stack, and gives the result."""
    found = nest(core, spans)
    assert [column.dtype for column in (found.parent, found.depth, found.self_ps)] == ["int64", "int32", "int64"]
    assert (found.parent.tolist(), found.depth.tolist(), found.self_ps.tolist()) == by_stack(spans)
    return found


TIMES = st.integers(0, 12)
SPANS = st.lists(st.tuples(TIMES, TIMES).map(lambda pair: (min(pair), max(pair))), max_size=40)
PARTLY = ordered([(i, i + 7 + (i * 5) % 11) for i in range(300)] + [(i, i + i % 3) for i in range(300)])
EXTREME = st.one_of(st.integers(-4, 4), st.integers(-LIMIT, LIMIT - 1), st.sampled_from([-LIMIT, LIMIT - 1]))


@given(SPANS)
def test_any_spans_nest_as_with_a_stack(core: Core, spans: list[tuple[int, int]]) -> None:
    check(core, ordered(spans))


@given(st.lists(st.tuples(EXTREME, EXTREME), max_size=30))
def test_any_numbers_at_all(core: Core, spans: list[tuple[int, int]]) -> None:
    """Ends before starts, and differences that int64 can't hold."""
    check(core, ordered(spans))


def test_spans_that_overlap_in_part(core: Core) -> None:
    check(core, PARTLY)


class TestWaysOfNumpy:
    """Level by level, the plain stack for what is deep or small, and from one to the other."""

    @pytest.fixture(params=[(0, 1 << 20), (1 << 40, 64), (3, 2)], ids=["levels", "stack", "both"])
    def core(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Core:
        few, levels = request.param
        monkeypatch.setattr(nest_module, "_FEW", few)
        monkeypatch.setattr(nest_module, "_MOST_LEVELS", levels)
        return numpy_core

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
    @given(SPANS)
    def test_any_spans_nest_as_with_a_stack(self, core: Core, spans: list[tuple[int, int]]) -> None:
        check(core, ordered(spans))

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
    @given(st.lists(st.tuples(EXTREME, EXTREME), max_size=30))
    def test_any_numbers_at_all(self, core: Core, spans: list[tuple[int, int]]) -> None:
        check(core, ordered(spans))

    def test_spans_that_overlap_in_part(self, core: Core) -> None:
        check(core, PARTLY)


def test_identical_touching_and_empty_spans(core: Core) -> None:
    spans = [(0, 10), (0, 10), (10, 20), (10, 10), (20, 20), (21, 21), (21, 21)]
    assert check(core, spans).parent.tolist() == [-1, 0, -1, 2, 2, -1, 5]
    assert check(core, [(0, 10), (4, 10), (10, 10)]).parent.tolist() == [-1, 0, 1]


def test_self_time_is_what_children_leave(core: Core) -> None:
    assert check(core, [(0, 100), (10, 40), (20, 30), (50, 60)]).self_ps.tolist() == [60, 20, 10, 10]


def test_overlaps_so_long_that_their_sum_is_beyond_int64(core: Core) -> None:
    far = 1 << 61
    spans = []
    for k in range(200):
        at = 10 * k
        spans += [(at, far + 2 * k), (at + 1, at + 5), (at + 2, far + 2 * k - 1)]
    assert check(core, spans).depth.max() == 1


def test_no_event_and_one(core: Core) -> None:
    assert len(check(core, []).parent) == 0
    assert check(core, [(3, 3)]).depth.tolist() == [0]


@pytest.mark.parametrize("depth", [10, 63, 64, 65, 3000])
def test_a_tower_of_any_depth(core: Core, depth: int) -> None:
    spans = [(i, 10_000 - i) for i in range(depth)] + [(10_000 + 2 * i, 10_001 + 2 * i) for i in range(400)]
    assert check(core, spans).depth.max() == depth - 1


def test_many_events_as_on_a_device(core: Core) -> None:
    rng = np.random.default_rng(3)
    spans = []
    for loop in range(300):
        spans.append((loop * 1000, loop * 1000 + 990))
        for at in range(0, 900, 100):
            spans += [
                (loop * 1000 + at, loop * 1000 + at + 90),
                (loop * 1000 + at, loop * 1000 + at + int(rng.integers(80))),
            ]
    assert check(core, ordered(spans)).depth.max() == 2


def test_depth_costs_no_more_than_the_limit_of_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    levels = []
    outermost = nest_module._outermost

    def counted(end: NDArray[np.int64], holder: NDArray[np.int64]) -> NDArray[np.bool_] | None:
        levels.append(len(end))
        return outermost(end, holder)

    monkeypatch.setattr(nest_module, "_outermost", counted)
    n = 5000
    nest_module.nest(np.arange(n), np.arange(2 * n, n, -1))
    assert len(levels) == nest_module._MOST_LEVELS
    assert sum(levels) <= n * nest_module._MOST_LEVELS


@pytest.mark.parametrize("spans", [[(5, 6), (4, 9)], [(5, 6), (5, 9)]])
def test_unsorted_events_are_refused(core: Core, spans: list[tuple[int, int]]) -> None:
    with pytest.raises(ValueError):
        nest(core, spans)


def test_starts_and_ends_of_different_lengths_are_refused(core: Core) -> None:
    for starts, ends in (([1, 2], [3]), ([1], [2, 3]), ([], [1])):
        with pytest.raises(ValueError):
            core.nest(np.array(starts, np.int64), np.array(ends, np.int64))

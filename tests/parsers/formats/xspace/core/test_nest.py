"""Nesting of events by time, with and without the compiled loops."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.formats.xspace.core.test_lanes import columns, ordered
from tpuprof.parsers.formats.xspace.core.types import Nesting

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


def nest(core: ModuleType, spans: list[tuple[int, int]]) -> Nesting:
    found: Nesting = core.nest(*columns(spans))
    return found


def check(core: ModuleType, spans: list[tuple[int, int]]) -> Nesting:
    """Compares with the stack, and gives the result."""
    found = nest(core, spans)
    assert [column.dtype for column in (found.parent, found.depth, found.self_ps)] == ["int64", "int32", "int64"]
    assert (found.parent.tolist(), found.depth.tolist(), found.self_ps.tolist()) == by_stack(spans)
    return found


TIMES = st.integers(0, 12)
SPANS = st.lists(st.tuples(TIMES, TIMES).map(lambda pair: (min(pair), max(pair))), max_size=40)
EXTREME = st.one_of(st.integers(-4, 4), st.integers(-LIMIT, LIMIT - 1), st.sampled_from([-LIMIT, LIMIT - 1]))


@given(SPANS)
def test_any_spans_nest_as_with_a_stack(core: ModuleType, spans: list[tuple[int, int]]) -> None:
    check(core, ordered(spans))


@given(st.lists(st.tuples(EXTREME, EXTREME), max_size=30))
def test_any_numbers_at_all(core: ModuleType, spans: list[tuple[int, int]]) -> None:
    """Ends before starts, and differences that int64 can't hold."""
    check(core, ordered(spans))


@pytest.mark.parametrize("depth", [10, 3000])
def test_a_tower_of_any_depth(core: ModuleType, depth: int) -> None:
    spans = [(i, 10_000 - i) for i in range(depth)] + [(10_000 + 2 * i, 10_001 + 2 * i) for i in range(400)]
    assert check(core, spans).depth.max() == depth - 1


@pytest.mark.parametrize("spans", [[(5, 6), (4, 9)], [(5, 6), (5, 9)]])
def test_unsorted_events_are_refused(core: ModuleType, spans: list[tuple[int, int]]) -> None:
    with pytest.raises(ValueError):
        nest(core, spans)


def test_starts_and_ends_of_different_lengths_are_refused(core: ModuleType) -> None:
    for starts, ends in (([1, 2], [3]), ([1], [2, 3]), ([], [1])):
        with pytest.raises(ValueError):
            core.nest(np.array(starts, np.int64), np.array(ends, np.int64))

"""The steps of SparseCores beside those of a TensorCore, against a plain loop."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tpuprof.parsers.steps.boundaries.markers import CoreSteps
from tpuprof.parsers.steps.boundaries.sparse_core import _same_steps

STEPS = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 9), st.sampled_from("abcd")), max_size=4)


def steps_of(spec: list[tuple[int, int, str]]) -> CoreSteps:
    """Steps by the gap before them, their length and name."""
    end = np.cumsum([gap + long for gap, long, _ in spec], dtype=np.int64)
    long = np.array([long for _, long, _ in spec], np.int64)
    return CoreSteps(tuple(name for *_, name in spec), end - long, end, long)


@given(STEPS.filter(bool), STEPS)
def test_steps_are_the_same_by_name_where_all_fit_in_time_and_else_by_their_middles(
    own: list[tuple[int, int, str]], other: list[tuple[int, int, str]]
) -> None:
    mine, its = steps_of(own), steps_of(other)
    spans = list(zip(mine.start_ps.tolist(), mine.end_ps.tolist(), strict=True))
    expected, by_time = [], []
    for name, start, end in zip(its.names, its.start_ps.tolist(), its.end_ps.tolist(), strict=True):
        named = [at for at, of in enumerate(mine.names) if of == name]
        expected.append(named[0] if named else -1)
        by_time.append(max((at for at, (a, b) in enumerate(spans) if start <= a + (b - a) // 2 < end), default=-1))
        if named and not (spans[named[0]][0] < end and start < spans[named[0]][1]):
            expected = [-1] * 9
    repeat = any(len({*of.names}) < len(of) for of in (mine, its))
    if repeat or {*expected} <= {-1} or len(expected) > len(its):
        expected = by_time
    assert _same_steps(mine, its.names, its.start_ps, its.end_ps).tolist() == expected

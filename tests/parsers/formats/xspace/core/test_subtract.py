"""Intervals without others, on both cores."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tpuprof.parsers.formats.xspace.core.types import Core

Spans = list[tuple[int, int]]


def columns(spans: Spans) -> tuple[np.ndarray, np.ndarray]:
    both = np.array(spans, np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


@st.composite
def disjoint(draw: st.DrawFn) -> Spans:
    """Spans in order, of which some touch."""
    out, at = [], 0
    for _ in range(draw(st.integers(0, 8))):
        begin = at + draw(st.integers(0, 4))
        at = begin + draw(st.integers(1, 9))
        out.append((begin, at))
    return out


@given(disjoint(), disjoint())
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_left_is_what_no_other_covers(core: Core, spans: Spans, others: Spans) -> None:
    start, end = core.subtract(*columns(spans), *columns(others))
    assert (start < end).all() and (start[1:] >= end[:-1]).all()
    left = {time for a, b in zip(start.tolist(), end.tolist(), strict=True) for time in range(a, b)}
    cells = [{time for a, b in side for time in range(a, b)} for side in (spans, others)]
    assert left == cells[0] - cells[1]


@pytest.mark.parametrize("spans", [[(5, 5)], [(5, 4)], [(0, 3), (2, 5)], [(4, 5), (0, 1)]])
def test_other_intervals_are_refused(core: Core, spans: Spans) -> None:
    none: Spans = []
    for first, second in ((spans, none), (none, spans)):
        with pytest.raises(ValueError, match="disjoint"):
            core.subtract(*columns(first), *columns(second))

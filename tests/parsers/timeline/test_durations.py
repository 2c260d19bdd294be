"""Durations in four bytes are the ones given, and ends follow from them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.timeline.build import loose_events, nested_events, track
from tpuprof.parsers.timeline.durations import Durations, Ends

MOST = (1 << 32) - 1
LASTING = st.sampled_from([0, 1, 250, MOST - 1, MOST, MOST + 1, 1 << 40, (1 << 62) - 1])


@given(st.lists(LASTING, max_size=40), st.data())
def test_durations(times: list[int], data: st.DataObject) -> None:
    given_ps = np.array(times, np.int64)
    start = np.arange(len(times), dtype=np.int64) * 7
    lasting, ends = Durations.of(given_ps.copy()), Ends(start, Durations.of(given_ps.copy()))
    assert len(lasting) == len(times)
    chosen = np.array(
        data.draw(st.lists(st.sampled_from(range(len(times))), max_size=9) if times else st.just([])), int
    )
    begin, end = sorted(data.draw(st.tuples(*[st.integers(0, len(times))] * 2)))
    for events in (slice(None), slice(begin, end), slice(begin, None, 3), chosen):
        assert lasting[events].tolist() == given_ps[events].tolist()
        assert ends[events].tolist() == (start + given_ps)[events].tolist()
    for at, time in enumerate(times):
        assert (lasting[at], ends[at]) == (time, 7 * at + time) == (lasting[np.int64(at)], ends[np.int64(at)])


@pytest.mark.parametrize(("long_", "size"), [(0, 4), (1, 4), (53, 4), (54, 8)])
def test_size(long_: int, size: int) -> None:
    """Four bytes an event unless many are long: a list of these would take more."""
    lasting = Durations.of(np.array([1 << 40] * long_ + [5] * (160 - long_), np.int64))
    assert lasting.column.itemsize == size
    assert len(lasting.long_at) == (long_ if size == 4 else 0)


@given(nested_events() | loose_events(), st.lists(st.integers(-2, 62), min_size=1))
def test_first_of_a_lane(events: list[tuple[int, int, int, int]], instants: list[int]) -> None:
    one = track(events)
    for lane in range(one.depth):
        part = one.lane(lane)
        spans = list(zip(one.start_ps[part].tolist(), one.end_ps[part].tolist(), strict=True))
        until = [next((n for n, (_, end) in enumerate(spans) if end >= at), len(spans)) for at in instants]
        within = [
            next((n for n, (start, end) in enumerate(spans) if end > at or start == end == at), len(spans))
            for at in instants
        ]
        where = np.array(instants, np.int64)
        assert (one.first_until(part, where) - part.start).tolist() == until
        assert (one.first_within(part, where) - part.start).tolist() == within

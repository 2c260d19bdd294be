"""Searching the events of a timeline, against going through all of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.timeline.build import LaneEvent, loose_events, nested_events, timeline, track
from tests.support.build import PlaneBuilder, StatInput
from tpuprof.parsers.ops.op_metadata import OpSource
from tpuprof.parsers.timeline import search
from tpuprof.parsers.timeline.model import EventId, EventNames, Timeline
from tpuprof.parsers.timeline.search import Matches, find
from tpuprof.parsers.timeline.windows import cell_edges

EVENTS = st.one_of(nested_events(), loose_events())
TEXTS = st.sampled_from(["a", "BETA", "ta", "mm", "alpha", "no such name", "l"])


def matching(one: Timeline, text: str) -> list[tuple[int, EventId]]:
    """Start and place of all events whose names hold a text, in order."""
    found = []
    for at, section in enumerate(one.sections):
        for number, lane in enumerate(section.tracks):
            for index in range(len(lane)):
                if text.lower() in lane.label(index).lower():
                    found.append((int(lane.start_ps[index]), (at, number, index)))
    return sorted(found)


@pytest.fixture(params=[1 << 16, 0], ids=["few", "many"], scope="module")
def few(request: pytest.FixtureRequest) -> int:
    """How many matches are few; none, so that all are counted in blocks."""
    return int(request.param)


@given(events=st.lists(EVENTS, min_size=1, max_size=3), text=TEXTS)
def test_counts_are_those_of_all_events(events: list[list[LaneEvent]], text: str) -> None:
    one = timeline([track(some) for some in events])
    found, expected = find(one, text), matching(one, text)
    assert found.total == len(expected)
    assert sum(matches.count for matches in found.tracks) == len(expected)
    for place, count in [(matches.place, matches.count) for matches in found.tracks]:
        assert count == sum(event[:2] == place for _, event in expected)
    labels = {one.sections[a].tracks[b].label(c) for _, (a, b, c) in expected}
    assert found.names == len(labels)


@given(events=st.lists(EVENTS, min_size=1, max_size=3), text=TEXTS)
def test_the_next_and_previous_match_are_those_in_order_of_time(
    few: int, events: list[list[LaneEvent]], text: str
) -> None:
    half = len(events) // 2
    one = timeline([track(some) for some in events[:half]], [track(some) for some in events[half:]])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "FEW", few)
        patch.setattr(search, "_BLOCK", 4)
        patch.setattr(search, "_SCAN", 8)
        found, expected = find(one, text), matching(one, text)
        for time in range(-2, 64):
            later = [place for start, place in expected if start > time]
            assert found.next_after(time, 1) == (later[0] if later else None)
            earlier = [place for start, place in expected if start < time]
            assert found.next_after(time, -1) == (earlier[-1] if earlier else None)
        for number, (start, place) in enumerate(expected):
            behind = expected[number + 1][1] if number + 1 < len(expected) else None
            before = expected[number - 1][1] if number else None
            assert found.next_after(start, 1, place) == behind
            assert found.next_after(start, -1, place) == before
            assert found.position(place) == number + 1
            assert found.label(place) == f"{number + 1} of {len(expected)}"
            assert found.is_match(place)


@given(
    events=st.lists(EVENTS, min_size=1, max_size=2),
    text=TEXTS,
    window=st.tuples(st.integers(-5, 60), st.integers(1, 70), st.integers(1, 12)),
)
def test_marks_are_the_cells_that_hold_a_match(
    few: int, events: list[list[LaneEvent]], text: str, window: tuple[int, int, int]
) -> None:
    one = timeline([track(some) for some in events])
    edges = cell_edges(window[0], window[0] + window[1], window[2])
    expected = np.zeros(len(edges) - 1, np.bool_)
    for start, (at, number, index) in matching(one, text):
        end = int(one.sections[at].tracks[number].end_ps[index])
        over = (start < edges[1:]) & (end > edges[:-1])
        expected |= over if end > start else (edges[:-1] <= start) & (start < edges[1:])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "FEW", few)
        patch.setattr(search, "_BLOCK", 4)
        assert np.array_equal(find(one, text).marks(edges), expected)


def of_profile(entries: Sequence[tuple[str, str, dict[str, StatInput]]]) -> EventNames:
    """Names from metadata: name, display name and stats of each."""
    plane = PlaneBuilder.alone("/device:TPU:0")
    for name, display, stats in entries:
        plane.event_id(name, display, **stats)
    read = plane.read()
    count = len(read.event_metadata)
    return EventNames(OpSource(read.event_metadata, read.stat_metadata), ("event 77",), np.zeros(count + 1, np.uint8))


def test_words_are_looked_for_where_the_table_of_ops_looks() -> None:
    stats: dict[str, StatInput] = {
        "tf_op": "jit(f)/Dot:",
        "hlo_category": "convolution fusion",
        "source": "/a/model.py:7",
    }
    source = of_profile(
        [
            ("%fusion.1 = f32[8] fusion(%Copy.2)", "fusion.1", stats),
            ("%copy.2 = f32[8] copy()", "copy.2", {}),
            ("Größe", "", {}),
        ]
    )
    one = timeline([track([(0, at, at + 1, at) for at in range(4)], of=source)])
    for text, expected in {
        "fusion.1": [0],
        "Copy.2": [1],  # the operand of another op has that name too
        "hlo:%copy.2": [0, 1],
        "hlo:F32[8]": [0, 1],
        "jit(F)/dot": [0],
        "op:jit(F)/dot": [0],
        "name:jit": [],
        "CONV": [0],
        "cat:conv copy": [],
        "model.py:7": [0],
        "src:model": [0],
        "model": [],
        "größe": [2],
        "GRÖSSE": [],
        "GRÖßE": [2],
        "Event 77": [3],
    }.items():
        assert [place[2] for _, place in _walk(find(one, text))] == expected, text


def _walk(found: Matches) -> list[tuple[int, EventId]]:
    """All matches, one after the other."""
    out: list[tuple[int, EventId]] = []
    place, time = found.next_after(-1), 0
    while place is not None:
        time = int(next(one.track for one in found.tracks if one.place == place[:2]).start_ps[place[2]])
        out.append((time, place))
        place = found.next_after(time, 1, place)
    return out

"""Measuring an interval, against a count of unit cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.timeline.build import NAMES, LaneEvent, loose_events, nested_events, timeline, track
from tests.support.build import present
from tpuprof.parsers.timeline.measure import Measurement, mean_use, measure
from tpuprof.parsers.timeline.model import RateTrack, Track

TIMES = st.integers(-5, 70)


def overlaps(event: LaneEvent, a: int, b: int) -> bool:
    _, start, end, _ = event
    return a < b and ((start < b and end > a) if end > start else a <= start < b)


def cells(event: LaneEvent, a: int, b: int) -> set[int]:
    return set(range(max(event[1], a), min(event[2], b)))


def sums(one: Measurement, column: str) -> Counter[tuple[int, int]]:
    out: Counter[tuple[int, int]] = Counter()
    for of, key, value in zip(one.of_track, one.key, getattr(one, column), strict=True):
        out[int(of), int(key)] += int(value)
    return out


@given(st.one_of(nested_events(), loose_events()), TIMES, TIMES)
def test_rows_are_a_count_of_unit_cells(events: list[LaneEvent], a: int, b: int) -> None:
    found = measure(timeline([track(events)]), a, b)
    a, b = min(a, b), max(a, b)
    inside = [event for event in events if overlaps(event, a, b)]
    assert (found.start_ps, found.end_ps, found.duration_ps) == (a, b, b - a)
    assert sums(found, "occurrences") == Counter((0, key) for *_, key in inside)
    total: Counter[tuple[int, int]] = Counter()
    own: Counter[tuple[int, int]] = Counter()
    for event in inside:
        deeper = {cell for other in events if other[0] == event[0] + 1 for cell in cells(other, a, b)}
        total[0, event[3]] += len(cells(event, a, b))
        own[0, event[3]] += len(cells(event, a, b) - deeper)
    assert sums(found, "total_ps") == total
    assert sums(found, "self_ps") == own
    share = found.tracks[0]
    assert share.events == len(inside)
    assert share.busy_ps == len({cell for event in events for cell in cells(event, a, b)})
    assert share.busy_fraction == (None if a == b else share.busy_ps / (b - a))


@given(st.one_of(nested_events(), loose_events()), TIMES, TIMES)
def test_transfers_side_by_side_keep_their_time_and_those_of_one_name_are_one_row(
    events: list[LaneEvent], a: int, b: int
) -> None:
    texts = ("alpha", "beta", "alpha", "alpha")
    found = measure(timeline([track(events, texts, "async")]), a, b)
    total = Counter[str]()
    for event in events:
        total[texts[event[3]]] += len(cells(event, found.start_ps, found.end_ps))
    assert {row.name: row.total_ps for row in found.rows() if row.total_ps} == +total
    assert found.self_ps.tolist() == found.total_ps.tolist()
    assert found.tracks[0].busy_ps == len({cell for event in events for cell in cells(event, *sorted((a, b)))})


@given(st.one_of(nested_events(), loose_events()), TIMES, TIMES)
def test_the_longest_event_of_a_row_is_one_of_its_own(events: list[LaneEvent], a: int, b: int) -> None:
    found = measure(timeline([track(events)]), a, b)
    ordered = sorted(events, key=lambda event: event[:3])
    for row in found.rows():
        lengths = [
            (len(cells(event, found.start_ps, found.end_ps)), -at)
            for at, event in enumerate(ordered)
            if event[3] == row.key and overlaps(event, found.start_ps, found.end_ps)
        ]
        assert row.longest == -max(lengths)[1]
        assert row.name == NAMES[row.key]
        assert row.average_ps == row.total_ps // row.occurrences


def small() -> tuple[Track, Track, Track]:
    ops = track([(0, 0, 10, 0), (0, 10, 30, 1), (1, 12, 20, 2), (1, 22, 24, 2), (0, 40, 44, 0)], kind="ops", name="Ops")
    copies = track([(0, 0, 8, 3), (1, 4, 12, 3)], kind="async", name="Copies")
    return ops, copies, track([(0, 0, 30, 0)], kind="scopes", is_derived=True)


def test_rows_are_sorted_by_self_time() -> None:
    ops, copies, derived = small()
    found = measure(timeline([ops, copies], [derived]), 0, 100)
    assert [(share.section, share.track, share.place, share.busy_ps) for share in found.tracks] == [
        ("Chip 0", "Ops", (0, 0), 34),
        ("Chip 0", "Copies", (0, 1), 12),
    ]
    rows = [(row.name, row.self_ps) for row in found.rows()]
    assert rows == [("delta", 16), ("alpha", 14), ("beta", 10), ("gamma", 10)]
    assert found.rows(limit=2) == found.rows()[:2] and found.rows(places=((0, 1),)) == found.rows()[:1]


def test_times_beyond_thirty_two_bits_and_below_zero_are_exact() -> None:
    far = 1 << 61
    found = measure(timeline([track([(0, -far, far, 0), (1, -3, 5, 1)])]), -far, far)
    assert sums(found, "self_ps") == {(0, 0): 2 * far - 8, (0, 1): 8}
    assert found.tracks[0].busy_ps == 2 * far
    assert np.array_equal(found.occurrences, [1, 1])


WORK = np.array([100.0, 0.0, 3.0, 7.0])


@given(st.lists(nested_events(), min_size=1, max_size=3), TIMES, st.integers(1, 40), st.integers(0, 3))
def test_the_mean_use_is_over_all_cores_the_idle_ones_too(
    cores: list[list[LaneEvent]], start: int, length: int, idle: int
) -> None:
    def use(events: Sequence[list[LaneEvent]], peak: float | None = 1e15) -> float | None:
        made = timeline(*([track(of)] for of in events))
        rates = ((RateTrack("FLOPS", section.tracks[0], WORK, peak),) for section in made.sections)
        sections = tuple(replace(section, rates=of) for section, of in zip(made.sections, rates, strict=True))
        return mean_use(replace(made, sections=sections), start, start + length)["FLOPS"]

    alone = [present(use([of])) for of in cores]
    far = [(0, 900, 910, 0)]
    assert use([*cores, *[far] * idle]) == pytest.approx(sum(alone) / (len(cores) + idle))
    assert use(cores, None) is None

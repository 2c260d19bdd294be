"""Spans of requests against plain loops: the nearest end of a transfer, links, and time that kinds share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tests.support.made.serving import US, Request, read_requests, serving_profile
from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.ops.host_events.events import Ends
from tpuprof.parsers.steps.requests import spans
from tpuprof.parsers.steps.requests.spans import Spans, exclusive

SMALL = st.integers(0, 9)
INTERVAL = st.tuples(SMALL, SMALL).map(lambda pair: (min(pair), max(pair)))


def columns(rows: Sequence[tuple[int, ...]], count: int) -> list[Int64s]:
    return list(np.array(rows, np.int64).reshape(-1, count).T)


@given(st.lists(INTERVAL, min_size=1, max_size=3), st.data())
def test_each_instant_of_a_request_is_of_the_first_kind_that_has_it(
    requests: list[tuple[int, int]], data: st.DataObject
) -> None:
    of = st.tuples(st.integers(0, len(requests) - 1), INTERVAL)
    kinds = data.draw(st.lists(st.lists(of, max_size=4), min_size=1, max_size=3))
    made = [Spans(*columns([(number, *span) for number, span in kind], 3)) for kind in kinds]
    starts, ends = columns(requests, 2)
    found = exclusive(starts, ends, made)
    for number, (begin, end) in enumerate(requests):
        taken = set[int]()
        for kind, times in zip(kinds, found, strict=True):
            inside = {at for owner, span in kind if owner == number for at in range(*span) if begin <= at < end}
            assert times[number] == len(inside - taken)
            taken |= inside


@given(st.lists(st.tuples(SMALL, SMALL), max_size=6), st.lists(st.tuples(st.integers(0, 3), INTERVAL), max_size=6))
def test_a_transfer_lasts_from_its_last_issue_to_the_last_event_that_says_it_is_done(
    issued: list[tuple[int, int]], done: list[tuple[int, tuple[int, int]]]
) -> None:
    issues = [(link % 4, number, start, start) for number, (link, start) in enumerate(issued)]
    dones = [(link, -1, *span) for link, span in done]
    last = {link: (group, start) for link, group, start, _ in issues}
    expected = []
    for link, (group, start) in sorted(last.items()):
        ends = [span for each, span in done if each == link]
        if ends and max(begin for begin, _ in ends) > start:
            latest = max(begin for begin, _ in ends)
            expected.append((group, start, [end for begin, end in ends if begin == latest][-1]))
    found = spans._from_issue_to_done(spans._Linked(*columns(issues, 4)), spans._Linked(*columns(dones, 4)))
    assert list(zip(found.group.tolist(), found.start.tolist(), found.end.tolist(), strict=True)) == expected


ENDS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 4)), max_size=12)


@given(ENDS, ENDS, st.integers(1, 4))
def test_producers_and_consumers_of_a_link_are_paired_unless_it_has_many_of_both(
    produced: list[tuple[int, int, int]], consumed: list[tuple[int, int, int]], most: int
) -> None:
    def ends(rows: list[tuple[int, int, int]]) -> Ends:
        kind, link, row = columns(rows, 3)
        return Ends(kind=kind, id=link, rows=row)

    expected = set[tuple[int, int]]()
    for link in {each[:2] for each in produced}:
        starts, stops = ({row for *of, row in side if (*of,) == link} for side in (produced, consumed))
        if len(starts) < most or len(stops) < most:
            expected |= {(start, stop) for start in starts for stop in stops}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spans, "MOST_OF_BOTH", most)
        first, last = spans._linked(ends(produced), ends(consumed))
    assert set(zip(first.tolist(), last.tolist(), strict=True)) == expected


Times = list[tuple[int, int]]
TIMES = st.lists(st.integers(2, 8), max_size=2).map(
    lambda of: [(10 * at, 10 * at + long) for at, long in enumerate(of)]
)


@settings(max_examples=EXAMPLES // 4)
@given(
    st.lists(st.tuples(st.integers(70, 99), TIMES, TIMES, TIMES), min_size=1, max_size=5),
    st.sampled_from([("SessionRun", 1), ("ModelServerRequest_1", 1), ("anything", -1)]),
    st.integers(1, 3),
)
def test_times_of_requests_add_up(
    spec: list[tuple[int, Times, Times, Times]], mark: tuple[str, int | None], threads: int
) -> None:
    def shifted(spans: Times, by: int) -> Times:
        return [(start + by, end + by) for start, end in spans]

    requests = [
        Request((at, at + long), shifted(runs, at + 30), shifted(to, at + 5), shifted(back, at + 50), "", *mark)
        for at, (long, runs, to, back) in zip(range(1000, 9000, 1000), spec, strict=False)
    ]
    found = read_requests(serving_profile(requests, threads=threads))
    of_kinds = [(sum(end - start for start, end in spans) * US for spans in kinds) for _, *kinds in spec]
    assert [*zip(found.device_ps, found.to_device_ps, found.from_device_ps, strict=True)] == [*map(tuple, of_kinds)]
    assert [*zip(found.start_ps // US, found.total_ps // US, strict=True)] == [
        (of.span[0], of.span[1] - of.span[0]) for of in requests
    ]

"""Requests of any times, marked in any way, are what was put into the profile."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.support.made.serving import US, Request, read_requests, serving_profile

Spans = list[tuple[int, int]]
SPANS = st.lists(st.integers(2, 8), max_size=2).map(
    lambda of: [(10 * at, 10 * at + long) for at, long in enumerate(of)]
)


@given(
    st.lists(st.tuples(st.integers(70, 99), SPANS, SPANS, SPANS), min_size=1, max_size=5),
    st.sampled_from([("SessionRun", 1), ("ModelServerRequest_1", 1), ("anything", -1)]),
    st.integers(1, 3),
)
def test_times_of_requests_add_up(
    spec: list[tuple[int, Spans, Spans, Spans]], mark: tuple[str, int | None], threads: int
) -> None:
    def shifted(spans: Spans, by: int) -> Spans:
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

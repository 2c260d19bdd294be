"""Annotations that recur and launch programs are offered as requests, by name; others are not."""

from __future__ import annotations

import pytest

from tests.support.build import PlaneBuilder, present, summary_of
from tests.support.made.serving import five_requests, read_requests, serving_profile
from tpuprof.parsers.pages.shared.latencies import NOT_LINKED, InferencePage, latencies

US = 1_000_000
LAUNCH = "PjitFunction(forward)"


def page_of(*events: tuple[str, int, int]) -> InferencePage:
    """The page of a host's thread whose events are given by name, start and duration in microseconds."""
    host = PlaneBuilder.alone("/host:CPU")
    thread = host.line("python")
    for name, start, duration in events:
        stats = {"step_num": start} if name == "train" else {"hlo_op": name} if name == "dot.1" else {}
        host.event(thread, host.event_id(name), start * US, duration * US, **stats)
    return latencies([summary_of(host.space).requests], ["host0"], is_training=False)


def spans(name: str, count: int, launches: bool = True) -> list[tuple[str, int, int]]:
    each = [[(name, 100 * at, 50 + at), (LAUNCH, 100 * at + 10, 5)] for at in range(count)]
    return [event for pair in each for event in pair[: 1 + launches]]


def test_spans_of_an_annotation_are_sessions_where_it_is_chosen() -> None:
    page = page_of(*spans("request", 45))
    assert page.source is None and [(offer.subject, offer.sessions) for offer in page.offers] == [("request", 45)]
    assert "request (45)" in page.note and page.chosen("other") is None and page.chosen(None) is page
    chosen = present(page.chosen("request"))
    assert (chosen.source, chosen.sessions, chosen.minimum_ps, chosen.maximum_ps) == (
        *("annotated spans", 45, 50 * US, 94 * US),
    )
    assert chosen.unknown["average.device_ms"] == NOT_LINKED and chosen.offers == page.offers
    assert chosen.hosts == ("host0",) and [row.name for row in chosen.rows] == ["request"]


@pytest.mark.parametrize(
    "events",
    [
        spans("request", 2),
        spans("answer", 9, launches=False),
        spans("train", 9),
        spans("dot.1", 9),
        spans("$server.py:9 answer", 9),
        spans("ExecuteReplicated.__call__", 9),
        spans("PjRtClient::Wrapper", 9),
    ],
    ids=["too few", "launches nothing", "step", "op", "Python", "JAX", "runtime"],
)
def test_what_is_no_request_is_not_offered(events: list[tuple[str, int, int]]) -> None:
    page = page_of(*events)
    assert page.offers == () and "Annotations" not in page.note


def test_of_spans_in_one_another_the_outermost_count() -> None:
    inside = [("request", 100 * at + 20, 10) for at in range(4)]
    assert [offer.sessions for offer in page_of(*spans("request", 4), *inside).offers] == [4]


def test_where_there_are_request_events_nothing_is_offered() -> None:
    assert latencies([read_requests(serving_profile(five_requests()))], ["host0"], False).offers == ()

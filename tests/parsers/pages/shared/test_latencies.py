"""Requests and module runs of made profiles whose latencies are known by hand, and what holds for any."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.build import PlaneBuilder, tpu_plane
from tests.support.made.serving import (
    LAUNCH,
    US,
    Request,
    five_requests,
    modules_profile,
    put,
    read_requests,
    serving_profile,
)
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.pages.shared import latencies as latency_page
from tpuprof.parsers.steps.requests.module_latency import ModuleLatency
from tpuprof.parsers.steps.requests.requests import HostRequests


def us(values: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[int]:
    return [value // US for value in values.tolist()]


def page_of(space: XSpace, is_training: bool | None = False) -> latency_page.InferencePage:
    return latency_page.latencies([read_requests(space)], ["host0"], is_training)


# --- requests ------------------------------------------------------------------------------------------------------


def test_of_several_kinds_of_request_events_the_first_counts() -> None:
    inner = [Request((1000, 1100)), Request((2000, 2100))]
    found = read_requests(serving_profile([*inner, *[Request((3000, 3050), name="TfrtModelRun")]]))
    assert found.event == "TfrtModelRun" and us(found.total_ps) == [50]


def test_request_events_that_nothing_links_are_latencies_without_parts() -> None:
    page = page_of(serving_profile(five_requests(is_root=None)))
    assert page.sessions == 5
    assert page.percentiles[0].latency == latency_page.Latency(130 * US, None, None, None)
    assert {page.unknown[f"average.{part}_ms"] for part in ("host", "device", "communication")} == {
        latency_page.NO_PARTS
    }


def test_nested_request_events_that_nothing_links_count_once() -> None:
    host = PlaneBuilder.alone("/host:CPU")
    line = host.line("server")
    put(host, line, "SessionRun", (0, 100))
    put(host, line, "RunGraph", (10, 90))
    put(host, line, "SessionRun", (200, 260))
    found = read_requests(host.space)
    assert us(found.total_ps) == [100, 60] and found.event == "SessionRun and RunGraph"


def test_a_request_that_runs_nothing_on_the_device_has_an_unknown_split() -> None:
    page = page_of(serving_profile([Request((1000, 1100)), Request((2000, 2200))]))
    assert page.average == latency_page.Latency(150 * US, None, None, None)
    assert page.unknown["average.device_ms"] == latency_page.NO_DEVICE_TIME
    assert page.unknown["percentiles[].host_ms"] == latency_page.NO_DEVICE_TIME


def test_without_transfer_events_host_time_has_them_and_says_so() -> None:
    page = page_of(serving_profile([Request((1000, 1100), runs=[(1020, 1060)])] * 1))
    assert page.average == latency_page.Latency(100 * US, 60 * US, 40 * US, None)
    assert page.unknown["average.communication_ms"] == latency_page.NO_TRANSFERS


def test_sessions_of_several_hosts_are_put_together() -> None:
    one, other = read_requests(serving_profile(five_requests())), read_requests(serving_profile(five_requests()[:1]))
    page = latency_page.latencies([one, other], ["a", "b"], None)
    assert page.sessions == 6 and page.hosts == ("a", "b")
    assert page.average is not None and page.average.total_ps == pytest.approx((650 + 110) / 6 * US)
    assert page.sessions_per_second == pytest.approx(5 / 4.15e-3)  # one request has no rate
    assert "is_training" in page.unknown


@pytest.mark.parametrize(("count", "places"), [(1, []), (4, [1.5, 3, 3, 3, 3]), (1000, [499.5, 750, 900, 990, 999])])
def test_percentiles_are_the_sessions_at_their_places(count: int, places: list[float]) -> None:
    requests = [Request((1000 * at, 1000 * at + 10 + at), models) for at, models in enumerate([()] * count, 1)]
    page = page_of(serving_profile(requests))
    assert [one.percentile for one in page.percentiles] == list(latency_page.PERCENTILES[: len(places)])
    assert [one.latency.total_ps for one in page.percentiles] == [(11 + place) * US for place in places]
    assert page.rows[0].percentiles_ps == tuple((11 + place) * US for place in places)


def test_few_sessions_are_said_to_be_few() -> None:
    note = page_of(serving_profile(five_requests())).note
    assert "With 5 sessions, percentiles from p90 up show the slowest one." in note
    many = serving_profile([Request((1000 * at, 1000 * at + 10 + at)) for at in range(1, 1001)])
    assert "slowest" not in page_of(many).note


# --- module runs ---------------------------------------------------------------------------------------------------


def module(space: XSpace, name: str) -> ModuleLatency:
    return next(one for one in read_requests(space).modules if one.name == name)


def test_run_ids_match_runs_where_a_core_lacks_some() -> None:
    runs = [("jit_f(3)", 100 * at, 100 * at + 60) for at in range(1, 7)]
    found = module(modules_profile([runs, [*runs[:2], *runs[3:]]], [range(6), (0, 1, 3, 4, 5)]), "jit_f(3)")
    assert us(found.start_ps) == [100, 200, 300, 400, 500, 600] and us(found.duration_ps) == [60] * 6


def test_a_core_whose_first_runs_are_missing_is_matched_from_the_end() -> None:
    runs = [("jit_f(3)", 100 * at, 100 * at + 60) for at in range(1, 7)]
    assert us(module(modules_profile([runs, runs[2:]]), "jit_f(3)").duration_ps) == [60] * 6


def test_cores_that_run_one_module_in_turn_run_by_themselves() -> None:
    runs = [[("jit_f(3)", 200 * at + shift, 200 * at + shift + 60) for at in range(1, 5)] for shift in (0, 100)]
    space = modules_profile(runs)
    found = module(space, "jit_f(3)")
    assert (found.cores, found.is_joined, len(found)) == (2, False, 8)
    assert us(found.duration_ps) == [60] * 8
    assert "each core's run counts by itself" in page_of(space).note


def test_bins_are_of_one_ratio_where_latencies_differ_much_and_one_where_they_do_not_differ() -> None:
    def bins_of(*lengths: int) -> tuple[latency_page.Bin, ...]:
        runs = [("jit_f(1)", 10_000 * at, 10_000 * at + length) for at, length in enumerate(lengths, 1)]
        return page_of(modules_profile([runs])).histogram

    wide = bins_of(10, 100, 1000)
    ratios = [each.high_ps / each.low_ps for each in wide]
    assert (
        ratios == pytest.approx([100 ** (1 / latency_page.BINS)] * latency_page.BINS)
        and sum(each.count for each in wide) == 3
    )
    assert bins_of(50, 50) == (latency_page.Bin(50 * US, 50 * US, 2),)


def test_a_launch_that_is_later_than_the_run_is_none() -> None:
    host = PlaneBuilder.alone("/host:CPU")
    put(host, host.line("main"), "DoEnqueueProgram", (500, 501), _pt=LAUNCH, _p=1)
    device = tpu_plane(host.space, 0, [("fusion.1", "loop fusion", 0, US)])
    put(device, device.line("XLA Modules"), "jit_f(1)", (100, 150), _ct=LAUNCH, _c=1)
    page = page_of(host.space)
    assert page.launches is None and page.unknown["launches"] == latency_page.NO_LAUNCH


# --- what holds for any --------------------------------------------------------------------------------------------

_NAMES = ["SessionRun", "RunGraph", "TfrtModelRun", "ProcessBatch", "ModelServerRequest_x", "x"]
_TIMES = st.integers(0, 400)
_SPANS = st.lists(st.tuples(_TIMES, st.integers(0, 80)).map(lambda pair: (pair[0], pair[0] + pair[1])), max_size=3)

_MODELS = st.sampled_from(["", "m:1", "m:2"])
_ANY_NAMES = st.sampled_from(_NAMES)
_ROOTS = st.sampled_from([None, -1, 0, 1, 2, 2**40])


@st.composite
def _requests(draw: st.DrawFn) -> Request:
    start = draw(_TIMES)
    return Request(
        span=(start, start + draw(st.integers(0, 200))),
        runs=draw(_SPANS),
        to_device=draw(_SPANS),
        from_device=draw(_SPANS),
        model=draw(_MODELS),
        name=draw(_ANY_NAMES),
        is_root=draw(_ROOTS),
    )


def check(page: latency_page.InferencePage) -> None:
    """What holds for every page."""
    assert page.sessions >= 0 and (page.source is None) == (page.sessions == 0)
    totals = [one.latency.total_ps for one in page.percentiles]
    assert totals == sorted(totals)
    every = [one.latency for one in page.percentiles] + ([page.average] if page.average else [])
    if page.launches is not None:
        launches = [one.latency for one in page.launches.percentiles]
        assert [one.total_ps for one in launches] == sorted(one.total_ps for one in launches)
        every += [*launches, page.launches.average]
    for latency in every:
        parts = [latency.host_ps, latency.device_ps, latency.communication_ps, latency.queued_ps]
        known = [part for part in parts if part is not None]
        assert all(part >= 0 for part in known)
        if latency.device_ps is not None:
            assert sum(known) == pytest.approx(latency.total_ps)
    for row in page.rows:
        assert 0 <= row.fraction <= 1 and row.runs > 0
        sizes = [row.minimum_ps, *row.percentiles_ps, row.maximum_ps]
        assert sizes == sorted(sizes) and bool(row.percentiles_ps) == (row.runs > 1)
    if page.rows:
        assert sum(row.fraction for row in page.rows) == pytest.approx(1)


@given(st.lists(_requests(), max_size=8), st.integers(1, 3))
def test_parts_add_up_for_any_requests(requests: list[Request], threads: int) -> None:
    found = read_requests(serving_profile(requests, threads=threads))
    assert len({len(getattr(found, one.name)) for one in fields(HostRequests) if one.name.endswith("_ps")}) == 1
    assert (found.total_ps > 0).all()
    check(latency_page.latencies([found], ["host0"], False))

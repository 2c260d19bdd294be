"""XProf's inference latency against ours.

XProf 2.24.2 was given each of these profiles in a folder of its own; the figures are those of its tool `overview_page`
(element 4 of the answer, host, device, communication and total in ms) and of `inference_profile` (throughput).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.made.serving import (
    Request,
    batching_profile,
    five_requests,
    issuing_profile,
    read_requests,
    serving_profile,
)
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.pages.shared.latencies import InferencePage, Latency, latencies

FIVE = (
    (0.079, 0.033, 0.018, 0.13),  # the average
    (0.079, 0.033, 0.018, 0.13),
    (0.087, 0.034, 0.019, 0.14),
    (0.095, 0.035, 0.02, 0.15),
    (0.095, 0.035, 0.02, 0.15),
    (0.095, 0.035, 0.02, 0.15),
)
BATCHES = (
    (0.263, 0.236, 0.015, 0.514),
    (0.155, 0.32, 0.015, 0.49),
    (0.165, 0.32, 0.015, 0.5),
    (0.645, 0.32, 0.015, 0.98),
    (0.645, 0.32, 0.015, 0.98),
    (0.645, 0.32, 0.015, 0.98),
)
ISSUES = ((0.175, 0.1, 0.025, 0.3),) * 6

PROFILES: dict[str, tuple[Callable[[], XSpace], tuple[tuple[float, ...], ...], float]] = {
    "no-models": (lambda: serving_profile(five_requests(models=False)), FIVE, 1204.8),
    "tfrt": (lambda: serving_profile(five_requests("TfrtModelRun", models=False)), FIVE, 1204.8),
    "serving": (lambda: serving_profile(five_requests("ServingModelRun", models=False)), FIVE, 1204.8),
    "server": (lambda: serving_profile(five_requests("ModelServerRequest_predict", models=False)), FIVE, 1204.8),
    "own": (lambda: serving_profile(five_requests("answer", is_root=-1, models=False)), FIVE, 1204.8),
    "batches": (batching_profile, BATCHES, 5000.0),
    "issues": (issuing_profile, ISSUES, 1212.1),
}
"""What XProf says of each profile: latencies, and sessions a second."""


def page_of(space: XSpace) -> InferencePage:
    return latencies([read_requests(space)], ["host0"], is_training=False)


def figures(latency: Latency | None) -> tuple[float, ...]:
    assert latency is not None
    parts = (latency.host_ps, latency.device_ps, latency.communication_ps, latency.total_ps)
    assert None not in parts
    return tuple(round((part or 0.0) / 1e9, 9) for part in parts)


@pytest.mark.parametrize("name", PROFILES)
def test_latencies_are_those_of_xprof(name: str) -> None:
    make, answer, per_second = PROFILES[name]
    page = page_of(make())
    assert [figures(page.average), *(figures(one.latency) for one in page.percentiles)] == [*answer]
    assert page.sessions_per_second is not None
    assert round(page.sessions_per_second, 1) == per_second


def test_several_models_count_alike_and_their_rates_do_not_add_up() -> None:
    page = page_of(serving_profile(five_requests()))
    assert [figures(one.latency) for one in page.percentiles] == list(FIVE[1:])
    assert [(row.name, row.runs) for row in page.rows] == [("m:1", 3), ("m:2", 2)]
    # XProf: 722.9 and 934.6 a second, 1657.5 together; yet five requests took 4.15 ms
    assert page.sessions_per_second == pytest.approx(5 / 4.15e-3)


def test_what_runs_on_after_a_request_is_not_its_time() -> None:
    """XProf counts all 100 µs of the run, so the host has 0 µs, and less where a transfer comes on top."""
    page = page_of(serving_profile([Request((1000, 1100), runs=[(1080, 1180)], from_device=[(1070, 1075)])]))
    assert figures(page.average) == (0.075, 0.02, 0.005, 0.1)

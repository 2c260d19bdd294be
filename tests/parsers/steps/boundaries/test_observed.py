"""How much of the capture a device works: what the profiler noted, what events show, and silence at either end."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.build import PlaneBuilder, summary_of, tpu_plane
from tpuprof.parsers.base.intervals import union
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.pages.overview.model import Overview
from tpuprof.parsers.pages.overview.overview import overview
from tpuprof.parsers.steps.boundaries.observed import Capture, Observed, Ran, capture_of

MS = 10**9
START_NS = 1_780_000_000_000_000_000


def page_of(start_ms: int, runs: int, run_ms: int, noted_ms: int, host: tuple[str, int, int] | None = None) -> Overview:
    """A core that runs a program back to back, in a capture of so many milliseconds; 0 where nobody noted them."""
    space = XSpace()
    spans = [((start_ms + run_ms * run) * MS, run_ms * MS) for run in range(runs)]
    modules = [("jit_f(7)", start, start + length) for start, length in spans]
    tpu_plane(space, 0, [("fusion.1", "convolution fusion", start, length) for start, length in spans], modules=modules)
    if host is not None:
        PlaneBuilder(space, "/host:CPU", 9).threads([[host]], MS)
    if noted_ms:
        environment = PlaneBuilder(space, "Task Environment", 10)
        environment.stat("profile_start_time", START_NS)
        environment.stat("profile_stop_time", START_NS + noted_ms * 10**6)
    return overview([summary_of(space)])


def test_a_late_start_is_idle_time_of_the_capture_and_the_host_says_why() -> None:
    page = page_of(8000, 20, 100, 10_000, ("restore_checkpoint", 5, 7955))
    metrics, environment = page.performance, page.environment
    assert (metrics.device_duty_cycle_percent, metrics.device_idle_percent) == pytest.approx((20, 80))
    assert (metrics.xprof_duty_cycle_percent, metrics.xprof_idle_percent) == pytest.approx((100, 0))
    found = (environment.first_op_ps, environment.last_op_ps, environment.silence_ps)
    assert found == (8000 * MS, 10_000 * MS, 8000 * MS) and environment.busy_between_percent == pytest.approx(100)
    silence = next(finding for finding in page.findings if finding.kind == "silence")
    assert silence.title == "No op for 8.00 s of 10.0 s captured while the host runs restore_checkpoint"
    assert "is in restore_checkpoint for 7.95 s" in silence.evidence[-1]


def test_a_server_with_little_work_is_not_on_duty() -> None:
    page = page_of(2000, 3, 1, 5000)
    assert page.performance.device_duty_cycle_percent == pytest.approx(100 * 3 / 5000)
    assert any(finding.kind == "silence" for finding in page.findings)


def test_a_noted_capture_that_events_contradict_does_not_count() -> None:
    page = page_of(8000, 20, 100, 1000, ("setup", 6000, 7000))
    assert page.environment.profile_duration_ps == 4000 * MS
    assert page.performance.device_duty_cycle_percent == pytest.approx(50)
    assert page_of(950, 1, 100, 1000).environment.profile_duration_ps == 1000 * MS


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(1, 20)), max_size=8))
def test_silence_is_the_longest_time_without_an_op(ops: list[tuple[int, int]]) -> None:
    starts, ends = (np.array(column, np.int64) for column in ([at for at, _ in ops], [at + long for at, long in ops]))
    busy = union(starts, ends)
    of = Observed("host0:0", Capture((0, 120), True), Ran.of(busy), int((busy[1] - busy[0]).sum()), 0)
    runs = [not any(at <= time < at + long for at, long in ops) for time in range(120)]
    longest = max(map(len, "".join("x" if idle else " " for idle in runs).split()), default=0)
    assert of.idle_ps == sum(runs)
    assert of.silence is None if not ops else of.silence is not None and of.silence[1] - of.silence[0] == longest


@given(st.integers(0, 80), st.integers(-1, 5), st.integers(-1, 5))
def test_what_is_noted_counts_unless_events_lie_a_20th_of_it_and_a_tenth_of_a_second_outside(
    noted: int, before: int, after: int
) -> None:
    unit = 50 * MS
    environment = PlaneBuilder.alone("Task Environment")
    environment.stat("profile_start_time", START_NS)
    environment.stat("profile_stop_time", START_NS + noted * unit // 1000)
    seen, far = (-before * unit, max(noted + after, 1 - before) * unit), max(noted / 20, 2)
    is_noted = noted > 0 and before <= far and seen[1] / unit <= noted + far
    span = (0, noted * unit) if is_noted else seen
    assert capture_of(environment.read(), [(5, 5), seen]) == Capture(span, is_noted)
    assert capture_of(environment.read(), [(5, 5)]) == (Capture((0, noted * unit), True) if noted else None)

"""Launches: clocks that run ahead of the host's, and steps that the host's annotations number."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.support.build import PlaneBuilder, tpu_plane, trace_of
from tests.support.host_events import read_host
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.hosts.summary import HostSummary, summarise
from tpuprof.parsers.ops.device import is_tensor_core
from tpuprof.parsers.pages.overview.overview import overview
from tpuprof.parsers.steps.boundaries.runs import module_runs
from tpuprof.parsers.steps.launches import ClockLead, Launches, clock_lead
from tpuprof.parsers.steps.requests.requests import REQUEST_STATS

US = 1_000_000  # picoseconds
RUNS = 6
PERIOD = 10_000  # microseconds


def launched(
    ahead: float, late: float | None = 40.0, numbers: Sequence[int] = (), busy: float = 6000.0, runs: int = RUNS
) -> Trace:
    """A host that launches a run every 10 ms and writes a log for 3 ms of it; times in microseconds.

    Args:
        ahead: how far the device's clock is ahead. The run starts 50 after its launch.
        late: when the host hears of the end of a run; None where nothing says so.
        numbers: the step that each launch belongs to; none for no annotations.
    """
    device = tpu_plane(XSpace(), 0, [])
    modules, ops = device.line("XLA Modules"), device.line("XLA Ops")
    module = device.event_id("jit_step(7)")
    op = device.event_id("%fusion.1 = f32[8] fusion()", "fusion.1", hlo_category="loop fusion")
    host = PlaneBuilder(device.space, "/host:CPU", 9)
    thread, python = host.line("py_xla_execute/2"), host.line("python/1")
    for run in range(runs):
        begin = (run + 1) * PERIOD
        launch = {"run_id": run, "device_ordinal": 0}
        host.event(thread, host.event_id("DoEnqueueProgram"), begin * US, 9 * US, **launch)
        start, length = round((begin + 50 - ahead) * US), round(busy * US)
        device.event(modules, module, start, length, run_id=run)
        device.event(ops, op, start, length)
        if late is not None:
            done = round((begin + 50 + busy + late) * US)
            host.event(thread, host.event_id("tpu::System::Execute=>Done"), done, US, **launch)
        host.event(python, host.event_id("$log.py:7 write"), round((begin + 50 + busy) * US), 3_900 * US)
        if numbers:
            host.event(python, host.event_id("train"), (begin - 20) * US, 300 * US, step_num=numbers[run])
    return trace_of(device.space)


def lead_of(trace: Trace) -> ClockLead | None:
    launches = Launches.of(read_host(trace, REQUEST_STATS))
    return clock_lead([launches.of_runs(module_runs(plane)) for plane in trace.planes if is_tensor_core(plane)])


def summary(trace: Trace) -> HostSummary:
    return summarise(trace, "host0")


def test_a_clock_that_runs_ahead_is_told_by_launches_and_ends() -> None:
    """Runs start 600 before their launch and end 690 before the host hears of it: the truth, 650, lies between."""
    found = lead_of(launched(650))
    assert found == ClockLead(600 * US, 690 * US)
    assert found.shift_ps == 645 * US
    assert lead_of(launched(650, late=None)) == ClockLead(600 * US, None)


@pytest.mark.parametrize(("ahead", "late"), [(0.0, 40.0), (40.0, 40.0), (55.0, 40.0), (650.0, -700.0)])
def test_clocks_that_may_agree_or_whose_bounds_contradict_each_other_are_left_alone(ahead: float, late: float) -> None:
    assert lead_of(launched(ahead, late)) is None


def test_what_the_host_did_in_a_gap_is_looked_up_on_its_own_clock() -> None:
    """Device gaps of 4 ms, a second ahead of the log's 3.9 ms: without the shift it would be in none of them."""
    ahead = summary(launched(5_000))
    assert ahead.idle is not None
    first = ahead.idle.activities[0]
    assert first.name == "$log.py:7 write"
    assert first.overlap_ps >= 0.9 * ahead.idle.gap_ps
    assert ahead.clocks[-1].startswith(
        "the devices' clocks run ahead of the host's, by at least 4.95 and at most 5.04 ms"
    )
    assert not summary(launched(0)).clocks
    assert overview([ahead]).warnings[-1] == ahead.clocks[-1]
    waits = ahead.requests.modules[0]
    assert len(waits.launched) == RUNS and waits.wait_ps.max() < 100 * US


def test_step_num_numbers_the_steps_where_no_steps_line_does() -> None:
    page = overview([summary(launched(0, numbers=[40, 41, 41, 42, 43, 44]))])
    assert [step.name for step in page.steps] == ["41", "42", "43", "44"]
    assert [step.duration_ps for step in page.steps] == [2 * 10**10, 10**10, 10**10, 10**10]
    assert page.performance.step_time is not None
    assert page.performance.step_time.note.startswith(
        "no Steps line: a step is taken as the time from the end of the last run that"
    )


def test_no_step_advice_for_what_the_profile_has() -> None:
    """All runs are of one step, so there is none to measure: the advice is to mark steps only where none are."""
    for numbers, advice in (([1] * 2, "Profile for longer: the capture holds too few"), ([], "Mark steps with ")):
        one = summary(launched(0, numbers=numbers, runs=2))
        assert one.has_step_numbers == bool(numbers)
        page = overview([one])
        assert not page.steps
        assert page.bottleneck.next_steps[0].startswith(advice)
        assert page.bottleneck.statement.startswith("Whether it waits for input is unknown: no Steps line")

"""The overview of profiles with GPUs: XProf 2.24.2's answers for two real ones, and the verdict's thresholds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.build import present, summary_of, trace_of
from tests.support.gpus import cpu_profile, gpu_profile
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.hosts.summary import summarise
from tpuprof.parsers.pages.overview.generic_overview import generic_overview
from tpuprof.parsers.pages.overview.model import Overview
from tpuprof.parsers.pages.overview.overview import ledger_of, overview
from tpuprof.parsers.steps.boundaries.observed import Ran
from tpuprof.parsers.steps.generic.step_events import DeviceBusy, GenericStep, GenericSummary
from tpuprof.parsers.steps.model import GenericBreakdown

MS = 1_000_000_000


def page_with(gpu: GenericSummary) -> Overview:
    """A page of one host."""
    empty = XSpace()
    empty.planes.add(name=b"/host:CPU").lines.add(name=b"main")
    summary = summarise(trace_of(empty), "host0")
    return generic_overview([replace(summary, generic=gpu)])


def test_which_gpus_worked() -> None:
    step = GenericStep("0", 0, 0, 100 * MS, GenericBreakdown(60 * MS, 0, 0, 11 * MS, 0, 0))
    ran = Ran((0, 90 * MS), (0, 0))
    busy = (DeviceBusy(0, 0, None, 0), DeviceBusy(1, 5 * MS, ran, 0), DeviceBusy(4, 60 * MS, ran, 0))
    warnings = page_with(GenericSummary(3, "GPU", (step,), busy=busy)).warnings
    assert any(
        "2 of 3 GPUs ran something: host0:4, host0:1, the one with most time first" in words for words in warnings
    )
    warnings = page_with(GenericSummary(2, "GPU", (), busy=busy[1:])).warnings
    assert not any("GPU" in words for words in warnings)


@pytest.mark.parametrize("steps", [3, 30])
def test_beside_a_host_with_gpus_the_steps_of_one_without_do_not_count(steps: int) -> None:
    beside = cpu_profile(steps, [("load", 0, 10)], [("dot.1", 20, 80)], hlo=True, has_runs=True)
    summaries = [summary_of(gpu_profile(8), "gpus"), summary_of(beside, "cpu")]
    page, account = overview(summaries), present(ledger_of(summaries))
    assert account.core_names == ("gpus:0",) and page.performance.step_time is not None
    assert present(page.account).step_ps == account.mean_step_ps
    assert page.environment.device_type == "Nvidia GPU (Ampere)"

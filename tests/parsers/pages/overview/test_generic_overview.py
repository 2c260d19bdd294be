"""The overview of profiles with GPUs: XProf 2.24.2's answers for two real ones, and the verdict's thresholds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.build import session_at, trace_of
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.hosts.summary import summarise
from tpuprof.parsers.pages.input.model import InputPipelinePage
from tpuprof.parsers.pages.overview.generic_overview import generic_overview
from tpuprof.parsers.pages.overview.model import Overview
from tpuprof.parsers.session.pages import INPUT, OVERVIEW
from tpuprof.parsers.steps.generic.step_events import GenericStep, GenericSummary, GpuBusy
from tpuprof.parsers.steps.model import GenericBreakdown

MS = 1_000_000_000


def opened(path: Path) -> tuple[Overview, InputPipelinePage]:
    session = session_at(path)
    return session.page(OVERVIEW), session.page(INPUT)


@pytest.mark.shared
def test_a_tensorflow_program_on_v100s(shared: Path) -> None:
    page, waits = opened(shared / "profiles/gpu-v100-bert")
    (step,) = page.steps
    assert isinstance(step.breakdown, GenericBreakdown)
    assert (step.name, step.duration_ps) == ("0", 21_310_352_000)
    assert (step.breakdown.device_compute_ps, step.breakdown.all_other_ps) == (14_865_363_000, 479_230_000)
    assert page.performance.bits16_percent == pytest.approx(30.5, abs=0.05)
    assert page.performance.bits32_percent == pytest.approx(69.5, abs=0.05)
    assert (page.environment.device_type, page.environment.device_core_count) == ("GPU", 8)
    assert page.performance.host_op_percent == pytest.approx(81.6, abs=0.05)  # XProf knows no op of the GPUs
    assert page.performance.eager_device_percent == 0.0
    assert page.bottleneck.classification == "both"
    assert "11.3% of step time waits for input or copies it. 16.7% is launching kernels" in page.bottleneck.statement
    assert waits.infeed_percent is not None and waits.infeed_percent.average == pytest.approx(11.3, abs=0.05)
    assert page.unknown["performance.device_duty_cycle_percent"] == "computed for TPUs only, and these are GPUs"


@pytest.mark.shared
def test_a_jax_program_on_mi300s_without_steps(shared: Path) -> None:
    page, _ = opened(shared / "profiles/gpu-mi300-jax")
    assert page.environment.device_type == "AMD GPU - gfx942"
    assert [op.name for op in page.top_ops][:2] == ["jit(matmul)/dot_general", "loop_convert_fusion"]
    assert page.top_ops[0].self_time_ps == 1_890_040_000
    own = sum(op.self_time_ps for op in page.top_ops if op.name != "__amd_rocclr_copyBuffer")  # no op for XProf
    assert 100 * page.top_ops[0].self_time_ps / own == pytest.approx(50.22691989002398, rel=1e-12)
    assert page.top_ops[-1].cumulative_percent == pytest.approx(100.0, rel=1e-12)
    assert page.performance.device_op_percent == pytest.approx(29.3, abs=0.05)
    assert page.performance.step_time is None and "nothing marks steps" in page.unknown["performance.step_time_ms"]
    assert page.bottleneck.classification == "unknown"


def page_of(*, compute: int, input_: int = 0, other: int = 0, collectives: int = 0, steps: int = 1) -> Overview:
    """A page whose steps have these parts, in percent."""
    each = [
        GenericStep(
            name=str(at),
            group_id=at,
            start_ps=at * 100 * MS,
            duration_ps=100 * MS,
            breakdown=GenericBreakdown(compute * MS, 0, collectives * MS, input_ * MS, 0, other * MS),
        )
        for at in range(steps)
    ]
    return page_with(GenericSummary(2, "GPU", tuple(each), 0, 0, compute * MS, None))


def page_with(gpu: GenericSummary) -> Overview:
    """A page of one host."""
    empty = XSpace()
    empty.planes.add(name=b"/host:CPU").lines.add(name=b"main")
    summary = summarise(trace_of(empty), "host0")
    return generic_overview([replace(summary, generic=gpu)])


def test_of_launching_and_input_the_larger_comes_first() -> None:
    step = GenericStep("0", 0, 0, 100 * MS, GenericBreakdown(60 * MS, 0, 0, 11 * MS, 0, 0, kernel_launch_ps=17 * MS))
    assert (
        page_with(GenericSummary(1, "GPU", (step,), 0, 0, 0, None))
        .bottleneck.next_steps[0]
        .startswith("Reduce the time to launch kernels first")
    )
    assert page_of(compute=89, input_=11).bottleneck.next_steps == ("Reduce the input time first.",)


def test_which_gpus_worked() -> None:
    step = GenericStep("0", 0, 0, 100 * MS, GenericBreakdown(60 * MS, 0, 0, 11 * MS, 0, 0))
    busy = (GpuBusy(0, 0, 0), GpuBusy(1, 5 * MS, 90 * MS), GpuBusy(4, 60 * MS, 90 * MS))
    warnings = page_with(GenericSummary(3, "GPU", (step,), 0, 0, 0, None, busy)).warnings
    assert any(
        "2 of 3 GPUs ran something: host0:4, host0:1, the one with most time first" in words for words in warnings
    )
    warnings = page_with(GenericSummary(2, "GPU", (), 0, 0, 0, None, busy[1:])).warnings
    assert not any("GPU" in words for words in warnings)


@pytest.mark.parametrize(
    ("parts", "kind", "words"),
    [
        ({"compute": 80, "input_": 20}, "host", "highly input-bound: 20.0%"),
        ({"compute": 95, "input_": 5}, "both", "moderately input-bound: 5.0%"),
        ({"compute": 93, "input_": 4, "other": 3}, "both", "may be input-bound: 3.0%"),
        ({"compute": 94, "input_": 4, "other": 2}, "device", "not input-bound: only 4.0%"),
        ({"compute": 90, "collectives": 10}, "device", "10.0% is collective communication"),
    ],
)
def test_the_verdict_has_xprofs_thresholds(parts: dict[str, int], kind: str, words: str) -> None:
    bottleneck = page_of(**parts).bottleneck
    assert bottleneck.classification == kind
    assert words in bottleneck.statement
    assert bottleneck.input_percent == parts.get("input_", 0)

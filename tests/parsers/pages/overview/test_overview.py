"""The overview page as a whole: what is unknown says why, what is known adds up."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.build import PlaneBuilder, bare_host, tpu_plane, trace_of
from tests.support.made.pages import JSON_KEY
from tests.support.made.serving import five_requests, serving_profile
from tpuprof.parsers.base.op_class import OP_CLASSES
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.hosts.summary import summarise
from tpuprof.parsers.pages.overview.model import Overview, Performance
from tpuprof.parsers.pages.overview.overview import overview


def page(space: XSpace, host: str = "host0") -> Overview:
    return overview([summarise(trace_of(space), host)])


def check_unknown(result: Overview) -> None:
    """Every `None` has a reason, and nothing known has one."""
    none = {
        f"performance.{JSON_KEY.get(name, name)}"
        for name in Performance.__dataclass_fields__
        if getattr(result.performance, name) is None
    }
    none |= {
        f"bottleneck.{name}"
        for name in ("input_percent", "output_percent", "idle_percent")
        if getattr(result.bottleneck, name) is None
    }
    environment = result.environment
    none |= {"environment.device_type"} if environment.device_type is None else set()
    none |= {"environment.is_training"} if environment.is_training is None else set()
    none |= {"environment.profile_start_time"} if environment.profile_start_ns is None else set()
    none |= {"environment.profile_duration_ms"} if environment.profile_duration_ps is None else set()
    assert set(result.unknown) == none
    assert all(reason.strip() for reason in result.unknown.values())


def test_a_cpu_profile_says_that_there_is_no_device() -> None:
    result = page(bare_host())
    check_unknown(result)
    assert result.shares == () and result.top_ops == () and result.steps == ()
    assert result.unknown["performance.device_duty_cycle_percent"] == "no device plane in this profile"
    assert any("no device plane on host0" in warning for warning in result.warnings)


def test_a_device_plane_without_ops_and_without_stats() -> None:
    space = XSpace()
    PlaneBuilder(space, "/device:TPU:0").line("XLA Ops")
    result = page(space)
    check_unknown(result)
    assert result.environment.device_core_count == 1
    assert result.unknown["environment.device_type"] == "the device plane does not name its device"


def test_peaks_of_zero_leave_utilization_unknown() -> None:
    plane = PlaneBuilder.alone("/device:TPU:0")
    plane.stat("peak_teraflops_per_second", 0.0)
    metadata = plane.event_id("%a = f32[] a()", "a", program_id=1, symbol_id=1, flops=10, hlo_category="copy")
    plane.event(plane.line("XLA Ops"), metadata, 0, 10)
    result = page(plane.space)
    check_unknown(result)
    assert result.performance.flops_utilization_percent is None
    assert "no peak" in result.unknown["performance.flops_utilization_percent"]


def test_training_is_told_by_gradient_scopes() -> None:
    space = XSpace()
    names = {"a": "jit(step)/jvp(mlp)/dot_general:", "b": "jit(step)/transpose(jvp(mlp))/dot_general:"}
    tpu_plane(space, 0, [("a", "convolution", 0, 5), ("b", "convolution", 5, 5)], framework_ops=names)
    result = page(space)
    check_unknown(result)
    assert result.environment.is_training is True


def test_ops_of_one_framework_name_are_one_row() -> None:
    space = XSpace()
    names = {"a": "jit(f)/add:", "b": "jit(f)/add:"}
    ops = [("a", "loop fusion", 0, 30), ("b", "copy", 30, 20), ("c", "copy", 50, 50), ("a", "loop fusion", 100, 30)]
    tpu_plane(space, 0, ops, framework_ops=names)
    first, second = page(space).top_ops
    assert (first.name, first.category, first.self_time_ps, first.occurrences) == ("jit(f)/add", "add", 80, 2)
    assert first.op_class == "vector"  # most of its time
    assert (second.name, second.category, second.self_time_ps) == ("c", "Unknown", 50)
    assert first.gflops_per_second == pytest.approx(3000 / 0.08)
    assert second.cumulative_percent == pytest.approx(100.0)


def test_simulated_times_are_marked() -> None:
    space = XSpace(warnings=[b"times are simulated"])
    tpu_plane(space, 0, [("a", "copy", 0, 5)])
    PlaneBuilder(space, "Task Environment").stat("tpuprof_simulated", 1)
    result = page(space)
    assert result.environment.simulated
    assert "the profiler reports: times are simulated" in result.warnings


def test_duty_cycle_leaves_waiting_out_and_joins_the_cores_of_a_chip() -> None:
    space = XSpace()
    for ordinal, ops in enumerate(
        [[("infeed.1", "infeed", 0, 40), ("a", "copy", 40, 20)], [("a", "copy", 50, 40), ("b", "copy", 95, 5)]]
    ):
        tpu_plane(space, ordinal, ops).stat("core_details", b"\x20\x03")
    assert page(space).performance.device_duty_cycle_percent == pytest.approx(100 * (90 - 40 + 5) / 100)


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 40), st.sampled_from(["copy", "infeed", "x"])), max_size=20)
)
def test_shares_add_up_to_the_cores_time(spec: list[tuple[int, int, str]]) -> None:
    ops, at = [], 0
    for gap, duration, category in spec:
        ops.append((category, category, at + gap, duration))
        at += gap + duration
    result = page(tpu_plane(XSpace(), 0, ops).space)
    check_unknown(result)
    if not ops:
        assert result.shares == ()
        return
    assert sum(share.fraction for share in result.shares) == pytest.approx(1.0)
    assert sum(share.time_ps for share in result.shares) == ops[-1][2] + ops[-1][3] - ops[0][2]
    order = [OP_CLASSES.index(share.op_class) for share in result.shares]
    assert order == sorted(order)
    assert result.top_ops[-1].cumulative_percent == pytest.approx(100.0)
    assert result.performance.device_idle_percent == pytest.approx(
        100 * sum(share.fraction for share in result.shares if share.op_class == "idle")
    )


def test_a_slow_step_among_steady_ones_is_pointed_at() -> None:
    ends = [0, 100, 200, 300, 480, 580, 680]
    space = XSpace()
    tpu_plane(space, 0, [("a", "copy", 0, 600)], steps=[(str(n), a, b) for n, (a, b) in enumerate(pairwise(ends))])
    assert any("Step 3 takes 1.80 times the median" in advice for advice in page(space).bottleneck.next_steps)


def test_steps_that_differ_all_the_time_have_no_slow_one() -> None:
    space = XSpace()
    steps = [(str(n), n * 300, n * 300 + (100 if n % 2 else 200)) for n in range(8)]
    tpu_plane(space, 0, [("a", "copy", 0, 600)], steps=steps)
    assert not any("times the median" in advice for advice in page(space).bottleneck.next_steps)


def test_steps_without_any_op_say_so() -> None:
    plane = PlaneBuilder.alone("/device:TPU:0")
    line = plane.line("Steps")
    for n in range(3):
        plane.event(line, plane.event_id(str(n)), n * 100, 90)
    result = page(plane.space)
    check_unknown(result)
    assert len(result.steps) == 3
    assert "no op events" in result.bottleneck.statement


# --- programs that serve


def runs_profile(name: str, scope: str | None = None, steps: bool = False, cores: int = 1) -> XSpace:
    """Five runs of a module on each core, with one of another module on the first."""
    space = XSpace()
    for ordinal in range(cores):
        runs = [(f"{name}(9)", n * 100, n * 100 + 70) for n in range(5)]
        more = [("jit_init(1)", 700, 700 + 350)] if ordinal == 0 else []
        marks = [(str(n), n * 100, n * 100 + 100) for n in range(5)] if steps else []
        ops = [("f", "loop fusion", n * 100, 50) for n in range(5)]
        tpu_plane(space, ordinal, ops, marks, [*runs, *more], {"f": scope} if scope else None)
    return space


@pytest.mark.parametrize(
    ("name", "scope", "steps", "infers", "serves"),
    [
        ("jit_f", "jit(f)/mul", False, True, True),
        ("jit_f", "jit(f)/mul", True, True, False),
        ("jit_f", None, False, False, False),
        ("jit_decode", None, False, True, True),
        ("jit_decode", None, True, False, False),
        ("jit_f", "jit(f)/transpose(jvp(f))/mul", False, False, False),
    ],
)
def test_latencies_go_before_steps_where_a_program_serves(
    name: str, scope: str | None, steps: bool, infers: bool, serves: bool
) -> None:
    result = page(runs_profile(name, scope, steps))
    assert result.inference is not None
    assert (result.infers, result.serves) == (infers, serves)


def test_requests_go_before_marked_steps() -> None:
    result = page(serving_profile(five_requests()))
    assert result.inference is not None and result.inference.source == "requests" and result.serves


def test_the_overview_and_the_latencies_say_the_same_of_a_module_s_share() -> None:
    result = page(runs_profile("jit_decode", cores=2))
    time, latencies = result.performance.step_time, result.inference
    assert time is not None and latencies is not None
    assert latencies.modules[0].fraction == pytest.approx(700 / 1050)
    assert "jit_decode takes 66.7% of the modules' time, over all cores" in time.note
    assert "jit_decode, the module with the most time (66.7% of the modules' time, over all cores)" in latencies.note


def test_the_mean_step_s_parts_and_when_it_began() -> None:
    space = runs_profile("jit_f", steps=True)
    PlaneBuilder(space, "Task Environment", 50).stat("profile_start_time", 1_763_700_000_000_000_000)
    result = page(space)
    parts = {part.name: part for part in result.step_parts}
    assert (parts["compute"].average_ps, parts["compute"].standard_deviation_ps) == (50, 0)
    assert parts["idle"].fraction == pytest.approx(0.5)
    assert result.environment.profile_start_ns == 1_763_700_000_000_000_000
    assert page(runs_profile("jit_f")).environment.profile_start_ns is None

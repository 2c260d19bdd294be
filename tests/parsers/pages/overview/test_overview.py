"""The overview page as a whole: what is unknown says why, what is known adds up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.build import PlaneBuilder, bare_host, tpu_plane, trace_of
from tpuprof.parsers.base.op_class import OP_CLASSES
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.hosts.summary import summarise
from tpuprof.parsers.pages.overview.model import PERFORMANCE_KEYS, Overview, Performance
from tpuprof.parsers.pages.overview.overview import overview


def page(space: XSpace, host: str = "host0") -> Overview:
    return overview([summarise(trace_of(space), host)])


def check_unknown(result: Overview) -> None:
    """Every `None` has a reason, and nothing known has one."""
    none = {
        f"performance.{PERFORMANCE_KEYS.get(name, name)}"
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
    of_ops = (("first_op", "first_op_ps"), ("last_op", "last_op_ps"), ("longest_silence", "silence_ps"))
    none |= {f"environment.{key}_ms" for key, name in of_ops if getattr(environment, name) is None}
    none |= {"environment.busy_between_percent"} if environment.busy_between_percent is None else set()
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


@given(st.integers(1, 120))
def test_layers_are_rows_while_each_has_its_share_and_clones_where_none_has(layers: int) -> None:
    plane = PlaneBuilder.alone("/device:TPU:0")
    line = plane.line("XLA Ops")
    for layer in range(layers):
        for place, op in enumerate(("dot", "add")):
            stats = {"tf_op": f"jit(f)/layer_{layer}/{op}", "hlo_category": op}
            plane.event(
                line,
                plane.event_id(f"%{op}.{layer} = f32[] {op}()", f"{op}.{layer}", **stats),
                100 * layer + 50 * place,
                20,
            )
    top = page(plane.space).top_ops
    times = [op.self_time_ps for op in top]
    if 2 * layers <= 50:  # each op has 2 % and more
        assert {op.clones for op in top} == {1} and len(top) == min(10, 2 * layers)
    else:
        assert [(op.clones, op.occurrences, op.hlo_category) for op in top] == [
            (layers, layers, "add"),
            (layers, layers, "dot"),
        ]
        assert sum(times) == 40 * layers and top[-1].cumulative_percent == pytest.approx(100.0)
    assert times == sorted(times, reverse=True) and all(op.name.startswith("jit(f)/layer_") for op in top)


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


def test_the_overview_and_the_latencies_say_the_same_of_a_module_s_share() -> None:
    result = page(runs_profile("jit_decode", cores=2))
    time, latencies = result.performance.step_time, result.inference
    assert time is not None and latencies is not None
    assert latencies.modules[0].fraction == pytest.approx(700 / 1050)
    assert "jit_decode takes 66.7% of module time on these cores" in time.note
    assert "one run of jit_decode, from its" in latencies.note
    assert "it takes the most time (66.7% of module time, over all cores)" in latencies.note


def test_the_mean_step_s_parts_and_when_it_began() -> None:
    space = runs_profile("jit_f", steps=True)
    PlaneBuilder(space, "Task Environment", 50).stat("profile_start_time", 1_763_700_000_000_000_000)
    result = page(space)
    parts = {part.name: part for part in result.step_parts}
    assert (parts["compute"].average_ps, parts["compute"].standard_deviation_ps) == (50, 0)
    assert parts["idle"].fraction == pytest.approx(0.5)
    assert result.environment.profile_start_ns == 1_763_700_000_000_000_000
    assert page(runs_profile("jit_f")).environment.profile_start_ns is None

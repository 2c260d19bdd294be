"""The headline figures: the host's and the device's, of hand-known profiles, and why they are unknown."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.pages.findings.build import modules
from tests.support.build import OpSpec, PlaneBuilder, StatInput, summary_of, tpu_plane
from tpuprof.parsers.base.words import NO_HOST_OPS
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.pages.overview.model import Overview, Performance
from tpuprof.parsers.pages.overview.overview import overview
from tpuprof.parsers.pages.overview.performance import NO_EAGER

HostEvent = tuple[str, int, int, dict[str, StatInput]]
"""Name, start, end and stats."""


def page(
    *threads: Sequence[HostEvent],
    ops: Sequence[OpSpec] = (("f", "loop fusion", 0, 100),),
    framework_ops: dict[str, str] | None = None,
    programs: Sequence[HloModules] = (),
) -> Overview:
    """The overview of one core with such ops and a host with such threads."""
    space = tpu_plane(XSpace(), 0, ops, framework_ops=framework_ops).space
    PlaneBuilder(space, "/host:CPU", 9).threads(threads)
    return overview([summary_of(space)], programs)


# --- the host ------------------------------------------------------------------------------------------------------


def test_ops_are_placed_by_how_often_they_run() -> None:
    names = {"a": "jit(f)/add:", "b": "jit(f)/add:", "c": "jit(f)/mul:"}
    ops = [(name, "loop fusion", at * 10, 10) for at, name in enumerate("aabbbc")]
    host: list[HostEvent] = [("x:MatMul", at, at + 1, {}) for at in range(6)]
    performance = page(host, ops=ops, framework_ops=names).performance
    # of an op's HLO ops the most frequent counts: add three times, mul once
    assert performance.host_op_percent == pytest.approx(100 * 6 / (6 + 3 + 1))
    assert performance.device_op_percent == pytest.approx(100 * 4 / (6 + 3 + 1))


def test_eager_time_is_self_time_of_marked_ops() -> None:
    marked: list[HostEvent] = [("a:A", 0, 60, {"is_eager": 1}), ("b:B", 20, 50, {"is_eager": 0})]
    found = page(marked)
    assert found.performance.eager_host_percent == pytest.approx(50.0)
    assert found.performance.eager_device_percent is None
    assert found.unknown["performance.eager_percent.device"] == NO_EAGER
    assert page([("a:A", 0, 60, {"is_eager": 0})]).performance.eager_host_percent == 0.0


def test_ops_that_do_not_say_whether_they_are_eager_leave_it_unknown() -> None:
    found = page([("a:A", 0, 60, {})])
    assert found.performance.eager_host_percent is None
    assert found.unknown["performance.eager_percent.host"] == NO_EAGER


@pytest.mark.parametrize(
    "events",
    [
        [],
        [("an annotation", 0, 10, {})],
        [("allocate", 0, 10, {"tf_op": "dummy"}), ("free", 20, 30, {"tf_op": "dummy"})],
    ],
    ids=["no events", "no ops", "the allocator's placeholders"],
)
def test_a_host_without_framework_ops_leaves_its_figures_unknown(events: list[HostEvent]) -> None:
    found = page(events)
    performance = found.performance
    for key, value in {
        "host_idle_percent": performance.host_idle_percent,
        "op_placement.host_percent": performance.host_op_percent,
        "op_placement.device_percent": performance.device_op_percent,
        "eager_percent.host": performance.eager_host_percent,
    }.items():
        assert value is None
        assert found.unknown[f"performance.{key}"] == NO_HOST_OPS


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 30), st.sampled_from([None, 0, 1])), max_size=10))
def test_percentages_are_percentages(spec: list[tuple[int, int, int | None]]) -> None:
    events: list[HostEvent] = []
    end = 0
    for at, (gap, length, eager) in enumerate(spec):
        start, end = end + gap, end + gap + length
        stats: dict[str, StatInput] = {} if eager is None else {"is_eager": eager}
        events += [(f"op{at % 3}:A", start, end, stats), ("inside:B", start + length // 2, end, {})]
    found = page(events)
    values = {name: getattr(found.performance, name) for name in Performance.__dataclass_fields__ if "percent" in name}
    none = {name for name, value in values.items() if value is None}
    # the core's bytes are more than it could move in the time
    beyond = {"memory_bandwidth_utilization_percent", "roofline_efficiency_percent"}
    assert all(0 <= value <= 100 for name, value in values.items() if name not in none | beyond)
    placed = (found.performance.host_op_percent, found.performance.device_op_percent)
    assert placed == (None, None) if not spec else sum(filter(None, placed)) == pytest.approx(100)
    assert len([key for key in found.unknown if key.startswith("performance.")]) == len(none) + 1  # and the step time


# --- the device ----------------------------------------------------------------------------------------------------


def test_utilizations_are_work_by_time_and_peak() -> None:
    # 1000 FLOPs and 500 bytes an op in 50 ps of 400, against 100 TFLOP/s and 1000 GB/s
    ops = [("f", "loop fusion", at * 100, 50) for at in range(4)]
    ops.append(("g", "loop fusion", 390, 10))
    performance = page(ops=ops).performance
    assert performance.flops_utilization_percent == pytest.approx(100 * 5000 / 400e-12 / 100e12)
    assert performance.memory_bandwidth_utilization_percent == pytest.approx(100 * 2500 / 400e-12 / 1000e9)
    assert performance.roofline_efficiency_percent == performance.memory_bandwidth_utilization_percent
    assert performance.device_idle_percent == pytest.approx(100 * 190 / 400)
    assert performance.device_duty_cycle_percent == pytest.approx(100 * 210 / 400)


def test_ops_that_hold_others_add_no_work() -> None:
    performance = page(ops=[("while.1", "while", 0, 100), ("f", "loop fusion", 10, 80)]).performance
    assert performance.flops_utilization_percent == pytest.approx(100 * 1000 / 100e-12 / 100e12)


def test_counters_of_the_host_plane_are_means_of_the_hosts_that_have_them() -> None:
    summaries = []
    for at, (matrix_unit, hbm) in enumerate([(30.0, 101.0), (50.0, None), (None, None)]):
        space = tpu_plane(XSpace(), 0, [("f", "loop fusion", 0, 40)]).space  # which needs 25 % of the peak
        plane = PlaneBuilder(space, "/host:CPU", 9)
        if matrix_unit is not None:
            plane.stat("matrix_unit_utilization_percent", matrix_unit)
        if hbm is not None:
            plane.stat("hbm_utilization_percent", hbm)
        summaries.append(summary_of(space, f"host{at}"))
    found = overview(summaries)
    assert found.performance.mxu_utilization_percent == pytest.approx(40.0)
    assert found.performance.hbm_utilization_percent is None  # more than all of it is no share
    assert "no HBM counters" in found.unknown["performance.hbm_utilization_percent"]


@pytest.mark.parametrize("category", ["loop fusion", "convolution fusion"])
def test_a_counter_of_the_matrix_units_is_refused_where_flops_that_ran_on_them_contradict_it(category: str) -> None:
    space = tpu_plane(XSpace(), 0, [("f", category, 0, 40)]).space
    PlaneBuilder(space, "/host:CPU", 9).stat("matrix_unit_utilization_percent", 0.0)
    found = overview([summary_of(space, "host0")])
    assert found.performance.flops_utilization_percent == pytest.approx(25.0)
    why = found.unknown.get("performance.mxu_utilization_percent")
    if category == "loop fusion":
        assert (found.performance.mxu_utilization_percent, why) == (0.0, None)
        return
    assert found.performance.mxu_utilization_percent is None
    assert why == (
        "the host's counter of the matrix units says 0.0%, and the FLOPs that ran on them need 25.0%: it is refused"
    )


# --- precision -----------------------------------------------------------------------------------------------------

S8, BF16, F32 = 2, 16, 11


def program(products: dict[str, tuple[int, int]]) -> HloModules:
    """Program 7 with dots of operands of two types, and an instruction `add.1` that multiplies nothing."""
    proto = hlo_pb2.HloProto()
    main = proto.hlo_module.computations.add(name=b"main", id=1)
    number = 0
    for name, types in products.items():
        operands = []
        for kind in types:
            number += 1
            shape = hlo_pb2.ShapeProto(element_type=kind, dimensions=[8, 8])
            main.instructions.add(name=b"a%d" % number, opcode=b"parameter", id=number, shape=shape)
            operands.append(number)
        number += 1
        shape = hlo_pb2.ShapeProto(element_type=BF16, dimensions=[8, 8])
        main.instructions.add(name=name.encode(), opcode=b"dot", id=number, operand_ids=operands, shape=shape)
    main.instructions.add(name=b"add.1", opcode=b"add", id=number + 1, operand_ids=[1, 2])
    return modules(proto.SerializeToString())


def precision(found: Overview) -> tuple[float | None, float | None]:
    return found.performance.bits16_percent, found.performance.bits32_percent


def test_precision_is_the_wider_operands_by_self_time_of_matrix_ops() -> None:
    programs = program({"dot.1": (BF16, BF16), "dot.2": (BF16, F32), "dot.3": (S8, S8)})
    times = {"dot.1": 60, "dot.2": 20, "dot.3": 40, "add.1": 500, "elsewhere.1": 900}
    ops: list[OpSpec] = []
    for name, length in times.items():
        ops.append((name, "convolution fusion", sum(one[3] for one in ops), length))
    found = page(ops=ops, programs=[HloModules({}, {}), programs])
    assert found.performance.bits16_percent == pytest.approx(50.0)
    assert found.performance.bits32_percent == pytest.approx(100 / 6)
    assert precision(page(ops=ops[2:3], programs=[programs])) == (0.0, 0.0)


@pytest.mark.parametrize("programs", [[], [HloModules({}, {})]], ids=["no hosts' modules", "no program"])
def test_precision_is_unknown_without_the_compiled_program(programs: list[HloModules]) -> None:
    found = page(ops=[("dot.1", "convolution", 0, 10)], programs=programs)
    assert precision(found) == (None, None)
    for bits in (16, 32):
        assert "holds no HLO" in found.unknown[f"performance.compute_precision.bits{bits}_percent"]


def test_ops_that_multiply_nothing_leave_precision_unknown() -> None:
    assert precision(page(ops=[("add.1", "loop fusion", 0, 10)], programs=[program({"dot.1": (F32, F32)})])) == (
        None,
        None,
    )

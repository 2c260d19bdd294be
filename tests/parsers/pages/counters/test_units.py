"""Units: what registers make of them, by hand; what was not sampled is unknown; and the compiler's count by scope."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.ops.counters.test_samples import plane_of
from tests.support.build import PlaneBuilder, present
from tests.support.files.counters import US, add_reading, with_instructions, with_periodic
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.ops.counters.chips import Chip, chip_of, register_names
from tpuprof.parsers.ops.counters.kernels import ScopeUse, busy_of, scope_uses
from tpuprof.parsers.ops.counters.placed import CustomCalls
from tpuprof.parsers.ops.counters.samples import readings, sampled
from tpuprof.parsers.pages.counters.units import UnitUse, of_readings, of_samples


def chip(device_type: str = "TPU v6 Lite") -> Chip:
    """A generation that is known."""
    return present(chip_of(device_type))


def units_of(values: dict[str, int], device_type: str = "TPU v6 Lite") -> dict[str, UnitUse]:
    """The units of a TensorCore by some of its registers."""
    numbers = {name: number for number, name in register_names(chip(device_type)).items()}
    plane = PlaneBuilder(space := XSpace(), "/device:TPU:0")
    add_reading(plane, {numbers[f"TC 0 {name}"]: value for name, value in values.items()})
    found = of_readings("/device:TPU:0", chip(device_type), readings(plane_of(space.SerializeToString())))
    return {use.name: use for use in found if use.core == "TensorCore"}


def test_by_hand() -> None:
    units = units_of(
        {
            "CYCLES": 1750,
            "SCALAR_ALU_INSTRUCTION_0": 300,
            "SCALAR_ALU_INSTRUCTION_1": 50,
            "MXU_BUSY_1": 100,
            "MXU_BUSY_2": 400,
            "MATMUL_VREG_BF16_MXU_0": 10,
            "MATMUL_LMR_I8_MXU_0": 5,
            "TRANSPOSE_XLU_1": 7,
            "HBM_READ": 20,
        }
    )
    stat_sums = {name: (use.achieved, use.peak) for name, use in units.items() if use.achieved is not None}
    assert stat_sums["Scalar Unit"] == (350, 3500)
    assert stat_sums["Avg MXU Busy"] == (450, 1750)
    assert stat_sums["MXU0"] == (8 * 10 + 2 * 5, 1750)
    assert stat_sums["MXU BF16"] == (80, 3500)
    assert stat_sums["MXU I8"] == (10, 3500)
    assert stat_sums["XLU1"] == (7, 437)  # one in four cycles, whole instructions
    assert stat_sums["HBM Rd+Wr"][0] == 640 and stat_sums["HBM Rd+Wr"][1] == pytest.approx(1525.5 * 2**30 * 1e-6)
    assert stat_sums["HBM Read Ratio"] == (640, 640)
    assert {use.sampled_ps for use in units.values()} == {US}


def test_what_was_not_sampled_is_unknown() -> None:
    units = units_of({"CYCLES": 100, "VST_INSTRUCTION": 7})
    assert units["Vmem Stores"].use == 0.07
    assert (units["Scalar Unit"].achieved, units["Scalar Unit"].use) == (None, None)
    without_clock = units_of({"VST_INSTRUCTION": 7})["Vmem Stores"]
    assert (without_clock.achieved, without_clock.peak, without_clock.sampled_ps) == (7, None, None)
    assert units_of({"CYCLES": 100}) == {}


def test_clocks_left_out_are_of_tpu_v7x() -> None:
    units = units_of({"CYCLE_COUNT": 1000, "CLOCKS_SKIPPED": 30}, "TPU v7x")
    assert units["Clocks Skipped"].use == 0.03 and units["Clocks Skipped"].is_share
    assert chip_of("TPU v5p") is None and chip_of(None) is None


def test_registers_that_are_sampled_count_from_the_first_to_the_last() -> None:
    tracks = list(sampled(plane_of(with_periodic())))
    units = {use.name: use for use in of_samples("/device:TPU:0", chip("TPU v7x"), tracks)}
    assert units["Avg MXU Busy"].use == pytest.approx(0.5)
    assert units["Vector ALUs"].use == pytest.approx(0.125)
    assert units["Avg MXU Busy"].sampled_ps == 1000 * US
    assert "Scalar Unit" not in units
    assert list(of_samples("/device:TPU:0", None, tracks)) == []


def test_a_register_that_goes_back_tells_nothing() -> None:
    plane = PlaneBuilder(space := XSpace(), "/device:TPU:0")
    line = plane.line("_counters_")
    for at, value in enumerate((5, 9, 2)):
        plane.event(line, plane.event_id("COUNT_MXU_BUSY_2"), at * US, 0, value=value)
    tracks = list(sampled(plane_of(space.SerializeToString())))
    assert list(of_samples("/device:TPU:0", chip(), tracks)) == []


def rows(data: bytes) -> dict[tuple[str, str], ScopeUse]:
    """What custom calls use, by scope and unit."""
    plane = plane_of(data)
    return {(row.scope, row.unit): row for row in scope_uses(CustomCalls(plane), list(sampled(plane)))}


def test_instructions_of_units_by_scope() -> None:
    found = rows(with_instructions())
    assert {key: (row.busy_ps, row.sampled_ps) for key, row in found.items()} == {
        ("", "VALU"): (6 * US, 10 * US),
        ("kernel / dot", "VALU"): (4 * US, 10 * US),
        ("kernel / store", "VALU"): (2 * US, 10 * US),
        ("", "MXU0"): (6 * US, 10 * US),
        ("kernel / dot", "MXU0"): (6 * US, 10 * US),
    }


SPANS = st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20), st.integers(0, 100)), min_size=1, max_size=12)


@given(SPANS, st.integers(0, 60), st.integers(0, 60))
def test_busy_time_against_a_sum_by_the_tick(spans: list[tuple[int, int, int]], first: int, second: int) -> None:
    begin, end = sorted((first, second))
    busy = busy_of(
        np.array([at for at, _, _ in spans]),
        np.array([at + length for at, length, _ in spans]),
        np.array([float(value) for _, _, value in spans]),
    )
    ticks = [(tick, value) for at, length, value in spans for tick in range(at, at + length) if begin <= tick < end]
    found = busy.within((np.array([begin]), np.array([end])))
    assert found == pytest.approx((sum(value for _, value in ticks) / 100, len(ticks)), abs=1e-6)

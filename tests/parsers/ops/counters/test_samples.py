"""Counters as a profile holds them: how long each value holds, what registers are, and means against a plain twin."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.build import PlaneBuilder
from tests.support.files.counters import MS, US, add_reading, with_custom_calls
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.formats.xspace.source import MemorySource
from tpuprof.parsers.formats.xspace.trace import Plane, Trace
from tpuprof.parsers.ops.counters.samples import Sampled, has_counters, readings, register_name, sampled
from tpuprof.parsers.pages.counters.raw import read_counters
from tpuprof.parsers.timeline.read.timeline import counter_tracks
from tpuprof.parsers.timeline.windows import mean_value


def plane_of(data: bytes, number: int = 0) -> Plane:
    """A plane as read."""
    return Trace(MemorySource(data, "test")).planes[number]


def track(spans: list[tuple[int, int, float]]) -> Sampled:
    """A counter with values from `begin` on, lasting so long."""
    begin, lasting, value = (np.array(column) for column in zip(*sorted(spans), strict=True))
    start = begin.astype(np.int64)
    return Sampled("MXU", "% util", "MXU", start, start + lasting.astype(np.int64), value.astype(np.float64), "%")


def test_the_matrix_unit_of_a_custom_call_is_not_averaged_over_the_whole_trace() -> None:
    """Each value stands for a microsecond; between two calls, and behind the last, nothing was sampled."""
    plane = plane_of(with_custom_calls())
    matrix = next(each for each in sampled(plane) if each.event == "MXU")
    assert matrix.unit == "%" and matrix.weights()[1] == 3 * 40 * US
    assert matrix.mean() == pytest.approx(72.0)
    shown = next(each for each in counter_tracks(plane) if each.name == "MXU")
    assert shown.unit == "%"
    for window in ((0, 100 * MS), (10 * MS, 10 * MS + 40 * US), (5 * MS, 2000 * MS)):
        assert mean_value(shown, *window) == pytest.approx(72.0)
    assert mean_value(shown, 20 * MS, 30 * MS) is None


@given(st.lists(st.tuples(st.integers(0, 900), st.integers(1, 90), st.floats(0, 100)), min_size=1, max_size=30))
def test_means_of_values_that_last(spans: list[tuple[int, int, float]]) -> None:
    lasting = sum(length for _, length, _ in spans)
    twin = sum(length * value for _, length, value in spans) / lasting
    assert track(spans).mean() == pytest.approx(twin)
    assert track(spans).weights()[1] == lasting


@given(
    st.lists(st.tuples(st.integers(0, 900), st.floats(-50, 50)), min_size=1, max_size=30, unique_by=lambda at: at[0])
)
def test_means_of_values_that_hold(points: list[tuple[int, float]]) -> None:
    ordered = sorted(points)
    twin = [value for (at, value), (then, _) in pairwise(ordered) for _ in range(then - at)]
    mean = sum(twin) / len(twin) if twin else ordered[0][1]
    assert track([(at, 0, value) for at, value in points]).mean() == pytest.approx(mean, abs=1e-9)


def test_a_register_is_known_by_its_event_its_metadata_or_its_id() -> None:
    plane = PlaneBuilder.alone("/device:TPU:0")
    add_reading(plane, {7001: 5})
    add_reading(plane, {7002: 2**62 + 1}, "counters_1", number_in_metadata=True)
    plane.event(plane.line("counters_2"), plane.event_id("Plain"), 9, 0, counter_value=2.5)
    read = list(readings(plane_of(plane.space.SerializeToString())))
    assert [reading.number.tolist() for reading in read] == [[7001], [7002], [3]]
    rows = list(read_counters(plane_of(plane.space.SerializeToString()), read, {7001: "TC 0 CYCLES"}))
    assert [row.register for row in rows] == ["TC 0 CYCLES", "", ""]
    assert [row.value for row in rows] == [5, 2**62 + 1, 2.5]
    assert (rows[0].description, rows[0].sets, rows[0].name) == ("register 1b59", "issue", "vf_chip_register_1b59")


def test_readings_of_a_kernel_are_rows_of_their_own() -> None:
    plane = PlaneBuilder.alone("/device:TPU:0")
    for line, value in (("counters_0", 10), ("counters_1", 30), ("counters_matmul", 8)):
        add_reading(plane, {7001: value}, line, at_ps=value)
    of_plane = plane_of(plane.space.SerializeToString())
    rows = list(read_counters(of_plane, list(readings(of_plane)), {}))
    assert [(row.kernel, row.samples, row.minimum, row.mean, row.maximum, row.value) for row in rows] == [
        ("", 2, 10.0, 20.0, 30.0, 30),
        ("matmul", 1, 8.0, 8.0, 8.0, 8),
    ]


def test_names_of_registers() -> None:
    assert register_name("COUNT_MXU_BUSY_1") == "MXU_BUSY_1"
    assert register_name("vf_chip_die0_tc_unprivileged_count_cycles") == "CYCLES"
    assert register_name("MXU") is None


def test_which_planes_have_counters() -> None:
    space = XSpace()
    for name in ("XLA Ops", "_counters_", "counters_4", "VALU Instructions", "MXU1 Instructions", "Some Instructions"):
        PlaneBuilder(space, name).line(name)
    planes = Trace(MemorySource(space.SerializeToString(), "test")).planes
    assert [has_counters(plane) for plane in planes] == [False, True, True, True, True, False]

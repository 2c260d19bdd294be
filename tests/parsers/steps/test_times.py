"""Where a core's step time went: by part and class, on the device's clock, and while the host waited for input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.build import PlaneBuilder, StatInput, trace_of
from tpuprof.parsers.base.intervals import Intervals, distinct, union
from tpuprof.parsers.base.op_class import OP_CLASSES
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.formats.xspace.trace import Plane
from tpuprof.parsers.ops.core.sums import CoreSums, core_sums
from tpuprof.parsers.steps.boundaries.markers import CoreSteps
from tpuprof.parsers.steps.boundaries.recorded import device_durations as durations_of_times
from tpuprof.parsers.steps.times import (
    ASYNC_DONE,
    COMPUTE,
    HOST_TRANSFER,
    INFEED,
    MEGACORE,
    OUTFEED,
    PART_COUNT,
    SPARSE_CORE_WAIT,
    CoreStepTimes,
    SlowOp,
)
from tpuprof.parsers.steps.times import core_step_times as step_times_of_sums
from tpuprof.parsers.steps.times import on_device_clock as measured_by_device

Op = tuple[str, str, int, int]
"""Name, HLO category, start and end in picoseconds."""

CATEGORIES = (
    *("loop fusion", "convolution", "infeed", "outfeed", "host send", "host recv-done", "async-done", "copy"),
    *("megacore fusion", "all-reduce", "sparsecorev0 infeed", "sparsecorev0 outfeed", "while"),
)


def ops_of(
    ops: Sequence[Op], device: Sequence[tuple[int, int]] = (), stats: Sequence[dict[str, StatInput]] = ()
) -> Plane:
    """A core with these ops; with `device` the device's own span of each, with `stats` more of each event."""
    plane = PlaneBuilder(XSpace(), "/device:TPU:0", 1)
    line = plane.line("XLA Ops")
    for at, (name, category, start, end) in enumerate(ops):
        more: dict[str, StatInput] = dict(stats[at]) if stats else {}
        if device:
            more |= {"device_offset_ps": device[at][0], "device_duration_ps": device[at][1] - device[at][0]}
        metadata = plane.event_id(name, name, hlo_category=category, program_id=7, symbol_id=sum(name.encode()))
        plane.event(line, metadata, start, end - start, **more)
    return trace_of(XSpace(planes=[plane.plane])).planes[0]


def sums_of(core: Plane, start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, CoreSums]:
    """The borders of spans in order, and the core's sums with these spans as steps."""
    times = distinct(np.concatenate([start, end]))
    return times, core_sums(core, (start, end), times)


def core_step_times(steps: CoreSteps, core: Plane, waits: Intervals | None = None) -> CoreStepTimes:
    return step_times_of_sums(steps, sums_of(core, steps.start_ps, steps.end_ps)[1], waits)


def device_durations(start: np.ndarray, end: np.ndarray, core: Plane) -> np.ndarray:
    times, _ = sums_of(core, start, end)
    sums = core_sums(core, (start[:0], end[:0]), times)
    return durations_of_times(start, end, times, sums.device_times)


def on_device_clock(steps: CoreSteps, core: Plane) -> CoreSteps:
    times, sums = sums_of(core, steps.start_ps, steps.end_ps)
    return measured_by_device(steps, times, sums.device_times)


def steps_of(*spans: tuple[int, int]) -> CoreSteps:
    columns = np.array(spans, np.int64).reshape(-1, 2)
    return CoreSteps(tuple(map(str, range(len(spans)))), columns[:, 0], columns[:, 1], columns[:, 1] - columns[:, 0])


def int64s(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


# --- parts and classes ---------------------------------------------------------------------------------------------


def test_time_goes_to_parts_by_category_and_a_loops_contents_are_not_counted_twice() -> None:
    ops: list[Op] = [
        ("while.1", "while", 0, 60),
        ("dot.1", "convolution", 10, 40),
        ("infeed.1", "infeed", 60, 65),
        ("outfeed.1", "outfeed", 65, 68),
        ("send.1", "host send", 68, 70),
        ("recv.1", "host recv-done", 70, 71),
        ("mega.1", "megacore fusion", 71, 75),
        ("done.1", "async-done", 75, 80),
    ]
    times = core_step_times(steps_of((0, 100), (100, 150)), ops_of(ops))
    parts = {COMPUTE: 60, INFEED: 5, OUTFEED: 3, HOST_TRANSFER: 3, MEGACORE: 4, ASYNC_DONE: 5, SPARSE_CORE_WAIT: 0}
    assert dict(enumerate(times.part_ps[0].tolist())) == parts
    assert not times.part_ps[1].any()
    assert times.class_ps[:, OP_CLASSES.index("idle")].tolist() == [20, 50]
    assert times.class_ps[0, OP_CLASSES.index("compute")] == 30
    assert times.op_count.tolist() == [8, 0]


@pytest.mark.parametrize(
    ("receives", "sends", "wait", "compute"), [(30, 10, 20, 20), (30, 0, 30, 0), (10, 30, 0, 40), (0, 5, 0, 5)]
)
def test_waiting_for_an_embedding_core_is_what_receiving_takes_beyond_sending(
    receives: int, sends: int, wait: int, compute: int
) -> None:
    ops = [
        ("recv", "sparsecorev0 infeed", 0, receives),
        ("send", "sparsecorev0 outfeed", receives, receives + sends),
        ("f", "loop fusion", 50, 60),
    ]
    times = core_step_times(steps_of((0, 100)), ops_of(ops))
    assert times.part_ps.shape == (1, PART_COUNT)
    assert times.part_ps[0, SPARSE_CORE_WAIT] == wait
    assert times.part_ps[0, COMPUTE] == compute + 10


def test_all_reduces_are_those_that_start_in_a_step() -> None:
    ops = [("ar", "all-reduce", at, at + 5) for at in (0, 20, 95, 110, 190)]
    stats: list[dict[str, StatInput]] = [{"all_reduce_unique_id": number} for number in (1, 2, 3, 0, 4)]
    times = core_step_times(steps_of((10, 98), (100, 150)), ops_of(ops, stats=stats))
    assert (times.all_reduce_step.tolist(), times.all_reduce_id.tolist()) == ([0, 0], [2, 3])
    assert times.all_reduce_ps.tolist() == [5, 5]


_CATEGORIES = st.sampled_from(CATEGORIES)


@st.composite
def _sequences(draw: st.DrawFn) -> tuple[list[Op], list[tuple[int, int]]]:
    """Ops one after the other, some with ops inside, each within a step or between two of them."""
    ops: list[Op] = []
    steps: list[tuple[int, int]] = []
    at = 0
    for number in range(draw(st.integers(1, 5))):
        at += draw(st.integers(0, 5))
        begin = at
        for _ in range(draw(st.integers(0, 6))):
            start = at + draw(st.integers(0, 4))
            at = start + draw(st.integers(1, 20))
            category = draw(_CATEGORIES)
            ops.append((category, category, start, at))
            inner = draw(st.integers(0, at - start))
            if inner:
                ops.append(("inside", "copy", at - inner, at))
        at += draw(st.integers(0, 5))
        if at > begin and draw(st.integers(0, 4)):
            steps.append((begin, at))
        assert number < 5
    return ops, steps


@given(_sequences(), st.lists(st.tuples(st.integers(0, 200), st.integers(1, 60)), max_size=4))
def test_parts_and_classes_add_up_to_the_step(
    spec: tuple[list[Op], list[tuple[int, int]]], waits: list[tuple[int, int]]
) -> None:
    events, spans = spec
    ops, steps = ops_of(events), steps_of(*spans)
    waiting = union(int64s(*(a for a, _ in waits)), int64s(*(a + n for a, n in waits)))
    times = core_step_times(steps, ops, waiting)
    running = {cell for _, _, a, b in events for cell in range(a, b)}
    waited = {cell for a, b in zip(*(column.tolist() for column in waiting), strict=True) for cell in range(a, b)}
    idle = times.class_ps[:, OP_CLASSES.index("idle")]
    assert times.class_ps.sum(axis=1).tolist() == steps.duration_ps.tolist()
    assert (times.part_ps.sum(axis=1) + idle).tolist() == steps.duration_ps.tolist()
    assert idle.tolist() == [len(set(range(a, b)) - running) for a, b in spans]
    assert times.input_ps.tolist() == [len((set(range(a, b)) - running) & waited) for a, b in spans]
    assert times.op_count.tolist() == [sum(a <= start < b for _, _, start, _ in events) for a, b in spans]
    assert (times.part_ps >= 0).all() and (times.class_ps >= 0).all()


def test_an_op_that_outlasts_its_step_leaves_it_no_idle_time_and_the_next_one_all() -> None:
    ops = [("infeed.1", "infeed", 0, 10), ("f", "convolution", 80, 260), ("g", "convolution", 300, 310)]
    times = core_step_times(steps_of((0, 100), (100, 200), (200, 320)), ops_of(ops))
    assert times.class_ps[:, OP_CLASSES.index("compute")].tolist() == [180, 0, 10]
    assert times.class_ps[:, OP_CLASSES.index("idle")].tolist() == [0, 100, 110]
    assert times.op_count.tolist() == [2, 0, 1]


# --- input ---------------------------------------------------------------------------------------------------------


def test_input_is_idle_time_while_the_host_waits() -> None:
    ops = ops_of([("f", "loop fusion", 20, 50), ("g", "copy", 60, 90), ("h", "copy", 170, 180)])
    steps = steps_of((0, 100), (100, 200), (200, 300))
    waits = (int64s(10, 55, 190), int64s(30, 58, 250))
    assert core_step_times(steps, ops, waits).input_ps.tolist() == [10 + 3, 10, 50]
    by_device = replace(steps, duration_ps=int64s(75, 100, 90))  # its clock runs slower in the first and last step
    assert core_step_times(by_device, ops, waits).input_ps.tolist() == [round(13 * 0.75), 10, 45]
    assert core_step_times(steps, ops).input_ps.tolist() == [0, 0, 0]
    assert core_step_times(steps, ops, (int64s(), int64s())).input_ps.tolist() == [0, 0, 0]


def test_no_more_than_the_idle_time_of_a_step_waits_for_input() -> None:
    ops = ops_of([("g", "copy", 20, 110)])  # counts for the step in which it starts
    times = core_step_times(steps_of((0, 100), (100, 200)), ops, (int64s(0, 150), int64s(20, 180)))
    assert times.class_ps[:, OP_CLASSES.index("idle")].tolist() == [10, 100]
    assert times.input_ps.tolist() == [10, 30]


# --- the device's clock --------------------------------------------------------------------------------------------


def _drifting(gap: int = 10) -> tuple[list[Op], list[tuple[int, int]]]:
    """Ops of 40 on the trace's clock, which the device took 50, 50, 50, 80 and 80 for, and no op between."""
    starts = [n * (40 + gap) for n in range(5)]
    lengths = [50, 50, 50, 80, 80]
    device, at = [], 1000
    for length in lengths:
        device.append((at, at + length))
        at += length + gap
    return [("f", "loop fusion", start, start + 40) for start in starts], device


def test_durations_of_spans_are_those_of_the_ops_in_them() -> None:
    ops, device = _drifting()
    starts, ends = int64s(0, 50, 100, 58), int64s(50, 100, 200, 78)
    # from op start to op start; half of an op that takes 50
    assert device_durations(starts, ends, ops_of(ops, device)).tolist() == [60, 60, 60 + 90, 25]
    assert device_durations(starts, ends, ops_of(ops)).tolist() == [50, 50, 100, 20]  # ops have one clock only
    assert device_durations(starts[:0], ends[:0], ops_of(ops, device)).tolist() == []


def test_between_ops_the_devices_time_goes_evenly() -> None:
    ops, device = _drifting(gap=20)
    device = [(start + 20 * (at > 0), end + 20 * (at > 0)) for at, (start, end) in enumerate(device)]
    # the first gap is 20 on the trace's clock, 40 on the device's
    assert device_durations(int64s(40, 50), int64s(50, 60), ops_of(ops, device)).tolist() == [20, 20]


def test_the_last_op_and_the_loop_around_ops_tell_the_time_too() -> None:
    core = ops_of([("f", "copy", 0, 40), ("f", "copy", 50, 90)], [(1000, 1050), (1060, 1140)])
    assert device_durations(int64s(0, 50, 0), int64s(90, 90, 70), core).tolist() == [140, 80, 100]
    loop = [("while", "while", 0, 100), ("f", "copy", 0, 40), ("f", "copy", 50, 90)]
    around = ops_of(loop, [(1000, 1200), (1000, 1080), (1100, 1180)])
    assert device_durations(int64s(0, 50), int64s(100, 110), around).tolist() == [200, 110]


def test_steps_whose_markers_know_the_devices_clock_are_left_alone() -> None:
    ops, device = _drifting()
    steps = steps_of((0, 50), (50, 100), (100, 200))
    core = ops_of(ops, device)
    assert on_device_clock(steps, core).duration_ps.tolist() == [60, 60, 150]
    known = CoreSteps(steps.names, steps.start_ps, steps.end_ps, int64s(51, 50, 100))
    assert on_device_clock(known, core) is known
    found = core_step_times(on_device_clock(steps, core), core)
    assert found.class_ps.sum(axis=1).tolist() == [60, 60, 150]
    assert found.part_ps[:, COMPUTE].tolist() == [50, 50, 50 + 80]


@given(
    st.lists(
        st.tuples(st.integers(1, 9), st.integers(1, 30), st.integers(1, 9), st.integers(1, 30)), min_size=2, max_size=12
    ),
    st.lists(st.integers(-20, 400), max_size=8),
)
def test_the_devices_clock_never_runs_backwards_and_adds_up(
    spec: list[tuple[int, int, int, int]], times: list[int]
) -> None:
    ops: list[Op] = []
    device: list[tuple[int, int]] = []
    at, device_at = 0, 5000
    for gap, length, more_gap, more in spec:
        ops.append(("f", "copy", at + gap, at + gap + length))
        device.append((device_at + gap + more_gap, device_at + gap + more_gap + length + more))
        at, device_at = ops[-1][3], device[-1][1]
    core, starts = ops_of(ops, device), [op[2] for op in ops]
    borders = np.unique([*times, starts[0], starts[-1]])
    found = device_durations(borders[:-1], borders[1:], core)
    assert (found > 0).all()
    inside = (borders[:-1] >= starts[0]) & (borders[1:] <= starts[-1])
    whole = device[-1][0] - device[0][0]  # the parts may each be off by their rounding
    assert abs(int(found[inside].sum()) - whole) <= int(inside.sum())


# --- slow ops ------------------------------------------------------------------------------------------------------


def _slow(last: int) -> CoreStepTimes:
    """Three steps with ops a, b and c, the last one with a longer b and a little shorter c."""
    lengths = [(10, 5, 45), (10, 20, 31), (11, 20 + last, 25)]
    ops: list[Op] = []
    borders, at = [0], 0
    for step in lengths:
        for name, length in zip("abc", step, strict=True):
            ops.append((name, "copy", at, at + length))
            at += length
        borders.append(at)
    return core_step_times(steps_of(*pairwise(borders)), ops_of(ops))


def test_the_slowest_step_says_what_it_has_more_of_than_the_middle_one() -> None:
    assert _slow(20).slow_ops == (SlowOp("2", "b", 20), SlowOp("2", "a", 1))
    assert _slow(10).slow_ops == ()  # 66 against 61 is not slow


def test_receives_from_other_slices_are_kept_by_step_as_collectives_are() -> None:
    text = '%{} = bf16[8] recv-done(%recv), frontend_attributes={{_xla_host_transfer_handler_name="{}"}}'
    slices, host = text.format("recv-done.1", "xla_megascale_runtime"), text.format("recv-done.2", "host")
    core = ops_of(
        [(slices, "host recv-done", 10, 40), (host, "host recv-done", 50, 60), (slices, "host recv-done", 110, 120)]
    )
    found = core_step_times(steps_of((0, 100), (100, 200)), core)
    assert found.collective_names == (slices,)
    assert found.collective_ps.tolist() == [[30], [10]]

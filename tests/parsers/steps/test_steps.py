"""Steps: markers, inference from module runs, breakdown, and what belongs to which step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.build import OpSpec, present, tpu_plane, trace_of
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.hosts.summary import summarise
from tpuprof.parsers.ops.core.sums import core_sums
from tpuprof.parsers.pages.overview.model import Overview
from tpuprof.parsers.pages.overview.overview import overview
from tpuprof.parsers.steps.aligned import align
from tpuprof.parsers.steps.spans.markers import inferred_steps, marked_steps
from tpuprof.parsers.steps.spans.runs import module_runs
from tpuprof.parsers.steps.times import COMPUTE, INFEED, core_step_times
from tpuprof.parsers.steps.xprof_view import XprofBreakdown


def page(space: XSpace) -> Overview:
    return overview([summarise(trace_of(space), "host0")])


def test_an_op_at_a_steps_end_belongs_to_the_next_step() -> None:
    space = XSpace()
    ops = [("infeed.1", "infeed", n * 100, 20) for n in range(4)]
    tpu_plane(space, 0, ops, steps=[(str(n), n * 100, n * 100 + 100) for n in range(4)])
    infeed = [step.breakdown.infeed_ps for step in page(space).steps if isinstance(step.breakdown, XprofBreakdown)]
    assert infeed == [20, 20, 20, 20]


def test_a_step_that_one_core_lacks_is_dropped_and_said() -> None:
    space = XSpace()
    ops = [("fusion.1", "loop fusion", n * 100, 60) for n in range(4)]
    tpu_plane(space, 0, ops, steps=[(str(n), n * 100, n * 100 + 100) for n in range(4)])
    tpu_plane(space, 1, ops, steps=[(str(n), n * 100, n * 100 + 90) for n in range(1, 4)])
    result = page(space)
    assert [step.name for step in result.steps] == ["1", "2", "3"]
    assert [step.duration_ps for step in result.steps] == [100, 100, 100]  # the slower core
    assert "1 step was left out: not every core has it" in result.warnings


def test_steps_of_one_name_are_matched_in_lock_step() -> None:
    space = XSpace()
    for ordinal, count in ((0, 3), (1, 2)):
        steps = [("train", n * 100, n * 100 + 80 + ordinal) for n in range(count)]
        tpu_plane(space, ordinal, [("f", "loop fusion", 0, 1)], steps=steps)
    assert [step.duration_ps for step in page(space).steps] == [81, 81]


def test_all_reduce_time_splits_in_work_and_waiting() -> None:
    space = XSpace()
    for ordinal, (begin, duration) in enumerate([(10, 50), (40, 20)]):
        plane = tpu_plane(space, ordinal, [("f", "loop fusion", 0, 5)], steps=[("0", 0, 100)])
        metadata = plane.event_id("%all-reduce = f32[] all-reduce()", "all-reduce", hlo_category="all-reduce")
        plane.event(plane.plane.lines[-1], metadata, begin, duration, all_reduce_unique_id=7)
    breakdown = page(space).steps[0].breakdown
    assert isinstance(breakdown, XprofBreakdown)
    assert (breakdown.all_reduce_compute_ps, breakdown.all_reduce_sync_ps) == (20, 30)


def test_without_markers_steps_are_the_periods_of_the_busiest_module() -> None:
    space = XSpace()
    modules = [(f"jit_f({9})", n * 100, n * 100 + 70) for n in range(5)] + [("jit_init(1)", -500, -490)]
    tpu_plane(space, 0, [("f", "loop fusion", n * 100, 50) for n in range(5)], modules=modules)
    result = page(space)
    time = present(result.performance.step_time)
    assert (time.source, time.count, time.median_ps) == ("modules", 4, 100)
    assert "from one end of jit_f to the next" in time.note
    assert [step.name for step in result.steps] == ["0", "1", "2", "3"]


def test_too_few_runs_of_any_module_give_no_step_time_but_a_reason() -> None:
    space = XSpace()
    tpu_plane(space, 0, [("f", "loop fusion", 0, 50)], modules=[("jit_f(9)", 0, 50), ("jit_f(9)", 60, 110)])
    result = page(space)
    assert result.performance.step_time is None
    assert "ran at least 3 times" in result.unknown["performance.step_time_ms"]
    assert result.bottleneck.classification == "unknown"


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(1, 50)), min_size=1, max_size=12),
    st.lists(st.tuples(st.sampled_from(["infeed", "loop fusion"]), st.integers(0, 10), st.integers(1, 9)), max_size=40),
)
def test_every_op_inside_a_step_is_counted_once(
    gaps: list[tuple[int, int]], gap_ops: list[tuple[str, int, int]]
) -> None:
    steps, at = [], 0
    for n, (gap, duration) in enumerate(gaps):
        steps.append((str(n), at + gap, at + gap + duration))
        at += gap + duration
    ops: list[OpSpec] = []
    at = 0
    for category, gap, duration in gap_ops:
        ops.append((category.replace(" ", "-"), category, at + gap, duration))
        at += gap + duration
    plane = tpu_plane(XSpace(), 0, ops, steps=steps).read()
    marked = marked_steps(plane)
    borders = (marked.start_ps, marked.end_ps)
    times = core_step_times(marked, core_sums(plane, borders, np.zeros(0, np.int64)))
    for n, (_, begin, end) in enumerate(steps):
        for part, category in ((INFEED, "infeed"), (COMPUTE, "loop fusion")):
            expected = sum(d for _, c, o, d in ops if c == category and begin <= o < end)
            assert times.part_ps[n, part] == expected
    grid = present(align([times], "steps", ["host0:0"], None))
    durations = {name: end - begin for name, begin, end in steps}  # a step at the ends may look cut, and is left out
    assert grid.longest_ps.tolist() == [durations[name] for name in grid.names]
    assert len(grid) + len(grid.incomplete) == len(steps)


def test_inferred_steps_leave_out_the_first_run() -> None:
    space = XSpace()
    tpu_plane(space, 0, [], modules=[("jit_f(9)", n * 10, n * 10 + 3) for n in range(3)])
    runs = module_runs(trace_of(space).planes[0])
    steps = inferred_steps(runs, "jit_f(9)")
    assert steps.start_ps.tolist() == [3, 13]
    assert np.diff(steps.end_ps).tolist() == [10]
    assert len(inferred_steps(runs, "jit_g(1)")) == 0


def test_negative_and_empty_markers_are_left_out() -> None:
    space = XSpace()
    tpu_plane(space, 0, [("f", "copy", 0, 1)], steps=[("0", 0, 100), ("1", 100, 100), ("2", 200, 150), ("3", 150, 400)])
    result = page(space)
    assert [(step.name, step.duration_ps) for step in result.steps] == [("0", 100), ("3", 250)]
    assert result.performance.step_time is not None
    assert result.performance.step_time.average_ps == pytest.approx(175)


def test_modules_whose_names_are_lost_stay_apart() -> None:
    space = XSpace()
    modules = [(name, n * 100 + shift, n * 100 + shift + 40) for n in range(4) for name, shift in (("f", 0), ("g", 50))]
    plane = tpu_plane(space, 0, [("a", "copy", n * 100, 30) for n in range(4)], modules=modules)
    plane.plane.event_metadata.clear()
    time = present(page(space).performance.step_time)
    assert time.median_ps == 100
    assert "from one end of event" in time.note

"""Steps: markers, inference from module runs, breakdown, and what belongs to which step."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.support.build import OpSpec, present, tpu_plane, trace_of
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.hosts.summary import summarise
from tpuprof.parsers.ops.core.sums import core_sums
from tpuprof.parsers.pages.overview.model import Overview
from tpuprof.parsers.pages.overview.overview import overview
from tpuprof.parsers.steps.aligned import align
from tpuprof.parsers.steps.boundaries.markers import marked_steps
from tpuprof.parsers.steps.times import COMPUTE, INFEED, core_step_times


def page(space: XSpace) -> Overview:
    return overview([summarise(trace_of(space), "host0")])


def test_steps_of_one_name_are_matched_in_lock_step() -> None:
    space = XSpace()
    for ordinal, count in ((0, 3), (1, 2)):
        steps = [("train", n * 100, n * 100 + 80 + ordinal) for n in range(count)]
        tpu_plane(space, ordinal, [("f", "loop fusion", 0, 1)], steps=steps)
    assert [step.duration_ps for step in page(space).steps] == [81, 81]


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


def test_modules_whose_names_are_lost_stay_apart() -> None:
    space = XSpace()
    modules = [(name, n * 100 + shift, n * 100 + shift + 40) for n in range(4) for name, shift in (("f", 0), ("g", 50))]
    plane = tpu_plane(space, 0, [("a", "copy", n * 100, 30) for n in range(4)], modules=modules)
    plane.plane.event_metadata.clear()
    time = present(page(space).performance.step_time)
    assert time.median_ps == 100
    assert "the cycle of programs event 1, event 2" in time.note

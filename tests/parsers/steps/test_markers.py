"""Where steps begin and end on a core: markers of one host step, clocks, overlaps, names. Times are in picoseconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.build import PlaneBuilder, StatInput, present, tpu_plane, trace_of
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.formats.xspace.trace import Plane
from tpuprof.parsers.hosts.summary import HostSummary, summarise
from tpuprof.parsers.pages.steps import common_steps
from tpuprof.parsers.steps.spans.markers import CoreSteps, LaunchingSteps, marked_steps
from tpuprof.parsers.steps.spans.runs import ModuleRuns, busiest_module, module_runs

Mark = tuple[str, int, int]
"""Name, start and end."""

Stats = Mapping[str, StatInput]


def plane_of(*lines: Sequence[Mark], stats: Sequence[Stats] = ()) -> Plane:
    """A core with such lines of markers; `stats` of those of each line."""
    plane = PlaneBuilder.alone("/device:TPU:0")
    for marks in lines:
        line = plane.line("Steps")
        for at, (mark, start, end) in enumerate(marks):
            plane.event(line, plane.event_id(mark), start, end - start, **(stats[at] if stats else {}))
    return plane.read()


def launched(groups: Sequence[int], numbers: Mapping[int, int] | None = None) -> LaunchingSteps:
    return LaunchingSteps(np.array(groups, np.int64), numbers or {})


def rows(steps: CoreSteps) -> list[tuple[str, int, int, int]]:
    """Name, start, end and duration of each step."""
    columns = (steps.start_ps, steps.end_ps, steps.duration_ps)
    return list(zip(steps.names, *(column.tolist() for column in columns), strict=True))


def test_markers_of_one_host_step_are_one_step_named_by_its_number() -> None:
    marks = [("a", 0, 10), ("b", 15, 30), ("c", 40, 50), ("d", 60, 70), ("e", 80, 90), ("f", 95, 99)]
    steps = marked_steps(plane_of(marks), launched([0, 0, 1, -1, 2, 2], {0: 7, 1: 8}))
    assert rows(steps) == [("7", 0, 30, 30), ("8", 40, 50, 10), ("e", 80, 99, 19)]


def test_a_step_ends_with_the_marker_that_ends_last() -> None:
    plane = plane_of([("a", 0, 100), ("b", 20, 50), ("c", 200, 250)])
    assert rows(marked_steps(plane, launched([4, 4, 5]))) == [("a", 0, 100, 100), ("c", 200, 250, 50)]


def test_groups_are_those_of_the_file_whatever_its_order() -> None:
    plane = plane_of([("d", 60, 70), ("b", 15, 30)], [("c", 40, 50), ("a", 0, 10)])
    assert rows(marked_steps(plane, launched([1, 0, -1, 0], {0: 7}))) == [("7", 0, 30, 30), ("d", 60, 70, 10)]


def test_markers_that_no_host_step_launched_stay_where_all_are_so() -> None:
    marks = [("a", 0, 10), ("b", 15, 30), ("c", 40, 50)]
    for host_steps in (launched([-1, -1, -1]), launched([0, 0]), None):  # of another number of markers: not these
        assert rows(marked_steps(plane_of(marks), host_steps)) == [(*mark, mark[2] - mark[1]) for mark in marks]


def test_an_empty_marker_begins_and_ends_no_step() -> None:
    marks = [("x", 0, 0), ("a", 5, 10), ("b", 12, 30), ("y", 35, 35)]
    assert rows(marked_steps(plane_of(marks), launched([0, 0, 0, 0], {0: 3}))) == [("3", 5, 30, 25)]


def test_where_markers_overlap_the_next_one_begins() -> None:
    marks = [("a", 0, 100), ("b", 80, 200), ("c", 200, 260), ("d", 200, 300)]
    assert rows(marked_steps(plane_of(marks))) == [("a", 0, 80, 80), ("b", 80, 200, 120), ("d", 200, 300, 100)]


def device(start: int, end: int) -> dict[str, StatInput]:
    return {"device_offset_ps": start, "device_duration_ps": end - start}


def test_durations_are_the_devices_own_where_markers_have_them() -> None:
    marks = [("a", 0, 100), ("b", 100, 200), ("c", 300, 400), ("d", 400, 500)]
    # c takes no time at all there and d has just one of both stats: the trace's clock counts
    stats: list[Stats] = [device(1000, 1110), device(1110, 1200), device(1500, 1500), {"device_offset_ps": 5}]
    durations = [("a", 0, 100, 110), ("b", 100, 200, 90), ("c", 300, 400, 100), ("d", 400, 500, 100)]
    assert rows(marked_steps(plane_of(marks, stats=stats))) == durations
    merged = marked_steps(plane_of(marks[:2], stats=stats), launched([4, 4], {4: 1}))
    assert rows(merged) == [("1", 0, 200, 200)]
    overlapping = plane_of([("a", 0, 120), marks[1]], stats=[device(1000, 1130), *stats[1:]])
    assert rows(marked_steps(overlapping)) == durations[:2]


_MARKS = st.lists(st.tuples(st.integers(-50, 60), st.integers(-3, 40), st.integers(-1, 3)), max_size=14)


@given(_MARKS, st.booleans())
def test_steps_are_in_order_and_apart_and_cover_what_is_marked(
    spec: list[tuple[int, int, int]], is_grouped: bool
) -> None:
    groups = [group for _, _, group in spec]
    plane = plane_of([(f"m{at}", start, start + length) for at, (start, length, _) in enumerate(spec)])
    steps = marked_steps(plane, launched(groups) if is_grouped else None)
    assert (steps.end_ps > steps.start_ps).all()
    assert (steps.start_ps[1:] >= steps.end_ps[:-1]).all()
    assert steps.duration_ps.tolist() == (steps.end_ps - steps.start_ps).tolist()
    filled = [(start, start + length) for start, length, _ in spec if length > 0]
    if not is_grouped:
        cells = {
            cell for a, b in zip(steps.start_ps.tolist(), steps.end_ps.tolist(), strict=True) for cell in range(a, b)
        }
        assert {start for start, _ in filled} == set(steps.start_ps.tolist())
        assert cells <= {cell for a, b in filled for cell in range(a, b)}
    assert {*steps.start_ps.tolist()} <= {start for start, _ in filled}
    assert {*steps.end_ps.tolist()} <= {time for span in filled for time in span}


# --- from a whole profile ------------------------------------------------------------------------------------------


def launching_host(markers: Sequence[int | None], numbers: Sequence[int | None]) -> HostSummary:
    """Steps of 100 on a host thread, which launch markers of 20 on two cores.

    Args:
        markers: for each marker the host step that launches it, or None.
        numbers: of each host step; one without has no `step_num`.
    """
    space = XSpace()
    marks = [(f"module {at}", 1000 + at * 30, 1020 + at * 30) for at in range(len(markers))]
    for ordinal in range(2):
        plane = tpu_plane(
            space, ordinal, [("f", "loop fusion", 1000 + at * 30, 10) for at in range(len(markers))], marks
        )
        for at, (event, step) in enumerate(zip(plane.plane.lines[0].events, markers, strict=True)):
            for key, value in {"_ct": 5, "_c": at}.items() if step is not None else ():
                plane.fill(event.stats.add(), key, value)
    host = PlaneBuilder(space, "/host:CPU", 9)
    line = host.line("python")
    for step, number in enumerate(numbers):
        stats: dict[str, StatInput] = {"_r": 1} if number is None else {"_r": 1, "step_num": number}
        host.event(line, host.event_id("train"), step * 100, 100, **stats)
    for at, of in enumerate(markers):
        if of is not None:
            host.event(line, host.event_id("Execute"), of * 100 + 5 + at, 1, _pt=5, _p=at)
    return summarise(trace_of(space), "host0")


@pytest.mark.parametrize(
    ("markers", "numbers", "steps"),
    [
        ((0, 0, 1, None, 2, 2), (41, 42, 43), [("41", 50), ("42", 20), ("43", 50)]),
        ((0, 1, 2), (None, 42, None), [("module 0", 20), ("42", 20), ("module 2", 20)]),
        ((None, None), (41,), [("module 0", 20), ("module 1", 20)]),
    ],
    ids=["several modules a step", "steps without a number", "nothing launched"],
)
def test_host_steps_decide_what_is_a_step(
    markers: Sequence[int | None], numbers: Sequence[int | None], steps: list[tuple[str, int]]
) -> None:
    grid = present(common_steps([launching_host(markers, numbers)]).grid)
    assert list(zip(grid.names, grid.longest_ps.tolist(), strict=True)) == steps
    assert grid.duration_ps.shape == (2, len(steps))


# --- without markers -----------------------------------------------------------------------------------------------


def runs(*spans: Mark) -> ModuleRuns:
    space = XSpace()
    tpu_plane(space, 0, [], modules=spans)
    return module_runs(trace_of(space).planes[0])


def test_the_busiest_module_ran_often_enough_on_every_core() -> None:
    often = [("step", at * 100, at * 100 + 20) for at in range(3)]
    long = [("init", 0, 900), ("eval", 1, 200), ("eval", 201, 400)]
    assert busiest_module([runs(*often, *long), runs(*often)]) == "step"
    assert busiest_module([runs(*often), runs(*often[:2])]) is None
    assert busiest_module([runs(*often), runs()]) == "step"  # a core without any module is not used
    assert busiest_module([runs(), runs()]) is None
    assert busiest_module([]) is None

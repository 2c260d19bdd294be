"""Where steps begin and end on a core: markers of one host step, clocks, overlaps, names. Times are in picoseconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.build import PlaneBuilder, StatInput, present, summary_of, tpu_plane, trace_of
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.formats.xspace.trace import Plane
from tpuprof.parsers.hosts.summary import HostSummary, summarise
from tpuprof.parsers.pages.shared.steps import common_steps
from tpuprof.parsers.steps.accounts.owners import owner_index
from tpuprof.parsers.steps.boundaries.markers import LaunchingSteps, marked_steps
from tpuprof.parsers.steps.boundaries.runs import ModuleRuns, busiest_module, module_runs

Mark = tuple[str, int, int]
"""Name, start and end."""

Stats = Mapping[str, StatInput]


def plane_of(*lines: Sequence[Mark], stats: Sequence[Sequence[Stats]]) -> Plane:
    """A core with such lines of markers; `stats` of those of each line."""
    plane = PlaneBuilder.alone("/device:TPU:0")
    for marks, of_marks in zip(lines, stats, strict=True):
        line = plane.line("Steps")
        for (mark, start, end), more in zip(marks, of_marks, strict=True):
            plane.event(line, plane.event_id(mark), start, end - start, **more)
    return plane.read()


Marked = tuple[int, int, int, tuple[int, int] | None]
"""Start and length of a marker, its host step, and its start and length on the device's clock where it has one."""


def plain_steps(
    marks: Sequence[Marked], numbers: Mapping[int, int], is_grouped: bool
) -> list[tuple[str, int, int, int]]:
    """Name, start, end and duration of each step, one marker after the other."""
    found: list[tuple[str, int, int, int, int, int]] = []  # with the host step, and the device's start and end
    for at, (start, length, group, device) in sorted(enumerate(marks), key=lambda mark: mark[1][0]):
        begin, lasts = device or (start, length)
        if length > 0:
            found.append((f"m{at}", start, start + length, group, begin, begin + lasts))
    if is_grouped and any(group >= 0 for *_, group, _, _ in found):
        runs = [list(run) for _, run in groupby(found, key=lambda mark: mark[3])]
        merged = [(run[0], max(run, key=lambda mark: mark[2])) for run in runs if run[0][3] >= 0]
        found = [
            (str(numbers.get(first[3], first[0])), first[1], last[2], first[3], first[4], last[5])
            for first, last in merged
        ]
    steps = []
    for (name, start, end, _, begin, stop), (_, then, *_) in pairwise([*found, ("", 1 << 40, 0, 0, 0, 0)]):
        cut = min(end, then)
        on_device = stop - (end - cut) - begin
        if cut > start:
            steps.append((name, start, cut, on_device if on_device > 0 else cut - start))
    return steps


_DEVICE = st.none() | st.tuples(st.integers(900, 1000), st.integers(-3, 40))
_MARKS = st.lists(st.tuples(st.integers(-50, 60), st.integers(-3, 40), st.integers(-1, 3), _DEVICE), max_size=14)


@given(_MARKS, st.dictionaries(st.integers(0, 3), st.integers(7, 99)), st.booleans(), st.integers(0, 14))
def test_steps_are_those_of_a_plain_account(
    marks: list[Marked], numbers: dict[int, int], is_grouped: bool, parted: int
) -> None:
    """On one line or two; without the host's steps, and with them."""
    named = [(f"m{at}", start, start + length) for at, (start, length, *_) in enumerate(marks)]
    stats: list[Stats] = [
        {} if device is None else {"device_offset_ps": device[0], "device_duration_ps": device[1]}
        for *_, device in marks
    ]
    plane = plane_of(named[:parted], named[parted:], stats=(stats[:parted], stats[parted:]))
    groups = np.array([group for *_, group, _ in marks], np.int64)
    steps = marked_steps(plane, LaunchingSteps(groups, numbers) if is_grouped else None)
    columns = (steps.start_ps, steps.end_ps, steps.duration_ps)
    found = list(zip(steps.names, *(column.tolist() for column in columns), strict=True))
    assert found == plain_steps(marks, numbers, is_grouped)
    if len(marks):  # of another number of markers: not these
        assert marked_steps(plane, LaunchingSteps(groups[1:], numbers)).names == marked_steps(plane).names


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


@given(offset=st.integers(-20_000, 20_000), gap=st.sampled_from([0, 2, 5]), drift=st.integers(-100, 100))
def test_a_run_is_of_the_step_that_has_most_of_it(offset: int, gap: int, drift: int) -> None:
    space, runs = XSpace(), [(50_000 * run, 50_000 * run + 45_000) for run in range(8)]
    ops = [("fusion.1", "loop fusion", start, 45_000) for start, _ in runs]
    steps = [
        (str(number), start + offset + drift * number, start + offset + drift * number + 50_000 - 1_000 * gap)
        for number, (start, _) in enumerate(runs)
    ]
    tpu_plane(space, 0, ops, steps, [("jit_step(7)", *run) for run in runs])
    grid = present(summary_of(space).steps)
    idle = grid.duration_ps - grid.owner_ps[:, :, [owner_index("loss"), owner_index("ideal")]].sum(axis=2)
    assert np.allclose(idle, grid.duration_ps - 45_000, atol=1_000 + 8 * abs(drift))

"""Steps that random profiles compared with XProf's brought to light: idle chips, lost ops, hosts with names alike."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.support.build import OpSpec, PlaneBuilder, present, tpu_plane, trace_of
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.hosts.summary import summarise
from tpuprof.parsers.pages.overview.model import Overview
from tpuprof.parsers.pages.overview.overview import overview
from tpuprof.parsers.steps.xprof_view import XprofBreakdown

Marks = list[tuple[str, int, int]]


def page(*hosts: XSpace) -> Overview:
    traces = [trace_of(space) for space in hosts]
    return overview([summarise(trace, f"host{at}") for at, trace in enumerate(traces)])


def ops_in(steps: Sequence[int], duration: int = 60) -> list[OpSpec]:
    return [("fusion.1", "loop fusion", step * 100 + 5, duration) for step in steps]


def marks(count: int) -> Marks:
    return [(str(step), step * 100, step * 100 + 90) for step in range(count)]


def parts(found: Overview) -> list[XprofBreakdown]:
    return [step.breakdown for step in found.steps if isinstance(step.breakdown, XprofBreakdown)]


def test_a_chip_that_the_program_does_not_use_takes_no_step_away() -> None:
    space = tpu_plane(XSpace(), 0, ops_in(range(4)), steps=marks(4)).space
    tpu_plane(space, 1, [])
    PlaneBuilder(space, "/device:TPU:2", 3)
    found = page(space)
    assert [step.name for step in found.steps] == ["0", "1", "2", "3"]
    assert [(part.compute_ps, part.idle_ps) for part in parts(found)] == [(60, 30)] * 4
    assert "cores host0:1, host0:2 are left out of the steps: they ran nothing in them" in found.warnings


def test_a_core_whose_steps_hold_no_op_says_nothing_of_them() -> None:
    space = tpu_plane(XSpace(), 0, ops_in(range(4)), steps=marks(4)).space
    tpu_plane(space, 1, [], steps=marks(4))
    found = page(space)
    assert [(part.compute_ps, part.idle_ps) for part in parts(found)] == [(60, 30)] * 4
    assert "core host0:1 is left out of the steps: it ran nothing in them" in found.warnings


def test_steps_are_inferred_beside_a_chip_that_the_program_does_not_use() -> None:
    space = XSpace()
    modules = [("jit_f(7)", step * 100, step * 100 + 80) for step in range(5)]
    tpu_plane(space, 0, ops_in(range(5)), modules=modules)
    tpu_plane(space, 1, [])
    time = present(page(space).performance.step_time)
    assert (time.source, time.count, time.median_ps) == ("modules", 4, 100)


@pytest.mark.parametrize(
    ("has_ops", "names", "sentence"),
    [
        ([0, 1], ["0", "1"], "2 steps were left out: core host0:1 lost ops in 2, 3"),
        ([0, 1, 3], ["0", "1", "3"], "1 step was left out: core host0:1 lost ops in 2"),
    ],
)
def test_a_step_in_which_a_core_lost_its_ops_is_left_out(has_ops: list[int], names: list[str], sentence: str) -> None:
    space = tpu_plane(XSpace(), 0, ops_in(range(4)), steps=marks(4)).space
    tpu_plane(space, 1, ops_in(has_ops), steps=marks(4))
    found = page(space)
    assert [step.name for step in found.steps] == names
    assert [(part.compute_ps, part.idle_ps) for part in parts(found)] == [(60, 30)] * len(names)
    assert sentence in found.warnings


def test_steps_stay_where_cores_take_turns() -> None:
    space = tpu_plane(XSpace(), 0, ops_in([0, 2]), steps=marks(4)).space
    tpu_plane(space, 1, ops_in([1, 3]), steps=marks(4))
    found = page(space)
    assert [step.name for step in found.steps] == ["0", "1", "2", "3"]
    assert not found.warnings


def test_steps_that_share_a_number_are_matched_by_time_on_the_cores_of_a_host() -> None:
    """Training and evaluation each count their steps; one core lacks the first evaluation."""
    host = PlaneBuilder.alone("/host:CPU")
    line = host.line("main")
    for at, (name, number) in enumerate([("train", 0), ("eval", 0), ("train", 1), ("eval", 1)]):
        host.event(line, host.event_id(name), at * 100, 80, _r=1, step_num=number, _pt=9, _p=at)
    for ordinal, launched in enumerate(([0, 1, 2, 3], [0, 2, 3])):
        steps = [(str(at), at * 100 + 10, at * 100 + 80 + at) for at in launched]
        plane = tpu_plane(
            host.space, ordinal, [("f", "loop fusion", at * 100 + 20, 30) for at in launched], steps=steps
        )
        modules = plane.line("XLA Modules")
        for at in launched:
            plane.event(modules, plane.event_id("jit_f(7)"), at * 100 + 11, 60, _ct=9, _c=at)
    found = page(host.space)
    assert [step.name for step in found.steps] == ["0", "1", "1"]
    assert [step.duration_ps for step in found.steps] == [70, 72, 73]
    assert "1 step was left out: not every core has it" in found.warnings


@pytest.mark.parametrize("late", [0, 7, 100_000])
def test_hosts_whose_steps_have_one_name_are_matched_by_time_or_in_lock_step(late: int) -> None:
    lengths = [40, 90, 60, 70]
    hosts = []
    for shift in (0, late):
        space = XSpace()
        steps = [("train", shift + at * 100, shift + at * 100 + length) for at, length in enumerate(lengths)]
        ops = [(name, category, shift + offset, 30) for name, category, offset, _ in ops_in(range(4))]
        tpu_plane(space, 0, ops, steps=steps)
        hosts.append(space)
    assert [step.duration_ps for step in page(*hosts).steps] == lengths  # not the first one four times


def test_hosts_whose_steps_have_one_name_share_those_at_one_time() -> None:
    hosts = []
    for first in (0, 2):
        space = XSpace()
        steps = [("train", step * 100, step * 100 + 50 + step) for step in range(first, 5)]
        tpu_plane(space, 0, ops_in(range(first, 5), 30), steps=steps)
        hosts.append(space)
    found = page(*hosts)
    assert [step.duration_ps for step in found.steps] == [52, 53, 54]
    assert [step.start_ps for step in found.steps] == [200, 300, 400]


def test_an_op_that_outlasts_its_step_is_no_more_than_the_step() -> None:
    space = XSpace()
    ops: list[OpSpec] = [("infeed.1", "infeed", 10, 40), ("infeed.1", "infeed", 150, 10**9)]
    tpu_plane(space, 0, ops, steps=[("0", 0, 100), ("1", 100, 200)])
    found = page(space)
    assert [part.infeed_percent_maximum for part in parts(found)] == [40, 100]
    assert found.bottleneck.input_percent == 70

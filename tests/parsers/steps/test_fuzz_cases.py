"""Steps that random profiles compared with XProf's brought to light: idle chips, lost ops, hosts with names alike."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.support.build import OpSpec, PlaneBuilder, present, tpu_plane, trace_of
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.hosts.summary import summarise
from tpuprof.parsers.pages.overview.model import Overview
from tpuprof.parsers.pages.overview.overview import overview


def page(*hosts: XSpace) -> Overview:
    traces = [trace_of(space) for space in hosts]
    return overview([summarise(trace, f"host{at}") for at, trace in enumerate(traces)])


def ops_in(steps: Sequence[int], duration: int = 60) -> list[OpSpec]:
    return [("fusion.1", "loop fusion", step * 100 + 5, duration) for step in steps]


def test_steps_are_inferred_beside_a_chip_that_the_program_does_not_use() -> None:
    space = XSpace()
    modules = [("jit_f(7)", step * 100, step * 100 + 80) for step in range(5)]
    tpu_plane(space, 0, ops_in(range(5)), modules=modules)
    tpu_plane(space, 1, [])
    time = present(page(space).performance.step_time)
    assert (time.source, time.count, time.median_ps) == ("modules", 4, 100)


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

"""Steps of whole profiles: names that repeat, too few runs, and modules without names."""

from __future__ import annotations

from tests.support.build import present, tpu_plane, trace_of
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.hosts.summary import summarise
from tpuprof.parsers.pages.overview.model import Overview
from tpuprof.parsers.pages.overview.overview import overview


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


def test_modules_whose_names_are_lost_stay_apart() -> None:
    space = XSpace()
    modules = [(name, n * 100 + shift, n * 100 + shift + 40) for n in range(4) for name, shift in (("f", 0), ("g", 50))]
    plane = tpu_plane(space, 0, [("a", "copy", n * 100, 30) for n in range(4)], modules=modules)
    plane.plane.event_metadata.clear()
    time = present(page(space).performance.step_time)
    assert time.median_ps == 100
    assert "the cycle of programs event 1, event 2" in time.note

"""How often a call runs the regions of its schedule, and that the slots it uses are the arithmetic of the shapes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parsers.formats.llo.test_schedule import looped, module, region
from tests.parsers.formats.mosaic.compiled import archive
from tests.parsers.formats.mosaic.test_spec import compiled
from tpuprof.parsers.formats.llo.module import read_schedule
from tpuprof.parsers.formats.llo.schedule import UNITS, Schedule
from tpuprof.parsers.formats.mosaic.executed import Executed, executed
from tpuprof.parsers.pages.ops.kernels.static import static_schedule

MXU, VALU, VSTORE = (UNITS.index(name) for name in ("MXU", "VALU", "VSTORE"))


def used(schedule: Schedule, found: Executed) -> list[int]:
    """Slots that each unit uses in a call."""
    return [int(slots) for slots in schedule.used.astype(np.int64) @ found.runs[schedule.owner]]


def is_exact(schedule: Schedule, found: Executed, unit: int) -> bool:
    """Whether all regions in which a unit is used are sure."""
    return bool(found.is_sure[schedule.owner[schedule.used[unit] > 0]].all())


def both(name: str) -> tuple[Schedule, Executed]:
    schedule = read_schedule(archive.stored(f"{name}.llo_module.pb"))
    return schedule, executed(schedule, compiled(name.partition("-")[2]))


@pytest.mark.parametrize(("name", "steps"), [("v5e-matmul", 2048), ("v6e-matmul", 2048), ("v5e-attention", 2048)])
def test_the_matrix_unit_works_in_each_step_of_the_grid(name: str, steps: int) -> None:
    schedule, found = both(name)
    assert used(schedule, found)[MXU] == steps * int(schedule.used[MXU].sum())
    assert is_exact(schedule, found, MXU)


def test_pushes_into_the_matrix_unit_are_the_flops_of_the_shapes() -> None:
    schedule, found = both("v5e-matmul")
    runs = found.runs[schedule.instructions.region[schedule.instructions.opcode == 193]]  # vector_matmul_packed
    assert int(runs.sum()) * 2 * 16 * 128 * 128 == compiled("matmul").matrix_flops.value


def test_a_region_runs_as_often_as_its_lines_and_not_as_its_loop_turns() -> None:
    schedule, found = both("v5e-wait")
    turns = int(schedule.regions.turns[schedule.regions.kind.index("loop body")])
    assert (turns, found.runs[schedule.regions.kind.index("predicated")]) == (129, 128)
    assert (used(schedule, found)[VALU], is_exact(schedule, found, VALU)) == (128 * 64 * 512 // 1024, True)
    last = [row for row, kind in enumerate(both("v5e-attention")[0].regions.kind) if kind == "predicated"][-1]
    assert int(both("v5e-attention")[1].runs[last]) == 8 * 16  # the result is written in the last of 16 columns


def test_a_region_whose_lines_do_not_say_it_runs_at_most_as_its_loop() -> None:
    schedule, found = both("v5e-gather")  # which of its branches runs is in numbers
    rows = [row for row, kind in enumerate(schedule.regions.kind) if kind == "predicated"]
    assert found.runs[rows].tolist() == [66] * 3 and not is_exact(schedule, found, VSTORE)
    assert used(schedule, found)[VSTORE] == 66 * 8


def test_a_loop_without_known_bounds_leaves_the_call_unknown() -> None:
    spec = compiled("wait")
    loop = read_schedule(module(region(looped(b""), 0, 4)))
    found = executed(loop, spec)
    assert found.runs[loop.regions.kind.index("loop body")] == -1
    whole = static_schedule(loop, {}, spec)
    assert (whole.run_bundles, whole.busy) == (None, {})
    plain = read_schedule(module(region(b"", 0, 4)))
    known = executed(plain, spec)
    assert (used(plain, known), static_schedule(plain, {}, spec).run_bundles) == ([4] * 7, 4)
    assert np.array_equal(known.runs, [1]) and known.is_sure.all()

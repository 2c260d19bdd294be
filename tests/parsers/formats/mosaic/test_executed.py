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

MXU, VALU, VSTORE = (UNITS.index(name) for name in ("MXU", "VALU", "VSTORE"))


def both(name: str) -> tuple[Schedule, Executed]:
    schedule = read_schedule(archive.stored(f"{name}.llo_module.pb"))
    return schedule, executed(schedule, compiled(name.partition("-")[2]))


@pytest.mark.parametrize(("name", "steps"), [("v5e-matmul", 2048), ("v6e-matmul", 2048), ("v5e-attention", 2048)])
def test_the_matrix_unit_works_in_each_step_of_the_grid(name: str, steps: int) -> None:
    schedule, found = both(name)
    assert found.slots[MXU] == steps * int(schedule.used_in()[MXU])
    assert found.is_exact[MXU]


def test_pushes_into_the_matrix_unit_are_the_flops_of_the_shapes() -> None:
    schedule, found = both("v5e-matmul")
    runs = found.runs[schedule.instructions.region[schedule.instructions.opcode == 193]]  # vector_matmul_packed
    assert int(runs.sum()) * 2 * 16 * 128 * 128 == compiled("matmul").work.matrix_flops.value


def test_a_region_runs_as_often_as_its_lines_and_not_as_its_loop_turns() -> None:
    schedule, found = both("v5e-wait")
    turns = int(schedule.regions.turns[schedule.regions.kind.index("loop body")])
    assert (turns, found.runs[schedule.regions.kind.index("predicated")]) == (129, 128)
    assert (found.slots[VALU], found.is_exact[VALU]) == (128 * 64 * 512 // 1024, True)
    last = [row for row, kind in enumerate(both("v5e-attention")[0].regions.kind) if kind == "predicated"][-1]
    assert int(both("v5e-attention")[1].runs[last]) == 8 * 16  # the result is written in the last of 16 columns


def test_a_region_whose_lines_do_not_say_it_runs_at_most_as_its_loop() -> None:
    schedule, found = both("v5e-gather")  # which of its branches runs is in numbers
    rows = [row for row, kind in enumerate(schedule.regions.kind) if kind == "predicated"]
    assert found.runs[rows].tolist() == [66] * 3 and not found.is_exact[VSTORE]
    assert found.slots[VSTORE] == 66 * 8


def test_a_loop_without_known_bounds_leaves_the_call_unknown() -> None:
    spec = compiled("wait")
    found = executed(read_schedule(module(region(looped(b""), 0, 4))), spec)
    assert (found.slots, found.is_exact, found.bundles) == ((None,) * 7, (False,) * 7, None)
    known = executed(read_schedule(module(region(b"", 0, 4))), spec)
    assert (known.slots, known.bundles, known.is_exact) == ((4,) * 7, 4, (True,) * 7)
    assert np.array_equal(known.runs, [1])

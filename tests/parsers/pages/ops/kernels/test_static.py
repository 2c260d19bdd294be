"""A schedule beside its runs, by hand: which regions run how often, and what of a unit's slots they use."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parsers.formats.mosaic.compiled import archive
from tests.support.files.mlir import kernels
from tpuprof.parsers.formats.llo.module import read_schedule
from tpuprof.parsers.formats.llo.schedule import UNITS, Instructions, LloAllocation, Origin, Regions, Schedule
from tpuprof.parsers.pages.ops.kernels.static import StaticSchedule, static_schedule

SLOTS = (2, 2, 4, 1, 3, 2, 2)


def schedule(turns: int = 16) -> Schedule:
    """Ten bundles: a loop of eight, of which four run under one condition and two under another."""
    used = np.zeros((len(UNITS), 10), np.uint8)
    used[0, 2:6], used[0, 6:8] = 2, 1
    regions = Regions(
        ("program", "loop body", "predicated", "predicated"),
        np.array([-1, 0, 1, 1]),
        np.array([1, turns, turns, turns]),
    )
    region = np.array([2, 2, 3, 1, 1, 0])
    zero = np.zeros(6, np.int64)
    instructions = Instructions(np.array([2, 3, 6, 1, 8, 9]), zero, region, np.array([0, 0, 1, 2, -1, -1]))
    origins = (
        Origin(("kernel.py:7",), ("ep_run_kernel", "init")),
        Origin(("kernel.py:9",), ("ep_run_kernel", "acc")),
        Origin((), ()),
    )
    spills = np.array([0] * 9 + [3], np.uint8)
    allocated = (LloAllocation("vmem", 4096, 0, False), LloAllocation("vmem", 512, 1, True))
    return Schedule("mm.1", "jit_f", 10, used, SLOTS, spills, spills, regions, instructions, origins, allocated)


def test_bodies_under_a_condition_run_as_often_as_their_spans() -> None:
    found = static_schedule(schedule(), {"init": 4.0, "acc": 12.0})
    # the loop's own bundles are 1 and 8, the program's 0 and 9
    assert found.run_bundles == 2 + 16 * 2 + 4 * 4 + 12 * 2
    assert found.busy["MXU"] == (4 * 4 * 2 + 12 * 2 * 1) / 2
    assert [(each.place, each.scope, each.bundles, each.runs) for each in found.regions] == [
        ("", "", 2, 16.0),
        ("kernel.py:9", "acc", 2, 12.0),
        ("kernel.py:7", "init", 4, 4.0),
        ("", "", 2, 1.0),
    ]
    assert found.regions[2].shares["MXU"] == 1.0 and found.regions[1].shares["MXU"] == 0.5
    assert sum(each.fraction for each in found.regions) == pytest.approx(1.0)
    assert (found.spills, found.fills, found.spill_bytes) == (3, 3, 512)


def test_without_spans_nobody_knows_how_often_a_condition_holds() -> None:
    found = static_schedule(schedule(), {})
    assert (found.run_bundles, found.busy) == (None, {})
    assert found.shares["MXU"] == (4 * 2 + 2) / 20  # each bundle once


def compiled(name: str) -> StaticSchedule:
    (spec,) = kernels(archive.program(name))
    return static_schedule(read_schedule(archive.stored(f"v5e-{name}.llo_module.pb")), {}, spec)


def test_without_spans_the_program_says_how_often_a_condition_on_its_grid_holds() -> None:
    found = compiled("matmul")  # 16 by 16 by 8 steps: a sum begins in the first of 8, and is written in the last
    assert found.busy["MXU"] == 2048 * 128 / 4  # it has four, and 128 of their slots are used in each step
    assert sorted(each.runs for each in found.regions if each.kind == "predicated") == [256, 256, 2048]
    assert not any(each.is_measured for each in found.regions)
    assert (compiled("gather").run_bundles, compiled("gather").busy) == (None, {})  # numbers say which rows there are


def test_a_loop_without_constant_bounds_is_unknown() -> None:
    assert static_schedule(schedule(-1), {"init": 4.0, "acc": 12.0}).run_bundles is None

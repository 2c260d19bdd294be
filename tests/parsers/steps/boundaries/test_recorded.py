"""Runs of modules without their ops: what is a hole in the record, and what is a stall, a branch or a small module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.support.build import OpSpec, present, summary_of, tpu_plane, trace_of
from tpuprof.parsers.files.places import HostFile
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.hosts.op_summary import OpSummary, summarise_ops
from tpuprof.parsers.ops.core.sums import ModuleHoles
from tpuprof.parsers.pages.ops.ops import ops_page
from tpuprof.parsers.pages.overview.model import Overview
from tpuprof.parsers.pages.overview.overview import overview
from tpuprof.parsers.steps.accounts.owners import Owner

MS = 10**9
LOOP = [("body.1", "convolution fusion", 5 * turn, 5) for turn in range(5)]
PROGRAM = (("while.1", "while", 0, 25), *LOOP, ("all-reduce.1", "all-reduce", 25, 20))
LOST: dict[str, Callable[[str, int], bool]] = {
    "": lambda name, at: False,
    "all": lambda name, at: True,
    "all-reduce": lambda name, at: name == "all-reduce.1",
    "loop": lambda name, at: name != "all-reduce.1",
    "body": lambda name, at: name == "body.1",
    "last turns": lambda name, at: name == "body.1" and at >= 10,
}
"""What a run may lose: ops by name, and by when they start in it."""


def space_of(lost: Callable[[int, int], str], runs: int = 8, cores: int = 1, steps: bool = False) -> XSpace:
    """Cores that run a program of 45 ms every 50 ms, without what each run of each core lost."""
    space = XSpace()
    for core in range(cores):
        ops: list[OpSpec] = []
        for run in range(runs):
            is_lost, start = LOST[lost(core, run)], (100 + 50 * run) * MS
            ops += [(name, of, start + at * MS, ps * MS) for name, of, at, ps in PROGRAM if not is_lost(name, at)]
        begins = [(100 + 50 * run) * MS for run in range(runs)]
        marked = [(str(run), begin, begin + 50 * MS) for run, begin in enumerate(begins)] if steps else []
        tpu_plane(space, core, ops, marked, [("jit_train_step(7)", begin, begin + 45 * MS) for begin in begins])
    return space


def ops_of(space: XSpace) -> OpSummary:
    """What the pages of ops need of a host, read by itself."""
    return summarise_ops(trace_of(space), HostFile("host0", "", 1, 0.0, False), None, lambda *_: None, 1)


def mean_ms(page: Overview, owner: Owner) -> float:
    return next(of.time_ps for of in present(page.account).owners if of.owner == owner) / MS


def shares_of(summary: OpSummary) -> dict[str, float]:
    """What each op takes of the whole time, and its FLOPs and the program's of it, in percent."""
    page, total = ops_page([summary]), summary.total_ps / 100
    shares = dict(zip(page.table.name, (100 * page.self_fraction).tolist(), strict=True))
    flops = dict(zip([f"flops of {name}" for name in shares], (page.table.flops / total * MS).tolist(), strict=True))
    return {**shares, **flops, "idle": page.idle_ps / total, "loop": int(page.table.total_ps.max()) / total}


@pytest.mark.parametrize("steps", [False, True])
@pytest.mark.parametrize("cores", [1, 4])
@given(lost=st.lists(st.sampled_from([*LOST]), min_size=8, max_size=8), core=st.integers(0, 3))
def test_figures_are_of_whole_runs(steps: bool, cores: int, lost: Sequence[str], core: int) -> None:
    emptied, partly = lost.count("all"), 8 - lost.count("all") - lost.count("")
    assume("" in lost or emptied == 8)
    space = space_of(lambda of, run: lost[run] if cores == 1 or of in (core, 0) else "", 8, cores, steps)
    summary, ops = summary_of(space), ops_of(space)
    assert (ops.total_ps, ops.span_ps, ops.holes) == (summary.total_ps, summary.span_ps, summary.holes)
    page, by_core = overview([summary]), 1 if cores == 1 or core == 0 else 2
    holes = ModuleHoles("jit_train_step(7)", 8 * cores, emptied * by_core, partly * by_core)
    assert [replace(of, lost=()) for of in summary.holes] == [holes] * (emptied + partly > 0)
    assert len([words for words in page.warnings if "jit_train_step" in words]) == len(summary.holes)
    named = [name for name, _, at, _ in PROGRAM if any(LOST[of](name, at) for of in lost if of != "all")]
    assert {name for of in summary.holes for name in of.lost} == {*named} - {"while.1"}
    kept = [run for run in range(not steps, 8) if not lost[run]]
    if len(ops.table):
        whole = summary_of(space_of(lambda *_: "", 8, cores, steps))
        assert shares_of(summary) == shares_of(ops) == pytest.approx(shares_of(whole))
        figures = ("flops_utilization_percent", "device_idle_percent", "device_duty_cycle_percent")
        for name in figures if by_core < cores or emptied < 8 else ():
            assert getattr(page.performance, name) == pytest.approx(getattr(overview([whole]).performance, name)), name
    if kept or (emptied == 8 and by_core < cores):  # cores without any op take no part in the steps
        kept = kept or list(range(not steps, 8))
        assert [round(step.duration_ps / MS) for step in page.steps] == [50] * len(kept)
        assert (mean_ms(page, "collective_transfer"), mean_ms(page, "host")) == (20, 5)
        assert all(owner.owner != "between_ops" or not owner.time_ps for owner in present(page.account).owners)
    else:
        assert page.account is None


def test_without_any_op_steps_have_a_duration_and_nothing_is_idle() -> None:
    page = overview([summary_of(space_of(lambda *_: "all", steps=True))])
    assert (present(page.performance.step_time).median_ps, page.account) == (50 * MS, None)
    assert [finding.kind for finding in page.findings] == ["no-device"]
    assert any("no run of jit_train_step has ops (8)" in words for words in page.warnings)


@given(st.lists(st.tuples(st.sampled_from(["taken", "not taken", "stalled", "waits"]), st.integers(0, 3)), max_size=8))
def test_stalls_branches_loops_and_small_modules_are_no_holes(runs: Sequence[tuple[str, int]]) -> None:
    """A branch that is not taken in runs which wait a little or more, and a loop of some turns."""
    ops: list[OpSpec] = []
    modules = [("jit_scalar(9)", 0, 1000)]
    for run, (kind, turns) in enumerate([("taken", 0), ("not taken", 3), *runs]):
        start, at = 100 * MS * (run + 1), {"stalled": 40, "waits": 45, "not taken": 22}.get(kind, 20) * MS
        taken = (start + at, 20 * MS if kind in ("taken", "stalled") else MS // 10)
        ops += [("fusion.1", "loop fusion", start, 20 * MS), ("conditional.1", "conditional", *taken)]
        ops += [("branch.1", "loop fusion", *taken)] * (kind in ("taken", "stalled"))
        at += taken[1] + MS // 10
        ops.append(("while.1", "while", start + at, (5 * turns + 1) * MS))
        ops += [("body.1", "loop fusion", start + at + 5 * turn * MS, 5 * MS) for turn in range(turns)]
        modules.append(("jit_f(7)", start, ops[-1 - turns][2] + ops[-1 - turns][3]))
    space = XSpace()
    tpu_plane(space, 0, ops, modules=modules)
    assert summary_of(space).holes == ops_of(space).holes == ()


@pytest.mark.parametrize("steps", [False, True])
@given(missing=st.sets(st.tuples(st.integers(0, 2), st.integers(2, 9)), max_size=8), everywhere=st.integers(3, 9))
def test_runs_that_are_not_there_at_all_are_neither_idle_nor_of_a_step(
    steps: bool, missing: set[tuple[int, int]], everywhere: int
) -> None:
    """Twelve runs on three cores that all-reduce; some are on no core, or on two of three."""
    missing |= {(core, everywhere) for core in range(3)}
    space = XSpace()
    for core in range(3):
        there = [run for run in range(12) if (core, run) not in missing]
        begins = [(100 + 50 * run) * MS for run in there]
        ops = [("fusion.1", "loop fusion", begin, 25 * MS) for begin in begins]
        ops += [("all-reduce.1", "all-reduce", begin + 25 * MS, 20 * MS) for begin in begins]
        marked = [(str(run), begin, begin + 45 * MS) for run, begin in zip(there, begins, strict=True)]
        plane = tpu_plane(space, core, ops, marked if steps else [])
        line = plane.line("XLA Modules")
        for run, begin in zip(there, begins, strict=True):
            plane.event(line, plane.event_id("jit_train_step(7)"), begin, 45 * MS, run_id=run)
    summary = summary_of(space)
    lost = {core: sum(45 * MS for of, _ in missing if of == core) for core in range(3)}
    assert {number: of.lost_ps for number, of in enumerate(summary.observed)} == lost
    found = present(summary.steps)
    assert len(found) == 12 - len({run for _, run in missing}) - (not steps)
    assert present(overview([summary]).account).period_ps == pytest.approx(50 * MS)
    of_ops, of_overview = (ops_page([of]) for of in (ops_of(space), summary))
    assert (of_ops.total_ps, of_ops.idle_ps) == (of_overview.total_ps, of_overview.idle_ps)

"""Runs of modules without their ops: what is a hole in the record, and what is a stall, a branch or a small module."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

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
PROGRAM = (("fusion.1", "convolution fusion", 25), ("all-reduce.1", "all-reduce", 20))
Dropped = Callable[[int, int, str], bool]
"""Whether the op of a core's run was lost."""


def space_of(dropped: Dropped, runs: int = 8, cores: int = 1, steps: bool = False) -> XSpace:
    """Cores that run a program of 45 ms every 50 ms, without the ops that were lost."""
    space = XSpace()
    for core in range(cores):
        ops: list[OpSpec] = []
        for run in range(runs):
            start = (100 + 50 * run) * MS
            for name, category, length in PROGRAM:
                if not dropped(core, run, name):
                    ops.append((name, category, start, length * MS))
                start += length * MS
        begins = [(100 + 50 * run) * MS for run in range(runs)]
        marked = [(str(run), begin, begin + 50 * MS) for run, begin in enumerate(begins)] if steps else []
        tpu_plane(space, core, ops, marked, [("jit_train_step(7)", begin, begin + 45 * MS) for begin in begins])
    return space


def ops_of(space: XSpace) -> OpSummary:
    """What the pages of ops need of a host, read by itself."""
    return summarise_ops(trace_of(space), HostFile("host0", "", 1, 0.0, False), None, lambda *_: None, 1)


def mean_ms(page: Overview, owner: Owner) -> float:
    return next(of.time_ps for of in present(page.account).owners if of.owner == owner) / MS


@pytest.mark.parametrize("steps", [False, True])
@pytest.mark.parametrize("cores", [1, 4])
@given(
    lost=st.lists(st.sampled_from(["", "all", "end", "all-reduce.1"]), min_size=8, max_size=8), core=st.integers(0, 3)
)
def test_figures_are_of_whole_runs(steps: bool, cores: int, lost: Sequence[str], core: int) -> None:
    emptied, partly = lost.count("all"), 8 - lost.count("all") - lost.count("")
    assume("" in lost or emptied == 8)

    def dropped(of: int, run: int, name: str) -> bool:
        mine = cores == 1 or of in (core, 0)
        return mine and (lost[run] == "all" or (lost[run] != "" and name == "all-reduce.1"))

    space = space_of(dropped, 8, cores, steps)
    summary = summary_of(space)
    ops = ops_of(space)
    assert (ops.total_ps, ops.span_ps, ops.holes) == (summary.total_ps, summary.span_ps, summary.holes)
    page, by_core = overview([summary]), 1 if cores == 1 or core == 0 else 2
    holes = ModuleHoles("jit_train_step(7)", 8 * cores, emptied * by_core, partly * by_core)
    assert summary.holes == ((holes,) if emptied or partly else ())
    assert len([words for words in page.warnings if "jit_train_step" in words]) == len(summary.holes)
    idle, of_ops = page.performance.device_idle_percent, ops_page([ops])
    if not steps and idle is not None:  # else both ends of the steps count on the pages of ops
        assert math.isclose(idle, 100 * of_ops.idle_ps / of_ops.total_ps, abs_tol=1e-6)
    kept = [run for run in range(not steps, 8) if not lost[run]]
    if kept or (emptied == 8 and by_core < cores):  # cores without any op take no part in the steps
        kept = kept or list(range(not steps, 8))
        assert [round(step.duration_ps / MS) for step in page.steps] == [50] * len(kept)
        assert (mean_ms(page, "collective_transfer"), mean_ms(page, "host")) == (20, 5)
        assert all(owner.owner != "between_ops" or not owner.time_ps for owner in present(page.account).owners)
    else:
        assert page.account is None


@given(st.lists(st.integers(0, 6), min_size=4, max_size=8).filter(lambda lost: 0 in lost and any(lost)))
def test_runs_lack_what_a_loop_runs_less_often(lost: list[int]) -> None:
    """Ten turns of 4 ms in each run of 40 ms, of which the last ones were not recorded."""
    space, begins = XSpace(), [(100 + 50 * run) * MS for run in range(len(lost))]
    turns = [begin + turn * 4 * MS for begin, less in zip(begins, lost, strict=True) for turn in range(10 - less)]
    runs = [("jit_train_step(7)", begin, begin + 40 * MS) for begin in begins]
    steps = [(str(run), begin, begin + 50 * MS) for run, begin in enumerate(begins)]
    tpu_plane(space, 0, [("body.1", "convolution fusion", start, 4 * MS) for start in turns], steps, runs)
    summary, ops = summary_of(space), ops_of(space)
    assert summary.holes == ops.holes == (ModuleHoles("jit_train_step(7)", len(lost), 0, sum(map(bool, lost))),)
    assert (ops.total_ps, ops.span_ps) == (summary.total_ps, summary.span_ps)
    assert mean_ms(overview([summary]), "host") == 10


def test_without_any_op_steps_have_a_duration_and_nothing_is_idle() -> None:
    page = overview([summary_of(space_of(lambda *_: True, steps=True))])
    assert (present(page.performance.step_time).median_ps, page.account) == (50 * MS, None)
    assert [finding.kind for finding in page.findings] == ["no-device"]
    assert any("no run of jit_train_step has ops (8)" in words for words in page.warnings)


@given(st.lists(st.sampled_from(["taken", "not taken", "stalled"]), min_size=3, max_size=8))
def test_stalls_branches_and_small_modules_are_no_holes(runs: Sequence[str]) -> None:
    ops: list[OpSpec] = []
    modules = [("jit_scalar(9)", 0, 1000)]
    for run, kind in enumerate(runs):
        start, length = 100 * MS * (run + 1), {"taken": 40, "not taken": 20, "stalled": 60}[kind]
        ops.append(("fusion.1", "loop fusion", start, 20 * MS))
        if kind != "not taken":
            ops.append(("branch.1", "loop fusion", start + (length - 20) * MS, 20 * MS))
        modules.append(("jit_f(7)", start, start + length * MS))
    space = XSpace()
    tpu_plane(space, 0, ops, modules=modules)
    assert summary_of(space).holes == ()

"""What must hold of the bench itself: truths are simulated, plants change nothing else, profiles are sound."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.insight.cases.all import CASES, SHOWN, SPLIT
from tests.insight.cases.case import WORTHLESS, Case
from tests.insight.score import open_run, write
from tests.insight.simulator.code import Timed
from tests.insight.simulator.play import Played
from tests.insight.simulator.scene import compiled, play
from tests.insight.simulator.space import spaces
from tests.parity.ops.test_ops import compare_ops
from tests.parity.oracle.live import ask, has_xprof
from tests.parity.oracle.op_fields import summary_of
from tpuprof.parsers.formats.proto.xplane_pb2 import XPlane, XSpace
from tpuprof.parsers.pages.findings.why_slow import KINDS
from tpuprof.parsers.pages.ops.ops import ops_page
from tpuprof.parsers.pages.overview.model import OVERVIEW
from tpuprof.parsers.session.session import Session

WRITTEN = [case for case in CASES if case.scene.traced == "all"][::4]
"""Cases whose profiles are looked at closely."""

NOT_SIMULATED = "silence"
"""What no case is planted for: what lies outside the steps."""


def test_every_kind_of_finding_has_a_planted_case() -> None:
    """A kind that no case was planted for is one that nobody has seen found, or found wrongly."""
    planted = {case.kind for case in CASES if not case.is_healthy}
    assert planted == set(KINDS) - {NOT_SIMULATED}, "plant a case of each kind in tests/insight/cases"


def test_cases_are_many_and_split_evenly() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
    split = [case for case in CASES if case.half is None]
    for which in {case.set for case in split}:
        halves = Counter(SPLIT[case.name] for case in split if case.set == which)
        assert abs(halves["tuned"] - halves["held"]) <= 1, which


def test_cases_that_are_shown_were_held_back() -> None:
    assert {SPLIT.get(name) for name in SHOWN} == {"held"}


def test_problems_are_worth_what_a_user_would_care_for() -> None:
    for case in CASES:
        if case.is_healthy or case.kind in WORTHLESS:
            assert case.truth.step_ps == 0
        for planted in case.planted:
            assert planted.kind in WORTHLESS or 0.02 <= planted.truth.fraction <= 0.70, case.name


@pytest.mark.parametrize("case", [case for case in CASES if not case.is_healthy][::3], ids=lambda case: case.name)
def test_a_plant_changes_nothing_else(case: Case) -> None:
    """Ops that take the same without noise take the same with noise, on every core in every step.

    What is changed is few ops, those of layers with numbers counted once.
    """
    if case.scene.chips != case.without.chips:
        pytest.skip("the chips are what differs")
    if any(
        getattr(ours, "micro", 1) != getattr(theirs, "micro", 1)
        for ours, theirs in zip(case.scene.work, case.without.work, strict=True)
    ):
        pytest.skip("micro-batches of another size change all ops")
    ours, theirs = _lengths(case.played), _lengths(case.played_without)
    same = {label for label in ours.keys() & theirs.keys() if ours[label][0] == theirs[label][0]}
    assert same
    for label in same:
        assert np.array_equal(ours[label][1], theirs[label][1]), label
    changed = {re.sub(r"_\d+/", "/", label.split("|")[1]) for label in (ours.keys() ^ same) | (theirs.keys() ^ same)}
    assert len(changed) <= 14, changed


def _lengths(played: Played) -> dict[str, tuple[object, np.ndarray[tuple[int, ...], np.dtype[np.int64]]]]:
    """Of each op that only computes: what it takes undisturbed and its load, and the durations of its events."""
    found: dict[str, list[np.ndarray[tuple[int, ...], np.dtype[np.int64]]]] = {}
    timed_of: dict[str, Timed] = {}
    for launch in played.launches:
        for row, op in enumerate(launch.ops.tolist()):
            timed = launch.program.ops[op]
            if not timed.op.transfer_ps and timed.op.category not in ("while",) and not _waits(timed):
                label = f"{launch.program.module.name}|{timed.label}"
                found.setdefault(label, []).append(launch.durations[row])
                timed_of[label] = timed
    return {
        label: (
            (timed_of[label].op.duration_ps, timed_of[label].load, timed_of[label].loads, len(rows)),
            np.array(rows),
        )
        for label, rows in found.items()
    }


def _waits(timed: Timed) -> bool:
    value = timed.op.instruction
    return value.opcode.endswith(b"-done") or b"-done" in value.name


def test_no_op_is_faster_than_its_chip() -> None:
    for case in CASES:
        device = case.scene.device
        for program in compiled(case.scene):
            for timed in program.ops:
                op = timed.op
                if op.transfer_ps or op.duration_ps < 100_000 or _waits(timed):
                    continue
                least = max(op.flops / device.flops, op.traffic.hbm / device.hbm_bytes) * 1e12
                loads = [load for row in (timed.load, *timed.loads) for load in row if load > 0]
                assert op.duration_ps * min(loads, default=1.0) >= least, (case.name, timed.label)


@pytest.mark.parametrize("case", WRITTEN, ids=lambda case: case.name)
def test_profiles_hold_what_was_simulated(case: Case) -> None:
    """Steps, runs and ops of the file are those of the simulation; ops follow each other or lie inside each other."""
    for host, data in enumerate(spaces(case.scene, case.played)):
        space = XSpace.FromString(data)
        planes = [plane for plane in space.planes if plane.name.startswith(b"/device:TPU")]
        assert len(planes) == case.scene.cores
        for core, plane in enumerate(planes):
            at = host * case.scene.cores + core
            spans = _spans(plane, b"XLA Modules")
            assert len(spans) == len(case.played.launches)
            if case.scene.marks and case.has_plain_steps:
                durations = np.diff(_spans(plane, b"Steps"), axis=1)[:, 0]
                assert np.array_equal(durations, (case.played.step_ends - case.played.step_begins)[:, at])
            ops = _spans(plane, b"XLA Ops")
            assert len(ops) == sum(int((launch.durations[:, at] > 0).sum()) for launch in case.played.launches)
            run = np.searchsorted(spans[:, 0], ops[:, 0], side="right") - 1
            assert (ops[:, 1] <= spans[run, 1]).all()
            _check_nested(ops)


def _spans(plane: XPlane, name: bytes) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """int64[events, 2]: begin and end, in order."""
    (line,) = (line for line in plane.lines if line.name == name)
    return np.array([(event.offset_ps, event.offset_ps + event.duration_ps) for event in line.events], np.int64)


def _check_nested(spans: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> None:
    around: list[int] = []
    for begin, end in spans[np.lexsort((-spans[:, 1], spans[:, 0]))].tolist():
        while around and around[-1] <= begin:
            around.pop()
        assert not around or end <= around[-1]
        around.append(end)


TOLD = ("the devices' clocks run ahead of the host's", "FLOPs and bytes are counted for", "first whole step starts")
"""What is true of some profiles and no complaint: clocks that differ, kernels without counts, time in no step."""

READ = [case for case in WRITTEN[::3] if case.part == "single" or case.scene.hosts == 1]
"""Cases whose steps are read too; how steps of hosts are joined that pause, or whose clocks are steps apart, is not the
simulator's matter."""


@pytest.mark.parametrize("case", READ, ids=lambda case: case.name)
def test_the_program_reads_profiles_without_complaint(case: Case, tmp_path: Path) -> None:
    write(case, tmp_path)
    run = open_run(case, tmp_path)
    page = Session(run).page(OVERVIEW)
    assert not run.problems
    assert all(any(words in warning for words in TOLD) for warning in page.warnings)
    is_ahead = any(warning.startswith(TOLD[0]) for warning in page.warnings)
    assert is_ahead == (case.scene.chips.ahead_ps > 0)
    assert page.environment.device_core_count == case.scene.hosts * case.scene.cores
    assert page.environment.host_count == case.scene.hosts
    time = page.performance.step_time
    assert time is not None
    if case.has_plain_steps:
        assert abs(time.average_ps - case.truth.whole_step_ps) <= 0.02 * case.truth.whole_step_ps


@pytest.mark.parametrize("case", [case for case in WRITTEN if case.scene.marks][::7], ids=lambda case: case.name)
def test_xprof_sums_ops_as_the_program_does(case: Case, tmp_path: Path) -> None:
    """With step markers, that is: without, XProf's percentages mix the clocks of device and trace."""
    if not has_xprof():
        pytest.skip("XProf is not installed here")
    file = write(case, tmp_path) / "host-0.xplane.pb"
    page = ops_page([summary_of(file)])
    result = compare_ops(ask(file.read_bytes(), tmp_path / "answers")["hlo_stats"], page)
    assert result.unexplained == []
    assert result.compared >= 20 * len(page)


def test_the_same_scene_gives_the_same_bytes() -> None:
    for case in CASES[::30]:
        assert spaces(case.scene, play(case.scene)) == spaces(case.scene, play(case.scene))

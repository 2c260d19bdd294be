"""Several launches as one side: how often a change is found that is none, or not found, and whose noise it is."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.parsers.session.diff.build import MS, US, check_identity, op, written
from tests.parsers.session.diff.test_compare import BASE, steady
from tests.support.build import present, session_at
from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.session.diff.compare import compare_launches
from tpuprof.parsers.session.diff.model import Diff, change_of
from tpuprof.parsers.session.diff.noise import POWER, MeanEstimate, estimate, launches_needed, student
from tpuprof.parsers.session.session import Session
from tpuprof.tui.pages.commands.diff.verdict import headline_mark, verdict

TRIALS = 1500


def launches(random: np.random.Generator, count: int, spread: float, change: float = 0.0) -> MeanEstimate:
    """The mean of launches that take a second."""
    return estimate(random.normal(1e12 * (1 + change), 1e12 * spread, count), np.ones(count), True)


@pytest.mark.parametrize("spread", [0.005, 0.03])
@pytest.mark.parametrize("counts", [(2, 2), (3, 3), (10, 10), (3, 12), (1, 10), (6, 1)])
def test_equal_launches_differ_no_more_often_than_claimed(counts: tuple[int, int], spread: float) -> None:
    random = np.random.default_rng(1)
    others = spread if 1 in counts else 0.03  # one alone has the spread of the others
    pairs = ((launches(random, counts[0], spread), launches(random, counts[1], others)) for _ in range(TRIALS))
    found = sum(change_of(*pair).mark != "same" for pair in pairs) / TRIALS
    assert 0.005 < found < 0.07  # claimed are 5 %


@pytest.mark.parametrize("wanted", [0.01, 0.03])
@pytest.mark.parametrize("counts", [(3, 3), (5, 5), (10, 4)])
def test_as_many_launches_as_are_missing_find_a_change_of_the_wanted_size(
    counts: tuple[int, int], wanted: float
) -> None:
    random = np.random.default_rng(2)
    found, alarms, numbers = 0, 0, []
    for _ in range(TRIALS // 3):
        more = present(
            launches_needed(launches(random, counts[0], 0.02), launches(random, counts[1], 0.02), wanted * 1e12)
        )
        numbers.append(more)
        before = launches(random, counts[0] + more, 0.02)
        found += change_of(before, launches(random, counts[1] + more, 0.02, wanted)).mark == "more"
        alarms += change_of(before, launches(random, counts[1] + more, 0.02)).mark != "same"
    assert POWER - 0.05 < found / len(numbers) < 0.97 and alarms / len(numbers) < 0.075
    assert (np.median(numbers) > 30) == (wanted == 0.01)


def test_one_launch_has_the_spread_of_the_others() -> None:
    several = estimate(np.array([100.0, 110.0, 90.0]), np.ones(3), True)
    found = change_of(MeanEstimate(120.0, is_of_launches=True), several)
    assert found.noise == pytest.approx(student(0.95, 2) * 10 * np.sqrt(1 + 1 / 3)) and found.mark == "same"
    assert change_of(MeanEstimate(120.0), several).noise is None  # a run of one step is no launch
    assert launches_needed(MeanEstimate(1.0), several, 1.0) is launches_needed(several, several, 1e-3) is None
    assert launches_needed(several, several, 1e6) == 0


# --- launches that are read ----------------------------------------------------------------------------------------

OF_A, OF_B = (0, 700, -600, 300), (2100, 1500, 2600, 1800)
"""How many microseconds longer than `BASE` a step of each launch is."""


def side(folder: Path, name: str, longer: tuple[int, ...], first: float = 0.0, apart: float = 2.0) -> list[Session]:
    """Launches of a program, a few seconds apart."""
    sessions = []
    for number, us in enumerate(longer):
        steps = steady(("fusion.1", 60 * MS), ("copy.2", 10 * MS + us * US), ("all-reduce.3", 20 * MS))
        path = written(folder, f"{name}{number}", replace(BASE, steps=steps))
        for file in Path(path).rglob("*.pb") if os.path.isdir(path) else (Path(path),):
            os.utime(file, (1e9 + first + apart * number,) * 2)
        sessions.append(session_at(path))
    return sessions


def compared(folder: Path, before: tuple[int, ...], after: tuple[int, ...], detect: float = 0.05) -> Diff:
    return compare_launches((side(folder, "a", before), side(folder, "b", after, 1.0)), detect=detect)[0]


def test_the_noise_is_that_between_launches(tmp_path: Path) -> None:
    diff = compared(tmp_path, OF_A, OF_B)
    steps, found = present(diff.steps), present(diff.launches)
    error = np.hypot(np.std(OF_A, ddof=1), np.std(OF_B, ddof=1)) / 2
    assert steps.typical.delta == steps.mean.delta == pytest.approx(1900 * US)
    assert error * 2.4 * US < present(steps.typical.noise) < error * 2.6 * US and steps.typical.mark == "more"
    assert op(diff, "copy.2").time.delta == pytest.approx(1900 * US) and op(diff, "fusion.1").time.mark == "same"
    assert [owner.owner for owner in diff.owners if owner.mean.is_beyond_noise] == ["copy"]
    assert len(diff.before.step_ps) == 40 and diff.before.name.endswith("(median of 4)")
    assert found.spreads == pytest.approx([np.std(of, ddof=1) * US for of in (OF_A, OF_B)])
    assert found.order == "" and len(found.before) == len(found.after) == 4
    check_identity(diff)


def test_too_few_launches_are_no_verdict(tmp_path: Path) -> None:
    open_ = compared(tmp_path / "few", OF_A[:2], (200, 400), 0.01)
    assert headline_mark(open_) == "unknown" and present(open_.steps).typical.mark == "same"
    assert "to find a change of 1%, " in verdict(open_) and " more of each side are needed." in verdict(open_)
    enough = compared(tmp_path / "enough", OF_A, (200, 400, 100, -100), 0.05)
    assert headline_mark(enough) == "same" and verdict(enough).endswith(": a change of 5% would have been found.")


def test_one_launch_against_several(tmp_path: Path) -> None:
    diff = compared(tmp_path, (0,), OF_B)
    found = present(diff.launches)
    assert found.spreads[0] is None and present(diff.steps).typical.noise is not None
    assert op(diff, "copy.2").time.noise is not None and diff.before.name.endswith("a0")


def test_a_drift_cannot_be_told_from_a_change(tmp_path: Path) -> None:
    for number, (first, apart) in enumerate(((9.0, 2.0), (-90.0, 2.0), (0.0, 0.5))):
        folder = tmp_path / str(number)
        diff, _ = compare_launches((side(folder, "a", OF_A), side(folder, "b", OF_B, first, apart)))
        one = "AB-"[number]
        assert any(words.startswith(f"every launch of {one} was captured") for words in diff.warnings) == (number < 2)


def test_launches_that_can_not_be_read_are_left_out(tmp_path: Path) -> None:
    before, after = side(tmp_path, "a", OF_A), side(tmp_path, "b", OF_B, 1.0)
    Path(before[1].run.hosts[0].path).write_bytes(b"\xff" * 99)
    diff, middle = compare_launches((before, after))
    assert len(present(diff.launches).before) == 3 and middle[0] in before
    assert any("a1 is left out: " in sentence for sentence in diff.warnings)
    with pytest.raises(ProfileError):
        compare_launches((before[1:2], after))


def test_without_steps_launches_show_the_noise(tmp_path: Path) -> None:
    runs = [
        [session_at(written(tmp_path, f"{name}{number}", replace(BASE, marked=False, runs=False, idle_ps=number * MS)))
         for number in range(3)]
        for name in "ab"
    ]  # fmt: skip
    diff, _ = compare_launches((runs[0], runs[1]))
    assert diff.basis == "capture" and diff.total.noise is not None and diff.total.mark == "same"

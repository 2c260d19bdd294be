"""What a check of regressions answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.parsers.session.diff.build import MS, Program, diff_of
from tests.parsers.session.diff.test_compare import BASE, JITTER, steady
from tpuprof.parsers.session.diff.regression import regression


def slower(by: int) -> Program:
    """The base with a copy that takes so much longer."""
    return replace(BASE, steps=steady(("fusion.1", 60 * MS), ("copy.2", 10 * MS + by), ("all-reduce.3", 20 * MS)))


def test_slower_than_allowed(tmp_path: Path) -> None:
    diff = diff_of(tmp_path, BASE, slower(7 * MS))
    found = regression(diff, 0.05)
    assert found.outcome == "slower"
    assert found.sentence == "The typical step takes 7.0% longer than before, more than the 5% allowed."
    assert regression(diff, 0.07).outcome == "passed" and regression(diff, 0.08).sentence == ""


def test_faster_passes(tmp_path: Path) -> None:
    assert regression(diff_of(tmp_path, slower(7 * MS), BASE), 0.0).outcome == "passed"


def test_within_the_noise_passes_and_says_how_little_that_means(tmp_path: Path) -> None:
    wild = [1, 40, -35, 20, -20, 35, -30, 10, -10, 5]
    steps = [[("fusion.1", 60 * MS + by * MS)] for by in wild]
    after = [[("fusion.1", 66 * MS + by * MS)] for by in wild]
    found = regression(diff_of(tmp_path, replace(BASE, steps=steps), replace(BASE, steps=after)), 0.05)
    assert found.outcome == "passed" and "is larger than the 5% allowed: more steps would decide" in found.sentence


def test_odd_steps_that_slow_the_mean(tmp_path: Path) -> None:
    many = replace(BASE, steps=[*BASE.steps] * 4, idle_ps=[10 * MS] * 40)
    stalls = [10 * MS if number % 5 else 150 * MS for number in range(40)]
    diff = diff_of(tmp_path, many, replace(many, idle_ps=stalls))
    assert diff.after.odd_count == 8 and diff.steps is not None and diff.steps.typical.mark == "same"
    found = regression(diff, 0.05)
    assert found.outcome == "slower" and found.sentence.startswith("The mean step takes 28.0% longer")


def test_what_cannot_be_told(tmp_path: Path) -> None:
    bare = replace(BASE, marked=False, steps=BASE.steps[:2])
    found = regression(diff_of(tmp_path / "bare", bare, bare), 0.05)
    assert found.outcome == "unknown" and "nothing can be said of a regression" in found.sentence
    one = replace(BASE, steps=BASE.steps[:1])
    found = regression(diff_of(tmp_path / "one", one, one), 0.05)
    assert found.outcome == "unknown" and "one step" in found.sentence
    assert len(JITTER) == 10

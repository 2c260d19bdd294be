"""What a check of regressions answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parsers.session.diff.build import MS, check_identity, diff_of
from tests.parsers.session.diff.test_compare import BASE
from tests.support.build import OpSpec, present, session_at, tpu_plane, write_run
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.session.diff.compare import compare, compare_launches
from tpuprof.parsers.session.diff.model import Change, change
from tpuprof.parsers.session.diff.regression import regression
from tpuprof.parsers.session.trend import judged, point

CHANGE = st.builds(change, *[st.integers(0, 7).map(float)] * 3)
SAME = cache(lambda folder: diff_of(folder, BASE, BASE))


@given(CHANGE, CHANGE, st.integers(0, 300))
def test_what_grows_by_more_than_noise_and_what_is_allowed_fails_and_large_noise_is_told(
    tmp_path_factory: pytest.TempPathFactory, typical: Change, mean: Change, allowed: int
) -> None:
    diff = SAME(tmp_path_factory.getbasetemp() / "same")
    found = regression(replace(diff, steps=replace(present(diff.steps), typical=typical, mean=mean)), allowed / 100)
    told = {"slower": "", "passed": ""}
    for name, of in (("mean", mean), ("typical", typical)):
        before, more, noise = of.before or 0.0, (of.after or 0.0) - (of.before or 0.0), of.noise or 0.0
        is_more = before > 0 and more / before > allowed / 100
        if is_more and more > noise:
            told["slower"] = f"The {name} step takes {100 * more / before:.1f}% longer"
        elif abs(more) <= noise and (is_more or name == "typical") and 100 * noise > allowed * before > 0:
            told["passed"] = f"The noise ({100 * noise / before:.1f}%) is larger than the {allowed}% allowed"
    expected = "slower" if told["slower"] else "passed"
    assert found.outcome == expected and bool(found.sentence) == bool(told[expected])
    assert found.sentence.startswith(told[expected])


def test_odd_steps_that_slow_the_mean(tmp_path: Path) -> None:
    many = replace(BASE, steps=[*BASE.steps] * 4, idle_ps=[10 * MS] * 40)
    stalls = [10 * MS if number % 5 else 150 * MS for number in range(40)]
    diff = diff_of(tmp_path, many, replace(many, idle_ps=stalls))
    assert diff.after.odd_count == 8 and diff.steps is not None and diff.steps.typical.mark == "same"
    found = regression(diff, 0.05)
    assert found.outcome == "slower" and found.sentence.startswith("The mean step takes 28.0% longer")


def test_a_program_between_marked_steps_is_part_of_what_a_step_takes(tmp_path: Path) -> None:
    spaces = {}
    for name, evaluation in (("before", 60), ("after", 90)):
        space, at, ops, steps = XSpace(), 0, list[OpSpec](), list[tuple[str, int, int]]()
        for step in range(20):
            steps.append((str(step), at, at + 48 * MS))
            ops.append(("fusion.1", "loop fusion", at, 48 * MS))
            at += 50 * MS
            if step % 5 == 4:
                ops.append(("fusion.9", "loop fusion", at, evaluation * MS))
                at += (evaluation + 2) * MS
        tpu_plane(space, 0, ops, steps)
        spaces[name] = session_at(write_run(tmp_path / name, host=space))
    diff = compare(spaces["before"], spaces["after"])
    assert present(present(diff.steps).mean.after) == pytest.approx((19 * 50 + 3 * 92) * MS / 19)
    assert present(diff.steps).typical.mark == "same" and regression(diff, 0.05).outcome == "slower"
    check_identity(diff)


def test_what_cannot_be_told(tmp_path: Path) -> None:
    bare = replace(BASE, marked=False, steps=BASE.steps[:2])
    found = regression(diff_of(tmp_path / "bare", bare, bare), 0.05)
    assert found.outcome == "unknown" and "nothing can be said of a regression" in found.sentence
    one = replace(BASE, steps=BASE.steps[:1])
    found = regression(diff_of(tmp_path / "one", one, one), 0.05)
    assert found.outcome == "unknown" and "one step" in found.sentence


def engines(periods: Mapping[int, int]) -> XSpace:
    """Cores that decode without a collective, each in its own period, and are busy for half of it."""
    space = XSpace()
    for core, period in periods.items():
        runs = [
            (f"jit_decode({core + 7})", begin, begin + period * MS // 2)
            for begin in range(0, 12 * period * MS, period * MS)
        ]
        tpu_plane(space, core, [("fusion.1", "loop fusion", start, end - start) for _, start, end in runs], (), runs)
    return space


CORES = st.sets(st.integers(0, 3), min_size=1).map(sorted)


@settings(max_examples=12)
@given(st.permutations([40, 53, 67, 80]), CORES, CORES, st.integers(0, 3), st.sampled_from([1.0, 1.5, 0.6]))
def test_each_engine_is_compared_with_itself(
    tmp_path_factory: pytest.TempPathFactory,
    periods: list[int],
    cores: list[int],
    others: list[int],
    changed: int,
    factor: float,
) -> None:
    """Whichever is the busiest, and whichever each run has; all figures are of one, and the trend compares no two."""
    after = [round(of * factor) if core == changed else of for core, of in enumerate(periods)]
    folder = tmp_path_factory.mktemp("engines")
    runs = {core: periods[core] for core in cores}, {core: after[core] for core in others}
    sides = [session_at(write_run(folder / name, h=engines(of))) for name, of in zip("ab", runs, strict=True)]
    diff = compare(sides[0], sides[1])
    check_identity(diff)
    points = [point(of) for of in sides]
    for of, run in zip(points, runs, strict=True):
        assert of.step_ps == MS * [*run.values()][(of.group or 1) - 1]
        assert of.idle_percent == pytest.approx(50, abs=3)
    if points[0].group != points[1].group:
        assert judged(points)[1].verdict == "other program"
    both = [core for core in cores if core in others]
    if not both:
        return
    shown = changed if changed in both else both[0]
    typical = present(diff.steps).typical
    assert (typical.before, typical.after) == (periods[shown] * MS, after[shown] * MS)
    assert regression(diff, 0.05).outcome == ("slower" if typical.delta and factor > 1 else "passed")
    if len(cores) > 1 or len(others) > 1:
        assert f"compared is group {cores.index(shown) + 1} " in diff.warnings[0]
        assert diff.warnings[0].count("the same") == len(both) - 1
    last = both[-1]
    asked = compare_launches(([sides[0]], [sides[1]]), group=cores.index(last) + 1)[0]
    assert present(asked.steps).typical.after == after[last] * MS

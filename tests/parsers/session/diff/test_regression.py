"""What a check of regressions answers."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.session.diff.build import MS, diff_of
from tests.parsers.session.diff.test_compare import BASE, JITTER
from tests.support.build import present
from tpuprof.parsers.session.diff.model import Change, change
from tpuprof.parsers.session.diff.regression import regression

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


def test_what_cannot_be_told(tmp_path: Path) -> None:
    bare = replace(BASE, marked=False, steps=BASE.steps[:2])
    found = regression(diff_of(tmp_path / "bare", bare, bare), 0.05)
    assert found.outcome == "unknown" and "nothing can be said of a regression" in found.sentence
    one = replace(BASE, steps=BASE.steps[:1])
    found = regression(diff_of(tmp_path / "one", one, one), 0.05)
    assert found.outcome == "unknown" and "one step" in found.sentence
    assert len(JITTER) == 10

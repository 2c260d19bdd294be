"""A few damaged inputs for each reader, all past failures, and that a broken promise would be seen."""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fuzz import trial
from tests.fuzz.corpus import past_failures
from tests.fuzz.measured.costs import Cost, kept_costs
from tests.fuzz.mutate import ALL, mutated
from tests.fuzz.targets import TARGETS, Target
from tests.fuzz.trial import attempt, judged
from tpuprof.parsers.base.errors import EXIT_OK, EXIT_UNREADABLE

CASES = 60
FEW = 5
BY_NAME = {target.name: target for target in TARGETS}
FAILURES = list(past_failures())
COSTS = list(kept_costs())


@pytest.fixture(autouse=True)
def _folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "120")


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_no_damaged_input_breaks_a_promise(target: Target, tmp_path: Path) -> None:
    kinds = Counter[str]()
    for number in range(0, CASES, target.turns):
        outcome = target.run(tmp_path, target.case(number), number)
        assert not outcome.is_fault, f"{target.name} {number}: {outcome}"
        kinds[outcome.kind] += 1
    few = sum(kinds.values()) < FEW
    assert few or (kinds["read"] and kinds["refused"]), (
        f"the damage is too small or too large to find anything: {kinds}"
    )


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_undamaged_input_is_read(target: Target, tmp_path: Path) -> None:
    """In some way at least: not every page has something of every profile."""
    for data in target.seeds():
        assert any(target.run(tmp_path, data, way).kind == "read" for way in range(20))


@pytest.mark.parametrize(("name", "number", "data"), FAILURES, ids=[f"{name} {number}" for name, number, _ in FAILURES])
def test_what_failed_once_holds(name: str, number: int, data: bytes, tmp_path: Path) -> None:
    outcome = BY_NAME[name].run(tmp_path, data, number)
    assert not outcome.is_fault, outcome


@pytest.mark.parametrize("cost", COSTS, ids=lambda cost: f"{cost.target} {cost.number}")
def test_what_cost_most_stays_within_the_budget(cost: Cost, tmp_path: Path) -> None:
    outcome = BY_NAME[cost.target].run(tmp_path, cost.data, cost.number)
    assert not outcome.is_fault, outcome
    assert replace(cost, grown=outcome.grown).memory_share < 1


def test_cases_are_the_same_each_time() -> None:
    """And mutations do what they are there for: most change their input, and each does at some seed."""
    target = BY_NAME["xspace"]
    cases = [target.case(number) for number in range(40)]
    assert cases == [target.case(number) for number in range(40)]
    assert len({*cases}) > 30
    rng = random.Random(7)
    data = target.seeds()[0]
    for mutate in ALL:
        assert any(mutate(rng, data) != data for _ in range(20)), mutate
    assert mutated(rng, b"") is not None  # nothing to damage is no reason to fail


@pytest.mark.parametrize(
    ("code", "out", "errors", "kind"),
    [
        (EXIT_OK, b'{"a": 1}\n', "", "read"),
        (EXIT_OK, b'{"a": NaN}\n', "", "not JSON"),
        (EXIT_OK, b'{"a": 1', "", "not JSON"),
        (EXIT_OK, b"\x1b[201~", "", "control character"),
        (EXIT_OK, "\u202e".encode(), "", "control character"),
        (EXIT_OK, b"\xff", "", "not UTF-8"),
        (EXIT_UNREADABLE, b"", "It is damaged.\n", "refused"),
        (EXIT_UNREADABLE, b"", "", "silent"),
        (EXIT_UNREADABLE, b"{}", "It is damaged.\n", "output of a refusal"),
        (EXIT_UNREADABLE, b"", "Traceback (most recent call last)", "traceback"),
        (1, b"", "Oh.", "exit code"),
    ],
)
def test_a_broken_promise_is_seen(code: int, out: bytes, errors: str, kind: str) -> None:
    assert judged(code, out, errors, is_json=True).kind == kind


def test_what_takes_too_long_or_raises_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(_: object) -> int:
        try:
            while True:
                time.sleep(0.01)
        except Exception:  # noqa: BLE001 - the program may not swallow the end of its time
            return 0

    monkeypatch.setattr(trial, "SECONDS", 0.05)
    monkeypatch.setattr(trial, "main", endless)
    assert attempt([]).kind == "slow"

    def broken(_: object) -> int:
        raise AssertionError("never")

    monkeypatch.setattr(trial, "main", broken)
    assert attempt([]).kind == "raised"

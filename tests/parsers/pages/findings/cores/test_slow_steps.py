"""Slow steps: what must be found, and what must not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.parsers.pages.findings.build import US, evidence, found, grid, the, with_


def slower(extra: float, *steps: int, count: int = 10) -> list[float]:
    return [extra if step in steps else 0.0 for step in range(count)]


@pytest.mark.parametrize(
    ("extra", "slow", "count"),
    [
        (14, [7], 10),  # they vary little
        (40, [1, 4, 6], 10),  # many are slow
        (40, [2], 3),  # too few steps to tell
        (50, [7], 100),  # one of very many is no loss
    ],
)
def test_steps_of_which_none_is_called_slow(extra: float, slow: list[int], count: int) -> None:
    times = 100 + np.array(slower(extra, *slow, count=count))
    assert found("slow-step", evidence(grid({"compute": times}, steps=count))) is None


def test_an_inferred_step_that_began_early_is_not_slow() -> None:
    """The step before it is as much shorter: the module was launched while the one before still ran."""
    times = 100 + np.array(slower(30, 7)) - np.array(slower(30, 6))
    assert found("slow-step", evidence(grid({"compute": times}, source="modules"))) is None
    assert found("slow-step", evidence(grid({"compute": times}, source="steps"))) is not None
    alone = 100 + np.array(slower(30, 7))
    assert the("slow-step", evidence(grid({"compute": alone}, source="modules"))).worth_ps == 3 * US


def evaluating(other: str = "jit_eval_step(9)", **more: object) -> Any:
    """Every third step takes 140 microseconds in place of 100, because a second module runs in it."""
    times = 100 + np.array(slower(40, 2, 5, 8))
    steps = grid({"compute": times}, steps=10)
    trains = steps.start_ps, np.full(10, 100 * US)
    evaluates = steps.start_ps[2::3] + 100 * US, np.full(3, 40 * US)
    runs = {"jit_train_step(7)": trains, other: evaluates}
    return with_(evidence(steps), runs=runs, **more)


def test_prefill_between_runs_of_decode_is_what_a_server_is_for() -> None:
    assert found("slow-step", evaluating(serves=(("jit_decode(7)", 10, 100.0), ("jit_prefill(9)", 3, 40.0)))) is None

"""In which steps something happens, in words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpuprof.parsers.pages.findings.when import when

LEAST = 10.0


def said(amounts: list[float]) -> str:
    names = [str(100 + step) for step in range(len(amounts))]
    return when(np.array(amounts, np.float64) * 1e6, names, LEAST * 1e6).words


def at(places: list[int], count: int, amount: float = 50.0) -> list[float]:
    return [amount if step in places else 0.0 for step in range(count)]


@pytest.mark.parametrize(
    ("places", "count", "words"),
    [
        ([3, 7, 11], 12, "every 4th step"),
        ([1, 3, 5, 7], 9, "every other step"),
        ([0, 8, 16], 23, "every 8th step"),
        ([5, 6, 7, 8, 9], 10, "from step 105 on"),
        ([2, 3, 4], 5, "from step 102 on"),
        ([4], 10, "in 1 of 10 steps"),
        ([1, 4, 5], 23, "in 3 of 23 steps"),
        ([1, 4, 5], 10, ""),  # neither few nor regular
        ([3, 7], 12, "in 2 of 12 steps"),  # one distance is no rhythm
        ([1, 5, 9], 20, "in 3 of 20 steps"),  # it ends too early
        ([8, 9], 10, "in 2 of 10 steps"),  # too few to be a beginning
        ([7, 8, 9, 10], 15, "from step 107 to 110"),
        ([2, 3, 4], 7, "from step 102 to 104"),
        ([0, 1, 2, 3], 10, "up to step 103"),
        ([7, 8], 15, "in 2 of 15 steps"),  # too few to last
        ([6, 7, 9, 10], 15, ""),  # not in a row
        ([1, 2, 3], 7, ""),  # one step before it is too few
        ([2, 3, 4], 6, ""),  # and one after it
        ([1, 2, 3, 4], 5, ""),  # one step before it is too few
        ([3], 4, ""),
        ([], 10, ""),
        (list(range(10)), 10, ""),
    ],
)
def test_the_steps_are_put_in_words(places: list[int], count: int, words: str) -> None:
    assert said(at(places, count)) == words


@pytest.mark.parametrize(
    ("amounts", "words"),
    [
        ([15.0, 15.0, 15.0, 50.0] * 3, ""),  # the others have it as well
        ([0, 0, 0, 11, 50, 50, 50, 50], "from step 103 on"),  # it grows
        ([0, 0, 0, 11, 50, 50, 12, 0, 0], "from step 103 to 106"),  # and fades
        ([0.0, 0.0, 0.0, 90.0] * 3, "every 4th step"),
        ([90.0, 11.0, 0.0] * 4, "every 3rd step"),  # far below the others does not count
    ],
)
def test_amounts_tell_which_steps_count(amounts: list[float], words: str) -> None:
    assert said(amounts) == words


def test_a_sentence_has_both_amounts() -> None:
    told = when(np.array([0, 0, 30e6] * 4), [str(step) for step in range(12)], 1e6)
    assert told.sentence("the device waits for") == (
        "Every 3rd step the device waits for 30.0 µs, in the other steps 0."
    )
    assert (told.period, told.is_regular, told.after, told.first) == (3, True, " every 3rd step", "Every 3rd step")
    assert when(np.zeros(4), ["0"] * 4, 1.0).sentence("it is") == ""


@given(st.lists(st.floats(-1e15, 1e15), min_size=1, max_size=40), st.floats(-1e12, 1e12))
def test_any_amounts_have_an_answer(amounts: list[float], least: float) -> None:
    told = when(np.array(amounts), [str(step) for step in range(len(amounts))], least)
    assert len(told.steps) == len(amounts)
    assert told.steps.any()
    assert bool(told.words) == (not told.steps.all())

"""The exam in the suite: our commands answer every question correctly, in few bytes; README.md shows the last run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.parity.exam import table
from tests.parity.exam.answers import ours, xprof
from tests.parity.exam.ask import in_this_process, profiles_of
from tests.parity.exam.judging import Question, Truth, Value, Verdict, judge
from tests.parity.exam.profiles import NAMES, Made, make
from tests.parity.exam.questions.all import QUESTIONS
from tests.parity.exam.run import Score, answered, counts, median_size

README = Path(__file__).parents[1] / "README.md"

MOST_BYTES, MOST_MEDIAN = 4_000, 1_000
"""Of an answer, and of the median one."""

GROWS, PATHS = 1.2, 300
"""How much larger than in the last run an answer may be, and bytes that longer paths of profiles may add."""

Profiles = Mapping[str, Made]


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Profiles:
    """The profiles, made once."""
    return make(tmp_path_factory.mktemp("exam"))


@pytest.fixture(scope="module")
def score() -> Score:
    """The last run with XProf."""
    return Score.read()


@pytest.mark.parametrize("question", [pytest.param(question, id=question.key) for question in QUESTIONS])
def test_our_answer_is_right_and_small(question: Question, made: Profiles, score: Score) -> None:
    """One command, and no more bytes than in the last run."""
    if question.profile not in made:
        pytest.skip(f"no reference data for {question.profile}")
    sizes = {each.key: each.size for each in score.answers["tpuprof-tui"]}
    got = answered(question, ours.ANSWERS[question.key], made, in_this_process)
    assert got.verdict == "right", f"{got.answer}; the truth is {question.truth(made)}"
    assert got.size <= min(MOST_BYTES, GROWS * sizes[question.key] + PATHS)


def test_forty_questions_of_ten_profiles() -> None:
    """Each has a command of ours and one of XProf's, of the profile that it is about."""
    keys = [question.key for question in QUESTIONS]
    assert len(set(keys)) == len(keys) == 40 and {question.profile for question in QUESTIONS} == {*NAMES}
    assert len(NAMES) == 10
    for answers in (ours.ANSWERS, xprof.ANSWERS):
        assert {*answers} == {*keys}
        for question in QUESTIONS:
            assert question.profile in profiles_of(answers[question.key].command)


def test_the_last_run(score: Score) -> None:
    """It has all answers of both, and ours take fewer bytes."""
    assert all([each.key for each in answers] == [of.key for of in QUESTIONS] for answers in score.answers.values())
    mine, theirs = (score.answers[name] for name in ("tpuprof-tui", "XProf"))
    assert score.version and counts(mine)["right"] == len(QUESTIONS) >= counts(theirs)["right"]
    assert median_size(mine) <= MOST_MEDIAN and sum(a.size for a in mine) < sum(a.size for a in theirs)


def test_the_readme_shows_the_last_run(score: Score) -> None:
    """Its table is what `python -m tests.parity.exam --readme` writes, and it says how many commands are SQL."""
    readme = README.read_text(encoding="utf-8")
    assert table.short(score) in readme
    theirs = [asked.command[0] for asked in xprof.ANSWERS.values()].count("query_events_db")
    mine = [asked.command[0] for asked in ours.ANSWERS.values()].count("query")
    assert f"in {theirs} cases SQL over its events, written for the question (ours: {mine})" in " ".join(readme.split())


@pytest.mark.parametrize(
    ("answer", "truth", "verdict"),
    [
        (None, 1.0, "can't tell"),
        (1.019, 1.0, "right"),
        (1.021, 1.0, "wrong"),
        (0.0, 1.0, "wrong"),
        (True, True, "right"),
        (False, True, "wrong"),
        (1.0, True, "wrong"),
        ("a", "a", "right"),
        ("a", ("b", "a"), "right"),
        ("ab", ("b", "a"), "wrong"),
        (frozenset("ab"), frozenset("ba"), "right"),
        (frozenset("a"), frozenset("ba"), "wrong"),
    ],
)
def test_verdicts(answer: Value | None, truth: Truth, verdict: Verdict) -> None:
    """What is unknown counts apart; a zero where there is something is wrong."""
    assert judge(answer, truth, 0.02) == verdict

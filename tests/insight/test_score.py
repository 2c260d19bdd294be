"""The score must not fall, and no word of a finding changes unseen: what is said of planted and healthy programs."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from zlib import crc32

import pytest

from tests.fence.reports import hold
from tests.insight.cases.all import CASES, HALF_OF
from tests.insight.cases.case import Half
from tests.insight.score import Answer, answer, score
from tests.parsers.pages.findings.test_figures import FOUND_IN

LEAST: dict[tuple[Half, str], tuple[int, int]] = {
    ("tuned", "single"): (88, 28),
    ("held", "single"): (59, 29),
    ("tuned", "shapes"): (67, 37),
    ("held", "shapes"): (64, 66),
    ("tuned", "pairs"): (39, 0),
    ("held", "pairs"): (14, 0),
    ("held", "jobs"): (43, 30),
    ("held", "pairs of jobs"): (16, 0),
    ("tuned", "jobs"): (1, 1),
    ("tuned", "codebases"): (20, 2),
    ("held", "codebases"): (34, 19),
    ("tuned", "pairs of codebases"): (24, 0),
    ("held", "pairs of codebases"): (3, 0),
    ("tuned", "labs"): (13, 4),
    ("held", "labs"): (36, 13),
    ("tuned", "pairs of labs"): (5, 0),
    ("held", "pairs of labs"): (11, 0),
    ("held", "domains"): (36, 16),
    ("held", "pairs of domains"): (10, 0),
    ("tuned", "domains"): (1, 0),
    ("tuned", "pairs of domains"): (1, 0),
    ("tuned", "trials"): (6, 0),
    ("held", "trials"): (34, 15),
    ("tuned", "pairs of trials"): (3, 0),
    ("held", "pairs of trials"): (6, 0),
    ("held", "rounds"): (16, 9),
    ("held", "pairs of rounds"): (4, 0),
    ("tuned", "rounds"): (7, 1),
    ("tuned", "pairs of rounds"): (2, 0),
    ("held", "blind"): (69, 24),
    ("held", "pairs of blind"): (15, 0),
}
"""Problems found correctly and healthy programs left alone, by half and part. Raise them with the program's.

Those of `labs` are written by someone who had not read the findings, and got 43 of 49, 11 of 16 and 17 of 17 when these
were first asked. What was missed then is among the tuned ones, as is what was looked at with it.

Those of `trials` are easily mistaken for others: at first 38 of 40, 7 of 11 and 15 of 16 were right. Three of these six
misses were mistakes of the programs: a twin that waits too, and problems that do not add up.

Those of `rounds` have forms that no table had, and got 16 of 24, 4 of 6 and 9 of 10 when these were first asked. What
was missed then is among the tuned ones.

Those of `blind` are written by someone who had not read the findings. Of the first table 47 of 49, 12 of 12 and 17 of
18 were right when these were first asked (one of the healthy ones was none, and is gone); of the second, written when
these answers were known, 20 of 24, 3 of 4 and 7 of 7.
"""

HASHES = Path(__file__).parent / "hashes"
"""What is said of each program, as `tests/fence` has it of each report."""

CONTRADICTS = {
    "atmosphere-poles-filtered-by-their-own-cores-and-masses-summed-one-by-one": (
        "two hosts are late: the straggler names one of them, with what both make the others lose"
    ),
}
"""Programs of which the verdict gives another amount than the first reason, and why. None may come to them."""


def test_all_cases_count() -> None:
    assert set(LEAST) == {(HALF_OF[case.name], case.part) for case in CASES}


def test_the_readme_has_these_counts() -> None:
    """How many programs there are, and of how many at least the findings are right."""
    ill = Counter(HALF_OF[case.name] for case in CASES if not case.is_healthy)
    pairs = Counter(HALF_OF[case.name] for case in CASES if case.beside is not None)
    healthy = sum(case.is_healthy for case in CASES)
    right = {half: sum(least[0] for (of, _), least in LEAST.items() if of == half) for half in ill}
    of_pairs = sum(least[0] for (half, part), least in LEAST.items() if half == "held" and part.startswith("pairs"))
    quiet = sum(least[1] for least in LEAST.values())
    readme = " ".join(Path(__file__).with_name("README.md").read_text("utf-8").split())
    for words in (
        f"{ill.total()} programs with planted problems, {pairs.total()} of them with two, and {healthy} healthy ones",
        f"in {right['tuned']} of the {ill['tuned']} programs used for tuning and in {right['held']} of the "
        f"{ill['held']} held back, with both problems in their order in {of_pairs} of the {pairs['held']} pairs",
        f"In {quiet} of the {healthy} healthy ones",
    ):
        assert words in readme


HELD = {*FOUND_IN.values(), *(case.name for case in CASES if crc32(case.name.encode()) % 4 == 0)}
"""Programs whose findings are held word by word: one for each detector, and every fourth, whichever come to them."""

ASKED = [case for case in CASES if case.name in HELD or "TPUPROF_EVERY_CASE" in os.environ]
"""CI asks about every program; the suite about those that are held, and misses no more of a part than it allows."""


def told(one: Answer) -> str:
    """The verdict on a program, and all that its findings say, as words and as data."""
    return json.dumps([one.verdict, *map(asdict, one.findings)], indent=1, default=sorted)


@pytest.mark.parametrize(("half", "part"), LEAST)
def test_the_score_holds(half: Half, part: str) -> None:
    answers = [answer(case) for case in ASKED if HALF_OF[case.name] == half and case.part == part]
    for finding in (finding for one in answers for finding in one.findings):
        claimed = sum(claim.time_ps for claim in finding.claims)
        assert claimed == pytest.approx(finding.worth_ps or 0.0, rel=1e-9), finding.title
    texts = {one.case.name: told(one) for one in answers if one.case.name in HELD}
    hold(HASHES / f"{half}-{part}.json".replace(" ", "-"), texts, shown=half == "tuned")  # nobody tunes to the others
    reached = score(answers, HALF_OF)
    healthy = [case.is_healthy for case in CASES if HALF_OF[case.name] == half and case.part == part]
    assert reached.problems - reached.right <= healthy.count(False) - LEAST[half, part][0]
    assert reached.healthy - reached.quiet <= healthy.count(True) - LEAST[half, part][1]
    assert not [one.case.name for one in answers if one.leaves_alone]
    assert {one.case.name for one in answers if one.contradicts} <= {*CONTRADICTS}

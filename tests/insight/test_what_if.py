"""The steps without the owner of a planted problem are those of the simulation without the problem."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.insight.cases.all import CASES, HALF_OF
from tests.insight.cases.case import Case
from tests.insight.score import TOLERANCE, open_run, write
from tests.support.build import present
from tpuprof.parsers.pages.overview.model import LEDGER
from tpuprof.parsers.session.session import Session
from tpuprof.parsers.steps.what_if import owners_named, without

OWNED_BY: Mapping[str, str] = {
    "input": "input",
    "compilation": "compile",
    **dict.fromkeys(("host", "idle", "serving"), "host"),
    **dict.fromkeys(("collective", "dcn"), "collective"),
    **dict.fromkeys(("host-offload", "debug-print"), "transfer"),
    **dict.fromkeys(("copy", "copy-wait"), "copy"),
    "barrier": "barrier",
}
"""Kinds of problems that are an owner's, and what `--without` calls it."""


def _owner(problem: Case) -> str | None:
    is_late = problem.kind == "straggler" and "host" in problem.also
    return "host" if is_late else OWNED_BY.get(problem.kind)


def _stand_apart(case: Case) -> bool:
    """Whether no two of its problems are one owner's, which only go away together."""
    owners = [_owner(problem) for problem in case.planted]
    return len(owners) < 2 or owners[0] != owners[1]


TUNED = [case for case in CASES if HALF_OF[case.name] == "tuned"]
PLANTED = [problem for case in TUNED if _stand_apart(case) for problem in case.planted]
OWNED = [problem for problem in PLANTED if problem.kind in OWNED_BY]
LATE_HOSTS = [problem for problem in PLANTED if problem.kind == "straggler" and "host" in problem.also]

NOT_YET = (
    ("host-blocks-each-step-v5e", "host"),
    ("host-reads-loss-each-step-v4", "host"),
    ("notebook-accuracy-read-in-each-step", "host"),
    ("notebook-accuracy-read-in-each-step-and-images-turned-to-channels-last", "host"),
    ("ring-blocks-sent-late", "collective"),
    ("ring-blocks-sent-late-and-rotary-in-passes", "collective"),
)
"""Problems of which the account charges a part to another owner. One that comes right has to leave this list."""


def _param(problem: Case) -> object:
    is_wrong = (problem.name, problem.kind) in NOT_YET
    marks = [pytest.mark.xfail(strict=True, reason="charged to another owner in part")] if is_wrong else []
    return pytest.param(problem, id=f"{problem.name}-{problem.kind}", marks=marks)


@pytest.mark.parametrize("problem", [_param(problem) for problem in (*OWNED, *LATE_HOSTS)])
def test_a_step_without_the_problems_owner_is_as_long_as_without_the_problem(problem: Case, tmp_path: Path) -> None:
    write(problem, tmp_path)
    owners = owners_named(_owner(problem) or "host")
    found = without(present(Session(open_run(problem, tmp_path)).page(LEDGER)), owners)
    said, right = found.saved_ps, problem.truth.step_ps
    if not problem.has_plain_steps:  # what a step is may be seen otherwise
        said, right = found.saved_fraction, problem.truth.fraction
    assert said == pytest.approx(right, rel=TOLERANCE)


def test_there_are_such_problems() -> None:
    assert len(OWNED) >= 30
    assert len(LATE_HOSTS) >= 6

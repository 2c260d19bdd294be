"""The steps without the owner of a planted problem are those of the simulation without the problem."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.insight.cases.all import CASES, HALF_OF
from tests.insight.cases.case import Case
from tests.insight.score import TOLERANCE, open_run, write
from tests.support.build import present
from tpuprof.parsers.session.pages import LEDGER
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

OWNED = [case for case in CASES if HALF_OF[case.name] == "tuned" and case.part == "single" and case.kind in OWNED_BY]
LATE_HOSTS = [
    case for case in CASES if HALF_OF[case.name] == "tuned" and case.kind == "straggler" and "host" in case.also
]


@pytest.mark.parametrize("case", [*OWNED, *LATE_HOSTS], ids=lambda case: case.name)
def test_a_step_without_the_problems_owner_is_as_long_as_without_the_problem(case: Case, tmp_path: Path) -> None:
    write(case, tmp_path)
    owners = owners_named(OWNED_BY.get(case.kind, "host"))
    found = without(present(Session(open_run(case, tmp_path)).page(LEDGER)), owners)
    assert found.saved_ps == pytest.approx(case.truth.step_ps, rel=TOLERANCE)


def test_there_are_such_cases() -> None:
    assert len(OWNED) >= 31
    assert len(LATE_HOSTS) >= 6

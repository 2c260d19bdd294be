"""What the compiler said of the advice, in the bench's last run, against what is advised now: it may not get worse."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path

import pytest

from tests.bench.oom_proof.cases import CASES, Case
from tests.bench.oom_proof.score import Score, table
from tests.bench.oom_proof.tries import DATA, Try, file_name, kept, kept_triage
from tests.parsers.memory.oom.advice.test_advice import told_advice
from tests.support.golden import check_golden
from tests.support.imports import ROOT
from tpuprof.parsers.memory.oom.triage import Triage

LEAST_NEAR, MOST_FAR, MOST_WRONG = 97, 11, 0
"""Of all tries: savings within 10 % or their range, off by more than 25 %, and said to fit though they do not."""


@functools.cache
def triage_of(name: str) -> Triage:
    """What is advised now of a case's text and module."""
    return kept_triage(next(case for case in CASES if case.name == name))


def now(each: Try) -> Try | None:
    """A try with what is predicted of it now; None where that is not advised any more."""
    triage = triage_of(each.case)
    plan = triage.plan
    is_planned = plan is not None and tuple((one.key, one.target) for one in plan.changes) == each.changes
    if plan is not None and is_planned:
        return replace(each, predicted_bytes=plan.used_bytes, said_fits=plan.fits)
    advice = next(
        (one for one in triage.advice if one.change and (one.change.key, one.change.target) == each.changes[0]), None
    )
    if advice is None:
        return None
    saving = advice.saving_bytes
    return replace(
        each,
        predicted_bytes=None if saving is None else each.needed_bytes - saving,
        least_bytes=advice.least_bytes,
        said_fits="this alone is enough" in advice.how,
    )


def test_the_compiler_s_answers_hold() -> None:
    tries = [made for each in kept() if (made := now(each)) is not None]
    score = Score.of(tries)
    assert score.tries >= 0.9 * len(kept())
    assert score.near >= LEAST_NEAR and score.far <= MOST_FAR and score.wrong <= MOST_WRONG, score


@pytest.mark.parametrize("case", [case for case in CASES if case.program != "kernels"], ids=lambda case: case.name)
def test_a_program_s_figures_are_the_compiler_s(case: Case) -> None:
    """The total in the error's text is the peak by the dump, to what the text rounds."""
    if not (DATA / f"{file_name(case)}.txt").exists():
        pytest.fail(f"{case.name} was not compiled in the last run")
    triage = triage_of(case.name)
    assert triage.need.is_whole and triage.account is not None and triage.plan is not None
    assert sum(triage.account.owners.values()) == triage.need.used_bytes
    assert "+" in triage.where


def test_advice_on_real_modules_is_what_it_was_word_by_word() -> None:
    """There the HLO says more than sizes: loops, outputs, the batch."""
    texts = []
    for case in (case for case in CASES if case.program != "kernels"):
        triage = triage_of(case.name)
        planned = [f"plan: {triage.plan.sentence}"] if triage.plan else []
        texts.append("\n".join([f"# {case.name}", *told_advice(triage.advice), *planned, ""]))
    check_golden(Path(__file__).with_name("advice_on_modules.txt"), "\n".join(texts))


def test_the_readme_has_the_bench_s_table() -> None:
    assert table(kept()) in (ROOT / "tests" / "bench" / "oom_proof" / "README.md").read_text("utf-8")

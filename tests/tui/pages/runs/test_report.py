"""The report on runs with what is known of them: every form, unknown figures with their reasons, any width."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from tests.support.documents import nulls
from tests.support.made.runs import RUNS, facts_of
from tests.support.reports import LOOK, printed
from tpuprof.parsers.files.logdir import Logdir
from tpuprof.parsers.session.run_facts import RunFacts
from tpuprof.tui.pages.runs.report import REPORT, Runs
from tpuprof.tui.report.page import Format, TextLook

LOGDIR = Logdir("~/logs", RUNS, (), ())
FACTS = {run.path: facts_of(run) for run in RUNS}


def report(form: Format, facts: Mapping[str, RunFacts] | None, look: TextLook = LOOK) -> str:
    return printed(REPORT, Runs(LOGDIR, RUNS, facts), RUNS[0], form, look)


def test_json() -> None:
    document = json.loads(report("json", FACTS))
    first, second, third, _ = document["runs"]
    assert (first["device_type"], first["host_core_count"], first["core_step_ps"]) == ("TPU v5 Lite", 4, 246 * 10**9)
    assert first["modules"] == ["jit_train_step", "jit_eval_step"] and first["module_count"] == 9
    assert (second["step_time_source"], second["has_hlo"], second["host_tracing"]) == ("modules", False, "off")
    assert third["device_type"] is None
    assert set(nulls(document)) == set(document["unknown"]) and all(document["unknown"].values())
    assert "2 GB limit" in document["unknown"]["runs[].device_type"]
    assert document["unknown"]["runs[].profile_duration_ps"] == RUNS[2].problems[0].sentence


def test_json_of_runs_that_nobody_looked_at() -> None:
    document = json.loads(report("json", {}))
    assert set(document["unknown"].values()) == {"not read"}
    assert "device_type" not in json.loads(report("json", None))["runs"][0]


@pytest.mark.parametrize("width", range(60, 161, 5))
def test_text(width: int) -> None:
    hostile = replace(facts_of(RUNS[0]), device_type="TPU\x1b[31m " + "v" * 40, modules=("名\n" * 200,))
    for facts in (FACTS, {**FACTS, RUNS[0].path: hostile}, {}):
        for ascii_only in (False, True):
            lines = report("text", facts, TextLook(width, ascii_only, False)).splitlines()
            assert all(len(line) <= width for line in lines)
            assert all(line.isprintable() for line in lines)
            assert sum("train/2025" in line for line in lines) == 1
    text = report("text", FACTS, TextLook(width, False, False))
    assert ("246 ms" in text, "TPU v5 Lite" in text, "jit_train_step" in text) == (
        width >= 70,
        width >= 88,
        width >= 105,
    )

"""Out-of-memory errors as text, JSON and Markdown."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.support.made.oom import ADVICE, BUFFERS, LOAD, NEED, REPORT, TOGGLES, log_of
from tpuprof.parsers.memory.account.need import Need
from tpuprof.parsers.memory.oom import triage
from tpuprof.parsers.memory.oom.files import shown_name
from tpuprof.parsers.memory.oom.model import OomLog, OomReport
from tpuprof.tui.cli.arguments.app import OOM_FORMATS
from tpuprof.tui.pages import command_named
from tpuprof.tui.report.page import TextLook

LOOK = TextLook(100, False, False)


@pytest.fixture(autouse=True)
def made_up_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the report shows does not hang on how good advice is found."""

    def need_of_report(report: OomReport) -> Need:
        sizes = (report.used_bytes, report.capacity_bytes, None, None, None, None, None)
        return NEED if report is REPORT else Need("hbm", *sizes, report.buffers, False)

    monkeypatch.setattr(triage, "need_of_report", need_of_report)
    monkeypatch.setattr(triage, "advise", lambda found: ADVICE if found is NEED else ())
    monkeypatch.setattr(triage, "toggles", lambda found: TOGGLES if found is NEED else ())


def report(form: str, log: OomLog | None = None, look: TextLook = LOOK, limit: int = 0) -> str:
    page = command_named("oom").load_report()
    assert tuple(page.writers) == OOM_FORMATS
    errors = page.read(log or log_of(REPORT, LOAD), "logs/train.log", "train.log")
    return page.writers[form](errors, look, limit)


def test_a_limit_is_one_of_buffers() -> None:
    assert "and 8 more" in report("text", limit=3)
    assert "and 8 more" in report("md", limit=3)
    assert len(json.loads(report("json", limit=3))["reports"][0]["buffers"]) == 3


def test_of_many_errors_the_worst_is_whole_and_the_others_a_line() -> None:
    others = [replace(LOAD, at_line=place) for place in range(50, 54)]
    text = report("md", log_of(*others, REPORT))
    assert text.count("- error ") == 5 and text.count("### Out of memory") == 1
    assert text.index("- error 5: ") < text.index("- error 1: ") < text.index("### Out of memory (5 of 5)")


@pytest.mark.parametrize("form", OOM_FORMATS)
def test_nothing_in_a_log_is_obeyed_or_taken_as_markup(form: str) -> None:
    evil = "\x1b]0;owned\x07 ```\n# title <b>|x|"
    buffer = replace(BUFFERS[0], name=evil, shape=evil, source=evil, framework_op=evil, label=evil, tag=evil)
    hostile = replace(REPORT, program=evil, sentence=evil, device=evil, buffers=(buffer,))
    text = report(form, OomLog((hostile,), (evil,), 1, 1))
    assert "\x1b" not in text and "\x07" not in text
    if form == "md":
        assert sum(line.startswith("```") for line in text.splitlines()) == 2
        assert not any(line.startswith("# ") for line in text.splitlines())
    if form == "json":
        assert len(json.loads(text)["reports"]) == 1


def test_outputs_are_named_as_on_the_memory_page() -> None:
    log = log_of(replace(REPORT, output_bytes=5), replace(REPORT, unknown={"output_bytes": "not said"}))
    document = json.loads(report("json", log))
    assert [item["outputs_bytes"] for item in document["reports"]] == [5, None]
    assert document["unknown"]["reports[].outputs_bytes"] == "not said"


def test_where_to_look_for_the_list_is_told() -> None:
    log = log_of(replace(REPORT, buffers=()))
    told = "The text lists no buffers"
    assert told in report("text", log) and told in report("md", log)
    (found,) = json.loads(report("json", log))["reports"]
    assert found["notes"][0].startswith(told)


def test_notes_are_told() -> None:
    log = OomLog((REPORT,), ("Line 5 is of a GPU.",), 1, 1)
    assert "Line 5 is of a GPU." in report("text", log)
    assert "Line 5 is of a GPU." in report("md", log)
    assert json.loads(report("json", log))["warnings"] == ["Line 5 is of a GPU."]


def test_names_of_logs() -> None:
    assert [shown_name(path) for path in ("-", "a/b.log", "b.log", "a/")] == ["stdin", "b.log", "b.log", "a"]

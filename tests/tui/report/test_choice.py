"""Rows and columns that a call of `report` chooses: the same in every format, and those that all rows show."""

from __future__ import annotations

import csv
import io
import json
from functools import cache
from typing import Any

import pytest

from tests.tui.cli.calls import Ended, ended
from tpuprof.parsers.base.errors import EXIT_OK, EXIT_USAGE
from tpuprof.tui.pages import PAGES


@cache
def report(page: str, *options: str) -> Ended:
    return ended("report", page, "demo", *options)


def rows(page: str, *options: str) -> dict[str, Any]:
    whole = () if "--limit" in options else ("--limit", "0")
    done = report(page, "--format", "json", *options, *whole)
    assert done.code == EXIT_OK, done.err
    document: dict[str, Any] = json.loads(done.out)
    assert document["schema"] == "tpuprof.rows/1" and document["page"] == page
    return document


def csv_rows(page: str, *options: str) -> list[dict[str, str]]:
    done = report(page, "--format", "csv", *options)
    assert done.code == EXIT_OK, done.err
    return list(csv.DictReader(io.StringIO(done.out)))


@pytest.fixture(scope="module")
def ops() -> list[dict[str, Any]]:
    document = json.loads(report("ops", "--format", "json").out)
    found: list[dict[str, Any]] = document["ops"]
    return found


def test_a_limit_says_how_many_rows_it_leaves_out() -> None:
    found = rows("ops", "--filter", "occurrences>=1", "--limit", "3")
    assert len(found["rows"]) == 3 and found["left_out_rows"] == found["matching_rows"] - 3 > 0
    text = report("ops", "--filter", "occurrences>=1", "--limit", "3").out
    assert f"+ {found['left_out_rows']} more" in text
    page = report("ops", "--filter", "occurrences>=1", "--limit", "3", "--format", "md").out
    assert f"Not shown: {found['left_out_rows']} more." in page


@pytest.mark.parametrize(
    ("text", "keeps"),
    [
        ("class=copy", lambda op: op["class"] == "copy"),
        ("!class=copy", lambda op: op["class"] != "copy"),
        ("class:COP", lambda op: "cop" in op["class"]),
        ("flops=null", lambda op: op["flops"] is None),
        ("!flops=null", lambda op: op["flops"] is not None),
        ("flops<=0", lambda op: op["flops"] is not None and op["flops"] <= 0),
        ("remat=yes", lambda op: op["remat"]),
        ("self_time_ps>=1ms", lambda op: op["self_time_ps"] >= 10**9),
        ("self_time_percent>=1%", lambda op: op["self_time_percent"] >= 1),
        (
            'source:"model.py:6" fusion',
            lambda op: "model.py:6" in (op["source"] or "") and "fusion" in op["category"] + op["name"],
        ),
        ("bandwidth_gigabytes_per_second.hbm>100", lambda op: (op["bandwidth_gigabytes_per_second"]["hbm"] or 0) > 100),
    ],
)
def test_terms_on_columns(text: str, keeps: Any, ops: list[dict[str, Any]]) -> None:
    found = rows("ops", "--filter", text, "--columns", "name,program_id")["rows"]
    assert found == [{"name": op["name"], "program_id": op["program_id"]} for op in ops if keeps(op)]


def test_a_number_with_many_digits_is_compared_exactly(ops: list[dict[str, Any]]) -> None:
    number = ops[0]["program_id"]
    assert rows("ops", "--filter", f"program_id={number}")["matching_rows"] > 0
    assert rows("ops", "--filter", f"program_id={number + 1}")["matching_rows"] == 0


@pytest.mark.parametrize("page", [page.name for page in PAGES if not page.is_of_arrays])
def test_every_page_with_a_table_has_its_rows_chosen(page: str) -> None:
    everything = rows(page, "--filter", "")
    keys = csv_rows(page, "--filter", "")
    assert len(keys) == everything["all_rows"] == everything["matching_rows"]
    column = next(iter(everything["rows"][0])) if everything["rows"] else None
    if column is not None:
        sorted_rows = rows(page, "--sort", f"{column}:asc", "--limit", "2")
        assert len(sorted_rows["rows"]) == min(2, everything["all_rows"])
    for form in ("text", "md"):
        done = report(page, "--format", form, "--filter", "no such thing")
        assert done.code == EXIT_OK and f"0 of {everything['all_rows']:,} row" in done.out


def test_events_of_a_step_are_chosen_of_all_that_it_has() -> None:
    step = ("--step", "101")
    document = json.loads(report("timeline", *step, "--limit", "0", "--format", "json").out)
    chosen = (*step, "--filter", 'track="XLA Ops" duration_ps>=1ms', "--sort", "duration_ps:asc")
    found = rows("timeline", *chosen, "--columns", "name,core,duration_ps", "--limit", "9")
    expected = sorted(
        (event["duration_ps"], event["core"], event["name"])
        for event in document["events"]
        if event["track"] == "XLA Ops" and event["duration_ps"] >= 10**9
    )
    assert (found["all_rows"], found["matching_rows"]) == (len(document["events"]), len(expected))
    assert [row["duration_ps"] for row in found["rows"]] == [each[0] for each in expected[:9]]
    assert {(row["duration_ps"], row["core"], row["name"]) for row in found["rows"]} <= {*expected}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--filter", "self_tiem>1"), "there is no column self_tiem; did you mean self_time"),
        (("--filter", "name>x"), "x is not a number to compare name with"),
        (("--filter", "flops>1ms"), "flops is not in ms"),
        (("--filter", "~("), "not a regex"),
        (("--sort", "slf_time_ps"), "There is no column slf_time_ps.\ntry: --sort self_time_ps"),
        (("--sort", "name:up"), "not up"),
        (("--columns", "nme"), "--columns name"),
        (("--columns", "name", "--format", "hlo"), "is for the page graph"),
    ],
)
def test_what_is_not_there_is_answered_with_what_is(options: tuple[str, ...], sentence: str) -> None:
    done = report("ops", *options)
    assert done.code == EXIT_USAGE and not done.out
    assert sentence in done.err


def test_words_are_looked_for_in_every_text_of_a_table_without_names_for_filters() -> None:
    found = rows("ledger", "--filter", "collective")
    assert [row["owner"] for row in found["rows"]] == ["collective_wait", "collective_transfer"]


def test_a_table_without_rows_says_why() -> None:
    said = rows("kernels", "--filter", "x")
    assert said["all_rows"] == 0 and "no TPU kernel" in said["why_none"]
    for form in ("md", "text"):
        assert said["why_none"] in " ".join(report("kernels", "--filter", "x", "--format", form).out.split())
    assert "why_none" not in rows("ops", "--filter", "nothing-of-this-name")

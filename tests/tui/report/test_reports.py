"""Reports of hand-made pages: reasons for what is null, and names of any kind."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.documents import csv_rows, parsed
from tests.support.made.pages import training_overview
from tests.support.reports import printed
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.files.logdir import HostFile, Logdir, Run
from tpuprof.parsers.pages.overview.model import Overview
from tpuprof.tui.pages.overview.report import REPORT as OVERVIEW
from tpuprof.tui.pages.runs.report import REPORT as RUNS
from tpuprof.tui.pages.runs.report import Runs
from tpuprof.tui.report.fields import NO_REASON
from tpuprof.tui.report.json import NOT_FINITE
from tpuprof.tui.report.page import Format, TextLook

LOOK = TextLook(width=100, ascii_only=False, color=False)


def run_of(hosts: tuple[str, ...]) -> Run:
    folder = "/logs/plugins/profile/2026_11_21_03_00_00"
    files = tuple(HostFile(host, f"{folder}/{host}.xplane.pb", 862_707, 1_795_230_000.0, False) for host in hosts)
    return Run("2026_11_21_03_00_00", folder, files, ())


def hostile_overview(name: str) -> Overview:
    page = training_overview()
    return replace(
        page,
        hosts=(name,),
        environment=replace(page.environment, device_type=name),
        top_ops=tuple(replace(op, name=name, category=name, hlo_category=name) for op in page.top_ops),
        steps=tuple(replace(step, name=name) for step in page.steps),
        findings=tuple(replace(found, title=name, basis=name, evidence=(name, name)) for found in page.findings),
        bottleneck=replace(page.bottleneck, statement=name, next_steps=(name,)),
        unknown={"performance.host_idle_percent": name},
        warnings=(name,),
    )


def runs_as(form: Format, runs: Sequence[Run], look: TextLook = LOOK) -> str:
    return printed(RUNS, Runs(Logdir("/logs", (), (), ()), runs, None), run_of(()), form, look)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_unknown(value: float) -> None:
    page = training_overview()
    page = replace(
        page,
        performance=replace(page.performance, flops_utilization_percent=value),
        top_ops=(replace(page.top_ops[0], gflops_per_second=value),),
    )
    document = parsed(printed(OVERVIEW, page, run_of(page.hosts), "json"))
    assert document["performance"]["flops_utilization_percent"] is None
    assert document["unknown"]["performance.flops_utilization_percent"] == NOT_FINITE
    assert document["unknown"]["top_ops[].gflops_per_second"] == NOT_FINITE
    assert next(csv.DictReader(io.StringIO(printed(OVERVIEW, page, run_of(()), "csv"))))["gflops_per_second"] == ""


def test_a_null_without_a_reason_gets_one_and_a_reason_without_a_null_goes() -> None:
    page = replace(training_overview(), unknown={"performance.device_idle_percent": "not so", "no.such.key": "x"})
    unknown = json.loads(printed(OVERVIEW, page, run_of(page.hosts), "json"))["unknown"]
    assert unknown["performance.host_idle_percent"] == NO_REASON
    assert "performance.device_idle_percent" not in unknown and "no.such.key" not in unknown


def test_a_time_out_of_range_is_unknown() -> None:
    run = replace(run_of(()), folder_modified=1e300)
    document = json.loads(runs_as("json", [run]))
    assert document["runs"][0]["modified"] is None
    assert set(document["unknown"]) == {"runs[].modified"}
    assert next(csv.DictReader(io.StringIO(runs_as("csv", [run]))))["modified"] == ""
    assert "| ? |" in runs_as("md", [run])
    assert "?" in runs_as("text", [run])


@given(st.text(max_size=30))
def test_any_name_keeps_the_shape_of_every_format(name: str) -> None:
    page = hostile_overview(name)
    run = replace(run_of((name,)), name=name)
    document = json.loads(printed(OVERVIEW, page, run, "json"))
    assert document["top_ops"][0]["name"] == printable(name)
    rows = list(csv.reader(io.StringIO(printed(OVERVIEW, page, run_of(()), "csv"))))
    assert len(rows) == 11 and len({len(row) for row in rows}) == 1
    rows_of = [line for line in printed(OVERVIEW, page, run, "md").splitlines() if re.match(r"\| \d+ \|", line)]
    table, reasons = rows_of[2:], rows_of[:2]
    assert len(table) == 10
    assert all(len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) == 6 for line in reasons)
    assert all(len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) == 10 for line in table)
    lines = printed(OVERVIEW, page, run, "text", replace(LOOK, width=90)).split("\n")
    assert max(map(len, lines)) <= 90
    assert all(printable(line) == line for line in lines)


def test_cells_that_a_spreadsheet_would_run_are_text() -> None:
    rows = csv_rows(printed(OVERVIEW, hostile_overview("=1+1"), run_of(()), "csv"))
    assert rows[0]["name"] == "'=1+1"
    assert float(rows[0]["self_time_percent"]) == 41.2


def test_markdown_escapes_markup_and_leaves_words_alone() -> None:
    text = printed(OVERVIEW, hostile_overview("a_b _c_ `d` |e| <f> *g* [h]"), run_of(("host0",)), "md")
    assert r"a_b \_c\_ \`d\` \|e\| \<f\> \*g\* \[h\]" in text

"""The input pipeline's reports: the contract's keys, golden texts, reasons for all that is null, hostile names.

`UPDATE_GOLDEN=1` in the environment writes the golden files anew.
"""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.made.input_pages import INPUT_PAGES, input_bound_page
from tests.support.reports import check_report, printed
from tests.tui.report.test_reports import LOOK, run_of
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.pages.input.input import stages_of
from tpuprof.parsers.pages.input.model import InputPipelinePage
from tpuprof.tui.pages.input.report import REPORT
from tpuprof.tui.report.page import TextLook

GOLDEN = Path(__file__).parent / "golden"


def hostile(name: str) -> InputPipelinePage:
    page = input_bound_page()
    ops = tuple(replace(op, name=name) for op in page.ops)
    return replace(
        page,
        hosts=(name,),
        ops=ops,
        stages=stages_of(ops),
        steps=tuple(replace(step, name=name, core=name) for step in page.steps),
        bottleneck=replace(page.bottleneck, statement=name, next_steps=(name,)),
        next_steps=(name,),
        unknown={"breakdown_us": name},
        breakdown=None,
        warnings=(name,),
    )


@pytest.mark.parametrize("name", INPUT_PAGES)
def test_every_page_is_as_it_was_and_keeps_the_contract(name: str) -> None:
    page = INPUT_PAGES[name]()
    check_report(REPORT, "input", page, run_of(page.hosts), GOLDEN / f"input_{name}", {"": LOOK})


@given(st.text(max_size=30))
def test_any_name_keeps_the_shape_of_every_format(name: str) -> None:
    page, run = hostile(name), replace(run_of((name,)), name=name)
    assert json.loads(printed(REPORT, page, run, "json"))["ops"][0]["name"] == printable(name)
    rows = list(csv.reader(io.StringIO(printed(REPORT, page, run, "csv"))))
    assert len(rows) == 9 and len({len(row) for row in rows}) == 1
    markdown = printed(REPORT, page, run, "md", LOOK)
    table = markdown.split("## Input ops")[1].split("## Unknown")[0].strip().splitlines()[2:]
    assert len(table) == 8
    assert all(len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) == 8 for line in table)
    lines = printed(REPORT, page, run, "text", TextLook(90, False, False)).split("\n")
    assert max(map(len, lines)) <= 90

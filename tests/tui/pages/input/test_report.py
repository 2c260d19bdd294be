"""The input pipeline's reports: the contract's keys, golden texts, reasons for all that is null, hostile names.

`UPDATE_GOLDEN=1` in the environment writes the golden files anew.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.made.input_pages import INPUT_PAGES
from tests.support.reports import check_report
from tests.tui.report.test_reports import LOOK, run_of
from tpuprof.tui.pages.input.report import REPORT

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("name", INPUT_PAGES)
def test_every_page_is_as_it_was_and_keeps_the_contract(name: str) -> None:
    page = INPUT_PAGES[name]()
    check_report(REPORT, "input", page, run_of(page.hosts), GOLDEN / f"input_{name}", {"": LOOK})

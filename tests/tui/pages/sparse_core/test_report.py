"""The report on SparseCores: golden texts, reasons for all that is null, hostile names."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.composed.sparse_cores import BOUND, HEALTHY, UNUSED, sparse_profile
from tests.support.reports import check_report, printed
from tests.tui.report.test_reports import LOOK, run_of
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.pages.sparse_core.host import sparse_host
from tpuprof.parsers.pages.sparse_core.page import SparseCorePage, no_sparse_cores, sparse_core_page
from tpuprof.tui.pages.sparse_core.report import REPORT

GOLDEN = Path(__file__).parent / "golden"


def made(name: str) -> SparseCorePage:
    if name == "none":
        return no_sparse_cores(("demo-vm",))
    space = {
        "healthy": sparse_profile((HEALTHY,)),
        "bound": sparse_profile((BOUND, UNUSED), chips=2, step_count=2),
        "unused": sparse_profile((UNUSED,), step_count=1),
        "alone": sparse_profile((HEALTHY,), step_count=2, with_tensor_cores=False),
    }[name]
    return sparse_core_page([sparse_host(Trace.from_bytes(space.SerializeToString()), "demo-vm", None)], ["demo-vm"])


NAMES = ("healthy", "bound", "unused", "alone", "none")


@pytest.mark.parametrize("name", NAMES)
def test_every_page_is_as_it_was_and_keeps_the_contract(name: str) -> None:
    page = made(name)
    check_report(REPORT, "sparse-core", page, run_of(page.hosts), GOLDEN / f"sparse-core_{name}", {"": LOOK})


def test_a_limit_cuts_the_ops_only() -> None:
    document = json.loads(printed(REPORT, made("bound"), run_of(("demo-vm",)), "json", LOOK, 2))
    assert (len(document["ops"]), len(document["steps"]), len(document["waits"])) == (2, 2, 2)
    assert "+ 2 more" in printed(REPORT, made("bound"), run_of(("demo-vm",)), "text", LOOK, 2)


def test_text_has_some_of_many_sparse_cores_and_markdown_all() -> None:
    page = made("bound")
    page = replace(page, sparse_cores=page.sparse_cores * 100)
    assert "+ 368 more" in printed(REPORT, page, run_of(("demo-vm",)), "text", LOOK)
    assert printed(REPORT, page, run_of(("demo-vm",)), "md").count("| demo-vm:1 SparseCore 1 |") == 100

"""`--by` has every way in which `b` groups the rows of a page in the app, and in every format."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest

import tpuprof
from tests.tui.cli.calls import Call
from tpuprof.parsers.base.errors import EXIT_USAGE
from tpuprof.parsers.memory.live_arrays import BY
from tpuprof.parsers.pages.collectives.rows import BYS
from tpuprof.tui import pages
from tpuprof.tui.pages import PAGES, PageName
from tpuprof.tui.pages.memory.draw.table import GROUPINGS
from tpuprof.tui.pages.ops.tree_view import _GROUPS
from tpuprof.tui.pages.overview.ledger.model_use.report import TABLES
from tpuprof.tui.pages.overview.ledger.report import By

IN_THE_APP = {
    "collectives": BYS,
    "op-profile": _GROUPS,
    "memory": GROUPINGS[1:],
    "ops": ("clones",),
    "framework-ops": ("type",),
    "kernels": ("shape",),
    "counters": ("unit", "counter"),
}
"""What `b` goes through on each page; of tables with two ways of showing them, the second, or both."""

ELSEWHERE = {
    "hosts/popup.py": "report cores",
    "hosts/drawing.py": "a column of that name: the group of a core",
    "hosts/fields.py": "the same",
    "overview/fields.py": "a group of cores",
    "commands/live_arrays/screen.py": "report live-arrays --by",
    "commands/diff/screen.py": "diff, whose JSON has every op apart",
    "commands/oom/screen.py": "oom, whose report has both",
    "timeline/popup.py": "report timeline --limit",
    "overview/view.py": "report inference --requests",
    "input/fields.py": "a column of that name",
    "counters/fields.py": "a column of that name",
    "ops/details/card.py": "an entry of that name",
    "timeline/view.py": "a sentence on why there are none",
    "ops/view.py": "a sentence, and what its views have",
}
HAVING = (
    "collectives/view.py",
    "ops/tree_view.py",
    "ops/panes.py",
    "memory/",
    "ops/table_views.py",
    "ops/kernels_view.py",
)
GROUPED = [(page.name, by) for page in PAGES for by in page.groups]


def test_every_table_with_groups_has_them_in_reports() -> None:
    assert {page.name: page.groups for page in PAGES if page.groups} == IN_THE_APP
    assert {page.name: page.other_groups for page in PAGES if page.other_groups} == {
        "ledger": get_args(By),
        "model": tuple(TABLES),
        "kernels": ("blocks",),
        "collectives": ("op",),
        "live-arrays": BY,
    }


def test_no_other_part_of_the_app_groups_rows() -> None:
    root = Path(pages.__file__).parent
    having = {
        str(path.relative_to(root)) for path in root.rglob("*.py") if re.search(r'"group"', path.read_text("utf-8"))
    }
    known = (*ELSEWHERE, *HAVING, "counters/view.py")
    assert sorted(path for path in having if not path.startswith(known)) == []


@pytest.mark.parametrize(("page", "by"), GROUPED)
def test_groups_are_a_table_in_csv_and_json(page: str, by: str, call: Call) -> None:
    words = ("report", page, "demo", "--by", by, "--limit", "2")
    rows = list(csv.DictReader(io.StringIO(call(*words, "--format", "csv").out)))
    found = call.json(*words, "--format", "json")
    assert found["page"] == page and len(found["rows"]) == len(rows) == min(2, found["all_rows"])
    assert rows or found["why_none"]
    assert call(*words).out and call(*words, "--format", "md").out


@pytest.mark.parametrize(
    ("page", "option", "value"),
    [*((page, "by", by) for page, by in GROUPED), ("ops", "step", "104"), ("collectives", "step", "104")],
)
def test_python_and_parquet_have_the_same_table(
    page: PageName, option: str, value: str, call: Call, tmp_path: Path
) -> None:
    words = ("report", page, "demo", f"--{option}", value)
    document = call.json(*words, "--limit", "0", "--format", "json")
    options: dict[str, Any] = {option: value}
    table = tpuprof.open("demo").table(page, **options)
    wanted = document["rows"] if "rows" in document else document[table.name]
    assert len(table) == len(wanted) and json.loads(json.dumps(table.to_dicts())) == wanted
    duckdb = pytest.importorskip("duckdb")
    file = tmp_path / "table.parquet"
    call(*words, "--format", "parquet", "--output", str(file))
    assert duckdb.read_parquet(str(file)).shape[0] == len(wanted)


def test_groups_add_up_to_all_rows(call: Call) -> None:
    def total(key: str, *words: str) -> float:
        return sum(
            float(row[key])
            for row in call.json("report", *words, "--limit", "0", "--columns", key, "--format", "json")["rows"]
        )

    assert total("self_time_ps", "ops", "demo", "--by", "clones") == total("self_time_ps", "ops", "demo")
    at_peak = call.json("report", "memory", "demo", "--format", "json", "--limit", "1")["peak_bytes"]
    for by in GROUPINGS[1:]:
        assert total("size_bytes", "memory", "demo", "--by", by) == at_peak
    every = total("exposed_time_ms", "collectives", "demo", "--by", "all")
    for way in BYS[1:-1]:
        assert total("exposed_time_ms", "collectives", "demo", "--by", way) == pytest.approx(every)


def test_what_cannot_be_grouped_says_so(call: Call) -> None:
    sentence, hint = call.error(EXIT_USAGE, "report", "ops", "demo", "--by", "kind")
    assert sentence == "The rows of the page ops can't be grouped by kind: there is clones."
    assert hint == "try: tpuprof-tui report collectives PATH --by kind"
    for page in (each for each in PAGES if each.groups):
        with pytest.raises(
            tpuprof.ProfileError, match=f"of the page {page.name} can't be grouped by nothing: there is"
        ):
            tpuprof.open("demo").table(page.name, by="nothing")
    assert "for the pages ledger" in call.error(EXIT_USAGE, "report", "input", "demo", "--by", "source")[0]

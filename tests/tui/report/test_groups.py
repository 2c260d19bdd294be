"""`--by` has every way in which `b` groups the rows of a page in the app, and in every format."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

import tpuprof
from tests.tui.cli.calls import Call
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_USAGE
from tpuprof.parsers.memory.live_arrays import BY
from tpuprof.parsers.pages.collectives.rows import BYS
from tpuprof.tui import pages
from tpuprof.tui.cli.arguments.report import GROUPED_BY
from tpuprof.tui.pages import PAGES
from tpuprof.tui.pages.memory.draw.table import GROUPINGS
from tpuprof.tui.pages.ops.tree_view import _GROUPS

IN_THE_APP = {
    "collectives": BYS,
    "op-profile": _GROUPS,
    "memory": GROUPINGS[1:],
    "ops": ("clones",),
    "framework-ops": ("type",),
    "kernels": ("name",),
    "counters": ("unit", "counter"),
}
"""What `b` goes through on each page; of tables with two ways of showing them, the second, or both."""

ELSEWHERE = {
    "hosts/popup.py": "report cores",
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
    "ops/switcher.py",
    "memory/",
    "ops/table_views.py",
    "ops/kernels_view.py",
)
GROUPED = [(page.name, by) for page in PAGES for by in page.groups]


def test_every_table_with_groups_has_them_in_reports() -> None:
    assert {page.name: page.groups for page in PAGES if page.groups} == IN_THE_APP
    assert set(BY) == set(GROUPED_BY)


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
def test_python_and_parquet_have_the_same_table(page: str, option: str, value: str, call: Call, tmp_path: Path) -> None:
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
    for way in BYS[1:]:
        assert total("exposed_time_ms", "collectives", "demo", "--by", way) == pytest.approx(every)


def test_what_cannot_be_grouped_says_so(call: Call) -> None:
    sentence, hint = call.error(EXIT_USAGE, "report", "ops", "demo", "--by", "kind")
    assert (
        sentence == "The rows of the page ops can't be grouped by kind: there is clones." and hint == "try: --by clones"
    )
    for page in (each for each in PAGES if each.groups):
        with pytest.raises(
            tpuprof.ProfileError, match=f"of the page {page.name} can't be grouped by nothing: there is"
        ):
            tpuprof.open("demo").table(page.name, by="nothing")
    assert "for the pages ledger" in call.error(EXIT_USAGE, "report", "input", "demo", "--by", "source")[0]


# --- one step


def test_the_ops_of_all_steps_are_those_of_each_step(call: Call) -> None:
    def ops(step: str) -> dict[str, int]:
        words = ("report", "ops", "demo", "--step", step, "--limit", "0", "--columns", "name,self_time_ps")
        return {row["name"]: row["self_time_ps"] for row in call.json(*words, "--format", "json")["rows"]}

    first, second, both = ops("104"), ops("105"), ops("104-105")
    assert both == {name: first.get(name, 0) + second.get(name, 0) for name in {*first, *second}}
    assert list(first.values()) == sorted(first.values(), reverse=True) and len(first) > 1


def test_an_op_takes_in_a_step_what_its_own_page_says(call: Call) -> None:
    page = call.json("report", "op", "demo", "--op", "fusion.397", "--format", "json", "--limit", "0")
    of_step = next(step for step in page["by_step"] if step["step"] == "104")
    words = ("report", "ops", "demo", "--step", "104", "--filter", "name=fusion.397", "--columns", "name,occurrences")
    assert call.json(*words, "--format", "json")["rows"][0]["occurrences"] == of_step["runs"]


def test_collectives_of_steps_are_a_mean_over_them(call: Call) -> None:
    def exposed(*steps: str) -> float:
        words = (
            "report",
            "collectives",
            "demo",
            *steps,
            "--by",
            "kind",
            "--columns",
            "exposed_time_ms",
            "--limit",
            "0",
        )
        return sum(float(row["exposed_time_ms"]) for row in call.json(*words, "--format", "json")["rows"])

    both = exposed("--step", "104-105")
    assert both == pytest.approx((exposed("--step", "104") + exposed("--step", "105")) / 2)
    assert exposed("--step", "100-119") == pytest.approx(exposed())


@pytest.mark.parametrize(
    ("page", "hint"),
    [
        ("roofline", "report ops --step STEP"),
        ("ledger", "report ledger --by step --filter name=STEP"),
        ("timeline", "report timeline --from MS --to MS"),
    ],
)
def test_a_page_without_steps_names_the_one_with_them(page: str, hint: str, call: Call) -> None:
    sentence, said = call.error(EXIT_USAGE, "report", page, "demo", "--step", "104")
    assert sentence == f"--step is for the pages ops, collectives, not {page}." and said == f"try: {hint}"


def test_a_step_that_is_not_there(call: Call) -> None:
    for page in ("ops", "collectives"):
        sentence, hint = call.error(EXIT_NOT_FOUND, "report", page, "demo", "--step", "102-130")
        assert sentence == "The profile has no step 130: its steps are 100 to 119."
        assert hint == "try: --step 119 or 118"
    call.error(EXIT_USAGE, "report", "ops", "demo", "--step", "104", "--by", "clones")

"""Declared reports: what a page hands over stands in every format, and a limit is never silent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tests.support.reports import printed
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.files.logdir import Run
from tpuprof.tui.report.declared import Block, Declared, Metrics, Section, Values, declared
from tpuprof.tui.report.fields import Metric, Table, attribute, metric_rows, object_table
from tpuprof.tui.report.json import COUNTS, Written
from tpuprof.tui.report.page import Head, ReportRequest
from tpuprof.tui.report.units import COUNT, VERBATIM

RUN = Run("today", "/logs/today", (), ())


@dataclass(frozen=True)
class Fruit:
    name: str
    count: int | None


@dataclass(frozen=True)
class Basket:
    fruits: tuple[Fruit, ...]
    owner: str = "Ada|Bob"
    warnings: tuple[str, ...] = ("one pear is *soft*",)


FRUITS: Table[Sequence[Fruit]] = object_table(
    "fruits",
    (
        attribute("name", VERBATIM, "what it is", "fruit"),
        attribute("count", COUNT, "how many there are", "count", null="nobody counted"),
    ),
    markdown=("name", "count"),
)
METRICS: tuple[Metric[Any], ...] = (attribute("owner", VERBATIM, "whose it is", "owner"),)


def declare(basket: Basket, request: ReportRequest) -> Declared:
    fruits = Section(FRUITS, basket.fruits, "Fruits", request.most_rows)
    tree = Written('{"root": null}', {"tree.root": "it has none"})
    return Declared(
        Head(f"Basket of {request.run.name}", request.run, ("kitchen",), basket.warnings, ("made of: straw",)),
        statement="There is fruit.",
        metrics=lambda: metric_rows(METRICS, basket),
        parts=(
            Metrics(METRICS, basket),
            fruits,
            Block(lambda: Values({"tree": tree}, warnings=("the tree is bare",)), lambda: ["", "A tree."]),
        ),
        csv=fruits,
        text=lambda pen: [pen.fit([("fruit in cells", "text")])],
        notes=["Wash it."],
        unknown={"count": "nobody counted"},
    )


REPORT = declared("basket", lambda _: Basket(()), declare, tables=(FRUITS,), metrics=METRICS)
BASKET = Basket((Fruit("pear", 2), Fruit("fig", None), Fruit("plum", 5)))


def test_json_holds_all_parts_in_their_order_with_reasons() -> None:
    document = json.loads(printed(REPORT, BASKET, RUN, "json", limit=2))
    assert list(document) == ["schema", "run", "warnings", *COUNTS, "owner", "fruits", "tree", "unknown"]
    assert document["schema"] == "tpuprof.basket/1" and document["tree"] == {"root": None}
    assert document["warnings"] == ["one pear is *soft*", "the tree is bare"]
    assert document["fruits"] == [{"name": "pear", "count": 2}, {"name": "fig", "count": None}]
    assert document["unknown"] == {"fruits[].count": "nobody counted", "tree.root": "it has none"}


def test_csv_holds_one_table() -> None:
    assert printed(REPORT, BASKET, RUN, "csv") == "name,count\npear,2\nfig,\nplum,5\n"


def test_markdown_is_escaped_and_says_what_a_limit_leaves_out() -> None:
    assert printed(REPORT, BASKET, RUN, "md", limit=1).splitlines() == [
        f"# Basket of {RUN.name}",
        *("", "- hosts: kitchen", "- made of: straw", "- warning: one pear is \\*soft\\*"),
        *("", "There is fruit."),
        *("", "## Figures", "", "| figure | value |", "| --- | ---: |", "| owner | Ada\\|Bob |"),
        *("", "## Fruits", "", "| fruit | count |", "| --- | ---: |", "| pear | 2 |", "", "Not shown: 2 more."),
        *("", "A tree."),
        *("", "## Notes", "", "- Wash it."),
        *("", "## Unknown", "", "- count: nobody counted"),
    ]
    assert "Not shown" not in printed(REPORT, BASKET, RUN, "md")


def test_text_stands_below_a_title() -> None:
    title, line = printed(REPORT, BASKET, RUN, "text").splitlines()
    assert f"Basket of {RUN.name}" in title and "kitchen" in title and line == "fruit in cells"
    assert REPORT.csv_table is FRUITS and REPORT.warnings(BASKET) == BASKET.warnings


def test_an_empty_table_is_a_list_in_json_and_not_in_markdown() -> None:
    empty = Basket(())
    assert json.loads(printed(REPORT, empty, RUN, "json"))["fruits"] == []
    assert printed(REPORT, empty, RUN, "csv") == "name,count\n" and "Fruits" not in printed(REPORT, empty, RUN, "md")

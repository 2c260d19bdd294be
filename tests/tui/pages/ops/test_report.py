"""Reports of the op pages: the contract's keys, reasons for all that is null, limits, hostile names."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.support.build import PlaneBuilder
from tests.support.documents import csv_rows, nulls, parsed
from tests.support.made.big_table import big_page, big_table
from tests.support.made.op_pages import Pages, empty_space, fusions, op_space, pages_of, run_of, small_pages
from tests.support.reports import printed
from tpuprof.parsers.formats.hlo.modules import Instruction
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.pages.ops.op_profile import op_profile_page
from tpuprof.parsers.pages.ops.roofline import roofline_page
from tpuprof.parsers.pages.ops.sources import sources_page
from tpuprof.tui.pages.ops.fields.framework_ops import FrameworkOps
from tpuprof.tui.pages.ops.report import framework_ops, hlo_ops, op_profile, roofline, sources
from tpuprof.tui.pages.ops.report.op_profile import INSIDE_A_FUSION, MOST_INSTRUCTIONS, MOST_LEVELS, ONLY_OPS, OpProfile
from tpuprof.tui.report.fields import NO_REASON
from tpuprof.tui.report.json import NOT_FINITE
from tpuprof.tui.report.page import Format
from tpuprof.tui.report.page import Report as PageReport

RUN = run_of()
TREES = ("by_program", "by_category", "by_provenance")

Report = Callable[[Pages, int], str]


def inside_of(pages: Pages) -> Callable[[int], Sequence[Instruction]]:
    """What is inside the fusions of the hand-made profile; nothing in others."""
    known = fusions(pages.ops) if "fusion.22" in pages.ops.table.name else {}
    return lambda row: known.get(row, ())


CONTENTS: dict[str, tuple[PageReport[Any], Callable[[Pages], object]]] = {
    "ops": (hlo_ops.REPORT, lambda pages: pages.ops),
    "op_profile": (op_profile.REPORT, lambda pages: OpProfile(pages.op_profile, inside_of(pages))),
    "framework_ops": (framework_ops.REPORT, lambda pages: FrameworkOps(pages.framework_ops, pages.ops)),
    "roofline": (roofline.REPORT, lambda pages: pages.roofline),
    "sources": (sources.REPORT, lambda pages: sources_page(pages.ops)),
}
FORMS: tuple[Format, ...] = ("json", "csv", "md")


def report_of(page: str, form: Format) -> Report:
    report, content = CONTENTS[page]
    return lambda pages, limit: printed(report, content(pages), RUN, form, limit=limit)


REPORTS = {f"{page}.{form}": report_of(page, form) for form in FORMS for page in CONTENTS}
JSON = [name for name in REPORTS if name.endswith("json")]


def document(name: str, pages: Pages | None = None, limit: int = 0) -> dict[str, Any]:
    return parsed(REPORTS[name](pages or small_pages(), limit))


def rows(name: str, pages: Pages | None = None, limit: int = 0) -> list[dict[str, str]]:
    return csv_rows(REPORTS[name](pages or small_pages(), limit))


def nodes(tree: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield tree
    for child in tree["children"]:
        yield from nodes(child)


def scaled() -> Pages:
    """Ops with a clock below its nominal one, and one op whose counts are not finite."""
    pages = small_pages()
    table = pages.ops.table
    table = replace(table, flops=np.where(np.arange(len(table)) == 0, math.inf, math.nan))
    ops = replace(pages.ops, table=table, time_scale=0.9)
    return Pages(ops, op_profile_page(ops), pages.framework_ops, roofline_page(ops, []))


CASES: dict[str, Callable[[], Pages]] = {
    "small": small_pages,
    "empty": lambda: pages_of(empty_space()),
    "scaled": scaled,
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", JSON)
@pytest.mark.parametrize("limit", [0, 1])
def test_every_null_has_its_own_reason_and_every_reason_a_null(name: str, case: str, limit: int) -> None:
    found = document(name, CASES[case](), limit)
    assert set(nulls(found)) == set(found["unknown"])
    reasons = set(found["unknown"].values())
    assert NO_REASON not in reasons and NOT_FINITE not in reasons and "" not in reasons


def test_peaks_that_are_missing_are_the_reason() -> None:
    space = XSpace()
    plane = PlaneBuilder(space, "/device:TPU:0", 1)
    op = plane.event_id("%a = f32[] add()", "a", program_id=7, symbol_id=1, flops=5, bytes_accessed=3)
    plane.event(plane.line("XLA Ops"), op, 0, 10)
    pages = pages_of(space)
    for name in ("ops.json", "framework_ops.json", "roofline.json"):
        found = document(name, pages)
        assert found["ops"][0]["flops_utilization"] is None
        assert found["unknown"]["ops[].flops_utilization"] == "the device plane gives no peak FLOPS"
    found = document("op_profile.json", pages)
    assert found["unknown"]["by_program.flops_utilization"] == "the device plane gives no peak FLOPS"
    key = "by_program.children[].bandwidth_utilization.hbm"
    assert found["unknown"][key] == "the device plane gives no peak HBM bandwidth"


def test_feeds_that_are_left_out_of_the_roofline_are_in_no_format() -> None:
    pages = small_pages()
    without = replace(pages, roofline=roofline_page(pages.ops, [], with_infeed=False))
    for name in ("roofline.json", "roofline.csv", "roofline.md"):
        assert "infeed.3" in REPORTS[name](pages, 0) and "infeed.3" not in REPORTS[name](without, 0)


def test_instructions_are_children_of_their_fusion_in_one_tree_and_counted_in_the_others() -> None:
    found = document("op_profile.json")
    assert found["unknown"]["by_program.children[].time_ps"] == INSIDE_A_FUSION
    assert ONLY_OPS in found["unknown"]["by_program.children[].source"]
    for tree in TREES:
        fusion = next(node for node in nodes(found[tree]) if node["name"] == "fusion.7")
        assert len(fusion["children"]) + fusion["hidden_children"] == 2
        assert fusion["hidden_children"] == (0 if tree == "by_program" else 2)
    inner = next(node for node in nodes(found["by_program"]) if node["name"] == "convolution.7")
    assert (inner["kind"], inner["category"], inner["time_ps"]) == ("instruction", "convolution", None)
    op = next(node for node in nodes(found["by_program"]) if node["name"] == "fusion.7")
    assert set(inner) == set(op) - {"program"}
    assert list(inner["bytes"]) == list(op["bytes"])


def test_a_limit_shows_the_same_tree_in_csv_and_json() -> None:
    shown = [
        node for node in nodes(document("op_profile.json", limit=2)["by_program"]) if node["kind"] != "instruction"
    ]
    table = rows("op_profile.csv", limit=2)
    assert [row["name"] for row in table] == [node["name"] for node in shown[1:]]
    assert all(row["path"].split(" / ")[-1] == row["name"] for row in table)
    assert all(row["path"].count(" / ") == int(row["depth"]) for row in table)
    hidden = [str(node["hidden_children"]) for node in shown[1:] if node["kind"] != "op"]
    assert [row["hidden_children"] for row in table if row["kind"] != "op"] == hidden


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize("case", CASES)
def test_nothing_reads_as_not_a_number(name: str, case: str) -> None:
    text = REPORTS[name](CASES[case](), 0)
    assert not re.search(r"\b(nan|inf|infinity)\b", text, re.IGNORECASE)


def test_scopes_nested_without_end_are_cut_not_followed() -> None:
    space = op_space()
    plane = PlaneBuilder(space, "/device:TPU:9", 10)
    deep = plane.event_id("%a = f32[] add()", "a", program_id=7, symbol_id=1, tf_op="/".join(["s"] * 5000) + ":")
    plane.event(plane.line("XLA Ops"), deep, 0, 10)
    pages = pages_of(space)
    found = document("op_profile.json", pages)
    assert [warning for warning in found["warnings"] if str(MOST_LEVELS) in warning]
    tree, levels = found["by_provenance"], 0
    while tree["children"]:
        tree = next((child for child in tree["children"] if child["name"] in ("program(7)", "s")), {"children": ()})
        levels += 1
    assert levels == MOST_LEVELS and tree["hidden_children"] == 1
    assert set(nulls(found)) == set(found["unknown"])
    assert all(report(pages, 3) for report in REPORTS.values())


def test_a_fusion_of_too_many_instructions_is_looked_into_once() -> None:
    pages = small_pages()
    inner = fusions(pages.ops)[pages.ops.table.name.index("fusion.22")][0]
    asked: list[int] = []

    def fused(row: int) -> Sequence[Instruction]:
        asked.append(row)
        return (inner,) * (MOST_INSTRUCTIONS + 1)

    found = json.loads(printed(op_profile.REPORT, OpProfile(pages.op_profile, fused), RUN, "json", limit=5))
    assert len(asked) == 1
    op = next(node for node in nodes(found["by_program"]) if node["kind"] == "op")
    assert len(op["children"]) == 5 and op["hidden_children"] == MOST_INSTRUCTIONS - 4
    assert [warning for warning in found["warnings"] if f"{MOST_INSTRUCTIONS:,}" in warning]


def test_the_texts_of_each_op_are_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    page = big_page(50)
    profile = op_profile_page(page)
    asked: list[str] = []
    table_type = type(big_table(1))
    texts, expression = table_type.texts, table_type.expression

    def counting_texts(table: Any, stat: str, rows: Any = None) -> list[str]:
        asked.append(stat)
        return texts(table, stat, rows)

    def counting_expression(table: Any, row: int) -> str:
        asked.append("expression")
        return expression(table, row)

    monkeypatch.setattr(table_type, "texts", counting_texts)
    monkeypatch.setattr(table_type, "expression", counting_expression)
    printed(hlo_ops.REPORT, page, RUN, "json")
    assert asked.count("source") == asked.count("shape_with_layout") == 1 and asked.count("expression") == 50
    asked.clear()
    printed(op_profile.REPORT, OpProfile(profile), RUN, "json")
    assert asked.count("source") == asked.count("shape_with_layout") == 1 and asked.count("expression") == 50

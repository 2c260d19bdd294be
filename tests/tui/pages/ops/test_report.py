"""Reports of the op pages: the contract's keys, golden texts, reasons for all that is null, limits, hostile names.

`UPDATE_GOLDEN=1` in the environment writes the golden files anew.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.build import PlaneBuilder
from tests.support.documents import EVIL, csv_rows, nulls, parsed
from tests.support.golden import check_golden
from tests.support.made.big_table import big_page, big_table
from tests.support.made.op_pages import Pages, empty_space, fusions, op_space, pages_of, run_of, small_pages
from tests.support.reports import printed
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.formats.hlo.modules import Instruction
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.pages.ops.op_profile import op_profile_page
from tpuprof.parsers.pages.ops.roofline import roofline_page
from tpuprof.parsers.pages.ops.sources import sources_page
from tpuprof.tui.pages.ops.fields.common import NO_BOUND
from tpuprof.tui.pages.ops.fields.framework_ops import FrameworkOps
from tpuprof.tui.pages.ops.report import framework_ops, hlo_ops, op_profile, roofline, sources
from tpuprof.tui.pages.ops.report.op_profile import (
    INSIDE_A_FUSION,
    MOST_INSTRUCTIONS,
    MOST_LEVELS,
    ONLY_OPS,
    OpProfile,
)
from tpuprof.tui.report.fields import NO_REASON
from tpuprof.tui.report.json import NOT_FINITE
from tpuprof.tui.report.page import Format

GOLDEN = Path(__file__).parent / "golden"
RUN = run_of()
TREES = ("by_program", "by_category", "by_provenance")

Report = Callable[[Pages, int], str]


def inside_of(pages: Pages) -> Callable[[int], Sequence[Instruction]]:
    """What is inside the fusions of the hand-made profile; nothing in others."""
    known = fusions(pages.ops) if "fusion.22" in pages.ops.table.name else {}
    return lambda row: known.get(row, ())


def report_of(name: str) -> Report:
    """How a page is printed in a format, ``ops.json``."""
    page, _, suffix = name.partition(".")
    form: Format = "json" if suffix == "json" else "csv" if suffix == "csv" else "md"

    def report(pages: Pages, limit: int) -> str:
        if page == "op_profile":
            content = OpProfile(pages.op_profile, inside_of(pages))
            return printed(op_profile.REPORT, content, RUN, form, limit=limit)
        if page == "framework_ops":
            return printed(framework_ops.REPORT, FrameworkOps(pages.framework_ops, pages.ops), RUN, form, limit=limit)
        if page == "roofline":
            return printed(roofline.REPORT, pages.roofline, RUN, form, limit=limit)
        if page == "sources":
            return printed(sources.REPORT, sources_page(pages.ops), RUN, form, limit=limit)
        return printed(hlo_ops.REPORT, pages.ops, RUN, form, limit=limit)

    return report


REPORTS: dict[str, Report] = {
    f"{page}.{suffix}": report_of(f"{page}.{suffix}")
    for suffix in ("json", "csv", "md")
    for page in ("ops", "op_profile", "framework_ops", "roofline", "sources")
}
JSON = [name for name in REPORTS if name.endswith("json")]
CSV = [name for name in REPORTS if name.endswith("csv")]
MARKDOWN = [name for name in REPORTS if name.endswith("md")]


def document(name: str, pages: Pages | None = None, limit: int = 0) -> dict[str, Any]:
    return parsed(REPORTS[name](pages or small_pages(), limit))


def rows(name: str, pages: Pages | None = None, limit: int = 0) -> list[dict[str, str]]:
    return csv_rows(REPORTS[name](pages or small_pages(), limit))


def nodes(tree: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield tree
    for child in tree["children"]:
        yield from nodes(child)


def renamed(pages: Pages, name: str) -> Pages:
    """The pages of ops that all have one name, with that name wherever a profile puts text."""
    table = pages.ops.table
    count = len(table)
    table = replace(table, name=(name,) * count, category=(name,) * count, framework_op=(name,) * count)
    ops = replace(pages.ops, hosts=(name,), device_type=name, program=(name,) * count, table=table, warnings=(name,))
    framework = pages.framework_ops
    return Pages(
        ops,
        op_profile_page(ops),
        replace(framework, name=(name,) * len(framework), type=(name,) * len(framework), warnings=(name,)),
        replace(pages.roofline, ops=ops, unknown={"steps": name}),
    )


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


@pytest.mark.parametrize("name", REPORTS)
def test_reports_are_as_they_were(name: str) -> None:
    check_golden(GOLDEN / name, REPORTS[name](small_pages(), 0))


@pytest.mark.parametrize("name", REPORTS)
def test_reports_without_ops_are_as_they_were(name: str) -> None:
    page, _, form = name.partition(".")
    check_golden(GOLDEN / f"{page}_empty.{form}", REPORTS[name](pages_of(empty_space()), 0))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", JSON)
@pytest.mark.parametrize("limit", [0, 1])
def test_every_null_has_its_own_reason_and_every_reason_a_null(name: str, case: str, limit: int) -> None:
    found = document(name, CASES[case](), limit)
    assert set(nulls(found)) == set(found["unknown"])
    reasons = set(found["unknown"].values())
    assert NO_REASON not in reasons and NOT_FINITE not in reasons and "" not in reasons


def test_the_ops_of_the_contract() -> None:
    found = document("ops.json")
    op = found["ops"][0]
    # two cores, two steps each: four times 40 µs, 50 MFLOP and 30 kB of HBM
    assert (op["name"], op["occurrences"], op["self_time_ps"]) == ("fusion.7", 4, 160_000_000)
    assert type(op["self_time_ps"]) is int and op["average_time_ps"] == 40_000_000
    assert op["program_id"] == 11_529_215_046_068_469_761 and op["program"] == f"jit_step({op['program_id']})"
    assert op["flops"] == 200_000_000 and op["model_flops"] == 160_000_000 and op["hbm_bytes"] == 120_000
    assert op["gflops_per_second"] == pytest.approx(50e6 / 40e-6 / 1e9)
    assert op["flops_utilization"] == pytest.approx(1.25e12 / 100e12)
    assert op["hbm_bandwidth_utilization"] == pytest.approx(0.75e9 / 1e12)
    assert op["bandwidth_gigabytes_per_second"]["vmem_read"] == pytest.approx(6_000 / 40e-6 / 1e9)
    assert op["operational_intensity"] == 1250 and op["bound_by"] == "compute"
    assert op["self_time_percent"] == pytest.approx(100 * 160e6 / found["total_time_ps"])
    assert op["shape"] == "bf16[128,256]{1,0:T(8,128)(2,1)}" and op["source"] == "/src/model.py:12"
    assert found["idle_time_ps"] == found["total_time_ps"] - sum(op["self_time_ps"] for op in found["ops"])
    assert found["device"]["peak_gflops_per_second"] == 100_000 and found["device"]["cores"] == 2


def test_what_a_profile_does_not_say_of_an_op_is_null() -> None:
    found = document("ops.json")
    kernel = next(op for op in found["ops"] if op["name"] == "custom-call.9")
    assert kernel["flops"] is None and kernel["bound_by"] is None
    assert found["unknown"]["ops[].bound_by"] == NO_BOUND
    lost = next(op for op in found["ops"] if op["name"].startswith("event "))
    assert (lost["program"], lost["program_id"], lost["category"], lost["expression"]) == (None, None, None, None)


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


def test_the_framework_ops_of_the_contract() -> None:
    found = document("framework_ops.json")
    device = [op for op in found["ops"] if op["side"] == "device"]
    host = [op for op in found["ops"] if op["side"] == "host"]
    assert [*device, *host] == found["ops"]
    assert (len(device), len(host)) == (found["device_op_count"], found["host_op_count"]) == (7, 3)
    assert device[0]["type"] == "dot_general" and device[0]["main_op"] == "fusion.7"
    assert host[0]["gflops_per_second"] is None and host[0]["main_op"] is None
    assert found["host_total_time_ps"] == 60_000_000 and found["host_idle_time_ps"] == 20_000_000


def test_the_roofline_of_the_contract() -> None:
    found = document("roofline.json")
    assert found["device"]["ridge_point"] == 100
    assert [step["name"] for step in found["steps"]] == ["0", "1"]
    assert found["steps"][0]["total_time_ps"] == 200_000_000 and found["step_source"] == "steps"


def test_feeds_that_are_left_out_of_the_roofline_are_in_no_format() -> None:
    pages = small_pages()
    without = replace(pages, roofline=roofline_page(pages.ops, [], with_infeed=False))
    for name in ("roofline.json", "roofline.csv", "roofline.md"):
        assert "infeed.3" in REPORTS[name](pages, 0) and "infeed.3" not in REPORTS[name](without, 0)


def test_the_op_profile_of_the_contract() -> None:
    found = document("op_profile.json")
    for tree in TREES:
        for node in nodes(found[tree]):
            parts = [child["time_ps"] for child in node["children"] if child["kind"] != "instruction"]
            assert not parts or sum(parts) == node["time_ps"]
            has_text = node["kind"] in ("op", "instruction")
            assert has_text or (node["expression"], node["source"], node["layout"]) == (None, None, None)
            if node["name"] == "fusion.7":
                assert node["layout"] == "bf16[128,256]{1,0:T(8,128)(2,1)}" and node["source"] == "/src/model.py:12"
        assert found[tree]["occurrences"] == 32 and found[tree]["time_fraction"] == 1
    names = [node["name"] for node in nodes(found["by_program"])]
    assert "fusion.21 and 2 duplicates" in names and "IDLE" in names


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


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_limits_count_what_they_hide(limit: int) -> None:
    whole = document("op_profile.json")
    cut = document("op_profile.json", limit=limit)
    for tree in TREES:
        whole_sizes = {node["name"]: len(node["children"]) + node["hidden_children"] for node in nodes(whole[tree])}
        for node in nodes(cut[tree]):
            assert len(node["children"]) <= limit
            assert len(node["children"]) + node["hidden_children"] == whole_sizes[node["name"]]
    ops = document("ops.json", limit=limit)
    assert len(ops["ops"]) == limit and ops["op_count"] == 9
    assert len(document("roofline.json", limit=limit)["ops"]) == limit
    sides = [op["side"] for op in document("framework_ops.json", limit=limit)["ops"]]
    assert sides.count("device") == limit and sides.count("host") == min(limit, 3)
    assert len(rows("ops.csv", limit=limit)) == limit
    kinds = [row["kind"] for row in rows("roofline.csv", limit=limit)]
    assert kinds == ["program", "average step", "step", "step", *["op"] * limit]
    assert "more" in REPORTS["ops.md"](small_pages(), limit)


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


@pytest.mark.parametrize("name", CSV)
def test_csv_has_the_keys_of_json(name: str) -> None:
    found = rows(name)
    assert found and all(None not in row and None not in row.values() for row in found)
    if name != "op_profile.csv":
        op = document(name.replace("csv", "json"))["lines" if name == "sources.csv" else "ops"][0]
        flat = {
            f"{key}.{part}" if part else key: None
            for key, value in op.items()
            for part in (value if isinstance(value, dict) else [""])
        }
        assert set(found[0]) - {"rank", "kind"} == set(flat)


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize("case", CASES)
def test_nothing_reads_as_not_a_number(name: str, case: str) -> None:
    text = REPORTS[name](CASES[case](), 0)
    assert not re.search(r"\b(nan|inf|infinity)\b", text, re.IGNORECASE)


@pytest.mark.parametrize("name", REPORTS)
def test_hostile_names_come_out_harmless(name: str) -> None:
    text = REPORTS[name](renamed(small_pages(), EVIL), 0)
    assert "evil" in text
    assert all(printable(line) == line for line in text.split("\n"))


@pytest.mark.parametrize("name", MARKDOWN)
def test_hostile_names_make_no_more_cells(name: str) -> None:
    text = REPORTS[name](renamed(small_pages(), EVIL), 0)
    widths = {len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in text.splitlines() if line.startswith("|")}
    plain = REPORTS[name](small_pages(), 0)
    assert widths <= {len(re.findall(r"\|", line)) for line in plain.splitlines() if line.startswith("|")}
    assert "<b>" not in text and "](y)" not in text.replace(r"\]", "")


@pytest.mark.parametrize("name", CSV)
def test_cells_that_a_spreadsheet_would_run_are_text(name: str) -> None:
    found = rows(name, renamed(small_pages(), "=1+1"))
    cells = [cell for row in found for cell in row.values()]
    assert "'=1+1" in cells
    assert not [cell for cell in cells if cell.startswith(("=", "+", "@"))]


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

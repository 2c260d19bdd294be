"""The report on the graph: golden texts, reasons for all that is null, and the formats of others."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.support.app.stage import demo_session
from tests.support.documents import csv_rows, nulls
from tests.support.files.hlo_graphs import SMALL, programs_of, small_programs
from tests.support.golden import check_golden
from tests.support.reports import printed
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.formats.hlo.graph import HloGraph
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.parse import read_module_text
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.pages.graph.neighbourhood import around, neighbourhood
from tpuprof.parsers.pages.graph.programs import Programs
from tpuprof.parsers.session.pages import GRAPHS
from tpuprof.tui.pages.graph.export import dot, made
from tpuprof.tui.pages.graph.fields import GraphReport
from tpuprof.tui.pages.graph.report import REPORT
from tpuprof.tui.report.page import Format, TextLook

GOLDEN = Path(__file__).parent / "golden"
RUN = Run("run", "/logs/run", (), ())
LOOKS = {"80": TextLook(80, False, False), "120": TextLook(120, False, False), "60-ascii": TextLook(60, True, False)}
EVIL = '\x1b]0;owned\x07\u202eevil|`<b>*"\\'


@cache
def demo() -> Programs:
    return demo_session().page(GRAPHS)


def report_of(name: str | None, programs: Programs | None = None, steps: int = 1) -> GraphReport:
    programs = programs or demo()
    found = programs.find(name)
    here, near = neighbourhood(found.program, found.row), around(found.program.graph, found.row, steps)
    return GraphReport(here, near, steps, programs.hosts, programs.warnings)


def test_simulated_times_and_warnings_of_the_profile_are_told() -> None:
    report = report_of("all-reduce.65")
    assert "SIMULATED: the times" in printed(REPORT, report, RUN, "text", LOOKS["80"])
    assert "the times of this profile are simulated" in printed(REPORT, report, RUN, "md")
    page = demo().times.page
    assert page is not None and set(page.warnings) <= set(report.warnings) and page.warnings


def test_which_of_several_modules_it_is() -> None:
    several = replace(report_of("all-reduce.65"), chosen_of=2)
    words = "of 2 modules that in which the op takes most time: --module takes another"
    assert words in printed(REPORT, several, RUN, "text", LOOKS["120"]) and words in printed(REPORT, several, RUN, "md")
    untimed = replace(report_of("copy.7", small_programs()), chosen_of=9)
    assert "of 9 modules the first that has the op" in printed(REPORT, untimed, RUN, "text", LOOKS["120"])


def document(report: GraphReport) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(printed(REPORT, report, RUN, "json"))
    return read


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", ["all-reduce.65", "fusion.397", "while.97"])
def test_golden_texts(name: str, look: str) -> None:
    text = printed(REPORT, report_of(name), RUN, "text", LOOKS[look])
    check_golden(GOLDEN / f"report-{name}-{look}.txt", text)
    assert max(map(len, text.splitlines())) <= LOOKS[look].width
    assert text.isascii() or "ascii" not in look


def test_every_null_has_a_reason() -> None:
    for name in ("fusion.397", "all-reduce.65", "arg"):
        body = document(report_of(name, small_programs() if name == "arg" else None, steps=2))
        assert set(nulls(body)) == set(body["unknown"]) and "" not in body["unknown"].values()
    assert "open the profile of a run" in body["unknown"]["op.self_time_ps"]


def test_json_has_op_neighbours_and_what_lies_around() -> None:
    body = document(report_of("fusion.397", steps=2))
    assert (body["schema"], body["module"], body["in_loops"]) == ("tpuprof.graph/1", "jit_train_step", 1)
    assert body["op"]["name"] == body["nodes"][0]["name"] == "fusion.397" and body["op"]["bound_by"] == "compute"
    assert body["op"]["self_time_percent"] == pytest.approx(8.21, abs=0.1)
    assert (len(body["operands"]), len(body["users"])) == (17, 10)
    assert body["operands"][0]["places"] == [0] and body["operands"][0]["behind"] == ["async-collective-start.4"]
    assert {edge["user"] for edge in body["edges"] if edge["operand"] == "fusion.397"} == {
        one["name"] for one in body["users"]
    }
    assert {one["distance"] for one in body["nodes"]} == {0, 1, 2}
    assert [one["role"] for one in body["path"]] == ["", "body"]


def test_csv_is_what_lies_around() -> None:
    rows = csv_rows(printed(REPORT, report_of("copy.7", small_programs()), RUN, "csv"))
    assert [(row["name"], row["distance"]) for row in rows] == [("copy.7", "0"), ("fusion.3", "1"), ("w", "1")]
    assert rows[0]["moves"] == "layout {1,0} to {0,1}" and rows[0]["self_time_ps"] == ""


def test_markdown_answers_first() -> None:
    text = printed(REPORT, report_of("copy.7", small_programs()), RUN, "md")
    assert text.startswith("# Graph around copy.7") and "It only rearranges an array" in text
    assert text.index("Waits for copy-done") < text.index("## Figures") < text.index("## Operands (1)")


def test_dot_has_a_box_a_node_and_a_dash_for_an_order() -> None:
    report = report_of("fusion.3", small_programs())
    text = "".join(dot(report.here.program, report.here.op.row, report.around))
    boxes = re.findall(r'n\d+ \[label="([^\\]+)', text)
    assert sorted(boxes) == ["all-reduce-done", "copy.7", "fusion.3", "next", "tuple.1"]
    assert text.count("->") == len(report.around.edges) == 5 and text.count("style=dashed") == 1
    assert text.count("penwidth=3") == 1 and text.count("{") == text.count("}")


def test_hlo_text_and_proto_read_back() -> None:
    report = report_of("copy.7", small_programs())
    whole = "".join(written("hlo", report))
    again = HloGraph(HloModule(read_module_text("again", whole.splitlines())))
    assert len(again) == len(report.here.program.graph) and "\n%body (state" in whole and "\nENTRY %main" in whole
    own = "".join(written("text", report))
    assert own.startswith("%body (") and own.rstrip().endswith("}") and own.count("\n") == 13
    pieces: list[bytes] = []
    made("proto", report.here.program, 0)(pieces.append)
    assert hlo_pb2.HloProto.FromString(b"".join(pieces)) == report.here.program.graph.module.proto


def written(kind: str, report: GraphReport) -> list[str]:
    pieces: list[bytes] = []
    made(kind, report.here.program, report.here.op.row)(pieces.append)
    return [piece.decode() for piece in pieces]


@pytest.mark.parametrize("form", ["text", "json", "csv", "md", "dot", "hlo"])
def test_hostile_names_are_harmless(form: Format) -> None:
    proto = read_module_text("small", SMALL.splitlines())
    for computation in proto.hlo_module.computations:
        computation.name += EVIL.encode()
        for instruction in computation.instructions:
            instruction.name += EVIL.encode()
            instruction.metadata.op_name = EVIL.encode()
    report = report_of(f"fusion.3{EVIL}", programs_of(proto), steps=3)
    text = printed(REPORT, report, RUN, form)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text) and "owned" in text

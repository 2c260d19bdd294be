"""The report on the graph: what it says of the profile and of the module, and the formats of others."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from tests.support.app.stage import demo_session
from tests.support.files.hlo_graphs import small_programs
from tests.support.reports import printed
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.formats.hlo.graph import HloGraph
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.parse import read_module_text
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.pages.graph.neighbourhood import around, neighbourhood
from tpuprof.parsers.pages.graph.programs import GRAPHS, Programs
from tpuprof.tui.pages.graph.export import made
from tpuprof.tui.pages.graph.report import REPORT, GraphReport
from tpuprof.tui.report.page import TextLook

RUN = Run("run", "/logs/run", (), ())
LOOKS = {"80": TextLook(80, False, False), "120": TextLook(120, False, False)}


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
    words = "module where the op takes most time, of 2: --module picks another"
    assert words in printed(REPORT, several, RUN, "text", LOOKS["120"]) and words in printed(REPORT, several, RUN, "md")
    untimed = replace(report_of("copy.7", small_programs()), chosen_of=9)
    assert "module the first with the op, of 9:" in printed(REPORT, untimed, RUN, "text", LOOKS["120"])


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

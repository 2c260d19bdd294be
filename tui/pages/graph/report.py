"""The report on the graph around an op."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tpuprof.parsers.pages.graph.neighbourhood import Neighbourhood, around, neighbourhood
from tpuprof.parsers.pages.graph.programs import GRAPHS
from tpuprof.parsers.session.hlo import HloSession
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.graph import export, fields
from tpuprof.tui.pages.graph.drawing import sections
from tpuprof.tui.pages.graph.fields import GraphReport
from tpuprof.tui.report.declared import Block, Declared, Metrics, Section, declared
from tpuprof.tui.report.fields import metric_rows
from tpuprof.tui.report.markdown import escaped, metrics_table
from tpuprof.tui.report.page import Head, ReportRequest, Writer
from tpuprof.tui.report.text import SIMULATED

METRICS = (*fields.MODULE, *fields.OP)


def read(request: ReportRequest) -> GraphReport:
    """Finds the op and what is around it."""
    options, run = request.options, request.run
    programs = HloSession(run).page(GRAPHS) if request.only_hlo else request.session(run).page(GRAPHS, request.host)
    found = programs.find(options.get("op"), None, options.get("module"))
    steps = 1 if options.get("around") is None else options["around"]
    graph = found.program.graph
    here, near = neighbourhood(found.program, found.row), around(graph, found.row, steps)
    chosen_of = len(programs.compiled.places) if options.get("module") is None else 1
    return GraphReport(here, near, steps, programs.hosts, programs.warnings, chosen_of)


def _which(report: GraphReport) -> str:
    """How the module was chosen, where there are several; empty where there is but one to take."""
    if report.chosen_of == 1:
        return ""
    why = "the first that has the op" if report.here.op.self_ps is None else "that in which the op takes most time"
    return f"of {report.chosen_of} modules {why}: --module takes another"


def declare(report: GraphReport, request: ReportRequest) -> Declared:
    """The op, its neighbours, and what lies within the steps that were asked for; neighbours are decoded when shown."""
    here, most = report.here, request.most_rows
    title = f"Graph around {here.op.name} of {request.run.name}"
    label = str(here.program.label)

    def nodes() -> Section[Sequence[fields.DistantNode]]:
        return Section(fields.NODES, report.nodes, limit=most)

    return Declared(
        Head(title, request.run, report.hosts, report.warnings, simulated=here.program.is_simulated, covers=label),
        parts=(
            Metrics(METRICS, report),
            Section(fields.PATH, here.path),
            Block(lambda: Section(fields.OPERANDS, report.operands).json()),
            Block(lambda: Section(fields.USERS, report.users).json()),
            Block(Section(fields.CALLED, here.called).json, lambda: _markdown(report, most)),
            Block(lambda: nodes().json()),
            Block(lambda: Section(fields.EDGES, report.edges, limit=most).json()),
        ),
        csv=Block(csv=lambda: nodes().csv(), table=nodes),
        text=lambda pen: _text(report, most, pen),
        reasons=here.unknown,
    )


def _markdown(report: GraphReport, most: int) -> list[str]:
    here, which = report.here, _which(report)
    lines = [*([f"- {which}"] if which else []), "", *map(escaped, here.answers)]
    lines += [f"- not fused: {escaped(reason)}" for reason in here.why_not_fused]
    lines += metrics_table(metric_rows(METRICS, report))
    lines += Section(fields.OPERANDS, report.operands, f"Operands ({len(report.operands)})", most).markdown()
    lines += Section(fields.USERS, report.users, f"Users ({len(report.users)})", most).markdown()
    return [*lines, *Section(fields.CALLED, here.called, "Inside").markdown()]


def _text(report: GraphReport, most: int, pen: Pen) -> list[Line]:
    drawn = [pen.fit([(SIMULATED, "warn")])] if report.here.program.is_simulated else []
    drawn += [*pen.wrap_all(report.here.answers, "text", [(" ", "text")]), *sections(report.here, pen, most)]
    if report.steps != 1:
        words = f" {len(report.nodes)} instructions within {report.steps} steps: --format csv or json has them"
        drawn.append(pen.fit([(words, "dim")]))
    if which := _which(report):
        drawn.append(pen.fit([(f" {which}", "dim")]))
    return [*drawn, *pen.notes(report.warnings, ())]  # what is unknown says so in its place


def hlo(report: GraphReport, request: ReportRequest) -> Iterable[str]:
    """The computation of the op as HLO text; the whole module where no op was asked for."""
    if request.options.get("op") is None:
        return export.module_text(report.here.program)
    return export.computation_text(report.here.program, report.here.op.row)


_DECLARED = declared("graph", read, declare, fields.TABLES, METRICS, csv_table=fields.NODES)
_WRITERS: dict[str, Writer[GraphReport]] = {"hlo": hlo, "proto": lambda report, _: export.proto(report.here.program)}
REPORT = replace(_DECLARED, writers={**_DECLARED.writers, **_WRITERS})


def written(here: Neighbourhood, hosts: tuple[str, ...], warnings: tuple[str, ...]) -> tuple[GraphReport, str]:
    """What the screen shows of an op, itself and its neighbours, as the report has it; and what that is."""
    return GraphReport(here, around(here.program.graph, here.op.row, 1), 1, hosts, warnings), ""

"""The report on the graph around an op."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tpuprof.parsers.pages.graph.neighbourhood import around, neighbourhood
from tpuprof.parsers.session import pages
from tpuprof.parsers.session.hlo import HloSession
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.graph import export
from tpuprof.tui.pages.graph.drawing import sections
from tpuprof.tui.pages.graph.fields import CALLED, EDGES, MODULE, NODES, OP, OPERANDS, PATH, USERS, GraphReport
from tpuprof.tui.report.csv import table_csv
from tpuprof.tui.report.fields import (
    Table,
    first,
    metric_reasons,
    metric_rows,
    metric_values,
    reasons,
    table_records,
)
from tpuprof.tui.report.json import document, head
from tpuprof.tui.report.markdown import escaped, joined, main_table, metrics_table, page_head
from tpuprof.tui.report.output import Produce
from tpuprof.tui.report.page import Report, ReportRequest
from tpuprof.tui.report.text import SIMULATED, heading, page_text


def read(request: ReportRequest) -> GraphReport:
    """Finds the op and what is around it."""
    options, run = request.options, request.run
    programs = (
        HloSession(run).page(pages.GRAPHS)
        if request.only_hlo
        else request.session(run).page(pages.GRAPHS, request.host)
    )
    found = programs.find(options.get("op"), None, options.get("module"))
    steps = options.get("around")
    steps = 1 if steps is None else steps
    graph = found.program.graph
    here, near = neighbourhood(found.program, found.row), around(graph, found.row, steps)
    chosen_of = len(programs.compiled.places) if options.get("module") is None else 1
    return GraphReport(found.program, here, near, steps, programs.hosts, programs.warnings, chosen_of)


def _which(report: GraphReport) -> str:
    """How the module was chosen, where there are several; empty where there is but one to take."""
    if report.chosen_of == 1:
        return ""
    why = "the first that has the op" if report.here.op.self_ps is None else "that in which the op takes most time"
    return f"of {report.chosen_of} modules {why}: --module takes another"


def _tables(report: GraphReport) -> tuple[tuple[Table[Any], Any], ...]:
    here = report.here
    return (
        (PATH, here.path),
        (OPERANDS, report.operands),
        (USERS, report.users),
        (CALLED, here.called),
        (NODES, report.nodes),
        (EDGES, report.edges),
    )


def json(report: GraphReport, request: ReportRequest) -> str:
    """The op, its neighbours, and what lies within the steps that were asked for."""
    body: dict[str, object] = {**metric_values(MODULE, report), **metric_values(OP, report)}
    why = {**metric_reasons((*MODULE, *OP)), **report.here.unknown}
    for table, rows in _tables(report):
        shown = first(len(rows), request.most_rows) if table in (NODES, EDGES) else range(len(rows))
        body[table.key] = table_records(table, rows, shown)
        why |= reasons(table.fields, f"{table.key}[]", {})
    return document(head("graph", request.run, report.hosts, report.warnings), body, why)


def csv(report: GraphReport, request: ReportRequest) -> str:
    """The instructions around the op, itself first."""
    return table_csv(NODES, report.nodes, first(len(report.nodes), request.most_rows))


def markdown(report: GraphReport, request: ReportRequest) -> str:
    """Answers, figures, operands and users."""
    op, here = report.here.op, report.here
    title = f"Graph around {op.name} of {request.run.name}"
    lines = page_head(title, report.hosts, "", report.is_simulated, report.warnings)
    lines += [f"- {which}"] if (which := _which(report)) else []
    lines += ["", *(escaped(sentence) for sentence in here.answers)]
    lines += [f"- not fused: {escaped(reason)}" for reason in here.why_not_fused]
    lines += metrics_table([*metric_rows(MODULE, report), *metric_rows(OP, report)])
    for title, table, rows in (
        ("Operands", OPERANDS, report.operands),
        ("Users", USERS, report.users),
    ):
        lines += main_table(f"{title} ({len(rows)})", table, rows, first(len(rows), request.most_rows), len(rows))
    every = range(len(here.called))
    return joined([*lines, *main_table("Inside", CALLED, here.called, every, len(every))])


def text(report: GraphReport, request: ReportRequest) -> str:
    """The answers, then the op between its operands and its users, as on the screen."""
    here = report.here

    def lines(pen: Pen) -> list[Line]:
        title = f"Graph around {here.op.name} of {request.run.name}"
        drawn = [heading(title, str(report.program.label), pen)]
        if report.is_simulated:
            drawn.append(pen.fit([(SIMULATED, "warn")]))
        for sentence in here.answers:
            drawn += pen.wrap(sentence, "text", [(" ", "text")], keeps_names=True)
        drawn += sections(report.program, here, pen, request.most_rows)
        if report.steps != 1:
            words = f" {len(report.nodes)} instructions within {report.steps} steps: --format csv, json or dot has them"
            drawn.append(pen.fit([(words, "dim")]))
        if which := _which(report):
            drawn.append(pen.fit([(f" {which}", "dim")]))
        return [*drawn, *pen.notes(report.warnings, ())]  # what is unknown says so in its place

    return page_text(lines, request.look)


def dot(report: GraphReport, request: ReportRequest) -> Iterable[str]:
    """What lies around the op, for Graphviz."""
    return export.dot(report.program, report.here.op.row, report.around)


def hlo(report: GraphReport, request: ReportRequest) -> Iterable[str]:
    """The computation of the op as HLO text; the whole module where no op was asked for."""
    if request.options.get("op") is None:
        return export.module_text(report.program)
    return export.computation_text(report.program, report.here.op.row)


def proto(report: GraphReport, request: ReportRequest) -> Produce:
    """The module as an HloProto."""
    return export.proto(report.program)


_WRITERS: Mapping[str, Any] = {
    **{"json": json, "csv": csv, "md": markdown, "text": text},
    **{"dot": dot, "hlo": hlo, "proto": proto},
}

REPORT = Report(
    read=read,
    writers=_WRITERS,
    tables=(OPERANDS, USERS, CALLED, PATH, NODES, EDGES),
    metrics=(*MODULE, *OP),
    csv_table=NODES,
    warnings=lambda report: report.warnings,
)

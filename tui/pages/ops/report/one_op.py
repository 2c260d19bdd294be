"""The report on one op or kernel: how long its runs took, what bounds it, and what is around it."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.base.record import replace
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.files.source_lines import source_excerpt
from tpuprof.parsers.pages.graph.neighbourhood import neighbourhood
from tpuprof.parsers.pages.graph.programs import GRAPHS
from tpuprof.parsers.pages.ops.details import op_details
from tpuprof.parsers.pages.ops.one_op import Spread, one_op
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.draw.table import first_rows
from tpuprof.tui.pages.ops.fields.one_op import CORES, METRICS, MOST_SHOWN, OPERANDS, ROWS, STEPS, USERS, OpReport
from tpuprof.tui.pages.ops.report import common
from tpuprof.tui.report.declared import Declared, Metrics, Section, declared, drawn_by
from tpuprof.tui.report.fields import Table, metric_rows, row_words, screen_columns
from tpuprof.tui.report.page import OF_PEOPLE, ReportRequest

_WARNINGS = attrgetter("page.found.page.warnings")
_op_of_page = drawn_by("tpuprof.parsers.pages.program.measured:op_of_page")
_card = drawn_by("tpuprof.tui.pages.ops.details.card:op_card")


def read(request: ReportRequest) -> OpReport:
    """Finds the op, its runs, and what is around it in the graph of its module."""
    options, session = request.options, request.session(request.run)
    page = one_op(session, request.host, options.get("op"), options.get("module"))
    here, why = None, ""
    try:
        found, row = page.found.page, page.found.main
        program = session.page(GRAPHS, request.host).find(found.table.name[row], int(found.table.program_id[row]))
        here = neighbourhood(program.program, program.row)
    except ProfileError as error:
        why = error.sentence.rstrip(".")
    graph = None if here is None else here.program.graph.module
    ops, main = page.found.page, page.found.main
    details, compiled = op_details(ops, main, graph), _op_of_page(ops, main, graph)
    asked = options.get("op") or ops.table.name[main]
    return OpReport(asked, page, details, here, why, not _most(request), compiled)


def declare(report: OpReport, request: ReportRequest) -> Declared:
    """Figures, its HLO ops, its runs by core and by step, its operands and users."""
    page, ops = report.page, report.page.found.page
    most = _most(request)
    rows = Section(ROWS, ops, "HLO ops", most, rows=list(page.found.rows))
    cores = _longest(CORES, page.cores, "By core", most)
    steps = _longest(STEPS, page.steps, "By step", most)
    why = {**common.worth_saying(ops.unknown), **_reasons(report)}
    return Declared(
        common.head(f"Op {report.asked}", ops, request),
        statement=statement(report),
        metrics=lambda: metric_rows(METRICS, report),
        parts=(
            Metrics(METRICS, report),
            rows,
            cores,
            steps,
            Section(OPERANDS, report.operands, "Operands", most),
            Section(USERS, report.users, "Who waits for it", most),
        ),
        csv=Section(CORES, page.cores, limit=request.most_rows),
        text=lambda pen: _text(report, most, pen),
        unknown=why,
        reasons={**ops.unknown, **why},
    )


def _most(request: ReportRequest) -> int:
    """Rows of each table, 0 for all: people who do not say see the first few, and how many more there are."""
    return MOST_SHOWN if request.limit is None and request.form in OF_PEOPLE else request.most_rows


def _longest(table: Table[Any], spreads: Sequence[Spread], title: str, most: int) -> Section[Any]:
    """The cores or steps with the longest runs first."""
    ordered = sorted(spreads, key=lambda each: -(each.maximum_ps or 0.0))
    return Section(table, ordered, title, most)


def statement(report: OpReport) -> str:
    """The op in a sentence: how much of the time it takes, and how its runs differ."""
    page, ops = report.page, report.page.found.page
    keys = ("self_time_percent", "bound_by", "roofline_efficiency")
    share, bound, roof = row_words(ROWS, keys, ops, page.found.main, False)
    share = share if len(page.found.rows) == 1 else f"{counted(len(page.found.rows), 'HLO op')}, the longest {share}"
    words = f"{report.asked} takes {share} of core time"
    words += f", bound by {bound} at {roof} of the roof" if bound != "n/a" else ""
    runs = page.all_runs
    if runs.median_ps and runs.maximum_ps is not None:
        of_runs = "its only run takes" if runs.runs == 1 else f"the longest of {runs.runs:,} runs takes"
        words += f"; {of_runs} {runs.maximum_ps / runs.median_ps:.2f} times the median"
    return f"{words}."


def _reasons(report: OpReport) -> dict[str, str]:
    page, found = report.page, dict[str, str]()
    if page.why_no_runs:
        found |= dict.fromkeys(
            ("runs.minimum_ps", "runs.median_ps", "runs.p90_ps", "runs.maximum_ps"), page.why_no_runs
        )
    if page.why_no_steps:
        found["step_time_ps"] = page.why_no_steps
    if report.why_no_graph:
        found |= dict.fromkeys(("answers", "operand_count", "user_count"), report.why_no_graph)
    return found


def _text(report: OpReport, most: int, pen: Pen) -> list[Line]:
    page, ops = report.page, report.page.found.page
    lines = [*pen.wrap(statement(report), "strong"), *common.simulated_lines(ops, pen)]
    if report.elsewhere:
        lines += pen.wrap(f"Also in {', '.join(report.elsewhere[:4])}: --module takes one of these.", "dim")
    excerpt = source_excerpt(report.details.source) if report.details.source else None
    lines += _card(ops, replace(report.details, expression=report.expression), pen, excerpt, compiled=report.compiled)
    if len(page.found.rows) > 1:
        rows = list(page.found.rows)
        lines.append(pen.rule("HLO ops", counted(len(rows), "op")))
        lines += first_rows(screen_columns(ROWS, ops, pen.glyphs), rows, most, pen)
    lines.append(pen.rule("Runs", counted(page.all_runs.runs, "run")))
    lines += [pen.fit([(f" {name:<36}", "dim"), (words, "text")]) for name, words in metric_rows(_FIGURES, report)]
    for title, section in (
        ("core", _longest(CORES, page.cores, "", most)),
        ("step", _longest(STEPS, page.steps, "", most)),
    ):
        if len(section.source):
            lines += [pen.rule(f"By {title}", "the longest runs first"), *section.lines(pen, "")]
    for title, table, around in (("Operands", OPERANDS, report.operands), ("Who waits for it", USERS, report.users)):
        if around:
            lines += [pen.rule(title, str(len(around))), *Section(table, around, limit=most).lines(pen, "")]
    lines += pen.wrap_all(report.answers or (), "text", [(" ", "text")])
    own = {key.rpartition(".")[2]: why for key, why in _reasons(report).items()}
    return [*lines, *common.text_notes(ops.warnings, own, pen)]


_FIGURES = tuple(
    figure for figure in METRICS if figure.key.startswith(("runs.", "step_time", "module.", "scope.", "clones."))
)

REPORT = declared("op", read, declare, (ROWS, CORES, STEPS, OPERANDS, USERS), METRICS, CORES, _WARNINGS)

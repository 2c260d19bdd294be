"""The report on lines of code: a row a line, by the self time of the ops that stem from it."""

from __future__ import annotations

from tpuprof.parsers.pages.ops.sources import SourcesPage, sources_page
from tpuprof.parsers.session import pages
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.draw.table import first_rows
from tpuprof.tui.pages.ops.fields.device import DEVICE, OP_COUNT, SIMULATED, WHOLE_TIME, time_metrics
from tpuprof.tui.pages.ops.fields.sources import HEADLINE, LINE_COUNT, SOURCES, UNSOURCED
from tpuprof.tui.pages.ops.report import common
from tpuprof.tui.report.declared import Declared, Figures, Section, declared
from tpuprof.tui.report.fields import metric_reasons, reasons, screen_columns
from tpuprof.tui.report.page import ReportRequest

TITLE = "Source lines"
OF_OPS = (*WHOLE_TIME, SIMULATED, *DEVICE, OP_COUNT)
OWN = (LINE_COUNT, UNSOURCED, HEADLINE)


def declare(page: SourcesPage, request: ReportRequest) -> Declared:
    """Figures, and lines by self time."""
    ops, lines = page.ops, Section(SOURCES, page, "Lines", request.most_rows)
    why = metric_reasons(time_metrics(ops)) | reasons((), "lines[]", page.unknown, "ops[]")

    def text(pen: Pen) -> list[Line]:
        columns = screen_columns(SOURCES, page, pen.glyphs)
        rows = first_rows(columns, range(len(page)), request.most_rows, pen)
        said = pen.wrap(page.headline, "strong")
        return common.text_lines(ops, [*said, *rows], page.unknown, pen)

    return Declared(
        common.head(TITLE, ops, request),
        statement=page.headline,
        metrics=common.time_rows(ops),
        parts=(Figures(OF_OPS, ops), Figures(OWN, page), lines),
        csv=lines,
        text=text,
        unknown=common.worth_saying(page.unknown),
        reasons={**why, **page.unknown},
    )


REPORT = declared(
    "sources",
    lambda request: sources_page(request.session(request.run).page(pages.OPS, request.host)),
    declare,
    tables=(SOURCES,),
    metrics=(*OF_OPS, *OWN),
    warnings=lambda page: page.ops.warnings,
)

"""The report on lines of code: a row a line, by the self time of the ops that come from it."""

from __future__ import annotations

from tpuprof.parsers.pages.ops.sources import SourcesPage, sources_page
from tpuprof.tui.pages.ops.fields.common import DEVICE, OP_COUNT, SIMULATED, WHOLE_TIME, time_metrics
from tpuprof.tui.pages.ops.fields.sources import HEADLINE, LINE_COUNT, SOURCES, UNSOURCED, whole_names
from tpuprof.tui.pages.ops.report import common
from tpuprof.tui.report.declared import Declared, Metrics, Section, declared
from tpuprof.tui.report.fields import metric_reasons, reasons
from tpuprof.tui.report.page import ReportRequest

TITLE = "Source lines"
OF_OPS = (*WHOLE_TIME, SIMULATED, *DEVICE, OP_COUNT)
OWN = (LINE_COUNT, UNSOURCED, HEADLINE)


def declare(page: SourcesPage, request: ReportRequest) -> Declared:
    """Figures, and lines by self time."""
    ops, lines = page.ops, Section(SOURCES, page, "Lines", request.most_rows)
    why = metric_reasons(time_metrics(ops)) | reasons((), "lines[]", page.unknown, "ops[]")
    return Declared(
        common.head(TITLE, ops, request),
        statement=page.headline,
        metrics=lambda: common.time_rows(ops),
        parts=(Metrics(OF_OPS, ops), Metrics(OWN, page), lines),
        csv=lines,
        text=lambda pen: common.text_lines(
            ops,
            [*pen.wrap(page.headline, "strong"), *lines.lines(pen, looks=whole_names(page, pen.glyphs))],
            page.unknown,
            pen,
        ),
        unknown=common.worth_saying(page.unknown),
        reasons={**why, **page.unknown},
    )


METRICS = (*OF_OPS, *OWN)
REPORT = declared("sources", common.of_ops(sources_page), declare, (SOURCES,), METRICS, warnings=common.WARNINGS)

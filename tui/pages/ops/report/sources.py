"""The report on lines of code: a row a line, by the self time of the ops that stem from it."""

from __future__ import annotations

from tpuprof.parsers.pages.ops.sources import SourcesPage, sources_page
from tpuprof.tui.draw.layout import wrap
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.draw.table import first_rows
from tpuprof.tui.pages.ops.fields.device import DEVICE, OP_COUNT, SIMULATED, WHOLE_TIME, time_figures
from tpuprof.tui.pages.ops.fields.sources import HEADLINE, LINE_COUNT, SOURCES, UNSOURCED
from tpuprof.tui.pages.ops.report import common
from tpuprof.tui.report.csv import table_csv
from tpuprof.tui.report.fields import figure_reasons, figure_values, first, reasons, screen_columns, table_records
from tpuprof.tui.report.json import document, head
from tpuprof.tui.report.markdown import escaped, figures_table, joined, main_table, unknown_block
from tpuprof.tui.report.page import Asked, Report
from tpuprof.tui.report.text import page_text

TITLE = "Source lines"
OF_OPS = (*WHOLE_TIME, SIMULATED, *DEVICE, OP_COUNT)
OWN = (LINE_COUNT, UNSOURCED, HEADLINE)


def read(asked: Asked) -> SourcesPage:
    """Reads the page."""
    return sources_page(asked.session(asked.run).ops(asked.host))


def json(page: SourcesPage, asked: Asked) -> str:
    """Lines by self time."""
    ops = page.ops
    body = {**figure_values(OF_OPS, ops), **figure_values(OWN, page)}
    body["lines"] = table_records(SOURCES, page, first(len(page), asked.most_rows))
    why = {
        **figure_reasons((*time_figures(ops), *DEVICE, *OWN)),
        **reasons(SOURCES.fields, "lines[]", page.unknown, "ops[]"),
    }
    return document(head("sources", asked.run, ops.hosts, ops.warnings), body, {**why, **page.unknown})


def csv(page: SourcesPage, asked: Asked) -> str:
    """Lines by self time, with their rank."""
    return table_csv(SOURCES, page, first(len(page), asked.most_rows))


def markdown(page: SourcesPage, asked: Asked) -> str:
    """Figures, lines by self time, and what is unknown."""
    rows = first(len(page), asked.most_rows)
    lines = common.markdown_head(TITLE, page.ops, asked.run.name)
    lines += ["", escaped(page.headline), *figures_table(common.time_rows(page.ops))]
    lines += main_table("Lines", SOURCES, page, rows, len(page))
    return joined([*lines, *unknown_block(page.unknown, common.NOT_WORTH_SAYING)])


def text(page: SourcesPage, asked: Asked) -> str:
    """The table of lines."""

    def lines(width: int) -> list[Line]:
        glyphs = asked.look.glyphs
        return [
            *common.text_head(f"{TITLE} of {asked.run.name}", page.ops, width, glyphs),
            *wrap(page.headline, width, "strong", glyphs),
            *first_rows(screen_columns(SOURCES, page, glyphs), range(len(page)), asked.most_rows, width, glyphs),
            *common.text_notes(page.ops.warnings, page.unknown, width, glyphs),
        ]

    return page_text(lines, asked.look)


REPORT = Report(
    read=read,
    writers={"json": json, "csv": csv, "md": markdown, "text": text},
    tables=(SOURCES,),
    figures=(*OF_OPS, *OWN),
    csv_table=SOURCES,
    warnings=lambda page: page.ops.warnings,
)

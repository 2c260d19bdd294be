"""The report on HLO ops.

Beside what the documentation fixes: `op_count` is the number of ops before any limit, and `device` is one object on all
op pages. `flops` and bytes are over all occurrences, `average_time_ps` is the total time by occurrence.
"""

from __future__ import annotations

from tpuprof.parsers.pages.ops.ops import OpsPage, with_offloaded
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.draw.table import first_rows
from tpuprof.tui.pages.ops.fields.device import DEVICE, OP_COUNT, SIMULATED, TIME_SCALE, WHOLE_TIME, time_figures
from tpuprof.tui.pages.ops.fields.hlo_ops import HLO_OPS
from tpuprof.tui.pages.ops.report import common
from tpuprof.tui.report.csv import table_csv
from tpuprof.tui.report.fields import figure_reasons, figure_values, first, reasons, screen_columns, table_records
from tpuprof.tui.report.json import document, head
from tpuprof.tui.report.markdown import figures_table, joined, main_table, unknown_block
from tpuprof.tui.report.page import Asked, Report
from tpuprof.tui.report.text import page_text

FIGURES = (*WHOLE_TIME, TIME_SCALE, SIMULATED, *DEVICE, OP_COUNT)


def read(asked: Asked) -> OpsPage:
    """Reads the page, with what SparseCores ran for the cores' ops behind these."""
    return with_offloaded(asked.session(asked.run).ops(asked.host))


def json(page: OpsPage, asked: Asked) -> str:
    """HLO ops by self time."""
    ops = table_records(HLO_OPS, page, first(len(page), asked.most_rows))
    body = {**figure_values(FIGURES, page), "ops": ops}
    why = {**figure_reasons((*time_figures(page), *DEVICE)), **page.unknown}
    why |= reasons(HLO_OPS.fields, "ops[]", page.unknown)
    return document(head("ops", asked.run, page.hosts, page.warnings), body, why)


def csv(page: OpsPage, asked: Asked) -> str:
    """HLO ops by self time, with their rank."""
    return table_csv(HLO_OPS, page, first(len(page), asked.most_rows))


def markdown(page: OpsPage, asked: Asked) -> str:
    """Figures, HLO ops by self time, and what is unknown."""
    rows = first(len(page), asked.most_rows)
    lines = common.markdown_head("HLO ops", page, asked.run.name)
    lines += figures_table([*common.time_rows(page), *common.peak_rows(page)])
    lines += main_table("Ops", HLO_OPS, page, rows, len(page))
    return joined([*lines, *unknown_block(page.unknown, common.NOT_WORTH_SAYING)])


def text(page: OpsPage, asked: Asked) -> str:
    """The table of HLO ops."""

    def lines(width: int) -> list[Line]:
        glyphs = asked.look.glyphs
        columns = screen_columns(HLO_OPS, page, glyphs)
        return [
            *common.text_head(f"HLO ops of {asked.run.name}", page, width, glyphs),
            *first_rows(columns, range(len(page)), asked.most_rows, width, glyphs),
            *common.text_notes(page.warnings, page.unknown, width, glyphs),
        ]

    return page_text(lines, asked.look)


REPORT = Report(
    read=read,
    writers={"json": json, "csv": csv, "md": markdown, "text": text},
    tables=(HLO_OPS,),
    figures=FIGURES,
    csv_table=HLO_OPS,
    warnings=lambda page: page.warnings,
)

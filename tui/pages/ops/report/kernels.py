"""The report on GPU kernels."""

from __future__ import annotations

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.pages.ops.kernels import KernelsPage, kernels_page
from tpuprof.tui.draw.format import duration, percent
from tpuprof.tui.draw.layout import fit
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.draw.table import first_rows
from tpuprof.tui.pages.ops.fields.device import DEVICE, SIMULATED
from tpuprof.tui.pages.ops.fields.kernels import KERNEL_COUNT, KERNEL_TIME, KERNELS, TENSOR_TIME
from tpuprof.tui.pages.ops.report import common
from tpuprof.tui.report.csv import table_csv
from tpuprof.tui.report.fields import (
    figure_reasons,
    figure_rows,
    figure_values,
    first,
    reasons,
    screen_columns,
    table_records,
)
from tpuprof.tui.report.json import document, head
from tpuprof.tui.report.markdown import figures_table, joined, main_table, unknown_block
from tpuprof.tui.report.page import Asked, Report
from tpuprof.tui.report.text import page_text

OWN = (KERNEL_COUNT, KERNEL_TIME, TENSOR_TIME)
TITLE = "GPU kernels"


def read(asked: Asked) -> KernelsPage:
    """Reads the page."""
    return kernels_page(asked.session(asked.run).ops(asked.host))


def json(page: KernelsPage, asked: Asked) -> str:
    """Kernels by time."""
    ops = page.ops
    body = {**figure_values(DEVICE, ops), **figure_values((SIMULATED,), ops), **figure_values(OWN, page)}
    body["kernels"] = table_records(KERNELS, page, first(len(page), asked.most_rows))
    why = {**figure_reasons((*DEVICE, *OWN)), **reasons(KERNELS.fields, "kernels[]", page.unknown)}
    if not len(page):
        why |= dict.fromkeys((KERNEL_TIME.key, TENSOR_TIME.key), page.unknown["kernels"])
    return document(head("kernels", asked.run, ops.hosts, ops.warnings), body, why)


def csv(page: KernelsPage, asked: Asked) -> str:
    """Kernels by time, with their rank."""
    return table_csv(KERNELS, page, first(len(page), asked.most_rows))


def markdown(page: KernelsPage, asked: Asked) -> str:
    """Figures, kernels by time, and what is unknown."""
    lines = common.markdown_head(TITLE, page.ops, asked.run.name)
    lines += figures_table([("kernels", str(len(page))), *figure_rows(OWN, page)])
    lines += main_table("Kernels", KERNELS, page, first(len(page), asked.most_rows), len(page))
    return joined([*lines, *unknown_block(page.unknown)])


def text(page: KernelsPage, asked: Asked) -> str:
    """The table of kernels."""
    glyphs, tensor = asked.look.glyphs, TENSOR_TIME.read(page)

    def lines(width: int) -> list[Line]:
        lines = common.text_head(f"{TITLE} of {asked.run.name}", page.ops, width, glyphs)
        if len(page):
            words = f"{counted(len(page), 'kernel')}, {duration(int(page.total_ps.sum()), glyphs.is_ascii)}"
            words += f"; {percent(100 * tensor)} of it uses tensor cores" if tensor is not None else ""
            lines.append(fit([(words, "title")], width, glyphs))
        shown = screen_columns(KERNELS, page, glyphs)
        lines += first_rows(shown, range(len(page)), asked.most_rows, width, glyphs)
        return [*lines, *common.text_notes(page.ops.warnings, page.unknown, width, glyphs)]

    return page_text(lines, asked.look)


REPORT = Report(
    read=read,
    writers={"json": json, "csv": csv, "md": markdown, "text": text},
    tables=(KERNELS,),
    figures=(*DEVICE, SIMULATED, *OWN),
    csv_table=KERNELS,
    warnings=lambda page: page.ops.warnings,
)

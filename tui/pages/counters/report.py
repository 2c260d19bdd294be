"""The report on performance counters: units, the counters themselves, and what custom calls use."""

from __future__ import annotations

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.pages.counters import CountersPage
from tpuprof.tui.pages.counters.drawing import text_lines
from tpuprof.tui.pages.counters.fields import COUNTERS, FIGURES, KERNELS, UNITS
from tpuprof.tui.report.csv import table_csv
from tpuprof.tui.report.fields import figure_reasons, figure_rows, figure_values, first, reasons, table_records
from tpuprof.tui.report.json import document, head
from tpuprof.tui.report.markdown import escaped, figures_table, joined, main_table, page_head, unknown_block
from tpuprof.tui.report.page import Asked, Report
from tpuprof.tui.report.text import covered, titled_text


def json(page: CountersPage, asked: Asked) -> str:
    """Figures and three tables; where they come from stands in `notes`."""
    most = asked.most_rows
    body: dict[str, object] = dict(figure_values(FIGURES, page))
    body[UNITS.key] = table_records(UNITS, page.units, first(len(page.units), most)) or None
    body[COUNTERS.key] = table_records(COUNTERS, page.counters, first(len(page.counters), most)) or None
    body[KERNELS.key] = table_records(KERNELS, page.kernels, first(len(page.kernels), most)) or None
    why = {**figure_reasons(FIGURES), **page.unknown}
    why |= reasons(UNITS.fields, "units[]", {}) | reasons(COUNTERS.fields, "counters[]", {})
    why |= reasons(KERNELS.fields, "kernels[]", {})
    return document(head("counters", asked.run, page.hosts, page.warnings), body, why)


def csv(page: CountersPage, asked: Asked) -> str:
    """The units; the counters themselves where nothing tells of units."""
    if page.units or not page.counters:
        return table_csv(UNITS, page.units, first(len(page.units), asked.most_rows))
    return table_csv(COUNTERS, page.counters, first(len(page.counters), asked.most_rows))


def markdown(page: CountersPage, asked: Asked) -> str:
    """The statement, figures, and three tables."""
    lines = page_head(f"Counters of {asked.run.name}", page.hosts, "", False, page.warnings)
    lines += ["", escaped(page.statement)]
    lines += figures_table(figure_rows(FIGURES, page))
    lines += main_table("Units", UNITS, page.units, first(len(page.units), asked.most_rows), len(page.units))
    shown = first(len(page.counters), asked.most_rows)
    lines += main_table("Counters", COUNTERS, page.counters, shown, len(page.counters))
    shown = first(len(page.kernels), asked.most_rows)
    lines += main_table("Custom calls", KERNELS, page.kernels, shown, len(page.kernels))
    if page.notes:
        lines += ["", "## Notes", "", *(f"- {escaped(note)}" for note in page.notes)]
    return joined([*lines, *unknown_block(page.unknown)])


def text(page: CountersPage, asked: Asked) -> str:
    """The whole page under a line that names the run."""
    title, right = f"Counters of {asked.run.name}", covered(page.hosts) or counted(0, "host")
    return titled_text(title, right, lambda width, glyphs: text_lines(page, width, glyphs, asked.most_rows), asked.look)


REPORT = Report(
    read=lambda asked: asked.session(asked.run).counters(asked.host),
    writers={"json": json, "csv": csv, "md": markdown, "text": text},
    tables=(UNITS, COUNTERS, KERNELS),
    figures=FIGURES,
    csv_table=UNITS,
    warnings=lambda page: page.warnings,
)

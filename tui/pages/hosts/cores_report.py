"""The cores of a run side by side, in every format: text, JSON, CSV, Markdown."""

from __future__ import annotations

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.pages.hosts.model import HostsPage
from tpuprof.parsers.session import pages
from tpuprof.tui.pages.hosts.drawing import cores as lines
from tpuprof.tui.pages.hosts.fields import CORE_FIGURES, CORES, KEYS, of_cores
from tpuprof.tui.report.csv import table_csv
from tpuprof.tui.report.fields import figure_reasons, figure_values, first, markdown_rows, reasons, table_records
from tpuprof.tui.report.json import document, head
from tpuprof.tui.report.markdown import escaped, fields_table, joined, unknown_block
from tpuprof.tui.report.page import Asked, Report
from tpuprof.tui.report.text import titled_text


def text(page: HostsPage, asked: Asked) -> str:
    """The whole page under a line that names the run."""
    title, right = f"Cores of {asked.run.name}", counted(len(page.cores), "core")
    return titled_text(title, right, lambda pen: lines(page, pen, asked.most_rows), asked.look)


def json(page: HostsPage, asked: Asked) -> str:
    """The cores, and which is slowest."""
    listed = of_cores(page)
    records = table_records(CORES, listed, first(len(listed.rows), asked.most_rows))
    for record in records:
        for key in ("step_time_ms", "breakdown_ms"):
            times = record[key]
            if isinstance(times, dict) and set(times.values()) == {None}:
                record[key] = None
    unknown = {f"cores[].{KEYS[name]}": why for name, why in listed.unknown.items() if name in KEYS}
    why = figure_reasons(CORE_FIGURES) | reasons(CORES.fields, "cores[]", unknown)
    body = {**figure_values(CORE_FIGURES, page), "cores": records}
    return document(head("cores", asked.run, [row.host for row in page.rows], page.warnings), body, why)


def csv(page: HostsPage, asked: Asked) -> str:
    """A row a core."""
    return table_csv(CORES, of_cores(page), first(len(page.cores), asked.most_rows))


def markdown(page: HostsPage, asked: Asked) -> str:
    """Which core is slowest, a table of them, and what is unknown."""
    listed = of_cores(page)
    out = [f"# Cores of {escaped(asked.run.name)}", "", escaped(page.cores_statement), ""]
    out += fields_table(CORES, markdown_rows(CORES, listed, first(len(listed.rows), asked.most_rows)))
    if page.warnings:
        out += ["", "## Notes", "", *(f"- {escaped(warning)}" for warning in page.warnings)]
    return joined([*out, *unknown_block({KEYS.get(key, key): why for key, why in listed.unknown.items()})])


REPORT = Report(
    read=lambda asked: asked.session(asked.run).page(pages.HOSTS),
    writers={"json": json, "csv": csv, "md": markdown, "text": text},
    tables=(CORES,),
    csv_table=CORES,
    figures=CORE_FIGURES,
    warnings=lambda page: page.warnings,
)

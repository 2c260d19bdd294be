"""The hosts of a run compared, in every format: text, JSON, CSV, Markdown; JSON has every step of every core too."""

from __future__ import annotations

from tpuprof.parsers.pages.hosts.model import HostsPage
from tpuprof.parsers.session import pages
from tpuprof.tui.pages.hosts.drawing import hosts as lines
from tpuprof.tui.pages.hosts.drawing import how_many
from tpuprof.tui.pages.hosts.fields import BREAKDOWN, FIGURES, HOSTS, KEYS, LEFT_OUT, STEPS, steps_of
from tpuprof.tui.report.csv import table_csv
from tpuprof.tui.report.fields import figure_reasons, figure_values, first, markdown_rows, reasons, table_records
from tpuprof.tui.report.json import document, head
from tpuprof.tui.report.markdown import escaped, fields_table, joined, main_table, unknown_block
from tpuprof.tui.report.page import Asked, Report
from tpuprof.tui.report.text import titled_text


def text(page: HostsPage, asked: Asked) -> str:
    """The whole page under a line that names the run."""
    title, look = f"Hosts of {asked.run.name}", asked.look
    return titled_text(title, how_many(page), lambda pen: lines(page, pen, asked.most_rows), look)


def json(page: HostsPage, asked: Asked) -> str:
    """The hosts, those that are left out, and every common step."""
    steps = steps_of(page)
    records = table_records(HOSTS, page, first(len(page.rows), asked.most_rows))
    for record in records:
        for key in ("step_time_ms", "breakdown_ms"):
            times = record[key]
            if isinstance(times, dict) and set(times.values()) == {None}:
                record[key] = None
    body = {
        **figure_values(FIGURES, page),
        "hosts": records,
        "left_out": table_records(LEFT_OUT, page.left_out, range(len(page.left_out))),
        "steps": table_records(STEPS, steps, range(len(steps))),
    }
    unknown = {f"hosts[].{KEYS[name]}": why for name, why in page.unknown.items() if name in KEYS}
    if "parts_ps.input" in page.unknown:
        unknown["steps[].cores[].input"] = page.unknown["parts_ps.input"]
    why = figure_reasons(FIGURES) | reasons(HOSTS.fields, "hosts[]", unknown)
    why |= reasons(STEPS.fields, "steps[]", unknown)
    return document(head("hosts", asked.run, [row.host for row in page.rows], page.warnings), body, why)


def csv(page: HostsPage, asked: Asked) -> str:
    """A row a host."""
    return table_csv(HOSTS, page, first(len(page.rows), asked.most_rows))


def markdown(page: HostsPage, asked: Asked) -> str:
    """The verdict, a table of the hosts, where their mean steps go, and what is left out or unknown."""
    rows = first(len(page.rows), asked.most_rows)
    lines = [f"# Hosts of {escaped(asked.run.name)}", "", escaped(page.statement), ""]
    lines += fields_table(HOSTS, markdown_rows(HOSTS, page, rows))
    taken_apart = [row for row in rows if page.rows[row].parts_ps is not None]
    lines += main_table("Where a mean step goes", HOSTS, page, taken_apart, len(taken_apart), BREAKDOWN)
    if page.left_out or page.warnings:
        lines += ["", "## Notes", ""]
        lines += [f"- {escaped(out.host)} is left out: {escaped(out.reason)}" for out in page.left_out]
        lines += [f"- {escaped(warning)}" for warning in page.warnings]
    return joined([*lines, *unknown_block({KEYS.get(key, key): why for key, why in page.unknown.items()})])


REPORT = Report(
    read=lambda asked: asked.session(asked.run).page(pages.HOSTS),
    writers={"json": json, "csv": csv, "md": markdown, "text": text},
    tables=(HOSTS, LEFT_OUT, STEPS),
    csv_table=HOSTS,
    figures=FIGURES,
    warnings=lambda page: page.warnings,
)

"""The report on inference: latencies as its main table, then models or modules."""

from __future__ import annotations

from dataclasses import replace

from tpuprof.parsers.pages.inference import InferencePage
from tpuprof.tui.draw.format import count, significant
from tpuprof.tui.pages.overview.inference.fields import BEFORE_ROWS, LAUNCHED, MODELS, MODULES, NOTE, ROWS
from tpuprof.tui.report.csv import table_csv
from tpuprof.tui.report.fields import figure_reasons, figure_values, first, table_records
from tpuprof.tui.report.json import document, head
from tpuprof.tui.report.markdown import escaped, joined, main_table, page_head, unknown_block
from tpuprof.tui.report.page import Asked, Report
from tpuprof.tui.report.shared.quantities import LATENCIES, latencies
from tpuprof.tui.report.text import covered, titled_text


def json(page: InferencePage, asked: Asked) -> str:
    """All figures and tables."""
    body = {
        **figure_values(BEFORE_ROWS, page),
        **{
            table.key: table_records(table, rows, first(len(rows), asked.most_rows))
            for table, rows in ((ROWS, page.rows), (MODULES, page.modules))
        },
        **figure_values([NOTE], page),
    }
    why = {**figure_reasons(BEFORE_ROWS), **page.unknown}
    return document(head("inference", asked.run, page.hosts, page.warnings), body, why)


def csv(page: InferencePage, _: Asked) -> str:
    """The percentiles; the average stands last, with ``average`` for a percentile."""
    rows = latencies(page.percentiles, page.average)
    return table_csv(LATENCIES, rows, range(len(rows)))


def markdown(page: InferencePage, asked: Asked) -> str:
    """What a session is, its latency, the launches, models or modules, and what is unknown with the reasons."""
    facts = [f"{page.source}: {page.subject}, {count(page.sessions)}"] if page.source is not None else []
    facts += [f"per second: {significant(page.sessions_per_second)}"] if page.sessions_per_second is not None else []
    lines = page_head(f"Inference latency of {asked.run.name}", page.hosts, warnings=page.warnings, facts=facts)
    rows, launches = latencies(page.percentiles, page.average), page.launches
    lines += ["", escaped(page.note), *main_table("Latency", LATENCIES, rows, range(len(rows)), len(rows))]
    if launches is not None:
        title = f"From launch to end, {count(launches.count)} of {count(launches.of)} runs"
        rows = latencies(launches.percentiles, launches.average)
        lines += main_table(title, LAUNCHED, rows, range(len(rows)), len(rows))
    tables = [("Models", MODELS, page.rows)] if page.source == "requests" else []
    for title, table, rows_shown in (*tables, ("Modules", MODULES, page.modules)):
        shown = first(len(rows_shown), asked.most_rows)
        lines += main_table(title, table, rows_shown, shown, len(shown))
    return joined([*lines, *unknown_block(page.unknown)])


def text(page: InferencePage, asked: Asked) -> str:
    """The page as it is drawn."""
    from tpuprof.tui.pages.overview.inference.drawing import inference  # noqa: PLC0415 - for text alone

    shown = replace(page, rows=page.rows[: asked.limit or None], modules=page.modules[: asked.limit or None])
    title, hosts = f"Inference latency of {asked.run.name}", covered(page.hosts)
    return titled_text(title, hosts, lambda width, glyphs: inference(shown, width, glyphs), asked.look)


REPORT = Report(
    read=lambda asked: asked.session(asked.run).inference(asked.host),
    writers={"json": json, "csv": csv, "md": markdown, "text": text},
    tables=(LATENCIES, ROWS, MODULES),
    figures=(*BEFORE_ROWS, NOTE),
    csv_table=LATENCIES,
    warnings=lambda page: page.warnings,
)

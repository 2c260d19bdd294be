"""The report on the input pipeline: its figures, and the ops as its main table."""

from __future__ import annotations

from dataclasses import replace

from tpuprof.parsers.pages.input.model import InputPipelinePage
from tpuprof.tui.draw.format import UNKNOWN, duration, percent
from tpuprof.tui.pages.input.fields import BEFORE_OPS, BREAKDOWN, EXPLAINED, OPS, STAGES
from tpuprof.tui.report.csv import table_csv
from tpuprof.tui.report.fields import figure_reasons, figure_rows, figure_values, first, table_records
from tpuprof.tui.report.json import document, head
from tpuprof.tui.report.markdown import escaped, joined, main_table, page_head, table, unknown_block
from tpuprof.tui.report.page import Asked, Report
from tpuprof.tui.report.text import covered, titled_text


def json(page: InputPipelinePage, asked: Asked) -> str:
    """All figures and tables."""
    body = {
        **figure_values(BEFORE_OPS, page),
        "ops": table_records(OPS, page.ops, first(len(page.ops), asked.most_rows)),
        "stages": table_records(STAGES, page, first(len(page.stages), asked.most_rows)),
    }
    why = figure_reasons(BEFORE_OPS)
    for explained, prefixes in EXPLAINED.items():
        if explained in page.unknown:
            why |= {key: page.unknown[explained] for key in why if key.startswith(prefixes)}
    return document(head("input", asked.run, page.hosts, page.warnings), body, {**why, **page.unknown})


def csv(page: InputPipelinePage, asked: Asked) -> str:
    """The ops."""
    return table_csv(OPS, page.ops, first(len(page.ops), asked.most_rows))


def markdown(page: InputPipelinePage, asked: Asked) -> str:
    """Verdict and what to do, waiting, the host's time by part, the ops, and what is unknown."""
    lines = page_head(f"Input pipeline of {asked.run.name}", page.hosts, warnings=page.warnings)
    lines += ["", escaped(page.bottleneck.statement), ""]
    lines += [f"{number}. {escaped(step)}" for number, step in enumerate(page.next_steps, 1)]
    lines += ["", "## Waiting for input", "", *table(("figure", "value"), "lr", _figures(page))]
    if page.breakdown is not None:
        rows = figure_rows(BREAKDOWN, page)
        lines += ["", "## Host time", "", *table(("part", "time over all threads"), "lr", rows)]
    shown = first(len(page.ops), asked.most_rows)
    lines += main_table("Input ops", OPS, page.ops, shown, len(shown))
    return joined([*lines, *unknown_block(page.unknown)])


def _figures(page: InputPipelinePage) -> list[tuple[str, str]]:
    time, waiting, worst = page.step_time, page.infeed_percent, page.worst_step
    rows = [("step time, median", duration(None if time is None else time.median_ps))]
    if waiting is None:
        return [*rows, ("share of step time", UNKNOWN)]
    rows += [
        ("share of step time, average", f"{percent(waiting.average)} ± {percent(waiting.standard_deviation)}"),
        ("share of step time, range", f"{percent(waiting.minimum)} – {percent(waiting.maximum)}"),
    ]
    if worst is not None:
        step = page.steps[worst]
        rows.append(("worst step", f"{step.name}: {percent(step.percent_maximum)} on {step.core}"))
    return rows


def text(page: InputPipelinePage, asked: Asked) -> str:
    """The page as on the screen."""
    from tpuprof.tui.pages.input.drawing import input_pipeline  # noqa: PLC0415 - for text alone

    shown = replace(page, stages=page.stages[: asked.limit or None])
    title, hosts = f"Input pipeline of {asked.run.name}", covered(page.hosts)
    return titled_text(title, hosts, lambda width, glyphs: input_pipeline(shown, width, None, glyphs), asked.look)


REPORT = Report(
    read=lambda asked: asked.session(asked.run).input_pipeline(asked.host),
    writers={"json": json, "csv": csv, "md": markdown, "text": text},
    tables=(OPS, STAGES),
    figures=BEFORE_OPS,
    csv_table=OPS,
    warnings=lambda page: page.warnings,
)

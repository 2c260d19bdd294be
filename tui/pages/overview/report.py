"""The report on the overview: its figures, and the top ops as its main table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.pages.overview.model import Environment, Overview
from tpuprof.parsers.steps.model import StepTime
from tpuprof.tui.draw.format import count, duration
from tpuprof.tui.pages.overview import fields
from tpuprof.tui.pages.overview.fields import FIGURES, TOP_OPS
from tpuprof.tui.report.csv import table_csv
from tpuprof.tui.report.fields import figure_reasons, figure_rows, figure_values, first, reasons, table_records
from tpuprof.tui.report.json import document, head
from tpuprof.tui.report.markdown import escaped, figures_table, joined, main_table, page_head, table, unknown_block
from tpuprof.tui.report.page import Asked, Report
from tpuprof.tui.report.text import covered, titled_text

if TYPE_CHECKING:
    from tpuprof.parsers.pages.findings.finding import Finding


def json(page: Overview, asked: Asked) -> str:
    """All figures and tables."""
    body = {
        **figure_values(fields.BEFORE_OPS, page),
        "top_ops": table_records(TOP_OPS, page.top_ops, first(len(page.top_ops), asked.most_rows)),
        **figure_values(fields.AFTER_OPS, page),
    }
    why = {**figure_reasons(FIGURES), **reasons(TOP_OPS.fields, "top_ops[]", page.unknown), **page.unknown}
    return document(head("overview", asked.run, page.hosts, page.warnings), body, why)


def csv(page: Overview, asked: Asked) -> str:
    """The top ops."""
    return table_csv(TOP_OPS, page.top_ops, first(len(page.top_ops), asked.most_rows))


def markdown(page: Overview, asked: Asked) -> str:
    """Figures, step time, bottleneck, findings, device time by class, top ops, and what is unknown."""
    ran_on, bottleneck = page.environment, page.bottleneck
    lines = page_head(f"Overview of {asked.run.name}", page.hosts, _machine(ran_on), ran_on.simulated, page.warnings)
    lines += figures_table([*_step_rows(page.performance.step_time), *figure_rows(fields.MARKDOWN, page)])
    lines += ["", "## Bottleneck", "", escaped(bottleneck.statement), ""]
    lines += [f"{number}. {escaped(step)}" for number, step in enumerate(bottleneck.next_steps, 1)]
    lines += _findings(page.findings) if page.findings else []
    lines += main_table("Device time", fields.SHARES, page.shares, range(len(page.shares)), len(page.shares))
    rows = first(len(page.top_ops), asked.most_rows)
    lines += main_table("Top ops", TOP_OPS, page.top_ops, rows, len(rows))
    return joined([*lines, *unknown_block(page.unknown)])


def _machine(environment: Environment) -> str:
    parts = [environment.device_type or "an unknown device", counted(environment.device_core_count, "core")]
    parts.append(counted(environment.host_count, "host"))
    if environment.is_training is not None:
        parts.append("training" if environment.is_training else "inference")
    if environment.profile_duration_ps is not None:
        parts.append(f"{duration(environment.profile_duration_ps)} captured")
    return ", ".join(parts)


def _step_rows(time: StepTime | None) -> list[tuple[str, str]]:
    if time is None:
        return [("step time", duration(None))]
    rows = [
        ("step time, median", duration(time.median_ps)),
        ("step time, average", f"{duration(time.average_ps)} ± {duration(time.standard_deviation_ps)}"),
        ("step time, range", f"{duration(time.minimum_ps)} – {duration(time.maximum_ps)}"),
        ("steps", count(time.count)),
    ]
    return [*rows, ("step time is inferred", time.note)] if time.source == "modules" else rows


def _findings(findings: Sequence[Finding]) -> list[str]:
    """A table of the findings, and below what each rests on."""
    rows, numbered = [], []
    for rank, finding in enumerate(findings, 1):
        figures = fields.worth(finding, False), fields.share(finding)
        rows.append((str(rank), finding.title, *figures, finding.place.tab))
        numbered.append(f"{rank}. {' '.join(map(escaped, (*finding.evidence, finding.basis, finding.advice)))}")
    head = ("", "finding", fields.findings_heading(findings), "share", "where")
    return ["", "## Why is it slow?", "", *table(head, "rlrrl", rows), "", *numbered]


def text(page: Overview, asked: Asked) -> str:
    """The page as on the screen."""
    from tpuprof.tui.pages.overview.drawing import overview  # noqa: PLC0415 - for text alone

    shown = replace(page, top_ops=page.top_ops[: asked.limit or None])
    title, hosts = f"Overview of {asked.run.name}", covered(page.hosts)
    return titled_text(title, hosts, lambda width, glyphs: overview(shown, width, None, glyphs), asked.look)


REPORT = Report(
    read=lambda asked: asked.session(asked.run).overview(asked.host),
    writers={"json": json, "csv": csv, "md": markdown, "text": text},
    tables=(TOP_OPS,),
    figures=FIGURES,
    csv_table=TOP_OPS,
    warnings=lambda page: page.warnings,
)

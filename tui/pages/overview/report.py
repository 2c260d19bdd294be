"""The report on the overview: its figures, and the top ops as its main table."""

from __future__ import annotations

from tpuprof.parsers.base.record import replace
from tpuprof.parsers.pages.overview.model import OVERVIEW, Overview
from tpuprof.parsers.steps.model import StepTime
from tpuprof.tui.draw.columns import Cursor
from tpuprof.tui.draw.format import count, duration
from tpuprof.tui.pages.overview import fields
from tpuprof.tui.pages.overview.fields import METRICS, TOP_OPS
from tpuprof.tui.report.declared import Block, Declared, Metrics, Section, declared, drawn_by
from tpuprof.tui.report.fields import metric_rows
from tpuprof.tui.report.markdown import escaped, numbered, table
from tpuprof.tui.report.page import Head, ReportRequest, page_of

_pictures = drawn_by("tpuprof.tui.pages.overview.ledger.picture:pictures")
_compose = drawn_by("tpuprof.tui.pages.overview.drawing:compose")


def declare(page: Overview, request: ReportRequest) -> Declared:
    """Figures, step time, bottleneck, findings, device time by class, and top ops."""
    ran_on, why, most = page.environment, page.bottleneck, request.most_rows
    top = Section(TOP_OPS, page.top_ops, "Top ops", most)
    title, where = f"Overview of {request.run.name}", f"ran on: {fields.machine(ran_on)}"
    return Declared(
        Head(title, request.run, page.hosts, page.warnings, [where], ran_on.simulated),
        metrics=lambda: [*_step_rows(page.performance.step_time), *metric_rows(fields.MARKDOWN, page)],
        parts=(
            Metrics(fields.BEFORE_OPS, page),
            Block(markdown=Section(fields.GROUPS, page.groups, "Groups of cores").markdown),
            Block(markdown=lambda: ["", "## Bottleneck", "", escaped(why.statement), "", *numbered(why.next_steps)]),
            Block(markdown=lambda: _findings(page)),
            Block(markdown=Section(fields.SHARES, page.shares, "Device time").markdown),
            top,
            Metrics(fields.AFTER_OPS, page),
        ),
        csv=top,
        text=lambda pen: _compose(replace(page, top_ops=page.top_ops[: most or None]), pen, None, Cursor()).lines,
        unknown=page.unknown,
    )


def _step_rows(time: StepTime | None) -> list[tuple[str, str]]:
    if time is None:
        return [("step time", duration(None))]
    rows = [
        ("step time, median", duration(time.median_ps)),
        (
            "step time, average",
            duration(time.average_ps) + (f" ± {duration(time.standard_deviation_ps)}" * (time.count > 1)),
        ),
        ("step time, range", f"{duration(time.minimum_ps)} – {duration(time.maximum_ps)}"),
        ("steps", count(time.count)),
    ]
    return [*rows, ("step time is inferred", time.note)] if time.source != "steps" else rows


def _findings(page: Overview) -> list[str]:
    if not page.findings:
        return []
    rows, rests_on = [], []
    for rank, finding in enumerate(page.findings, 1):
        metrics = fields.worth(finding, False), fields.share(finding)
        rows.append((str(rank), finding.title, *metrics, finding.place.tab))
        rests_on.append(f"{rank}. {' '.join(map(escaped, (*finding.evidence, finding.basis, finding.advice)))}")
    head = ("", "finding", fields.findings_heading(page, False), "share", "where")
    return ["", "## Why is it slow?", "", *table(head, "rlrrl", rows), "", *rests_on]


REPORT = declared("overview", page_of(OVERVIEW), declare, (TOP_OPS,), METRICS, pictures=_pictures)

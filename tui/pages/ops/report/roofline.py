"""The report on the roofline: the device's peaks, the program, its steps, and the ops."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.pages.ops.roofline import RooflinePage, RooflinePoints
from tpuprof.parsers.session import pages
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.draw.table import first_rows
from tpuprof.tui.pages.ops.fields.device import DEVICE, SIMULATED
from tpuprof.tui.pages.ops.fields.hlo_ops import ROOFLINE_OPS, ROOFLINE_POINTS
from tpuprof.tui.pages.ops.report import common
from tpuprof.tui.pages.ops.roofline import metrics, plot
from tpuprof.tui.report import fields
from tpuprof.tui.report.csv import parts_csv
from tpuprof.tui.report.fields import Metric, attribute, columns, metric_values, reasons
from tpuprof.tui.report.json import document, head
from tpuprof.tui.report.markdown import joined, main_table, metrics_table, rows_table, unknown_block
from tpuprof.tui.report.page import Report, ReportRequest
from tpuprof.tui.report.text import page_heading, page_text
from tpuprof.tui.report.units import COUNT, FLAG, TEXT

NO_STEPS = "there are no steps"
PLOT_HEIGHT = 20


WITH_INFEED = attribute("with_infeed", FLAG, "whether infeed and outfeed ops count")
STEP_SOURCE = attribute(
    "step_source", TEXT, "where steps come from: `steps` for markers, `modules` for inferred periods", null=NO_STEPS
)
OP_COUNT: Metric[RooflinePage] = Metric(
    "op_count", COUNT, lambda page: int(page.counts.sum()), "ops that count, before any limit"
)


def read(request: ReportRequest) -> RooflinePage:
    """Reads the page."""
    return request.session(request.run).page(pages.ROOFLINE, request.host)


def json(page: RooflinePage, request: ReportRequest) -> str:
    """Peaks, program, steps, and the ops."""
    ops = page.ops
    no_steps = page.unknown.get("steps", NO_STEPS)
    average = _points(page.average_step)
    body = {
        **metric_values(DEVICE, ops),
        **metric_values((WITH_INFEED,), page),
        **metric_values((SIMULATED,), ops),
        "program": _points(page.program)[0],
        "average_step": average[0] if average else None,
        **metric_values((STEP_SOURCE,), page),
        "steps": _points(page.steps),
        **metric_values((OP_COUNT,), page),
        "ops": fields.table_records(ROOFLINE_OPS, ops, _rows(page, request.most_rows)),
    }
    why = {"average_step": no_steps, "step_source": no_steps, **fields.metric_reasons(DEVICE)}
    for prefix in ("program", "average_step", "steps[]"):
        why |= reasons(ROOFLINE_POINTS.fields, prefix, page.unknown, "ops[]")
    why |= reasons(ROOFLINE_OPS.fields, "ops[]", page.unknown)
    if "ops" in page.unknown:
        why["program.total_time_ps"] = page.unknown["ops"]
    return document(head("roofline", request.run, ops.hosts, ops.warnings), body, why)


def _points(points: RooflinePoints) -> list[dict[str, object]]:
    return fields.table_records(ROOFLINE_POINTS, points, range(len(points)))


def csv(page: RooflinePage, request: ReportRequest) -> str:
    """The program, the average step, the steps and the ops; `kind` says which."""
    points = (("program", page.program), ("average step", page.average_step), ("step", page.steps))
    parts = [(kind, columns(ROOFLINE_POINTS, part, range(len(part)))) for kind, part in points]
    ops = columns(ROOFLINE_OPS, page.ops, _rows(page, request.most_rows))
    return parts_csv(ROOFLINE_OPS.csv, [*parts, ("op", ops)])


def markdown(page: RooflinePage, request: ReportRequest) -> str:
    """Peaks, program and steps, ops, and what is unknown."""
    ops = page.ops
    lines = common.head("Roofline", ops, request).markdown()
    lines += metrics_table([*common.time_rows(ops), *common.peak_rows(ops)])
    points = [*_point_rows(page.program), *_point_rows(page.average_step)]
    points += [[f"step {name}", *metrics] for name, *metrics in _point_rows(page.steps)]
    lines += rows_table("Program and steps", ROOFLINE_POINTS, points)
    title = "Ops" if page.with_infeed else "Ops without infeed and outfeed"
    lines += main_table(title, ROOFLINE_OPS, ops, _rows(page, request.most_rows), int(page.counts.sum()))
    return joined([*lines, *unknown_block(page.unknown, common.NOT_WORTH_SAYING)])


def _point_rows(points: RooflinePoints) -> list[list[str]]:
    return fields.markdown_rows(ROOFLINE_POINTS, points, range(len(points)))


def text(page: RooflinePage, request: ReportRequest) -> str:
    """Peaks, the plot, and the table of ops."""
    ops, glyphs = page.ops, request.look.glyphs

    def lines(pen: Pen) -> list[Line]:
        shown = fields.screen_columns(ROOFLINE_OPS, ops, glyphs)
        return [
            page_heading(f"Roofline of {request.run.name}", ops.hosts, pen),
            *common.simulated_lines(ops, pen),
            *metrics(page, pen),
            *plot(page, pen, PLOT_HEIGHT),
            *first_rows(shown, range(len(ops)), request.most_rows, pen),
            *common.text_notes(ops.warnings, page.unknown, pen),
        ]

    return page_text(lines, request.look)


def _rows(page: RooflinePage, limit: int) -> NDArray[np.int64]:
    """At most `limit` rows of the ops that count, all for 0."""
    rows = np.flatnonzero(page.counts)
    return rows[:limit] if limit else rows


REPORT = Report(
    read=read,
    writers={"json": json, "csv": csv, "md": markdown, "text": text},
    tables=(ROOFLINE_POINTS, ROOFLINE_OPS),
    metrics=(*DEVICE, WITH_INFEED, SIMULATED, STEP_SOURCE, OP_COUNT),
    csv_table=ROOFLINE_OPS,
    warnings=lambda page: page.ops.warnings,
)

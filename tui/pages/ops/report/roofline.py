"""The report on the roofline: the device's peaks, the program, its steps, and the ops."""

from __future__ import annotations

import numpy as np

from tpuprof.parsers.base.words import SOURCE_HELP
from tpuprof.parsers.pages.ops.ops import OpsPage
from tpuprof.parsers.pages.ops.roofline import ROOFLINE, RooflinePage, RooflinePoints
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.ops.details.roofline import metrics, plot
from tpuprof.tui.pages.ops.fields.common import DEVICE, SIMULATED
from tpuprof.tui.pages.ops.fields.hlo_ops import ROOFLINE_OPS, ROOFLINE_POINTS
from tpuprof.tui.pages.ops.report import common
from tpuprof.tui.report import fields, markdown
from tpuprof.tui.report.csv import parts_csv
from tpuprof.tui.report.declared import Block, Declared, Metrics, Section, Values, declared
from tpuprof.tui.report.fields import Metric, attribute, columns, metric_reasons, reasons
from tpuprof.tui.report.page import ReportRequest, page_of
from tpuprof.tui.report.units import COUNT, FLAG, TEXT

NO_STEPS = "there are no steps"
PLOT_HEIGHT = 20

WITH_INFEED = attribute("with_infeed", FLAG, "whether infeed and outfeed ops count")
STEP_SOURCE = attribute("step_source", TEXT, SOURCE_HELP, null=NO_STEPS)
OP_COUNT: Metric[RooflinePage] = Metric(
    "op_count", COUNT, lambda page: int(page.counts.sum()), "ops that count, before any limit"
)


def declare(page: RooflinePage, request: ReportRequest) -> Declared:
    """Peaks, program and steps, and the ops that count."""
    ops, title = page.ops, "Ops" if page.with_infeed else "Ops without infeed and outfeed"
    table = Section(ROOFLINE_OPS, ops, title, request.most_rows, rows=np.flatnonzero(page.counts))
    return Declared(
        common.head("Roofline", ops, request),
        metrics=lambda: [*common.time_rows(ops), *common.peak_rows(ops)],
        parts=(
            Metrics(DEVICE, ops),
            Metrics((WITH_INFEED,), page),
            Metrics((SIMULATED,), ops),
            Block(lambda: Values({"program": _points(page.program)[0]})),
            Block(lambda: Values({"average_step": next(iter(_points(page.average_step)), None)})),
            Metrics((STEP_SOURCE,), page),
            Block(lambda: Values({"steps": _points(page.steps)}), lambda: _program_and_steps(page, request.most_rows)),
            Metrics((OP_COUNT,), page),
            table,
        ),
        csv=Block(csv=lambda: _csv(page, table), table=lambda: table),
        text=lambda pen: _text(page, request.most_rows, pen),
        unknown=common.worth_saying(page.unknown),
        reasons=_reasons(page),
    )


def _reasons(page: RooflinePage) -> dict[str, str]:
    """Why something is null, by dotted key; of all figures of points and ops what the page says goes first."""
    no_steps = page.unknown.get("steps", NO_STEPS)
    why = {"average_step": no_steps, "step_source": no_steps, **metric_reasons(DEVICE)}
    for prefix in ("program", "average_step", "steps[]"):
        why |= reasons(ROOFLINE_POINTS.fields, prefix, page.unknown, "ops[]")
    why |= reasons(ROOFLINE_OPS.fields, "ops[]", page.unknown)
    return why | ({"program.total_time_ps": page.unknown["ops"]} if "ops" in page.unknown else {})


def _points(points: RooflinePoints) -> list[dict[str, object]]:
    return fields.table_records(ROOFLINE_POINTS, points, range(len(points)))


def _csv(page: RooflinePage, ops: Section[OpsPage]) -> str:
    kinds = ("program", page.program), ("average step", page.average_step), ("step", page.steps)
    parts = [(kind, columns(ROOFLINE_POINTS, part, range(len(part)))) for kind, part in kinds]
    return parts_csv(ROOFLINE_OPS.csv, [*parts, ("op", columns(ROOFLINE_OPS, ops.source, ops.shown))])


def _program_and_steps(page: RooflinePage, most: int) -> list[str]:
    parts = (page.program, page.average_step, page.steps)
    program, average, steps = (fields.markdown_rows(ROOFLINE_POINTS, part, range(len(part))) for part in parts)
    shown = steps[: most or len(steps)]
    rows = [*program, *average, *([f"step {name}", *others] for name, *others in shown)]
    return [
        *markdown.rows_table("Program and steps", ROOFLINE_POINTS, rows),
        *markdown.not_shown(len(steps) - len(shown)),
    ]


def _text(page: RooflinePage, most: int, pen: Pen) -> list[Line]:
    ops = page.ops
    return [
        *common.simulated_lines(ops, pen),
        *metrics(page, pen),
        *plot(page, pen, PLOT_HEIGHT),
        *Section(ROOFLINE_OPS, ops, limit=most).lines(pen),
        *common.text_notes(ops.warnings, page.unknown, pen),
    ]


TABLES, METRICS = (ROOFLINE_POINTS, ROOFLINE_OPS), (*DEVICE, WITH_INFEED, SIMULATED, STEP_SOURCE, OP_COUNT)
REPORT = declared("roofline", page_of(ROOFLINE), declare, TABLES, METRICS, ROOFLINE_OPS, common.WARNINGS)

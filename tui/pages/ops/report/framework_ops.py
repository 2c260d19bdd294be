"""The report on framework ops, on the device and on the host."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.record import replace
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.pages.ops.framework_ops import FRAMEWORK_OPS as PAGE
from tpuprof.parsers.pages.ops.framework_ops import FrameworkOpsPage
from tpuprof.parsers.pages.ops.key import OPS
from tpuprof.tui.draw.format import duration, percent
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.draw.table import first_rows
from tpuprof.tui.pages.ops.fields import framework_ops as fields
from tpuprof.tui.pages.ops.fields.common import DEVICE, WORK_RATES, whole_and_idle
from tpuprof.tui.pages.ops.report import common
from tpuprof.tui.report.declared import Block, Declared, Metrics, Section, Values, declared
from tpuprof.tui.report.fields import Metric, columns, reasons, records, screen_columns
from tpuprof.tui.report.markdown import main_table
from tpuprof.tui.report.page import ReportRequest
from tpuprof.tui.report.units import COUNT

HOST_DOES_NO_WORK = "no FLOPs or bytes are counted for host ops"

TIMES = (
    *whole_and_idle("device_", "the cores' whole time", "the part of it without an op", "no op ran on the device"),
    *whole_and_idle(
        "host_", "the host threads' time", "the part of it without a framework op", "no host thread ran a framework op"
    ),
)
COUNTS: tuple[Metric[FrameworkOpsPage], ...] = (
    Metric("device_op_count", COUNT, lambda page: len(page) - int(page.is_host.sum()), "framework ops on the device"),
    Metric("host_op_count", COUNT, lambda page: int(page.is_host.sum()), "framework ops on the host"),
)


def read(request: ReportRequest) -> fields.FrameworkOps:
    """Reads the page, and the HLO ops that it is made of."""
    session = request.session(request.run)
    return fields.FrameworkOps(session.page(PAGE, request.host), session.page(OPS, request.host))


def declare(source: fields.FrameworkOps, request: ReportRequest) -> Declared:
    """Figures, framework ops, those of the device first, and their types."""
    page, most, types = source.page, request.most_rows, fields.TypesOfOps.of(source.page, source.ops)
    own = {"device": page.unknown.get("ops"), "host": page.unknown.get("host_idle_time_ps")}
    times = [replace(figure, null=own[figure.key.partition("_")[0]] or figure.null) for figure in TIMES]
    ops = Section(fields.FRAMEWORK_OPS, source, rows=_rows(page, most))
    by_type = Section(fields.FRAMEWORK_TYPES, types, rows=_rows(types.page, most))
    return Declared(
        common.head("Framework ops", source.ops, request),
        metrics=lambda: _figures(page),
        parts=(
            Metrics(times, page),
            Metrics(DEVICE, source.ops),
            Metrics(COUNTS, page),
            Block(lambda: _with_reasons(page, ops)),
            Block(lambda: _with_reasons(page, by_type)),
            Block(markdown=Section(fields.FRAMEWORK_TYPES, types, "By type").markdown),
            *(Block(markdown=partial(_side_table, ops, side, is_host)) for side, is_host, _, _ in _sides(page)),
        ),
        csv=by_type if request.options.get("by") == "type" else ops,
        text=lambda pen: _text(source, types, most, pen),
        unknown=common.worth_saying(page.unknown),
        reasons={},
    )


def _with_reasons(page: FrameworkOpsPage, ops: Section[Any]) -> Values:
    """Rows, and why values are null: host ops do no work, and for the others what the fields say."""
    table, prefix = ops.table, f"{ops.table.key}[]"
    values = columns(table, ops.source, ops.shown)
    why = reasons(table.fields, prefix, page.unknown, "ops[]")
    for key in WORK_RATES:
        unknown = {side for side, value in zip(values["side"], values[key], strict=True) if value is None}
        parts = [why[f"{prefix}.{key}"]] * ("device" in unknown) + [HOST_DOES_NO_WORK] * ("host" in unknown)
        why[f"{prefix}.{key}"] = "; ".join(parts)
    counts = {table.key: (table.length(ops.source), len(ops.shown))}
    return Values({table.key: records(values)}, why, rows=counts)


def _figures(page: FrameworkOpsPage) -> list[tuple[str, str]]:
    metrics = []
    for side, _, whole, idle in _sides(page):
        of_whole = percent(100 * idle / whole if whole else None)
        metrics += [(f"{side} time", duration(whole or None)), (f"{side} idle, of its time", of_whole)]
    return metrics


def _side_table(ops: Section[fields.FrameworkOps], side: str, is_host: bool) -> list[str]:
    source, shown = ops.source, np.asarray(ops.shown)
    of_side = source.page.is_host == is_host
    keys = fields.HOST_OP_COLUMNS if is_host else fields.FRAMEWORK_OPS.markdown
    return main_table(f"On the {side}", fields.FRAMEWORK_OPS, source, shown[of_side[shown]], int(of_side.sum()), keys)


def _text(source: fields.FrameworkOps, types: fields.TypesOfOps, most: int, pen: Pen) -> list[Line]:
    page, lines = source.page, []
    shown = screen_columns(fields.FRAMEWORK_OPS, source, pen.glyphs)
    for side, is_host, whole, idle in _sides(page):
        rows = np.flatnonzero(page.is_host == is_host).tolist()
        where = "XLA on the host's CPU" if not is_host and source.ops.runs_on == "host thread" else side.capitalize()
        words = f"{where}: {counted(len(rows), 'op')}"
        if whole:
            words += f", {duration(idle, pen.glyphs.is_ascii)} idle ({percent(100 * idle / whole)})"
        lines.append(pen.fit([(words, "title")]))
        lines += first_rows(shown, rows, most, pen) if rows else []
    if len(types.types):
        lines.append(pen.fit([(f"By type: {counted(len(types.types), 'type')}", "title")]))
        lines += Section(fields.FRAMEWORK_TYPES, types, limit=most).lines(pen)
    return common.text_lines(source.ops, lines, page.unknown, pen)


def _sides(page: FrameworkOpsPage) -> tuple[tuple[str, bool, int, int], ...]:
    """The name of each side, whether it is the host, its whole time and what of it is idle."""
    device = "device", False, page.device_total_ps, page.device_idle_ps
    return device, ("host", True, page.host_total_ps, page.host_idle_ps)


def _rows(page: FrameworkOpsPage, limit: int) -> NDArray[np.int64]:
    """At most `limit` rows of each side, all for 0."""
    sides = [np.flatnonzero(page.is_host == side) for side in (False, True)]
    return np.concatenate([side[:limit] if limit else side for side in sides])


TABLES, METRICS = (fields.FRAMEWORK_OPS, fields.FRAMEWORK_TYPES), (*TIMES, *DEVICE, *COUNTS)
REPORT = declared("framework-ops", read, declare, TABLES, METRICS, warnings=attrgetter("page.warnings"))

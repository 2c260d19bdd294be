"""The report on framework ops, on the device and on the host."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.pages.ops.framework_ops import FrameworkOpsPage
from tpuprof.parsers.pages.ops.framework_types import framework_types
from tpuprof.tui.draw.format import duration, percent
from tpuprof.tui.draw.layout import fit
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.draw.table import first_rows
from tpuprof.tui.pages.ops.fields.common import WORK_RATES
from tpuprof.tui.pages.ops.fields.device import DEVICE, whole_and_idle
from tpuprof.tui.pages.ops.fields.framework_ops import (
    FRAMEWORK_OPS,
    FRAMEWORK_TYPES,
    HOST_OP_COLUMNS,
    FrameworkOps,
    TypesOfOps,
)
from tpuprof.tui.pages.ops.report import common
from tpuprof.tui.report.csv import table_csv
from tpuprof.tui.report.fields import (
    Figure,
    RowColumns,
    Table,
    columns,
    figure_reasons,
    figure_values,
    reasons,
    records,
    screen_columns,
)
from tpuprof.tui.report.json import document, head
from tpuprof.tui.report.markdown import figures_table, joined, main_table, unknown_block
from tpuprof.tui.report.page import Asked, Report
from tpuprof.tui.report.text import page_text
from tpuprof.tui.report.units import COUNT

HOST_DOES_NO_WORK = "no FLOPs or bytes are counted for host ops"

TIMES = (
    *whole_and_idle("device_", "the cores' whole time", "what of it no op fills", "no op ran on the device"),
    *whole_and_idle(
        "host_", "the host threads' time", "what of it no framework op fills", "no host thread ran a framework op"
    ),
)
COUNTS: tuple[Figure[FrameworkOpsPage], ...] = (
    Figure("device_op_count", COUNT, lambda page: len(page) - int(page.is_host.sum()), "framework ops on the device"),
    Figure("host_op_count", COUNT, lambda page: int(page.is_host.sum()), "framework ops on the host"),
)


def read(asked: Asked) -> FrameworkOps:
    """Reads the page, and the HLO ops that it is made of."""
    session = asked.session(asked.run)
    return FrameworkOps(session.framework_ops(asked.host), session.ops(asked.host))


def json(source: FrameworkOps, asked: Asked) -> str:
    """Framework ops, those of the device first."""
    page, ops = source.page, source.ops
    rows = _rows(page, asked.most_rows)
    values = columns(FRAMEWORK_OPS, source, rows)
    body = {**figure_values(TIMES, page), **figure_values(DEVICE, ops), **figure_values(COUNTS, page)}
    body["ops"] = records(values)
    types = types_of(source)
    by_type = columns(FRAMEWORK_TYPES, types, _rows(types.page, asked.most_rows))
    body["types"] = records(by_type)
    by_row = _reasons(FRAMEWORK_OPS, page, values)
    by_row |= _reasons(FRAMEWORK_TYPES, page, by_type)
    own = {"device": page.unknown.get("ops"), "host": page.unknown.get("host_idle_time_ps")}
    times = (replace(figure, null=own[figure.key.partition("_")[0]] or figure.null) for figure in TIMES)
    why = {**figure_reasons((*times, *DEVICE)), **by_row}
    return document(head("framework-ops", asked.run, page.hosts, page.warnings), body, why)


def types_of(source: FrameworkOps) -> TypesOfOps:
    """The framework ops by type."""
    types = framework_types(source.page, source.ops)
    return TypesOfOps(types.page, source.ops, types)


def _reasons(table: Table[Any], page: FrameworkOpsPage, values: RowColumns) -> dict[str, str]:
    """Why values of a table's rows are null: host ops do no work, and for the others what the fields say."""
    prefix = f"{table.key}[]"
    by_row = reasons(table.fields, prefix, page.unknown, "ops[]")
    for key in WORK_RATES:
        unknown = {side for side, value in zip(values["side"], values[key], strict=True) if value is None}
        parts = [by_row[f"{prefix}.{key}"]] * ("device" in unknown) + [HOST_DOES_NO_WORK] * ("host" in unknown)
        by_row[f"{prefix}.{key}"] = "; ".join(parts)
    return by_row


def csv(source: FrameworkOps, asked: Asked) -> str:
    """Framework ops, those of the device first."""
    return table_csv(FRAMEWORK_OPS, source, _rows(source.page, asked.most_rows))


def markdown(source: FrameworkOps, asked: Asked) -> str:
    """Figures, a table for the device and one for the host, and what is unknown."""
    page = source.page
    lines = common.markdown_head("Framework ops", source.ops, asked.run.name)
    figures = []
    for side, _, whole, idle in _sides(page):
        of_whole = percent(100 * idle / whole if whole else None)
        figures += [(f"{side} time", duration(whole or None)), (f"{side} idle, of its time", of_whole)]
    lines += figures_table(figures)
    types = types_of(source)
    every = range(len(types.types))
    lines += main_table("By type", FRAMEWORK_TYPES, types, every, len(types.types)) if every else []
    shown = _rows(page, asked.most_rows)
    for side, is_host, _, _ in _sides(page):
        rows = shown[page.is_host[shown] == is_host]
        keys = HOST_OP_COLUMNS if is_host else FRAMEWORK_OPS.markdown
        whole_count = int((page.is_host == is_host).sum())
        lines += main_table(f"On the {side}", FRAMEWORK_OPS, source, rows, whole_count, keys)
    return joined([*lines, *unknown_block(page.unknown, common.NOT_WORTH_SAYING)])


def text(source: FrameworkOps, asked: Asked) -> str:
    """A table for the device and one for the host."""
    page, glyphs = source.page, asked.look.glyphs

    def lines(width: int) -> list[Line]:
        lines = common.text_head(f"Framework ops of {asked.run.name}", source.ops, width, glyphs)
        shown = screen_columns(FRAMEWORK_OPS, source, glyphs)
        for side, is_host, whole, idle in _sides(page):
            rows = np.flatnonzero(page.is_host == is_host).tolist()
            where = (
                "XLA on the host's CPU" if not is_host and source.ops.runs_on == "host thread" else side.capitalize()
            )
            words = f"{where}: {counted(len(rows), 'op')}"
            if whole:
                words += f", {duration(idle, glyphs.is_ascii)} idle ({percent(100 * idle / whole)})"
            lines.append(fit([(words, "title")], width, glyphs))
            if rows:
                lines += first_rows(shown, rows, asked.most_rows, width, glyphs)
        types = types_of(source)
        if len(types.types):
            lines.append(fit([(f"By type: {counted(len(types.types), 'type')}", "title")], width, glyphs))
            by_type = screen_columns(FRAMEWORK_TYPES, types, glyphs)
            lines += first_rows(by_type, range(len(types.types)), asked.most_rows, width, glyphs)
        return [*lines, *common.text_notes(page.warnings, page.unknown, width, glyphs)]

    return page_text(lines, asked.look)


def _sides(page: FrameworkOpsPage) -> tuple[tuple[str, bool, int, int], ...]:
    """The name of each side, whether it is the host, its whole time and what of it is idle."""
    device = "device", False, page.device_total_ps, page.device_idle_ps
    return device, ("host", True, page.host_total_ps, page.host_idle_ps)


def _rows(page: FrameworkOpsPage, limit: int) -> NDArray[np.int64]:
    """At most `limit` rows of each side, all for 0."""
    sides = [np.flatnonzero(page.is_host == side) for side in (False, True)]
    return np.concatenate([side[:limit] if limit else side for side in sides])


REPORT = Report(
    read=read,
    writers={"json": json, "csv": csv, "md": markdown, "text": text},
    tables=(FRAMEWORK_OPS, FRAMEWORK_TYPES),
    figures=(*TIMES, *DEVICE, *COUNTS),
    csv_table=FRAMEWORK_OPS,
    warnings=lambda source: source.page.warnings,
)

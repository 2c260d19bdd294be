"""The report on live arrays, in every format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.memory.live_arrays import By, LiveArrays, groups, read_live_arrays
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.commands.live_arrays import fields
from tpuprof.tui.pages.commands.live_arrays.drawing import LiveArraysView, compose, listed
from tpuprof.tui.pages.commands.live_arrays.fields import GroupRows
from tpuprof.tui.report.declared import Declared, Metrics, Section, declared
from tpuprof.tui.report.fields import Metric, metric_rows
from tpuprof.tui.report.page import Head, ReportRequest
from tpuprof.tui.report.units import VERBATIM


@dataclass(frozen=True, slots=True)
class GroupedArrays:
    """A page, and what it is to be grouped by."""

    page: LiveArrays
    by: By

    @property
    def rows(self) -> GroupRows:
        return GroupRows(groups(self.page, self.by), self.page.total.size_bytes, self.by)


_BY: Metric[Any] = Metric("by", VERBATIM, lambda asking: asking.by, "what the arrays of a group share")


def read(request: ReportRequest) -> GroupedArrays:
    """Reads the file."""
    return GroupedArrays(read_live_arrays(request.run.path), request.options.get("by") or "source")


def declare(content: GroupedArrays, request: ReportRequest) -> Declared:
    """The totals, devices, groups and allocations; at most `--limit` of the last two."""
    page, most, view = content.page, request.most_rows, LiveArraysView(cursor=-1, by=content.by)
    groups = Section(fields.GROUPS, content.rows, fields.BY_TITLES[content.by], most)

    def text(pen: Pen) -> Sequence[Line]:
        every = listed(page, view)
        return compose(page, view, replace(every, rows=every.rows[: most or None]), pen, None).lines

    return Declared(
        Head("Live arrays", request.run, (), page.warnings, [f"file: {page.name}"], covers=page.name),
        statement=fields.totals_words(page),
        metrics=lambda: metric_rows(fields.METRICS, page),
        parts=(
            Metrics(fields.METRICS, page),
            Metrics((_BY,), content),
            Section(fields.DEVICES, page.devices, "Devices"),
            groups,
            Section(fields.ALLOCATIONS, page.allocations, limit=most),
        ),
        csv=groups,
        text=text,
    )


REPORT = declared(
    "live-arrays",
    read,
    declare,
    tables=(fields.DEVICES, fields.GROUPS, fields.ALLOCATIONS),
    metrics=(*fields.METRICS, _BY),
    csv_table=fields.GROUPS,
    warnings=lambda content: content.page.warnings,
)

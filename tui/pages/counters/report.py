"""The report on performance counters: units, the counters themselves, and what custom calls use."""

from __future__ import annotations

from typing import Any

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.pages.counters.page import COUNTERS as PAGE
from tpuprof.parsers.pages.counters.page import CountersPage
from tpuprof.tui.pages.counters.fields import COUNTERS, KERNELS, METRICS, UNITS
from tpuprof.tui.report.declared import Block, Declared, Metrics, Section, Values, declared, drawn_by
from tpuprof.tui.report.fields import metric_rows, table_records
from tpuprof.tui.report.page import Head, ReportRequest, page_of
from tpuprof.tui.report.text import covered

_lines = drawn_by("tpuprof.tui.pages.counters.drawing:text_lines")


def declare(page: CountersPage, request: ReportRequest) -> Declared:
    """Figures and three tables; CSV has the units, or the counters themselves where no units are known."""
    most, hosts = request.most_rows, covered(page.hosts) or counted(0, "host")
    units = Section(UNITS, page.units, "Units", most)
    counters = Section(COUNTERS, page.counters, "Counters", most)
    by = request.options.get("by")
    kernels = Section(KERNELS, page.kernels, "Custom calls", most)
    return Declared(
        Head(f"Counters of {request.run.name}", request.run, page.hosts, page.warnings, covers=hosts),
        statement=page.statement,
        metrics=lambda: metric_rows(METRICS, page),
        parts=(Metrics(METRICS, page), _or_null(units), _or_null(counters), _or_null(kernels)),
        csv=counters if by == "counter" or (by is None and page.counters and not page.units) else units,
        text=lambda pen: _lines(page, pen, most),
        notes=page.notes,
        unknown=page.unknown,
    )


def _or_null(section: Section[Any]) -> Block:
    """A table that JSON has as null where it is empty: the page says why."""

    def json() -> Values:
        return section.holding(table_records(section.table, section.source, section.shown) or None)

    return Block(json, section.markdown)


REPORT = declared("counters", page_of(PAGE), declare, (UNITS, COUNTERS, KERNELS), METRICS)

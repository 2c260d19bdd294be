"""The report on SparseCores; its main table is that of their ops."""

from __future__ import annotations

from tpuprof.parsers.pages.sparse_core.page import SPARSE_CORE, SparseCorePage
from tpuprof.tui.pages.sparse_core.fields import CORES, METRICS, OPS, SPLIT, STEPS, WAITS
from tpuprof.tui.report.declared import Block, Declared, Metrics, Section, declared, drawn_by
from tpuprof.tui.report.fields import metric_rows
from tpuprof.tui.report.page import Head, ReportRequest, page_of

_lines = drawn_by("tpuprof.tui.pages.sparse_core.drawing:report_lines")


def declare(page: SparseCorePage, request: ReportRequest) -> Declared:
    """The answer, the mean step, SparseCores, who waits, their ops, and steps."""
    ops = Section(OPS, page.ops, "Ops of the SparseCores", request.most_rows)
    return Declared(
        Head(f"SparseCores of {request.run.name}", request.run, page.hosts, page.warnings),
        statement=page.statement,
        metrics=lambda: () if page.mean is None else metric_rows(SPLIT, page.mean),
        parts=(
            Metrics(METRICS, page),
            Section(STEPS, page.steps),
            Section(CORES, page.sparse_cores, "SparseCores"),
            Section(WAITS, page.waits, "Who waits"),
            ops,
            Block(markdown=Section(STEPS, page.steps, "Steps").markdown),
        ),
        csv=ops,
        text=lambda pen: _lines(page, pen, request.most_rows),
        notes=page.notes,
        unknown=page.unknown,
    )


REPORT = declared("sparse-core", page_of(SPARSE_CORE), declare, (STEPS, CORES, WAITS, OPS), METRICS, csv_table=OPS)

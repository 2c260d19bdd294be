"""The top ops of the overview as CSV."""

from __future__ import annotations

from tpuprof.parsers.pages.overview.model import Overview
from tpuprof.tui.report.csv import table

_TOP_OPS = (
    "rank",
    "name",
    "category",
    "class",
    "hlo_category",
    "self_time_percent",
    "cumulative_percent",
    "self_time_ps",
    "occurrences",
    "gflops_per_second",
)


def overview_csv(page: Overview) -> str:
    """The top ops."""
    rows = (
        (
            rank,
            op.name,
            op.category,
            op.op_class,
            op.hlo_category,
            op.self_time_percent,
            op.cumulative_percent,
            op.self_time_ps,
            op.occurrences,
            op.gflops_per_second,
        )
        for rank, op in enumerate(page.top_ops, 1)
    )
    return table(_TOP_OPS, rows)

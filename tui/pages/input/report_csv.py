"""The op table of the input pipeline page as CSV."""

from __future__ import annotations

from tpuprof.parsers.pages.input.model import InputPipelinePage
from tpuprof.tui.report.csv import table

_COLUMNS = (
    "name",
    "category",
    "group",
    "count",
    "total_time_ps",
    "total_time_percent",
    "self_time_ps",
    "self_time_percent",
)


def input_csv(page: InputPipelinePage, limit: int = 0) -> str:
    """A line an op, at most `limit` of them, 0 for all; percentages are of the self time of the op's group."""
    rows = (
        (
            op.name,
            op.category,
            op.group,
            op.occurrences,
            op.total_ps,
            op.total_percent,
            op.self_ps,
            op.self_percent,
        )
        for op in page.ops[: limit or None]
    )
    return table(_COLUMNS, rows)

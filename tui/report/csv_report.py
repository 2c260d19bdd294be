"""The main table of a page as CSV: a header line, then a line a row; an empty cell where a figure is unknown."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence

from tpuprof.parsers.logdir import Run
from tpuprof.parsers.pages.overview_page import Overview
from tpuprof.parsers.text import printable
from tpuprof.tui.report.values import utc

Cell = str | int | float | None

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
_RUNS = ("name", "path", "hosts", "host_count", "size_bytes", "modified", "problems")


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


def runs_csv(runs: Sequence[Run]) -> str:
    """The runs; several hosts or problems stand in one cell with a semicolon between them."""
    rows = (
        (
            run.name,
            run.path,
            "; ".join(host.host for host in run.hosts),
            len(run.hosts),
            run.size_bytes,
            utc(run.modified),
            "; ".join(problem.sentence for problem in run.problems),
        )
        for run in runs
    )
    return table(_RUNS, rows)


def table(header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """A header line, then a line a row, every cell made safe."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([cell(value) for value in row] for row in rows)
    return out.getvalue()


def cell(value: Cell) -> Cell:
    """Text made safe for terminals and spreadsheets, which run a cell that begins with one of these as a formula."""
    if isinstance(value, str):
        text = printable(value)
        return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value

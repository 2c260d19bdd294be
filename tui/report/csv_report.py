"""The main table of a page as CSV: a header line, then a line a row; an empty cell where a figure is unknown."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from tpuprof.parsers.base.text import printable
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.pages.overview.model import Overview
from tpuprof.tui.report.values import utc

if TYPE_CHECKING:
    from tpuprof.parsers.session.run_facts import RunFacts

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
_FACTS = ("device_type", "host_core_count", "step_time_ps", "step_time_source", "profile_duration_ps", "modules")
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


def runs_csv(runs: Sequence[Run], facts: Mapping[str, RunFacts] | None = None) -> str:
    """The runs; several hosts or problems stand in one cell with a semicolon between them.

    Args:
        facts: by path of the run, for further columns.
    """
    rows = (
        (
            run.name,
            run.path,
            "; ".join(host.host for host in run.hosts),
            len(run.hosts),
            run.size_bytes,
            utc(run.modified),
            "; ".join(problem.sentence for problem in run.problems),
            *(() if facts is None else _facts_cells(facts.get(run.path))),
        )
        for run in runs
    )
    return table(_RUNS if facts is None else (*_RUNS, *_FACTS), rows)


def _facts_cells(facts: RunFacts | None) -> tuple[Cell, ...]:
    """Cells of `_FACTS`, empty where unknown."""
    if facts is None:
        return (None,) * len(_FACTS)
    return (
        facts.device_type,
        facts.core_count,
        facts.step_time_ps,
        facts.step_source,
        facts.duration_ps,
        "; ".join(facts.modules or ()),
    )


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

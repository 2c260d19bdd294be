"""The ops of a comparison as CSV; the headings are the keys of JSON."""

from __future__ import annotations

from tpuprof.parsers.diff.model import Diff
from tpuprof.tui.report.csv import table
from tpuprof.tui.report.units import milliseconds

_HEADINGS = (
    "rank",
    "mark",
    "name",
    "old_name",
    "program",
    "category",
    "class",
    "framework_op",
    "before_ms",
    "after_ms",
    "change_ms",
    "change_fraction",
    "noise_ms",
    "occurrences.before",
    "occurrences.after",
    "matched_by",
    "hlo_changed",
)


def diff_csv(diff: Diff, limit: int = 0) -> str:
    """A line an op, the largest change first; at most `limit`, 0 for all."""
    rows = (
        (
            rank,
            op.time.mark,
            op.name,
            op.old_name,
            op.program,
            op.category,
            op.op_class,
            op.framework_op or None,
            milliseconds(op.time.before),
            milliseconds(op.time.after),
            milliseconds(op.time.delta),
            op.time.relative,
            milliseconds(op.time.noise),
            op.count.before,
            op.count.after,
            op.matched_by,
            "yes" if op.text_changed else "no",
        )
        for rank, op in enumerate(diff.ops[:limit] if limit else diff.ops, 1)
    )
    return table(_HEADINGS, rows)

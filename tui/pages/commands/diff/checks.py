"""What a comparison has checked: the step, what it is made of, the ops that changed, memory and figures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpuprof.parsers.session.diff.model import Diff
from tpuprof.parsers.session.diff.regression import regression
from tpuprof.tui.pages.commands.diff import changes, drawing, fields
from tpuprof.tui.pages.commands.diff.changes import ChangeRow
from tpuprof.tui.pages.commands.diff.report import JudgedDiff
from tpuprof.tui.pages.commands.diff.verdict import LEAST_SHARE, verdict
from tpuprof.tui.report.fields import markdown_rows
from tpuprof.tui.report.page import Check, State


def checks(content: JudgedDiff, limit: int) -> list[Check]:
    """The step, and what else was compared, at most `limit` ops that changed, 0 for all.

    The step fails as `regression` judges it, beyond the noise alone where the call allows no more. With it fails each
    time that grew beyond its noise by a good part of what the step did: nothing else makes the command fail.
    """
    diff, judged = content.diff, content.regression or regression(content.diff, 0.0)
    if judged.outcome == "unknown":
        return [Check("step", "unknown", judged.sentence)]
    why = content.regression.sentence if content.regression is not None else ""
    state: State = "failed" if judged.outcome == "slower" else "ok"
    step = Check("step", state, " ".join(filter(None, (why, verdict(diff)))))
    ops = drawing.changed(diff, "ops")[: limit or None]
    peaks = (ChangeRow(f"{of.name} peak HBM", of.peak, "bytes", note=of.problem) for of in diff.modules)
    rows = [*changes.entries(diff, "time"), *ops, *peaks, *changes.entries(diff, "figures")]
    whole = max(diff.steps.typical.delta or 0.0, diff.steps.mean.delta or 0.0) if diff.steps is not None else 0.0
    least = LEAST_SHARE * whole if state == "failed" else float("inf")
    return [step, *_of_rows(diff, rows, least)]


def _of_rows(diff: Diff, rows: Sequence[ChangeRow], least: float) -> list[Check]:
    """A check for each row; a time failed that grew beyond its noise by at least so many picoseconds."""
    keys = ("change", "relative", "before", "after")
    cells = markdown_rows(fields.CHANGES, rows, range(len(rows)), keys)
    found = []
    for row, source, (delta, relative, before, after) in zip(rows, _sources(diff, rows), cells, strict=True):
        change, size = row.change, f"{delta} ({relative})" if relative else delta
        words = f"{size}: {before or 'none'} before, {after or 'none'} after."
        if change.delta is None:
            found.append(Check(row.name, "unknown", row.note or fields.ONE_SIDED))
        elif row.kind == "time" and change.mark in ("more", "new") and change.delta >= least:
            found.append(Check(row.name, "failed", words, source))
        else:
            found.append(Check(row.name, "ok", words if change.is_beyond_noise else "", source))
    return found


def _sources(diff: Diff, rows: Sequence[ChangeRow]) -> list[str]:
    """The source line of each row's op in B; empty for what has none."""
    ops = [None if row.op is None else row.op.rows[1] for row in rows]
    there = [op for op in ops if op is not None]
    lines = dict(zip(there, diff.after.table.texts("source", np.array(there, np.intp)), strict=True))
    return ["" if op is None else lines[op] for op in ops]

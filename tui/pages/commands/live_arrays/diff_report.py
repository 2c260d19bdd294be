"""The report on two device memory profiles that are compared, in every format."""

from __future__ import annotations

from dataclasses import replace

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.memory.live_arrays import LiveArrays
from tpuprof.parsers.session.diff.live_arrays import GroupChange, Growth, LiveArraysDiff, changes
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.commands.live_arrays.changes import CHANGES, METRICS, ChangeRows, verdict
from tpuprof.tui.pages.commands.live_arrays.drawing import LiveArraysView, compose, listed
from tpuprof.tui.report.csv import table_csv
from tpuprof.tui.report.fields import first, metric_reasons, metric_values, reasons, table_records
from tpuprof.tui.report.json import document, schema
from tpuprof.tui.report.markdown import escaped, joined, main_table
from tpuprof.tui.report.page import CommandReport, TextLook
from tpuprof.tui.report.text import titled_text

MOST_ROWS = 20
"""Changes in Markdown, a comment on a pull request, where nothing else is asked for."""


@dataclass(frozen=True, slots=True)
class JudgedGrowth:
    """A comparison, and what is said of its growth where that is asked for."""

    diff: LiveArraysDiff
    growth: Growth | None = None

    @property
    def changed(self) -> tuple[GroupChange, ...]:
        """What is not the same, by source line."""
        return tuple(one for one in changes(self.diff) if one.mark != "same")


def _side(page: LiveArrays) -> dict[str, object]:
    return {"name": page.name, "path": page.path}


def _warnings(diff: LiveArraysDiff) -> list[str]:
    return [f"{name}: {text}" for name, page in (("A", diff.before), ("B", diff.after)) for text in page.warnings]


def json(content: JudgedGrowth, _: TextLook, limit: int) -> str:
    """Both totals and every group by source line, those that are the same too; at most `limit`, 0 for all."""
    diff, rows = content.diff, ChangeRows(changes(content.diff), "source")
    start = {"schema": schema("live-arrays-diff"), "before": _side(diff.before), "after": _side(diff.after)}
    body: dict[str, object] = metric_values(METRICS, diff)
    body[CHANGES.key] = table_records(CHANGES, rows, first(len(rows), limit))
    if content.growth is not None:
        outcome = "grown" if content.growth.is_beyond else "passed"
        said = content.growth.sentence
        body["regression"] = {"allowed_fraction": content.growth.allowed, "outcome": outcome, "sentence": said}
    why = metric_reasons(METRICS) | reasons(CHANGES.fields, f"{CHANGES.key}[]", {})
    return document({**start, "warnings": _warnings(diff)}, body, why)


def csv(content: JudgedGrowth, _: TextLook, limit: int) -> str:
    """A line a group, the largest growth first."""
    rows = ChangeRows(changes(content.diff), "source")
    return table_csv(CHANGES, rows, first(len(rows), limit))


def markdown(content: JudgedGrowth, _: TextLook, limit: int) -> str:
    """What grew in a sentence, and the groups that changed; at most `limit`, 20 for 0."""
    diff, rows = content.diff, ChangeRows(content.changed, "source")
    lines = [
        f"### Live arrays: {escaped(diff.before.name)} → {escaped(diff.after.name)}",
        "",
        escaped(verdict(diff)),
        "",
    ]
    if content.growth is not None and content.growth.sentence:
        lines += [f"**{escaped(content.growth.sentence)}**", ""]
    lines += [f"- warning: {escaped(text)}" for text in _warnings(diff)]
    return joined(lines + main_table("What changed", CHANGES, rows, first(len(rows), limit or MOST_ROWS), len(rows)))


def text(content: JudgedGrowth, look: TextLook, limit: int) -> str:
    """The page as the screen draws it; at most `limit` groups that changed, 0 for all."""
    diff = content.diff

    def lines(pen: Pen) -> list[Line]:
        view = LiveArraysView(cursor=-1)
        every = listed(diff, view)
        shown = replace(every, rows=every.rows[: limit or None])
        return list(compose(diff, view, shown, pen, None).lines)

    title = f"Live arrays: {diff.before.name} {look.glyphs.arrow} {diff.after.name}"
    return titled_text(title, "B compared with A", lines, look)


REPORT = CommandReport(
    read=JudgedGrowth,
    writers={"json": json, "csv": csv, "md": markdown, "text": text},
    tables=(CHANGES,),
    metrics=METRICS,
)

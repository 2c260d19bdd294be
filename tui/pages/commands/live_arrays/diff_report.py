"""The report on two device memory profiles that are compared, in every format."""

from __future__ import annotations

from dataclasses import replace

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.session.diff.live_arrays import Growth, LiveArraysDiff, changes
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.commands.live_arrays.changes import CHANGES, METRICS, group_rows, verdict, warnings_of
from tpuprof.tui.pages.commands.live_arrays.drawing import LiveArraysView, compose, listed
from tpuprof.tui.pages.commands.live_arrays.fields import GroupRows
from tpuprof.tui.report.declared import Metrics, Section, values_of
from tpuprof.tui.report.json import document, schema
from tpuprof.tui.report.markdown import comparison_head, joined
from tpuprof.tui.report.page import CommandReport, TextLook
from tpuprof.tui.report.text import titled_text

MOST_ROWS = 20  # changes in Markdown, a comment on a pull request, where nothing else is asked for


@dataclass(frozen=True, slots=True)
class JudgedGrowth:
    """A comparison, and what is said of its growth where that is asked for."""

    diff: LiveArraysDiff
    growth: Growth | None = None


def json(content: JudgedGrowth, _: TextLook, limit: int) -> str:
    """Both totals and every group by source line, those that are the same too; at most `limit`, 0 for all."""
    diff, growth = content.diff, content.growth
    start: dict[str, object] = {"schema": schema("live-arrays-diff")}
    start |= {
        name: {"name": page.name, "path": page.path} for name, page in (("before", diff.before), ("after", diff.after))
    }
    held = values_of((Metrics(METRICS, diff), _groups(content, limit)))
    body = dict(held.values)
    if growth is not None:
        outcome = "grown" if growth.is_beyond else "passed"
        body["regression"] = {"allowed_fraction": growth.allowed, "outcome": outcome, "sentence": growth.sentence}
    return document({**start, "warnings": warnings_of(diff)}, body, held.reasons)


def csv(content: JudgedGrowth, _: TextLook, limit: int) -> str:
    """A line a group, the largest growth first."""
    return _groups(content, limit).csv()


def _groups(content: JudgedGrowth, limit: int) -> Section[GroupRows]:
    return Section(CHANGES, group_rows(changes(content.diff), "source"), limit=limit)


def markdown(content: JudgedGrowth, _: TextLook, limit: int) -> str:
    """What grew in a sentence, and the groups that changed; at most `limit`, 20 for 0."""
    diff, changed = content.diff, [one for one in changes(content.diff) if one.mark != "same"]
    judged = "" if content.growth is None else content.growth.sentence
    names = (diff.before.name, diff.after.name)
    lines = comparison_head("Live arrays", *names, verdict(diff), warnings_of(diff), judged)
    rows = Section(CHANGES, group_rows(changed, "source"), "What changed", limit or MOST_ROWS)
    return joined([*lines, *rows.markdown()])


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


REPORT = CommandReport(JudgedGrowth, {"json": json, "csv": csv, "md": markdown, "text": text})

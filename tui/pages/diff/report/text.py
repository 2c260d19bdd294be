"""A comparison as plain text, drawn by the functions that draw the screen."""

from __future__ import annotations

from tpuprof.parsers.diff.model import Diff
from tpuprof.tui.draw.layout import fit, rule, wrap
from tpuprof.tui.draw.spans import Glyphs, Line
from tpuprof.tui.pages.diff.draw.page import caution_lines, remark_lines, sides_lines, table_title, verdict_lines
from tpuprof.tui.pages.diff.draw.steps import figure_lines, histogram_lines
from tpuprof.tui.pages.diff.draw.table import HIDING, ViewName, entries, shown, table_lines
from tpuprof.tui.report.text import LEAST_WIDTH, heading, render

_TABLES: tuple[ViewName, ...] = ("time", "categories", "ops", "memory", "figures")
_TITLES: dict[ViewName, str] = {"categories": "Categories", "ops": "Ops"}
"""Tables of what changed only, under a title of their own."""


def diff_text(diff: Diff, width: int, glyphs: Glyphs, color: bool = False, limit: int = 0) -> str:
    """The whole comparison; at most `limit` of the ops that changed, 0 for all."""
    width = max(width, LEAST_WIDTH)
    title = f"{diff.before.name} {glyphs.arrow} {diff.after.name}"
    lines = [heading(title, "B compared with A", width, glyphs)]
    lines += verdict_lines(diff, width, glyphs)
    lines += sides_lines(diff, width, glyphs) + caution_lines(diff, width, glyphs)
    if diff.steps is not None:
        lines += [rule("Steps", width, glyphs), *figure_lines(diff, width, glyphs)]
        lines += histogram_lines(diff, width, glyphs)
    for name in _TABLES:
        lines += _table(diff, name, width, glyphs, limit)
    notes = [(letter, note) for letter, side in (("A", diff.before), ("B", diff.after)) for note in side.warnings]
    if notes or diff.unknown:
        lines.append(rule("Notes, and what the profiles cannot tell", width, glyphs))
        for letter, note in notes:
            lines += wrap(note, width, "text", glyphs, [(f" {letter} ", "warn")])
        for key, why in diff.unknown.items():
            lines += wrap(f"{key}: {why}", width, "dim", glyphs, [(" ? ", "dim")])
    return render(lines, color)


def _table(diff: Diff, name: ViewName, width: int, glyphs: Glyphs, limit: int) -> list[Line]:
    """A table under its heading: of ops and categories only what changed; none at all for an empty one."""
    every = entries(diff, name)
    if not every:
        return []
    rows = shown(diff, every, hides_same=name in HIDING)
    kept = rows[:limit] if limit and name == "ops" else rows
    words = [f"{len(kept):,} of {len(rows):,} changed"] if len(kept) < len(rows) else []
    words += [f"{len(every) - len(rows):,} the same within the noise"] if len(rows) < len(every) else []
    title = rule(_TITLES.get(name) or table_title(diff, name), width, glyphs, ", ".join(words))
    if not kept:
        return [title, fit([(" none changed", "dim")], width, glyphs)]
    return [title, *table_lines(diff, kept, width, glyphs), *remark_lines(diff, name, width, glyphs)]

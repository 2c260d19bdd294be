"""The step without some owners in cells, beside the step as it is."""

from __future__ import annotations

from tpuprof.parsers.steps.accounts.owners import OWNER_TITLES, OWNERS
from tpuprof.parsers.steps.what_if import Without
from tpuprof.tui.draw.format import duration, percent
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line, StyleKey
from tpuprof.tui.pages.overview.ledger.what_if import NAMED_BETWEEN, taken_words


def without_lines(of: Without, pen: Pen) -> list[Line]:
    """What the step would take, and a row an owner: its time as it is, and what would be left of it."""
    now = dict(zip(OWNERS, of.of.mean_ps.tolist(), strict=True))
    left = dict(zip(OWNERS, of.owner_ps.mean(axis=0).tolist(), strict=True))
    lines = [*pen.wrap(_sentence(of, pen), "strong"), _row("", "as it is", "without", pen, "dim")]
    lines.append(_times("step", of.of.mean_step_ps, of.mean_step_ps, pen, "strong"))
    for owner in sorted(OWNERS, key=lambda owner: -max(now[owner], left[owner])):
        if now[owner] or left[owner]:
            lines.append(_times(OWNER_TITLES[owner], now[owner], left[owner], pen, "text"))
    return lines


def _sentence(of: Without, pen: Pen) -> str:
    ascii_only, now = pen.glyphs.is_ascii, of.of
    between = float(now.mean_between_ps.sum())
    times = [("a step takes", now.mean_step_ps, of.mean_step_ps)]
    if between >= NAMED_BETWEEN * (now.mean_step_ps + between):
        times.append(("steps start every", now.mean_step_ps + between, of.mean_period_ps))
    told = " and ".join(
        f"{words} {duration(after, ascii_only)} instead of {duration(before, ascii_only)}"
        for words, before, after in times
    )
    saved = f"{duration(of.saved_ps, ascii_only)} or {percent(100 * of.saved_fraction)} less"
    return f"Without {taken_words(of.owners)}: {told}, {saved}."


def _times(name: str, now: float, left: float, pen: Pen, style: StyleKey) -> Line:
    ascii_only = pen.glyphs.is_ascii
    return _row(name, duration(now, ascii_only), duration(left, ascii_only), pen, style)


def _row(name: str, now: str, left: str, pen: Pen, style: StyleKey) -> Line:
    return pen.fit([(f" {name:<22}{now:>11}{left:>11}", style)])

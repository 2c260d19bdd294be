"""Step times of both runs: figures, each run's steps in order, and how they are distributed."""

from __future__ import annotations

import numpy as np

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.diff.model import Change, Diff, Side
from tpuprof.tui.draw.format import duration
from tpuprof.tui.draw.layout import fit, rule, wrap
from tpuprof.tui.draw.spans import Glyphs, Line, Span
from tpuprof.tui.pages.diff.draw.words import MARK_STYLES, MARK_WORDS, noise_words, relative, signed

_LABEL = 4
_NARROW = 64
_REACH = 0.25
"""Of the typical steps' range, what the distribution shows beyond it on either side."""


def steps_lines(diff: Diff, width: int, glyphs: Glyphs) -> list[Line]:
    """Everything on steps; one sentence where they are unknown."""
    if diff.steps is None:
        return wrap(diff.unknown.get("steps", "steps are unknown"), width, "dim", glyphs, [(" ", "dim")])
    lines = figure_lines(diff, width, glyphs)
    lines += [fit([], width, glyphs), rule("Step by step", width, glyphs, "from 0 to the longest")]
    longest = max((*diff.before.step_ps, *diff.after.step_ps, 1))
    for name, side in zip("AB", (diff.before, diff.after), strict=True):
        lines.append(_spark(name, side, longest, width, glyphs))
    lines += [fit([], width, glyphs), rule("How long steps take", width, glyphs)]
    return lines + histogram_lines(diff, width, glyphs)


def figure_lines(diff: Diff, width: int, glyphs: Glyphs) -> list[Line]:
    """Typical, median, mean, shortest and longest step."""
    steps, ascii_only = diff.steps, glyphs.name == "ascii"
    if steps is None:
        return []
    rows = (
        ("typical", steps.typical),
        ("median", steps.median),
        ("mean", steps.mean),
        ("shortest", steps.minimum),
        ("longest", steps.maximum),
    )
    lines = [fit([(f" {'':<9}{'A':>9} {'B':>9} {'change':>10} {'':>7} {'noise':>7}", "dim")], width, glyphs)]
    lines += [_figure_line(name, change, ascii_only, width, glyphs) for name, change in rows]
    numbers = f"{'steps':<9}{len(diff.before.step_ps):>9,} {len(diff.after.step_ps):>9,}"
    odd = f"   odd, not typical: {diff.before.odd_count} and {diff.after.odd_count}"
    return [*lines, fit([(f" {numbers}", "text"), (odd, "dim")], width, glyphs)]


def _figure_line(name: str, change: Change, ascii_only: bool, width: int, glyphs: Glyphs) -> Line:
    times = f" {name:<9}{duration(change.before, ascii_only, 4):>9} {duration(change.after, ascii_only, 4):>9}"
    style = MARK_STYLES[change.mark]
    spans: list[Span] = [(times, "strong" if name == "typical" else "text")]
    spans.append((f" {signed(change.delta, 'time', ascii_only):>10} {relative(change):>7}", style))
    if change.noise is not None:
        word = f" {MARK_WORDS[change.mark]}" if width >= _NARROW else ""
        spans += [(f" {noise_words(change, glyphs):>7}", "dim"), (word, style)]
    return fit(spans, width, glyphs)


def _spark(name: str, side: Side, longest: int, width: int, glyphs: Glyphs) -> Line:
    """A run's steps in order, one column each, or the longest of several where there are more than columns."""
    room = max(8, width - _LABEL - 2 - 24)
    values = np.array(side.step_ps, np.float64)
    typical = np.array(side.typical, np.bool_)
    cells = min(len(values), room)
    at = np.arange(len(values)) * cells // max(1, len(values))
    heights, odd = np.zeros(cells), np.zeros(cells, np.bool_)
    np.maximum.at(heights, at, values)
    np.logical_or.at(odd, at, ~typical)
    spans: list[Span] = [(f" {name:<{_LABEL - 2}} ", "dim")]
    for height, is_odd in zip(heights.tolist(), odd.tolist(), strict=True):
        spans.append((glyphs.column[max(1, round(8 * height / longest))], "warn" if is_odd else "busy"))
    words = f"  {counted(len(values), 'step')}"
    return fit([*spans, (words + (f", {side.odd_count} odd" if side.odd_count else ""), "dim")], width, glyphs)


def histogram_lines(diff: Diff, width: int, glyphs: Glyphs) -> list[Line]:
    """Two rows over one axis: how many steps of each run take how long; outside of it, how many lie beyond."""
    ascii_only = glyphs.name == "ascii"
    sides = (diff.before, diff.after)
    usual = [np.array(side.step_ps, np.float64)[np.array(side.typical, np.bool_)] for side in sides]
    low, high = min(part.min() for part in usual), max(part.max() for part in usual)
    margin = max(_REACH * (high - low), 0.005 * high)
    low, high = max(0.0, low - margin), high + margin
    room = max(8, width - _LABEL - 14)
    lines = []
    for name, side in zip("AB", sides, strict=True):
        values = np.array(side.step_ps, np.float64)
        counts = np.bincount(_bins(values, low, high, room), minlength=room + 2)
        most = max(1, int(counts[1:-1].max()))
        cells = "".join(glyphs.column[_eighths(number, most)] for number in counts[1:-1].tolist())
        beyond = [f"{int(counts[at])} {word}" for at, word in ((0, "below"), (-1, "above")) if counts[at]]
        spans: list[Span] = [(f" {name:<{_LABEL - 2}} ", "dim"), (cells, "busy"), (f"  {', '.join(beyond)}", "warn")]
        lines.append(fit(spans, width, glyphs))
    first, last = duration(low, ascii_only, 4), duration(high, ascii_only, 4)
    gap = " " * max(1, room - len(first) - len(last))
    return [*lines, fit([(" " * _LABEL + first + gap + last, "dim")], width, glyphs)]


def _bins(values: np.ndarray, low: float, high: float, room: int) -> np.ndarray:
    """int64[steps]: 0 for what lies below, 1 to `room` for a bin, `room` + 1 for what lies above."""
    at = np.floor((values - low) / max(high - low, 1.0) * room).astype(np.int64) + 1
    return np.clip(at, 0, room + 1)


def _eighths(number: int, most: int) -> int:
    return max(1, round(8 * number / most)) if number else 0

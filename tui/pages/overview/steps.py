"""The step-time graph: one column a step, stacked by where the time went."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tpuprof.parsers.base.intervals import Floats, median, medians
from tpuprof.parsers.base.words import significant
from tpuprof.parsers.pages.overview.ledger import MeanStep
from tpuprof.parsers.pages.overview.model import Step
from tpuprof.parsers.steps.accounts.owners import Owner, owner_index
from tpuprof.tui.draw.columns import GraphColumns, columns_of, graph_lines, names_line
from tpuprof.tui.draw.format import duration
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Glyphs, Line, Span, StyleKey, line_width

SLOW = 1.15  # a step is called slow from this multiple of the median on
MARKED = 6  # at most so many slow steps are named below the graph


class StepGroup(NamedTuple):
    """Owners of a step's time that a column shows as one part: their name, letter and style."""

    word: str
    letter: str
    key: StyleKey
    owners: tuple[Owner, ...]


GROUPS = (
    StepGroup("busy", "B", "busy", ("ideal", "loss", "uncounted", "copy")),
    StepGroup("collectives", "N", "class.collective", ("collective_transfer",)),
    StepGroup("waiting", "W", "class.collective", ("collective_wait", "barrier")),
    StepGroup("host transfers", "T", "class.host", ("host_transfer",)),
    StepGroup("input wait", "I", "class.host", ("input",)),
    StepGroup("idle", ".", "class.idle", ("compile", "host", "dispatch", "between_ops")),
)
"""Every owner is in one of them, so that the parts add up to the step; from the bottom of a column up. Colours are
those of the waterfall; groups of one colour lie upon each other."""

_ALIKE = 0.01  # of the median step: steps differ by no more than this where they are alike
_LEAST_NAMED, _LEAST_TOLD = 0.01, 0.001
"""The legend names a group that has this part of some step; the line on a step, one that has this part of it."""


def step_parts(steps: Sequence[Step], account: MeanStep | None) -> Floats:
    """float64[steps, len(GROUPS)]: each step's time by group of owners, which add up to it; busy without an account."""
    if account is None:
        out = np.zeros((len(steps), len(GROUPS)))
        out[:, 0] = [step.duration_ps for step in steps]
        return out
    owner_ps = np.array([of_step.owner_ps for of_step in account.steps], np.float64)
    return np.stack([owner_ps[:, list(map(owner_index, group.owners))].sum(axis=1) for group in GROUPS], axis=1)


def are_alike(parts: Floats) -> bool:
    """Whether all steps take the same, and for the same: a graph of them shows nothing but that."""
    middle = medians(parts)
    return bool(np.abs(parts - middle).sum(axis=1).max() <= _ALIKE * middle.sum())


def median_ps(steps: Sequence[Step]) -> float:
    """The median of the durations of steps, of which there is at least one."""
    return median(np.array([step.duration_ps for step in steps], np.float64))


def _cell(parts: Sequence[float], low: float, high: float) -> tuple[StepGroup, float]:
    """The group that fills most of the stretch from `low` to `high`, and how much of it is filled at all (0-1)."""
    inside, begin = [], 0.0
    for size in parts:
        inside.append(max(0.0, min(begin + size, high) - max(begin, low)))
        begin += size
    most = max(range(len(inside)), key=lambda at: inside[at])
    return GROUPS[most], sum(inside) / (high - low) if high > low else 0.0


def _column(parts: Sequence[float], tallest: float, height: int, glyphs: Glyphs) -> list[Span]:
    """The cells of one step's column, from the top down."""
    cells: list[Span] = []
    for row in range(height, 0, -1):
        group, filled = _cell(parts, tallest * (row - 1) / height, tallest * row / height)
        if glyphs.letters:
            drawn = filled >= 0.5 or (row == 1 and filled > 0)
            cells.append((group.letter if drawn else " ", group.key))
        else:
            eighths = max(1, round(filled * 8)) if filled > 0 else 0
            cells.append((glyphs.column[eighths], group.key))
    return cells


def step_graph(steps: Sequence[Step], parts: Floats, pen: Pen, height: int, cursor: int | None = None) -> list[Line]:
    """The graph over `height` rows and a row of step names below.

    The axis starts at 0, so that the height of a column is the step's time.

    Args:
        parts: of all steps, by `step_parts`.
    """
    columns = columns_of([step.duration_ps for step in steps], pen.width, cursor)
    tallest = float(max(steps[shown].duration_ps for shown in columns.shown))
    drawn = {shown: _column(parts[shown].tolist(), tallest, height, pen.glyphs) for shown in columns.shown}
    top = duration(tallest, pen.glyphs.is_ascii)
    lines = graph_lines(columns, height, top, lambda step, row: drawn[step][row], pen)
    names = [step.name for step in steps]
    return [*lines, names_line(names, columns, _wanted_names(steps, columns, cursor), pen)]


def _wanted_names(steps: Sequence[Step], columns: GraphColumns, cursor: int | None) -> list[tuple[int, StyleKey]]:
    """Steps to name, the most important first, and the style of their names."""
    middle = median_ps(steps)
    slow = [index for index in columns.shown if steps[index].duration_ps >= SLOW * middle]
    slow.sort(key=lambda index: -steps[index].duration_ps)
    wanted: list[tuple[int, StyleKey]] = [(cursor, "cursor")] if cursor is not None else []
    return [*wanted, *((index, "bad") for index in slow[:MARKED])]


def step_detail(steps: Sequence[Step], parts: Floats, cursor: int | None, pen: Pen) -> Line:
    """One line on the step under the cursor, else on the slowest one."""
    middle = median_ps(steps)
    index = cursor if cursor is not None else max(range(len(steps)), key=lambda n: steps[n].duration_ps)
    step = steps[index]
    times, name = step.duration_ps / middle if middle else 1.0, step.name
    ratio = f"{significant(times)}{pen.glyphs.times}"
    if cursor is None and times < SLOW and len(steps) > 1:
        return pen.fit([(f" steady: the slowest step, {name}, takes {ratio} the median", "dim")])
    head = " step " if cursor is not None or len(steps) == 1 else " slowest: step "
    time = duration(step.duration_ps, pen.glyphs.is_ascii)
    spans: list[Span] = [(head, "dim"), (name, "strong"), (f"  {time}", "strong")]
    if len(steps) > 1:
        spans.append((f", {ratio} median", "bad" if times >= SLOW else "dim"))
    for group, size in _by_excess(parts, index):
        more: Line = (("  ", "text"), (group.word, "dim"), (f" {duration(size, pen.glyphs.is_ascii)}", "text"))
        if line_width((*spans, *more)) > pen.width:
            break  # the details of the step have them all
        spans += more
    return pen.fit(spans)


def _by_excess(parts: Floats, index: int) -> list[tuple[StepGroup, float]]:
    """The parts of a step that matter, first what it has most above the median step; none of what has one part only."""
    mine = parts[index]
    excess = mine - medians(parts)
    order = sorted(np.flatnonzero(mine > _LEAST_TOLD * mine.sum()).tolist(), key=lambda at: -float(excess[at]))
    return [(GROUPS[at], float(mine[at])) for at in order] if (parts > 0).any(axis=0).sum() > 1 else []


def parts_legend(parts: Floats, glyphs: Glyphs, room: int) -> Line:
    """What the colours of the columns mean, from the bottom up, in at most so many cells.

    Each group has a swatch, where there are no colours its letter. Nothing where no step is taken apart.
    """
    if (parts > 0).any(axis=0).sum() < 2:
        return ()
    most = (parts / np.maximum(parts.sum(axis=1, keepdims=True), 1.0)).max(axis=0)
    named = [(group, float(share)) for group, share in zip(GROUPS, most, strict=True) if share >= _LEAST_NAMED]
    while named:
        signs = [(group.letter if glyphs.letters else glyphs.full, group) for group, _ in named]
        legend = tuple(span for sign, of in signs for span in ((sign, of.key), (f" {of.word}  ", "dim")))
        if line_width(legend) <= room:
            return legend
        named.remove(min(named, key=lambda of: of[1]))
    return ()

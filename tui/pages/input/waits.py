"""The graph of waiting: one column a step, as high as the share of its time that it waits for input."""

from __future__ import annotations

from collections.abc import Sequence

from tpuprof.parsers.pages.input.model import StepWait
from tpuprof.tui.draw.columns import Columns, columns_of, graph_lines, names_line
from tpuprof.tui.draw.format import duration, percent
from tpuprof.tui.draw.layout import clean, fit
from tpuprof.tui.draw.spans import Glyphs, Line, Span, StyleKey, line_width

_TOPS = (1, 2, 5, 10, 15, 20, 30, 40, 50, 60, 80, 100)
"""Percentages at which the axis may end."""


def wait_columns(steps: Sequence[StepWait], width: int, cursor: int | None) -> Columns:
    """Which steps the columns stand for; where one stands for several it shows the one that waits most."""
    return columns_of([step.percent_maximum or 0.0 for step in steps], width, cursor)


def axis_top(steps: Sequence[StepWait]) -> int:
    """Where the axis ends: the next round percentage."""
    most = max((step.percent_maximum or 0.0 for step in steps), default=0.0)
    return next((top for top in _TOPS if most <= top), _TOPS[-1])


def wait_graph(steps: Sequence[StepWait], width: int, height: int, glyphs: Glyphs, cursor: int | None) -> list[Line]:
    """The graph over `height` rows and a row of step names below.

    A column is solid up to the mean over the cores, and light from there up to the core that waits most.
    """
    columns, top = wait_columns(steps, width, cursor), axis_top(steps)

    def cell(step: int, row: int) -> Span:
        low, high = top * (height - 1 - row) / height, top * (height - row) / height
        return _cell(steps[step], low, high, glyphs)

    lines = graph_lines(columns, height, f"{top}%", cell, width, glyphs)
    names = [step.name for step in steps]
    return [*lines, names_line(names, columns, _wanted_names(steps, columns, cursor), width, glyphs)]


def _cell(step: StepWait, low: float, high: float, glyphs: Glyphs) -> Span:
    """One cell of a column that stands for the stretch from `low` to `high` percent."""
    mean, most = step.percent_average or 0.0, step.percent_maximum or 0.0
    if mean > low:
        return (glyphs.column[max(1, round(8 * min(1.0, (mean - low) / (high - low))))], "class.host")
    reaches = most >= (low + high) / 2 or (low == 0 and most > 0)
    return (glyphs.light if reaches else " ", "class.host")


def _wanted_names(steps: Sequence[StepWait], columns: Columns, cursor: int | None) -> list[tuple[int, StyleKey]]:
    """The step under the cursor and the one that waits most."""
    worst = max(columns.shown, key=lambda at: steps[at].percent_maximum or 0.0)
    wanted: list[tuple[int, StyleKey]] = [] if cursor is None else [(cursor, "cursor")]
    return [*wanted, (worst, "bad")] if steps[worst].percent_maximum else wanted


def wait_detail(steps: Sequence[StepWait], at: int, is_cursor: bool, width: int, glyphs: Glyphs) -> Line:
    """One line on a step: the one under the cursor, else the one that waits most."""
    ascii_only = glyphs.name == "ascii"
    step = steps[at]
    spans: list[Span] = [
        (" step " if is_cursor else " worst: step ", "dim"),
        (clean(step.name, ascii_only), "strong"),
        (f"  {duration(step.duration_ps, ascii_only)}", "strong"),
    ]
    if step.wait_ps is None:
        return fit([*spans, (", waiting for input unknown", "dim")], width, glyphs)
    if step.core is None:
        return fit([*spans, (", no core waits for input", "dim")], width, glyphs)
    spans += [(", waits ", "dim"), (duration(step.wait_ps, ascii_only), "text")]
    spans += [(f" = {percent(step.percent_maximum)}", "class.host"), (" on ", "dim")]
    spans += [(clean(step.core, ascii_only), "text")]
    least, mean = percent(step.percent_minimum), percent(step.percent_average)
    spread = f"; mean {mean}, least {least}"
    if least != percent(step.percent_maximum) and line_width(tuple(spans)) + len(spread) <= width:
        spans.append((spread, "dim"))
    return fit(spans, width, glyphs)

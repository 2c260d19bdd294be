"""The graph of waiting: one column a step, as high as the share of its time that it waits for input."""

from __future__ import annotations

from collections.abc import Sequence

from tpuprof.parsers.pages.input_page import StepWait
from tpuprof.parsers.pages.overview_page import Step
from tpuprof.tui.draw.format import duration, percent
from tpuprof.tui.draw.layout import clean, fit
from tpuprof.tui.draw.spans import Glyphs, Line, Span, StyleKey, line_width
from tpuprof.tui.draw.steps import AXIS, WIDEST, Columns, columns_of

_TOPS = (1, 2, 5, 10, 15, 20, 30, 40, 50, 60, 80, 100)
"""Percentages at which the axis may end."""

_PER_PERCENT = 10**9
"""Resolution in which shares are compared."""


def wait_columns(steps: Sequence[StepWait], width: int, cursor: int | None) -> Columns:
    """Which steps the columns stand for; where one stands for several it shows the one that waits most."""
    as_steps = [Step(step.name, 0, 0, round((step.percent_maximum or 0.0) * _PER_PERCENT), None) for step in steps]
    return columns_of(as_steps, width, cursor)


def axis_top(steps: Sequence[StepWait]) -> int:
    """Where the axis ends: the next round percentage."""
    most = max((step.percent_maximum or 0.0 for step in steps), default=0.0)
    return next((top for top in _TOPS if most <= top), _TOPS[-1])


def wait_graph(steps: Sequence[StepWait], width: int, height: int, glyphs: Glyphs, cursor: int | None) -> list[Line]:
    """The graph over `height` rows and a row of step names below.

    A column is solid up to the mean over the cores, and light from there up to the core that waits most.
    """
    columns = wait_columns(steps, width, cursor)
    chosen = [steps[at] for at in columns.shown]
    pitch = max(1, min(WIDEST, (width - AXIS) // len(chosen)))
    bar = pitch if pitch < 3 else pitch - 1
    top = axis_top(steps)
    lines = []
    for row in range(height):
        label = f"{top}%" if row == 0 else ("0" if row == height - 1 else "")
        line: list[Span] = [(f"{label:>{AXIS - 2}} ", "dim"), (glyphs.vertical, "rule")]
        low, high = top * (height - 1 - row) / height, top * (height - row) / height
        for step in chosen:
            text, key = _cell(step, low, high, glyphs)
            line += [(text * bar, key), (" " * (pitch - bar), "text")]
        lines.append(fit(line, width, glyphs))
    lines.append(_names(steps, columns, pitch, width, glyphs, cursor))
    return lines


def _cell(step: StepWait, low: float, high: float, glyphs: Glyphs) -> Span:
    """One cell of a column that stands for the stretch from `low` to `high` percent."""
    mean, most = step.percent_average or 0.0, step.percent_maximum or 0.0
    if mean > low:
        return (glyphs.column[max(1, round(8 * min(1.0, (mean - low) / (high - low))))], "class.host")
    reaches = most >= (low + high) / 2 or (low == 0 and most > 0)
    return (glyphs.light if reaches else " ", "class.host")


def _names(
    steps: Sequence[StepWait], columns: Columns, pitch: int, width: int, glyphs: Glyphs, cursor: int | None
) -> Line:
    """Names below the columns: the cursor's, the worst one's, the first and the last, as far as they fit."""
    room = width - AXIS
    cells = [" "] * room
    keys: list[StyleKey] = ["dim"] * room
    worst = max(columns.shown, key=lambda at: steps[at].percent_maximum or 0.0)
    wanted: list[tuple[int | None, StyleKey]] = [(cursor, "cursor")]
    wanted += [(worst, "bad")] if steps[worst].percent_maximum else []
    for at, key in (*wanted, (columns.shown[0], "dim"), (columns.shown[-1], "dim")):
        column = None if at is None else columns.column_of(at)
        if at is None or column is None:
            continue
        text = ("" if key == "dim" else glyphs.up) + clean(steps[at].name, glyphs.name == "ascii")
        begin = max(0, min(column * pitch, room - len(text)))
        around = cells[max(0, begin - 1) : begin + len(text) + 1]
        if len(text) <= room and all(cell == " " for cell in around):
            cells[begin : begin + len(text)] = text
            keys[begin : begin + len(text)] = [key] * len(text)
    return fit([*_label(steps, columns, glyphs), *zip(cells, keys, strict=True)], width, glyphs)


def _label(steps: Sequence[StepWait], columns: Columns, glyphs: Glyphs) -> list[Span]:
    """What the names are, or which part of the steps the graph shows."""
    if columns.group > 1:
        return [(f"max of {columns.group}"[: AXIS - 1].rjust(AXIS - 1), "warn"), (glyphs.vertical, "rule")]
    if len(columns.shown) < len(steps):
        part = f"{columns.first}{glyphs.dash}{columns.first + len(columns.shown) - 1}"
        return [(part[: AXIS - 1].rjust(AXIS - 1), "warn"), (glyphs.vertical, "rule")]
    return [(f"{'step':>{AXIS - 2}} ", "dim"), (glyphs.vertical, "rule")]


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

"""The step-time graph: one column a step, stacked by where the time went."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tpuprof.parsers.base.intervals import median
from tpuprof.parsers.pages.overview.model import Step
from tpuprof.parsers.steps.model import GenericBreakdown
from tpuprof.tui.draw.columns import GraphColumns, columns_of, graph_lines, names_line
from tpuprof.tui.draw.format import duration, significant
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Glyphs, Line, Span, StyleKey, line_width

SLOW = 1.15  # a step is called slow from this multiple of the median on
MARKED = 6  # at most so many slow steps are named below the graph

_LEGEND: dict[StyleKey, tuple[str, str, str]] = {
    "busy": ("B", "busy", "busy"),
    "class.collective": ("N", "all-reduce", "collectives"),
    "class.host": ("H", "host", "copies"),
    "class.vector": ("L", "", "launch, host"),
    "class.idle": (".", "idle", "other"),
}
"""Letter and words of each style, the latter for steps on GPUs and on the host; empty where steps have no such part."""


class StepSegment(NamedTuple):
    """A part of a step: its style, what it is called, its picoseconds."""

    key: StyleKey
    word: str
    size: float


_GENERIC: tuple[tuple[StyleKey, str, str], ...] = (
    ("busy", "compute", "device_compute_ps"),
    ("busy", "ops", "host_ops_ps"),
    ("busy", "device to device", "device_to_device_ps"),
    ("class.collective", "collectives", "device_collectives_ps"),
    ("class.host", "input", "input_ps"),
    ("class.host", "output", "output_ps"),
    ("class.vector", "launch", "kernel_launch_ps"),
    ("class.vector", "compile", "compile_ps"),
    ("class.vector", "host", "host_compute_ps"),
    ("class.idle", "other", "all_other_ps"),
)
"""Style, name and attribute of each part of a step without a TPU."""


def _possible_parts(step: Step) -> list[StepSegment]:
    """What a step's time may go to, from the bottom of its column up; what takes no time has a size of 0 or less.

    What the profile does not break down is busy. Host transfers are part of a breakdown's idle time, so they are taken
    out of it here.
    """
    parts = step.breakdown
    if parts is None:
        return [StepSegment("busy", "busy", float(step.duration_ps))]
    if isinstance(parts, GenericBreakdown):
        return [StepSegment(key, word, getattr(parts, name)) for key, word, name in _GENERIC]
    reduced = min(parts.all_reduce_compute_ps + parts.all_reduce_sync_ps, parts.compute_ps)
    return [
        StepSegment("busy", "busy", parts.compute_ps - reduced),
        StepSegment("class.collective", "all-reduce", reduced),
        StepSegment("class.host", "input", parts.infeed_ps),
        StepSegment("class.host", "output", parts.outfeed_ps),
        StepSegment("class.host", "SparseCore", parts.sparse_core_ps),
        StepSegment("class.host", "host transfer", parts.host_transfer_ps),
        StepSegment("class.idle", "idle", parts.idle_ps - parts.host_transfer_ps),
    ]


def step_parts(step: Step) -> list[StepSegment]:
    """A step's time by part, from the bottom of its column up."""
    return [part for part in _possible_parts(step) if part.size > 0]


def median_ps(steps: Sequence[Step]) -> float:
    """The median of the durations of steps, of which there is at least one."""
    return median(np.array([step.duration_ps for step in steps], np.float64))


def _cell(parts: Sequence[StepSegment], low: float, high: float) -> tuple[StyleKey, float]:
    """The style that fills most of the stretch from `low` to `high`, and how much of it is filled at all (0-1)."""
    inside: dict[StyleKey, float] = {"busy": 0.0}
    begin = 0.0
    for part in parts:
        inside[part.key] = inside.get(part.key, 0.0) + max(0.0, min(begin + part.size, high) - max(begin, low))
        begin += part.size
    filled = sum(inside.values())
    return max(inside, key=lambda key: inside[key]), filled / (high - low) if high > low else 0.0


def _column(step: Step, tallest: float, height: int, glyphs: Glyphs) -> list[Span]:
    """The cells of one step's column, from the top down."""
    parts = step_parts(step)
    whole = sum(part.size for part in parts)
    scaled = [part._replace(size=part.size * step.duration_ps / whole) for part in parts] if whole else []
    cells: list[Span] = []
    for row in range(height, 0, -1):
        key, filled = _cell(scaled, tallest * (row - 1) / height, tallest * row / height)
        if glyphs.letters:
            drawn = filled >= 0.5 or (row == 1 and filled > 0)
            cells.append((_LEGEND[key][0] if drawn else " ", key))
        else:
            eighths = max(1, round(filled * 8)) if filled > 0 else 0
            cells.append((glyphs.column[eighths], key))
    return cells


def step_graph(steps: Sequence[Step], pen: Pen, height: int, cursor: int | None = None) -> list[Line]:
    """The graph over `height` rows and a row of step names below.

    The axis starts at 0, so that the height of a column is the step's time.
    """
    columns = columns_of([step.duration_ps for step in steps], pen.width, cursor)
    tallest = float(max(steps[shown].duration_ps for shown in columns.shown))
    drawn = {shown: _column(steps[shown], tallest, height, pen.glyphs) for shown in columns.shown}
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


def step_detail(steps: Sequence[Step], cursor: int | None, pen: Pen) -> Line:
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
    for part in _by_excess(steps, index) if step.breakdown is not None else ():
        more: Line = (("  ", "text"), (part.word, part.key), (f" {duration(part.size, pen.glyphs.is_ascii)}", "text"))
        if line_width((*spans, *more)) > pen.width:
            break  # the details of the step have them all
        spans += more
    return pen.fit(spans)


def _by_excess(steps: Sequence[Step], index: int) -> list[StepSegment]:
    """The parts of a step, first what it has most above the median step."""
    mine = step_parts(steps[index])
    sizes = [{part.word: part.size for part in _possible_parts(step)} for step in steps]
    usual = {
        part.word: median(np.array([max(0.0, other.get(part.word, 0.0)) for other in sizes], np.float64))
        for part in mine
    }
    return sorted(mine, key=lambda part: usual[part.word] - part.size)


def parts_legend(steps: Sequence[Step], glyphs: Glyphs) -> Line:
    """What the colours of the columns mean, from the bottom up; nothing where no step is broken down."""
    if all(step.breakdown is None for step in steps):
        return ()
    is_generic = any(isinstance(step.breakdown, GenericBreakdown) for step in steps)
    spans: list[Span] = []
    for key, (letter, *words) in _LEGEND.items():
        word = words[is_generic]
        if word:
            spans += [(letter if glyphs.letters else glyphs.full, key), (f" {word}  ", "dim")]
    return tuple(spans)

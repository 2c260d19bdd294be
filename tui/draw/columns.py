"""Pages with a graph of steps: the card of their time, which steps the columns stand for, and the names below them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

from tpuprof.parsers.base.record import dataclass, field
from tpuprof.parsers.steps.model import StepSource, StepTime
from tpuprof.tui.draw.format import UNKNOWN, duration
from tpuprof.tui.draw.pen import Canvas, Pen
from tpuprof.tui.draw.spans import Glyphs, Line, Span, StyleKey

AXIS = 9  # cells left of the columns
WIDEST = 14  # cells of the widest column, gap included


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where the user points: a step, an op, a finding, a bar of the waterfall, each an index or None."""

    step: int | None = None
    op: int | None = None
    finding: int | None = None
    owner: int | None = None


Panel = Literal["findings", "owners", "ops", "steps"]


@dataclass(frozen=True, slots=True)
class PanelItem:
    """A finding, an owner of a step's time, an op or a step of a page, by index."""

    panel: Panel
    index: int


@dataclass(frozen=True, slots=True)
class ComposedGraph:
    """A page in lines; where its graph begins and ends, -1 without one, and what the lines are that are rows."""

    lines: tuple[Line, ...]
    first_step_line: int
    last_step_line: int
    rows: Mapping[int, PanelItem] = field(default_factory=dict)


def rows_from(line: int, of: Panel, shown: Iterable[int]) -> dict[int, PanelItem]:
    """What the lines from one on are about: rows of a list."""
    return {line + at: PanelItem(of, row) for at, row in enumerate(shown)}


WIDE_CARD = 31  # cells from which on the card of the step time has its range too

_TAKEN_FROM: Mapping[StepSource, str] = {
    "steps": "median",
    "annotations": "by step_num",
    "cycle": "of a cycle",
    "modules": "inferred",
}


def step_time_card(time: StepTime | None, pen: Pen) -> list[list[Span]]:
    """Three rows: what the figure is, the median and how many steps there are, and the average with its deviation.

    Where there is room for it the average stands beside the median, and the range in its place.
    """
    if time is None:
        return [[(" STEP TIME", "dim")], [(f" {UNKNOWN}", "dim")], [(" see the notes", "dim")]]
    ascii_only, inferred = pen.glyphs.is_ascii, time.source != "steps"
    median = f" {'~' if inferred else ''}{duration(time.median_ps, ascii_only, 4)}"
    deviation: list[Span] = [
        (f" {pen.glyphs.sigma} ", "dim"),
        (duration(time.standard_deviation_ps, ascii_only), "text"),
    ]
    deviation *= time.count > 1  # one step has none
    title: list[Span] = [(" STEP TIME ", "dim"), (_TAKEN_FROM[time.source], "warn" if inferred else "dim")]
    number: Span = (f"  n={time.count}", "dim")
    if pen.width < WIDE_CARD:
        average = duration(time.average_ps, ascii_only)
        return [title, [(median, "strong"), number], [(" avg ", "dim"), (average, "text"), *deviation]]
    low, high = duration(time.minimum_ps, ascii_only), duration(time.maximum_ps, ascii_only)
    average = duration(time.average_ps, ascii_only, 4)
    beside: list[Span] = [(median, "strong"), ("  avg ", "dim"), (average, "text"), number]
    return [title, beside, [(f" {low} {pen.glyphs.dash} {high} ", "text"), *deviation]]


@dataclass(frozen=True, slots=True)
class GraphColumns:
    """Which steps the columns of a graph stand for.

    Attributes:
        shown: index of the step that each column shows.
        group: steps to a column; above 1 each column shows the longest of its group.
        first: index of the first step that the graph covers.
    """

    shown: tuple[int, ...]
    group: int
    first: int

    def column_of(self, step: int) -> int | None:
        """The column that covers a step, None for a step outside the graph."""
        index = (step - self.first) // self.group
        return index if 0 <= index < len(self.shown) else None

    def pitch(self, width: int) -> int:
        """Cells from one column to the next in a graph of this width."""
        return max(1, min(WIDEST, (width - AXIS) // len(self.shown)))

    def bar(self, width: int) -> int:
        """Cells that a column fills of these."""
        pitch = self.pitch(width)
        return pitch if pitch < 3 else pitch - 1


def columns_of(sizes: Sequence[float], width: int, cursor: int | None) -> GraphColumns:
    """One column a step where they fit; else those around the cursor, or without one the largest of each group."""
    room = max(1, width - AXIS)
    count = len(sizes)
    if count <= room:
        return GraphColumns(tuple(range(count)), 1, 0)
    if cursor is not None:
        first = min(max(0, cursor - room // 2), count - room)
        return GraphColumns(tuple(range(first, first + room)), 1, first)
    group = -(-count // room)
    starts = range(0, count, group)
    largest = tuple(max(range(a, min(a + group, count)), key=lambda index: sizes[index]) for a in starts)
    return GraphColumns(largest, group, 0)


def graph_lines(columns: GraphColumns, height: int, top: str, cell: Callable[[int, int], Span], pen: Pen) -> list[Line]:
    """The rows of a graph, from the top down.

    Args:
        top: what stands at the top of the axis, which begins at 0.
        cell: draws a cell of a step in a row; it fills the column.
    """
    pitch, bar = columns.pitch(pen.width), columns.bar(pen.width)
    lines = []
    for row in range(height):
        label = top if row == 0 else "0" if row == height - 1 else ""
        line: list[Span] = [(f"{label:>{AXIS - 2}} ", "dim"), (pen.glyphs.vertical, "rule")]
        for step in columns.shown:
            text, key = cell(step, row)
            line += [(text * bar, key), (" " * (pitch - bar), "text")]
        lines.append(pen.fit(line))
    return lines


def names_line(names: Sequence[str], columns: GraphColumns, wanted: Sequence[tuple[int, StyleKey]], pen: Pen) -> Line:
    """Names below the columns, as far as they fit: those wanted, and the first and the last.

    Args:
        names: one a step.
        wanted: steps to name, the most important first, and the style of their names; others than dim are pointed at.
    """
    room = pen.width - AXIS
    row = Canvas(room, key="dim")
    for index, key in (*wanted, (columns.shown[0], "dim"), (columns.shown[-1], "dim")):
        column = columns.column_of(index)
        if column is None:
            continue
        text = ("" if key == "dim" else pen.glyphs.up) + pen.text(names[index])
        begin = max(0, min(column * columns.pitch(pen.width), room - len(text)))
        around = row.cells[0][max(0, begin - 1) : begin + len(text) + 1]
        if len(text) <= room and all(cell == " " for cell in around):
            row.put(0, begin, text, key)
    return pen.fit([*_label(len(names), columns, pen.glyphs), *zip(row.cells[0], row.keys[0], strict=True)])


def _label(count: int, columns: GraphColumns, glyphs: Glyphs) -> list[Span]:
    """What the names are, or which part of `count` steps the graph shows."""
    words = f"{columns.first}{glyphs.dash}{columns.first + len(columns.shown) - 1}"
    words = f"max/{columns.group}" if columns.group > 1 else words
    is_part = columns.group > 1 or len(columns.shown) < count
    label: Span = (words[: AXIS - 1].rjust(AXIS - 1), "warn") if is_part else (f"{'step':>{AXIS - 2}} ", "dim")
    return [label, (glyphs.vertical, "rule")]

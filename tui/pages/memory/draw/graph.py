"""The working set over the program: what is there throughout, temporaries, padding, and the band of one buffer.

The band is the time that the buffer under the cursor is in memory. At its foot the buffer itself is drawn, as high as
its size on the graph's axis.
"""

from __future__ import annotations

import math

import numpy as np

from tpuprof.parsers.base.intervals import Bools, Int64s
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.words import BINARY_UNITS, significant
from tpuprof.parsers.memory.model import SpaceMemory
from tpuprof.tui.draw.buffers import fills
from tpuprof.tui.draw.format import binary_size, count, limit_size, percent
from tpuprof.tui.draw.pen import Pen, cut, cut_middle
from tpuprof.tui.draw.spans import Glyphs, Line, Span, StyleKey, line_width

AXIS = 10  # cells left of the graph: a label of eight, a blank or a tick, and the axis
NEAR = 1.5  # the limit is drawn where the graph need not be higher than this multiple of the peak for it
_NICE = (1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.8, 2, 2.2, 2.5, 2.8, 3, 3.5, 4, 4.5, 5, 5.5, 6, 7, 8, 9, 10)
_UNITS = (*BINARY_UNITS, (1, "B"))
_LABEL = 8
_NAME = 44
_LEAST_ORIGIN = 12


@dataclass(frozen=True, slots=True)
class PointColumns:
    """Which points each column stands for: `first` <= point < `last`.

    More points than columns share them; where there are fewer, neighbouring columns show the same point.

    Attributes:
        first, last: int64[columns].
        top: int64[columns], of each column's points the first one with the most memory in use.
    """

    first: Int64s
    last: Int64s
    top: Int64s


def point_columns(page: SpaceMemory, columns: int) -> PointColumns:
    """The points of so many columns over the whole program."""
    points, columns = page.points, max(1, columns)
    edges = np.arange(columns + 1, dtype=np.int64) * points // columns
    first, last = edges[:-1], np.maximum(edges[1:], edges[:-1] + 1)
    if points <= columns:
        return PointColumns(first, last, first)
    most = column_most(page.heap_bytes, first, last)
    tops = np.flatnonzero(page.heap_bytes == np.repeat(most, last - first))
    return PointColumns(first, last, tops[np.searchsorted(tops, first)])


def column_most(values: Int64s, first: Int64s, last: Int64s) -> Int64s:
    """int64[columns]: the greatest value of each column's points."""
    bounds = np.stack([first, last], axis=1).ravel()
    out: Int64s = np.maximum.reduceat(np.append(values, values[-1:]), bounds)[::2]
    return out


def point_at(page: SpaceMemory, columns: int, x: int) -> int:
    """The point that a column of the graph shows: of those that it stands for, the first with the most in use.

    Args:
        columns: `ComposedMemory.columns`.
        x: the column, from 0; what lies outside of the graph counts as its first or last column.
    """
    return int(point_columns(page, columns).top[min(max(x, 0), max(1, columns) - 1)])


def column_of(page: SpaceMemory, columns: int, point: int) -> int:
    """The column of the graph that shows a point; the middle one of several."""
    points, columns = page.points, max(1, columns)
    point = min(max(point, 0), points - 1)
    if points > columns:  # the last column that begins at the point or before it
        return ((point + 1) * columns - 1) // points
    begin, end = -(-point * columns // points), -(-(point + 1) * columns // points)
    return (begin + end - 1) // 2


@dataclass(frozen=True, slots=True)
class Scale:
    """The vertical axis.

    Attributes:
        row_bytes: what a row stands for.
        divisor, unit: of the labels, such as 2**30 and ``GiB``.
        rows: how many.
    """

    row_bytes: float
    divisor: int
    unit: str
    rows: int

    def label(self, row: int) -> str:
        """What the upper edge of a row, counted from the bottom, stands for."""
        return f"{significant(self.row_bytes * (row + 1) / self.divisor)} {self.unit}"


def scale_of(most: int, rows: int) -> Scale:
    """An axis from 0 to `most` bytes or somewhat more, whose rows stand for round numbers."""
    most = max(1, most)
    divisor, unit = next((pair for pair in _UNITS if most >= pair[0] * 0.9995), _UNITS[-1])
    exact = most / divisor / max(1, rows)
    power = 10.0 ** math.floor(math.log10(exact))
    nice = next(value for value in _NICE if value * power >= exact * (1 - 1e-9))
    return Scale(nice * power * divisor, divisor, unit, rows)


def graph_lines(
    page: SpaceMemory, point: int, rows: Int64s, pen: Pen, height: int, backward: int | None = None
) -> list[Line]:
    """A line for the peak, `height` - 2 rows of columns, and the program's axis with the point looked at.

    Args:
        rows: of `page.live_ranges`, the buffers whose band is shown; none for no band.
        backward: the point at which the backward pass begins.
    """
    cells, area = max(1, pen.width - AXIS), max(1, height - 2)
    capacity = 0 if page.capacity is None else page.capacity.size_bytes
    peak = max(page.peak_bytes, int(page.heap_bytes.max()))
    is_near = 0 < capacity <= peak * NEAR
    scale = scale_of(max(peak, capacity) if is_near else peak, area)
    edges, band = _levels(page, point_columns(page, cells), rows, scale)
    limit_row = math.ceil(capacity / scale.row_bytes) - 1 if is_near else -1
    far = f"limit {limit_size(capacity)}" if page.capacity is not None and not is_near else ""
    lines = [_peak_line(page, cells, pen, far)]
    for row in range(area - 1, -1, -1):
        cell_spans = _row(edges, band, row, pen.glyphs, row == limit_row)
        spans = axis_spans(scale.label(row), row, area, pen.glyphs) + cell_spans
        lines.append(pen.fit(_with_limit(spans, capacity, pen.glyphs) if row == limit_row else spans))
    return [*lines, program_axis(page, point, cells, pen, backward)]


def _levels(page: SpaceMemory, columns: PointColumns, rows: Int64s, scale: Scale) -> tuple[Int64s, Bools]:
    """The upper edges, in eighths of a row, of the buffer, throughout, temporaries and padding; and the band."""
    live_ranges = page.live_ranges
    throughout = (live_ranges.born <= 0) & (live_ranges.dies >= page.points)
    elements = np.where(live_ranges.unpadded_bytes < 0, live_ranges.size_bytes, live_ranges.unpadded_bytes)
    held = int(elements[throughout].sum())
    total = page.heap_bytes[columns.top]
    used = np.minimum(page.heap_unpadded_bytes[columns.top], total)
    own, band = np.zeros(len(total), np.int64), np.zeros(len(total), np.bool_)
    if len(rows):
        born, dies = np.maximum(live_ranges.born[rows], 0), np.minimum(live_ranges.dies[rows], page.points)
        is_some = born < dies
        steps = np.zeros((2, page.points + 1), np.int64)  # of bytes, and of buffers
        for points, sign in ((born[is_some], 1), (dies[is_some], -1)):
            np.add.at(steps[0], points, sign * live_ranges.size_bytes[rows][is_some])
            np.add.at(steps[1], points, sign)
        own, alive = (column_most(np.cumsum(step)[:-1], columns.first, columns.last) for step in steps)
        band = alive > 0

    def eighths(value: Int64s | int) -> Int64s:
        exact = np.maximum(np.asarray(value, np.float64), 0.0) / scale.row_bytes * 8
        rounded = np.where(exact > 0, np.maximum(1, np.rint(exact)), 0)
        return np.broadcast_to(np.minimum(rounded, scale.rows * 8).astype(np.int64), total.shape)

    bottom = eighths(own)
    second = np.maximum(bottom, np.minimum(eighths(held), eighths(used)))
    third = np.maximum(second, eighths(used))
    return np.stack([bottom, second, third, np.maximum(third, eighths(total))]), band


def _row(edges: Int64s, band: Bools, row: int, glyphs: Glyphs, is_limit: bool) -> list[Span]:
    codes = np.where(
        band,
        [[fills.OWN], [fills.HELD_IN_BAND], [fills.USED_IN_BAND], [fills.PADDING]],
        [[fills.OWN], [fills.HELD], [fills.USED], [fills.PADDING]],
    )
    return stacked_row(edges, codes, np.where(band, fills.BAND, fills.FREE), row, glyphs, 0, is_limit)


def stacked_row(
    edges: Int64s, codes: Int64s, empty: Int64s, row: int, glyphs: Glyphs, kept: int | None, is_limit: bool = False
) -> list[Span]:
    """The cells of a row of areas that lie on one another: at most one border between two areas is drawn in each.

    Args:
        edges: int64[areas, columns], the upper edge of each, in eighths of a row.
        codes: int64[areas, columns], of `fills`.
        empty: int64[columns], what lies above the areas.
        row: counted from the bottom.
        kept: the area to show in a cell that isn't full; the largest where it is None or not in the cell.
        is_limit: a line goes through the row.
    """
    inside = np.clip(edges - row * 8, 0, 8)
    filled, extent = inside[-1], np.diff(inside, axis=0, prepend=0)
    columns = np.arange(len(empty))
    bottom, largest = (extent > 0).argmax(axis=0), extent.argmax(axis=0)
    upper = extent.copy()
    upper[bottom, columns] = 0
    rest = upper.argmax(axis=0)
    is_full = filled == 8
    first = extent[bottom, columns]
    sign = np.where(is_full, first, filled)
    shown = largest if kept is None else np.where(extent[kept] > 0, kept, largest)
    ink = codes[np.where(is_full, bottom, shown), columns]
    ground = np.where(is_full, codes[np.where(first == 8, bottom, rest), columns], empty)
    if glyphs.letters and row == 0:  # what is there shows, however low
        sign = np.where(np.where(is_full, extent[0], filled) > 0, 8, sign)
    return fills.painted(sign.astype(np.int64), ink.astype(np.int64), ground.astype(np.int64), glyphs, is_limit)


def axis_spans(label: str, row: int, rows: int, glyphs: Glyphs) -> list[Span]:
    """The axis beside a row, counted from the bottom; of many rows every second or third has its upper edge's label."""
    every = 1 if rows <= 6 else 2 if rows <= 12 else 3
    label = label if (rows - 1 - row) % every == 0 else ""
    return [(f"{cut(label, _LABEL, glyphs):>{_LABEL}} ", "dim"), (glyphs.vertical, "rule")]


def _with_limit(spans: list[Span], capacity: int, glyphs: Glyphs) -> list[Span]:
    """The limit's label on the longest stretch of its line; none where there is no room."""
    text = f" limit {limit_size(capacity)} "
    lines = [place for place in range(2, len(spans)) if spans[place][0].startswith(glyphs.horizontal)]
    place = max(lines, key=lambda index: len(spans[index][0]), default=-1)
    if place < 0 or len(spans[place][0]) < len(text) + 4:
        return spans
    line, key = spans[place]
    label: list[Span] = [(line[:2], key), (text, key), (line[2 + len(text) :], key)]
    return [*spans[:place], *label, *spans[place + 1 :]]


def _peak_line(page: SpaceMemory, cells: int, pen: Pen, far: str) -> Line:
    """A sign above the peak's column, with the peak and its instruction beside it."""
    words = f"peak {binary_size(page.peak_bytes)}"
    if page.peak_instruction is not None:
        words += f", after {cut_middle(page.peak_instruction, _NAME, pen.glyphs)}"
    begin, spans = _beside(column_of(page, cells, page.peak_position), words, pen.glyphs.down, cells, "strong")
    before, after = AXIS + begin, pen.width - AXIS - begin - line_width(tuple(spans))
    if len(far) + 2 <= after:
        return pen.fit([(" " * before, "text"), *spans, (f"{far:>{after - 1}}", "dim")])
    left = f" {far}" if len(far) + 2 <= before else ""
    return pen.fit([(left.ljust(before), "dim"), *spans])


def _beside(column: int, words: str, sign: str, cells: int, key: StyleKey) -> tuple[int, list[Span]]:
    """A sign in a column and words beside it, right of it where they fit, else left; where they begin."""
    if column + 2 + len(words) <= cells or column < cells - column:
        return column, [(sign, "mark"), (f" {words}", key)]
    words = words[max(0, len(words) + 1 - column) :] if len(words) + 1 > column else words
    return column - len(words) - 1, [(f"{words} ", key), (sign, "mark")]


def program_axis(page: SpaceMemory, point: int, cells: int, pen: Pen, backward: int | None = None) -> Line:
    """The axis of the program, with the point looked at, what is in use there, and where the backward pass begins."""
    point = min(max(point, 0), page.points - 1)
    words = f"point {count(point)} of {count(page.points - 1)}"
    if point != page.peak_position:  # else the line above the graph says the rest
        words += f": {binary_size(int(page.heap_bytes[point]))}"
        name = page.instructions[point - 1] if 0 < point <= len(page.instructions) else None
        after = f"after {name}" if name else "before the first instruction"
        words += f", {cut_middle(after, _NAME, pen.glyphs)}"
    begin, spans = _beside(column_of(page, cells, point), words, pen.glyphs.up, cells, "text")
    passes = column_of(page, cells, backward) if backward is not None else -1
    line: list[Span] = [(f"{'program':>{_LABEL}} ", "dim"), (pen.glyphs.vertical, "rule")]
    line += _axis_rule(0, max(0, begin - 1), passes, pen.glyphs)
    line += [(" " * min(1, begin), "text"), *spans, (" ", "text")]
    end = begin + line_width(tuple(spans)) + 1
    return pen.fit([*line, *_axis_rule(end, cells, passes, pen.glyphs)])


def _axis_rule(begin: int, end: int, passes: int, glyphs: Glyphs) -> list[Span]:
    """The axis from a column to another, with the words on the two passes as far as they fit there."""
    label = f"{glyphs.vertical} backward "
    if not begin <= passes <= end - len(label) - 1:
        return [(glyphs.horizontal * max(0, end - begin), "rule")]
    before = " forward " if passes - begin > len(" forward ") else ""
    left, right = passes - begin - len(before), end - passes - len(label)
    return [(glyphs.horizontal * left, "rule"), (before + label, "dim"), (glyphs.horizontal * right, "rule")]


def legend(page: SpaceMemory, rows: Int64s, name: str, origin: str, pen: Pen) -> Line:
    """What the band is: its buffers, their size, when they are in memory, and where they come from.

    Args:
        rows: of `page.live_ranges`.
        name: of these together.
        origin: left out if there is no room.
    """
    if not len(rows):
        return pen.fit([])
    live_ranges = page.live_ranges
    born, last = max(0, int(live_ranges.born[rows].min())), min(int(live_ranges.dies[rows].max()), page.points) - 1
    share = percent(100 * max(0, last - born + 1) / page.points, 0)
    when = f"from point {count(born)} to {count(last)}, {share} of the program"
    when = "throughout" if born == 0 and last == page.points - 1 else when
    parts = "parts of it " if len(rows) > 1 else ""
    tail = f" {binary_size(int(live_ranges.size_bytes[rows].sum()))}, {parts}in memory {when}"
    shown = cut_middle(name, max(8, pen.width - len(tail) - 6), pen.glyphs)
    signs = (fills.sign_of(fills.OWN, pen.glyphs), fills.sign_of(fills.USED_IN_BAND, pen.glyphs))
    spans: list[Span] = [(" ", "text"), *signs, (f" {shown}", "strong"), (tail, "text")]
    room = pen.width - line_width(tuple(spans)) - 4
    if origin and room >= _LEAST_ORIGIN:
        spans.append((f"  {cut_middle(origin, room, pen.glyphs)}", "dim"))
    return pen.fit(spans)

"""The allocation map: what lies where in an allocation (up) over the program (across); blank is free, or wasted.

The picture is painted once for its size with array operations, whatever the number of buffers; a cursor step paints
only the cursor's buffers over it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Floats, Int64s, ranges
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.memory.model import CATEGORIES, SpaceMemory
from tpuprof.tui.draw.axis import equal_runs
from tpuprof.tui.draw.buffers.words import short_shape
from tpuprof.tui.draw.format import binary_size, count
from tpuprof.tui.draw.pen import Pen, cut
from tpuprof.tui.draw.spans import Fill, Glyphs, Key, Line, Span, line_width
from tpuprof.tui.pages.memory.draw.graph import AXIS, axis_spans, column_of, point_columns, program_axis
from tpuprof.tui.pages.memory.fields.module import op_or_name

Tones = NDArray[np.uint8]

FREE, CROWDED, OWN = 0, 5, 6  # tones of a cell; 1 to 4 are for buffers, so that neighbours differ
_FILLS: tuple[Fill, ...] = ("page", "step", "module", "idle", "unknown", "view", "copy")
_LETTERS = " :=-%.@"
_WRITTEN, _LABELLED = 256, 16
"""Added to the code of a cell with a letter; cells from which on a line of an area has room for a label."""

_MOST_CELLS = 1 << 22
"""Cells painted at most: buffers that lie upon each other, against all rules, could ask for any number."""

Label = tuple[int, int, str]
"""A buffer's name on its area: from which cell of a line on, how many cells there are for it, and the text."""


@dataclass(frozen=True, slots=True, eq=False)
class PaintedMap:
    """A picture of an allocation.

    Attributes:
        size_bytes: where its last buffer ends.
        buffers: how many lie in it in the course of the program.
        tone: uint8[rows, columns], from the bottom up; see `FREE`.
        row_bytes: what a row of the picture stands for.
        labels: of each line, names on the areas that are large enough.
    """

    allocation: int
    size_bytes: int
    buffers: int
    tone: Tones
    row_bytes: float
    labels: tuple[tuple[Label, ...], ...]


def map_allocation(page: SpaceMemory, rows: Int64s) -> int | None:
    """The allocation to show: that of these buffers where it is shared, else the one with most in temporaries."""
    live_ranges = page.live_ranges
    is_placed = live_ranges.offset_bytes >= 0
    for allocation in live_ranges.allocation[rows[:1]].tolist():
        if allocation >= 0 and int(((live_ranges.allocation == allocation) & is_placed).sum()) > 1:
            return int(allocation)
    is_in_use = is_placed & (live_ranges.allocation >= 0)
    temporary = is_in_use & (live_ranges.category >= CATEGORIES.index("temporary"))
    chosen = np.flatnonzero(temporary if temporary.any() else is_in_use)
    if not len(chosen):
        return None
    ends = live_ranges.offset_bytes[chosen].astype(np.float64) + live_ranges.size_bytes[chosen]
    return int(live_ranges.allocation[chosen[int(ends.argmax())]])


def paint_map(page: SpaceMemory, allocation: int, columns: int, lines: int, steps: int = 2) -> PaintedMap:
    """The picture of an allocation, `steps` rows to a line; a column shows its point with the most in use."""
    rows = lines * steps
    live_ranges = page.live_ranges
    own = np.flatnonzero(
        (live_ranges.allocation == allocation) & (live_ranges.offset_bytes >= 0) & (live_ranges.size_bytes > 0)
    )
    low = live_ranges.offset_bytes[own].astype(np.float64)
    high = low + live_ranges.size_bytes[own]
    size = float(high.max(initial=1.0))
    cell = size / max(1, rows)
    top = point_columns(page, columns).top
    left, right = np.searchsorted(top, live_ranges.born[own]), np.searchsorted(top, live_ranges.dies[own])
    buffer_at = np.full((rows, columns), -1, np.int64)
    is_large, is_shown = high - low >= cell / 2, left < right
    large, small = is_large & is_shown, ~is_large & is_shown
    _paint(buffer_at, own[large], low[large], high[large], left[large], right[large], cell)
    row = np.minimum((low[small] / cell).astype(np.int64), rows - 1)
    filled = _covered(row, left[small], right[small], high[small] - low[small], rows, columns)
    tone = _tones(buffer_at)
    tone[(buffer_at < 0) & (filled >= cell / 4)] = CROWDED
    return PaintedMap(allocation, int(size), len(own), tone, cell, _labels(page, buffer_at, steps))


def _labels(page: SpaceMemory, buffer_at: Int64s, steps: int) -> tuple[tuple[Label, ...], ...]:
    """A label for each buffer that fills cells enough: in the middle one of its longest lines."""
    areas: dict[int, list[tuple[int, int, int]]] = {}
    lines = len(buffer_at) // steps
    for line in range(lines):
        below, above = buffer_at[line * steps], buffer_at[line * steps + steps - 1]
        value = np.where(below == above, below, -1)
        for begin, end in equal_runs(value):
            if end - begin >= _LABELLED and value[begin] >= 0:
                areas.setdefault(int(value[begin]), []).append((end - begin, line, begin))
    labels: list[list[Label]] = [[] for _ in range(lines)]
    for row, stretches in areas.items():
        longest = [stretch for stretch in stretches if stretch[0] == max(stretches)[0]]
        cells, line, begin = longest[len(longest) // 2]
        buffer = page.buffers[row]
        words = f"{binary_size(buffer.size_bytes)} {short_shape(buffer.shape)} {op_or_name(buffer)}"
        labels[line].append((begin, cells, words))
    return tuple(map(tuple, labels))


def _paint(canvas: Int64s, values: Int64s, low: Floats, high: Floats, left: Int64s, right: Int64s, cell: float) -> None:
    """Rectangles of values, larger ones over smaller ones."""
    rows = len(canvas)
    bottom = np.minimum(np.rint(low / cell).astype(np.int64), rows - 1)
    upper = np.clip(np.rint(high / cell).astype(np.int64), bottom + 1, rows)
    order = np.argsort(low - high, kind="stable")  # the largest first
    cells = np.cumsum(((upper - bottom) * (right - left))[order])
    order = order[: max(1, int(np.searchsorted(cells, _MOST_CELLS)))][::-1]
    of, y = ranges(bottom[order], upper[order])
    rectangle = order[of]
    of, x = ranges(left[rectangle], right[rectangle])
    canvas[y[of], x] = values[rectangle[of]]


def _covered(row: Int64s, left: Int64s, right: Int64s, size: Floats, rows: int, columns: int) -> Floats:
    """float64[rows, columns]: bytes of each cell that small buffers cover."""
    width = columns + 1
    steps = np.bincount(row * width + left, size, rows * width) - np.bincount(row * width + right, size, rows * width)
    return np.cumsum(steps.reshape(rows, width), axis=1)[:, :columns]


def _tones(buffer_at: Int64s) -> Tones:
    """A tone for each buffer, other than its neighbours' as far as four tones allow."""
    shown, flat = np.unique(buffer_at, return_inverse=True)
    index = flat.reshape(buffer_at.shape)
    across = np.stack([index[:, :-1].ravel(), index[:, 1:].ravel()])
    upward = np.stack([index[:-1].ravel(), index[1:].ravel()])
    pairs = np.concatenate([across, upward], axis=1)
    pairs = np.unique(np.sort(pairs[:, pairs[0] != pairs[1]], axis=0), axis=1)
    neighbours: list[list[int]] = [[] for _ in shown]
    for earlier, later in pairs.T.tolist():
        neighbours[later].append(earlier)  # of each pair the first one gets its tone first
    tones: list[int] = []
    for number, value in enumerate(shown.tolist()):
        taken = {tones[earlier] for earlier in neighbours[number]}
        turn = [(number + shift) % 4 + 1 for shift in range(4)]
        tones.append(FREE if value < 0 else next((tone for tone in turn if tone not in taken), turn[0]))
    return np.array(tones, np.uint8)[index]


def map_lines(
    page: SpaceMemory, painted: PaintedMap | None, rows: Int64s, point: int, pen: Pen, height: int, backward: int | None
) -> list[Line]:
    """A line on the allocation, `height` - 2 rows of cells in which the buffers of the rows stand out, and the axis.

    Args are those of `graph_lines`.
    """
    cells = max(1, pen.width - AXIS)
    if painted is None:
        words = " no allocation map: the module does not say where its buffers are"
        return [pen.fit([(words if line == 0 else "", "dim")]) for line in range(height)]
    area, tone = max(1, height - 2), _highlighted(page, painted, rows)
    steps = len(tone) // area
    lines = [_title(page, painted, rows, cells, pen)]
    for row in range(area - 1, -1, -1):
        spans = axis_spans(binary_size(int(painted.row_bytes * (row + 1) * steps)), row, area, pen.glyphs)
        spans += _cells(tone[row * steps], tone[row * steps + steps - 1], painted.labels[row], pen.glyphs)
        lines.append(pen.fit(spans))
    return [*lines, program_axis(page, point, cells, pen, backward)]


def _highlighted(page: SpaceMemory, painted: PaintedMap, rows: Int64s) -> Tones:
    """The picture with these buffers in their own tone; one too low or too short for a cell takes one all the same."""
    live_ranges = page.live_ranges
    rows = rows[(live_ranges.allocation[rows] == painted.allocation) & (live_ranges.offset_bytes[rows] >= 0)]
    if not len(rows):
        return painted.tone
    columns = point_columns(page, painted.tone.shape[1])
    left = np.searchsorted(columns.last, live_ranges.born[rows], side="right")
    right = np.searchsorted(columns.first, live_ranges.dies[rows], side="left")
    canvas, value = painted.tone.astype(np.int64), np.full(len(rows), OWN, np.int64)
    low = live_ranges.offset_bytes[rows].astype(np.float64)
    _paint(canvas, value, low, low + live_ranges.size_bytes[rows], left, np.maximum(left, right), painted.row_bytes)
    return canvas.astype(np.uint8)


def _cells(lower: Tones, upper: Tones, labels: tuple[Label, ...], glyphs: Glyphs) -> list[Span]:
    """A line of cells, each with a lower and an upper half; in letters they are the same."""
    code = lower.astype(np.int64) * 16 + upper
    if glyphs.letters:
        signs = [_LETTERS[below or above] for below, above in zip(lower.tolist(), upper.tolist(), strict=True)]
    else:
        signs = np.where(lower != upper, glyphs.column[4], np.where(lower == FREE, " ", glyphs.full)).tolist()
    for begin, cells, text in labels:
        words = cut(text, cells - 2, glyphs)
        for cell, character in enumerate(words, begin + 1):
            if lower[cell] == upper[cell]:
                signs[cell] = character
                code[cell] += _WRITTEN
    spans: list[Span] = []
    for begin, end in equal_runs(code):
        below, above = _FILLS[lower[begin]], _FILLS[upper[begin]]
        words_only = glyphs.letters or code[begin] >= _WRITTEN or lower[begin] == upper[begin] == FREE
        key: Key = ("words", below if below != "page" else above) if words_only else (below, above)
        spans.append(("".join(signs[begin:end]), key))
    return spans


def _title(page: SpaceMemory, painted: PaintedMap, rows: Int64s, cells: int, pen: Pen) -> Line:
    """Which allocation it is, and whether the cursor's buffer lies in it."""
    words = f" allocation {painted.allocation}: {binary_size(painted.size_bytes)}, {count(painted.buffers)} buffers"
    spans: list[Span] = [(words, "strong"), ("; blank is free", "dim")]
    if len(rows) and not bool((page.live_ranges.allocation[rows] == painted.allocation).any()):
        spans.append(("; the cursor's buffer lies in another", "warn"))
    used, column = line_width(tuple(spans)), AXIS + column_of(page, cells, page.peak_position)
    if used < column and column + len(pen.glyphs.down) + len(" peak") <= pen.width:
        spans += [(" " * (column - used), "text"), (pen.glyphs.down, "mark"), (" peak", "dim")]
    return pen.fit(spans)

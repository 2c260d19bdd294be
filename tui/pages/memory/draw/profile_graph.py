"""Memory over time in cells: stack, heap and what is free, one on the other, with the runs of programs below."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.memory.allocators.model import AllocatorProfile, DeviceModuleRuns
from tpuprof.tui.draw.axis import cells_at, tick_line, ticks
from tpuprof.tui.draw.buffers.sizes import binary_size
from tpuprof.tui.draw.layout import cut, joined
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Fill, Glyphs, Key, Line, Span, StyleKey

AXIS = 10  # cells left of the columns: a size, and a rule

PARTS: tuple[tuple[str, Fill, StyleKey, str], ...] = (
    ("stack", "compute", "class.compute", "S"),
    ("heap", "vector", "class.vector", "H"),
    ("free", "step", "dim", "."),
)
"""Name, fill, style and letter of what lies on one another, from the bottom on."""

_BELOW_CAPACITY = 0.04  # where the peak is less than this share of the capacity, the axis ends above the peak
_FRAGMENTATION_TOPS = (1, 2, 5, 10, 20, 50, 100)  # percentages that the curve of fragmentation may stand below
_NAMED_RUNS = 400  # runs in a window up to which their names are drawn


@dataclass(frozen=True, slots=True)
class AllocatorScene:
    """What a graph shows.

    Attributes:
        edges: int64[cells + 1], borders of the columns in time.
        event: int64[cells], the event that each column shows: of those in it (and the one before) the one with most in
            use; -1 for a column before the first event.
        top_bytes: what the graph's height stands for.
        reaches_capacity: whether that is the capacity.
    """

    edges: Int64s
    event: Int64s
    top_bytes: int
    reaches_capacity: bool

    @property
    def cells(self) -> int:
        """Columns of the graph."""
        return len(self.event)

    def cell_of(self, time_ps: int) -> int:
        """The column of an instant; one outside is in the first or last."""
        return cells_at(self.edges, (time_ps,))[0]


def scene(allocator: AllocatorProfile, cells: int) -> AllocatorScene:
    """The columns of a graph over the whole capture, so many of them."""
    first_ps, last_ps = int(allocator.time_ps[0]), int(allocator.time_ps[-1])
    span = max(last_ps + 1 - first_ps, cells)
    edges = np.array([first_ps + span * cell // cells for cell in range(cells + 1)], np.int64)
    peak, capacity = allocator.peak_bytes, allocator.capacity_bytes
    is_near = capacity is not None and peak >= _BELOW_CAPACITY * capacity
    top = capacity if capacity is not None and is_near else peak * 5 // 4
    return AllocatorScene(edges, _largest(allocator, edges), max(top, 1), is_near)


def in_use(allocator: AllocatorProfile, begin: int, end: int) -> Int64s:
    """int64: stack and heap after each event from `begin` up to `end`; -1 where neither is known."""
    stack, heap = allocator.stack_bytes[begin:end], allocator.heap_bytes[begin:end]
    return np.where((stack < 0) & (heap < 0), np.int64(-1), np.maximum(stack, 0) + np.maximum(heap, 0))


def _largest(allocator: AllocatorProfile, edges: Int64s) -> Int64s:
    """int64[cells]: the event that each column shows, see `AllocatorScene`."""
    time = allocator.time_ps
    borders = np.searchsorted(time, edges, side="left")
    begins_anew = np.searchsorted(time, edges[:-1], side="right") > borders[:-1]
    # what the event before a column left holds until the next one
    first = np.maximum(borders[:-1] - ~begins_anew, 0)
    events = np.full(len(first), -1, np.int64)
    for cell, (begin, end) in enumerate(zip(first.tolist(), borders[1:].tolist(), strict=True)):
        if end > begin:
            used = in_use(allocator, begin, end)
            events[cell] = begin + len(used) - 1 - int(np.argmax(used[::-1]))
    return events


def graph_lines(
    allocator: AllocatorProfile, shown: AllocatorScene, rows: int, glyphs: Glyphs, cursor: int | None
) -> list[Line]:
    """The columns, `rows` high, beside their axis; the cursor's is pointed at."""
    parts = _eighths(allocator, shown, rows)
    lines = []
    for row in range(rows - 1, -1, -1):
        cells = [_cell(parts[:, :, column], row, glyphs) for column in range(shown.cells)]
        if cursor is not None:
            text, _ = cells[cursor]
            cells[cursor] = (glyphs.vertical if text in {" ", PARTS[2][3]} else text, "cursor")
        lines.append((*_label(shown, row, rows, glyphs), *joined(cells)))
    return lines


def _eighths(allocator: AllocatorProfile, shown: AllocatorScene, rows: int) -> Int64s:
    """int64[2, 3, cells]: where stack, heap and free begin and end, in eighths of a cell from the bottom on.

    What is not zero takes an eighth at least.
    """
    events = np.maximum(shown.event, 0)
    sizes = np.stack([allocator.stack_bytes[events], allocator.heap_bytes[events], allocator.free_bytes[events]])
    sizes = np.where((sizes > 0) & (shown.event >= 0), sizes, 0)
    height = rows * 8
    shares = np.minimum(np.cumsum(sizes.astype(np.float64), axis=0) / shown.top_bytes, 1.0)
    ends = np.rint(shares * height).astype(np.int64)
    begins = np.concatenate([np.zeros((1, shown.cells), np.int64), ends[:-1]])
    for part in range(2):  # memory in use shows, be it ever so little
        ends[part] = np.where((sizes[part] > 0) & (ends[part] <= begins[part]), begins[part] + 1, ends[part])
        begins[part + 1] = ends[part]
        ends[part + 1] = np.maximum(ends[part + 1], ends[part])
    over = np.maximum(ends[1] - height, 0)  # a heap too small to show lies at the very top: the stack makes room
    borders: Int64s = np.stack([begins, ends]) - over
    return borders


def _cell(parts: Int64s, row: int, glyphs: Glyphs) -> tuple[str, Key]:
    """A cell of a column: at most two of the parts, the lower one as the ink."""
    low, high = row * 8, row * 8 + 8
    inside = np.clip(np.minimum(parts[1], high) - np.maximum(parts[0], low), 0, 8).tolist()
    stack, heap = inside[:2]
    if stack and heap and (glyphs.letters or stack + heap < 8):
        # no room for both: the heap, which is what moves, unless more of either shows elsewhere
        ends_here = row > 0 and (stack + heap < 8 or int(parts[1, 1] - parts[0, 1]) == heap)
        kept = 1 if ends_here or heap > stack else 0
        inside[kept], inside[1 - kept] = stack + heap, 0
        if glyphs.letters and ends_here:
            inside[kept] = heap
    if glyphs.letters:
        return _letter(inside)
    fills: list[tuple[Fill, int]] = [(PARTS[part][1], size) for part, size in enumerate(inside)]
    (lower, eighths), *above = [fill for fill in (*fills, ("page", 8 - sum(inside))) if fill[1] > 0]
    if above:  # of what is free and ends within the cell too, the end does not show
        return glyphs.column[max(1, min(7, eighths))], (lower, above[0][0])
    return (" ", "text") if lower == "page" else (glyphs.full, (lower, "page"))


def _letter(inside: Sequence[int]) -> tuple[str, Key]:
    """A cell without colours: the letter of what is in use in it, small where that fills less than half."""
    for part in (1, 0):
        if inside[part]:
            letter = PARTS[part][3]
            return (letter if inside[part] >= 4 else letter.lower()), PARTS[part][2]
    return (PARTS[2][3], PARTS[2][2]) if inside[2] else (" ", "text")


def _label(shown: AllocatorScene, row: int, rows: int, glyphs: Glyphs) -> list[Span]:
    """The axis beside a row: the size at the row's upper edge, 0 at the lowest one."""
    apart, is_top = max(1, -(-rows // 5)), row == rows - 1
    has_size = (rows - 1 - row) % apart == 0 and (row > apart // 2 or is_top)
    text = "0" if row == 0 and not is_top else ""
    if has_size and not text and shown.top_bytes >= rows:  # else nothing is known to be in use
        text = binary_size(shown.top_bytes * (row + 1) // rows)
    key: StyleKey = "strong" if is_top and shown.reaches_capacity else "dim"
    return [(f"{text:>{AXIS - 1}}", key), (glyphs.vertical, "rule")]


def fragmentation_lines(allocator: AllocatorProfile, shown: AllocatorScene, rows: int, glyphs: Glyphs) -> list[Line]:
    """How fragmented free memory is after the event that each column shows, `rows` high, from 0 to a round share."""
    share = np.where(shown.event >= 0, allocator.fragmentation[np.maximum(shown.event, 0)], np.nan)
    known = np.isfinite(share)
    most = 100 * float(share[known].max(initial=0.0))
    top = next((scale for scale in _FRAGMENTATION_TOPS if most < scale), 100)
    level = np.where(known, share, 0.0) * 100 / top * rows * 8
    level = np.where(known & (share > 0), np.clip(np.rint(level), 1, rows * 8), 0).astype(np.int64)
    lines: list[Line] = []
    for row in range(rows - 1, -1, -1):
        label = f"frag {top}%" if row == rows - 1 else "0" if row == 0 else ""
        text = "".join(glyphs.column[eighths] for eighths in np.clip(level - row * 8, 0, 8).tolist())
        lines.append(((f"{label:>{AXIS - 1}}", "dim"), (glyphs.vertical, "rule"), (text, ("unknown", "page"))))
    return lines


def mark_row(allocator: AllocatorProfile, shown: AllocatorScene, cursor: int | None, glyphs: Glyphs) -> Line:
    """The floor of the graph, where the peak and the cursor are pointed at."""
    cells: list[tuple[str, Key]] = [(glyphs.horizontal, "rule")] * shown.cells
    peak = shown.cell_of(allocator.peak_time_ps)
    name = " peak "
    begin = peak + 1 if peak + 1 + len(name) <= shown.cells else peak - len(name)
    if begin >= 0:
        cells[begin : begin + len(name)] = [(letter, "bad") for letter in name]
    cells[peak] = (glyphs.up, "bad")
    if cursor is not None:
        cells[cursor] = (glyphs.up, "mark")
    return ((" " * (AXIS - 1), "text"), ("+" if glyphs.is_ascii else "└", "rule"), *joined(cells))


def time_row(shown: AllocatorScene, pen: Pen) -> Line:
    """Round instants of the trace's clock."""
    marked = ticks(int(shown.edges[0]), int(shown.edges[-1]), 0, shown.cells, pen.glyphs.is_ascii)
    return pen.fit([("time".rjust(AXIS - 1) + " ", "dim"), *tick_line(marked, shown.edges, pen.glyphs)])


def runs_row(runs: DeviceModuleRuns, rows: Int64s, shown: AllocatorScene, pen: Pen) -> Line:
    """When programs ran on the device, as rows of `runs` by start: a band, with the names of those that have room."""
    start, end = runs.start_ps[rows], runs.end_ps[rows]
    before = np.searchsorted(start, shown.edges[1:], side="left")
    reach = np.append(np.iinfo(np.int64).min, np.maximum.accumulate(end))  # of the runs before each
    band: Span = ("=", "dim") if pen.glyphs.letters else (pen.glyphs.full, ("module", "page"))
    cells = [band if is_covered else (" ", "text") for is_covered in (reach[before] > shown.edges[:-1]).tolist()]
    inside = np.flatnonzero((end > shown.edges[0]) & (start < shown.edges[-1]))
    for index in inside.tolist() if len(inside) <= _NAMED_RUNS else ():
        _name_run(runs, int(rows[index]), shown, cells, pen)
    return pen.fit([("runs".rjust(AXIS - 1), "dim"), (" ", "text"), *joined(cells)])


def _name_run(runs: DeviceModuleRuns, row: int, shown: AllocatorScene, cells: list[tuple[str, Key]], pen: Pen) -> None:
    """Writes a program's name on its band where some letters of it fit."""
    first, last = cells_at(shown.edges, (int(runs.start_ps[row]), int(runs.end_ps[row])))
    room = last - first - 1
    name = pen.text(runs.names[runs.name[row]].partition("(")[0])
    if room < min(6, len(name)):
        return
    for cell, letter in enumerate(cut(name, room, pen.glyphs), first + 1):
        cells[cell] = (letter, "text" if pen.glyphs.letters else "on.module")


def runs_at(runs: DeviceModuleRuns, rows: NDArray[np.int64], begin_ps: int, end_ps: int) -> tuple[str, ...]:
    """Names of the programs that run in an interval, each once; at most four."""
    running = rows[(runs.start_ps[rows] < end_ps) & (runs.end_ps[rows] > begin_ps)]
    labels = (runs.names[index] for index in dict.fromkeys(runs.name[running].tolist()))
    return tuple(dict.fromkeys(label.partition("(")[0] for label in labels))[:4]

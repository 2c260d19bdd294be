"""Memory over time in cells: stack, heap and what is free, one on the other, with the runs of programs below."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.memory.allocators.model import AllocatorProfile, DeviceModuleRuns
from tpuprof.tui.draw.axis import cells_at, tick_line, ticks
from tpuprof.tui.draw.buffers import fills
from tpuprof.tui.draw.pen import Pen, cut, joined
from tpuprof.tui.draw.spans import Glyphs, Key, Line, Span
from tpuprof.tui.pages.memory.draw.graph import AXIS, Scale, axis_spans, scale_of, stacked_row

PARTS = (("stack", fills.STACK), ("heap", fills.HEAP), ("free", fills.UNUSED))
"""Names and areas of what lies on one another, from the bottom on."""

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
    scale = scale_of(shown.top_bytes, rows)
    edges, free = _edges(allocator, shown, scale, 8 if glyphs.letters else 1)
    codes = np.repeat([[fills.STACK], [fills.HEAP]], shown.cells, axis=1)
    lines = []
    for row in range(rows - 1, -1, -1):
        empty = np.where(free > row * 8, fills.UNUSED, fills.FREE)
        spans = stacked_row(edges, codes, empty, row, glyphs, 1 if row else None)
        cells = [(sign, key) for text, key in spans for sign in text]
        if cursor is not None:
            text, _ = cells[cursor]
            cells[cursor] = (glyphs.vertical if text in {" ", "."} else text, "cursor")
        label = scale.label(row) if shown.top_bytes > 1 else ""  # else nothing is known to be in use
        lines.append((*axis_spans(label, row, rows, glyphs), *joined(cells)))
    return lines


def _edges(allocator: AllocatorProfile, shown: AllocatorScene, scale: Scale, step: int) -> tuple[Int64s, Int64s]:
    """int64[2, cells]: where stack and heap end, in eighths of a row; and int64[cells], where free memory ends.

    Each is a multiple of `step`. Memory in use takes one step at least.
    """
    events, height = np.maximum(shown.event, 0), scale.rows * 8
    sizes = np.stack([allocator.stack_bytes[events], allocator.heap_bytes[events], allocator.free_bytes[events]])
    sizes = np.where((sizes > 0) & (shown.event >= 0), sizes, 0)
    exact = np.cumsum(sizes.astype(np.float64), axis=0) / scale.row_bytes * 8
    stack, used, free = np.minimum(np.rint(exact / step) * step, height).astype(np.int64)
    least = step * (sizes[:2] > 0)
    used = np.minimum(np.maximum(used, least.sum(axis=0)), height)
    return np.stack([np.minimum(np.maximum(stack, least[0]), used - least[1]), used]), free


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

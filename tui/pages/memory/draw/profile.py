"""Memory over time, one allocator at a time: its figures, the graph, the cursor's column, and what the peak is made of.

Numbers in, lines out; what is asked for is in `MemoryProfileState`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted, examples
from tpuprof.parsers.memory.allocators.model import AllocatorProfile, DeviceModuleRuns, MemoryProfilePage
from tpuprof.tui.draw.axis import cells_at, tick_line, ticks
from tpuprof.tui.draw.buffers import fills
from tpuprof.tui.draw.format import UNKNOWN, binary_size, count, duration, percent
from tpuprof.tui.draw.pen import TALL, Composed, Pen, cut, filled, joined
from tpuprof.tui.draw.spans import Glyphs, Key, Line, Span, line_width
from tpuprof.tui.draw.table import Column, Listing, chosen_columns, header_line, row_lines
from tpuprof.tui.pages.memory.draw.graph import AXIS, Scale, axis_spans, scale_of, stacked_row
from tpuprof.tui.pages.memory.fields.allocators import AT_PEAK, SIZE, fragmentation_words
from tpuprof.tui.report.fields import screen_columns

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


_LOW, _WIDE = 16, 140
"""Rows below which the page is without runs, notes and the table's heading; cells from which on shapes have room."""

_MOST_GRAPH, _MOST_CURVE, _MOST_NOTES = 20, 3, 4
"""Rows of the tallest graph, of the curve of fragmentation where there is room, and lines of notes below them."""

_APART = "   "

TITLE = "Memory over time"

OF_PROGRAMS = (
    "This is the device's peak: arrays (heap) and memory reserved for loaded programs (stack). Page memory shows one "
    "program's peak."
)
"""Why this peak is another one than that of a program's buffers."""


@dataclass(frozen=True, slots=True)
class MemoryProfileState(Listing):
    """Where the reader is: at which of the page's allocators, by index, and at which instant, None for the peak."""

    allocator: int = 0
    cursor_ps: int | None = None


@dataclass(frozen=True, slots=True)
class ComposedMemoryProfile(Composed):
    """The page as lines, and what is where.

    Attributes:
        graph_line: the graph's first line; -1 without a graph.
        edges: borders in time of the columns right of `AXIS`, one more than columns; empty without a graph. The cursor
            goes to a column with any instant in it.
    """

    graph_line: int = -1
    graph_rows: int = 0
    edges: tuple[int, ...] = ()


def compose_memory_profile(
    page: MemoryProfilePage, runs: Sequence[DeviceModuleRuns], state: MemoryProfileState, pen: Pen, height: int
) -> ComposedMemoryProfile:
    """The page in so many lines, with a band of the runs of compiled modules on the device, where there are any."""
    if not page.allocators:
        return ComposedMemoryProfile(tuple(filled(empty_lines(page, pen), pen.width, height)), -1, 0, 0)
    index = min(max(state.allocator, 0), len(page.allocators) - 1)
    allocator = page.allocators[index]
    low = height < _LOW
    lines = fact_lines(allocator, pen, (index, len(page.allocators)), 2 if low else 3)
    band = None if low else band_of(allocator, runs)
    notes = pen.cut_after(note_lines(allocator, pen), _MOST_NOTES, "W")
    below = [] if low else [*notes, table_rule(allocator, pen)]
    curve = 0 if low or "fragmentation" in allocator.unknown else 1 if height < TALL else _MOST_CURVE
    rows, fixed = len(allocator.at_peak), len(lines) + 4 + (band is not None) + curve + len(below) + 1
    room = max(height - fixed, 2)
    graph_rows = min(max(-(-room // 2), room - max(rows, 1)), _MOST_GRAPH)
    list_rows = room - graph_rows
    shown = scene(allocator, max(1, pen.width - AXIS))
    graph_line = len(lines) + 1
    lines += graph_block(allocator, shown, graph_rows, pen, state.cursor_ps, band, low, curve)
    lines += below
    state = state.at(state.cursor, rows)
    first, row = len(lines) + 1, state.cursor
    top = state.shown_first(list_rows, rows)
    lines += table_lines(allocator, top, list_rows, row, pen)
    return ComposedMemoryProfile(
        lines=tuple(filled(lines, pen.width, height)),
        first_row_line=first if rows and first < height else -1,
        first=top,
        room=max(0, min(list_rows, rows - top)),
        graph_line=graph_line,
        graph_rows=graph_rows,
        edges=tuple(shown.edges.tolist()),
    )


def empty_lines(page: MemoryProfilePage, pen: Pen) -> list[Line]:
    """A page without allocators: why, and what to do."""
    blank: Line = pen.fit([])
    lead: list[Span] = [(" ", "text")]
    lines = [pen.rule(TITLE), blank, *pen.wrap(page.why_empty or UNKNOWN, "text", lead)]
    return lines + [line for warning in page.warnings for line in (blank, *pen.wrap(warning, "warn", lead))]


def fact_lines(allocator: AllocatorProfile, pen: Pen, place: tuple[int, int] = (0, 1), most: int = 3) -> list[Line]:
    """Which allocator, by index of how many, its peak, capacity, counts and fragmentation, in at most so many lines."""
    ascii_only, (index, many) = pen.glyphs.is_ascii, place
    lines: list[list[Span]] = [[(f" {pen.text(allocator.label)}", "strong")]]
    lines[0] += [(f" ({index + 1} of {many})", "dim")] if many > 1 else []
    for label, value, note in _facts(allocator, ascii_only):
        fact: Line = ((f"{label} ", "dim"), (value, "text" if value == UNKNOWN else "strong"), (note, "dim"))
        if line_width((*lines[-1], *fact)) + len(_APART) <= pen.width:
            lines[-1] += [(_APART, "text"), *fact]
        elif len(lines) < most:
            lines.append([(" ", "text"), *fact])
        else:
            break
    return [pen.fit(line) for line in lines]


def _facts(allocator: AllocatorProfile, ascii_only: bool) -> list[tuple[str, str, str]]:
    """Label, figure and what goes with it, the most important first."""
    peak = None if "peak_bytes" in allocator.unknown else allocator.peak_bytes
    capacity, lifetime = allocator.capacity_bytes, allocator.lifetime_peak_bytes
    share = f", {percent(100 * peak / capacity)} of {binary_size(capacity)}" if peak is not None and capacity else ""
    when = f" at {duration(allocator.peak_time_ps, ascii_only)}" if peak is not None else ""
    fragmentation = float(allocator.fragmentation[allocator.peak_index])
    has_headroom = capacity is not None and peak is not None
    return [
        ("peak", binary_size(peak), when + share),
        *([("capacity", binary_size(capacity), "")] if not share else []),
        *([("headroom", binary_size((capacity or 0) - (peak or 0)), "")] if has_headroom else []),
        ("lifetime peak of the heap", binary_size(lifetime), ""),
        ("fragmentation", percent(100 * fragmentation), ""),
        ("allocations", count(allocator.allocations), f", {count(allocator.deallocations)} freed"),
    ]


def note_lines(allocator: AllocatorProfile, pen: Pen) -> list[Line]:
    """What fragmentation means, why a line does not move, and what the table does not cover."""
    lacks = allocator.unknown.get("at_peak")
    left_out = f"The rows at the peak leave out {lacks}." if lacks else None
    of_programs = OF_PROGRAMS if allocator.id.isdigit() else None
    notes = (fragmentation_words(allocator), allocator.flat, left_out, of_programs)
    return pen.wrap_all(filter(None, notes), "dim", [(" ", "text")])


# --- the graph -----------------------------------------------------------------------------------------------------

Band = tuple[DeviceModuleRuns, Int64s]  # runs of modules, and which of them are on the device


def band_of(allocator: AllocatorProfile, runs: Sequence[DeviceModuleRuns]) -> Band | None:
    """The runs on the device whose memory it is; None where there are none."""
    return next(((of_host, rows) for of_host in runs if len(rows := of_host.on(allocator))), None)


def graph_block(
    allocator: AllocatorProfile,
    shown: AllocatorScene,
    rows: int,
    pen: Pen,
    cursor_ps: int | None = None,
    band: Band | None = None,
    says_flat: bool = False,
    curve: int = 1,
) -> list[Line]:
    """The graph under its title, above its axis and the line that reads it: four lines more than rows, five with runs.

    Args:
        rows, curve: height of the graph, and of the curve of fragmentation below it.
        cursor_ps: what the line reads; the peak where it is None.
        says_flat: the title says that a line which does not move is no fault, if there is no room for the note.
    """
    cursor = None if cursor_ps is None else shown.cell_of(cursor_ps)
    title = f"{TITLE}, flat: no fault" if says_flat and allocator.flat else TITLE
    return [
        _title(title, allocator, shown, pen),
        *map(pen.fit, graph_lines(allocator, shown, rows, pen.glyphs, cursor)),
        pen.fit(mark_row(allocator, shown, cursor, pen.glyphs)),
        *fragmentation_lines(allocator, shown, curve, pen.glyphs),
        *([runs_row(*band, shown, pen)] if band is not None else []),
        time_row(shown, pen),
        reading_line(allocator, shown, cursor, pen, band),
    ]


def _title(title: str, allocator: AllocatorProfile, shown: AllocatorScene, pen: Pen) -> Line:
    legend: list[Span] = [(" ", "text")]
    for name, area in PARTS:
        legend += [fills.sign_of(area, pen.glyphs), (f" {name} ", "dim")]
    if allocator.capacity_bytes is not None and not shown.reaches_capacity:
        legend.append((f"{pen.glyphs.dot} capacity {binary_size(allocator.capacity_bytes)} is above ", "dim"))
    head: list[Span] = [(f"{pen.glyphs.horizontal} ", "rule"), (title, "title"), (" ", "rule")]
    room = pen.width - line_width((*head, *legend)) - 1
    return pen.fit([*head, (pen.glyphs.horizontal * max(room, 0), "rule"), *legend, (pen.glyphs.horizontal, "rule")])


def reading_line(
    allocator: AllocatorProfile, shown: AllocatorScene, cursor: int | None, pen: Pen, band: Band | None = None
) -> Line:
    """The figures of the cursor's column (the event with most in use there), or of the peak."""
    ascii_only = pen.glyphs.is_ascii
    event = allocator.peak_index if cursor is None else int(shown.event[cursor])
    used = int(in_use(allocator, event, event + 1)[0])
    time_ps = int(allocator.time_ps[event])
    if cursor is None:
        spans: list[Span] = [(f" {pen.glyphs.up} ", "bad"), (f"peak, {duration(time_ps, ascii_only, 4)}", "strong")]
    else:
        time_ps = min(max(time_ps, int(shown.edges[cursor])), int(shown.edges[cursor + 1]) - 1)
        spans = [(f" {pen.glyphs.up} ", "mark"), (duration(time_ps, ascii_only, 4), "strong")]
    sizes = zip(PARTS, (allocator.stack_bytes, allocator.heap_bytes, allocator.free_bytes), strict=True)
    share = percent(100 * float(allocator.fragmentation[event]))
    metrics = [("in use", SIZE.words(used, ascii_only))]
    # most runtimes reserve no stack: then it needs no room
    shown_sizes = ((part[0], column) for part, column in sizes if part[0] != "stack" or column.any())
    metrics += [(name, SIZE.words(int(column[event]), ascii_only)) for name, column in shown_sizes]
    metrics.append(("fragmentation", share))
    if line_width(tuple(spans)) + sum(len(label) + len(value) + 3 for label, value in metrics) > pen.width:
        metrics = [*metrics[1:-1], ("frag", share)]  # what is in use is stack and heap together
    for label, value in metrics:
        spans += [(f"  {label} ", "dim"), (value, "text")]
    if band is not None:
        begin, end = (time_ps, time_ps + 1) if cursor is None else shown.edges[cursor : cursor + 2].tolist()
        running = runs_at(*band, begin, end)
        if running:
            spans.append((f"  {examples(running)} running", "dim"))
    return pen.fit(spans)


def table_rule(allocator: AllocatorProfile, pen: Pen) -> Line:
    """The heading of the table."""
    rows = allocator.at_peak
    kinds = f"{counted(len(rows), 'kind')}, {binary_size(sum(row.total_bytes for row in rows))}" if rows else "nothing"
    return pen.rule("In use at the peak", kinds)


def table_lines(allocator: AllocatorProfile, top: int, rows: int, selected: int | None, pen: Pen) -> list[Line]:
    """Titles of the columns that fit, and at most so many rows from `top` on; a sentence where nothing is in use."""
    columns = chosen_columns(peak_columns(allocator, pen), pen.width)
    shown = row_lines(columns, range(top, min(top + rows, len(allocator.at_peak))), selected, pen)
    if not allocator.at_peak:
        shown = [pen.fit([("  What is in use at the peak is unknown.", "dim")])][:rows]
    return [header_line(columns, pen), *shown]


def peak_columns(allocator: AllocatorProfile, pen: Pen) -> list[Column]:
    """Columns of the table, the most important first; those that no row has anything for are left out."""
    optional, rows = ("region", "data_type", "shape"), allocator.at_peak
    looks: dict[str, Mapping[str, Any]] = {
        key: {"width": 42} if key == "shape" and pen.width >= _WIDE else {}
        for key in AT_PEAK.screen
        if key not in optional or any(getattr(row, key) for row in rows)
    }
    return screen_columns(AT_PEAK, allocator, pen.glyphs, looks)


def columns_between(composed: ComposedMemoryProfile, cursor_ps: int | None, by: int, default_ps: int) -> int:
    """The instant so many columns on from the cursor, or without one from `default_ps`, within the graph."""
    edges = composed.edges
    column = bisect_right(edges, default_ps if cursor_ps is None else cursor_ps) - 1
    return edges[min(max(column + by, 0), len(edges) - 2)]

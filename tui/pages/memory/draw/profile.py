"""Memory over time, one allocator at a time: its figures, the graph, the cursor's column, and what the peak is made of.

Numbers in, lines out; what is asked for is in `MemoryProfileState`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted, examples
from tpuprof.parsers.memory.allocators.model import AllocatorProfile, DeviceModuleRuns, MemoryProfilePage
from tpuprof.tui.draw.buffers import fills
from tpuprof.tui.draw.format import UNKNOWN, binary_size, count, duration, percent
from tpuprof.tui.draw.pen import TALL, Composed, Pen, filled
from tpuprof.tui.draw.spans import Line, Span, line_width
from tpuprof.tui.draw.table import Column, Listing, chosen_columns, header_line, row_lines
from tpuprof.tui.pages.memory.draw import profile_graph
from tpuprof.tui.pages.memory.draw.graph import AXIS
from tpuprof.tui.pages.memory.draw.profile_graph import PARTS, AllocatorScene, scene
from tpuprof.tui.pages.memory.fields.allocators import AT_PEAK, SIZE, fragmentation_words
from tpuprof.tui.report.fields import screen_columns

_LOW, _WIDE = 16, 140
"""Rows below which the page is without runs, notes and the table's heading; cells from which on shapes have room."""

_MOST_GRAPH, _MOST_CURVE, _MOST_NOTES = 20, 3, 4
"""Rows of the tallest graph, of the curve of fragmentation where there is room, and lines of notes below them."""

_APART = "   "

TITLE = "Memory over time"

OF_PROGRAMS = (
    "This peak is that of the device: arrays (heap) and the memory reserved for loaded programs (stack). The peak "
    "of the buffers is that of one program."
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
    notes = pen.cut_after(note_lines(allocator, pen), _MOST_NOTES, "w")
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
        *map(pen.fit, profile_graph.graph_lines(allocator, shown, rows, pen.glyphs, cursor)),
        pen.fit(profile_graph.mark_row(allocator, shown, cursor, pen.glyphs)),
        *profile_graph.fragmentation_lines(allocator, shown, curve, pen.glyphs),
        *([profile_graph.runs_row(*band, shown, pen)] if band is not None else []),
        profile_graph.time_row(shown, pen),
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
    used = int(profile_graph.in_use(allocator, event, event + 1)[0])
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
        running = profile_graph.runs_at(*band, begin, end)
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

"""The memory tab in cells: the peak, the working set over the program, the buffers at a point, and a card of one."""

from __future__ import annotations

import numpy as np

from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.memory.model import Buffer, SpaceMemory
from tpuprof.parsers.memory.modules.groups import BufferGroup
from tpuprof.parsers.memory.summary import SpaceSummary
from tpuprof.tui.draw.buffers import words as buffer_words
from tpuprof.tui.draw.buffers.words import NAMED, PADDED, WASTED, expansion_style
from tpuprof.tui.draw.format import UNKNOWN, binary_size, count, percent
from tpuprof.tui.draw.pen import Card, Composed, Pen, filled, gutter_lines, hstack
from tpuprof.tui.draw.spans import Glyphs, Line, Span, StyleKey
from tpuprof.tui.pages.memory.draw.graph import AXIS, graph_lines, legend
from tpuprof.tui.pages.memory.draw.header import header_lines
from tpuprof.tui.pages.memory.draw.map import PaintedMap, map_allocation, map_lines, paint_map
from tpuprof.tui.pages.memory.draw.table import MemoryList, MemoryState, list_heading, table_lines
from tpuprof.tui.pages.memory.fields.module import SMALL, short_op

WIDE, GUTTER = 130, 3  # cells from which on the card stands beside the list, and between them
ROOMY = 18  # lines from which on a line says what the band is
_BELOW = 4  # lines below the graph that are not rows of the list
_CARD = 16  # lines that the card beside the list has in any case


@dataclass(frozen=True, slots=True)
class ComposedMemory(Composed):
    """The page in lines, and what lies where on it.

    Attributes:
        list_cells: the list's width; what stands right of it is the card.
        graph_line: the first line of the graph's or the map's area, without the peak's line.
        graph_lines: lines of that area; 0 where there is none.
        columns: cells of it, right of `graph.AXIS`, for `point_at` and `column_of`.
        painted: the map, to be handed in for the next frame.
    """

    list_cells: int
    graph_line: int
    graph_lines: int
    columns: int
    painted: PaintedMap | None = None


def compose_memory(
    page: SpaceMemory,
    listed: MemoryList,
    state: MemoryState,
    title: str,
    pen: Pen,
    height: int,
    painted: PaintedMap | None = None,
    backward: int | None = None,
    summary: SpaceSummary | None = None,
) -> ComposedMemory:
    """The page in exactly `height` lines of `width` cells.

    Args:
        title: stands at the left of the first line; the module's name without it.
        painted: the last frame's map, used again where it is of the same allocation and size.
        backward: the point at which the backward pass begins (`landmarks.backward_from`), None for no mark.
        summary: None while it is not known.
    """
    state = state.at(state.cursor, len(listed))
    row = state.cursor
    rows = listed.rows_of(row)
    lines = [*header_lines(page, title, pen, summary), *_warnings(page, pen, height)]
    cells = max(1, pen.width - AXIS)
    graph_height = _graph_height(
        page, height - len(lines), max(len(page.buffers), _CARD if pen.width >= WIDE else 0), state.show_map
    )
    graph_first, area = len(lines) + 1, 0
    if page.points == 1:
        lines += _no_trace(page, pen)
    elif graph_height:
        area = graph_height - 2
        if state.show_map:
            painted = _painted(page, rows, cells, area, pen.glyphs, painted)
            lines += map_lines(page, painted, rows, state.point, pen, graph_height, backward)
        else:
            lines += graph_lines(page, state.point, rows, pen, graph_height, backward)
        if height >= ROOMY:
            lines.append(legend(page, rows, *_name(page, listed, row), pen))
    lines.append(list_heading(page, listed, pen))
    first_row_line, below = len(lines) + 1, max(0, height - len(lines))
    list_rows = max(1, below - 1)
    top = state.shown_first(list_rows, len(listed))
    card_cells = min(64, pen.width * 2 // 5) if pen.width >= WIDE else 0
    list_cells = pen.width - card_cells - GUTTER if card_cells else pen.width
    table = table_lines(page, listed, row, top, pen.at(list_cells), below)
    if card_cells:
        entry = entry_card(page, listed, row, pen.at(card_cells), summary)
        card = pen.at(card_cells).shortened(entry, below)
        table = hstack((table, gutter_lines(below, pen.glyphs), card), (list_cells, GUTTER, card_cells))
    lines += table
    return ComposedMemory(
        lines=tuple(pen.fit(line) for line in filled(lines, pen.width, height)),
        first_row_line=first_row_line,
        first=top,
        room=list_rows,
        list_cells=list_cells,
        graph_line=graph_first,
        graph_lines=area,
        columns=cells,
        painted=painted,
    )


def entry_card(
    page: SpaceMemory, listed: MemoryList, entry: int, pen: Pen, summary: SpaceSummary | None = None
) -> list[Line]:
    """The card of an entry of the list, a buffer or a group."""
    group, row = listed.group_of(entry), listed.row_of(entry)
    if group is not None:
        return group_card(page, group, pen)
    if row is None:
        return []
    return buffer_card(page, row, pen, listed.state.point, None if summary is None else summary.owners.get(row))


def _graph_height(page: SpaceMemory, room: int, rows: int, is_map: bool) -> int:
    """Lines for the graph with its two axes: the list gets the larger part, if it has as many rows, the map half."""
    wanted = min(room // 2, 30) if is_map else max(min(room * 2 // 5, 16), min(room - _BELOW - rows, 24))
    return max(4 if room >= 9 else 3, wanted) if page.points > 1 else 0


def _painted(
    page: SpaceMemory, rows: Int64s, columns: int, area: int, glyphs: Glyphs, painted: PaintedMap | None
) -> PaintedMap | None:
    """The map for this size, two rows to a line but in letters; painted anew only where it must be."""
    allocation, steps = map_allocation(page, rows), 1 if glyphs.letters else 2
    if painted and painted.allocation == allocation and painted.tone.shape == (area * steps, columns):
        return painted
    return None if allocation is None else paint_map(page, allocation, columns, area, steps)


def _name(page: SpaceMemory, listed: MemoryList, entry: int) -> tuple[str, str]:
    group, row = listed.group_of(entry), listed.row_of(entry)
    if group is not None:
        return group.name, counted(len(group.rows), "buffer")
    buffer = None if row is None else page.buffers[row]
    return ("", "") if buffer is None else (buffer.name, short_op(buffer.framework_op or ""))


def _warnings(page: SpaceMemory, pen: Pen, height: int) -> list[Line]:
    """The first warning, and how many more there are, where there is room for it."""
    if not page.warnings or height < ROOMY:
        return []
    first, *others = page.warnings
    more = f" (and {len(others)} more)" if others else ""
    return [pen.fit([(" ! ", "warn"), (first + more, "text")])]


def _no_trace(page: SpaceMemory, pen: Pen) -> list[Line]:
    why = page.unknown.get("peak_instruction") or "the module has no heap trace of this memory"
    words = f"No working set over the program: {why.rstrip('.')}. The buffers below are in memory throughout."
    return pen.narrower(1).wrap(words, "dim", [(" ", "text")])[:2]


COMPARED = 256  # buffers of one size among which those of one shape are looked for
_BAR = 16


def buffer_card(page: SpaceMemory, row: int, pen: Pen, point: int, owner: str | None = None) -> list[Line]:
    """Everything about one buffer, what matters most first.

    Args:
        row: of `page.live_ranges`.
        point: where to count buffers of the same shape; where the buffer is not in memory then, the peak or its birth.
        owner: whose it is, by the account of memory; None where that is not known (yet).
    """
    card, buffer = Card(pen), page.buffers[row]
    card.head(buffer.name, (buffer_words.CATEGORY_PHRASES[buffer.category], buffer.opcode or "opcode unknown"))
    _sizes(card, page, buffer)
    card.known("whose", owner, "strong")
    card.known("shape", buffer.shape, "strong")
    _alike(card, page, row, buffer, _counted_at(page, row, point))
    card.known("op", (buffer.framework_op or "").rstrip(":"))
    buffer_words.source_entry(card, buffer)
    _stay(card, page, int(page.live_ranges.born[row]), int(page.live_ranges.dies[row]))
    _place(card, page, row, buffer)
    return card.lines


def group_card(page: SpaceMemory, group: BufferGroup, pen: Pen) -> list[Line]:
    """A group: its size, its padding, when any of it is in memory, and its largest buffers."""
    live_ranges, rows = page.live_ranges, group.rows
    number = len(rows)
    card = Card(pen)
    card.head(group.name, (counted(number, "buffer"),))
    _size_entry(card, page, group.size_bytes)
    if group.padding_bytes > 0:
        elements = group.size_bytes - group.padding_bytes
        style = expansion_style(group.size_bytes / elements if elements > 0 else WASTED)
        style = "dim" if group.padding_bytes < SMALL * page.peak_bytes else style
        card.entry("padding", f"{binary_size(group.padding_bytes)} of that", style)
    else:
        card.entry("padding", "none", "dim")
    _stay(card, page, int(live_ranges.born[rows].min()), int(live_ranges.dies[rows].max()))
    largest = rows[np.argsort(-live_ranges.size_bytes[rows], kind="stable")[:NAMED]]
    for place, row in enumerate(largest.tolist()):
        buffer = page.buffers[row]
        size = binary_size(int(live_ranges.size_bytes[row]))
        words = f"{size} {buffer_words.short_shape(buffer.shape)} {buffer.name}"
        card.entry("" if place else "largest", words)
    if number > NAMED:
        card.entry("", f"and {count(number - NAMED)} more", "dim")
    return card.lines


def _sizes(card: Card, page: SpaceMemory, buffer: Buffer) -> None:
    _size_entry(card, page, buffer.size_bytes)
    padding, expansion = buffer.padding_bytes, buffer.expansion
    if not padding:
        why = "unknown: the size of its elements is unknown" if padding is None else "none"
        card.entry("padding", why, "dim")
        return
    is_little = expansion is None or expansion < PADDED or padding < SMALL * page.peak_bytes
    key: StyleKey = "text" if is_little else expansion_style(expansion)
    buffer_words.padding_entry(card, buffer, key)


def _size_entry(card: Card, page: SpaceMemory, size_bytes: int) -> None:
    share = percent(100 * size_bytes / page.peak_bytes) if page.peak_bytes > 0 else UNKNOWN
    card.entry("size", f"{binary_size(size_bytes)}, as much as {share} of the peak", "strong")


def _counted_at(page: SpaceMemory, row: int, point: int) -> int:
    """The point given or the peak, where the buffer is in memory then; else where it is born."""
    born, dies = int(page.live_ranges.born[row]), int(page.live_ranges.dies[row])
    return next(
        (known for known in (point, page.peak_position) if born <= known < dies), min(max(born, 0), page.points - 1)
    )


def _alike(card: Card, page: SpaceMemory, row: int, buffer: Buffer, point: int) -> None:
    if not buffer.shape:
        return
    live_ranges, rows = page.live_ranges, page.at(point)
    same = rows[(live_ranges.size_bytes[rows] == live_ranges.size_bytes[row]) & (rows != row)]
    number = sum(page.buffers[other].shape == buffer.shape for other in same[:COMPARED].tolist())
    where = "at the peak" if point == page.peak_position else f"at point {count(point)}"
    more = "more than " if len(same) > COMPARED else ""
    buffer_words.alike_entry(card, number, int(live_ranges.size_bytes[row]) * (number + 1), where, more)


def _stay(card: Card, page: SpaceMemory, born: int, dies: int) -> None:
    if page.points == 1:
        card.entry("in memory", "throughout; the module has no heap trace of temporaries", "dim")
        return
    if born <= 0 and dies >= page.points:
        card.entry("in memory", "throughout the program")
        return
    first, last = max(born, 0), min(dies, page.points)
    length = max(0, last - first)
    words = f"{count(length)} of {count(page.points)} points, {percent(100 * length / page.points, 0)}"
    card.entry("in memory", words)
    pen, room = card.pen, min(_BAR * 2, card.pen.width - card.label - 1)
    if room >= _BAR:  # a small picture of where in the program it is in memory
        before = min(room - 1, int(first / page.points * room))
        cells = min(max(1, round((last / page.points - first / page.points) * room)), room - before)
        light = "." if pen.glyphs.is_ascii else pen.glyphs.horizontal
        bar: list[Span] = [(light * before, "rule"), (pen.glyphs.full * cells, "class.compute")]
        card.lines.append(pen.fit([(" " * card.label, "text"), *bar, (light * (room - before - cells), "rule")]))
    came, gone = "at the program's beginning", "stays to the program's end"
    card.entry("born", _event_words(page, first) if first else came)
    card.entry("dies", gone if dies >= page.points else _event_words(page, last))


def _event_words(page: SpaceMemory, point: int) -> str:
    """``point 1,203, with fusion.12``; nothing for what lies before the program."""
    name = page.instructions[point - 1] if 0 < point <= len(page.instructions) else None
    return (f"point {count(point)}" + (f", with {name}" if name else "")) if point > 0 else ""


def _place(card: Card, page: SpaceMemory, row: int, buffer: Buffer) -> None:
    allocation, offset = int(page.live_ranges.allocation[row]), buffer.offset_bytes
    kind = f" ({buffer.allocation_type})" if buffer.allocation_type else ""
    words = f"{allocation}{kind}" if allocation >= 0 else f"unknown{kind}"
    if offset is not None:
        words += f", from {binary_size(offset)} on" if offset > 0 else ", from its start"
    card.entry("allocated", words)
    card.known("buffer", None if buffer.logical_buffer is None else str(buffer.logical_buffer), "dim")
    card.known("label", buffer.label, "dim")

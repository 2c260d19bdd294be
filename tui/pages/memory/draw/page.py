"""The memory tab in cells: the peak, the working set over the program, and the buffers in memory at a point."""

from __future__ import annotations

from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.memory.model import SpaceMemory
from tpuprof.parsers.memory.summary import SpaceSummary
from tpuprof.tui.draw.pen import Composed, Pen, filled, gutter_lines, hstack
from tpuprof.tui.draw.spans import Glyphs, Line
from tpuprof.tui.pages.memory.draw.card import buffer_card, group_card
from tpuprof.tui.pages.memory.draw.graph import AXIS, graph_lines, legend
from tpuprof.tui.pages.memory.draw.header import header_lines
from tpuprof.tui.pages.memory.draw.map import PaintedMap, map_allocation, map_lines, paint_map
from tpuprof.tui.pages.memory.draw.table import MemoryList, MemoryState, list_heading, table_lines
from tpuprof.tui.pages.memory.fields.module import short_op

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

"""The memory of a compiled program as a picture: what is in use at each point of it."""

from __future__ import annotations

from tpuprof.parsers.memory.model import SpaceMemory
from tpuprof.tui.draw.format import binary_size, count, limit_size
from tpuprof.tui.html.picture import WIDTH, Area, Picture, Words
from tpuprof.tui.pages.memory.draw.graph import NEAR, column_most, column_of, point_columns
from tpuprof.tui.pages.memory.report.module import ModuleReport

_LEFT, _TOP, _GRAPH = 90.0, 18.0, 140.0
_COLUMNS = 400


def pictures(report: ModuleReport) -> list[Picture]:
    """One; none where there are no figures, or where the report says how large the batch may be."""
    return [] if report.space is None or report.only_fit or not report.space.peak_bytes else [_picture(report.space)]


def _picture(space: SpaceMemory) -> Picture:
    """What is in use over the program, with the peak, and the capacity where it is near."""
    peak, capacity = space.peak_bytes, 0 if space.capacity is None else space.capacity.size_bytes
    highest = max(peak, int(space.heap_bytes.max()))
    is_near = 0 < capacity <= highest * NEAR
    scale = _GRAPH / max(highest, capacity if is_near else 0)
    columns = point_columns(space, _COLUMNS)
    most, width = column_most(space.heap_bytes, columns.first, columns.last), (WIDTH - _LEFT) / _COLUMNS
    bottom = _TOP + _GRAPH
    boxes = [
        (_LEFT + place * width, bottom - used * scale, width, used * scale) for place, used in enumerate(most.tolist())
    ]
    at = min(max(_LEFT + (column_of(space, _COLUMNS, space.peak_position) + 0.5) * width, _LEFT + 60), WIDTH - 60)
    words = [
        Words(at, bottom - peak * scale - 4, f"peak {binary_size(peak)}", 200, "label", "middle"),
        Words(_LEFT - 8, bottom, "0", 60, "dim", "end"),
        Words(_LEFT, bottom + 15, "begin of the program", 200, "dim"),
        Words(WIDTH, bottom + 15, f"end, point {count(space.points - 1)}", 200, "dim", "end"),
    ]
    areas = [Area("compute", boxes)]
    if is_near:
        areas.append(Area("host", [(_LEFT, bottom - capacity * scale - 0.5, WIDTH - _LEFT, 1.0)]))
        words.append(Words(_LEFT - 8, bottom - capacity * scale + 4, limit_size(capacity), 80, "dim", "end"))
    title = f"{space.name} in use over the program"
    note = "the line is the capacity" if is_near else ""
    return Picture(title, bottom + 20, areas, words, note)

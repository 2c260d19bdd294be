"""The waterfall from a device's peak to MFU."""

from __future__ import annotations

from collections.abc import Mapping

from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.pages.overview.use.model_use import PART_TITLES, ModelUse, UsePart
from tpuprof.tui.draw.bars import CLASS_STYLE
from tpuprof.tui.draw.format import duration, percent
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line, StyleKey

_NAME, _FIGURES = 26, 22
_OF_HFU: tuple[UsePart, ...] = ("recomputed", "passes", "other", "mfu")
"""The parts that HFU divides into."""

PART_CLASSES: Mapping[UsePart, OpClass] = {
    "idle": "idle",
    "input": "host",
    "waiting": "collective",
    "collectives": "collective",
    "transfers": "host",
    "copies": "copy",
    "uncounted": "unknown",
    "padding": "vector",
    "below_roof": "vector",
    "memory": "copy",
    "recomputed": "unknown",
    "passes": "unknown",
    "other": "unknown",
    "mfu": "compute",
}
"""The class of ops whose colour each part has."""


def waterfall(use: ModelUse, pen: Pen) -> list[Line]:
    """A line a part, from the peak down; none where HFU is unknown."""
    if not use.parts:
        return []
    left, is_over, hfu = 0.0, False, use.hfu or 0.0
    lines = [_line("peak", 1.0, use.step_ps, (0.0, 1.0), "dim", pen)]
    for part in use.parts:
        if not is_over and part.part in _OF_HFU:
            is_over = True
            lines.append(_line("HFU", hfu, hfu * (use.step_ps or 0.0), (left, 1.0), "dim", pen))
        ends, style = (left, left + part.fraction), CLASS_STYLE[PART_CLASSES[part.part]]
        lines.append(_line(PART_TITLES[part.part], part.fraction, part.time_ps, ends, style, pen))
        left = ends[1]
    return lines


def _line(
    name: str, fraction: float, time_ps: float | None, ends: tuple[float, float], style: StyleKey, pen: Pen
) -> Line:
    room = max(pen.width - _NAME - _FIGURES, 4)
    begin, end = (min(max(round(at * room), 0), room) for at in ends)
    bar = pen.glyphs.full * max(end - begin, 1 if fraction > 0 else 0)
    figures = f"{duration(time_ps, pen.glyphs.is_ascii):>10} {percent(100 * fraction):>8}"
    blank = " " * max(room - min(begin, room - 1) - len(bar), 0)
    before = f" {name:<{_NAME - 1}}" + " " * min(begin, room - 1)
    return pen.fit([(before, "text"), (bar, style), (blank + figures, "text")])

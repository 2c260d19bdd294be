"""What the areas of the memory tab look like: their fills, and the letters that stand for them without colours."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tpuprof.tui.draw.axis import equal_runs
from tpuprof.tui.draw.spans import Fill, Glyphs, Span

FREE, BAND, OWN, HELD, USED, PADDING, HELD_IN_BAND, USED_IN_BAND, STACK, HEAP, UNUSED = range(11)
"""Nothing; nothing within the band; the cursor's buffer; there throughout; temporary; what padding takes; and those of
an allocator: its stack, its heap, what is free."""

FILL: tuple[Fill, ...] = (
    *("page", "view", "copy", "vector", "compute", "host", "vector", "compute"),
    *("compute", "vector", "step"),
)
LIMIT: Fill = "collective"  # the line of the capacity
LETTER = "  @:=p%#SH."


def sign_of(area: int, glyphs: Glyphs) -> Span:
    """What stands for an area in a legend: a filled cell, or its letter."""
    if glyphs.letters:
        return LETTER[area], ("words", FILL[area])
    return glyphs.full, (FILL[area], "page")


def painted(
    sign: NDArray[np.int64], ink: NDArray[np.int64], ground: NDArray[np.int64], glyphs: Glyphs, rule: bool = False
) -> list[Span]:
    """Cells of two areas each as spans.

    Args:
        sign: eighths of each cell that its ink fills, from the bottom.
        ink, ground: areas.
        rule: a line goes through the cells that one area fills, or none.
    """
    if glyphs.letters:
        # one letter a cell: what fills more of it
        shown = np.where(sign >= 4, ink, ground)
        sign, ink, ground = np.zeros_like(sign), shown, shown
    code = (sign * 16 + ink) * 16 + ground
    return [
        _run(int(sign[begin]), int(ink[begin]), int(ground[begin]), end - begin, glyphs, rule)
        for begin, end in equal_runs(code)
    ]


def _run(sign: int, ink: int, ground: int, cells: int, glyphs: Glyphs, rule: bool) -> Span:
    is_free = ground in (FREE, BAND)
    if rule and sign in (0, 8) and (not glyphs.letters or (is_free and not sign)):
        return glyphs.horizontal * cells, (LIMIT, FILL[ink if sign else ground])
    if is_free and sign == 0:
        return " " * cells, "text" if ground == FREE else ("words", FILL[BAND])
    if glyphs.letters:
        return LETTER[ground] * cells, ("words", FILL[ground])
    fill = FILL[ink if sign else ground]
    if sign in (0, 8):  # ink and ground are one, so that no seam shows between the lines
        return glyphs.full * cells, (fill, fill)
    return glyphs.column[sign] * cells, (FILL[ink], FILL[ground])

"""The whole trace in one line: how busy it is, what of it is on screen, where matches are, what is lost."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.timeline.model import CLASSES
from tpuprof.parsers.timeline.windows import TrackWindow
from tpuprof.tui.draw.axis import cells_at
from tpuprof.tui.draw.spans import FILLS, Fill, Glyphs, Key, Line, Span
from tpuprof.tui.pages.timeline.draw.signs import hatch


def minimap_line(
    window: TrackWindow,
    glyphs: Glyphs,
    *,
    view: tuple[int, int],
    fill: Fill | None = None,
    match_cells: NDArray[np.bool_] | None = None,
    lost_from_ps: int | None = None,
) -> Line:
    """Columns as high as the share of time in which the track is busy, in the colour of the class that takes most.

    Args:
        window: the track that stands for the trace, over all of it.
        view: from when to when the screen below shows; it stands in brackets.
        fill: one colour for all cells.
        match_cells: bool[cells] (`Matches.marks`); these cells are coloured as matches, or ``*`` where letters are
            used.
        lost_from_ps: the profile has no events from here on.
    """
    edges, cells = window.edges, len(window.count)
    busy = window.busy_ps.sum(axis=1)
    share = np.minimum(busy / np.diff(edges), 1.0)
    level = np.where(window.count > 0, np.clip(np.rint(share * 8), 1, 8), 0).astype(np.int64).tolist()
    kinds = np.where(busy > 0, window.busy_ps.argmax(axis=1), CLASSES.index("unknown")).tolist()
    found = match_cells.tolist() if match_cells is not None else [False] * cells
    lost = (edges[:-1] >= lost_from_ps).tolist() if lost_from_ps is not None else [False] * cells
    first, last = cells_at(edges, (view[0], view[1] - 1))
    brackets = {max(0, first - 1): "[", min(cells - 1, last + 1): "]"}
    spans: list[Span] = []
    text, key = "", None
    for cell in range(cells):
        ground: Fill = "view" if first <= cell <= last else "page"
        sign = glyphs.column[level[cell]]
        here: Key = (fill or FILLS[kinds[cell]], ground)
        if cell in brackets:
            sign, here = brackets[cell], "mark"
        elif found[cell]:
            sign = "*" if glyphs.letters else sign if level[cell] else glyphs.dot
            here = ("match", ground)
        elif not level[cell]:
            sign, here = (
                (hatch(glyphs), "rule") if lost[cell] else (" ", "text" if ground == "page" else ("words", ground))
            )
        if key is not None and here != key:
            spans.append((text, key))
            text = ""
        text, key = text + sign, here
    if key is not None:
        spans.append((text, key))
    return tuple(spans)

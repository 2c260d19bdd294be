"""The window of the timeline: which time its cells show, and where zooming, panning and fitting take it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.timeline.windows import cell_edges

_MARGIN = 20
"""One part of so many of a window is left free on either side of what is fitted into it."""


@dataclass(frozen=True, slots=True)
class Window:
    """What the canvas shows, in so many cells.

    Attributes:
        start_ps, end_ps: from when to when.
        cells: width of the canvas.
        first_ps, last_ps: of the whole trace, which the window does not leave.
    """

    start_ps: int
    end_ps: int
    cells: int
    first_ps: int
    last_ps: int

    @property
    def span_ps(self) -> int:
        """How long it is."""
        return self.end_ps - self.start_ps

    @property
    def edges(self) -> Int64s:
        """int64[cells + 1]: the borders of the cells."""
        return cell_edges(self.start_ps, self.end_ps, self.cells)

    def cell_of(self, instant_ps: int) -> int:
        """The cell of an instant, the nearest one where that is out of sight."""
        return max(0, min(int(np.searchsorted(self.edges, instant_ps, side="right")) - 1, self.cells - 1))

    def moved(self, start_ps: int, end_ps: int) -> Window:
        """A window of that length that lies on the trace, with a cell's width around it at least."""
        first, last = self.first_ps, self.last_ps
        edge = max((last - first) // 50, self.cells)
        span = max(self.cells, min(end_ps - start_ps, last - first + 2 * edge))
        edge = min(edge, span // 2)  # a close window lies on the trace with half of itself at least
        start = max(first - edge, min(start_ps, last + edge - span))
        return replace(self, start_ps=start, end_ps=start + span)

    def shifted(self, by_ps: int) -> Window:
        """The window so much later."""
        return self.moved(self.start_ps + by_ps, self.end_ps + by_ps)

    def resized(self, cells: int) -> Window:
        """What was in sight, in so many cells."""
        return replace(self, cells=cells).moved(self.start_ps, self.end_ps)

    def zoomed(self, factor: int, instant_ps: int) -> Window:
        """Twice as close (2) or half as close (-2), with an instant where it is."""
        span = self.span_ps
        longer = max(self.cells, span // 2 if factor > 0 else span * 2)
        start = instant_ps - (instant_ps - self.start_ps) * longer // span
        return self.moved(start, start + longer)

    def fitted(self, start_ps: int, end_ps: int, parts: int = _MARGIN) -> Window:
        """A stretch of time with one of so many parts of it free on either side."""
        margin = (end_ps - start_ps) // parts
        return self.moved(start_ps - margin, end_ps + margin)

    def whole(self) -> Window:
        """The whole trace."""
        return self.fitted(self.first_ps, self.last_ps, 100)

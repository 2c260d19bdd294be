"""Columns of eighths in one row: rates and counters over time, and the minimap of the whole trace."""

from __future__ import annotations

import numpy as np

from tpuprof.parsers.base.intervals import Bools, Floats, Int64s
from tpuprof.parsers.timeline.model import CLASSES, CounterTrack
from tpuprof.parsers.timeline.windows import TrackWindow, counter_window, mean_value
from tpuprof.tui.draw.axis import cells_at, equal_runs
from tpuprof.tui.draw.format import UNKNOWN
from tpuprof.tui.draw.pen import joined
from tpuprof.tui.draw.spans import FILLS, Fill, Glyphs, Key, Line, Span
from tpuprof.tui.pages.timeline.draw.cells import hatch


def rate_line(values: Floats, peak: float | None, glyphs: Glyphs, fill: Fill = "compute") -> Line:
    """A rate, such as of FLOPs, as a share of its peak: what is not zero shows, what is above the peak is a warning.

    Args:
        values: float64[cells] per second (`windows.rate_window`); NaN for unknown.
        peak: per second; without it the highest of the values is as high as the row, and the label must say so.
    """
    known = np.isfinite(values)
    scale = peak if peak else float(np.max(values, where=known, initial=0.0))
    share = np.where(known & (values > 0), values, 0.0) / (scale or 1.0)
    above = (share > 1.005) if peak else np.zeros(len(values), np.bool_)
    return _columns(_eighths(share, share > 0), above, fill, glyphs)


def _eighths(share: Floats, shown: Bools) -> Int64s:
    """int64[n]: the heights of columns, 0-8; those that are shown are never blank."""
    return np.where(shown, np.clip(np.rint(share * 8), 1, 8), 0).astype(np.int64)


def counter_line(counter: CounterTrack, edges: Int64s, glyphs: Glyphs) -> Line:
    """A counter's values from its least (a low column) to its greatest (a full one), of the whole trace.

    A cell between two of the edges, int64[cells + 1], shows the greatest value in it, so that no peak is lost; it is
    blank before the first value.
    """
    value = counter_window(counter, edges)
    low, high = counter.value_range or (0.0, 0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        share = (value / 2 - low / 2) / (high / 2 - low / 2) if high > low else np.full(len(value), 0.5)
    known = np.isfinite(value)
    level = np.where(known, np.clip(np.rint(np.where(known, share, 0.0) * 7) + 1, 1, 8), 0).astype(np.int64)
    return _columns(level, np.zeros(len(value), np.bool_), "unknown", glyphs)


def range_label(counter: CounterTrack, glyphs: Glyphs) -> str:
    """``61.2–143 W``: what the lowest and the highest column stand for."""
    ends = counter.value_range
    if ends is None:
        return UNKNOWN
    low, high = map(_number, ends)
    return _with_unit(low if low == high else f"{low}{glyphs.dash}{high}", counter)


def mean_label(counter: CounterTrack, start_ps: int, end_ps: int, glyphs: Glyphs) -> str:
    """``93.1 W``: a counter's mean between two instants."""
    mean = mean_value(counter, start_ps, end_ps)
    return UNKNOWN if mean is None else _with_unit(_number(mean), counter)


def _number(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}" if abs(value) < 1e7 else f"{value:.2e}"


def _with_unit(text: str, counter: CounterTrack) -> str:
    unit = counter.unit[:20]
    return f"{text} {unit}" if unit else text


def _columns(level: Int64s, above: Bools, fill: Fill, glyphs: Glyphs) -> Line:
    """Columns of 0-8 eighths, those above the peak as warnings."""
    kind = np.where(level == 0, 0, np.where(above, 2, 1))
    keys: tuple[Key, ...] = ("text", (fill, "page"), "warn")
    text = [glyphs.column[eighths] for eighths in level.tolist()]
    return tuple(("".join(text[begin:end]), keys[int(kind[begin])]) for begin, end in equal_runs(kind))


def minimap_line(
    window: TrackWindow,
    glyphs: Glyphs,
    *,
    view: tuple[int, int],
    fill: Fill | None = None,
    match_cells: Bools | None = None,
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
    level = _eighths(np.minimum(busy / np.diff(edges), 1.0), window.count > 0).tolist()
    kinds = np.where(busy > 0, window.busy_ps.argmax(axis=1), CLASSES.index("unknown")).tolist()
    is_match = match_cells.tolist() if match_cells is not None else [False] * cells
    lost = (edges[:-1] >= lost_from_ps).tolist() if lost_from_ps is not None else [False] * cells
    first, last = cells_at(edges, (view[0], view[1] - 1))
    brackets = {max(0, first - 1): "[", min(cells - 1, last + 1): "]"}
    spans: list[Span] = []
    for cell in range(cells):
        ground: Fill = "view" if first <= cell <= last else "page"
        sign, key = glyphs.column[level[cell]], (fill or FILLS[kinds[cell]], ground)
        if cell in brackets:
            spans.append((brackets[cell], "mark"))
        elif is_match[cell]:
            spans.append(("*" if glyphs.letters else sign if level[cell] else glyphs.dot, ("match", ground)))
        elif level[cell]:
            spans.append((sign, key))
        elif lost[cell]:
            spans.append((hatch(glyphs), "rule"))
        else:
            spans.append((" ", "text" if ground == "page" else ("words", ground)))
    return joined(spans)

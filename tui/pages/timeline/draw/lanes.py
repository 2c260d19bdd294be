"""One row of the timeline: the slices of a lane, a track's lanes as one, a rate, a counter, or the whole trace."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tpuprof.parsers.base.intervals import Bools, Floats, Int64s
from tpuprof.parsers.timeline.model import CLASSES, CounterTrack, Track
from tpuprof.parsers.timeline.windows import LaneWindow, TrackWindow, counter_window, mean_value
from tpuprof.tui.draw.axis import cells_at, equal_runs
from tpuprof.tui.draw.format import UNKNOWN
from tpuprof.tui.draw.pen import clean, cut, joined
from tpuprof.tui.draw.spans import FILLS, Fill, Glyphs, Key, Line, Span
from tpuprof.tui.pages.timeline.draw.cells import (
    RIGHT,
    SELECTED,
    SIGNS,
    THICK,
    THIN,
    CellLooks,
    LaneCells,
    crowd_letter,
    hatch,
    lane_cells,
    letter,
    shades,
    slice_cells,
)

LEAST_NAME = 4  # cells from which on a slice shows its name
NAME_SEEN = 200  # characters of a name that are looked at
_COUNT_SIGNS = np.array(list(" .23456789+#"))


def lane_line(
    track: Track,
    window: LaneWindow,
    glyphs: Glyphs,
    *,
    fill: Fill | None = None,
    selected: int | None = None,
    is_match: Bools | None = None,
    lost_from_ps: int | None = None,
) -> Line:
    """One lane, one cell of the window a cell.

    Slices are areas of their class's colour, with edges to an eighth of a cell and their names where there is room. A
    cell with three events or more, with two short ones, or with more than two colours can show, is crowded: shaded
    by the time covered, in the colour of the class that takes most of it. A thin line parts slices of one colour; one
    in another colour stands for what is crowded between them. With letters, a slice is ``name==C``, a line or a border
    is ``|``, and any other cell is a class's letter, small below half.

    Args:
        track, window: the events and what lies in each cell (`windows.lane_window`).
        fill: one colour for all slices (`signs.fill_of`); None for that of their class.
        selected: index of the event to be shown as selected.
        is_match: bool[keys]: events to be shown as found; of those in crowded cells at most `cells.LOOKED_AT` are seen.
        lost_from_ps: the profile has no events from here on; empty cells are hatched.
    """
    cells = len(window.first)
    lost = _lost(window.edges, lost_from_ps)
    if not (window.last > window.first).any():
        return joined(_blank_spans(lost, 0, cells, glyphs))
    seen = lane_cells(track, window, fill, selected, is_match)
    return _painted(track, seen, slice_cells(seen), lost, glyphs)


def track_line(
    window: TrackWindow,
    glyphs: Glyphs,
    *,
    fill: Fill | None = None,
    selected: tuple[int, int] | None = None,
    lost_from_ps: int | None = None,
) -> Line:
    """A track with all its lanes in one row: every cell is shaded as a crowded cell of a lane is.

    Args:
        window: `windows.track_window`.
        selected: from when to when the selected event runs.
        fill, lost_from_ps: see `lane_line`.
    """
    low, high = window.edges[:-1], window.edges[1:]
    busy = window.busy_ps.sum(axis=1)
    if fill is None:
        kind = np.where(busy > 0, window.busy_ps.argmax(axis=1), CLASSES.index("unknown")).astype(np.uint8)
    else:
        kind = np.full(len(busy), FILLS.index(fill), np.uint8)
    ink = kind.copy()
    if selected is not None:
        ink[(low < max(selected[1], selected[0] + 1)) & (high > selected[0])] = SELECTED
    share, lost = np.minimum(busy / (high - low), 1.0), _lost(window.edges, lost_from_ps)
    sign = np.where(window.count > 0, shades(share), 0).astype(np.int64)  # what is there is never blank
    spans: list[Span] = []
    for begin, end in equal_runs(np.where(sign > 0, sign * 256 + ink.astype(np.int64) * 16 + kind, 0)):
        if not sign[begin]:
            spans += _blank_spans(lost, begin, end, glyphs)
            continue
        if glyphs.letters:
            text = "".join(crowd_letter(int(kind[begin]), part) for part in share[begin:end].tolist())
        else:
            text = SIGNS[sign[begin]] * (end - begin)
        spans.append((text, (FILLS[ink[begin]], "page")))
    return joined(spans)


def count_line(count: Int64s) -> Line:
    """How many events cells hold, int64[cells]: ``.`` is 1, ``2`` to ``9``, ``+`` from 10 and ``#`` from 100 on."""
    signs = _COUNT_SIGNS[np.where(count < 10, count, np.where(count < 100, 10, 11))]
    return (("".join(signs.tolist()), "text"),)


def with_sign(line: Line, cell: int, sign: str) -> Line:
    """The row with a sign in one of its cells, on the ground that the cell has."""
    return _with_cell(line, cell, lambda _, key: (sign, ("words", key[1] if isinstance(key, tuple) else "page")))


def with_cursor(line: Line, cell: int, glyphs: Glyphs) -> Line:
    """The row under the cursor: a blank at the cursor's cell becomes a mark; what else is there stays."""

    def mark(text: str, key: Key) -> Span:
        is_blank = text == " " and (key == "text" or (isinstance(key, tuple) and key[1] == "page"))
        return (glyphs.vertical, "mark") if is_blank else (text, key)

    return _with_cell(line, cell, mark)


def _with_cell(line: Line, cell: int, draw: Callable[[str, Key], Span]) -> Line:
    """The row with one of its cells drawn anew from the text and the style that it has."""
    begin = 0
    for index, (text, key) in enumerate(line):
        place = cell - begin
        if 0 <= place < len(text):
            drawn = draw(text[place], key)
            if drawn == (text[place], key):
                return line
            parts: list[Span] = [(text[:place], key), drawn, (text[place + 1 :], key)]
            return (*line[:index], *(part for part in parts if part[0]), *line[index + 1 :])
        begin += len(text)
    return line


def _lost(edges: Int64s, lost_from_ps: int | None) -> Bools | None:
    return None if lost_from_ps is None else edges[:-1] >= lost_from_ps


def _blank_spans(lost: Bools | None, begin: int, end: int, glyphs: Glyphs) -> list[Span]:
    """Empty cells, hatched where events are lost."""
    if lost is None or not lost[begin:end].any():
        return [(" " * (end - begin), "text")]
    return [
        (hatch(glyphs) * (last - first), "rule") if lost[begin + first] else (" " * (last - first), "text")
        for first, last in equal_runs(lost[begin:end].astype(np.int8))
    ]


def _namer(track: Track, glyphs: Glyphs) -> Callable[[int, int], str]:
    """A function of an event and the room there is, to its name, cut, made fit for cells once; empty without room."""
    made: dict[int, str] = {}

    def name_of(event: int, room: int) -> str:
        if room < LEAST_NAME:
            return ""
        key = int(track.key[event])
        if key not in made:
            name = track.names.name(key)
            if track.kind == "source":
                name = name[-NAME_SEEN:].rpartition("/")[2]  # the folders are the same all over
            made[key] = clean(name[:NAME_SEEN], glyphs.is_ascii)
        return cut(made[key], room, glyphs)

    return name_of


def _painted(track: Track, seen: LaneCells, cells: CellLooks, lost: Bools | None, glyphs: Glyphs) -> Line:
    """Areas of colour with names in them; letters tell the classes where colours can't."""
    name_of = _namer(track, glyphs)
    code = (cells.event + 1) * 4096 + cells.sign * np.int64(256) + cells.ink * np.int64(16) + cells.ground
    spans: list[Span] = []
    for begin, end in equal_runs(code):
        ground, event, sign = FILLS[cells.ground[begin]], int(cells.event[begin]), int(cells.sign[begin])
        ink = FILLS[cells.ink[begin]]
        if event >= 0:
            name = name_of(event, end - begin)
            rest, of_class = end - begin - len(name), letter(int(seen.first.kind[begin]))
            name += "=" * (rest - 1) + of_class if glyphs.letters and rest else " " * rest
            spans.append((name, ("words.odd" if glyphs.letters and event % 2 else "words", ground)))
        elif sign == 0 and ground == "page":
            spans += _blank_spans(lost, begin, end, glyphs)
        elif not glyphs.letters:
            spans.append((SIGNS[sign] * (end - begin), (ink, ground)))
        elif ground != "page" or sign in (THIN, THICK, RIGHT):
            spans.append(("|" * (end - begin), ("words" if ink == "page" else ink, ground)))
        else:
            kinds, shares = seen.crowd_kind[begin:end].tolist(), seen.share[begin:end].tolist()
            spans.append(("".join(map(crowd_letter, kinds, shares)), (ink, ground)))
    return tuple(spans)


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

"""One row of the timeline: the slices of a lane, a track's lanes as one, and how many events hide in each cell."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Int64s
from tpuprof.parsers.timeline.model import CLASSES, Track
from tpuprof.parsers.timeline.windows import LaneWindow, TrackWindow
from tpuprof.tui.draw.axis import equal_runs
from tpuprof.tui.draw.layout import clean, cut, joined
from tpuprof.tui.draw.spans import FILLS, Fill, Glyphs, Key, Line, Span
from tpuprof.tui.pages.timeline.draw.cells import (
    PAGE,
    SELECTED,
    SIGNS,
    CellLooks,
    Codes,
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
    in another colour stands for what is crowded between them. With letters, a slice is ``[name ==C]``, a short one
    ``|``, and a crowded cell is a class's letter, small below half.

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
    if glyphs.letters:
        return _lettered(track, window, seen, lost, glyphs)
    return _painted(track, slice_cells(seen), lost, glyphs)


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


def _painted(track: Track, cells: CellLooks, lost: Bools | None, glyphs: Glyphs) -> Line:
    """Areas of colour with names in them."""
    name_of = _namer(track, glyphs)
    code = (cells.event + 1) * 4096 + cells.sign * np.int64(256) + cells.ink * np.int64(16) + cells.ground
    spans: list[Span] = []
    for begin, end in equal_runs(code):
        ground, event = FILLS[cells.ground[begin]], int(cells.event[begin])
        if event >= 0:
            spans.append((f"{name_of(event, end - begin):<{end - begin}}", ("words", ground)))
        elif cells.sign[begin] == 0 and cells.ground[begin] == PAGE:
            spans += _blank_spans(lost, begin, end, glyphs)
        else:
            spans.append((SIGNS[cells.sign[begin]] * (end - begin), (FILLS[cells.ink[begin]], ground)))
    return tuple(spans)


def _lettered(track: Track, window: LaneWindow, seen: LaneCells, lost: Bools | None, glyphs: Glyphs) -> Line:
    """Slices in brackets."""
    name_of = _namer(track, glyphs)
    cells = letter_cells(seen)
    first_ps, last_ps = int(window.edges[0]), int(window.edges[-1])
    spans: list[Span] = []
    for begin, end in equal_runs(cells.code):
        event, fill = int(cells.event[begin]), FILLS[cells.fill[begin]]
        if event >= 0:
            cut_off = int(track.start_ps[event]) < first_ps, int(track.end_ps[event]) > last_ps
            text = cells.text(begin, end, cut_off, partial(name_of, event))
            spans.append((text, ("words.odd" if event % 2 else "words", fill)))
        elif cells.is_crowded[begin]:
            kinds, shares = cells.kind[begin:end].tolist(), seen.share[begin:end].tolist()
            spans.append(("".join(map(crowd_letter, kinds, shares)), (fill, "page")))
        else:
            spans += _blank_spans(lost, begin, end, glyphs)
    return joined(spans)


class LetterCells(NamedTuple):
    """What each cell shows.

    Attributes:
        event, is_thin: the event that the cell belongs to, -1 for none; whether it is shorter than half a cell.
        is_crowded: the cell stands for all its events.
        fill: code of the cell's colour; kind: code of its class or tone.
        code: cells that belong together have the same.
    """

    event: Int64s
    is_thin: Bools
    is_crowded: Bools
    fill: Codes
    kind: Codes
    code: NDArray[np.int64]

    def text(self, begin: int, end: int, cut_off: tuple[bool, bool], name: Callable[[int], str]) -> str:
        """The cells of one slice: ``[name ==C]``, ``[C``, ``C`` or ``|``.

        Args:
            cut_off: whether the slice begins before the window, and ends behind it: it has no bracket there.
            name: takes the room that there is and returns the slice's name, or nothing.
        """
        sign, room = letter(int(self.kind[begin])), end - begin - 2
        if room < 0:
            return "|" if self.is_thin[begin] else sign
        brackets = "><" if self.fill[begin] == SELECTED else "[]"
        left, right = ("=" if is_cut else bracket for is_cut, bracket in zip(cut_off, brackets, strict=True))
        if not room:
            return left + sign
        text = name(room)
        rest = room - len(text)
        return left + text + ("=" * (rest - 1) + sign if rest else "") + right


def letter_cells(seen: LaneCells) -> LetterCells:
    """Gives each cell to one event, so that every event has a cell or lies in a crowded one."""
    one, two = seen.count == 1, seen.count == 2
    whole = one & seen.first.before & seen.first.after
    # whether the cell's first event lies in the cell before too, its last one in the cell behind; and fills it
    goes_on = (seen.count[1:] > 0) & (seen.count[:-1] > 0) & (seen.last.event[:-1] == seen.first.event[1:])
    before, after = np.append(False, goes_on), np.append(goes_on, False)
    whole_before, whole_after = before & np.append(False, whole[:-1]), after & np.append(whole[1:], False)
    event = np.where(one, seen.first.event, -1)
    # a slice that fills other cells gives up one that it hardly reaches
    event[one & whole_before & ~seen.first.after & (seen.first.end < 4)] = -1
    event[one & whole_after & ~seen.first.before & (seen.first.begin > 4)] = -1
    # of two, the one that has no cell elsewhere gets this one; the first has, where it began in an earlier cell
    to_first = two & whole_after & (~before | (seen.first.end >= 8 - seen.last.begin))
    to_last = two & before & ~to_first
    event[to_first], event[to_last] = seen.first.event[to_first], seen.last.event[to_last]
    is_crowded = (seen.count > 2) | (two & ~to_first & ~to_last)
    short1, short2 = seen.first.end - seen.first.begin < 4, seen.last.end - seen.last.begin < 4
    is_thin = ((one | to_first) & ~before & ~(one & after) & short1) | (to_last & ~after & short2)
    is_last = event == seen.last.event
    fill = np.where(is_crowded, seen.crowd, np.where(is_last, seen.last.fill, seen.first.fill))
    kind = np.where(is_crowded, seen.crowd_kind, np.where(is_last, seen.last.kind, seen.first.kind))
    code = np.where(is_crowded, -2 - fill.astype(np.int64), event)
    return LetterCells(event, is_thin, is_crowded, fill, kind, code)

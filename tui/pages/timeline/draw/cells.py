"""What each cell of a lane looks like, computed for all cells at once.

A cell has a sign, an ink and a ground, so it can show two things: two slices and where they meet, or a slice and where
it begins or ends. A cell with more to show is crowded: its ink is the class that takes most of its time, its sign says
how much of it is covered. No event of a cell is ever left out without a trace.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Floats, Int64s, covered, ranges
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.timeline.model import CLASSES, Track, TrackKeys, TrackKind
from tpuprof.parsers.timeline.windows import LaneWindow
from tpuprof.tui.draw.spans import CLASS_LETTER, FILLS, Fill, Glyphs

SIGNS = " ▏▎▍▌▋▊▉█│┃▕░▒▓"
"""Signs of a cell of slices: eighths from the left, thin lines in the middle and at the right, shades."""

FULL = 8
THIN, THICK, RIGHT = 9, 10, 11
SHADES = (0, 12, 13, 14, FULL)  # the sign for each quarter of a cell that is covered
SELECTED, MATCH, PAGE = (FILLS.index(fill) for fill in ("selected", "match", "page"))
HOLDER = len(CLASSES)
assert FILLS[HOLDER] == "step", "what only holds others has a neutral tone"
assert FILLS[: len(CLASSES)] == CLASSES, "a class's code is its fill's"

_NEUTRAL: dict[TrackKind, tuple[Fill, Fill]] = {
    "steps": ("step", "module"),
    "modules": ("module", "step"),
    "scopes": ("step", "module"),
    "source": ("module", "step"),
}


def fill_of(kind: TrackKind, lane: int = 0) -> Fill | None:
    """The neutral tone of a lane whose events are of no class of their own, by turns; None for slices by class."""
    tones = _NEUTRAL.get(kind)
    return None if tones is None else tones[lane % 2]


def hatch(glyphs: Glyphs) -> str:
    """Fills what the profile lost."""
    return "/" if glyphs.is_ascii else "╱"


def letter(fill: int) -> str:
    """The letter of a class's fill, ``=`` for the others."""
    return CLASS_LETTER[CLASSES[fill]] if fill < len(CLASSES) else "="


def crowd_letter(fill: int, share: float) -> str:
    """A class's letter, small where less than half of the cell is busy; ``#`` and ``-`` for what is of no class."""
    sign = letter(fill).replace("=", "#")
    return sign if share >= 0.5 else sign.lower().replace("#", "-")


Codes = NDArray[np.uint8]

LOOKED_AT = 1 << 16  # events of crowded cells among which matches are looked for one by one


class Slices(NamedTuple):
    """An event of each cell, as far as it lies there; of no meaning in an empty cell.

    Attributes:
        event: its index.
        begin, end: where in the cell, in eighths of the cell.
        before, after: whether it is cut by the cell's borders.
        kind: code of its class or tone.
        fill: code of its colour, which may be that of a match or of the selection.
    """

    event: Int64s
    begin: Floats
    end: Floats
    before: Bools
    after: Bools
    kind: Codes
    fill: Codes


@dataclass(frozen=True, slots=True)
class LaneCells:
    """What lies in the cells of a lane.

    Attributes:
        count: events of each cell.
        first, last: the first and the last of them.
        crowd_kind, crowd: kind and colour for all events of the cell.
        second: code of the class that takes most of the cell's time but for that one; `PAGE` for none.
        share: part of the cell's time that events cover, 0-1.
    """

    count: Int64s
    first: Slices
    last: Slices
    crowd_kind: Codes
    crowd: Codes
    second: Codes
    share: Floats

    @property
    def whole(self) -> Bools:
        """Cells that one event fills, to an eighth of a cell."""
        filled: Bools = (self.count == 1) & (self.first.begin < 0.5) & (self.first.end >= 7.5)
        return filled


class CellLooks(NamedTuple):
    """The look of each cell.

    Attributes:
        sign: index in `SIGNS`.
        ink, ground: indices in `FILLS`.
        event: the event that fills the cell and may write its name there; -1 for none.
    """

    sign: Codes
    ink: Codes
    ground: Codes
    event: Int64s


def lane_cells(
    track: Track, window: LaneWindow, fill: Fill | None, selected: int | None, is_match: Bools | None
) -> LaneCells:
    """What lies in the cells of a lane that has any events in the window; see `lanes.lane_line`."""
    count, by_kind = window.last - window.first, _by_kind(track, window)
    busy = window.busy_ps.sum(axis=1)
    low, high = window.edges[:-1], window.edges[1:]

    def slices(event: Int64s) -> Slices:
        start, end, key = track.start_ps[event], track.end_ps[event], track.key[event]
        begin, stop = ((np.clip(time, low, high) - low) * (8.0 / (high - low)) for time in (start, end))
        kind: Codes = _kinds(track, key) if fill is None else np.full(len(event), FILLS.index(fill), np.uint8)
        colour = kind if is_match is None else np.where(is_match[key], np.uint8(MATCH), kind)
        if selected is not None:
            colour = np.where(event == selected, np.uint8(SELECTED), colour)
        return Slices(event, begin, stop, start <= low, end >= high, kind, colour)

    first = slices(np.minimum(window.first, len(track) - 1))
    last = slices(np.clip(window.last - 1, 0, len(track) - 1))
    crowd_kind, second = first.kind, np.full(len(count), PAGE, np.uint8)
    if fill is None:
        crowd_kind = np.where(busy > 0, by_kind.argmax(axis=1).astype(np.uint8), crowd_kind)
        others = by_kind.copy()
        others[np.arange(len(others)), crowd_kind] = 0
        second = np.where(others.any(axis=1), others.argmax(axis=1), PAGE).astype(np.uint8)
    crowd = np.where(_match_cells(track, window, is_match), np.uint8(MATCH), crowd_kind)
    if selected is not None:
        crowd[(window.first <= selected) & (selected < window.last)] = SELECTED
    share = np.minimum(busy * (8.0 / np.diff(window.edges)) / 8.0, 1.0)
    return LaneCells(count, first, last, crowd_kind, crowd, second, share)


def _kinds(track: Track, key: TrackKeys) -> Codes:
    """The class of each event; a neutral tone for one that only holds others, which have classes of their own."""
    classes: Codes = track.names.classes[key]
    return classes if track.names.holds is None else np.where(track.names.holds[key], np.uint8(HOLDER), classes)


def _by_kind(track: Track, window: LaneWindow) -> Int64s:
    """int64[cells, kinds]: the time that events cover in each cell, by class; those that hold others by themselves."""
    if track.names.holds is None:
        return window.busy_ps
    first, last = int(window.first[0]), int(window.last[-1])
    holders = first + np.flatnonzero(track.names.holds[track.key[first:last]])
    out = np.concatenate((window.busy_ps, np.zeros((len(window.busy_ps), 1), np.int64)), axis=1)
    classes = track.names.classes[track.key[holders]]
    for number in np.unique(classes).tolist():
        of = holders[classes == number]
        time = np.diff(covered(window.edges, track.start_ps[of], track.end_ps[of]))
        out[:, number] -= time
        out[:, HOLDER] += time
    return out


def _match_cells(track: Track, window: LaneWindow, is_match: Bools | None) -> Bools:
    """Cells with a match among their events, as far as that is cheap to see."""
    count = window.last - window.first
    out = np.zeros(len(count), np.bool_)
    crowded = np.flatnonzero(count > 1)
    if is_match is not None and int(count[crowded].sum()) <= LOOKED_AT:
        cell, event = ranges(window.first[crowded], window.last[crowded])
        out[crowded[cell[is_match[track.key[event]]]]] = True
    return out


def slice_cells(seen: LaneCells) -> CellLooks:
    """The look of each cell, edges to an eighth of it."""
    cells = len(seen.count)
    page = np.full(cells, PAGE, np.uint8)
    out = CellLooks(np.zeros(cells, np.uint8), page, page.copy(), np.full(cells, -1, np.int64))
    one, two = seen.count == 1, seen.count == 2
    crowded = seen.count > 2
    if one.any():
        _one_event(out, seen, one)
    if two.any():
        _two_events(out, seen, two, crowded)
    whole = seen.whole
    # a cell that a rounded sign fills is filled
    _paint(out, whole, 0, PAGE, seen.first.fill)
    out.event[whole] = seen.first.event[whole]
    _paint(out, crowded, shades(seen.share), seen.crowd, PAGE)
    _part_neighbours(out, seen, whole, crowded)
    return out


def shades(share: Floats) -> Codes:
    """The sign for each share of 0-1, never a blank; only what has no gap worth a sixteenth is full."""
    level = np.where(share >= 15 / 16, 4, np.clip(np.rint(share * 4), 1, 3))
    return np.array(SHADES, np.uint8)[level.astype(np.intp)]


def _paint(out: CellLooks, where: Bools, sign: Codes | int, ink: Codes | int, ground: Codes | int) -> None:
    if not where.any():
        return
    for column, value in ((out.sign, sign), (out.ink, ink), (out.ground, ground)):
        column[where] = value if isinstance(value, int) else value[where]


def _one_event(out: CellLooks, seen: LaneCells, one: Bools) -> None:
    """A slice that begins or ends in the cell, or both."""
    begin, end = seen.first.begin, seen.first.end
    length = np.clip(np.rint(end - begin), 1, 7).astype(np.uint8)
    middle = (begin + end) / 2
    ends = one & seen.first.before
    begins = one & ~seen.first.before & seen.first.after
    inside = one & ~seen.first.before & ~seen.first.after
    _paint(out, ends, np.clip(np.rint(end), 1, 8).astype(np.uint8), seen.first.fill, PAGE)
    _paint(out, begins, np.clip(np.rint(begin), 0, 7).astype(np.uint8), PAGE, seen.first.fill)
    to_left = begin <= 8 - end
    _paint(out, inside & to_left, length, seen.first.fill, PAGE)
    _paint(out, inside & ~to_left, (8 - length).astype(np.uint8), PAGE, seen.first.fill)
    # there is no sign for a narrow block in the middle but lines
    central = inside & (np.abs(middle - 4) <= 1.5) & (end - begin <= 3)
    _paint(out, central, np.where(end - begin <= 1.5, THIN, THICK).astype(np.uint8), seen.first.fill, PAGE)


def _two_events(out: CellLooks, seen: LaneCells, two: Bools, crowded: Bools) -> None:
    """Two slices that meet in the cell, or end and begin in it. What needs a third colour counts as crowded."""
    end, begin = seen.first.end, seen.last.begin
    gap = begin - end
    parted = two & (gap >= 1)
    wide1, wide2 = seen.first.before, seen.last.after
    both = wide1 & wide2
    room = (wide1 & ~wide2 & (seen.last.end >= 7)) | (~wide1 & wide2 & (seen.first.begin <= 1))
    crowded |= two & ~both & ~(room & (gap < 1))
    border = np.clip(np.rint((end + begin) / 2), 1, 7).astype(np.uint8)
    same = seen.first.fill == seen.last.fill
    _paint(out, two, border, seen.first.fill, seen.last.fill)
    line = np.where(border <= 2, 1, np.where(border >= 6, RIGHT, THIN)).astype(np.uint8)
    _paint(out, two & same, line, PAGE, seen.first.fill)
    # a gap is shown where the larger part leaves it, or as a line; the other slice must be seen beside the cell
    left = end >= 8 - begin
    central = parted & same & (gap <= 3) & (np.abs((end + begin) / 2 - 4) <= 1.5)
    goes_on = seen.last.event[:-1] == seen.first.event[1:]
    seen1 = np.append(False, goes_on & (seen.count[:-1] == 1))
    seen2 = np.append(goes_on & (seen.count[1:] == 1), False)
    crowded |= parted & ~central & ~np.where(left, seen2, seen1)
    _paint(out, parted & left, np.clip(np.rint(end), 1, 7).astype(np.uint8), seen.first.fill, PAGE)
    _paint(out, parted & ~left, np.clip(np.rint(begin), 1, 7).astype(np.uint8), PAGE, seen.last.fill)
    _paint(out, central, np.where(gap <= 1.5, THIN, THICK).astype(np.uint8), PAGE, seen.first.fill)


def _part_neighbours(out: CellLooks, seen: LaneCells, whole: Bools, crowded: Bools) -> None:
    """Lines where areas of one colour would run into each other."""
    solid = np.where(whole, out.ground, np.where(out.sign == FULL, out.ink, PAGE))
    beside = np.pad(np.where(whole, out.ground, PAGE), 1, constant_values=PAGE)
    # a crowded cell between two slices: a line in the colour of what else is there
    lone = crowded & (out.sign == FULL) & (out.ink == beside[:-2]) & (out.ink == beside[2:])
    line = np.where(seen.second == PAGE, THIN, THICK).astype(np.uint8)
    _paint(out, lone, line, seen.second, out.ink.copy())
    # the begin of a slice
    right = np.where((out.sign > 0) & (out.sign <= THICK) & (out.sign != FULL), out.ground, solid)
    right[lone] = PAGE
    starts = np.zeros(len(whole), np.bool_)
    other = seen.first.event[1:] != seen.last.event[:-1]
    starts[1:] = whole[1:] & (other | crowded[:-1]) & (right[:-1] == out.ground[1:])
    _paint(out, starts, 1, PAGE, out.ground)
    out.event[starts] = -1

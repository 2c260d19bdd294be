"""Slices in letters and brackets, for output without eighth blocks or without colours: each cell shows one event."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Int64s
from tpuprof.tui.pages.timeline.draw.cells import Bools, Codes, Sight
from tpuprof.tui.pages.timeline.draw.signs import SELECTED, letter


@dataclass(frozen=True, slots=True)
class LetterCells:
    """What each cell shows.

    Attributes:
        event: the event that the cell belongs to; -1 for none.
        is_thin: the event is shorter than half a cell.
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
        cells = end - begin
        sign = letter(int(self.kind[begin]))
        if cells == 1:
            return "|" if self.is_thin[begin] else sign
        brackets = "><" if self.fill[begin] == SELECTED else "[]"
        left = "=" if cut_off[0] else brackets[0]
        if cells == 2:
            return left + sign
        right = "=" if cut_off[1] else brackets[1]
        room = cells - 2
        text = name(room)
        rest = room - len(text)
        return left + text + ("=" * (rest - 1) + sign if rest else "") + right


def letter_cells(seen: Sight) -> LetterCells:
    """Gives each cell to one event, so that every event has a cell or lies in a crowded one."""
    one, two = seen.count == 1, seen.count == 2
    whole = one & seen.before1 & seen.after1
    # whether the cell's first event lies in the cell before too, its last one in the cell behind; and fills it
    goes_on = (seen.count[1:] > 0) & (seen.count[:-1] > 0) & (seen.event2[:-1] == seen.event1[1:])
    before, after = np.append(False, goes_on), np.append(goes_on, False)
    whole_before, whole_after = before & np.append(False, whole[:-1]), after & np.append(whole[1:], False)
    event = np.where(one, seen.event1, -1)
    # a slice that fills other cells gives up one that it hardly reaches
    event[one & whole_before & ~seen.after1 & (seen.to1 < 4)] = -1
    event[one & whole_after & ~seen.before1 & (seen.from1 > 4)] = -1
    # of two, the one that has no cell elsewhere gets this one; the first has, where it began in an earlier cell
    to_first = two & whole_after & (~before | (seen.to1 >= 8 - seen.from2))
    to_last = two & before & ~to_first
    event[to_first], event[to_last] = seen.event1[to_first], seen.event2[to_last]
    is_crowded = (seen.count > 2) | (two & ~to_first & ~to_last)
    short1, short2 = seen.to1 - seen.from1 < 4, seen.to2 - seen.from2 < 4
    is_thin = ((one | to_first) & ~before & ~(one & after) & short1) | (to_last & ~after & short2)
    is_last = event == seen.event2
    fill = np.where(is_crowded, seen.crowd, np.where(is_last, seen.fill2, seen.fill1))
    kind = np.where(is_crowded, seen.crowd_kind, np.where(is_last, seen.kind2, seen.kind1))
    code = np.where(is_crowded, -2 - fill.astype(np.int64), event)
    return LetterCells(event, is_thin, is_crowded, fill, kind, code)

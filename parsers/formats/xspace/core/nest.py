"""Nests events by time with numpy.

The rule is a stack: an event's parent is the latest event before it whose end is not earlier. So the events at the top
level are those that end later than every event before them, and the rest falls into segments, one for each of those,
which nest in the same way one level further down.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Int64s
from tpuprof.parsers.formats.xspace.core.types import Nesting, as_int64

_MOST_LEVELS = 64  # deeper than that, and with few events left, a plain stack is faster
_FEW = 256
_WIDE = 1 << 62  # differences of times below this leave room for sums in int64


def nest(start: Int64s, end: Int64s) -> Nesting:
    """See `core.nest`."""
    start, end = as_int64(start, "start"), as_int64(end, "end")
    n = len(start)
    if n != len(end):
        raise ValueError(f"{n} starts and {len(end)} ends")
    if bool(((start[1:] < start[:-1]) | ((start[1:] == start[:-1]) & (end[1:] > end[:-1]))).any()):
        raise ValueError("events must be sorted by start, then by descending end")
    parent, depth = np.full(n, -1, np.int64), np.zeros(n, np.int32)
    rest = np.arange(n)  # events whose parent is not known yet
    holder = np.full(n, -1, np.int64)  # the innermost event known to contain each of them
    level = 0
    while len(rest) > _FEW and level < _MOST_LEVELS:
        outer = _outermost(end[rest], holder)
        if outer is None:
            break
        outermost = rest[outer]
        parent[outermost], depth[outermost] = holder[outer], level
        if len(outermost) == len(rest):
            rest = rest[:0]
            break
        inner = ~outer
        holder = outermost[np.cumsum(outer)[inner] - 1]
        rest = rest[inner]
        level += 1
    if len(rest):
        _nest_rest(end, rest, holder, parent, depth)
    duration = end - start
    self_ps = duration.copy()
    inside = parent >= 0
    np.subtract.at(self_ps, parent[inside], duration[inside])
    return Nesting(parent, depth, self_ps)


def _outermost(end: Int64s, holder: Int64s) -> Bools | None:
    """Which events are direct children of their holders: those that end later than all before them with that holder.

    None when times are too far apart for this method.
    """
    first = np.flatnonzero(np.append(True, holder[1:] != holder[:-1]))
    highest = np.maximum.accumulate(end)
    later = first[1:]
    if bool((end[later] < highest[later - 1]).any()):
        # Holders overlap in part: lift each group by enough that it starts no lower than the group before it reaches.
        if int(highest[-1]) - int(end.min()) >= _WIDE // len(end) or abs(int(end.min())) >= _WIDE:
            return None
        lack = np.maximum.reduceat(end, first)[:-1] - end[later]
        lift = np.cumsum(np.maximum(lack, 0))
        end = end.copy()
        end[first[1] :] += np.repeat(lift, np.diff(np.append(later, len(end))))
        highest = np.maximum.accumulate(end)
    outer: Bools = np.append(True, end[1:] > highest[:-1])
    outer[first] = True
    return outer


def _nest_rest(end: Int64s, rest: Int64s, holder: Int64s, parent: Int64s, depth: NDArray[np.int32]) -> None:
    """Nests with the stack, one event at a time."""
    known = -2
    stack: list[tuple[int, int]] = []  # open events and their ends; the holder is below them
    below = 0
    for i, held, stop in zip(rest.tolist(), holder.tolist(), end[rest].tolist(), strict=True):
        if held != known:
            known, stack = held, []
            below = int(depth[held]) + 1 if held >= 0 else 0
        while stack and stack[-1][1] < stop:
            stack.pop()
        parent[i] = stack[-1][0] if stack else held
        depth[i] = below + len(stack)
        stack.append((i, stop))

"""Places worth finding in a memory space: peaks, where the backward pass begins, the buffers of an op."""

from __future__ import annotations

import numpy as np

from tpuprof.parsers.base.intervals import Int64s, no_ints
from tpuprof.parsers.memory.model import SpaceMemory
from tpuprof.parsers.ops.framework_op import is_gradient

LEAST_DROP = 0.02
"""Share of the highest peak by which the memory in use must fall between two peaks for them to be two."""

SAMPLED = 512
"""Buffers looked at, spread evenly over the program."""

LEAST, AMISS = 4, 0.1
"""The least number of buffers of either pass, and the share of them that may lie on the wrong side."""


def peaks(heap_bytes: Int64s) -> Int64s:
    """Points of the local maxima, ascending: the first point of each, those that little falls between counted once.

    Args:
        heap_bytes: int64[points], memory in use.

    Returns:
        int64; at least the highest point of a curve that has any.
    """
    if not len(heap_bytes):
        return no_ints()
    drop = max(1, int(LEAST_DROP * int(heap_bytes.max())))
    turns = _turns(heap_bytes)
    tops: list[int] = []
    top, bottom = turns[0], turns[0]  # of the rise that the walk is in
    rising = True
    for point in turns[1:]:
        value = int(heap_bytes[point])
        if rising:
            if value > int(heap_bytes[top]):
                top = point
            elif value <= int(heap_bytes[top]) - drop:
                tops.append(top)
                bottom, rising = point, False
        elif value < int(heap_bytes[bottom]):
            bottom = point
        elif value >= int(heap_bytes[bottom]) + drop:
            top, rising = point, True
    if rising:
        tops.append(top)
    return np.array(tops, np.int64)


def _turns(heap_bytes: Int64s) -> list[int]:
    """The points where the curve turns, the first of each level stretch, and both ends: all that a walk has to see."""
    steps = np.sign(np.diff(heap_bytes))
    moving = np.flatnonzero(steps)
    is_turning = np.diff(steps[moving], append=0) != 0  # the last move counts, too
    return sorted({0, *(moving[is_turning] + 1).tolist()})  # where the stretch begins that the curve turns on


def next_peak(heap_bytes: Int64s, point: int, direction: int) -> int | None:
    """The next peak after a point (direction 1) or before it (-1); None where there is none."""
    points = peaks(heap_bytes)
    beyond = points[points > point] if direction > 0 else points[points < point][::-1]
    return int(beyond[0]) if len(beyond) else None


def live_ranges_of(space: SpaceMemory, instruction: str) -> Int64s:
    """Rows of the buffers that an instruction or a framework op defines, of a tuple its elements; the largest first."""
    every = range(len(space.live_ranges))
    rows = [row for row in every if space.buffers[row].name.partition("{")[0] == instruction]
    rows = rows or [row for row in every if space.buffers[row].framework_op == instruction]
    return np.array(sorted(rows, key=lambda row: -int(space.live_ranges.size_bytes[row])), np.int64)


def backward_from(page: SpaceMemory) -> int | None:
    """The point that parts forward from backward pass best; None where the module has no two passes, one by one.

    A buffer is of the backward pass where its op is under ``transpose(…)``, else of the forward pass where it is under
    ``jvp(…)``. Others, such as the optimizer's, say nothing.
    """
    born = page.live_ranges.born
    rows = np.flatnonzero(born > 0)
    rows = rows[np.argsort(born[rows], kind="stable")]
    rows = rows[:: max(1, -(-len(rows) // SAMPLED))]
    ops = [(page.buffers[row].framework_op or "", int(born[row])) for row in rows.tolist()]
    passes = [(is_gradient(op), point) for op, point in ops if is_gradient(op) or "jvp(" in op]
    backward = np.array([is_backward for is_backward, _ in passes], np.bool_)
    forward_count = int((~backward).sum())
    if min(int(backward.sum()), forward_count) < LEAST:
        return None
    # amiss[k]: of the first k those of the backward pass, of the others those of the forward pass
    before = np.concatenate([[0], np.cumsum(backward)])
    amiss = before + forward_count - (np.arange(len(backward) + 1) - before)
    best = int(amiss.argmin())
    return passes[best][1] if amiss[best] <= AMISS * len(backward) and best < len(passes) else None

"""The program's points in cells: which points a column stands for, and which column shows a point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.memory.model import SpaceMemory

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class PointColumns:
    """Which points each column stands for: `first` <= point < `last`.

    More points than columns share them; where there are fewer, neighbouring columns show the same point.

    Attributes:
        first, last: int64[columns].
        top: int64[columns], of each column's points the first one with the most memory in use.
    """

    first: Int64s
    last: Int64s
    top: Int64s

    def between(self, born: int, dies: int) -> Bools:
        """bool[columns]: those with a point p for which born <= p < dies."""
        inside: Bools = (self.first < dies) & (self.last > born)
        return inside


def point_columns(page: SpaceMemory, columns: int) -> PointColumns:
    """The points of so many columns over the whole program."""
    points, columns = page.points, max(1, columns)
    edges = np.arange(columns + 1, dtype=np.int64) * points // columns
    first, last = edges[:-1], np.maximum(edges[1:], edges[:-1] + 1)
    if points <= columns:
        return PointColumns(first, last, first)
    most = column_most(page.heap_bytes, first, last)
    tops = np.flatnonzero(page.heap_bytes == np.repeat(most, last - first))
    return PointColumns(first, last, tops[np.searchsorted(tops, first)])


def column_most(values: Int64s, first: Int64s, last: Int64s) -> Int64s:
    """int64[columns]: the greatest value of each column's points."""
    bounds = np.stack([first, last], axis=1).ravel()
    out: Int64s = np.maximum.reduceat(np.append(values, values[-1:]), bounds)[::2]
    return out


def point_at(page: SpaceMemory, columns: int, x: int) -> int:
    """The point that a column of the graph shows: of those that it stands for, the first with the most in use.

    Args:
        columns: `ComposedMemory.columns`.
        x: the column, from 0; what lies outside of the graph counts as its first or last column.
    """
    x = min(max(x, 0), max(1, columns) - 1)
    first = x * page.points // max(1, columns)
    last = max((x + 1) * page.points // max(1, columns), first + 1)
    return first + int(page.heap_bytes[first:last].argmax())


def column_of(page: SpaceMemory, columns: int, point: int) -> int:
    """The column of the graph that shows a point; the middle one of several."""
    points, columns = page.points, max(1, columns)
    point = min(max(point, 0), points - 1)
    if points > columns:  # the last column that begins at the point or before it
        return ((point + 1) * columns - 1) // points
    begin, end = -(-point * columns // points), -(-(point + 1) * columns // points)
    return (begin + end - 1) // 2

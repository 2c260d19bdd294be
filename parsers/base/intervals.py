"""Columns of numbers, values by key, and arithmetic on time intervals: int64 picoseconds, half-open, as columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.record import Sized

Table = TypeVar("Table", bound="Columns")
Key = TypeVar("Key")
Value = TypeVar("Value")
Number = TypeVar("Number", int, float)
Int64s = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

Intervals = tuple[Int64s, Int64s]
"""Starts and ends."""


class Columns(Sized):
    """A table of integers: each field of a subclass, a frozen dataclass with slots, is a column, int64[n]."""

    __slots__: tuple[str, ...] = ()

    def take(self: Table, rows: Bools | NDArray[np.integer]) -> Table:
        return type(self)(*(getattr(self, name)[rows] for name in self.__slots__))

    @classmethod
    def joined(cls: type[Table], parts: Sequence[Table]) -> Table:
        return cls(*(np.concatenate([no_ints(), *(getattr(part, name) for part in parts)]) for name in cls.__slots__))


def grouped(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """The values of each key in their order; keys in the order in which they come first."""
    groups: dict[Key, list[Value]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def totals(pairs: Iterable[tuple[Key, Number]]) -> dict[Key, Number]:
    """The values of each key added up; keys in the order in which they come first."""
    sums: dict[Key, Number] = {}
    for key, value in pairs:
        sums[key] = sums[key] + value if key in sums else value
    return sums


def coded(values: Iterable[Key]) -> tuple[Int64s, list[Key]]:
    """int64[n]: the number of each value among the distinct ones; and these, in the order in which they come first."""
    numbers: dict[Key, int] = {}
    code = np.array([numbers.setdefault(value, len(numbers)) for value in values], np.int64)
    return code, list(numbers)


def opens(*columns: NDArray[np.generic]) -> Bools:
    """bool[n]: whether a row differs from the one before it in some column, as the first one always does."""
    out = np.zeros(len(columns[0]), np.bool_)
    out[:1] = True
    for column in columns:
        out[1:] |= column[1:] != column[:-1]
    return out


def numbered(*columns: NDArray[np.generic]) -> Int64s:
    """int64[n]: the rows' numbers, from 0 on in order of the columns; equal rows have one number."""
    order = np.lexsort(columns[::-1])
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(opens(*(column[order] for column in columns))) - 1
    return number


def is_sorted(values: Int64s) -> bool:
    """Whether values never decrease."""
    return bool((values[1:] >= values[:-1]).all()) if len(values) > 1 else True


def distinct(values: Int64s) -> Int64s:
    """The distinct values, ascending. (numpy's own function imports its masked arrays, which takes 5 ms.)"""
    ordered = np.sort(values)
    return ordered[opens(ordered)]


def no_ints() -> Int64s:
    """int64[0]."""
    return np.zeros(0, np.int64)


def positions(values: NDArray[np.integer], among: Int64s) -> Int64s:
    """int64[n]: index of each value in an ascending array, -1 for a value that is not there."""
    if not len(among):
        return np.full(len(values), -1, np.int64)
    nearest = np.minimum(np.searchsorted(among, values), len(among) - 1)
    return np.where(among[nearest] == values, nearest, -1).astype(np.int64)


def is_among(values: NDArray[np.integer], others: Sequence[int] | Int64s) -> Bools:
    """bool[n]: whether each value is one of others, in any order. (numpy's own may import its masked arrays.)"""
    return positions(values, distinct(np.asarray(others, np.int64))) >= 0


def without(values: Int64s, others: Int64s) -> Int64s:
    """The distinct values that are none of others, ascending."""
    values = distinct(values)
    return values[~is_among(values, others)]


def shared(values: Int64s, others: Int64s) -> Int64s:
    """The distinct values that both arrays have, ascending."""
    values, others = distinct(values), distinct(others)
    return values[positions(values, others) >= 0]


def median(values: Floats) -> float:
    """The median of at least one value; numpy's own imports its masked arrays for it, which takes 6 ms."""
    return float(medians(values))


def medians(values: Floats) -> Floats:
    """float64[columns]: the median of each column of at least one row."""
    ordered = np.sort(values, axis=0)
    middle = len(ordered) // 2
    middle_row: Floats = ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
    return middle_row


def nesting_order(start: Int64s, end: Int64s) -> NDArray[np.intp] | None:
    """The order by start, longer events first, that nesting needs; None when the events are in that order already."""
    if len(start) < 2:
        return None
    later = start[1:] > start[:-1]
    if bool(later.all()):
        return None
    tied = (start[1:] == start[:-1]) & (end[1:] <= end[:-1])
    if bool((later | tied).all()):
        return None
    return np.lexsort((-end, start))


def in_nesting_order(start: Int64s, end: Int64s, *others: Int64s) -> tuple[Int64s, ...]:
    """The columns, start and end first, in the order that nesting needs."""
    order = nesting_order(start, end)
    return (start, end, *others) if order is None else tuple(column[order] for column in (start, end, *others))


def union(start: Int64s, end: Int64s) -> Intervals:
    """Merges overlapping and touching intervals into disjoint ones in order; drops empty intervals."""
    filled = end > start
    if not filled.all():
        start, end = start[filled], end[filled]
    if not len(start):
        return start, end
    if not is_sorted(start):
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    reach = np.maximum.accumulate(end)
    opens = np.ones(len(start), np.bool_)
    opens[1:] = start[1:] > reach[:-1]
    first = np.flatnonzero(opens)
    return start[first], np.append(reach[first[1:] - 1], reach[-1])


def union_of(spans: Iterable[Intervals]) -> Intervals:
    """The union of the intervals of several lines or threads: disjoint ones in order."""
    starts, ends = zip((no_ints(), no_ints()), *spans, strict=True)
    return union(np.concatenate(starts), np.concatenate(ends))


_BLOCK = 1 << 15
"""How many intervals a pass handles at a time, so that its arrays stay in the cache."""


def union_length(start: Int64s, end: Int64s) -> int:
    """The total time that at least one interval covers."""
    if not is_sorted(start):
        order = np.argsort(start, kind="stable")
        start, end = start.take(order), end.take(order)
    total = 0
    covered = np.iinfo(np.int64).min  # up to here time is covered, or passed
    for first in range(0, len(start), _BLOCK):
        begins, ends = start[first : first + _BLOCK], end[first : first + _BLOCK]
        reach = np.maximum(np.maximum.accumulate(ends), covered)
        fresh = begins.copy()  # where each interval begins to cover what none before it covers
        fresh[0] = max(int(fresh[0]), covered)
        np.maximum(begins[1:], reach[:-1], out=fresh[1:])
        total += int(np.maximum(ends - fresh, 0).sum())
        covered = int(reach[-1])
    return total


def ranges(first: Int64s, last: Int64s) -> tuple[Int64s, Int64s]:
    """All numbers of the ranges [first, last), one after the other; a range with last < first is empty.

    Returns:
        Which range each number is of, and the numbers.
    """
    count = np.maximum(last - first, 0)
    of = np.repeat(np.arange(len(first)), count)
    return of, np.arange(len(of)) - np.repeat(np.cumsum(count) - count - first, count)


def subtract(start: Int64s, end: Int64s, less_start: Int64s, less_end: Int64s) -> Intervals:
    """Takes some intervals away from others; all are disjoint and in order, and so is the result."""
    if not len(start) or not len(less_start):
        return start, end
    kept_start = np.append(np.iinfo(np.int64).min, less_end)  # the times outside of the others
    kept_end = np.append(less_start, np.iinfo(np.int64).max)
    begins, ends = intersect(start, end, kept_start, kept_end)
    filled = ends > begins
    return begins[filled], ends[filled]


def intersect(start: Int64s, end: Int64s, other_start: Int64s, other_end: Int64s) -> Intervals:
    """The times that two sets of intervals share; both are disjoint and in order, and so is the result."""
    if len(other_start) < len(start):  # it searches for the fewer ones
        start, end, other_start, other_end = other_start, other_end, start, end
    first, last = np.searchsorted(other_end, start, side="right"), np.searchsorted(other_start, end, side="left")
    mine, other = ranges(first, last)
    return np.maximum(start[mine], other_start[other]), np.minimum(end[mine], other_end[other])


def covered(times: Int64s, start: Int64s, end: Int64s, before: Int64s | None = None) -> Int64s:
    """int64[n]: how much time disjoint intervals in order cover before each of `times`.

    Args:
        before: int64[intervals + 1], the time that the intervals before each take, where it is known already.
    """
    if not len(start):
        return np.zeros(len(times), np.int64)
    if before is None:
        before = np.concatenate([[0], np.cumsum(end - start)])
    begun = np.searchsorted(start, times, side="right")  # intervals that began by then
    last = np.maximum(begun - 1, 0)
    unfinished = np.where(begun > 0, np.maximum(end[last] - times, 0), 0)
    out: Int64s = before[begun] - unfinished
    return out


def weighted_until(times: Int64s, intervals: Int64s) -> Int64s:
    """int64[n]: the time of weighted intervals up to each of some instants.

    Sums of products of times wrap around in 64 bits; the differences, which are what counts, come out right.

    Args:
        intervals: int64[m, 3], start, end and weight (1 or -1) of each; those of one weight in order of start.
    """
    sums = np.zeros(len(times), np.int64)
    for sign, rows in ((1, intervals[:, 2] > 0), (-1, intervals[:, 2] <= 0)):
        sums += sign * _until(times, intervals[rows, 0], intervals[rows, 1])
    return sums


def _until(times: Int64s, start: Int64s, end: Int64s) -> Int64s:
    """The same of intervals of one weight."""
    if bool((start[1:] >= end[:-1]).all()):
        return covered(times, start, end)
    end = np.sort(end)
    lengths, starts = np.append(0, np.cumsum(end - start)), np.append(0, np.cumsum(start))
    begun, ended = np.searchsorted(start, times, side="left"), np.searchsorted(end, times, side="left")
    out: Int64s = lengths[ended] + (begun - ended) * times - starts[begun] + starts[ended]
    return out


def overlap(start: Int64s, end: Int64s, other_start: Int64s, other_end: Int64s) -> Int64s:
    """int64[n]: how much of each interval others cover, which are disjoint and in order."""
    return covered(end, other_start, other_end) - covered(start, other_start, other_end)


def interval_index(times: Int64s, start: Int64s, end: Int64s) -> Int64s:
    """int64[n]: index of the interval that holds each time, -1 for none. Intervals are in order and do not overlap.

    A time equal to one interval's end and the next one's start belongs to the next.
    """
    if not len(start):
        return np.full(len(times), -1, np.int64)
    latest = np.searchsorted(start, times, side="right") - 1
    inside = (latest >= 0) & (times < end[np.maximum(latest, 0)])
    return np.where(inside, latest, -1).astype(np.int64)

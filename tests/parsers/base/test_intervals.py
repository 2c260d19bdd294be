"""Interval arithmetic against a brute-force count of unit cells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tpuprof.parsers.base import intervals

SPANS = st.lists(st.tuples(st.integers(-20, 60), st.integers(-3, 15)).map(lambda s: (s[0], s[0] + s[1])), max_size=25)


def columns(spans: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([a for a, _ in spans], np.int64), np.array([b for _, b in spans], np.int64)


def disjoint(spans: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    """Disjoint intervals in order, each split in two, so that some touch."""
    start, end = intervals.union(*columns(spans))
    middle = (start + end) // 2
    start, end = np.sort(np.concatenate([start, middle])), np.sort(np.concatenate([middle, end]))
    return start[end > start], end[end > start]


def cells(start: np.ndarray, end: np.ndarray) -> list[int]:
    """The unit cells of intervals, one after the other."""
    return [cell for a, b in zip(start.tolist(), end.tolist(), strict=True) for cell in range(a, b)]


@given(SPANS)
def test_union_covers_exactly_the_cells_of_its_intervals(spans: list[tuple[int, int]]) -> None:
    cells = {cell for a, b in spans for cell in range(a, b)}
    start, end = intervals.union(*columns(spans))
    assert {cell for a, b in zip(start, end, strict=True) for cell in range(a, b)} == cells
    assert intervals.union_length(*columns(spans)) == len(cells)
    assert (start[1:] > end[:-1]).all()  # disjoint, and touching ones are merged
    assert (end > start).all()


@given(SPANS, st.lists(st.integers(-25, 80), max_size=20))
def test_place_finds_the_interval_and_gives_borders_to_the_next(spans: list[tuple[int, int]], times: list[int]) -> None:
    start, end = disjoint(spans)
    for time, at in zip(times, intervals.interval_index(np.array(times, np.int64), start, end), strict=True):
        assert [n for n in range(len(start)) if start[n] <= time < end[n]] == ([] if at < 0 else [at])


@given(SPANS)
def test_nesting_order_sorts_parents_before_children(spans: list[tuple[int, int]]) -> None:
    start, end = columns(spans)
    order = intervals.nesting_order(start, end)
    if order is not None:
        start, end = start[order], end[order]
    assert list(zip(start.tolist(), (-end).tolist(), strict=True)) == sorted((a, -b) for a, b in spans)
    assert intervals.nesting_order(start, end) is None


@given(SPANS, SPANS)
def test_what_two_share_and_what_is_left_are_the_whole(
    ones: list[tuple[int, int]], others: list[tuple[int, int]]
) -> None:
    first, second = disjoint(ones), disjoint(others)
    both, left = intervals.intersect(*first, *second), intervals.subtract(*first, *second)
    assert cells(*both) == sorted({*cells(*first)} & {*cells(*second)})  # in order, and each cell once
    assert sorted(cells(*both) + cells(*left)) == cells(*first)
    assert (both[1] > both[0]).all()
    assert (left[1] > left[0]).all() and (left[0][1:] >= left[1][:-1]).all()
    assert cells(*intervals.intersect(*second, *first)) == cells(*both)


@given(st.lists(st.integers(-5, 5)), st.lists(st.integers(-5, 5)))
def test_distinct_and_shared_values_are_those_of_sets(ones: list[int], others: list[int]) -> None:
    one, other = np.array(ones, np.int64), np.array(others, np.int64)
    assert intervals.distinct(one).tolist() == sorted(set(ones))
    assert intervals.shared(one, other).tolist() == sorted(set(ones) & set(others))


@given(SPANS, st.lists(st.integers(-25, 80), max_size=20))
def test_covered_counts_the_cells_before_each_time(spans: list[tuple[int, int]], times: list[int]) -> None:
    start, end = disjoint(spans)
    at = np.array(times, np.int64)
    assert intervals.covered(at, start, end).tolist() == [
        sum(cell < time for cell in cells(start, end)) for time in times
    ]
    within = [sum(time <= cell < time + 9 for cell in cells(start, end)) for time in times]
    assert intervals.overlap(at, at + 9, start, end).tolist() == within


@given(st.lists(st.tuples(st.integers(-9, 30), st.integers(-9, 30)), max_size=15))
def test_ranges_are_all_numbers_one_range_after_the_other(spans: list[tuple[int, int]]) -> None:
    of, numbers = intervals.ranges(*columns(spans))
    expected = [(at, number) for at, (a, b) in enumerate(spans) for number in range(a, b)]
    assert list(zip(of.tolist(), numbers.tolist(), strict=True)) == expected


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=20))
def test_rows_are_numbered_in_order_and_open_where_they_change(rows: list[tuple[int, int]]) -> None:
    first, second = (np.array([row[column] for row in rows], np.int64) for column in (0, 1))
    ranks = sorted(set(rows))
    assert intervals.numbered(first, second).tolist() == [ranks.index(row) for row in rows]
    before = [None, *rows]
    assert intervals.opens(first, second).tolist() == [row != last for row, last in zip(rows, before, strict=False)]


def test_other_columns_follow_the_order_of_nesting() -> None:
    start, end, rows = intervals.in_nesting_order(np.array([5, 0, 0]), np.array([9, 4, 10]), np.arange(3))
    assert (start.tolist(), end.tolist(), rows.tolist()) == ([0, 0, 5], [10, 4, 9], [2, 1, 0])


@dataclass(frozen=True, slots=True)
class Pairs(intervals.Columns):
    left: intervals.Int64s
    right: intervals.Int64s


def test_tables_of_columns_join_and_cut() -> None:
    pairs = Pairs.joined([Pairs(np.array([1, 2]), np.array([3, 4])), Pairs(np.array([5]), np.array([6]))])
    assert (len(pairs), len(Pairs.joined([]))) == (3, 0)
    assert pairs.take(pairs.left > 1).right.tolist() == [4, 6]


def test_values_by_key_keep_their_order() -> None:
    pairs = [("b", 1), ("a", 2), ("b", 3)]
    assert list(intervals.grouped(pairs).items()) == [("b", [1, 3]), ("a", [2])]
    assert list(intervals.totals(pairs).items()) == [("b", 4), ("a", 2)]

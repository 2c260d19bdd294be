"""Parts of transfers against a twin that looks at every picosecond."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpuprof.parsers.base.intervals import in_nesting_order, union
from tpuprof.parsers.collectives.transfers import (
    COLLECTIVE,
    OTHER,
    WORK,
    InnermostOpTime,
    Transfers,
    overlap_times,
    paired,
    shares,
    sum_in,
)
from tpuprof.parsers.formats.xspace.core.api import self_times

LONG = 60


@st.composite
def nested_ops(draw: st.DrawFn) -> list[tuple[int, int, int]]:
    """Begin, end and code of ops that nest, as on a core's line."""
    found: list[tuple[int, int, int]] = []

    def fill(begin: int, end: int, depth: int) -> None:
        at = begin
        while at < end and len(found) < 24:
            at += draw(st.integers(0, 4))
            length = draw(st.integers(1, 12))
            if at + length > end:
                return
            found.append((at, at + length, draw(st.sampled_from((OTHER, WORK, COLLECTIVE)))))
            if depth < 2 and draw(st.booleans()):
                fill(at, at + length, depth + 1)
            at += length

    fill(0, LONG, 0)
    return found


def columns(ops: list[tuple[int, int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    start, end, code = (np.array([op[at] for op in ops], np.int64) for at in range(3))
    ordered = in_nesting_order(start, end, code)
    return ordered[0], ordered[1], ordered[2]


def painted(ops: list[tuple[int, int, int]]) -> list[int]:
    """What the innermost op of each picosecond is; -1 for none."""
    what = [-1] * (LONG + 1)
    for begin, end, code in sorted(ops, key=lambda op: (op[0], -op[1])):
        what[begin:end] = [code] * (end - begin)
    return what


spans = st.lists(st.tuples(st.integers(0, LONG), st.integers(0, 20)), max_size=8)


@given(nested_ops(), spans)
def test_time_by_what_the_innermost_op_does(ops: list[tuple[int, int, int]], asked: list[tuple[int, int]]) -> None:
    start, end, code = columns(ops)
    doing, what = InnermostOpTime(start, end, code), painted(ops)
    begins = np.array([begin for begin, _ in asked], np.int64)
    ends = np.minimum(begins + np.array([length for _, length in asked], np.int64), LONG)
    for kind in (WORK, COLLECTIVE):
        expected = [what[begin:end].count(kind) for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)]
        assert doing.until(kind).within(begins, ends).tolist() == expected


@given(nested_ops())
def test_parts_add_up_and_none_counts_twice(ops: list[tuple[int, int, int]]) -> None:
    """Every communicating op is a transfer: what is exposed over all of them is the time in them, each instant once."""
    start, end, code = columns(ops)
    own = self_times(start, end)
    chosen = np.flatnonzero(code == COLLECTIVE)
    transfers = Transfers(np.arange(len(chosen)), start[chosen], end[chosen], own[chosen], start[chosen])
    doing = InnermostOpTime(start, end, code)
    parts = overlap_times(transfers, doing.until(WORK))
    assert (parts.span_ps == transfers.end_ps - transfers.begin_ps).all()
    assert min(part.min(initial=0) for part in (parts.hidden_ps, parts.exposed_ps, parts.stalled_ps)) >= 0
    what = painted(ops)
    assert parts.exposed_ps.sum() == what.count(COLLECTIVE)
    for at, (begin, stop) in enumerate(zip(transfers.begin_ps.tolist(), transfers.end_ps.tolist(), strict=True)):
        assert parts.hidden_ps[at] == what[begin:stop].count(WORK)
    whole = union(transfers.begin_ps, transfers.end_ps)
    everything = np.array([0], np.int64), np.array([LONG], np.int64)
    covered = {at for begin, stop in zip(*map(np.ndarray.tolist, whole), strict=True) for at in range(begin, stop)}
    assert sum_in(everything, whole, None).tolist() == [len(covered)]
    assert sum_in(everything, whole, doing.until(WORK)).tolist() == [sum(what[at] == WORK for at in covered)]


def test_times_of_weeks_do_not_overflow() -> None:
    week = 7 * 24 * 3600 * 10**12
    start = week + np.arange(0, 4_000_000, 10, dtype=np.int64)
    doing = InnermostOpTime(start, start + 10, np.full(len(start), WORK))
    assert doing.until(WORK).within(start[:1], start[-1:] + 10).tolist() == [4_000_000]


def test_a_done_ends_the_last_start_that_has_none() -> None:
    start = np.array([0, 10, 20, 30, 40, 50], np.int64)
    is_done = np.array([True, False, True, True, False, False])
    pairs, lost = paired(np.zeros(6, np.int64), start, start + 5, np.full(6, 5, np.int64), start, is_done)
    assert (pairs.begin_ps.tolist(), pairs.end_ps.tolist(), pairs.own_ps.tolist()) == ([10], [25], [10])
    assert lost == 4


def test_shares_of_a_strip() -> None:
    borders = np.array([0, 10, 20, 30], np.int64)
    assert shares(borders, (np.array([5], np.int64), np.array([20], np.int64))).tolist() == [128, 255, 0]


@pytest.mark.parametrize("count", [0, 1])
def test_nothing_is_no_error(count: int) -> None:
    none = np.zeros(0, np.int64)
    pairs, lost = paired(none, none, none, none, none, np.zeros(0, np.bool_))
    assert (len(pairs), lost) == (0, 0)
    windows = np.arange(count, dtype=np.int64), np.arange(count, dtype=np.int64) + 1
    assert sum_in(windows, (none, none), None).tolist() == [0] * count

"""Parts of transfers against a twin that looks at every picosecond."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.support.build import nested_spans
from tpuprof.parsers.base.intervals import in_nesting_order
from tpuprof.parsers.formats.xspace.core.api import self_times
from tpuprof.parsers.ops.core.traced import OTHER, TRACED, WORK, times_by_role
from tpuprof.parsers.pages.collectives.transfers import TimeUntil, TransferOverlap, Transfers, paired

LONG = 60


@st.composite
def nested_ops(draw: st.DrawFn) -> list[tuple[int, int, int]]:
    """Begin, end and role of ops that nest, as on a core's line."""
    spans = nested_spans(draw, LONG, most=24, gap=4, lengths=(1, 12), deepest=2)
    return [(at, at + length, draw(st.sampled_from((OTHER, WORK, TRACED)))) for at, length in spans]


def columns(ops: list[tuple[int, int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    start, end, role = (np.array([op[at] for op in ops], np.int64) for at in range(3))
    ordered = in_nesting_order(start, end, role)
    return ordered[0], ordered[1], ordered[2]


def painted(ops: list[tuple[int, int, int]]) -> list[int]:
    """What the innermost op of each picosecond is; -1 for none."""
    what = [-1] * (LONG + 1)
    for begin, end, role in sorted(ops, key=lambda op: (op[0], -op[1])):
        what[begin:end] = [role] * (end - begin)
    return what


@given(nested_ops(), st.lists(st.integers(0, LONG), max_size=4))
def test_parts_add_up_and_none_counts_twice(ops: list[tuple[int, int, int]], inner: list[int]) -> None:
    """Every communicating op is a transfer: what is exposed over all of them is the time in them, each instant once."""
    start, end, role = columns(ops)
    own = self_times(start, end)
    chosen = np.flatnonzero(role == TRACED)
    transfers = Transfers(np.arange(len(chosen)), start[chosen], end[chosen], own[chosen], start[chosen])
    work, within = times_by_role(start, end, role)
    overlap = TransferOverlap(transfers, TimeUntil(work), TimeUntil(within))
    hidden, exposed, _ = overlap.parts
    assert (overlap.parts.sum(axis=0) == transfers.end_ps - transfers.begin_ps).all()
    assert overlap.parts.min(initial=0) >= 0
    what = painted(ops)
    assert exposed.sum() == what.count(TRACED)
    under_way = [False] * (LONG + 1)
    for at, (begin, stop) in enumerate(zip(transfers.begin_ps.tolist(), transfers.end_ps.tolist(), strict=True)):
        assert hidden[at] == what[begin:stop].count(WORK)
        under_way[begin:stop] = [True] * (stop - begin)
    borders = np.array(sorted({0, *inner, LONG}), np.int64)
    windows = borders[:-1], borders[1:]
    stretches = [range(*ends) for ends in zip(*map(np.ndarray.tolist, windows), strict=True)]
    totals = [[sum(under_way[at] and what[at] == kind for at in of) for of in stretches] for kind in (WORK, TRACED)]
    found = overlap.within(windows)
    assert found[:2].tolist() == totals
    assert found.sum(axis=0).tolist() == [sum(under_way[at] for at in of) for of in stretches]


def test_times_of_weeks_do_not_overflow() -> None:
    week = 7 * 24 * 3600 * 10**12
    start = week + np.arange(0, 4_000_000, 10, dtype=np.int64)
    work, _ = times_by_role(start, start + 10, (np.arange(len(start)) % 2 + WORK).astype(np.uint8))
    until = TimeUntil(work)
    assert (until(start[-1:] + 10) - until(start[:1])).tolist() == [2_000_000]


def test_a_done_ends_the_last_start_that_has_none() -> None:
    start = np.array([0, 10, 20, 30, 40, 50], np.int64)
    is_done = np.array([True, False, True, True, False, False])
    pairs, lost = paired(np.zeros(6, np.int64), start, start + 5, np.full(6, 5, np.int64), start, is_done)
    assert (pairs.begin_ps.tolist(), pairs.end_ps.tolist(), pairs.own_ps.tolist()) == ([10], [25], [10])
    assert lost == 4

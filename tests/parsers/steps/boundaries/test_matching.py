"""Which steps of hosts belong together, where their clocks are apart by more than a step takes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpuprof.parsers.steps.boundaries.markers import CoreSteps
from tpuprof.parsers.steps.boundaries.matching import CLOCKS_APART_PS, HostSteps, clock_ahead, matched
from tpuprof.parsers.steps.boundaries.sparse_core import _same_steps

US, MS = 10**6, 10**9


def host(
    lengths: Sequence[int], ahead: int = 0, first: int = 0, names_from: int | None = None, numbered: bool = False
) -> HostSteps:
    """Steps end to end without the first ones, by a clock that is ahead; names count from the first of them on."""
    ends = np.array([0, *accumulate(lengths)], np.int64) + ahead
    number = first if names_from is None else names_from
    count = len(lengths) - first
    return HostSteps(tuple(str(number + at) for at in range(count)), numbered, ends[first:-1], ends[first + 1 :])


def pauses(step: int, pause: int, every: int, count: int = 24) -> list[int]:
    """Lengths of steps that vary a little, some with a pause."""
    return [step + at * 7919 % 13 * US + (pause if at % every == every - 1 else 0) for at in range(count)]


@pytest.mark.parametrize("ahead", [-11, 0, 3.7, 11.1, 19])
@pytest.mark.parametrize("step", [0.3, 1.8, 7, 30])
@pytest.mark.parametrize("first", [0, 2])
def test_pauses_show_which_steps_belong_together(ahead: float, step: float, first: int) -> None:
    """Neither host numbers its steps, and one of them begins to record later."""
    lengths = pauses(round(step * MS), 40 * MS, every=4)
    hosts = [host(lengths), host(lengths, round(ahead * MS), first, names_from=0)]
    assert abs(clock_ahead(hosts[1], hosts[0]) + round(ahead * MS)) < US
    mine, its = matched(hosts)
    assert mine.tolist() == list(range(first, len(lengths)))
    assert its.tolist() == list(range(len(lengths) - first))


@pytest.mark.parametrize("hosts", [2, 4, 64])
def test_numbers_of_the_program_show_it_where_all_steps_are_alike(hosts: int) -> None:
    clocks = [at * 4 * MS % (20 * MS) for at in range(hosts)]
    even = [host([2 * MS] * 12, ahead, numbered=True) for ahead in clocks]
    assert all(rows.tolist() == list(range(12)) for rows in matched(even))


def test_numbers_that_the_periods_contradict_are_each_hosts_own() -> None:
    lengths = pauses(2 * MS, 9 * MS, every=5)
    mine, its = matched([host(lengths, numbered=True), host(lengths, 3 * MS, 1, names_from=0, numbered=True)])
    assert (mine.tolist(), its.tolist()) == (list(range(1, 24)), list(range(23)))


def test_numbers_of_steps_that_run_at_different_times_are_each_hosts_own() -> None:
    step = 2 * CLOCKS_APART_PS
    mine, its = matched([host([step] * 8, numbered=True), host([step] * 8, 0, 3, names_from=0, numbered=True)])
    assert (mine.tolist(), its.tolist()) == (list(range(3, 8)), list(range(5)))


@given(st.integers(-20, 20), st.lists(st.integers(1, 60), min_size=4, max_size=40), st.integers(0, 3))
def test_steps_are_matched_one_to_one_and_in_order(ahead: int, lengths: list[int], first: int) -> None:
    hosts = [host([MS * of for of in lengths]), host([MS * of for of in lengths], ahead * MS, min(first, 3))]
    index = matched(hosts)
    assert len({len(rows) for rows in index}) == 1
    for rows, of in zip(index, hosts, strict=True):
        assert (np.diff(rows) > 0).all()
        assert ((rows >= 0) & (rows < len(of))).all()
    assert abs(clock_ahead(*hosts)) <= CLOCKS_APART_PS


STEPS = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 9), st.sampled_from("abcd")), max_size=4)


def steps_of(spec: list[tuple[int, int, str]]) -> CoreSteps:
    """Steps by the gap before them, their length and name."""
    end = np.cumsum([gap + long for gap, long, _ in spec], dtype=np.int64)
    long = np.array([long for _, long, _ in spec], np.int64)
    return CoreSteps(tuple(name for *_, name in spec), end - long, end, long)


@given(STEPS.filter(bool), STEPS)
def test_steps_are_the_same_by_name_where_all_fit_in_time_and_else_by_their_middles(
    own: list[tuple[int, int, str]], other: list[tuple[int, int, str]]
) -> None:
    mine, its = steps_of(own), steps_of(other)
    spans = list(zip(mine.start_ps.tolist(), mine.end_ps.tolist(), strict=True))
    expected, by_time = [], []
    for name, start, end in zip(its.names, its.start_ps.tolist(), its.end_ps.tolist(), strict=True):
        named = [at for at, of in enumerate(mine.names) if of == name]
        expected.append(named[0] if named else -1)
        by_time.append(max((at for at, (a, b) in enumerate(spans) if start <= a + (b - a) // 2 < end), default=-1))
        if named and not (spans[named[0]][0] < end and start < spans[named[0]][1]):
            expected = [-1] * 9
    repeat = any(len({*of.names}) < len(of) for of in (mine, its))
    if repeat or {*expected} <= {-1} or len(expected) > len(its):
        expected = by_time
    assert _same_steps(mine, its.names, its.start_ps, its.end_ps).tolist() == expected

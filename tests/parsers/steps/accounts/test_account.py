"""The account of a core: every moment has one owner, by brute force, and every row adds up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tests.parsers.steps.test_times import Op, ops_of, steps_of, sums_of
from tpuprof.parsers.base.intervals import Int64s, Intervals, no_ints, union
from tpuprof.parsers.ops.core.sums import CoreSums
from tpuprof.parsers.ops.device import Peaks
from tpuprof.parsers.steps.accounts.causes import IdleCauses
from tpuprof.parsers.steps.accounts.core import core_account, within_steps
from tpuprof.parsers.steps.accounts.owners import OWNERS, Owner, op_owners
from tpuprof.parsers.steps.boundaries.markers import CoreSteps
from tpuprof.parsers.steps.step_account import late_one

Span = tuple[int, int]

OWNER_OF: Mapping[str, Owner] = {
    "infeed": "input",
    "outfeed": "host_transfer",
    "host send": "host_transfer",
    "copy": "copy",
    "all-reduce": "collective_transfer",
    "loop fusion": "uncounted",  # nothing counts its work here
}
LENGTH = 60


def intervals(spans: Sequence[Span]) -> Intervals:
    columns = np.array(spans, np.int64).reshape(-1, 2)
    return union(columns[:, 0], columns[:, 1])


def account(steps: Sequence[Span], ops: Sequence[Op], causes: IdleCauses) -> tuple[Int64s, Int64s]:
    of = steps_of(*steps)
    return account_of(of, sums_of(ops_of(ops), of.start_ps, of.end_ps)[1], Peaks(), causes)


def account_of(steps: CoreSteps, sums: CoreSums, peaks: Peaks, causes: IdleCauses) -> tuple[Int64s, Int64s]:
    owners = op_owners(sums.table, peaks)
    of_ops = sums.cells.by_kind(owners.owner, len(OWNERS), len(steps))
    ideal = sums.cells.weighted(owners.ideal, len(steps))
    return core_account(steps, sums.busy, of_ops, ideal, causes, (no_ints(), no_ints()))


def times(row: Int64s) -> dict[str, int]:
    return {owner: int(ps) for owner, ps in zip(OWNERS, row.tolist(), strict=True) if ps}


SPANS = st.lists(st.tuples(st.integers(0, LENGTH), st.integers(1, 20)).map(lambda s: (s[0], s[0] + s[1])), max_size=3)


@st.composite
def one_after_the_other(draw: st.DrawFn, most: int, least: int = 0) -> list[Span]:
    """Spans that do not overlap, in order."""
    out, at = [], 0
    for gap, length in draw(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=least, max_size=most)):
        out.append((at + gap, at + gap + length))
        at = out[-1][1]
    return out


@given(
    one_after_the_other(5, 1),
    one_after_the_other(8),
    st.data(),
    SPANS,
    SPANS,
    SPANS,
    SPANS,
    SPANS,
    SPANS,
    st.booleans(),
)
@settings(max_examples=2 * EXAMPLES)
def test_every_moment_has_the_owner_that_the_definitions_give_it(
    steps: list[Span],
    ops: list[Span],
    data: st.DataObject,
    waits: list[Span],
    compiling: list[Span],
    barrier: list[Span],
    running: list[Span],
    launched: list[Span],
    behind: list[Span],
    has_runs: bool,
) -> None:
    categories = data.draw(st.lists(st.sampled_from(sorted(OWNER_OF)), min_size=len(ops), max_size=len(ops)))
    events: list[Op] = [(f"{category}.1", category, *span) for category, span in zip(categories, ops, strict=True)]
    causes = IdleCauses(
        input=intervals(waits),
        compiling=intervals(compiling),
        barrier=intervals(barrier),
        running=intervals(running) if has_runs else None,
        launched=intervals(launched),
        behind=intervals(behind),
    )
    owner_ps, between_ps = account(steps, events, causes)
    spans = [*steps]
    assert (owner_ps >= 0).all()
    assert (between_ps >= 0).all()
    assert owner_ps.sum(axis=1).tolist() == [end - start for start, end in spans]
    after = [(end, start) for (_, end), (start, _) in zip(spans, [*spans[1:], (spans[-1][1], 0)], strict=True)]
    assert between_ps.sum(axis=1).tolist() == [end - start for start, end in after]

    def inside(moment: int, of: Sequence[Span]) -> bool:
        return any(start <= moment < end for start, end in of)

    def owner(moment: int) -> Owner:
        by_op = next((event for event in events if event[2] <= moment < event[3]), None)
        if by_op is not None:
            return OWNER_OF[by_op[1]]
        for name, of in (("input", waits), ("compile", compiling), ("barrier", barrier)):
            if inside(moment, of):
                return name  # type: ignore[return-value]
        if not has_runs or inside(moment, running):
            return "between_ops"
        if inside(moment, launched):
            return "dispatch"
        return "barrier" if inside(moment, behind) else "host"

    borders = {border for step in spans for border in step}
    if any(start < border < end for start, end in ops for border in borders):
        return  # an op across a border counts in the step in which it starts
    for row, (start, end) in zip(owner_ps, spans, strict=True):
        expected = [owner(moment) for moment in range(start, end)]
        assert times(row) == {name: expected.count(name) for name in OWNERS if name in expected}
    for row, (start, end) in zip(between_ps, after, strict=True):
        expected = [
            "uncounted" if any(a <= moment < b for a, b in ops) else owner(moment) for moment in range(start, end)
        ]
        assert times(row) == {name: expected.count(name) for name in OWNERS if name in expected}


@given(
    st.lists(
        st.tuples(st.lists(st.integers(0, 1 << 50), min_size=3, max_size=3), st.integers(0, 1 << 50)),
        min_size=1,
        max_size=5,
    ),
    st.integers(0, 100),
)
def test_cut_times_fit_and_none_is_negative(spec: list[tuple[list[int], int]], between: int) -> None:
    of_ops = np.zeros((len(spec), len(OWNERS)), np.int64)
    of_ops[:, :3] = [times for times, _ in spec]
    duration = np.array([duration for _, duration in spec], np.int64)
    kept = within_steps(of_ops, duration, np.full(len(spec), between, np.int64))
    assert (kept >= 0).all()
    assert (kept.sum(axis=1) <= duration).all()
    fits = of_ops.sum(axis=1) <= duration
    assert (kept[fits] >= of_ops[fits]).all()


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 9)), max_size=6))
def test_who_waits_least_is_late_or_its_host_where_all_cores_of_that_wait_as_little(
    cores: list[tuple[str, int]],
) -> None:
    names, waits = [f"{host}:{at}" for at, (host, _) in enumerate(cores)], [wait for _, wait in cores]
    late = [4 * wait * len(waits) <= sum(waits) for wait in waits]
    expected = ""
    if any(waits) and late[waits.index(min(waits))]:
        expected, host = names[waits.index(min(waits))], cores[waits.index(min(waits))][0]
        if all(is_late == (of == host) or of != host for is_late, (of, _) in zip(late, cores, strict=True)):
            expected = host if {of for of, _ in cores} != {host} else expected
    assert late_one(names, np.array(waits, np.float64)) == expected

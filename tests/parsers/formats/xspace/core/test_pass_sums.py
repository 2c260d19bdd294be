"""Sums by step and op as a table and one by one: the same, and those of brute force."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tpuprof.parsers.formats.xspace.core.pass_sums import StepTable

STEPS, OPS, KINDS = 4, 5, 3
CELLS = st.lists(st.tuples(st.integers(-9, 2**62), st.integers(0, 9)), min_size=30, max_size=30)


@given(st.lists(st.integers(0, STEPS - 1), max_size=6), st.permutations(range(OPS)), CELLS, st.integers(0, OPS))
def test_a_table_and_its_entries_add_up_to_the_same(
    step: list[int], row: list[int], of: list[tuple[int, int]], ops: int
) -> None:
    kind, weight, left = np.array([1, 0, 2, 1, 0]), np.array([0.5, 0.0, 1.0, 0.25, 2.0]), np.array([1, -1, 0, 2])
    shape, size = (len(step), ops), len(step) * ops
    self_ps, count = np.array(of, np.int64).T[:, :size].reshape(2, *shape)
    self_ps = np.where(count > 0, self_ps, 0)
    table = StepTable(np.array(step, np.int32), np.array(row[:ops], np.int32), self_ps, count.astype(np.int32))
    by_op = np.zeros((2, STEPS, OPS), np.int64)
    for at, column in np.ndindex(shape):
        by_op[:, step[at], row[column]] += (self_ps[at, column], count[at, column])
    by_kind = np.stack([by_op[0, :, kind == each].sum(axis=0) for each in range(KINDS)], axis=1)
    moved, work, chosen = np.zeros_like(by_op), np.stack([weight, kind], axis=1), left >= 0
    moved[:, left[chosen]] = by_op[:, chosen]
    for found in (table, table.each()):
        assert found.by_kind(kind, KINDS, STEPS).tolist() == by_kind.tolist()
        assert np.allclose(found.weighted(weight, STEPS), by_op[0].astype(float) @ weight)
        assert found.work(work, STEPS).tolist() == (by_op[1] @ work).tolist()
        assert np.array_equal(found.by_op(OPS, chosen), by_op[:, chosen].sum(axis=1))
        assert np.array_equal(found.moved(left).by_op(OPS, np.arange(STEPS) == 1), moved[:, 1])

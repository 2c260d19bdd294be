"""Local maxima of the memory in use, and the buffers of an op."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.made.compiled import compiled_modules
from tpuprof.parsers.memory.model import HBM
from tpuprof.parsers.memory.modules.peaks import LEAST_DROP, next_peak, peaks, stays_of


def test_peaks_are_parted_by_a_fall_and_a_rise() -> None:
    heap = np.array([0, 50, 100, 100, 40, 40, 90, 10, 95], np.int64)
    assert peaks(heap).tolist() == [2, 6, 8]
    assert next_peak(heap, 2, 1) == 6
    assert next_peak(heap, 6, -1) == 2
    assert next_peak(heap, 5, 1) == 6
    assert next_peak(heap, 8, 1) is None
    assert next_peak(heap, 2, -1) is None


def test_a_small_fall_parts_nothing() -> None:
    assert peaks(np.array([0, 1000, 990, 1001, 0], np.int64)).tolist() == [3]


@pytest.mark.parametrize(("heap", "found"), [([], []), ([7], [0]), ([0, 0, 0], [0]), ([5, 1], [0]), ([1, 5], [1])])
def test_short_curves(heap: list[int], found: list[int]) -> None:
    assert peaks(np.array(heap, np.int64)).tolist() == found


@given(st.lists(st.integers(0, 400), min_size=1, max_size=60))
def test_what_a_peak_is(values: list[int]) -> None:
    heap = np.array(values, np.int64)
    found = peaks(heap).tolist()
    drop = max(1, int(LEAST_DROP * heap.max()))
    assert int(heap[found].max()) == int(heap.max())
    assert found == sorted(set(found))
    for at in found:
        assert heap[at] >= heap[at - 1 if at else 0]
        assert heap[at] >= heap[min(at + 1, len(heap) - 1)]
    for one, other in pairwise(found):
        between = int(heap[one : other + 1].min())
        assert between <= min(heap[one], heap[other]) - drop


def test_the_buffers_of_an_op_are_found_by_its_name_alone() -> None:
    compiled = compiled_modules()
    space = compiled.space(compiled.find("jit_train_step"), HBM)
    rows = stays_of(space, "fusion.397").tolist()
    assert rows
    assert all(space.buffers[row].name.partition("{")[0] == "fusion.397" for row in rows)
    assert space.stays.size_bytes[rows].tolist() == sorted(space.stays.size_bytes[rows].tolist(), reverse=True)
    assert not len(stays_of(space, "fusion.39"))
    assert not len(stays_of(space, "no such op"))

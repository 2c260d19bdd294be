"""Whether the compiled loops are there; sums and minima of groups, and what is refused."""

from __future__ import annotations

import sys
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.formats.xspace.core.plain import MAX_INT64, signed
from tpuprof.parsers.formats.xspace.core import api, compiled
from tpuprof.parsers.formats.xspace.core.op_pass import OpPass
from tpuprof.parsers.formats.xspace.core.types import EventColumns

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


# --- the compiled loops ---


def test_without_compiled_loops_the_fallback_decodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, compiled.NAME, None)
    assert compiled.loaded() is None
    monkeypatch.setattr(api, "CORE", None)
    assert api.core_name() == "python"
    assert api.split_fields(b"\x08\x01").number.tolist() == [1]


def test_loops_of_an_older_source_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, compiled.NAME, ModuleType("_core"))
    assert compiled.loaded() is None


# --- groups ---


@given(st.lists(st.tuples(st.integers(0, 6), INT64)), st.sampled_from([np.int32, np.int64]))
def test_groups_equal_exact_sums_and_minima(pairs: list[tuple[int, int]], kind: type[np.integer]) -> None:
    keys = np.array([key for key, _ in pairs], kind)
    values = np.array([value for _, value in pairs], np.int64)
    sums = [signed(sum(value for key, value in pairs if key == k)) for k in range(7)]
    minima = [min([value for key, value in pairs if key == k], default=MAX_INT64) for k in range(7)]
    assert api.sum_by_key(keys, values, 7).tolist() == sums
    assert api.min_by_key(keys, values, 7).tolist() == minima


def test_groups_without_values() -> None:
    nothing = np.zeros(0, np.int64)
    assert api.sum_by_key(nothing, nothing, 0).tolist() == []
    assert api.sum_by_key(nothing, nothing, 2).tolist() == [0, 0]
    assert api.min_by_key(nothing, nothing, 1).tolist() == [MAX_INT64]


@pytest.mark.parametrize("key", [-1, 3, 1 << 31, -(1 << 63), MAX_INT64])
def test_a_key_out_of_range_is_refused(key: int) -> None:
    keys, values = np.array([0, key, 2]), np.array([1, 2, 3])
    for function in (api.sum_by_key, api.min_by_key):
        with pytest.raises(ValueError):
            function(keys, values, 3)


def test_groups_of_wrong_shape_are_refused() -> None:
    one, two = np.zeros(1, np.int64), np.zeros(2, np.int64)
    for function in (api.sum_by_key, api.min_by_key):
        with pytest.raises(ValueError):
            function(one, two, 3)
        with pytest.raises(ValueError):
            function(one, one, -1)
        with pytest.raises(ValueError):
            function(np.zeros((1, 1), np.int64), one, 3)
        with pytest.raises(ValueError):
            function(one, np.zeros(1, np.float64), 3)
        with pytest.raises(ValueError):
            function(one.astype(np.uint64), one, 3)


def test_arrays_that_are_not_contiguous_or_aligned_are_taken() -> None:
    values = np.arange(6)[::2]
    unaligned = np.frombuffer(b"x" + np.array([1, 0, 1]).tobytes(), np.uint8)[1:].view(np.int64)
    assert api.sum_by_key(unaligned, values, 2).tolist() == [2, 4]


@pytest.mark.parametrize("row", [(1 << 63) - 1, 1 << 61, 4, -2])
def test_a_row_that_no_array_has_is_refused(row: int) -> None:
    """Also one whose place is beyond what a number holds."""
    pytest.importorskip(compiled.NAME)
    none, two, lengths = np.zeros(0, np.int64), np.ones(2, np.int64), np.zeros(2, np.uint32)
    kinds, values = np.full((3, 2), 3, np.uint8), np.ones((3, 2), np.int64)
    events = EventColumns(two.astype(np.int32), two, two, kinds[0], two, lengths, kinds, values, lengths)
    for rows in ((row, 1, -1), (0, row, -1), (0, 1, row)):
        made = OpPass(np.zeros(2, np.bool_), np.zeros(0, np.uint8), none, none, none, 9, False)
        with pytest.raises(ValueError, match="different lengths"):
            made.take(events, 2, 0, rows)

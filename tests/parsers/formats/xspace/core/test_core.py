"""Which core is used, sums and minima of groups, and what both cores refuse."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.formats.xspace.core.test_events import signed
from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.formats.xspace.core import api as dispatch
from tpuprof.parsers.formats.xspace.core.types import Core

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
MAX_INT64 = (1 << 63) - 1


# --- choice of the core ---


@pytest.fixture
def choose(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str | None], None]]:
    """Sets the environment variable, and forgets the choice made before and after."""

    def set_variable(value: str | None) -> None:
        dispatch._core.cache_clear()
        if value is None:
            monkeypatch.delenv(dispatch.VARIABLE, raising=False)
        else:
            monkeypatch.setenv(dispatch.VARIABLE, value)

    yield set_variable
    dispatch._core.cache_clear()


def hide_compiled_module(monkeypatch: pytest.MonkeyPatch) -> None:
    package = "tpuprof.parsers.formats.xspace.core"
    monkeypatch.delitem(sys.modules, f"{package}.c_core", raising=False)
    monkeypatch.setitem(sys.modules, f"{package}._core", None)
    monkeypatch.delattr(sys.modules[package], "c_core", raising=False)
    monkeypatch.delattr(sys.modules[package], "_core", raising=False)


def test_the_variable_forces_numpy(choose: Callable[[str | None], None]) -> None:
    choose("numpy")
    assert dispatch.core_name() == "numpy"
    assert dispatch.split_fields(b"\x08\x01").number.tolist() == [1]


def test_the_compiled_core_is_preferred(choose: Callable[[str | None], None]) -> None:
    pytest.importorskip("tpuprof.parsers.formats.xspace.core._core", reason="the compiled core is not built")
    for value in (None, "", "c"):
        choose(value)
        assert dispatch.core_name() == "c"


def test_numpy_steps_in_without_the_compiled_module(
    choose: Callable[[str | None], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    hide_compiled_module(monkeypatch)
    choose(None)
    assert dispatch.core_name() == "numpy"


def test_forcing_a_missing_core_is_an_error_with_a_hint(
    choose: Callable[[str | None], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    hide_compiled_module(monkeypatch)
    choose("c")
    with pytest.raises(ProfileError) as caught:
        dispatch.core_name()
    assert caught.value.code == "no_compiled_core"
    assert caught.value.exit_code == EXIT_USAGE
    assert "TPUPROF_CORE" in caught.value.sentence
    assert caught.value.hint


def test_an_unknown_core_is_an_error(choose: Callable[[str | None], None]) -> None:
    choose("fortran")
    with pytest.raises(ProfileError, match="fortran"):
        dispatch.split_fields(b"")


def test_the_dispatch_passes_everything_on(choose: Callable[[str | None], None]) -> None:
    choose("numpy")
    buf = b"\x22\x04\x08\x05\x18\x07"
    fields = dispatch.split_fields(buf)
    events = dispatch.decode_events(buf, fields.begin, fields.end)
    assert (events.metadata_id.tolist(), events.duration_ps.tolist()) == ([5], [7])
    stats = dispatch.stat_columns(buf, np.array([0]), np.array([6]), 4, np.array([5]))
    assert (stats.kind.tolist(), stats.value.tolist()) == ([[3]], [[7]])
    assert dispatch.nest(np.array([0, 1]), np.array([9, 2])).parent.tolist() == [-1, 0]
    assert dispatch.sum_by_key(np.array([1]), np.array([4]), 2).tolist() == [0, 4]
    assert dispatch.min_by_key(np.array([1]), np.array([4]), 2).tolist() == [MAX_INT64, 4]


# --- groups ---


@given(st.lists(st.tuples(st.integers(0, 6), INT64)), st.sampled_from([np.int32, np.int64]))
def test_groups_equal_exact_sums_and_minima(core: Core, pairs: list[tuple[int, int]], kind: type[np.integer]) -> None:
    keys = np.array([key for key, _ in pairs], kind)
    values = np.array([value for _, value in pairs], np.int64)
    sums = [signed(sum(value for key, value in pairs if key == k)) for k in range(7)]
    minima = [min([value for key, value in pairs if key == k], default=MAX_INT64) for k in range(7)]
    assert core.sum_by_key(keys, values, 7).tolist() == sums
    assert core.min_by_key(keys, values, 7).tolist() == minima


def test_sums_are_exact_where_doubles_are_not(core: Core) -> None:
    values = np.full(3, (1 << 53) + 1, np.int64)
    assert core.sum_by_key(np.zeros(3, np.int32), values, 1).tolist() == [3 * ((1 << 53) + 1)]


def test_groups_without_values(core: Core) -> None:
    nothing = np.zeros(0, np.int64)
    assert core.sum_by_key(nothing, nothing, 0).tolist() == []
    assert core.sum_by_key(nothing, nothing, 2).tolist() == [0, 0]
    assert core.min_by_key(nothing, nothing, 1).tolist() == [MAX_INT64]


@pytest.mark.parametrize("key", [-1, 3, 1 << 31, -(1 << 63), MAX_INT64])
def test_a_key_out_of_range_is_refused(core: Core, key: int) -> None:
    keys, values = np.array([0, key, 2]), np.array([1, 2, 3])
    for function in (core.sum_by_key, core.min_by_key):
        with pytest.raises(ValueError):
            function(keys, values, 3)


def test_groups_of_wrong_shape_are_refused(core: Core) -> None:
    one, two = np.zeros(1, np.int64), np.zeros(2, np.int64)
    for function in (core.sum_by_key, core.min_by_key):
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


def test_arrays_that_are_not_contiguous_or_aligned_are_taken(core: Core) -> None:
    values = np.arange(6)[::2]
    unaligned = np.frombuffer(b"x" + np.array([1, 0, 1]).tobytes(), np.uint8)[1:].view(np.int64)
    assert core.sum_by_key(unaligned, values, 2).tolist() == [2, 4]


@pytest.mark.parametrize("row", [(1 << 63) - 1, 1 << 61, 4, -2])
def test_a_row_that_no_array_has_is_refused(row: int) -> None:
    """Also one whose place is beyond what a number holds."""
    compiled = pytest.importorskip("tpuprof.parsers.formats.xspace.core._core")
    events = [array("i", [0, 0]), array("q", [1, 2]), array("q", [1, 1]), array("B", [3] * 6), array("q", [1] * 6)]
    outputs = [array("B", [0]), array("q", [0] * 10), array("q", [0] * 12)]
    for rows in ((row, 1), (0, row)):
        with pytest.raises(ValueError, match="different lengths"):
            compiled.op_border(*events, *outputs, 0, 2, *rows)

"""What is kept of hosts: whatever they and their pages consist of comes back as it was, and nothing else does."""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpuprof.parsers.hosts.codec import DAMAGED, LARGE, decode, encode
from tpuprof.parsers.hosts.op_summary import OpSummary
from tpuprof.parsers.hosts.summary import HostSummary
from tpuprof.parsers.ops.device import Peaks
from tpuprof.parsers.ops.streams.kernels import Kernel
from tpuprof.parsers.ops.table import OpTable
from tpuprof.parsers.pages.findings.finding import Finding
from tpuprof.parsers.pages.ops.ops import OpsPage
from tpuprof.parsers.pages.overview.ledger import MeanStep
from tpuprof.parsers.pages.overview.model import Overview
from tpuprof.parsers.pages.shared.groups import CoreGroup
from tpuprof.parsers.pages.shared.latencies import InferencePage
from tpuprof.parsers.steps.boundaries.duty import ChipDuty
from tpuprof.parsers.steps.generic.step_events import GenericSummary
from tpuprof.parsers.steps.model import GenericBreakdown, SparseCoreTime, StepTime
from tpuprof.parsers.steps.xprof_view import XprofBreakdown

TEXTS = "none are kept apart here"


def no_text(_: bytes | str) -> Any:
    raise KeyError(TEXTS)


def returned(value: object) -> object:
    """What comes back; large texts are kept in a dict."""
    texts: dict[str, bytes] = {}

    def keep(text: bytes) -> str:
        assert len(text) >= LARGE
        name = str(len(texts))
        texts[name] = text
        return name

    return decode(memoryview(encode(value, keep)), texts.__getitem__)


def assert_same(one: Any, other: Any, path: str = "") -> None:
    """The same types and values all the way down; NaN is NaN."""
    if isinstance(one, np.ndarray):
        assert isinstance(other, np.ndarray), path
        assert one.dtype == other.dtype, path
        np.testing.assert_array_equal(one, other, path)
        return
    if isinstance(one, Mapping):
        assert isinstance(other, dict), path
        assert list(one) == list(other), path
        for key in one:
            assert_same(one[key], other[key], f"{path}[{key}]")
        return
    assert type(one) is type(other), path
    if is_dataclass(one):
        for field in fields(one):
            assert_same(getattr(one, field.name), getattr(other, field.name), f"{path}.{field.name}")
    elif isinstance(one, tuple):
        assert len(one) == len(other), path
        for number, (mine, its) in enumerate(zip(one, other, strict=True)):
            assert_same(mine, its, f"{path}[{number}]")
    else:
        assert one == other or (one != one and other != other), path


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(st.characters()) | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=4).map(tuple) | st.dictionaries(st.text() | st.integers(), inner, max_size=3)
    ),
    max_leaves=12,
)
arrays = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1)).map(lambda values: np.array(values, np.int64)),
    st.lists(st.integers(-200, 200)).map(lambda values: np.array(values, np.int64)),
    st.lists(st.integers(0, 2**64 - 1)).map(lambda values: np.array(values, np.uint64)),
    st.lists(st.floats()).map(lambda values: np.array(values, np.float64)),
    st.lists(st.booleans()).map(lambda values: np.array(values, np.bool_)),
    st.just(np.zeros((0, 7), np.int64)),
    st.integers(0, 2**40).map(lambda value: np.arange(value, value + 24).reshape(2, 3, 4)),
)


@given(plain, arrays)
def test_any_value_comes_back(value: object, array: object) -> None:
    both = (value, array, Peaks(1e12, 2.0, None, 3.5))
    assert_same(both, returned(both))


def test_many_records_take_their_columns() -> None:
    """Field names and classes stand once; what is inside is as any value."""
    many = tuple(Peaks(float(number), None, 2.0, None) for number in range(100))
    nested = tuple(ChipDuty(number, number + 1) for number in range(5)), (many, many)
    assert_same(nested, returned(nested))
    assert len(encode(many, no_text)) < 100 * 40
    mixed = (Peaks(1.0), ChipDuty(1, 2), None, Peaks(2.0), Peaks(3.0))
    assert_same(mixed, returned(mixed))


def test_counts_take_few_bytes() -> None:
    """The columns of steps and ops are of 64 bits; what they hold mostly needs 8 to 32."""
    small, large = np.arange(1000, dtype=np.int64), np.arange(1000, dtype=np.int64) << 40
    assert len(encode(small, no_text)) < 2200 < 8000 < len(encode(large, no_text))


def test_other_classes_are_refused() -> None:
    @dataclass(frozen=True)
    class Elsewhere:
        value: int

    for value in (Elsewhere(1), [1], {1}, object(), np.float32(1), len):
        with pytest.raises(TypeError):
            encode(value, no_text)


@pytest.mark.parametrize(
    "name",
    [
        "os:system",
        "base.errors:ProfileError",
        "ops.table:merge_tables",
        "..:x",
        "hosts.workers.pool:Task.x",
        "ops.table:",
        7,
    ],
)
def test_only_records_of_the_parsers_are_made(name: object) -> None:
    tree = json.dumps([[name], {"record": 0, "of": []}]).encode()
    with pytest.raises(DAMAGED):
        decode(memoryview(len(tree).to_bytes(8, "little") + tree), no_text)


# --- completeness: the types that summaries and pages are made of, by their annotations

LATER = {
    of.__name__: of
    for of in (
        *(Finding, GenericBreakdown, GenericSummary, InferencePage, Kernel, SparseCoreTime, MeanStep, StepTime),
        *(CoreGroup, XprofBreakdown),
    )
}
"""Classes that a module names in annotations and does not import."""

_LEAVES = (int, float, str, bytes, bool, type(None))


def unsupported(hint: Any, seen: set[type], path: str) -> list[str]:
    """Where a type is none that the codec writes."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal or hint in _LEAVES or origin is np.ndarray:
        return []
    if origin in (typing.Union, types.UnionType, tuple, Mapping, dict):
        return [line for part in parts if part is not Ellipsis for line in unsupported(part, seen, path)]
    if is_dataclass(hint) and isinstance(hint, type):
        if hint in seen:
            return []
        seen.add(hint)
        hints = get_type_hints(hint, localns=LATER)
        return [line for name in hints for line in unsupported(hints[name], seen, f"{path}.{name}")]
    return [f"{path}: {hint}"]


@pytest.mark.parametrize("root", [HostSummary, OpSummary, Overview, OpsPage, OpTable, GenericSummary])
def test_all_that_is_kept_consists_of_what_can_be_kept(root: type) -> None:
    seen: set[type] = set()
    assert unsupported(root, seen, root.__name__) == []
    assert root in seen

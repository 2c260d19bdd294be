"""What a filter that is typed may become, and what is nearest to one that keeps no row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tpuprof.parsers.ops.filtering.filter import OpColumns, parse_filter
from tpuprof.parsers.ops.filtering.nearest import completions, nearest_filter

VALUES: dict[str, Sequence[Any]] = {"occurrences": [4, 60, 2], "kind": ["gather", "scatter", None]}
COLUMNS = OpColumns(
    name=["fusion.1", "all-reduce.2", "copy.3"],
    category=["convolution fusion", "all-reduce", "copy"],
    framework_op=["jit(f)/attention/dot_general", "", "jit(f)/mlp/mul"],
    program=["jit_f"] * 3,
    bound_by=["compute", "unknown", "hbm"],
    later=lambda _: ["", "", ""],
    self_ps=np.array([5_000, 3_000, 1_000], np.int64),
    self_share=np.array([0.5, 0.3, np.nan]),
    keys=VALUES,
    values=VALUES.__getitem__,
)


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("fusoin", "fusion"),
        ("cat:copi", "cat:copy"),
        ("op:atention", "op:attention"),
        (">1ms", ">=5000ps"),
        ("<1ps", "<=1000ps"),
        (">90%", ">=50%"),
        ("occurrences>100", "occurrences>=60"),
        ("kind=scater", "kind=scatter"),
        ("fusion copy.3", "fusion"),
        ("zzzzzz", ""),
        ("!jit", ""),
        ('"', ""),
    ],
)
def test_the_nearest_filter_keeps_a_row(text: str, near: str) -> None:
    assert nearest_filter(text, COLUMNS) == near
    if near:
        assert parse_filter(near, COLUMNS.keys).mask(COLUMNS).any(), "it would have some"
        assert not parse_filter(text, COLUMNS.keys).mask(COLUMNS).any()


@pytest.mark.parametrize(
    ("begun", "words"),
    [
        ("occ", ["occurrences"]),
        ("ca", ["cat:"]),
        ("cat:c", ["cat:convolution", "cat:copy"]),
        ("bound:h", ["bound:hbm"]),
        ("remat:", ["remat:yes", "remat:no"]),
        ("atten", ["attention"]),
        ("zz", []),
    ],
)
def test_words_that_a_filter_knows(begun: str, words: list[str]) -> None:
    assert sorted(completions(begun, COLUMNS)) == sorted(words)


def test_all_prefixes_and_columns_are_offered_first() -> None:
    assert {"name:", "cat:", "op:"} < set(completions("", COLUMNS)) and len(completions("", COLUMNS)) <= 12

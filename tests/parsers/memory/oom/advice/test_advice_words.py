"""Sizes in words, and what an array takes in another type or with another axis."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.memory.oom.advice.needs import GIB, MIB, buffer, need_of
from tpuprof.parsers.memory.account.roles import BufferFacts, read
from tpuprof.parsers.memory.oom.advice.rule import bare, half, rounding
from tpuprof.parsers.memory.oom.advice.words import capacity


def item(shape: str, size: int | None = None) -> BufferFacts:
    """A buffer of a shape, read."""
    return read(need_of(buffer(shape, size=size))).items[0]


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (int(15.75 * GIB), "15.75 GiB"),
        (int(31.25 * GIB), "31.25 GiB"),
        (16 * GIB, "16 GiB"),
        (100 * GIB, "100 GiB"),
        (int(95.74 * GIB), "95.74 GiB"),
        (128 * MIB, "128 MiB"),
        (1000, "1000 B"),
        (-(2**200), "-1073741824 PiB"),
    ],
)
def test_capacities(size: int, text: str) -> None:
    assert capacity(size) == text


@pytest.mark.parametrize(
    ("f32", "bf16"),
    [
        ("f32[64,1000,300]{2,1,0:T(8,128)}", "bf16[64,1000,300]{2,1,0:T(8,128)(2,1)}"),
        ("f32[64,3,300]{2,1,0:T(4,128)}", "bf16[64,3,300]{2,1,0:T(4,128)(2,1)}"),
        ("f32[64,1,300]{2,1,0:T(1,128)}", "bf16[64,1,300]{2,1,0:T(2,128)(2,1)}"),
        ("f32[5000]{0:T(1024)}", "bf16[5000]{0:T(1024)(128)(2,1)}"),
        ("f32[100]{0:T(128)}", "bf16[100]{0:T(256)(128)(2,1)}"),
    ],
)
def test_float32_in_bfloat16(f32: str, bf16: str) -> None:
    assert half(item(f32)) == item(bf16).size


def test_half_of_what_is_unknown() -> None:
    assert half(item("f32[64,300]", 1001)) == 501
    assert bare(item("f32[64,300]", 1001)) == 1001


@given(st.integers(1, 2000), st.sampled_from(["1,0:T(8,128)", "0,1:T(8,128)", "1,0:T(6,128)", "1,0", ""]))
def test_a_longer_axis_never_takes_less(length: int, layout: str) -> None:
    made = item(f"f32[{length},64]{{{layout}}}" if layout else f"f32[{length},64]", 1 << 20)
    how = rounding(made, 0)
    sizes = [how.scaled(made.size, other) for other in range(1, length + 20)]
    assert sizes == sorted(sizes)
    assert sizes[length - 1] == made.size

"""Memory of each TPU generation, as the compiler's errors state it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.build import present
from tpuprof.parsers.base.tpus import generation_named, generation_of
from tpuprof.parsers.memory.model import CMEM, HBM, HOST, SFLAG, SMEM, SPARSE_CORE, VMEM, Capacity
from tpuprof.parsers.memory.modules.capacity import capacity_of

GIB, MIB = 2**30, 2**20


def size(device_type: str, space: int) -> int:
    return present(capacity_of(device_type, space)).size_bytes


@pytest.mark.parametrize(
    ("device_type", "generation"),
    [
        ("TPU v5e", "TPU v5e"),
        ("TPU v5 lite", "TPU v5e"),
        ("TPU v5 Lite", "TPU v5e"),
        ("TPU v5litepod", "TPU v5e"),
        ("TPU_V5E", "TPU v5e"),
        ("TPU v6 Lite", "TPU v6e"),
        ("TPU v6e", "TPU v6e"),
        ("TPU v5p", "TPU v5p"),
        ("TPU v5", "TPU v5p"),
        ("TPU V4", "TPU v4"),
        (" TPU  v3 ", "TPU v3"),
        ("TPU v2", "TPU v2"),
        ("TPU7x", "TPU7x"),
        ("TPU v7x", "TPU7x"),
        ("TPU v4i", None),
        ("TPU v4 lite", None),
        ("TPU v6", None),
        ("TPU v9", None),
        ("TPU v5e extra", None),
        ("TPU", None),
        ("Nvidia GPU (Volta)", None),
        ("", None),
        (None, None),
    ],
)
def test_types_are_known_however_they_are_written(device_type: str | None, generation: str | None) -> None:
    assert generation_of(device_type) == generation
    assert (capacity_of(device_type, HBM) is None) == (generation is None)


@pytest.mark.parametrize(
    ("typed", "generation"),
    [
        *((text, "TPU v5e") for text in ("v5e", "v5litepod-8", "tpu-v5-lite-podslice", "ct5lp-hightpu-4t", "V5E-2x4")),
        *((text, "TPU v6e") for text in ("v6e-8", "Trillium", "tpu-v6e-slice", "ct6e-standard-8t", "Cloud TPU v6e")),
        *((text, "TPU7x") for text in ("ironwood", "tpu7x-standard-4t", "7x", "TPU Ironwood")),
        *((text, "TPU v5p") for text in ("v5p-16", "ct5p-hightpu-4t")),
        *((text, "TPU v4") for text in ("TPU v4", "v4-8", "tpu-v4-podslice", "ct4p-hightpu-4t")),
        *((text, None) for text in ("", "h100", "v9-8", "v5e-8-x", "trillium chip extra")),
    ],
)
def test_a_device_is_known_as_people_call_it(typed: str, generation: str | None) -> None:
    assert generation_named(typed) == generation


@pytest.mark.parametrize(
    ("generation", "hbm", "vmem", "smem"),
    [
        # "Used … of 7.48G hbm", "… of 16.00M vmem", "would exceed memory (size=16384)" of smem
        ("TPU v2", "7.48", "16.00", 16384),
        ("TPU v3", "15.48", "16.00", 16384),
        ("TPU v4", "30.75", "16.00", 1048576),
        ("TPU v5e", "15.75", "128.00", 1048576),
        ("TPU v5p", "95.74", "63.94", 1048576),
        ("TPU v6e", "31.25", "127.94", 1048576),
        ("TPU7x", "94.75", "64.00", 1048576),
    ],
)
def test_limits_are_those_of_the_compilers_errors(generation: str, hbm: str, vmem: str, smem: int) -> None:
    assert f"{size(generation, HBM) / GIB:.2f}" == hbm
    assert f"{size(generation, VMEM) / MIB:.2f}" == vmem
    assert size(generation, SMEM) == smem


def test_where_a_figure_comes_from_is_said() -> None:
    assert capacity_of("TPU v5 lite", HBM) == Capacity(16909336576, "TPU v5e: limit in the compiler's errors")
    assert capacity_of("TPU v5", HBM) == Capacity(
        102803439616, "TPU v5p: limit in the compiler's errors, both cores as one device"
    )
    assert capacity_of("TPU v5", VMEM) == Capacity(67043328, "TPU v5p: limit in the compiler's errors")


@pytest.mark.parametrize("space", [SFLAG, CMEM, HOST, SPARSE_CORE, 7, -1, 2**63])
def test_spaces_without_a_known_limit_have_none(space: int) -> None:
    assert capacity_of("TPU v5e", space) is None


@given(st.text(alphabet="tpuTPU v0123456789 lite_xep-", max_size=40))
def test_any_text_is_taken(text: str) -> None:
    assert (capacity_of(text, HBM) is None) == (generation_of(text) is None)

"""Advice where no list of buffers helps, and about a kernel's own memory."""

from __future__ import annotations

import pytest

from tests.parsers.memory.oom.advice.needs import GIB, MIB, buffer, need_of
from tpuprof.parsers.memory.model import Buffer
from tpuprof.parsers.memory.oom.advice.advice import advise
from tpuprof.parsers.memory.oom.advice.plan import plan
from tpuprof.parsers.memory.oom.advice.rule import FITS


def window(operand: str, block: str, full: str) -> Buffer:
    shapes = f"The window shape is {block}, while the full shape is {full}."
    tag = (
        f"{operand.split(maxsplit=1)[0]} window allocation for operator {operand}. {shapes} It has 2 buffering levels."
    )
    return buffer("u8[33554432]{0}", name="matmul.1", category="scoped", tag=tag, label="matmul.1 = custom-call(x, y)")


def test_a_matrix_product_has_no_axis_that_all_blocks_have() -> None:
    """Where two axes are as long, nothing says which blocks have the one that is halved: no saving is made up."""
    made = (
        window("input 0", "f32[1024,4096]", "f32[4096,4096]"),
        window("input 1", "f32[4096,1024]", "f32[4096,4096]"),
        window("output 0", "f32[1024,1024]", "f32[4096,4096]"),
    )
    blocks = advise(need_of(*made, space="vmem", used=96 * MIB, capacity=64 * MIB))
    named = next(advice for advice in blocks if advice.saving_bytes is None)
    assert "which blocks have which axis is unknown" in named.arithmetic and FITS not in named.how


def test_temporaries_alone() -> None:
    need = need_of(used=int(49.29 * GIB), capacity=int(15.75 * GIB), temporaries=int(49.29 * GIB))
    (first,) = advise(need)
    assert first.sentence == "temporaries alone take 49.3 GiB, 3.1x the HBM"
    assert first.arithmetic == (
        "49.3 GiB of 49.3 GiB needed, 15.75 GiB there; a batch of 1/4 if all of it grows with the batch"
    )


def test_arguments_alone() -> None:
    (first,) = advise(need_of(used=100 * GIB, capacity=95 * GIB, arguments=80 * GIB))
    assert (first.kind, first.sentence) == ("optimizer", "arguments alone take 80.0 GiB of 100 GiB")


def test_the_program_itself() -> None:
    (first,) = advise(need_of(used=36 * GIB, capacity=31 * GIB, arguments=6 * GIB))
    assert first.sentence == "the program itself takes 30.0 GiB, its arguments 6.00 GiB"


def test_fragmentation() -> None:
    need = need_of(used=32 * GIB, capacity=31 * GIB, temporaries=26 * GIB, fragmentation=15 * GIB)
    advice = next(each for each in advise(need) if each.kind == "fragmentation")
    assert advice.sentence == "15.0 GiB of 26.0 GiB of temporaries are gaps between buffers"
    assert advice.saving_bytes is None
    few = need_of(used=32 * GIB, capacity=31 * GIB, temporaries=26 * GIB, fragmentation=GIB // 4)
    assert not any(each.kind == "fragmentation" for each in advise(few))


def test_spilled_registers() -> None:
    label = "register allocator spill slots call depth 2"
    made = buffer(None, name=label, category="scoped", size=int(29.66 * MIB), label=label)
    small = buffer("f32[128,3]{1,0}", category="scoped", size=64 << 10, name="custom-call.1")
    spilled = advise(need_of(made, small, space="vmem", used=int(29.95 * MIB), capacity=16 * MIB))[-1]
    assert spilled.sentence.startswith("registers that the compiler ran out of (spill slots) take 29.7 MiB of 16 MiB")
    assert spilled.saving_bytes is None
    (alone,) = advise(need_of(made, space="vmem", used=int(29.95 * MIB), capacity=16 * MIB))
    assert alone.how.startswith("too much is computed at once")


@pytest.mark.parametrize(
    ("shape", "kinds"), [("f32[384,4096,4096]", {"remat", "batch", "bf16"}), ("f32[96,8192,3072]", {"batch"})]
)
def test_a_buffer_that_alone_is_larger_than_the_memory(shape: str, kinds: set[str]) -> None:
    """Scores are never kept, and a batch is halved until there is room beside it; nothing is known of the rest."""
    made = buffer(f"{shape}{{2,1,0:T(8,128)}}", name="fusion.7", op="")
    need = need_of(made, used=made.size_bytes, capacity=made.size_bytes * 2 // 3, kind="compile")
    found = {each.kind: each for each in advise(need)}
    assert found.keys() >= kinds and ("attention" in found["remat"].sentence if "remat" in kinds else True)
    batch = int(shape[4:].split(",", maxsplit=1)[0])
    assert f"batch {batch} -> {batch // 2}" in found["batch"].how and plan(need) is None

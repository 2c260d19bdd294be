"""Advice where no list of buffers helps, and about a kernel's own memory."""

from __future__ import annotations

from dataclasses import replace

from tests.parsers.memory.oom.advice.needs import GIB, MIB, buffer, need_of, vmem_blocks
from tpuprof.parsers.memory.model import Buffer
from tpuprof.parsers.memory.oom.advice.advice import advise
from tpuprof.parsers.memory.oom.advice.rule import FITS
from tpuprof.parsers.memory.oom.model import Change


def test_blocks_of_a_kernel() -> None:
    blocks, single = advise(vmem_blocks())
    assert blocks.kind == single.kind == "scoped"
    assert blocks.sentence == (
        "blocks of big_block_kernel.1: input 0 f32[16384,1024] x 2 buffers, output 0 f32[16384,1024] x 2 buffers"
    )
    assert blocks.how == f"make axis 0 of the blocks 1/4: 16384 -> 4096; {FITS}"
    assert blocks.arithmetic == (
        "128 MiB input 0 + 128 MiB output 0; 256 MiB - 192 MiB = 64.0 MiB; "
        "1/2 would fill all 128 MiB and leave nothing for the compiler"
    )
    assert blocks.saving_bytes == 192 * MIB
    assert single.saving_bytes == 128 * MIB and "pl.Buffered(1)" in single.how
    assert FITS not in single.how  # to the last byte, of which the compiler has use for some
    assert single.arithmetic.endswith("that fills all 128 MiB and leaves nothing for the compiler")


def test_one_buffer_each_saves_and_may_not_be_enough() -> None:
    need = replace(vmem_blocks(), capacity_bytes=96 * MIB, exceeded_bytes=None)
    single = advise(need)[1]
    assert FITS not in single.how and single.arithmetic.endswith("32.0 MiB are missing then")


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


def test_scratch_operand() -> None:
    made = buffer("f32[40960,1024]{1,0:T(8,128)}", name="scratch_kernel.1", category="scoped", tag="scratch operand")
    (advice,) = advise(need_of(made, space="vmem", used=160 * MIB, capacity=128 * MIB))
    assert advice.sentence == "scratch operand f32[40960,1024] of scratch_kernel.1 takes 160 MiB of 128 MiB of VMEM"
    assert advice.how == f"make the scratch smaller, 1/2 or less: 40960 -> 20480; {FITS}"


def test_scratch_in_smem() -> None:
    made = buffer("s32[2097152]{0:T(1024)}", name="shmap_body.2", category="scoped", tag="scratch operand")
    (advice,) = advise(need_of(made, space="smem", used=8 * MIB, capacity=MIB))
    assert "2097152 -> 131072" in advice.how
    assert "SMEM is for scalars" in advice.how


def test_limit_for_scoped_memory() -> None:
    made = buffer(None, name="splash_mha.1", category="scoped", size=int(33.84 * MIB))
    need = need_of(made, space="vmem", used=int(33.84 * MIB), capacity=32 * MIB, is_scoped_limit=True)
    smaller, limit = advise(need)
    assert smaller.sentence == "splash_mha.1 holds 33.8 MiB on its stack of 32 MiB of VMEM"
    assert smaller.saving_bytes is limit.saving_bytes is None
    assert limit.change == Change("limit", 35 * MIB) and "vmem_limit_bytes=36700160" in limit.how


def test_a_limit_above_what_chips_have_is_no_help() -> None:
    made = buffer(None, name="kernel.1", category="scoped", size=128 * MIB)
    need = need_of(made, space="vmem", used=128 * MIB, capacity=16 * MIB, is_scoped_limit=True)
    _, limit = advise(need)
    assert limit.how == "no chip has as much: make the blocks smaller first" and limit.change is None
    large = buffer(None, name="kernel.1", category="scoped", size=96 * MIB)
    _, limit = advise(need_of(large, space="vmem", used=96 * MIB, capacity=16 * MIB, is_scoped_limit=True))
    assert "on v5e and v6e only" in limit.how and FITS not in limit.how  # what it computes with counts later


def test_a_kernel_without_a_list() -> None:
    what, limit = advise(need_of(space="vmem", used=40 * MIB, capacity=32 * MIB, is_scoped_limit=True))
    assert what.sentence == "the kernel holds 40.0 MiB of 32 MiB of VMEM"
    assert "limit" in limit.sentence


def test_loading_a_program() -> None:
    need = need_of(kind="load", program="jit_step", requested=int(13.5 * GIB), free=int(7.48 * GIB))
    (advice,) = advise(need)
    assert advice.sentence == "loading jit_step needs 13.5 GiB in one piece, 7.48 GiB are free"
    assert "jax.live_arrays()" in advice.how
    assert advice.arithmetic == "requested 13.5 GiB - free 7.48 GiB = 6.02 GiB short"
    copying, other = advise(need_of(kind="load", program="jit__identity_fn", requested=GIB, free=0))
    assert "process_allgather" in copying.sentence
    assert other.sentence.startswith("loading jit__identity_fn")


def test_allocating_at_run_time() -> None:
    (advice,) = advise(need_of(kind="runtime", requested=100 * MIB, free=int(30.95 * MIB)))
    assert advice.sentence == "an allocation needs 100 MiB in one piece, 30.9 MiB are free"
    (advice,) = advise(need_of(kind="runtime", requested=100 * MIB, free=200 * MIB))
    assert advice.sentence.endswith("200 MiB are free, but not in one piece")
    assert advice.arithmetic == "free 200 MiB - requested 100 MiB = 100 MiB to spare"
    (advice,) = advise(need_of(kind="runtime", requested=100 * MIB))
    assert advice.arithmetic == "requested 100 MiB"


def test_temporaries_alone() -> None:
    need = need_of(used=int(49.29 * GIB), capacity=int(15.75 * GIB), temporaries=int(49.29 * GIB))
    (first,) = advise(need)
    assert first.sentence == "temporaries alone take 49.3 GiB, 3.1x the HBM"
    assert first.arithmetic == (
        "49.3 GiB of 49.3 GiB needed, 15.75 GiB there; a batch of 1/4 if all of it grows with the batch"
    )


def test_the_total_alone_is_no_advice() -> None:
    assert advise(need_of(used=36 * GIB, capacity=31 * GIB)) == ()


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

"""Advice about the batch: what grows with it, in tiles, and which batch fits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.memory.oom.advice.needs import GIB, MIB, buffer, need_of, needs
from tests.parsers.memory.oom.advice.test_need import module
from tpuprof.parsers.memory.account.need import MARGIN, Need, need_of_memory
from tpuprof.parsers.memory.account.roles import read
from tpuprof.parsers.memory.model import Buffer
from tpuprof.parsers.memory.oom.advice.advice import advise
from tpuprof.parsers.memory.oom.advice.batch import batch_cuts, batch_items, fitting_batch, smaller_batch
from tpuprof.parsers.memory.oom.advice.rule import FITS, saving_of
from tpuprof.parsers.memory.oom.model import Advice


def batch_advice(need: Need) -> Advice:
    return next(advice for advice in advise(need) if advice.kind == "batch")


def made(shape: str, count: int = 2) -> list[Buffer]:
    """Activations of a shape."""
    return [buffer(shape, f"jit(f)/jvp(net)/op{n}") for n in range(count)]


@pytest.mark.parametrize(
    ("capacity", "how"),
    [
        (3 * GIB, f"batch 8 -> 5, or split it into microbatches; {FITS}"),
        (4 * GIB, "batch 8 -> 4, or split it into microbatches"),
        (5 * GIB, "up to 9 fit by arithmetic; batch 8 -> 4, or split it into microbatches"),
        (None, "batch 8 -> 4, or split it into microbatches"),
    ],
)
def test_batch(capacity: int | None, how: str) -> None:
    sizes = (1024, 2048, 1024)
    arrays = [buffer(f"f32[8,{n},32768]{{2,1,0:T(8,128)}}", f"jit(f)/jvp(net)/op{n}") for n in sizes]
    assert batch_advice(need_of(*arrays, capacity=capacity)).how == how


def test_no_batch_is_small_enough() -> None:
    advice = batch_advice(need_of(*made("f32[8,1024,32768]{2,1,0:T(8,128)}"), used=9 * GIB, capacity=6 * GIB))
    assert advice.how.startswith("batch 8 -> 4")
    assert "no batch fits alone" in advice.how
    assert advice.arithmetic.endswith("(of the listed buffers)")


def test_a_batch_that_only_looks_like_one() -> None:
    ops = ["jit(f)/jit(take)/gather[ dimension=4 ]", "jit(f)/jit(take)/concatenate[ dimension=4 ]"]
    arrays = [buffer("s32[2048,128,128]{2,1,0:T(8,128)}", op, operator="concatenate") for op in ops]
    advice = batch_advice(need_of(*arrays, capacity=GIB // 2))
    assert advice.sentence == "256 MiB of arrays lead with dimension 2048, which looks like the batch"


def test_a_batch_in_the_lanes_saves_nothing_where_it_is_padded() -> None:
    lanes, plain = made("bf16[64,224,224,30]{0,3,2,1:T(8,128)(2,1)}"), made("bf16[64,56,56,128]{3,2,1,0:T(8,128)(2,1)}")
    advice = batch_advice(need_of(*lanes, *plain))
    assert advice.saving_bytes == sum(each.size_bytes for each in plain) // 2
    assert advice.arithmetic == (
        "98.0 MiB in 2 buffers x 32/64 = 49.0 MiB; 784 MiB in 2 buffers stay, 32 is padded to 128 there like 64"
    )
    assert not any(advice.kind == "batch" for advice in advise(need_of(*lanes)))


def test_a_batch_in_the_lanes_shrinks_in_whole_tiles() -> None:
    advice = batch_advice(need_of(*made("f32[640,1024,1024]{0,2,1:T(8,128)}"), capacity=17 * GIB // 4))
    assert advice.how == f"batch 640 -> 512, or split it into microbatches; {FITS}"
    assert advice.saving_bytes == GIB
    half = batch_advice(need_of(*made("f32[384,1024,1024]{0,2,1:T(8,128)}")))
    assert half.arithmetic == "3.00 GiB in 2 buffers in whole tiles -> 2.00 GiB"  # 192 is padded to 256


@pytest.mark.parametrize(("capacity", "fitting"), [(512 * MIB, 8), (511 * MIB, 4), (255 * MIB, 2), (133 * MIB, 2)])
def test_a_batch_in_the_rows_takes_a_tile_of_fewer_rows(capacity: int, fitting: int) -> None:
    need = need_of(*made("bf16[8,128,131072]{2,0,1:T(8,128)(2,1)}"), capacity=capacity)
    assert fitting_batch(read(need)) == fitting


def test_copies_of_the_compiler_grow_with_the_batch() -> None:
    shape = "bf16[64,112,112,128]{3,2,1,0:T(8,128)(2,1)}"
    arrays = made(shape)
    copies = [
        buffer(shape, name="copy-start{0}", opcode="copy-start"),
        buffer(shape, name="copy.2", label="copy.2 = copy(fusion.1)"),
    ]
    others = [
        buffer(shape, name="sort.1", opcode="sort"),  # what computes is not taken for a copy
        buffer("bf16[3,112,112,128]{3,2,1,0:T(8,128)(2,1)}", name="copy.3", opcode="copy"),
        buffer(shape, name="output", opcode="copy", category="output"),
    ]
    need = need_of(*arrays, *copies, *others)
    assert {item.index for item in batch_items(read(need))} == {0, 1, 2, 3}
    assert batch_advice(need).saving_bytes == 4 * 196 * MIB // 2


def test_copies_of_weights_do_not() -> None:
    weights = buffer("f32[64,1024,128]{2,1,0:T(8,128)}", "params['w']", category="parameter")
    copy = buffer("f32[64,1024,128]{2,1,0:T(8,128)}", name="copy-start{0}", opcode="copy-start")
    arrays = made("f32[64,1024,512]{2,1,0:T(8,128)}")
    assert {item.index for item in batch_items(read(need_of(*arrays, weights, copy)))} == {0, 1}


def test_inputs_of_integers_grow_with_the_batch() -> None:
    tokens = buffer("s32[64,65536]{1,0:T(8,128)}", "tokens", category="parameter")
    scales = buffer("f32[64,65536]{1,0:T(8,128)}", "params['scale']", category="parameter")
    advice = batch_advice(need_of(*made("f32[64,1024,512]{2,1,0:T(8,128)}"), tokens, scales))
    assert advice.sentence == "272 MiB of activations and inputs grow with the batch, 64 on each device"


@given(needs())
def test_the_fitting_batch_fits(need: Need) -> None:
    facts = read(need)
    fitting, smaller, over = fitting_batch(facts), smaller_batch(facts), facts.need.over_bytes
    saving = saving_of(facts, batch_cuts(facts))
    if facts.batch is None:
        assert (fitting, smaller, saving) == (None, None, 0)
    elif over is not None and over > 0:
        assert smaller is not None and 1 <= smaller < facts.batch
        assert fitting is None or (smaller <= fitting < facts.batch and saving >= over)
    else:
        assert smaller == facts.batch // 2
        assert fitting is None or fitting >= facts.batch


@given(st.integers(2, 300), st.integers(1, 8), st.sampled_from(["2,1,0", "0,2,1", "2,0,1"]))
def test_less_is_left_of_a_smaller_batch(batch: int, capacity: int, order: str) -> None:
    need = need_of(*made(f"f32[{batch},256,1024]{{{order}:T(8,128)}}"), capacity=capacity * 64 * MIB)
    facts = read(need)
    fitting, over = fitting_batch(facts), facts.need.over_bytes
    assert over is not None
    if fitting is None:
        smallest = made(f"f32[1,256,1024]{{{order}:T({'1' if order == '2,0,1' else '8'},128)}}")
        assert sum(each.size_bytes for each in smallest) > (1 - MARGIN) * capacity * 64 * MIB
    elif over > 0:
        assert saving_of(facts, batch_cuts(facts)) >= over


def test_a_convolution_of_the_demo() -> None:
    need = need_of_memory(module("jit_conv_step_v5e", 16 * GIB))
    advice = batch_advice(need)
    assert any(need.buffers[at].name == "copy-start{0}" for at in advice.buffers)
    assert advice.saving_bytes is not None and round(advice.saving_bytes / MIB, 1) == 94.1
    assert "in 18 buffers stay, 32 is padded to 128 there like 64" in advice.arithmetic

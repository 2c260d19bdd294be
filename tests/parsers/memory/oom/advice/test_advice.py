"""What to do first: the right thing, with the right numbers, in the right order."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.parsers.memory.oom.advice.needs import GIB, MIB, MODELS, STEP, adam_scan, buffer, need_of, needs, transformer
from tpuprof.parsers.memory.account.need import Need
from tpuprof.parsers.memory.oom.advice.advice import MOST_ADVICE, advise
from tpuprof.parsers.memory.oom.advice.rule import FITS
from tpuprof.parsers.memory.oom.model import Advice, AdviceKind, Change


def of_kind(need: Need, kind: AdviceKind) -> Advice:
    return next(advice for advice in advise(need) if advice.kind == kind)


@given(needs())
def test_savings_are_in_the_listed_buffers_and_ranked(need: Need) -> None:
    found = advise(need)
    assert len(found) <= MOST_ADVICE
    savings = [advice.saving_bytes for advice in found]
    known = [saving for saving in savings if saving is not None]
    assert known == sorted(known, reverse=True)
    assert savings == [*known, *([None] * (len(savings) - len(known)))]
    for advice in found:
        assert all(0 <= index < len(need.buffers) for index in advice.buffers)
        if advice.saving_bytes is not None:
            held = sum(max(0, need.buffers[index].size_bytes) for index in advice.buffers)
            assert 0 < advice.saving_bytes <= held
        for text in (advice.sentence, advice.how, advice.arithmetic):
            assert text
            assert text.isprintable()
        sizes = [max(0, need.buffers[index].size_bytes) for index in advice.buffers]
        assert sizes == sorted(sizes, reverse=True)


def test_transformer_ranking() -> None:
    found = advise(transformer())
    assert [(advice.kind, round((advice.saving_bytes or 0) / GIB, 2)) for advice in found] == [
        ("batch", 13.36),
        ("remat", 11.61),
        ("remat", 10.25),
        ("remat", 9.12),
        ("bf16", 6.0),
    ]
    assert [FITS in advice.how for advice in found] == [True, False, False, False, False]


def test_attention_logits() -> None:
    advice = advise(transformer())[1]
    assert advice.sentence == "attention logits 3 x f32[64,4,2048,2048] kept for backward, 3 of 4 layers"
    assert advice.how == (
        "flash (splash) attention never stores them; or jax.checkpoint per layer -8.00 GiB, bf16 alone -6.00 GiB"
    )
    assert advice.arithmetic == (
        "64 x 4 x 2048 x 2048 x 4 B = 4.00 GiB; 3 x 4.00 GiB = 12.0 GiB; "
        "the kernel's operands and output take 396 MiB more"
    )
    assert advice.source == f"{MODELS}:53"
    assert advice.buffers == (1, 2, 3)


def test_loss_logits_in_chunks() -> None:
    advice = advise(transformer())[2]
    assert advice.sentence == "loss logits f32[64,2047,16000], bf16[64,2047,16000], vocabulary 16,000"
    assert "chunks" in advice.how
    assert (
        advice.arithmetic
        == "7.81 GiB + 3.91 GiB = 11.7 GiB; 1/8 stays: 1.46 GiB; the compiler decides, ~3.08 GiB to 10.3 GiB"
    )
    assert advice.source == f"{MODELS}:64"


def test_checkpoint_keeps_inputs_and_one_layer() -> None:
    advice = advise(transformer())[3]
    assert advice.sentence.startswith("activations kept for backward, 4 of 4 layers: 3 x f32[64,4,2048,2048], 8 x bf16")
    # logits 8 GiB; of two inputs' shapes a layer, 5 of 8 stay; values 2 of 3; heads of two layers 1 of 3
    assert advice.saving_bytes == 8 * GIB + 3 * 256 * MIB + 2 * 128 * MIB + 128 * MIB


def test_checkpoint_of_a_scan() -> None:
    loop = "jit(step)/jvp(layers)/while/body/dynamic_update_slice"
    need = need_of(
        buffer("bf16[24,8,1024,4096]{3,2,1,0:T(8,128)(2,1)}", loop),
        buffer("bf16[24,8,1024,1024]{3,2,1,0:T(8,128)(2,1)}", loop),
        buffer("bf16[24,8,1024,4096]{3,2,1,0:T(8,128)(2,1)}", "broadcast.7", opcode="custom-call"),
        kind=None,
    )
    advice = of_kind(need, "remat")
    assert "24 of 24 layers: 2 x bf16[24,8,1024,4096]" in advice.sentence
    assert advice.how.startswith("jax.checkpoint around the scan's body")
    layer = 8 * 1024 * 4096 * 2
    assert advice.saving_bytes == 2 * 23 * layer
    assert of_kind(need, "batch").sentence.endswith("the batch, 8 on each device")


def test_what_is_recomputed_already_is_left_alone() -> None:
    ops = [f"{STEP}/transpose(jvp(layer_{n}))/rematted_computation/mul" for n in range(3)]
    ops += [f"{STEP}/jvp(layer_{n})/checkpoint/mul" for n in range(3)]
    made = [buffer("bf16[8,1024,4096]{2,1,0:T(8,128)(2,1)}", op) for op in ops]
    assert {advice.kind for advice in advise(need_of(*made))} == {"batch", "duplicates"}


def test_images_are_not_attention() -> None:
    made = [buffer("f32[4,256,256,256]{3,0,2,1:T(4,128)}", f"jit(f)/jvp(block_{n})/max_pool") for n in range(6)]
    assert not any("attention" in advice.sentence for advice in advise(need_of(*made)))


def test_attention_without_an_op() -> None:
    advice = of_kind(need_of(buffer("f32[12,8,8192,8192]{3,2,1,0:T(8,128)}")), "remat")
    assert advice.sentence == "attention logits f32[12,8,8192,8192]"
    assert advice.saving_bytes == 24 * GIB


def test_gradients_and_copies_of_a_scan() -> None:
    spread, cast, gradients, moved, *rest = advise(adam_scan())
    assert (spread.kind, spread.change) == ("optimizer", Change("shard", 4))
    assert gradients.kind == "bf16"
    assert gradients.saving_bytes == 12 * GIB
    assert gradients.sentence == (
        "gradients of all 32 layers in f32: f32[32,16384,4096], f32[32,4096,16384], 3 x f32[32,4096,32,128] "
        "and 1 more, zero-filled, of the weights' shapes"
    )
    assert cast.kind == "duplicates"
    assert cast.saving_bytes == (9 + 9) * GIB  # half of 18 GiB of gradients: they are as narrow as their weights
    assert cast.sentence.startswith("weights cast to bf16, all 32 layers at once: bf16[32,16384,4096], ")
    assert cast.how == "pass them in bf16: then neither the copy nor float32 weights and gradients are there"
    assert cast.arithmetic == (
        "copies 9.00 GiB, of weights and gradients 9.00 GiB; the compiler decides, ~9.00 GiB to 18.0 GiB"
    )
    assert (moved.saving_bytes, moved.sentence) == (
        3 * GIB,
        "weights copied to another layout, all 32 layers at once: 3 x bf16[32,4096,32,128]",
    )
    assert rest == []


def test_casts_of_layers_that_are_written_out() -> None:
    shape = "bf16[8192,8192]{1,0:T(8,128)(2,1)}"
    made = [buffer(shape, label=f"convert.{n} = convert(param.{n})") for n in range(4)]
    assert of_kind(need_of(*made), "duplicates").saving_bytes == 4 * 128 * MIB
    weight = buffer("f32[8192,8192]{1,0:T(8,128)}", "params['up']", category="parameter", name="param.0")
    alone = of_kind(need_of(made[0], weight), "duplicates")
    assert (alone.saving_bytes, alone.how.partition(":")[0]) == ((128 + 128) * MIB, "pass them in bf16")


def test_optimizer_state() -> None:
    made = [
        buffer("f32[4096,16384]{1,0:T(8,128)}", f"state['{key}']['{n}']", category="parameter", name=f"param.{n}")
        for key in ("params", "mean", "square")
        for n in range(3)
    ]
    advice = of_kind(need_of(*made, kind=None, whole=True), "optimizer")
    assert advice.sentence == "optimizer state['mean'], state['square'] in f32, 6 arrays"
    assert advice.saving_bytes == 6 * 256 * MIB // 2
    assert "FSDP" in advice.how
    assert advice.arithmetic == "1.50 GiB; in bf16, or on 2 devices: 768 MiB each"


@pytest.mark.parametrize(
    "name", ["opt_state[0].mu['w']", "opt_state.inner.nu", "state.opt_state[1].trace", "mu", "adam_m"]
)
def test_names_of_optimizer_state(name: str) -> None:
    made = buffer("f32[4096,16384]{1,0:T(8,128)}", name, category="parameter")
    assert [advice.kind for advice in advise(need_of(made, kind=None))] == ["optimizer"]


def test_donation() -> None:
    shape = "f32[4096,16384]{1,0:T(8,128)}"
    made = [buffer(shape, "params['w']", category="parameter"), buffer(shape, category="output", name="add.1")]
    one = 256 * MIB
    need = need_of(*made, kind=None, whole=True, arguments=one, outputs=one, aliased=0)
    advice = of_kind(need, "donation")
    assert advice.saving_bytes == one
    assert "donate_argnums" in advice.how
    assert advice.buffers == (1,)
    shared = need_of(*made, kind=None, whole=True, arguments=one, outputs=one, aliased=one)
    assert not any(each.kind == "donation" for each in advise(shared))


def test_donation_without_a_list_has_no_estimate() -> None:
    need = need_of(used=10 * GIB, capacity=8 * GIB, arguments=4 * GIB, outputs=3 * GIB, aliased=1 * GIB)
    advice = of_kind(need, "donation")
    assert advice.saving_bytes is None
    assert advice.sentence == "outputs take 3.00 GiB, of which 1.00 GiB share memory with 4.00 GiB of arguments"
    assert advice.arithmetic == "at most 2.00 GiB can be shared"


def test_tensorflow_names() -> None:
    pooled = [
        buffer("f32[4,256,256,256]{3,0,2,1:T(4,128)}", f"resnet152/MaxPool_{n}", operator="MaxPool") for n in range(6)
    ]
    advice = of_kind(need_of(*pooled, used=18 * GIB, capacity=16 * GIB), "remat")
    assert (
        advice.sentence
        == "6 x f32[4,256,256,256] in memory at once: resnet152/MaxPool_0, resnet152/MaxPool_1 and 4 more"
    )
    assert "if they are kept for gradients" in advice.how
    assert advice.saving_bytes == 5 * 256 * MIB
    assert advice.arithmetic == "5 of 6 x 256 MiB = 1.25 GiB (of the listed buffers)"


def test_equal_arrays_without_a_name() -> None:
    made = [buffer("s32[4096,16384]{1,0:T(8,128)}", name=f"sort.{n}") for n in range(5)]
    (advice,) = advise(need_of(*made, kind=None))
    assert (advice.kind, advice.saving_bytes) == ("duplicates", None)
    assert advice.sentence == "5 x s32[4096,16384] in memory at once: sort.0, sort.1, sort.2 and 2 more"


def test_names_are_made_safe() -> None:
    made = [buffer("s32[4096,16384]{1,0:T(8,128)}", name=f"\x1b[31m{n}") for n in range(2)]
    (advice,) = advise(need_of(*made, kind=None))
    assert "\x1b" not in advice.sentence


def test_a_program_that_needs_next_to_nothing() -> None:
    made = [buffer("f32[]{:T(128)}", "args[0]", category="parameter"), buffer("f32[]{:T(128)}", category="output")]
    assert advise(need_of(*made, kind=None, arguments=512, outputs=512, aliased=0)) == ()

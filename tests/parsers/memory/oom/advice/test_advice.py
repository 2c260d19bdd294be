"""What to do first: the right thing, with the right numbers, in the right order."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.parsers.memory.oom.advice.needs import GIB, MIB, STEP, buffer, need_of, needs, transformer
from tpuprof.parsers.memory.account.need import Need
from tpuprof.parsers.memory.oom.advice.advice import MOST_ADVICE, advise
from tpuprof.parsers.memory.oom.model import Advice, AdviceKind


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

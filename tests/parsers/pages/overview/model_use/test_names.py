"""Blocks, passes and layers by the names that code bases give."""

from __future__ import annotations

import pytest

from tpuprof.parsers.pages.overview.model_use.hlo_flow import placed_by_names

BLOCKS = {
    "jit(train_step)/jvp(Transformer)/decoder/layers_3/self_attention/query/dot_general": "attention",
    "jit(train_step)/transpose(jvp(Transformer))/decoder/layers_3/mlp/wi_0/dot_general": "mlp",
    "jit(train_step)/jvp(Transformer)/decoder/layers/pre_self_attention_layer_norm/mul": "norm",
    "jit(train_step)/jvp(Transformer)/decoder/layers/MoeBlock_0/gate/dot_general": "router",
    "jit(train_step)/jvp(Transformer)/decoder/layers/MoeBlock_0/wi/gmm/dot_general": "mlp",
    "jit(train_step)/jvp(Transformer)/token_embedder/take": "embedding",
    "jit(train_step)/jvp(Transformer)/decoder/logits_dense/dot_general": "loss",
    "jit(step)/jvp(Gemma)/embedder/decode/dot_general": "loss",
    "jit(step)/jvp(GPT)/Embed_0.attend/dot_general": "loss",
    "jit(step)/jvp(Gemma)/layer_2/mlp/gating_einsum/dot_general": "mlp",
    "jit(step)/jvp(model)/layers/self_attn/q_proj/dot_general": "attention",
    "jit(step)/jvp(model)/layers/mlp/gate_proj/dot_general": "mlp",
    "jit(step)/jvp(GPT2)/h_7/attn/c_proj/dot_general": "attention",
    "jit(step)/jvp(GPT2)/h_7/mlp/c_proj/dot_general": "mlp",
    "jit(step)/jvp(rwkv)/blocks/ffn/key/dot_general": "mlp",
    "jit(step)/jvp(Vit)/encoderblock_4/LayerNorm_0/mul": "norm",
    "jit(step)/optimizer/adamw/mul": "optimizer",
    "jit(step)/clip/reduce_sum": "optimizer",
    "jit(step)/clip_by_global_norm/mul": "optimizer",
    "jit(step)/jvp(loss_fn)/reduce_sum": "loss",
    "jit(step)/jvp(Bert)/layer_0/rotary_pos_emb/mul": "attention",
}


@pytest.mark.parametrize("name", BLOCKS)
def test_spellings_of_code_bases(name: str) -> None:
    assert placed_by_names(f"{name}:", "fusion.1").block == BLOCKS[name]


@pytest.mark.parametrize(
    "name",
    [
        "jit(step)/jvp()/dot_general",
        "jit(step)/jvp(Transformer)/decoder/layers_0/add",
        "jit(step)/jvp(ResNet)/stage_1/conv_general_dilated",
        "jit(step)/jit(clip)/min",
        "jit(step)/shard_map/ppermute",
        "",
    ],
)
def test_names_that_say_no_block(name: str) -> None:
    assert placed_by_names(name, "collective-permute.3").block is None


def test_weak_names_are_hints() -> None:
    place = placed_by_names("jit(step)/jvp(net)/linear_3/dot_general", "fusion.1")
    assert place.block is None and place.hint == "mlp" and place.is_named


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("jit(s)/jvp(Model)/decoder/layers_12/mlp/dot_general", "Model/decoder/layers_12"),
        ("jit(s)/jvp(model)/layers.3/mlp/dot_general", "model/layers/3"),
        ("jit(s)/jvp(Model)/decoder/while/body/layers/mlp/dot_general", "Model/decoder/layers"),
        ("jit(s)/jvp(Model)/layers/MoeBlock_0/dot_general", "Model/layers"),
        ("jit(s)/jvp(Model)/encoder/LayerNorm_1/mul", None),
    ],
)
def test_layers(name: str, layer: str | None) -> None:
    assert placed_by_names(name, "fusion.1").layer == layer


@pytest.mark.parametrize(
    ("name", "op", "phase"),
    [
        ("jit(s)/jvp(M)/mlp/mul", "fusion.1", "forward"),
        ("jit(s)/transpose(jvp(M))/mlp/mul", "fusion.1", "backward"),
        ("jit(s)/transpose(jvp(M))/checkpoint/rematted_computation/mlp/mul", "fusion.1", "recomputed"),
        ("jit(s)/jvp(M)/mlp/mul", "fusion.1.remat2", "recomputed"),
        ("jit(s)/mul", "fusion.1", ""),
    ],
)
def test_passes(name: str, op: str, phase: str) -> None:
    assert placed_by_names(name, op).phase == phase


def test_a_kernel_is_known_by_its_own_name() -> None:
    assert placed_by_names("jit(step)/pallas_call", "ragged_paged_attention.4").block == "attention"
    assert placed_by_names("", "convolution_add_fusion.3").block is None

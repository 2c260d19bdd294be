"""Models in the spelling of Tunix, Keras, EasyDeL, Hugging Face on PyTorch/XLA, MaxText, maxdiffusion and others."""

from __future__ import annotations

from typing import Any

from tests.insight.cases.models.dialects import Sizes, Style, attention, head, layer, layer_back
from tests.insight.cases.parts.codebases import Frozen, LazyGraph
from tests.insight.simulator.parts import Activations, Kernel, Lookup, Part
from tests.insight.simulator.play import MS, Loop
from tests.insight.simulator.spelled import Taken
from tests.insight.simulator.stack import Beside, Gemms, Stack

NNX = Style(
    "layers/attn/q_proj/dot_general", "layers/attn", "layers/attn/o_proj/dot_general",
    "layers/mlp/gate_proj/dot_general", "layers/mlp/down_proj/dot_general", "layers/input_layernorm/mul", "model.py",
    "flash_attention", ("fusion", "convolution_add_fusion"),
)  # fmt: skip
ATEN = Style(
    "aten__mm", "xla__tpu_custom_call", "aten__addmm", "aten__mm", "aten__mm", "aten__mul", "modeling_llama.py",
    "tpu_custom_call", ("convolution_fusion", "fusion"),
)  # fmt: skip
KERAS = Style(
    "transformer_decoder/self_attention/query/bqe,eh->bqh/dot_general", "transformer_decoder/self_attention",
    "transformer_decoder/self_attention/attention_output/dot_general",
    "transformer_decoder/feedforward_gate_dense/dot_general",
    "transformer_decoder/feedforward_output_dense/dot_general",
    "transformer_decoder/layernorm/mul", "einsum_dense.py", "splash_attention",
    ("fusion", "convolution_convert_fusion"),
)  # fmt: skip
EASYDEL = Style(
    "model/layers/self_attn/query_proj/dot_general", "model/layers/self_attn",
    "model/layers/self_attn/output_proj/dot_general", "model/layers/mlp/up_proj/dot_general",
    "model/layers/mlp/down_proj/dot_general", "model/layers/post_attention_layernorm/mul", "modeling_qwen3.py",
    "splash_mqa_fwd", ("convolution_fusion", "multiply_convert_fusion"),
)  # fmt: skip
TF = Style(
    "encoder/layer_0/self_attention/query/einsum/Einsum", "encoder/layer_0/self_attention/MatMul",
    "encoder/layer_0/self_attention/attention_output/einsum/Einsum", "encoder/layer_0/intermediate/einsum/Einsum",
    "encoder/layer_0/output/einsum/Einsum", "encoder/layer_0/self_attention_layer_norm/batchnorm/mul",
    "transformer_encoder_block.py", "fused_mha", ("fusion", "convert_fusion"),
)  # fmt: skip

LAZY = Loop(
    fetch="$parallel_loader.py:49 next", call="", launcher="PjRtComputationClient::ExecuteComputation",
    reading="PjRtComputationClient::TransferFromDevice",
)  # fmt: skip
GRAIN = Loop(fetch="$data_loader.py:460 __next__", call="", batch_ps=0.5 * MS)
"""Loops of PyTorch/XLA, and of JAX with Grain."""


def tuned(
    style: Style, of: Sizes, layers: int, outputs: int, packed: bool = False, adapted: bool = False, **more: Any
) -> Stack:
    """A model whose weights are frozen, so that its backward pass has no products for their gradients."""
    how = {"packed": packed, "adapted": adapted}
    first, second = style.bases
    source, narrow, wide = f"{style.file}:120", of.hidden, ((0, 0, of.hidden),)
    each = (
        *layer(style, of)[:1],
        Frozen(((0, 0, 0),) * 3, style.into, source, first, **how),
        attention(style, of),
        Frozen(((0, 0, 0),), style.out, source, second, **how),
        Frozen(wide * 2, style.up, source, first, **how),
        Frozen(((0, narrow, 0),), style.down, source, second, **how),
    )
    back = (
        Frozen(wide, style.down, source, first, **how),
        Frozen(((0, narrow, 0),) * 2, style.up, source, second, **how),
        attention(style, of, 2),
        Frozen(((0, 0, 0),) * 4, style.into, source, first, **how),
    )
    logits = Gemms(((0, 0, outputs), (0, outputs, 0)), "lm_head/dot_general", f"{style.file}:301")
    kept = {"once": (logits,), "rows": 512, "name": "jit__train_step", **more}
    return Stack(of.tokens, of.width, layers, each, back, **kept)


def lazily(style: Style, of: Sizes, layers: int, outputs: int, **more: Any) -> LazyGraph:
    """A model that trains, its gradients reduced beside the backward pass, as PyTorch/XLA traces it."""
    back = (Beside("all-reduce", of.rows, layer_back(style, of), scope="xla__all_reduce", source="xla_model.py:450"),)
    kept = {"once": (head(of, outputs, "aten__mm"),), "rows": of.rows * layers // 8, **more}
    return LazyGraph(of.tokens, of.width, layers, layer(style, of), back, **{"name": "SyncTensorsGraph.4711", **kept})


def convolved(pixels: int, layers: int, **more: Any) -> Stack:
    """Stages of convolutions over images, in Keras; it trains."""
    sizes = ((pixels, 1152, 256), (pixels // 4, 2304, 512), (pixels // 4, 4608, 512), (pixels, 512, 256))
    back = (*((k, m, n) for m, k, n in sizes), *((m, n, k) for m, k, n in sizes))
    scope, source = "efficientnetv2/block5a_project_conv/conv_general_dilated", "base_conv.py:233"
    norms = Activations(
        bad=False, rows=pixels, width=256, count=1, base="multiply_add_fusion", scope="efficientnetv2/block5a_bn/mul",
        source="batch_normalization.py:280",
    )  # fmt: skip
    backward = Gemms(back, scope, source, "convolution_bitcast_fusion")
    reduced = Beside("all-reduce", 2048, (backward,), scope="psum", source="jax_trainer.py:180")
    kept = {"rows": 3072, "name": "jit_train_step", "model": "functional", "source": "functional.py:175", **more}
    return Stack(pixels // 8, 2048, layers, (Gemms(sizes, scope, source), norms), (reduced,), **kept)


def denoises(tokens: int, width: int, layers: int, **more: Any) -> Stack:
    """A denoising step of a transformer over frames of a video, as maxdiffusion has it."""
    parts = (
        Activations(
            bad=False, rows=tokens, width=width, count=1, base="multiply_add_fusion", scope="blocks/norm1/mul",
            source="transformer_wan.py:301",
        ),
        Gemms(((0, 0, 0),) * 3, "blocks/attn1/query/dot_general", "attention_flax.py:910"),
        Kernel(
            bad=False, good=0.69, flops=4.0 * tokens * tokens * width, size=8 * tokens * width, base="ring_splash",
            scope="blocks/attn1/pallas_call", source="attention_flax.py:301",
        ),
        Gemms(((0, 0, 0),), "blocks/attn1/proj_attn/dot_general", "attention_flax.py:955", "convolution_add_fusion"),
        Gemms(((0, 0, 4 * width), (0, 4 * width, 0)), "blocks/ffn/net_0/dot_general", "transformer_wan.py:140"),
    )  # fmt: skip
    kept = {"model": "WanModel", "source": "transformer_wan.py:520", "name": "jit_transformer_forward_pass", **more}
    return Stack(tokens, width, layers, parts, **kept)


def decodes(batch: int, width: int, layers: int, hidden: int, mib: int, packed: bool = False, **more: Any) -> Stack:
    """A step of MaxText's engine that makes a token for each of its slots."""
    wide = ((0, 0, 2 * hidden), (0, hidden, width))
    parts: tuple[Part, ...] = (
        Gemms(((0, 0, width * 3 // 2),), "layers/self_attention/query/dot_general", "attentions.py:402"),
        Kernel(
            bad=False, good=0.8, flops=mib * 4e6, size=mib << 20, base="ragged_mqa",
            scope="layers/self_attention/ragged_attention/pallas_call", source="ragged_attention.py:180",
        ),
        Gemms(((0, 0, width),), "layers/self_attention/out/dot_general", "attentions.py:460", "convolution_add_fusion"),
        Frozen(wide, "layers/mlp/wi_0/dot_general", "linears.py:318", packed=packed),
    )  # fmt: skip
    kept = {"once": (Gemms(((0, 0, 32_768),), "logits_dense/dot_general", "linears.py:96"),), **more}
    return Stack(batch, width, layers, parts, **{"model": "decoder", "name": "jit_generate", **kept})


def mixed(style: Style, of: Sizes, experts: int, layers: int, **more: Any) -> Stack:
    """A mixture of experts whose tokens are exchanged beside a shared expert; it trains."""
    shared = layer(style, of)
    source = "moe.py:880"
    own = Gemms(((0, 0, experts), (0, experts, 0)), "moe_block/wi/gmm/dot_general", source)
    again = Gemms(((0, 0, experts), (0, experts, 0)) * 2, "moe_block/wi/gmm/dot_general", source)
    each = (
        *shared[:4],
        Beside("all-to-all", of.tokens, shared[4:], scope="moe_block/ragged_all_to_all", source="moe.py:701"),
        own,
    )
    reduced = Beside("all-reduce", of.rows, (*layer_back(style, of), again), scope="psum", source="train.py:402")
    kept = {"once": (head(of, 32_768),), "rows": 8192, "name": "jit_train_step", **more}
    return Stack(of.tokens, of.width, layers, each, (reduced,), **kept)


def contextual(style: Style, of: Sizes, layers: int, cores: int, **more: Any) -> Stack:
    """A model whose cores have parts of each text and gather the others' keys and values; it trains."""
    shared = layer(style, of)
    gathers = Beside(
        "all-gather", 2 * of.tokens // cores, shared[1:2], scope="context_parallel/all_gather",
        source="attention_op.py:612",
    )  # fmt: skip
    reduced = Beside("reduce-scatter", of.rows, layer_back(style, of), scope="psum_scatter", source="train.py:402")
    kept = {"once": (head(of, 32_768),), "rows": of.rows * layers // cores, "name": "jit_train_step", **more}
    return Stack(of.tokens, of.width, layers, (shared[0], gathers, *shared[2:]), (reduced,), **kept)


def embeds(batch: int, **more: Any) -> LazyGraph:
    """A recommender with its tables split over the cores, in PyTorch/XLA; it trains."""
    looks = Taken(
        bad=False, rows=6 * batch, table=1_000_000, width=64, scope="aten__embedding_bag",
        source="embedding_modules.py:92",
    )  # fmt: skip
    bottom = Gemms(((0, 0, 2048), (0, 2048, 1024)), "aten__addmm", "dlrm.py:61")
    over = Gemms(((0, 0, 4096), (0, 4096, 4096), (0, 4096, 1024)), "aten__addmm", "dlrm.py:240")
    sizes = ((0, 1024, 4096), (4096, batch, 1024), (0, 4096, 4096), (4096, batch, 4096))
    under = Gemms(sizes, "aten__mm", "dlrm.py:240")
    moves = Beside("all-to-all", batch, (bottom,) * 2, scope="xla__all_to_all", source="dist_data.py:410")
    reduced = Beside("all-reduce", 8192, (under,), scope="xla__all_reduce", source="xla_model.py:450")
    kept = {"first": (looks,), "rows": 6144, "name": "SyncTensorsGraph.902", **more}
    return LazyGraph(batch, 1024, 2, (moves, over), (reduced,), **kept)


def passes(nodes: int, edges: int, width: int, layers: int, **more: Any) -> LazyGraph:
    """A network over graphs, in PyTorch/XLA; it trains."""
    taken = Lookup(
        bad=False, rows=edges, table=nodes, width=width, scope="aten__index_select", source="message_passing.py:281",
        base="gather_fusion",
    )  # fmt: skip
    mlp = Gemms(((edges, 0, 4 * width), (edges, 4 * width, 0)), "aten__addmm", "linear.py:142")
    back = Gemms(((edges, 4 * width, 0), (width, edges, 4 * width), (edges, 0, 4 * width)), "aten__mm", "linear.py:142")
    reduced = Beside("all-reduce", 512, (back,), scope="xla__all_reduce", source="xla_model.py:450")
    kept = {"rows": 2048, "name": "SyncTensorsGraph.1508", **more}
    return LazyGraph(nodes, width, layers, (taken, mlp), (reduced,), **kept)


def transcribes(of: Sizes, layers: int, **more: Any) -> Stack:
    """A conformer that trains, in Flax."""
    conv = Gemms(((0, 0, 2 * of.width),) * 2, "conformer_block/lconv/linear_start/dot_general", "conformers.py:270")
    under = Gemms(((0, 2 * of.width, 0),) * 4, "conformer_block/lconv/dot_general", "conformers.py:270")
    reduced = Beside("all-reduce", of.rows, (*layer_back(TF, of), under), scope="pmean", source="train_asr.py:155")
    kept = {"rows": of.rows * layers // 8, "name": "jit_train_step", "model": "ConformerCtc", **more}
    return Stack(of.tokens, of.width, layers, (*layer(TF, of), conv), (reduced,), **kept)

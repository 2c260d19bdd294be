"""Models of jobs: as Levanter, T5X, Praxis, big_vision, JetStream and others name their scopes, with their sizes."""

from __future__ import annotations

from typing import Any

from tests.insight.cases.models.dialects import Sizes, Style, head, layer, layer_back
from tests.insight.simulator.parts import Activations, Kernel, OnSparseCore, Part
from tests.insight.simulator.schedules import AcrossSlices, Dispatched, OneForwardOneBackward, Windowed
from tests.insight.simulator.spelled import Taken
from tests.insight.simulator.stack import Beside, Gemms, Stack

LEVANTER = Style(
    "LlamaDecoderLayer/self_attn/q_proj/dot_general", "LlamaDecoderLayer/self_attn",
    "LlamaDecoderLayer/self_attn/o_proj/dot_general", "LlamaDecoderLayer/mlp/gate_proj/dot_general",
    "LlamaDecoderLayer/mlp/down_proj/dot_general", "LlamaDecoderLayer/input_layernorm/mul", "linear.py",
    "splash_mha_fwd", ("fusion", "convert_bitcast_fusion"),
)  # fmt: skip
T5X = Style(
    "self_attention/query/dot_general", "self_attention", "self_attention/out/dot_general", "mlp/wi_0/dot_general",
    "mlp/wo/dot_general", "pre_self_attention_layer_norm/mul", "layers.py", "flash_attention_fwd",
    ("convolution_fusion", "convolution_add_fusion"),
)  # fmt: skip
PRAXIS = Style(
    "self_attention/combined_qkv/einsum", "self_attention/dot_atten", "self_attention/post/einsum",
    "ff_layer/ffn_layer1/linear/einsum", "ff_layer/ffn_layer2/linear/einsum", "layer_norm/mul", "transformers.py",
    "mha_block_kernel", ("fusion", "multiply_fusion"),
)  # fmt: skip
VISION = Style(
    "MultiHeadDotProductAttention_0/query/dot_general", "MultiHeadDotProductAttention_0",
    "MultiHeadDotProductAttention_0/out/dot_general", "MlpBlock_0/Dense_0/dot_general",
    "MlpBlock_0/Dense_1/dot_general", "LayerNorm_0/mul", "vit.py", "flash_attention",
    ("convolution_convert_fusion", "fusion"),
)  # fmt: skip
WHISPER = Style(
    "self_attn/q_proj/dot_general", "self_attn", "self_attn/out_proj/dot_general", "fc1/dot_general",
    "fc2/dot_general", "self_attn_layer_norm/mul", "modeling_flax_whisper.py", "fused_attention",
)  # fmt: skip


def tensored(tokens: int, width: int, hidden: int, layers: int, cores: int, late: bool = False, **more: Any) -> Stack:
    """A decoder whose layers are split over cores by columns and rows; activations come and go beside the products."""
    own, heads = width // cores, width // 128 // cores
    attends = Kernel(
        bad=False, good=0.7, flops=2.0 * heads * tokens * tokens * 128, size=8 * tokens * own, base="flash_fwd",
        scope="self_attention/dot_atten/pallas_call", source="attentions.py:310",
    )  # fmt: skip
    again = Kernel(
        bad=False, good=0.66, flops=5.0 * heads * tokens * tokens * 128, size=16 * tokens * own, base="flash_bwd",
        scope="self_attention/dot_atten/pallas_call", source="attentions.py:352",
    )  # fmt: skip
    norms = Activations(bad=False, rows=tokens // cores, width=width, count=1, scope="layer_norm/mul")
    each = (
        norms,
        Windowed((own,) * 3, late, scope="self_attention/combined_qkv"),
        attends,
        Windowed((own,), late, True, scope="self_attention/post"),
        Windowed((hidden // cores,) * 2, late, scope="ff_layer/ffn_layer1"),
        Windowed((hidden // cores,), late, True, scope="ff_layer/ffn_layer2"),
    )
    weights = Gemms(
        ((width, tokens, hidden // cores),) * 3 + ((width, tokens, own),) * 4, "ff_layer/einsum", "transformers.py:901"
    )
    back = (
        Windowed((hidden // cores,), late, scope="ff_layer/ffn_layer2"),
        Windowed((hidden // cores,) * 2, late, True, scope="ff_layer/ffn_layer1"),
        again,
        Windowed((own,), late, scope="self_attention/post"),
        Windowed((own,) * 3, late, True, scope="self_attention/combined_qkv"),
        weights,
    )
    kept = {"rows": (4 * width + 3 * hidden) * layers // cores // 8, "name": "jit_train_step", **more}
    return Stack(tokens, width, layers, each, back, **kept)


def staged(microbatches: int, tokens: int, width: int, hidden: int, **more: Any) -> OneForwardOneBackward:
    """A stage of a decoder in a pipeline: one layer of it."""
    of = Sizes(tokens, width, hidden, width // 128)
    return OneForwardOneBackward(
        microbatches, layer(PRAXIS, of)[1:], layer_back(PRAXIS, of), tokens=tokens, width=width, **more
    )


def routed(tokens: int, width: int, hidden: int, layers: int, **more: Any) -> Stack:
    """A mixture of experts with a shared one; it trains."""
    of = Sizes(tokens, width, 4096, width // 128)
    experts = Dispatched(bad=False, hidden=hidden, tokens=tokens, scope="DeepSeekMoeBlock_0")
    again = Dispatched(bad=False, hidden=2 * hidden, tokens=tokens, scope="DeepSeekMoeBlock_0")
    back = Beside("all-reduce", 12_288, layer_back(T5X, of)[2:], scope="grads/psum", source="train.py:612")
    kept = {"once": (head(of, 32_768, "logits_dense/dot_general"),), "rows": 16_384, **more}
    return Stack(tokens, width, layers, (*layer(T5X, of)[:4], experts), (again, back), **kept)


def reducing(style: Style, of: Sizes, layers: int, outputs: int, **more: Any) -> Stack:
    """A model that trains; each layer's gradients are scattered beside the next one's backward pass."""
    back = (Beside("reduce-scatter", of.rows, layer_back(style, of), scope="grads/psum_scatter", source="train.py:88"),)
    kept = {"once": (head(of, outputs),), "rows": of.rows * layers // 8, "name": "jit_train_step", **more}
    return Stack(of.tokens, of.width, layers, layer(style, of), back, **kept)


def sliced(style: Style, of: Sizes, layers: int, mib: int, late: bool = False, **more: Any) -> Stack:
    """A model on two slices: gradients are scattered within each, and exchanged between them beside the backward pass
    or, if `late`, only when it is over."""
    within = Beside(
        "reduce-scatter", of.rows, layer_back(style, of), scope="gradients/psum_scatter", source="multislice.py:49",
        lines=2,
    )  # fmt: skip
    back: tuple[Part, ...] = (within,) if late else (AcrossSlices(mib, (within,)),)
    once = (head(of, 32_768), *((AcrossSlices(mib * layers, bad=True),) if late else ()))
    kept = {"once": once, "rows": of.rows * layers // 8, "name": "jit_train_step", **more}
    return Stack(of.tokens, of.width, layers, layer(style, of), back, **kept)


def dit(tokens: int, width: int, layers: int, **more: Any) -> Stack:
    """One denoising step of a diffusion transformer with modulated blocks."""
    block = "FluxTransformerBlock"
    parts = (
        Activations(
            bad=False, rows=tokens, width=width, count=2, base="multiply_add_fusion", scope=f"{block}/norm1/mul",
            source="transformer_flux.py:88",
        ),
        Gemms(((0, 0, width),) * 3, f"{block}/attn/to_q/dot_general", "attention_flax.py:201", "convolution_fusion"),
        Kernel(
            bad=False, good=0.68, flops=4.0 * tokens * tokens * width, size=8 * tokens * width, base="splash_fwd",
            scope=f"{block}/attn/pallas_call", source="attention_flax.py:240",
        ),
        Gemms(((0, 0, width),), f"{block}/attn/to_out/dot_general", "attention_flax.py:262", "convolution_add_fusion"),
        Gemms(((0, 0, 4 * width), (0, 4 * width, 0)), f"{block}/ff/dot_general", "transformer_flux.py:120"),
    )  # fmt: skip
    kept = {"model": "FluxTransformer2DModel", "source": "transformer_flux.py:402", "name": "jit_denoise_step", **more}
    return Stack(tokens, width, layers, parts, **kept)


def ranker(batch: int, rows: int, **more: Any) -> Stack:
    """A recommender with its tables on SparseCores, dense layers and a cross network; it trains."""
    looked = OnSparseCore(
        False, opcode="all-to-all", rows=rows, scope="sparse_embed/lookup", source="embedding_layer.py:60"
    )
    up = Gemms(((0, 0, 2048), (0, 2048, 2048), (0, 2048, 512)), "over_arch/dot_general", "dlrm_model.py:133")
    sizes = ((0, 512, 2048), (2048, batch, 512), (0, 2048, 2048), (2048, batch, 2048))
    under = Gemms(sizes, "over_arch/dot_general", "dlrm_model.py:133", "convolution_bitcast_fusion")
    reduced = Beside("all-reduce", 6144, (under,), scope="dense_grads/psum", source="train_dlrm.py:171")
    kept = {"first": (looked,), "rows": 8192, "name": "jit_train_step", "model": "DLRMDCNV2", **more}
    return Stack(batch, 1024, 3, (up,), (reduced,), **kept)


def engine(batch: int, width: int, layers: int, hidden: int, mib: int, **more: Any) -> Stack:
    """A step of a server that makes a token for each request: vLLM's names; its kernel declares nothing."""
    parts = (
        Gemms(((0, 0, width * 3 // 2),), "self_attn/qkv_proj/dot_general", "llama3.py:151"),
        Kernel(
            bad=False, good=0.8, counted=False, flops=mib * 4e6, size=mib << 20, base="RPA-bq_16-bkvp_32-p_128-",
            scope="self_attn/ragged_paged_attention/pallas_call", source="kernel.py:812",
        ),
        Gemms(((0, 0, width),), "self_attn/o_proj/dot_general", "llama3.py:166", "convolution_add_fusion"),
        Gemms(((0, 0, 2 * hidden), (0, hidden, width)), "mlp/gate_up_proj/dot_general", "llama3.py:72"),
    )  # fmt: skip
    kept = {"once": (Gemms(((0, 0, 32_768),), "lm_head/dot_general", "llama3.py:301"),), **more}
    return Stack(batch, width, layers, parts, **{"model": "LlamaForCausalLM", "name": "jit_step_fun", **kept})


def hears(tokens: int, width: int, layers: int, **more: Any) -> Stack:
    """An encoder and decoder of speech; it trains."""
    of = Sizes(tokens, width, 4 * width, width // 64, 1536)
    conv = Gemms(((0, 3 * width, width),), "encoder/conv2/conv_general_dilated", "modeling_flax_whisper.py:610")
    kept = {"first": (conv,), "rows": of.rows * layers // 4, "name": "jit_train_step", "model": "FlaxWhisper", **more}
    back = (Beside("all-reduce", of.rows, layer_back(WHISPER, of), scope="pmean", source="run_distillation.py:1201"),)
    return Stack(tokens, width, layers, layer(WHISPER, of), back, **kept)


def graphs(nodes: int, edges: int, width: int, layers: int, **more: Any) -> Stack:
    """A network over graphs: messages of edges, sums at nodes; it trains."""
    sent = Taken(
        bad=False,
        rows=edges,
        table=nodes,
        width=width,
        scope="GraphNetwork/sent_attributes/take",
        source="models.py:212",
    )
    mlp = Gemms(((edges, 0, 2 * width), (edges, 2 * width, 0)), "GraphNetwork/edge_mlp/dot_general", "mlp.py:44")
    nodewise = Gemms(((0, 0, 2 * width), (0, 2 * width, 0)), "GraphNetwork/node_mlp/dot_general", "mlp.py:44")
    back = Gemms(
        ((edges, 2 * width, 0), (width, edges, 2 * width), (edges, 0, 2 * width), (2 * width, edges, width)),
        "GraphNetwork/edge_mlp/dot_general",
        "mlp.py:44",
    )
    reduced = Beside("all-reduce", 1024, (back,), scope="pmean", source="train_graphs.py:77")
    kept = {"rows": 4096, "name": "jit_train_step", "model": "GraphConvNet", "source": "models.py:180", **more}
    return Stack(nodes, width, layers, (sent, mlp, nodewise), (reduced,), **kept)


def folds(residues: int, pairs: int, layers: int, **more: Any) -> Stack:
    """Blocks over pairs of residues and over an alignment, as AlphaFold's evoformer; it trains."""
    squares = residues * residues
    name = "evoformer_iteration"
    triangle = Gemms(
        ((squares, pairs, 4 * pairs), (squares, residues, pairs), (squares, pairs, pairs)),
        f"{name}/triangle_multiplication_outgoing/dot_general",
        "modules.py:1510",
    )
    attends = Kernel(
        bad=False, good=0.55, flops=8.0 * residues**3 * pairs, size=16 * squares * pairs, base="triangle_attention",
        scope=f"{name}/triangle_attention_starting_node/pallas_call", source="modules.py:1288",
    )  # fmt: skip
    moved = Gemms(
        ((squares, pairs, 4 * pairs), (squares, 4 * pairs, pairs)), f"{name}/pair_transition/dot_general",
        "modules.py:1190",
    )  # fmt: skip
    under = Gemms(
        (
            (squares, 4 * pairs, pairs),
            (squares, pairs, 4 * pairs),
            (squares, pairs, 4 * pairs),
            (squares, residues, pairs),
        ),
        f"{name}/pair_transition/dot_general",
        "modules.py:1190",
    )
    reduced = Beside("all-reduce", 2048, (under, attends), scope="pmean", source="train.py:140")
    kept = {"rows": 4096, "model": "alphafold", "source": "modules.py:1792", "name": "jit_train_step", **more}
    return Stack(residues * 8, 1024, layers, (triangle, attends, moved), (reduced,), **kept)

"""Models of labs and products: as EasyLM, MaxText, AXLearn, RecurrentGemma, GraphCast, vLLM and others name them."""

from __future__ import annotations

from typing import Any

from tests.insight.cases.models.dialects import Sizes, Style, attention, head, layer, layer_back
from tests.insight.cases.parts.labs import Fourier, Halo
from tests.insight.simulator.parts import Activations, Kernel, OnSparseCore, Part, Prefetch
from tests.insight.simulator.spelled import Between, Taken
from tests.insight.simulator.stack import Beside, Gemms, Stack

EASYLM = Style(
    "transformer/h/attention/wq/dot_general", "transformer/h/attention", "transformer/h/attention/wo/dot_general",
    "transformer/h/feed_forward/w1/dot_general", "transformer/h/feed_forward/w2/dot_general",
    "transformer/h/attention_norm/mul", "llama_model.py", "flash_attention_tpu", ("fusion", "multiply_fusion"),
)  # fmt: skip
LATENT = Style(
    "moe_layers/self_attention/wq_a/dot_general", "moe_layers/self_attention",
    "moe_layers/self_attention/out/dot_general",
    "moe_layers/shared_experts/wi_0/dot_general", "moe_layers/shared_experts/wo/dot_general",
    "moe_layers/pre_self_attention_layer_norm/mul", "attention_mla.py", "mla_splash_fwd",
    ("convolution_convert_fusion", "add_fusion"),
)  # fmt: skip
AXLEARN = Style(
    "decoder/transformer/repeat/layer/self_attention/i_proj/dot_general",
    "decoder/transformer/repeat/layer/self_attention",
    "decoder/transformer/repeat/layer/self_attention/o_proj/dot_general",
    "decoder/transformer/repeat/layer/feed_forward/linear1_0/dot_general",
    "decoder/transformer/repeat/layer/feed_forward/linear2/dot_general",
    "decoder/transformer/repeat/layer/self_attention/norm/mul", "attention.py", "tpu_flash_attention",
    ("fusion", "convert_bitcast_fusion"),
)  # fmt: skip
PARALLEL = Style(
    "causal_transformer_shard/~/q_proj/dot_general", "causal_transformer_shard/~",
    "causal_transformer_shard/~/o/dot_general",
    "causal_transformer_shard/~/dense_proj/dot_general", "causal_transformer_shard/~/dense_proj_o/dot_general",
    "causal_transformer_shard/~/norm/mul", "layers.py", "attn_forward", ("convolution_fusion", "fusion"),
)  # fmt: skip
GEMMA = Style(
    "student/layer/attn/q_einsum/dot_general", "student/layer/attn", "student/layer/attn/attn_vec_einsum/dot_general",
    "student/layer/mlp/gating_einsum/dot_general", "student/layer/mlp/linear/dot_general",
    "student/layer/pre_attention_norm/mul", "modules.py", "splash_attention_mha", ("fusion", "convert_reduce_fusion"),
)  # fmt: skip


def fully_sharded(style: Style, of: Sizes, layers: int, cores: int, late: bool = False, **more: Any) -> Stack:
    """A decoder whose weights are gathered beside its layers; `late` ones are awaited ahead of the MLP's first half."""
    forward, back = layer(style, of), layer_back(style, of)
    rows, scope, source = of.rows // cores, "with_sharding_constraint/all_gather", "jax_utils.py:210"
    each = Between("all-gather", rows, forward[:2], forward[2:], late, scope=scope, source=source)
    again = Between("all-gather", rows, back[:1], back[1:], late, scope=scope, source=source)
    scattered = Beside("reduce-scatter", of.rows, (again,), scope="grads/psum_scatter", source="llama_train.py:190")
    kept = {"once": (head(of, 32_000, "lm_head/dot_general"),), "rows": of.rows * layers // cores, **more}
    return Stack(of.tokens, of.width, layers, (each,), (scattered,), **kept)


def latent(of: Sizes, experts: int, layers: int, **more: Any) -> Stack:
    """A mixture of experts with latent attention and a shared expert; tokens are exchanged beside that. It trains."""
    source, width = "moe.py:512", of.width
    shared = layer(LATENT, of)
    low = Gemms(((0, 0, 1536), (0, 1536, width), (0, 0, 512), (0, 512, width)), LATENT.into, "attention_mla.py:301")
    own = Gemms(((0, 0, experts), (0, experts, 0)), "moe_layers/MoeBlock_0/gmm/dot_general", source)
    again = Gemms(((0, 0, experts), (0, experts, 0)) * 2, "moe_layers/MoeBlock_0/gmm/dot_general", source)
    each = (
        shared[0], low, *shared[2:4],
        Beside("all-to-all", of.tokens, shared[4:], scope="moe_layers/MoeBlock_0/ragged_all_to_all", source=source),
        own,
    )  # fmt: skip
    reduced = Beside("all-reduce", of.rows, (*layer_back(LATENT, of), again), scope="psum", source="train.py:533")
    kept = {"once": (head(of, 32_768),), "rows": 8192, "name": "jit_train_step", **more}
    return Stack(of.tokens, width, layers, each, (reduced,), **kept)


def griffin(tokens: int, width: int, layers: int, **more: Any) -> Stack:
    """Blocks of a gated linear recurrence and an MLP; it trains, its gradients reduced beside the backward pass."""
    norm = Activations(
        bad=False, rows=tokens, width=width, count=1, base="multiply_rsqrt_fusion",
        scope="blocks/temporal_pre_norm/mul", source="layers.py:88",
    )  # fmt: skip
    scan = Kernel(
        bad=False, good=0.78, flops=8.0 * tokens * width, size=12 * tokens * width, base="rg_lru_scan",
        scope="blocks/recurrent_block/rg_lru/pallas_call", source="pallas.py:410",
    )  # fmt: skip
    into = Gemms(((0, 0, width),) * 2, "blocks/recurrent_block/linear_x/dot_general", "griffin.py:310")
    out = Gemms(((0, 0, width),), "blocks/recurrent_block/linear_out/dot_general", "griffin.py:355", "add_fusion")
    wide = Gemms(
        ((0, 0, 3 * width),) * 2 + ((0, 3 * width, 0),), "blocks/mlp_block/ffw_up/dot_general", "griffin.py:92"
    )
    back = Gemms(
        ((0, 0, 3 * width), (3 * width, tokens, width), (0, 3 * width, 0)) * 2 + ((0, 0, width), (width, tokens,
        width)) * 3,
        "blocks/mlp_block/ffw_down/dot_general", "griffin.py:92", "convert_reduce_fusion",
    )  # fmt: skip
    reduced = Beside("all-reduce", 12 * width, (back, scan), scope="psum", source="train_lm.py:71")
    of = Sizes(tokens, width, 3 * width, 16)
    kept = {"once": (head(of, 65_536, "embedder/decode/dot_general"),), "rows": 2 * width * layers, **more}
    each = (norm, into, scan, out, norm, wide)
    return Stack(tokens, width, layers, each, (reduced,), **{"model": "Griffin", "name": "jit_update", **kept})


def exchanging(of: Sizes, layers: int, late: bool = False, **more: Any) -> Stack:
    """A decoder whose cores have parts of each text, and exchange them for parts of the heads around attention; `late`
    ones are awaited at once."""
    source = "ulysses.py:58"
    norm, into, attends, out, up, down = layer(PARALLEL, of)
    there = Beside("all-to-all", 3 * of.tokens, () if late else (up,), late, "ulysses/all_to_all", source)
    back_there = Beside("all-to-all", of.tokens, () if late else (down,), late, "ulysses/all_to_all", source)
    each: tuple[Part, ...] = (
        norm,
        into,
        there,
        *((up,) if late else ()),
        attends,
        back_there,
        *((down,) if late else ()),
        out,
    )
    reduced = Beside("reduce-scatter", of.rows, layer_back(PARALLEL, of), scope="shard_map/psum_scatter", source=source)
    kept = {"once": (head(of, 50_432, "proj/~/linear/dot_general"),), "rows": of.rows * layers // 8, **more}
    return Stack(of.tokens, of.width, layers, each, (reduced,), **{"name": "jit_train_xmap", **kept})


def distilled(teacher: Sizes, student: Sizes, layers: int, outputs: int, **more: Any) -> Stack:
    """A teacher's forward pass, and a student that trains on it."""
    wide = (
        Activations(
            bad=False, rows=teacher.tokens, width=teacher.width, count=1, scope="teacher/layer/pre_attention_norm/mul",
            source="modules.py:60",
        ),
        Gemms(((teacher.tokens, teacher.width, teacher.width),) * 4, "teacher/layer/attn/q_einsum/dot_general",
        "modules.py:140"),
        attention(GEMMA, teacher),
        Gemms(
            ((teacher.tokens, teacher.width, teacher.hidden),) * 2 + ((teacher.tokens, teacher.hidden, teacher.width),),
            "teacher/layer/mlp/gating_einsum/dot_general", "modules.py:205", "multiply_convert_fusion",
        ),
    )  # fmt: skip
    logits = Gemms(((teacher.tokens, teacher.width, outputs),), "teacher/embedder/decode/dot_general", "modules.py:45")
    reduced = Beside(
        "reduce-scatter", student.rows, layer_back(GEMMA, student), scope="grads/psum_scatter", source="distill.py:230"
    )
    kept = {
        "first": (*wide * layers, logits),
        "once": (head(student, outputs, "student/embedder/decode/dot_general"),),
        **more,
    }
    kept = {"rows": student.rows * layers // 8, "name": "jit_distill_step", "model": "Distillation", **kept}
    return Stack(student.tokens, student.width, layers, layer(GEMMA, student), (reduced,), **kept)


def serves(batch: int, width: int, hidden: int, layers: int, mib: int, cores: int, **more: Any) -> Stack:
    """A step of vLLM's engine that makes a token for each request; cores share the layers, sums go beside fetches."""
    own = hidden // cores
    reads = Kernel(
        bad=False, good=0.79, flops=mib * 5e6, size=mib << 20, base="RPA-HD_128-bq_64-bkvp_32-p_128-",
        scope="model.layers/self_attn/attn/pallas_call", source="kernel.py:1290",
    )  # fmt: skip
    parts: tuple[Part, ...] = (
        Gemms(((0, 0, width * 5 // 4 // cores),), "model.layers/self_attn/qkv_proj/dot_general", "linear.py:180"),
        reads,
        Gemms(((0, width // cores, 0),), "model.layers/self_attn/o_proj/dot_general", "linear.py:180", "add_fusion"),
        Beside(
            "all-reduce", batch, (Gemms(((0, 0, 2 * own),), "model.layers/mlp/gate_up_proj/dot_general",
            "linear.py:180"),),
            scope="model.layers/self_attn/o_proj/psum", source="linear.py:201",
        ),
        Gemms(((0, own, 0),), "model.layers/mlp/down_proj/dot_general", "linear.py:180", "convolution_add_fusion"),
        Prefetch(bad=False, rows=512, width=2048, count=1, scope="model.layers/prefetch", source="linear.py:66"),
    )  # fmt: skip
    kept = {"once": (Gemms(((0, 0, 151_552 // cores),), "lm_head/dot_general", "qwen3.py:260"),), **more}
    return Stack(batch, width, layers, parts, **{"model": "Qwen3ForCausalLM", "name": "jit_step_fun", **kept})


def scores(of: Sizes, layers: int, **more: Any) -> Stack:
    """A forward pass over texts whose likelihood is asked for."""
    kept = {"once": (Gemms(((0, 0, 65_536),), "lm_head/dot_general", "modeling_llama.py:410"),), **more}
    return Stack(
        of.tokens, of.width, layers, layer(EASYLM, of), **{"model": "Eval", "name": "jit_forward_loglikelihood", **kept}
    )


def pictures(pixels: int, layers: int, turns: int, **more: Any) -> Stack:
    """Turns of a loop that removes noise from latents by convolutions and attention, and a decoder after them."""
    scope, source = "unet/down_blocks_1/resnets_0/conv1/conv_general_dilated", "resnet_flax.py:92"
    norm = Activations(
        bad=False, rows=pixels, width=640, count=1, base="multiply_add_fusion", scope="unet/down_blocks_1/norm1/mul",
        source="resnet_flax.py:80",
    )  # fmt: skip
    attends = Kernel(
        bad=False, good=0.61, flops=4.0 * pixels * 4096 * 640, size=8 * pixels * 640, base="flash_attention_fwd",
        scope="unet/down_blocks_1/attentions_0/attn1/pallas_call", source="attention_flax.py:288",
    )  # fmt: skip
    parts = (
        norm,
        Gemms(((pixels, 5760, 640), (pixels, 5760, 640), (pixels // 4, 11_520, 1280)), scope, source),
        Gemms(((pixels, 640, 640),) * 4, "unet/down_blocks_1/attentions_0/to_q/dot_general", "attention_flax.py:201"),
        attends,
        Gemms(((pixels, 640, 5120), (pixels, 2560, 640)), "unet/down_blocks_1/ff/net_0/dot_general",
        "attention_flax.py:480"),
    )  # fmt: skip
    decoder = Gemms(
        ((16 * pixels, 4608, 512), (16 * pixels, 2304, 256)), "vae/decoder/up_blocks/conv_general_dilated",
        "vae_flax.py:702"
    )  # fmt: skip
    kept = {"micro": turns, "over": "denoise/while", "once": (decoder,), "name": "jit_run_inference", **more}
    return Stack(pixels, 640, layers, parts, **{"model": "UNet2DConditionModel", "source": "unet_2d.py:301", **kept})


def residual(images: int, layers: int, **more: Any) -> Stack:
    """A small network of convolutions in a notebook, on one core; it trains."""
    pixels = images * 256
    sizes = ((pixels, 1152, 128), (pixels // 4, 2304, 256), (pixels // 4, 2304, 256))
    norms = Activations(
        bad=False, rows=pixels, width=128, count=1, base="subtract_multiply_fusion", scope="BatchNorm_0/mul",
        source="normalization.py:310",
    )  # fmt: skip
    back = Gemms(
        (*((m, n, k) for m, k, n in sizes), *((k, m, n) for m, k, n in sizes)),
        "ResNetBlock_0/Conv_0/conv_general_dilated",
        "<ipython-input-9>:14", "convert_bitcast_fusion",
    )  # fmt: skip
    forward = Gemms(sizes, "ResNetBlock_0/Conv_0/conv_general_dilated", "<ipython-input-9>:14")
    kept = {"rows": 1024, "name": "jit_train_step", "model": "ResNet", "source": "<ipython-input-9>:31", **more}
    return Stack(images, 2048, layers, (forward, norms), (back, norms), **kept)


def ranks(batch: int, width: int, **more: Any) -> Stack:
    """A ranking model with crosses of features, its tables on SparseCores; it trains."""
    looks = OnSparseCore(
        bad=False, opcode="all-to-all", rows=2048, scope="tpu_sparse_dense_matmul/forward", source="embedding.py:512"
    )
    crosses = Gemms(((0, 0, 512), (0, 512, 0)) * 3, "DLRMDCNV2/CrossNet/dot_general", "dlrm_model.py:140")
    top = Gemms(((0, 0, 2048), (0, 2048, 1024), (0, 1024, 512)), "DLRMDCNV2/top_mlp/dot_general", "dlrm_model.py:188")
    sizes = ((0, 2048, 0), (width, batch, 2048), (0, 1024, 2048), (2048, batch, 1024), (0, 512, 0), (width, batch, 512))
    under = Gemms(sizes * 2, "DLRMDCNV2/top_mlp/dot_general", "dlrm_model.py:188", "convert_reduce_fusion")
    reduced = Beside("all-reduce", 6144, (under,), scope="pmean", source="train_dlrm.py:301")
    kept = {"first": (looks,), "rows": 4096, "name": "jit_train_step", "model": "DLRMDCNV2", **more}
    return Stack(batch, width, 3, (crosses, top), (reduced,), **kept)


def forecasts(nodes: int, edges: int, width: int, layers: int, **more: Any) -> Stack:
    """A processor of messages between the nodes of a mesh, as GraphCast's; it trains."""
    taken = Taken(
        bad=False, rows=edges, table=nodes, width=width, scope="mesh_gnn/~/sent_attributes/take",
        source="deep_typed_graph_net.py:371", base="gather_convert_fusion",
    )  # fmt: skip
    sizes = ((edges, 3 * width, width), (edges, width, width), (nodes, 2 * width, width), (nodes, width, width))
    mlp = Gemms(sizes, "mesh_gnn/~/processor_edges_0_mesh_mlp/~/linear_0/dot_general", "basic.py:180", "add_fusion")
    norm = Activations(
        bad=False, rows=edges, width=width, count=1, base="multiply_add_fusion",
        scope="mesh_gnn/~/processor_edges_0_mesh_layer_norm/mul", source="layer_norm.py:204",
    )  # fmt: skip
    back = Gemms(
        (*((m, n, k) for m, k, n in sizes), *((k, m, n) for m, k, n in sizes)),
        "mesh_gnn/~/processor_edges_0_mesh_mlp/~/linear_0/dot_general", "basic.py:180", "convert_reduce_fusion",
    )  # fmt: skip
    reduced = Beside("all-reduce", 4096, (back, norm), scope="pmean", source="train_forecaster.py:166")
    kept = {"rows": 4096, "name": "jit__train_step", "model": "graphcast", "source": "graphcast.py:420", **more}
    return Stack(nodes, width, layers, (taken, mlp, norm), (reduced,), **kept)


def flows(cells: int, width: int, layers: int, late: bool = False, **more: Any) -> Stack:
    """Steps of a solver of flows on a grid: a learned correction, transforms for the pressure, halos of the grid."""
    inner = Activations(
        bad=False, rows=cells, width=width, count=3, base="add_multiply_fusion", scope="advect/van_leer/mul",
        source="advection.py:201",
    )  # fmt: skip
    border = Activations(
        bad=False, rows=cells // 16, width=width, count=1, base="subtract_fusion", scope="advect/boundary/sub",
        source="boundaries.py:92",
    )  # fmt: skip
    pressure = Fourier(cells // 8, 2048, 2, "pressure/solve_fast_diag/fft", "pressure.py:118")
    learned = Gemms(((0, 0, 0),) * 4, "learned_correction/~/conv2_d/conv_general_dilated", "towers.py:77", "add_fusion")
    each = (Halo(8192, (inner,), (border,), late), pressure, learned)
    kept = {"name": "jit_repeated_step", "model": "navier_stokes", "source": "equations.py:66", **more}
    return Stack(cells, width, layers, each, **kept)


def acts(environments: int, width: int, turns: int, **more: Any) -> Stack:
    """Turns of environments with their policy, and then the policy's training."""
    physics = Activations(
        bad=False, rows=environments, width=width, count=3, base="multiply_select_fusion",
        scope="env/step/pipeline/mul",
        source="pipeline.py:88",
    )  # fmt: skip
    policy = Gemms(((0, 0, 0),) * 3, "policy/MLP_0/hidden_0/dot_general", "networks.py:45")
    rows = environments * turns // 8
    sizes = ((rows, 0, 0),) * 6 + ((width, rows, 0),) * 3
    trains = Gemms(sizes, "ppo/minibatch_step/dot_general", "train_ppo.py:402", "convert_reduce_fusion")
    kept = {"micro": turns, "over": "generate_unroll/while", "once": (trains,) * 4, "rows": 1024, **more}
    return Stack(environments, width, 1, (physics, policy), **{"model": "Brax", "name": "jit_training_epoch", **kept})

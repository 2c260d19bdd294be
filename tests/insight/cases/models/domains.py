"""Models of these domains: nets that solve equations, weather on tiles, videos, state spaces, servers, search."""

from __future__ import annotations

from typing import Any

from tests.insight.cases.models.dialects import Sizes, Style, head, layer, layer_back
from tests.insight.cases.parts.domains import Edges
from tests.insight.simulator.parts import Activations, Kernel, Lookup, Part, Relayouts
from tests.insight.simulator.schedules import AcrossSlices, OneForwardOneBackward
from tests.insight.simulator.stack import Beside, Gemms, Stack

BERT = Style(
    "query_encoder/encoder/layer/attention/self/query/dot_general", "query_encoder/encoder/layer/attention/self",
    "query_encoder/encoder/layer/attention/output/dense/dot_general",
    "query_encoder/encoder/layer/intermediate/dense/dot_general",
    "query_encoder/encoder/layer/output/dense/dot_general",
    "query_encoder/encoder/layer/attention/output/LayerNorm/mul", "modeling_flax_bert.py", "bidirectional_attention",
    ("convolution_fusion", "convolution_add_fusion"),
)  # fmt: skip
OLMO = Style(
    "blocks/att_proj/dot_general", "blocks/sdpa", "blocks/attn_out/dot_general", "blocks/ff_proj/dot_general",
    "blocks/ff_out/dot_general", "blocks/attn_norm/mul", "olmo.py", "splash_mha_fused",
    ("fusion", "convolution_multiply_fusion"),
)  # fmt: skip
AQT = Style(
    "decoder/layers/attention/qkv_aqt/dot_general", "decoder/layers/attention/core",
    "decoder/layers/attention/out_aqt/dot_general", "decoder/layers/mlp/wi_aqt/dot_general",
    "decoder/layers/mlp/wo_aqt/dot_general", "decoder/layers/pre_norm/mul", "aqt_flax.py", "fa_fwd",
    ("convolution_convert_fusion", "fusion"),
)  # fmt: skip
SPLIT = Style(
    "model/block/attn/c_attn/dot_general", "model/block/attn/sdp", "model/block/attn/c_proj/dot_general",
    "model/block/mlp/c_fc/dot_general", "model/block/mlp/c_proj/dot_general", "model/block/ln_1/mul", "gpt.py",
    "cudnn_like_flash", ("fusion", "convert_add_fusion"),
)  # fmt: skip


def elementwise(rows: int, width: int, scope: str, source: str, base: str, count: int = 1) -> Part:
    """Elementwise work in bf16 as fast as HBM has it."""
    return Activations(bad=False, rows=rows, width=width, count=count, base=base, scope=scope, source=source)


def crumbs(tokens: int, width: int, file: str) -> tuple[Part, ...]:
    """A little of what could be done better: a copy, some rows taken one by one, a norm in f32; too little to care."""
    return (
        Relayouts(count=1, rows=tokens // 2, width=width, scope="batch/moveaxis", source=f"{file}:12"),
        Lookup(rows=900, scope="targets/take_along_axis", source=f"{file}:19", base="gather_fusion"),
        Activations(
            rows=tokens // 4, width=width, count=1, base="square_reduce_fusion", scope="global_norm/square",
            source=f"{file}:33",
        ),
    )  # fmt: skip


def solves(points: int, width: int, layers: int, **more: Any) -> Stack:
    """A net whose derivatives by its inputs are to fulfil an equation; it trains on one core."""
    waves = elementwise(points, width, "siren/sin", "siren.py:40", "sine_multiply_fusion")
    each = (Gemms(((0, 0, 0),) * 3, "siren/jvp/dense/dot_general", "siren.py:38"), waves)
    back = (
        Gemms(((0, 0, 0), (width, points, width)) * 3, "siren/jvp/dense/dot_general", "siren.py:38", "convolution_add"),
        waves,
    )
    kept = {"rows": width * layers, "model": "PINN", "name": "jit_residual_loss", "source": "burgers.py:77", **more}
    kept["once"] = crumbs(points // 4, width, "burgers.py")
    return Stack(points, width, layers, each, back, **kept)


def attempts(states: int, width: int, stages: int, **more: Any) -> Stack:
    """One attempt of a step of a Runge-Kutta method whose right side is a net; the host asks for it again and again."""
    each = (
        Gemms(((0, 0, 0),) * 2, "vector_field/mlp/dot_general", "vector_field.py:28", "convolution_fusion"),
        elementwise(states, width, "rk/stage/mul", "runge_kutta.py:402", "tanh_multiply_add_fusion"),
    )
    error = elementwise(states, width, "rk/error/abs", "runge_kutta.py:455", "abs_maximum_fusion")
    kept = {"once": (error,), "model": "Dopri5", "name": "jit_attempt_step", "source": "runge_kutta.py:520", **more}
    return Stack(states, width, stages, each, **kept)


def weather(cells: int, width: int, layers: int, columns: int, **more: Any) -> Stack:
    """Steps of the atmosphere on tiles of a grid, one a core: dynamics, then a learned physics of each column."""
    dynamics = elementwise(
        cells, width, "dycore/vertical_advection/mul", "primitive_equations.py:410", "multiply_subtract_fusion", 2
    )
    physics = Gemms(
        ((0, 0, 0),) * 6,
        "column_physics/epd_tower/linear/dot_general",
        "parameterizations.py:93",
        "multiply_add_fusion",
    )
    each = (Edges(2048, columns, (physics,)), dynamics)
    energy = Beside("all-reduce", 64, (physics,), scope="diagnostics/energy/psum", source="diagnostics.py:37")
    kept = {"once": (energy,), "model": "Atmosphere", "name": "jit_inner_steps", "source": "time_integration.py:151"}
    return Stack(cells, width, layers, each, **{**kept, **more})


def films(tokens: int, width: int, layers: int, **more: Any) -> Stack:
    """A denoising step of a video model whose blocks attend over space and over time in turn."""
    both: list[Part] = []
    for name, keys in (("spatial_block", 1024), ("temporal_block", 16)):
        both += [
            elementwise(tokens, width, f"{name}/adaln/mul", "stdit.py:142", "multiply_add_fusion"),
            Gemms(((0, 0, 0),) * 3, f"{name}/attn/qkv/dot_general", "stdit.py:168", "convolution_fusion"),
            Kernel(
                bad=False, good=0.66, flops=4.0 * tokens * keys * width, size=8 * tokens * width, base=f"{name}_flash",
                scope=f"{name}/attn/pallas_call", source="stdit.py:175",
            ),
            Gemms(((0, 0, 0),), f"{name}/attn/proj/dot_general", "stdit.py:181", "convolution_add_fusion"),
            Gemms(((0, 0, 4 * width), (0, 4 * width, 0)), f"{name}/mlp/dot_general", "stdit.py:201"),
        ]  # fmt: skip
    kept = {"model": "STDiT3", "source": "stdit.py:260", "name": "jit_ddim_step", **more}
    return Stack(tokens, width, layers, tuple(both), **kept)


def states(tokens: int, width: int, layers: int, outputs: int, **more: Any) -> Stack:
    """A model of state spaces by chunks, as Mamba-2; it trains."""
    wide = 2 * width
    into = Gemms(((0, 0, 9 * width // 4),) * 2, "mixer/in_proj/dot_general", "mamba2.py:120", "convolution_fusion")
    scan = Kernel(
        bad=False, good=0.64, flops=520.0 * tokens * wide, size=10 * tokens * wide, base="ssd_chunk_scan",
        scope="mixer/ssd/pallas_call", source="ssd_pallas.py:301",
    )  # fmt: skip
    out = Gemms(((0, wide, 0),), "mixer/out_proj/dot_general", "mamba2.py:171", "convolution_add_fusion")
    norm = elementwise(tokens, width, "norm/mul", "rms_norm.py:22", "multiply_rsqrt_fusion")
    sizes = ((0, 9 * width // 4, 0), (width, tokens, 9 * width // 4)) * 2 + ((0, 0, wide), (wide, tokens, width))
    back = (Gemms(sizes, "mixer/in_proj/dot_general", "mamba2.py:120", "convert_reduce_fusion"), scan, scan)
    reduced = Beside("all-reduce", 12 * width, back, scope="grads/psum", source="train_mamba.py:210")
    last = head(Sizes(tokens, width, wide, 1), outputs, "lm_head/dot_general")
    kept = {"once": (last, *crumbs(tokens, width, "train_mamba.py")), "rows": 3 * width, **more}
    kept = {"model": "MambaLMHeadModel", "name": "jit_train_on_chunk", "source": "mamba2.py:300", **kept}
    return Stack(tokens, width, layers, (norm, into, scan, out), (reduced,), **kept)


def mixes(tokens: int, width: int, layers: int, **more: Any) -> Stack:
    """A recurrent model that mixes over time and channels, as RWKV-7; it trains."""
    norm = elementwise(tokens, width, "ln1/mul", "rwkv.py:55", "subtract_multiply_fusion")
    time = Gemms(((0, 0, 0),) * 5, "att/receptance/dot_general", "rwkv.py:88", "convolution_fusion")
    carries = Kernel(
        bad=False, good=0.58, flops=256.0 * tokens * width, size=14 * tokens * width, base="wkv7_state",
        scope="att/wkv/pallas_call", source="wkv7.py:77",
    )  # fmt: skip
    channels = Gemms(((0, 0, 7 * width // 2), (0, 7 * width // 2, 0)), "ffn/key/dot_general", "rwkv.py:131")
    hidden = 7 * width // 2
    sizes = ((0, 0, hidden), (hidden, tokens, width), (0, hidden, 0), (width, tokens, hidden))
    back = (
        Gemms(sizes, "ffn/key/dot_general", "rwkv.py:131", "convert_add_fusion"),
        carries,
        Gemms(((0, 0, 0), (width, tokens, width)) * 5, "att/receptance/dot_general", "rwkv.py:88", "fusion"),
    )
    reduced = Beside("reduce-scatter", 8 * width, back, scope="grads/psum_scatter", source="train_rwkv.py:144")
    kept = {"rows": width * layers, "model": "RWKV", "name": "jit_apply_gradients", "source": "rwkv.py:160", **more}
    return Stack(tokens, width, layers, (norm, time, carries, channels), (reduced,), **kept)


def extends(batch: int, width: int, hidden: int, layers: int, mib: int, cores: int, **more: Any) -> Stack:
    """A step of a server that mixes chunks of prompts with tokens of answers, its layers split over cores."""
    own = hidden // cores
    attends = Kernel(
        bad=False, good=0.76, flops=mib * 2e7, size=mib << 20, base="ragged_extend_attention",
        scope="layers/self_attn/radix_attention/pallas_call", source="flash_attn_kernel.py:612",
    )  # fmt: skip
    wide = Gemms(
        ((0, 0, 2 * own),), "layers/mlp/gate_up_proj/dot_general", "linear.py:77", "convolution_multiply_fusion"
    )
    parts: tuple[Part, ...] = (
        Gemms(((0, 0, 3 * width // 2 // cores),), "layers/self_attn/qkv_proj/dot_general", "linear.py:77"),
        attends,
        Gemms(((0, width // cores, 0),), "layers/self_attn/o_proj/dot_general", "linear.py:91", "fusion"),
        Beside("all-reduce", batch, (wide,), scope="layers/self_attn/o_proj/psum", source="linear.py:98"),
        Gemms(((0, own, 0),), "layers/mlp/down_proj/dot_general", "linear.py:91", "convolution_add_fusion"),
    )
    kept = {"once": (Gemms(((0, 0, 131_072 // cores),), "lm_head/dot_general", "logits_processor.py:140"),), **more}
    kept = {"model": "QWenLMHeadModel", "name": "jit_jitted_run_model", "source": "model_runner.py:301", **kept}
    return Stack(batch, width, layers, parts, **kept)


def encodes(of: Sizes, layers: int, lines: int, **more: Any) -> Stack:
    """Two encoders of queries and passages on a mesh, whose vectors of tokens are compared; they train."""
    norm, into, attends, out, up, down = layer(BERT, of)
    shared = Beside(
        "all-reduce", of.tokens, (up,), scope="query_encoder/encoder/layer/attention/output/psum", lines=lines,
        source="partition.py:66",
    )  # fmt: skip
    reduced = Beside(
        "reduce-scatter", of.rows, layer_back(BERT, of), scope="late_interaction/grads/psum_scatter", lines=lines,
        along=False, source="train_colbert.py:188",
    )  # fmt: skip
    kept = {"rows": of.rows * layers // 8, "model": "ColBERT", "name": "jit_contrastive_update", **more}
    return Stack(of.tokens, of.width, layers, (norm, into, attends, out, shared, down), (reduced,), **kept)


def trains(style: Style, of: Sizes, layers: int, outputs: int, **more: Any) -> Stack:
    """A decoder that trains; each layer's gradients are scattered beside the backward pass."""
    reduced = Beside("reduce-scatter", of.rows, layer_back(style, of), scope="optim/psum_scatter", source="zero.py:80")
    last = head(of, outputs, "vocab/dot_general")
    kept = {"once": (last, *crumbs(of.tokens, of.width, "losses.py")), "rows": of.rows * layers // 16, **more}
    return Stack(of.tokens, of.width, layers, layer(style, of), (reduced,), **kept)


def paints(images: int, layers: int, model: str, scope: str, **more: Any) -> Stack:
    """One of two networks that train against each other, of convolutions."""
    pixels = images * 1024
    sizes = ((pixels, 1152, 256), (pixels // 4, 2304, 512), (pixels // 16, 4608, 512))
    forward = Gemms(sizes, f"{scope}/conv_general_dilated", "stylegan.py:171", "convolution_multiply_fusion")
    back = Gemms(
        (*((m, n, k) for m, k, n in sizes), *((k, m, n) for m, k, n in sizes)), f"{scope}/conv_general_dilated",
        "stylegan.py:171", "convert_reduce_fusion",
    )  # fmt: skip
    act = elementwise(pixels // 4, 512, f"{scope}/leaky_relu/mul", "stylegan.py:130", "maximum_multiply_fusion")
    kept = {"rows": 2048, "model": model, "source": "stylegan.py:301", **more}
    return Stack(pixels // 64, 2048, layers, (forward, act), (back, act), **kept)


def listens(tokens: int, width: int, layers: int, **more: Any) -> Stack:
    """An encoder of speech whose outputs a beam search reads."""
    parts = (
        elementwise(tokens, width, "encoder/squeezeformer/norm/mul", "squeezeformer.py:60", "multiply_fusion"),
        Gemms(((0, 0, 0),) * 4, "encoder/squeezeformer/mhsa/dot_general", "squeezeformer.py:91", "convolution_fusion"),
        Gemms(((0, 0, 4 * width), (0, 4 * width, 0)), "encoder/squeezeformer/ffn/dot_general", "squeezeformer.py:118"),
        Gemms(((0, 0, 2 * width), (0, 2 * width, 0)), "encoder/squeezeformer/conv/dot_general", "squeezeformer.py:140"),
    )
    out = Gemms(((0, 0, 5120),), "ctc_head/dot_general", "squeezeformer.py:212")
    kept = {
        "once": (out, *crumbs(tokens, width, "asr.py")),
        "model": "Squeezeformer",
        "name": "jit_transcribe_batch",
        "source": "asr.py:88",
        **more,
    }
    return Stack(tokens, width, layers, parts, **kept)


def compressed(of: Sizes, layers: int, mib: int, **more: Any) -> Stack:
    """A model on two slices that exchange factors of low rank in place of gradients, beside the backward pass."""
    within = Beside(
        "reduce-scatter", of.rows, layer_back(SPLIT, of), scope="intra/psum_scatter", source="multislice.py:49", lines=2
    )
    factors = AcrossSlices(mib, (within,), scope="powersgd/factors/psum", source="powersgd.py:140")
    thin = Gemms(
        ((of.width, of.width, 128), (128, of.width, of.width)), "powersgd/project/dot_general", "powersgd.py:121"
    )
    kept = {"once": (head(of, 32_768, "model/lm_head/dot_general"), thin), "rows": of.rows * layers // 8, **more}
    kept = {"name": "jit_compressed_step", "model": "GPT", "source": "gpt.py:205", **kept}
    return Stack(of.tokens, of.width, layers, layer(SPLIT, of), (factors,), **kept)


def piped(of: Sizes, microbatches: int, **more: Any) -> OneForwardOneBackward:
    """A stage of a decoder in a pipeline: one layer of it."""
    kept = {"scope": "gpipe/stage_scan", "source": "gpipe.py:96", "name": "jit_pipeline_step", **more}
    return OneForwardOneBackward(
        microbatches, layer(SPLIT, of)[1:], layer_back(SPLIT, of), tokens=of.tokens, width=of.width, **kept
    )

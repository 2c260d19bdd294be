"""Models as other libraries write them: with their scopes, their sizes, and layers that have numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.insight.simulator.parts import Activations, Kernel, Part
from tests.insight.simulator.spelled import Between, GatheredExperts, HandedOn, Taken
from tests.insight.simulator.stack import Beside, Gemms, Stack


@dataclass(frozen=True, slots=True)
class Style:
    """How a library names what every model has: scopes of projections, attention, MLP and norm; files; fusions."""

    into: str
    attends: str
    out: str
    up: str
    down: str
    norm: str
    file: str
    kernel: str
    bases: tuple[str, str] = ("fusion", "convert_reduce_fusion")


LINEN = Style(
    "SelfAttention_0/query/dot_general", "SelfAttention_0", "SelfAttention_0/out/dot_general", "Dense_0/dot_general",
    "Dense_1/dot_general", "LayerNorm_0/mul", "linear.py", "flash_fwd",
)  # fmt: skip
HAIKU = Style(
    "self_attn/~/linear/dot_general", "self_attn", "self_attn/~/linear_3/dot_general", "mlp/~/linear_0/dot_general",
    "mlp/~/linear_1/dot_general", "layer_norm/mul", "basic.py", "tpu_attention",
    ("convolution_bitcast_fusion", "multiply_add_fusion"),
)  # fmt: skip
BARE = Style(
    "dot_general", "vmap()", "dot_general", "dot_general", "dot_general", "mul", "_linear.py", "mha_kernel",
    ("fusion", "fusion"),
)  # fmt: skip
LARGE = Style(
    "closed_call/checkpoint/self_attention/qkv_proj/dot_general", "closed_call/checkpoint/self_attention",
    "closed_call/checkpoint/self_attention/out/dot_general", "closed_call/checkpoint/mlp/wi/dot_general",
    "closed_call/checkpoint/mlp/wo/dot_general", "closed_call/checkpoint/pre_self_attention_layer_norm/mul",
    "linears.py", "splash_mha_fwd", ("convolution_convert_fusion", "fusion"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of a model of attention; of each core."""

    tokens: int
    width: int
    hidden: int
    heads: int
    length: int = 2048

    @property
    def rows(self) -> int:
        """Rows of a layer's weights, rounded so that all numbers of cores divide them."""
        return (4 * self.width + 2 * self.hidden) // 384 * 384


def attention(style: Style, of: Sizes, times: int = 1) -> Part:
    """A good kernel for attention."""
    flops = 4.0 * of.heads * of.length * of.length * 128 * times
    size = 4 * of.heads * of.length * 256 * times
    return Kernel(
        bad=False, good=0.71, flops=flops, size=size, base=style.kernel, scope=f"{style.attends}/pallas_call",
        source="kernel.py:233",
    )  # fmt: skip


def layer(style: Style, of: Sizes) -> tuple[Part, ...]:
    """A layer, forward."""
    first, second = style.bases
    return (
        Activations(
            bad=False, rows=of.tokens, width=of.width, count=1, base="fusion", scope=style.norm, source="norm.py:9"
        ),
        Gemms(((0, 0, of.width),) * 3, style.into, f"{style.file}:120", first),
        attention(style, of),
        Gemms(((0, 0, of.width),), style.out, f"{style.file}:120", second),
        Gemms(((0, 0, of.hidden),), style.up, f"{style.file}:120", first),
        Gemms(((0, of.hidden, 0),), style.down, f"{style.file}:120", second),
    )


def layer_back(style: Style, of: Sizes) -> tuple[Part, ...]:
    """A layer, backward."""
    first, second = style.bases
    tokens, width, hidden = of.tokens, of.width, of.hidden
    return (
        Gemms(((0, 0, hidden), (hidden, tokens, width)), style.down, f"{style.file}:120", first),
        Gemms(((0, hidden, width), (width, tokens, hidden)), style.up, f"{style.file}:120", second),
        attention(style, of, 2),
        Gemms(((0, 0, width), (width, tokens, width)) * 4, style.into, f"{style.file}:120", first),
    )


def head(of: Sizes, outputs: int, scope: str = "logits_dense/dot_general") -> Part:
    """The products of the last layer, forward and backward."""
    sizes = ((0, 0, outputs), (0, outputs, of.width), (of.width, of.tokens, outputs))
    return Gemms(sizes, scope, "heads.py:61", "fusion")


def trained(style: Style, of: Sizes, layers: int, outputs: int, **more: Any) -> Stack:
    """A model that trains, its gradients reduced beside the backward pass."""
    back = (Beside("all-reduce", of.rows, layer_back(style, of), scope="pmean", source="steps.py:48"),)
    kept = {"once": (head(of, outputs),), "rows": of.rows * layers // 8, **more}
    return Stack(of.tokens, of.width, layers, layer(style, of), back, **kept)


def gathered(style: Style, of: Sizes, layers: int, cores: int, late: bool = False, **more: Any) -> Stack:
    """A model whose weights are gathered beside its layers by fused collectives; `late` ones are awaited early."""
    forward, back = layer(style, of), layer_back(style, of)
    rows = of.rows // cores
    each = (Between("all-gather", rows, forward[:2], forward[2:], late, fused=True),)
    again = Between("all-gather", rows, back[:1], back[1:], late, fused=True)
    reduced = Beside("reduce-scatter", of.rows, (again,), scope="shard_map/psum_scatter", source="partitioning.py:171")
    kept = {"once": (head(of, 32_768),), "rows": of.rows * layers // cores, "name": "jit_train_step_fn", **more}
    return Stack(of.tokens, of.width, layers, each, (reduced,), **kept)


def sparse(tokens: int = 4096, width: int = 2560, layers: int = 3, hidden: int = 36_864, **more: Any) -> Stack:
    """A model of experts that gather tokens and scatter sums."""
    of = Sizes(tokens, width, 6144, 20)
    moves = GatheredExperts(bad=False, hidden=hidden, tokens=tokens)
    again = GatheredExperts(bad=False, hidden=2 * hidden, tokens=tokens)
    back = Beside("all-reduce", 6144, layer_back(LARGE, of)[2:], scope="pmean", source="steps.py:48")
    kept = {"once": (head(of, 32_768),), "rows": 8192, "name": "jit_train_step_fn", "model": "Sparse", **more}
    return Stack(tokens, width, layers, (*layer(LARGE, of)[:4], moves), (again, back), **kept)


def unet(batch: int = 32, **more: Any) -> Stack:
    """A network of convolutions over images that get smaller and larger again; it trains."""
    pixels = batch * 1024
    sizes = ((pixels, 2304, 256), (pixels // 4, 4608, 512), (pixels // 4, 4608, 512), (pixels, 2304, 256))
    back = (*((k, m, n) for m, k, n in sizes), *((m, n, k) for m, k, n in sizes))
    norms = Activations(
        bad=False, rows=pixels, width=256, count=1, base="add_bitcast_fusion", scope="GroupNorm_0/mul",
        source="blocks.py:30",
    )  # fmt: skip
    forward = Gemms(sizes, "ResBlock/Conv_0/conv_general_dilated", "blocks.py:36", "fusion")
    backward = Gemms(back, "ResBlock/Conv_0/conv_general_dilated", "blocks.py:36", "convert_reduce_fusion")
    reduced = Beside("all-reduce", 3072, (backward, norms), scope="pmean", source="diffuse.py:90")
    kept = {"rows": 2048, "name": "jit_denoising_loss_step", "model": "UNet", "source": "unet.py:51", **more}
    return Stack(batch * 16, 2048, 4, (forward, norms), (reduced,), **kept)


def towers(batch: int = 24_576, **more: Any) -> Stack:
    """Two towers over features of users and of items, each batch its own negatives; it trains."""
    looks = Taken(bad=False, rows=8 * batch, table=2_000_000, scope="ItemTower/Embed_0/take", source="towers.py:22")
    up = Gemms(((0, 0, 2048), (0, 2048, 1024), (0, 1024, 512)), "UserTower/Dense/dot_general", "towers.py:35")
    under = Gemms(
        ((0, 2048, 0), (2048, batch, 1024), (1024, batch, 2048), (0, 512, 1024)),
        "UserTower/Dense/dot_general",
        "towers.py:35",
    )
    reduced = Beside("all-reduce", 2048, (under,), scope="pmean", source="retrieval.py:80")
    kept = {"first": (looks,), "rows": 3072, "name": "jit_contrastive_step", "model": "TwoTower", **more}
    return Stack(batch, 1024, 4, (up,), (reduced,), **kept)


def rings(tokens: int, cores: int, late: bool = False, **more: Any) -> Stack:
    """A model whose cores have parts of a text and hand keys and values on."""
    of = Sizes(tokens, 3072, 8192, 24, 4096)
    seen = Kernel(
        bad=False, good=0.7, flops=3.0 * tokens * tokens * of.width, size=8 * tokens * of.width, base="zigzag_attn",
        scope="context_parallel/pallas_call", source="context.py:98",
    )  # fmt: skip
    small = Gemms(((0, 0, 512),), "context_parallel/rescale/dot_general", "context.py:110")
    forward = layer(HAIKU, of)
    each = (*forward[:2], HandedOn(2 * tokens, (small,), (seen,), late), *forward[3:])
    back = (Beside("all-reduce", of.rows, layer_back(HAIKU, of), scope="pmean", source="steps.py:48"),)
    kept = {"rows": 6144, "name": "jit_update", "model": "Transformer", **more}
    return Stack(tokens, of.width, 2, each, back, **kept)


def decode(batch: int, width: int, layers: int, cache: int, hidden: int, **more: Any) -> Stack:
    """A step of a server that makes a token for each of its requests."""
    parts = (
        Gemms(((0, 0, width * 5 // 4),), "attention/wqkv/dot_general", "engine.py:61"),
        Kernel(
            bad=False, good=0.78, flops=cache * 4e6, size=cache << 20, base="mqa_decode",
            scope="attention/mqa_decode/pallas_call", source="decode_kernel.py:77",
        ),
        Gemms(((0, 0, width), (0, 0, 2 * hidden), (0, hidden, width)), "feed_forward/dot_general", "engine.py:70"),
    )  # fmt: skip
    kept = {"once": (Gemms(((0, 0, 32_768),), "output/dot_general", "engine.py:92"),), **more}
    return Stack(batch, width, layers, parts, **{"model": "Engine", "name": "jit_generate_step", **kept})


def reads(of: Sizes, layers: int, **more: Any) -> Stack:
    """A forward pass alone."""
    return Stack(of.tokens, of.width, layers, layer(BARE, of), **{"model": "Model", "name": "jit_prefill", **more})

"""Models of the shapes, as lists of parts."""

from __future__ import annotations

from typing import Any

from tests.insight.simulator.parts import Activations, Chain, Experts, Kernel, Lookup, Part, Products
from tests.insight.simulator.spelled import HandedOn
from tests.insight.simulator.stack import Beside, Gemms, Scores, Stack

MIB = 1 << 20


def norm(tokens: int, width: int, scope: str = "pre_norm/mul") -> Part:
    """A norm of activations in bf16."""
    return Activations(bad=False, rows=tokens, width=width, count=1, scope=scope, source="norms.py:21")


def block(tokens: int, width: int, hidden: int, heads: int) -> tuple[Part, ...]:
    """A layer of a decoder, forward."""
    return (
        norm(tokens, width),
        Gemms(((0, 0, 2 * width),), "attn/qkv_proj/dot_general", "attention.py:60", "convolution_fusion"),
        Scores(bad=False, heads=heads),
        Gemms(((0, 0, width),), "attn/o_proj/dot_general", "attention.py:81", "convolution_add_fusion"),
        *mlp(hidden),
    )


def mlp(hidden: int) -> tuple[Part, ...]:
    """A gated MLP, forward."""
    return (
        Gemms(((0, 0, 2 * hidden),), "mlp/gate_up/dot_general", "mlp.py:20", "convolution_multiply_fusion"),
        Gemms(((0, hidden, 0),), "mlp/down/dot_general", "mlp.py:27", "convolution_add_fusion"),
    )


def block_back(tokens: int, width: int, hidden: int, heads: int) -> tuple[Part, ...]:
    """A layer of a decoder, backward."""
    return (
        Gemms(
            ((0, 0, hidden), (hidden, tokens, width), (0, 2 * hidden, width), (width, tokens, 2 * hidden)),
            "mlp/dot_general",
            "mlp.py:27",
        ),
        Scores(bad=False, heads=2 * heads),
        Gemms(
            ((0, 0, width), (width, tokens, width), (0, 2 * width, width), (width, tokens, 2 * width)),
            "attn/dot_general",
            "attention.py:60",
        ),
        norm(tokens, width, "pre_norm/add"),
    )


def logits(tokens: int, vocab: int, width: int) -> Part:
    """The head of a decoder, forward and backward."""
    return Gemms(((0, 0, vocab), (0, vocab, width), (width, tokens, vocab)), "lm_head/dot_general", "heads.py:19")


def decoder(
    tokens: int = 4096, width: int = 2048, hidden: int = 5632, layers: int = 4, heads: int = 32, vocab: int = 32_000,
    exchange: str = "all-reduce", **more: Any,
) -> Stack:  # fmt: skip
    """A decoder that trains; gradients are exchanged beside the backward pass."""
    back = block_back(tokens, width, hidden, heads)
    rows = 3 * width + 3 * hidden
    kept = {"turn": (logits(tokens, vocab, width),), "rows": rows * layers // 8, "name": "jit_update", **more}
    each = (Beside(exchange, rows // 256 * 256, back),) if exchange else back
    return Stack(tokens, width, layers, block(tokens, width, hidden, heads), each, **kept)


def sharded(
    tokens: int = 8192, width: int = 4096, hidden: int = 11_008, layers: int = 3, cores: int = 8, late: str = "",
    **more: Any,
) -> Stack:  # fmt: skip
    """A decoder whose weights are gathered before each layer, forward and backward, and whose gradients are scattered
    after it; `late` is the collective that the program waits for."""
    rows = (3 * width + 3 * hidden) // 256 * 256
    gathering = {"opcode": "all-gather", "rows": rows // cores, "scope": "fsdp/all_gather", "bad": late == "all-gather"}
    forward = Beside(parts=block(tokens, width, hidden, 32), **gathering)  # type: ignore[arg-type]
    gathered = Beside(parts=block_back(tokens, width, hidden, 32), **gathering)  # type: ignore[arg-type]
    bad = late == "reduce-scatter"
    backward = Beside("reduce-scatter", rows, (gathered,), bad, "fsdp/psum_scatter", "sharding.py:90")
    kept = {"turn": (logits(tokens, 32_000, width),), "rows": rows * layers // cores, "name": "jit_fsdp_step", **more}
    return Stack(tokens, width, layers, (forward,), (backward,), **kept)


def ring(tokens: int, cores: int, width: int = 4096, late: bool = False, **more: Any) -> Stack:
    """A decoder that reads long texts: each core has a part of the text, and keys and values go around."""
    flops = 4.0 * tokens * tokens * width
    attends = Kernel(
        bad=False, good=0.72, flops=flops, size=8 * tokens * width, base="ring_flash", source="ring.py:60",
        scope="ring_attention/pallas_call",
    )  # fmt: skip
    around = HandedOn(2 * tokens, (), (attends,), late, "ring_attention/ppermute", "ring.py:35", way=1)
    each = (*block(tokens, width, 11_008, 32)[:2], around, *mlp(11_008))
    rows = (3 * width + 3 * 11_008) // 256 * 256
    back = (Beside("all-reduce", rows, block_back(tokens, width, 11_008, 32)),)
    kept = {"rows": 8192, "name": "jit_long_step", "model": "LongText", **more}
    return Stack(tokens, width, 2, each, back, **kept)


def experts(tokens: int = 4096, width: int = 2048, layers: int = 4, hidden: int = 32_768, **more: Any) -> Stack:
    """A mixture of experts that trains: tokens go to their experts and back in each layer."""
    kept = {
        "once": (logits(tokens, 32_000, width),),
        "rows": 16_384,
        "name": "jit_moe_step",
        "model": "Mixture",
        **more,
    }
    attends = block(tokens, width, 5632, 32)[:-2]
    routes = Products(tokens, width, 128, scope="router/dot_general", source="router.py:9", on_chip=True)
    moves = Experts(bad=False, hidden=hidden, tokens=tokens, scope="moe_block", source="moe_block.py:48")
    again = Experts(bad=False, hidden=2 * hidden, tokens=tokens, scope="moe_block", source="moe_block.py:48")
    back = block_back(tokens, width, 5632, 32)[1:]
    return Stack(tokens, width, layers, (*attends, routes, moves), (again, Beside("all-reduce", 6144, back)), **kept)


def convolutions(batch: int = 64, **more: Any) -> Stack:
    """A network of convolutions that trains on images, each resolution with its products."""
    pixels = batch * 28 * 28
    sizes = ((pixels, 1152, 128), (pixels, 128, 512), (pixels // 4, 2304, 256), (pixels // 4, 256, 1024))
    back = tuple((k, m, n) for m, k, n in sizes) + tuple((m, n, k) for m, k, n in sizes)
    kept = {
        "once": (Gemms(((0, 0, 1024),), "classifier/dot_general", "resnet.py:140"),),
        "rows": 4096,
        "model": "ResNet",
        "source": "resnet.py:77",
        "name": "jit_train_on_images",
        **more,
    }
    return Stack(
        batch * 8,
        2048,
        4,
        (
            Gemms(sizes, "stage/conv_general_dilated", "resnet.py:52", "convolution_fusion"),
            norm(pixels, 128, "stage/batch_norm/mul"),
        ),
        (
            Beside(
                "all-reduce",
                4096,
                (
                    Gemms(back, "stage/conv_general_dilated", "resnet.py:52", "convolution_fusion"),
                    norm(pixels, 128, "stage/batch_norm/add"),
                ),
            ),
        ),
        **kept,
    )


def denoiser(tokens: int = 4096, width: int = 1536, layers: int = 6, **more: Any) -> Stack:
    """One step of a diffusion transformer that makes images."""
    parts = (
        Chain(bad=False, count=4, rows=tokens, width=width, scope="adaln/mul", source="dit.py:33"),
        Gemms(((0, 0, 3 * width),), "attn/qkv/dot_general", "dit.py:41"),
        Scores(bad=False, heads=48, scope="attn/self_attention", source="dit.py:47"),
        Gemms(((0, 0, width), (0, 0, 4 * width), (0, 4 * width, width)), "mlp/dot_general", "dit.py:58"),
    )
    return Stack(tokens, width, layers, parts, **{"model": "DiT", "source": "dit.py:70", "name": "jit_denoise", **more})


def recommender(batch: int = 16_384, rows: int = 40_000, **more: Any) -> Stack:
    """Tables of features whose rows are looked up, exchanged and fed to a small MLP; it trains."""
    tables = Lookup(
        bad=False, rows=rows, table=4_000_000, width=128, times=4, scope="tables/take", source="tables.py:24"
    )
    writes = Lookup(
        bad=False, opcode="scatter", rows=rows, table=4_000_000, width=128, times=2, scope="tables/add",
        source="tables.py:39", base="scatter_custom_fusion",
    )  # fmt: skip
    kept = {"first": (tables,), "once": (writes,), "rows": 4096, "name": "jit_rank_step", "model": "DLRM", **more}
    top = Gemms(((0, 0, 1024), (0, 1024, 512), (0, 512, 256)), "top_mlp/dot_general", "dlrm.py:48")
    under = Gemms(((0, 1024, 0), (1024, batch, 512), (512, batch, 256)), "top_mlp/dot_general", "dlrm.py:48")
    exchanged = Beside("all-reduce", 2048, (under,), scope="dense_gradients/psum", source="dlrm.py:90")
    return Stack(batch, 1024, 3, (top,), (exchanged,), **kept)


def server(batch: int = 64, width: int = 4096, layers: int = 6, cache: int = 32, **more: Any) -> Stack:
    """A step of a server that makes one token for each of its requests: it reads weights and the cache."""
    parts = (
        Gemms(((0, 0, width * 3 // 2),), "self_attn/qkv/dot_general", "llm.py:88"),
        Kernel(
            bad=False, good=0.8, flops=cache * MIB * 4.0, size=cache * MIB, base="paged_attention",
            scope="self_attn/paged_attention/pallas_call", source="paged.py:210",
        ),
        Gemms(((0, 0, width),), "self_attn/out/dot_general", "llm.py:97", "convolution_add_fusion"),
        Gemms(((0, 0, 22_016), (0, 11_008, width)), "ffn/dot_general", "llm.py:110"),
    )  # fmt: skip
    head = Gemms(((0, 0, 32_000),), "unembed/dot_general", "llm.py:131")
    return Stack(batch, width, layers, parts, **{"once": (head,), "model": "LLM", "name": "jit_decode_step", **more})


def prefill(tokens: int = 4096, width: int = 4096, layers: int = 2, **more: Any) -> Stack:
    """A step of a server that reads a prompt."""
    parts = block(tokens, width, 11_008, 32)
    return Stack(tokens, width, layers, parts, **{"model": "LLM", "name": "jit_prefill_step", **more})


def evaluation(tokens: int, layers: int) -> Stack:
    """A forward pass over batches that are not trained on."""
    return Stack(
        tokens, 2048, layers, block(tokens, 2048, 5632, 32), once=(logits(tokens, 32_000, 2048),), model="Evaluated",
        name="jit_eval_step",
    )  # fmt: skip

"""Language models: fine-tunes, long texts, experts, and what optimizers and micro-batches do."""

from __future__ import annotations

from dataclasses import replace

from tests.insight.cases.scenes import chore
from tests.insight.cases.shapes.codebases.codebase import Codebase
from tests.insight.cases.shapes.codebases.models import (
    ATEN,
    EASYDEL,
    GRAIN,
    KERAS,
    LAZY,
    NNX,
    contextual,
    lazily,
    mixed,
    tuned,
)
from tests.insight.cases.shapes.codebases.parts import Losses, Repeated, Streamed
from tests.insight.cases.shapes.dialects.models import Sizes, attention, layer, trained
from tests.insight.cases.shapes.jobs.models import reducing
from tests.insight.cases.shapes.shape import Plant
from tests.insight.simulator.code import V4, V5E, V5P, V6E, V7X
from tests.insight.simulator.parts import Offload, Products
from tests.insight.simulator.play import Chips
from tests.insight.simulator.scene import Scene
from tests.insight.simulator.spelled import Again, Passes, Taken
from tests.insight.simulator.stack import Beside, Uneven
from tests.insight.simulator.tensors import RandomBits

OF_LORA = Sizes(4096, 4096, 11_008, 32)
PACKED, ADAPTED = (tuned(NNX, OF_LORA, 2, 32_000, {how: True}) for how in ("packed", "adapted"))
LORA = Codebase(
    "lora",
    {
        "tunix-v5e": Scene(
            (tuned(NNX, OF_LORA, 2, 32_000, {}, model="Llama3"),), V5E, cores=2, seed=701, steps=8, loop=GRAIN,
        ),
    },
    {
        "frozen-weights-unpacked-to-hbm": (
            "tunix-v5e",
            Plant(
                "memory-bound", ("dequantize", "qarray.py"), ("unfused",),
                work={"each": PACKED.each, "back": PACKED.back},
            ),
        ),
        "adapters-in-products-of-their-own": (
            "tunix-v5e",
            Plant(
                "memory-bound", ("lora_a", "lora_b", "lora.py"), ("unfused",),
                work={"each": ADAPTED.each, "back": ADAPTED.back},
            ),
        ),
        "dropout-of-adapters-by-threefry": (
            "tunix-v5e",
            Plant(
                "vector-work",
                ("threefry2x32", "_bernoulli", "stochastic.py"),
                part=RandomBits(
                    rows=4096, width=4096, count=7, scope="lora/Dropout/_bernoulli/threefry2x32",
                    source="stochastic.py:120",
                ),
                into="each",
            ),
        ),
    },
    (
        ("adapters-in-products-of-their-own", "dropout-of-adapters-by-threefry"),
        ("frozen-weights-unpacked-to-hbm", "dropout-of-adapters-by-threefry"),
    ),
)  # fmt: skip

OF_LLAMA = Sizes(16_384, 2048, 4096, 16)
LLAMA = Codebase(
    "torch-xla",
    {
        "llama-2-hosts-v6e": Scene(
            (lazily(ATEN, OF_LLAMA, 3, 16_384),), V6E, hosts=2, cores=2, seed=702, steps=12, loop=LAZY, marks=False,
        ),
    },
    {
        "keys-expanded-for-all-heads": (
            "llama-2-hosts-v6e",
            Plant(
                "memory-bound",
                ("aten__expand", "modeling_llama.py:188"),
                ("copy", "shuffle", "unfused"),
                Repeated(
                    rows=16_384, width=256, times=8, count=4, base="broadcast", scope="aten__expand",
                    source="modeling_llama.py:188",
                ),
                into="each",
            ),
        ),
        "compiles-for-each-new-length": (
            "llama-2-hosts-v6e",
            Plant(
                "compilation", ("ompil",), every=4, loop={"ahead": 0},
                chores=chore("PjRtComputationClient::Compile", 40, every=4, offset=1, before=True),
            ),
        ),
        "loss-item-in-each-step": (
            "llama-2-hosts-v6e",
            Plant(
                "host", ("log_metrics",), ("idle",), loop={"ahead": 0},
                chores=chore("$trainer_pt_utils.py:1041 log_metrics", 7),
            ),
        ),
    },
    (
        ("compiles-for-each-new-length", "keys-expanded-for-all-heads"),
        ("loss-item-in-each-step", "keys-expanded-for-all-heads"),
    ),
)  # fmt: skip

OF_GEMMA = Sizes(4096, 2048, 16_384, 8)
GEMMA = Codebase(
    "keras-lm",
    {
        "gemma-v5p": Scene(
            (reducing(KERAS, OF_GEMMA, 3, 32_768, model="gemma_causal_lm", numbered="decoder_block_{}"),),
            V5P, seed=703, steps=8, loop=replace(GRAIN, fetch="$jax_trainer.py:401 _get_iterator"),
        ),
    },
    {
        "losses-through-f32-logits": (
            "gemma-v5p",
            Plant(
                "unfused",
                ("sparse_categorical_crossentropy", "nn.py"),
                ("memory-bound", "precision"),
                Losses(tokens=4096, outputs=256_000, scope="sparse_categorical_crossentropy", source="nn.py:640"),
            ),
        ),
        "layers-computed-again": (
            "gemma-v5p",
            Plant(
                "recomputation", ("remat",),
                part=Again((*layer(KERAS, OF_GEMMA)[1:4], *layer(KERAS, OF_GEMMA)[4:]), scope="rematted_computation",
                           source="remat.py:140"),
                into="back",
            ),
        ),
    },
    (("losses-through-f32-logits", "layers-computed-again"),),
)  # fmt: skip

OF_LONG = Sizes(8192, 4096, 8192, 32, 4096)
LONG = Codebase(
    "long-context",
    {
        "maxtext-v5p": Scene(
            (contextual(NNX, OF_LONG, 3, 4, model="Transformer/decoder", scanned=True),), V5P, seed=704, steps=8,
            loop=GRAIN, marks=False,
        ),
    },
    {
        "keys-gathered-ahead-of-projections": (
            "maxtext-v5p",
            Plant(
                "collective", ("all-gather", "context_parallel"),
                part=Beside(
                    "all-gather", 8192, bad=True, scope="context_parallel/kv_all_gather", source="attention_op.py:640"
                ),
                instead=(),
                into="each",
            ),
        ),
        "residuals-on-the-host": (
            "maxtext-v5p",
            Plant(
                "host-offload", ("copy-start", "copy-done", "offload_dst"), ("copy-wait",),
                Offload(rows=4096, width=4096, scope="checkpoint/offload_dst/device_put", source="decoders.py:290"),
                into="each",
            ),
        ),
        "later-tokens-attend-to-more": (
            "maxtext-v5p",
            Plant(
                "imbalance",
                ("chunked_causal", "attention_op.py:702", "all-gather", "reduce-scatter", "host-0:3", "core 3"),
                ("straggler",),
                Uneven(
                    (0.4, 0.8, 1.2, 1.6),
                    replace(  # type: ignore[type-var]
                        attention(NNX, OF_LONG, 4), counted=False, base="chunked_causal",
                        scope="chunked_causal/pallas_call", source="attention_op.py:702",
                    ),
                ),
                into="each",
            ),
        ),
    },
    (("residuals-on-the-host", "keys-gathered-ahead-of-projections"),),
    suspects=(
        (
            "losses-read-each-long-step",
            Scene(
                (contextual(NNX, OF_LONG, 2, 2, model="Transformer/decoder"),), V5E, cores=2, seed=709, steps=6,
                loop=replace(GRAIN, ahead=0),
            ),
        ),
        (
            "keys-gathered-beside-projections",
            Scene(
                (contextual(EASYDEL, OF_LONG, 2, 4, model="Qwen3ForCausalLM"),), V6E, seed=705, steps=8, loop=GRAIN,
                chips=Chips(jitter=0.01),
            ),
        ),
    ),
)  # fmt: skip

OF_MIXTURE = Sizes(4096, 4096, 4096, 32)
MIXTURE = Codebase(
    "experts",
    {
        "easydel-2-hosts-v5p": Scene(
            (mixed(EASYDEL, OF_MIXTURE, 16_384, 2, model="Qwen3MoeForCausalLM", numbered="layers_{}"),), V5P, hosts=2,
            cores=2, seed=706, steps=9, loop=GRAIN,
        ),
    },
    {
        "tokens-exchanged-ahead-of-experts": (
            "easydel-2-hosts-v5p",
            Plant(
                "collective", ("all-to-all", "all_to_all"),
                part=Beside(
                    "all-to-all", 32_768, bad=True, scope="moe_block/dispatch/all_to_all", source="moe.py:655"
                ),
                instead=(),
                into="each",
            ),
        ),
        "gates-in-f32-at-highest": (
            "easydel-2-hosts-v5p",
            Plant(
                "precision",
                ("gate_logits", "moe.py:402"),
                part=Products(
                    4096, 4096, 1024, kind="f32", precision="highest", count=2, source="moe.py:402",
                    scope="moe_block/gate_logits/dot_general", base="convolution_fusion",
                ),
                into="each",
            ),
        ),
        "groups-of-72-columns": (
            "easydel-2-hosts-v5p",
            Plant(
                "padding",
                ("shared_gate", "moe.py:520"),
                part=Products(
                    32_768, 1024, 72, count=100, on_chip=True, scope="moe_block/shared_gate/dot_general",
                    source="moe.py:520",
                ),
                into="each",
            ),
        ),
        "tokens-taken-row-by-row": (
            "easydel-2-hosts-v5p",
            Plant(
                "latency-bound",
                ("sort_activations", "moe.py:610"),
                part=Taken(
                    rows=32_768, table=32_768, width=512, ns_a_row=70, scope="moe_block/sort_activations/take",
                    source="moe.py:610",
                ),
                into="each",
            ),
        ),
    },
    (
        ("tokens-exchanged-ahead-of-experts", "gates-in-f32-at-highest"),
        ("tokens-taken-row-by-row", "tokens-exchanged-ahead-of-experts"),
    ),
)  # fmt: skip

OF_MUON = Sizes(4096, 2048, 8192, 16)
MUON = Codebase(
    "optimizer",
    {
        "muon-v4": Scene(
            (trained(NNX, OF_MUON, 3, 32_768, model="GPT", name="jit_train_step", numbered="blocks_{}"),), V4, seed=707,
            steps=8, loop=GRAIN,
        ),
    },
    {
        "newton-schulz-in-f32": (
            "muon-v4",
            Plant(
                "precision",
                ("newton_schulz", "_muon.py"),
                part=Products(
                    2048, 2048, 2048, kind="f32", precision="highest", count=15, scope="muon/newton_schulz/dot_general",
                    source="_muon.py:98", base="multiply_add_fusion",
                ),
            ),
        ),
        "moments-read-from-the-host": (
            "muon-v4",
            Plant(
                "host-offload", ("copy-start", "copy-done", "moments", "train_utils.py"), ("copy-wait",),
                Streamed(rows=16_384, width=2048, count=2, scope="moments/device_put"),
            ),
        ),
        "averages-in-passes": (
            "muon-v4",
            Plant(
                "unfused", ("apply_ema", "ema.py"), ("memory-bound",),
                Passes(rows=49_152, width=2048, scope="apply_ema/mul", source="ema.py:47",
                       bases=("multiply_fusion", "fusion", "add_convert_fusion")),
            ),
        ),
    },
    (("moments-read-from-the-host", "newton-schulz-in-f32"), ("moments-read-from-the-host", "averages-in-passes")),
)  # fmt: skip

OF_MICRO = Sizes(4096, 2048, 6144, 16)
WHOLE = trained(
    EASYDEL, OF_MICRO, 2, 16_384, model="Qwen3ForCausalLM", micro=2, over="minibatch/while", name="jit_train",
)  # fmt: skip
ROWS = trained(
    EASYDEL, Sizes(256, 2048, 6144, 16, 512), 2, 16_384, model="Qwen3ForCausalLM", micro=32, over="minibatch/while",
    name="jit_train",
)  # fmt: skip
MICRO = Codebase(
    "microbatches",
    {"easydel-v7x": Scene((replace(WHOLE, back=WHOLE.back[0].parts),), V7X, cores=1, seed=708, steps=8, loop=GRAIN)},  # type: ignore[attr-defined]
    {
        "of-256-tokens": (
            "easydel-v7x",
            Plant(
                "memory-bound", ("proj", "lm_head", "logits", "minibatch", "modeling_qwen3.py"), ("padding",),
                work={"tokens": 256, "each": ROWS.each, "back": ROWS.back[0].parts, "micro": 32},  # type: ignore[attr-defined]
            ),
        ),
        "gradients-added-in-passes": (
            "easydel-v7x",
            Plant(
                "unfused", ("tree_map", "training_utils.py"), ("memory-bound",),
                Passes(rows=32_768, width=2048, scope="tree_map/add", source="training_utils.py:166",
                       bases=("convert_fusion", "multiply_fusion", "add_fusion")),
                into="turn",
            ),
        ),
    },
    (),
)  # fmt: skip

CODEBASES = (LORA, LLAMA, GEMMA, LONG, MIXTURE, MUON, MICRO)

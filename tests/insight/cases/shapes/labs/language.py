"""Language models in training: sharded weights, latent attention, linear recurrences, exchanged heads, distillation."""

from __future__ import annotations

from tests.insight.cases.scenes import chore
from tests.insight.cases.shapes.codebases.parts import Losses
from tests.insight.cases.shapes.dialects.models import Sizes
from tests.insight.cases.shapes.labs.lab import Lab
from tests.insight.cases.shapes.labs.models import EASYLM, distilled, exchanging, fully_sharded, griffin, latent
from tests.insight.cases.shapes.labs.parts import Associative
from tests.insight.cases.shapes.rhythms import PAUSES
from tests.insight.cases.shapes.shape import Plant, slow_kernel
from tests.insight.simulator.code import V4, V5P, V6E
from tests.insight.simulator.parts import Activations, Barrier, Kernel, Prefetch, Products, TinyLoop
from tests.insight.simulator.play import MS, Chips, Loop
from tests.insight.simulator.scene import Scene
from tests.insight.simulator.spelled import Again, Casts, Einsum
from tests.insight.simulator.stack import Gemms, Uneven

NOISY = Chips(jitter=0.008)

OF_LLAMA = Sizes(4096, 4096, 11_008, 32)
OF_LATE = fully_sharded(EASYLM, OF_LLAMA, 2, 8, late=True)
LLAMA = Lab(
    "easylm",
    {
        "llama-2-hosts-v4": Scene(
            (fully_sharded(EASYLM, OF_LLAMA, 2, 8, model="FlaxLLaMAForCausalLM", name="jit_train_step"),), V4, hosts=2,
            cores=4, seed=801, steps=9, loop=Loop(fetch="$data.py:188 __iter__", call=""), chips=NOISY,
        ),
    },
    {
        "weights-awaited-ahead-of-queries": (
            "llama-2-hosts-v4",
            Plant(
                "collective", ("all-gather", "with_sharding_constraint", "jax_utils.py"),
                work={"each": OF_LATE.each, "back": OF_LATE.back},
            ),
        ),
        "feed-forward-computed-again": (
            "llama-2-hosts-v4",
            Plant(
                "recomputation", ("remat",),
                part=Again(
                    (Gemms(((0, 0, 11_008),) * 3, "feed_forward/w1/dot_general", "llama_model.py:640", "fusion"),),
                    scope="transformer/h/rematted_computation", source="llama_model.py:702",
                ),
                into="back",
            ),
        ),
        "scores-through-hbm": (
            "llama-2-hosts-v4",
            Plant(
                "memory-bound", ("dot_product_attention_weights", "llama_model.py:575"), ("unfused", "precision"),
                Einsum(
                    heads=32, length=2048, kernel="flash_attention_tpu", source="llama_model.py:575",
                    scope="transformer/h/attention/dot_product_attention_weights",
                ),
                into="each",
            ),
        ),
    },
    (("feed-forward-computed-again", "scores-through-hbm"),),
)  # fmt: skip

OF_LATENT = Sizes(4096, 5120, 3072, 40)
MIXTURE = Lab(
    "deepseek",
    {
        "maxtext-4-hosts-v5p": Scene(
            (latent(OF_LATENT, 12_288, 3, model="Transformer/decoder", scanned=True),), V5P, hosts=4, cores=2, seed=802,
            steps=12, marks=False,
            loop=Loop(fetch="$multihost_dataloading.py:130 get_next_batch_sharded", call="", ahead=0,
            launch_ps=0.1 * MS),
        ),
    },
    {
        "two-experts-have-most-tokens": (
            "maxtext-4-hosts-v5p",
            Plant(
                "imbalance",
                ("MoeBlock_0/wo", "moe.py:540", "host-1", "host-3", "all-to-all", "all-reduce"), ("straggler",),
                Uneven(
                    (0.8, 0.7, 1.8, 0.7, 0.6, 0.9, 1.7, 0.8),
                    Kernel(
                        bad=False, counted=False, good=0.7, flops=2.5e12, base="tgmm", source="moe.py:540",
                        scope="moe_layers/MoeBlock_0/wo/pallas_call",
                    ),
                ),
                into="each",
            ),
        ),
        "router-in-f32-at-highest": (
            "maxtext-4-hosts-v5p",
            Plant(
                "precision", ("GateLogit_0", "linears.py:211"),
                part=Products(
                    4096, 5120, 512, kind="f32", precision="highest", count=6, base="convolution_fusion",
                    scope="moe_layers/MoeBlock_0/GateLogit_0/dot_general", source="linears.py:211",
                ),
                into="each",
            ),
        ),
        "host-1-collects-garbage-every-3rd-step": (
            "maxtext-4-hosts-v5p",
            Plant(
                "straggler", ("host-1",), PAUSES, every=3,
                chores=chore("$gc collect", 45, every=3, offset=1, hosts=(1,)),
            ),
        ),
    },
    (("two-experts-have-most-tokens", "router-in-f32-at-highest"),),
)  # fmt: skip

RECURRENT = Lab(
    "griffin",
    {
        "recurrentgemma-v6e": Scene(
            (griffin(16_384, 2560, 3, numbered="blocks.{}"),), V6E, seed=803, steps=8, chips=NOISY,
            loop=Loop(fetch="$grain_pool.py:290 __next__", call="", batch_ps=2 * MS),
        ),
    },
    {
        "recurrence-turn-by-turn": (
            "recurrentgemma-v6e",
            Plant(
                "tiny-loop", ("linear_scan", "scan.py:210"),
                part=TinyLoop(
                    trips=2048, width=2560, us=1.3, scope="recurrent_block/rg_lru/linear_scan/while",
                    source="scan.py:210"
                ),
                into="each",
            ),
        ),
        "recurrence-level-by-level": (
            "recurrentgemma-v6e",
            Plant(
                "unfused", ("associative_scan", "scan.py:77"), ("memory-bound", "precision"),
                Associative(rows=16_384, width=2560), into="each",
            ),
        ),
        "conv1d-kernel-at-7-percent": (
            "recurrentgemma-v6e",
            slow_kernel("temporal_conv1d", 0.07, "conv1d_pallas.py:55", 224, scope="recurrent_block/conv_1d"),
        ),
    },
    (("conv1d-kernel-at-7-percent", "recurrence-level-by-level"),),
)  # fmt: skip

OF_HEADS = Sizes(8192, 4096, 16_384, 32, 4096)
LATE_HEADS = exchanging(OF_HEADS, 2, late=True)
HEADS = Lab(
    "ulysses",
    {
        "gpt-j-2-hosts-v6e": Scene(
            (exchanging(OF_HEADS, 2, numbered="layer_{}", model="CausalTransformer"),), V6E, hosts=2, seed=804, steps=9,
            loop=Loop(fetch="$tfrecord_loader.py:61 get_samples", call="", annotate=False), marks=False,
        ),
    },
    {
        "heads-exchanged-at-once": (
            "gpt-j-2-hosts-v6e",
            Plant("collective", ("all-to-all", "all_to_all", "ulysses.py"), work={"each": LATE_HEADS.each}),
        ),
        "rotary-in-f32": (
            "gpt-j-2-hosts-v6e",
            Plant(
                "memory-bound", ("apply_rotary_pos_emb", "layers.py:71"), ("precision", "unfused"),
                Activations(
                    rows=8192, width=4096, count=11, base="multiply_subtract_fusion", source="layers.py:71",
                    scope="causal_transformer_shard/~/apply_rotary_pos_emb/mul",
                ),
                into="each",
            ),
        ),
        "barrier-in-each-layer": (
            "gpt-j-2-hosts-v6e", Plant("barrier", ("barrier",), part=Barrier(us=2500), into="each"),
        ),
    },
    (("heads-exchanged-at-once", "rotary-in-f32"),),
)  # fmt: skip

DISTILLED = Lab(
    "distillation",
    {
        "gemma-8-cores-v5p": Scene(
            (distilled(Sizes(4096, 4608, 18_432, 32), Sizes(4096, 2304, 9216, 8), 3, 32_768),), V5P, cores=8, seed=805,
            steps=8, loop=Loop(fetch="$distill_input.py:77 __next__", call="", put_ps=0.4 * MS),
            chips=NOISY,
        ),
    },
    {
        "divergence-through-f32": (
            "gemma-8-cores-v5p",
            Plant(
                "unfused", ("kl_divergence", "losses.py:88"), ("memory-bound", "precision"),
                Losses(tokens=4096, outputs=256_128, scope="kl_divergence", source="losses.py:88"),
            ),
        ),
        "teacher-cast-in-each-step": (
            "gemma-8-cores-v5p",
            Plant(
                "memory-bound", ("teacher/params", "tree_util.py:361"), ("precision", "unfused"),
                Casts(rows=262_144, width=4608, scope="teacher/params/convert_element_type", source="tree_util.py:361"),
                into="first",
            ),
        ),
        "adapters-fetched-late": (
            "gemma-8-cores-v5p",
            Plant(
                "copy-wait", ("copy-done", "copy-start"),
                part=Prefetch(
                    rows=8192, width=2304, count=14, slowness=4, scope="student/layer/prefetch", source="modules.py:310"
                ),
                into="each",
            ),
        ),
    },
    (("divergence-through-f32", "teacher-cast-in-each-step"),),
)  # fmt: skip

LABS = (LLAMA, MIXTURE, RECURRENT, HEADS, DISTILLED)

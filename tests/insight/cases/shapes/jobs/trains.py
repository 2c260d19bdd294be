"""Language models that train: scanned, unrolled, sharded, in pipelines, with experts, in micro-batches."""

from __future__ import annotations

from dataclasses import replace

from tests.insight.cases.scenes import chore
from tests.insight.cases.shapes.dialects.models import LARGE, Sizes, gathered, layer, trained
from tests.insight.cases.shapes.jobs.job import Job
from tests.insight.cases.shapes.jobs.models import LEVANTER, PRAXIS, T5X, reducing, routed, staged, tensored
from tests.insight.cases.shapes.shape import Plant
from tests.insight.simulator.code import V4, V5P, V6E
from tests.insight.simulator.parts import Activations, Offload
from tests.insight.simulator.play import MS, Chips, Loop
from tests.insight.simulator.scene import Memory, Scene
from tests.insight.simulator.schedules import Dispatched
from tests.insight.simulator.spelled import Again, Einsum, Passes, Turned
from tests.insight.simulator.stack import Beside
from tests.insight.simulator.tensors import RandomBits, RunningSum, Sort, Summed

LOOP = Loop(fetch="$multihost_dataloading.py:112 get_next_batch_sharded", call="")
TF_DATA = Loop(fetch="$dataset_iterators.py:288 __next__", call="", batch_ps=0.9 * MS)

OF_SCANNED = Sizes(4096, 4096, 14_336, 32)
SCANNED = Job(
    "scanned-job",
    {
        "llama-v5p": Scene(
            (trained(LARGE, OF_SCANNED, 3, 128_256, scanned=True, model="Transformer/decoder", name="jit_train_step"),),
            V5P, seed=601, steps=8, loop=LOOP,
        ),
    },
    {
        "softmax-of-cross-attention-in-hbm": (
            "llama-v5p",
            Plant(
                "memory-bound",
                ("AttentionOp_0", "attention_op.py"),
                ("unfused",),
                Einsum(heads=32, length=4096, scope="AttentionOp_0", source="attention_op.py:1033"),
                into="each",
            ),
        ),
        "cross-entropy-in-passes": (
            "llama-v5p",
            Plant(
                "unfused",
                ("cross_entropy_with_logits", "max_utils.py"),
                ("memory-bound",),
                Passes(
                    rows=4096, width=128_256, scope="cross_entropy_with_logits/sub", source="max_utils.py:611",
                    bases=("subtract_exponential_fusion", "log_subtract_fusion", "multiply_reduce_fusion", "fusion"),
                ),
            ),
        ),
    },
    (("softmax-of-cross-attention-in-hbm", "cross-entropy-in-passes"),),
    suspects=(
        (
            "norms-and-gates-recomputed-in-full-memory",
            Scene(
                (
                    replace(
                        trained(LARGE, OF_SCANNED, 3, 32_768, scanned=True, model="Transformer/decoder"),
                        back=(
                            Again(
                                (
                                    Activations(
                                        bad=False, rows=4096, width=14_336, count=8, base="multiply_fusion",
                                        scope="mlp/silu", source="linears.py:380",
                                    ),
                                )
                            ),
                            *trained(LARGE, OF_SCANNED, 3, 32_768).back,
                        ),
                    ),
                ),
                V5P, seed=602, steps=8, loop=LOOP, memory=Memory(0.80, 0.17),
            ),
        ),
    ),
)  # fmt: skip

OF_UNROLLED = Sizes(4096, 2048, 8192, 16)
UNROLLED = Job(
    "unrolled-job",
    {
        "levanter-2-hosts-v4": Scene(
            (
                reducing(
                    LEVANTER, OF_UNROLLED, 4, 32_000, numbered="Stacked/{}", model="LlamaLMHeadModel",
                    name="jit__train_step",
                ),
            ),
            V4, hosts=2, seed=603, steps=12, marks=False, loop=Loop(fetch="$loader.py:140 __next__", call=""),
        ),
    },
    {
        "loss-read-and-logged-each-step": (
            "levanter-2-hosts-v4",
            Plant(
                "host", ("log_step_info",), ("idle",), loop={"ahead": 0, "reading": "$array.py:330 item"},
                chores=chore("$callbacks.py:61 log_step_info", 9),
            ),
        ),
        "rotary-halves-turned": (
            "levanter-2-hosts-v4",
            Plant(
                "copy",
                ("rotary_pos_emb", "rotary.py"),
                ("shuffle",),
                Turned(count=4, rows=8192, scope="rotary_pos_emb/transpose", source="rotary.py:44"),
                into="each",
            ),
        ),
    },
    (("loss-read-and-logged-each-step", "rotary-halves-turned"),),
    suspects=(
        (
            "sums-in-f32",
            Scene(
                (
                    replace(
                        reducing(LEVANTER, OF_UNROLLED, 3, 32_000, numbered="Stacked/{}", model="LlamaLMHeadModel"),
                        turn=(Summed(((0, 8192), (8192, 0)), "precise_head/dot_general", "linear.py:77"),),
                    ),
                ),
                V4, seed=604, steps=10, loop=LOOP,
            ),
        ),
        (
            "logged-on-another-thread",
            Scene(
                (reducing(LEVANTER, OF_UNROLLED, 3, 32_000, numbered="Stacked/{}", model="LlamaLMHeadModel"),),
                V4, hosts=2, cores=2, seed=605, steps=12, marks=False,
                loop=replace(
                    LOOP, ahead=2, chores=chore("$callbacks.py:61 log_step_info", 30, thread="AsyncLogger/6601"),
                ),
            ),
        ),
    ),
)  # fmt: skip

OF_FSDP = Sizes(8192, 4096, 14_336, 32)
FSDP = Job(
    "fsdp-job",
    {
        "maxtext-2-hosts-v6e": Scene(
            (
                gathered(
                    LARGE, OF_FSDP, 3, 8, model="Transformer/decoder", scanned=True, name="jit_train_step",
                ),
            ),
            V6E, hosts=2, seed=606, steps=8, loop=LOOP, memory=Memory(0.62, 0.2),
        ),
    },
    {
        "activations-gathered-in-each-layer": (
            "maxtext-2-hosts-v6e",
            Plant(
                "collective",
                ("all-gather", "with_logical_constraint"),
                part=Beside(
                    "all-gather", 4096, bad=True, scope="closed_call/checkpoint/mlp/with_logical_constraint/all_gather",
                    source="sharding.py:41",
                ),
                instead=(),
                into="each",
            ),
        ),
        "moments-kept-on-the-host": (
            "maxtext-2-hosts-v6e",
            Plant(
                "host-offload",
                ("optimizer_memory_host_offload", "copy-done", "copy-start", "maxtext_utils.py"),
                ("copy-wait",),
                Offload(
                    rows=32_768, width=4096, scope="optimizer_memory_host_offload/device_put",
                    source="maxtext_utils.py:212",
                ),
            ),
        ),
    },
    (("moments-kept-on-the-host", "activations-gathered-in-each-layer"),),
)  # fmt: skip

LATE = tensored(8192, 6144, 16_384, 2, 4, late=True)
TENSOR = Job(
    "tensor-job",
    {
        "praxis-v5p": Scene(
            (tensored(8192, 6144, 16_384, 2, 4, model="PaxModel/lm/transformer"),), V5P, seed=607, steps=8, marks=False,
            loop=Loop(fetch="$seqio_input.py:520 get_next", call=""),
        ),
    },
    {
        "products-wait-for-whole-activations": (
            "praxis-v5p",
            Plant(
                "collective", ("all-gather", "reduce-scatter"), work={"each": LATE.each, "back": LATE.back},
            ),
        ),
        "mlp-computed-twice": (
            "praxis-v5p",
            Plant(
                "recomputation", ("remat",), part=Again(layer(PRAXIS, Sizes(8192, 6144, 8192, 12))[4:]), into="turn",
            ),
        ),
    },
    (("products-wait-for-whole-activations", "mlp-computed-twice"),),
)  # fmt: skip

STAGES = ("ppermute", "collective-permute", "pipeline", "stage")
PIPELINE = Job(
    "pipeline-job",
    {
        "1f1b-2-hosts-v5p": Scene(
            (staged(12, 2048, 4096, 14_336),), V5P, hosts=2, cores=2, seed=608, steps=8, loop=TF_DATA, marks=False,
        ),
    },
    {
        "bubbles-of-4-stages": ("1f1b-2-hosts-v5p", Plant("pipeline", STAGES, work={"bubbles": True})),
        "gradients-clipped-in-passes": (
            "1f1b-2-hosts-v5p",
            Plant(
                "unfused",
                ("clip_by_global_norm", "clipping.py"),
                ("memory-bound",),
                Passes(
                    rows=98_304, width=4096, scope="clip_by_global_norm/mul", source="clipping.py:91",
                    bases=("multiply_reduce_fusion", "select_multiply_fusion", "divide_fusion"),
                ),
            ),
        ),
    },
    (("bubbles-of-4-stages", "gradients-clipped-in-passes"),),
    suspects=(
        (
            "short-flush-of-3-stages",
            Scene(
                (staged(84, 2048, 4096, 14_336, bubbles=True),), V5P, cores=3, seed=609, steps=4, loop=TF_DATA,
            ),
        ),
    ),
)  # fmt: skip

MIXTURE = Job(
    "moe-job",
    {
        "deepseek-2-hosts-v6e": Scene(
            (routed(4096, 4096, 8192, 3, numbered="decoder/moe_layers_{}"),), V6E, hosts=2, seed=610, steps=9, loop=LOOP
        ),
    },
    {
        "experts-of-two-cores-busier": (
            "deepseek-2-hosts-v6e",
            Plant(
                "imbalance",
                ("DeepSeekMoeBlock_1", "all-to-all", "all_to_all", "grouped_matmul", "deepseek.py"),
                ("straggler",),
                Dispatched(
                    (0.8, 0.9, 1.7, 0.8, 0.9, 0.8, 1.4, 0.7), hidden=16_384, scope="DeepSeekMoeBlock_1",
                    source="deepseek.py:133",
                ),
                into="each",
            ),
        ),
        "tokens-sorted-by-expert": (
            "deepseek-2-hosts-v6e",
            Plant(
                "latency-bound",
                ("argsort", "moe.py", "sort"),
                part=Sort(length=262_144, times=2, scope="permute/argsort/sort", source="moe.py:402"),
                into="each",
            ),
        ),
        "places-by-running-sums": (
            "deepseek-2-hosts-v6e",
            Plant(
                "vector-work",
                ("cumsum", "moe.py", "reduce-window"),
                part=RunningSum(rows=64, length=8192, scope="position_in_expert/cumsum", source="moe.py:655"),
                into="each",
            ),
        ),
    },
    (("experts-of-two-cores-busier", "tokens-sorted-by-expert"),),
    suspects=(
        (
            "one-percent-uneven",
            Scene(
                (
                    replace(
                        routed(4096, 4096, 8192, 3),
                        once=(
                            Dispatched(
                                (1.01, 0.99, 1.0, 1.0), hidden=16_384, scope="DeepSeekMoeBlock_0",
                                source="deepseek.py:133",
                            ),
                        ),
                    ),
                ),
                V6E, seed=611, steps=9, loop=LOOP, chips=Chips(jitter=0.008),
            ),
        ),
    ),
)  # fmt: skip

OF_MICRO = Sizes(2048, 2048, 8192, 16)
MICRO = trained(T5X, OF_MICRO, 2, 32_128, micro=5, over="accum_grads/while", name="jit_train_with_lr", rows=4096)
ACCUMULATION = Job(
    "accumulation-job",
    {
        "t5x-v4": Scene((MICRO,), V4, seed=612, steps=7, loop=TF_DATA),
    },
    {
        "gradients-reduced-in-each-microbatch": (
            "t5x-v4",
            Plant(
                "collective",
                ("all-reduce", "accum_grads_reduce"),
                part=Beside(
                    "all-reduce", 32_768, bad=True, scope="accum_grads_reduce/psum", source="trainer.py:588",
                ),
                instead=(),
                into="turn",
            ),
        ),
        "dropout-by-threefry": (
            "t5x-v4",
            Plant(
                "vector-work",
                ("threefry2x32", "_bernoulli", "Dropout_0", "stochastic.py"),
                part=RandomBits(rows=4096, width=8192),
                into="each",
            ),
        ),
    },
    (("gradients-reduced-in-each-microbatch", "dropout-by-threefry"),),
    suspects=(
        (
            "microbatches-that-fill-the-unit",
            Scene(
                (
                    trained(
                        T5X, Sizes(2048, 4096, 10_240, 32), 1, 32_128, micro=12, over="accum_grads/while", rows=8192,
                        name="jit_train_with_lr",
                    ),
                ),
                V4, cores=1, seed=613, steps=5, loop=TF_DATA,
            ),
        ),
    ),
)  # fmt: skip

JOBS = (SCANNED, UNROLLED, FSDP, TENSOR, PIPELINE, MIXTURE, ACCUMULATION)

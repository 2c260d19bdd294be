"""Programs that train: decoders in loops and unrolled, sharded, in micro-batches, in pipelines, with experts."""

from __future__ import annotations

from typing import Any

from tests.insight.cases.scenes import chore
from tests.insight.cases.shapes.models import decoder, experts, sharded
from tests.insight.cases.shapes.shape import Plant, Shape, harmless, slow_kernel, throttled, transposed
from tests.insight.simulator.code import V4, V5E, V5P, V6E
from tests.insight.simulator.parts import Chain, Experts, Lookup, OnSome, Products
from tests.insight.simulator.play import MS, Loop
from tests.insight.simulator.scene import Scene
from tests.insight.simulator.stack import Beside, Cast, Scores
from tests.insight.simulator.workloads import Pipeline

READS = "np.asarray(jax.Array)"
LOOP = Loop(call="")

SCANNED = Shape(
    "scanned",
    {
        "v6e": Scene((decoder(8192, layers=6, scanned=True),), V6E, seed=201, steps=10, loop=LOOP),
        "v4": Scene((decoder(scanned=True),), V4, hosts=2, cores=4, seed=202, steps=9, loop=LOOP, marks=False),
    },
    {
        "scores-in-hbm": (
            "v6e",
            Plant(
                "memory-bound",
                ("cross_attn", "cross_attention.py"),
                ("unfused",),
                Scores(scope="cross_attn/attend", source="cross_attention.py:18"),
                into="each",
            ),
        ),
        "loss-in-passes": (
            "v6e",
            Plant(
                "unfused",
                ("log_softmax", "losses.py"),
                ("memory-bound",),
                Chain(rows=8192, width=32_000, kind="f32", scope="loss/log_softmax", source="losses.py:30"),
                into="turn",
            ),
        ),
        "embeddings-row-by-row": (
            "v4",
            Plant(
                "latency-bound",
                ("embed/take", "embed.py"),
                part=Lookup(rows=120_000, scope="embed/take", source="embed.py:15"),
                into="first",
            ),
        ),
        "mixing-in-f32": (
            "v4",
            Plant(
                "precision",
                ("mixing",),
                part=Products(
                    2048, 2048, 2048, kind="f32", precision="highest", scope="mixing/dot_general", source="mixing.py:40"
                ),
                into="each",
            ),
        ),
    },
    (("loss-in-passes", "scores-in-hbm"), ("embeddings-row-by-row", "mixing-in-f32")),
)

UNROLLED = Shape(
    "unrolled",
    {
        "v5e": Scene((decoder(layers=3),), V5E, seed=205, loop=LOOP),
        "v5p": Scene((decoder(8192, 4096, 11_008, layers=3),), V5P, seed=206, steps=10, loop=LOOP, marks=False),
    },
    {
        "heads-transposed": (
            "v5e",
            transposed("attn/swapaxes", "attention.py:66", 5, 16_384),
        ),
        "norm-kernel-at-12-percent": (
            "v5e",
            slow_kernel("norm_kernel", 0.12, "norm_kernel.py:55", 96),
        ),
        "sums-on-one-core": (
            "v5p",
            Plant(
                "straggler",
                ("ema", "host-0:3", "core 3", "TPU:3"),
                ("imbalance",),
                OnSome((0, 0, 0, 1), shared=False, m=16_384, n=12_288, scope="ema/dot_general", source="ema.py:12"),
            ),
        ),
        "histograms-written-each-step": (
            "v5p",
            Plant(
                "host", ("write_histograms",), ("idle",), loop={"ahead": 0},
                chores=chore("$summaries.py:88 write_histograms", 14, reads=READS),
            ),
        ),
    },
    (("heads-transposed", "norm-kernel-at-12-percent"), ("histograms-written-each-step", "sums-on-one-core")),
)  # fmt: skip

GATHERED, SCATTERED = sharded(late="all-gather"), sharded(late="reduce-scatter")
SMALLER: dict[str, Any] = {"tokens": 4096, "width": 2048, "hidden": 5632, "layers": 4}
FSDP = Shape(
    "fsdp",
    {
        "v5p": Scene((sharded(),), V5P, cores=8, seed=211, steps=8, loop=LOOP),
        "2-hosts-v5e": Scene((sharded(**SMALLER, scanned=True),), V5E, hosts=2, seed=212, steps=9, loop=LOOP),
    },
    {
        "weights-gathered-late": (
            "v5p",
            Plant("collective", ("all-gather", "all_gather"), work={"each": GATHERED.each, "back": GATHERED.back}),
        ),
        "gradients-scattered-late": (
            "v5p",
            Plant("collective", ("reduce-scatter", "psum_scatter"), work={"back": SCATTERED.back}),
        ),
        "embeddings-row-by-row": (
            "v5p",
            Plant(
                "latency-bound",
                ("embed/take", "embed.py"),
                part=Lookup(rows=110_000, scope="embed/take", source="embed.py:15"),
                into="first",
            ),
        ),
        "chip-at-85-percent": ("2-hosts-v5e", Plant("slow-core", ("host-1",), **throttled(6, 1.18))),
        "loader-of-both-hosts": ("2-hosts-v5e", Plant("input", ("input",), loop={"batch_ps": 120 * MS})),
        "gates-in-f32": (
            "2-hosts-v5e",
            Plant(
                "precision",
                ("gates",),
                part=Products(
                    2048, 2048, 2048, kind="f32", precision="highest", scope="gates/dot_general", source="gates.py:7"
                ),
                into="each",
            ),
        ),
    },
    (("weights-gathered-late", "embeddings-row-by-row"), ("chip-at-85-percent", "gates-in-f32")),
)

ACCUMULATES: dict[str, Any] = {
    "exchange": "",
    "once": (Beside("all-reduce", 24_576, scope="accumulated/psum"),),
    "name": "jit_micro",
}
FEW = decoder(256, layers=2, heads=4, micro=8, **ACCUMULATES)
ACCUMULATION = Shape(
    "accumulation",
    {
        "v5e": Scene((decoder(2048, layers=3, micro=6, **ACCUMULATES),), V5E, seed=221, steps=8, loop=LOOP),
        "v6e": Scene(
            (decoder(2048, layers=2, **ACCUMULATES),), V6E, cores=1, seed=222, steps=9, loop=LOOP, marks=False
        ),
    },
    {
        "gradients-reduced-each-time": (
            "v5e",
            Plant(
                "collective",
                ("all-reduce", "reduce_now"),
                part=Beside("all-reduce", 24_576, bad=True, scope="microbatch/reduce_now", source="accumulate.py:40"),
                instead=(),
                into="turn",
            ),
        ),
        "weights-cast-each-time": (
            "v5e",
            Plant("memory-bound", ("params/convert", "precision.py"), ("precision",), Cast(count=2), into="turn"),
        ),
        "few-rows-a-time": (
            "v6e",
            Plant(
                "memory-bound",
                ("mlp", "attn", "lm_head", "microbatches"),
                ("padding",),
                work={"tokens": FEW.tokens, "each": FEW.each, "back": FEW.back, "turn": FEW.turn, "micro": FEW.micro},
            ),
        ),
        "clipped-in-passes": (
            "v6e",
            Plant(
                "unfused",
                ("clip_by_norm", "clip.py"),
                ("memory-bound",),
                Chain(count=6, rows=16_384, width=2048, kind="f32", scope="clip_by_norm/mul", source="clip.py:11"),
            ),
        ),
    },
    (("gradients-reduced-each-time", "weights-cast-each-time"), ("few-rows-a-time", "clipped-in-passes")),
)

STAGES = ("ppermute", "collective-permute", "pipeline", "stage")
PIPELINES = Shape(
    "pipeline",
    {
        "4-stages-v5p": Scene((Pipeline(6, False, hidden=11_008),), V5P, seed=231, loop=LOOP),
        "8-stages-v5e": Scene(
            (Pipeline(16, False, tokens=2048),), V5E, hosts=2, seed=232, steps=9, loop=LOOP, marks=False
        ),
    },
    {
        "bubbles-of-4": ("4-stages-v5p", Plant("pipeline", STAGES, work={"bubbles": True})),
        "bubbles-of-8": ("8-stages-v5e", Plant("pipeline", STAGES, work={"bubbles": True})),
        "labels-row-by-row": (
            "4-stages-v5p",
            Plant(
                "latency-bound",
                ("labels/take", "labels.py"),
                part=Lookup(rows=90_000, scope="labels/take", source="labels.py:8"),
            ),
        ),
        "chip-of-the-6th-stage": ("8-stages-v5e", Plant("slow-core", ("host-1",), **throttled(5, 1.12))),
    },
    (("bubbles-of-4", "labels-row-by-row"), ("bubbles-of-8", "chip-of-the-6th-stage")),
)

MIXTURE = Shape(
    "moe",
    {
        "v5e": Scene((experts(hidden=40_960),), V5E, seed=241, steps=9, loop=LOOP),
        "2-hosts-v5p": Scene(
            (experts(8192, layers=3, hidden=65_536),), V5P, hosts=2, seed=242, steps=9, loop=LOOP, marks=False,
        ),
    },
    {
        "one-favourite": (
            "v5e",
            Plant(
                "imbalance",
                ("all-to-all", "all_to_all", "expert", "moe_top"),
                ("straggler",),
                Experts((0.9, 0.9, 1.4, 0.8), hidden=32_768, scope="moe_top", source="moe_top.py:70"),
                into="each",
            ),
        ),
        "favourites-on-host-1": (
            "2-hosts-v5p",
            Plant(
                "imbalance",
                ("all-to-all", "all_to_all", "expert", "moe_top"),
                ("straggler",),
                Experts(
                    (0.8, 0.9, 0.8, 0.9, 1.0, 1.5, 1.1, 1.0), hidden=49_152, tokens=8192, scope="moe_top",
                    source="moe_top.py:70",
                ),
                into="each",
            ),
        ),
        "capacity-of-160": (
            "v5e",
            Plant(
                "padding",
                ("capacity", "capacity.py"),
                part=Products(
                    65_536, 512, 160, count=30, on_chip=True, scope="capacity/dot_general", source="capacity.py:31"
                ),
                into="each",
            ),
        ),
        "tokens-permuted-row-by-row": (
            "2-hosts-v5p",
            Plant(
                "latency-bound",
                ("permute_tokens", "permute.py"),
                part=Lookup(rows=24_000, scope="permute_tokens/take", source="permute.py:26"),
                into="each",
            ),
        ),
    },
    (("one-favourite", "capacity-of-160"), ("favourites-on-host-1", "tokens-permuted-row-by-row")),
    {"a-little-uneven": (
        "v5e",
        harmless(part=Experts((1.01, 1.0, 1.0, 0.99), hidden=32_768, bad=True, scope="moe_top"), into="each"),
    )},
)  # fmt: skip

SHAPES = (SCANNED, UNROLLED, FSDP, ACCUMULATION, PIPELINES, MIXTURE)

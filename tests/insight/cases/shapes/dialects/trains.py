"""Models that train, as Flax, Haiku, Equinox and MaxText write them."""

from __future__ import annotations

from tests.insight.cases.scenes import chore
from tests.insight.cases.shapes.dialects.models import (
    BARE,
    HAIKU,
    LARGE,
    LINEN,
    Sizes,
    gathered,
    layer,
    rings,
    sparse,
    trained,
)
from tests.insight.cases.shapes.shape import Plant, Shape, slow_kernel, throttled
from tests.insight.simulator.code import V4, V5E, V5P, V6E
from tests.insight.simulator.parts import Kernel, OnSome, Products
from tests.insight.simulator.play import MS, Loop
from tests.insight.simulator.scene import Scene
from tests.insight.simulator.spelled import Again, Casts, Einsum, GatheredExperts, Passes, Staged, Taken, Turned
from tests.insight.simulator.stack import Uneven

LOOP = Loop(fetch="$dataloader.py:701 __next__", call="")
FEED = Loop(fetch="$feed.py:52 take", call="", batch_ps=0.7 * MS, put_ps=0.4 * MS)

OF_SCANNED = Sizes(8192, 2560, 10_240, 20)
SCANNED = Shape(
    "scanned",
    {
        "linen-v5p": Scene(
            (trained(LINEN, OF_SCANNED, 5, 50_304, scanned=True, model="TransformerLM", name="jit_train_step_fn"),),
            V5P, seed=401, steps=9, loop=LOOP,
        ),
    },
    {
        "softmax-of-queries-in-f32": (
            "linen-v5p",
            Plant(
                "memory-bound",
                ("EncoderDecoderAttention_0", "attention.py:204"),
                ("unfused",),
                Einsum(heads=24, scope="EncoderDecoderAttention_0"),
                into="each",
            ),
        ),
        "residuals-turned": (
            "linen-v5p",
            Plant(
                "copy",
                ("moveaxis", "residual.py"),
                ("shuffle",),
                Turned(count=3, rows=20_480, scope="moveaxis/transpose", source="residual.py:26"),
                into="each",
            ),
        ),
    },
    (("softmax-of-queries-in-f32", "residuals-turned"),),
    half="held",
)  # fmt: skip

OF_UNROLLED = Sizes(4096, 3072, 12_288, 24)
UNROLLED = Shape(
    "unrolled",
    {
        "haiku-2-hosts-v6e": Scene(
            (trained(HAIKU, OF_UNROLLED, 4, 51_200, numbered="transformer/~/h{}", name="jit_update", model="lm"),),
            V6E, hosts=2, cores=2, seed=402, steps=14, loop=FEED, marks=False,
        ),
    },
    {
        "targets-taken-row-by-row": (
            "haiku-2-hosts-v6e",
            Plant(
                "latency-bound",
                ("take_along_axis", "objective.py"),
                part=Taken(rows=64_000, table=51_200, scope="take_along_axis/gather", source="objective.py:17"),
                into="first",
            ),
        ),
        "alibi-kernel-at-15-percent": (
            "haiku-2-hosts-v6e",
            slow_kernel("bias_kernel", 0.15, "bias_kernel.py:40", 160, flops=0.5e9, scope="alibi"),
        ),
        "auxiliary-loss-of-one-core": (
            "haiku-2-hosts-v6e",
            Plant(
                "straggler",
                ("host-1", "calibration"),
                ("imbalance",),
                OnSome(
                    (0, 0, 1, 0), shared=False, m=24_576, n=12_288, base="convolution_bitcast_fusion",
                    scope="calibration/~/linear/dot_general", source="calibration.py:55",
                ),
            ),
        ),
    },
    (("targets-taken-row-by-row", "alibi-kernel-at-15-percent"),),
    half="held",
)  # fmt: skip

OF_FSDP = Sizes(4096, 3072, 12_288, 24)
OF_LATE = gathered(LARGE, OF_FSDP, 4, 8, late=True)
FSDP = Shape(
    "fsdp",
    {
        "maxtext-4-hosts-v6e": Scene(
            (gathered(LARGE, OF_FSDP, 4, 8, model="Transformer/decoder", scanned=True),),
            V6E, hosts=4, cores=2, seed=403, steps=9, loop=LOOP,
        ),
    },
    {
        "fused-gathers-awaited-early": (
            "maxtext-4-hosts-v6e",
            Plant(
                "collective",
                ("all-gather", "all_gather", "async-collective"),
                work={"each": OF_LATE.each, "back": OF_LATE.back},
            ),
        ),
        "chip-at-84-percent": ("maxtext-4-hosts-v6e", Plant("slow-core", ("host-2",), **throttled(4, 1.19))),
        "loaders-of-all-hosts": (
            "maxtext-4-hosts-v6e", Plant("input", ("input",), loop={"batch_ps": 42 * MS})
        ),
        "layers-computed-twice": (
            "maxtext-4-hosts-v6e",
            Plant("recomputation", ("remat",), part=Again(layer(LARGE, OF_FSDP)[4:]), into="back"),
        ),
    },
    (("fused-gathers-awaited-early", "layers-computed-twice"),),
    half="held",
)  # fmt: skip

OF_MICRO = Sizes(2048, 3072, 8192, 24)
ACCUMULATION = Shape(
    "accumulation",
    {
        "equinox-v5p": Scene(
            (
                trained(
                    BARE, OF_MICRO, 2, 16_384, micro=5, over="scan/while", name="jit_make_step", model="", rows=4096
                ),
            ),
            V5P, seed=404, steps=8, loop=FEED,
        ),
    },
    {
        "moments-in-passes": (
            "equinox-v5p",
            Plant(
                "unfused",
                ("transform.py", "scale_by_moments"),
                ("memory-bound",),
                Passes(rows=49_152, width=3072),
            ),
        ),
        "weights-promoted-each-time": (
            "equinox-v5p",
            Plant(
                "memory-bound",
                ("promote_dtype", "dtypes.py", "convert_element_type"),
                ("precision",),
                Casts(rows=24_576, width=3072),
                into="turn",
            ),
        ),
    },
    (("moments-in-passes", "weights-promoted-each-time"),),
    half="held",
)  # fmt: skip

STAGES = ("ppermute", "collective-permute", "pipeline", "stage")
PIPELINES = Shape(
    "pipeline",
    {
        "layerwise-3-hosts-v6e": Scene(
            (Staged(9),), V6E, hosts=3, cores=2, seed=405, steps=9, loop=LOOP, marks=False
        ),
    },
    {
        "bubbles-of-6": ("layerwise-3-hosts-v6e", Plant("pipeline", STAGES, work={"bubbles": True})),
        "last-stage-has-the-vocabulary": (
            "layerwise-3-hosts-v6e",
            Plant(
                "imbalance",
                ("unembed", "vocab_xent", "host-2", *STAGES),
                ("straggler", "pipeline"),
                Uneven(
                    (0, 0, 0, 0, 0, 1),
                    Kernel(
                        bad=False, counted=False, flops=0.32e12, size=64 << 20, base="vocab_xent",
                        scope="body/unembed/pallas_call", source="block.py:51",
                    ),
                ),
                into="each",
            ),
        ),
        "loss-kernel-at-9-percent": (
            "layerwise-3-hosts-v6e",
            slow_kernel("chunked_ce", 0.09, "chunked_ce.py:120", 64, flops=0.4e12, into="once"),
        ),
    },
    (("bubbles-of-6", "loss-kernel-at-9-percent"),),
    half="held",
)  # fmt: skip

MIXTURE = Shape(
    "moe",
    {
        "gathered-v4": Scene((sparse(hidden=61_440),), V4, cores=4, seed=406, steps=9, loop=LOOP),
    },
    {
        "one-shard-of-experts-busier": (
            "gathered-v4",
            Plant(
                "imbalance",
                ("sparse_moe", "reduce-scatter", "psum_scatter", "mblx_gmm", "all-gather"),
                ("straggler",),
                GatheredExperts(
                    (0.9, 1.5, 0.8, 0.8), hidden=61_440, scope="sparse_moe", source="sparse_moe.py:31"
                ),
                into="each",
            ),
        ),
        "router-in-f32": (
            "gathered-v4",
            Plant(
                "precision",
                ("router_weights", "router.py"),
                part=Products(
                    4096, 2560, 3072, kind="f32", precision="highest", scope="router_weights/dot_general",
                    source="router.py:44", base="convert_reduce_fusion",
                ),
                into="each",
            ),
        ),
    },
    (("one-shard-of-experts-busier", "router-in-f32"),),
    half="held",
)  # fmt: skip

LATE_RING = rings(6144, 4, late=True)
RINGS = Shape(
    "ring",
    {
        "zigzag-v6e": Scene((rings(6144, 4),), V6E, seed=407, steps=9, loop=FEED),
        "zigzag-2-hosts-v5e": Scene((rings(6144, 8),), V5E, hosts=2, seed=408, steps=7, loop=LOOP, marks=False),
    },
    {
        "keys-awaited-before-the-kernel": (
            "zigzag-v6e", Plant("collective", ("ppermute", "collective-permute"), ("pipeline",),
                                work={"each": LATE_RING.each}),
        ),
        "projections-computed-twice": (
            "zigzag-v6e",
            Plant(
                "recomputation", ("remat",),
                part=Again(layer(HAIKU, Sizes(6144, 3072, 8192, 24, 4096))[4:]), into="back",
            ),
        ),
        "chip-of-host-1-at-80-percent": (
            "zigzag-2-hosts-v5e", Plant("slow-core", ("host-1",), **throttled(4, 1.25))
        ),
        "host-reads-each-loss": (
            "zigzag-2-hosts-v5e",
            Plant(
                "host", ("log_metrics",), ("idle",), loop={"ahead": 0},
                chores=chore("$writer.py:31 log_metrics", 11, reads="$array.py:612 _value"),
            ),
        ),
    },
    (("keys-awaited-before-the-kernel", "projections-computed-twice"),
     ("chip-of-host-1-at-80-percent", "host-reads-each-loss")),
    half="held",
)  # fmt: skip

SHAPES = (SCANNED, UNROLLED, FSDP, ACCUMULATION, PIPELINES, MIXTURE, RINGS)

"""Images, recommendations, servers and generation, as other libraries write them."""

from __future__ import annotations

from tests.insight.cases.scenes import chore
from tests.insight.cases.shapes.dialects.models import BARE, HAIKU, LINEN, Sizes, decode, reads, towers, trained, unet
from tests.insight.cases.shapes.shape import Plant, Shape
from tests.insight.simulator.code import V4, V5E, V5P, V6E
from tests.insight.simulator.parts import (
    Activations,
    Callback,
    Offload,
    Products,
    Rearranged,
    Slices,
    VectorProduct,
)
from tests.insight.simulator.play import MS, Loop
from tests.insight.simulator.scene import Scene
from tests.insight.simulator.spelled import Passes, Taken

LOOP = Loop(fetch="$dataloader.py:701 __next__", call="")
ALONE = Loop(fetch="", call="", annotate=False)
VALUE = "$array.py:612 _value"

OF_VISION = Sizes(12_544, 1280, 5120, 10, 256)
VISION = Shape(
    "vision",
    {
        "vit-8-cores-v5e": Scene(
            (trained(LINEN, OF_VISION, 4, 1024, numbered="Transformer/encoderblock_{}", model="ViT", name="jit_step"),),
            V5E, cores=8, seed=411, steps=9, loop=LOOP,
        ),
    },
    {
        "heads-of-80": (
            "vit-8-cores-v5e",
            Plant(
                "padding",
                ("probe_attention", "probe.py"),
                part=Products(
                    256, 80, 256, batch=512, count=20, on_chip=True, source="probe.py:64",
                    scope="probe_attention/bqhd,bkhd->bhqk/dot_general",
                ),
                into="each",
            ),
        ),
        "mixup-ahead-of-each-step": (
            "vit-8-cores-v5e",
            Plant(
                "host", ("mixup",), ("idle", "input"), loop={"ahead": 0},
                chores=chore("$augmentations.py:210 mixup", 8, before=True),
            ),
        ),
        "patches-decoded-too-slowly": (
            "vit-8-cores-v5e", Plant("input", ("input",), loop={"batch_ps": 75 * MS}),
        ),
    },
    (("mixup-ahead-of-each-step", "heads-of-80"),),
    half="held",
)  # fmt: skip

DIFFUSION = Shape(
    "diffusion",
    {
        "unet-2-hosts-v5p": Scene((unet(),), V5P, hosts=2, cores=2, seed=412, steps=12, loop=LOOP, marks=False),
    },
    {
        "skips-joined": (
            "unet-2-hosts-v5p",
            Plant(
                "shuffle",
                ("concatenate", "upsample.py"),
                ("copy",),
                Rearranged(
                    rows=32_768, width=768, count=2, fuses=True, scope="Upsample_0/concatenate", source="upsample.py:19"
                ),
                into="each",
            ),
        ),
        "norms-in-f32": (
            "unet-2-hosts-v5p",
            Plant(
                "memory-bound",
                ("GroupNormF32", "blocks.py:88"),
                ("precision",),
                Activations(
                    rows=32_768, width=768, count=3, base="broadcast_multiply_fusion", scope="GroupNormF32_0/mul",
                    source="blocks.py:88",
                ),
                into="each",
            ),
        ),
        "losses-printed": (
            "unet-2-hosts-v5p",
            Plant(
                "debug-print", ("debug_callback", "recv-done"), ("host",),
                Callback(us=900, scope="debug_callback", source="diffuse.py:120"),
            ),
        ),
    },
    (("losses-printed", "norms-in-f32"),),
    half="held",
)  # fmt: skip

RECOMMENDER = Shape(
    "recommender",
    {
        "towers-v6e": Scene((towers(),), V6E, seed=413, steps=14, loop=LOOP),
    },
    {
        "negatives-by-multiply-and-sum": (
            "towers-v6e",
            Plant(
                "vector-work",
                ("in_batch_negatives", "negatives.py"),
                part=VectorProduct(
                    m=4096, k=128, n=1024, scope="in_batch_negatives/reduce_sum", source="negatives.py:14"
                ),
            ),
        ),
        "items-added-row-by-row": (
            "towers-v6e",
            Plant(
                "latency-bound",
                ("ItemTower/scatter", "sparse_update.py"),
                part=Taken(
                    rows=20_000, table=2_000_000, adds=True, ns_a_row=90, base="fusion", scope="ItemTower/scatter-add",
                    source="sparse_update.py:30",
                ),
            ),
        ),
        "examples-parsed-too-slowly": (
            "towers-v6e", Plant("input", ("input",), loop={"batch_ps": 7.5 * MS, "fetch": "$feed.py:52 take"})
        ),
    },
    (("items-added-row-by-row", "negatives-by-multiply-and-sum"),),
    half="held",
)  # fmt: skip

SERVERS = Shape(
    "server",
    {
        "engine-v5p": Scene(
            (decode(128, 5120, 5, 48, 13_824), reads(Sizes(2048, 5120, 13_824, 40), 2)),
            V5P, cores=1, seed=414, steps=20, loop=ALONE, marks=False, turns=((0,), (0,), (1,), (0,), (0,), (0,)),
        ),
    },
    {
        "answers-encoded-between-steps": (
            "engine-v5p",
            Plant(
                "serving", ("encode_chunk", "jit_generate_step"), ("host", "idle"), loop={"ahead": 0},
                chores=chore("$protocol.py:204 encode_chunk", 1.3, reads=VALUE),
            ),
        ),
        "cache-written-slice-by-slice": (
            "engine-v5p",
            Plant(
                "latency-bound",
                ("insert", "cache_update.py"),
                part=Slices(
                    count=24, us=8, opcode="dynamic-update-slice", scope="insert/dynamic_update_slice",
                    source="cache_update.py:31",
                ),
                into="each",
            ),
        ),
    },
    (("answers-encoded-between-steps", "cache-written-slice-by-slice"),),
    half="held",
)  # fmt: skip

SAMPLES = decode(
    64, 3072, 4, 24, 8192, micro=16, over="sample/while", once=(), turn=decode(64, 3072, 1, 1, 8192).once,
    name="jit_sample_group",
)  # fmt: skip
REINFORCED = Shape(
    "rl",
    {
        "groups-v6e": Scene(
            (SAMPLES, trained(HAIKU, Sizes(8192, 3072, 8192, 24), 2, 32_768, name="jit_policy_step")),
            V6E, cores=2, seed=415, steps=9, turns=((0, 1),), loop=Loop(fetch="", call="", ahead=0), marks=False,
        ),
        "groups-v4": Scene(
            (SAMPLES, trained(BARE, Sizes(4096, 3072, 8192, 24), 2, 32_768, name="jit_policy_step", model="")),
            V4, cores=2, seed=416, steps=8, turns=((0, 1),), loop=Loop(fetch="", call="", ahead=0),
        ),
    },
    {
        "verifier-on-the-loop": (
            "groups-v6e",
            Plant("host", ("verify_answers",), ("idle",), chores=chore("$verifier.py:90 verify_answers", 12)),
        ),
        "log-probabilities-in-passes": (
            "groups-v6e",
            Plant(
                "unfused",
                ("logprobs", "logprobs.py"),
                ("memory-bound",),
                Passes(
                    rows=4096, width=32_768, bases=("fusion", "bitcast_reduce_fusion", "select_bitcast_fusion"),
                    scope="logprobs/log_softmax", source="logprobs.py:25",
                ),
                program=1,
            ),
        ),
        "old-policy-kept-on-the-host": (
            "groups-v4",
            Plant(
                "host-offload",
                ("reference_policy", "copy-done", "copy-start", "policies.py"),
                ("copy-wait",),
                Offload(rows=40_960, width=3072, scope="reference_policy/device_put", source="policies.py:61"),
                program=1,
            ),
        ),
        "values-in-f32": (
            "groups-v4",
            Plant(
                "precision",
                ("critic", "critic.py"),
                part=Products(
                    4096, 3072, 3072, kind="f32", precision="high", count=6, base="convert_reduce_fusion",
                    scope="critic/dot_general", source="critic.py:28",
                ),
                program=1,
            ),
        ),
    },
    (("verifier-on-the-loop", "log-probabilities-in-passes"), ("old-policy-kept-on-the-host", "values-in-f32")),
    half="held",
)  # fmt: skip

SHAPES = (VISION, DIFFUSION, RECOMMENDER, SERVERS, REINFORCED)

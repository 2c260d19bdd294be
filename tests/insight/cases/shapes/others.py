"""Programs that are no decoder in training: images, recommendations, servers, and generation in turn with training."""

from __future__ import annotations

from tests.insight.cases.scenes import chore
from tests.insight.cases.shapes.models import convolutions, decoder, denoiser, prefill, recommender, server
from tests.insight.cases.shapes.shape import Plant, Shape, harmless, slow_kernel, transposed
from tests.insight.simulator.code import V4, V5E, V5P, V6E
from tests.insight.simulator.parts import (
    Activations,
    Chain,
    Lookup,
    Products,
    Slices,
    TinyLoop,
)
from tests.insight.simulator.play import MS, Loop
from tests.insight.simulator.scene import Scene
from tests.insight.simulator.stack import Beside, Gemms, Scores

READS = "np.asarray(jax.Array)"
LOOP = Loop(call="")
ALONE = Loop(fetch="", call="", annotate=False)

VISION = Shape(
    "vision",
    {
        "v5e": Scene((convolutions(),), V5E, seed=251, loop=LOOP),
        "v6e": Scene((convolutions(128),), V6E, seed=252, steps=10, loop=LOOP, marks=False),
    },
    {
        "channels-of-72": (
            "v5e",
            Plant(
                "padding",
                ("depthwise", "mobile.py"),
                part=Products(
                    100_352,
                    640,
                    72,
                    count=8,
                    on_chip=True,
                    scope="depthwise/conv_general_dilated",
                    source="mobile.py:17",
                ),
                into="each",
            ),
        ),
        "images-transposed": (
            "v5e",
            transposed("nchw_to_nhwc/transpose", "layout.py:5", 1, 50_176, 512),
        ),
        "images-decoded-slowly": ("v6e", Plant("input", ("input",), loop={"batch_ps": 11 * MS})),
        "images-cropped-on-the-loop": (
            "v5e",
            Plant(
                "host",
                ("random_crop",),
                ("idle", "input"),
                loop={"ahead": 0},
                chores=chore("$augment.py:33 random_crop", 4.5, before=True),
            ),
        ),
        "colours-changed-in-passes": (
            "v6e",
            Plant(
                "unfused",
                ("jitter_colours", "colours.py"),
                ("memory-bound",),
                Chain(count=5, rows=65_536, width=512, scope="jitter_colours/mul", source="colours.py:8"),
                into="first",
            ),
        ),
        "batch-norm-in-f32": (
            "v6e",
            Plant(
                "memory-bound",
                ("batch_stats", "batch_stats.py"),
                ("precision",),
                Activations(rows=50_176, width=1024, count=1, scope="batch_stats/mul", source="batch_stats.py:44"),
                into="each",
            ),
        ),
    },
    (("channels-of-72", "images-transposed"), ("batch-norm-in-f32", "colours-changed-in-passes")),
)

DIFFUSION = Shape(
    "diffusion",
    {
        "v6e": Scene((denoiser(8192),), V6E, cores=1, seed=261, steps=20, loop=ALONE, marks=False),
        "v5e": Scene((denoiser(scanned=True),), V5E, cores=1, seed=262, steps=16, loop=ALONE),
    },
    {
        "noise-schedule-on-the-host": (
            "v6e",
            Plant(
                "host", ("next_timestep",), ("idle", "serving"), loop={"ahead": 0},
                chores=chore("$scheduler.py:64 next_timestep", 3.2, reads=READS),
            ),
        ),
        "guidance-unfused": (
            "v6e",
            Plant(
                "unfused",
                ("guidance", "guidance.py"),
                ("memory-bound",),
                Chain(count=6, rows=65_536, width=1536, scope="guidance/mul", source="guidance.py:19"),
            ),
        ),
        "group-norm-kernel-at-8-percent": (
            "v5e",
            slow_kernel("group_norm", 0.08, "group_norm.py:91", 48),
        ),
        "text-attention-in-hbm": (
            "v5e",
            Plant(
                "memory-bound",
                ("text_attention", "text.py"),
                ("unfused",),
                Scores(heads=24, length=1024, scope="text_attention/attend", source="text.py:28"),
                into="each",
            ),
        ),
    },
    (("noise-schedule-on-the-host", "guidance-unfused"), ("group-norm-kernel-at-8-percent", "text-attention-in-hbm")),
)  # fmt: skip

RECOMMENDER = Shape(
    "recommender",
    {
        "v4": Scene((recommender(49_152, 120_000),), V4, seed=271, loop=LOOP),
        "2-hosts-v5p": Scene((recommender(32_768, 60_000),), V5P, hosts=2, seed=272, loop=LOOP, marks=False),
    },
    {
        "users-row-by-row": (
            "v4",
            Plant(
                "latency-bound",
                ("user_table",),
                part=Lookup(
                    rows=48_000, table=8_000_000, width=64, ns_a_row=70, scope="user_table/take", source="users.py:14"
                ),
                into="first",
            ),
        ),
        "clicks-scattered-row-by-row": (
            "2-hosts-v5p",
            Plant(
                "latency-bound",
                ("click_table",),
                part=Lookup(
                    opcode="scatter", rows=26_000, table=8_000_000, width=64, ns_a_row=95,
                    scope="click_table/scatter-add", source="clicks.py:33", base="scatter_custom_fusion",
                ),
            ),
        ),
        "clicks-joined-on-the-host": ("2-hosts-v5p", Plant("input", ("input",), loop={"batch_ps": 3.4 * MS})),
        "rows-exchanged-late": (
            "2-hosts-v5p",
            Plant(
                "collective",
                ("all-to-all", "all_to_all"),
                part=Beside(
                    "all-to-all", 32_768, (Gemms(((0, 0, 0),) * 3, "cross_net/dot_general", "dlrm.py:61"),),
                    scope="rows/all_to_all", source="tables.py:52", bad=True,
                ),
            ),
        ),
        "batches-read-before-each-launch": (
            "v4",
            Plant(
                "input", ("next_batch", "input"), ("host", "idle"), loop={"ahead": 0},
                chores=chore("$reader.py:27 next_batch", 4, before=True),
            ),
        ),
        "features-transposed": (
            "v4",
            transposed("features/transpose", "crosses.py:20", 3, 65_536, 1024, into="once"),
        ),
    },
    (("users-row-by-row", "features-transposed"), ("clicks-scattered-row-by-row", "rows-exchanged-late")),
)  # fmt: skip

SERVERS = Shape(
    "server",
    {
        "v5e": Scene(
            (server(), prefill()), V5E, cores=1, seed=281, steps=20, loop=ALONE, marks=False,
            turns=((0,), (0,), (0,), (1,), (0,)),
        ),
        "v6e": Scene(
            (server(96, cache=64, layers=8), prefill(8192)), V6E, cores=1, seed=282, steps=18, loop=ALONE, marks=False,
            turns=((0,), (1,), (0,)),
        ),
    },
    {
        "streams-on-the-loop": (
            "v5e",
            Plant(
                "serving", ("send_tokens", "jit_decode_step"), ("host", "idle"), loop={"ahead": 0},
                chores=chore("$stream.py:52 send_tokens", 2.6),
            ),
        ),
        "pages-copied-one-by-one": (
            "v5e",
            Plant(
                "latency-bound",
                ("pages/dynamic_slice", "pages.py"),
                part=Slices(count=40, us=11, scope="pages/dynamic_slice", source="pages.py:12"),
                into="each",
            ),
        ),
        "kernel-at-10-percent": (
            "v6e",
            slow_kernel("ragged_rope", 0.10, "rope.py:90", 24),
        ),
        "cache-transposed": (
            "v6e",
            transposed("cache/swapaxes", "cache.py:71", 1, 18_432, 1024),
        ),
    },
    (("streams-on-the-loop", "pages-copied-one-by-one"), ("kernel-at-10-percent", "cache-transposed")),
)  # fmt: skip

GENERATE = server(
    32, layers=4, cache=24, micro=12, over="tokens/while", once=(), turn=server().once, name="jit_generate"
)
REINFORCED = Shape(
    "rl",
    {
        "v5p": Scene((GENERATE, decoder(8192, 4096, 11_008, layers=2)), V5P, seed=291, steps=8, turns=((0, 1),),
                     loop=Loop(fetch="", call="", ahead=0)),
        "v5e": Scene((GENERATE, decoder(2048, layers=2)), V5E, seed=292, steps=9, turns=((0, 1),), marks=False,
                     loop=Loop(call="", ahead=0, annotate=False)),
    },
    {
        "weights-synced-by-the-host": (
            "v5p",
            Plant(
                "host", ("sync_weights", "device_put"), ("idle",),
                chores=chore("batched_device_put", 45, inside="$weights.py:40 sync_weights"),
            ),
        ),
        "rewards-on-the-host": (
            "v5e",
            Plant("host", ("score_answers",), ("idle",), chores=chore("$rewards.py:18 score_answers", 16)),
        ),
        "samples-in-a-tiny-loop": (
            "v5e",
            Plant(
                "tiny-loop", ("sampler", "sampler.py"),
                part=TinyLoop(trips=500, us=3.5, scope="sampler/while", source="sampler.py:77"),
            ),
        ),
        "advantages-in-f32": (
            "v5p",
            Plant(
                "precision",
                ("advantages",),
                part=Products(
                    4096, 4096, 4096, kind="f32", precision="highest", count=4, scope="advantages/dot_general",
                    source="ppo.py:51",
                ),
                program=1,
            ),
        ),
    },
    (("weights-synced-by-the-host", "advantages-in-f32"), ("rewards-on-the-host", "samples-in-a-tiny-loop")),
    {"rewards-in-the-background": (
        "v5e", harmless(chores=chore("$rewards.py:18 score_answers", 9, thread="scorer/6100")),
    )},
)  # fmt: skip

SHAPES = (VISION, DIFFUSION, RECOMMENDER, SERVERS, REINFORCED)

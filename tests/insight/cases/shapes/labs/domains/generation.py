"""What is made: frames of videos, pictures of two networks that train against each other, texts of recurrent models."""

from __future__ import annotations

from tests.insight.cases.scenes import chore
from tests.insight.cases.shapes.labs.domains.domain import Domain
from tests.insight.cases.shapes.labs.domains.models import films, mixes, paints, states
from tests.insight.cases.shapes.labs.domains.parts import BetweenSpaceAndTime, ShiftedByOne
from tests.insight.cases.shapes.shape import Plant, harmless, slow_kernel
from tests.insight.simulator.code import V4, V5E, V6E
from tests.insight.simulator.parts import Products
from tests.insight.simulator.play import MS, Chips, Loop
from tests.insight.simulator.scene import Scene
from tests.insight.simulator.spelled import Again
from tests.insight.simulator.tensors import RunningSum

VIDEOS = Domain(
    "films",
    {
        "opensora-8-cores-v6e": Scene(
            (films(16_384, 1536, 3, numbered="blocks_{}"),), V6E, cores=8, seed=911, steps=16, marks=False,
            chips=Chips(jitter=0.009, speed=((5, 1.006),), slow_steps=((7, 1.04),)),
            loop=Loop(
                fetch="", call="", annotate=False, launch_ps=0.11 * MS, reading="$rflow.py:140 block_until_ready",
            ),
        ),
    },
    {
        "frames-turned-for-attention-over-time": (
            "opensora-8-cores-v6e",
            Plant(
                "copy", ("temporal_attn", "stdit.py:190"), ("shuffle",),
                BetweenSpaceAndTime(count=5), into="each",
            ),
        ),
        "heads-of-72-features-over-16-frames": (
            "opensora-8-cores-v6e",
            Plant(
                "padding", ("temporal_scores", "stdit.py:222"),
                part=Products(
                    16, 72, 16, batch=8192, count=14, on_chip=True, base="convolution_fusion",
                    scope="temporal_attn/temporal_scores/dot_general", source="stdit.py:222",
                ),
                into="each",
            ),
        ),
    },
    (("frames-turned-for-attention-over-time", "heads-of-72-features-over-16-frames"),),
)  # fmt: skip

GENERATES = paints(128, 3, "Generator", "synthesis/conv0_up", name="jit_update_generator")
CRITICIZES = paints(128, 3, "Discriminator", "blocks/conv1", name="jit_update_discriminator")
PENALIZES = paints(160, 4, "PathLength", "synthesis/conv0_up", name="jit_path_length_penalty")
ADVERSARIES = Domain(
    "adversaries",
    {
        "stylegan-v5e": Scene(
            (CRITICIZES, GENERATES, PENALIZES), V5E, cores=1, seed=912, steps=20, turns=((0, 1),), marks=False,
            chips=Chips(jitter=0.011),
            loop=Loop(fetch="$image_folder.py:90 __next__", call="", batch_ps=2.2 * MS, launch_ps=0.1 * MS),
        ),
    },
    {
        "paths-penalized-every-4th-step": (
            "stylegan-v5e",
            Plant(
                "slow-step", ("jit_path_length_penalty", "path_length_penalty"), every=4,
                scene={"turns": (*((0, 1),) * 3, (0, 1, 2))},
            ),
        ),
        "losses-balanced-in-python": (
            "stylegan-v5e",
            Plant(
                "host", ("balance_losses",), ("idle",), loop={"ahead": 0},
                chores=chore("$adaptive_augment.py:71 balance_losses", 1.4),
            ),
        ),
    },
    (("paths-penalized-every-4th-step", "losses-balanced-in-python"),),
    {
        "samples-drawn-on-another-thread": (
            "stylegan-v5e",
            harmless(chores=chore("$grid_writer.py:30 save_image_grid", 35, every=5, offset=2, thread="writer/6911")),
        ),
    },
)  # fmt: skip

CHUNKED = states(8192, 2048, 3, 16_384)
STATES = Domain(
    "state-spaces",
    {
        "mamba2-2-hosts-v5e": Scene(
            (CHUNKED,), V5E, hosts=2, cores=4, seed=913, steps=9, chips=Chips(jitter=0.015),
            loop=Loop(fetch="$mosaic_streaming.py:512 __iter__", call="", batch_ps=5 * MS, put_ps=0.5 * MS),
        ),
    },
    {
        "decays-summed-by-windows": (
            "mamba2-2-hosts-v5e",
            Plant(
                "vector-work", ("segsum", "ssd_minimal.py"),
                part=RunningSum(
                    rows=81_920, length=256, scope="mixer/ssd/segsum/cumsum/reduce_window_sum",
                    source="ssd_minimal.py:25",
                ),
                into="each",
            ),
        ),
        "chunks-computed-again": (
            "mamba2-2-hosts-v5e",
            Plant(
                "recomputation", ("remat",),
                part=Again((CHUNKED.each[1], CHUNKED.each[2]), scope="checkpoint/rematted_computation",
                           source="mamba2.py:266"),
                into="back",
            ),
        ),
    },
    (("chunks-computed-again", "decays-summed-by-windows"),),
)  # fmt: skip

RECURRENT = Domain(
    "time-mixing",
    {
        "rwkv7-8-hosts-v4": Scene(
            (mixes(4096, 2048, 4, numbered="blocks.{}"),), V4, hosts=8, cores=1, seed=914, steps=18, marks=False,
            chips=Chips(jitter=0.008, speed=((2, 1.007),)),
            loop=Loop(fetch="$binidx.py:201 __getitem__", call="", ahead=0, launch_ps=0.08 * MS, put_ps=0.06 * MS),
        ),
    },
    {
        "decay-kernel-at-7-percent": (
            "rwkv7-8-hosts-v4",
            slow_kernel("decay_lora", 0.07, "decay_lora.py:64", 56, scope="att/decay_lora"),
        ),
        "tokens-shifted-by-cut-and-pad": (
            "rwkv7-8-hosts-v4",
            Plant(
                "shuffle", ("time_shift", "rwkv.py:61"), ("copy", "memory-bound"), ShiftedByOne(count=6), into="each"
            ),
        ),
        "saves-wait-for-the-save-before-every-6th-step": (
            "rwkv7-8-hosts-v4",
            Plant(
                "host", ("wait_for_previous_save", "wait"), ("idle", "slow-step"), every=6,
                chores=chore(
                    "$async_saver.py:151 wait_for_previous_save", 38, every=6, offset=4,
                    inside="$async_saver.py:120 save",
                ),
            ),
        ),
    },
    (("decay-kernel-at-7-percent", "tokens-shifted-by-cut-and-pad"),),
)  # fmt: skip

DOMAINS = (VIDEOS, ADVERSARIES, STATES, RECURRENT)

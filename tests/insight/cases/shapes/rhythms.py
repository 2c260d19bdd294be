"""Problems that are not in every step: at a rhythm, from some step on, or on one of several hosts."""

from __future__ import annotations

from dataclasses import replace

from tests.insight.cases.scenes import chore
from tests.insight.cases.shapes.models import block, convolutions, decoder, logits, sharded
from tests.insight.cases.shapes.shape import Plant, Shape, harmless, slow_kernel, throttled, transposed
from tests.insight.simulator.code import V4, V5E, V5P, V6E
from tests.insight.simulator.parts import Lookup
from tests.insight.simulator.play import MS, Loop
from tests.insight.simulator.scene import Scene
from tests.insight.simulator.stack import Stack

READS = "np.asarray(jax.Array)"
LOOP = Loop(call="")
READING = Loop(call="", ahead=0)
"""Each result is read before the next launch."""


def evaluation(tokens: int, layers: int) -> Stack:
    """A forward pass over batches that are not trained on."""
    return Stack(
        tokens, 2048, layers, block(tokens, 2048, 5632, 32), once=(logits(tokens, 32_000, 2048),), model="Evaluated",
        name="jit_eval_step",
    )  # fmt: skip


EVALUATES = ("jit_eval_step", "eval_step")
RHYTHM = Shape(
    "rhythm",
    {
        "v5e": Scene((decoder(layers=3), evaluation(16_384, 4)), V5E, seed=301, steps=24, loop=LOOP, marks=False),
        "v6e": Scene((decoder(8192), evaluation(4096, 4)), V6E, seed=302, steps=20, loop=replace(READING, fetch="")),
    },
    {
        "evaluates-every-8th-step": (
            "v5e", Plant("slow-step", EVALUATES, scene={"turns": (*((0,),) * 7, (0, 1, 1))}, every=8)
        ),
        "evaluates-every-4th-step": (
            "v6e", Plant("slow-step", EVALUATES, scene={"turns": ((0,), (0,), (0, 1, 1, 1, 1), (0,))}, every=4)
        ),
        "saves-every-8th-step": (
            "v5e",
            Plant(
                "host", ("save_checkpoint",), ("idle", "slow-step"), every=8,
                chores=chore("$checkpoints.py:120 save_checkpoint", 90, every=8, offset=3, reads=READS),
            ),
        ),
        "recompiles-every-5th-step": (
            "v6e",
            Plant(
                "compilation", ("compil",), every=5,
                chores=chore("backend_compile_and_load", 60, every=5, offset=2, before=True),
            ),
        ),
    },
    (("evaluates-every-8th-step", "saves-every-8th-step"), ("recompiles-every-5th-step", "evaluates-every-4th-step")),
    {
        "evaluates-shortly": ("v6e", harmless(scene={"turns": (*((0,),) * 9, (0, 1))})),
        "saves-in-the-background": (
            "v5e",
            harmless(chores=chore("$checkpoints.py:120 save_checkpoint", 90, every=8, offset=3, thread="saver/6200")),
        ),
    },
)  # fmt: skip

ONSET = Shape(
    "onset",
    {
        "v5e": Scene((decoder(layers=3),), V5E, seed=311, steps=16, loop=LOOP),
        "2-hosts-v5p": Scene((sharded(layers=2),), V5P, hosts=2, seed=312, steps=14, loop=LOOP, marks=False),
    },
    {
        "chip-throttles-from-step-6": (
            "v5e", Plant("slow-core", ("host-0:2", "core 2", "TPU:2"), since=6, **throttled(2, 1.3, 6))
        ),
        "chip-of-host-1-throttles-from-step-4": (
            "2-hosts-v5p", Plant("slow-core", ("host-1",), since=4, **throttled(5, 1.22, 4))
        ),
        "loader-slows-from-step-7": (
            "v5e",
            Plant("input", ("input",), since=7, loop={"slow_every": 1, "slow_ps": 75 * MS, "slow_since": 7}),
        ),
        "host-checks-from-step-5": (
            "2-hosts-v5p",
            Plant(
                "host", ("check_gradients",), ("idle",), since=5,
                chores=chore("$debugging.py:17 check_gradients", 55, since=5, reads=READS),
            ),
        ),
        "compiles-in-the-first-step": (
            "v5e",
            Plant("compilation", ("compil",), chores=chore("backend_compile_and_load", 160, every=16, before=True)),
        ),
        "kernel-in-all-steps": (
            "2-hosts-v5p",
            slow_kernel("gated_scan", 0.1, "gated_scan.py:9", 64, flops=0.6e12, into="once"),
        ),
    },
    (("loader-slows-from-step-7", "compiles-in-the-first-step"), ("host-checks-from-step-5", "kernel-in-all-steps")),
)  # fmt: skip

PAUSES = ("host", "idle", "straggler", "slow-step")
HOSTS = Shape(
    "hosts",
    {
        "4-hosts-v4": Scene((convolutions(128),), V4, hosts=4, cores=2, seed=321, steps=16, loop=LOOP),
        "2-hosts-v5e": Scene((decoder(layers=3),), V5E, hosts=2, seed=322, steps=24, loop=READING, marks=False),
    },
    {
        "host-1-collects-garbage-every-4th-step": (
            "2-hosts-v5e",
            Plant(
                "straggler", ("host-1",), PAUSES, every=4,
                chores=chore("$gc collect", 130, every=4, offset=1, hosts=(1,)),
            ),
        ),
        "disk-of-host-2-every-3rd-step": (
            "4-hosts-v4",
            Plant(
                "straggler", ("host-2",), ("input",), every=3,
                loop={"slow_every": 3, "slow_ps": 42 * MS, "slow_hosts": (2,)},
            ),
        ),
        "chip-of-host-3": ("4-hosts-v4", Plant("slow-core", ("host-3",), **throttled(7, 1.2))),
        "host-0-saves-every-8th-step": (
            "2-hosts-v5e",
            Plant(
                "straggler", ("host-0",), PAUSES, every=8,
                chores=chore("$checkpoints.py:120 save_checkpoint", 190, every=8, offset=5, hosts=(0,), reads=READS),
            ),
        ),
        "embeddings-row-by-row": (
            "2-hosts-v5e",
            Plant(
                "latency-bound",
                ("embed/take", "embed.py"),
                part=Lookup(rows=70_000, scope="embed/take", source="embed.py:15"),
                into="first",
            ),
        ),
        "images-transposed": (
            "4-hosts-v4",
            transposed("nchw_to_nhwc/transpose", "layout.py:5", 3, 32_768, 1024, into="first"),
        ),
        "host-2-validates-every-2nd-step": (
            "4-hosts-v4",
            Plant(
                "straggler", ("host-2",), PAUSES, every=2, loop={"ahead": 0},
                chores=chore("$validate.py:30 validate", 9, every=2, offset=1, before=True, hosts=(2,)),
            ),
        ),
    },
    (
        ("host-1-collects-garbage-every-4th-step", "embeddings-row-by-row"),
        ("chip-of-host-3", "images-transposed"),
    ),
    {
        "pauses-that-nobody-waits-for": (
            "2-hosts-v5e", harmless(loop={"ahead": 1}, chores=chore("$gc collect", 12, every=4, offset=1, hosts=(1,))),
        ),
        "saves-in-the-background": (
            "4-hosts-v4",
            harmless(chores=chore("$checkpoints.py:120 save", 90, every=5, offset=3, thread="saver/6200", hosts=(0,))),
        ),
    },
)  # fmt: skip

SHAPES = (RHYTHM, ONSET, HOSTS)

"""Slices and stages: gradients and weights between slices, saves, chips that throttle, and pipelines of hosts."""

from __future__ import annotations

from dataclasses import replace

from tests.insight.cases.scenes import chore
from tests.insight.cases.shapes.dialects.models import Sizes, layer, layer_back
from tests.insight.cases.shapes.jobs.models import sliced
from tests.insight.cases.shapes.labs.lab import Lab
from tests.insight.cases.shapes.labs.models import AXLEARN, PARALLEL
from tests.insight.cases.shapes.shape import Plant, harmless, throttled
from tests.insight.simulator.code import V5E, V5P
from tests.insight.simulator.parts import Callback
from tests.insight.simulator.play import MS, Chips, Loop
from tests.insight.simulator.scene import Scene
from tests.insight.simulator.schedules import AcrossSlices, OneForwardOneBackward
from tests.insight.simulator.stack import Gemms, Uneven

READING = Loop(fetch="$input_grain.py:411 __next__", call="", ahead=0, launch_ps=0.1 * MS, put_ps=0.1 * MS)
SAVES = "$checkpointer_orbax.py:301 save"

OF_SLICES = Sizes(8192, 3072, 8192, 24)
SLICES = Lab(
    "axlearn",
    {
        "fuji-2-slices-of-2-hosts-v5e": Scene(
            (sliced(AXLEARN, OF_SLICES, 2, 40, model="CausalLM", name="jit_train_step"),), V5E, hosts=4, cores=2,
            seed=851, steps=18, marks=False, loop=READING, chips=Chips(jitter=0.006),
        ),
    },
    {
        "weights-sent-between-slices-first": (
            "fuji-2-slices-of-2-hosts-v5e",
            Plant(
                "dcn", ("recv", "slice", "DCN", "megascale", "with_mesh"), ("collective",),
                AcrossSlices(256, bad=True, scope="with_mesh/all_gather_params", source="trainer.py:880"),
                instead=(), into="first",
            ),
        ),
        "saves-on-the-loop-every-6th-step": (
            "fuji-2-slices-of-2-hosts-v5e",
            Plant(
                "host", ("save", "wait_until_finished"), ("idle", "slow-step"), every=6,
                chores=chore("$checkpointer_orbax.py:355 wait_until_finished", 110, every=6, offset=2, inside=SAVES),
            ),
        ),
        "chip-of-host-3-throttles-from-step-7": (
            "fuji-2-slices-of-2-hosts-v5e", Plant("slow-core", ("host-3",), since=7, **throttled(7, 1.32, 7)),
        ),
        "host-2-prepares-its-batch-late": (
            "fuji-2-slices-of-2-hosts-v5e",
            Plant("straggler", ("host-2",), ("host", "idle", "input"), loop={"late": ((2, 9 * MS),)}),
        ),
    },
    (
        ("weights-sent-between-slices-first", "chip-of-host-3-throttles-from-step-7"),
        ("weights-sent-between-slices-first", "host-2-prepares-its-batch-late"),
    ),
    {
        "saves-while-the-devices-work": (
            "fuji-2-slices-of-2-hosts-v5e",
            harmless(chores=chore("$checkpointer_orbax.py:355 write", 90, every=6, offset=2, thread="orbax-save/6810")),
        ),
    },
)  # fmt: skip

OF_STAGES = Sizes(2048, 4096, 16_384, 32)
STAGED = OneForwardOneBackward(
    20, layer(PARALLEL, OF_STAGES)[1:], layer_back(PARALLEL, OF_STAGES), tokens=2048, width=4096, scope="stages",
    source="spmd_pipeline.py:160", name="jit_pipelined_train_step",
)  # fmt: skip
STAGES = Lab(
    "stages",
    {
        "gpt-4-stages-of-2-hosts-v5p": Scene(
            (STAGED,), V5P, hosts=2, cores=2, seed=852, steps=8, loop=replace(READING, ahead=1),
        ),
    },
    {
        "stages-wait-for-their-first-microbatch": (
            "gpt-4-stages-of-2-hosts-v5p",
            Plant(
                "pipeline", ("ppermute", "collective-permute", "pipeline", "stages"), ("imbalance",),
                work={"bubbles": True},
            ),
        ),
        "last-stage-has-the-logits": (
            "gpt-4-stages-of-2-hosts-v5p",
            Plant(
                "imbalance", ("lm_head", "embeddings.py", "host-1:1", "host-1", "core 1", "ppermute",
                "collective-permute"),
                ("straggler", "pipeline"),
                Uneven((0.0, 0.0, 0.0, 4.0), Gemms(((0, 0, 6144),), "lm_head/dot_general", "embeddings.py:88")),
                into="forward",
            ),
        ),
        "norms-printed": (
            "gpt-4-stages-of-2-hosts-v5p",
            Plant(
                "debug-print", ("debug_callback", "recv", "metrics.py"), ("host", "host-offload"),
                Callback(us=9000, scope="global_norm/debug_callback", source="metrics.py:71"),
            ),
        ),
    },
    (("stages-wait-for-their-first-microbatch", "norms-printed"),),
)  # fmt: skip

LABS = (SLICES, STAGES)

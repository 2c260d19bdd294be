"""Several hosts: checkpoints, syncs, and hosts and chips that differ."""

from __future__ import annotations

from dataclasses import replace

from tests.insight.cases.scenes import chore
from tests.insight.cases.shapes.codebases.codebase import Codebase
from tests.insight.cases.shapes.codebases.models import EASYDEL, GRAIN, NNX
from tests.insight.cases.shapes.codebases.parts import Losses
from tests.insight.cases.shapes.dialects.models import Sizes, reads
from tests.insight.cases.shapes.jobs.models import reducing
from tests.insight.cases.shapes.rhythms import PAUSES
from tests.insight.cases.shapes.shape import Plant, harmless, throttled
from tests.insight.simulator.code import V5E, V6E
from tests.insight.simulator.play import MS
from tests.insight.simulator.scene import Scene
from tests.insight.simulator.schedules import AcrossSlices
from tests.insight.simulator.stack import Gemms, Stack

READING = replace(GRAIN, ahead=0, fetch="$train_utils.py:88 load_next_batch")

OF_POD = Sizes(8192, 2048, 8192, 16)
SAVES = "$checkpoint_manager.py:1180 save"
POD = Codebase(
    "pod",
    {
        "maxtext-4-hosts-v6e": Scene(
            (
                reducing(NNX, OF_POD, 3, 32_768, model="Transformer/decoder"),
                reads(Sizes(16_384, 2048, 8192, 16), 8, name="jit_eval_step", model="Transformer"),
            ),
            V6E, hosts=4, cores=1, seed=731, steps=18, marks=False,
            loop=replace(READING, put_ps=0.1 * MS, launch_ps=0.1 * MS),
        ),
    },
    {
        "checkpoints-awaited-every-6th-step": (
            "maxtext-4-hosts-v6e",
            Plant(
                "host", ("wait_until_finished",), ("idle", "slow-step"), every=6,
                chores=chore(
                    "$checkpoint_manager.py:1320 wait_until_finished", 60, every=6, offset=3, inside=SAVES
                ),
            ),
        ),
        "evaluates-every-6th-step": (
            "maxtext-4-hosts-v6e",
            Plant("slow-step", ("jit_eval_step", "eval_step"), every=6, scene={"turns": (*((0,),) * 5, (0, 1))}),
        ),
        "host-2-launches-late": (
            "maxtext-4-hosts-v6e", Plant("straggler", ("host-2",), PAUSES, loop={"late": ((2, 3 * MS),)}),
        ),
        "chip-of-host-3-throttled-from-step-7": (
            "maxtext-4-hosts-v6e", Plant("slow-core", ("host-3",), since=7, **throttled(3, 1.4, 7)),
        ),
    },
    (
        ("checkpoints-awaited-every-6th-step", "host-2-launches-late"),
        ("checkpoints-awaited-every-6th-step", "chip-of-host-3-throttled-from-step-7"),
    ),
    {
        "checkpoints-on-another-thread": (
            "maxtext-4-hosts-v6e",
            harmless(
                chores=chore("$async_checkpointer.py:210 _thread_func", 25, every=6, offset=3, thread="save/6701")
            ),
        ),
    },
)  # fmt: skip

OF_OUTER = Sizes(4096, 2048, 5632, 16)
SYNCED = Stack(
    4096, 2048, 1, (Gemms(((0, 0, 0),), "outer_update/dot_general", "diloco.py:120"),),
    once=(AcrossSlices(384, bad=True, scope="outer_gradient/psum", source="diloco.py:140"),), model="Outer",
    name="jit_outer_sync",
)  # fmt: skip
OUTER = Codebase(
    "outer-steps",
    {
        "diloco-2-hosts-v5e": Scene(
            (reducing(EASYDEL, OF_OUTER, 2, 32_768, model="Qwen3ForCausalLM"), SYNCED), V5E, hosts=2, cores=2, seed=732,
            steps=15, loop=READING,
        ),
    },
    {
        "slices-synced-every-5th-step": (
            "diloco-2-hosts-v5e",
            Plant(
                "dcn", ("outer_sync", "outer_gradient", "recv", "slice"), ("slow-step", "collective"), every=5,
                scene={"turns": (*((0,),) * 4, (0, 1))},
            ),
        ),
        "hosts-meet-before-each-step": (
            "diloco-2-hosts-v5e",
            Plant(
                "host", ("sync_global_devices",), ("idle", "barrier"), loop={"ahead": 0},
                chores=chore("$multihost_utils.py:88 sync_global_devices", 4, before=True),
            ),
        ),
        "losses-through-f32-logits": (
            "diloco-2-hosts-v5e",
            Plant(
                "unfused", ("cross_entropy_loss_and_accuracy", "loss_utils.py"), ("memory-bound", "precision"),
                Losses(
                    tokens=4096, outputs=65_536, scope="cross_entropy_loss_and_accuracy", source="loss_utils.py:410"
                ),
            ),
        ),
        "host-1-starved-for-a-while": (
            "diloco-2-hosts-v5e",
            Plant(
                "straggler", ("host-1",), ("input",), since=4,
                loop={
                    "slow_every": 1, "slow_ps": 70 * MS, "slow_hosts": (1,), "slow_since": 4, "slow_until": 10,
                },
            ),
        ),
    },
    (
        ("losses-through-f32-logits", "hosts-meet-before-each-step"),
        ("slices-synced-every-5th-step", "hosts-meet-before-each-step"),
    ),
)  # fmt: skip

CODEBASES = (POD, OUTER)

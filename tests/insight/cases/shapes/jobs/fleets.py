"""Many hosts and slices: what comes now and then, from a step on, or from one of them alone."""

from __future__ import annotations

from dataclasses import replace

from tests.insight.cases.scenes import chore
from tests.insight.cases.shapes.dialects.models import LARGE, Sizes, gathered, reads
from tests.insight.cases.shapes.jobs.job import Job
from tests.insight.cases.shapes.jobs.models import LEVANTER, T5X, reducing, sliced
from tests.insight.cases.shapes.rhythms import PAUSES
from tests.insight.cases.shapes.shape import Plant, harmless, throttled
from tests.insight.simulator.code import V4, V5E, V5P, V7X
from tests.insight.simulator.parts import Kernel
from tests.insight.simulator.play import MS, Chips, Loop
from tests.insight.simulator.scene import Scene
from tests.insight.simulator.stack import Uneven

LOOP = Loop(fetch="$multihost_dataloading.py:112 get_next_batch_sharded", call="")
READING = Loop(fetch="$dataset_iterators.py:288 __next__", call="", ahead=0)

OF_SLICES = Sizes(8192, 2048, 8192, 16)
OF_LATE = sliced(LARGE, OF_SLICES, 3, 48, late=True)
SLICES = Job(
    "slices-job",
    {
        "2-slices-of-2-hosts-v5e": Scene(
            (sliced(LARGE, OF_SLICES, 3, 48, model="Transformer/decoder"),), V5E, hosts=4, cores=2, seed=641, steps=15,
            loop=READING, marks=False,
        ),
    },
    {
        "gradients-between-slices-at-the-end": (
            "2-slices-of-2-hosts-v5e",
            Plant(
                "dcn", ("recv", "slice", "DCN", "megascale"), ("collective",),
                work={"back": OF_LATE.back, "once": OF_LATE.once},
            ),
        ),
        "host-3-collects-garbage-every-5th-step": (
            "2-slices-of-2-hosts-v5e",
            Plant(
                "straggler", ("host-3",), PAUSES, every=5,
                chores=chore("$gc collect", 190, every=5, offset=2, hosts=(3,)),
            ),
        ),
        "chip-of-host-2-at-85-percent": (
            "2-slices-of-2-hosts-v5e", Plant("slow-core", ("host-2",), **throttled(4, 1.17))
        ),
    },
    (("host-3-collects-garbage-every-5th-step", "gradients-between-slices-at-the-end"),),
)  # fmt: skip

OF_T5X = Sizes(4096, 2048, 5120, 16)
CHECKED = Scene(
    (
        reducing(T5X, OF_T5X, 3, 32_128, numbered="decoder/layers_{}", name="jit_train_with_lr"),
        reads(Sizes(4096, 2048, 5120, 16), 3, name="jit_eval_step"),
    ),
    V4, hosts=4, cores=2, seed=642, steps=24, loop=replace(LOOP, ahead=0, put_ps=0.1 * MS, launch_ps=0.1 * MS),
)  # fmt: skip
SAVES = "$checkpoints.py:533 save_checkpoint"
CHECKPOINTS = Job(
    "checkpoint-job",
    {"t5x-4-hosts-v4": CHECKED},
    {
        "saves-and-waits-every-8th-step": (
            "t5x-4-hosts-v4",
            Plant(
                "host", ("save_checkpoint",), ("idle", "slow-step"), every=8,
                chores=chore(SAVES, 110, every=8, offset=5, inside="$trainer.py:905 maybe_save"),
            ),
        ),
        "shards-opened-every-4th-step": (
            "t5x-4-hosts-v4",
            Plant("input", ("input",), every=4, loop={"slow_every": 4, "slow_ps": 105 * MS}),
        ),
    },
    (),
    {
        "saves-on-another-thread": (
            "t5x-4-hosts-v4",
            harmless(chores=chore(SAVES, 70, every=8, offset=5, thread="AsyncCheckpointer/6620")),
        ),
        "evaluates-every-12th-step": (
            "t5x-4-hosts-v4", harmless(scene={"turns": (*((0,),) * 11, (0, 1))})
        ),
    },
    suspects=(
        (
            "evaluation-alone",
            Scene(
                (reads(Sizes(8192, 2048, 5120, 16), 6, name="jit_eval_step", model="Transformer/decoder"),), V4,
                cores=2, seed=643, steps=14, loop=LOOP,
            ),
        ),
    ),
)  # fmt: skip

ONSET = Job(
    "onset-job",
    {
        "maxtext-2-hosts-v7x": Scene(
            (gathered(LARGE, Sizes(8192, 6144, 24_576, 48), 3, 8, model="Transformer/decoder", scanned=True),),
            V7X, hosts=2, seed=644, steps=14, loop=LOOP,
        ),
    },
    {
        "products-of-a-chip-throttled-from-step-5": (
            "maxtext-2-hosts-v7x",
            Plant("slow-core", ("host-1",), since=5, chips={"matrix_speed": ((6, 1.3),), "since": 5}),
        ),
        "disk-of-host-0-slow-from-step-8": (
            "maxtext-2-hosts-v7x",
            Plant(
                "straggler", ("host-0",), ("input",), since=8,  # when the batches made ahead are used up
                loop={"slow_every": 1, "slow_ps": 140 * MS, "slow_hosts": (0,), "slow_since": 6},
            ),
        ),
    },
    (),
)  # fmt: skip

OF_FLEET = Sizes(4096, 4096, 11_008, 32)
FLEET = Job(
    "fleet-job",
    {
        "levanter-8-hosts-v5p": Scene(
            (reducing(LEVANTER, OF_FLEET, 2, 32_000, numbered="Stacked/{}", name="jit__train_step"),),
            V5P, hosts=8, cores=1, seed=645, steps=14, marks=False, loop=replace(READING, batch_ps=0.6 * MS),
        ),
    },
    {
        "host-6-waits-for-its-tracker": (
            "levanter-8-hosts-v5p",
            Plant("straggler", ("host-6",), PAUSES, chores=chore("$wandb_run.py:1690 log", 7, hosts=(6,))),
        ),
        "longer-documents-on-host-5": (
            "levanter-8-hosts-v5p",
            Plant(
                "imbalance",
                ("host-5", "segmented_attention", "packing.py"),
                ("straggler",),
                Uneven(
                    (0.9, 0.8, 1.0, 0.9, 0.8, 1.8, 0.9, 0.9),
                    Kernel(
                        bad=False, counted=False, good=0.7, flops=3e12, size=256 << 20, base="segment_flash",
                        scope="segmented_attention/pallas_call", source="packing.py:88",
                    ),
                ),
                into="each",
            ),
        ),
    },
    (),
    suspects=(
        (
            "hosts-with-noisy-chips",
            Scene(
                (reducing(LEVANTER, OF_FLEET, 2, 32_000, numbered="Stacked/{}", name="jit__train_step"),),
                V5P, hosts=4, cores=1, seed=646, steps=12, loop=LOOP, chips=Chips(jitter=0.012),
            ),
        ),
    ),
)  # fmt: skip

JOBS = (SLICES, CHECKPOINTS, ONSET, FLEET)

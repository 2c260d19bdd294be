"""Hosts and chips of which some are late, each for another reason, and what the rest do meanwhile."""

from __future__ import annotations

from tests.insight.cases.scenes import chore
from tests.insight.cases.shapes.dialects.models import Sizes, layer, layer_back
from tests.insight.cases.shapes.jobs.models import reducing, sliced
from tests.insight.cases.shapes.labs.domains.models import OLMO, SPLIT
from tests.insight.cases.shapes.labs.domains.trials.trial import Trial
from tests.insight.cases.shapes.labs.models import AXLEARN
from tests.insight.cases.shapes.shape import Plant, harmless, throttled
from tests.insight.simulator.code import V4, V5E, V5P
from tests.insight.simulator.parts import Callback
from tests.insight.simulator.play import MS, Chips, Loop
from tests.insight.simulator.scene import Scene
from tests.insight.simulator.schedules import AcrossSlices, OneForwardOneBackward
from tests.insight.simulator.stack import Gemms, Uneven

OF_FOUR = Sizes(8192, 2048, 8192, 16)
FOUR = Trial(
    "four-hosts",
    {
        "llama-v5e": Scene(
            (reducing(OLMO, OF_FOUR, 3, 16_384, name="jit_train_batch", model="Llama"),), V5E, hosts=4, cores=2,
            seed=1011, steps=17, chips=Chips(jitter=0.007),
            loop=Loop(fetch="$arrayrecord_loader.py:92 __next__", call="", batch_ps=2 * MS, put_ps=0.2 * MS),
        ),
    },
    {
        "host-2-starved": (
            "llama-v5e",
            Plant("straggler", ("host-2",), ("input",),
                  loop={"slow_every": 1, "slow_ps": 90 * MS, "slow_hosts": (2,)}),
        ),
        "host-1-reads-slowly-every-8th-step": (
            "llama-v5e",
            Plant("straggler", ("host-1",), ("input",), every=8,
                  loop={"slow_every": 8, "slow_ps": 400 * MS, "slow_hosts": (1,)}),
        ),
        "two-chips-throttled": (
            "llama-v5e",
            Plant("slow-core", ("host-3",), chips={"speed": ((3, 1.15), (6, 1.27))}),
        ),
        "chip-of-host-0-from-step-6": (
            "llama-v5e", Plant("slow-core", ("host-0",), since=6, **throttled(1, 1.3, 6)),
        ),
        "all-starved": (
            "llama-v5e", Plant("input", ("input", "make_batch", "arrayrecord"), loop={"batch_ps": 88 * MS}),
        ),
        "host-3-saves-once": (
            "llama-v5e",
            Plant(
                "straggler", ("host-3", "save_shard"), ("host", "idle", "slow-step"),
                chores=chore("$shard_writer.py:60 save_shard", 420, every=100, offset=9, hosts=(3,)),
            ),
        ),
    },
    (("host-3-saves-once", "two-chips-throttled"),),
    {
        "host-1-writes-on-another-thread": (
            "llama-v5e",
            harmless(chores=chore("$tb_writer.py:44 flush", 45, every=4, offset=1, thread="flusher/7701", hosts=(1,))),
        ),
    },
)  # fmt: skip

OF_STAGE = Sizes(2048, 3072, 8192, 24)
STAGED = OneForwardOneBackward(
    24, layer(SPLIT, OF_STAGE)[1:], layer_back(SPLIT, OF_STAGE), tokens=2048, width=3072, scope="circular_pipeline",
    source="pipeline_schedule.py:88", name="jit_pipelined_update",
)  # fmt: skip
STAGES = Trial(
    "stages-of-8",
    {
        "gpt-2-hosts-v5p": Scene(
            (STAGED,), V5P, hosts=2, cores=4, seed=1012, steps=7, chips=Chips(jitter=0.004),
            loop=Loop(fetch="$loader.py:61 __next__", call=""),
        ),
    },
    {
        "few-microbatches": (
            "gpt-2-hosts-v5p",
            Plant("pipeline", ("ppermute", "collective-permute", "pipeline"), ("imbalance",), work={"bubbles": True}),
        ),
        "fourth-stage-has-two-layers-more": (
            "gpt-2-hosts-v5p",
            Plant(
                "imbalance", ("extra_layers", "gpt.py:300", "host-0:3", "host-0", "ppermute", "collective-permute"),
                ("straggler", "pipeline"),
                Uneven((0, 0, 0, 8.0, 0, 0, 0, 0),
                       Gemms(((0, 0, 3072),), "extra_layers/dot_general", "gpt.py:300")),
                into="forward",
            ),
        ),
        "chip-of-the-sixth-stage": ("gpt-2-hosts-v5p", Plant("slow-core", ("host-1",), **throttled(5, 1.22))),
    },
    (),
)  # fmt: skip

OF_SLICED = Sizes(8192, 2048, 8192, 16)
SLICED = Trial(
    "two-slices",
    {
        "fuji-2-slices-of-2-hosts-v4": Scene(
            (sliced(AXLEARN, OF_SLICED, 2, 32, model="CausalLM", name="jit_train_multislice"),), V4, hosts=4, cores=2,
            seed=1013, steps=15, marks=False, chips=Chips(jitter=0.006),
            loop=Loop(fetch="$input_grain.py:411 __next__", call="", ahead=0, launch_ps=0.1 * MS, put_ps=0.1 * MS),
        ),
    },
    {
        "weights-fetched-from-the-other-slice": (
            "fuji-2-slices-of-2-hosts-v4",
            Plant(
                "dcn", ("recv", "slice", "DCN", "megascale", "restore_weights"), ("collective",),
                AcrossSlices(96, bad=True, scope="restore_weights/psum", source="trainer.py:640"), instead=(),
                into="first",
            ),
        ),
        "host-3-late-every-5th-step": (
            "fuji-2-slices-of-2-hosts-v4",
            Plant(
                "straggler", ("host-3",), ("host", "idle", "input", "slow-step"), every=5,
                chores=chore("$metrics_writer.py:55 write_summaries", 130, every=5, offset=2, hosts=(3,)),
            ),
        ),
        "losses-printed": (
            "fuji-2-slices-of-2-hosts-v4",
            Plant(
                "debug-print", ("debug_callback", "recv", "losses.py"), ("host", "host-offload"),
                Callback(us=3200, scope="losses/debug_callback", source="losses.py:91"),
            ),
        ),
    },
    (("host-3-late-every-5th-step", "weights-fetched-from-the-other-slice"),),
)  # fmt: skip

TRIALS = (FOUR, STAGES, SLICED)

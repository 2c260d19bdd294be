"""Steps that are not one run of one program after the other: microbatches, two programs, rhythms, mixed batches."""

from __future__ import annotations

from dataclasses import replace

from tests.insight.cases.scenes import chore
from tests.insight.cases.shapes.dialects.models import Sizes, layer, layer_back, trained
from tests.insight.cases.shapes.jobs.models import engine, reducing
from tests.insight.cases.shapes.labs.domains.models import AQT, OLMO
from tests.insight.cases.shapes.labs.domains.trials.trial import Trial
from tests.insight.cases.shapes.labs.models import PARALLEL
from tests.insight.cases.shapes.shape import Plant, harmless
from tests.insight.simulator.code import V4, V5E, V5P, V6E
from tests.insight.simulator.parts import Kernel
from tests.insight.simulator.play import MS, Chips, Loop
from tests.insight.simulator.scene import Scene
from tests.insight.simulator.spelled import Passes
from tests.insight.simulator.stack import Beside, Gemms, Stack
from tests.insight.simulator.tensors import Kept, RandomBits, Sort

OF_MICRO = Sizes(2048, 4096, 14_336, 32)
MICRO = Stack(
    2048, 4096, 1, layer(OLMO, OF_MICRO), layer_back(OLMO, OF_MICRO), micro=8, over="accumulate_gradients/while",
    rows=8192, model="Decoder", name="jit_accumulated_step", source="accumulate.py:40",
    once=(
        Beside(
            "reduce-scatter", 16_384, (Gemms(((0, 0, 16_384),) * 3, "embedder/decode/dot_general", "embedder.py:71"),),
            scope="mean_gradients/psum_scatter", source="accumulate.py:88",
        ),
    ),
)  # fmt: skip
ACCUMULATION = Trial(
    "accumulated",
    {
        "8-microbatches-v5p": Scene(
            (MICRO,), V5P, seed=1001, steps=16, chips=Chips(jitter=0.008),
            loop=Loop(fetch="$grain_iterator.py:140 __next__", call="", batch_ps=2 * MS),
        ),
    },
    {
        "gradients-summed-after-each-microbatch": (
            "8-microbatches-v5p",
            Plant(
                "collective", ("all-reduce", "sum_gradients", "accumulate.py:61"),
                part=Beside("all-reduce", 16_384, bad=True, scope="sum_gradients/psum", source="accumulate.py:61"),
                into="turn", instead=(),
            ),
        ),
        "loader-slow-every-8th-step": (
            "8-microbatches-v5p",
            Plant("input", ("input", "make_batch", "grain"), ("host", "idle"), every=8,
                  loop={"slow_every": 8, "slow_ps": 230 * MS}),
        ),
        "dropout-by-threefry": (
            "8-microbatches-v5p",
            Plant(
                "vector-work", ("threefry2x32", "_bernoulli", "dropout.py"), ("memory-bound", "unfused"),
                RandomBits(rows=2048, width=14_336, count=1, scope="mlp/dropout/_bernoulli/threefry2x32",
                           source="dropout.py:33"),
                into="each",
            ),
        ),
    },
    (("gradients-summed-after-each-microbatch", "dropout-by-threefry"),),
)  # fmt: skip

OF_TWO = Sizes(8192, 4096, 11_264, 32)
GRADIENTS = reducing(PARALLEL, OF_TWO, 2, 16_384, name="jit_loss_and_grads", model="Decoder", rows=0)
UPDATES = Stack(
    1024, 4096, 1,
    (Kernel(bad=False, good=0.8, flops=1e9, size=700 << 20, base="fused_adamw", scope="adamw/pallas_call",
            source="fused_adamw.py:52"),),
    rows=8192, model="Optimizer", name="jit_apply_updates", source="optimizer.py:30",
)  # fmt: skip
TWO_PROGRAMS = Trial(
    "two-programs",
    {
        "gradients-then-updates-2-hosts-v6e": Scene(
            (GRADIENTS, UPDATES), V6E, hosts=2, cores=2, seed=1002, steps=14, turns=((0, 1),), marks=False,
            chips=Chips(jitter=0.01),
            loop=Loop(fetch="$dataset_iter.py:77 __next__", call="", launch_ps=0.12 * MS, put_ps=0.1 * MS),
        ),
    },
    {
        "weights-not-donated-to-the-updates": (
            "gradients-then-updates-2-hosts-v6e",
            Plant(
                "copy", ("adamw/apply", "optimizer.py:44", "copy"), ("memory-bound",),
                Kept(rows=65_536, width=4096, count=3, scope="adamw/apply", source="optimizer.py:44"), program=1,
            ),
        ),
        "norms-fetched-and-logged-in-each-step": (
            "gradients-then-updates-2-hosts-v6e",
            Plant(
                "host", ("report_norms", "asarray"), ("idle",), loop={"ahead": 0},
                chores=chore("$norms.py:19 report_norms", 5),
            ),
        ),
        "moments-in-passes": (
            "gradients-then-updates-2-hosts-v6e",
            Plant(
                "unfused", ("adamw/moments", "optimizer.py:58"), ("memory-bound",),
                Passes(rows=16_384, width=4096, scope="adamw/moments/mul", source="optimizer.py:58"), program=1,
            ),
        ),
    },
    (("norms-fetched-and-logged-in-each-step", "moments-in-passes"),),
)  # fmt: skip

OF_RHYTHM = Sizes(4096, 2048, 8192, 16)
STEPPED = trained(OLMO, OF_RHYTHM, 3, 16_384, name="jit_micro_step", model="Decoder")
APPLIED = Stack(
    1024, 2048, 1,
    (Kernel(bad=False, good=0.82, flops=1e9, size=900 << 20, base="apply_adam", scope="multi_steps/pallas_call",
            source="multi_steps.py:66"),),
    model="MultiSteps", name="jit_apply_updates", source="multi_steps.py:60",
)  # fmt: skip
LONG_RHYTHM = Trial(
    "tens",
    {
        "gpt-v4": Scene(
            (STEPPED, APPLIED), V4, seed=1003, steps=41, turns=((0,),), chips=Chips(jitter=0.011),
            loop=Loop(fetch="$tfds_loader.py:31 __next__", call="", batch_ps=1 * MS, put_ps=0.1 * MS),
        ),
    },
    {
        "compiles-each-10th-step": (
            "gpt-v4",
            Plant(
                "compilation", ("ompil",), every=10,
                chores=chore("$compiler.py:361 backend_compile_and_load", 190, every=10, offset=4, before=True,
                             inside="$pjit.py:1560 _python_pjit_helper"),
            ),
        ),
        "loader-shuffles-every-8th-step": (
            "gpt-v4",
            Plant("input", ("input", "make_batch", "tfds"), ("host", "idle"), every=8,
                  loop={"slow_every": 8, "slow_ps": 160 * MS}),
        ),
        "first-batches-from-a-cold-cache": (
            "gpt-v4",
            Plant("input", ("input", "make_batch", "tfds"), ("host", "idle", "slow-step"),
                  loop={"slow_every": 1, "slow_ps": 60 * MS, "slow_until": 9}),
        ),
        "garbage-now-and-then": (
            "gpt-v4",
            Plant(
                "host", ("collect_generation", "gc.py"), ("idle", "slow-step"),
                chores=(
                    *chore("$gc.py:88 collect_generation", 120, every=100, offset=5),
                    *chore("$gc.py:88 collect_generation", 95, every=100, offset=18),
                    *chore("$gc.py:88 collect_generation", 140, every=100, offset=33),
                ),
            ),
        ),
        "one-checkpoint-in-the-middle": (
            "gpt-v4",
            Plant(
                "host", ("save_checkpoint", "msgpack"), ("idle", "slow-step"),
                chores=chore("$checkpoints.py:210 msgpack_serialize", 310, every=100, offset=21,
                             inside="$checkpoints.py:180 save_checkpoint"),
            ),
        ),
    },
    (("compiles-each-10th-step", "one-checkpoint-in-the-middle"),),
    {"applies-updates-every-8th-step": ("gpt-v4", harmless(scene={"turns": (*((0,),) * 7, (0, 1))}))},
)  # fmt: skip

SMALL, MIDDLE, LARGE = (
    replace(engine(batch, 4096, 8, 11_264, mib), variant=str(batch)) for batch, mib in ((16, 24), (64, 72), (256, 160))
)
BATCHES = Trial(
    "any-batch",
    {
        "vllm-v6e": Scene(
            (SMALL, MIDDLE, LARGE), V6E, cores=1, seed=1004, steps=44, marks=False, chips=Chips(jitter=0.009),
            turns=((1,), (0,), (1,), (2,), (0,), (0,), (1,), (2,), (2,), (0,), (1,)),
            loop=Loop(fetch="", call="", annotate=False, launch_ps=0.06 * MS, reading="$model_runner.py:901 _value"),
        ),
    },
    {
        "large-batches-sampled-by-sorting": (
            "vllm-v6e",
            Plant(
                "latency-bound", ("sample_top_p", "sampler.py", "sort"),
                part=Sort(rows=64, length=16_384, times=1, kind="f32", scope="sample_top_p/sort",
                          source="sampler.py:120"),
                program=2,
            ),
        ),
        "requests-scheduled-between-steps": (
            "vllm-v6e",
            Plant(
                "serving", ("schedule", "scheduler.py"), ("host", "idle"), loop={"ahead": 0},
                chores=chore("$scheduler.py:188 schedule", 0.9, before=True),
            ),
        ),
        "cache-copied-in-small-batches": (
            "vllm-v6e",
            Plant(
                "copy", ("kv_cache/write", "attention.py:301", "copy"), ("memory-bound",),
                Kept(rows=65_536, width=1024, count=4, scope="kv_cache/write", source="attention.py:301"), program=0,
            ),
        ),
    },
    (("requests-scheduled-between-steps", "cache-copied-in-small-batches"),),
)  # fmt: skip

EVALUATED = replace(trained(AQT, Sizes(4096, 2048, 8192, 16), 2, 16_384), name="jit_train", numbered="layer_{}")
JUDGED = Stack(
    4096, 2048, 3, layer(AQT, Sizes(4096, 2048, 8192, 16)), model="Decoder", name="jit_validation_loss",
    source="validate.py:20",
)  # fmt: skip
BETWEEN = Trial(
    "validated",
    {
        "6-steps-apart-v5e": Scene(
            (EVALUATED, JUDGED), V5E, hosts=2, cores=2, seed=1005, steps=24, marks=False,
            loop=Loop(fetch="$loader.py:55 __next__", call="", put_ps=0.1 * MS, batch_ps=1 * MS),
        ),
    },
    {
        "validates-every-6th-step": (
            "6-steps-apart-v5e",
            Plant(
                "slow-step", ("validation_loss",), every=6,
                scene={"turns": (*((0,),) * 5, (0, 1, 1, 1))},
            ),
        ),
        "scores-printed-by-host-1": (
            "6-steps-apart-v5e",
            Plant("straggler", ("host-1",), ("host", "idle"),
                  chores=chore("$console.py:40 print_scores", 26, hosts=(1,))),
        ),
    },
    (),
)  # fmt: skip

TRIALS = (ACCUMULATION, TWO_PROGRAMS, LONG_RHYTHM, BATCHES, BETWEEN)

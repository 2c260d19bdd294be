"""Problems at a rhythm, from a step on, or of one of several hosts, in models as other libraries write them."""

from __future__ import annotations

from tests.insight.cases.scenes import chore
from tests.insight.cases.shapes.dialects.models import BARE, HAIKU, LARGE, LINEN, Sizes, gathered, reads, trained
from tests.insight.cases.shapes.rhythms import PAUSES
from tests.insight.cases.shapes.shape import Plant, Shape, harmless, slow_kernel, throttled
from tests.insight.simulator.code import V4, V5E, V5P, V6E
from tests.insight.simulator.parts import BetweenSlices
from tests.insight.simulator.play import MS, Loop
from tests.insight.simulator.scene import Scene
from tests.insight.simulator.spelled import Taken, Turned

VALUE = "$array.py:612 _value"
LOOP = Loop(fetch="$dataloader.py:701 __next__", call="")
READING = Loop(fetch="$feed.py:52 take", call="", ahead=0, reading=VALUE)

OF_SMALL = Sizes(4096, 2048, 8192, 16)
VALIDATES = ("jit_validation_loss", "validation_loss")
RHYTHM = Shape(
    "rhythm",
    {
        "linen-v5p": Scene(
            (
                trained(LINEN, Sizes(4096, 2560, 10_240, 20), 3, 32_768, name="jit_train_step_fn", model="LM"),
                reads(Sizes(8192, 2560, 10_240, 20), 4, name="jit_validation_loss"),
            ),
            V5P, cores=2, seed=421, steps=24, loop=READING,
        ),
    },
    {
        "validates-every-3rd-step": (
            "linen-v5p", Plant("slow-step", VALIDATES, scene={"turns": ((0,), (0, 1), (0,))}, every=3)
        ),
        "writes-shards-every-6th-step": (
            "linen-v5p",
            Plant(
                "host", ("write_shards",), ("idle", "slow-step"), every=6,
                chores=chore("$serialization.py:77 write_shards", 70, every=6, offset=4),
            ),
        ),
        "compiles-every-4th-step": (
            "linen-v5p",
            Plant(
                "compilation", ("compil",), every=4,
                chores=chore("$compiler.py:318 backend_compile_and_load", 40, every=4, offset=1, before=True,
                             inside="$pxla.py:2970 compile"),
            ),
        ),
    },
    (("writes-shards-every-6th-step", "validates-every-3rd-step"),),
    half="held",
)  # fmt: skip

ONSET = Shape(
    "onset",
    {
        "equinox-v6e": Scene(
            (trained(BARE, Sizes(8192, 3072, 8192, 24), 3, 16_384, name="jit_make_step", model=""),),
            V6E, seed=422, steps=15, loop=LOOP, marks=False,
        ),
        "haiku-2-hosts-v4": Scene(
            (trained(HAIKU, OF_SMALL, 3, 32_768, numbered="lm/~/h{}", name="jit_update", model="lm"),),
            V4, hosts=2, cores=2, seed=423, steps=14, loop=READING,
        ),
    },
    {
        "chip-throttles-from-step-5": (
            "equinox-v6e", Plant("slow-core", ("host-0:1", "core 1", "TPU:1"), since=5, **throttled(1, 1.28, 5))
        ),
        "shuffle-buffer-empty-from-step-8": (
            "equinox-v6e",
            Plant("input", ("input",), since=8, loop={"slow_every": 1, "slow_ps": 60 * MS, "slow_since": 8}),
        ),
        "guards-from-step-6": (
            "haiku-2-hosts-v4",
            Plant(
                "host", ("raise_if_nan",), ("idle",), since=6,
                chores=chore("$guards.py:12 raise_if_nan", 26, since=6),
            ),
        ),
        "scan-kernel-in-all-steps": (
            "haiku-2-hosts-v4",
            slow_kernel("rglru", 0.12, "rglru.py:88", 96, flops=0.02e12, scope="recurrent"),
        ),
    },
    (("guards-from-step-6", "scan-kernel-in-all-steps"),),
    half="held",
)  # fmt: skip

HOSTS = Shape(
    "hosts",
    {
        "maxtext-3-hosts-v5p": Scene(
            (gathered(LARGE, Sizes(4096, 3072, 12_288, 24), 3, 6, model="Transformer/decoder"),),
            V5P, hosts=3, cores=2, seed=424, steps=15, loop=READING, marks=False,
        ),
    },
    {
        "host-1-tokenizes-each-step": (
            "maxtext-3-hosts-v5p",
            Plant("straggler", ("host-1",), PAUSES, chores=chore("$sentencepiece.py:88 encode", 14, hosts=(1,))),
        ),
        "host-0-logs-every-3rd-step": (
            "maxtext-3-hosts-v5p",
            Plant(
                "straggler", ("host-0",), PAUSES, every=3,
                chores=chore("$max_logging.py:22 log", 40, every=3, offset=1, hosts=(0,)),
            ),
        ),
        "positions-taken-row-by-row": (
            "maxtext-3-hosts-v5p",
            Plant(
                "latency-bound",
                ("position_embedder", "embeddings.py"),
                part=Taken(
                    rows=50_000, width=256, scope="position_embedder/take", source="embeddings.py:70",
                ),
                into="first",
            ),
        ),
    },
    (("host-1-tokenizes-each-step", "positions-taken-row-by-row"),),
    {
        "profiles-itself-in-the-background": (
            "maxtext-3-hosts-v5p",
            harmless(chores=chore("$telemetry.py:41 flush", 60, every=4, offset=2, hosts=(1,), thread="sender/6400")),
        ),
    },
    half="held",
)  # fmt: skip

FLEET = Shape(
    "fleet",
    {
        "linen-6-hosts-v5e": Scene(
            (trained(LINEN, OF_SMALL, 3, 32_768, scanned=True, name="jit_train_step_fn", model="LM"),),
            V5E, hosts=6, cores=2, seed=425, steps=16, loop=READING,
        ),
    },
    {
        "host-4-swaps-every-4th-step": (
            "linen-6-hosts-v5e",
            Plant(
                "straggler", ("host-4",), PAUSES, every=4,
                chores=chore("$loop.py:140 after_step", 85, every=4, offset=2, hosts=(4,)),
            ),
        ),
        "slices-wait-for-gradients": (
            "linen-6-hosts-v5e",
            Plant(
                "dcn", ("recv", "slice", "DCN", "megascale"), ("collective",),
                BetweenSlices(mib=72, scope="pmean_across_slices", source="steps.py:61"),
            ),
        ),
        "logits-turned": (
            "linen-6-hosts-v5e",
            Plant(
                "copy",
                ("swapaxes", "losses.py"),
                ("shuffle",),
                Turned(count=2, rows=32_768, scope="swapaxes/transpose", source="losses.py:93"),
            ),
        ),
        "chip-of-host-5-at-86-percent": (
            "linen-6-hosts-v5e", Plant("slow-core", ("host-5",), **throttled(10, 1.16))
        ),
    },
    (
        ("host-4-swaps-every-4th-step", "slices-wait-for-gradients"),
        ("chip-of-host-5-at-86-percent", "logits-turned"),
    ),
    half="held",
)  # fmt: skip

SHAPES = (RHYTHM, ONSET, HOSTS, FLEET)

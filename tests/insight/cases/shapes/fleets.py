"""Programs whose cores wait for each other: many hosts with one that is late, and rings of cores over a long text."""

from __future__ import annotations

from dataclasses import replace

from tests.insight.cases.scenes import chore
from tests.insight.cases.shapes.models import decoder, ring
from tests.insight.cases.shapes.rhythms import EVALUATES, PAUSES, READING, evaluation
from tests.insight.cases.shapes.shape import Plant, Shape, harmless, throttled, transposed
from tests.insight.simulator.code import V4, V5P, V6E
from tests.insight.simulator.parts import Chain, Kernel, Lookup
from tests.insight.simulator.play import MS, Loop
from tests.insight.simulator.scene import Scene
from tests.insight.simulator.stack import Uneven

LOOP = Loop(call="")

FLEET = Shape(
    "fleet",
    {
        "4-hosts-v5p": Scene(
            (decoder(8192, layers=3), evaluation(8192, 4)), V5P, hosts=4, cores=2, seed=331, steps=20, loop=READING,
        ),
        "3-hosts-v4": Scene(
            (decoder(layers=2),), V4, hosts=3, cores=2, seed=332, steps=18, loop=replace(READING, fetch=""), marks=False
        ),
    },
    {
        "host-2-pauses-every-5th-step": (
            "4-hosts-v5p",
            Plant(
                "straggler", ("host-2",), PAUSES, every=5,
                chores=chore("$gc collect", 60, every=5, offset=3, hosts=(2,)),
            ),
        ),
        "chip-of-host-2-throttles-from-step-8": (
            "4-hosts-v5p", Plant("slow-core", ("host-2",), since=8, **throttled(5, 1.35, 8))
        ),
        "loader-of-host-3-slows-from-step-9": (
            "4-hosts-v5p",
            Plant(
                "straggler", ("host-3",), ("input",), since=9,
                loop={"slow_every": 1, "slow_ps": 50 * MS, "slow_hosts": (3,), "slow_since": 9},
            ),
        ),
        "evaluates-every-5th-step": (
            "4-hosts-v5p", Plant("slow-step", EVALUATES, scene={"turns": (*((0,),) * 4, (0, 1, 1))}, every=5)
        ),
        "host-1-compiles-once": (
            "3-hosts-v4",
            Plant(
                "compilation", ("compil", "host-1"), ("straggler",),
                chores=chore("backend_compile_and_load", 140, every=18, offset=6, before=True, hosts=(1,)),
            ),
        ),
        "host-0-writes-each-step": (
            "3-hosts-v4",
            Plant("straggler", ("host-0",), PAUSES, chores=chore("$logger.py:70 write_metrics", 9, hosts=(0,))),
        ),
        "chip-of-host-2": ("3-hosts-v4", Plant("slow-core", ("host-2",), **throttled(4, 1.24))),
        "embeddings-row-by-row": (
            "3-hosts-v4",
            Plant(
                "latency-bound",
                ("embed/take", "embed.py"),
                part=Lookup(rows=50_000, scope="embed/take", source="embed.py:15"),
                into="first",
            ),
        ),
    },
    (
        ("host-2-pauses-every-5th-step", "evaluates-every-5th-step"),
        ("host-2-pauses-every-5th-step", "chip-of-host-2-throttles-from-step-8"),
        ("host-0-writes-each-step", "embeddings-row-by-row"),
        ("chip-of-host-2", "embeddings-row-by-row"),
    ),
    {
        "logs-while-devices-work": (
            "4-hosts-v5p", harmless(loop={"ahead": 1}, chores=chore("$logger.py:70 write_metrics", 6, hosts=(0,)))
        ),
        "collects-garbage-on-another-thread": (
            "4-hosts-v5p",
            harmless(chores=chore("$gc collect", 60, every=5, offset=3, hosts=(2,), thread="collector/6300")),
        ),
    },
)  # fmt: skip

LONG, LONG_2 = ring(8192, 4, late=True), ring(8192, 8, late=True)
SENT = ("collective-permute", "ppermute")
RINGS = Shape(
    "ring",
    {
        "v5p": Scene((ring(8192, 4),), V5P, seed=341, steps=10, loop=LOOP),
        "2-hosts-v6e": Scene((ring(8192, 8),), V6E, hosts=2, seed=342, steps=8, loop=LOOP, marks=False),
    },
    {
        "blocks-sent-late": ("v5p", Plant("collective", SENT, ("pipeline",), work={"each": LONG.each})),
        "blocks-sent-late-2-hosts": (
            "2-hosts-v6e", Plant("collective", SENT, ("pipeline",), work={"each": LONG_2.each})
        ),
        "early-tokens-attend-to-less": (
            "2-hosts-v6e",
            Plant(
                "imbalance",
                ("causal_blocks", "causal.py", "collective-permute", "all-reduce"),
                ("straggler",),
                Uneven(
                    (0.2, 0.4, 0.7, 0.9, 1.1, 1.3, 1.6, 1.8),
                    Kernel(
                        bad=False, counted=False, flops=2.2e12, base="causal_flash", scope="causal_blocks/pallas_call",
                        source="causal.py:22",
                    ),
                ),
                into="each",
            ),
        ),
        "rotary-in-passes": (
            "v5p",
            Plant(
                "unfused",
                ("rotary", "rotary.py"),
                ("memory-bound",),
                Chain(count=6, rows=32_768, width=4096, scope="rotary/mul", source="rotary.py:13"),
                into="each",
            ),
        ),
        "texts-transposed": (
            "2-hosts-v6e",
            transposed("texts/transpose", "packing.py:9", 2, 65_536, 4096, into="first"),
        ),
        "chip-at-90-percent": ("v5p", Plant("slow-core", ("host-0:1", "core 1", "TPU:1"), **throttled(1, 1.11))),
    },
    (("blocks-sent-late", "rotary-in-passes"), ("early-tokens-attend-to-less", "texts-transposed")),
)  # fmt: skip

SHAPES = (FLEET, RINGS)

"""Healthy programs: near the roof, well overlapped, or bound by what cannot be helped. Nothing is to be found."""

from __future__ import annotations

from dataclasses import replace

from tests.insight.cases.case import fine
from tests.insight.cases.scenes import (
    ALONE,
    DECODE_V5E,
    DECODE_V6E,
    FSDP_V5P,
    PREFILL,
    SCANNED_V6E,
    SERVING,
    SMALL_TRAIN,
    TRAIN_2_HOSTS,
    TRAIN_V4,
    TRAIN_V5E,
    TRAIN_V5P,
    TRAIN_V6E,
    UNCOUNTED_V6E,
    UNMARKED,
    chore,
)
from tests.insight.simulator.code import V4, V5P
from tests.insight.simulator.parts import Activations, Experts, Infeed, Kernel, Lookup, OnSome, Prefetch, Products
from tests.insight.simulator.play import MS, Chips, Loop
from tests.insight.simulator.scene import Memory, Scene
from tests.insight.simulator.workloads import Decode, Pipeline, Train

CASES = (
    fine("healthy-train-v5e", TRAIN_V5E),
    fine("healthy-train-uncounted-attention-v6e", TRAIN_V6E),
    fine("healthy-train-8-cores-v5p", TRAIN_V5P),
    fine("healthy-train-4-hosts-v4", TRAIN_V4),
    fine("healthy-train-2-hosts-v5e", TRAIN_2_HOSTS),
    fine("healthy-fsdp-v5p", FSDP_V5P),
    fine("healthy-scanned-layers-v6e", SCANNED_V6E),
    fine("healthy-decode-v5e", DECODE_V5E),
    fine(
        "healthy-decode-counted-v6e",
        replace(DECODE_V6E, work=(Decode(model_parallel=False, attention="counted", batch=96),)),
    ),
    fine(
        "healthy-decode-of-8-bits-v5p",
        Scene(
            (Decode(model_parallel=False, kind="s8", layers=8),),
            V5P,
            cores=1,
            seed=71,
            steps=16,
            loop=ALONE,
            marks=False,
        ),
    ),
    fine("healthy-serving-mixed-phases-v6e", SERVING),
    fine("healthy-prefill-v5p", Scene((replace(PREFILL, layers=4),), V5P, cores=1, seed=72, loop=ALONE, marks=False)),
    fine("healthy-jitter-v5e", replace(TRAIN_V5E, chips=Chips(jitter=0.025), seed=73)),
    fine("healthy-clock-ahead-v5p", replace(TRAIN_V5P, chips=Chips(ahead_ps=700_000_000), seed=74)),
    fine("healthy-no-hlo-no-marks-v5e", replace(TRAIN_V5E, hlo=False, marks=False, loop=UNMARKED, seed=75)),
    fine("healthy-memory-at-88-percent-v6e", replace(TRAIN_V6E, memory=Memory(0.78, 0.1), seed=76)),
    fine("healthy-pipeline-of-many-v5p", Scene((Pipeline(8, False),), V5P, seed=77)),
    fine(
        "healthy-experts-v5e",
        replace(
            TRAIN_V5E,
            seed=78,
            work=(Train(layers=4, each=(Experts((1.02, 0.99, 1.0, 0.99), hidden=16_384, tokens=8192),)),),
        ),
    ),
    fine(
        "healthy-logs-while-the-device-works-v5e",
        replace(TRAIN_V5E, seed=79, loop=Loop(chores=chore("$event_file_writer.py:51 write_scalars", 12, every=4))),
    ),
    fine("healthy-infeed-v4", Scene((Train(tokens=4096, first=(Infeed(25),)),), V4, seed=80)),
    fine(
        "healthy-f32-at-default-precision-v5p",
        replace(
            TRAIN_V5P,
            seed=81,
            work=(
                Train(
                    width=4096,
                    hidden=14_336,
                    layers=3,
                    once=(Products(512, 512, 512, kind="f32", scope="router/dot_general"),),
                ),
            ),
        ),
    ),
    fine(
        "healthy-fast-gathers-v6e",
        replace(
            TRAIN_V6E,
            seed=82,
            work=(Train(tokens=16_384, once=(Lookup(bad=False, rows=500_000), Activations(bad=False, rows=32_768))),),
        ),
    ),
    fine("healthy-prefetched-weights-v5e", replace(TRAIN_V5E, seed=83, work=(Train(each=(Prefetch(bad=False),)),))),
    fine(
        "healthy-kernels-near-the-roof-v5p",
        Scene((Train(layers=3, each=(Kernel(0.85, flops=2e12, base="grouped_matmul"),)),), V5P, cores=4, seed=84),
    ),
    fine("healthy-uncounted-kernels-dominate-v6e", UNCOUNTED_V6E),
    fine("healthy-optimizer-heavy-v5e", SMALL_TRAIN),
    fine(
        "healthy-generates-in-a-loop-v6e",
        replace(DECODE_V6E, steps=6, work=(Decode(model_parallel=False, batch=128, cache_mib=96, tokens=48),)),
    ),
    fine("healthy-reads-each-loss-of-long-steps-v5e", replace(TRAIN_V5E, seed=88, loop=Loop(ahead=0))),
    fine(
        "healthy-compiles-in-the-background-v5p",
        replace(
            TRAIN_V5P,
            seed=89,
            loop=Loop(chores=chore("backend_compile_and_load", 300, every=5, offset=2, thread="compile-ahead/6001")),
        ),
    ),
    fine(
        "healthy-saves-in-the-background-v4",
        replace(
            TRAIN_V4,
            seed=90,
            loop=Loop(chores=chore("$async_checkpointer.py:99 save", 90, every=4, offset=1, thread="async-save/6002")),
        ),
    ),
    fine("healthy-recomputes-norms-only-v5e", replace(TRAIN_V5E, seed=91, work=(Train(remat="norms"),))),
    fine(
        "healthy-one-step-a-little-longer-v6e",
        replace(TRAIN_V6E, seed=92, steps=14, chips=Chips(slow_steps=((6, 1.3),))),
    ),
    fine(
        "healthy-one-core-a-little-busier-v4",
        replace(TRAIN_V4, seed=86, work=(Train(tokens=4096, once=(OnSome((1.0, 1.05), m=512),)),)),
    ),
    fine("healthy-input-just-in-time-v5e", replace(TRAIN_V5E, seed=87, loop=Loop(batch_ps=60 * MS))),
)

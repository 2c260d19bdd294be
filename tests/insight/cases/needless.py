"""What XProf suggests too: prints for debugging, barriers, shuffled data, waits for SparseCores; and look-alikes."""

from __future__ import annotations

from dataclasses import replace

from tests.insight.cases.case import fine, part_problem
from tests.insight.cases.scenes import (
    DECODE_V6E,
    SHORT_V5E,
    SHORT_V5P,
    SMALL,
    TRAIN_2_HOSTS,
    TRAIN_V4,
    TRAIN_V5E,
    TRAIN_V5P,
    TRAIN_V6E,
)
from tests.insight.simulator.code import V6E
from tests.insight.simulator.parts import Barrier, Callback, Chain, OnSparseCore, Rearranged
from tests.insight.simulator.scene import Scene
from tests.insight.simulator.workloads import Decode, Train

DEBUG_PRINT = (
    part_problem(
        "prints-the-loss-v5e",
        "debug-print",
        TRAIN_V5E,
        Callback(us=4000, scope="loss/debug_callback", source="train.py:61"),
        ["debug_callback", "train.py:61"],
    ),
    part_problem(
        "prints-in-each-layer-v5p",
        "debug-print",
        TRAIN_V5P,
        Callback(us=1500, scope="mlp/debug_print", source="mlp.py:47"),
        ["debug_print", "mlp.py:47"],
        field="each",
    ),
    part_problem(
        "prints-each-token-decode-v6e",
        "debug-print",
        DECODE_V6E,
        Callback(us=420, scope="sampler/debug_print", source="sampler.py:80"),
        ["debug_print", "sampler.py:80"],
    ),
    part_problem(
        "prints-the-norm-of-gradients-4-hosts-v4",
        "debug-print",
        TRAIN_V4,
        Callback(us=2500, scope="clip/debug_callback", source="optimizer.py:30"),
        ["debug_callback", "optimizer.py:30"],
    ),
    part_problem(
        "prints-beside-a-callback-v6e",
        "debug-print",
        replace(TRAIN_V6E, work=(Train(tokens=16_384, once=(*SMALL, Callback(us=400))),)),
        Callback(us=5200, scope="router/debug_print", source="moe.py:70"),
        ["debug_print", "moe.py:70"],
    ),
)

BARRIER = (
    part_problem("barrier-in-each-layer-v5e", "barrier", TRAIN_V5E, Barrier(us=900), ["barrier"], field="each"),
    part_problem("barrier-before-each-step-v5p", "barrier", SHORT_V5P, Barrier(us=4000), ["barrier"], field="first"),
    part_problem(
        "barrier-before-each-step-2-hosts-v5e", "barrier", TRAIN_2_HOSTS, Barrier(us=9000), ["barrier"], field="first"
    ),
    part_problem(
        "barrier-in-each-layer-of-decode-v6e",
        "barrier",
        Scene((Decode(cache_mib=96, batch=128),), V6E, cores=4, seed=111, steps=16, marks=False),
        Barrier(us=60),
        ["barrier"],
        field="each",
    ),
)

SHUFFLE = (
    part_problem(
        "joins-heads-in-each-layer-v5e",
        "shuffle",
        TRAIN_V5E,
        Rearranged(rows=8192),
        ["attention/concatenate", "attention.py:83"],
        field="each",
    ),
    part_problem(
        "pads-the-batch-v5p",
        "shuffle",
        SHORT_V5P,
        Rearranged(rows=131_072, pads=True, scope="batch/pad", source="batch.py:14"),
        ["batch/pad", "batch.py:14"],
    ),
    part_problem(
        "rolls-the-cache-decode-v6e",
        "shuffle",
        DECODE_V6E,
        Rearranged(rows=4096, count=1, fuses=True, scope="cache/roll/concatenate", source="kv_cache.py:66"),
        ["cache/roll", "kv_cache.py:66"],
        field="each",
    ),
    part_problem(
        "splits-and-joins-activations-v6e",
        "shuffle",
        TRAIN_V6E,
        Rearranged(rows=65_536, count=3, reached=0.55, scope="rope/concatenate", source="rope.py:21"),
        ["rope", "rope.py:21"],
    ),
)

SPARSE_CORE = (
    part_problem(
        "gathers-on-a-sparse-core-v5p",
        "sparse-core",
        TRAIN_V5P,
        OnSparseCore(us=7000),
        ["all-gather", "sharding.py:25"],
        field="each",
    ),
    part_problem(
        "reduces-on-a-sparse-core-v6e",
        "sparse-core",
        TRAIN_V6E,
        OnSparseCore(us=4000, opcode="all-reduce", scope="loss/psum", source="loss.py:40"),
        ["all-reduce", "loss.py:40"],
        field="each",
    ),
    part_problem(
        "scatters-on-a-sparse-core-v5e",
        "sparse-core",
        TRAIN_V5E,
        OnSparseCore(us=9000, opcode="reduce-scatter", scope="gradients/psum_scatter", source="train.py:97"),
        ["reduce-scatter", "train.py:97"],
    ),
    part_problem(
        "exchanges-on-a-sparse-core-2-hosts",
        "sparse-core",
        TRAIN_2_HOSTS,
        OnSparseCore(us=12_000, opcode="all-to-all", scope="moe/all_to_all", source="moe.py:90"),
        ["all-to-all", "moe.py:90"],
    ),
)

HEALTHY = (
    fine(
        "healthy-gathers-on-a-sparse-core-v6e",
        replace(TRAIN_V6E, seed=127, work=(Train(tokens=16_384, each=(OnSparseCore(us=60),)),)),
    ),
    fine(
        "healthy-barriers-that-nobody-waits-at-v5e", replace(TRAIN_V5E, seed=121, work=(Train(each=(Barrier(us=2),)),))
    ),
    fine(
        "healthy-barrier-before-each-step-v5p",
        replace(TRAIN_V5P, seed=122, work=(replace(TRAIN_V5P.work[0], first=(Barrier(us=40),)),)),  # type: ignore[type-var]
    ),
    fine(
        "healthy-scopes-named-debug-v6e",
        replace(
            TRAIN_V6E,
            seed=123,
            work=(Train(tokens=16_384, once=(Chain(bad=False, scope="debug_print_head/mul", source="debug.py:3"),)),),
        ),
    ),
    fine(
        "healthy-a-short-print-v5e",
        replace(SHORT_V5E, seed=124, work=(Train(tokens=4096, once=(Callback(us=60, scope="loss/debug_callback"),)),)),
    ),
    fine(
        "healthy-joins-a-little-v5e",
        replace(TRAIN_V5E, seed=125, work=(Train(once=(Rearranged(rows=8192, count=1),)),)),
    ),
    fine(
        "healthy-pads-a-little-decode-v6e",
        replace(
            DECODE_V6E,
            seed=126,
            work=(Decode(model_parallel=False, batch=96, once=(Rearranged(rows=512, pads=True),)),),
        ),
    ),
)

CASES = tuple(replace(case, later=" needless") for case in (*DEBUG_PRINT, *BARRIER, *SHUFFLE, *SPARSE_CORE, *HEALTHY))

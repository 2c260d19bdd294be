"""Problems of memory: ops bound by latency or traffic, copies, waits for copies, loops of tiny ops."""

from __future__ import annotations

from dataclasses import replace

from tests.insight.cases.case import part_problem
from tests.insight.cases.scenes import DECODE_V6E, SHORT_V5P, TRAIN_V4, TRAIN_V5E, TRAIN_V5P, TRAIN_V6E
from tests.insight.simulator.code import V5E
from tests.insight.simulator.parts import (
    Activations,
    Callback,
    Chain,
    Lookup,
    Offload,
    Prefetch,
    Relayouts,
    Slices,
    TinyLoop,
)
from tests.insight.simulator.scene import Scene
from tests.insight.simulator.workloads import Train

LATENCY = (
    part_problem(
        "gather-of-embeddings-v5e", "latency-bound", TRAIN_V5E, Lookup(rows=131_072), ["token_embed", "embedding.py"]
    ),
    part_problem(
        "scatter-add-of-gradients-v6e",
        "latency-bound",
        TRAIN_V6E,
        Lookup(
            opcode="scatter",
            rows=98_304,
            ns_a_row=90,
            times=2,
            base="scatter_custom_fusion",
            scope="transpose(jvp(embed))/scatter-add",
            source="embedding.py:31",
        ),
        ["scatter"],
    ),
    part_problem(
        "slices-of-the-cache-v5p",
        "latency-bound",
        SHORT_V5P,
        Slices(count=150, us=9),
        ["cache"],
        field="each",
    ),
    part_problem(
        "updates-of-the-cache-decode-v6e",
        "latency-bound",
        DECODE_V6E,
        Slices(count=12, us=11, opcode="dynamic-update-slice", scope="cache/dynamic_update_slice"),
        ["cache"],
        field="each",
    ),
    part_problem(
        "gather-of-features-recommender-v4",
        "latency-bound",
        replace(TRAIN_V4, work=(Train(tokens=2048, width=1024, hidden=4096, layers=2, exchange=""),)),
        Lookup(
            rows=32_768,
            table=2_000_000,
            width=32,
            ns_a_row=70,
            times=2,
            scope="features/gather",
            source="features.py:40",
        ),
        ["features"],
    ),
)

TINY_LOOP = (
    part_problem("recurrence-of-2000-turns-v5e", "tiny-loop", TRAIN_V5E, TinyLoop(trips=2000), ["ssm", "scan.py"]),
    part_problem(
        "sampling-of-400-turns-decode-v6e",
        "tiny-loop",
        replace(DECODE_V6E, steps=12),
        TinyLoop(trips=400, us=2.2, scope="sampler/while", source="sampler.py:77"),
        ["sampler"],
    ),
    part_problem(
        "recurrence-in-each-layer-v5p",
        "tiny-loop",
        TRAIN_V5P,
        TinyLoop(trips=900, us=5.0),
        ["ssm", "scan.py"],
        field="each",
    ),
)

COPY = (
    part_problem(
        "transposes-in-each-layer-v5e",
        "copy",
        TRAIN_V5E,
        Relayouts(count=6),
        ["attention/transpose", "attention.py:77"],
        field="each",
    ),
    part_problem(
        "transposes-once-v6e",
        "copy",
        TRAIN_V6E,
        Relayouts(count=8, rows=32_768, width=4096),
        ["attention/transpose", "attention.py:77"],
    ),
)

COPY_WAIT = (
    part_problem(
        "weights-fetched-late-v5e",
        "copy-wait",
        TRAIN_V5E,
        Prefetch(count=6, rows=8192, slowness=4),
        ["copy-done"],
        field="each",
    ),
    part_problem(
        "slices-fetched-late-v6e",
        "copy-wait",
        TRAIN_V6E,
        Prefetch(count=8, rows=16_384, slowness=3, sliced=True),
        ["slice-done", "slice-start"],
        field="each",
    ),
    part_problem(
        "weights-fetched-late-v5p",
        "copy-wait",
        replace(TRAIN_V5P, marks=False),
        Prefetch(count=10, rows=8192, width=4096, slowness=8),
        ["copy-done"],
        field="each",
    ),
)

UNFUSED = (
    part_problem(
        "augmentation-unfused-v5e", "unfused", TRAIN_V5E, Chain(count=7, rows=65_536, width=2048), ["augment"]
    ),
    part_problem(
        "augmentation-unfused-f32-v5p",
        "unfused",
        TRAIN_V5P,
        Chain(count=6, rows=131_072, width=8192, kind="f32"),
        ["augment"],
    ),
    part_problem(
        "activation-unfused-v4",
        "unfused",
        TRAIN_V4,
        Chain(count=5, rows=16_384, width=8192, scope="mlp/gelu", source="mlp.py:43"),
        ["gelu", "mlp.py:43"],
        field="each",
    ),
)

MEMORY_BOUND = (
    part_problem(
        "norms-in-f32-v5e",
        "memory-bound",
        Scene((Train(layers=3),), V5E, seed=61),
        Activations(rows=32_768, count=4),
        ["final_norm", "norm.py"],
        ["precision"],
        field="each",
    ),
    part_problem(
        "norms-at-half-of-hbm-v6e",
        "memory-bound",
        TRAIN_V6E,
        Activations(rows=32_768, count=5, kind="bf16", reached=0.42),
        ["final_norm", "norm.py"],
        field="each",
    ),
)

HOST_OFFLOAD = (
    part_problem(
        "activations-to-the-host-v5e",
        "host-offload",
        TRAIN_V5E,
        Offload(),
        ["copy-start", "copy-done", "offload"],
        field="each",
    ),
    part_problem(
        "activations-to-the-host-v6e",
        "host-offload",
        TRAIN_V6E,
        Offload(rows=32_768, count=1),
        ["copy-start", "copy-done", "offload"],
    ),
    part_problem(
        "callback-in-each-step-v5p",
        "host-offload",
        TRAIN_V5P,
        Callback(us=60_000),
        ["recv", "callback", "io_callback"],
        ["host"],
    ),
    part_problem(
        "callback-in-each-step-unmarked-v4",
        "host-offload",
        replace(TRAIN_V4, marks=False),
        Callback(us=4500),
        ["recv", "callback", "io_callback"],
        ["host"],
    ),
)

CASES = (*LATENCY, *TINY_LOOP, *COPY, *COPY_WAIT, *UNFUSED, *MEMORY_BOUND, *HOST_OFFLOAD)

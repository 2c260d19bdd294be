"""Problems between cores: exposed collectives, late, slow and overloaded cores, pipelines, other slices."""

from __future__ import annotations

from dataclasses import replace

from tests.insight.cases.case import part_problem, problem
from tests.insight.cases.scenes import (
    FSDP_V5P,
    TRAIN_2_HOSTS,
    TRAIN_V4,
    TRAIN_V5E,
    TRAIN_V5P,
    TRAIN_V6E,
    UNCOUNTED_V6E,
    chore,
)
from tests.insight.simulator.code import V5E, V5P, V6E
from tests.insight.simulator.parts import BetweenSlices, Experts, Lookup, OnSome
from tests.insight.simulator.play import MS, Loop
from tests.insight.simulator.scene import Scene
from tests.insight.simulator.workloads import Pipeline, Train

BLOCKING = Loop(ahead=0)
"""A loop that reads each result before it goes on."""

COLLECTIVE = (
    problem("all-reduce-exposed-v5e", "collective", TRAIN_V5E, ["all-reduce"], work={"overlap": False}),
    problem("all-gather-late-v5p", "collective", FSDP_V5P, ["all-gather"], work={"gather_late": True}),
    problem("all-reduce-exposed-4-hosts-v4", "collective", TRAIN_V4, ["all-reduce"], work={"overlap": False}),
    problem("all-reduce-exposed-unmarked-v6e", "collective", TRAIN_V6E, ["all-reduce"], work={"overlap": False}),
)

STRAGGLER = (
    part_problem(
        "straggler-extra-work-v5e",
        "straggler",
        TRAIN_V5E,
        OnSome((0.0, 0.0, 1.0, 0.0), shared=False, m=16_384, n=16_384),
        ["host-0:2", "core 2", "TPU:2", "aux_loss"],
        ["imbalance"],
    ),
    problem(
        "straggler-host-tokenizes-2-hosts-v5e",
        "straggler",
        replace(TRAIN_2_HOSTS, loop=BLOCKING),
        ["host-1"],
        ["host", "idle"],
        loop={"chores": chore("$tokenizer.py:18 tokenize", 9, before=True, hosts=(1,))},
    ),
    problem(
        "straggler-host-late-4-hosts-v4",
        "straggler",
        replace(TRAIN_V4, loop=BLOCKING),
        ["host-2"],
        ["host", "idle"],
        loop={"late": ((2, 6 * MS),)},
    ),
    problem(
        "straggler-input-of-host-1-v5e",
        "straggler",
        TRAIN_2_HOSTS,
        ["host-1"],
        ["input"],
        loop={"slow_every": 1, "slow_ps": 100 * MS, "slow_hosts": (1,)},
    ),
)

SLOW_CORE = (
    problem("slow-core-v5e", "slow-core", TRAIN_V5E, ["host-0:1", "core 1", "TPU:1"], chips={"speed": ((1, 1.18),)}),
    problem("slow-core-on-host-1-v5e", "slow-core", TRAIN_2_HOSTS, ["host-1"], chips={"speed": ((6, 1.3),)}),
    problem(
        "slow-core-unmarked-v6e", "slow-core", TRAIN_V6E, ["host-0:3", "core 3", "TPU:3"], chips={"speed": ((3, 1.09),)}
    ),
)

PIPELINE = (
    problem(
        "pipeline-of-4-v5p",
        "pipeline",
        Scene((Pipeline(bubbles=False),), V5P, seed=41),
        ["ppermute", "collective-permute", "pipeline", "stage"],
        work={"bubbles": True},
    ),
    problem(
        "pipeline-of-8-v6e",
        "pipeline",
        Scene((Pipeline(12, False, tokens=8192),), V6E, cores=8, seed=42, steps=8, marks=False),
        ["ppermute", "collective-permute", "pipeline", "stage"],
        work={"bubbles": True},
    ),
)

IMBALANCE = (
    part_problem(
        "experts-one-favourite-v5e",
        "imbalance",
        TRAIN_V5E,
        Experts((2.2, 0.6, 0.6, 0.6), hidden=8192, tokens=8192),
        ["all-to-all", "expert", "moe"],
        field="each",
    ),
    part_problem(
        "experts-changing-favourites-v5p",
        "imbalance",
        TRAIN_V5P,
        Experts((1.9, 1.3, 1.0, 0.9, 0.8, 0.8, 0.7, 0.6), hidden=16_384, tokens=8192, rotates=True),
        ["all-to-all", "expert", "moe"],
        field="each",
    ),
)

DCN = (
    part_problem(
        "dcn-all-reduce-2-slices-v5p",
        "dcn",
        replace(TRAIN_V5P, hosts=2, cores=4),
        BetweenSlices(mib=384),
        ["recv", "slice", "DCN", "megascale"],
    ),
    part_problem(
        "dcn-all-reduce-4-hosts-v5e",
        "dcn",
        Scene((Train(layers=3),), V5E, hosts=4, cores=2, seed=43),
        BetweenSlices(mib=96),
        ["recv", "slice", "DCN", "megascale"],
    ),
)

BESIDE_UNCOUNTED = (
    problem(
        "all-reduce-exposed-beside-uncounted-kernels-v6e",
        "collective",
        UNCOUNTED_V6E,
        ["all-reduce"],
        work={"overlap": False},
    ),
    part_problem(
        "gather-beside-uncounted-kernels-v6e",
        "latency-bound",
        UNCOUNTED_V6E,
        Lookup(rows=98_304, ns_a_row=80),
        ["token_embed", "embedding.py"],
    ),
    problem(
        "slow-core-beside-uncounted-kernels-v6e",
        "slow-core",
        UNCOUNTED_V6E,
        ["host-0:2", "core 2", "TPU:2"],
        chips={"speed": ((2, 1.12),)},
    ),
)

CASES = (*BESIDE_UNCOUNTED, *COLLECTIVE, *STRAGGLER, *SLOW_CORE, *PIPELINE, *IMBALANCE, *DCN)

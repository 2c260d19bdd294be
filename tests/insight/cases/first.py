"""First cases."""

from __future__ import annotations

from tests.insight.case import fine, part_problem, problem
from tests.insight.code import V5E, V5P, V6E
from tests.insight.parts import Kernel, Lookup, TinyLoop
from tests.insight.play import MS, Chore, Loop
from tests.insight.scene import Scene
from tests.insight.workloads import Decode, Pipeline, Train

TRAIN = Scene((Train(),), V5E)

CASES = (
    problem("input-steady-v5e", "input", TRAIN, ["input"], loop={"batch_ps": 120 * MS}),
    problem("exposed-all-reduce", "collective", TRAIN, ["all-reduce"], work={"overlap": False}),
    problem(
        "mlp-highest",
        "precision",
        Scene((Train(layers=3),), V5P),
        ["mlp"],
        work={"mlp_kind": "f32", "mlp_precision": "highest"},
    ),
    problem("remat-mlp", "recomputation", TRAIN, ["remat", "checkpoint"], work={"remat": "mlp"}),
    part_problem("slow-kernel-v6e", "slow-kernel", Scene((Train(),), V6E), Kernel(), ["custom_attention"]),
    part_problem("gather-embed", "latency-bound", TRAIN, Lookup(), ["gather"]),
    part_problem("scan-loop", "tiny-loop", TRAIN, TinyLoop(trips=1500), ["while"]),
    problem(
        "pipeline-4",
        "pipeline",
        Scene((Pipeline(bubbles=False),), V5P),
        ["ppermute", "collective-permute"],
        work={"bubbles": True},
    ),
    fine("train-v5e", TRAIN),
    fine("train-v6e", Scene((Train(attention="uncounted"),), V6E, marks=False)),
    fine(
        "decode-v5e",
        Scene(
            (Decode(model_parallel=False),), V5E, loop=Loop(fetch="", call="step_fun", ahead=1), marks=False, steps=20
        ),
    ),
    problem(
        "log-each-step",
        "host",
        TRAIN,
        ["write_scalars"],
        loop={"chores": (Chore("$logger.py:51 write_scalars", 14 * MS, reads="np.asarray(jax.Array)"),), "ahead": 1},
    ),
)

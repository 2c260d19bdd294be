"""Problems of the hosts: devices that wait for input, for Python, for the compiler, or for requests."""

from __future__ import annotations

from dataclasses import replace

from tests.insight.cases.case import part_problem, problem
from tests.insight.cases.scenes import (
    DECODE_V5E,
    DECODE_V6E,
    SERVING,
    SMALL_TRAIN,
    TRAIN_2_HOSTS,
    TRAIN_V4,
    TRAIN_V5E,
    TRAIN_V5P,
    TRAIN_V6E,
    UNMARKED,
    chore,
)
from tests.insight.simulator.code import V4, V5E
from tests.insight.simulator.parts import Infeed
from tests.insight.simulator.play import MS, Chips, Loop
from tests.insight.simulator.scene import Memory, Scene
from tests.insight.simulator.workloads import Small, Train

BLOCKING = Loop(ahead=0)
CLOCK_AHEAD = Chips(ahead_ps=600_000_000)
LAUNCHES = ("PjitFunction", "Execute", "launch", "dispatch")

INPUT = (
    problem("input-slow-loader-v5e", "input", TRAIN_V5E, ["input"], loop={"batch_ps": 130 * MS}),
    problem(
        "input-slow-loader-unmarked-v6e",
        "input",
        replace(TRAIN_V6E, loop=UNMARKED),
        ["input"],
        loop={"batch_ps": 52 * MS},
    ),
    problem(
        "input-every-third-batch-v5p",
        "input",
        TRAIN_V5P,
        ["input"],
        loop={"slow_every": 3, "slow_ps": 320 * MS},
    ),
    part_problem(
        "input-infeed-v4", "input", Scene((Train(tokens=4096),), V4, seed=31), Infeed(us=9000), ["input"], field="first"
    ),
    problem(
        "input-tf-data-4-hosts-v4", "input", TRAIN_V4, ["input"], loop={"batch_ps": 75 * MS, "fetch": "IteratorGetNext"}
    ),
)

IDLE = (
    problem(
        "dispatch-of-small-programs-v5e",
        "idle",
        Scene(
            tuple(Small(60, f"jit_{name}") for name in ("multiply", "add", "where", "clip")),
            V5E,
            cores=1,
            steps=12,
            turns=((0, 1, 2, 3) * 6,),
            marks=False,
            seed=32,
            loop=Loop(fetch="", launch_ps=25_000_000, call="update"),
        ),
        LAUNCHES,
        ["host"],
        loop={"launch_ps": 0.15 * MS},
    ),
    problem(
        "dispatch-of-small-programs-marked-v4",
        "idle",
        Scene(
            tuple(Small(140, f"jit_{name}") for name in ("loss", "grad", "apply")),
            V4,
            cores=1,
            steps=10,
            turns=((0, 1, 2),),
            seed=33,
            loop=Loop(batch_ps=20_000_000, put_ps=10_000_000, launch_ps=30_000_000),
        ),
        LAUNCHES,
        ["host"],
        loop={"launch_ps": 0.26 * MS},
    ),
)

HOST = (
    problem(
        "host-writes-logs-v5e",
        "host",
        TRAIN_V5E,
        ["write_scalars"],
        ["idle"],
        loop={"chores": chore("$event_file_writer.py:51 write_scalars", 9, reads="np.asarray(jax.Array)")},
    ),
    problem(
        "host-collects-garbage-v5p",
        "host",
        TRAIN_V5P,
        ["collect"],
        ["idle", "slow-step"],
        loop={
            "ahead": 0,
            "chores": chore("$gc collect", 420, every=3, offset=2, inside="$trainer.py:310 maybe_collect"),
        },
    ),
    problem(
        "host-blocks-each-step-v5e",
        "host",
        SMALL_TRAIN,
        ["block_until_ready"],
        ["idle"],
        loop={"ahead": 0, "reading": "$api.py:3107 block_until_ready"},
    ),
    problem(
        "host-reads-loss-each-step-v4",
        "host",
        replace(SMALL_TRAIN, device=V4, marks=False, loop=replace(SMALL_TRAIN.loop, annotate=False)),
        ["np.asarray", "TransferFromDevice"],
        ["idle"],
        loop={"ahead": 0},
    ),
    problem(
        "host-saves-checkpoint-v5e",
        "host",
        replace(TRAIN_V5E, steps=16),
        ["save", "checkpoint"],
        ["idle", "slow-step"],
        loop={
            "chores": chore("$checkpointer.py:140 save", 500, every=8, offset=7, reads="$api.py:3107 block_until_ready")
        },
    ),
    problem(
        "host-metrics-clock-ahead-v6e",
        "host",
        replace(TRAIN_V6E, chips=CLOCK_AHEAD),
        ["compute_metrics"],
        ["idle"],
        loop={"chores": chore("$metrics.py:72 compute_metrics", 6, reads="np.asarray(jax.Array)")},
    ),
    problem(
        "host-tokenizes-between-launches-2-hosts",
        "host",
        TRAIN_2_HOSTS,
        ["tokenize"],
        ["idle"],
        loop={"ahead": 0, "chores": chore("$tokenizer.py:18 tokenize", 7, before=True)},
    ),
)

COMPILATION = (
    problem(
        "recompiles-now-and-then-v5e",
        "compilation",
        TRAIN_V5E,
        ["compil"],
        loop={"chores": chore("backend_compile_and_load", 400, every=6, offset=4, before=True, reads="")},
    ),
    problem(
        "recompiles-each-step-v6e",
        "compilation",
        TRAIN_V6E,
        ["compil"],
        loop={"ahead": 0, "chores": chore("backend_compile", 45, before=True)},
    ),
    problem(
        "recompiles-for-new-shapes-v5p",
        "compilation",
        replace(TRAIN_V5P, steps=12),
        ["compil"],
        loop={"chores": chore("XlaCompile", 420, every=4, offset=3, before=True)},
    ),
)

SLOW_STEP = (
    problem(
        "one-step-three-times-as-long-v5e",
        "slow-step",
        replace(TRAIN_V5E, steps=14),
        ["107"],
        chips={"slow_steps": ((7, 3.0),)},
    ),
    problem(
        "two-slow-steps-v5p",
        "slow-step",
        replace(TRAIN_V5P, steps=14),
        ["105", "111"],
        chips={"slow_steps": ((5, 2.2), (11, 2.6))},
    ),
)

SERVING_GAPS = (
    problem(
        "serving-detokenizes-between-steps-v5e",
        "serving",
        DECODE_V5E,
        ["detokenize", "update_from_output"],
        ["host", "idle"],
        loop={"ahead": 0, "chores": chore("$detokenizer.py:88 detokenize", 1.6)},
    ),
    problem(
        "serving-schedules-between-steps-v6e",
        "serving",
        DECODE_V6E,
        ["schedule"],
        ["host", "idle"],
        loop={"ahead": 0, "chores": chore("$scheduler.py:210 schedule", 2.4, before=True)},
    ),
    problem(
        "serving-mixed-phases-queue-v6e",
        "serving",
        SERVING,
        ["schedule", "jit_decode", "jit_prefill"],
        ["host", "idle"],
        loop={"ahead": 0, "chores": chore("$scheduler.py:210 schedule", 5.0, before=True)},
    ),
)

MEMORY_FULL = (
    problem("memory-full-v5e", "memory-full", TRAIN_V5E, ["memory", "HBM"], scene={"memory": Memory(0.84, 0.147)}),
    problem("memory-full-v5p", "memory-full", TRAIN_V5P, ["memory", "HBM"], scene={"memory": Memory(0.965, 0.02)}),
)

NO_DEVICE = (
    problem("no-device-host-only-v5e", "no-device", TRAIN_V5E, ["host"], scene={"traced": "host"}),
    problem(
        "no-device-nothing-ran-v6e",
        "no-device",
        TRAIN_V6E,
        ["ran", "run", "idle", "empty", "no events"],
        scene={"traced": "$queue.py:154 get"},
    ),
    problem(
        "no-device-compiled-all-the-time-v5p",
        "no-device",
        TRAIN_V5P,
        ["compil"],
        ["compilation"],
        scene={"traced": "backend_compile_and_load"},
    ),
)

CASES = (*INPUT, *IDLE, *HOST, *COMPILATION, *SLOW_STEP, *SERVING_GAPS, *MEMORY_FULL, *NO_DEVICE)

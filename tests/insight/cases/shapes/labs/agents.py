"""Reinforcement learning: whole epochs in one program, and many small programs that Python calls."""

from __future__ import annotations

from tests.insight.cases.shapes.labs.lab import Lab
from tests.insight.cases.shapes.labs.models import acts
from tests.insight.cases.shapes.shape import Plant
from tests.insight.simulator.code import V4, V5E
from tests.insight.simulator.parts import Callback, TinyLoop
from tests.insight.simulator.play import MS, Loop
from tests.insight.simulator.scene import Scene
from tests.insight.simulator.tensors import Sort
from tests.insight.simulator.workloads import Small

EPOCHS = Lab(
    "brax",
    {
        "ppo-v4": Scene(
            (acts(4096, 2048, 16),), V4, cores=1, seed=841, steps=12,
            loop=Loop(fetch="", call="", reading="$train_ppo.py:660 block_until_ready"),
        ),
    },
    {
        "advantages-turn-by-turn": (
            "ppo-v4",
            Plant(
                "tiny-loop", ("compute_gae", "losses.py:62"),
                part=TinyLoop(trips=1024, us=1.9, scope="compute_gae/while", source="losses.py:62"),
            ),
        ),
        "environments-stepped-by-a-callback": (
            "ppo-v4",
            Plant(
                "host-offload", ("pure_callback", "recv", "gym_wrapper.py"), ("host",),
                Callback(us=900, scope="env/pure_callback", source="gym_wrapper.py:44"), into="turn",
            ),
        ),
        "minibatches-shuffled-by-sorting": (
            "ppo-v4",
            Plant(
                "latency-bound", ("_shuffle", "train_ppo.py:377"),
                part=Sort(length=1 << 18, times=3, kind="u32", scope="permutation/_shuffle/sort",
                source="train_ppo.py:377"),
            ),
        ),
    },
    (("advantages-turn-by-turn", "minibatches-shuffled-by-sorting"),),
)  # fmt: skip

CALLS = Lab(
    "tutorial",
    {
        "dqn-v5e": Scene(
            tuple(Small(us, f"jit_{name}") for us, name in ((190, "q_values"), (110, "td_error"), (240,
            "adam_update"))),
            V5E, cores=1, seed=842, steps=20, turns=((0, 1, 2) * 3,), marks=False,
            loop=Loop(fetch="", call="", launch_ps=0.03 * MS, annotate=False),
        ),
    },
    {
        "small-programs-called-from-python": (
            "dqn-v5e",
            Plant(
                "idle", ("PjitFunction", "Execute", "launch", "dispatch"), ("host",), loop={"launch_ps": 0.26 * MS}
            ),
        ),
    },
    (),
)  # fmt: skip

LABS = (EPOCHS, CALLS)

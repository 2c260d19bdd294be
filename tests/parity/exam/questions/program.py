"""Questions of steps, of ops, of what makes a program slow, and of what a change did."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import quantiles

from tests.insight.raw import before_first_op_ms, mean_over, step_ms
from tests.parity.exam import raw
from tests.parity.exam.judging import Question, Truth
from tests.parity.exam.profiles import REAL, Made

Profiles = Mapping[str, Made]

TOP_OP = "fusion.397"
"""The op of the demo that takes most time, by its raw events; a truth asserts that it is."""

STALLED = 13
"""The step of the demo, counted from 0, that waits 180 ms for its input."""


def _stalled(made: Profiles) -> Truth:
    times = step_ms(made["demo"].cores)
    assert times.index(max(times)) == STALLED
    return str(100 + STALLED)


def _top_op(made: Profiles) -> Truth:
    ((name, _), *_) = raw.self_times(event for core in made["demo"].cores for event in core.events).most_common(1)
    assert name == TOP_OP
    return name


def _top_op_of_a_step(made: Profiles) -> Truth:
    core = made["before"].cores[1]
    return raw.self_times(event for event in core.events if event.step == 4).most_common(1)[0][0]


def _decodes(made: Profiles) -> list[int]:
    return [ps for space in made["serving"].spaces for ps in raw.durations(space, "jit_decode")]


STEPS = (
    Question(
        "step-time", "steps", "How long does a mean step take, in ms?", "demo",
        lambda made: raw.step_average_ms(made["demo"].cores), 0.01,
    ),
    Question("slowest-step", "steps", "Which step is the slowest?", "demo", _stalled),
    Question(
        "stall", "steps", "In step 113, how many ms pass before a core's first op?", "demo",
        lambda made: before_first_op_ms(made["demo"].cores, STALLED), 0.03,
    ),
    Question(
        "real-step-time", "steps", "How long does a mean step take, in ms, of a program without step markers?", REAL,
        lambda made: raw.step_average_ms(made[REAL].cores), 0.01,
    ),
    Question(
        "latency", "steps", "How long does a run of jit_decode take at the 99th percentile, in ms?", "serving",
        lambda made: quantiles(_decodes(made), n=100, method="inclusive")[98] / 1e9,
    ),
)  # fmt: skip

OPS = (
    Question("top-op", "ops", "Which op takes the most self time?", "demo", _top_op),
    Question(
        "how-often", "ops", f"How often did {TOP_OP} run, on all cores together?", "demo",
        lambda made: float(sum(len(raw.durations(space, TOP_OP, "XLA Ops")) for space in made["demo"].spaces)), 0,
    ),
    Question(
        "longest-run", "ops", f"How many µs does the longest run of {TOP_OP} take?", "demo",
        lambda made: max(ps for space in made["demo"].spaces for ps in raw.durations(space, TOP_OP, "XLA Ops")) / 1e6,
        0.005,
    ),
    Question(
        "in-a-step", "ops", "Which op takes the most time of core 1 in step 104?", "before", _top_op_of_a_step,
    ),
    Question(
        "matrix-share", "ops", "Which share of the ops' time do convolution fusions take?", "demo",
        lambda made: raw.share_of_ops(made["demo"].cores, lambda op: op.category == "convolution fusion"),
    ),
    Question(
        "block", "ops", "How many ms of a step do the ops of the MLPs take (framework ops below layers/…/mlp)?", "demo",
        lambda made: mean_over(made["demo"].cores, lambda core: core.self_ms(lambda op: "/mlp/" in op.scope)),
    ),
    Question(
        "host-transfers", "ops", "How many ms of a step do cores wait for copies from and to the host's memory?", REAL,
        lambda made: mean_over(made[REAL].cores, lambda core: core.self_ms(lambda op: op.is_of_host_memory)), 0.02,
    ),
    Question(
        "callback", "ops", "How many ms of a step does a core wait for the host in a callback?", "recomputes",
        lambda made: mean_over(made["recomputes"].cores, lambda core: core.self_ms(raw.is_callback)),
    ),
)  # fmt: skip

CAUSES = (
    Question("why", "causes", "Why is it slow: what do the cores wait for?", "late-input", lambda _: "input"),
    Question(
        "worth", "causes", "How many ms shorter would a step be if no core waited for its input?", "late-input",
        lambda made: made["late-input"].cost_ms, 0.2,
    ),
    Question(
        "who-is-late", "causes", "Which function of the program makes the batches that are late?", "late-input",
        lambda _: ("make_batch", "$dataset.py:77 make_batch", "dataset.py:77 make_batch"),
    ),
    Question("healthy", "causes", "Is any single reason worth more than 3 % of a step?", "before", lambda _: False),
    Question(
        "kernel-worth", "causes", "How many ms shorter would a step be if the slowest kernel were written well?",
        "slow-kernel", lambda made: made["slow-kernel"].cost_ms, 0.2,
    ),
    Question(
        "print", "causes", "Which line of code makes the cores wait for the host?", "recomputes",
        lambda _: "train.py:61",
    ),
    Question(
        "compilations", "causes", "How often was something compiled during the capture?", "serving",
        lambda made: float(raw.host_events(made["serving"].spaces[0], "XlaCompile")), 0,
    ),
)  # fmt: skip


def _grown_ms(made: Profiles) -> float:
    return raw.step_average_ms(made["exposed"].cores) - raw.step_average_ms(made["before"].cores)


def _grown(made: Profiles) -> Truth:
    """The opcode whose ops take so much more of a step after the change."""
    totals = {name: raw.opcode_ms(made[name].cores) for name in ("before", "exposed")}
    return max(totals["exposed"], key=lambda opcode: totals["exposed"][opcode] - totals["before"].get(opcode, 0.0))


CHANGES = (
    Question("change", "changes", "How many ms longer is a mean step than before the change?", "exposed", _grown_ms),
    Question("what-grew", "changes", "Which kind of op takes so much more time than before?", "exposed", _grown),
    Question(
        "regressed", "changes", "Is a step slower than before by more than 5 %, beyond the noise?", "exposed",
        lambda made: _grown_ms(made) > 0.05 * raw.step_average_ms(made["before"].cores),
    ),
)  # fmt: skip

QUESTIONS = (*STEPS, *OPS, *CAUSES, *CHANGES)

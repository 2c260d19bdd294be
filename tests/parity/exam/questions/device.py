"""Questions of rates against the device's peaks, of memory, of cores and hosts, and of the capture itself."""

from __future__ import annotations

from tests.insight.raw import mean_over, moving_and_waiting_ms, without_op_ms
from tests.parity.exam import raw
from tests.parity.exam.judging import Question, Truth
from tests.parity.exam.profiles import CUT_CORE, CUT_STEP
from tests.parity.exam.questions.program import TOP_OP

GIB = 2**30
V5E_GIB = 15.75
"""Of HBM of a v5e that a program may use, by its compiler's errors."""

RATES = (
    Question(
        "share-of-peak", "rates", f"Which share of the matrix unit's peak does {TOP_OP} reach?", "demo",
        lambda made: raw.rate_of(made["demo"].cores, TOP_OP),
    ),
    Question(
        "mfu", "rates", "Which share of the chips' peak FLOP/s does a mean step reach?", "before",
        lambda made: raw.share_of_peak(made["before"].cores),
    ),
    Question(
        "mfu-without", "rates", "The same, without the FLOPs that are computed again for the backward pass?",
        "recomputes", lambda made: raw.share_of_peak(made["recomputes"].cores, lambda op: not raw.is_recomputed(op)),
    ),
    Question(
        "recomputed", "rates", "How many ms of a step are spent on computing things again?", "recomputes",
        lambda made: mean_over(made["recomputes"].cores, lambda core: core.self_ms(raw.is_recomputed)),
    ),
    Question(
        "worst-kernel", "rates", "Which kernel or fusion loses the most time against its roof?", "slow-kernel",
        lambda made: raw.loses_most(made["slow-kernel"].cores),
    ),
    Question(
        "share-of-roof", "rates", "Which share of its roof does custom_attention reach?", "slow-kernel",
        lambda made: raw.share_of_roof(made["slow-kernel"].cores, "custom_attention"), 0.03,
    ),
    Question(
        "below-the-roof", "rates", "Which ops compute below 60 % of their roof and take over 1 % of the ops' time?",
        "demo", lambda made: raw.far_from_roof(made["demo"].cores, 0.6, 0.01),
    ),
)  # fmt: skip

MEMORY = (
    Question(
        "memory-left", "memory", "How many GiB of HBM are left at the peak of jit_train_step?", "demo",
        lambda _: V5E_GIB - raw.peak_bytes("jit_train_step") / GIB, 0.03,
    ),
    Question(
        "largest-buffer", "memory", "How many MiB does the largest buffer at that peak take?", "demo",
        lambda _: raw.largest_at_peak("jit_train_step") / 2**20, 0.001,
    ),
    Question(
        "allocated", "memory", "Which share of a chip's HBM was taken at most, by its allocator (heap and reserved)?",
        "slow-kernel",
        lambda _: 0.70,
    ),
)  # fmt: skip


def _of_pair(done: str) -> Truth:
    """Names of a collective: of one in two parts, that in which cores wait, and that which begins it."""
    return done, done.replace("-done", "-start")


CORES = (
    Question(
        "slow-core", "cores and hosts", "Which core is slower than the others?", "slow-core", lambda _: "host-1:2",
    ),
    Question(
        "slow-core-worth", "cores and hosts", "How many ms shorter would a step be if that core were as fast?",
        "slow-core", lambda made: made["slow-core"].cost_ms, 0.2,
    ),
    Question(
        "waits-in", "cores and hosts", "In which collective do the other cores wait for it most?", "slow-core",
        lambda made: _of_pair(raw.waited_for(made["slow-core"].cores)[0]),
    ),
    Question(
        "exposed", "cores and hosts", "How many ms of a step do collectives take that no compute hides?", "demo",
        lambda made: sum(moving_and_waiting_ms(made["demo"].cores)), 0.03,
    ),
)  # fmt: skip

CAPTURE = (
    Question(
        "idle", "capture", "Which share of the steps is a core without an op?", "late-input",
        lambda made: mean_over(made["late-input"].cores, without_op_ms) / raw.step_average_ms(made["late-input"].cores),
    ),
    Question(
        "cut", "capture", "Did the profiler lose ops of a core, and of which?", "cut", lambda _: f"host-0:{CUT_CORE}",
    ),
    Question(
        "cut-since", "capture", "What is the last step that has the ops of all cores?", "cut",
        lambda _: str(100 + CUT_STEP - 1),
    ),
)  # fmt: skip

QUESTIONS = (*RATES, *MEMORY, *CORES, *CAPTURE)

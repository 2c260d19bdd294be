"""When everything happens: the host's loop, the launches on every core, the steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.demo.profile.hlo_module import Module
from tests.demo.profile.noise import Noise
from tests.demo.profile.schedule import GAP_PS, QUANTUM_PS, Runs, Template, simulate, template

MS = 1_000_000_000
US = 1_000_000
DISTINCT_RUNS = (48, 8)
"""Different runs of each program; longer profiles repeat them."""

CORE_SPEED = (1.0, 1.002, 1.015, 0.999)


@dataclass(frozen=True, slots=True)
class DemoSpec:
    """What to compose.

    Attributes:
        steps: training steps; `size_bytes` overrules it with as many as make the file about so large.
        cores: TensorCores of each host. hosts: host files.
        slow_step: step (counted from 0) that waits `stall_ms` for its input; None for none.
        eval_every: an evaluation step runs after so many training steps.
        first_step: number of the first step. begin_ms: when it begins, counted from the start of the profile.
    """

    steps: int = 20
    cores: int = 4
    seed: int = 0
    size_bytes: int | None = None
    hosts: int = 1
    slow_step: int | None = 13
    stall_ms: int = 180
    eval_every: int = 15
    first_step: int = 100
    begin_ms: int = 350
    hostname: str = "demo-vm"
    profile_start_ns: int = 1_751_360_400_000_000_000


@dataclass(frozen=True, slots=True)
class Launch:
    """One execution of a module on all cores of a host: which simulated run, when it begins and ends on each core."""

    program: int
    run: int
    run_id: int
    begin: tuple[int, ...]
    end: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One turn of the host's loop; all times in picoseconds since the profile began.

    Attributes:
        number: as the program counts. begin, end: the host's `train` event.
        input_begin, input_end: waiting for the input pipeline; put_end: the batch is on its way to the devices.
        dispatch_end: the program is enqueued. launches: the training program, and perhaps the evaluation after it.
        core_begin, core_end: the step on each core.
        evaluation: begin and end of the host's evaluation, or None.
    """

    number: int
    begin: int
    end: int
    input_begin: int
    input_end: int
    put_end: int
    dispatch_end: int
    launches: tuple[Launch, ...]
    core_begin: tuple[int, ...]
    core_end: tuple[int, ...]
    evaluation: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Timeline:
    """A host's whole profile: programs, their simulated runs, and the steps; `end` is when the profile stops."""

    spec: DemoSpec
    host: int
    programs: tuple[Template, ...]
    runs: tuple[Runs, ...]
    steps: tuple[Step, ...]
    end: int


def programs() -> tuple[Template, ...]:
    """Templates of the training and the evaluation program."""
    return tuple(template(Module(name)) for name in ("jit_train_step", "jit_eval_step"))


def compose_timeline(spec: DemoSpec, plans: tuple[Template, ...], host: int = 0) -> Timeline:
    """Plays the training loop of one host."""
    noise = Noise(spec.seed, host)
    speed = np.array([CORE_SPEED[core % len(CORE_SPEED)] for core in range(spec.cores)])
    runs = tuple(
        simulate(plan, speed, noise.integers(0, 360, (min(spec.steps, most), spec.cores)) * QUANTUM_PS, noise)
        for plan, most in zip(plans, DISTINCT_RUNS, strict=True)
    )
    steps: list[Step] = []
    now = spec.begin_ms * MS
    previous = tuple(now + 2 * MS - round(1.4 * MS) for _ in range(spec.cores))
    run_id = 4 + 3 * host
    for index in range(spec.steps):
        step, run_id = _step(spec, index, now, previous, runs, run_id, noise)
        steps.append(step)
        previous = step.launches[-1].end
        now = (step.evaluation[1] if step.evaluation else step.end) + noise.integer(80, 160) * US
    return Timeline(spec, host, plans, runs, tuple(steps), now + 60 * MS)


def _step(
    spec: DemoSpec, index: int, begin: int, previous: tuple[int, ...], runs: tuple[Runs, ...], run_id: int, noise: Noise
) -> tuple[Step, int]:
    wait = int(noise.normal(380, 40)) * US
    if index == spec.slow_step:
        wait += spec.stall_ms * MS
    input_begin = begin + 15 * US
    input_end = input_begin + wait
    put_end = input_end + int(noise.normal(420, 25)) * US
    dispatch_end = put_end + int(noise.normal(310, 20)) * US
    train = _launch(0, index % runs[0].total.shape[0], run_id, dispatch_end - 40 * US, runs[0])
    end = max(train.end) + noise.integer(50, 90) * US
    launches = [train]
    evaluation = None
    if (index + 1) % spec.eval_every == 0:
        eval_begin = end + 40 * US
        number = index // spec.eval_every % runs[1].total.shape[0]
        launches.append(_launch(1, number, run_id + 1, eval_begin + 620 * US, runs[1]))
        evaluation = (eval_begin, max(launches[-1].end) + 70 * US)
    core_begin = tuple(time + GAP_PS for time in previous)
    step = Step(
        number=spec.first_step + index,
        begin=begin,
        end=end,
        input_begin=input_begin,
        input_end=input_end,
        put_end=put_end,
        dispatch_end=dispatch_end,
        launches=tuple(launches),
        core_begin=core_begin,
        core_end=train.end,
        evaluation=evaluation,
    )
    return step, run_id + len(launches)


def _launch(program: int, run: int, run_id: int, at: int, runs: Runs) -> Launch:
    begins = [at // QUANTUM_PS * QUANTUM_PS + int(late) for late in runs.skew[run]]
    ends = [begin + int(total) for begin, total in zip(begins, runs.total[run], strict=True)]
    return Launch(program, run, run_id, tuple(begins), tuple(ends))

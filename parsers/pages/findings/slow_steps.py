"""The finding about single steps that take longer than the others."""

from __future__ import annotations

import numpy as np

from tpuprof.parsers.base.intervals import Floats, median
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.pages.findings.budget import Budget, StepTimes
from tpuprof.parsers.pages.findings.finding import Finding, Kind, Place
from tpuprof.parsers.pages.words import multiple, short, time
from tpuprof.parsers.steps.times import SLOW_STEP, SlowOp

FEW = 0.2
"""At most this share of the steps may be slow; with more of them the median step is not the normal one."""

LEAST_STEPS = 4
"""It takes so many steps for one of them to stand out."""

LEAST_WORTH = 0.01
"""Below this share of step time slow steps are no loss: there are few among very many."""

_NAMED = 0.1  # share of what the slow step has more that a part of it must be to be named
_MOST_NAMED = 3
_LONGEST_NAME = 40

_PARTS: dict[str, tuple[Kind, ...]] = {
    "waiting for input": ("input",),
    "idle time": ("idle", "compilation"),
    "collectives": ("collective", "straggler"),
    "copies": ("copy", "host-offload"),
    "host transfers": ("host-offload",),
    "matrix ops": (),
    "vector ops": (),
    "other ops": (),
}
"""The parts of a step, and the findings that count them."""


def slow_steps(budget: Budget, others: frozenset[Kind]) -> Finding | None:
    """A few steps take much longer than the median, for a reason that no other finding has.

    Args:
        others: kinds of the other findings; the excess that they count is left to them.
    """
    steps = budget.steps
    if steps is None or len(steps.names) < LEAST_STEPS:
        return None
    usual = median(steps.longest_ps)
    excess = _excess(steps, usual)
    slow = excess >= (SLOW_STEP - 1) * usual
    if usual <= 0 or not 0 < slow.sum() <= max(1.0, FEW * len(slow)):
        return None
    parts = _parts(steps)
    more = {name: values - median(values) for name, values in parts.items()}
    left, all_of_it = (
        sum((np.maximum(more[name], 0.0) for name, kinds in _PARTS.items() if not (skip and others & set(kinds))), 0.0)
        for skip in (True, False)
    )
    unclaimed = np.where(slow & (all_of_it > 0), excess * left / np.maximum(all_of_it, 1.0), 0.0)
    worth = float(unclaimed.sum()) / len(slow)
    if worth < LEAST_WORTH * budget.whole_ps:
        return None
    worst = int(np.argmax(unclaimed))
    ratio = multiple(float(steps.longest_ps[worst]) / usual)
    rest = float(excess[slow].sum()) / len(slow) - worth
    without = f"; {time(rest)} a step that other findings count is left out" if rest > LEAST_WORTH * usual else ""
    name = steps.names[worst]
    most = max(more, key=lambda part: float(more[part][worst]))
    return budget.finding(
        "slow-step",
        f"Step {short(name)} takes {ratio} times the median step",
        worth,
        f"Time of the slow steps above the median, divided by the number of steps{without}.",
        [
            f"Step {name} takes {time(float(steps.longest_ps[worst]))}, the median {time(usual)}; "
            f"{counted(int(slow.sum()), 'step')} of {len(slow):,} {'is' if slow.sum() == 1 else 'are'} slow.",
            _differs({part: float(values[worst]) for part, values in more.items()}, float(excess[worst])),
            _ops(steps.grid.slow_ops, name, float(excess[worst])),
        ],
        Place("input" if most == "waiting for input" else "timeline", name),
    )


def _excess(steps: StepTimes, usual: float) -> Floats:
    """float64[steps]: how much longer than the median each step takes.

    Inferred steps go from one start of a module to the next, and a module may start more or less early before the one
    ahead of it ends. So where a neighbour is shorter, that does not make the step longer.
    """
    excess = steps.longest_ps - usual
    if steps.grid.source != "modules":
        return excess
    shorter = np.minimum(excess, 0.0)
    shorter_neighbours: Floats = np.append(0.0, shorter[:-1]) + np.append(shorter[1:], 0.0)
    return excess + shorter_neighbours


def _parts(steps: StepTimes) -> dict[str, Floats]:
    """float64[steps] for each of `_PARTS`: means over cores."""
    waits, host = steps.input_by_step, steps.by_step("host")
    if steps.grid.input_source == "infeed":
        host = np.maximum(host - waits, 0.0)
    return {
        "waiting for input": waits,
        "idle time": steps.gaps.mean(axis=0),
        "collectives": steps.by_step("collective"),
        "copies": steps.by_step("copy"),
        "host transfers": host,
        "matrix ops": steps.by_step("compute"),
        "vector ops": steps.by_step("vector"),
        "other ops": steps.by_step("unknown"),
    }


def _differs(more: dict[str, float], excess: float) -> str:
    """A sentence on the parts that exceed those of the median step most."""
    named = sorted((name for name in more if more[name] >= _NAMED * excess), key=lambda name: -more[name])
    if not named:
        return "No kind of op explains it: the cores differ in what they do longer."
    words = [f"{time(more[name])} more of {name}" for name in named[:_MOST_NAMED]]
    return f"It takes {time(excess)} longer than the median step: {', '.join(words)}."


def _ops(slow_ops: tuple[SlowOp, ...], step: str, excess: float) -> str:
    named = [op for op in slow_ops if op.step == step and op.excess_ps >= _NAMED * excess][:_MOST_NAMED]
    if not named:
        return ""
    words = ", ".join(f"{short(op.op, _LONGEST_NAME)} {time(op.excess_ps)}" for op in named)
    return f"Ops that take longer there: {words}."

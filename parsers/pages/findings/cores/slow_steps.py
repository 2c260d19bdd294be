"""The finding about single steps that take longer than the others."""

from __future__ import annotations

import numpy as np

from tpuprof.parsers.base.intervals import Bools, Floats, median
from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.base.words import multiple, sentence_name, short, time
from tpuprof.parsers.pages.findings.budget import Budget, StepTimes
from tpuprof.parsers.pages.findings.finding import Finding, FindingKind, JumpTarget
from tpuprof.parsers.pages.findings.when import when
from tpuprof.parsers.steps.times import SLOW_STEP, SlowOp

FEW = 0.2
"""At most this share of the steps may be slow; with more of them the median step is not the normal one."""

LEAST_PERIOD = 3
"""More of them may be slow at a rhythm, as long as the median step is a normal one."""

LEAST_STEPS = 4
"""How many steps it takes for one of them to stand out."""

LEAST_WORTH = 0.01
"""Below this share of step time slow steps are no loss: there are few among very many."""

_NAMED = 0.1  # share of what the slow step has more that a part of it must be to be named
_MOST_NAMED = 3
_MOSTLY, _HARDLY = 0.5, 0.1  # shares of what a slow step takes longer, and of a module's time there
_LONGEST_NAME = 40

_PARTS: dict[str, tuple[OpClass | None, tuple[FindingKind, ...]]] = {
    "waiting for input": (None, ("input",)),
    "idle time": (None, ("idle", "host", "serving", "compilation")),
    "collectives": ("collective", ("collective", "straggler", "slow-core", "imbalance", "pipeline")),
    "copies": ("copy", ("copy", "copy-wait", "host-offload")),
    "host transfers": ("host", ("host-offload", "dcn")),
    "matrix ops": ("compute", ()),
    "vector ops": ("vector", ()),
    "other ops": ("unknown", ()),
}
"""The parts of a step: the class of their ops, and the findings that count them."""


def slow_steps(budget: Budget, others: frozenset[FindingKind]) -> Finding | None:
    """A few steps take much longer than the median, for a reason that no other finding has.

    Args:
        others: kinds of the other findings; the excess that they count is left to them.
    """
    steps = budget.steps
    if steps is None or len(steps) < LEAST_STEPS:
        return None
    usual = median(steps.longest_ps)
    excess = _excess(steps, usual)
    longer = excess >= (SLOW_STEP - 1) * usual
    more = {name: values - median(values) for name, values in _parts(steps).items()}
    above = {name: np.maximum(values, 0.0) for name, values in more.items()}
    all_of_it = sum(above.values(), 0.0)
    left = sum((above[name] for name, (_, kinds) in _PARTS.items() if not others & set(kinds)), 0.0)
    unclaimed = np.where(longer & (all_of_it > 0), excess * left / np.maximum(all_of_it, 1.0), 0.0)
    slow = longer & (unclaimed >= (SLOW_STEP - 1) * usual)  # others may be slow for what other findings count
    unclaimed = np.where(slow, unclaimed, 0.0)
    timing = when(unclaimed, steps.grid.names, 1.0)
    are_few = slow.sum() <= max(1.0, FEW * len(slow))
    serves = bool(budget.evidence.serves)  # prefill between runs of decode is what it is for
    if usual <= 0 or not slow.any() or not (are_few or (timing.period >= LEAST_PERIOD and not serves)):
        return None
    worth = float(unclaimed.sum()) / len(slow)
    if worth < LEAST_WORTH * budget.whole_ps:
        return None
    worst = int(np.argmax(unclaimed))
    name, taken, more_there = steps.grid.names[worst], float(steps.longest_ps[worst]), float(excess[worst])
    which, factor = f"Step {short(name)}", taken / usual
    if timing.period:
        which, factor = timing.first, float(steps.longest_ps[slow].mean()) / usual
    module = _module(budget, slow, float(unclaimed[slow].mean()))
    rest = float(excess[longer].sum()) / len(slow) - worth
    without = f"; {time(rest)} a step that other findings count is left out" if rest > LEAST_WORTH * usual else ""
    of_worst = {part: float(values[worst]) for part, values in more.items()}
    return budget.finding(
        "slow-step",
        f"{which} takes {multiple(factor)} times the median{f': it runs {short(module)}' if module else ' step'}",
        worth,
        f"Time of the slow steps above the median, divided by the number of steps{without}.",
        [
            f"Step {name} takes {time(taken)}, the median {time(usual)}; "
            f"{counted(int(slow.sum()), 'step')} of {len(slow):,} {'is' if slow.sum() == 1 else 'are'} slow.",
            timing.sentence("takes longer than the median by") if timing.period else "",
            f"Only then it runs {sentence_name(module)}." if module else "",
            _differs(of_worst, more_there),
            _ops(steps.grid.slow_ops, name, more_there),
        ],
        JumpTarget("input" if max(of_worst, key=of_worst.__getitem__) == "waiting for input" else "timeline", name),
    )


def _module(budget: Budget, slow: Bools, more_ps: float) -> str:
    """The module that only the slow steps run, and that explains most of what they take longer; empty without one.

    Args:
        more_ps: how much longer a slow step takes.
    """
    if budget.steps is None:
        return ""
    grid, most, found = budget.steps.grid, _MOSTLY * more_ps, ""
    begin = grid.core_start_ps[grid.hosts == grid.hosts[0]].min(axis=0)
    order = np.argsort(begin, kind="stable")
    for name, (start, duration) in budget.evidence.runs.items():
        at = np.searchsorted(begin[order], start, side="right") - 1
        inside = (at >= 0) & (start < (begin + grid.longest_ps)[order][at])
        by_step = np.bincount(order[at[inside]], np.maximum(duration[inside], 0), minlength=len(grid))
        others = float(by_step[~slow].mean()) if not slow.all() else 0.0
        if others <= _HARDLY * float(by_step[slow].mean()) and float(by_step[slow].mean()) >= most:
            found, most = name.partition("(")[0], float(by_step[slow].mean())
    return found


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
    parts = {name: steps.of(of).mean(axis=0) for name, (of, _) in _PARTS.items() if of is not None}
    parts |= {"waiting for input": steps.input_ps.mean(axis=0), "idle time": steps.gaps.mean(axis=0)}
    if steps.grid.input_source == "infeed":
        parts["host transfers"] = np.maximum(parts["host transfers"] - parts["waiting for input"], 0.0)
    return {name: parts[name] for name in _PARTS}


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

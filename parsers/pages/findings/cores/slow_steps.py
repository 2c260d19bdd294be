"""Findings about single steps that take longer than the others, and about programs that run between steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from tpuprof.parsers.base.intervals import Bools, Floats, Int64s, median, medians
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.base.words import multiple, sentence_name, shortened, time
from tpuprof.parsers.pages.findings.budget import NOTHING, Budget, Claimed, Steps, between_cells, detects
from tpuprof.parsers.pages.findings.claims import Claim
from tpuprof.parsers.pages.findings.finding import STEPS, Evidence, JumpTarget, Kind
from tpuprof.parsers.pages.findings.ops.unexplained import LEAST_NAMED
from tpuprof.parsers.pages.findings.when import when
from tpuprof.parsers.steps.accounts.owners import OWNER_TITLES, OWNERS, WAITS, Owner, owner_index
from tpuprof.parsers.steps.aligned import AlignedSteps
from tpuprof.parsers.steps.times import SLOW_FACTOR, SlowOp

FEW = 0.2
"""At most this share of the steps may be slow; with more of them the median step is not the normal one."""

LEAST_PERIOD = 3
"""More of them may be slow at a rhythm, as long as the median step is a normal one."""

LEAST_STEPS = 4
"""How many steps it takes for one of them to stand out."""

LEAST_WORTH = 0.01
"""Below this share of step time slow steps are no loss: there are few among very many."""

_NAMED = 0.1  # share of what the slow step has more that a part of it must be to be named
_ALL = 0.99  # share of that from which on one part is all of it
_MOST_NAMED = 3
_MOSTLY, _HARDLY = 0.5, 0.1  # shares of what a slow step takes longer, and of a module's time there
_REST = 0.25  # share of what slow steps take longer that no other finding counts, from which on there is more to it
_LONGEST_NAME = 40

SLOW_STEP = Kind(
    "slow-step",
    "slow steps",
    advice="Do what these steps do besides on another thread or less often, so that the others need not wait for it.",
    rank=17,
    needs=(STEPS,),
)


@detects(SLOW_STEP)
def slow_steps(budget: Budget) -> Claimed:
    """A few steps take much longer than the median: what no other finding claims of that, and whose time it is."""
    steps = budget.steps
    if steps is None or len(steps) < LEAST_STEPS:
        return NOTHING
    usual, of_others = _usual(budget, steps.longest_ps)
    excess = _excess(steps, usual)
    longer = excess >= (SLOW_FACTOR - 1) * usual
    more, left = _above_median(budget.whole_cells), np.maximum(_above_median(budget.cells), 0.0)
    all_of_it = np.maximum(more, 0.0).sum(axis=1)
    unclaimed = np.where(longer & (all_of_it > 0), excess * left.sum(axis=1) / np.maximum(all_of_it, 1.0), 0.0)
    slow = longer & (unclaimed >= (SLOW_FACTOR - 1) * usual)  # others may be slow for what other findings count
    unclaimed = np.where(slow, unclaimed, 0.0)
    timing = when(unclaimed, steps.names, 1.0)
    are_few = slow.sum() <= max(1.0, FEW * len(slow))
    serves = bool(budget.evidence.serves)
    if float(unclaimed.sum()) < _REST * float(excess[slow].sum()):
        return NOTHING  # what other findings leave of these steps comes of what they count
    if usual <= 0 or not slow.any() or not (are_few or (timing.period >= LEAST_PERIOD and not serves)):
        return NOTHING
    module = _module(budget, slow, float(unclaimed[slow].mean()))
    if serves and module:
        return NOTHING  # prefill between runs of decode is what it is for: another task, no longer step
    claim = _claim(budget, left, unclaimed)
    worth = claim.worth_ps
    budget.needs(worth, LEAST_WORTH)
    worst = int(np.argmax(unclaimed))
    name, taken, more_there = steps.names[worst], float(steps.longest_ps[worst]), float(excess[worst])
    which, factor = f"Step {shortened(name)}", taken / usual
    if timing.period:
        which, factor = timing.first, 1 + timing.inside_ps / usual
    rest = float(excess[longer].sum()) / len(slow) - worth
    without = f"; {time(rest)} a step counted by other findings is left out" if rest > LEAST_WORTH * usual else ""
    of_worst: dict[Owner, float] = dict(zip(OWNERS, more[worst].tolist(), strict=True))
    most = max(of_worst, key=of_worst.__getitem__)
    return budget.finding(
        SLOW_STEP,
        claim,
        f"{which} takes {multiple(factor)} times the median{f': it runs {shortened(module)}' if module else ' step'}",
        f"What the slow steps take beyond the median{of_others}, divided by the number of steps{without}.",
        [
            f"Step {name} takes {time(taken)} (median {time(usual)}{of_others}); "
            f"{int(slow.sum()):,} of {counted(len(slow), 'step')} {'is' if slow.sum() == 1 else 'are'} slow.",
            timing.sentence(
                f"takes longer than the median{', without time counted by other findings,' if without else ''} by"
            )
            if timing.period
            else "",
            f"It is the only one that runs {sentence_name(module)}"
            f"{': other steps run other programs of that name' if '(' in module else ''}."
            if module
            else "",
            _differs(of_worst, more_there),
            _ops(steps.grid.slow_ops, name, more_there),
        ],
        JumpTarget("input" if most == "input" else "timeline", name),
        advice=f"Run {sentence_name(module)} less often, or on fewer data." if module else _ADVICE.get(most, ""),
    )


_ADVICE: Mapping[Owner, str] = {
    "input": "Prefetch more batches, so that a slow batch is ready in time.",
    "compile": "Pad inputs to few shapes, and compile those before the loop.",
    **dict.fromkeys(WAITS, "Take what a host or core does besides in these steps off it: all others wait for that."),
}
"""What to try, by the owner of most of what these steps take longer."""


def _usual(budget: Budget, longest_ps: Floats) -> tuple[float, str]:
    """The median step, and words on which steps it is of: not of those that other findings count as longer."""
    claimed, middle = (budget.whole_cells - budget.cells).mean(axis=0).sum(axis=1), median(longest_ps)
    explained = claimed >= median(claimed) + (SLOW_FACTOR - 1) * middle
    if not explained.any() or explained.all():
        return middle, ""
    return median(longest_ps[~explained]), " of the steps that no other finding counts as longer"


def _above_median(cells: Floats) -> Floats:
    """float64[steps, len(OWNERS)]: by how much each owner has more than in the median step, mean over cores."""
    by_step: Floats = cells.mean(axis=0)
    return by_step - medians(by_step)


def _claim(budget: Budget, above_ps: Floats, wanted_ps: Floats) -> Claim:
    """Takes from each step what it has more than the median step, each core and owner alike.

    Args:
        above_ps: float64[steps, len(OWNERS)], what each step has more of what no finding claims.
        wanted_ps: float64[steps], how much to take of each step.
    """
    by_step, together = budget.cells.mean(axis=0), above_ps.sum(axis=1)
    part = np.divide(wanted_ps, together, out=np.zeros(len(together)), where=together > 0)
    of_cell = np.divide(above_ps * part[:, None], by_step, out=np.zeros_like(by_step), where=by_step > 0)
    return Claim.of_cells(budget.cells * np.minimum(of_cell, 1.0))


def _module(budget: Budget, slow: Bools, more_ps: float) -> str:
    """The module that only the slow steps run, and that explains most of what they take longer; empty without one.

    Args:
        more_ps: how much longer a slow step takes.
    """
    if budget.steps is None:
        return ""
    grid, most, found = budget.steps.grid, _MOSTLY * more_ps, ""
    names = Counter(name.partition("(")[0] for name in budget.evidence.runs)  # other shapes are programs of one name
    for name, (start, duration) in budget.evidence.runs.items():
        step, inside = steps_at(grid, start)
        by_step = np.bincount(step[inside], np.maximum(duration[inside], 0), minlength=len(grid))
        others = float(by_step[~slow].mean()) if not slow.all() else 0.0
        if others <= _HARDLY * float(by_step[slow].mean()) and float(by_step[slow].mean()) >= most:
            base = name.partition("(")[0]
            found, most = name if names[base] > 1 else base, float(by_step[slow].mean())
    return found


def steps_at(grid: AlignedSteps, times_ps: Int64s) -> tuple[Int64s, Bools]:
    """The step of the first host that begins last before each time, -1 without any, and whether it lasts till then."""
    begin = grid.core_start_ps[grid.hosts == grid.hosts[0]].min(axis=0)
    order = np.argsort(begin, kind="stable")
    at = np.searchsorted(begin[order], times_ps, side="right") - 1
    step = np.where(at >= 0, order[at], -1)
    return step, (at >= 0) & (times_ps < (begin + grid.longest_ps)[step])


def _excess(steps: Steps, usual: float) -> Floats:
    """float64[steps]: how much longer than the median each step takes.

    Inferred steps go from one start of a module to the next, and a module may start more or less early before the one
    ahead of it ends. So where a neighbour is shorter, that does not make the step longer.
    """
    excess = steps.longest_ps - usual
    if steps.grid.source == "steps":
        return excess
    shorter = np.minimum(excess, 0.0)
    shorter_neighbours: Floats = np.append(0.0, shorter[:-1]) + np.append(shorter[1:], 0.0)
    return excess + shorter_neighbours


def _differs(more: Mapping[Owner, float], excess: float) -> str:
    """A sentence on the owners of whose time a step has most more than the median step."""
    named = sorted((owner for owner in more if more[owner] >= _NAMED * excess), key=lambda owner: -more[owner])
    if not named:
        return "No kind of op explains it: each core spends more time on something else."
    words = [f"{OWNER_TITLES[owner]} {time(more[owner])}" for owner in named[:_MOST_NAMED]]
    what = f", all in {OWNER_TITLES[named[0]]}" if more[named[0]] >= _ALL * excess else f": {', '.join(words)}"
    return f"It takes {time(excess)} longer than the median step{what}."


def _ops(slow_ops: tuple[SlowOp, ...], step: str, excess: float) -> str:
    named = [op for op in slow_ops if op.step == step and op.excess_ps >= _NAMED * excess][:_MOST_NAMED]
    if not named:
        return ""
    words = ", ".join(f"{shortened(op.op, _LONGEST_NAME)} {time(op.excess_ps)}" for op in named)
    return f"Ops that take longer there: {words}."


# --- programs between steps, such as an evaluation between steps that the program marks

BETWEEN_STEPS = Kind(
    "between-steps",
    "programs that run between steps",
    advice="Run them less often, or on fewer data.",
    rank=16,
    owners=("uncounted",),
    needs=(STEPS,),
)


@detects(BETWEEN_STEPS)
def between_steps(budget: Budget) -> Claimed:
    """Ops run between one step and the next: they are of no step, but a step comes so much later."""
    steps = budget.steps
    if steps is None or not budget.between_ps:
        return NOTHING
    ran = between_cells(steps.account)[:, :, owner_index("uncounted")]
    claim = budget.take(("uncounted",), ran)
    budget.needs(claim.worth_ps, LEAST_NAMED)
    timing = when(ran.mean(axis=0)[:-1], steps.names[:-1], LEAST_NAMED * budget.whole_ps)
    programs = _programs(budget.evidence, steps)
    names = list(programs)
    title = shortened(names[0]) if names else "What is outside steps"
    title += f" and {counted(len(names) - 1, 'other program')} run" if len(names) > 1 else " runs"
    return budget.finding(
        BETWEEN_STEPS,
        claim,
        f"{title} {f'after {timing.words}' if timing.period else 'between steps'}",
        "Time in which ops run between one step and the next, mean over cores and steps.",
        [
            f"Ops outside steps run for {budget.amount(claim.worth_ps)}.",
            *(
                f"{sentence_name(name)} runs {counted(runs, 'time')} between steps, for {time(ps / runs)} each."
                for name, (runs, ps) in list(programs.items())[:_MOST_NAMED]
            ),
        ],
        JumpTarget("timeline", steps.names[int(ran.mean(axis=0).argmax())]),
    )


def _programs(evidence: Evidence, steps: Steps) -> dict[str, tuple[int, float]]:
    """The programs that run between steps, most time first: how often, and for how long altogether."""
    found: dict[str, tuple[int, float]] = {}
    for name, (start, duration) in evidence.runs.items():
        step, is_inside = steps_at(steps.grid, start)
        apart = (step >= 0) & ~is_inside & (start < steps.grid.end_ps.max())
        if apart.any():
            runs, ps = found.get(base := name.partition("(")[0], (0, 0.0))
            found[base] = runs + int(np.count_nonzero(apart)), ps + float(duration[apart].sum())
    return dict(sorted(found.items(), key=lambda of: -of[1][1]))

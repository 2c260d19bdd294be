"""The finding about programs that run between steps, such as an evaluation between steps that the program marks."""

from __future__ import annotations

import numpy as np

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.base.words import sentence_name, shortened, time
from tpuprof.parsers.pages.findings.budget import NOTHING, Budget, Claimed, Steps, between_cells, detects
from tpuprof.parsers.pages.findings.cores.slow_steps import steps_at
from tpuprof.parsers.pages.findings.finding import STEPS, Evidence, JumpTarget, Kind
from tpuprof.parsers.pages.findings.ops.unexplained import LEAST_NAMED
from tpuprof.parsers.pages.findings.when import when
from tpuprof.parsers.steps.accounts.owners import owner_index

BETWEEN_STEPS = Kind(
    "between-steps",
    "programs that run between steps",
    advice="Run them less often, or on fewer data.",
    rank=16,
    owners=("uncounted",),
    needs=(STEPS,),
)

_MOST_NAMED = 3


@detects(BETWEEN_STEPS)
def between_steps(budget: Budget) -> Claimed:
    """Ops run between one step and the next: they are of no step, but a step comes so much later."""
    steps = budget.steps
    if steps is None or not budget.between_ps:
        return NOTHING
    ran = between_cells(steps.account)[:, :, owner_index("uncounted")]
    claim = budget.take(("uncounted",), ran)
    if claim.worth_ps < LEAST_NAMED * budget.whole_ps:
        return NOTHING
    timing = when(ran.mean(axis=0)[:-1], steps.names[:-1], LEAST_NAMED * budget.whole_ps)
    programs = _programs(budget.evidence, steps)
    names = list(programs)
    title = shortened(names[0]) if names else "What is of no step"
    title += f" and {counted(len(names) - 1, 'other program')} run" if len(names) > 1 else " runs"
    return budget.finding(
        BETWEEN_STEPS,
        claim,
        f"{title} {f'after {timing.words}' if timing.period else 'between steps'}",
        "Time in which ops run between one step and the next, mean over cores and steps.",
        [
            f"Ops of no step run for {budget.amount(claim.worth_ps)}.",
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

"""The finding about a link between two cores that is slower than the others: a ring waits for it as a whole."""

from __future__ import annotations

import numpy as np

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.base.words import multiple, sentence_name, time
from tpuprof.parsers.pages.findings.budget import NOTHING, Budget, Claimed, detects
from tpuprof.parsers.pages.findings.claims import COLLECTIVE_OWNERS
from tpuprof.parsers.pages.findings.cores.collectives import LEAST_WAITING, kind_of
from tpuprof.parsers.pages.findings.finding import CORES, STEPS, JumpTarget, Kind

SLOW_LINK = Kind(
    "slow-link",
    "a slow link between cores",
    advice="Let neighbours of the mesh be neighbours of the torus (mesh_utils.create_device_mesh). If these two are, "
    "run another program on them: a link that is slow there too is broken, and the host should be replaced.",
    rank=12,
    needs=(CORES, STEPS),
    page="collectives",
)


@detects(SLOW_LINK)
def slow_link(budget: Budget) -> Claimed:
    """What goes over one link of a collective-permute arrives later than over the others."""
    link, steps = budget.evidence.slow_link, budget.steps
    rows = [row for row in budget.rows["collective"].tolist() if kind_of(budget, row).startswith("collective-permute")]
    if link is None or steps is None or not rows:
        return NOTHING
    waiting = float(budget.op_ps(np.array(rows, np.intp)).sum())
    claim = budget.take_mean(COLLECTIVE_OWNERS, min(waiting, link.excess_ps / len(steps)))
    if claim.worth_ps < LEAST_WAITING * budget.whole_ps:
        return NOTHING
    factor = link.link_ps / max(link.others_ps, 1.0)
    source, target = sentence_name(link.source), sentence_name(link.target)
    return budget.finding(
        SLOW_LINK,
        claim,
        f"What {source} sends to {target} takes {multiple(factor)} times as long as between other cores",
        "Time in collective-permutes, at most what transfers over this link take longer than over the others.",
        [
            f"{counted(link.count, 'transfer')} from {source} to {target} arrived after {time(link.link_ps)} each, "
            f"those ahead of them included; the same between other cores after {time(link.others_ps)}.",
            f"All cores that pass on what they get wait for that: collective-permutes cost {budget.amount(waiting)}.",
            budget.largest(rows[0], float(budget.op_ps(np.array(rows[:1], np.intp))[0])),
        ],
        JumpTarget("timeline", budget.evidence.table.name[rows[0]]),
        is_estimate=True,
    )

"""Findings about kernels: custom calls, such as Pallas ones, whose work is counted or not."""

from __future__ import annotations

import numpy as np

from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.base.words import sentence_name, share, short
from tpuprof.parsers.ops.device import CUSTOM_CALL
from tpuprof.parsers.ops.roofline import uncounted
from tpuprof.parsers.pages.findings.budget import Budget
from tpuprof.parsers.pages.findings.claims import Rows
from tpuprof.parsers.pages.findings.finding import ADVICE, Finding, JumpTarget
from tpuprof.parsers.pages.findings.ops.groups import (
    HBM,
    NOTHING,
    USUAL,
    Claimed,
    CloneGroup,
    capped,
    kernel_name,
    op_finding,
)

LEAST_UNCOUNTED = 0.10
"""From this share of the time on it names kernels that nobody counted."""

LEADS = 0.5
"""From this share on they are what to know first, if nothing else is worth half as much."""

SLOW = 0.25
"""A kernel is slow if it uses less than this share of the matrix unit's peak, and of HBM's."""

_MOST_NAMED = 3
_CLASSES: tuple[OpClass, ...] = ("compute", "vector", "copy", "unknown")


def uncounted_kernels(budget: Budget) -> tuple[Finding | None, float]:
    """Where the time is, although it is unknown what could be saved: kernels of uncounted work; and how much it is."""
    table = budget.evidence.table
    rows = budget.rows["unknown"]
    rows = rows[uncounted(table)[rows]]
    times = budget.op_ps(rows)
    together = float(times.sum())
    if together < LEAST_UNCOUNTED * budget.whole_ps:
        return None, together
    kernels = _by_kernel(budget, rows)
    words = [f"{short(group.name)} {share(group.ps / budget.whole_ps)}" for group in kernels[:_MOST_NAMED]]
    words += [f"{len(kernels) - _MOST_NAMED} more"] * (len(kernels) > _MOST_NAMED)
    first = kernels[0]
    finding = Finding(
        "uncounted",
        f"Kernels of unknown work take {share(together / budget.whole_ps)}: {', '.join(words)}",
        None,
        budget.per,
        None,
        None,
        False,
        "How much could be saved is unknown: the profile has neither FLOPs nor bytes for these custom calls.",
        (
            f"Custom calls without counted work take {budget.amount(together)}, mean over cores.",
            *(
                f"{sentence_name(group.name)} takes {budget.amount(group.ps)}, in {_calls(group)}; "
                f"the longest is {budget.described(group.first)}."
                for group in kernels[:_MOST_NAMED]
            ),
        ),
        ADVICE["uncounted"],
        JumpTarget("op-profile", table.name[first.first]),
        subject=budget.subject(rows),
    )
    return finding, together


def _calls(group: CloneGroup) -> str:
    return f"{len(group.rows):,} {'calls' if len(group.rows) > 1 else 'call'} of the program"


def _by_kernel(budget: Budget, rows: Rows) -> list[CloneGroup]:
    """Groups custom calls by kernel, the one with most time first."""
    members: dict[str, list[int]] = {}
    for row in rows.tolist():
        members.setdefault(kernel_name(budget.evidence.table, row), []).append(row)
    groups = [
        CloneGroup(np.array(of, np.intp), float(budget.op_ps(np.array(of, np.intp)).sum()), name)
        for name, of in members.items()
    ]
    return sorted(groups, key=lambda group: -group.ps)


def slow_kernels(budget: Budget) -> Claimed:
    """Custom calls whose counted work takes far longer than the device needs for it."""
    table, rates = budget.evidence.table, budget.evidence.rates
    candidates = np.concatenate([budget.rows[name] for name in _CLASSES])
    rows = np.array([row for row in candidates.tolist() if table.category[row] == CUSTOM_CALL], np.intp)
    if not len(rows):
        return NOTHING
    used = np.stack([capped(rates.flops_utilization[rows]), capped(rates.bandwidth_utilization[rows, HBM])], axis=1)
    # bytes alone, of its operands by the compiler's count, say nothing of a kernel that computes
    best = np.where(np.isfinite(used[:, 0]), np.nan_to_num(used).max(axis=1), np.nan)
    times = budget.op_ps(rows)
    slow = (best > 0) & (best < SLOW)
    saved = np.where(slow, times * (1 - np.nan_to_num(best) / USUAL), 0.0)

    def make(groups: list[CloneGroup], worth: float) -> Finding | None:
        first = groups[0]
        name = kernel_name(table, first.first)
        at = int(np.flatnonzero(rows == first.first)[0])
        flops, bandwidth = (f"{share(value)} of {what}" for value, what in zip(used[at], _PEAKS, strict=True))
        more = f" and {len(groups) - 1} more kernels" if len(groups) > 1 else ""
        return budget.finding(
            "slow-kernel",
            f"Kernel {short(name)} runs at {share(float(best[at]))} of the roof{more}",
            worth,
            f"Time of these custom calls above what their counted work takes at {share(USUAL)} of the roof.",
            [
                f"{sentence_name(name)} takes {budget.amount(first.ps)}, in {_calls(first)}, "
                f"at {flops} and {bandwidth}.",
                budget.largest(first.first, float(times[at]), "The longest call"),
            ],
            JumpTarget("op-profile", table.name[first.first]),
            is_estimate=True,
        )

    return op_finding(budget, rows, saved, make)


_PEAKS = ("the peak FLOP/s", "HBM's peak")

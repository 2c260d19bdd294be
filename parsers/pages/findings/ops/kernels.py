"""Findings about kernels: custom calls, such as Pallas ones, whose work is counted or not."""

from __future__ import annotations

import numpy as np

from tpuprof.parsers.base.intervals import grouped
from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.base.words import NO_PEAK_HBM, sentence_name, share, shortened, size
from tpuprof.parsers.ops.core.calls import CallRuns
from tpuprof.parsers.ops.core.kernel_blocks import block_rows, wait_words, waited_for
from tpuprof.parsers.ops.core.kernel_work import spec_of
from tpuprof.parsers.ops.device import CUSTOM_CALL, is_kernel
from tpuprof.parsers.ops.roofline import uncounted
from tpuprof.parsers.ops.table import OpTable, kernel_name
from tpuprof.parsers.pages.findings.budget import NOTHING, Budget, Claimed, detects
from tpuprof.parsers.pages.findings.claims import Rows
from tpuprof.parsers.pages.findings.finding import PEAKS, JumpTarget, Kind, Need
from tpuprof.parsers.pages.findings.ops.groups import HBM, LEAST_WORTH, USUAL, CloneGroup, capped, module_of, worthwhile

LEAST_UNCOUNTED = 0.10
"""From this share of the time on it names kernels that nobody counted."""

LEADS = 0.5
"""From this share on they are what to know first, if nothing else is worth half as much."""

SLOW = 0.25
"""A kernel is slow if it uses less than this share of the matrix unit's peak, and of HBM's."""

_MOST_NAMED = 3
_CLASSES: tuple[OpClass, ...] = ("compute", "vector", "copy", "unknown")

UNCOUNTED = Kind(
    "uncounted",
    "kernels of unknown work",
    advice="Give these kernels a cost estimate (pl.CostEstimate), and compare their time with it.",
    rank=3,
)


@detects(UNCOUNTED)
def uncounted_kernels(budget: Budget) -> Claimed:
    """Where the time is, although it is unknown what could be saved: kernels of uncounted work."""
    table, rows = budget.evidence.table, _uncounted(budget)
    together = float(budget.op_ps(rows).sum())
    budget.needs(together, LEAST_UNCOUNTED)
    kernels = _by_kernel(budget, rows)
    words = [f"{shortened(group.name)} {share(group.ps / budget.whole_ps)}" for group in kernels[:_MOST_NAMED]]
    words += [f"{len(kernels) - _MOST_NAMED} more"] * (len(kernels) > _MOST_NAMED)
    first = kernels[0]
    return budget.of_unknown_worth(
        UNCOUNTED,
        f"Kernels of unknown work take {share(together / budget.whole_ps)}: {', '.join(words)}",
        "The saving is unknown: the profile has neither FLOPs nor bytes for these custom calls.",
        (
            f"Custom calls without counted work take {budget.amount(together)}, mean over cores.",
            *(
                f"{sentence_name(group.name)} takes {budget.amount(group.ps)}, in {_calls(group)}; "
                f"the longest is {budget.described(group.first)}."
                for group in kernels[:_MOST_NAMED]
            ),
        ),
        _place(table, first.first),
        rows,
    )


def _uncounted(budget: Budget) -> Rows:
    rows = budget.rows["unknown"]
    return rows[uncounted(budget.evidence.table)[rows]]


def uncounted_ps(budget: Budget) -> float:
    """The time of custom calls of unknown work."""
    return float(budget.op_ps(_uncounted(budget)).sum())


def _place(table: OpTable, row: int) -> JumpTarget:
    """Where a kernel is shown; custom calls that the compiler makes for itself are among the ops."""
    return JumpTarget("op-profile", table.name[row], "kernels" if is_kernel(table.expression(row)) else "")


def _calls(group: CloneGroup) -> str:
    return f"{len(group.rows):,} {'calls' if len(group.rows) > 1 else 'call'} of the program"


def _by_kernel(budget: Budget, rows: Rows) -> list[CloneGroup]:
    """Groups custom calls by kernel, the one with most time first."""
    members = grouped((kernel_name(budget.evidence.table, row), row) for row in rows.tolist())
    groups = [
        CloneGroup(np.array(of, np.intp), float(budget.op_ps(np.array(of, np.intp)).sum()), name)
        for name, of in members.items()
    ]
    return sorted(groups, key=lambda group: -group.ps)


SPANS = Need(
    "the profile has no spans inside kernels (--xla_xprof_enable_custom_call_tracing)",
    lambda of: bool(of.calls) or CUSTOM_CALL not in of.table.category,
)
KERNEL_WAIT = Kind(
    "kernel-wait",
    "kernels that wait for copies",
    advice=(
        "Give the block that it waits for a second buffer (pl.Buffered(2)), or use larger blocks, which are "
        "copied less often; the page kernels shows blocks and buffers."
    ),
    rank=25,
    needs=(SPANS,),
)


@detects(KERNEL_WAIT)
def kernel_waits(budget: Budget) -> Claimed:
    """Custom calls that wait for copies, by the spans inside them, for longer than their bytes take."""
    table, rates = budget.evidence.table, budget.evidence.rates
    calls = {row: call for row, call in _waiting(budget).items() if _has_bytes(budget, row)}
    if not calls:
        return NOTHING
    rows = np.array(list(calls), np.intp)
    times = budget.op_ps(rows)
    waits = times * np.array([_waits(call) for call in calls.values()])
    needed = capped(rates.bandwidth_utilization[rows, HBM]) / USUAL
    saved = np.minimum(waits, np.maximum(0.0, times * (1 - needed)))

    losing = worthwhile(budget, rows, saved)
    first = losing.groups[0]
    call, name = calls[first.first], kernel_name(table, first.first)
    more = f" and {len(losing.groups) - 1} more kernels" if len(losing.groups) > 1 else ""
    return losing.finding(
        KERNEL_WAIT,
        f"Kernel {shortened(name)} waits for copies in {share(_waits(call))} of its time{more}",
        "Time in which these custom calls wait for copies by the spans inside them, as far as it is more than "
        f"their bytes leave at {share(USUAL)} of HBM's peak.",
        [
            f"{sentence_name(name)} takes {budget.amount(first.ps)}, in {_calls(first)}.",
            _wait_sentence(budget, first.first, call),
            *_moved(budget, first.first),
            budget.largest(first.first, float(times[list(calls).index(first.first)]), "The longest call"),
        ],
        _place(table, first.first),
    )


@detects(KERNEL_WAIT)
def uncounted_waits(budget: Budget) -> Claimed:
    """The same of custom calls whose share of HBM's peak is unknown: it may explain all of their waits, or none."""
    table = budget.evidence.table
    calls = {row: call for row, call in _waiting(budget).items() if not _has_bytes(budget, row)}
    rows = np.array(list(calls), np.intp)
    times = budget.op_ps(rows)
    waits = float((times * np.array([_waits(call) for call in calls.values()])).sum())
    budget.needs(waits, LEAST_WORTH)
    kernels = _by_kernel(budget, rows)
    first = kernels[0]
    longest = max(first.rows.tolist(), key=lambda row: float(budget.op_ps(np.array([row]))[0]))
    more = f" and {len(kernels) - 1} more kernels" if len(kernels) > 1 else ""
    return budget.of_unknown_worth(
        KERNEL_WAIT,
        f"Kernel {shortened(first.name)} waits for copies in {share(_waits(calls[longest]))} of its time{more}",
        f"The saving is unknown: {_why_unknown(budget)}, so these custom calls may wait because they move "
        "as much as HBM can.",
        (
            f"These custom calls wait for copies for {budget.amount(waits)} together; no more than that can be saved.",
            f"{sentence_name(first.name)} takes {budget.amount(first.ps)}, in {_calls(first)}.",
            _wait_sentence(budget, longest, calls[longest]),
        ),
        _place(table, longest),
        rows,
    )


def _waiting(budget: Budget) -> dict[int, CallRuns]:
    """Rows of custom calls that wait for a good part of their time, and what is traced of them."""
    table = budget.evidence.table
    traced = {(call.program_id, call.name): call for call in budget.evidence.calls}
    candidates = np.concatenate([budget.rows[name] for name in _CLASSES]).tolist()
    keys = {row: (int(table.program_id[row]), table.name[row]) for row in candidates}
    return {row: traced[key] for row, key in keys.items() if key in traced and _waits(traced[key]) >= WAITS}


def _why_unknown(budget: Budget) -> str:
    if budget.evidence.peaks.hbm is None:
        return NO_PEAK_HBM
    return "the profile does not count their bytes"


def _has_bytes(budget: Budget, row: int) -> bool:
    """Whether an op's share of HBM's peak is known; 0 bytes are what a kernel has that nobody counted."""
    return bool(budget.evidence.rates.bandwidth_utilization[row, HBM] > 0)


WAITS = 0.2
"""A kernel that waits for copies for a smaller part of its time has no finding for that."""


def _waits(call: CallRuns) -> float:
    return call.part(call.wait_in_ps + call.wait_out_ps) or 0.0


def _wait_sentence(budget: Budget, row: int, call: CallRuns) -> str:
    """What a kernel waits for, and which array it is, where its module says."""
    words = f"It waits for blocks to come in {share(call.part(call.wait_in_ps) or 0.0)} of that, for results to be "
    words += f"written in {share(call.part(call.wait_out_ps) or 0.0)}"
    words += f"; its body runs in {share(call.part(call.body_ps) or 0.0)}" if call.body_ps else ""
    spec = spec_of(module_of(budget.evidence, row), budget.evidence.table.name[row])
    array = wait_words(waited_for(block_rows(spec), call.wait_places))
    return f"{words}. Of the waits for blocks {array}." if array else f"{words}."


def _moved(budget: Budget, row: int) -> list[str]:
    """How fast it moves data; nothing where nobody counted it."""
    rates = budget.evidence.rates
    moved, used = float(rates.bandwidth[row, HBM]), float(rates.bandwidth_utilization[row, HBM])
    if not moved > 0:
        return []
    of_peak = f", {share(used)} of HBM's peak" if np.isfinite(used) else ""
    return [f"Meanwhile it moves {size(moved)}/s{of_peak}."]


SLOW_KERNEL = Kind(
    "slow-kernel",
    "slow kernels",
    advice=(
        "Use larger blocks (BlockSpec), so that each step of the grid computes more, and a second buffer for each "
        "(pl.Buffered(2)); compare its time with that of the same function without the kernel."
    ),
    rank=26,
    needs=(PEAKS,),
)


@detects(SLOW_KERNEL)
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

    losing = worthwhile(budget, rows, saved)
    first = losing.groups[0]
    name = kernel_name(table, first.first)
    at = int(np.flatnonzero(rows == first.first)[0])
    known = zip(used[at].tolist(), _PEAKS, strict=True)
    parts = " and ".join(f"{share(value)} of {what}" for value, what in known if np.isfinite(value))
    more = f" and {len(losing.groups) - 1} more kernels" if len(losing.groups) > 1 else ""
    return losing.finding(
        SLOW_KERNEL,
        f"Kernel {shortened(name)} runs at {share(float(best[at]))} of the roof{more}",
        f"Time of these custom calls above what their counted work takes at {share(USUAL)} of the roof.",
        [
            f"{sentence_name(name)} takes {budget.amount(first.ps)}, in {_calls(first)}, at {parts}.",
            budget.largest(first.first, float(times[at]), "The longest call"),
        ],
        _place(table, first.first),
    )


_PEAKS = ("the peak FLOP/s", "HBM's peak")

"""Looks for all findings and puts them in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from tpuprof.parsers.base.intervals import is_among
from tpuprof.parsers.pages.findings.budget import Budget, budget
from tpuprof.parsers.pages.findings.capture import memory_nearly_full, no_device_events
from tpuprof.parsers.pages.findings.cores.collectives import (
    across_slices,
    exposed_collectives,
    imbalance,
    pipeline_bubbles,
    sparse_core_waits,
)
from tpuprof.parsers.pages.findings.cores.late import at_barriers, late_host, slow_core, straggling
from tpuprof.parsers.pages.findings.cores.slow_steps import slow_steps
from tpuprof.parsers.pages.findings.finding import KINDS, Evidence, Finding, FindingKind
from tpuprof.parsers.pages.findings.idle.waiting import compiling, idle_gaps, waiting_for_input
from tpuprof.parsers.pages.findings.ops.bandwidth import latency_bound, memory_bound
from tpuprof.parsers.pages.findings.ops.groups import OpFinding
from tpuprof.parsers.pages.findings.ops.intermediates import scores_in_hbm, unfused
from tpuprof.parsers.pages.findings.ops.kernels import LEADS, slow_kernels, uncounted_kernels
from tpuprof.parsers.pages.findings.ops.loops import recomputation, tiny_loops
from tpuprof.parsers.pages.findings.ops.moving import (
    copy_waits,
    debug_prints,
    host_offload,
    in_host_memory,
    layout_copies,
    shuffles,
)
from tpuprof.parsers.pages.findings.ops.products import (
    Products,
    needless_precision,
    padded_products,
    products_of,
    vector_work,
)
from tpuprof.parsers.pages.findings.ops.repeated import few_rows, repeated_casts
from tpuprof.parsers.pages.findings.ops.unexplained import unexplained
from tpuprof.parsers.steps.ledger import ledger


def findings(evidence: Evidence) -> tuple[Finding, ...]:
    """Why the program is slow: what to know first, then those worth most; empty where nothing stands out."""
    whole = budget(evidence, ledger(evidence.grid))
    return findings_of(evidence, whole, None if whole is None else products_of(whole))


def findings_of(evidence: Evidence, whole: Budget | None, products: Products | None) -> tuple[Finding, ...]:
    """The same where the time to divide and the matrix products are known already.

    Time that belongs to two of them counts for the one that says more about its cause: input, compiling and a late core
    before idle time and collectives, and all of them before slow steps. An op's time is in one finding.
    """
    of_capture = [found for found in (no_device_events(evidence), memory_nearly_full(evidence)) if found is not None]
    if whole is None:
        return tuple(of_capture)
    claims = [waiting_for_input(whole), compiling(whole), late_host(whole), slow_core(whole)]
    for look in (imbalance, pipeline_bubbles):
        claims.append(look(whole, sum(claim.collective_ps for claim in claims)))
    if all(claim.finding is None for claim in claims[3:]):  # what one of these explains is no straggler's fault
        claims.append(straggling(whole))
    claims.append(at_barriers(whole, sum(claim.idle_ps for claim in claims)))
    sparse, waits = sparse_core_waits(whole, sum(claim.collective_ps for claim in claims))
    claims.append(sparse)
    rest = whole.without(waits)
    candidates = [
        *(claim.finding for claim in claims),
        exposed_collectives(rest, sum(claim.collective_ps for claim in claims)),
        idle_gaps(rest, sum(claim.idle_ps for claim in claims)),
        *_of_ops(rest, products),
    ]
    known = [finding for finding in candidates if finding is not None]
    counted: set[FindingKind] = {"collective"} if any(claim.collective_ps for claim in claims) else set()
    slow = slow_steps(whole, frozenset(finding.kind for finding in known) | counted)
    known += [slow] if slow is not None else []
    known.sort(key=lambda finding: (-(finding.worth_ps or 0), KINDS.index(finding.kind)))
    uncounted, ps = uncounted_kernels(whole)
    where = [] if uncounted is None else [uncounted]
    # where most of the time is goes before a small saving, and behind a large one
    leads = ps >= max(LEADS * whole.whole_ps, *(2 * (finding.worth_ps or 0) for finding in known), 0.0)
    return (*(where if leads else []), *known, *([] if leads else where), *of_capture)


def _of_ops(whole: Budget, products: Products | None) -> Iterator[Finding | None]:
    """Findings about ops; one takes the time of its ops from those behind it.

    Args:
        products: the large matrix products; None where the profile does not hold them.
    """
    offloaded = in_host_memory(whole)
    across, rows = across_slices(whole)
    yield across
    carried = 0.0 if across is None else across.worth_ps or 0.0
    printing, printed = debug_prints(whole.without(rows))
    yield printing
    carried += float(whole.op_ps(printed[is_among(printed, whole.rows["host"])], "host").sum())
    yield host_offload(whole.without(np.concatenate([rows, printed])), offloaded, carried)
    ahead: list[_Look] = [lambda rest: copy_waits(rest, offloaded), tiny_loops, repeated_casts, recomputation]
    if products is not None:
        ahead.append(lambda rest: scores_in_hbm(rest, products))
        ahead.append(lambda rest: few_rows(rest, products))
        ahead.append(lambda rest: needless_precision(rest, products))
        ahead.append(lambda rest: padded_products(rest, products))
    ahead += [slow_kernels, latency_bound, vector_work]
    behind: list[_Look] = [lambda rest: layout_copies(rest, offloaded), shuffles, memory_bound]
    rest = whole.without(printed)
    for look in (*map(_alone, ahead), unfused, *map(_alone, behind)):
        for finding, rows in look(rest):
            if finding is not None:
                rest = rest.without(rows)
                yield finding
    yield unexplained(rest)


_Look = Callable[[Budget], OpFinding]


def _alone(look: _Look) -> Callable[[Budget], tuple[OpFinding, ...]]:
    """What finds one thing at most, like what finds several."""
    return lambda rest: (look(rest),)


_BY_STEP: tuple[FindingKind, ...] = ("straggler", "slow-core", "imbalance", "pipeline", "slow-step", "compilation")
_BY_CORES: tuple[FindingKind, ...] = ("straggler", "slow-core", "barrier", "imbalance", "pipeline", "dcn")
_BY_HLO: tuple[FindingKind, ...] = ("precision", "padding", "tiny-loop", "vector-work", "unfused")
_BY_PEAKS: tuple[FindingKind, ...] = (
    "slow-kernel",
    "latency-bound",
    "vector-work",
    "unfused",
    "memory-bound",
    "unexplained",
)


def undetectable(evidence: Evidence) -> dict[str, str]:
    """The kinds of findings that cannot be detected in this profile, and why."""
    out: dict[str, str] = {}
    if not len(evidence.table):
        known = ("no-device", "memory-full")
        return {kind: "the profile has no device events" for kind in KINDS if kind not in known}
    if evidence.memory is None:
        out["memory-full"] = "no event of the host's allocators tells how full the memory was"
    if evidence.grid is None:
        out |= dict.fromkeys(_BY_STEP, "the profile has no steps that all cores share")
    if not evidence.barriers:
        out["barrier"] = "no core has a line of barriers (XLA TraceMe)"
    if not any(evidence.table.framework_op):
        out["debug-print"] = "no op carries a framework name"
    if evidence.core_count < 2:
        out |= dict.fromkeys(_BY_CORES, "one core alone waits for no other")
    if evidence.peaks.hbm is None:
        out |= dict.fromkeys(_BY_PEAKS, "the device plane gives no peak HBM bandwidth")
    if not any(modules.names for modules in evidence.modules):
        out |= dict.fromkeys(_BY_HLO, "the profile holds no HLO (enable_hlo_proto may be off)")
    return {kind: out[kind] for kind in KINDS if kind in out}

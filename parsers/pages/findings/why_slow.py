"""Looks for all findings and puts them in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tpuprof.parsers.base.words import NO_PEAK_HBM, NO_SCOPES
from tpuprof.parsers.ops.device import CUSTOM_CALL
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
from tpuprof.parsers.pages.findings.finding import KINDS, Evidence, Finding, FindingKind, told
from tpuprof.parsers.pages.findings.idle.waiting import compiling, idle_gaps, waiting_for_input
from tpuprof.parsers.pages.findings.ops.arrays import ModuleArrays, large_arrays
from tpuprof.parsers.pages.findings.ops.bandwidth import latency_bound, memory_bound
from tpuprof.parsers.pages.findings.ops.groups import Claimed
from tpuprof.parsers.pages.findings.ops.intermediates import scores_in_hbm, unfused
from tpuprof.parsers.pages.findings.ops.kernels import (
    LEADS,
    kernel_waits,
    slow_kernels,
    uncounted_kernels,
    uncounted_waits,
)
from tpuprof.parsers.pages.findings.ops.loops import recomputation, tiny_loops
from tpuprof.parsers.pages.findings.ops.moving import (
    copy_waits,
    debug_prints,
    host_offload,
    in_host_memory,
    layout_copies,
    shuffles,
)
from tpuprof.parsers.pages.findings.ops.needless.arguments import cast_arguments
from tpuprof.parsers.pages.findings.ops.needless.expanded import expanded
from tpuprof.parsers.pages.findings.ops.needless.low_rank import low_rank
from tpuprof.parsers.pages.findings.ops.needless.repeated import few_rows, repeated_casts
from tpuprof.parsers.pages.findings.ops.needless.rewritten import rewritten
from tpuprof.parsers.pages.findings.ops.products import (
    Products,
    needless_precision,
    padded_products,
    products_of,
    random_bits,
    vector_work,
)
from tpuprof.parsers.pages.findings.ops.trips import Loop, loops_of
from tpuprof.parsers.pages.findings.ops.unexplained import unexplained
from tpuprof.parsers.steps.ledger import ledger


def findings(evidence: Evidence) -> tuple[Finding, ...]:
    """Why the program is slow: what to know first, then those worth most; empty where nothing stands out."""
    whole = budget(evidence, ledger(evidence.grid))
    if whole is None:
        return findings_of(evidence, None, None)
    return findings_of(evidence, whole, products_of(whole), large_arrays(whole), tuple(loops_of(whole)))


def findings_of(
    evidence: Evidence,
    whole: Budget | None,
    products: Products | None,
    programs: Sequence[ModuleArrays] = (),
    loops: Sequence[Loop] = (),
) -> tuple[Finding, ...]:
    """The same where the time to divide, the matrix products, the large arrays and the loops are known already."""
    of_capture = [found for found in (no_device_events(evidence), memory_nearly_full(evidence)) if found is not None]
    if whole is None:
        return tuple(map(told, of_capture))
    known, left = _claiming(whole, products, programs, loops)
    without_reason = unexplained(left)
    known += [without_reason] if without_reason is not None else []
    known.sort(key=lambda finding: (-(finding.worth_ps or 0), KINDS.index(finding.kind)))
    uncounted, ps = uncounted_kernels(whole)
    where = [] if uncounted is None else [uncounted]
    waits = uncounted_waits(whole)
    unknown = [] if waits is None else [waits]
    # where most of the time is goes before a small saving, and behind a large one
    leads = ps >= max(LEADS * whole.whole_ps, *(2 * (finding.worth_ps or 0) for finding in known), 0.0)
    return tuple(map(told, (*(where if leads else []), *known, *unknown, *([] if leads else where), *of_capture)))


_Look = Callable[[Budget], Claimed | list[Claimed]]


def _claiming(
    left: Budget, products: Products | None, programs: Sequence[ModuleArrays], loops: Sequence[Loop]
) -> tuple[list[Finding], Budget]:
    """Findings that claim time, one after the other, and what they leave.

    Time that belongs to two of them is that of the one that says more about its cause: input, compiling and a late core
    come before idle time and collectives, and all of them before slow steps. An op is in one finding.

    Args:
        products: the large matrix products; None where the profile does not hold them.
        programs: what the large ops read and write.
        loops: of the programs.
    """
    offloaded = in_host_memory(left)
    ahead: list[_Look] = [waiting_for_input, compiling, late_host, slow_core, imbalance, pipeline_bubbles, straggling]
    ahead += [at_barriers, sparse_core_waits, across_slices, exposed_collectives, idle_gaps, debug_prints]
    ahead += [lambda rest: host_offload(rest, offloaded), lambda rest: copy_waits(rest, offloaded)]
    ahead += [tiny_loops, lambda rest: repeated_casts(rest, programs, loops), recomputation]
    ahead += [lambda rest: cast_arguments(rest, programs)]
    ahead += [lambda rest: expanded(rest, programs), lambda rest: rewritten(rest, programs)]
    if products is not None:
        ahead.append(lambda rest: scores_in_hbm(rest, products, programs))
        ahead.append(lambda rest: few_rows(rest, products, programs, loops))
        ahead.append(lambda rest: low_rank(rest, products, programs))
        ahead.append(lambda rest: needless_precision(rest, products))
        ahead.append(lambda rest: padded_products(rest, products))
    ahead += [kernel_waits, slow_kernels, latency_bound, vector_work, random_bits, lambda rest: unfused(rest, programs)]
    behind: list[_Look] = [
        lambda rest: layout_copies(rest, offloaded),
        shuffles,
        lambda rest: memory_bound(rest, loops),
        slow_steps,
    ]
    found: list[Finding] = []
    for look in (*ahead, *behind):
        if look is straggling and any(each.kind in _NO_STRAGGLER for each in found):
            continue
        one_or_more = look(left)
        for finding, claim in one_or_more if isinstance(one_or_more, list) else [one_or_more]:
            if finding is not None:
                found.append(left.with_claim(finding, claim))
                left = left.after(claim)
    return found, left


_NO_STRAGGLER: tuple[FindingKind, ...] = ("slow-core", "imbalance", "pipeline")
"""What one of these explains is no straggler's fault."""


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
        out["memory-full"] = "no allocator event on the host shows how full the memory was"
    if evidence.grid is None:
        out |= dict.fromkeys(_BY_STEP, "the profile has no steps that all cores share")
    if not evidence.barriers:
        out["barrier"] = "no core has a line of barriers (XLA TraceMe)"
    if not any(evidence.table.framework_op):
        out["debug-print"] = NO_SCOPES
    if evidence.core_count < 2:
        out |= dict.fromkeys(_BY_CORES, "the run has one core, which waits for no other")
    if not evidence.calls and any(category == CUSTOM_CALL for category in evidence.table.category):
        out["kernel-wait"] = "the profile has no spans inside kernels (--xla_xprof_enable_custom_call_tracing)"
    if evidence.peaks.hbm is None:
        out |= dict.fromkeys(_BY_PEAKS, NO_PEAK_HBM)
    if not any(modules.names for modules in evidence.modules):
        out |= dict.fromkeys(_BY_HLO, "the profile holds no HLO (enable_hlo_proto may be off)")
    return {kind: out[kind] for kind in KINDS if kind in out}

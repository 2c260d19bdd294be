"""Looks for all findings and puts them in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from tpuprof.parsers.base.errors import INTERNAL, behind_wall
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.pages.findings.budget import Budget, Detector
from tpuprof.parsers.pages.findings.capture import MEMORY_FULL, NO_DEVICE, memory_nearly_full, no_device_events
from tpuprof.parsers.pages.findings.cores import collectives
from tpuprof.parsers.pages.findings.cores.barriers import at_barriers
from tpuprof.parsers.pages.findings.cores.late import late_host, slow_core, straggling
from tpuprof.parsers.pages.findings.cores.slow_steps import between_steps, slow_steps
from tpuprof.parsers.pages.findings.cores.sparse_cores import sparse_core_waits
from tpuprof.parsers.pages.findings.finding import Evidence, Finding, Kind, with_own_figures
from tpuprof.parsers.pages.findings.idle.outside import COMPILATION, SILENCE, compiling, long_silence, outside_steps
from tpuprof.parsers.pages.findings.idle.waiting import idle_gaps, waiting_for_input
from tpuprof.parsers.pages.findings.ops import kernels, moving, products
from tpuprof.parsers.pages.findings.ops.bandwidth import latency_bound, memory_bound
from tpuprof.parsers.pages.findings.ops.intermediates import scores_in_hbm, unfused
from tpuprof.parsers.pages.findings.ops.loops import recomputation, tiny_loops
from tpuprof.parsers.pages.findings.ops.needless.arguments import cast_arguments
from tpuprof.parsers.pages.findings.ops.needless.expanded import expanded
from tpuprof.parsers.pages.findings.ops.needless.low_rank import low_rank
from tpuprof.parsers.pages.findings.ops.needless.repeated import few_rows, repeated_casts
from tpuprof.parsers.pages.findings.ops.needless.rewritten import rewritten
from tpuprof.parsers.pages.findings.ops.needless.streamed import streamed_operands
from tpuprof.parsers.pages.findings.ops.unexplained import unexplained

DETECTORS: tuple[Detector, ...] = (
    waiting_for_input,
    compiling,
    late_host,
    slow_core,
    collectives.slow_link,
    collectives.imbalance,
    collectives.pipeline_bubbles,
    straggling,
    at_barriers,
    sparse_core_waits,
    collectives.across_slices,
    collectives.exposed_collectives,
    idle_gaps,
    between_steps,
    moving.debug_prints,
    moving.host_offload,
    moving.copy_waits,
    tiny_loops,
    repeated_casts,
    recomputation,
    cast_arguments,
    expanded,
    rewritten,
    scores_in_hbm,
    few_rows,
    low_rank,
    products.needless_precision,
    products.padded_products,
    streamed_operands,
    kernels.kernel_waits,
    kernels.slow_kernels,
    latency_bound,
    products.vector_work,
    products.random_bits,
    unfused,
    moving.layout_copies,
    moving.shuffles,
    memory_bound,
    slow_steps,
    unexplained,
)
"""What claims time, one after the other: a new detector is a line here.

Time that belongs to two of them is that of the one that says more about its cause: input, compiling and a late core
come before idle time and collectives, and all of them before slow steps. An op is in one finding.
"""

OF_CAPTURE: tuple[tuple[Kind, Callable[[Evidence], Finding | None]], ...] = (
    (NO_DEVICE, no_device_events),
    (SILENCE, long_silence),
    (MEMORY_FULL, memory_nearly_full),
    (COMPILATION, outside_steps),
)

KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in sorted(
        {
            *(kind for kind, _ in OF_CAPTURE),
            *(kind for detector in (*DETECTORS, kernels.uncounted_kernels) for kind in detector.kinds),
        },
        key=lambda kind: (kind.rank, kind.name),
    )
}
"""All kinds by name; of findings that are worth the same the one whose kind comes first here comes first."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What a search for findings has found, in order, and a sentence on each detector that failed."""

    found: tuple[Finding, ...]
    failed: tuple[str, ...] = ()


def look_for_findings(evidence: Evidence, whole: Budget | None) -> Looked:
    """Why the program is slow: what to know first, then those worth most; empty where nothing stands out.

    Args:
        whole: the time to divide; None where there is none.
    """
    failed: list[str] = []
    of_capture = [
        with_own_figures(found)
        for kind, detect in OF_CAPTURE
        if (found := behind_wall(kind.search, partial(detect, evidence), failed)) is not None
    ]
    if whole is None:
        return Looked(tuple(of_capture), tuple(failed))
    known = sorted(_claiming(whole, failed), key=lambda found: (-(found.worth_ps or 0), KINDS[found.kind].rank))
    where, _ = kernels.uncounted_kernels.look(whole, failed)
    unknown, _ = kernels.uncounted_waits.look(whole, failed)
    # where most of the time is goes before a small saving, and behind a large one
    least = max(kernels.LEADS * whole.whole_ps, *(2 * (finding.worth_ps or 0) for finding in known), 0.0)
    leads = kernels.uncounted_ps(whole) >= least
    ordered = (*(where if leads else ()), *known, *unknown, *(() if leads else where), *of_capture)
    return Looked(ordered, tuple(failed))


def _claiming(left: Budget, failed: list[str]) -> list[Finding]:
    """Findings that claim time."""
    found: list[Finding] = []
    for detector in DETECTORS:
        if any(each.kind in kind.unless for kind in detector.kinds for each in found):
            continue
        some, left = detector.look(left, failed)
        found += some
    return found


def undetectable(evidence: Evidence, failed: Sequence[str] = ()) -> dict[str, str]:
    """The kinds of findings that cannot be detected in this profile, and why; `failed` as of `Looked`."""
    broken = {
        kind.name for each in (*DETECTORS, kernels.uncounted_kernels) if each.has_failed(failed) for kind in each.kinds
    }
    reasons = {name: INTERNAL if name in broken else kind.lacks(evidence) for name, kind in KINDS.items()}
    return {name: why for name, why in reasons.items() if why}

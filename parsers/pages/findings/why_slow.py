"""Looks for all findings and puts them in order."""

from __future__ import annotations

from tpuprof.parsers.pages.findings.between_cores import exposed_collectives, straggling
from tpuprof.parsers.pages.findings.budget import budget
from tpuprof.parsers.pages.findings.finding import KINDS, MOST_FINDINGS, Evidence, Finding
from tpuprof.parsers.pages.findings.moving import host_offload, in_host_memory, layout_copies
from tpuprof.parsers.pages.findings.slow_steps import slow_steps
from tpuprof.parsers.pages.findings.waiting import compiling, idle_gaps, waiting_for_input
from tpuprof.parsers.pages.findings.working import matrix_padding, memory_bound


def findings(evidence: Evidence) -> tuple[Finding, ...]:
    """Why the program is slow: at most `MOST_FINDINGS`, those worth most first; empty where nothing stands out.

    Time that belongs to two of them counts for the one that says more about its cause: input, compiling and a late core
    before idle time and collectives, and all of them before slow steps.
    """
    whole = budget(evidence)
    if whole is None:
        return ()
    late, feed = straggling(whole), waiting_for_input(evidence, whole)
    compilation, compiled_ps = compiling(evidence, whole)
    offloaded = in_host_memory(evidence, whole)
    candidates = [
        feed.finding,
        compilation,
        late.finding,
        exposed_collectives(evidence, whole, late.collective_ps + feed.collective_ps),
        idle_gaps(evidence, whole, compiled_ps + late.idle_ps + feed.idle_ps),
        layout_copies(evidence, whole, offloaded),
        host_offload(evidence, whole, offloaded),
        matrix_padding(evidence, whole),
        memory_bound(evidence, whole),
    ]
    kinds = frozenset(finding.kind for finding in candidates if finding is not None)
    candidates.append(slow_steps(whole, kinds))
    known = [finding for finding in candidates if finding is not None]
    known.sort(key=lambda finding: (-finding.worth_ps, KINDS.index(finding.kind)))
    return tuple(known[:MOST_FINDINGS])

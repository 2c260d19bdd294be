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
    claims = (waiting_for_input(whole), compiling(whole), straggling(whole))
    offloaded = in_host_memory(whole)
    candidates = [
        *(claim.finding for claim in claims),
        exposed_collectives(whole, sum(claim.collective_ps for claim in claims)),
        idle_gaps(whole, sum(claim.idle_ps for claim in claims)),
        layout_copies(whole, offloaded),
        host_offload(whole, offloaded),
        matrix_padding(whole),
        memory_bound(whole),
    ]
    known = [finding for finding in candidates if finding is not None]
    slow = slow_steps(whole, frozenset(finding.kind for finding in known))
    known += [slow] if slow is not None else []
    known.sort(key=lambda finding: (-finding.worth_ps, KINDS.index(finding.kind)))
    return tuple(known[:MOST_FINDINGS])

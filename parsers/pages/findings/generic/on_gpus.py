"""Findings about programs on GPUs: a host is late, or else a GPU, and the others wait for it in collectives."""

from __future__ import annotations

from functools import partial

import numpy as np

from tpuprof.parsers.base.errors import behind_wall
from tpuprof.parsers.pages.findings.cores.late import STRAGGLER
from tpuprof.parsers.pages.findings.finding import Finding, with_own_figures
from tpuprof.parsers.pages.findings.generic.on_cpu import OnCpu, late_device, late_process

KINDS_ON_GPUS = frozenset({STRAGGLER.name})
"""The kinds that are looked for on GPUs."""


def findings_on_gpus(of: OnCpu, failed: list[str]) -> tuple[Finding, ...]:
    """Why a program is slow on the GPUs of some hosts.

    Args:
        failed: gets a sentence where that can't be looked for.
    """
    for look in (late_process, late_device):
        found = behind_wall(STRAGGLER.search, partial(look, of, of.cells(), np.zeros(len(of.hosts))), failed)
        if found is not None and found[0] is not None:
            return (with_own_figures(found[0]),)
    return ()

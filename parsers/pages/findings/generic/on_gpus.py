"""Findings about programs on GPUs: one is late, and the others wait for it in collectives."""

from __future__ import annotations

from functools import partial

import numpy as np

from tpuprof.parsers.base.errors import behind_wall
from tpuprof.parsers.pages.findings.cores.late import STRAGGLER
from tpuprof.parsers.pages.findings.finding import Finding, with_own_figures
from tpuprof.parsers.pages.findings.generic.on_cpu import OnCpu, late_device
from tpuprof.parsers.steps.accounts.cpu import DeviceTimes, HostOnCpu
from tpuprof.parsers.steps.step_account import Account

KINDS_ON_GPUS = frozenset({STRAGGLER.name})
"""The kinds that are looked for on GPUs."""


def findings_on_gpus(account: Account, host: str, gpus: DeviceTimes, failed: list[str]) -> tuple[Finding, ...]:
    """Why a program is slow on the GPUs of a host.

    Args:
        gpus: what each does in the steps of the account.
        failed: gets a sentence where that can't be looked for.
    """
    none = np.zeros(len(account), np.int64)
    steps = HostOnCpu(
        names=account.names,
        start_ps=none,
        step_ps=account.step_ps,
        owner_ps=account.owner_ps[0],
        between_ps=account.between_ps[0],
        untraced_ps=none,
        untraced_between_ps=none,
        functions=(),
        compiled=(),
        collective_names=(),
        collective_ps=none[:, None][:, :0],
        waits_ps=none,
        devices=0,
        local_devices=0,
        is_traced=False,
        of_devices=gpus,
    )
    of = OnCpu(account, ((host, steps),))
    found = behind_wall(STRAGGLER.search, partial(late_device, of, of.cells(), none.astype(np.float64)), failed)
    return () if found is None or found[0] is None else (with_own_figures(found[0]),)

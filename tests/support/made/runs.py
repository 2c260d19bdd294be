"""Made-up runs and what is known of them."""

from __future__ import annotations

from typing import Any

from tpuprof.parsers.base.errors import Problem
from tpuprof.parsers.files.logdir import HostFile, Run
from tpuprof.parsers.session.run_facts import METRICS, RunFacts, nothing_known

NOW = 1_763_700_000.0


def _run(name: str, age: float, sizes: list[float], *problems: Problem) -> Run:
    hosts = tuple(
        HostFile(f"host{at}", f"/logs/{name}/host{at}.xplane.pb", int(size * 1e6), NOW - age, False)
        for at, size in enumerate(sizes)
    )
    return Run(name, f"/logs/{name}", hosts, problems, NOW - age)


EMPTY = Problem("empty_file", "host0.xplane.pb", "host0.xplane.pb holds 0 bytes: nothing was written (2 GB limit).")

RUNS = (
    _run("train/2025_99_newest", 300, [51.5, 862, 51.5]),
    _run("serving", 7200, [0.86]),
    _run("broken", 86400, [], EMPTY),
    _run("2020_old_gpu", 86400 * 400, [3.04], EMPTY, EMPTY),
)
"""Newest first: a training run, one whose steps are inferred, one of an empty file, and one without steps."""


def known(**values: Any) -> RunFacts:
    """Facts that are known where they are given, and unknown for a reason elsewhere."""
    reasons = {name: "the profile does not say" for name in METRICS if values.get(name) is None}
    return RunFacts(**values, unknown=reasons)


_FACTS = {
    RUNS[0].path: known(
        host="host0",
        device_type="TPU v5 Lite",
        core_count=4,
        modules=("jit_train_step", "jit_eval_step"),
        module_count=9,
        core_step_ps=246 * 10**9,
        step_source="steps",
        step_count=20,
        duration_ps=5_577 * 10**9,
        has_hlo=True,
        host_tracing="annotations",
    ),
    RUNS[1].path: known(
        host="host0",
        device_type="TPU v6 Lite",
        core_count=1,
        modules=("jit_f",),
        module_count=1,
        core_step_ps=784 * 10**9,
        step_source="modules",
        step_count=99,
        duration_ps=98_600 * 10**9,
        has_hlo=False,
        host_tracing="off",
        simulated=True,
    ),
    RUNS[2].path: nothing_known(EMPTY.sentence),
    RUNS[3].path: known(host="host0", device_type="GPU", core_count=8, has_hlo=False, host_tracing="python"),
}


def facts_of(run: Run) -> RunFacts:
    return _FACTS[run.path]

"""XProf's pages that have no counterpart of ours, about the composed runs: what they say against where we say it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.parity.oracle.fields import Agrees, Difference
from tests.parity.oracle.golden import GPUS, files_of, golden_answer
from tests.parity.oracle.op_fields import Cells, explained, outcome, rows_of, summaries_of, table_fields
from tests.parity.oracle.xprof_memory import leaves
from tests.parity.pages.test_overview import HOST_INPUT
from tests.parity.test_gpu import COPIES, HOST, NUMBERED, PARTS, copies_as_compute, our_overview
from tests.support.build import present, session_at
from tpuprof.parsers.base.op_class import OP_CLASSES
from tpuprof.parsers.hosts.summary import HostSummary
from tpuprof.parsers.pages.collectives.page import COLLECTIVES
from tpuprof.parsers.pages.overview.overview import overview
from tpuprof.parsers.pages.shared.steps import common_steps
from tpuprof.parsers.steps.times import INFEED, OUTFEED

COMPOSED = ("synthetic-k1", "synthetic-k4", GPUS)

NEVER_FILLED = "XProf never fills this"
COLLIDED = "XProf's numbers of SparseCores on one host are those of TensorCores on the next, whose host it then names"
REDUCED = "XProf counts all-reduces and all-to-alls for communication, and other collectives for compute"
NO_REQUESTS = "no request ran: XProf shows 0 for the average over none"

NAMES = (
    *("Device compute", "Device to device", "Device collective communication", "Host compute", "Kernel launch"),
    *("Input", "Output", "Compilation", "All others"),
)
"""XProf's parts of a step, from number 1 on."""


def record(host: str, number: int, total_ps: float, parts: Sequence[float]) -> Cells:
    """One core's step in XProf's fields: microseconds, and its longest part."""
    fields: Cells = {"hostName": host, "stepNum": number, "totalDurationUs": total_ps / 1e6}
    fields["bottleneck"] = max(zip(parts, NAMES, strict=True))[1]
    return fields | {f"stepBreakdownUs.{at}": value / 1e6 for at, value in enumerate(parts, 1)}


def of_tpus(summaries: Sequence[HostSummary], by_rule: bool) -> dict[tuple[int, int], Cells]:
    """Each step of each core: what our account has, or what XProf makes of it."""
    grid, steps = present(common_steps(summaries).grid), overview(summaries).steps
    classes = dict(zip(OP_CLASSES, np.moveaxis(grid.class_ps, 2, 0), strict=True))
    reduced = [name.startswith(("all-reduce", "all-to-all")) for name in grid.collective_names]
    shared = grid.collective_ps[:, :, reduced].sum(axis=2) if by_rule else classes["collective"]
    fed = grid.part_ps[:, :, INFEED] * (not by_rule or grid.input_source == "infeed")
    sent = grid.part_ps[:, :, OUTFEED]
    whole = grid.longest_of_host_ps
    rest = whole - grid.duration_ps + classes["idle"] - (fed if grid.input_source == "host" else 0)
    parts = {1: whole - rest - shared - fed - sent, 3: shared, 6: fed, 7: sent, 9: rest}
    return {
        (at, core): record(
            name.rpartition(":")[0],
            present(steps[at].group_id),
            float(whole[core, at]),
            [float(parts[part][core, at]) if part in parts else 0.0 for part in range(1, len(NAMES) + 1)],
        )
        for core, name in enumerate(grid.core_names)
        for at in range(len(grid))
    }


def of_gpus(summaries: Sequence[HostSummary], by_rule: bool) -> dict[tuple[int, int], Cells]:
    """The same of hosts with GPUs."""
    found: dict[tuple[int, int], Cells] = {}
    for core, summary in enumerate(summaries):
        page = overview([summary])
        fields = our_overview(page)
        fields |= copies_as_compute(fields) if by_rule else {}
        for at, step in enumerate(page.steps):
            parts = [1e9 * float(fields[f"step.{at}.{part}"] or 0) for part in PARTS]
            number = at if by_rule else present(step.group_id)
            found[at, core] = record(summary.host, number, step.duration_ps, parts)
    return found


def pod_fields(answer: Any, records: Mapping[tuple[int, int], Cells], device: str | None) -> Cells:
    """All fields of XProf's answer out of ours."""
    fields: Cells = {"deviceType": device}
    for at, name in enumerate(NAMES):
        fields |= {f"stepBreakdownEvents.{at}.id": at + 1, f"stepBreakdownEvents.{at}.name": name}
    for at, step in enumerate(answer["podStatsSequence"]["podStatsMap"]):
        place = f"podStatsSequence.podStatsMap.{at}"
        for core, number in enumerate(sorted(step["podStatsPerCore"], key=int)):
            of = records[at, core]
            fields[f"{place}.stepNum"] = of["stepNum"]
            fields |= {f"{place}.podStatsPerCore.{number}.{key}": value for key, value in of.items()}
    return fields


@pytest.mark.shared
@pytest.mark.parametrize("name", COMPOSED)
def test_every_core_and_step_of_the_pod_viewer(shared: Path, name: str, agrees: Agrees) -> None:
    answer, summaries = golden_answer(shared, name, "pod_viewer"), summaries_of(shared, name)
    make = of_gpus if name == GPUS else of_tpus
    device = overview(summaries).environment.device_type
    ours, rule = (pod_fields(answer, make(summaries, by_rule), device) for by_rule in (False, True))
    theirs = {key.removeprefix("."): value for key, value in leaves("", answer)}
    why = f"{COPIES}; {HOST}; {NUMBERED}" if name == GPUS else f"{REDUCED}; {HOST_INPUT}"
    stated = explained(theirs, ours, rule, why)
    for key in theirs:
        if key.endswith(("chipId", "nodeId")):
            stated[key] = Difference(None, NEVER_FILLED)
        elif key.endswith("1002.hostName") and name == "synthetic-k4":
            stated[key] = Difference("host1", COLLIDED)
    result = outcome(theirs, dict.fromkeys(theirs) | ours, stated)
    agrees(result, f"pod viewer, {name}")


@pytest.mark.shared
@pytest.mark.parametrize("name", COMPOSED)
def test_what_a_run_has_nothing_of(shared: Path, name: str, agrees: Agrees) -> None:
    """Requests, collectives between slices, and kernels, which XProf names among its tools where there are any."""
    summaries = summaries_of(shared, name)
    inference = overview(summaries).inference
    assert inference is None or inference.source != "requests"
    models, percentiles = golden_answer(shared, name, "inference_profile")
    theirs = table_fields(models, "model") | table_fields(percentiles, "row")
    agrees(outcome(theirs, dict.fromkeys(theirs), dict.fromkeys(theirs, Difference(None, NO_REQUESTS))), "inference")
    found, slices = {}, session_at(shared / "golden" / name).page(COLLECTIVES).slices
    for host in files_of(shared, name):
        found[f"slices.{host}"] = len(golden_answer(shared, name, "megascale_stats", host)[0]["rows"])
    ours: Cells = {f"slices.{summary.host}": len(slices) for summary in summaries}
    found["kernels"] = len(rows_of(golden_answer(shared, name, "kernel_stats")))
    ours["kernels"] = sum(len(summary.kernels) for summary in summaries)
    found["names kernels"] = "kernel_stats" in golden_answer(shared, name, "tool_names")
    ours["names kernels"] = bool(ours["kernels"])
    agrees(outcome(found, ours, {}), "rows of megascale and kernel stats")

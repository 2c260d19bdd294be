"""The roofline page against XProf's `roofline_model`: the device's figures, the program, its steps and its ops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.parity.oracle import op_fields
from tests.parity.oracle.fields import Agrees, Comparison, Difference
from tests.parity.oracle.golden import RUNS, golden_answer
from tpuprof.parsers.hosts.summary import HostSummary
from tpuprof.parsers.ops.op_metadata import TRAFFIC
from tpuprof.parsers.ops.roofline import Rates
from tpuprof.parsers.pages.ops.ops import OpsPage, ops_page
from tpuprof.parsers.pages.ops.roofline import RooflinePage, RooflinePoints, roofline_page

WHOLE = "a program or step is no op: our page gives it no occurrences, self time or share"
STEP_TIME = "our step time is the sum of each core's own; XProf's the slowest core's times their number"
VMEM = "XProf passes over the VMEM of a device whose VMEM is not merged with its CMEM"
NO_STEPS = "steps that are inferred from modules are no steps of XProf's, whose averages are then 0"
UNBOUND = "an op that took no time is at no roof: XProf gives it the intensity 0, we FLOPs by bytes"
NO_SCALE = "no op event has a Time Scale Multiplier: XProf calls that 1"

OPS_ONLY = (
    "rank",
    "category",
    "occurrences",
    "total_self_time",
    "avg_self_time",
    "total_self_time_percent",
    "cumulative_total_self_time_percent",
    "dma_stall_percent",
    "hlo_module_id",
    "source_info",
)
MEMORIES = ("hbm", "cmem_read", "cmem_write", "vmem_read", "vmem_write")
RATES = (
    "measured_flop_rate",
    "model_flop_rate",
    "measured_memory_bw",
    *(f"{name}_bw" for name in MEMORIES),
    "roofline_efficiency",
    "compute_efficiency",
    "max_mem_bw_utilization",
)
"""Columns that are in inverse proportion to time."""

Rules = Sequence[Sequence[HostSummary]]
"""A profile's hosts, in each of the ways that XProf reads them."""

ROW = "{include_infeed_outfeed}/{step}/{hlo_module_id}/{operation}"
"""Key of a row; steps are Total, Average, 0, 1, …"""


def our_rows(page: RooflinePage, core_count: int) -> dict[str, op_fields.Cells]:
    """Our rows in XProf's columns and units."""
    keyed_rows = [
        *_point_rows("Total", page.program, core_count),
        *_op_rows(page, core_count),
        *_point_rows("Average", page.average_step, core_count, max(1, len(page.steps))),
    ]
    if page.step_source == "steps":  # XProf infers none
        keyed_rows += [
            row for at in range(len(page.steps)) for row in _point_rows(str(at), page.steps, core_count, at=at)
        ]
    else:
        keyed_rows = [(key, dict.fromkeys(row) if key.startswith("Average") else row) for key, row in keyed_rows]
    names = op_fields.keyed(f"{page.with_infeed}/{key}" for key, _ in keyed_rows)
    return {
        name: {**row, "include_infeed_outfeed": page.with_infeed}
        for name, (_, row) in zip(names, keyed_rows, strict=True)
    }


def _point_rows(
    step: str, points: RooflinePoints, core_count: int, count: int = 1, at: int = 0
) -> Iterator[tuple[str, op_fields.Cells]]:
    if len(points):
        total = int(points.total_ps[at]) / op_fields.US
        yield (
            f"{step}/0/Program",
            {
                "step": step,
                "operation": "Program",
                "total_time": total,
                "avg_time": total * count,
                "total_time_per_core": total / core_count,
                "total_time_in_percentage": 1.0,
                **dict.fromkeys(OPS_ONLY),
                **_rate_cells(points.rates, at),
            },
        )


def _op_rows(page: RooflinePage, core_count: int) -> Iterator[tuple[str, op_fields.Cells]]:
    table, rates = page.ops.table, page.ops.rates
    sources = op_fields.source_cells(table)
    whole = int(page.program.total_ps[0])
    running = 0
    for rank, at in enumerate(np.flatnonzero(page.counts).tolist()):
        total, own = int(table.total_ps[at]), int(table.self_ps[at])
        running += own
        yield (
            f"Total/{table.program_id[at]}/{table.name[at]}",
            {
                "step": "Total",
                "rank": rank + 1,
                "category": table.category[at],
                "operation": table.name[at],
                **op_fields.time_cells(table, at),
                "total_self_time_percent": own / whole,
                "cumulative_total_self_time_percent": running / whole,
                "dma_stall_percent": op_fields.stall_cell(table, at),
                "total_time_per_core": total / op_fields.US / core_count,
                "total_time_in_percentage": total / whole,
                "hlo_module_id": str(table.program_id[at]),
                "source_info": sources[at],
                **_rate_cells(rates, at),
            },
        )


def _rate_cells(rates: Rates, at: int) -> op_fields.Cells:
    flops, efficiency = float(rates.flops_per_second[at]), float(rates.efficiency[at])
    by_memory = {name: float(rates.bandwidth[at, TRAFFIC.index(name)]) for name in MEMORIES}
    used = {name: float(rates.bandwidth_utilization[at, TRAFFIC.index(name)]) for name in MEMORIES}
    most = max(MEMORIES, key=lambda name: float(np.nan_to_num(used[name])))
    intensity = {name: flops / value if value else 0.0 for name, value in by_memory.items()}
    return {
        **op_fields.work_cells(rates, at),
        **{f"{name}_bw": op_fields.bandwidth(value) for name, value in by_memory.items()},
        **{f"{name}_operational_intensity": op_fields.known(value) for name, value in intensity.items()},
        "hbm_operational_intensity": op_fields.known(rates.hbm_intensity[at]),
        "bottleneck_operational_intensity": op_fields.known(rates.bounding_intensity[at]),
        "optimal_flop_rate": op_fields.times(flops / efficiency, 1e-9) if efficiency else 0.0,
        "roofline_efficiency": op_fields.known(efficiency),
        "compute_efficiency": op_fields.known(rates.flops_utilization[at]),
        "max_mem_bw_utilization": op_fields.known(used[most]),
    }


def xprof_device(table: Any) -> op_fields.Cells:
    """What XProf says of the device."""
    return {f"device: {key}": value for key, value in table["p"].items()}


def our_device(page: OpsPage) -> op_fields.Cells:
    """The same in XProf's units: GFLOP/s, GiB/s, FLOP/byte, six digits."""
    peaks = page.peaks
    cells: op_fields.Cells = {
        "device: device_type": page.device_type,
        "device: peak_flop_rate": _digits(peaks.flops_per_second, 1e-9),
        "device: has_cmem": "0" if peaks.cmem_read is None else "1",
        "device: has_merged_vmem": None,
        "device: megacore": None,
        "device: time_scale_multiplier": _digits(page.time_scale, 1),
    }
    for name in MEMORIES:
        peak: float | None = getattr(peaks, name)
        ridge = peaks.flops_per_second / peak if peaks.flops_per_second and peak else None
        cells[f"device: peak_{name}_bw"] = _digits(peak, 1 / op_fields.GIB)
        cells[f"device: {name}_ridge_point"] = _digits(ridge, 1)
    assert peaks.ridge_point is None or cells["device: hbm_ridge_point"] == _digits(peaks.ridge_point, 1)
    return cells


def _digits(value: float | None, factor: float) -> str | None:
    return None if value is None else f"{value * factor:.6g}"


def compare_roofline(answer: Any, ops: OpsPage, summaries: Sequence[HostSummary], rules: Rules = ()) -> Comparison:
    """Every cell of XProf's table, with and without infeed, and all it says of the device."""
    table = answer[0]
    xprof = op_fields.by_key(op_fields.rows_of(table), ROW)
    theirs = {**xprof_device(table), **op_fields.flat(xprof), "diagnostics": len(answer[1]["rows"])}
    ours = our_device(ops)
    marked = roofline_page(ops, summaries).step_source == "steps"
    ours["diagnostics"] = int(not marked)
    stated: dict[str, Difference] = {}
    for with_infeed in (True, False):
        page = roofline_page(ops, summaries, with_infeed)
        rows = our_rows(page, ops.core_count)
        ours |= op_fields.flat(rows)
        stated |= _step_times(xprof, rows)
        stated |= op_fields.tied(rows)
        stated |= {
            f"{key}: bottleneck_operational_intensity": Difference(row["operational_intensity"], UNBOUND)
            for key, row in rows.items()
            if row["total_time"] == 0
        }
        for hosts in (summaries, *rules):
            counted = op_fields.with_hosts_bytes(ops_page(hosts)) if hosts is summaries else ops_page(hosts)
            by_rule = roofline_page(op_fields.as_measured(counted), hosts, with_infeed)
            stated |= op_fields.explained(theirs, ours, _ruled(xprof, rows, by_rule))
    zeros = {key: 0 if key.startswith("device: ") and value == "0" else value for key, value in theirs.items()}
    stated |= op_fields.absent(zeros, ours)
    stated |= {f"device: {name}": Difference(None, op_fields.NOT_HELD) for name in ("has_merged_vmem", "megacore")}
    if ops.time_scale is None:
        stated["device: time_scale_multiplier"] = Difference(None, NO_SCALE)
    if theirs.get("device: has_merged_vmem") == "0":
        ways = ("read", "write")
        names = [f"device: {name}" for way in ways for name in (f"peak_vmem_{way}_bw", f"vmem_{way}_ridge_point")]
        stated |= {name: Difference(ours[name], VMEM) for name in names if ours[name] is not None}
    for key in theirs:
        row, _, column = key.rpartition(": ")
        if row.endswith("/Program") and column in OPS_ONLY:
            stated[key] = Difference(None, WHOLE)
    if not marked:
        averages = (f"{with_infeed}/Average/0/Program: " for with_infeed in (True, False))
        stated |= {key: Difference(None, NO_STEPS) for start in averages for key in theirs if key.startswith(start)}
    return op_fields.outcome(theirs, ours, stated)


def _ruled(theirs: dict[str, op_fields.Cells], ours: dict[str, op_fields.Cells], page: RooflinePage) -> op_fields.Cells:
    """What XProf's rules give, in XProf's time of each step."""
    rows = our_rows(page, page.ops.core_count)
    for key, ratio in _ratios(theirs, ours).items():
        rows[key] |= {name: float(rows[key][name] or 0) / ratio for name in RATES}
    return op_fields.flat(rows)


def _ratios(theirs: dict[str, op_fields.Cells], ours: dict[str, op_fields.Cells]) -> dict[str, float]:
    """XProf's time of each step over ours."""
    return {
        key: float(row["total_time"] or 0) / float(ours[key]["total_time"] or 1)
        for key, row in theirs.items()
        if row["operation"] == "Program" and row["step"] != "Total" and ours.get(key, {}).get("total_time")
    }


def _step_times(theirs: dict[str, op_fields.Cells], ours: dict[str, op_fields.Cells]) -> dict[str, Difference]:
    """Steps in which our time is another."""
    stated: dict[str, Difference] = {}
    for key, ratio in _ratios(theirs, ours).items():
        for name in ("total_time", "avg_time", "total_time_per_core"):
            stated[f"{key}: {name}"] = Difference(float(theirs[key][name] or 0) / ratio, STEP_TIME)
    return stated


@pytest.mark.shared
@pytest.mark.parametrize("name", RUNS)
def test_every_cell_is_xprofs_or_differs_for_a_reason(shared: Path, name: str, agrees: Agrees) -> None:
    answer = golden_answer(shared, name, "roofline_model")
    summaries = op_fields.summaries_of(shared, name)
    rules = [op_fields.rules_of(shared, name, of_sums) for of_sums in (False, True)]
    result = compare_roofline(answer, ops_page(summaries), summaries, rules)
    assert result.compared == 17 + 37 * len(answer[0]["rows"]) > 500
    agrees(result, "roofline")

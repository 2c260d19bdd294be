"""The page of framework ops against XProf's `framework_op_stats`: both tables, with and without idle time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.parity.oracle.fields import Agrees, Comparison, Difference
from tests.parity.oracle.golden import PROFILES, golden_answer
from tests.parity.oracle.op_fields import (
    NOT_HELD,
    US,
    Cells,
    absent,
    by_key,
    columns,
    flat,
    host_ops_of,
    known,
    outcome,
    page_of,
    rows_of,
    time_cells,
    work_cells,
)
from tpuprof.parsers.ops.device import Peaks
from tpuprof.parsers.ops.framework_op import parse_framework_op
from tpuprof.parsers.ops.op_metadata import TRAFFIC
from tpuprof.parsers.ops.roofline import holds_ops, work_of
from tpuprof.parsers.pages.ops.framework_ops import FrameworkOpsPage, framework_ops_page
from tpuprof.parsers.pages.ops.ops import OpsPage

MEMORY = "XProf takes all bytes for HBM's here; ours takes them by memory where the profile does"
HELD = "the work of a loop or call is that of the ops inside it; XProf counts both"

WORK = ("measured_flop_rate", "model_flop_rate", "measured_memory_bw", "operational_intensity")
SHARES = {
    False: ("device_total_self_time_percent", "device_cumulative_total_self_time_percent"),
    True: ("host_total_self_time_percent", "Host_cumulative_total_self_time_percent"),
}


ROW = "{host_or_device}/{operation}"
"""Key of a row."""


def our_rows(page: FrameworkOpsPage, with_idle: bool) -> dict[str, Cells]:
    """Our rows in XProf's columns and units; with idle time as a row of each side that was watched."""
    rows = []
    for is_host, whole, idle in (
        (False, page.device_total_ps, page.device_idle_ps),
        (True, page.host_total_ps, page.host_idle_ps),
    ):
        side = [_our_row(page, at) for at in np.flatnonzero(page.is_host == is_host).tolist()]
        divisor = whole if with_idle else whole - idle
        for row in side:  # our shares are of the whole time
            for name in SHARES[is_host]:
                row[name] = float(row[name] or 0) * whole / divisor if divisor else 0.0
        if with_idle:
            share = idle / whole if whole else 0.0
            above = sum(float(row["total_self_time"] or 0) > idle / US for row in side)
            before = side[above - 1][SHARES[is_host][1]] if above else 0.0
            for row in side[above:]:  # and add up over ops alone
                row[SHARES[is_host][1]] = float(row[SHARES[is_host][1]] or 0) + share
            side.insert(above, _idle_row(is_host, idle, share, float(before or 0) + share))
        rows += side
    for rank, row in enumerate(rows):
        row["rank"] = rank + 1
    return by_key(rows, ROW)


def _our_row(page: FrameworkOpsPage, at: int) -> Cells:
    return {
        "host_or_device": "Host" if page.is_host[at] else "Device",
        "type": page.type[at],
        "operation": page.name[at],
        **time_cells(page, at),
        **work_cells(page.rates, at),
        "eager": None,
        **dict.fromkeys(SHARES[not page.is_host[at]], 0.0),
        SHARES[bool(page.is_host[at])][0]: known(page.self_fraction[at]),
        SHARES[bool(page.is_host[at])][1]: known(page.cumulative_fraction[at]),
    }


def _idle_row(is_host: bool, idle_ps: int, share: float, running: float) -> Cells:
    return {
        "host_or_device": "Host" if is_host else "Device",
        "type": "IDLE",
        "operation": "IDLE",
        "occurrences": 0,
        "total_time": idle_ps / US,
        "avg_time": 0.0,
        "total_self_time": idle_ps / US,
        "avg_self_time": 0.0,
        **dict.fromkeys(WORK, 0.0),
        "bound_by": "Unknown",
        "eager": None,
        **dict.fromkeys(SHARES[not is_host], 0.0),
        SHARES[is_host][0]: share,
        SHARES[is_host][1]: running,
    }


def compare_framework_ops(answer: Any, page: FrameworkOpsPage, ops: OpsPage) -> Comparison:
    """Every cell of both of XProf's tables against our page, and the page's own shares against those compared."""
    total = Comparison()
    for with_idle, table in zip((True, False), answer, strict=False):
        theirs, rows = flat(by_key(rows_of(table), ROW)), our_rows(page, with_idle)
        if not page.host_total_ps and "Host/IDLE: rank" not in theirs:
            rows.pop("Host/IDLE", None)  # no host was watched
        ours = flat(rows)
        stated = absent(theirs, ours) | columns(theirs, ("eager",), Difference(None, NOT_HELD))
        stated |= _by_memory(page, ops, theirs) | _holding(page, ops, theirs)
        total.add(outcome(theirs, ours, stated))
    return total


def _holding(page: FrameworkOpsPage, ops: OpsPage, theirs: Cells) -> dict[str, Difference]:
    """The work of rows that are nothing but loops and calls."""
    stated: dict[str, Difference] = {}
    holding = holds_ops(ops.table)
    for at in np.flatnonzero(~page.is_host).tolist():
        if holding[_rows_of(ops, page.name[at])].all():
            key = f"Device/{page.name[at]}: "
            stated |= {key + name: Difference(None, HELD) for name in WORK if theirs.get(key + name)}
            stated[key + "bound_by"] = Difference("Unknown", HELD)
    return stated


def _rows_of(ops: OpsPage, name: str) -> list[int]:
    """The HLO ops of a framework op."""
    table = ops.table
    parsed = (parse_framework_op(full).name or own for full, own in zip(table.framework_op, table.name, strict=True))
    return [row for row, found in enumerate(parsed) if found == name]


def _by_memory(page: FrameworkOpsPage, ops: OpsPage, theirs: Cells) -> dict[str, Difference]:
    """What bounds a framework op whose bytes are not all HBM's, from the sums of its HLO ops."""
    table = ops.table
    work = work_of(table)
    stated: dict[str, Difference] = {}
    for at in np.flatnonzero(~page.is_host).tolist():
        rows = _rows_of(ops, page.name[at])
        key = f"Device/{page.name[at]}: bound_by"
        sums = np.nansum(work[rows], axis=0)
        seconds = float(table.total_ps[rows].sum()) / 1e12
        scale = float(table.total_ps[rows].sum()) / float(table.normalized_ps[rows].sum() or 1)
        by_memory = _most_used(sums, seconds, scale, ops.peaks)
        sums[3:] = 0.0
        sums[3] = sums[2]
        all_hbm = _most_used(sums, seconds, scale, ops.peaks)
        if by_memory != all_hbm == theirs.get(key):
            stated[key] = Difference(by_memory, MEMORY)
    return stated


def _most_used(work: NDArray[np.float64], seconds: float, scale: float, peaks: Peaks) -> str:
    """The resource of which some work takes the largest part, by its peak."""
    used = {"Compute": work[0] * scale / peaks.flops_per_second if peaks.flops_per_second else 0.0}
    for name in ("hbm", "cmem_read", "cmem_write", "vmem_read", "vmem_write"):
        peak: float | None = getattr(peaks, name)
        memory, _, way = name.partition("_")
        used[" ".join(filter(None, (memory.upper(), way.capitalize())))] = (
            work[3 + TRAFFIC.index(name)] / peak if peak else 0.0
        )
    best = max(used, key=lambda name: used[name])
    return best if used[best] > 0 and seconds else "Unknown"


@pytest.mark.shared
@pytest.mark.parametrize("name", PROFILES)
def test_every_cell_is_xprofs_or_differs_for_a_reason(shared: Path, name: str, agrees: Agrees) -> None:
    answer = golden_answer(shared, name, "framework_op_stats")
    _, ops = page_of(shared, name)
    page = framework_ops_page(ops, [host_ops_of(shared / PROFILES[name])])
    result = compare_framework_ops(answer, page, ops)
    assert result.compared == 19 * sum(len(table["rows"]) for table in answer) > 50
    agrees(result, "framework ops")

"""The page of framework ops against XProf's `framework_op_stats`: both tables, with and without idle time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.parity.oracle import op_fields
from tests.parity.oracle.fields import Agrees, Comparison, Difference
from tests.parity.oracle.golden import RUNS, files_of, golden_answer
from tpuprof.parsers.ops.framework_op import parse_framework_op
from tpuprof.parsers.ops.op_metadata import TRAFFIC
from tpuprof.parsers.ops.roofline import holds_ops
from tpuprof.parsers.pages.ops.framework_ops import FrameworkOpsPage, framework_ops_page
from tpuprof.parsers.pages.ops.ops import OpsPage, ops_page

MEMORY = f"XProf takes all bytes for HBM's here; ours takes them by memory where the profile does; {op_fields.RULES}"
HELD = "the work of a loop or call is that of the ops inside it; XProf counts both"

WORK = ("measured_flop_rate", "model_flop_rate", "measured_memory_bw", "operational_intensity")
SHARES = {
    False: ("device_total_self_time_percent", "device_cumulative_total_self_time_percent"),
    True: ("host_total_self_time_percent", "Host_cumulative_total_self_time_percent"),
}

MOST_ROWS = 499
"""XProf shows no more rows a side, with idle time 500."""

ROW = "{host_or_device}/{operation}"
"""Key of a row."""


def our_rows(page: FrameworkOpsPage, with_idle: bool) -> dict[str, op_fields.Cells]:
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
            above = sum(float(row["total_self_time"] or 0) > idle / op_fields.US for row in side)
            before = side[above - 1][SHARES[is_host][1]] if above else 0.0
            for row in side[above:]:  # and add up over ops alone
                row[SHARES[is_host][1]] = float(row[SHARES[is_host][1]] or 0) + share
            side.insert(above, _idle_row(is_host, idle, share, float(before or 0) + share))
        rows += side
    for rank, row in enumerate(rows):
        row["rank"] = rank + 1
    return op_fields.by_key(rows, ROW)


def _our_row(page: FrameworkOpsPage, at: int) -> op_fields.Cells:
    return {
        "host_or_device": "Host" if page.is_host[at] else "Device",
        "type": page.type[at],
        "operation": page.name[at],
        **op_fields.time_cells(page, at),
        **op_fields.work_cells(page.rates, at),
        "eager": None,
        **dict.fromkeys(SHARES[not page.is_host[at]], 0.0),
        SHARES[bool(page.is_host[at])][0]: op_fields.known(page.self_fraction[at]),
        SHARES[bool(page.is_host[at])][1]: op_fields.known(page.cumulative_fraction[at]),
    }


def _idle_row(is_host: bool, idle_ps: int, share: float, running: float) -> op_fields.Cells:
    return {
        "host_or_device": "Host" if is_host else "Device",
        "type": "IDLE",
        "operation": "IDLE",
        "occurrences": 0,
        "total_time": idle_ps / op_fields.US,
        "avg_time": 0.0,
        "total_self_time": idle_ps / op_fields.US,
        "avg_self_time": 0.0,
        **dict.fromkeys(WORK, 0.0),
        "bound_by": "Unknown",
        "eager": None,
        **dict.fromkeys(SHARES[not is_host], 0.0),
        SHARES[is_host][0]: share,
        SHARES[is_host][1]: running,
    }


def compare_framework_ops(
    answer: Any,
    page: FrameworkOpsPage,
    ops: OpsPage,
    rules: OpsPage | None = None,
    more: Callable[[op_fields.Cells, op_fields.Cells], dict[str, Difference]] = op_fields.absent,
) -> Comparison:
    """Every cell of both of XProf's tables against our page, and the page's own shares against those compared."""
    total = Comparison()
    for with_idle, table in zip((True, False), answer, strict=False):
        theirs, rows = op_fields.flat(op_fields.by_key(op_fields.rows_of(table), ROW)), our_rows(page, with_idle)
        if not page.host_total_ps and "Host/IDLE: rank" not in theirs:
            rows.pop("Host/IDLE", None)  # no host was watched
        if len(table["rows"]) >= MOST_ROWS:
            rows = {key: row for key, row in rows.items() if f"{key}: rank" in theirs}
        not_held = op_fields.columns(
            theirs, ("eager", "gpu_tensorcore_utilization"), Difference(None, op_fields.NOT_HELD)
        )
        ours = dict.fromkeys(not_held) | op_fields.flat(rows)
        stated = op_fields.absent(theirs, ours) | more(theirs, ours) | not_held
        rule = framework_ops_page(_all_in_hbm(rules or ops), [])
        stated |= _holding(page, ops, theirs) | op_fields.explained(
            theirs, ours, op_fields.flat(our_rows(rule, with_idle)), MEMORY
        )
        total.add(op_fields.outcome(theirs, ours, stated))
    return total


def _holding(page: FrameworkOpsPage, ops: OpsPage, theirs: op_fields.Cells) -> dict[str, Difference]:
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


def _all_in_hbm(ops: OpsPage) -> OpsPage:
    """The ops with all their bytes as HBM's, in times as measured."""
    traffic = np.zeros_like(ops.table.traffic)
    traffic[:, TRAFFIC.index("hbm")] = ops.table.bytes_accessed
    return op_fields.as_measured(replace(ops, table=replace(ops.table, traffic=traffic)))


@pytest.mark.shared
@pytest.mark.parametrize("name", RUNS)
def test_every_cell_is_xprofs_or_differs_for_a_reason(shared: Path, name: str, agrees: Agrees) -> None:
    answer = golden_answer(shared, name, "framework_op_stats")
    host_ops = [op_fields.host_ops_of(path) for path in files_of(shared, name).values()]
    ops, rules = (ops_page(of(shared, name)) for of in (op_fields.summaries_of, op_fields.rules_of))
    result = compare_framework_ops(answer, framework_ops_page(ops, host_ops), ops, rules)
    assert result.compared == 19 * sum(len(table["rows"]) for table in answer) > 50
    agrees(result, "framework ops")

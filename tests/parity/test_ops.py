"""The page of HLO ops against XProf's `hlo_stats`: all 29 columns of every row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.parity.fields import Comparison, Difference
from tests.parity.op_fields import (
    EMPTY,
    NOT_HELD,
    US,
    Cells,
    absent,
    bandwidth,
    bound,
    columns,
    flat,
    golden_answer,
    host_traffic,
    keyed,
    known,
    outcome,
    page_of,
    rows_of,
    source_cell,
    times,
)
from tests.parity.test_overview import PROFILES
from tpuprof.parsers.op_metadata import TRAFFIC
from tpuprof.parsers.pages.ops import OpsPage

HBM, CMEM_READ, CMEM_WRITE = (TRAFFIC.index(name) for name in ("hbm", "cmem_read", "cmem_write"))


def xprof_rows(answer: Any) -> dict[str, Cells]:
    """XProf's rows by program and op."""
    rows = rows_of(answer)
    return dict(zip(keyed(f"{row['program_id']}/{row['hlo_op_name']}" for row in rows), rows, strict=True))


def our_rows(page: OpsPage) -> dict[str, Cells]:
    """Our rows in XProf's columns and units."""
    table, rates = page.table, page.rates
    sources, stacks = table.texts("source"), table.texts("source_stack")
    rows: list[Cells] = []
    for at in range(len(page)):
        total, own, count = int(table.total_ps[at]), int(table.self_ps[at]), int(table.occurrences[at])
        rematerialized = ".remat" in table.name[at] or "rematted_computation" in table.framework_op[at]
        rows.append(
            {
                "rank": at + 1,
                "program_id": str(table.program_id[at]),
                "category": table.category[at],
                "hlo_op_name": table.name[at],
                "hlo_op_expression": table.expression(at),
                "tf_op_name": table.framework_op[at],
                "occurrences": count,
                "total_time": total / US,
                "avg_time": total / US / count,
                "total_self_time": own / US,
                "avg_self_time": own / US / count,
                "total_self_time_percent": times(page.self_fraction[at], 100),
                "cumulative_total_self_time_percent": times(page.cumulative_fraction[at], 100),
                "dma_stall_percent": times(table.dma_stall_ps[at], 1 / max(total, 1)),
                "model_flop_rate": times(rates.model_flops_per_second[at], 1e-9),
                "normalized_flop_rate": times(rates.flops_per_second[at], 1e-9),
                "measured_memory_bw": bandwidth(rates.bytes_per_second[at]),
                "hbm_bw": bandwidth(rates.bandwidth[at, HBM]),
                "cmem_read_bw": bandwidth(rates.bandwidth[at, CMEM_READ]),
                "cmem_write_bw": bandwidth(rates.bandwidth[at, CMEM_WRITE]),
                "operational_intensity": known(rates.operational_intensity[at]),
                "bound_by": bound(rates, at),
                "hlo_rematerialization": "Yes" if rematerialized else "No",
                "outside_compilation": None,
                "autotuned": None,
                "source_info": source_cell(sources[at], stacks[at]),
                "core_type": None,
                "parent_op_name": None,
                "vdd_energy": None,
            }
        )
    return dict(zip(row_keys(page), rows, strict=True))


def row_keys(page: OpsPage) -> list[str]:
    """The keys of our rows."""
    table = page.table
    return keyed(f"{program}/{name}" for program, name in zip(table.program_id.tolist(), table.name, strict=True))


def compare_ops(answer: Any, page: OpsPage) -> Comparison:
    """Every cell of XProf's table against our page."""
    theirs, ours = flat(xprof_rows(answer)), flat(our_rows(page))
    missing = ("outside_compilation", "autotuned", "core_type", "parent_op_name", "vdd_energy")
    differences = absent(theirs, ours) | columns(theirs, missing, Difference(None, NOT_HELD))
    for at, key in enumerate(row_keys(page)):
        if host_traffic(page, at):
            differences[f"{key}: hbm_bw"] = Difference(0.0, EMPTY)
            differences[f"{key}: bound_by"] = Difference("Unknown", EMPTY)
    return outcome(theirs, ours, differences)


@pytest.mark.shared
@pytest.mark.parametrize("name", PROFILES)
def test_every_cell_is_xprofs_or_differs_for_a_reason(
    shared: Path, name: str, record_property: Callable[[str, object], None]
) -> None:
    answer = golden_answer(shared, name, "hlo_stats")
    result = compare_ops(answer, page_of(shared, name)[1])
    assert result.unexplained == []
    assert result.compared == 29 * len(answer["rows"]) > 50
    record_property("parity", ("HLO ops", result.compared, result.equal, result.explained))

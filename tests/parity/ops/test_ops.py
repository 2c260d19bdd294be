"""The page of HLO ops against XProf's `hlo_stats`: all 29 columns of every row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.parity.oracle import op_fields
from tests.parity.oracle.fields import Agrees, Comparison, Difference
from tests.parity.oracle.golden import RUNS, golden_answer
from tpuprof.parsers.ops.op_metadata import TRAFFIC
from tpuprof.parsers.pages.ops.ops import OpsPage, ops_page, with_offloaded

HBM, CMEM_READ, CMEM_WRITE = (TRAFFIC.index(name) for name in ("hbm", "cmem_read", "cmem_write"))

NEVER_READ = "XProf has the column and never fills it: it says No of every op"

ROW = "{program_id}/{parent_op_name}/{hlo_op_name}"
"""Key of a row."""


def our_rows(page: OpsPage) -> dict[str, op_fields.Cells]:
    """Our rows in XProf's columns and units."""
    table, rates = page.table, page.rates
    sources = op_fields.source_cells(table)
    rows: list[op_fields.Cells] = []
    for at in range(len(page)):
        work = op_fields.work_cells(rates, at)
        work["normalized_flop_rate"] = work.pop("measured_flop_rate")
        rematerialized = ".remat" in table.name[at] or "rematted_computation" in table.framework_op[at]
        rows.append(
            {
                "rank": None if table.parent[at] else at + 1,
                "program_id": str(table.program_id[at]),
                "category": table.category[at],
                "hlo_op_name": table.name[at],
                "hlo_op_expression": table.expression(at),
                "tf_op_name": table.framework_op[at],
                **op_fields.time_cells(table, at),
                "total_self_time_percent": op_fields.times(page.self_fraction[at], 100),
                "cumulative_total_self_time_percent": op_fields.times(page.cumulative_fraction[at], 100),
                "dma_stall_percent": op_fields.stall_cell(table, at),
                **work,
                "hbm_bw": op_fields.bandwidth(rates.bandwidth[at, HBM]),
                "cmem_read_bw": op_fields.bandwidth(rates.bandwidth[at, CMEM_READ]),
                "cmem_write_bw": op_fields.bandwidth(rates.bandwidth[at, CMEM_WRITE]),
                "hlo_rematerialization": "Yes" if rematerialized else "No",
                "outside_compilation": "Yes" if table.is_outside_compilation(at) else "No",
                "autotuned": None,
                "source_info": sources[at],
                "core_type": "SparseCore" if table.parent[at] else "TensorCore",
                "parent_op_name": table.parent[at],
                "vdd_energy": op_fields.known(table.energy_j[at]),
            }
        )
    return op_fields.by_key(rows, ROW)


def compare_ops(answer: Any, page: OpsPage, rules: OpsPage | None = None) -> Comparison:
    """Every cell of XProf's table against our page; `rules` is the page by XProf's rules."""
    page = with_offloaded(page)
    rows = our_rows(page)
    theirs, ours = op_fields.flat(op_fields.by_key(op_fields.rows_of(answer), ROW)), op_fields.flat(rows)
    differences = op_fields.absent(theirs, ours) | op_fields.columns(
        theirs, ("autotuned",), Difference(None, NEVER_READ)
    )
    differences |= op_fields.tied(rows)
    differences |= op_fields.explained(
        theirs,
        ours,
        op_fields.flat(our_rows(op_fields.as_measured(op_fields.with_hosts_bytes(with_offloaded(rules or page))))),
    )
    return op_fields.outcome(theirs, ours, differences)


@pytest.mark.shared
@pytest.mark.parametrize("name", RUNS)
def test_every_cell_is_xprofs_or_differs_for_a_reason(shared: Path, name: str, agrees: Agrees) -> None:
    answer = golden_answer(shared, name, "hlo_stats")
    ours, rules = (ops_page(of(shared, name)) for of in (op_fields.summaries_of, op_fields.rules_of))
    result = compare_ops(answer, ours, rules)
    assert result.compared == 29 * len(answer["rows"]) > 50
    agrees(result, "HLO ops")

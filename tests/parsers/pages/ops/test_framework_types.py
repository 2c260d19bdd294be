"""Framework ops by type, and why a utilization is above 1."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.parity.oracle.odd_profile import odd_profile
from tests.support.host_events import host_ops
from tests.support.made.big_table import big_page
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.hosts.summary import summarise
from tpuprof.parsers.ops.roofline import (
    ALL_IN_HBM,
    AWAITED,
    ESTIMATED,
    NEARLY,
    STARTED,
    UNEXPLAINED,
    above_peak,
    work_of,
)
from tpuprof.parsers.pages.ops import framework_ops
from tpuprof.parsers.pages.ops.ops import OpsPage, ops_page


def test_a_type_adds_up_its_framework_ops() -> None:
    trace = Trace.from_bytes(odd_profile())
    ops = ops_page([summarise(trace, "host0")])
    page = framework_ops.framework_ops_page(ops, [host_ops(trace)])
    types = framework_ops.framework_types(page, ops)
    assert sorted(set(types.page.type)) == sorted(set(page.type))
    assert int(types.page.self_ps.sum()) == int(page.self_ps.sum())
    assert np.isclose(types.page.cumulative_fraction[-1], page.cumulative_fraction[-1])
    for row, kind in enumerate(types.page.type):
        mine = [at for at, of in enumerate(page.type) if of == kind and page.is_host[at] == types.page.is_host[row]]
        assert types.op_count[row] == len(mine)
        assert types.page.self_ps[row] == page.self_ps[mine].sum()
        assert types.page.occurrences[row] == page.occurrences[mine].sum()
        assert types.main[row] == mine[0]  # the longest
        assert (types.group[mine] == row).all()
    of_ops = types.group[framework_ops.framework_rows(page, ops)]
    flops = work_of(ops.table)[:, 0]
    seconds = types.page.total_ps / 1e12
    for row in range(len(types)):
        counted = flops[of_ops == row]
        if np.isfinite(counted).any():
            assert np.isclose(types.page.rates.flops_per_second[row], np.nansum(counted) / seconds[row])


def with_used(flops: list[float], hbm: list[float]) -> OpsPage:
    page = big_page(6)
    names = ("copy-start.3", "all-gather-done", "attention", "fusion.1", "fusion.2", "fusion.3")
    categories = ("copy-start", "async-done", "custom-call", "loop fusion", "loop fusion", "loop fusion")
    used = np.full_like(page.rates.bandwidth_utilization, 0.5)
    used[:, 0] = hbm
    traffic = page.table.traffic.copy()
    traffic[3] = np.nan
    rates = replace(page.rates, flops_utilization=np.array(flops), bandwidth_utilization=used)
    return replace(page, rates=rates, table=replace(page.table, name=names, category=categories, traffic=traffic))


def test_every_utilization_above_1_has_its_reason() -> None:
    page = with_used([0.1, 0.1, 2.0, 0.2, 1.01, 0.3], [9.0, 8.0, 0.2, 1.5, 0.3, 1.3])
    rows = np.arange(6)
    assert above_peak(page.table, page.rates, rows) == [STARTED, AWAITED, ESTIMATED, ALL_IN_HBM, NEARLY, UNEXPLAINED]
    calm = with_used([0.5] * 6, [1.0] * 6)
    assert above_peak(calm.table, calm.rates, rows) == [None] * 6
    assert framework_ops.most_above(page, rows[2:4]) in (f"attention: {ESTIMATED}", f"fusion.1: {ALL_IN_HBM}")


def test_a_framework_op_names_the_op_that_is_above_its_peak() -> None:
    ops = with_used([0.1] * 6, [9.0, 0.1, 0.1, 0.1, 0.1, 0.1])
    page = framework_ops.framework_ops_page(ops, [])
    used = np.zeros_like(page.rates.bandwidth_utilization)
    row = int(framework_ops.framework_rows(page, ops)[0])
    used[row, 0] = 3.0
    none = np.zeros(len(page))
    page = replace(page, rates=replace(page.rates, flops_utilization=none, bandwidth_utilization=used))
    reasons = framework_ops.above_peak_of_ops(page, ops, np.arange(len(page)))
    assert reasons[row] == f"copy-start.3: {STARTED}"
    assert [why for at, why in enumerate(reasons) if at != row] == [None] * (len(page) - 1)

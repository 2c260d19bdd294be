"""Groups of HLO ops: which ops are one, and that their sums are those of the ops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.made.op_pages import empty_space, pages_of, small_pages
from tpuprof.parsers.ops.roofline import work_of
from tpuprof.parsers.pages.ops.op_groups import op_groups


def test_copies_are_one_row_with_their_sums() -> None:
    ops = small_pages().ops
    groups = op_groups(ops)
    table, names = groups.page.table, ops.table.name
    at = groups.op_count.tolist().index(3)
    members = np.flatnonzero(groups.group == at)
    assert sorted(names[row] for row in members) == ["fusion.21", "fusion.22", "fusion.23"]
    assert int(groups.main[at]) == members[0]
    assert table.name[at] == names[members[0]]
    for column in ("occurrences", "total_ps", "self_ps", "flops", "bytes_accessed", "hbm_bytes"):
        assert getattr(table, column)[at] == getattr(ops.table, column)[members].sum()
    assert table.minimum_ps[at] == ops.table.minimum_ps[members].min()
    assert groups.page.self_fraction[at] == pytest.approx(ops.self_fraction[members].sum())
    assert groups.page.rates.flops_per_second[at] == pytest.approx(
        ops.table.flops[members].sum() / (ops.table.total_ps[members].sum() / 1e12)
    )
    assert groups.page.rates.bound_name(at) == ops.rates.bound_name(int(members[0]))


def test_other_ops_stay_as_they_are_and_nothing_is_lost() -> None:
    ops = small_pages().ops
    groups = op_groups(ops)
    page = groups.page
    assert len(groups) == len(ops) - 2 == len(page.program) == len(page.op_class)
    assert page.table.self_ps.sum() == ops.table.self_ps.sum()
    assert (np.diff(page.table.self_ps) <= 0).all()
    assert page.cumulative_fraction[-1] == pytest.approx(ops.cumulative_fraction[-1])
    single = np.flatnonzero(groups.op_count == 1)
    main = groups.main[single]
    assert [page.table.name[row] for row in single] == [ops.table.name[row] for row in main]
    np.testing.assert_array_equal(page.table.traffic[single][:, 0], ops.table.hbm_bytes[main])
    np.testing.assert_array_equal(work_of(page.table)[single], work_of(ops.table)[main])


def test_ops_of_two_programs_are_two_rows() -> None:
    ops = small_pages().ops
    programs = ops.table.program_id.copy()
    programs[ops.table.name.index("fusion.22")] = 42
    groups = op_groups(replace(ops, table=replace(ops.table, program_id=programs)))
    assert len(groups) == len(ops) - 1
    of = {name: int(groups.group[ops.table.name.index(name)]) for name in ("fusion.21", "fusion.22", "fusion.23")}
    assert of["fusion.21"] == of["fusion.23"] != of["fusion.22"]


def test_no_ops_are_no_groups() -> None:
    assert len(op_groups(pages_of(empty_space()).ops)) == 0

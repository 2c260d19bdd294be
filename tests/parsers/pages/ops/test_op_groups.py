"""Groups of HLO ops: which ops are one, and that their sums are those of the ops."""

from __future__ import annotations

import numpy as np
from hypothesis import given

from tests.parsers.pages.ops.test_op_pages import HBM_READ_500, Profile, page_of, profiles, summed
from tpuprof.parsers.ops.roofline import work_of
from tpuprof.parsers.ops.table import clone_keys
from tpuprof.parsers.pages.ops.op_groups import op_groups


@given(profiles())
def test_clones_of_one_program_are_one_row_with_their_sums(profile: Profile) -> None:
    for at, op in enumerate(profile.ops):
        op.stats |= {"hlo_category": "copy", "tf_op": f"jit(f)/layer_{at}/add:", "program_id": (7, 7, 9)[at % 3]}
        op.stats |= {"symbol_id": at + 1, "memory_access_breakdown": HBM_READ_500}
    ops = page_of(profile)
    groups, keys = op_groups(ops), list(zip(ops.table.program_id.tolist(), clone_keys(ops.table), strict=True))
    table, page = groups.page.table, groups.page
    assert len(groups) == len(set(keys)) == len(page.program) == len(page.op_class)
    assert (np.diff(table.self_ps) <= 0).all()
    for at, main in enumerate(groups.main.tolist()):
        members = np.flatnonzero(groups.group == at)
        assert [row for row, key in enumerate(keys) if key == keys[main]] == members.tolist()
        assert (main, groups.op_count[at]) == (members[0], len(members)), "the longest comes first"
        assert (table.name[at], page.op_class[at]) == (ops.table.name[main], ops.op_class[main])
        for column in ("occurrences", "total_ps", "self_ps"):
            assert getattr(table, column)[at] == getattr(ops.table, column)[members].sum()
        assert table.minimum_ps[at] == ops.table.minimum_ps[members].min()
        np.testing.assert_allclose(page.self_fraction[at], ops.self_fraction[members].sum())
        np.testing.assert_allclose(work_of(table)[at], summed(work_of(ops.table)[members]), rtol=1e-9)
        if len(members) == 1:
            np.testing.assert_array_equal(work_of(table)[at], work_of(ops.table)[main])
        if table.total_ps[at]:
            rate = summed(ops.table.flops[members, None])[0] / (table.total_ps[at] / 1e12)
            np.testing.assert_allclose(page.rates.flops_per_second[at], rate)

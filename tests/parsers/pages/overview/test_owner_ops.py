"""The ops behind each owner of a step's time."""

from __future__ import annotations

import pytest

from tests.support.build import present
from tpuprof.parsers.files.logdir import open_logdir
from tpuprof.parsers.ops.device import Peaks
from tpuprof.parsers.ops.table import EMPTY_TABLE
from tpuprof.parsers.pages.ops.key import OPS
from tpuprof.parsers.pages.overview.model import OVERVIEW
from tpuprof.parsers.pages.overview.owner_ops import owner_ops
from tpuprof.parsers.session.session import Session
from tpuprof.parsers.steps.accounts.owners import op_owners
from tpuprof.tui.demo import demo_path


def test_the_ops_of_all_owners_hold_the_self_time_of_all_ops_once() -> None:
    session = Session(open_logdir(str(demo_path())).find_run(None))
    page = session.page(OVERVIEW)
    ops = dict(present(page.account).ops)
    assert ops.pop("collective_wait") == ops["collective_transfer"]
    table = session.page(OPS).table
    assert sum(of.time_ps for of in ops.values()) == pytest.approx(float(table.self_ps.sum()))
    for of in ops.values():
        assert 0 < sum(op.fraction for op in of.largest) <= 1 + 1e-9
        assert [op.time_ps for op in of.largest] == sorted((op.time_ps for op in of.largest), reverse=True)
        assert {op.name for op in of.largest} <= set(table.name)
    assert ops["loss"].largest[0].label == "mlp/dot_general (4 ops)" and ops["copy"].largest[0].name == "copy.69"


def test_without_ops_no_owner_has_any() -> None:
    assert owner_ops(EMPTY_TABLE, op_owners(EMPTY_TABLE, Peaks())) == {}

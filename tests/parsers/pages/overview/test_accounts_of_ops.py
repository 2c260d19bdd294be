"""The mean step by module, scope and op: rows add up to each owner's time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.build import present, session_at, tpu_plane
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.pages.overview.accounts_of_ops import NO_OP, NO_SCOPE, OpAccounts
from tpuprof.parsers.pages.overview.ledger import Account
from tpuprof.parsers.session.pages import OP_ACCOUNTS, OVERVIEW
from tpuprof.parsers.steps.accounts.owners import Owner, owner_index

STEPS = 6
FRAMEWORK_OPS = {
    "copy.1": "jit(f)/layer_0/copy:",
    "fusion.1": "jit(f)/layer_0/mlp/add:",
    "fusion.2": "jit(f)/layer_1/mlp/add:",
}


@pytest.fixture
def accounts(tmp_path: Path) -> OpAccounts:
    """Steps of 1000 ps on two cores: one comes 100 later to an all-reduce, and both have 50 without an op."""
    space = XSpace()
    for core, copy in enumerate((200, 100)):
        ops, modules = [], []
        for step in range(STEPS):
            begin = step * 1000
            ops += [
                ("copy.1", "copy", begin, copy),
                ("fusion.1", "loop fusion", begin + copy, 400),
                ("fusion.2", "loop fusion", begin + copy + 400, 250),
                ("all-reduce.1", "all-reduce", begin + copy + 650, 300 - copy),
            ]
            modules.append(("jit_f(7)", begin, begin + 1000))
        steps = [(str(step), step * 1000, (step + 1) * 1000) for step in range(STEPS)]
        tpu_plane(space, core, ops, steps=steps, modules=modules, framework_ops=FRAMEWORK_OPS)
    path = tmp_path / "host0.xplane.pb"
    path.write_bytes(space.SerializeToString())
    session = session_at(path)
    account = present(session.page(OVERVIEW).account)
    found = present(session.page(OP_ACCOUNTS))
    for grouping in ("module", "scope", "op"):
        rows = found.by(grouping)
        assert sum(row.time_ps for row in rows) == pytest.approx(account.step_ps) == 1000
        for each in account.owners:
            assert sum(of(row, each.owner) for row in rows) == pytest.approx(each.time_ps), each.owner
    without_op = named(found.by("op"))[NO_OP].time_ps
    assert account.no_op_fraction == pytest.approx(without_op / account.step_ps) == pytest.approx(0.05)
    return found


def of(row: Account, owner: Owner) -> float:
    return row.owner_ps[owner_index(owner)]


def named(rows: tuple[Account, ...]) -> dict[str, Account]:
    assert len({row.name for row in rows}) == len(rows)
    return {row.name: row for row in rows}


def test_each_op_has_its_time_and_what_no_op_has_is_a_row_of_its_own(accounts: OpAccounts) -> None:
    rows = named(accounts.by("op"))
    assert {name: round(row.time_ps) for name, row in rows.items()} == {
        "fusion.1": 400,
        "fusion.2": 250,
        "copy.1": 150,
        "all-reduce.1": 150,
        NO_OP: 50,
    }
    assert [row.name for row in accounts.by("op")][-1] == NO_OP
    assert of(rows["fusion.1"], "loss") + of(rows["fusion.1"], "ideal") == pytest.approx(400)
    assert of(rows["copy.1"], "copy") == pytest.approx(150)


def test_waiting_in_a_collective_is_what_it_takes_longer_than_on_the_core_that_comes_last(accounts: OpAccounts) -> None:
    row = named(accounts.by("op"))["all-reduce.1"]
    assert of(row, "collective_transfer") == pytest.approx(100) and of(row, "collective_wait") == pytest.approx(50)


def test_scopes_are_those_of_the_framework_op_without_its_own_name(accounts: OpAccounts) -> None:
    rows = named(accounts.by("scope"))
    assert {name: round(row.time_ps) for name, row in rows.items()} == {
        "jit(f)/layer_0/mlp": 400,
        "jit(f)/layer_1/mlp": 250,
        "jit(f)/layer_0": 150,
        NO_SCOPE: 150,
        NO_OP: 50,
    }


def test_a_module_has_the_time_of_its_ops(accounts: OpAccounts) -> None:
    assert {row.name: round(row.time_ps) for row in accounts.by("module")} == {"jit_f(7)": 950, NO_OP: 50}


def test_without_ops_in_steps_nothing_is_known(tmp_path: Path) -> None:
    space = XSpace()
    tpu_plane(space, 0, [("fusion.1", "loop fusion", 0, 100)])
    path = tmp_path / "host0.xplane.pb"
    path.write_bytes(space.SerializeToString())
    assert session_at(path).page(OP_ACCOUNTS) is None

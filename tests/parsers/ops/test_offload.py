"""What SparseCores ran for the TensorCores beside them."""

from __future__ import annotations

from tests.parity.oracle.odd_profile import odd_profile, offload_profile
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.hosts.summary import summarise
from tpuprof.parsers.ops.offload import offloaded_ops
from tpuprof.parsers.ops.table import OpTable
from tpuprof.parsers.pages.ops.ops import OpsPage, ops_page, with_offloaded

US = 1_000_000


def page_of(profile: bytes) -> OpsPage:
    return ops_page([summarise(Trace.from_bytes(profile), "host0")])


def rows_of(table: OpTable) -> list[tuple[str, str, int, int, int]]:
    """Parent, name, occurrences, total and self time in microseconds."""
    columns = (table.occurrences, table.total_ps // US, table.self_ps // US)
    return sorted(zip(table.parent, table.name, *(column.tolist() for column in columns), strict=True))


def test_ops_are_those_of_the_call_whose_run_they_lie_in() -> None:
    table = offloaded_ops(Trace.from_bytes(offload_profile()).planes)
    assert rows_of(table) == [
        ("call-start.1", "gather_fusion.1", 1, 20, 16),
        ("call-start.1", "sc_add.2", 1, 4, 4),
        ("call-start.2", "gather_fusion.1", 1, 21, 16),
        ("call-start.2", "sc_add.2", 1, 5, 5),
    ]


def test_all_runs_on_all_chips_count() -> None:
    page = page_of(offload_profile(chips=2, runs=3))
    runs = {(parent, name): count for parent, name, count, *_ in rows_of(page.offloaded)}
    assert runs == {(f"call-start.{call}", name): 6 for call in (1, 2) for name in ("gather_fusion.1", "sc_add.2")}


def test_what_sparse_cores_ran_takes_no_time_of_the_cores() -> None:
    page = page_of(offload_profile())
    listed = with_offloaded(page)
    assert page.table.name == ("fusion.1", "call-start.1", "call-start.2")
    assert listed.table.name[:3] == page.table.name and len(listed) == 7
    assert listed.table.parent[:3] == ("", "", "") and all(listed.table.parent[3:])
    assert listed.total_ps == page.total_ps and page.self_fraction.sum() <= 1
    assert [value == value for value in listed.self_fraction.tolist()] == [True] * 3 + [False] * 4
    assert listed.table.expression(3).startswith("%gather_fusion.1 = ")  # of the SparseCore's own metadata
    assert [round(value, 3) for value in listed.table.energy_j[3:5].tolist()] == [0.5, 0.5]


def test_a_profile_without_offloads_decodes_nothing_for_them() -> None:
    page = page_of(odd_profile())
    assert len(page.offloaded) == 0
    assert with_offloaded(page) is page


def test_energy_and_host_code_are_told_of_ops() -> None:
    table = page_of(odd_profile()).table
    energies = dict(zip(table.name, table.energy_j.tolist(), strict=True))
    assert (energies["add.9"], energies["send-done.1"]) == (9.0, 1.5)
    assert energies["fusion.1"] != energies["fusion.1"]  # unknown
    outside = {name for row, name in enumerate(table.name) if table.is_outside_compilation(row)}
    assert outside == {"add.9", "send-done.1"}

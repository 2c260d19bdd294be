"""Replica groups in the forms that XLA writes, and the bytes that go with them."""

from __future__ import annotations

import pytest

from tests.support.build import present
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.pages.collectives.bandwidth import bus_factor, ici_peak, payload_bytes
from tpuprof.parsers.steps.boundaries.replica_groups import ALL, ReplicaGroups, groups_in, groups_of, without_partners


@pytest.mark.parametrize(
    ("text", "label", "axis"),
    [
        ("all-reduce(%p), replica_groups={{0,1},{2,3}}, to_apply=%a", "2×2", "id+1"),
        ("all-reduce(%p), replica_groups={{0,2}, {1,3}}", "2×2", "id+2"),
        ("all-reduce(%p), replica_groups={{0,3,5},{1,2,4}}", "2×3", ""),
        ("all-reduce(%p), replica_groups={}, to_apply=%a", "all", ""),
        ("all-reduce(%p), replica_groups=[4,2]<=[2,4]T(1,0), use_global_device_ids=true", "4×2", "id+4"),
        ("all-gather(%p), replica_groups=[4,8]<=[32]", "4×8", "id+1"),
        ("all-gather(%p), replica_groups=[8,4]<=[2,4,4]T(0,2,1)", "8×4", "id+4"),
        ("all-gather(%p), replica_groups=mesh['data'=4,'model'=2] {'data'}", "2×4", "data"),
        ("all-gather(%p), replica_groups=mesh[data=4,model=2] {data,model}", "1×8", "data,model"),
        ("all-gather(%p), replica_groups=mesh['data'=8,'model'=2] {'data':(2)4}", "4×4", "data"),
        ("all-gather(%p), replica_groups=mesh['axis_0'=4,'axis_1'=2] {'axis_0'}", "2×4", "id+2"),
        ("collective-permute(%p), source_target_pairs={{0,1},{1,2},{2,0}}", "3 pairs", "id+1"),
    ],
)
def test_forms(text: str, label: str, axis: str) -> None:
    groups = present(groups_in(text))
    assert (groups.label, groups.axis) == (label, axis)


@pytest.mark.parametrize(
    "text",
    [
        "fusion(%p), kind=kLoop",
        "all-gather(%p), replica_groups=[4,8]<=[31]",
        "all-gather(%p), replica_groups=[4,8]<=[4,8]T(0,0)",
        "all-gather(%p), replica_groups=mesh['data'=4] {'model'}",
        "all-gather(%p), replica_groups=mesh['data'=4] {'data':(1)3}",
    ],
)
def test_what_is_no_group_is_unknown(text: str) -> None:
    assert groups_in(text) is None


def test_a_huge_mesh_is_not_spelled_out() -> None:
    groups = groups_in("all-reduce(%p), replica_groups=[2,1073741824]<=[2147483648]")
    assert groups is None or groups.distance is None


def test_protos_say_the_same_as_texts() -> None:
    listed = hlo_pb2.HloInstructionProto()
    for ids in ((0, 2), (1, 3)):
        listed.replica_groups.add(replica_ids=ids)
    assert groups_of(listed) == groups_in("replica_groups={{0,2},{1,3}}")
    iota = hlo_pb2.HloInstructionProto()
    of = iota.iota_collective_device_list
    of.num_replica_groups, of.num_devices_per_group = 4, 2
    of.iota_reshape_dims.extend((2, 4))
    of.iota_transpose_perm.extend((1, 0))
    assert groups_of(iota) == groups_in("replica_groups=[4,2]<=[2,4]T(1,0)")
    mesh = hlo_pb2.HloInstructionProto()
    axes = mesh.mesh_axes_replica_group_list
    axes.mesh.axes.add(name=b"data", size=4)
    axes.mesh.axes.add(name=b"model", size=2)
    axes.axes.add(mesh_axis_index=0)
    assert groups_of(mesh) == groups_in("replica_groups=mesh['data'=4,'model'=2] {'data'}")
    axes.axes.add(mesh_axis_index=9)
    assert groups_of(mesh) is None
    pairs = hlo_pb2.HloInstructionProto()
    pairs.source_target_pairs.add(source=0, target=4)
    assert groups_of(pairs) == ReplicaGroups(1, 2, 4, are_pairs=True)
    assert groups_of(hlo_pb2.HloInstructionProto()) is None


def test_bytes_on_the_bus() -> None:
    eight = ReplicaGroups(4, 8, 1)
    assert bus_factor("all-reduce", eight, 32) == pytest.approx(2 * 7 / 8)
    assert bus_factor("all-gather", eight, 32) == pytest.approx(7 / 8)
    assert bus_factor("all-gather", ALL, 32) == pytest.approx(31 / 32)
    assert bus_factor("collective-permute", None, 0) == 1
    assert bus_factor("all-gather", None, 32) is None
    assert bus_factor("collective", eight, 32) is None
    assert payload_bytes("reduce-scatter", 100, 8) == 800
    assert payload_bytes("all-gather", 100, 8) == 100


def test_peaks_are_of_known_devices_alone() -> None:
    assert ici_peak("TPU v5 Lite") == 200e9
    assert ici_peak("TPU v6 Lite") == 400e9
    assert ici_peak("TPU v99") is None
    assert ici_peak(None) is None


def test_partners_are_lacking_where_a_group_has_more_members_than_are_shown() -> None:
    assert present(groups_in("replica_groups=[2,4]<=[8]")).members == 4
    assert present(groups_in("source_target_pairs={{0,1},{1,0}}")).members == ALL.members == 0
    assert without_partners(4, 4) == without_partners(0, 2) == without_partners(4, 0) == ""
    assert without_partners(4, 1).startswith("the collectives run over 4 devices, of which 1 is shown: waiting for")

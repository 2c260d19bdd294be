"""Op tables: odd times and metadata, classes of ops, and what is no table at all."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.build import PlaneBuilder, tpu_plane, trace_of
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.hosts.summary import summarise
from tpuprof.parsers.ops.core.sums import op_sums
from tpuprof.parsers.ops.device import kind_by_name, op_class, shortcoming
from tpuprof.parsers.pages.overview.overview import overview


def test_times_beyond_reason_keep_sums_within_64_bits() -> None:
    space = XSpace()
    ops = [("f", "loop fusion", at, 1 << 60) for at in range(40)]
    tpu_plane(space, 0, ops, steps=[("0", 0, 100), ("1", 100, 200)])
    page = overview([summarise(trace_of(space), "host0")])
    assert page.performance.device_idle_percent is not None
    assert 0 <= page.performance.device_idle_percent <= 100
    assert all(0 <= share.fraction <= 1 for share in page.shares)


def test_ops_without_metadata_or_with_stats_of_a_wrong_type_keep_their_row() -> None:
    plane = PlaneBuilder.alone("/device:TPU:0")
    line = plane.line("XLA Ops")
    odd = plane.event_id("%odd = f32[] odd()", "odd", hlo_category=5, flops="many", program_id="x")
    plane.event(line, odd, 0, 10)
    line.events.add(metadata_id=99, offset_ps=20, duration_ps=5)
    line.events.add(metadata_id=-7, offset_ps=30, duration_ps=-4)
    table = op_sums(plane.read()).table
    rows = {name: at for at, name in enumerate(table.name)}
    assert sorted(rows) == ["event -7", "event 99", "odd"]
    assert [table.category[at] for at in rows.values()] == [None] * 3
    assert np.isnan(table.flops).all()
    assert not table.has_ids.any()
    assert table.self_ps[rows["event 99"]] == 5
    assert table.self_ps[rows["event -7"]] == 0


def test_a_plane_without_an_op_line_gives_an_empty_table() -> None:
    space = XSpace()
    PlaneBuilder(space, "/device:TPU:0").stat("device_type_string", "TPU test")
    assert len(op_sums(trace_of(space).planes[0]).table) == 0


@pytest.mark.parametrize(
    ("category", "name", "flops", "expected"),
    [
        ("convolution fusion", "", True, "compute"),
        ("output fusion", "", False, "compute"),
        ("loop fusion", "", False, "vector"),
        ("loop fusion", "copy_bitcast_fusion.3", False, "copy"),
        ("loop fusion", "transpose_fusion", False, "copy"),
        ("loop fusion", "copy_add_fusion", False, "vector"),
        ("output fusion", "transpose_fusion", True, "compute"),
        ("copy-done", "", False, "copy"),
        ("data formatting", "", False, "copy"),
        ("all-reduce-scatter fusion", "", False, "collective"),
        ("collective-permute-start", "", False, "collective"),
        ("async-done", "all-gather-done.3", False, "collective"),
        ("custom fusion", "async-collective-start.2", False, "collective"),
        ("custom fusion", "fusion.2", False, "vector"),
        ("infeed", "", False, "host"),
        ("host recv-done", "", False, "host"),
        ("custom-call", "kernel", True, "compute"),
        ("custom-call", "kernel", False, "unknown"),
        (None, "fusion", True, "unknown"),
        ("sort", "", False, "vector"),
    ],
)
def test_what_a_category_means(category: str | None, name: str, flops: bool, expected: str) -> None:
    assert op_class(category, name, flops) == expected


@pytest.mark.parametrize("kind", ["all-reduce", "all-gather", "all-to-all", "collective-permute", "reduce-scatter"])
def test_a_collective_is_of_one_kind_however_it_is_carried_out(kind: str) -> None:
    ways = [(kind, "fusion.1"), (f"{kind} fusion", "fusion.2"), ("async-start", f"{kind}-start.3")]
    ways += [("async-done", f"async-{kind}-done.1.2"), ("custom fusion", f"async-{kind}.4"), (f"{kind}-done", "x")]
    assert {kind_by_name(*way) for way in ways} == {kind}


@given(
    st.sets(st.sampled_from(["/host:CPU", "/device:TPU:0", "/device:GPU:1", "/device:TPU:0 SparseCore 1"]), min_size=1)
)
def test_a_profile_is_whole_if_it_has_a_device_of_any_kind(names: set[str]) -> None:
    space = XSpace()
    for number, name in enumerate(sorted(names)):
        PlaneBuilder(space, name, number + 1)
    assert shortcoming(trace_of(space)) == (0 if names & {"/device:TPU:0", "/device:GPU:1"} else 2)

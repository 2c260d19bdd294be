"""Framework ops of host threads, on small profiles whose answers are known by hand; times are in picoseconds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.build import PlaneBuilder, StatInput, trace_of
from tests.support.host_events import host_ops
from tpuprof.parsers.base.errors import Cancelled
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.ops.framework_op import parse_framework_op
from tpuprof.parsers.ops.host.ops import HostOps, merge_host_ops

Event = tuple[str, int, int, dict[str, StatInput]]
"""Name, begin, end, stats."""


def host(*threads: list[Event]) -> XSpace:
    """A profile with one host plane; thread clocks differ, and must not matter."""
    plane = PlaneBuilder.alone("/host:CPU")
    for number, events in enumerate(threads):
        plane.spans(f"thread/{number}", events, timestamp_ns=1000 * number)
    return plane.space


def read(*threads: list[Event]) -> HostOps:
    return host_ops(trace_of(host(*threads)))


def rows(ops: HostOps) -> list[tuple[str, str, int, int, int, int]]:
    """Name, type, stage, occurrences, total and self time of each row."""
    columns = (ops.stage_id, ops.occurrences, ops.total_ps, ops.self_ps)
    return list(zip(ops.name, ops.type, *(column.tolist() for column in columns), strict=True))


def stage(number: StatInput, category: StatInput) -> dict[str, StatInput]:
    return {"_ipl_stage_id": number, "_ipl_stage_cat": category}


def test_ops_nest_within_a_thread_and_add_up_over_threads() -> None:
    thread: list[Event] = [
        ("Iterator::Model::Map", 100, 200, {}),
        ("an annotation", 105, 195, {}),
        ("dense/MatMul:MatMul", 110, 140, {}),
        ("dense/MatMul:MatMul", 140, 150, {}),
        ("jit(f)/add:add", 260, 300, {}),
        ("dense/MatMul:MatMul", 270, 300, {}),
    ]
    ops = read(thread, thread[:3], [("an annotation", 0, 10_000, {})])
    assert rows(ops) == [
        ("Iterator::Model::Map", "Dataset", 0, 2, 200, 130),
        ("dense/MatMul", "MatMul", 0, 4, 100, 100),
        ("jit(f)/add", "add", 0, 1, 40, 10),
    ]
    assert (ops.whole_ps, ops.idle_ps, ops.threads) == (300, 60, 2)
    assert int(ops.self_ps.sum()) + ops.idle_ps == ops.whole_ps


def test_an_op_counts_whatever_it_shares_its_end_with() -> None:
    # XProf has b alone, with 20 of idle time.
    ops = read([("a:A", 0, 30, {}), ("b:B", 10, 20, {}), ("c:C", 15, 20, {})])
    assert rows(ops) == [("a", "A", 0, 1, 30, 20), ("b", "B", 0, 1, 10, 5), ("c", "C", 0, 1, 5, 5)]


def test_the_order_of_events_in_the_file_does_not_matter() -> None:
    events: list[Event] = [("a:A", 0, 30, {}), ("b:B", 0, 10, {}), ("c:C", 10, 30, {}), ("d:D", 10, 10, {})]
    expected = [("c", "C", 0, 1, 20, 20), ("b", "B", 0, 1, 10, 10), ("a", "A", 0, 1, 30, 0), ("d", "D", 0, 1, 0, 0)]
    assert rows(read(events)) == rows(read(events[::-1])) == expected


def test_events_that_overlap_in_part_both_keep_their_time() -> None:
    # XProf drops b and, at its end, every op that is open then: a alone is left, with 20 of idle time.
    ops = read([("outer:O", 0, 30, {}), ("a:A", 5, 15, {}), ("b:B", 10, 20, {})])
    assert rows(ops) == [("a", "A", 0, 1, 10, 10), ("b", "B", 0, 1, 10, 10), ("outer", "O", 0, 1, 30, 10)]
    assert ops.idle_ps == 0


def test_stages_go_by_their_id() -> None:
    first: list[Event] = [
        ("Iterator::Batch", 0, 50, stage(7, "preprocessing")),
        ("read:Read", 10, 30, stage(8, "read")),
        ("Iterator::Batch", 60, 70, {}),
        ("other name", 80, 85, stage(7, "read")),
    ]
    ops = read(first, [("no category", 0, 5, {"_ipl_stage_id": 8}), ("no category", 5, 9, {"_ipl_stage_id": 9})])
    assert rows(ops) == [
        ("Iterator::Batch", "preprocessing", 7, 2, 55, 35),
        ("read:Read", "read", 8, 2, 25, 25),
        ("Iterator::Batch", "Dataset", 0, 1, 10, 10),
    ]
    assert (ops.whole_ps, ops.idle_ps, ops.threads) == (90, 20, 2)


def test_a_stage_may_be_typed_by_a_later_thread_or_a_reference() -> None:
    space = host([("x", 0, 5, {"_ipl_stage_id": 8})], [("y", 0, 9, stage(8, "placeholder"))])
    stat = next(stat for stat in space.planes[0].lines[1].events[0].stats if stat.str_value)
    stat.ref_value = 3
    entry = space.planes[0].stat_metadata[3]
    entry.id, entry.name = 3, b"enqueue"
    assert rows(host_ops(trace_of(space))) == [("y", "enqueue", 8, 2, 14, 14)]


def test_a_stage_whose_category_is_empty_is_typed_by_its_name() -> None:
    assert rows(read([("Iterator::A", 0, 5, stage(3, "")), ("plain", 5, 9, stage(4, ""))])) == [
        ("Iterator::A", "Dataset", 3, 1, 5, 5),
        ("plain", "", 4, 1, 4, 4),
    ]


def test_stage_ids_and_metadata_ids_are_apart() -> None:
    # The annotation has metadata id 2, as the stage has: XProf counts it as another event of the stage.
    assert rows(read([("s", 0, 5, stage(2, "read")), ("annotation", 5, 9, {})])) == [("s", "read", 2, 1, 5, 5)]


def test_the_stat_tf_op_names_an_op_of_any_type_where_nothing_else_does() -> None:
    ops = read(
        [
            ("allocate", 0, 0, {"tf_op": "dummy"}),
            ("allocate", 5, 5, {"tf_op": "dummy"}),
            ("region", 10, 20, {"tf_op": "jit(f)/dot_general:"}),
            ("a:A", 20, 30, {"tf_op": "b:B"}),
            ("empty", 30, 31, {"tf_op": ""}),
            ("number", 31, 32, {"tf_op": 5}),
        ]
    )
    assert rows(ops) == [
        ("a", "A", 0, 1, 10, 10),
        ("jit(f)/dot_general", "dot_general", 0, 1, 10, 10),
        ("dummy", "", 0, 2, 0, 0),
    ]
    assert ops.idle_ps == 10


def test_references_to_names_are_looked_up() -> None:
    space = host([("x", 0, 5, {"tf_op": "placeholder"}), ("y", 5, 9, {"tf_op": "placeholder"})])
    entry = space.planes[0].stat_metadata[9]
    entry.id, entry.name = 9, b"dense:MatMul"
    space.planes[0].lines[0].events[0].stats[0].ref_value = 9
    space.planes[0].lines[0].events[1].stats[0].ref_value = 77  # names nothing
    assert rows(host_ops(trace_of(space))) == [("dense", "MatMul", 0, 1, 5, 5)]


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("MEMCPYHtoD 4 kB", ("MEMCPYHtoD 4 kB", "MemcpyHToD")),
        ("a/b_3:", ("a/b_3", "b")),
        ("A B/:", ("A B/", "")),
        ("Iterator:", ("Iterator:", "Dataset")),
        ("$x:_f[n=1]", ("$x", "_f")),
        ("$file.py:12 call", None),
        ("tpu::System::Execute", None),
        ("Iterators::Map", None),
        ("Memory", None),
        ("x:[", None),
        ("name:Type with words", None),
        ("", None),
    ],
)
def test_which_names_are_ops(name: str, row: tuple[str, str] | None) -> None:
    events: list[Event] = [("before:X", 0, 0, {}), (name, 1, 3, {}), ("after", 3, 3, {})]
    assert [found[:2] for found in rows(read(events))] == ([row] if row else []) + [("before", "X")]


@given(
    st.lists(st.text("aZ_1:/$[] é") | st.text(max_size=4).map("Iterator".__add__) | st.text().map("meMcpyDtoh".__add__))
)
def test_no_name_that_the_parser_knows_is_passed_over(names: list[str]) -> None:
    ops = read([(name, 0, 1, {}) for name in names])
    known = [name for name in names if parse_framework_op(name).type or (name.endswith(":") and name.count(":") == 1)]
    assert int(ops.occurrences.sum()) == len(known)


def test_eager_is_what_the_stat_says() -> None:
    ops = read(
        [
            ("a:A", 0, 1, {}),
            ("a:A", 1, 9, {"is_eager": 1}),
            ("b:B", 10, 12, {"is_eager": 0}),
            ("c:C", 13, 14, {"is_eager": "1"}),
        ]
    )
    assert dict(zip(ops.name, ops.is_eager.tolist(), strict=True)) == {"a": True, "b": False, "c": False}


def test_infeed_enqueues_give_their_share_of_time() -> None:
    first: list[Event] = [(f"infeed/{at}:InfeedEnqueueTuple", at, at + 10, {}) for at in (0, 100, 200)]
    ops = read(
        first, [("x:InfeedEnqueue", 0, 30, {}), ("x:InfeedEnqueue", 40, 99, {})], [("x:InfeedEnqueue", 0, 9, {})]
    )
    assert (ops.enqueue_ps, ops.enqueue_interval_ps) == (10 + 10 + 30, 200 + 40)
    assert ops.enqueue_ratio == pytest.approx(50 / 240)
    assert read(first[:1]).enqueue_ratio is None


def test_hosts_add_up_by_stage_and_name() -> None:
    one = read([("a:A", 0, 10, {}), ("s", 10, 12, stage(1, "read"))])
    two = read([("a:A", 0, 5, {}), ("a", 5, 6, stage(1, "read")), ("s", 10, 12, stage(2, "read"))])
    both = merge_host_ops([one, two])
    assert rows(both) == [
        ("a", "A", 0, 2, 15, 15),
        ("s", "read", 1, 1, 2, 2),
        ("s", "read", 2, 1, 2, 2),
        ("a", "read", 1, 1, 1, 1),
    ]
    assert (both.whole_ps, both.idle_ps, both.threads) == (24, 4, 2)
    assert rows(merge_host_ops([one])) == rows(one)


def test_only_what_may_hold_ops_is_decoded() -> None:
    plain = trace_of(host([("annotation", 0, 5, {"bytes": 4}), ("$file.py:12 call", 1, 2, {})]))
    assert len(host_ops(plain)) == 0
    seen: list[int] = []
    space = host([("a:A", 0, 5, {})], [("b", 0, 5, {})], [("c:C", 0, 7, {})])
    space.planes[0].lines[2].id = 0xDEADBEEF + 3  # a line that the profiler derived from others
    trace = trace_of(space)
    assert rows(host_ops(trace, lambda size, _: seen.append(size))) == [("a", "A", 0, 1, 5, 5)]
    assert sum(line.size for line in trace.planes[0].lines[:2]) == sum(seen)


def test_a_profile_without_a_host_plane_has_no_rows() -> None:
    space = XSpace()
    PlaneBuilder(space, "/device:TPU:0").line("XLA Ops")
    ops = host_ops(trace_of(space))
    assert (len(ops), ops.whole_ps, ops.idle_ps, ops.threads) == (0, 0, 0, 0)
    assert ops.enqueue_ratio is None


def test_cancelling_ends_the_decoding() -> None:
    def cancel(_: int, __: int) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        host_ops(trace_of(host([("a:A", 0, 5, {})])), cancel)


_INT64 = st.one_of(st.integers(-5, 60), st.integers(-(2**63), 2**63 - 1))
_VALUE = st.one_of(_INT64, st.floats(), st.sampled_from(["", "read", "a:A", "b/c:", "\0"]), st.binary(max_size=3))


@given(
    st.lists(
        st.tuples(
            st.integers(-1, 6),
            _INT64,
            _INT64,
            st.dictionaries(st.sampled_from(["_ipl_stage_id", "_ipl_stage_cat", "tf_op", "is_eager"]), _VALUE),
        ),
        max_size=12,
    )
)
def test_whatever_a_file_says_no_event_is_lost_or_counted_twice(
    events: list[tuple[int, int, int, dict[str, StatInput]]],
) -> None:
    plane = PlaneBuilder.alone("/host:CPU")
    names = ["a:A", "a:B", "Iterator::X", "plain", "MemcpyDtoH", ""]
    ids = [plane.event_id(name) for name in names]
    line = plane.line("main", timestamp_ns=2**62)
    for number, offset, duration, stats in events:
        plane.event(line, ids[number - 1] if 0 < number <= len(ids) else number, offset, duration, **stats)
    ops = host_ops(trace_of(plane.space))
    sure = sum(0 < number <= len(ids) and names[number - 1] not in ("plain", "") for number, *_ in events)
    assert sure <= int(ops.occurrences.sum()) <= len(events)
    assert bool((np.diff(ops.self_ps) <= 0).all())
    assert len(set(zip(ops.stage_id.tolist(), ops.name, strict=True))) == len(ops)
    assert 0 <= ops.idle_ps <= ops.whole_ps


_PLACES = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 20), st.sampled_from(["a:A", "b:B", "c:C"])), max_size=15
)


@given(_PLACES)
def test_idle_is_what_no_op_covers(places: list[tuple[int, int, str]]) -> None:
    ops = read([(name, begin, begin + length, {}) for begin, length, name in places])
    covered = {at for begin, length, _ in places for at in range(begin, begin + length)}
    whole = max((a + b for a, b, _ in places), default=0) - min((a for a, _, _ in places), default=0)
    assert (ops.whole_ps, ops.idle_ps) == (whole, whole - len(covered))
    assert int(ops.total_ps.sum()) == sum(length for _, length, _ in places)

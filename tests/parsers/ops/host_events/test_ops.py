"""Framework ops of host threads, against a plain account of each event; times are in picoseconds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.formats.xspace.core.test_nest import by_stack
from tests.support.build import PlaneBuilder, StatInput, trace_of
from tests.support.host_events import host_ops
from tpuprof.parsers.base.errors import Cancelled
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.ops.framework_op import FrameworkOp, parse_framework_op
from tpuprof.parsers.ops.host_events.ops import HostOps

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


def test_a_stage_may_be_typed_by_a_later_thread_or_a_reference() -> None:
    space = host([("x", 0, 5, {"_ipl_stage_id": 8})], [("y", 0, 9, stage(8, "placeholder"))])
    stat = next(stat for stat in space.planes[0].lines[1].events[0].stats if stat.str_value)
    stat.ref_value = 3
    entry = space.planes[0].stat_metadata[3]
    entry.id, entry.name = 3, b"enqueue"
    assert rows(host_ops(trace_of(space))) == [("y", "enqueue", 8, 2, 14, 14)]


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


PlainOp = tuple[int, str, str, bool]
"""Stage, name, type, and whether it is marked as run eagerly."""


def plain_ops(threads: Sequence[list[Event]]) -> list[list[tuple[int, int, PlainOp]]]:
    """Begin, end and op of the events of each thread that are ops, in the order of nesting."""
    events = [event for thread in threads for event in thread]
    has_stages = {"_ipl_stage_id", "_ipl_stage_cat"} <= {name for *_, stats in events for name in stats}
    stages: dict[StatInput, FrameworkOp] = {}
    for name, _, _, stats in events:
        if name and {"_ipl_stage_id", "_ipl_stage_cat"} <= stats.keys():
            category = str(stats["_ipl_stage_cat"])
            op = FrameworkOp(name, category) if category else parse_framework_op(name)
            stages.setdefault(stats["_ipl_stage_id"], op)

    def op_of(name: str, stats: dict[str, StatInput]) -> PlainOp | None:
        stage, text, op = stats.get("_ipl_stage_id", 0), stats.get("tf_op"), parse_framework_op(name)
        is_named = bool(op.type) or (name.endswith(":") and name.count(":") == 1)
        is_eager = stats.get("is_eager") == 1 and (is_named or (has_stages and stage != 0))
        if stage in stages:
            return int(stage), stages[stage].name, stages[stage].type, is_eager
        if not is_named and isinstance(text, str) and text:
            op, is_named = parse_framework_op(text), True
        return (0, op.name, op.type, is_eager) if is_named else None

    found = []
    for thread in threads:
        ops = [(begin, end, of) for name, begin, end, stats in thread if (of := op_of(name, stats)) is not None]
        found.append(sorted(ops, key=lambda op: (op[0], -op[1])))
    return found


_STATS = st.fixed_dictionaries(
    {},
    optional={
        "_ipl_stage_id": st.integers(1, 3),
        "_ipl_stage_cat": st.sampled_from(["read", "preprocessing", ""]),
        "tf_op": st.sampled_from(["jit(f)/dot_general:", "d:D", "dummy", "", 5]),
        "is_eager": st.sampled_from([0, 1, "1"]),
    },
)
_NAMES = st.sampled_from(["a:A", "b/c_3:", "Iterator::X", "MemcpyDtoH", "in:InfeedEnqueueTuple", "plain", ""])
_THREAD = st.lists(st.tuples(_NAMES, st.integers(0, 40), st.integers(0, 20), st.just({}) | _STATS), max_size=12).map(
    lambda events: [(name, begin, begin + length, stats) for name, begin, length, stats in events]
)


@given(st.lists(_THREAD, min_size=1, max_size=3))
def test_ops_are_those_of_a_plain_account(threads: list[list[Event]]) -> None:
    ops, expected = read(*threads), plain_ops(threads)
    sums: dict[tuple[int, str], list[int]] = {}
    types: dict[tuple[int, str], set[str]] = {}
    enqueue_ps = interval_ps = whole_ps = busy_ps = 0
    for thread in expected:
        own = by_stack([(begin, end) for begin, end, _ in thread])[2]
        for (begin, end, (stage, name, kind, is_eager)), self_ps in zip(thread, own, strict=True):
            known = sums.get((stage, name), [0, 0, 0, 0])
            added = (1, end - begin, max(self_ps, 0), is_eager)
            sums[stage, name] = [one + more for one, more in zip(known, added, strict=True)]
            types.setdefault((stage, name), set()).add(kind)
        enqueues = [(begin, end) for begin, end, (_, _, kind, _) in thread if kind.startswith("InfeedEnqueue")]
        enqueue_ps += sum(end - begin for begin, end in enqueues[:-1])
        interval_ps += enqueues[-1][0] - enqueues[0][0] if enqueues else 0
        whole_ps += max((end for _, end, _ in thread), default=0) - min((begin for begin, *_ in thread), default=0)
        busy_ps += len({moment for begin, end, _ in thread for moment in range(begin, end)})
    order = sorted(sums, key=lambda key: (-sums[key][2], key[1], key[0]))
    columns = (ops.occurrences.tolist(), ops.total_ps.tolist(), ops.self_ps.tolist())
    assert list(zip(ops.stage_id.tolist(), ops.name, strict=True)) == order
    assert list(zip(*columns, strict=True)) == [tuple(sums[key][:3]) for key in order]
    assert ops.is_eager.tolist() == [sums[key][3] > 0 for key in order]
    assert all(kind in types[key] for key, kind in zip(order, ops.type, strict=True))
    assert (ops.whole_ps, ops.idle_ps, ops.threads) == (whole_ps, whole_ps - busy_ps, sum(map(bool, expected)))
    assert (ops.enqueue_ps, ops.enqueue_interval_ps) == (enqueue_ps, interval_ps)
    assert ops.enqueue_ratio == (enqueue_ps / interval_ps if interval_ps else None)

"""A host's threads: which lines are threads, stats of few events, and what one pass over them gives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.build import PlaneBuilder, StatInput, present, trace_of
from tests.support.host_events import read_host
from tpuprof.parsers.base.errors import Cancelled
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.hosts.step_summary import read_host_side
from tpuprof.parsers.ops.host_events.events import HostEvents, HostThread, thread_lines

Event = tuple[str, int, int, dict[str, StatInput]]
"""Name, start, end and stats."""


def space_of(*threads: Sequence[Event]) -> tuple[XSpace, PlaneBuilder]:
    """A host whose threads' clocks begin a nanosecond after one another."""
    plane = PlaneBuilder.alone("/host:CPU")
    for at, events in enumerate(threads):
        line = plane.line(f"thread {at}", timestamp_ns=at)
        for name, start, end, stats in events:
            plane.event(line, plane.event_id(name), start - 1000 * at, end - start, **stats)
    return plane.space, plane


def read(space: XSpace, *stats: str) -> HostEvents:
    return present(read_host(trace_of(space), stats))


def only_thread(*events: Event, stats: Sequence[str] = ("n",)) -> HostThread:
    (thread,) = read(space_of(events)[0], *stats).threads
    return thread


def test_times_are_on_the_traces_clock_and_in_the_files_order() -> None:
    host = read(space_of([("b", 700, 900, {}), ("a", 100, 200, {})], [("c", 1500, 1600, {})])[0])
    assert [thread.line.name for thread in host.threads] == ["thread 0", "thread 1"]
    spans = [list(zip(thread.start_ps.tolist(), thread.end_ps.tolist(), strict=True)) for thread in host.threads]
    assert spans == [[(700, 900), (100, 200)], [(1500, 1600)]]
    assert [[host.name(number) for number in thread.metadata_id.tolist()] for thread in host.threads] == [
        ["b", "a"],
        ["c"],
    ]


def test_derived_and_empty_lines_are_no_threads() -> None:
    space, plane = space_of(
        [("work", 0, 10, {})], [], [("step", 0, 10, {})], [("op", 0, 10, {})], [("late", 0, 10, {})]
    )
    ids = (5, 6, 0xDEADBEEF, -(1 << 32) + 0xDEADBEEF + 289, 0xDEADBEEF + 290)
    for line, number in zip(plane.plane.lines, ids, strict=True):
        line.id = number if number < 1 << 63 else number - (1 << 64)
    trace = trace_of(space)
    names = [line.name for line in thread_lines(present(trace.plane("/host:CPU"))) if len(line.events())]
    assert names == ["thread 0", "thread 4"]
    side = read_host_side(trace)
    assert side.events is not None
    assert [thread.line.name for thread in side.events.threads if len(thread)] == names


def test_names_are_those_of_the_metadata_or_else_the_number() -> None:
    space, plane = space_of([("a", 0, 1, {}), ("lost", 1, 2, {}), ("", 2, 3, {}), ("b", 3, 4, {})])
    del plane.plane.event_metadata[2]
    host = read(space)
    assert [host.name(number) for number in host.threads[0].metadata_id.tolist()] == ["a", "event 2", "event 3", "b"]
    asked: list[str] = []

    def is_wanted(name: str) -> bool:
        asked.append(name)
        return name >= "a"

    assert host.ids_named(is_wanted).tolist() == [1, 4]
    assert sorted(asked) == ["", "a", "b"]
    assert host.ids_named(lambda name: False).tolist() == []


def test_stats_are_kept_for_the_events_that_have_them() -> None:
    thread = only_thread(
        ("a", 0, 1, {}),
        ("a", 1, 2, {"n": 7}),
        ("a", 2, 3, {"other": 3}),
        ("a", 3, 4, {"n": "text"}),
        ("a", 4, 5, {"n": -1}),
        stats=("n", "nowhere", "other"),
    )
    assert set(thread.stats) == {"n", "other"}
    assert thread.stats["n"].rows.tolist() == [1, 3, 4]
    values, has = thread.stats["n"].integers_at(np.array([4, 0, 1, 2, 1], np.int64))
    assert (values.tolist(), has.tolist()) == ([-1, 0, 7, 0, 7], [True, False, True, False, True])


@given(
    st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=12),
    st.lists(st.integers(0, 11), max_size=10),
)
def test_integers_at_any_events(values: list[int | None], wanted: list[int]) -> None:
    events: list[Event] = [("a", at, at + 1, {} if n is None else {"n": n}) for at, n in enumerate(values)]
    thread = only_thread(*events)
    rows = [row for row in wanted if row < len(values)]
    found, has = thread.stat("n").integers_at(np.array(rows, np.int64))
    assert has.tolist() == [values[row] is not None for row in rows]
    assert found.tolist() == [values[row] or 0 for row in rows]


# --- one pass ------------------------------------------------------------------------------------------------------


def test_a_profile_without_a_host_plane_has_no_events_but_empty_answers() -> None:
    space = XSpace()
    PlaneBuilder(space, "/host:other", 1).line("thread")
    assert read_host(trace_of(space)) is None
    side = read_host_side(trace_of(space))
    assert side.events is None
    assert (len(side.ops), len(side.input_rows), len(side.waits[0])) == (0, 0, 0)


def test_one_pass_gives_ops_waits_rows_and_the_stats_that_groups_need() -> None:
    python: list[Event] = [
        ("train", 0, 100, {"_r": 1, "step_num": 7}),
        ("$loader.py:5 __next__", 10, 40, {}),
        ("PjitFunction(f)", 50, 60, {"_pt": 5, "_p": 1}),
    ]
    worker: list[Event] = [("dense:MatMul", 2000, 2030, {"is_eager": 1}), ("XlaLinearize", 2030, 2050, {"group_id": 3})]
    side = read_host_side(trace_of(space_of(python, worker)[0]))
    assert side.events is not None
    assert [column.tolist() for column in side.waits] == [[10, 2030], [40, 2050]]
    assert list(zip(side.ops.name, side.ops.type, side.ops.self_ps.tolist(), strict=True)) == [("dense", "MatMul", 30)]
    assert side.ops.is_eager.tolist() == [True]
    rows = zip(side.input_rows.name, side.input_rows.self_ps.tolist(), strict=True)
    assert list(rows) == [("$loader.py:5 __next__", 30), ("XlaLinearize", 20)]
    first, second = side.events.threads
    assert first.stats["step_num"].integers_at(np.arange(3))[0].tolist() == [7, 0, 0]
    assert first.stats["_p"].integers_at(np.arange(3))[1].tolist() == [False, False, True]
    assert second.stats["group_id"].integers_at(np.arange(2))[0].tolist() == [0, 3]


def test_cancelling_ends_the_pass() -> None:
    def stop(_: int, __: int) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        read_host_side(trace_of(space_of([("work", 0, 10, {})])[0]), stop)

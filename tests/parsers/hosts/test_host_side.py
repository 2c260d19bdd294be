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


def test_cancelling_ends_the_pass() -> None:
    def stop(_: int, __: int) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        read_host_side(trace_of(space_of([("work", 0, 10, {})])[0]), stop)

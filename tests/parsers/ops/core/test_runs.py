"""The runs of one op: those events alone, with the times that the sums over all events are made of."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tests.parsers.ops.core.test_sums import CATEGORIES, Event, plane_of
from tests.support.build import PlaneBuilder
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.ops.core.runs import core_runs, joined_runs
from tpuprof.parsers.ops.core.sums import op_sums

SPAN = st.fixed_dictionaries(
    {}, optional={"device_offset_ps": st.integers(0, 900), "device_duration_ps": st.integers(0, 90)}
)
EVENTS = st.lists(
    st.tuples(st.integers(0, len(CATEGORIES) - 1), st.integers(0, 900), st.integers(0, 90), SPAN), max_size=30
)


@settings(max_examples=EXAMPLES)
@given(EVENTS, st.integers(1, 2), st.sampled_from([0, 5]))
def test_runs_add_up_to_the_table_of_ops(events: list[Event], lines: int, timestamp_ns: int) -> None:
    plane = plane_of(events, lines, timestamp_ns)
    table = op_sums(plane).table
    for row, name in enumerate(table.name):
        runs = core_runs(plane, "host0:0", frozenset({(7, name)}))
        assert (len(runs.start_ps), runs.core) == (int(table.occurrences[row]), "host0:0")
        assert int(runs.duration_ps.sum()) == int(table.total_ps[row])
        assert int(runs.duration_ps.min()) == int(table.minimum_ps[row])
        own = sorted(start + timestamp_ns * 1000 for op, start, *_ in events if f"op.{op}" == name)
        assert sorted(runs.start_ps.tolist()) == own


def test_runs_of_an_op_of_another_program_and_of_one_without_metadata() -> None:
    plane = plane_of([(0, 0, 5, {}), (0, 9, 7, {})])
    assert not len(core_runs(plane, "a:0", frozenset({(8, "op.0")})).start_ps)
    assert not len(core_runs(plane, "a:0", frozenset({(0, "event 1")})).start_ps), "that id has metadata"
    bare = PlaneBuilder(XSpace(), "/device:TPU:0", 1)
    line = bare.line("XLA Ops")
    for number, start in ((3, 0), (4, 20), (3, 40)):
        event = line.events.add()
        event.metadata_id, event.offset_ps, event.duration_ps = number, start, 11 + number
    runs = core_runs(bare.read(), "a:0", frozenset({(0, "event 3")}))
    assert (runs.start_ps.tolist(), runs.duration_ps.tolist()) == ([0, 40], [14, 14])


@pytest.mark.parametrize("streams", [0, 2])
def test_streams_of_one_device_are_put_together(streams: int) -> None:
    parts = [(np.array([5, 9]), np.array([6, 20]))] * streams
    runs = joined_runs("a:1", parts)
    assert (runs.start_ps.tolist(), runs.duration_ps.tolist()) == ([5, 9] * streams, [1, 11] * streams)

"""The device's clock of the timeline's events is that of the pages of steps."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.support.build import PlaneBuilder, StatInput, trace_of
from tpuprof.parsers.base.intervals import distinct, no_ints
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.ops.core.sums import core_sums
from tpuprof.parsers.steps.boundaries.recorded import device_durations
from tpuprof.parsers.timeline.read.device_clock import UNKNOWN, durations
from tpuprof.parsers.timeline.read.timeline import read_timeline

LENGTHS = st.tuples(st.integers(0, 9), st.integers(1, 20), st.integers(0, 9), st.integers(1, 20))
"""Of an op: the gap before it and its length, on the trace's clock and by the device's."""


@given(
    st.lists(LENGTHS, min_size=1, max_size=12),
    st.lists(st.tuples(st.integers(0, 250), st.integers(1, 90)), max_size=6),
    st.booleans(),
)
def test_a_run_takes_what_the_pages_of_steps_say(
    ops: list[tuple[int, ...]], runs: list[tuple[int, int]], has_device_clock: bool
) -> None:
    plane = PlaneBuilder(XSpace(), "/device:TPU:0", 1)
    line, at, device_at = plane.line("XLA Ops"), 0, 1000
    for number, (gap, length, device_gap, device_length) in enumerate(ops):
        at, device_at = at + gap, device_at + device_gap
        told: dict[str, StatInput] = (
            {"device_offset_ps": device_at, "device_duration_ps": device_length} if has_device_clock else {}
        )
        plane.event(line, plane.event_id(f"op.{number}"), at, length, **told)
        at, device_at = at + length, device_at + device_length
    line = plane.line("XLA Modules")
    for run_start, length in [(0, 400), *sorted(runs)]:
        plane.event(line, plane.event_id("jit_f(7)"), run_start, length)
    trace = trace_of(XSpace(planes=[plane.plane]))
    (section,) = read_timeline(trace, "host0", "").sections
    for track in section.tracks:
        of_track = durations(trace, section, track, np.arange(len(track)))
        start, end = track.start_ps, track.end_ps[:]
        times = distinct(np.concatenate([start, end]))
        sums = core_sums(trace.planes[0], (no_ints(), no_ints()), times)
        if track.kind == "modules" and has_device_clock:
            expected = device_durations(start, end, times, sums.device_times)
            is_told = of_track > 0  # a run beside the ops has no time of theirs: there it keeps its own
            assert len(ops) < 2 or is_told[(start <= ops[0][0]) & (end >= at)].all()
            assert np.where(is_told, of_track, end - start).tolist() == expected.tolist()
        elif track.kind == "ops" and has_device_clock and not track.is_derived:
            assert of_track.tolist() == [op[3] for op in ops]
        else:
            assert set(of_track.tolist()) <= {UNKNOWN}

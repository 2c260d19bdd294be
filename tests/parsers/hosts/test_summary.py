"""What one host adds up to: idle time of its cores, and what the time for input is measured by."""

from __future__ import annotations

import pickle
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tests.support.build import OpSpec, PlaneBuilder, present, summary_of, tpu_plane, trace_of
from tpuprof.parsers.base.intervals import Intervals
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.hosts import core_summary
from tpuprof.parsers.hosts.summary import summarise
from tpuprof.parsers.steps.accounts.owners import owner_index
from tpuprof.parsers.steps.boundaries.markers import CoreSteps

US = 1_000_000
Span = tuple[int, int]
"""Start and end in microseconds."""

HostEvent = tuple[str, int, int]
"""Name, start and end in microseconds."""


def busy_core(space: XSpace, ordinal: int, busy: Sequence[Span], steps: Sequence[Span] = ()) -> PlaneBuilder:
    """A core that runs an op in each of these spans and has such steps, numbered."""
    ops: list[OpSpec] = [("fusion.1", "loop fusion", a * US, (b - a) * US) for a, b in busy]
    return tpu_plane(space, ordinal, ops, steps=[(str(at), a * US, b * US) for at, (a, b) in enumerate(steps)])


def add_host(space: XSpace, *threads: Sequence[HostEvent]) -> None:
    PlaneBuilder(space, "/host:CPU", 9).threads(threads, US)


# --- one core ------------------------------------------------------------------------------------------------------


LAID = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), max_size=6)
"""Spans one after the other: how long after the one before, and how long."""


def laid(spec: Sequence[Span]) -> Intervals:
    end = np.cumsum([gap + length for gap, length in spec], dtype=np.int64)
    return end - np.array([length for _, length in spec], np.int64), end


@given(LAID.filter(bool), LAID, LAID, st.integers(0, 9))
def test_gaps_are_times_without_an_op_in_the_steps_that_are_long_beside_one(
    busy: list[Span], behind: list[Span], steps: list[Span], tenths: int
) -> None:
    (starts, ends), others, (first, last) = laid(busy), laid(behind), laid(steps)
    marked = CoreSteps(tuple(map(str, range(len(steps)))), first, last, last - first)
    every = [starts[0], ends[-1], *others[0], *others[1]]
    usual = sorted(last - first)[len(steps) // 2] if steps else max(every) - min(every)
    least = max(1, int(tenths / 10 * usual))
    borders = zip([first[0] if steps else min(every), *ends], [*starts, max(every)], strict=True)
    cells = {cell for a, b in borders if b - a >= least for cell in range(a, b)}
    cells -= {cell for a, b in zip(*others, strict=True) for cell in range(a, b)}
    cells &= {*range(first[0], last[-1])} if steps else cells
    spans = [(a, min(b for b in range(a, 300) if b not in cells)) for a in cells if a - 1 not in cells]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(core_summary, "_LONG_GAP", tenths / 10)
        found = core_summary._long_gaps((starts, ends), others, marked)
    assert [*zip(*found, strict=True)] == sorted((a, b) for a, b in spans if b - a >= least)


def test_a_core_that_is_hardly_idle_has_no_gaps() -> None:
    for idle, gap_ps in ((9, None), (20, 20 * US)):
        space = XSpace()
        busy_core(space, 0, [(0, 500), (500 + idle, 1000)], [(0, 500), (500, 1000)])
        found = summary_of(space).idle
        assert (found and found.gap_ps) == gap_ps


# --- idle time -----------------------------------------------------------------------------------------------------


@settings(max_examples=EXAMPLES // 4)
@given(st.integers(1, 6), st.integers(0, 5), st.integers(0, 60))
def test_waits_are_unknown_in_steps_whose_host_events_were_lost(first: int, count: int, idle: int) -> None:
    space, quiet = XSpace(), range(first, first + count)
    steps = [(n * 100, n * 100 + 100) for n in range(12)]
    busy_core(space, 0, [(start + (idle if n in quiet else 60), end) for n, (start, end) in enumerate(steps)], steps)
    add_host(space, [("IteratorGetNext", n * 100, n * 100 + 60) for n in range(12) if n not in quiet])
    found = present(summary_of(space).steps)
    is_unknown = count >= 3 and idle >= 5
    assert found.names == tuple(str(n) for n in range(12) if not (is_unknown and n in quiet))
    assert is_unknown == any("waits for input are unknown" in words for words in found.incomplete)
    if is_unknown:
        assert found.owner_ps[0, :, owner_index("input")].tolist() == [60 * US] * len(found)


# --- what the time for input is measured by ------------------------------------------------------------------------


def test_infeed_ops_tell_the_time_for_input_whatever_the_host_does() -> None:
    space = tpu_plane(XSpace(), 0, [("infeed.1", "infeed", 0, 5)], steps=[("0", 0, 10)]).space
    add_host(space, [("batched_device_put", 0, 9)])
    assert present(summary_of(space).steps).input_source == "infeed"


# --- odd numbers ---------------------------------------------------------------------------------------------------

_ODD = st.one_of(st.integers(0, 50), st.sampled_from([-(2**63), -1, 2**40, 2**61, 2**62, 2**63 - 1]))
_ODD_EVENTS = st.lists(st.tuples(_ODD, _ODD, _ODD | st.none(), _ODD | st.none()), max_size=6)


@given(_ODD_EVENTS, _ODD_EVENTS, _ODD_EVENTS, _ODD)
@settings(max_examples=2 * EXAMPLES)
def test_whatever_the_numbers_nothing_is_negative(
    marks: list[tuple[int, int, int | None, int | None]],
    ops: list[tuple[int, int, int | None, int | None]],
    host: list[tuple[int, int, int | None, int | None]],
    shift: int,
) -> None:
    plane = PlaneBuilder.alone("/device:TPU:0")
    names = {"Steps": "step", "XLA Ops": "f", "XLA Modules": "jit_f(1)"}
    for (line_name, name), events in zip(names.items(), (marks, ops, marks), strict=True):
        line = plane.line(line_name, timestamp_ns=shift)
        for start, length, device_start, device_length in events:
            values = {"device_offset_ps": device_start, "device_duration_ps": device_length}
            stats = {key: value for key, value in values.items() if value is not None}
            plane.event(line, plane.event_id(name, name, hlo_category="copy"), start, length, **stats)
    threads = PlaneBuilder(plane.space, "/host:CPU", 2)
    line = threads.line("python")
    for start, length, number, root in host:
        stats = {key: value for key, value in {"step_num": number, "_r": root}.items() if value is not None}
        for name in ("train", "batched_device_put", "XlaCompile"):
            threads.event(line, threads.event_id(name), start, length, **stats)
    found = summary_of(plane.space)
    assert found.self_ps >= 0 and found.total_ps >= found.self_ps
    if found.steps is not None:
        assert (found.steps.duration_ps > 0).all()
        assert (found.steps.part_ps >= 0).all() and (found.steps.class_ps >= 0).all()
        assert (found.steps.part_ps <= found.steps.duration_ps[:, :, None]).all()
    if found.idle is not None:
        assert (found.idle.count > 0) == (found.idle.gap_ps > 0) and found.idle.gap_ps + found.idle.feeding_ps > 0
        assert all(0 < one.overlap_ps <= found.idle.gap_ps for one in found.idle.activities)
    assert all(0 <= one.idle_ps <= one.duration_ps for one in found.compilations)
    assert all(0 <= chip.active_ps <= chip.total_ps for chip in found.duty)


def test_a_summary_is_small_and_grows_with_steps_and_ops_alone() -> None:
    """What crosses from process to process, in bytes: columns by step and core, and the metadata; nothing by event."""
    sizes = {}
    for steps, events in ((10, 4), (10, 40), (40, 4)):
        space = XSpace()
        for core in range(2):
            ops = [
                (f"fusion.{event % 4}", "loop fusion", (step * events + event) * 100, 80)
                for step in range(steps)
                for event in range(events)
            ]
            marks = [(str(step), step * events * 100, (step + 1) * events * 100) for step in range(steps)]
            tpu_plane(space, core, ops, steps=marks)
        sizes[steps, events] = len(pickle.dumps(summarise(trace_of(space), "host")))
    assert abs(sizes[10, 40] - sizes[10, 4]) < 200
    assert 0 < sizes[40, 4] - sizes[10, 4] < 2 * 30 * 600
    assert sizes[10, 4] < 20_000

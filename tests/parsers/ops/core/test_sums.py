"""Sums of a core's events: the one pass of the compiled core and the way by columns give the same."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tests.support.build import PlaneBuilder, StatInput
from tpuprof.parsers.base.intervals import Intervals
from tpuprof.parsers.formats.crew import Crew
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.formats.xspace.core.api import core_name, op_pass
from tpuprof.parsers.formats.xspace.core.types import StepCells
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Plane
from tpuprof.parsers.ops.core import one_pass as module
from tpuprof.parsers.ops.core.ops import CoreOps, core_ops
from tpuprof.parsers.ops.core.sums import CoreSums, core_sums, op_sums, step_sums, sums_of_events
from tpuprof.parsers.ops.core.traced import OTHER, TRACED, WORK, Codes, Coding, TracedEvents
from tpuprof.parsers.ops.table import OpTable

Event = tuple[int, int, int, dict[str, StatInput]]
"""Which op, start, duration, and the event's stats."""

CATEGORIES = ("loop fusion", "while", "async-done", "infeed", "custom-call", "all-reduce")

needs_compiled_core = pytest.mark.skipif(core_name() != "c", reason="the compiled core is not there")


def plane_of(events: list[Event], lines: int = 1, timestamp_ns: int = 0) -> Plane:
    """A core with these events, spread over op lines."""
    plane = PlaneBuilder(XSpace(), "/device:TPU:0", 1)
    ids = [
        plane.event_id(
            f"op.{number}", f"op.{number}", hlo_category=category, program_id=7, symbol_id=number + 1, flops=9
        )
        for number, category in enumerate(CATEGORIES)
    ]
    made = [plane.line("XLA Ops") for _ in range(lines)]
    for line in made:
        line.timestamp_ns = timestamp_ns
    for number, (op, start, duration, stats) in enumerate(events):
        plane.event(made[number % lines], ids[op % len(ids)], start, duration, **stats)
    return plane.read()


def code_of(category: str | None) -> int | None:
    """All-reduces are traced; what waits for the host or for copies is no work; of loops the name decides."""
    return {"all-reduce": TRACED, "infeed": OTHER, "async-done": OTHER, "while": None}.get(category or "", WORK)


def codes_of(table: OpTable) -> Codes:
    assert all(name.startswith("op.") for name in table.name)
    codes = [code_of(category) for category in table.category]
    return np.array([OTHER if code is None else code for code in codes], np.uint8)


codes = Coding(code_of, codes_of)


def cells(sums: StepCells) -> dict[tuple[int, int], tuple[int, int]]:
    """Self time and events by step and row."""
    out: dict[tuple[int, int], tuple[int, int]] = {}
    columns = (sums.step, sums.row, sums.self_ps, sums.count)
    for step, row, self_ps, count in zip(*(column.tolist() for column in columns), strict=True):
        known = out.get((step, row), (0, 0))
        out[step, row] = (known[0] + self_ps, known[1] + count)
    return out


def plain(value: Any) -> Any:
    """A field of the sums in a form that compares and prints."""
    if isinstance(value, StepCells):
        return cells(value)
    if isinstance(value, TracedEvents):
        found = {field.name: plain(getattr(value, field.name)) for field in fields(value)}
        for name in ("work", "within"):  # those of one weight are in order
            found[name] = sorted(getattr(value, name).tolist(), key=lambda of: of[2])
        return found
    if isinstance(value, OpTable):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value) if field.name != "sources"}
    if isinstance(value, np.ndarray):
        return [None if number != number else number for number in value.ravel().tolist()]
    return tuple(map(plain, value)) if isinstance(value, tuple) else value


def assert_same(found: CoreSums, expected: CoreSums, exactly: bool = False) -> None:
    for field in fields(CoreSums):
        if field.name != "table":
            assert plain(getattr(found, field.name)) == plain(getattr(expected, field.name)), field.name
    tables = plain(found.table), plain(expected.table)
    for name in tables[0]:  # sums of floats may differ in the last digits
        assert exactly is False or tables[0][name] == tables[1][name], name
        assert tables[0][name] == tables[1][name] or tables[0][name] == pytest.approx(tables[1][name], rel=1e-12), name


def borders(spans: list[tuple[int, int]]) -> Intervals:
    columns = np.array(spans, np.int64).reshape(-1, 2)
    return (np.ascontiguousarray(columns[:, 0]), np.ascontiguousarray(columns[:, 1]))


_SCALES: st.SearchStrategy[float | None] = st.just(1.25)


@st.composite
def events_in_order(draw: st.DrawFn, scales: st.SearchStrategy[float | None] = _SCALES) -> list[Event]:
    """Events in order on the trace's clock, nested in part, most with a device's span in nearly the same order.

    Some have stats that are summed, and the scale, if there is one.
    """
    scale = draw(scales)
    drift = draw(st.sampled_from([0, 0, 1, 3]))
    has_device = draw(st.sampled_from([True, True, True, False]))
    out: list[Event] = []
    at = draw(st.integers(0, 5))
    for number in range(draw(st.integers(0, 30))):
        at += draw(st.integers(0, 6))
        duration = draw(st.integers(0, 25))
        stats: dict[str, StatInput] = {}
        if has_device and draw(st.integers(0, 40)):
            stats = {
                "device_offset_ps": at * (10 + drift) // 10 + 500,
                "device_duration_ps": duration * (10 + drift) // 10,
            }
        if not draw(st.integers(0, 5)):
            stats["all_reduce_unique_id"] = draw(st.integers(0, 3))
        if not draw(st.integers(0, 8)):
            stats |= {"dma_stall_duration_ps": number, "flops": 5}
            if scale is not None:
                stats["Time Scale Multiplier"] = scale
        out.append((draw(st.integers(0, 5)), at, duration, stats))
    return out


@st.composite
def some_steps(draw: st.DrawFn) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    at = 0
    for _ in range(draw(st.integers(0, 6))):
        begin = at + draw(st.integers(0, 8))
        at = begin + draw(st.integers(0, 40))
        out.append((begin, at))
    return out


@needs_compiled_core
@given(events_in_order(), some_steps(), st.lists(st.integers(-10, 250), max_size=12), st.sampled_from([16, 1 << 19]))
@settings(max_examples=3 * EXAMPLES)
def test_the_pass_and_the_columns_agree(
    events: list[Event], steps: list[tuple[int, int]], times: list[int], chunk: int
) -> None:
    plane = plane_of(events)
    asked = np.array(sorted(set(times)), np.int64)
    expected = sums_of_events(core_ops(plane), borders(steps), asked, codes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tpuprof.parsers.formats.xspace.trace.chunk_size", lambda: chunk)
        assert_same(core_sums(plane, borders(steps), asked, coding=codes), expected)
        short = op_sums(plane)
        in_steps = step_sums(plane, borders(steps), asked)
    count = np.bincount(expected.cells.step, expected.cells.count, len(steps))
    assert (in_steps.op_count.tolist(), plain(in_steps.table)) == (count.tolist(), plain(short.table))
    assert plain(in_steps.device_times) == plain(expected.device_times)
    assert plain(short.table) == plain(core_sums(plane, borders([]), asked[:0]).table)
    assert (short.op_events, short.span) == (expected.op_events, expected.span)


@needs_compiled_core
@pytest.mark.parametrize(
    ("events", "lines", "is_taken"),
    [
        ([(0, 0, 10, {}), (1, 20, 10, {})], 1, True),
        ([(0, 20, 10, {}), (1, 0, 10, {})], 1, False),
        ([(0, 0, 10, {}), (1, 0, 20, {})], 1, False),
        ([(0, 0, -1, {})], 1, False),
        ([(0, 1 << 61, 5, {})], 1, False),
        ([(0, 0, 1 << 57, {})], 1, False),
        ([(0, 0, 5, {"device_offset_ps": 1.5, "device_duration_ps": 5})], 1, False),
        ([(0, 0, 5, {"device_offset_ps": 7})], 1, False),
        ([(0, 0, 10, {}), (1, 20, 10, {})], 2, False),
    ],
    ids=[
        *("in order", "out of order", "the longer one last", "negative", "far away", "too long"),
        *("device time a double", "half a device span", "two lines"),
    ],
)
def test_what_the_pass_cannot_take_goes_by_columns(
    events: list[Event], lines: int, is_taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_columns = []

    def counted(plane: Plane, on_chunk: ChunkDone, crew: Crew) -> CoreOps:
        by_columns.append(plane)
        return core_ops(plane, on_chunk, crew)

    monkeypatch.setattr("tpuprof.parsers.ops.core.ops.core_ops", counted)
    plane, steps, times = plane_of(events, lines), borders([(0, 15), (15, 40)]), np.array([3, 30], np.int64)
    told: list[int] = []
    sums = core_sums(plane, steps, times, lambda size, _: told.append(size))
    assert bool(by_columns) is not is_taken
    in_steps = step_sums(plane, steps, times)
    assert (in_steps.op_count.sum(), plain(in_steps.device_times)) == (sums.cells.count.sum(), plain(sums.device_times))
    assert_same(sums, sums_of_events(core_ops(plane), steps, times))
    assert sum(told) == sum(line.size for line in plane.lines)


@needs_compiled_core
def test_wide_and_negative_metadata_ids_go_by_columns() -> None:
    for number in (1 << 40, -5):
        plane = PlaneBuilder(XSpace(), "/device:TPU:0", 1)
        plane.plane.event_metadata[number].name = b"op"
        event = plane.line("XLA Ops").events.add(metadata_id=number, duration_ps=5)
        event.offset_ps = 3
        assert core_sums(plane.read(), borders([]), np.zeros(0, np.int64)).table.name == ("op",)


@needs_compiled_core
def test_outputs_grow_from_no_room_at_all() -> None:
    events: list[Event] = [(number % 6, number * 3, 100 - number if number < 90 else 2, {}) for number in range(400)]
    steps = borders([(at, at + 7) for at in range(0, 1200, 7)])
    plane = plane_of(events)
    expected = core_sums(plane, steps, np.arange(0, 1300, 50), coding=codes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "op_pass", lambda a, b, c, d, e, _, spans, f: op_pass(a, b, c, d, e, 0, spans, f))
        assert_same(core_sums(plane, steps, np.arange(0, 1300, 50), coding=codes), expected)
    assert_same(sums_of_events(core_ops(plane), steps, np.arange(0, 1300, 50), codes), expected)


def test_cells_are_the_ops_that_start_in_a_step() -> None:
    events: list[Event] = [(0, 0, 10, {}), (1, 2, 3, {}), (0, 10, 4, {}), (1, 30, 5, {}), (0, 40, 1, {})]
    found = core_sums(plane_of(events), borders([(0, 10), (10, 35)]), np.zeros(0, np.int64)).cells
    assert cells(found) == {(0, 0): (7, 1), (0, 1): (3, 1), (1, 0): (4, 1), (1, 1): (5, 1)}


def test_very_many_steps_have_the_cells_of_few() -> None:
    events: list[Event] = [(at % 5, 3 * at, 2, {}) for at in range(300)]
    plane = plane_of(events)
    few = cells(core_sums(plane, borders([(0, 300), (300, 900)]), np.zeros(0, np.int64)).cells)
    each = core_sums(plane, borders([(at, at + 1) for at in range(900)]), np.zeros(0, np.int64)).cells
    again = sums_of_events(core_ops(plane), borders([(at, at + 1) for at in range(900)]), np.zeros(0, np.int64)).cells
    assert cells(each) == cells(again)
    for half in (0, 1):
        mine = each.step >= 300 if half else each.step < 300
        assert each.self_ps[mine].sum() == sum(time for (step, _), (time, _) in few.items() if step == half)

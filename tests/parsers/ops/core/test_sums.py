"""Sums of a core's events, in order or not: those of brute force, with the compiled core or without it."""

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
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.formats.xspace.core import api
from tpuprof.parsers.formats.xspace.core.op_pass import OpPass
from tpuprof.parsers.formats.xspace.core.pass_sums import StepCells, StepTable
from tpuprof.parsers.formats.xspace.trace import Plane
from tpuprof.parsers.ops.core import one_pass as module
from tpuprof.parsers.ops.core.sums import CoreSums, core_sums, op_sums
from tpuprof.parsers.ops.core.traced import OTHER, TRACED, WORK, OpRoles, Roles, TracedEvents
from tpuprof.parsers.ops.device import OFF_DUTY
from tpuprof.parsers.ops.table import OpTable

Event = tuple[int, int, int, dict[str, StatInput]]
"""Which op, start, duration, and the event's stats."""

CATEGORIES = ("loop fusion", "while", "async-done", "infeed", "custom-call", "all-reduce")

needs_compiled_core = pytest.mark.skipif(api.core_name() != "c", reason="the compiled core is not there")


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


def role_of(category: str | None) -> int | None:
    """All-reduces are traced; what waits for the host or for copies is no work; of loops the name decides."""
    return {"all-reduce": TRACED, "infeed": OTHER, "async-done": OTHER, "while": None}.get(category or "", WORK)


def roles_of(table: OpTable) -> Roles:
    assert all(name.startswith("op.") for name in table.name)
    roles = [role_of(category) for category in table.category]
    return np.array([OTHER if role is None else role for role in roles], np.uint8)


roles = OpRoles(role_of, roles_of)


def cells(sums: StepCells) -> dict[tuple[int, int], tuple[int, int]]:
    """Self time and events by step and row."""
    out: dict[tuple[int, int], tuple[int, int]] = {}
    each = sums.each()
    columns = (each.step, each.row, each.self_ps, each.count)
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


@st.composite
def events_in_order(draw: st.DrawFn) -> list[Event]:
    """Events in order on the trace's clock, nested in part, most with a device's span in nearly the same order.

    Some have stats that are summed, and the scale.
    """
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
            stats |= {"dma_stall_duration_ps": number, "flops": 5, "Time Scale Multiplier": 1.25}
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


@st.composite
def damaged_events(draw: st.DrawFn) -> list[Event]:
    """Events in any order on either clock, some with half a span of the device, or times beyond reason."""
    out = []
    for op, at, duration, stats in draw(events_in_order()):
        moved = {name: value for name, value in stats.items() if draw(st.integers(0, 12))}
        if "device_offset_ps" in moved and draw(st.booleans()):
            moved["device_offset_ps"] = draw(st.integers(0, 700) | st.just(1.5))
        start = draw(st.just(at) | st.integers(0, 200))
        out.append((op, start, draw(st.sampled_from([duration] * 20 + [-1, 1 << 57])), moved))
    return draw(st.permutations(out)) if draw(st.booleans()) else out


def without_compiled_core(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(api, "CORE", None)


@needs_compiled_core
@given(
    events_in_order() | damaged_events(),
    st.sampled_from([1, 1, 2]),
    some_steps(),
    st.lists(st.integers(-10, 250), max_size=12),
    st.sampled_from([16, 1 << 19]),
)
@settings(max_examples=4 * EXAMPLES)
def test_the_pass_gives_the_same_without_the_compiled_core(
    events: list[Event], lines: int, steps: list[tuple[int, int]], times: list[int], chunk: int
) -> None:
    plane, asked = plane_of(events, lines), np.array(sorted(set(times)), np.int64)
    with pytest.MonkeyPatch.context() as patch:
        without_compiled_core(patch)
        expected = core_sums(plane, borders(steps), asked, roles=roles)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tpuprof.parsers.formats.xspace.trace.CHUNK", chunk)
        told: list[int] = []
        assert_same(core_sums(plane, borders(steps), asked, lambda size, _: told.append(size), roles), expected)
        short = op_sums(plane)
    assert sum(told) == sum(line.size for line in plane.lines)
    assert plain(short.table) == plain(core_sums(plane, borders([]), asked[:0]).table)
    assert (short.op_events, short.span) == (expected.op_events, expected.span)


def by_brute_force(
    events: list[Event], steps: list[tuple[int, int]]
) -> tuple[dict[tuple[int, int], tuple[int, int]], dict[str, set[int]]]:
    """Self time and events by step and op, -1 for no step; and the picoseconds of which something is true."""
    spans = []
    for op, at, duration, stats in events:
        start, length = stats.get("device_offset_ps"), stats.get("device_duration_ps")
        if not isinstance(start, int) or not isinstance(length, int):
            start, length = at, duration
        spans.append((start, start + length, op, at, duration))
    spans.sort(key=lambda of: (of[0], -of[1]))
    own = [end - start for start, end, *_ in spans]
    for number, (start, end, *_) in enumerate(spans):
        around = [before for before in range(number) if spans[before][1] >= end]
        if around:
            own[around[-1]] -= end - start
    found: dict[tuple[int, int], tuple[int, int]] = {}
    busy, working, waiting = set[int](), set[int](), set[int]()
    for self_ps, (_, _, op, at, duration) in zip(own, spans, strict=True):
        step = next((number for number, (begin, end) in enumerate(steps) if begin <= at < end), -1)
        known = found.get((step, op), (0, 0))
        found[step, op] = known[0] + max(self_ps, 0), known[1] + 1
        busy.update(range(at, at + duration))
        (waiting if CATEGORIES[op] in OFF_DUTY else working).update(range(at, at + duration))
    return found, {"busy": busy, "working": working, "waiting": waiting}


@pytest.mark.parametrize("is_compiled", [pytest.param(True, marks=needs_compiled_core), False])
@given(events=events_in_order(), steps=some_steps(), is_shuffled=st.booleans(), data=st.data())
@settings(max_examples=EXAMPLES)
def test_the_sums_are_those_of_brute_force(
    events: list[Event], steps: list[tuple[int, int]], is_shuffled: bool, data: st.DataObject, is_compiled: bool
) -> None:
    if is_shuffled:
        events = [
            (op, data.draw(st.integers(0, 90)), duration, stats)
            for op, _, duration, stats in data.draw(st.permutations(events))
        ]
    with pytest.MonkeyPatch.context() as patch:
        if not is_compiled:
            without_compiled_core(patch)
        sums = core_sums(plane_of(events), borders(steps), np.zeros(0, np.int64))
    expected, times = by_brute_force(events, steps)
    op = [int(name.removeprefix("op.")) for name in sums.table.name]
    assert {(step, op[row]): of for (step, row), of in cells(sums.cells).items()} == {
        key: of for key, of in expected.items() if key[0] >= 0
    }
    for name, covered in times.items():
        found = [at for start, end in zip(*getattr(sums, name), strict=True) for at in range(start, end)]
        assert found == sorted(covered), name
    for row, number in enumerate(op):
        mine = [of for (_, of_op), of in expected.items() if of_op == number]
        assert sums.table.category[row] == CATEGORIES[number]
        assert (sums.table.self_ps[row], sums.table.occurrences[row]) == tuple(map(sum, zip(*mine, strict=True)))


def test_metadata_ids_may_be_wide_or_negative() -> None:
    for number in (1 << 40, -5):
        plane = PlaneBuilder(XSpace(), "/device:TPU:0", 1)
        plane.plane.event_metadata[number].name = b"op"
        event = plane.line("XLA Ops").events.add(metadata_id=number, duration_ps=5)
        event.offset_ps = 3
        assert core_sums(plane.read(), borders([]), np.zeros(0, np.int64)).table.name == ("op",)


@needs_compiled_core
def test_outputs_grow_from_no_room_at_all() -> None:
    """Sums by step are a table, or the rest has no room in it, or nothing has."""
    events: list[Event] = [(number % 6, number * 3, 100 - number if number < 90 else 2, {}) for number in range(400)]
    steps = borders([(at, at + 7) for at in range(0, 1200, 7)])
    made = list[CoreSums]()
    for room in (3 * len(steps[0]), len(steps[0]), 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "OpPass", lambda a, b, c, d, e, _, spans: OpPass(a, b, c, d, e, room, spans))  # noqa: B023
            made.append(core_sums(plane_of(events), steps, np.arange(0, 1300, 50), roles=roles))
    assert [type(found.cells) for found in made] == [StepTable, StepCells, StepCells]
    assert int(made[0].cells.count.sum()) == 400
    for found in made[1:]:
        assert_same(found, made[0])

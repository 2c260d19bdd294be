"""Running a heap trace: stays, sums, places that are shared and taken over, and traces that can't be true."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tests.support.made.heaps import ALLOCATE, FREE, SHARE, ModuleBuilder, curve, merged, plain_stays
from tpuprof.parsers.memory.model import SpaceMemory
from tpuprof.parsers.memory.modules.heap import MOST_BYTES, Addresses, HeapRun, run_heap


def run(*events: tuple[int, int, int], sizes: tuple[int, ...] = (100, 20, 3), base: int = 0) -> HeapRun:
    """Runs events (kind, buffer, shared with) of buffers without addresses."""
    kinds, buffers, shared = ([event[at] for event in events] for at in range(3))
    return run_heap(kinds, buffers, shared, Addresses([-1] * len(sizes), [-1] * len(sizes), sizes), base)


def live_ranges(result: HeapRun) -> list[tuple[int, int, int, int]]:
    """(buffer, whose place, born, dies) of each."""
    columns = (result.buffer, result.root, result.born, result.dies)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def placed(*events: tuple[int, int], at: tuple[tuple[int, int], ...]) -> HeapRun:
    """Runs events of buffers at (offset, size) in one allocation."""
    addresses = Addresses([0] * len(at), [place[0] for place in at], [place[1] for place in at])
    return run_heap([event[0] for event in events], [event[1] for event in events], [-1] * len(events), addresses)


def test_places_that_cross_are_no_work_in_place() -> None:
    result = placed((ALLOCATE, 0), (ALLOCATE, 1), (ALLOCATE, 2), (FREE, 0), at=((0, 32), (16, 32), (0, 8)))
    assert result.heap_bytes.tolist() == [0, 32, 64, 72, 40]


def test_what_can_not_be_true_changes_nothing_and_is_counted() -> None:
    result = run(
        (FREE, 0, -1),
        (ALLOCATE, 0, -1),
        (ALLOCATE, 0, -1),
        (SHARE, 0, 1),
        (7, 1, -1),
        (FREE, 0, -1),
        (FREE, 0, -1),
        (ALLOCATE, -1, -1),
    )
    assert result.heap_bytes.tolist() == [0, 0, 100, 100, 100, 100, 0, 0, 0]
    assert live_ranges(result) == [(0, 0, 2, 6)]
    assert sorted(result.odd.values()) == [1, 2, 2]


def test_a_share_with_what_never_was_there_gets_a_place() -> None:
    result = run((SHARE, 1, 0), (SHARE, 0, 0), (FREE, 1, -1), (SHARE, 2, -1), (SHARE, 1, 1))
    # buffer 1 is at the place of 0, which 0 itself joins; 2 shares with none; 1 comes back to where it was
    assert result.heap_bytes.tolist() == [0, 100, 100, 100, 103, 103]
    assert live_ranges(result) == [(1, 0, 1, 6), (2, 2, 4, 6)]
    assert list(result.odd.values()) == [1, 1]


def test_more_than_any_memory_is_left_out() -> None:
    result = run((ALLOCATE, 0, -1), (ALLOCATE, 1, -1), (FREE, 1, -1), sizes=(MOST_BYTES, 1), base=0)
    assert result.heap_bytes.tolist() == [0, MOST_BYTES, MOST_BYTES, MOST_BYTES]
    assert sum(result.odd.values()) == 2


def sums(memory: SpaceMemory) -> list[int]:
    """Bytes of the rows in memory at each point."""
    return [int(memory.live_ranges.size_bytes[memory.at(point)].sum()) for point in range(memory.points)]


SIZES = st.one_of(st.integers(0, 300), st.sampled_from((-1, 2**48, 2**62, 2**63 - 1, -(2**63))))
IDS = st.integers(-1, 8)
PLACES = st.lists(st.tuples(IDS, st.integers(-2, 400)), max_size=6)
KINDS = st.sampled_from(("", "", "maybe_live_out", "is_constant", "is_thread_local", "is_entry_computation_parameter"))
EVENTS = st.lists(st.tuples(st.sampled_from((ALLOCATE, ALLOCATE, FREE, SHARE, 3, -1)), IDS, IDS), max_size=16)
PIECES = st.sampled_from((1, 1, 2, 4))


@st.composite
def wild_modules(draw: st.DrawFn) -> ModuleBuilder:
    """Buffer assignments whose ids, sizes, offsets, spaces and events are anything."""
    made = ModuleBuilder()
    for _ in range(draw(st.integers(0, 8))):
        made.buffer(draw(IDS), draw(SIZES), space=draw(st.integers(0, 1)), elements=draw(st.integers(-1, 2**60)))
    for _ in range(draw(st.integers(0, 4))):
        made.allocation(
            draw(st.integers(0, 4)), draw(SIZES), *draw(PLACES), space=draw(st.integers(0, 1)), kind=draw(KINDS)
        )
    for _ in range(draw(st.integers(0, 2))):
        made.trace(*draw(EVENTS))
    if not made.assignment.logical_buffers and not made.assignment.buffer_allocations:
        made.buffer(1, 4)
    return made


@settings(max_examples=2 * EXAMPLES)
@given(wild_modules(), st.integers(0, 1))
def test_the_rows_at_a_point_make_its_heap_whatever_the_module(made: ModuleBuilder, space: int) -> None:
    memory = made.memory(space)
    assert sums(memory) == memory.heap_bytes.tolist()
    assert memory.points == len(memory.instructions) + 1
    assert memory.heap_bytes.min() >= 0
    assert memory.heap_bytes[memory.peak_position] == memory.peak_bytes == memory.heap_bytes.max()
    assert (memory.live_ranges.born < memory.live_ranges.dies).all()
    assert int(memory.live_ranges.dies.max(initial=0)) <= memory.points
    described = [memory.buffers[row] for row in range(len(memory.live_ranges))]
    assert [buffer.size_bytes for buffer in described] == memory.live_ranges.size_bytes.tolist()
    assert sum(buffer.size_bytes for buffer in described if buffer.at_peak) == memory.peak_bytes
    assert np.array_equal(
        np.sort(memory.live_ranges.born[memory.live_ranges.born > 0]),
        memory.live_ranges.born[memory.live_ranges.born > 0],
    )


@st.composite
def sound_modules(draw: st.DrawFn) -> ModuleBuilder:
    """Traces in which all is as it should be: pieces of one allocation, joined in place, shared, freed once at most."""
    made = ModuleBuilder()
    events: list[tuple[int, int] | tuple[int, int, int]] = []
    place: dict[int, tuple[int, int]] = {}
    root: dict[int, int] = {}
    live: list[int] = []
    for number in range(1, draw(st.integers(2, 10))):
        other = draw(st.sampled_from((0, 0, *sorted({event[1] for event in events}))))
        pieces = draw(PIECES)
        begin = draw(st.integers(0, 7)) // pieces * pieces
        root[number] = root[other] if other else number
        place[number] = place[other] if other else (16 * begin, 16 * (begin + pieces))
        made.buffer(number, place[number][1] - place[number][0])
        met = [old for old in live if root[old] != root[number] and _meet(place[old], place[number])]
        if not met and other:
            events.append((SHARE, number, other))
            live.append(number)
        elif not other and all(_within(place[old], place[number]) for old in met):
            events += [(ALLOCATE, number), *((FREE, old) for old in met)]  # the result, then its operands go
            live = [*(old for old in live if old not in met), number]
        for old in draw(st.lists(st.sampled_from(live), unique=True, max_size=3)) if live else ():
            events.append((FREE, old))
            live.remove(old)
    made.allocation(0, 8 * 16, *((number, begin) for number, (begin, _) in place.items()))
    made.trace(*events)
    return made


def _meet(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _within(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return other[0] <= one[0] and one[1] <= other[1]


@settings(max_examples=2 * EXAMPLES)
@given(sound_modules())
def test_sound_traces_come_to_what_a_plain_run_makes_of_them(made: ModuleBuilder) -> None:
    memory = made.memory()
    trace = made.assignment.heap_simulator_traces[0]
    expected = merged(plain_stays(made.proto, trace))
    assert memory.heap_bytes.tolist() == curve(expected, len(trace.events) + 1)
    assert memory.peak_bytes <= memory.total_allocation_bytes
    rows = [
        (memory.buffers[row].logical_buffer, memory.live_ranges.born[row] - 1) for row in range(len(memory.live_ranges))
    ]
    assert rows == [(stay.buffer, stay.start) for stay in expected]
    assert memory.warnings == ()

"""Memory over time in cells: committed frames, and what must hold for every page and size."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tests.parsers.memory.allocators.made import GIB, MIB, given, host_space, profiles_of, training_page
from tests.support.golden import check_golden, check_lines, frame
from tpuprof.parsers.memory.allocators.model import ActiveAllocation, AllocatorProfile, MemoryProfilePage
from tpuprof.parsers.pages.memory.over_time import memory_profile_page
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import ASCII, BLOCK, PLAIN, Glyphs, plain
from tpuprof.tui.pages.memory.draw.graph import AXIS
from tpuprof.tui.pages.memory.draw.profile import (
    ComposedMemoryProfile,
    MemoryProfileState,
    columns_between,
    compose_memory_profile,
    fragmentation_lines,
    graph_lines,
    scene,
)
from tpuprof.tui.pages.memory.fields.allocators import fragmentation_words

GOLDEN = Path(__file__).parent / "golden"


def page_of(*allocators: AllocatorProfile) -> MemoryProfilePage:
    return memory_profile_page([allocators], ["host0"])


def composed(
    state: MemoryProfileState, width: int = 120, height: int = 36, glyphs: Glyphs = PLAIN
) -> ComposedMemoryProfile:
    return compose_memory_profile(*training_page(), state, Pen(width, glyphs), height)


def text_of(found: ComposedMemoryProfile) -> list[str]:
    return [plain(line) for line in found.lines]


def test_frame_without_allocators() -> None:
    page = replace(
        memory_profile_page([()], ["host0"], ["This profile lacks them. Do that."]), warnings=("It is cut.",)
    )
    found = compose_memory_profile(page, (), MemoryProfileState(), Pen(80, ASCII), 20)
    check_golden(GOLDEN / "memory-profile-empty-80x20.txt", frame(found.lines))
    assert found.first_row_line == found.graph_line == -1


@for_all(
    st.integers(40, 220),
    st.integers(1, 50),
    st.sampled_from([BLOCK, PLAIN, ASCII]),
    st.integers(-1, 4),
    st.none() | st.integers(-(10**12), 10**12),
    st.integers(-2, 60),
    st.integers(-2, 60),
)
@settings(max_examples=2 * EXAMPLES)
def test_every_line_is_as_wide_and_the_page_as_high_as_asked(
    width: int, height: int, glyphs: Glyphs, allocator: int, cursor: int | None, row: int, top: int
) -> None:
    found = composed(MemoryProfileState(row, top, allocator=allocator, cursor_ps=cursor), width, height, glyphs)
    check_lines(found.lines, width, glyphs)
    assert len(found.lines) == height
    if found.first_row_line >= 0 and found.first_row_line + found.room <= height:
        shown = text_of(found)[found.first_row_line : found.first_row_line + found.room]
        assert sum(line.startswith(glyphs.mark) for line in shown) == (1 if found.room else 0)


def column(found: ComposedMemoryProfile, cell: int) -> str:
    """A column of the graph from the bottom up."""
    lines = text_of(found)[found.graph_line : found.graph_line + found.graph_rows]
    return "".join(line[AXIS + cell] for line in reversed(lines))


def test_the_areas_have_the_heights_of_their_sizes() -> None:
    profile = profiles_of(host_space([given(1, index_on_host=0, **sizes(8 * GIB, 16 * GIB, 8 * GIB))]))[0]
    lines = graph_lines(profile, scene(profile, 5), 8, PLAIN, None)
    assert [plain(line)[AXIS:] for line in lines] == ["." * 5] * 2 + ["H" * 5] * 4 + ["S" * 5] * 2
    keys = [line[-1] for line in graph_lines(profile, scene(profile, 5), 2, BLOCK, None)]
    assert keys == [("▄" * 5, ("vector", "step")), ("▄" * 5, ("compute", "vector"))]


def sizes(stack: int, heap: int, free: int) -> dict[str, int]:
    return {"bytes_reserved": stack, "bytes_allocated": heap, "bytes_available": free}


@pytest.mark.parametrize("stack", [0, 8 * GIB, 8 * GIB + 123 * MIB, 32 * GIB - 2])
@pytest.mark.parametrize("rows", [2, 3, 8, 19])
@pytest.mark.parametrize("glyphs", [PLAIN, BLOCK])
def test_memory_in_use_shows_be_it_ever_so_little(stack: int, rows: int, glyphs: Glyphs) -> None:
    profile = profiles_of(host_space([given(1, index_on_host=0, **sizes(stack, 1, 32 * GIB - 1 - stack))]))[0]
    keys = [str(key) for line in graph_lines(profile, scene(profile, 3), rows, glyphs, None) for _, key in line]
    assert rows < 8 or any("vector" in key for key in keys)
    assert not stack or any("compute" in key for key in keys)


@for_all(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 100)), min_size=1, max_size=80), st.integers(1, 40))
def test_columns_are_what_a_walk_over_the_events_finds(events: list[tuple[int, int]], cells: int) -> None:
    events = sorted(events, key=lambda one: one[0])
    made = [given(time, addr=at, **sizes(0, heap, 0)) for at, (time, heap) in enumerate(events)]
    profile = profiles_of(host_space(made))[0]
    shown = scene(profile, cells)
    edges = shown.edges.tolist()
    assert len(edges) == cells + 1 and edges[0] == events[0][0] and edges[-1] > events[-1][0]
    for cell in range(cells):
        before = [heap for time, heap in events if time < edges[cell]][-1:]
        before = [] if any(time == edges[cell] for time, _ in events) else before
        inside = [heap for time, heap in events if edges[cell] <= time < edges[cell + 1]]
        assert int(profile.heap_bytes[shown.event[cell]]) == max(before + inside)


def test_the_curve_of_fragmentation_has_a_round_scale() -> None:
    shares = (0.0, 0.001, 0.05, 0.2, 0.399, None)
    events = []
    for at, share in enumerate(shares):
        stats = {} if share is None else {"fragmentation": share}
        events.append(given(at * 10, index_on_host=0, addr=at, **sizes(0, MIB, 31 * MIB), **stats))
    profile = profiles_of(host_space(events))[0]
    shown = scene(profile, 6)
    low = [plain(line) for line in fragmentation_lines(profile, shown, 1, BLOCK)]
    assert low == [" frag 50%│ ▁▁▃▆ "]
    high = [plain(line) for line in fragmentation_lines(profile, shown, 3, BLOCK)]
    assert [line[:10] for line in high] == [" frag 50%│", "         │", "        0│"]
    assert ["".join(line[10 + cell] for line in reversed(high)) for cell in range(6)] == [
        *("   ", "▁  ", "▂  ", "█▂ ", "██▃", "   ")
    ]


@pytest.mark.parametrize(
    ("free", "share", "words"),
    [
        (*(32 * MIB, 0.25), "Fragmentation: 25.0% of the 32.0 MiB free at the peak; 24.0 MiB is contiguous."),
        (32 * MIB, 0.0, "Fragmentation: none, all 32.0 MiB free at the peak are contiguous."),
        (None, 0.25, "Fragmentation: 25.0% of the free memory at the peak is outside its largest piece."),
        (32 * MIB, None, None),
    ],
)
def test_fragmentation_is_put_into_words(free: int | None, share: float | None, words: str | None) -> None:
    stats: dict[str, float] = {"bytes_reserved": 0, "bytes_allocated": MIB}
    stats |= {} if free is None else {"bytes_available": free}
    stats |= {} if share is None else {"fragmentation": share}
    profile = profiles_of(host_space([given(1, index_on_host=0, **stats)]))[0]
    assert fragmentation_words(profile) == words
    is_known = free is not None and share is not None
    assert profile.largest_free_bytes == (round((free or 0) * (1 - (share or 0))) if is_known else None)


def test_the_cursor_goes_from_column_to_column_and_stays_in_the_graph() -> None:
    found = composed(MemoryProfileState())
    peak = training_page()[0].allocators[0].peak_time_ps
    at = columns_between(found, None, 0, peak)
    assert found.edges[0] <= at <= peak
    assert columns_between(found, at, 1, peak) > at > columns_between(found, at, -1, peak)
    assert columns_between(found, at, -1000, peak) == found.edges[0]
    assert columns_between(found, at, 1000, peak) == found.edges[-2]
    assert columns_between(found, -(10**15), 0, peak) == found.edges[0]


def test_the_table_scrolls_so_that_the_cursor_shows() -> None:
    profile = training_page()[0].allocators[0]
    rows = tuple(ActiveAllocation(f"op{at}", 1, 1000 - at, 1000 - at, None, None, None) for at in range(100))
    page = page_of(replace(profile, at_peak=rows))
    found = compose_memory_profile(page, (), MemoryProfileState(cursor=50), Pen(100, PLAIN), 24)
    assert found.first <= 50 < found.first + found.room
    marked = text_of(found)[found.first_row_line + 50 - found.first]
    assert marked.startswith(PLAIN.mark) and "op50" in marked
    last = compose_memory_profile(page, (), MemoryProfileState(cursor=9999, first=9999), Pen(100, PLAIN), 24)
    assert last.first + last.room == 100


def test_a_flat_line_is_explained_at_every_height() -> None:
    assert "TPU programs" in "\n".join(text_of(composed(MemoryProfileState(allocator=1), 120, 36)))
    assert "TPU programs" in "\n".join(text_of(composed(MemoryProfileState(allocator=1), 80, 20)))
    assert "no fault" in "\n".join(text_of(composed(MemoryProfileState(allocator=1), 60, 12)))


def test_names_of_profiles_cannot_break_the_page() -> None:
    evil = "\x1b[31m\n\u202eabc\t\u4e2d"
    profile = profiles_of(
        host_space(
            [given(1, addr=1, allocator_name=evil, allocation_bytes=5, tf_op=evil, shape=evil, **sizes(0, 5, 5))]
        )
    )[0]
    found = compose_memory_profile(page_of(profile), (), MemoryProfileState(), Pen(100, BLOCK), 24)
    check_lines(found.lines, 100)


def test_times_of_two_weeks_do_not_break_the_axis() -> None:
    profile = profiles_of(
        host_space([given(-(2**62), addr=1, **sizes(1, 5, 5)), given(2**62, addr=2, **sizes(1, 6, 5))])
    )[0]
    found = compose_memory_profile(page_of(profile), (), MemoryProfileState(cursor_ps=0), Pen(100, BLOCK), 24)
    check_lines(found.lines, 100)

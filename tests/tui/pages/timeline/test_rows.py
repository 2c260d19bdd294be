"""Rows of the timeline: nothing hidden, nothing overlapping, every cell styled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wcwidth import wcwidth

from tests import EXAMPLES
from tests.parsers.timeline.build import LaneEvent, loose_events, nested_events, track
from tests.tui.pages.timeline.test_lines import check
from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.timeline.model import CLASSES, EventNames, Track
from tpuprof.parsers.timeline.windows import cell_edges, lane_window, track_window
from tpuprof.tui.draw.spans import ASCII, BLOCK, FILLS, PLAIN, Fill, Glyphs, Key, Line, line_width, plain
from tpuprof.tui.pages.timeline.draw.cells import FULL, PAGE, RIGHT, SHADES, THICK, THIN, lane_cells, slice_cells
from tpuprof.tui.pages.timeline.draw.lanes import count_line, lane_line, track_line, with_cursor
from tpuprof.tui.terminal.detect import ColorMode
from tpuprof.tui.terminal.theme import Palette, palette
from tpuprof.tui.widgets.line_canvas import strip_of

LOOKS = [BLOCK, PLAIN, ASCII]
KINDS = ["compute", "vector", "copy", "collective"]
MODES: list[ColorMode] = ["truecolor", "256", "16", "mono"]
PALETTES = [palette(mode, light) for mode in MODES for light in (False, True)]

Cell = tuple[str, Key]


def op_names(texts: list[str], classes: list[str]) -> EventNames:
    """Names of ops of these classes."""
    return EventNames(None, tuple(texts), np.array([CLASSES.index(name) for name in classes], np.uint8))


FOUR = op_names(["fusion.1", "add.2", "copy.3", "all-reduce.4"], KINDS)

PAUSES = st.sampled_from([0, 0, 0, 1, 2, 7, 40, 200])
LENGTHS = st.sampled_from([0, 1, 3, 8, 20, 60, 100, 300])


@st.composite
def lanes(draw: st.DrawFn) -> Track:
    """A lane of events that often touch, on a scale of some cells' width."""
    at, events = 0, list[LaneEvent]()
    for _ in range(draw(st.integers(1, 12))):
        at += draw(PAUSES)
        length = draw(LENGTHS)
        events.append((0, at, at + length, draw(st.integers(0, 3))))
        at += max(length, 1)
    return track(events, of=FOUR, kind="ops")


def windows(most: int = 40) -> st.SearchStrategy[Int64s]:
    """Cells somewhere on such a lane."""
    return st.builds(
        lambda start, span, cells: cell_edges(start, start + span, cells),
        st.integers(-50, 2500),
        st.integers(1, 4000),
        st.integers(1, most),
    )


def cells_of(line: Line) -> list[Cell]:
    """Character and key of each cell."""
    return [(character, key) for text, key in line for character in text]


def is_blank(cell: Cell) -> bool:
    """Whether nothing can be seen in a cell."""
    character, key = cell
    return character == " " and (key == "text" or (isinstance(key, tuple) and key[1] == "page"))


def inside(item: Track, edges: Int64s) -> Iterator[tuple[int, int, int]]:
    """Each event of a lane in a window, and the cells that it overlaps or lies in, first and last-but-one."""
    window = lane_window(item, 0, edges)
    for event in range(len(item)):
        cells = np.flatnonzero((window.first <= event) & (event < window.last))
        if len(cells):
            yield event, int(cells[0]), int(cells[-1]) + 1


# --- every line


@settings(max_examples=3 * EXAMPLES)
@given(lanes(), windows(), st.sampled_from(LOOKS), st.booleans(), st.data())
def test_lines_are_as_wide_as_the_window_and_every_cell_has_a_style(
    item: Track, edges: Int64s, glyphs: Glyphs, is_neutral: bool, data: st.DataObject
) -> None:
    selected = data.draw(st.none() | st.integers(0, len(item) - 1))
    is_match = np.array(data.draw(st.lists(st.booleans(), min_size=4, max_size=4)))
    lost = data.draw(st.none() | st.integers(0, 3000))
    window = lane_window(item, 0, edges)
    fill: Fill | None = "module" if is_neutral else None
    line = lane_line(item, window, glyphs, fill=fill, selected=selected, is_match=is_match, lost_from_ps=lost)
    flat = track_line(track_window(item, edges), glyphs, fill=fill, lost_from_ps=lost)
    counts = count_line(window.last - window.first)
    for one in (line, flat, counts):
        check(one, len(edges) - 1, glyphs)
        for colors in PALETTES:
            strip = strip_of(one, len(edges) - 1, colors)
            assert strip.text == plain(one)
            assert all(segment.style is not None and segment.style.bgcolor is not None for segment in strip)


@settings(max_examples=3 * EXAMPLES)
@given(lanes(), windows(), st.sampled_from(LOOKS))
def test_every_event_in_the_window_can_be_seen(item: Track, edges: Int64s, glyphs: Glyphs) -> None:
    """So zooming never loses an event."""
    window = lane_window(item, 0, edges)
    cells = cells_of(lane_line(item, window, glyphs))
    for event, first, last in inside(item, edges):
        assert any(not is_blank(cell) for cell in cells[first:last]), f"event {event} is lost"
    for at in np.flatnonzero(window.first == window.last).tolist():
        assert is_blank(cells[at]), "where nothing ran there is nothing"


@settings(max_examples=2 * EXAMPLES)
@given(
    st.one_of(nested_events(), loose_events()).map(track),
    st.integers(-5, 60),
    st.integers(1, 70),
    st.integers(1, 30),
    st.sampled_from(LOOKS),
)
def test_a_folded_track_shows_where_any_lane_has_events(
    item: Track, start: int, span: int, cells: int, glyphs: Glyphs
) -> None:
    window = track_window(item, cell_edges(start, start + span, cells))
    line = track_line(window, glyphs)
    assert [not is_blank(cell) for cell in cells_of(line)] == (window.count > 0).tolist()


# --- slices


@settings(max_examples=3 * EXAMPLES)
@given(lanes(), windows())
def test_slices_do_not_overlap_and_stand_in_order(item: Track, edges: Int64s) -> None:
    window = lane_window(item, 0, edges)
    if not (window.last > window.first).any():
        return
    event = slice_cells(lane_cells(item, window, None, None, None)).event
    named = event[event >= 0]
    assert (np.diff(named) >= 0).all()
    for one in set(named.tolist()):
        at = np.flatnonzero(event == one)
        assert (np.diff(at) == 1).all(), "a slice is one piece"
        assert item.start_ps[one] < edges[at[0] + 1]
        assert item.end_ps[one] > edges[at[-1]]


def painted(sign: int, ink: int, ground: int) -> float:
    """Part of a cell that has a colour."""
    if sign in SHADES[1:4]:
        return SHADES.index(sign) / 4 if ground == PAGE else 1.0
    part = {THIN: 1.0, THICK: 2.0, RIGHT: 1.0}.get(sign, float(min(sign, FULL))) / 8
    return part * (ink != PAGE) + (1 - part) * (ground != PAGE)


@settings(max_examples=3 * EXAMPLES)
@given(lanes(), windows())
def test_what_is_painted_is_what_is_covered(item: Track, edges: Int64s) -> None:
    window = lane_window(item, 0, edges)
    if not (window.last > window.first).any():
        return
    seen = lane_cells(item, window, None, None, None)
    cells = slice_cells(seen)
    for at, count in enumerate(seen.count.tolist()):
        part = painted(int(cells.sign[at]), int(cells.ink[at]), int(cells.ground[at]))
        share = float(seen.share[at])
        if count == 0:
            assert part == 0
        elif count == 1:
            # the least to be seen is an eighth; a line in the middle stands for up to three eighths
            assert abs(part - share) <= 3 / 16 + 1e-9
        elif count > 2:
            assert part >= 1 / 4
            assert abs(part - max(share, 1 / 4)) <= 1 / 4 + 1e-9


@settings(max_examples=3 * EXAMPLES)
@given(lanes(), windows())
def test_gaps_between_slices_do_not_vanish(item: Track, edges: Int64s) -> None:
    """From a quarter of a cell on."""
    width = int(np.diff(edges).min())
    window = lane_window(item, 0, edges)
    if not (window.last > window.first).any():
        return
    cells = slice_cells(lane_cells(item, window, None, None, None))
    shown = list(inside(item, edges))
    for (one, _, _), (other, _, _) in pairwise(shown):
        end, begin = int(item.end_ps[one]), int(item.start_ps[other])
        if (begin - end) * 4 < width or not edges[0] <= end <= begin < edges[-1]:
            continue
        first, last = (int(at) for at in np.searchsorted(edges, [end, begin], side="right") - 1)
        assert (cells.ground[first : last + 1] == PAGE).any() or (cells.ink[first : last + 1] == PAGE).any()


@settings(max_examples=3 * EXAMPLES)
@given(lanes(), windows(), st.sampled_from(LOOKS), st.data())
def test_what_is_selected_or_found_has_a_cell_of_its_colour(
    item: Track, edges: Int64s, glyphs: Glyphs, data: st.DataObject
) -> None:
    key = data.draw(st.integers(0, 3))
    is_match = np.arange(4) == key
    selected = data.draw(st.integers(0, len(item) - 1))
    window = lane_window(item, 0, edges)
    cells = cells_of(lane_line(item, window, glyphs, selected=selected, is_match=is_match))
    for event, first, last in inside(item, edges):
        colors = {fill for _, cell_key in cells[first:last] if isinstance(cell_key, tuple) for fill in cell_key}
        if event == selected:
            assert "selected" in colors
        elif item.key[event] == key:
            assert colors & {"match", "selected"}


def test_a_crowded_cell_has_the_color_of_the_class_that_takes_most_of_its_time() -> None:
    events = [(0, 0, 60, 0), (0, 60, 65, 1), (0, 65, 70, 2), (0, 70, 75, 3)]
    item = track(events, of=FOUR, kind="ops")
    window = lane_window(item, 0, cell_edges(0, 100, 1))
    assert lane_line(item, window, BLOCK) == (("▓", ("compute", "page")),), "not the last one's"
    assert lane_line(item, window, ASCII) == (("C", ("compute", "page")),)
    assert lane_line(item, lane_window(item, 0, cell_edges(0, 300, 1)), PLAIN) == (("c", ("compute", "page")),)


def test_names_that_would_move_the_cursor_or_never_end_fit_their_slices() -> None:
    names = op_names(["\x1b[31mred\x07", "x" * 1_000_000, "日本語のなまえ", "a\nb"], KINDS)
    item = track([(0, 0, 100, 0), (0, 100, 200, 1), (0, 200, 300, 2), (0, 300, 400, 3)], of=names, kind="ops")
    for glyphs in LOOKS:
        text = plain(lane_line(item, lane_window(item, 0, cell_edges(0, 400, 80)), glyphs))
        assert len(text) == 80
        assert text.isprintable()
        assert all(wcwidth(character) == 1 for character in text)


def test_times_beyond_all_reason_are_drawn() -> None:
    low, high = -(2**62), 2**61
    item = track([(0, low, low + 1, 0), (0, low + 1, high, 1), (0, high, high, 2)], of=FOUR, kind="ops")
    for start, end in ((low, high), (-(2**50), 2**50), (high - 10, high + 10)):
        for glyphs in LOOKS:
            line = lane_line(item, lane_window(item, 0, cell_edges(start, end, 20)), glyphs)
            assert line_width(line) == 20
            assert plain(line).strip() or glyphs is BLOCK


def test_the_cursor_marks_a_blank_cell_only() -> None:
    item = track([(0, 0, 50, 0)], of=FOUR, kind="ops")
    line = lane_line(item, lane_window(item, 0, cell_edges(0, 100, 10)), BLOCK)
    assert plain(with_cursor(line, 7, BLOCK)) == "fusi…  │  "
    assert with_cursor(line, 2, BLOCK) == line
    assert line_width(with_cursor(line, 9, BLOCK)) == 10


def test_a_crowd_too_large_to_look_through_does_not_show_its_match() -> None:
    count = 70_000
    events = track([(0, at * 10, at * 10 + 10, 1 if at == 5 else 0) for at in range(count)], of=FOUR, kind="ops")
    window = lane_window(events, 0, cell_edges(0, count * 10, 4))
    is_match = np.arange(4) == 1
    assert lane_line(events, window, BLOCK, is_match=is_match)[0][1] == ("compute", "page")


# --- colours


@pytest.mark.parametrize("colors", PALETTES, ids=lambda colors: f"{colors.color} {colors.light}")
def test_neighbours_selection_and_matches_look_different(colors: Palette) -> None:
    plain_styles = {colors.style(("words", fill)) for fill in FILLS[: len(CLASSES)]}
    selected, match = colors.style(("words", "selected")), colors.style(("words", "match"))
    assert selected != match
    assert not {selected, match} & plain_styles
    crowd = [colors.style((fill, "page")) for fill in ("compute", "selected", "match")]
    assert len(set(crowd)) == 3
    if colors.color == "mono":
        assert colors.style(("words", "compute")) != colors.style(("words.odd", "compute"))
    else:
        assert len(plain_styles) == len(CLASSES)
        assert colors.style(("words", "compute")) == colors.style(("words.odd", "compute"))


# --- pictures


@pytest.mark.parametrize("cells", [1, 4])
def test_what_only_holds_others_has_a_neutral_tone(cells: int) -> None:
    of = EventNames(
        None, ("while", "fusion"), np.full(2, CLASSES.index("vector"), np.uint8), None, None, np.array([True, False])
    )
    item = track([(0, 0, 60, 0), (0, 60, 80, 1), (0, 80, 100, 0)], kind="ops", of=of)
    drawn = lane_line(item, lane_window(item, 0, cell_edges(0, 100, cells)), BLOCK)
    used = {fill for _, key in drawn if isinstance(key, tuple) for fill in key}
    assert "step" in used and ("vector" in used) == (cells == 4), "a cell has the colour of what takes most of it"
    plain_names = replace(of, holds=None)
    drawn = lane_line(replace(item, names=plain_names), lane_window(item, 0, cell_edges(0, 100, cells)), BLOCK)
    assert "step" not in {fill for _, key in drawn if isinstance(key, tuple) for fill in key}

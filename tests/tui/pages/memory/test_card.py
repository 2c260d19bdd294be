"""The cards of the memory tab, and its allocation map."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.memory.modules.build import GIB, MIB, space_of, training_space
from tests.support.build import present
from tests.support.golden import check_golden, check_lines, frame
from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.formats.hlo.shapes import parse_shape
from tpuprof.parsers.memory.model import Buffer, SpaceMemory
from tpuprof.parsers.memory.modules.groups import group_rows
from tpuprof.tui.draw.buffers.words import padding_words
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import ASCII, BLOCK, Glyphs, plain
from tpuprof.tui.pages.memory.draw.graph import point_columns
from tpuprof.tui.pages.memory.draw.map import CROWDED, FREE, map_allocation, map_lines, paint_map
from tpuprof.tui.pages.memory.draw.page import buffer_card, group_card

GOLDEN = Path(__file__).parent / "golden"
NONE: Int64s = np.zeros(0, np.int64)


def row_named(page: SpaceMemory, name: str) -> int:
    return next(row for row in range(len(page.buffers)) if page.buffers[row].name == name)


@pytest.mark.parametrize("name", ["param.0", "fusion.221", "fusion.245"])
def test_cards(name: str) -> None:
    page = training_space()
    card = frame(buffer_card(page, row_named(page, name), Pen(60, BLOCK), page.peak_position))
    check_golden(GOLDEN / f"memory-card-{name}.txt", card)


def test_a_group_card() -> None:
    page = training_space()
    group = group_rows(page, page.at(page.peak_position), "source")[1]
    check_golden(GOLDEN / "memory-card-group.txt", frame(group_card(page, group, Pen(60, ASCII))))


@given(st.text(max_size=80), st.integers(24, 120), st.sampled_from([BLOCK, ASCII]), st.integers(-3, 12))
def test_no_text_of_a_module_breaks_a_card(words: str, width: int, glyphs: Glyphs, dies: int) -> None:
    buffer = Buffer(
        words,
        "temporary",
        2**63 - 1,
        0,
        words,
        words,
        words,
        words,
        (words,) * 9,
        words,
        2**62,
        born=-2,
        dies=dies,
        label=words,
    )
    page = space_of([Buffer("a", "constant", 1), Buffer("b", "temporary", 5, 1, born=2, dies=4)], 8)
    odd = dataclasses.replace(page, buffers=(page.buffers[0], buffer))
    check_lines(buffer_card(odd, 1, Pen(width, glyphs), page.peak_position), width, glyphs)


def test_padding_is_explained() -> None:
    for shape, words in (
        ("f32[8,1024,32,16]{3,2,1,0:T(8,128)}", "tile (8,128) rounds up dimension 3 from 16 to 128"),
        ("s32[3,5]{0,1:T(8,128)}", "tile (8,128) rounds up dimension 0 from 3 to 128 and dimension 1 from 5 to 8"),
        ("f32[8,128]{1,0:T(8,128)}", None),
        ("f32[]{:T(128)}", "tile (128) has 1 more dimension than the array"),
        ("f32[4]", None),
    ):
        assert padding_words(present(parse_shape(shape))) == words


def test_others_of_the_same_shape_are_counted() -> None:
    page = training_space(layers=5)
    card = frame(buffer_card(page, row_named(page, "fusion.212"), Pen(80, ASCII), page.peak_position))
    assert "4 others of this shape at the peak, 2.50 GiB together" in card
    assert "no other buffer of this shape" in frame(
        buffer_card(page, row_named(page, "param.0"), Pen(80, ASCII), page.peak_position)
    )


# --- the map


def test_the_map_shows_each_buffer_in_its_place_and_what_is_free() -> None:
    buffers = [
        Buffer("low", "temporary", 4 * MIB, 4 * MIB, offset_bytes=0, born=0, dies=10),
        Buffer("high", "temporary", 4 * MIB, 4 * MIB, offset_bytes=12 * MIB, born=5, dies=20),
        Buffer("after", "temporary", 8 * MIB, 8 * MIB, offset_bytes=0, born=10, dies=20),
    ]
    page = space_of(buffers, 20)
    painted = paint_map(page, 0, 20, 4, 1)
    assert painted.size_bytes == 16 * MIB
    tone = painted.tone
    assert (tone[0, :10] == tone[0, 0]).all()
    assert (tone[0, 10:] == tone[0, 10]).all()
    assert (tone[1, :10] == FREE).all()
    assert (tone[1, 10:] == tone[0, 10]).all()
    assert (tone[2] == FREE).all()
    assert (tone[3, :5] == FREE).all()
    assert (tone[3, 5:] != FREE).all()
    assert tone[0, 0] != tone[0, 10]  # neighbours
    lines = [plain(line) for line in map_lines(page, painted, np.array([0]), 3, Pen(30, ASCII), 6, None)]
    assert lines[4][10:] == "@" * 10 + lines[4][20] * 10
    assert lines[1][10:15] == " " * 5


@given(st.integers(1, 40), st.integers(1, 60), st.integers(1, 12), st.integers(1, 2), st.data())
def test_every_cell_shows_what_lies_there(
    points: int, columns: int, lines: int, steps: int, data: st.DataObject
) -> None:
    """Against a picture made cell by cell, of buffers as high as a whole number of cells."""
    rows = lines * steps
    taken = np.zeros((rows, points), np.bool_)
    buffers = [Buffer("edge", "temporary", MIB, offset_bytes=(rows - 1) * MIB, born=0, dies=1)]
    taken[rows - 1, 0] = True
    for at in range(data.draw(st.integers(0, 12))):
        low = data.draw(st.integers(0, rows - 1))
        high = data.draw(st.integers(low + 1, rows))
        born = data.draw(st.integers(0, points - 1))
        dies = data.draw(st.integers(born + 1, points))
        if not taken[low:high, born:dies].any():
            taken[low:high, born:dies] = True
            size, offset = (high - low) * MIB, low * MIB
            buffers.append(Buffer(f"b{at}", "temporary", size, size, offset_bytes=offset, born=born, dies=dies))
    page = space_of(buffers, points)
    painted = paint_map(page, 0, columns, lines, steps)
    expected = taken[:, point_columns(page, columns).top]
    assert ((painted.tone != FREE) == expected).all()


def test_buffers_too_small_for_a_cell_show_together() -> None:
    buffers = [
        Buffer(f"b{at}", "temporary", MIB, MIB, offset_bytes=at * MIB, born=at % 3, dies=30) for at in range(1000)
    ]
    page = space_of(buffers, 30)
    painted = paint_map(page, 0, 30, 5, 2)
    assert (painted.tone[:, 5:] == CROWDED).all()
    assert painted.buffers == 1000


def test_a_map_of_buffers_upon_each_other_is_painted_all_the_same() -> None:
    buffers = [Buffer(f"b{at}", "temporary", GIB, GIB, offset_bytes=0, born=0, dies=200) for at in range(3000)]
    page = space_of(buffers, 200)
    painted = paint_map(page, 0, 200, 30, 2)
    assert (painted.tone != FREE).all()


def test_without_places_there_is_no_map() -> None:
    page = space_of([Buffer("t", "temporary", GIB, GIB, born=0, dies=3)], 5)
    assert map_allocation(page, NONE) is None
    lines = map_lines(page, None, NONE, 0, Pen(60, ASCII), 5, None)
    assert len(lines) == 5
    assert "no allocation map" in plain(lines[0])


def test_the_map_is_of_the_cursors_allocation_where_that_is_shared() -> None:
    buffers = [
        Buffer("arg", "parameter", 9 * GIB, 9 * GIB, offset_bytes=0, born=0, dies=9),
        Buffer("a", "temporary", MIB, MIB, offset_bytes=0, born=0, dies=4),
        Buffer("b", "temporary", MIB, MIB, offset_bytes=MIB, born=1, dies=4),
        Buffer("c", "temporary", 4 * MIB, MIB, offset_bytes=0, born=1, dies=4),
        Buffer("d", "temporary", 4 * MIB, MIB, offset_bytes=4 * MIB, born=1, dies=4),
    ]
    page = space_of(buffers, 9, allocations=[5, 6, 6, 7, 7])
    assert map_allocation(page, np.array([1])) == 6
    assert map_allocation(page, np.array([3])) == 7
    assert map_allocation(page, np.array([0])) == 7  # alone in its allocation
    assert map_allocation(page, NONE) == 7
    title = plain(map_lines(page, paint_map(page, 7, 50, 4), np.array([0]), 0, Pen(90, ASCII), 6, None)[0])
    assert "allocation 7: 8.00 MiB, 2 buffers" in title
    assert "lies in another" in title

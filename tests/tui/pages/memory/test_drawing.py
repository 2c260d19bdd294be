"""The memory tab in cells: committed frames, and what must hold for every space, width and height."""

from __future__ import annotations

import dataclasses

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tests.parsers.memory.modules.build import GIB, MIB, space_of, training_space
from tests.support.golden import check_lines
from tpuprof.parsers.memory.account.need import need_of_memory
from tpuprof.parsers.memory.account.owners import account
from tpuprof.parsers.memory.batch.fit import BatchFit
from tpuprof.parsers.memory.model import Buffer, Category, SpaceMemory
from tpuprof.parsers.memory.oom.advice.plan import plan
from tpuprof.parsers.memory.summary import SpaceSummary
from tpuprof.tui.draw.buffers.owners import owner_words
from tpuprof.tui.draw.buffers.words import expansion_words, short_shape
from tpuprof.tui.draw.pen import Pen, cut_begin, shown_top
from tpuprof.tui.draw.spans import ASCII, BLOCK, PLAIN, Glyphs, plain
from tpuprof.tui.pages.memory.draw.graph import AXIS, column_of, point_at, point_columns, scale_of
from tpuprof.tui.pages.memory.draw.header import composition, header_lines, headroom_style
from tpuprof.tui.pages.memory.draw.page import ComposedMemory, compose_memory
from tpuprof.tui.pages.memory.draw.table import GROUPINGS, Grouping, MemoryState, memory_list
from tpuprof.tui.pages.memory.fields.module import GROUPS, short_op, short_source


def summary_of(page: SpaceMemory) -> SpaceSummary:
    """What a space made by hand comes to, which has no HLO to tell its batch."""
    need = need_of_memory(page)
    return SpaceSummary(account(need), plan(need), BatchFit(unknown="Made by hand."))


def drawn(
    page: SpaceMemory, width: int, height: int, glyphs: Glyphs, state: MemoryState, summary: SpaceSummary | None = None
) -> ComposedMemory:
    listed, summary = memory_list(page, state), summary or summary_of(page)
    return compose_memory(page, listed, state, "", Pen(width, glyphs), height, summary=summary)


def at_peak(page: SpaceMemory, row: int = 0, **changes: object) -> MemoryState:
    return dataclasses.replace(MemoryState(point=page.peak_position, cursor=row), **changes)  # type: ignore[arg-type]


CATEGORY: st.SearchStrategy[Category] = st.sampled_from(["parameter", "output", "constant", "temporary", "scoped"])


POINTS = st.one_of(st.integers(1, 12), st.integers(200, 900))
SPECS = st.lists(
    st.tuples(
        CATEGORY, st.integers(0, 2**40), st.floats(0, 1), st.integers(-1, 900), st.integers(0, 900), st.booleans()
    ),
    max_size=20,
)
SHAPES = st.sampled_from([None, "f32[8,16]{1,0:T(8,128)}", "(f32[2], u8[1])", "odd"])
OPS = st.sampled_from([None, "jit(f)/jvp(M)/h_1/dot", "state['a']['b']", "/", ":"])
SOURCES = st.sampled_from([None, "a/b.py:12", "x"])
OFFSETS = st.one_of(st.none(), st.integers(0, 2**40))
CAPACITIES = st.one_of(st.none(), st.integers(0, 2**44))


@st.composite
def spaces(draw: st.DrawFn) -> SpaceMemory:
    points = draw(POINTS)
    buffers = []
    for at, (category, size, part, born, length, is_known) in enumerate(draw(SPECS)):
        begin = 0 if category in ("parameter", "output", "constant") else max(0, born) % points
        end = points if category in ("parameter", "output", "constant") else begin + length
        buffers.append(
            Buffer(
                name=draw(st.text(max_size=12)) or f"op.{at}",
                category=category,
                size_bytes=size,
                unpadded_bytes=int(size * part) if is_known else None,
                shape=draw(SHAPES),
                framework_op=draw(OPS),
                source=draw(SOURCES),
                offset_bytes=draw(OFFSETS),
                born=begin,
                dies=end,
            )
        )
    capacity = draw(CAPACITIES)
    return space_of(buffers, points, capacity=capacity)


STATES = st.builds(
    MemoryState,
    *[st.integers(-2, 25)] * 2,
    point=st.integers(-5, 1000),
    sort=st.sampled_from(["#", "size", "%"]),
    grouping=st.sampled_from(GROUPINGS),
    show_map=st.booleans(),
)


@settings(max_examples=2 * EXAMPLES)
@given(spaces(), st.integers(60, 220), st.integers(12, 60), st.sampled_from([BLOCK, PLAIN, ASCII]), STATES)
def test_every_page_fills_the_screen_exactly(
    page: SpaceMemory, width: int, height: int, glyphs: Glyphs, state: MemoryState
) -> None:
    composed = drawn(page, width, height, glyphs, state)
    assert len(composed.lines) == height
    check_lines(composed.lines, width, glyphs)
    assert composed.first_row_line + composed.room <= height
    assert composed.room >= 1
    assert 0 <= composed.graph_line + composed.graph_lines <= composed.first_row_line
    if page.points > 1:
        assert composed.graph_lines >= 1
        assert AXIS + composed.columns == width


@given(st.integers(0, 42), st.sampled_from([(60, 12), (80, 20), (120, 36), (200, 46)]))
def test_the_cursor_is_on_its_row(row: int, size: tuple[int, int]) -> None:
    page = training_space()
    composed = drawn(page, *size, ASCII, at_peak(page, row))
    marked = [at for at, line in enumerate(composed.lines) if plain(line).startswith(">")]
    assert marked == [composed.first_row_line + row - composed.first]


@given(st.integers(0, 300), st.integers(0, 300), st.integers(1, 60), st.integers(0, 300))
def test_the_list_shows_the_cursor_and_leaves_no_room(row: int, top: int, rows: int, entries: int) -> None:
    row = min(row, max(0, entries - 1))
    first = shown_top(row, top, rows, entries)
    assert first <= row < first + rows
    assert first + rows <= entries or first == 0


# --- points and columns


@given(st.integers(1, 500), st.integers(1, 220), st.data())
def test_points_and_columns_match(points: int, columns: int, data: st.DataObject) -> None:
    page = space_of([Buffer("t", "temporary", 5, 5, born=points // 2, dies=points)], points)
    point = data.draw(st.integers(0, points - 1))
    column = column_of(page, columns, point)
    shown = point_columns(page, columns)
    assert 0 <= column < columns
    assert shown.first[column] <= point < shown.last[column]
    x = data.draw(st.integers(0, columns - 1))
    there = point_at(page, columns, x)
    assert there == shown.top[x]
    assert shown.first[x] <= there < shown.last[x]
    if points >= columns:
        assert column_of(page, columns, there) == x
        assert shown.first[0] == 0
        assert shown.last[-1] == points
        assert (shown.first[1:] == shown.last[:-1]).all()
    assert point_at(page, columns, -9) == shown.top[0]
    assert point_at(page, columns, 10**6) == shown.top[-1]


def test_a_column_shows_the_most_of_its_points() -> None:
    buffers = [Buffer("spike", "temporary", 7 * MIB, 7 * MIB, born=501, dies=502)]
    page = space_of(buffers, 1000)
    assert point_at(page, 100, column_of(page, 100, 501)) == 501


# --- the graph


def graph_of(page: SpaceMemory, row: int, width: int = 90, height: int = 40) -> list[str]:
    composed = drawn(page, width, height, ASCII, at_peak(page, row))
    area = composed.lines[composed.graph_line : composed.graph_line + composed.graph_lines]
    return [plain(line)[AXIS:] for line in area]


def test_the_band_is_where_the_buffer_lives() -> None:
    page = space_of(
        [
            Buffer("kept", "parameter", GIB, GIB, offset_bytes=0, born=0, dies=80),
            Buffer("short", "temporary", GIB, GIB, offset_bytes=0, born=20, dies=40),
            Buffer("long", "temporary", GIB, GIB, offset_bytes=GIB, born=10, dies=60),
        ],
        80,
        capacity=100 * GIB,
    )
    rows = memory_list(page, at_peak(page)).rows
    names = [page.buffers[row].name for row in rows.tolist()]
    for name, born, dies in (("kept", 0, 80), ("short", 20, 40), ("long", 10, 60)):
        bottom = graph_of(page, names.index(name))[-1]
        assert bottom == ":" * born + "@" * (dies - born) + ":" * (80 - dies)
    graph = graph_of(page, names.index("short"), height=25)
    assert graph[0].strip(" ") == "#" * 20  # three buffers at once: the highest row, all within the band
    assert "=" in "".join(graph)


def test_padding_lies_on_top() -> None:
    buffers = [Buffer("padded", "temporary", 8 * GIB, 2 * GIB, born=0, dies=40), Buffer("arg", "parameter", 1, 1)]
    page = space_of(buffers, 80)
    rows = graph_of(page, 1)
    column = [row[20] for row in rows if row[20] != " "]
    assert column == sorted(column, key="p#@".index)
    row_bytes = scale_of(8 * GIB, len(rows)).row_bytes
    assert len(column) - column.count("p") == round(2 * GIB / row_bytes)
    assert len(column) == round(8 * GIB / row_bytes)
    assert set("".join(row[40:] for row in rows[:-1])) == {" "}


def test_the_limit_is_drawn_where_it_is_near_and_said_where_not() -> None:
    for capacity, near in ((16 * GIB, True), (95 * GIB, False), (9 * GIB, True)):
        page = training_space(capacity=capacity)
        composed = drawn(page, 120, 40, ASCII, at_peak(page))
        area = composed.lines[composed.graph_line : composed.graph_line + composed.graph_lines]
        assert any("limit" in plain(line) for line in area) == near
        assert ("limit 95.00 GiB" in plain(composed.lines[composed.graph_line - 1])) == (not near)


def test_the_begin_of_the_backward_pass_is_marked() -> None:
    page = training_space()
    listed = memory_list(page, at_peak(page))
    for backward, words in ((90, "forward | backward"), (None, ""), (38, ""), (104, "")):
        composed = compose_memory(page, listed, at_peak(page), "", Pen(120, ASCII), 36, backward=backward)
        axis = plain(composed.lines[composed.graph_line + composed.graph_lines])
        assert len(axis) == 120
        assert ("backward" in axis) == bool(words)
        assert words in axis
        if words:
            assert axis.index("| backward") == AXIS + column_of(page, composed.columns, 90)


# --- the head


def test_headroom_is_red_where_it_does_not_fit_and_a_warning_where_it_hardly_does() -> None:
    keys = [headroom_style(training_space(capacity=at * GIB // 10)) for at in (110, 138, 142, 160)]
    assert keys == ["bad", "warn", "warn", "good"]
    assert headroom_style(training_space(capacity=None)) == "dim"
    line = header_lines(training_space(capacity=11 * GIB), "", Pen(120, BLOCK))[1]
    assert (" does not fit: 2.69 GiB over", "bad") in line


def test_the_owners_that_there_is_no_room_for_are_the_smaller_ones_and_are_summed() -> None:
    page = training_space()
    summary = summary_of(page)
    assert summary.account is not None
    owners = [owner_words(owner, True) for owner in summary.account.owners]
    for width, least in ((60, 1), (80, 2), (99, 3)):
        text = plain(header_lines(page, "", Pen(width, ASCII), summary)[2])
        named = [owner for owner in owners if f"{owner} " in text]
        assert named == owners[: len(named)] and len(named) >= least
        assert ("others " in text) == (len(named) < len(owners))


def test_the_bar_is_made_of_all_owners() -> None:
    page = training_space()
    account = summary_of(page).account
    assert account is not None and sum(composition(account)) == page.peak_bytes


def test_the_last_line_of_the_head_says_what_to_do_or_how_far_it_goes() -> None:
    page, tight = training_space(), training_space(capacity=11 * GIB)
    fit = BatchFit(8, ("x",), 1 << 33, 16 * GIB, 1 << 32, 13, 15 * GIB, 14, 17 * GIB)
    line = plain(header_lines(page, "", Pen(120, ASCII), dataclasses.replace(summary_of(page), fit=fit))[3])
    assert line.strip() == "batch is 8; up to 13 fits (15.0 GiB); 14 is over by 1.00 GiB"
    unknown = plain(header_lines(page, "", Pen(120, ASCII), summary_of(page))[3])
    assert unknown.strip() == "largest batch unknown: made by hand."
    assert "plan:" in plain(header_lines(tight, "", Pen(120, ASCII), summary_of(tight))[3])


# --- the list


class Counted:
    """Buffers that count how often they are described."""

    def __init__(self, page: SpaceMemory) -> None:
        self._buffers = page.buffers
        self.asked: list[int] = []

    def __len__(self) -> int:
        return len(self._buffers)

    def __getitem__(self, row: int, /) -> Buffer:
        self.asked.append(row)
        return self._buffers[row]


def test_only_rows_that_show_are_described() -> None:
    page = training_space(layers=200)
    summary, buffers = summary_of(page), Counted(page)  # the app makes the summary once, away from the screen's thread
    page = dataclasses.replace(page, buffers=buffers)
    composed = drawn(page, 120, 36, BLOCK, at_peak(page, 300), summary)
    assert len(page.live_ranges) > 600
    assert len(set(buffers.asked)) <= composed.room + 1
    buffers.asked.clear()
    drawn(page, 120, 36, BLOCK, at_peak(page, 1, grouping="category"), summary)
    assert not buffers.asked


def test_the_map_is_painted_once() -> None:
    page = training_space()
    listed = memory_list(page, at_peak(page))
    first = compose_memory(page, listed, at_peak(page, 8, show_map=True), "", Pen(100, BLOCK), 40)
    again = compose_memory(page, listed, at_peak(page, 9, show_map=True), "", Pen(100, BLOCK), 40, first.painted)
    smaller = compose_memory(page, listed, at_peak(page, 9, show_map=True), "", Pen(90, BLOCK), 40, again.painted)
    assert first.painted is not None
    assert again.painted is first.painted
    assert smaller.painted is not first.painted
    assert again.lines != first.lines


@given(spaces(), st.sampled_from(["size", "pad", "op"]), st.integers(0, 900))
def test_the_list_holds_what_is_in_memory_in_order(page: SpaceMemory, order: str, point: int) -> None:
    point = min(point, page.points - 1)
    listed = memory_list(page, MemoryState(point=point, sort=order))
    rows = listed.rows
    assert sorted(rows.tolist()) == page.at(point).tolist()
    assert listed.in_memory_bytes == int(page.heap_bytes[point])
    size, elements = page.live_ranges.size_bytes[rows], page.live_ranges.unpadded_bytes[rows]
    if order == "size":
        assert (np.diff(size) <= 0).all()
    elif order == "pad":
        assert (np.diff(np.where(elements < 0, -1, size - elements)) <= 0).all()
    else:
        assert (np.diff(page.live_ranges.born[rows]) >= 0).all()


@given(spaces(), st.sampled_from(["source", "scope", "category"]), st.sampled_from([*GROUPS.sorted_by]))
def test_groups_part_what_is_in_memory(page: SpaceMemory, grouping: Grouping, order: str) -> None:
    listed = memory_list(page, at_peak(page, sort=order, grouping=grouping))
    rows = [row for at in range(len(listed)) for row in listed.rows_of(at).tolist()]
    assert sorted(rows) == page.at(page.peak_position).tolist()
    groups = [listed.group_of(at) for at in range(len(listed))]
    assert sum(group.size_bytes for group in groups if group is not None) == page.peak_bytes
    assert None not in groups


def test_a_filter_looks_at_name_shape_op_and_source_in_any_case() -> None:
    page = training_space()
    every = memory_list(page, at_peak(page))
    for wanted, count in (("FUSION.212", 1), ("h_3/", 3), (":218", 12), ("bf16[8,32,", 12), ("nothing", 0)):
        listed = memory_list(page, at_peak(page, words=wanted))
        assert listed.shown_count == len(listed) == count, wanted
        assert listed.in_memory_bytes == every.in_memory_bytes
    composed = compose_memory(page, listed, at_peak(page), "", Pen(80, ASCII), 20)
    assert any("no buffer has these words" in plain(line) for line in composed.lines)


def test_words_of_the_table() -> None:
    assert short_shape("bf16[8,16]{1,0:T(8,128)(2,1)}") == "bf16[8,16]"
    assert short_shape(None) == "n/a"
    assert short_source("a/b/model.py:12") == "model.py:12"
    assert short_source(None) == "-"
    assert short_op("jit(step)/transpose(jvp(Model))/h_7/mlp/dot_general") == "Model/h_7/mlp/dot_general"
    assert short_op("state['params']['up'][0]") == "state.params.up[0]"
    assert [expansion_words(value) for value in (None, 1.0, 1.5, 128.0, 5000.0)] == [
        "n/a",
        "-",
        "1.5x",
        "128x",
        ">999x",
    ]
    assert cut_begin("abcdef", 4, ASCII) == "~def"
    assert cut_begin("abc", 4, ASCII) == "abc"

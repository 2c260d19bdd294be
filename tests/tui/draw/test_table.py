"""Tables: what is drawn, and how little of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.made.big_table import big_page
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import ASCII, BLOCK, Span, line_width, plain
from tpuprof.tui.draw.table import Column, chosen_columns, each, header_line, most_shift, row_lines
from tpuprof.tui.pages.ops.fields.hlo_ops import HLO_OPS
from tpuprof.tui.report.fields import screen_columns

PAGE = big_page(300)


class Counting:
    """A column that counts how often it is asked."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def cell(self, row: int) -> Span:
        self.asked.append(row)
        return str(row), "text"


def test_a_row_asks_each_shown_column_once() -> None:
    counting = Counting()
    columns = [Column(str(at), "n", 6, each(counting.cell)) for at in range(20)]
    shown = chosen_columns(columns, 80)
    row_lines(shown, [7], None, Pen(80, BLOCK))
    assert counting.asked == [7] * len(shown)
    assert len(shown) == (80 - 1) // 7


@given(st.integers(20, 220), st.integers(0, 40), st.integers(0, 299), st.booleans(), st.sampled_from([BLOCK, ASCII]))
def test_lines_are_exactly_as_wide_as_asked(width: int, shift: int, row: int, selected: bool, glyphs: object) -> None:
    assert glyphs in (BLOCK, ASCII)
    chars = BLOCK if glyphs == BLOCK else ASCII
    columns = chosen_columns(screen_columns(HLO_OPS, PAGE, chars), width, shift)
    for line in (
        header_line(columns, Pen(width, chars), "self"),
        *row_lines(columns, [row], row if selected else None, Pen(width, chars)),
    ):
        assert line_width(line) == width
        assert glyphs == BLOCK or plain(line).isascii()


def test_fixed_columns_stay_and_the_name_takes_the_rest() -> None:
    columns = screen_columns(HLO_OPS, PAGE, BLOCK)
    for width in (60, 80, 120, 200):
        for shift in (0, 3, most_shift(columns, width)):
            shown = chosen_columns(columns, width, shift)
            assert [column.title for column in shown[:4]] == ["", "time", "", "op"]
            assert sum(column.width + 1 for column in shown) + 1 == width


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_shifting_far_enough_shows_every_column(width: int) -> None:
    columns = screen_columns(HLO_OPS, PAGE, BLOCK)
    seen = set()
    for shift in range(most_shift(columns, width) + 1):
        seen |= {column.key for column in chosen_columns(columns, width, shift)}
    assert seen == {column.key for column in columns}


def test_the_selected_row_is_marked_and_keeps_its_class_colour() -> None:
    columns = chosen_columns(screen_columns(HLO_OPS, PAGE, BLOCK), 80)
    line = row_lines(columns, [0], 0, Pen(80, BLOCK))[0]
    assert line[0] == ("▸", "mark")
    assert line[1][1] == "class.vector"
    assert all(key == "cursor" for text, key in line[2:] if text.strip() and key not in ("class.vector", "text"))

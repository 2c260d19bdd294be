"""A canvas of lines."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tpuprof.tui.draw.spans import BLOCK
from tpuprof.tui.terminal.theme import AnyLine, palette
from tpuprof.tui.widgets.line_canvas import LineCanvas, ScreenLook, picture_of, strip_of


def test_nothing_is_drawn_for_no_cells() -> None:
    """Found by typing at random: a screen that is built anew has no size for a moment, and drawings divide cells."""
    asked: list[tuple[int, int]] = []

    def drawing(width: int, height: int) -> Sequence[AnyLine]:
        asked.append((width, height))
        return [(("x" * width, "text"),)]

    canvas = LineCanvas(ScreenLook(palette("mono", False), BLOCK), drawing)
    for width, height in ((0, 0), (0, 24), (80, 0), (80, 24)):
        canvas.prepare(width, height)
    assert asked == [(80, 24)]


def test_words_are_underlined_without_the_blanks_that_align_them() -> None:
    line: AnyLine = (("a", "text"), ("  8.2% ", "bad"), ("  ", "bad"), ("b", "on.view"), (" c ", "on.view"))
    strip = strip_of(line, 20, palette("16", True))
    drawn = [(segment.text, bool(segment.style and segment.style.underline)) for segment in strip]
    assert strip.text.rstrip() == "a  8.2%   b c"
    assert [text for text, is_underlined in drawn if is_underlined] == ["8.2%", "b c "]


@pytest.mark.parametrize("form", ["svg", "html"])
def test_what_is_around_a_picture_is_as_light_as_the_screen(form: str) -> None:
    lines = [strip_of((("a", "text"),), 9, palette("16", True))]
    light, dark = (picture_of(lines, 9, is_light, form, "a") for is_light in (True, False))
    assert "#ffffff" in light and "#292929" not in light and "#292929" in dark

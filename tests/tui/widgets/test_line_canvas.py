"""A canvas of lines."""

from __future__ import annotations

from collections.abc import Sequence

from tpuprof.tui.draw.spans import BLOCK
from tpuprof.tui.terminal.theme import AnyLine, palette
from tpuprof.tui.widgets.line_canvas import LineCanvas, ScreenLook


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

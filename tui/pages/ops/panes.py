"""Where things lie on the ops tab: list and card beside or below each other, and above them the names of the views."""

from __future__ import annotations

from collections.abc import Sequence

from tpuprof.parsers.base.record import dataclass
from tpuprof.tui.draw.pen import Pen, filled, gutter_lines, hstack
from tpuprof.tui.draw.spans import Line

WIDE = 112  # cells from which on the card stands beside the list
GUTTER = 3  # cells between list and card
TALL = 24  # rows from which on the card takes a third of them
LOW = 14  # rows of list and card below which there is no card; Enter opens it


@dataclass(frozen=True)
class Panes:
    """What draws the list and the card, and their lines; a card without room has none."""

    list_pen: Pen
    list_height: int
    card_pen: Pen
    card_height: int

    def joined(self, rows: Sequence[Line], card: Sequence[Line], pen: Pen) -> list[Line]:
        if pen.width >= WIDE:
            rule = gutter_lines(self.list_height, pen.glyphs)
            return hstack((rows, rule, card), (self.list_pen.width, GUTTER, self.card_pen.width))
        if not self.card_height:
            return [*rows]
        ruled: Line = ((pen.glyphs.horizontal * pen.width, "rule"),)
        return [*filled(rows, pen.width, self.list_height), ruled, *(((" ", "text"), *line) for line in card)]


def panes(pen: Pen, height: int, has_low_card: bool) -> Panes:
    """Where list and card lie in so many lines; `has_low_card`: the view has a card where there are few lines."""
    if pen.width >= WIDE:
        card = card_width(pen.width)
        return Panes(pen.at(pen.width - card - GUTTER), height, pen.at(card - 1), height)  # text ends before the edge
    card_height = 6 if height < TALL else height // 3
    if height < LOW or (height < TALL and not has_low_card):
        card_height = 0
    return Panes(pen, height - card_height - bool(card_height), pen.narrower(2), card_height)


def card_width(width: int) -> int:
    """Cells of the card beside the list."""
    return min(60, width * 2 // 5)

"""The waterfall from a device's peak to MFU, and the step by block and layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.pages.overview.model_use.blocks import NO_LAYER, NO_OP, BlockRow, Row
from tpuprof.parsers.pages.overview.model_use.model_use import PART_TITLES, ModelUse, UsePart
from tpuprof.tui.draw.format import binary_size, duration, percent
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import CLASS_STYLE, Line, Span, StyleKey, bare_bar

if TYPE_CHECKING:
    from tpuprof.parsers.pages.overview.model_use.page import ModelPage

_NAME, _FIGURES = 26, 22
_MOST_BAR = 60  # cells: with longer bars a figure would be far from its name
_OF_HFU: tuple[UsePart, ...] = ("recomputed", "passes", "other")

PART_CLASSES: Mapping[UsePart, OpClass] = {
    "idle": "idle",
    "input": "host",
    "waiting": "collective",
    "collectives": "collective",
    "transfers": "host",
    "copies": "copy",
    "uncounted": "unknown",
    "padding": "vector",
    "below_roof": "vector",
    "memory": "copy",
    "recomputed": "unknown",
    "passes": "unknown",
    "other": "unknown",
    "mfu": "compute",
}
"""The class of ops whose colour each part has."""


def waterfall(use: ModelUse, pen: Pen) -> list[Line]:
    """A line for each part, from the peak down, with HFU where more than MFU is left; none where HFU is unknown."""
    if not use.parts:
        return []
    left, is_over, hfu = 0.0, False, use.hfu or 0.0
    lines = [_line("peak", 1.0, use.step_ps, (0.0, 1.0), "dim", pen)]
    for part in use.parts:
        if not is_over and part.part in _OF_HFU:
            is_over = True
            lines.append(_line("HFU", hfu, hfu * (use.step_ps or 0.0), (left, 1.0), "dim", pen))
        ends, style = (left, left + part.fraction), CLASS_STYLE[PART_CLASSES[part.part]]
        lines.append(_line(PART_TITLES[part.part], part.fraction, part.time_ps, ends, style, pen))
        left = ends[1]
    return lines


def _line(
    name: str, fraction: float, time_ps: float | None, ends: tuple[float, float], style: StyleKey, pen: Pen
) -> Line:
    room = min(max(pen.width - _NAME - _FIGURES, 4), _MOST_BAR)
    begin, end = (min(max(round(at * room), 0), room) for at in ends)
    bar = pen.glyphs.full * max(end - begin, 1 if fraction > 0 else 0)
    figures = f"{duration(time_ps, pen.glyphs.is_ascii):>10} {percent(100 * fraction):>8}"
    blank = " " * max(room - min(begin, room - 1) - len(bar), 0)
    before = f" {name:<{_NAME - 1}}" + " " * min(begin, room - 1)
    return pen.fit([(before, "text"), (bar, style), (blank + figures, "text")])


BLOCK_CLASSES: Mapping[Row, OpClass] = {
    "embedding": "copy",
    "attention": "compute",
    "mlp": "compute",
    "router": "collective",
    "norm": "vector",
    "loss": "compute",
    "optimizer": "vector",
    "other": "copy",
    "unknown": "unknown",
    NO_OP: "idle",
}
"""The class of ops whose colour each block has: that of most of its work."""

_BLOCK_NAME, _PASS, _LAYER = 11, 11, 20
_NUMBERS: tuple[tuple[str, int], ...] = (("time", 10), ("share", 8), ("of peak", 9), ("HBM", 11), ("by name", 9))


def model_lines(page: ModelPage, most: int, pen: Pen) -> list[Line]:
    """The blocks and the layers, each under its heading; nothing where they are unknown."""
    return [*block_lines(page, pen), *layer_lines(page, most, pen)]


def block_lines(page: ModelPage, pen: Pen, cursor: int | None = None) -> list[Line]:
    """The blocks: two headings, and a line for each block and pass; nothing where they are unknown."""
    return [pen.rule("Blocks of the mean step"), *_block_rows(page.blocks, pen, cursor)] if page.blocks else []


def layer_lines(page: ModelPage, most: int, pen: Pen) -> list[Line]:
    """The layers, at most so many rows, 0 for all; nothing where no op names one."""
    names = {row.layer for row in page.layers} - {NO_LAYER}
    if not names:
        return []
    shown = page.layers[:most] if most else page.layers
    lines = [pen.rule("Layers", counted(len(names), "layer")), *_layer_rows(shown, pen)]
    if len(shown) < len(page.layers):
        lines.append(pen.fit([(f" {len(page.layers) - len(shown):,} more rows: --limit 0 shows all", "dim")]))
    return lines


def _block_rows(rows: Sequence[BlockRow], pen: Pen, cursor: int | None) -> list[Line]:
    names: list[list[Span]] = [
        [(f"{row.block:<{_BLOCK_NAME}}", "text"), (f"{row.phase or '':<{_PASS}}", "dim")] for row in rows
    ]
    return _rows(f"{'block':<{_BLOCK_NAME}}{'pass':<{_PASS}}", rows, names, pen, cursor)


def _layer_rows(rows: Sequence[BlockRow], pen: Pen) -> list[Line]:
    names = []
    for row in rows:
        layer = pen.at(_LAYER - 1).fit([(row.layer or "", "dim")])
        names.append([*layer, (" ", "text"), (f"{row.block:<{_BLOCK_NAME}}", "text")])
    return _rows(f"{'layer':<{_LAYER}}{'block':<{_BLOCK_NAME}}", rows, names, pen, None)


def _rows(
    head: str, rows: Sequence[BlockRow], names: Sequence[Sequence[Span]], pen: Pen, cursor: int | None
) -> list[Line]:
    width = 1 + len(head)
    numbers = list(_NUMBERS)
    while len(numbers) > 2 and pen.width - width - sum(cells for _, cells in numbers) < 8:
        numbers.pop()
    room = min(max(pen.width - width - sum(cells for _, cells in numbers) - 1, 4), _MOST_BAR)
    longest = max((row.fraction for row in rows), default=0.0) or 1.0
    titles = "".join(f"{title:>{cells}}" for title, cells in numbers)
    lines = [pen.fit([(f" {head}{'':<{room}}{titles}", "dim")])]
    for at, (row, name) in enumerate(zip(rows, names, strict=True)):
        bar: Span = (
            f"{bare_bar(row.fraction / longest, room - 2, pen.glyphs):<{room}}",
            CLASS_STYLE[BLOCK_CLASSES[row.block]],
        )
        figures = [
            duration(row.time_ps, pen.glyphs.is_ascii),
            percent(100 * row.fraction),
            percent(None if row.peak_fraction is None else 100 * row.peak_fraction),
            binary_size(None if row.hbm_bytes is None else round(row.hbm_bytes)),
            percent(100 * row.by_name_ps / row.time_ps) if row.time_ps and row.block != NO_OP else "",
        ]
        words = "".join(f"{figure:>{cells}}" for figure, (_, cells) in zip(figures, numbers, strict=False))
        mark: Span = (pen.glyphs.mark, "mark") if cursor == at else (" ", "text")
        lines.append(pen.fit([mark, *name, bar, (words, "text")]))
    return lines

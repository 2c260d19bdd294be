"""Colours of the classes of ops, and bars in cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from tpuprof.parsers.base.op_class import OpClass
from tpuprof.tui.draw.spans import ClassStyle, Glyphs, OnClassStyle, StyleKey

_ASCII_LEAST = 3  # eighths from which on a cell of an ASCII bar differs from its empty part
CLASS_STYLE: dict[OpClass, StyleKey] = dict(zip(get_args(OpClass), get_args(ClassStyle), strict=True))
ON_CLASS_STYLE: dict[OpClass, StyleKey] = dict(zip(get_args(OpClass), get_args(OnClassStyle), strict=True))


def small_bar(share: float, cells: int, glyphs: Glyphs) -> tuple[str, str]:
    """The filled and the empty part of a small horizontal bar for a share of 0-1; what is not zero shows."""
    filled = bare_bar(share, cells, glyphs)
    empty = "." if glyphs.is_ascii else glyphs.horizontal
    return filled, empty * (cells - len(filled))


def bare_bar(share: float, cells: int, glyphs: Glyphs) -> str:
    """A bar for a share of 0-1 of so many cells, to an eighth of a cell; what is not zero shows."""
    eighths = max(1, round(min(1.0, share) * cells * 8)) if share > 0 else 0
    full, rest = divmod(eighths, 8)
    if glyphs.is_ascii and rest < _ASCII_LEAST:
        rest = 0 if full or not rest else _ASCII_LEAST
    return glyphs.full * full + (glyphs.bar[rest] if rest else "")


def whole_cells(sizes: Sequence[float], width: int) -> list[int]:
    """Whole cells for each size by largest remainder; what is not zero has one where there is room for all."""
    filled = [size for size in sizes if size > 0]
    least = 1 if len(filled) <= width else 0
    room, whole = width - least * len(filled), sum(filled)
    exact = [size / whole * room if whole > 0 and size > 0 else 0.0 for size in sizes]
    cells = [int(value) for value in exact]
    behind = sorted(range(len(sizes)), key=lambda index: (cells[index] - exact[index], index))
    for index in behind[: max(0, room - sum(cells)) if whole > 0 else 0]:
        cells[index] += 1
    return [value + (least if size > 0 else 0) for value, size in zip(cells, sizes, strict=True)]

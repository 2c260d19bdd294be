"""What an array takes after a change: with an axis of another length, or in a narrower type, padding included.

The compiler is taken to keep the layout. What it rounds up then follows from the layout's first tile: its last number
from the most minor axis (the lanes), the one before from the next (the rows). Compilers give an array with few rows a
tile of fewer, (4,128) for three and (1,128) for one, down to as many as are packed into 4 bytes: (2,128) of bfloat16.
So the same array in bfloat16 takes half of what it takes in float32 unless it has a single row. An array of one axis is
tiled by 1024 elements, short ones by 512 bytes: 128 of float32, 256 of bfloat16.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from tpuprof.parsers.formats.hlo.shapes import round_up
from tpuprof.parsers.memory.oom.advice.roles import Item

_SHORTEST = 256
"""Elements of bfloat16 that a short array of one axis is rounded up to."""

_PACKED = {"bf16": 2, "f16": 2, "s16": 2, "u16": 2, "s8": 4, "u8": 4, "pred": 4}
"""Rows that are packed into one of 4 bytes; fewer than that make no tile."""


@dataclass(frozen=True, slots=True)
class Rounding:
    """How the length of an axis is rounded up.

    Attributes:
        multiple: to a multiple of this.
        least: a shorter axis gets a tile of so many at least, or of the next power of two.
        length: the axis as it is.
    """

    multiple: int
    least: int
    length: int

    def rounded(self, length: int) -> int:
        """What an axis of another length takes; never less for a longer one."""
        if length >= self.length:
            return round_up(length, self.multiple)
        return round_up(length, min(self.multiple, max(self.least, 1 << max(0, length - 1).bit_length())))

    def scaled(self, size: int, length: int) -> int:
        """Bytes of an array of `size` bytes once the axis has another length."""
        now = self.rounded(self.length)
        return -(-size * self.rounded(length) // now) if now else size


def rounding(item: Item, axis: int) -> Rounding:
    """How an axis of the whole array, the layers' included, is rounded; not at all where the layout is unknown."""
    shape, length = item.shape, item.whole_dims[axis]
    if shape is None or not shape.tiles or shape.padded_dimensions is None:
        return Rounding(1, 1, length)
    tile, place = shape.tiles[0], shape.minor_to_major.index(axis)
    if place >= len(tile):
        return Rounding(1, 1, length)
    multiple = tile[-1 - place]
    least = _PACKED.get(item.element, 1) if place == 1 and len(tile) == 2 else multiple
    return Rounding(multiple, least, length)


def resized(item: Item, axis: int, length: int) -> int:
    """Bytes of a buffer once an axis of its array has another length."""
    return rounding(item, axis).scaled(item.size, length)


def half(item: Item) -> int:
    """Bytes of an array in float32 once it is in bfloat16; all of them where padding takes what that saves."""
    shape, size = item.shape, -(-item.size // 2)
    if shape is None or not shape.tiles or shape.padded_dimensions is None or not shape.dimensions:
        return size
    tile = shape.tiles[0]
    if len(tile) == 1:
        count = shape.padded_dimensions[shape.minor_to_major[0]]
        grown = round_up(count, _SHORTEST) if tile[0] < _SHORTEST else count
    elif len(tile) == 2 and tile[0] == 1 and len(shape.dimensions) > 1:
        count = shape.padded_dimensions[shape.minor_to_major[1]]
        grown = round_up(count, _PACKED["bf16"])
    else:
        return size
    return min(item.size, -(-item.size * grown // (2 * count))) if count else size


def halved(items: Iterable[Item]) -> dict[int, int]:
    """What is left of those in float32 once they are in bfloat16: index to bytes."""
    return {item.index: half(item) for item in items if item.element == "f32"}


def bare(item: Item) -> int:
    """Bytes of a buffer's elements without padding, by its shape; its size where that is unknown."""
    padded = item.shape.padded_dimensions if item.shape is not None else None
    whole = math.prod(padded) if padded else 0
    return -(-item.size * math.prod(item.whole_dims) // whole) if whole else item.size

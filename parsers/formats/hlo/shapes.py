"""Array shapes with XLA's layouts, and how many bytes they take with padding.

A layout orders the dimensions from minor to major and may tile them. The first tile applies to the most minor
dimensions: each is rounded up to a multiple of the tile's, which is all the padding there is. The array is then a
larger one (how many tiles, then the places in a tile), and each further tile, such as the ``(2,1)`` of bfloat16,
reorders the most minor dimensions of that. XLA counts on further tiles to divide what they reorder and adds nothing
for them (`ShapeUtil::ArraySize`); where one does not divide, the size is unknown here. A tile with more dimensions
than the array treats the missing ones as 1, so a scalar with ``T(128)`` takes 128 elements.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from math import prod
from typing import TYPE_CHECKING

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.regex import pattern

if TYPE_CHECKING:
    from tpuprof.parsers.formats.proto import hlo_pb2


COMBINE = -(2**63)
"""A tile dimension, ``*`` in text, that merges a dimension with the next more minor one; rare, and not sized here."""

_Ints = tuple[int, ...]

MOST_TEXT = 20_000
"""How many characters of an HLO text are read for shapes; the result and the operands come first."""

HOST_MEMORY = 5  # memory space of the host in layouts
_LIMIT = 2**63  # XLA's sizes and dimensions are int64
_MAX_RANK = 256

# XLA's PrimitiveType, by number; "-" for what is no array's, such as tuples and buffers.
_PRIMITIVE_TYPES = (
    "- pred s8 s16 s32 s64 u8 u16 u32 u64 f16 f32 f64 - opaque c64 bf16 token c128 f8e5m2 f8e4m3fn s4 u4 f8e4m3b11fnuz"
    " f8e5m2fnuz f8e4m3fnuz s2 u2 f8e4m3 f8e3m4 s1 u1 f4e2m1fn f8e8m0fnu - f6e3m2fn f6e2m3fn"
)
_TYPES = {number: name for number, name in enumerate(_PRIMITIVE_TYPES.split()) if name != "-"}
_TUPLE, _BUFFER = 13, 34
_BITS = {name: int(bits[0]) for name in _TYPES.values() if (bits := re.search("[0-9]+", name))}
_BITS |= {"pred": 8, "opaque": 0, "token": 0}
"""Bits of an element by type; 0 where it has no data that a program can size."""

# Heads cannot overlap and no part of a layout can hold a bracket, so a text is walked over once whatever is in it.
_ARRAY_TEXT = (
    f"({'|'.join(sorted(_BITS, key=len, reverse=True))})"
    r"\[([0-9,<=? ]{0,8192})\](?:\{([^{}\[\]\"]{0,4096})\})?"
)
_ARRAY = pattern(_ARRAY_TEXT)
_ARRAY_OR_QUOTED = pattern(r'"(?:[^"\\]|\\.?)*"?|(?<![\w.%\-])' + _ARRAY_TEXT, re.DOTALL)
_DIMENSION = pattern(r"(<=)?([0-9]{1,19})")
_ATTRIBUTE = pattern(r"([A-Z]+|#|\*)((?:\([^()]*\))+)")
_GROUP = pattern(r"\(([^()]*)\)")
_SIZE_UNKNOWN = pattern(r"(?:^|\))(?:D|SC|P|M)\(")


@dataclass(frozen=True, slots=True)
class Shape:
    """One array's type, dimensions and layout.

    Attributes:
        element_type: XLA's name, such as ``f32``, ``bf16`` or ``pred``.
        dimensions: major to minor as the program sees them; the upper bound of a dynamic one.
        minor_to_major: dimension numbers, most minor first; empty for a scalar, and where the layout is not stated.
        tiles: the layout's tiles, each with its dimensions as written; see the module's text.
        memory_space: 0 HBM, 1 VMEM, 2 SFlag, 4 SMEM, 5 host memory; others are a chip's own.
        element_bits: bits that an element takes where the layout says so, ``E(4)`` for packed 4-bit numbers; else 0.
        tail_alignment: the element count is rounded up to a multiple of this, ``L(n)``.
        dynamic: for each dimension whether it is a bound, ``<=8``; empty where none is.
        other: further attributes of the layout as written, such as ``SC(0:128)``.
    """

    element_type: str
    dimensions: tuple[int, ...] = ()
    minor_to_major: tuple[int, ...] = ()
    tiles: tuple[tuple[int, ...], ...] = ()
    memory_space: int = 0
    element_bits: int = 0
    tail_alignment: int = 1
    dynamic: tuple[bool, ...] = ()
    other: str = ""

    def __str__(self) -> str:
        """XLA's own notation; `parse_shape` reads it back."""
        bounds = zip_longest(self.dimensions, self.dynamic, fillvalue=False)
        dims = ",".join(f"<={size}" if is_bound else str(size) for size, is_bound in bounds)
        attributes = "T" + "".join(map(_tile_text, self.tiles)) if self.tiles else ""
        attributes += f"L({self.tail_alignment})" if self.tail_alignment != 1 else ""
        attributes += f"E({self.element_bits})" if self.element_bits else ""
        attributes += f"S({self.memory_space})" if self.memory_space else ""
        attributes += self.other
        layout = ",".join(map(str, self.minor_to_major)) + (f":{attributes}" if attributes else "")
        return f"{self.element_type}[{dims}]" + (f"{{{layout}}}" if layout else "")

    @property
    def plain(self) -> str:
        """``f32[8,128]``: without its layout, and with the bounds of dynamic dimensions as sizes."""
        return plain_shape(self.element_type, self.dimensions)

    @property
    def is_in_host_memory(self) -> bool:
        return self.memory_space == HOST_MEMORY

    @property
    def memory_bytes(self) -> int | None:
        """`padded_bytes`, or `unpadded_bytes` where the layout is not known."""
        return self.padded_bytes or self.unpadded_bytes

    @property
    def layout_known(self) -> bool:
        """Whether the order of the dimensions is stated; a scalar's always is."""
        return sorted(self.minor_to_major) == list(range(len(self.dimensions)))

    @property
    def unpadded_bytes(self) -> int | None:
        """Bytes of the elements alone: product of the dimensions times bits, rounded up to whole bytes.

        Four-bit numbers count half a byte, packed or not. None for tokens and for what no int64 holds.
        """
        bits = _BITS.get(self.element_type, 0)
        if self.element_bits:
            bits = min(bits, self.element_bits)
        return _bytes(prod(self.dimensions), bits)

    @property
    def padded_dimensions(self) -> tuple[int, ...] | None:
        """The dimensions, in their own order, each rounded up by the first tile; () for a scalar.

        None where the layout is not stated, or has something that this does not model.
        """
        if not self.layout_known or _SIZE_UNKNOWN.search(self.other):
            return None
        tile = self.tiles[0] if self.tiles else ()
        if any(size <= 0 for size in tile):
            return None
        padded = list(self.dimensions)
        for number, size in zip(self.minor_to_major, reversed(tile), strict=False):
            padded[number] = round_up(padded[number], size)
        return tuple(padded)

    @property
    def padded_bytes(self) -> int | None:
        """Bytes that the array takes in memory as its layout says, padding included.

        An element takes `element_bits`, or else whole bytes. Without tiles there is no padding by the layout; TPU
        compilers still give some untiled scalars a buffer of 1,024 elements. None as for `padded_dimensions`, and
        where a further tile does not divide the array.
        """
        dims = self.padded_dimensions
        if dims is None or not self._further_tiles_divide():
            return None
        tile = self.tiles[0] if self.tiles else ()
        count = prod(dims) * prod(tile[: max(0, len(tile) - len(dims))])
        count = round_up(count, max(1, self.tail_alignment))
        bits = _BITS.get(self.element_type, 0)
        return _bytes(count, self.element_bits or round_up(bits, 8)) if bits else None

    @property
    def expansion(self) -> float | None:
        """`padded_bytes` over `unpadded_bytes`, 1.0 without padding; None where either is unknown or there is none."""
        padded, unpadded = self.padded_bytes, self.unpadded_bytes
        return padded / unpadded if padded is not None and unpadded else None

    def _further_tiles_divide(self) -> bool:
        """Whether each tile after the first divides the dimensions that the tiles before it leave."""
        # of the first tile's result only its most minor part, the tile itself, can meet a further tile
        physical = list(self.tiles[0]) if self.tiles else []
        for tile in self.tiles[1:]:
            if len(tile) > len(physical) or any(size <= 0 for size in tile):
                return False
            start = len(physical) - len(tile)
            if any(size % part for size, part in zip(physical[start:], tile, strict=True)):
                return False
            physical[start:] = [size // part for size, part in zip(physical[start:], tile, strict=True)] + list(tile)
        return True


@dataclass(frozen=True, slots=True)
class FoundShape:
    """A shape in a longer text, at ``text[begin:end]``."""

    shape: Shape
    begin: int
    end: int


def parse_shape(text: str) -> Shape | None:
    """Reads one array shape in XLA's notation, ``f32[4,512]{1,0:T(4,128)(2,1)S(1)}``.

    None for tuples, for what is no shape, and for a layout that contradicts itself. Never raises.
    """
    match = _ARRAY.fullmatch(text.strip())
    return None if match is None else _shape(match)


def shapes_in(text: str) -> tuple[FoundShape, ...]:
    """Every array shape in an HLO expression, in order, those of tuples one by one; time is linear in the text.

    It skips quoted texts and shapes that `parse_shape` cannot read.
    """
    shapes: list[FoundShape] = []
    for match in _ARRAY_OR_QUOTED.finditer(text):
        odd_layout = not match[0].endswith("}") and text.startswith("{", match.end())
        if match[0].startswith('"') or odd_layout:
            continue
        shape = _shape(match)
        if shape is not None:
            shapes.append(FoundShape(shape, match.start(), match.end()))
    return tuple(shapes)


def is_in_host_memory(expression: str) -> bool:
    """Whether an array of an op lies in the host's memory, by the layouts in its HLO text."""
    text = expression[:MOST_TEXT]
    return f"S({HOST_MEMORY})" in text and any(found.shape.is_in_host_memory for found in shapes_in(text))


def plain_shape(element_type: str, dimensions: Iterable[int]) -> str:
    """``f32[8,128]``."""
    return f"{element_type}[{','.join(map(str, dimensions))}]"


def elements(shape: hlo_pb2.ShapeProto) -> int:
    """How many elements an array has."""
    return prod(shape.dimensions)


def element_bits(proto: hlo_pb2.ShapeProto) -> int:
    """Bits of an array's element; 0 where it has none or its type is unknown."""
    return _BITS.get(_TYPES.get(proto.element_type, ""), 0)


def element_type(proto: hlo_pb2.ShapeProto) -> str:
    """XLA's name of an array's type, such as ``bf16``; empty for what is no array's."""
    return _TYPES.get(proto.element_type, "")


def shape_of_proto(proto: hlo_pb2.ShapeProto) -> Shape | None:
    """The array shape that a proto holds; None for tuples, unknown types and layouts that contradict themselves."""
    known, layout = _TYPES.get(proto.element_type), proto.layout
    numbers = (layout.memory_space, layout.element_size_in_bits, layout.tail_padding_alignment_in_elements)
    if known is None or min(numbers) < 0:
        return None
    order, tiles = tuple(layout.minor_to_major), tuple(tuple(tile.dimensions) for tile in layout.tiles)
    return _checked(known, tuple(proto.dimensions), tuple(proto.is_dynamic_dimension), order, tiles, numbers)


def shape_to_proto(shape: Shape, proto: hlo_pb2.ShapeProto) -> None:
    """Puts an array shape into an empty proto, so that `shape_of_proto` reads it back but for `Shape.other`."""
    proto.element_type = _PRIMITIVE_TYPES.split().index(shape.element_type)
    proto.dimensions.extend(shape.dimensions)
    proto.is_dynamic_dimension.extend(shape.dynamic)
    layout = proto.layout
    layout.minor_to_major.extend(shape.minor_to_major)
    for tile in shape.tiles:
        layout.tiles.add(dimensions=tile)
    layout.memory_space, layout.element_size_in_bits = shape.memory_space, shape.element_bits
    layout.tail_padding_alignment_in_elements = shape.tail_alignment


def shape_text(proto: hlo_pb2.ShapeProto) -> str:
    """XLA's notation of any shape, tuples included; ``?`` for what can't be read."""
    if proto.element_type in (_TUPLE, _BUFFER):
        parts = ", ".join(shape_text(part) for part in proto.tuple_shapes)  # protobuf limits the depth
        return f"b({parts})" if proto.element_type == _BUFFER else f"({parts})"
    shape = shape_of_proto(proto)
    return "?" if shape is None else str(shape)


def _shape(array: re.Match[str]) -> Shape | None:
    """Reads what `_ARRAY` matched."""
    element_type, dims_text, layout = array.groups("")
    parts = dims_text.split(",") if dims_text.strip() else []
    sizes = [size for part in parts if (size := _DIMENSION.fullmatch(part.strip()))]
    dims, dynamic = tuple(int(size[2]) for size in sizes), tuple(size[1] is not None for size in sizes)
    order_text, _, attributes = layout.partition(":")
    order, read = _numbers(order_text), _attributes(attributes)
    if len(sizes) != len(parts) or order is None or read is None:
        return None
    return _checked(element_type, dims, dynamic, order, *read)


def _checked(
    element_type: str,
    dims: _Ints,
    dynamic: tuple[bool, ...],
    order: _Ints,
    tiles: tuple[_Ints, ...],
    numbers: tuple[int, int, int],
    other: str = "",
) -> Shape | None:
    """The shape where dimensions fit int64 and the order, where stated, names each once; `numbers` of S, E and L."""
    fits = len(dims) <= _MAX_RANK and all(0 <= size < _LIMIT for size in dims)
    if not fits or (order and sorted(order) != list(range(len(dims)))) or not all(tiles):
        return None
    bounds = dynamic if any(dynamic) and len(dynamic) == len(dims) else ()
    space, bits, tail = numbers
    return Shape(element_type, dims, order, tiles, space, bits, tail or 1, bounds, other)


def _attributes(text: str) -> tuple[tuple[_Ints, ...], tuple[int, int, int], str] | None:
    """Tiles, numbers of S, E and L, others of a layout behind its colon; None where that does not read to its end."""
    tiles: tuple[_Ints, ...] = ()
    numbers = {"S": 0, "E": 0, "L": 0}
    other, offset = "", 0
    while offset < len(text):
        match = _ATTRIBUTE.match(text, offset)
        if match is None:
            return None
        offset, groups = match.end(), _GROUP.findall(match[2])
        if match[1] == "T":
            tile_sizes = [_numbers(group.replace("*", str(COMBINE))) for group in groups]
            tiles += tuple(tile for tile in tile_sizes if tile)
            if not all(tile_sizes):
                return None
        elif match[1] in numbers:
            value = _numbers(groups[0])
            if value is None or len(value) != 1 or len(groups) != 1 or value[0] < 0:
                return None
            numbers[match[1]] = value[0]
        else:
            other += match[0]
    return tiles, (numbers["S"], numbers["E"], numbers["L"]), other


def _numbers(text: str) -> _Ints | None:
    """Numbers with commas between; None where one is no number or too long for an int64."""
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    if any(len(part) > 20 or not re.fullmatch(r"-?[0-9]+", part) for part in parts):
        return None
    values = tuple(int(part) for part in parts)
    return values if all(-_LIMIT <= value < _LIMIT for value in values) else None


def _tile_text(tile: Sequence[int]) -> str:
    return "(" + ",".join("*" if size == COMBINE else str(size) for size in tile) + ")"


def round_up(value: int, multiple: int) -> int:
    """The next multiple that is not below a value."""
    return -(-value // multiple) * multiple


def _bytes(count: int, bits: int) -> int | None:
    """Bytes of `count` elements; None for types without a size and for more than an int64 holds."""
    total = -(-count * bits // 8)
    return total if bits and max(count, total) < _LIMIT else None

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
from dataclasses import dataclass

from tpuprof.parsers.formats.proto import hlo_pb2

COMBINE = -(2**63)
"""A tile dimension, ``*`` in text, that merges a dimension with the next more minor one; rare, and not sized here."""

_LIMIT = 2**63  # XLA's sizes and dimensions are int64
_MAX_RANK = 256

_TYPES: dict[int, tuple[str, int]] = {
    1: ("pred", 8),
    2: ("s8", 8),
    3: ("s16", 16),
    4: ("s32", 32),
    5: ("s64", 64),
    6: ("u8", 8),
    7: ("u16", 16),
    8: ("u32", 32),
    9: ("u64", 64),
    10: ("f16", 16),
    11: ("f32", 32),
    12: ("f64", 64),
    14: ("opaque", 0),
    15: ("c64", 64),
    16: ("bf16", 16),
    17: ("token", 0),
    18: ("c128", 128),
    19: ("f8e5m2", 8),
    20: ("f8e4m3fn", 8),
    21: ("s4", 4),
    22: ("u4", 4),
    23: ("f8e4m3b11fnuz", 8),
    24: ("f8e5m2fnuz", 8),
    25: ("f8e4m3fnuz", 8),
    26: ("s2", 2),
    27: ("u2", 2),
    28: ("f8e4m3", 8),
    29: ("f8e3m4", 8),
    30: ("s1", 1),
    31: ("u1", 1),
    32: ("f4e2m1fn", 4),
    33: ("f8e8m0fnu", 8),
    35: ("f6e3m2fn", 6),
    36: ("f6e2m3fn", 6),
}
"""XLA's PrimitiveType: number to name and bits of an element (0: it has no data that a program can size)."""

_TUPLE, _BUFFER = 13, 34
_BITS = dict(_TYPES.values())

# Heads cannot overlap and no part of a layout can hold a bracket, so a text is walked over once whatever is in it.
_ARRAY_TEXT = (
    r"(?:" + "|".join(sorted(_BITS, key=len, reverse=True)) + r")\[[0-9,<=? ]{0,8192}\](?:\{[^{}\[\]\"]{0,4096}\})?"
)
_ARRAY = re.compile(_ARRAY_TEXT)
_ARRAY_OR_QUOTED = re.compile(r'"(?:[^"\\]|\\.?)*"?|(?<![\w.%\-])' + _ARRAY_TEXT, re.DOTALL)
_DIMENSION = re.compile(r"(<=)?([0-9]{1,19})")
_ATTRIBUTE = re.compile(r"([A-Z]+|#|\*)((?:\([^()]*\))+)")
_GROUP = re.compile(r"\(([^()]*)\)")
_SIZE_UNKNOWN = re.compile(r"(?:^|\))(?:D|SC|P|M)\(")


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
        bounds = self.dynamic or (False,) * len(self.dimensions)
        dims = ",".join(
            f"<={size}" if bound else str(size) for size, bound in zip(self.dimensions, bounds, strict=False)
        )
        attributes = "T" + "".join(_tile_text(tile) for tile in self.tiles) if self.tiles else ""
        attributes += f"L({self.tail_alignment})" if self.tail_alignment != 1 else ""
        attributes += f"E({self.element_bits})" if self.element_bits else ""
        attributes += f"S({self.memory_space})" if self.memory_space else ""
        attributes += self.other
        layout = ",".join(str(number) for number in self.minor_to_major) + (f":{attributes}" if attributes else "")
        return f"{self.element_type}[{dims}]" + (f"{{{layout}}}" if layout else "")

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
        return _bytes(_product(self.dimensions), bits)

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
        count = _product(dims)
        if count is None:
            return None
        if self.tiles:
            for size in self.tiles[0][: max(0, len(self.tiles[0]) - len(dims))]:
                count *= size
        if self.tail_alignment > 1:
            count = round_up(count, self.tail_alignment)
        bits = _BITS.get(self.element_type, 0)
        return _bytes(count, self.element_bits or round_up(bits, 8)) if bits else None

    @property
    def expansion(self) -> float | None:
        """`padded_bytes` over `unpadded_bytes`, 1.0 without padding; None where either is unknown or there is none."""
        padded, unpadded = self.padded_bytes, self.unpadded_bytes
        return padded / unpadded if padded is not None and unpadded else None

    def _further_tiles_divide(self) -> bool:
        """Whether each tile after the first divides the dimensions that the tiles before it leave."""
        if len(self.tiles) < 2:
            return True
        # of the first tile's result only its most minor part, the tile itself, can meet a further tile
        physical = list(self.tiles[0])
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
    text = text.strip()
    match = _ARRAY.fullmatch(text)
    return None if match is None else _shape(match[0])


def shapes_in(text: str) -> tuple[FoundShape, ...]:
    """Every array shape in an HLO expression, in order, those of tuples one by one; time is linear in the text.

    It skips quoted texts and shapes that `parse_shape` cannot read.
    """
    shapes: list[FoundShape] = []
    for match in _ARRAY_OR_QUOTED.finditer(text):
        odd_layout = not match[0].endswith("}") and text.startswith("{", match.end())
        if match[0].startswith('"') or odd_layout:
            continue
        shape = _shape(match[0])
        if shape is not None:
            shapes.append(FoundShape(shape, match.start(), match.end()))
    return tuple(shapes)


def element_bits(proto: hlo_pb2.ShapeProto) -> int:
    """Bits of an array's element; 0 where it has none or its type is unknown."""
    return _TYPES.get(proto.element_type, ("", 0))[1]


def shape_of_proto(proto: hlo_pb2.ShapeProto) -> Shape | None:
    """The array shape that a proto holds; None for tuples, unknown types and layouts that contradict themselves."""
    known = _TYPES.get(proto.element_type)
    dims, layout = tuple(proto.dimensions), proto.layout
    order = tuple(layout.minor_to_major)
    tiles = tuple(tuple(tile.dimensions) for tile in layout.tiles)
    space, bits, tail = layout.memory_space, layout.element_size_in_bits, layout.tail_padding_alignment_in_elements
    if known is None or not _plausible(dims, order, tiles) or min(space, bits, tail) < 0:
        return None
    dynamic = tuple(proto.is_dynamic_dimension)
    return Shape(
        element_type=known[0],
        dimensions=dims,
        minor_to_major=order,
        tiles=tiles,
        memory_space=space,
        element_bits=bits,
        tail_alignment=tail or 1,
        dynamic=dynamic if any(dynamic) and len(dynamic) == len(dims) else (),
    )


def shape_text(proto: hlo_pb2.ShapeProto) -> str:
    """XLA's notation of any shape, tuples included; ``?`` for what can't be read."""
    if proto.element_type in (_TUPLE, _BUFFER):
        parts = ", ".join(shape_text(part) for part in proto.tuple_shapes)  # protobuf limits the depth
        return f"b({parts})" if proto.element_type == _BUFFER else f"({parts})"
    shape = shape_of_proto(proto)
    return "?" if shape is None else str(shape)


def _shape(text: str) -> Shape | None:
    """Reads what `_ARRAY` matched."""
    element_type, _, rest = text.partition("[")
    dims_text, _, layout = rest.partition("]")
    sizes = [_DIMENSION.fullmatch(part.strip()) for part in dims_text.split(",")] if dims_text.strip() else []
    dims = tuple(int(match[2]) for match in sizes if match is not None)
    order_text, _, attributes = layout.strip("{}").partition(":")
    order = _numbers(order_text)
    if len(dims) != len(sizes) or order is None:
        return None
    dynamic = tuple(match is not None and match[1] is not None for match in sizes)
    read = _attributes(attributes)
    if read is None or not _plausible(dims, order, read.tiles):
        return None
    return Shape(
        element_type=element_type,
        dimensions=dims,
        minor_to_major=order,
        tiles=read.tiles,
        memory_space=read.numbers.get("S", 0),
        element_bits=read.numbers.get("E", 0),
        tail_alignment=read.numbers.get("L", 1) or 1,
        dynamic=dynamic if any(dynamic) else (),
        other=read.other,
    )


@dataclass(frozen=True, slots=True)
class _Attributes:
    tiles: tuple[tuple[int, ...], ...]
    numbers: dict[str, int]
    other: str


def _attributes(text: str) -> _Attributes | None:
    """The part of a layout behind the colon; None where it does not read as attributes to its end."""
    tiles: tuple[tuple[int, ...], ...] = ()
    numbers: dict[str, int] = {}
    other: list[str] = []
    offset = 0
    while offset < len(text):
        match = _ATTRIBUTE.match(text, offset)
        if match is None:
            return None
        offset = match.end()
        groups = _GROUP.findall(match[2])
        if match[1] == "T":
            tile_sizes = [_numbers(group.replace("*", str(COMBINE))) for group in groups]
            tiles += tuple(tile for tile in tile_sizes if tile)
            if not all(tile_sizes):
                return None
        elif match[1] in ("S", "E", "L"):
            value = _numbers(groups[0])
            if value is None or len(value) != 1 or len(groups) != 1 or value[0] < 0:
                return None
            numbers[match[1]] = value[0]
        else:
            other.append(match[0])
    return _Attributes(tiles, numbers, "".join(other))


def _numbers(text: str) -> tuple[int, ...] | None:
    """Numbers with commas between; None where one is no number or too long for an int64."""
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    if any(len(part) > 20 or not re.fullmatch(r"-?[0-9]+", part) for part in parts):
        return None
    values = tuple(int(part) for part in parts)
    return values if all(-_LIMIT <= value < _LIMIT for value in values) else None


def _plausible(dims: Sequence[int], order: Sequence[int], tiles: Iterable[Sequence[int]]) -> bool:
    """Whether dimensions fit int64 and the order, where stated, names each of them once."""
    fits = len(dims) <= _MAX_RANK and all(0 <= size < _LIMIT for size in dims)
    return fits and (not order or sorted(order) == list(range(len(dims)))) and all(len(tile) > 0 for tile in tiles)


def _tile_text(tile: Sequence[int]) -> str:
    return "(" + ",".join("*" if size == COMBINE else str(size) for size in tile) + ")"


def round_up(value: int, multiple: int) -> int:
    """The next multiple that is not below a value."""
    return -(-value // multiple) * multiple


def _product(dims: Sequence[int]) -> int | None:
    """Product of the dimensions; None where it exceeds an int64."""
    if 0 in dims:
        return 0
    count = 1
    for size in dims:
        count *= size
        if count >= _LIMIT:
            return None
    return count


def _bytes(count: int | None, bits: int) -> int | None:
    """Bytes of `count` elements; None for types without a size and for more than an int64 holds."""
    if count is None or not bits:
        return None
    total = -(-count * bits // 8)
    return total if total < _LIMIT else None

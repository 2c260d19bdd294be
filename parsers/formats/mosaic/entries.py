"""Attributes and types of a module, each read when asked for: numbers in, plain values out.

None of the functions follows more than one entry at a time, but for the steps of a location, which are counted: a
module whose entries name each other in a circle, or a million times, costs no more than its bytes.
"""

from __future__ import annotations

from tpuprof.parsers.base.errors import Damaged
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.mosaic.bytecode import Location, Module
from tpuprof.parsers.formats.mosaic.bytes import Reader

_ARRAY, _DICTIONARY, _TEXT, _TYPED_TEXT, _SYMBOL, _TYPE, _INTEGER = 0, 1, 2, 3, 4, 6, 8
_CALL_SITE, _FILE_LINE, _FUSED, _NAMED, _NUMBERS, _FILE_RANGE = 10, 11, 12, 14, 17, 22
_PLACES = frozenset(range(_CALL_SITE, 16)) | {_FILE_RANGE}
_INTEGER_TYPE, _INDEX, _FIRST_FLOAT = 0, 1, 3
_FLOATS = ("bf16", "f16", "f32", "f64", "f80", "f128")
_MEMREF, _SPACED_MEMREF, _TENSOR, _VECTOR = 10, 11, 13, 19
_KINDS = {_MEMREF: "memref", _SPACED_MEMREF: "memref", _TENSOR: "tensor", _VECTOR: "vector"}
_SIGNS = ("i", "si", "ui", "i")
_MOST_STEPS = _MOST_DIMENSIONS = 64

PREFIX = "stable_mosaic."
"""In front of names of ops and types in a form of Mosaic that changes by numbered versions."""


@dataclass(frozen=True, slots=True)
class Shaped:
    """An array, or a vector of numbers in registers.

    Attributes:
        kind: ``memref`` for memory, ``vector`` for registers, ``tensor``.
        dimensions: below 0 for one that is known when the program runs.
        element: ``bf16``, ``f32``, ``i32``, ``dma_semaphore``.
        space: ``vmem``, ``smem``, ``any``, ``semaphore_mem``; empty where it is not stated.
    """

    kind: str
    dimensions: tuple[int, ...]
    element: str
    space: str = ""


class Entries:
    """The attributes and types of one module; what is asked for twice is read once."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._dictionaries: dict[int, dict[str, int]] = {}
        self._shapes: dict[int, Shaped | None] = {}

    def text(self, number: int | None) -> str | None:
        """A text, or the name of a function; None for another attribute."""
        for _ in range(2):
            kind, reader = self.kind(number)
            if kind in (_TEXT, _TYPED_TEXT):
                return self.module.text(reader.number())
            if kind != _SYMBOL:
                break
            number = reader.number()
        return None

    def dialect_text(self, number: int | None) -> str:
        """An attribute that its dialect writes as text, ``#tpu.memory_space<vmem>``; empty for another."""
        return _written(self.module.attributes, number)

    def word(self, number: int | None) -> str:
        """What stands between the brackets of such a text, ``vmem``; empty where there is none."""
        written = self.dialect_text(number)
        return written[written.find("<") + 1 : written.rfind(">")] if "<" in written else ""

    def integer(self, number: int | None) -> int | None:
        """A number; None for another attribute."""
        kind, reader = self.kind(number)
        if kind != _INTEGER:
            return None
        bits = _bits(self.element(reader.number()))
        return None if bits is None else reader.integer(bits)

    def items(self, number: int | None) -> list[int]:
        """Numbers of the attributes of a list; [] for another attribute."""
        kind, reader = self.kind(number)
        return reader.numbers() if kind == _ARRAY else []

    def numbers(self, number: int | None) -> tuple[int, ...] | None:
        """A list of 64-bit integers, such as the bounds of a window; None for another attribute."""
        kind, reader = self.kind(number)
        if kind != _NUMBERS or self.element(reader.number()) != "i64":
            return None
        count, size = reader.number(), reader.number()
        if size != 8 * count or size > reader.left:
            raise Damaged("a list of numbers has another size than it claims")
        at = reader.at
        return tuple(
            int.from_bytes(reader.data[begin : begin + 8], "little", signed=True) for begin in range(at, at + size, 8)
        )

    def dictionary(self, number: int | None) -> dict[str, int]:
        """Numbers of attributes by name; {} for another attribute."""
        if number is None:
            return {}
        if number not in self._dictionaries:
            kind, reader = self.kind(number)
            found: dict[str, int] = {}
            for _ in range(reader.count() if kind == _DICTIONARY else 0):
                name, value = self.text(reader.number()), reader.number()
                if name is not None:
                    found.setdefault(name, value)
            self._dictionaries[number] = found
        return self._dictionaries[number]

    def places(self, number: int) -> tuple[str, ...]:
        """``file.py:23`` of each call that a location is made of, the innermost first and each once.

        () where it names no file. JAX gives an op that it lowers once the place of its first use, called from its own.
        """
        pending, found, steps = [number], dict[str, None](), 0
        while pending and steps < _MOST_STEPS:
            steps += 1
            kind, reader = self.kind(pending.pop())
            if kind in (_FILE_LINE, _FILE_RANGE):
                place = self._file_line(kind, reader)
                found |= {place: None} if place is not None else {}
            elif kind == _CALL_SITE:
                callee, caller = reader.number(), reader.number()
                pending += [caller, callee]
            elif kind == _NAMED:
                reader.number()
                pending.append(reader.number())
            elif kind == _FUSED:
                pending += reader.numbers()[: _MOST_STEPS - steps][::-1]
        return tuple(found)

    def _file_line(self, kind: int, reader: Reader) -> str | None:
        """A file and its line: a range has the name, how many numbers follow, and the first line."""
        file = self.text(reader.number())
        if kind == _FILE_RANGE:
            reader.number()
        line = reader.number()
        return f"{file}:{line}" if file else None

    def element(self, number: int) -> str:
        """A type of one number as MLIR writes it, ``bf16``, ``i32``, ``index``; a dialect's own without its dialect.

        Empty for an array and for what is not known here.
        """
        kind, reader = self._kind(self.module.types, number)
        if kind is None:
            written = _written(self.module.types, number).lstrip("!")
            return written.removeprefix(PREFIX).removeprefix("tpu.")
        if kind == _INTEGER_TYPE:
            value = reader.number()
            return f"{_SIGNS[value & 3]}{value >> 2}"
        if kind == _INDEX:
            return "index"
        return _FLOATS[kind - _FIRST_FLOAT] if 0 <= kind - _FIRST_FLOAT < len(_FLOATS) else ""

    def shaped(self, number: int) -> Shaped | None:
        """A type that has a shape; None for another."""
        if number not in self._shapes:
            self._shapes[number] = self._read_shaped(number)
        return self._shapes[number]

    def _read_shaped(self, number: int) -> Shaped | None:
        kind, reader = self._kind(self.module.types, number)
        if kind not in _KINDS:
            return None
        space = self.word(reader.number()) if kind == _SPACED_MEMREF else ""
        rank = reader.count()
        if rank > _MOST_DIMENSIONS:
            raise Damaged("an array in it has too many dimensions")
        dimensions = tuple(reader.signed() for _ in range(rank))
        return Shaped(_KINDS[kind], dimensions, self.element(reader.number()), space)

    def kind(self, number: int | None) -> tuple[int | None, Reader]:
        """What an attribute of MLIR's own encoding is, and a reader behind that; None for text and for nothing."""
        return self._kind(self.module.attributes, number)

    def _kind(self, table: list[Location], number: int | None) -> tuple[int | None, Reader]:
        """What an entry of MLIR's own encoding is, and a reader behind that; None for text and for nothing."""
        if number is None:
            return None, Reader(b"")
        reader, is_encoded = _entry(table, number)
        if not is_encoded:
            return None, Reader(b"")
        fresh = Reader(reader.data, reader.at, reader.end)
        return fresh.number(), fresh


def code_of(data: bytes) -> bytes:
    """All that a module holds but where it comes from: the same bytes where lines moved or a file has another name.

    Raises:
        Damaged: the bytes are not a module that is read here.
    """
    module = Module(data)
    entries, named = Entries(module), set[int]()
    kinds = [entries.kind(number) for number in range(len(module.attributes))]
    for kind, inside in kinds:
        named |= {inside.number()} if kind in (_FILE_LINE, _FILE_RANGE, _NAMED) else set()
    parts = [module.code, *map(str.encode, module.op_names), *map(_bytes, module.types)]
    for number, (kind, _) in enumerate(kinds):
        if kind not in _PLACES and number not in named:
            is_text = kind == _TEXT  # its bytes are a number of the table of texts, which has files too
            parts.append((entries.text(number) or "").encode() if is_text else _bytes(module.attributes[number]))
    return b"\0".join(parts)


def _bytes(entry: Location) -> bytes:
    return entry[0].data[entry[0].at : entry[0].end]


def _entry(table: list[Location], number: int) -> Location:
    if not 0 <= number < len(table):
        raise Damaged("it refers to an attribute or type that is missing")
    return table[number]


def _written(table: list[Location], number: int | None) -> str:
    if number is None:
        return ""
    reader, is_encoded = _entry(table, number)
    if is_encoded:
        return ""
    return reader.data[reader.at : reader.end].rstrip(b"\0").decode("utf-8", "replace")


def _bits(element: str) -> int | None:
    """Bits of an integer type; None for another type."""
    if element == "index":
        return 64
    digits = element.lstrip("sui")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 6 else None

"""Reads MLIR's bytecode, version 0: the form in which JAX stores the module of a Pallas kernel in a compiled program.

A module is a list of sections: texts, dialects with the names of their ops, attributes and types, and the ops. Of the
attributes and types only their places are read at first; `Module.attribute` and `Module.type` read one when asked for.
JAX asks for version 0 whatever the compiler's own is, so that older compilers can read it; no other is read here.

Whatever a module says of its sizes is checked against its bytes, so reading one costs a bounded multiple of its size.
The format: MLIR's document "MLIR Bytecode Format", and `BuiltinDialectBytecode.td` for attributes and types.
"""

from __future__ import annotations

from collections.abc import Iterator

from tpuprof.parsers.base.errors import Damaged
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.mosaic.bytes import Reader

MAGIC = b"ML\xefR"

_KINDS = range(5)
"""Kinds of sections: texts, dialects, entries, their offsets, ops."""

_ALIGNED = 0x80
_ATTRIBUTES, _RESULTS, _OPERANDS, _SUCCESSORS, _REGIONS = 1, 2, 4, 8, 16
_DEEPEST = 48
"""Regions within regions; kernels have about ten. A hostile module has any number."""

Location = tuple[Reader, bool]
"""Bytes of an attribute or type, and whether they are its dialect's own encoding and not text."""


@dataclass(slots=True, eq=False)
class Value:
    """What an op makes, or an argument of a block.

    Attributes:
        type: number of its type.
        op: that makes it; None for an argument of a block.
        index: which result or argument.
    """

    type: int
    op: Op | None
    index: int


@dataclass(slots=True, eq=False)
class Op:
    """One operation.

    Attributes:
        name: with its dialect, ``tpu.matmul``.
        attributes: number of its dictionary of attributes; None where it has none.
        location: number of the attribute that says where it comes from.
        results: what it makes.
        operands: what it takes; None for a value that the module defines nowhere before.
        regions: for each region its blocks.
    """

    name: str
    attributes: int | None
    location: int
    results: list[Value]
    operands: list[Value | None]
    regions: list[list[Block]]


@dataclass(slots=True, eq=False)
class Block:
    """Ops in their order, and the arguments that they use.

    Attributes:
        arguments: of the function, or of the body of a loop.
        ops: in their order.
    """

    arguments: list[Value]
    ops: list[Op]

    def walk(self) -> Iterator[Op]:
        """All its ops, from the outside in, in their order."""
        for op in self.ops:
            yield op
            for region in op.regions:
                for block in region:
                    yield from block.walk()


class Module:
    """A module: its ops, and tables of attributes and types.

    Attributes:
        block: its ops, as a rule one ``builtin.module``.
        code: the bytes that they were read from.
        op_names: names of the kinds of ops, as the bytes number them.
    """

    def __init__(self, data: bytes) -> None:
        """Reads all but attributes and types.

        Raises:
            Damaged: the bytes are not a module of version 0.
        """
        texts, names, entries, offsets, ops = _sections(data)
        self._texts = _read_texts(texts)
        self._text_at: dict[int, str] = {}
        self.code = ops.data[ops.at : ops.end]
        dialects, self.op_names = self._names(names)
        self.attributes, self.types = _read_entries(offsets, entries, dialects)
        self.block = _BlockReader(self, ops).block(0)

    def text(self, number: int) -> str:
        if number not in self._text_at:
            if not 0 <= number < len(self._texts):
                raise Damaged("it refers to a text that is missing")
            self._text_at[number] = self._texts[number].decode("utf-8", "replace")
        return self._text_at[number]

    def op_name(self, number: int) -> str:
        if not 0 <= number < len(self.op_names):
            raise Damaged("it refers to an op that is missing")
        return self.op_names[number]

    def _names(self, reader: Reader) -> tuple[list[str], list[str]]:
        dialects = [self.text(number) for number in reader.numbers()]
        ops: list[str] = []
        while reader.left:
            dialect = reader.number()
            if dialect >= len(dialects):
                raise Damaged("it refers to a dialect that is missing")
            ops += [f"{dialects[dialect]}.{self.text(number)}" for number in reader.numbers()]
        return dialects, ops


def _sections(data: bytes) -> list[Reader]:
    """The sections of a file, in the order of their kinds."""
    if not data.startswith(MAGIC):
        raise Damaged("it does not start like MLIR bytecode")
    reader = Reader(data, len(MAGIC))
    version = reader.number()
    if version:
        raise Damaged(f"it has version {version} of MLIR's bytecode; JAX writes version 0")
    end = data.find(b"\0", reader.at, reader.at + 1024)
    if end < 0:
        raise Damaged("it ends too early")
    reader.at = end + 1  # behind the name of the compiler that wrote it
    found: dict[int, Reader] = {}
    while reader.left:
        kind = reader.byte()
        length = reader.number()
        if kind & _ALIGNED:
            alignment = reader.number()
            reader.skip(-reader.at % alignment if alignment else 0)
        found.setdefault(kind & ~_ALIGNED, reader.part(length))
    if any(kind not in found for kind in _KINDS):
        raise Damaged("it lacks a part")
    return [found[kind] for kind in _KINDS]


def _read_texts(reader: Reader) -> list[bytes]:
    """The texts, each with its ending zero cut off; their lengths come first, the last one in front."""
    sizes = reader.numbers()[::-1]
    texts: list[bytes] = []
    for size in sizes:
        begin = reader.at
        reader.skip(size)
        texts.append(reader.data[begin : max(begin, reader.at - 1)])
    return texts


def _read_entries(offsets: Reader, entries: Reader, dialects: list[str]) -> tuple[list[Location], list[Location]]:
    """Places of the attributes and of the types."""
    attributes, types = offsets.number(), offsets.number()
    if attributes + types > entries.left:
        raise Damaged("it claims more than its bytes can hold")
    places: list[Location] = []
    while offsets.left:
        dialect, count = offsets.number(), offsets.count()
        own = dialect < len(dialects) and dialects[dialect] == "builtin"
        for _ in range(count):
            size = offsets.number()
            # What another dialect encodes its own way is not known here: such an entry reads as one without a text.
            part, is_encoded = entries.part(size >> 1), bool(size & 1)
            places.append((part if own or not is_encoded else Reader(b""), is_encoded and own))
    if len(places) != attributes + types:
        raise Damaged("its tables of attributes and types do not fit together")
    return places[:attributes], places[attributes:]


class _BlockReader:
    """Reads the blocks of ops of one module.

    `values` are those that an op may name, by number: a region's own follow those of the regions around it, and go
    when it ends. A function and a module see none of those around them.
    """

    def __init__(self, module: Module, reader: Reader) -> None:
        self.module, self.reader = module, reader
        self.values: dict[int, Value] = {}
        self.next = self.limit = 0

    def block(self, depth: int) -> Block:
        if depth > _DEEPEST:
            raise Damaged("its regions are nested too deep")
        head = self.reader.number()
        arguments: list[Value] = []
        if head & 1:
            for index in range(self.reader.count()):
                arguments.append(Value(self.reader.number(), None, index))
                self.reader.number()  # where it comes from
            self._define(arguments)
        if head >> 1 > self.reader.left:
            raise Damaged("it claims more than its bytes can hold")
        return Block(arguments, [self._op(depth) for _ in range(head >> 1)])

    def _define(self, values: list[Value]) -> None:
        if self.next + len(values) > self.limit:  # their numbers are those of a region inside
            raise Damaged("a region defines more values than it claims")
        for value in values:
            self.values[self.next] = value
            self.next += 1

    def _op(self, depth: int) -> Op:
        reader = self.reader
        name, mask, location = self.module.op_name(reader.number()), reader.byte(), reader.number()
        attributes = reader.number() if mask & _ATTRIBUTES else None
        op = Op(name, attributes, location, [], [], [])
        if mask & _RESULTS:
            op.results = [Value(number, op, index) for index, number in enumerate(reader.numbers())]
        if mask & _OPERANDS:
            op.operands = [self.values.get(number) for number in reader.numbers()]
        if mask & _SUCCESSORS:
            reader.numbers()
        self._define(op.results)
        if mask & _REGIONS:
            head = reader.number()
            if head >> 1 > reader.left:
                raise Damaged("it claims more than its bytes can hold")
            op.regions = [self._region(bool(head & 1), depth) for _ in range(head >> 1)]
        return op

    def _region(self, is_isolated: bool, depth: int) -> list[Block]:
        blocks = self.reader.count()
        if not blocks:
            return []
        own = self.reader.number()
        around = self.values, self.next, self.limit
        if is_isolated:
            self.values, self.next, self.limit = {}, 0, 0
        begin = self.next = self.limit
        self.limit += own
        made = [self.block(depth + 1) for _ in range(blocks)]
        for number in range(begin, self.next):
            del self.values[number]
        self.values, self.next, self.limit = around
        return made

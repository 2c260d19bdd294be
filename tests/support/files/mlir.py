"""Writes modules in MLIR's bytecode, version 0: kernels of some ops, by hand."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.shapes import parse_shape, shape_to_proto
from tpuprof.parsers.formats.mosaic.spec import KernelSpec, kernel_spec
from tpuprof.parsers.formats.proto.hlo_pb2 import HloProto

DYNAMIC = -(1 << 63)


def number(value: int) -> bytes:
    """An unsigned integer of variable length."""
    value &= (1 << 64) - 1
    for more in range(8):
        if value < 1 << (7 * (more + 1)):
            return ((value << (more + 1)) | (1 << more)).to_bytes(more + 1, "little")
    return b"\0" + value.to_bytes(8, "little")


def signed(value: int) -> bytes:
    return number((-value << 1) - 1 if value < 0 else value << 1)


def listed(parts: Sequence[bytes]) -> bytes:
    return number(len(parts)) + b"".join(parts)


@dataclass(eq=False)
class Ref:
    """What an op made: which result, and its type."""

    type: int


@dataclass
class Made:
    """One op, as a caller asks for it."""

    name: str
    operands: list[Ref] = field(default_factory=list)
    results: list[Ref] = field(default_factory=list)
    attributes: dict[str, int] = field(default_factory=dict)
    regions: list[tuple[list[Ref], list[Made]]] = field(default_factory=list)
    is_isolated: bool = False


class Writer:
    """Collects texts, attributes and types, and writes a module of functions."""

    def __init__(self) -> None:
        self.texts: dict[str, int] = {}
        self.attributes: dict[tuple[bytes, bool], int] = {}
        self.types: dict[tuple[bytes, bool], int] = {}
        self.ops: dict[str, int] = {}
        self.nowhere = self._attribute(number(15))

    def text(self, word: str) -> int:
        return self.texts.setdefault(word, len(self.texts))

    def _attribute(self, body: bytes, is_encoded: bool = True) -> int:
        return self.attributes.setdefault((body, is_encoded), len(self.attributes))

    def _type(self, body: bytes, is_encoded: bool = True) -> int:
        return self.types.setdefault((body, is_encoded), len(self.types))

    # attributes

    def word(self, word: str) -> int:
        return self._attribute(number(2) + number(self.text(word)))

    def symbol(self, word: str) -> int:
        return self._attribute(number(4) + number(self.word(word)))

    def written(self, text: str) -> int:
        """An attribute that its dialect writes as text."""
        return self._attribute(text.encode() + b"\0", False)

    def integer(self, value: int, bits: int = 64) -> int:
        body = bytes([value & 0xFF]) if bits <= 8 else signed(value)
        return self._attribute(number(8) + number(self.integer_type(bits)) + body)

    def items(self, parts: Sequence[int]) -> int:
        return self._attribute(number(0) + listed([number(each) for each in parts]))

    def numbers(self, values: Sequence[int]) -> int:
        blob = b"".join((value & (1 << 64) - 1).to_bytes(8, "little") for value in values)
        return self._attribute(
            number(17) + number(self.integer_type(64)) + number(len(values)) + number(len(blob)) + blob
        )

    def dictionary(self, entries: dict[str, int]) -> int:
        pairs = [number(self.word(name)) + number(value) for name, value in entries.items()]
        return self._attribute(number(1) + listed(pairs))

    def place(self, file: str, line: int) -> int:
        return self._attribute(number(11) + number(self.word(file)) + number(line) + number(1))

    # types

    def integer_type(self, bits: int) -> int:
        return self._type(number(0) + number(bits << 2))

    def written_type(self, text: str) -> int:
        return self._type(text.encode() + b"\0", False)

    def element(self, name: str) -> int:
        floats = {"bf16": 3, "f16": 4, "f32": 5}
        if name in floats:
            return self._type(number(floats[name]))
        return self.integer_type(int(name[1:])) if name[1:].isdigit() else self.written_type(f"!tpu.{name}")

    def vector(self, dimensions: Sequence[int], element: str) -> int:
        return self._type(number(19) + listed([signed(each) for each in dimensions]) + number(self.element(element)))

    def memref(self, dimensions: Sequence[int], element: str, space: str = "vmem") -> int:
        where = self.written(f"#tpu.memory_space<{space}>")
        shape = listed([signed(each) for each in dimensions]) + number(self.element(element))
        return self._type(number(11) + number(where) + shape + number(self.written("affine_map<(d0) -> (d0)>")))

    # the module

    def function(
        self, name: str, arguments: Sequence[Ref], ops: list[Made], attributes: dict[str, int] | None = None
    ) -> Made:
        named = {"sym_name": self.word(name)} | (attributes or {})
        return Made("func.func", attributes=named, regions=[(list(arguments), ops)], is_isolated=True)

    def module(self, functions: list[Made]) -> bytes:
        """The bytes of a module of these functions."""
        top = Made("builtin.module", regions=[([], functions)], is_isolated=True)
        body = self._block([], [top], {})
        dialects = ["builtin", "stable_mosaic"]
        names = listed([number(self.text(each)) for each in dialects])
        names += number(1) + listed([number(self.text(each)) for each in self.ops])
        entries = [*self.attributes, *self.types]
        offsets = number(len(self.attributes)) + number(len(self.types))
        for group in (self.attributes, self.types):
            for data, is_encoded in group:
                offsets += number(0) + number(1) + number(len(data) << 1 | is_encoded)
        texts = [text.encode() + b"\0" for text in self.texts]
        lengths = listed([number(len(text)) for text in reversed(texts)])
        sections = [
            (0, lengths + b"".join(texts)),
            (1, names),
            (2, b"".join(data for data, _ in entries)),
            (3, offsets),
            (4, body),
        ]
        packed = b"".join(bytes([kind]) + number(len(data)) + data for kind, data in sections)
        return b"ML\xefR" + number(0) + b"MLIR23.0.0git\0" + packed

    def _block(self, arguments: list[Ref], ops: list[Made], values: dict[Ref, int], begin: int = 0) -> bytes:
        """A block whose values are numbered from `begin` on; those of regions inside follow all of its own."""
        head = number(len(ops) << 1 | bool(arguments))
        if arguments:
            head += listed([number(each.type) + number(self.nowhere) for each in arguments])
        own = [*arguments, *(each for op in ops for each in op.results)]
        values |= {each: begin + index for index, each in enumerate(own)}
        return head + b"".join(self._op(op, values, begin + len(own)) for op in ops)

    def _op(self, op: Made, values: dict[Ref, int], end: int) -> bytes:
        attributes = self.dictionary(op.attributes) if op.attributes else None
        mask = (attributes is not None) | bool(op.results) << 1 | bool(op.operands) << 2 | bool(op.regions) << 4
        out = number(self.ops.setdefault(op.name, len(self.ops))) + bytes([mask]) + number(self.nowhere)
        out += number(attributes) if attributes is not None else b""
        out += listed([number(each.type) for each in op.results]) if op.results else b""
        out += listed([number(values[each]) for each in op.operands]) if op.operands else b""
        if not op.regions:
            return out
        out += number(len(op.regions) << 1 | op.is_isolated)
        for arguments, ops in op.regions:
            own = len(arguments) + sum(len(each.results) for each in ops)
            begin = 0 if op.is_isolated else end
            out += number(1) + number(own) + self._block(arguments, ops, {} if op.is_isolated else dict(values), begin)
        return out


def program(module: bytes | str, operands: Sequence[str], result: str) -> HloModule:
    """A compiled program that calls a kernel: operands and result as `element[dimensions]`."""
    body = module if isinstance(module, str) else base64.b64encode(module).decode()
    config = {"custom_call_config": {"body": body}}
    proto = HloProto()
    part = proto.hlo_module.computations.add(id=1, name=b"main")
    for index, operand in enumerate(operands):
        made = part.instructions.add(
            id=index, name=f"arg.{index}".encode(), opcode=b"parameter", parameter_number=index
        )
        made.metadata.op_name = b"xyzuvw"[index : index + 1]
        shape = parse_shape(operand)
        assert shape is not None
        shape_to_proto(shape, made.shape)
    made = part.instructions.add(id=99, name=b"kernel.7", opcode=b"custom-call", custom_call_target=b"tpu_custom_call")
    made.operand_ids.extend(range(len(operands)))
    made.backend_config = json.dumps(config).encode()
    shape = parse_shape(result)
    assert shape is not None
    shape_to_proto(shape, made.shape)
    return HloModule(proto)


def kernels(hlo: HloModule) -> list[KernelSpec]:
    """The kernels of a program, in its order."""
    calls = (call for part in hlo.proto.hlo_module.computations for call in part.instructions)
    return [spec for call in calls if (spec := kernel_spec(hlo, call)) is not None]

"""Which values of a compiled program are weights: arguments of floating-point numbers, converted, moved or sliced."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.shapes import element_type

if TYPE_CHECKING:
    from tpuprof.parsers.formats.proto import hlo_pb2

Dims = tuple[int, ...]

MOVES = frozenset(
    (
        *(b"bitcast", b"broadcast", b"convert", b"copy", b"copy-done", b"copy-start", b"dynamic-slice", b"reshape"),
        *(b"slice", b"transpose", b"bitcast-convert", b"slice-start", b"slice-done", b"async-start", b"async-done"),
        *(b"async-update", b"pad", b"concatenate", b"dynamic-update-slice", b"fusion", b"constant", b"parameter"),
    )
)
"""Opcodes that move data, and compute nothing."""

_GATHERS = (b"all-gather",)
_FLOATS = frozenset(("f32", "bf16", "f16", "f8e4m3fn", "f8e5m2", "s8", "s4", "u4"))
_DEEP = 100


def dims_of(shape: hlo_pb2.ShapeProto) -> Iterator[Dims]:
    """The dimensions of an array, or of each in a tuple."""
    if shape.tuple_shapes:
        for part in shape.tuple_shapes:
            yield from dims_of(part)
    else:
        yield tuple(shape.dimensions)


class Weights:
    """The weights of a program.

    Attributes:
        shapes: dimensions of all arguments of floating-point numbers with at least two of these, and of a layer of
            those that a loop slices.
        wrapped: ids of computations that fusions and the like wrap.
    """

    def __init__(self, hlo: HloModule) -> None:
        self._hlo = hlo
        module = hlo.proto.hlo_module
        self._known: dict[int, bool] = {}
        self._loops: dict[int, hlo_pb2.HloInstructionProto] = {}
        self._callers: dict[int, hlo_pb2.HloInstructionProto] = {}
        self._parents: dict[int, int] = {}
        self.wrapped: set[int] = set()
        for computation in module.computations:
            for each in computation.instructions:
                self._parents[each.id] = computation.id
                if each.opcode == b"while":
                    self._loops.update(dict.fromkeys(each.called_computation_ids, each))
                elif each.opcode not in (b"conditional", b"call"):
                    self.wrapped.update(each.called_computation_ids)
                    self._callers.update(dict.fromkeys(each.called_computation_ids, each))
        entry = hlo.computation(module.entry_computation_id)
        self._entry = module.entry_computation_id
        arguments = [] if entry is None else [each for each in entry.instructions if each.opcode == b"parameter"]
        whole = {tuple(each.shape.dimensions) for each in arguments if _is_float(each)}
        whole = {dims for dims in whole if len(dims) > 1}
        self.shapes: frozenset[Dims] = frozenset(
            whole | ({dims[1:] for dims in whole if len(dims) > 2} if self._loops else set())
        )

    def dims(self, number: int) -> tuple[Dims, ...]:
        """Dimensions of what an instruction gives; () for one that the module lacks."""
        proto = self._hlo.instruction_by_id(number)
        return () if proto is None else tuple(dims_of(proto.shape))

    def is_weight(self, proto: hlo_pb2.HloInstructionProto, depth: int = 0) -> bool:
        """Whether a value is one of the weights, or part of them in another form."""
        known = self._known.get(proto.id)
        if known is None:
            self._known[proto.id] = False  # where a chain returns to itself
            known = self._known[proto.id] = depth < _DEEP and self._is_weight(proto, depth + 1)
        return known

    def _is_weight(self, proto: hlo_pb2.HloInstructionProto, depth: int) -> bool:
        if proto.opcode == b"parameter":
            return self._is_argument(proto, depth)
        if proto.opcode == b"get-tuple-element":
            return self._is_element(proto, depth)
        if not self._only_moves(proto):
            return False
        if self._hlo.wrapped(proto) is None and proto.opcode not in MOVES and not proto.opcode.startswith(_GATHERS):
            return False
        operands = (each for each in self._hlo.operand_protos(proto) if each is not None)
        large = [each for each in operands if each.shape.dimensions or each.shape.tuple_shapes]
        return bool(large) and all(self.is_weight(each, depth) for each in large)

    def _only_moves(self, proto: hlo_pb2.HloInstructionProto, depth: int = 3) -> bool:
        inside = self._hlo.wrapped(proto)
        if inside is None:
            return True
        return depth > 0 and all(
            each.opcode in MOVES and self._only_moves(each, depth - 1) for each in inside.instructions
        )

    def _is_argument(self, proto: hlo_pb2.HloInstructionProto, depth: int) -> bool:
        home = self._parents.get(proto.id, -1)
        if home == self._entry:
            return _is_float(proto) and len(proto.shape.dimensions) > 1
        caller = self._callers.get(home)
        if caller is None or proto.parameter_number >= len(caller.operand_ids):
            return False
        given = self._hlo.instruction_by_id(caller.operand_ids[proto.parameter_number])
        return given is not None and self.is_weight(given, depth)

    def _is_element(self, proto: hlo_pb2.HloInstructionProto, depth: int) -> bool:
        """An element of a tuple: of a loop's, what went in, if each turn leaves it as it is."""
        source = self._hlo.instruction_by_id(proto.operand_ids[0]) if proto.operand_ids else None
        if source is None:
            return False
        if source.opcode == b"tuple":
            return self._element_is_weight(source, proto.tuple_index, depth)
        home = self._parents.get(source.id, -1)
        loop = self._loops.get(home) if source.opcode == b"parameter" else None
        if loop is None or not loop.operand_ids:
            return source.opcode in MOVES and self.is_weight(source, depth)
        body = self._hlo.computation(home)
        root = None if body is None else self._hlo.instruction_by_id(body.root_id)
        if root is not None and root.opcode == b"tuple" and not self._stays(root, source.id, proto.tuple_index):
            return False
        given = self._hlo.instruction_by_id(loop.operand_ids[0])
        return (
            given is not None and given.opcode == b"tuple" and self._element_is_weight(given, proto.tuple_index, depth)
        )

    def _stays(self, root: hlo_pb2.HloInstructionProto, parameter: int, place: int) -> bool:
        if place >= len(root.operand_ids):
            return False
        last = self._hlo.instruction_by_id(root.operand_ids[place])
        is_same = last is not None and last.opcode == b"get-tuple-element" and last.tuple_index == place
        return is_same and last is not None and list(last.operand_ids) == [parameter]

    def _element_is_weight(self, proto: hlo_pb2.HloInstructionProto, place: int, depth: int) -> bool:
        given = self._hlo.instruction_by_id(proto.operand_ids[place]) if place < len(proto.operand_ids) else None
        return given is not None and self.is_weight(given, depth)


def _is_float(proto: hlo_pb2.HloInstructionProto) -> bool:
    return element_type(proto.shape) in _FLOATS

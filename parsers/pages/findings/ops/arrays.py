"""Large arrays in HBM between ops: who writes each, and who reads it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, TypeVar

from tpuprof.parsers.base.intervals import grouped
from tpuprof.parsers.base.record import dataclass, field
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.shapes import shape_of_proto
from tpuprof.parsers.ops.roofline import holds_ops
from tpuprof.parsers.pages.findings.budget import Budget
from tpuprof.parsers.pages.findings.ops.groups import module_of

if TYPE_CHECKING:
    from tpuprof.parsers.formats.proto import hlo_pb2

HBM_SPACE = 0
"""Memory space of HBM in layouts."""

LARGE = 1 << 20
"""Bytes from which on an array matters; smaller ones may well stay on the chip."""

LEAST_OP = 2e-4
"""An op counts from this share of the time on: one of the layers takes little, all of them much."""

HANDS_ON = frozenset((b"bitcast", b"get-tuple-element", b"copy-done", b"opt-barrier", b"tuple"))
"""Opcodes of what hands an array on and moves no bytes of it."""

_MOST_HANDED = 8
_Found = TypeVar("_Found")

Key = tuple[int, int]
"""An array: the id of the instruction that makes it, and which element of its result it is, -1 for all."""


@dataclass(frozen=True, slots=True)
class Array:
    """A large array in HBM.

    Attributes:
        key: which one.
        bytes: what it takes, padding included.
        count: its elements.
    """

    key: Key
    bytes: int
    count: int


@dataclass(frozen=True, slots=True)
class OpArrays:
    """What an op reads and writes of large arrays, each once.

    Attributes:
        row: the op's row in the table.
        proto: its instruction.
        computation: id of the computation that it is in.
    """

    row: int
    proto: hlo_pb2.HloInstructionProto
    computation: int
    reads: tuple[Array, ...]
    writes: tuple[Array, ...]


@dataclass(frozen=True, slots=True)
class ModuleArrays:
    """Some ops of a compiled program with their arrays, by the id of their instruction.

    Findings and the losses by cause look for the same things among them, which are found once.

    Attributes:
        module: the program.
        ops: in the order in which the program stores them, where operands come first.
    """

    module: HloModule
    ops: Mapping[int, OpArrays]
    _found: dict[Hashable, tuple[Any, ...]] = field(default_factory=dict, repr=False, compare=False)

    def of(self, rows: Collection[int]) -> ModuleArrays:
        return ModuleArrays(self.module, {number: of for number, of in self.ops.items() if of.row in rows}, self._found)

    def once(
        self, what: str, find: Callable[[ModuleArrays], Iterable[_Found]], given: Hashable = None
    ) -> Sequence[_Found]:
        """What is found among these ops, or was found before.

        Args:
            what: names it.
            find: depends on these ops and on `given` alone.
        """
        key = what, frozenset(self.ops), given
        if key not in self._found:
            self._found[key] = tuple(find(self))
        return self._found[key]


def large_arrays(budget: Budget) -> tuple[ModuleArrays, ...]:
    """What the ops that take some time read and write, program by program.

    Ops whose program the profile lacks are left out, and those that only hold others.
    """
    table = budget.evidence.table
    rows, times = budget.ops("compute", "vector", "copy")
    chosen = (times >= LEAST_OP * budget.whole_ps) & ~holds_ops(table)[rows]
    programs = grouped((int(table.program_id[row]), row) for row in rows[chosen].tolist())
    found = []
    for of in programs.values():
        module = module_of(budget.evidence, of[0])
        if module is not None:
            found.append(ModuleArrays(module, dict(_ops(module, {table.name[row]: row for row in of}))))
    return tuple(found)


def _ops(module: HloModule, row_of: Mapping[str, int]) -> Iterator[tuple[int, OpArrays]]:
    protos = (module.instruction_proto(name) for name in row_of)
    wanted = {proto.id: row for proto, row in zip(protos, row_of.values(), strict=True) if proto is not None}
    for computation in module.proto.hlo_module.computations:
        for proto in () if computation.is_fusion_computation else computation.instructions:
            if proto.id in wanted:
                arrays = tuple(_reads(module, proto)), tuple(_writes(proto))
                yield proto.id, OpArrays(wanted[proto.id], proto, computation.id, *arrays)


def origin(module: HloModule, number: int) -> Key | None:
    """The array that an operand is, through what only hands it on; None where the module lacks it."""
    element = -1
    for _ in range(_MOST_HANDED):
        proto = module.instruction_by_id(number)
        if proto is None:
            return None
        if proto.opcode not in HANDS_ON or not proto.operand_ids:
            return proto.id, element
        if proto.opcode == b"get-tuple-element":
            element, number = proto.tuple_index, proto.operand_ids[0]
        elif proto.opcode == b"tuple":
            if not 0 <= element < len(proto.operand_ids):
                return proto.id, element
            number, element = proto.operand_ids[element], -1
        else:
            number = proto.operand_ids[0]
    return number, element


def argument_of(module: HloModule, number: int) -> tuple[int, ...] | None:
    """The program's argument that an operand is: its number, and its element of a tuple; None where it is none."""
    key, entry = origin(module, number), module.computation(module.proto.hlo_module.entry_computation_id)
    made = module.instruction_by_id(key[0]) if key is not None else None
    if key is None or entry is None or made is None or made.opcode != b"parameter":
        return None
    if all(each.id != made.id for each in entry.instructions):
        return None
    return (made.parameter_number, *([] if key[1] < 0 else [key[1]]))


def donated(module: HloModule) -> set[tuple[int, ...]]:
    """The arguments whose memory the program may use for its results."""
    alias, donor = module.proto.hlo_module.input_output_alias, module.proto.hlo_module.buffer_donor
    taken_over = {(each.parameter_number, *each.parameter_shape_index) for each in alias.entries}
    return taken_over | {(each.parameter_number, *each.parameter_shape_index) for each in donor.entries}


def readers_of(module: HloModule, computation: hlo_pb2.HloComputationProto) -> dict[Key, set[int]]:
    """Who reads each array of a computation: ids of instructions; the root's arrays are read by its caller, 0."""
    readers: dict[Key, set[int]] = {}
    for proto in computation.instructions:
        if proto.opcode not in HANDS_ON:
            for operand in proto.operand_ids:
                key = origin(module, operand)
                if key is not None:
                    readers.setdefault(key, set()).add(proto.id)
    root = module.instruction_by_id(computation.root_id)
    results = () if root is None else root.operand_ids if root.opcode == b"tuple" else (root.id,)
    for number in results:
        key = origin(module, number)
        if key is not None:
            readers.setdefault(key, set()).add(0)
    return readers


def _reads(module: HloModule, proto: hlo_pb2.HloInstructionProto) -> Iterator[Array]:
    known: set[Key] = set()
    for operand in proto.operand_ids:
        read, key = module.instruction_by_id(operand), origin(module, operand)
        if read is not None and key is not None and key not in known:
            known.add(key)
            yield from _large(key, read.shape)


def _writes(proto: hlo_pb2.HloInstructionProto) -> Iterator[Array]:
    if not proto.shape.tuple_shapes:
        yield from _large((proto.id, -1), proto.shape)
    for element, shape in enumerate(proto.shape.tuple_shapes):
        yield from _large((proto.id, element), shape)


def _large(key: Key, proto: hlo_pb2.ShapeProto) -> Iterator[Array]:
    shape = shape_of_proto(proto)
    if shape is None or shape.memory_space != HBM_SPACE:
        return
    size = shape.memory_bytes or 0
    if size >= LARGE:
        yield Array(key, size, prod(shape.dimensions))

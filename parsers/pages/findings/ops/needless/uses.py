"""Who uses an array between ops, and what the fusion that makes it holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.hlo.matrix import matrix_types
from tpuprof.parsers.formats.hlo.modules import HloModule, all_fused, is_kernel
from tpuprof.parsers.formats.xspace.walk import text
from tpuprof.parsers.pages.findings.ops.arrays import Key, OpArrays, origin, readers_of

if TYPE_CHECKING:
    from tpuprof.parsers.formats.proto import hlo_pb2

_JOINED = b"ConcatBitcast"  # slices of an array that were prefetched one by one
_BRING = frozenset((b"copy-start", b"slice-start", b"slice-done"))
_ASYNC = frozenset((b"async-start", b"async-update", b"async-done"))
_SLICED = frozenset((b"parameter", b"slice", b"bitcast"))
_MOST_PREFETCHES = 64
_MOST_PREFETCHED = 4  # times that an array is prefetched in a row


class Uses:
    """Who reads each array of a program; each computation is read once."""

    def __init__(self, module: HloModule) -> None:
        self._module = module
        self._readers: dict[int, dict[Key, set[int]]] = {}

    def of(self, key: Key, computation: int) -> list[hlo_pb2.HloInstructionProto] | None:
        """The instructions that read an array, prefetched or not; None where it leaves its computation as well.

        Args:
            computation: id of the one that the array is made in.
        """
        found: dict[int, hlo_pb2.HloInstructionProto] = {}
        waiting, passed = [key], 0
        while waiting:
            here = waiting.pop()
            for number in self._ids(here, computation):
                reader = self._module.instruction_by_id(number)
                if number == 0 or reader is None:
                    return None
                if _prefetches(self._module, reader) and passed < _MOST_PREFETCHES:
                    passed += 1
                    waiting.append((reader.id, -1))
                else:
                    found[reader.id] = reader
        return list(found.values())

    def _ids(self, key: Key, computation: int) -> set[int]:
        if computation not in self._readers:
            within = self._module.computation(computation)
            self._readers[computation] = {} if within is None else readers_of(self._module, within)
        readers = self._readers[computation]
        return readers.get(key, set()) | readers.get((key[0], -1), set())

    def by_products_alone(self, of: OpArrays) -> list[hlo_pb2.HloInstructionProto]:
        """The matrix products and kernels that read what an op writes; empty where anything else reads it too."""
        readers: list[hlo_pb2.HloInstructionProto] = []
        for array in of.writes:
            found = self.of(array.key, of.computation)
            if not found or not all(is_product(self._module, each) or is_kernel(each) for each in found):
                return []
            readers += found
        return readers


def _prefetches(module: HloModule, proto: hlo_pb2.HloInstructionProto) -> bool:
    """Whether an instruction brings an array nearer, as a whole or in slices that are joined there."""
    if proto.opcode == b"custom-call":
        return bool(proto.custom_call_target == _JOINED)
    return proto.opcode in _BRING or (
        proto.opcode in _ASYNC and {each.opcode for each in module.inside(proto)} <= _SLICED
    )


def is_product(module: HloModule, proto: hlo_pb2.HloInstructionProto) -> bool:
    """Whether an instruction is a matrix product, or fuses one."""
    return bool(matrix_types(module, text(proto.name))[0])


def hands_on(module: HloModule, proto: hlo_pb2.HloInstructionProto, opcodes: frozenset[bytes]) -> bool:
    """Whether an instruction has one of these opcodes, or fuses nothing else."""
    return proto.opcode in opcodes or (
        proto.opcode == b"fusion" and {each.opcode for each in all_fused(module, proto)} <= opcodes | {b"parameter"}
    )


def root_of(module: HloModule, proto: hlo_pb2.HloInstructionProto) -> hlo_pb2.HloInstructionProto | None:
    """What makes an instruction's result: the root of what it fuses, else itself."""
    computation = module.wrapped(proto)
    return proto if computation is None else module.instruction_by_id(computation.root_id)


@dataclass(frozen=True, slots=True)
class FusionInput:
    """An array that a fusion is given.

    Attributes:
        inner: the instruction that stands for it inside; of an instruction that fuses nothing, its operand.
        outer: the array, before it was prefetched; None where the module lacks it.
    """

    inner: hlo_pb2.HloInstructionProto
    outer: Key | None


def fusion_inputs(module: HloModule, proto: hlo_pb2.HloInstructionProto) -> Iterator[FusionInput]:
    """The arrays that an instruction is given."""
    computation = module.wrapped(proto)
    if computation is None:
        for number in proto.operand_ids:
            operand = module.instruction_by_id(number)
            if operand is not None:
                yield FusionInput(operand, _before_prefetch(module, number))
        return
    for each in computation.instructions:
        if each.opcode == b"parameter" and 0 <= each.parameter_number < len(proto.operand_ids):
            yield FusionInput(each, _before_prefetch(module, proto.operand_ids[each.parameter_number]))


def _before_prefetch(module: HloModule, number: int) -> Key | None:
    key = origin(module, number)
    for _ in range(_MOST_PREFETCHED):
        made = module.instruction_by_id(key[0]) if key is not None else None
        if made is None or made.opcode != b"copy-start" or not made.operand_ids:
            break
        key = origin(module, made.operand_ids[0])
    return key

"""A compiled module's buffer assignment as columns: what its allocations and logical buffers are, and what is odd."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable, Sequence
from math import prod
from typing import TypeVar

import numpy as np

from tpuprof.parsers.base.intervals import Bools, Int64s
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.shapes import element_bits, shape_text
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.formats.xspace.walk import text
from tpuprof.parsers.memory.model import CATEGORIES, Buffer

LARGEST_BYTES = 2**48
"""No memory of a chip is near this; a size beyond it is damage."""

_TUPLE, _BUFFER, _OPAQUE, _TOKEN = 13, 34, 14, 17

_MAX_RANK = 256

_Proto = TypeVar("_Proto")


@dataclass(frozen=True, slots=True)
class Allocations:
    """A row for each buffer allocation, as stored; of a repeated index the first one counts.

    Attributes:
        index: int64, `BufferAllocationProto.index`.
        size_bytes: int64, 0 for a size that can't be true.
        space: int64, the memory space.
        category: int64, index into `CATEGORIES`: a parameter before an output, a thread-local one, a constant.
        is_parameter, is_output: of a donated parameter both are true.
        largest: int64, row of its largest logical buffer, the first of several; -1 without one.
    """

    index: Int64s
    size_bytes: Int64s
    space: Int64s
    category: Int64s
    is_parameter: Bools
    is_output: Bools
    largest: Int64s

    @property
    def is_temporary(self) -> Bools:
        """Those whose use the heap simulation shows."""
        result: Bools = self.category == CATEGORIES.index("temporary")
        return result

    @property
    def is_lasting(self) -> Bools:
        """Those that hold their memory throughout.

        Thread-local ones are not among them: they are values inside fusions and reductions, which the compiler keeps
        out of its own totals (`peak_memory_in_bytes`) as well.
        """
        result: Bools = ~self.is_temporary & (self.category != CATEGORIES.index("thread-local"))
        return result


@dataclass(frozen=True, slots=True)
class LogicalBuffers:
    """A row for each logical buffer, as stored; of a repeated id the first one counts.

    Attributes:
        ids: int64.
        size_bytes: int64, 0 for a size that can't be true.
        space: int64, the memory space: its allocation's, else its own.
        allocation: int64, row of its allocation; -1 for none.
        offset_bytes: int64, in that allocation; -1 for none.
        rows: id to row.
        protos: as the compiler wrote them.
    """

    ids: Int64s
    size_bytes: Int64s
    space: Int64s
    allocation: Int64s
    offset_bytes: Int64s
    rows: dict[int, int]
    protos: Sequence[hlo_pb2.LogicalBufferProto]


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a module's buffer assignment says.

    Attributes:
        hlo: the module.
        allocations, buffers: their columns.
        traces: the heap simulations, as the compiler wrote them.
        warnings: what is wrong with it, a sentence each.
    """

    hlo: HloModule
    allocations: Allocations
    buffers: LogicalBuffers
    traces: Sequence[hlo_pb2.HeapSimulatorTrace]
    warnings: tuple[str, ...]

    def unpadded_bytes(self, row: int) -> int:
        """What the elements of a logical buffer take; of a table of pointers (a tuple) its size; -1 where unknown."""
        proto = self.buffers.protos[row]
        instruction = self.hlo.defining(proto)
        shape = None if instruction is None else _part(instruction.shape, proto.defined_at.shape_index)
        return -1 if shape is None else _unpadded_bytes(shape, int(self.buffers.size_bytes[row]))

    def describe(self, row: int, stay: Buffer) -> Buffer:
        """A stay in memory with what is known of its logical buffer, by row; without one (-1) as it is."""
        if row < 0:
            return stay
        proto = self.buffers.protos[row]
        instruction = self.hlo.defining(proto)
        if instruction is None:
            named = text(proto.defined_at.instruction_name)
            return replace(stay, name=_numbered(named, proto) if named else f"logical buffer {proto.id}")
        shape = _part(instruction.shape, proto.defined_at.shape_index)
        return replace(
            stay,
            name=_numbered(text(instruction.name), proto),
            shape=None if shape is None else shape_text(shape),
            opcode=text(instruction.opcode) or None,
            framework_op=text(instruction.metadata.op_name) or None,
            source=self.hlo.source(instruction),
            stack=self.hlo.stack(instruction),
        )


def read_assignment(hlo: HloModule) -> Assignment | None:
    """Reads a module's buffer assignment; None where it has none. Never raises."""
    proto = hlo.proto.buffer_assignment
    if not proto.buffer_allocations and not proto.logical_buffers:
        return None
    odd: Counter[str] = Counter()
    protos, rows = _first_of_each(proto.logical_buffers, [buffer.id for buffer in proto.logical_buffers])
    stored, indices = _first_of_each(proto.buffer_allocations, [part.index for part in proto.buffer_allocations])
    odd["logical buffers left out: their id was there before"] = len(proto.logical_buffers) - len(protos)
    odd["allocations left out: their index was there before"] = len(proto.buffer_allocations) - len(stored)
    sizes = _sizes([buffer.size for buffer in protos], odd, "logical buffers")
    owner, offsets, largest = _assigned(stored, rows, sizes, odd)
    spaces = np.array([allocation.color for allocation in stored], np.int64)
    own = np.array([buffer.color for buffer in protos], np.int64)
    return Assignment(
        hlo=hlo,
        allocations=Allocations(
            index=np.array(list(indices), np.int64),
            size_bytes=np.array(_sizes([allocation.size for allocation in stored], odd, "allocations"), np.int64),
            space=spaces,
            category=np.array([_category(allocation) for allocation in stored], np.int64),
            is_parameter=np.array([allocation.is_entry_computation_parameter for allocation in stored], np.bool_),
            is_output=np.array([allocation.maybe_live_out for allocation in stored], np.bool_),
            largest=np.array(largest, np.int64),
        ),
        buffers=LogicalBuffers(
            ids=np.array(list(rows), np.int64),
            size_bytes=np.array(sizes, np.int64),
            space=np.where(owner >= 0, spaces[owner], own) if stored else own,
            allocation=owner,
            offset_bytes=offsets,
            rows=rows,
            protos=protos,
        ),
        traces=proto.heap_simulator_traces,
        warnings=tuple(f"Buffer assignment: {count:,} {what}." for what, count in odd.items() if count),
    )


def _first_of_each(protos: Iterable[_Proto], keys: Sequence[int]) -> tuple[list[_Proto], dict[int, int]]:
    """The first of each key, in order, and the row of each key."""
    rows: dict[int, int] = {}
    kept = []
    for proto, key in zip(protos, keys, strict=True):
        if key not in rows:
            rows[key] = len(rows)
            kept.append(proto)
    return kept, rows


def _sizes(stored: Sequence[int], odd: Counter[str], what: str) -> list[int]:
    """Sizes, 0 for one that can't be true."""
    sizes = [size if 0 <= size <= LARGEST_BYTES else 0 for size in stored]
    odd[f"{what} with an impossible size, which counts as 0"] = sum(map(operator.ne, sizes, stored))
    return sizes


def _assigned(
    stored: Sequence[hlo_pb2.BufferAllocationProto], rows: dict[int, int], sizes: Sequence[int], odd: Counter[str]
) -> tuple[Int64s, Int64s, list[int]]:
    """The allocation and the offset of each logical buffer, and the largest logical buffer of each allocation."""
    owner, offsets, largest = [-1] * len(rows), [-1] * len(rows), [-1] * len(stored)
    missing = repeated = 0
    for number, allocation in enumerate(stored):
        best = -1
        for assigned in allocation.assigned:
            row = rows.get(assigned.logical_buffer_id, -1)
            if row < 0:
                missing += 1
            elif owner[row] >= 0:
                repeated += 1
            else:
                owner[row], offsets[row] = number, max(-1, assigned.offset)
                if best < 0 or sizes[row] > sizes[best]:
                    best = row
        largest[number] = best
    odd["places in allocations left out: of logical buffers that are not there"] = missing
    odd["places in allocations left out: of logical buffers that have one already"] = repeated
    return np.array(owner, np.int64), np.array(offsets, np.int64), largest


def _category(allocation: hlo_pb2.BufferAllocationProto) -> int:
    """What holds an allocation, index into `CATEGORIES`; of several reasons the first counts, as in XProf."""
    reasons = (allocation.is_entry_computation_parameter, allocation.maybe_live_out, allocation.is_thread_local)
    return (*reasons, allocation.is_constant, True).index(True)


def _part(shape: hlo_pb2.ShapeProto, index: Iterable[int]) -> hlo_pb2.ShapeProto | None:
    """The element of a tuple at an index, one number a level; None where it has none."""
    for number in index:
        if not 0 <= number < len(shape.tuple_shapes):
            return None
        shape = shape.tuple_shapes[number]
    return shape


def _unpadded_bytes(shape: hlo_pb2.ShapeProto, size: int) -> int:
    """Bytes of the elements of an array, `size` for a table of pointers, 0 for what has no data; -1 where unknown.

    As `Shape.unpadded_bytes`, without reading the layout: a module can have very many buffers.
    """
    if shape.element_type in (_TUPLE, _BUFFER):
        return size
    if shape.element_type in (_OPAQUE, _TOKEN):
        return 0
    bits, dimensions = element_bits(shape), shape.dimensions
    stated = shape.layout.element_size_in_bits
    if not bits or len(dimensions) > _MAX_RANK or min(dimensions, default=0) < 0:
        return -1
    total = -(-prod(dimensions) * (min(bits, stated) if stated > 0 else bits) // 8)
    return total if total <= LARGEST_BYTES else -1


def _numbered(name: str, proto: hlo_pb2.LogicalBufferProto) -> str:
    """The name of an instruction with which element of its tuple is meant, ``copy-start{0}``."""
    index = ",".join(str(number) for number in proto.defined_at.shape_index)
    return f"{name}{{{index}}}" if index else name

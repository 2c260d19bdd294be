"""Arrays that are written to HBM larger than what they are made from, for matrix products or kernels alone.

The reader can unpack or repeat them on the chip: then neither the large array is written, nor is it read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Literal

import numpy as np

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.base.words import size
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.shapes import element_bits, element_type, shape_of_proto
from tpuprof.parsers.pages.findings.budget import Budget
from tpuprof.parsers.pages.findings.finding import Finding, JumpTarget
from tpuprof.parsers.pages.findings.ops.arrays import ModuleArrays, OpArrays
from tpuprof.parsers.pages.findings.ops.groups import Claimed, CloneGroup, named, op_finding, place_name
from tpuprof.parsers.pages.findings.ops.needless.uses import Given, Uses, all_fused, given_to, is_kernel, root_of

if TYPE_CHECKING:
    from tpuprof.parsers.formats.proto import hlo_pb2

_PACKED = 8  # bits of an element up to which it counts as packed
_LANES = 128  # elements side by side in a vector register

_MOVES = frozenset(
    (
        *(b"parameter", b"constant", b"bitcast", b"reshape", b"transpose", b"copy", b"convert", b"broadcast"),
        *(b"tuple", b"get-tuple-element"),
    )
)
"""What puts an array elsewhere, in another type perhaps."""

_REPEATS = _MOVES | {b"concatenate"}
_SHIFTS = frozenset((b"shift-left", b"shift-right-logical", b"shift-right-arithmetic"))
_UNPACKS = _MOVES | _SHIFTS | {b"multiply", b"add", b"subtract", b"divide", b"and", b"or", b"xor", b"bitcast-convert"}
"""What a fusion that only unpacks an array holds: its conversion, its scales and its zero points."""

_LEAST_REPEATS = 2

_How = Literal["unpacked", "repeated"]


@dataclass(frozen=True, slots=True)
class _Expanded:
    """An op that writes more than it reads.

    Attributes:
        source: what it expands, inside; made: its result.
        read, written: bytes of all operands, and of its result.
        readers: who alone reads that.
    """

    source: hlo_pb2.ShapeProto
    made: hlo_pb2.ShapeProto
    read: int
    written: int
    readers: tuple[hlo_pb2.HloInstructionProto, ...]


def expanded(budget: Budget, programs: Sequence[ModuleArrays]) -> list[Claimed]:
    """Arrays that are unpacked from fewer bits, and arrays that are repeated, in HBM: a finding for each of the two.

    Args:
        programs: what the large ops read and write.
    """
    found: dict[_How, dict[int, _Expanded]] = {"unpacked": {}, "repeated": {}}
    free = set(budget.ops("vector", "copy")[0].tolist())
    for program in programs:
        for how, row, of in program.of(free).once("expanded", _of_program):
            found[how][row] = of
    return [_claimed(budget, found["unpacked"], _unpacked), _claimed(budget, found["repeated"], _repeated)]


_Members = Mapping[int, _Expanded]
_Maker = Callable[[Budget, _Members, list[CloneGroup], float], Finding | None]


def _claimed(budget: Budget, members: _Members, make: _Maker) -> Claimed:
    rows = np.array(sorted(members), np.intp)
    return op_finding(
        budget, rows, budget.op_ps(rows), lambda groups, worth: make(budget, members, groups, worth), True
    )


_BASIS = (
    "Time of these ops: the ops that read their results can do the same on the chip. The bytes that those need not "
    "read then are not counted, because they save time only where memory is the limit."
)


def _unpacked(budget: Budget, members: _Members, groups: list[CloneGroup], worth: float) -> Finding | None:
    table, first = budget.evidence.table, groups[0].first
    of = members[first]
    kind, packed = element_type(of.made), element_type(of.source)
    name, ending = place_name(table, groups)
    return budget.finding(
        "unfused",
        f"{name} unpack{ending} {packed} to {kind} in HBM",
        worth,
        _BASIS,
        [
            f"They take {budget.amount(sum(group.ps for group in groups))}: {named(groups)}.",
            f"{budget.described(first)} reads {size(of.read)} and writes {size(of.written)} of {kind} that only "
            f"{_reader_words(of)} read.",
        ],
        JumpTarget("op-profile", table.name[first]),
        is_estimate=True,
        advice=f"Keep the conversion in the product's own fusion: multiply by the {packed} array as it is, and apply "
        "its scales to the result; or use a kernel that reads the packed array and converts blocks of it on the chip.",
    )


_FOR_KERNELS = (
    "Let the kernel repeat: kernels for grouped-query attention (splash_attention, ragged paged attention) take "
    "fewer heads of keys and values than of queries, and a block's index map can give one block to several heads."
)
_FOR_PRODUCTS = (
    "Keep the repetition out of the product: give the repeated axis its own dimension (an einsum over groups of "
    "heads or rows), apply repeated factors such as scales to the product's result, or use a kernel that repeats "
    "on the chip."
)


def _repeated(budget: Budget, members: _Members, groups: list[CloneGroup], worth: float) -> Finding | None:
    table, first = budget.evidence.table, groups[0].first
    of = members[first]
    name, ending = place_name(table, groups)
    return budget.finding(
        "unfused",
        f"{name} repeat{ending} arrays in HBM for {_reader_words(of)}",
        worth,
        _BASIS,
        [
            f"They take {budget.amount(sum(group.ps for group in groups))}: {named(groups)}.",
            f"{budget.described(first)} reads {size(of.read)} and writes each element "
            f"{counted(round(_count(of.made) / max(_count(of.source), 1)), 'time')}, {size(of.written)} that only "
            f"{_reader_words(of)} read.",
        ],
        JumpTarget("op-profile", table.name[first]),
        is_estimate=True,
        advice=_FOR_KERNELS if all(map(is_kernel, of.readers)) else _FOR_PRODUCTS,
    )


def _reader_words(of: _Expanded) -> str:
    return "kernels" if all(is_kernel(each) for each in of.readers) else "matrix products"


def _of_program(program: ModuleArrays) -> Iterator[tuple[_How, int, _Expanded]]:
    module, uses = program.module, Uses(program.module)
    for of in program.ops.values():
        how, source = _source(module, of)
        if how is None or source is None:
            continue
        readers = uses.by_products_alone(of)
        if how == "repeated" and any(map(is_kernel, readers)) and _fills_lanes(module, of):
            continue  # the layout that a kernel needs of what it reads a row at a time
        root = root_of(module, of.proto)
        read = sum(_bytes(operand.shape) for operand in module.operand_protos(of.proto) if operand is not None)
        written = sum(array.bytes for array in of.writes)
        if readers and root is not None and read < written / (_LEAST_REPEATS if how == "repeated" else 1):
            yield how, of.row, _Expanded(source.inner.shape, root.shape, read, written, tuple(readers))


def _source(module: HloModule, of: OpArrays) -> tuple[_How | None, Given | None]:
    """How an op expands an array, and which; None for both where it does not, or does anything else as well."""
    inside = all_fused(module, of.proto)
    opcodes, made = {each.opcode for each in inside}, of.proto.shape
    if len(of.writes) != 1 or made.tuple_shapes:
        return None, None
    given = [each for each in given_to(module, of.proto) if _count(each.inner.shape) > 1]
    largest = max(given, key=lambda each: _count(each.inner.shape), default=None)
    if largest is None:
        return None, None
    if opcodes <= _UNPACKS and _is_packed(largest.inner.shape, made, bool(opcodes & _SHIFTS)):
        return ("unpacked", largest) if b"convert" in opcodes else (None, None)
    if opcodes <= _REPEATS and opcodes & {b"broadcast", b"concatenate"} and len(given) == 1:
        return "repeated", largest
    return None, None


def _is_packed(source: hlo_pb2.ShapeProto, made: hlo_pb2.ShapeProto, shifts: bool) -> bool:
    """Whether an array holds the elements of another in fewer bits, several in one where it is shifted."""
    before, after, kind = element_bits(source), element_bits(made), element_type(source)
    if kind == "pred" or not before or not after:
        return False
    in_each, rest = divmod(_count(made), _count(source))
    if rest or not in_each:
        return False
    if in_each == 1:
        return before <= _PACKED and before < after
    return shifts and kind[0] in "su" and in_each <= before // 2 and before < after * in_each


def _fills_lanes(module: HloModule, of: OpArrays) -> bool:
    """Whether an op repeats an array along the dimension that lies side by side, to fill vector registers."""
    for each in all_fused(module, of.proto):
        if each.opcode == b"broadcast" and each.shape.dimensions:
            order = each.shape.layout.minor_to_major
            minor = order[0] if order else len(each.shape.dimensions) - 1
            if minor not in each.dimensions and each.shape.dimensions[minor] <= _LANES:
                return True
    return False


def _count(shape: hlo_pb2.ShapeProto) -> int:
    return prod(shape.dimensions)


def _bytes(proto: hlo_pb2.ShapeProto) -> int:
    shape = shape_of_proto(proto)
    return 0 if shape is None else shape.padded_bytes or shape.unpadded_bytes or 0

"""Arrays that are written to HBM larger than what they are made from, for matrix products or kernels alone.

The reader can unpack or repeat them on the chip: then neither the large array is written, nor is it read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal

import numpy as np

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.base.words import size
from tpuprof.parsers.formats.hlo.modules import HloModule, all_fused, is_kernel
from tpuprof.parsers.formats.hlo.shapes import element_bits, element_type, elements, shape_of_proto
from tpuprof.parsers.pages.findings.budget import NOTHING, Budget, Claimed, detects
from tpuprof.parsers.pages.findings.ops.arrays import ModuleArrays, OpArrays, large_arrays
from tpuprof.parsers.pages.findings.ops.groups import losing_of, place_name
from tpuprof.parsers.pages.findings.ops.intermediates import UNFUSED
from tpuprof.parsers.pages.findings.ops.needless import uses as hlo_uses

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


@detects(UNFUSED)
def expanded(budget: Budget) -> list[Claimed]:
    """Arrays that are unpacked from fewer bits, and arrays that are repeated, in HBM: a finding for each of the two."""
    found: dict[_How, dict[int, _Expanded]] = {"unpacked": {}, "repeated": {}}
    free = set(budget.ops("vector", "copy")[0].tolist())
    for program in budget.once(large_arrays):
        for how, row, of in program.of(free).once("expanded", _of_program):
            found[how][row] = of
    return [_finding(budget, how, members) for how, members in found.items()]


_BASIS = (
    "Time of these ops: the ops that read their results can do the same on the chip. The bytes that those need not "
    "read then are not counted, because they save time only where memory is the limit."
)

_UNPACKED = (
    "Keep the conversion in the product's own fusion: multiply by the {packed} array as it is, and apply its scales to "
    "the result; or use a kernel that reads the packed array and converts blocks of it on the chip."
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


def _finding(budget: Budget, how: _How, members: Mapping[int, _Expanded]) -> Claimed:
    rows = np.array(sorted(members), np.intp)
    losing = losing_of(budget, rows, budget.op_ps(rows), goes_away=True)
    if losing is None:
        return NOTHING
    of = members[losing.first]
    name, ending = place_name(budget.evidence.table, losing.groups)
    kind, packed, for_kernels = element_type(of.made), element_type(of.source), all(map(is_kernel, of.readers))
    readers = "kernels" if for_kernels else "matrix products"
    if how == "unpacked":
        title, written = f"unpack{ending} {packed} to {kind} in HBM", f"{size(of.written)} of {kind}"
        advice = _UNPACKED.format(packed=packed)
    else:
        times = counted(round(elements(of.made) / max(elements(of.source), 1)), "time")
        title, written = f"repeat{ending} arrays in HBM for {readers}", f"each element {times}, {size(of.written)}"
        advice = _FOR_KERNELS if for_kernels else _FOR_PRODUCTS
    reads = f"{budget.described(losing.first)} reads {size(of.read)} and writes {written} that only {readers} read."
    return losing.finding(UNFUSED, f"{name} {title}", _BASIS, [losing.words(), reads], advice=advice)


def _of_program(program: ModuleArrays) -> Iterator[tuple[_How, int, _Expanded]]:
    module, uses = program.module, hlo_uses.Uses(program.module)
    for of in program.ops.values():
        how, source = _source(module, of)
        if how is None or source is None:
            continue
        readers = uses.by_products_alone(of)
        if how == "repeated" and any(map(is_kernel, readers)) and _fills_lanes(module, of):
            continue  # the layout that a kernel needs of what it reads a row at a time
        root = hlo_uses.root_of(module, of.proto)
        read = sum(_bytes(operand.shape) for operand in module.operand_protos(of.proto) if operand is not None)
        written = sum(array.bytes for array in of.writes)
        if readers and root is not None and read < written / (_LEAST_REPEATS if how == "repeated" else 1):
            yield how, of.row, _Expanded(source.inner.shape, root.shape, read, written, tuple(readers))


def _source(module: HloModule, of: OpArrays) -> tuple[_How | None, hlo_uses.FusionInput | None]:
    """How an op expands an array, and which; None for both where it does not, or does anything else as well."""
    inside = all_fused(module, of.proto)
    opcodes, made = {each.opcode for each in inside}, of.proto.shape
    if len(of.writes) != 1 or made.tuple_shapes:
        return None, None
    given = [each for each in hlo_uses.fusion_inputs(module, of.proto) if elements(each.inner.shape) > 1]
    largest = max(given, key=lambda each: elements(each.inner.shape), default=None)
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
    in_each, rest = divmod(elements(made), elements(source))
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


def _bytes(proto: hlo_pb2.ShapeProto) -> int:
    shape = shape_of_proto(proto)
    return 0 if shape is None else shape.memory_bytes or 0

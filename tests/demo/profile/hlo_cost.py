"""FLOPs and bytes of HLO instructions, counted the way the compiler's own cost analysis counts them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

import numpy as np

from tests.demo.profile.hlo_module import VMEM, Module, elements, leaves, shape_bytes
from tpuprof.parsers.formats.proto import hlo_pb2

Instruction = hlo_pb2.HloInstructionProto
Computation = hlo_pb2.HloComputationProto

ELEMENTWISE = frozenset(
    b"abs add and clamp compare convert divide maximum minimum multiply negate not or remainder round-nearest-afz "
    b"round-nearest-even select shift-left shift-right-arithmetic shift-right-logical sign subtract xor floor ceil "
    b"is-finite".split()
)
FREE = frozenset(b"parameter constant get-tuple-element tuple bitcast after-all".split())
_CYCLES = re.compile(rb'"estimated_cycles":"(\d+)"')


def estimated_cycles(instruction: Instruction) -> int | None:
    """The compiler's estimate of an op's cycles, or None; 0 is no estimate."""
    found = _CYCLES.search(instruction.backend_config)
    return int(found[1]) or None if found else None


@cache
def _positions(size_in: int, size_out: int, size: int, stride: int, padding: int, dilation: int, holes: int) -> int:
    """How often a window of one dimension meets an element, over all places that it stands at."""
    at = np.arange(size_out)[:, None] * stride - padding + np.arange(size)[None, :] * dilation
    return int(np.count_nonzero((at % holes == 0) & (at >= 0) & (at // holes < size_in)))


def convolution_flops(module: Module, instruction: Instruction) -> int:
    """2 × multiply-adds of a convolution; positions in padding and in dilation holes do not count.

    The TPU compiler writes batched matrix products as convolutions whose batch dimension is a dilated window: counting
    every window position would multiply their FLOPs by the batch.
    """
    left, right = (operand.shape.dimensions for operand in module.operands(instruction))
    numbers = instruction.convolution_dimension_numbers
    out = instruction.shape.dimensions
    positions = 1
    for dimension, window in enumerate(instruction.window.dimensions):
        size_in = left[numbers.input_spatial_dimensions[dimension]]
        size_out = out[numbers.output_spatial_dimensions[dimension]]
        dilations = window.window_dilation or 1, window.base_dilation or 1
        positions *= _positions(size_in, size_out, window.size, window.stride, window.padding_low, *dilations)
    features = left[numbers.input_feature_dimension] // max(instruction.feature_group_count, 1)
    batch = left[numbers.input_batch_dimension] // max(instruction.batch_group_count, 1)
    return 2 * positions * features * batch * right[numbers.kernel_output_feature_dimension]


def flops(module: Module, instruction: Instruction) -> int:
    """FLOPs of one run of an instruction; of a loop, those of one iteration."""
    opcode = instruction.opcode
    if opcode == b"convolution":
        return convolution_flops(module, instruction)
    if opcode == b"dot":
        left = module.operands(instruction)[0].shape.dimensions
        depth = 1
        for dimension in instruction.dot_dimension_numbers.lhs_contracting_dimensions:
            depth *= left[dimension]
        return 2 * depth * elements(instruction.shape)
    if opcode in ELEMENTWISE:
        return elements(instruction.shape)
    if opcode == b"reduce":
        return max(elements(module.operands(instruction)[0].shape) - elements(leaves(instruction.shape)[0]), 0)
    if opcode in (b"all-reduce", b"reduce-scatter"):
        return sum(elements(leaf) for leaf in leaves(instruction.shape))
    if opcode in (b"fusion", b"while", b"call"):
        computations = [module.body(instruction)] if opcode == b"while" else module.called(instruction)
        return sum(flops(module, inner) for c in computations for inner in c.instructions)
    return 0


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes that an op reads and writes, in HBM and on the chip (VMEM)."""

    hbm_read: int = 0
    hbm_written: int = 0
    vmem_read: int = 0
    vmem_written: int = 0

    @property
    def hbm(self) -> int:
        """All HBM bytes."""
        return self.hbm_read + self.hbm_written

    @property
    def total(self) -> int:
        return self.hbm + self.vmem_read + self.vmem_written


def traffic(module: Module, instruction: Instruction) -> Traffic:
    """Bytes of one run of an instruction.

    A fusion that slices an operand reads the slice, and one that updates an operand in place writes the update:
    counting the whole stacked array of a scanned layer would put such ops above the memory's bandwidth.
    """
    totals = {"hbm_read": 0, "hbm_written": 0, "vmem_read": 0, "vmem_written": 0}

    def add(shape: hlo_pb2.ShapeProto, size: int, kind: str) -> None:
        if shape.layout.memory_space in (0, VMEM):
            totals[("vmem_" if shape.layout.memory_space else "hbm_") + kind] += size

    inner = module.called(instruction)[0] if instruction.opcode == b"fusion" else None
    if instruction.opcode in (b"slice", b"dynamic-slice"):
        add(module.operands(instruction)[0].shape, shape_bytes(instruction.shape), "read")
        add(instruction.shape, shape_bytes(instruction.shape), "written")
        return Traffic(**totals)
    for position, operand in enumerate(module.operands(instruction)):
        for leaf in leaves(operand.shape):
            size = shape_bytes(leaf)
            add(leaf, size if inner is None else min(size, _read(module, inner, position, size)), "read")
    written = _written(module, instruction, inner)
    for leaf, size in zip(leaves(instruction.shape), written, strict=True):
        add(leaf, size, "written")
    return Traffic(**totals)


def _read(module: Module, inner: Computation, position: int, size: int) -> int:
    """Bytes that a fused computation reads of one parameter."""
    (parameter,) = (i for i in inner.instructions if i.opcode == b"parameter" and i.parameter_number == position)
    return _used(module, inner, parameter, size)


def _used(module: Module, inner: Computation, source: Instruction, size: int) -> int:
    total = 0
    for user in inner.instructions:
        if source.id not in user.operand_ids:
            continue
        if user.opcode in (b"dynamic-slice", b"slice", b"gather"):
            total += shape_bytes(user.shape)
        elif user.opcode == b"dynamic-update-slice" and user.operand_ids[0] == source.id:
            continue
        elif user.opcode == b"bitcast":
            total += _used(module, inner, user, size)
        elif user.opcode == b"tuple" and user.id == inner.root_id:
            continue
        elif user.opcode == b"fusion":
            deeper = module.called(user)[0]
            total += sum(_read(module, deeper, at, size) for at, key in enumerate(user.operand_ids) if key == source.id)
        else:
            return size
    return min(total, size)


def _written(module: Module, instruction: Instruction, inner: Computation | None) -> list[int]:
    """Bytes written of each leaf of an instruction's shape."""
    sizes = [shape_bytes(leaf) for leaf in leaves(instruction.shape)]
    if instruction.opcode == b"dynamic-update-slice":
        return [shape_bytes(module.operands(instruction)[1].shape)]
    if inner is None:
        return sizes
    root = module.instructions[inner.root_id]
    parts = module.operands(root) if root.opcode == b"tuple" else [root]
    if len(parts) != len(sizes):
        return sizes
    return [_stored(module, part, size) for part, size in zip(parts, sizes, strict=True)]


def _stored(module: Module, part: Instruction, size: int) -> int:
    while part.opcode == b"bitcast":
        part = module.operands(part)[0]
    if part.opcode == b"parameter":
        return 0
    if part.opcode == b"dynamic-update-slice":
        return min(size, shape_bytes(module.operands(part)[1].shape))
    if part.opcode == b"fusion":
        deeper = module.called(part)[0]
        return _stored(module, module.instructions[deeper.root_id], size)
    return size


CATEGORIES = {
    b"copy": "data formatting", b"transpose": "data formatting", b"reshape": "data formatting",
    b"all-reduce": "all-reduce", b"all-gather": "all-gather", b"all-to-all": "all-to-all",
    b"collective-permute-start": "collective-permute-start", b"collective-permute-done": "collective-permute-done",
}  # fmt: skip


def category(module: Module, instruction: Instruction) -> str:
    """The op's `hlo_category` as TPU profiles have it."""
    opcode = instruction.opcode
    if opcode == b"fusion":
        inner = module.called(instruction)[0]
        if b"all-reduce-scatter" in inner.name:
            return "all-reduce-scatter fusion"
        if _holds(module, inner, b"convolution"):
            return "convolution fusion"
        return {b"kLoop": "loop fusion", b"kOutput": "output fusion", b"kInput": "input fusion"}.get(
            instruction.fusion_kind, "custom fusion"
        )
    if opcode in ELEMENTWISE:
        return "non-fusion elementwise"
    return CATEGORIES.get(opcode, opcode.decode())


def _holds(module: Module, computation: Computation, opcode: bytes) -> bool:
    return any(
        i.opcode == opcode or (i.opcode == b"fusion" and _holds(module, module.called(i)[0], opcode))
        for i in computation.instructions
    )

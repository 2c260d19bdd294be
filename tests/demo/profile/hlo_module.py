"""The committed HLO modules of the demo, indexed: shapes, texts, source lines, replica groups, trip counts."""

from __future__ import annotations

import gzip
import hashlib
import json
import math
from functools import cached_property
from pathlib import Path

import numpy as np

from tpuprof.parsers.formats.proto import hlo_pb2

MODULES = Path(__file__).parents[1] / "modules"

TUPLE = 13
ELEMENT_TYPES = {
    1: ("pred", 1), 2: ("s8", 1), 3: ("s16", 2), 4: ("s32", 4), 5: ("s64", 8), 6: ("u8", 1), 7: ("u16", 2),
    8: ("u32", 4), 9: ("u64", 8), 10: ("f16", 2), 11: ("f32", 4), 12: ("f64", 8), 15: ("c64", 8), 16: ("bf16", 2),
}  # fmt: skip

VMEM = 1
"""`LayoutProto.memory_space` of on-chip vector memory; HBM is 0."""


def elements(shape: hlo_pb2.ShapeProto) -> int:
    """Elements of an array shape (1 of a scalar), 0 of tuples and tokens."""
    return math.prod(shape.dimensions) if shape.element_type in ELEMENT_TYPES else 0


def leaves(shape: hlo_pb2.ShapeProto) -> list[hlo_pb2.ShapeProto]:
    """The array shapes of a shape, tuples flattened."""
    if shape.element_type == TUPLE:
        return [leaf for part in shape.tuple_shapes for leaf in leaves(part)]
    return [shape]


def shape_bytes(shape: hlo_pb2.ShapeProto) -> int:
    """Bytes of an array without padding; 0 of tuples and tokens."""
    return elements(shape) * ELEMENT_TYPES.get(shape.element_type, ("", 0))[1]


def shape_text(shape: hlo_pb2.ShapeProto) -> str:
    """A shape with its layout as HLO text writes it: ``bf16[8,1024]{1,0:T(8,128)(2,1)S(1)}``."""
    if shape.element_type == TUPLE:
        return f"({', '.join(map(shape_text, shape.tuple_shapes))})"
    name = ELEMENT_TYPES.get(shape.element_type, ("token", 0))[0]
    order = ",".join(map(str, shape.layout.minor_to_major))
    tiles = "".join(f"({','.join(map(str, tile.dimensions))})" for tile in shape.layout.tiles)
    extra = (f"T{tiles}" if tiles else "") + (f"S({shape.layout.memory_space})" if shape.layout.memory_space else "")
    layout = f"{{{order}{':' + extra if extra else ''}}}" if order or extra else ""
    return f"{name}[{','.join(map(str, shape.dimensions))}]{layout}"


class Module:
    """One compiled module.

    Attributes:
        proto_bytes: the serialized HloProto; module: its HloModuleProto.
        facts: the compiler's own totals (`compile_modules.py`).
        program_id: a fingerprint of the bytes, as the runtime would give one.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.proto_bytes = gzip.decompress((MODULES / f"{name}.hlo_proto.pb.gz").read_bytes())
        self.facts: dict[str, float] = json.loads((MODULES / f"{name}.json").read_text())
        self.proto = hlo_pb2.HloProto.FromString(self.proto_bytes)
        self.module = self.proto.hlo_module
        self.program_id = int.from_bytes(hashlib.sha256(self.proto_bytes).digest()[:8], "little")
        self.computations = {c.id: c for c in self.module.computations}
        self.instructions = {i.id: i for c in self.module.computations for i in c.instructions}
        self.symbols = {key: index + 1 for index, key in enumerate(self.instructions)}
        self._texts: dict[int, str] = {}

    @property
    def full_name(self) -> str:
        """Name as modules have it in a profile: ``jit_f(program id)``."""
        return f"{self.name}({self.program_id})"

    @property
    def entry(self) -> hlo_pb2.HloComputationProto:
        return self.computations[self.module.entry_computation_id]

    def scheduled(self, computation: hlo_pb2.HloComputationProto) -> list[hlo_pb2.HloInstructionProto]:
        """Instructions of a computation in the order they run."""
        sequence = self.module.schedule.sequences
        if computation.id in sequence:
            return [self.instructions[key] for key in sequence[computation.id].instruction_ids]
        return list(computation.instructions)

    def called(self, instruction: hlo_pb2.HloInstructionProto) -> list[hlo_pb2.HloComputationProto]:
        return [self.computations[key] for key in instruction.called_computation_ids]

    def operands(self, instruction: hlo_pb2.HloInstructionProto) -> list[hlo_pb2.HloInstructionProto]:
        return [self.instructions[key] for key in instruction.operand_ids]

    def trip_count(self, loop: hlo_pb2.HloInstructionProto) -> int:
        """Iterations of a counted `while`: the constant that its condition compares with."""
        body, condition = self._body_and_condition(loop)
        bounds = [i.literal.s32s[0] for i in condition.instructions if i.opcode == b"constant" and i.literal.s32s]
        if len(bounds) != 1:
            raise ValueError(f"{loop.name!r}: loop bound not found beside {body.name!r}")
        return int(bounds[0])

    def body(self, loop: hlo_pb2.HloInstructionProto) -> hlo_pb2.HloComputationProto:
        return self._body_and_condition(loop)[0]

    def _body_and_condition(
        self, loop: hlo_pb2.HloInstructionProto
    ) -> tuple[hlo_pb2.HloComputationProto, hlo_pb2.HloComputationProto]:
        first, second = self.called(loop)
        is_condition = self.instructions[first.root_id].shape.element_type == 1
        return (second, first) if is_condition else (first, second)

    @cached_property
    def deduplicated_names(self) -> dict[int, str]:
        """Instruction id → name that fusions of equal structure share, where there are two or more."""
        groups: dict[tuple[object, ...], list[hlo_pb2.HloInstructionProto]] = {}
        for instruction in self.instructions.values():
            if instruction.opcode == b"fusion":
                inner = self.called(instruction)[0].instructions
                key = tuple((i.opcode, shape_text(i.shape)) for i in inner)
                groups.setdefault(key, []).append(instruction)
        return {i.id: group[0].name.decode() for group in groups.values() if len(group) > 1 for i in group}

    def text(self, instruction: hlo_pb2.HloInstructionProto) -> str:
        """The instruction as one line of HLO text, without metadata and configuration."""
        if instruction.id not in self._texts:
            self._texts[instruction.id] = self._text(instruction)
        return self._texts[instruction.id]

    def _text(self, instruction: hlo_pb2.HloInstructionProto) -> str:
        operands = ", ".join(f"{shape_text(o.shape)} %{o.name.decode()}" for o in self.operands(instruction))
        attributes = []
        if instruction.dimensions:
            attributes.append(f"dimensions={{{','.join(map(str, instruction.dimensions))}}}")
        if instruction.custom_call_target:
            attributes.append(f'custom_call_target="{instruction.custom_call_target.decode()}"')
        if instruction.channel_id:
            attributes.append(f"channel_id={instruction.channel_id}")
        groups = self.replica_groups(instruction)
        if groups:
            text = ",".join(f"{{{','.join(map(str, group))}}}" for group in groups)
            attributes.append(f"replica_groups={{{text}}}")
        if instruction.fusion_kind:
            attributes.append(f"kind={instruction.fusion_kind.decode()}")
        called = [f"%{c.name.decode()}" for c in self.called(instruction)]
        if instruction.opcode == b"while":
            body, condition = self._body_and_condition(instruction)
            attributes.append(f"condition=%{condition.name.decode()}, body=%{body.name.decode()}")
        elif called:
            attributes.append(f"{'calls' if instruction.opcode == b'fusion' else 'to_apply'}={called[0]}")
        tail = "".join(f", {attribute}" for attribute in attributes)
        name, opcode = instruction.name.decode(), instruction.opcode.decode()
        return f"%{name} = {shape_text(instruction.shape)} {opcode}({operands}){tail}"

    def stack(self, instruction: hlo_pb2.HloInstructionProto) -> list[str]:
        """Source lines of an instruction, ``file:line``, the innermost last."""
        index = self.module.stack_frame_index
        frames: list[str] = []
        key = instruction.metadata.stack_frame_id
        while key:
            frame = index.stack_frames[key - 1]
            location = index.file_locations[frame.file_location_id - 1]
            frames.append(f"{index.file_names[location.file_name_id - 1].decode()}:{location.line}")
            key = frame.parent_frame_id
        return frames[::-1]

    def replica_groups(self, instruction: hlo_pb2.HloInstructionProto) -> list[list[int]]:
        """Devices that take part in a collective together; empty where the instruction names none."""
        if instruction.replica_groups:
            return [list(group.replica_ids) for group in instruction.replica_groups]
        if instruction.HasField("collective_device_list"):
            return [list(group.replica_ids) for group in instruction.collective_device_list.replica_groups]
        if instruction.HasField("iota_collective_device_list"):
            iota = instruction.iota_collective_device_list
            count = iota.num_replica_groups * iota.num_devices_per_group
            devices = np.arange(count).reshape(list(iota.iota_reshape_dims))
            if iota.iota_transpose_perm:
                devices = devices.transpose(list(iota.iota_transpose_perm))
            return [[int(x) for x in row] for row in devices.reshape(iota.num_replica_groups, -1)]
        if instruction.HasField("mesh_axes_replica_group_list"):
            groups = instruction.mesh_axes_replica_group_list
            sizes = [axis.size for axis in groups.mesh.axes]
            flat = groups.mesh.device_ids or range(math.prod(sizes))
            chosen = [axis.mesh_axis_index for axis in groups.axes]
            devices = np.moveaxis(np.array(list(flat)).reshape(sizes), chosen, range(-len(chosen), 0))
            return [[int(x) for x in row] for row in devices.reshape(-1, math.prod(sizes[a] for a in chosen))]
        return []

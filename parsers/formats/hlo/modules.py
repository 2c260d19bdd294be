"""One compiled HLO module: its instructions, what fusions hold, and the HLO text of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from tpuprof.parsers.base.intervals import grouped
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.hlo.shapes import element_type, shape_text
from tpuprof.parsers.formats.xspace.walk import text

if TYPE_CHECKING:
    from tpuprof.parsers.formats.proto import hlo_pb2

KERNEL_TARGET = b"tpu_custom_call"
"""The target of a custom call that is a Mosaic kernel."""

_WRAPPERS = frozenset((b"fusion", b"call", b"async-start", b"async-update", b"async-done"))
_WITH_DIMENSIONS = frozenset((b"broadcast", b"concatenate", b"reduce", b"reverse", b"transpose"))

_Entry = TypeVar("_Entry")


@dataclass(frozen=True, slots=True)
class Instruction:
    """One HLO instruction.

    Attributes:
        name: unique in its module, without ``%``.
        opcode: such as ``fusion``, ``convolution`` or ``copy-start``.
        shape: the shape of its result in XLA's notation with layouts; a tuple's is in parentheses.
        operands: names of its operands, without those that the module lacks.
        expression: compact HLO text, ``%add.4 = f32[5,1024]{1,0:T(8,128)} add(%broadcast.8, %param_0)``.
        framework_op: where it comes from, ``jit(step)/layer/dot_general``; None where the compiler does not say.
        source: ``file:line``; None where the compiler does not say.
        is_fusion: whether it is a fusion of other instructions.
    """

    name: str
    opcode: str
    shape: str
    operands: tuple[str, ...]
    expression: str
    framework_op: str | None
    source: str | None
    is_fusion: bool


class HloModule:
    """One compiled program.

    Attributes:
        proto: the whole decoded proto, buffer assignment included.
        name: the module's name, such as ``jit_step``.
    """

    def __init__(self, proto: hlo_pb2.HloProto) -> None:
        self.proto = proto
        module = proto.hlo_module
        self.name = text(module.name)
        self._frames = module.stack_frame_index
        self._by_name: dict[str, hlo_pb2.HloInstructionProto] = {}
        self._by_id: dict[int, hlo_pb2.HloInstructionProto] = {}
        self._computations: dict[int, hlo_pb2.HloComputationProto] = {}
        self._users: dict[int, list[hlo_pb2.HloInstructionProto]] | None = None
        for computation in module.computations:  # of repeated ids and names the first one counts
            self._computations.setdefault(computation.id, computation)
            for instruction in computation.instructions:
                self._by_name.setdefault(text(instruction.name), instruction)
                self._by_id.setdefault(instruction.id, instruction)

    def instruction(self, name: str) -> Instruction | None:
        """The instruction of this name, with or without ``%``; None where the module has none."""
        proto = self.instruction_proto(name)
        return None if proto is None else self._read(proto)

    def fused(self, name: str) -> tuple[Instruction, ...]:
        """The instructions that a fusion, a call or an asynchronous operation wraps, in program order.

        Without parameters. () where the instruction wraps nothing or does not exist; loops, branches and the small
        computations of a reduce or a sort do not count as wrapped. A done or update wraps what its start wraps.
        """
        proto = self.instruction_proto(name)
        computation = None if proto is None else self.wrapped(proto)
        inside = () if computation is None else self.in_order(computation)
        return tuple(self._read(inner) for inner in inside if inner.opcode != b"parameter")

    def arguments(self) -> list[tuple[str, str, tuple[int, ...]]]:
        """The program's arguments in their order: what it calls each (else empty), the element type, the dimensions."""
        entry = self._computations.get(self.proto.hlo_module.entry_computation_id)
        parameters = [each for each in entry.instructions if each.opcode == b"parameter"] if entry is not None else []
        parameters.sort(key=lambda each: each.parameter_number)
        return [
            (text(each.metadata.op_name), element_type(each.shape), tuple(each.shape.dimensions)) for each in parameters
        ]

    def instruction_proto(self, name: str) -> hlo_pb2.HloInstructionProto | None:
        return self._by_name.get(name.removeprefix("%"))

    def instruction_by_id(self, number: int) -> hlo_pb2.HloInstructionProto | None:
        """The instruction of this id; None where the module has none."""
        return self._by_id.get(number)

    def defining(self, buffer: hlo_pb2.LogicalBufferProto) -> hlo_pb2.HloInstructionProto | None:
        """What defines a logical buffer: older compilers give its name and no id; None where the module has none."""
        place = buffer.defined_at
        name = text(place.instruction_name)
        return self.instruction_proto(name) if name else self.instruction_by_id(place.instruction_id)

    def computation(self, number: int) -> hlo_pb2.HloComputationProto | None:
        """The computation of this id; None where the module has none."""
        return self._computations.get(number)

    def source(self, proto: hlo_pb2.HloInstructionProto) -> str | None:
        """``file:line`` where an instruction comes from; None where the compiler does not say.

        Newer compilers give only a frame of the module's stack table, whose ids start at 1.
        """
        metadata = proto.metadata
        if metadata.source_file:
            return _at_line(text(metadata.source_file), metadata.source_line)
        frame = _entry(self._frames.stack_frames, metadata.stack_frame_id)
        return self._place(frame.file_location_id)[0] or None if frame is not None else None

    def stack(self, proto: hlo_pb2.HloInstructionProto) -> tuple[str, ...]:
        """The calls that an instruction comes from, ``file:line function`` each, the innermost first.

        () where the compiler gives none. It leaves out frames without a place and ends where a chain returns to itself.
        """
        number, visited, calls = proto.metadata.stack_frame_id, set[int](), list[str]()
        while number not in visited and (frame := _entry(self._frames.stack_frames, number)) is not None:
            visited.add(number)
            where, function = self._place(frame.file_location_id)
            calls += [f"{where} {function}" if function else where] if where else []
            number = frame.parent_frame_id
        return tuple(calls)

    def _place(self, number: int) -> tuple[str, str]:
        """``file:line`` and function of a file location; empty where the table lacks it or its file."""
        place = _entry(self._frames.file_locations, number)
        file = _entry(self._frames.file_names, place.file_name_id) if place is not None else None
        if place is None or not file:
            return "", ""
        return _at_line(text(file), place.line), text(
            _entry(self._frames.function_names, place.function_name_id) or b""
        )

    def operand_protos(self, proto: hlo_pb2.HloInstructionProto) -> tuple[hlo_pb2.HloInstructionProto | None, ...]:
        """The operands, None for one that the module lacks."""
        return tuple(self._by_id.get(operand) for operand in proto.operand_ids)

    def users(self, number: int) -> Sequence[hlo_pb2.HloInstructionProto]:
        """The instructions that have the one of this id among their operands."""
        if self._users is None:
            self._users = grouped((operand, user) for user in self._by_id.values() for operand in user.operand_ids)
        return self._users.get(number, ())

    def backend_config(self, proto: hlo_pb2.HloInstructionProto) -> bytes:
        """JSON, or whatever else a backend keeps there; newer compilers put it in a table of the module."""
        if not proto.HasField("backend_config_payload"):
            return proto.backend_config
        payload, table = proto.backend_config_payload, self.proto.hlo_module.payloads
        if payload.WhichOneof("payload_source") == "id":
            return table[payload.id] if 0 <= payload.id < len(table) else b""
        return payload.value

    def wrapped(self, proto: hlo_pb2.HloInstructionProto) -> hlo_pb2.HloComputationProto | None:
        """The computation that a fusion, a call or an asynchronous operation wraps, see `fused`."""
        visited: set[int] = set()
        while proto.opcode in _WRAPPERS:
            for called in proto.called_computation_ids:
                if called in self._computations:
                    return self._computations[called]
            start = self._by_id.get(proto.operand_ids[0]) if proto.operand_ids else None
            if start is None or not proto.opcode.startswith(b"async-") or proto.id in visited:
                break
            visited.add(proto.id)
            proto = start
        return None

    def inside(self, proto: hlo_pb2.HloInstructionProto) -> list[hlo_pb2.HloInstructionProto]:
        """What an instruction wraps; itself where it wraps nothing."""
        computation = self.wrapped(proto)
        return [proto] if computation is None else list(computation.instructions)

    def in_order(self, computation: hlo_pb2.HloComputationProto) -> Iterator[hlo_pb2.HloInstructionProto]:
        """Instructions in the order of the compiler's schedule, else as stored, where operands come first."""
        sequences = self.proto.hlo_module.schedule.sequences
        order = sequences[computation.id].instruction_ids if computation.id in sequences else ()
        own = {instruction.id: instruction for instruction in computation.instructions}
        if len(order) == len(own) == len(computation.instructions) and set(order) == own.keys():
            return iter([own[number] for number in order])
        return iter(computation.instructions)

    def _read(self, proto: hlo_pb2.HloInstructionProto) -> Instruction:
        operands = tuple(text(operand.name) for operand in self.operand_protos(proto) if operand is not None)
        name, opcode, shape = text(proto.name), text(proto.opcode), shape_text(proto.shape)
        inside = ", ".join(f"%{operand}" for operand in operands) or literal(proto)
        expression = f"%{name} = {shape} {opcode}({inside}){self._attributes(proto)}"
        origin = (text(proto.metadata.op_name) or None, self.source(proto))
        return Instruction(name, opcode, shape, operands, expression, *origin, is_fusion=opcode == "fusion")

    def _attributes(self, proto: hlo_pb2.HloInstructionProto) -> str:
        """The attributes that the expression needs to be understood, each behind a comma."""
        attributes: list[str] = []
        if proto.opcode in _WITH_DIMENSIONS:
            attributes.append(f"dimensions={braces(proto.dimensions)}")
        elif proto.opcode == b"get-tuple-element":
            attributes.append(f"index={proto.tuple_index}")
        elif proto.opcode == b"compare":
            attributes.append(f"direction={text(proto.comparison_direction)}")
        elif proto.opcode == b"custom-call":
            attributes.append(f'custom_call_target="{text(proto.custom_call_target)}"')
        elif proto.opcode == b"dot":
            numbers = proto.dot_dimension_numbers
            attributes.append(f"lhs_contracting_dims={braces(numbers.lhs_contracting_dimensions)}")
            attributes.append(f"rhs_contracting_dims={braces(numbers.rhs_contracting_dimensions)}")
        if proto.opcode == b"fusion" and proto.fusion_kind:
            attributes.append(f"kind={text(proto.fusion_kind)}")
        if proto.opcode in _WRAPPERS:
            called = [self._computations.get(number) for number in proto.called_computation_ids]
            attributes += [f"calls=%{text(computation.name)}" for computation in called if computation is not None]
        return "".join(f", {attribute}" for attribute in attributes)


def literal(proto: hlo_pb2.HloInstructionProto) -> str:
    """The text in the brackets of an instruction without operands."""
    if proto.opcode == b"parameter":
        return str(proto.parameter_number)
    if proto.opcode != b"constant":
        return ""
    held = proto.literal
    values = [*held.s32s[:2], *held.s64s[:2], *held.u32s[:2], *held.u64s[:2]]
    return str(values[0]) if len(values) == 1 and not proto.shape.dimensions else "{...}"


def _entry(table: Sequence[_Entry], number: int) -> _Entry | None:
    """An entry of a table that counts from 1; None where it has none."""
    return table[number - 1] if 0 < number <= len(table) else None


def _at_line(file: str, line: int) -> str:
    return f"{file}:{line}" if line > 0 else file


def braces(numbers: Iterable[int | None]) -> str:
    """Numbers as XLA writes them, ``{0,1}``."""
    return f"{{{','.join(map(str, numbers))}}}"


def is_kernel(proto: hlo_pb2.HloInstructionProto) -> bool:
    """Whether an instruction is a kernel that was written by hand."""
    return bool(proto.opcode == b"custom-call" and proto.custom_call_target == KERNEL_TARGET)


def all_fused(module: HloModule, proto: hlo_pb2.HloInstructionProto) -> list[hlo_pb2.HloInstructionProto]:
    """What an instruction fuses, with what fusions inside it hold in their place; itself where it fuses nothing."""
    found: list[hlo_pb2.HloInstructionProto] = []
    waiting, entered = module.inside(proto), {proto.id}
    while waiting:
        each = waiting.pop()
        if each.opcode == b"fusion" and each.id not in entered:
            waiting.extend(module.inside(each))
        else:
            found.append(each)
        entered.add(each.id)
    return found

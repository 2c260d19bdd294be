"""What a compiled program moves, array by array: who writes each, which ops read it, and how often.

An array is one however it is called: by a loop that carries it, by what updates it in place, by a part of a tuple. The
bytes of all arrays together are those of all ops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tpuprof.parsers.base.errors import as_damage
from tpuprof.parsers.base.record import dataclass, field
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.shapes import shape_of_proto, shape_text
from tpuprof.parsers.formats.xspace.walk import text
from tpuprof.parsers.pages.program.ops import ProgramOp
from tpuprof.parsers.pages.program.traffic import result_part, size_of

if TYPE_CHECKING:
    from tpuprof.parsers.formats.proto import hlo_pb2

_SAME = frozenset((b"bitcast", b"opt-barrier"))
_MOST_STEPS = 100_000


class _Place(NamedTuple):
    """What makes an array: the id of an instruction, and which part of its tuple, -1 for all of it."""

    number: int
    part: int


@dataclass(slots=True)
class ProgramArray:
    """An array in HBM and what all runs of the ops of a program move of it.

    Attributes:
        name: the instruction that makes it, with ``[1]`` for a part of its tuple; an argument's own.
        shape, size_bytes: of it, without its layout, but with padding.
        times_made: how often the op that makes it runs; 1 for what is there from the start.
        source: the line that makes it, or None.
        written_by, read_by: the ops that do; `reads` is how often the latter stream it or their part of it.
    """

    name: str
    shape: str
    size_bytes: int
    source: str | None
    times_made: int = 1
    written_by: list[str] = field(default_factory=list)
    written_bytes: int = 0
    read_by: list[str] = field(default_factory=list)
    reads: int = 0
    read_bytes: int = 0

    @property
    def moved_bytes(self) -> int:
        return self.written_bytes + self.read_bytes

    @property
    def least_bytes(self) -> int:
        """Its bytes if it were written once and read once each time that it is made."""
        most = self.size_bytes * self.times_made
        return min(self.written_bytes, most) + min(self.read_bytes, most)


@as_damage()
def program_arrays(module: HloModule, ops: Sequence[ProgramOp]) -> list[ProgramArray]:
    """The arrays that the ops of a program move, most bytes first. An op whose trips are unknown counts once.

    Raises:
        Damaged: the module's instructions do not fit together.
    """
    finder = _Finder(module, ops)
    for op in ops:
        proto, runs = finder.protos.get(op.name), 1 if op.trips is None else op.trips
        if proto is None or not runs:
            continue
        operands = module.operand_protos(proto)
        for read in op.reads:
            operand = operands[read.number]
            if operand is not None and read.streams and read.bytes:
                array = finder.array(operand)
                array.read_by.append(op.name)
                array.reads += read.streams * runs
                array.read_bytes += read.bytes * read.streams * runs
        for part, size in enumerate(op.writes):
            if size:
                array = finder.array(proto, part if len(op.writes) > 1 else -1)
                array.written_by.append(op.name)
                array.written_bytes += size * runs
    return sorted(finder.found.values(), key=lambda array: -array.moved_bytes)


class _Finder:
    """Finds which array an instruction stands for."""

    def __init__(self, module: HloModule, ops: Sequence[ProgramOp]) -> None:
        self._module = module
        every = [one for part in module.proto.hlo_module.computations for one in part.instructions]
        self.protos: Mapping[str, hlo_pb2.HloInstructionProto] = {printable(text(one.name)): one for one in every}
        self._ops = {op.name: op for op in ops}
        self._known, self.found = dict[_Place, _Place](), dict[_Place, ProgramArray]()
        given = ((part, one) for part in module.proto.hlo_module.computations for one in part.instructions)
        calls = {each: (one, place) for one in every for place, each in enumerate(one.called_computation_ids, 1)}
        self._given = {one.id: calls[part.id] for part, one in given if part.id in calls and one.opcode == b"parameter"}
        self._loops = {number: call for number, (call, _) in self._given.items() if call.opcode == b"while"}

    def _place(self, proto: hlo_pb2.HloInstructionProto, part: int) -> _Place:
        """What makes the array that an instruction gives, or that is a part of its tuple.

        What is updated in place stays what it was: the op that does it reads nothing of it.
        """
        at, passed = _Place(proto.id, part), list[_Place]()
        while at not in self._known and len(passed) < _MOST_STEPS:
            passed.append(at)
            operand = self._module.instruction_by_id(proto.operand_ids[0]) if proto.operand_ids else None
            if proto.opcode == b"get-tuple-element" and operand is not None and part < 0:
                proto, part = self._part(operand, proto.tuple_index)
            elif (passed_on := self._passed_on(proto)) is not None:
                proto = passed_on
            elif proto.opcode in _SAME and operand is not None:
                proto = operand
            elif proto.opcode.endswith(b"-done") and operand is not None:  # what it waits for has the result in a tuple
                proto, part = operand, result_part(operand) if operand.shape.tuple_shapes else -1
            elif (updated := self._updated(proto, part)) is not None:
                proto, part = updated, -1
            else:
                break
            at = _Place(proto.id, part)
        found = self._known.get(at, at)
        self._known |= dict.fromkeys(passed, found)
        return found

    def _passed_on(self, parameter: hlo_pb2.HloInstructionProto) -> hlo_pb2.HloInstructionProto | None:
        """What a branch or a called computation gets as a parameter; None for all others."""
        call, place = self._given.get(parameter.id, (None, 0))
        if call is None or call.opcode not in (b"conditional", b"call"):
            return None
        number = place if call.opcode == b"conditional" else parameter.parameter_number
        operands = self._module.operand_protos(call)
        return operands[number] if number < len(operands) else None

    def _part(self, whole: hlo_pb2.HloInstructionProto, part: int) -> tuple[hlo_pb2.HloInstructionProto, int]:
        """A part of a tuple: what a loop carries is what it begins with."""
        whole = self._passed_on(whole) or whole
        loop = self._loops.get(whole.id, whole)
        given = self._module.instruction_by_id(loop.operand_ids[0]) if loop.opcode == b"while" else whole
        if given is None or given.opcode != b"tuple":
            return whole if given is None else given, part
        element = self._module.instruction_by_id(given.operand_ids[part])
        return (given, part) if element is None else (element, -1)

    def _updated(self, proto: hlo_pb2.HloInstructionProto, part: int) -> hlo_pb2.HloInstructionProto | None:
        """The operand that an op updates in place to make an array; None for a new one."""
        op, size = self._ops.get(printable(text(proto.name))), size_of(_shape(proto, part))
        operands = self._module.operand_protos(proto)
        same = (operands[read.number] for read in op.reads if not read.bytes) if op is not None else ()
        return next((operand for operand in same if operand is not None and size_of(operand.shape) == size), None)

    def array(self, proto: hlo_pb2.HloInstructionProto, part: int = -1) -> ProgramArray:
        """The array that an instruction gives, or that is a part of its tuple; begun where it is new."""
        place = self._place(proto, part)
        made = self._module.instruction_by_id(place.number)
        if place not in self.found and made is not None:
            own = _shape(made, place.part)
            name, shape = printable(text(made.name)), shape_of_proto(own)
            name += f"[{place.part}]" if place.part >= 0 else ""
            words = shape_text(own) if shape is None else shape.plain
            op, source = self._ops.get(printable(text(made.name))), self._module.source(made)
            runs = 1 if op is None else op.trips or 1
            self.found[place] = ProgramArray(name, words, size_of(own), source, runs)
        return self.found[place]


def _shape(proto: hlo_pb2.HloInstructionProto, part: int) -> hlo_pb2.ShapeProto:
    return proto.shape.tuple_shapes[part] if part >= 0 and proto.shape.tuple_shapes else proto.shape

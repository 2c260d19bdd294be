"""Heap traces run plainly, to hold the program's figures against, and buffer assignments for tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.memory.model import ModuleLabel, SpaceMemory
from tpuprof.parsers.memory.modules.space_memory import space_memory

ALLOCATE, FREE, SHARE = range(3)
F32, TUPLE = 11, 13


@dataclass(frozen=True)
class Stay:
    """A stay in memory: allocated by event `start`, freed by event `end` (the number of events: never)."""

    buffer: int
    size: int
    start: int
    end: int
    address: tuple[int, int] = (-1, -1)

    def covers(self, other: Stay) -> bool:
        """Whether another one's bytes are among its own."""
        begin, theirs = self.address[1], other.address[1]
        same = self.address[0] == other.address[0] >= 0
        return same and begin <= theirs and theirs + other.size <= begin + self.size


def plain_stays(proto: hlo_pb2.HloProto, trace: hlo_pb2.HeapSimulatorTrace) -> list[Stay]:
    """The stays that a sound trace shows, by counting the users of each place as XProf does: addresses play no part."""
    assignment = proto.buffer_assignment
    sizes = {buffer.id: buffer.size for buffer in assignment.logical_buffers}
    address = {
        place.logical_buffer_id: (allocation.index, place.offset)
        for allocation in assignment.buffer_allocations
        for place in allocation.assigned
    }
    root: dict[int, int] = {}
    users: dict[int, int] = {}
    open_stay: dict[int, Stay] = {}
    live_ranges: list[Stay] = []
    for number, event in enumerate(trace.events):
        buffer = event.buffer_id
        if event.kind == FREE:
            place = root[buffer]
            users[place] -= 1
            if not users[place]:
                live_ranges.append(replace(open_stay.pop(place), end=number))
            continue
        place = buffer if event.kind == ALLOCATE else root[event.share_with_canonical_id]
        root[buffer] = place
        users[place] = users.get(place, 0) + 1
        if users[place] == 1:
            open_stay[place] = Stay(buffer, sizes[place], number, len(trace.events), address[place])
    return sorted([*live_ranges, *open_stay.values()], key=lambda stay: stay.start)


def merged(live_ranges: Sequence[Stay]) -> list[Stay]:
    """The same with bytes that are worked on in place counted once: who covers another one's place inherits it."""
    result: list[Stay] = []
    for stay in live_ranges:
        heir = stay
        for at, old in enumerate(result):
            if old.end > stay.start and stay.size and heir.covers(old):
                heir = replace(heir, end=max(heir.end, old.end))
                result[at] = replace(old, end=stay.start)
        result.append(heir)
    return result


def curve(live_ranges: Sequence[Stay], points: int) -> list[int]:
    """Bytes in memory at each point, of stays alone."""
    steps = [0] * (points + 2)
    for stay in live_ranges:
        steps[stay.start + 1] += stay.size
        steps[stay.end + 1] -= stay.size
    sums = []
    now = 0
    for step in steps[:points]:
        now += step
        sums.append(now)
    return sums


class ModuleBuilder:
    """A module with a buffer assignment, made piece by piece.

    Attributes:
        proto: what is made.
    """

    def __init__(self, name: str = "jit_step") -> None:
        self.proto = hlo_pb2.HloProto()
        self.proto.hlo_module.name = name.encode()
        self.entry = self.proto.hlo_module.computations.add(name=b"main", id=1)
        self.assignment = self.proto.buffer_assignment

    def buffer(
        self, number: int, size: int, *, space: int = 0, elements: int | None = None, name: str | None = None
    ) -> hlo_pb2.LogicalBufferProto:
        """A logical buffer with an instruction of its own (``op.N``) that gives f32 elements, of its size if unsaid."""
        count = size // 4 if elements is None else elements
        shape = hlo_pb2.ShapeProto(element_type=F32, dimensions=[max(0, count)])
        self.entry.instructions.add(name=(name or f"op.{number}").encode(), opcode=b"fusion", id=number, shape=shape)
        made = self.assignment.logical_buffers.add(id=number, size=size, color=space)
        made.defined_at.instruction_id = number
        return made

    def allocation(
        self, index: int, size: int, *places: tuple[int, int], space: int = 0, kind: str = ""
    ) -> hlo_pb2.BufferAllocationProto:
        """An allocation of logical buffers (id, offset); `kind` is the name of a flag of the proto, or several."""
        made = self.assignment.buffer_allocations.add(index=index, size=size, color=space)
        for number, offset in places:
            made.assigned.add(logical_buffer_id=number, offset=offset)
        for flag in kind.split():
            setattr(made, flag, True)
        return made

    def trace(self, *events: tuple[int, int] | tuple[int, int, int]) -> hlo_pb2.HeapSimulatorTrace:
        """A heap trace of (kind, buffer) and (SHARE, buffer, shared with); each runs in instruction ``op.N``."""
        made = self.assignment.heap_simulator_traces.add()
        for kind, number, *other in events:
            made.events.add(
                kind=kind,
                buffer_id=number,
                share_with_canonical_id=other[0] if other else 0,
                instruction_name=f"op.{number}".encode(),
            )
        return made

    def module(self) -> HloModule:
        return HloModule(self.proto)

    def memory(self, space: int = 0) -> SpaceMemory:
        return space_memory(self.module(), LABEL, space, None)


LABEL = ModuleLabel("jit_step", 7, "host0")

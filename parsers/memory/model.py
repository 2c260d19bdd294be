"""What the memory page is made of: buffers, their stays in memory, and one memory space of one compiled module.

A *point* lies between two events of the compiler's heap trace: point 0 before the first event, point n after the last
of n. Memory in use is a figure of a point; events (allocations, frees) lie between points, and so do instructions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

import numpy as np

from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.base.record import Sized, dataclass, field

Category = Literal["parameter", "output", "thread-local", "constant", "temporary", "scoped"]
"""What holds a buffer in memory. Parameters, outputs and constants are there for the whole program."""

CATEGORIES: tuple[Category, ...] = ("parameter", "output", "thread-local", "constant", "temporary", "scoped")

HBM, VMEM, SFLAG, CMEM, SMEM, HOST, SPARSE_CORE = range(7)

SPACE_NAMES = dict(enumerate(("HBM", "VMEM", "SFlag", "CMEM", "SMEM", "host", "SparseCore")))
"""Memory spaces by the number ("color") that the compiler gives them, as XProf names them."""


def space_name(space: int) -> str:
    """``HBM`` of 0; ``space 9`` of a number that no name is known for."""
    return SPACE_NAMES.get(space, f"space {space}")


@dataclass(frozen=True, slots=True)
class Buffer:
    """One buffer, of a compiled module or of an out-of-memory text; what the source does not say is None.

    Attributes:
        name: the instruction that defines it, ``copy-start{0}`` for an element of a tuple.
        category: what holds it.
        size_bytes: what it takes, padding included.
        unpadded_bytes: what its elements take.
        shape: with its layout, in XLA's notation.
        opcode: of the instruction.
        framework_op: where it comes from, ``jit(step)/layer/dot_general``.
        source: ``file:line``.
        stack: frames as ``file:line function``, the innermost first.
        allocation_type: as out-of-memory texts say it: ``HLO temp``, ``scoped``, ``parameter``, …
        offset_bytes: where it begins in its allocation.
        born: the first point at which it is in memory; 0 for what is there from the beginning.
        dies: the first point at which it is not any more; one more than the last point for what stays.
        at_peak: whether it is in memory at the peak.
        logical_buffer: its id in the module's buffer assignment.
        slices: of how many slices a loop fills it, its leading dimension; `framework_op` and `source` are then of what
            computes a slice. None where no loop does, or that is unknown.
        operator, tag, label: an out-of-memory text's ``op_type``, ``Tag`` and ``XLA label``.
    """

    name: str
    category: Category
    size_bytes: int
    unpadded_bytes: int | None = None
    shape: str | None = None
    opcode: str | None = None
    framework_op: str | None = None
    source: str | None = None
    stack: tuple[str, ...] = ()
    allocation_type: str | None = None
    offset_bytes: int | None = None
    born: int | None = None
    dies: int | None = None
    at_peak: bool = True
    logical_buffer: int | None = None
    operator: str | None = None
    tag: str | None = None
    label: str | None = None
    slices: int | None = None

    @property
    def padding_bytes(self) -> int | None:
        """What it takes beyond its elements; None where that is unknown."""
        return None if self.unpadded_bytes is None else max(0, self.size_bytes - self.unpadded_bytes)

    @property
    def expansion(self) -> float | None:
        """Size over unpadded size, 1.0 without padding; None where unknown or without elements."""
        return self.size_bytes / self.unpadded_bytes if self.unpadded_bytes else None


class Buffers(Protocol):
    """The buffers of a space, described one by one when asked for: a `Sequence[Buffer]` by row of `LiveRanges`."""

    def __len__(self) -> int: ...

    def __getitem__(self, row: int, /) -> Buffer: ...


@dataclass(frozen=True, slots=True)
class LiveRanges(Sized):
    """Columns, a row for each stay of a buffer in memory; those that are there throughout come first.

    A buffer whose place is taken over by another one that shares it after it was freed has a row of its own.

    Attributes:
        logical_buffer: int64, its id; -1 for an allocation without one.
        category: int64, index into `CATEGORIES`.
        size_bytes: int64, what it adds to the memory in use.
        unpadded_bytes: int64, of its elements; -1 where unknown.
        allocation: int64, index of its allocation (`BufferAllocationProto.index`).
        offset_bytes: int64, in that allocation; -1 where unknown.
        born, dies: int64, points: in memory at point p when born <= p < dies.
    """

    logical_buffer: Int64s
    category: Int64s
    size_bytes: Int64s
    unpadded_bytes: Int64s
    allocation: Int64s
    offset_bytes: Int64s
    born: Int64s
    dies: Int64s

    def at(self, point: int) -> Int64s:
        """Rows in memory at a point, ascending."""
        return np.flatnonzero((self.born <= point) & (point < self.dies))


@dataclass(frozen=True, slots=True)
class ModuleLabel:
    """Which compiled module.

    Attributes:
        name: ``jit_step``.
        program_id: None for a module from a file that does not say.
        origin: where it was read, for people: the host, or the file's name.
    """

    name: str
    program_id: int | None
    origin: str

    def __str__(self) -> str:
        return self.name if self.program_id is None else f"{self.name}({self.program_id})"


@dataclass(frozen=True, slots=True)
class Capacity:
    """How much memory there is.

    Attributes:
        size_bytes: for programs, without what the system keeps for itself.
        source: how that is known, a phrase: ``reported by the allocator``, ``TPU v5e: limit in the compiler's errors``.
    """

    size_bytes: int
    source: str


@dataclass(frozen=True, slots=True)
class SpaceMemory:
    """One memory space of one compiled module.

    Attributes:
        module: which module.
        space: number of the memory space.
        capacity: how much there is; None with a reason in `unknown`.
        peak_bytes: most that is in use at once.
        peak_unpadded_bytes: of that, what elements take; None where that is unknown for a buffer.
        peak_position: the first point with that much; 0 where the module has no heap trace of this space.
        peak_instruction: what was just running then; None without a heap trace.
        total_allocation_bytes: all allocations but thread-local ones: what is set aside, gaps between buffers included.
        arguments_bytes: allocations of the program's parameters.
        outputs_bytes: allocations that may live on after it; `aliased_bytes` of that are parameters too (donated).
        temporaries_bytes: of the peak, what is neither there throughout.
        constants_bytes: allocations of constants.
        thread_local_bytes: allocations inside of fusions and the like; they are in no other figure, nor in XProf's.
        padding_bytes: peak less unpadded peak; None where unknown.
        fragmentation: (total - peak) / (total - what is there throughout), 0 to 1; None without temporaries.
        scoped_bytes: largest scoped allocation that an instruction says it uses (VMEM); None where none says.
        scoped_instruction: which one.
        heap_bytes: int64[points], memory in use at each point, what is there throughout included.
        heap_unpadded_bytes: int64[points], elements alone; where a buffer's are unknown its size counts.
        instructions: name of the instruction of each event: `instructions[p - 1]` ran just before point p.
        live_ranges: the buffers' columns.
        buffers: the same rows, described.
        warnings: what is wrong with the module's buffer assignment, a sentence each.
        unknown: attribute name to why it is None.
        own_name: what to call the memory where its number's name would mislead: the host's, for modules of the CPU.
    """

    module: ModuleLabel
    space: int
    capacity: Capacity | None
    peak_bytes: int
    peak_unpadded_bytes: int | None
    peak_position: int
    peak_instruction: str | None
    total_allocation_bytes: int
    arguments_bytes: int
    outputs_bytes: int
    aliased_bytes: int
    temporaries_bytes: int
    constants_bytes: int
    thread_local_bytes: int
    padding_bytes: int | None
    fragmentation: float | None
    scoped_bytes: int | None
    scoped_instruction: str | None
    heap_bytes: Int64s
    heap_unpadded_bytes: Int64s
    instructions: Sequence[str]
    live_ranges: LiveRanges
    buffers: Buffers
    warnings: tuple[str, ...] = ()
    unknown: Mapping[str, str] = field(default_factory=dict)
    own_name: str | None = None

    @property
    def name(self) -> str:
        return self.own_name or space_name(self.space)

    @property
    def headroom_bytes(self) -> int | None:
        """Capacity less need, negative where it does not fit; None without a capacity."""
        return None if self.capacity is None else self.capacity.size_bytes - self.needed_bytes

    @property
    def needed_bytes(self) -> int:
        """What the compiler compares with the capacity: in HBM all allocations, with the gaps between buffers; else the
        peak, and what kernels take inside.
        """
        if self.space == HBM:
            return max(self.peak_bytes, self.total_allocation_bytes)
        return self.peak_bytes + self.inside_bytes

    @property
    def inside_bytes(self) -> int:
        """What a kernel takes beside the buffers of the program: its scoped memory, on the chip; 0 for none."""
        return 0 if self.space == HBM else self.scoped_bytes or 0

    @property
    def points(self) -> int:
        """How many points there are, at least one."""
        return len(self.heap_bytes)

    def at(self, point: int) -> Int64s:
        """Rows of the buffers in memory at a point, in program order."""
        return self.live_ranges.at(point)


@dataclass(frozen=True, slots=True)
class ModulePeaks:
    """A module in the picker.

    Attributes:
        module: which.
        peaks: memory space to peak in bytes, of the spaces that the module uses.
        problem: why there are no figures, a sentence; None where there are.
    """

    module: ModuleLabel
    peaks: Mapping[int, int]
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class MemoryPage:
    """What the memory page of a run stands on.

    Attributes:
        modules: all modules, the largest HBM peak first; those without figures last.
        hosts: names of the hosts whose modules these are.
        device_type: such as ``TPU v5e``; None where unknown.
        why_no_modules: why there is none and how to get some, sentences; None where there are some.
        warnings: what else to know, a sentence each.
    """

    modules: tuple[ModulePeaks, ...]
    hosts: tuple[str, ...]
    device_type: str | None
    why_no_modules: str | None = None
    warnings: tuple[str, ...] = ()

    @property
    def first(self) -> ModulePeaks | None:
        """The module to show first: the one with the largest HBM peak; None where none has figures."""
        return next((module for module in self.modules if module.problem is None), None)

"""The static view of memory: one memory space of one compiled module, and the peaks of all of its spaces."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

import numpy as np

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, ProfileError
from tpuprof.parsers.base.intervals import Bools
from tpuprof.parsers.base.record import Sized, dataclass, replace
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.formats.xspace.walk import text
from tpuprof.parsers.memory import model
from tpuprof.parsers.memory.modules.assignment import LARGEST_BYTES, Assignment, LogicalBuffers, read_assignment
from tpuprof.parsers.memory.modules.heap import peak_bytes, space_heap

_UPDATE = b"dynamic-update-slice"
_MOVES = frozenset(
    (b"bitcast", b"bitcast-convert", b"broadcast", b"convert", b"copy", b"reshape", b"slice", b"transpose", b"pad")
)
_MOST_STEPS = 12

_Place = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Filler:
    """What a loop puts into a buffer.

    Attributes:
        instruction: that computes a slice, as far as the HLO shows.
        slices: how many there are: the buffer's leading dimension.
    """

    instruction: hlo_pb2.HloInstructionProto
    slices: int


class Fillers:
    """The ops that fill buffers, found when the first one is asked for."""

    def __init__(self, hlo: HloModule, buffers: LogicalBuffers) -> None:
        self._hlo = hlo
        self._buffers = buffers
        self._by_place: dict[_Place, Filler] | None = None

    def of(self, row: int) -> Filler | None:
        """What fills the place of a logical buffer, by row; None where no loop does."""
        if self._by_place is None:
            self._by_place = {}
            for other, proto in enumerate(self._buffers.protos):
                found = self._filler(proto)
                if found is not None:
                    self._by_place.setdefault(self._place(other), found)
        return self._by_place.get(self._place(row))

    def _place(self, row: int) -> _Place:
        buffers = self._buffers
        return int(buffers.allocation[row]), int(buffers.offset_bytes[row]), int(buffers.size_bytes[row])

    def _filler(self, proto: hlo_pb2.LogicalBufferProto) -> Filler | None:
        """What a logical buffer is filled with, where it is the result of an update of a slice."""
        made = self._hlo.instruction_by_id(proto.defined_at.instruction_id)
        if made is None or made.opcode not in (_UPDATE, b"fusion"):
            return None
        fusion = made if made.opcode == b"fusion" else None
        update = made if fusion is None else self._updated(made, proto.defined_at.shape_index)
        piece = self._hlo.instruction_by_id(update.operand_ids[1]) if update and len(update.operand_ids) > 1 else None
        if update is None or piece is None:
            return None
        whole, part = list(update.shape.dimensions), list(piece.shape.dimensions)
        if len(whole) < 2 or part != [1, *whole[1:]]:
            return None
        source = next((each for each in self._sources(piece, fusion) if each.metadata.op_name), update)
        return Filler(source, whole[0])

    def _updated(self, made: hlo_pb2.HloInstructionProto, index: Iterable[int]) -> hlo_pb2.HloInstructionProto | None:
        """The update of a slice that is a fusion's result, or an element of it; None where that is something else."""
        inside = self._hlo.wrapped(made)
        if inside is None or not any(each.opcode == _UPDATE for each in inside.instructions):
            return None
        root = self._hlo.instruction_by_id(inside.root_id)
        for place in index:
            if root is None or root.opcode != b"tuple" or place >= len(root.operand_ids):
                return None
            root = self._hlo.instruction_by_id(root.operand_ids[place])
        while root is not None and root.opcode in _MOVES and root.operand_ids:
            root = self._hlo.instruction_by_id(root.operand_ids[0])
        return root if root is not None and root.opcode == _UPDATE else None

    def _sources(
        self, piece: hlo_pb2.HloInstructionProto, fusion: hlo_pb2.HloInstructionProto | None
    ) -> Iterator[hlo_pb2.HloInstructionProto]:
        """What computes a slice, the first that is more than a move, a cast or a reshape; then what is on the way."""
        way = []
        current: hlo_pb2.HloInstructionProto | None = piece
        for _ in range(_MOST_STEPS):
            if current is None:
                break
            if (
                current.opcode == b"parameter"
                and fusion is not None
                and current.parameter_number < len(fusion.operand_ids)
            ):
                current, fusion = self._hlo.instruction_by_id(fusion.operand_ids[current.parameter_number]), None
                continue
            way.append(current)
            if current.opcode == b"get-tuple-element" or current.opcode in _MOVES:
                current = self._hlo.instruction_by_id(current.operand_ids[0]) if current.operand_ids else None
                continue
            break
        yield from reversed(way)


_HINT = "Profile the program on a TPU, or open a file that XLA wrote with its buffer assignment (*.hlo_proto.pb)."
_EMPTY = ("custom-call", "broadcast")  # set aside empty or zero, to be filled by a loop
_NOTABLE = 0.01  # of the peak: a difference below it needs no word
_SCOPED = b"used_scoped_memory_configs"


def space_memory(
    hlo: HloModule, label: model.ModuleLabel, space: int, capacity: model.Capacity | None
) -> model.SpaceMemory:
    """What a module's buffer assignment says of one memory space, see `SpaceMemory`.

    The sums are XProf's, in bytes, with these differences: the padding of what is there throughout counts as padding;
    the peak is a point, so its memory is `heap_bytes[peak_position]`; bytes that are worked on in place count once
    (module `heap`); every allocation that is there throughout counts (XProf leaves out one without logical buffers).
    As there, thread-local allocations are in no other sum and have no rows.

    Raises:
        ProfileError: the module has no buffer assignment.
    """
    assignment = read_assignment(hlo)
    if assignment is None:
        raise ProfileError("no_buffer_assignment", _missing(label), _HINT, EXIT_NOT_FOUND)
    heap = space_heap(assignment, space)
    peak = int(np.argmax(heap.heap_bytes))
    most = int(heap.heap_bytes[peak])
    known = bool((heap.live_ranges.unpadded_bytes[heap.live_ranges.at(peak)] >= 0).all())
    unpadded = int(heap.heap_unpadded_bytes[peak]) if known else None
    names, (scoped_bytes, scoped_instruction) = _names(heap.trace), _scoped(hlo, space)
    columns = assignment.allocations
    sizes = np.where(columns.space == space, columns.size_bytes, 0)

    def total_of(mask: Bools) -> int:
        return sum(sizes[mask].tolist())

    total, throughout = total_of(columns.is_temporary | columns.is_lasting), total_of(columns.is_lasting)
    result = model.SpaceMemory(
        module=label,
        space=space,
        capacity=capacity,
        peak_bytes=most,
        peak_unpadded_bytes=unpadded,
        peak_position=peak,
        peak_instruction=names[peak - 1] if peak else None,
        total_allocation_bytes=total,
        arguments_bytes=total_of(columns.is_parameter),
        outputs_bytes=total_of(columns.is_output),
        aliased_bytes=total_of(columns.is_parameter & columns.is_output),
        temporaries_bytes=most - throughout,
        constants_bytes=total_of(columns.category == model.CATEGORIES.index("constant")),
        thread_local_bytes=total_of(columns.category == model.CATEGORIES.index("thread-local")),
        padding_bytes=None if unpadded is None else most - unpadded,
        fragmentation=min(1.0, max(0.0, (total - most) / (total - throughout))) if total > throughout else None,
        scoped_bytes=scoped_bytes,
        scoped_instruction=scoped_instruction,
        heap_bytes=heap.heap_bytes,
        heap_unpadded_bytes=heap.heap_unpadded_bytes,
        instructions=names,
        live_ranges=heap.live_ranges,
        buffers=_Described(assignment, heap.live_ranges, peak, Fillers(hlo, assignment.buffers)),
        warnings=assignment.warnings + heap.warnings + (_other_peak(assignment, most) if space == model.HBM else ()),
    )
    return replace(result, unknown=_reasons(result))


def _other_peak(assignment: Assignment, peak: int) -> tuple[str, ...]:
    """A sentence where `memory_analysis()` of JAX gives another peak of HBM.

    That takes the heap trace with the highest peak, whichever memory it is of, and adds all that lasts in HBM. With few
    temporaries in HBM the trace is VMEM's.
    """
    columns = assignment.allocations
    in_hbm = columns.space == model.HBM
    lasting = int(columns.size_bytes[in_hbm & columns.is_lasting].sum())
    spaces = np.unique(columns.space[columns.is_temporary & ~in_hbm]).tolist()
    others = {place: peak_bytes(assignment, place) for place in spaces}
    most = max(others, key=lambda place: others[place], default=model.HBM)
    if most == model.HBM or others[most] <= peak - lasting or others[most] < _NOTABLE * peak:
        return ()
    return (
        f"JAX's memory_analysis() gives {lasting + others[most]:,} bytes as this module's peak: it adds the "
        f"{others[most]:,} bytes in {model.space_name(most)} at the same time to what stays in HBM. The peak here "
        "counts only HBM, as the compiler's limit does.",
    )


def module_peaks(hlo: HloModule, label: model.ModuleLabel) -> model.ModulePeaks:
    """The peak of every memory space that a module has allocations or logical buffers in. Never raises."""
    assignment = read_assignment(hlo)
    if assignment is None:
        return model.ModulePeaks(label, {}, _missing(label))
    spaces = np.unique(np.concatenate([assignment.allocations.space, assignment.buffers.space])).tolist()
    return model.ModulePeaks(label, {space: peak_bytes(assignment, space) for space in spaces})


def _missing(label: model.ModuleLabel) -> str:
    return f"The compiled HLO of {label} has no buffer assignment, so its use of memory is unknown."


def _reasons(memory: model.SpaceMemory) -> dict[str, str]:
    where = model.space_name(memory.space)
    elements = "The size of the elements of a buffer or an allocation in memory at the peak is unknown."
    from_start = "Everything in memory at the peak is there from the beginning."
    scoped = f"No instruction says that it uses scoped memory in {where}."
    reasons = {
        "capacity": f"The size of the {where} is unknown.",
        "peak_unpadded_bytes": elements,
        "padding_bytes": elements,
        "peak_instruction": from_start if memory.instructions else f"The module has no heap trace of {where}.",
        "fragmentation": f"The module has no temporary allocations in {where}.",
        "scoped_bytes": scoped,
        "scoped_instruction": scoped,
    }
    return {name: reason for name, reason in reasons.items() if getattr(memory, name) is None}


def _names(trace: hlo_pb2.HeapSimulatorTrace | None) -> tuple[str, ...]:
    names = () if trace is None else [event.instruction_name for event in trace.events]
    decoded = {name: text(name) for name in set(names)}
    return tuple(decoded[name] for name in names)


@dataclass(frozen=True, slots=True)
class _Described(Sized):
    """The rows of a space, described when asked for."""

    sized_by = "live_ranges"
    assignment: Assignment
    live_ranges: model.LiveRanges
    peak: int
    fillers: Fillers

    def __getitem__(self, row: int, /) -> model.Buffer:
        live_ranges = self.live_ranges
        columns = (
            live_ranges.unpadded_bytes,
            live_ranges.offset_bytes,
            live_ranges.logical_buffer,
            live_ranges.born,
            live_ranges.dies,
        )
        unpadded, offset, buffer, born, dies = (int(column[row]) for column in columns)
        category = model.CATEGORIES[live_ranges.category[row]]
        known = self.assignment.buffers.rows.get(buffer, -1) if buffer >= 0 else -1
        stay = model.Buffer(
            name=f"allocation {live_ranges.allocation[row]}",
            category=category,
            size_bytes=int(live_ranges.size_bytes[row]),
            unpadded_bytes=None if unpadded < 0 else unpadded,
            allocation_type="HLO temp" if category == "temporary" else category,
            offset_bytes=None if offset < 0 else offset,
            born=born,
            dies=dies,
            at_peak=born <= self.peak < dies,
            logical_buffer=buffer if known >= 0 else None,
        )
        described = self.assignment.describe(known, stay)
        if known < 0 or category != "temporary" or (described.framework_op and described.opcode not in _EMPTY):
            return described
        filler = self.fillers.of(known)
        if filler is None:
            return described
        made = filler.instruction
        op = text(made.metadata.op_name) or described.framework_op
        hlo = self.assignment.hlo
        source, stack = hlo.source(made) or described.source, hlo.stack(made) or described.stack
        return replace(described, framework_op=op, source=source, stack=stack, slices=filler.slices)


def _scoped(hlo: HloModule, space: int) -> tuple[int | None, str | None]:
    """The largest scoped allocation in a space that an instruction says it uses, and the first that says so."""
    best: tuple[int | None, str | None] = (None, None)
    for computation in hlo.proto.hlo_module.computations:
        for instruction in computation.instructions:
            for place, size in _scoped_configs(hlo.backend_config(instruction)):
                if place == space and size > (best[0] or 0):
                    best = size, text(instruction.name)
    return best


def _scoped_configs(config: bytes) -> Iterator[tuple[int, int]]:
    """Memory space and bytes of each scoped allocation in a backend's JSON; nothing where it is none."""
    if _SCOPED not in config:
        return
    try:
        read = json.loads(text(config))
    except (ValueError, RecursionError):
        return
    entries = read.get(_SCOPED.decode()) if isinstance(read, dict) else None
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict):
            yield _integer(entry.get("memory_space")), _integer(entry.get("size"))


def _integer(value: object) -> int:
    """A number that JSON may hold as text; 0 for what is none, or can't be true."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,15}", value):
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_BYTES else 0

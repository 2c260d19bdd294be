"""What a module's HLO says of its buffers beyond their sizes and shapes: how they grow, and what donation saves."""

from __future__ import annotations

from collections.abc import Collection

from tpuprof.parsers.base.record import replace
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.memory.account.need import Known, KnownRole
from tpuprof.parsers.memory.batch.axes import Leaf, leaf_at
from tpuprof.parsers.memory.batch.growth import Growth
from tpuprof.parsers.memory.batch.structure import Structure, has_both, roots_of
from tpuprof.parsers.memory.model import SpaceMemory

_COLLECTIVES = (b"all-", b"reduce-scatter", b"collective-", b"ragged-all-to-all")
_IN_PLACE = (b"copy", b"copy-start", b"copy-done", b"dynamic-update-slice", b"bitcast", b"tuple")


def known_of(hlo: HloModule, memory: SpaceMemory, growth: Growth | str, structure: Structure | None = None) -> Known:
    """What is known of a module's buffers."""
    known = Known(guests=_guests(hlo), is_spread=_is_spread(hlo))
    if structure is not None:
        known = replace(known, is_read=True, layers=structure.layers, roles=_roles(hlo, memory, structure))
    if isinstance(growth, str):
        return known
    numbers = memory.live_ranges.logical_buffer[growth.rows].tolist()
    return replace(known, batch=growth.batch, grown=dict(zip(numbers, growth.grown, strict=True)))


def _roles(hlo: HloModule, memory: SpaceMemory, structure: Structure) -> dict[int, KnownRole]:
    """Logical buffer to what it is for, of those that the structure says it of."""
    given: dict[tuple[int, int], KnownRole] = {each.place: "parameter" for each in structure.weights}
    given |= {each.place: "optimizer" for each in structure.states}
    given |= {each.place: "cache" for each in structure.caches}
    of_weights = {root for each in structure.weights for root in roots_of(structure.axes, each.leaf)}
    protos = {buffer.id: buffer for buffer in hlo.proto.buffer_assignment.logical_buffers}
    found: dict[int, KnownRole] = {}
    for number in {*memory.live_ranges.logical_buffer.tolist()} & protos.keys():
        made = hlo.defining(protos[number])
        place = None if made is None else leaf_at(made.shape, protos[number].defined_at.shape_index)
        if made is None or place is None:
            continue
        role = given.get((made.id, place)) or _computed(structure, structure.axes.leaves[made.id][place], of_weights)
        if role is not None:
            found[number] = role
    return found


def _computed(structure: Structure, leaf: Leaf, of_weights: Collection[int]) -> KnownRole | None:
    """Scores of attention; logits, which have a vocabulary and an axis that no weights have."""
    roots = roots_of(structure.axes, leaf)
    if any(has_both(roots, pair) for pair in structure.scores):
        return "attention"
    if structure.vocabularies.isdisjoint(roots) or len(roots) < 2:
        return None
    return "loss" if any(root not in of_weights for root in roots) else None


def _is_spread(hlo: HloModule) -> bool:
    return any(
        each.opcode.startswith(_COLLECTIVES)
        for computation in hlo.proto.hlo_module.computations
        for each in computation.instructions
    )


def _guests(hlo: HloModule) -> dict[int, int]:
    """Logical buffer of an output to the most that anything else takes of its place before it is there.

    Where an output takes a donated argument's place, all else that used the output's has to find another. What a loop
    fills step by step is there from its first step on, while the argument may still be read.
    """
    assignment = hlo.proto.buffer_assignment
    buffers = {buffer.id: buffer for buffer in assignment.logical_buffers}
    entry = hlo.computation(hlo.proto.hlo_module.entry_computation_id)
    of_entry = set() if entry is None else {each.id for each in entry.instructions}
    found: dict[int, int] = {}
    for allocation in assignment.buffer_allocations:
        if not allocation.maybe_live_out or allocation.is_entry_computation_parameter or allocation.is_tuple:
            continue
        held = [(one, buffers.get(one.logical_buffer_id)) for one in allocation.assigned]
        sizes = [one.size for one, buffer in held if buffer is not None and not _is_own(hlo, buffer, of_entry)]
        most = min(allocation.size, max(sizes, default=0))
        found.update((one.logical_buffer_id, most) for one, _ in held)
    return found


def _is_own(hlo: HloModule, buffer: hlo_pb2.LogicalBufferProto, of_entry: set[int]) -> bool:
    """Whether a value is an output, or a step of making it of an argument in place."""
    made = hlo.defining(buffer)
    if made is None:
        return True
    if made.id not in of_entry or made.opcode == b"while":
        return False
    if made.opcode in _IN_PLACE:
        return True
    inside = hlo.wrapped(made) if made.opcode == b"fusion" else None
    if inside is None:
        return False
    root = hlo.instruction_by_id(inside.root_id)
    return _is_answered(hlo, made.id) or (root is not None and root.opcode in _IN_PLACE)


def _is_answered(hlo: HloModule, instruction: int) -> bool:
    """Whether the program answers what an instruction makes, or a part of that."""
    entry = hlo.computation(hlo.proto.hlo_module.entry_computation_id)
    root = None if entry is None else hlo.instruction_by_id(entry.root_id)
    if root is None:
        return False
    answered, waiting = set[int](), [root.id]
    while waiting:
        each = hlo.instruction_by_id(waiting.pop())
        if each is None or each.id in answered:
            continue
        answered.add(each.id)
        if each.opcode in (b"tuple", b"get-tuple-element", b"bitcast", b"copy", b"copy-done", b"copy-start"):
            waiting.extend(each.operand_ids)
    return instruction in answered

"""How often a loop of a compiled program runs, where the program says it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpuprof.parsers.formats.hlo.modules import HloModule

if TYPE_CHECKING:
    from tpuprof.parsers.formats.proto import hlo_pb2

_Value = tuple[int | None, int]
"""A number: which element of what the loop carries, None for a constant, and what is added to it."""

_HANDS_ON = frozenset((b"copy", b"bitcast", b"convert", b"copy-start", b"copy-done", b"opt-barrier"))
_DEEPEST = 32


def trip_count(module: HloModule, loop: hlo_pb2.HloInstructionProto) -> int | None:
    """The trips of a ``while`` that counts up from one constant to another; None where it does otherwise."""
    body, condition = (module.computation(number) for number in loop.called_computation_ids)
    compare = None if condition is None else module.instruction_by_id(condition.root_id)
    if body is None or compare is None or compare.comparison_direction not in (b"LT", b"LE"):
        return None
    counter, limit = (_value(module, number) for number in compare.operand_ids)
    if limit is not None and limit[0] is not None and _element(module, body.root_id, limit[0]) == limit:
        limit = _element(module, loop.operand_ids[0], limit[0])  # the loop hands it on as it was given
    if counter is None or counter[0] is None or limit is None or limit[0] is not None:
        return None
    begin, step = _element(module, loop.operand_ids[0], counter[0]), _element(module, body.root_id, counter[0])
    if begin is None or step is None or begin[0] is not None or step[0] != counter[0] or step[1] <= 0:
        return None
    distance = limit[1] - begin[1] - counter[1] + (compare.comparison_direction == b"LE")
    return max(0, -(-distance // step[1]))


def _element(module: HloModule, number: int, place: int) -> _Value | None:
    """What an element of a tuple is, by the tuple's id."""
    proto = module.instruction_by_id(number)
    return _value(module, proto.operand_ids[place]) if proto is not None and proto.opcode == b"tuple" else None


def _value(module: HloModule, number: int, depth: int = 0) -> _Value | None:
    """A number by the id of what makes it; None where it is neither a constant nor an element with one added."""
    proto = module.instruction_by_id(number)
    if proto is None or depth > _DEEPEST:
        return None
    if proto.opcode == b"constant":
        held = proto.literal
        numbers = [*held.s32s[:1], *held.s64s[:1], *held.u32s[:1], *held.u64s[:1]]
        return (None, int(numbers[0])) if numbers and not proto.shape.dimensions else None
    if proto.opcode == b"get-tuple-element":
        source = module.instruction_by_id(proto.operand_ids[0])
        return (proto.tuple_index, 0) if source is not None and source.opcode == b"parameter" else None
    if proto.opcode in _HANDS_ON:
        return _value(module, proto.operand_ids[0], depth + 1)
    if proto.opcode == b"add":
        left, right = (_value(module, each, depth + 1) for each in proto.operand_ids)
        if left is not None and right is not None and None in (left[0], right[0]):
            return right[0] if left[0] is None else left[0], left[1] + right[1]
    return None

"""Arrays of a program's state that are written as a whole to change a few of their elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.words import size
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.shapes import element_type
from tpuprof.parsers.pages.findings.budget import Budget
from tpuprof.parsers.pages.findings.finding import Finding, JumpTarget
from tpuprof.parsers.pages.findings.ops.arrays import ModuleArrays, OpArrays
from tpuprof.parsers.pages.findings.ops.groups import Claimed, CloneGroup, named, op_finding, place_name
from tpuprof.parsers.pages.findings.ops.needless.uses import Given, Uses, fused, given_to, root_of

if TYPE_CHECKING:
    from tpuprof.parsers.formats.proto import hlo_pb2

_FEW = 16
"""An array is rewritten for few elements where it has so many times as many, at least."""

_AS_IT_IS = frozenset((b"bitcast", b"reshape", b"transpose", b"copy", b"convert"))
_ELEMENTWISE = (
    _AS_IT_IS
    | {b"parameter", b"constant", b"iota", b"compare", b"broadcast", b"select", b"add", b"subtract", b"multiply"}
    | {b"and", b"or", b"not", b"tuple", b"dynamic-slice", b"dynamic-update-slice"}
)
"""What a fusion that changes places of an array by a mask holds, and nothing else."""

_ADVICE = (
    "Write the new elements alone, by jax.lax.dynamic_update_slice or .at[index].set(...), into an array that is "
    "donated (donate_argnums) or carried by the loop: it is updated in place then."
)


@dataclass(frozen=True, slots=True)
class _Rewrite:
    """An op that writes arrays as a whole; times: how many elements they have for each that changes."""

    bytes: int
    arrays: int
    times: int


def rewritten(budget: Budget, programs: Sequence[ModuleArrays]) -> Claimed:
    """Arrays of the program's state, such as caches, that a select by a mask writes anew to change a place of a row.

    Args:
        programs: what the large ops read and write.
    """
    table = budget.evidence.table
    rows, times = budget.ops("vector", "copy")
    own = dict(zip(rows.tolist(), times.tolist(), strict=True))
    found = {row: each for program in programs for row, each in _of_program(program.of(own.keys()))}
    saved = np.array([own[row] * (1 - 1 / found[row].times) if row in found else 0.0 for row in rows.tolist()])

    def make(groups: list[CloneGroup], worth: float) -> Finding | None:
        first = groups[0].first
        of = found[first]
        return budget.finding(
            "memory-bound",
            f"Arrays are written as a whole to change 1 of {of.times:,} elements: {place_name(table, groups[0])}",
            worth,
            "Time of these ops, less the part for the elements that change: the others need not move.",
            [
                f"They take {budget.amount(sum(group.ps for group in groups))}: {named(groups)}.",
                f"{budget.described(first)} reads {size(of.bytes)} that the program is given, puts a new value in 1 of "
                f"{of.times:,} places by a mask, and writes all of it.",
            ],
            JumpTarget("op-profile", table.name[first]),
            is_estimate=True,
            advice=_ADVICE,
        )

    return op_finding(budget, rows, saved, make, goes_away=True)


def _of_program(program: ModuleArrays) -> Iterator[tuple[int, _Rewrite]]:
    uses = Uses(program.module)
    for of in program.ops.values():
        found = _rewrite(program.module, uses, of)
        if found is not None:
            yield of.row, found


def _rewrite(module: HloModule, uses: Uses, of: OpArrays) -> _Rewrite | None:
    """How an op rewrites arrays; None where it does not, or does anything else as well."""
    inside = fused(module, of.proto)
    if not of.writes or not {each.opcode for each in inside} <= _ELEMENTWISE:
        return None
    given = list(given_to(module, of.proto))
    root = root_of(module, of.proto)
    results = [] if root is None else _operands(module, root) if root.opcode == b"tuple" else [root]
    changes = [_Change.of(module, result, given) for result in results]
    kept = {each.state.inner.id for each in changes if each is not None}
    small = sum(_count(each.inner) for each in given if each.inner.id not in kept)
    if not changes or len(kept) != len(results):
        return None
    times = [change.times for change in changes if change is not None and _is_updated(module, uses, of, change)]
    if len(times) < len(results) or small * _FEW > sum(map(_count, results)):
        return None
    return _Rewrite(sum(array.bytes for array in of.writes), len(results), min(times))


@dataclass(frozen=True, slots=True)
class _Change:
    """One result of an op: a state, in which a mask says where new values go.

    Attributes:
        mask: what the mask is computed from.
        times: elements for each that changes.
        varies: whether the new values differ along all dimensions but one, of several.
    """

    state: Given
    mask: frozenset[int]
    times: int
    varies: bool

    @classmethod
    def of(cls, module: HloModule, root: hlo_pb2.HloInstructionProto, given: Sequence[Given]) -> _Change | None:
        """Reads it from its root: a select between the state and values that are repeated over it."""
        placed = _plain(module, root)
        if placed.opcode == b"dynamic-update-slice" and len(placed.operand_ids) > 1:
            update = module.instruction_by_id(placed.operand_ids[1])
            placed = placed if update is None else _plain(module, update)
        operands = _operands(module, placed)
        if placed.opcode != b"select" or len(operands) != 3:
            return None
        for kept, new in ((operands[1], operands[2]), (operands[2], operands[1])):
            state = next((each for each in given if each.inner.id == _plain(module, kept, _SLICED).id), None)
            values = _plain(module, new)
            if (
                state is None
                or values.opcode != b"broadcast"
                or list(state.inner.shape.dimensions) != list(root.shape.dimensions)
            ):
                continue
            source = _operands(module, values)
            long = {number for number, size in enumerate(values.shape.dimensions) if size > 1}
            missing = long - set(values.dimensions)
            if source and len(missing) == 1 and _count(source[0]) > 1:
                times = _count(values) // _count(source[0])
                return cls(state, _behind(module, operands[0]), times, len(long) > 2) if times >= _FEW else None
        return None


def _is_updated(module: HloModule, uses: Uses, of: OpArrays, change: _Change) -> bool:
    """Whether a mask chooses one place, and the state is the program's, which nothing else reads.

    A mask that is compared with positions says so; of one that the program is given, the new values do: each row has
    its own.
    """
    key = change.state.outer
    made = module.instruction_by_id(key[0]) if key is not None else None
    if key is None or made is None or made.opcode != b"parameter":
        return False
    readers = uses.of(key, of.computation)
    if readers is None or [each.id for each in readers] != [of.proto.id]:
        return False
    mask = [each for number in change.mask if (each := module.instruction_by_id(number)) is not None]
    outer = [each.outer for each in given_to(module, of.proto) if each.inner.id in change.mask]
    makers = [each for of in outer if of is not None and (each := module.instruction_by_id(of[0])) is not None]
    makers = [each for each in makers if element_type(each.shape) == "pred"]
    mask += [each for maker in makers for each in fused(module, maker)]
    compares = [each for each in mask if each.opcode == b"compare"]
    if compares:
        by_position = any(each.opcode == b"iota" for each in mask)
        return by_position and all(each.comparison_direction == b"EQ" for each in compares)
    return change.varies and bool(makers) and all(each.opcode == b"parameter" for each in makers)


_MOST_PASSED = 16
_SLICED = _AS_IT_IS | {b"dynamic-slice"}


def _plain(
    module: HloModule, proto: hlo_pb2.HloInstructionProto, passed: frozenset[bytes] = _AS_IT_IS
) -> hlo_pb2.HloInstructionProto:
    """What an instruction has its values from, through what only moves or casts them."""
    for _ in range(_MOST_PASSED):
        operand = module.instruction_by_id(proto.operand_ids[0]) if proto.operand_ids else None
        if operand is None or proto.opcode not in passed:
            break
        proto = operand
    return proto


def _behind(module: HloModule, proto: hlo_pb2.HloInstructionProto) -> frozenset[int]:
    """Ids of all that a value is computed from in its computation."""
    found: set[int] = set()
    waiting = [proto]
    while waiting:
        each = waiting.pop()
        if each.id not in found:
            found.add(each.id)
            waiting.extend(_operands(module, each))
    return frozenset(found)


def _operands(module: HloModule, proto: hlo_pb2.HloInstructionProto) -> list[hlo_pb2.HloInstructionProto]:
    return [operand for operand in module.operand_protos(proto) if operand is not None]


def _count(proto: hlo_pb2.HloInstructionProto) -> int:
    return prod(proto.shape.dimensions)

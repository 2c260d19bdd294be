"""Arrays of a program's state that are written as a whole to change a few of their elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.words import size
from tpuprof.parsers.formats.hlo.modules import HloModule, all_fused
from tpuprof.parsers.formats.hlo.shapes import element_type, elements
from tpuprof.parsers.pages.findings.budget import Budget, Claimed, detects
from tpuprof.parsers.pages.findings.ops.arrays import ModuleArrays, OpArrays, large_arrays
from tpuprof.parsers.pages.findings.ops.bandwidth import MEMORY_BOUND
from tpuprof.parsers.pages.findings.ops.groups import place_name, worthwhile
from tpuprof.parsers.pages.findings.ops.needless import uses as hlo_uses

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
    "Write only the new elements, with jax.lax.dynamic_update_slice or .at[index].set(...), into an array that is "
    "donated (donate_argnums) or carried by the loop: it is then updated in place."
)


@dataclass(frozen=True, slots=True)
class _Rewrite:
    """An op that writes arrays as a whole; times: how many elements they have for each that changes."""

    bytes: int
    times: int


@detects(MEMORY_BOUND)
def rewritten(budget: Budget) -> Claimed:
    """Arrays of the program's state, such as caches, that a select by a mask writes anew to change a place of a row."""
    table = budget.evidence.table
    rows, times = budget.ops("vector", "copy")
    own = dict(zip(rows.tolist(), times.tolist(), strict=True))
    found = {row: each for program in budget.once(large_arrays) for row, each in _of_program(program.of(own.keys()))}
    saved = np.array([own[row] * (1 - 1 / found[row].times) if row in found else 0.0 for row in rows.tolist()])

    losing = worthwhile(budget, rows, saved, goes_away=True)
    first = losing.first
    of = found[first]
    name, ending = place_name(table, losing.groups)
    return losing.finding(
        MEMORY_BOUND,
        f"{name} rewrite{ending} {of.times:,} elements to change 1",
        "Time of these ops without the part for the elements that change: the others need not move.",
        [
            losing.words(),
            f"{budget.described(first)} reads {size(of.bytes)} passed to the program, puts a new value in 1 of "
            f"{of.times:,} places through a mask, and writes the whole array.",
        ],
        advice=_ADVICE,
    )


def _of_program(program: ModuleArrays) -> Iterator[tuple[int, _Rewrite]]:
    uses = hlo_uses.Uses(program.module)
    for of in program.ops.values():
        found = _rewrite(program.module, uses, of)
        if found is not None:
            yield of.row, found


def _rewrite(module: HloModule, uses: hlo_uses.Uses, of: OpArrays) -> _Rewrite | None:
    """How an op rewrites arrays; None where it does not, or does anything else as well."""
    inside = all_fused(module, of.proto)
    if not of.writes or not {each.opcode for each in inside} <= _ELEMENTWISE:
        return None
    given = list(hlo_uses.fusion_inputs(module, of.proto))
    root = hlo_uses.root_of(module, of.proto)
    results = [] if root is None else _operands(module, root) if root.opcode == b"tuple" else [root]
    changes = [each for result in results if (each := _change(module, result, given)) is not None]
    times = [each.times for each in changes if _is_of_program(module, uses, of, each)]
    return (
        _Rewrite(sum(array.bytes for array in of.writes), min(times)) if times and len(times) == len(results) else None
    )


@dataclass(frozen=True, slots=True)
class _Change:
    """One result of an op: an array that it is given, in which a mask says where new values go.

    Attributes:
        times: elements for each that changes.
    """

    state: hlo_uses.FusionInput
    times: int


def _change(
    module: HloModule, root: hlo_pb2.HloInstructionProto, given: Sequence[hlo_uses.FusionInput]
) -> _Change | None:
    """Reads a change from its root: a select between old and new values, or a sum with new values times a mask.

    The new values are repeated along one dimension, in which the mask chooses a place; None where that is not so.
    """
    placed = _plain(module, root)
    if placed.opcode == b"dynamic-update-slice" and len(placed.operand_ids) > 1:
        update = module.instruction_by_id(placed.operand_ids[1])
        placed = placed if update is None else _plain(module, update)
    operands = _operands(module, placed)
    if placed.opcode not in (b"select", b"add") or len(operands) != (3 if placed.opcode == b"select" else 2):
        return None
    for kept, new in ((operands[-1], operands[-2]), (operands[-2], operands[-1])):
        old, added = _behind(module, kept), _behind(module, new)
        if placed.opcode == b"select":
            old = frozenset((_plain(module, kept, _SLICED).id,))
        same = [each for each in given if each.inner.shape.dimensions == root.shape.dimensions]
        state = next((each for each in same if each.inner.id in old - added), None)
        large = [
            each
            for each in given
            if each.inner.id in added and _FEW * elements(each.inner.shape) > elements(placed.shape)
        ]
        if state is None or large:
            continue
        repeated = [each for number in added if (each := _repeated_once(module, number)) is not None]
        by_position = [each for each in repeated if _is_place(module, given, _behind(module, each))]
        values = [each for each in repeated if each not in by_position]
        times = min((elements(each.shape) // elements(_operands(module, each)[0].shape) for each in values), default=0)
        mask = operands[0] if placed.opcode == b"select" else new
        rows_differ = placed.opcode == b"select" and all(
            sum(size > 1 for size in each.shape.dimensions) > 2 for each in values
        )
        if times >= _FEW and _is_place(module, given, _behind(module, mask), rows_differ):
            return _Change(state, times)
    return None


def _repeated_once(module: HloModule, number: int) -> hlo_pb2.HloInstructionProto | None:
    """A broadcast of an array along one dimension alone; None for anything else."""
    each = module.instruction_by_id(number)
    if each is None or each.opcode != b"broadcast":
        return None
    long = {at for at, size in enumerate(each.shape.dimensions) if size > 1}
    sources = _operands(module, each)
    return each if sources and elements(sources[0].shape) > 1 and len(long - set(each.dimensions)) == 1 else None


def _is_place(
    module: HloModule, given: Sequence[hlo_uses.FusionInput], behind: frozenset[int], rows_differ: bool = False
) -> bool:
    """Whether a mask is computed from an index that is compared with positions, here or where it was made.

    Args:
        behind: what the mask is computed from.
        rows_differ: whether the new values differ from row to row: then a mask that the program is given serves too.
    """
    mask = [each for number in behind if (each := module.instruction_by_id(number)) is not None]
    outer = [each.outer for each in given if each.inner.id in behind]
    makers = [each for of in outer if of is not None and (each := module.instruction_by_id(of[0])) is not None]
    mask += [each for maker in makers for each in all_fused(module, maker)]
    compares = [each for each in mask if each.opcode == b"compare"]
    if compares:
        by_position = any(each.opcode == b"iota" for each in mask)
        return by_position and all(each.comparison_direction == b"EQ" for each in compares)
    masks = [each for each in makers if element_type(each.shape) == "pred"]
    return rows_differ and bool(masks) and all(each.opcode == b"parameter" for each in masks)


def _is_of_program(module: HloModule, uses: hlo_uses.Uses, of: OpArrays, change: _Change) -> bool:
    """Whether an array is the program's or a loop's, and not given back as it was."""
    key = change.state.outer
    made = module.instruction_by_id(key[0]) if key is not None else None
    if key is None or made is None or made.opcode != b"parameter":
        return False
    in_loop = of.computation != module.proto.hlo_module.entry_computation_id
    return in_loop or uses.of(key, of.computation) is not None


_MOST_PASSED = 16
_SLICED = _AS_IT_IS | {b"dynamic-slice"}


def _plain(
    module: HloModule, proto: hlo_pb2.HloInstructionProto, passed: frozenset[bytes] = _AS_IT_IS
) -> hlo_pb2.HloInstructionProto:
    """What an instruction has its values from, through what only moves or casts them."""
    for _ in range(_MOST_PASSED):
        operand = module.instruction_by_id(proto.operand_ids[0]) if proto.operand_ids else None
        if operand is None or not hlo_uses.hands_on(module, proto, passed):
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

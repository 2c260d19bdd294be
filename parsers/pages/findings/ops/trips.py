"""Loops of a compiled program: how many trips they make, what they hold, and what differs from trip to trip."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tpuprof.parsers.base.intervals import median
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.xspace.walk import text
from tpuprof.parsers.ops.framework_op import pass_of
from tpuprof.parsers.pages.findings.budget import Budget
from tpuprof.parsers.pages.findings.claims import Rows
from tpuprof.parsers.pages.findings.ops.arrays import origin
from tpuprof.parsers.pages.findings.ops.groups import module_of

if TYPE_CHECKING:
    from tpuprof.parsers.formats.proto import hlo_pb2

LEAST_LOOP = 0.01
"""Loops below this share of the longest op's time are not searched."""

_TRIPS = pattern(rb'"known_trip_count"\s*:\s*\{\s*"n"\s*:\s*"?(\d{1,12})')


@dataclass(frozen=True)
class Loop:
    """A loop of a program.

    Attributes:
        row: of its `while`.
        module: the program.
        trips: how often its body runs each time.
        inside: rows of the ops in it, in loops and calls inside it too.
        body: what one trip computes.
        is_over_batches: whether its trips hold a forward and a backward pass: it goes over micro-batches.
    """

    row: int
    module: HloModule
    trips: float
    inside: Rows
    body: hlo_pb2.HloComputationProto
    is_over_batches: bool

    @cached_property
    def varying(self) -> frozenset[int]:
        """Ids of the instructions in it whose values may differ from trip to trip."""
        return frozenset(varying(self.module, self.body))


def loops_of(budget: Budget) -> tuple[Loop, ...]:
    """The loops that take some time and make more than one trip."""
    return tuple(_loops(budget))


def _loops(budget: Budget) -> Iterator[Loop]:
    table = budget.evidence.table
    longest = max(1, int(table.total_ps.max(initial=0)))
    large = np.flatnonzero((table.total_ps >= LEAST_LOOP * longest) & (table.occurrences > 0)).tolist()
    for row in large:
        module = module_of(budget.evidence, row) if table.category[row] == "while" else None
        proto = module.instruction_proto(table.name[row]) if module is not None else None
        called = proto.called_computation_ids if proto is not None else ()
        body = module.computation(called[0]) if module is not None and called else None
        if module is None or proto is None or body is None:
            continue
        names = set(in_loop(module, table.name[row]))
        of_program = np.flatnonzero(table.program_id == table.program_id[row]).tolist()
        inside = [other for other in of_program if table.name[other] in names]
        own = {text(each.name) for each in body.instructions}
        said = _TRIPS.search(proto.backend_config)
        trips = float(said[1]) if said else _ratio(budget, [each for each in inside if table.name[each] in own], row)
        if trips > 1:
            passes = {pass_of(table.framework_op[other], table.is_rematerialized(other)) for other in inside}
            both = {"forward", "backward"} <= passes
            yield Loop(row, module, trips, np.array(inside, np.intp), body, both)


def _ratio(budget: Budget, rows: Sequence[int], loop: int) -> float:
    occurrences = budget.evidence.table.occurrences
    return median(occurrences[list(rows)].astype(np.float64)) / int(occurrences[loop]) if rows else 1.0


def in_loop(module: HloModule, name: str) -> Iterator[str]:
    """Names of the instructions that a while runs, in calls and loops inside it too, but not inside fusions."""
    start = module.instruction_proto(name)
    waiting = list(start.called_computation_ids) if start is not None else []
    entered: set[int] = set()
    while waiting:
        number = waiting.pop()
        computation = module.computation(number)
        if number in entered or computation is None or computation.is_fusion_computation:
            continue
        entered.add(number)
        for instruction in computation.instructions:
            yield text(instruction.name)
            if instruction.opcode in (b"while", b"call", b"conditional"):
                waiting.extend(instruction.called_computation_ids)


# --- what differs from trip to trip

_State = bool | frozenset[int]
"""Whether a value may differ from trip to trip; of a tuple, which of its elements may."""

_MOST_PASSES = 8  # over a loop in a loop, until no more elements are found to differ
_DEEPEST = 16  # loops and calls in each other
_RANDOM = frozenset((b"rng", b"rng-bit-generator", b"infeed", b"recv", b"recv-done"))


def varying(module: HloModule, body: hlo_pb2.HloComputationProto) -> set[int]:
    """Ids of the instructions of a loop whose values may differ from trip to trip.

    What the body hands on as it was given stays the same, and so does what is computed from nothing else. A loop in it
    that counts from a constant does the same in every trip.
    """
    root = module.instruction_by_id(body.root_id)
    parameter = next((each for each in body.instructions if each.opcode == b"parameter"), None)
    if root is None or parameter is None:
        return {each.id for each in body.instructions}
    given = enumerate(root.operand_ids if root.opcode == b"tuple" else ())
    kept = {element for element, operand in given if origin(module, operand) == (parameter.id, element)}
    return _Trip(module).differing(body, frozenset(range(len(parameter.shape.tuple_shapes))) - kept)


class _Trip:
    """One trip of a loop, whose values are followed from the parameter on."""

    def __init__(self, module: HloModule) -> None:
        self._module = module
        self._found: set[int] = set()
        self._depth = 0

    def differing(self, body: hlo_pb2.HloComputationProto, changed: _State) -> set[int]:
        """Ids of what differs, by what does of the parameter."""
        self._states(body, {0: changed})
        return self._found

    def _states(self, computation: hlo_pb2.HloComputationProto, given: Mapping[int, _State]) -> _State:
        """Notes what differs in a computation, by what does of its parameters; returns what does of its root."""
        if self._depth >= _DEEPEST:
            return True
        self._depth += 1
        states: dict[int, _State] = {}
        for proto in computation.instructions:
            if proto.opcode == b"parameter":
                state = given.get(proto.parameter_number, False)
            else:
                state = self._state(proto, [states.get(operand, False) for operand in proto.operand_ids])
            states[proto.id] = state
            if state:
                self._found.add(proto.id)
        self._depth -= 1
        return states.get(computation.root_id, True)

    def _state(self, proto: hlo_pb2.HloInstructionProto, operands: Sequence[_State]) -> _State:
        first = operands[0] if operands else False
        if proto.opcode == b"get-tuple-element":
            return first if isinstance(first, bool) else proto.tuple_index in first
        if proto.opcode == b"tuple":
            return frozenset(element for element, of in enumerate(operands) if of)
        if proto.opcode in (b"bitcast", b"opt-barrier"):
            return first
        called = proto.called_computation_ids
        computation = self._module.computation(called[0]) if called else None
        if proto.opcode == b"while" and computation is not None:
            return self._of_loop(computation, first)
        if proto.opcode == b"call" and computation is not None:
            return self._states(computation, dict(enumerate(operands)))
        return any(operands) or proto.opcode in _RANDOM

    def _of_loop(self, body: hlo_pb2.HloComputationProto, state: _State) -> _State:
        for _ in range(_MOST_PASSES):
            after = _either(state, self._states(body, {0: state}))
            if after == state:
                return state
            state = after
        return True


def _either(one: _State, other: _State) -> _State:
    if isinstance(one, bool) or isinstance(other, bool):
        return one is True or other is True or (other if isinstance(one, bool) else one)
    return one | other

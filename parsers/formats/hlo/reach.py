"""What makes a value and what uses it, through the instructions that only hand it on.

A tuple, an element of one, a bitcast, a loop's state and a call's parameters compute nothing: who feeds an op, and who
waits for it, stands behind them. A value is a row and the index of an element in it, as in a tuple of tuples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.hlo.graph import HloGraph

PLUMBING = frozenset(("tuple", "get-tuple-element", "bitcast", "opt-barrier", "parameter", "while", "conditional"))
"""Opcodes of what hands values on."""

_CALLS = frozenset(("call", "fusion", "async-start"))
"""Opcodes of what gives its operands to the parameters of what it calls, in their order."""

_DEEPEST = 64  # callers, one within the other
MOST_STEPS = 200
"""How many values it looks at; values beyond them are not named, and `Reached.is_all` is False."""

_RETURNED = (-1,)
"""Index of what a loop that is the program's root returns: as no element has it, it leads no further into the loop."""

_Value = tuple[int, tuple[int, ...]]
_Steps = Callable[[HloGraph, int, tuple[int, ...]], "Iterator[_Value] | None"]


@dataclass(frozen=True, slots=True)
class Reached:
    """Instructions behind those that hand values on.

    Attributes:
        rows: of them, in the order in which they were found, each once.
        is_all: whether there are no more.
    """

    rows: tuple[int, ...]
    is_all: bool


def sources(graph: HloGraph, row: int) -> Reached:
    """What computes the operands of an instruction, arguments and constants of the program among them.

    Of a tuple of which it takes one element, what computes that element.
    """
    if graph.opcode(row) == "get-tuple-element":
        return maker(graph, row)
    return _reach(graph, ((int(each), ()) for each in graph.operands[row] if each >= 0), _before)


def maker(graph: HloGraph, row: int) -> Reached:
    """What computes the value that an instruction hands on; the instruction itself where it does not."""
    return _reach(graph, iter([(row, ())]), _before)


def sinks(graph: HloGraph, row: int) -> Reached:
    """What uses the result of an instruction; the root of the program where its result is the program's."""
    return _reach(graph, _after(graph, row, ()), _through)


def sinks_through(graph: HloGraph, row: int, user: int) -> Reached:
    """The same by way of one user that hands the result on."""
    return _reach(graph, _given_to(graph, user, row, ()), _through)


def _reach(graph: HloGraph, begin: Iterator[_Value], steps: _Steps) -> Reached:
    """Goes on depth first; of the ways from each value it looks at one after the other, and at no more than it may."""
    found: dict[int, None] = {}
    known: set[_Value] = set()
    ways = [begin]
    while ways:
        value = next(ways[-1], None)
        if value is None:
            ways.pop()
        elif value not in known:
            if len(known) >= MOST_STEPS:
                return Reached(tuple(found), False)
            known.add(value)
            further = steps(graph, *value)
            if further is None:
                found[value[0]] = None
            else:
                ways.append(further)
    return Reached(tuple(found), True)


def _before(graph: HloGraph, row: int, index: tuple[int, ...]) -> Iterator[_Value] | None:
    """Where a value comes from, by one step back; None where this instruction makes it."""
    opcode = graph.opcode(row)
    if opcode not in PLUMBING:
        return None
    operands = graph.operands[row].tolist()
    if opcode == "parameter":
        made = list(_arguments(graph, row, index))
        return iter(made) if made else None
    if opcode == "tuple":
        if index and index[0] < len(operands) and operands[index[0]] >= 0:
            return iter([(operands[index[0]], index[1:])])
        return iter([(each, ()) for each in operands if each >= 0])
    if opcode == "get-tuple-element":
        index = (graph.element(row), *index)
    if opcode in ("while", "conditional"):
        bodies = [number for number in _computations(graph, row) if graph.root[number] >= 0]
        return iter([(int(graph.root[number]), index) for number in bodies]) if bodies else None
    return iter([(operands[0], index)]) if operands and operands[0] >= 0 else None


def _arguments(graph: HloGraph, row: int, index: tuple[int, ...]) -> Iterator[_Value]:
    """What a parameter stands for, wherever its computation is called; nothing for the program's own."""
    number, place = graph.computation(row), graph.proto(row).parameter_number
    for caller in graph.callers[number].tolist() if number != graph.entry else ():
        opcode, operands = graph.opcode(caller), graph.operands[caller].tolist()
        if opcode == "while":
            yield from ((each, index) for each in operands[:1] if each >= 0)
            bodies = _computations(graph, caller)
            yield from ((int(graph.root[body]), index) for body in bodies if graph.root[body] >= 0)
        elif opcode == "conditional":
            branches = graph.called[caller].tolist()
            branch = branches.index(number) + 1
            if branch < len(operands) and operands[branch] >= 0:
                yield operands[branch], index
        elif opcode in _CALLS and place < len(operands) and operands[place] >= 0:
            yield operands[place], index


def _after(graph: HloGraph, row: int, index: tuple[int, ...], passed: frozenset[int] = frozenset()) -> Iterator[_Value]:
    """The users of a value, each with the index that the value has in it; callers where it is a computation's root.

    Args:
        passed: callers that the way has led through: a loop may return what it is given, and a damaged module calls
            itself.
    """
    for user in graph.users[row].tolist():
        yield from _given_to(graph, user, row, index)
    number = graph.computation(row)
    if int(graph.root[number]) != row or number == graph.entry or len(passed) > _DEEPEST:
        return
    for caller in graph.callers[number].tolist():
        opcode, further = graph.opcode(caller), passed | {caller}
        if caller in passed:
            continue
        if opcode == "while":
            if number in _computations(graph, caller):
                yield from _uses_of_call(graph, caller, index, further)
        elif opcode == "conditional" or opcode in _CALLS:
            yield from _after(graph, caller, index, further)


def _given_to(graph: HloGraph, user: int, row: int, index: tuple[int, ...]) -> Iterator[_Value]:
    """A value as one user has it."""
    opcode = graph.opcode(user)
    if opcode == "tuple":
        yield from ((user, (place, *index)) for place, each in enumerate(graph.operands[user]) if each == row)
    elif opcode == "get-tuple-element":
        element = graph.element(user)
        if not index or index[0] == element:
            yield user, index[1:]
    else:
        yield user, index


def _uses_of_call(graph: HloGraph, loop: int, index: tuple[int, ...], passed: frozenset[int]) -> Iterator[_Value]:
    """What a value that a loop's body returns is used for: in the next pass, and behind the loop, or as the result."""
    yield from _into(graph, loop, index, passed)
    yield from _after(graph, loop, index, passed)
    if _is_result(graph, loop):
        yield loop, _RETURNED


def _through(graph: HloGraph, row: int, index: tuple[int, ...]) -> Iterator[_Value] | None:
    """Where a value goes that an instruction has been handed, by one step on; None where it is used there."""
    opcode = graph.opcode(row)
    is_unused = not graph.users[row].size and _is_result(graph, row)
    if opcode not in PLUMBING or index == _RETURNED or (is_unused and opcode != "while"):
        return None
    if opcode == "while":
        return _into(graph, row, index)
    if opcode == "conditional":
        return None
    return _after(graph, row, index)


def _is_result(graph: HloGraph, row: int) -> bool:
    return row == int(graph.root[graph.entry])


def _into(graph: HloGraph, loop: int, index: tuple[int, ...], passed: frozenset[int] = frozenset()) -> Iterator[_Value]:
    for number in _computations(graph, loop):
        parameter = graph.parameter(number, 0)
        if parameter is not None:
            yield from _after(graph, parameter, index, passed)


def _computations(graph: HloGraph, row: int) -> list[int]:
    """The bodies of a loop, without its condition; the branches of a conditional."""
    called = [number for number in graph.called[row].tolist() if number >= 0]
    return called[:1] if graph.opcode(row) == "while" else called

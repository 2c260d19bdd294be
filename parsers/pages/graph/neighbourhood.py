"""The neighbourhood of an op: pure functions over a module's graph, which decode what is asked for and no more."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.hlo import reach
from tpuprof.parsers.formats.hlo.graph import HloGraph
from tpuprof.parsers.pages.graph.answers import answers, why_not_fused
from tpuprof.parsers.pages.graph.model import (
    MOST_INSIDE,
    NO_SIZE,
    CalledComputation,
    Neighbour,
    Neighbourhood,
    PathStep,
)
from tpuprof.parsers.pages.graph.programs import Program

MOST_AROUND = 5_000
"""The most instructions that it collects; a text to read has fewer."""

_UNTOLD = ("parameter", "constant")
_MOST_BEHIND = 6


def neighbourhood(program: Program, row: int) -> Neighbourhood:
    """All about an instruction but the neighbours themselves, whose rows it gives."""
    graph, op = program.graph, program.node(row)
    operands = tuple(dict.fromkeys(each for each in graph.operands[row].tolist() if each >= 0))
    controls = tuple(each for each in graph.controls[row].tolist() if each >= 0)
    chain = list(graph.chain(row))
    back, on = reach.sources(graph, row), reach.sinks(graph, row)
    unknown = {} if op.size_bytes is not None else {"op.size_bytes": NO_SIZE}
    if op.why_untimed:
        unknown |= dict.fromkeys(("op.self_time_ps", "op.occurrences", "op.self_time_percent"), op.why_untimed)
    return Neighbourhood(
        op=op,
        operands=operands,
        operand_controls=controls,
        users=tuple(graph.users[row].tolist()),
        user_controls=tuple(graph.controlled[row].tolist()),
        called=tuple(_called(graph, row)),
        path=tuple(_path(graph, chain)),
        answers=answers(program, op, back, on),
        why_not_fused=why_not_fused(program, op, back, on),
        sources=back.rows,
        sinks=on.rows,
        in_loops=sum(caller is not None and graph.opcode(caller) == "while" for _, caller in chain),
        instructions=len(graph),
        computations=graph.computation_count,
        unknown=unknown,
    )


def operand(program: Program, here: Neighbourhood, index: int) -> Neighbour:
    """One of the operands, those that only have to run before behind the others."""
    every = (*here.operands, *here.operand_controls)
    places: tuple[int, ...] = ()
    if index < len(here.operands):
        listed = program.graph.operands[here.op.row].tolist()
        places = tuple(place for place, each in enumerate(listed) if each == every[index])
    return _neighbour(program, every[index], places)


def user(program: Program, here: Neighbourhood, index: int) -> Neighbour:
    """One of the users, those that only have to run later behind the others."""
    every = (*here.users, *here.user_controls)
    places: tuple[int, ...] = ()
    if index < len(here.users):
        listed = program.graph.operands[every[index]].tolist()
        places = tuple(place for place, each in enumerate(listed) if each == here.op.row)
    return _neighbour(program, every[index], places, here.op.row)


def behind(program: Program, here: Neighbourhood, index: int, is_user: bool) -> Neighbour:
    """One of the instructions that make its operands, or use its result, behind what only hands values on."""
    row = (here.sinks if is_user else here.sources)[index]
    lists = program.graph.operands[row if is_user else here.op.row].tolist()
    wanted = here.op.row if is_user else row
    return Neighbour(program.node(row), tuple(place for place, each in enumerate(lists) if each == wanted))


def _neighbour(program: Program, row: int, places: tuple[int, ...], of: int | None = None) -> Neighbour:
    """An operand, or a user `of` an instruction."""
    graph, node = program.graph, program.node(row)
    if node.opcode not in reach.PLUMBING:
        return Neighbour(node, places, is_control=not places)
    found = reach.maker(graph, row) if of is None else reach.sinks_through(graph, of, row)
    names = tuple(graph.name(each) for each in found.rows if each != row)
    return Neighbour(node, places, names[:_MOST_BEHIND], found.is_all and len(names) <= _MOST_BEHIND, not places)


def _called(graph: HloGraph, row: int) -> Iterator[CalledComputation]:
    for place, number in enumerate(graph.called[row].tolist()):
        if number < 0:
            continue
        rows = graph.rows(number)
        told = len(rows) - sum(graph.count(number, opcode) for opcode in _UNTOLD)
        last = (each for each in reversed(rows) if graph.opcode(each) not in _UNTOLD)
        names = tuple(graph.name(each) for each in islice(last, MOST_INSIDE))
        root = int(graph.root[number])
        yield CalledComputation(
            number,
            graph.computation_name(number),
            role(graph, row, place),
            len(rows),
            root if root >= 0 else None,
            names,
            told - len(names),
        )


def role(graph: HloGraph, row: int, place: int) -> str:
    """What a called computation is to its caller."""
    opcode = graph.opcode(row)
    if opcode == "while":
        return ("body", "condition")[place] if place < 2 else "calls"
    if opcode == "conditional":
        return f"branch {place}"
    return "calls" if opcode in ("fusion", "call", "async-start", "async-update", "async-done") else "to_apply"


def _path(graph: HloGraph, chain: Sequence[tuple[int, int | None]]) -> Iterator[PathStep]:
    for number, caller in chain[::-1]:
        if caller is None:
            yield PathStep(graph.computation_name(number), None, None, "")
        else:
            place = graph.called[caller].tolist().index(number)
            yield PathStep(graph.computation_name(number), graph.name(caller), caller, role(graph, caller, place))


@dataclass(frozen=True, slots=True)
class Subgraph:
    """The instructions within some steps of one, and the edges between them.

    Attributes:
        rows: the instruction, then the others by distance and name.
        distances: of each, in steps over operands, users and what has to run before or after.
        edges: pairs of rows, of an operand and its user; with True where there is an order and no value.
        is_all: whether there are no more within these steps.
    """

    rows: tuple[int, ...]
    distances: tuple[int, ...]
    edges: tuple[tuple[int, int, bool], ...]
    is_all: bool


def around(graph: HloGraph, row: int, steps: int, most: int = MOST_AROUND) -> Subgraph:
    """The instructions within `steps` steps, and what leads from one to another."""
    distance, waiting, is_all = {row: 0}, deque([row]), True
    while waiting:
        here = waiting.popleft()
        if distance[here] >= steps:
            continue
        lists = graph.operands, graph.controls, graph.users, graph.controlled
        for each in (near for listed in lists for near in listed[here].tolist()):
            if each >= 0 and each not in distance:
                if len(distance) >= most:
                    is_all = False
                    break
                distance[each] = distance[here] + 1
                waiting.append(each)
    rows = sorted(distance, key=lambda each: (distance[each], graph.name(each)))
    edges = [
        (each, to, is_control)
        for to in rows
        for lists, is_control in ((graph.operands, False), (graph.controls, True))
        for each in dict.fromkeys(lists[to].tolist())
        if each in distance
    ]
    return Subgraph(tuple(rows), tuple(distance[each] for each in rows), tuple(edges), is_all)

"""The neighbourhood of an op: pure functions over a module's graph, which decode what is asked for and no more."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Literal

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.hlo import reach
from tpuprof.parsers.formats.hlo.graph import HloGraph
from tpuprof.parsers.pages.graph.answers import answers, why_not_fused
from tpuprof.parsers.pages.graph.model import MOST_INSIDE, NO_SIZE, CalledComputation, Neighbour, Node, PathStep
from tpuprof.parsers.pages.graph.programs import Program

MOST_AROUND = 5_000
"""The most instructions that it collects; a text to read has fewer."""

Side = Literal["operands", "users"]

_UNTOLD = ("parameter", "constant")
_MOST_BEHIND = 6


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """An op, and the rows around it.

    Attributes:
        program: the module that it is in.
        op: the instruction.
        operands, users: rows of them, each once; with them in `operand_controls` and `user_controls` those that only
            have to run before or after.
        called: what it calls.
        path: the computations from the program's own to that of the op.
        answers: sentences: what it waits for, what it feeds, what it is for.
        why_not_fused: why it is no part of a fusion, as far as its neighbours show; empty where the question does not
            arise.
        sources, sinks: rows of what computes its operands, and of what uses its result, behind what only hands
            values on.
        in_loops: how many loops it is in.
        instructions, computations: of the module.
        unknown: dotted key to the reason why a figure is None.
    """

    program: Program
    op: Node
    operands: tuple[int, ...]
    operand_controls: tuple[int, ...]
    users: tuple[int, ...]
    user_controls: tuple[int, ...]
    called: tuple[CalledComputation, ...]
    path: tuple[PathStep, ...]
    answers: tuple[str, ...]
    why_not_fused: tuple[str, ...]
    sources: tuple[int, ...]
    sinks: tuple[int, ...]
    in_loops: int
    instructions: int
    computations: int
    unknown: Mapping[str, str]

    def rows(self, side: Side, is_direct: bool = True) -> tuple[int, ...]:
        """The neighbours of a side, those that only have to run before or after behind the others.

        Args:
            is_direct: these; else what stands behind those that only hand values on.
        """
        if side == "operands":
            return (*self.operands, *self.operand_controls) if is_direct else self.sources
        return (*self.users, *self.user_controls) if is_direct else self.sinks


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
        program=program,
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


def neighbour(here: Neighbourhood, side: Side, index: int, is_direct: bool = True) -> Neighbour:
    """One of the neighbours of a side, decoded."""
    program, own, row = here.program, here.op.row, here.rows(side, is_direct)[index]
    taken, taker = (row, own) if side == "operands" else (own, row)
    node, graph = program.node(row), program.graph
    listed = graph.operands[taker].tolist()
    places = tuple(place for place, each in enumerate(listed) if each == taken)
    if not is_direct:
        return Neighbour(node, places)
    is_control = index >= len(here.operands if side == "operands" else here.users)
    places = () if is_control else places
    if node.opcode not in reach.PLUMBING:
        return Neighbour(node, places, is_control=is_control)
    found = reach.maker(graph, row) if side == "operands" else reach.sinks_through(graph, own, row)
    names = tuple(graph.name(each) for each in found.rows if each != row)
    return Neighbour(node, places, names[:_MOST_BEHIND], found.is_all and len(names) <= _MOST_BEHIND, is_control)


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

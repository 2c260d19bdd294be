"""The neighbourhood of an op: pure functions over a module's graph, which decode what is asked for and no more.

What the graph around the op answers in sentences is what it waits for, who waits for it, and why it is not fused. All
is read from the module's instructions, their shapes and their schedule, and from the profile's sums of time. Why the
compiler did not fuse an op it does not write down: what is said about that is concluded from its neighbours.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Literal

from tpuprof.parsers.base.op_class import COLLECTIVE_KINDS
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.formats.hlo import reach
from tpuprof.parsers.formats.hlo.graph import HloGraph
from tpuprof.parsers.formats.hlo.reach import PLUMBING, Reached
from tpuprof.parsers.pages.graph.model import MOST_INSIDE, NO_SIZE, CalledComputation, Neighbour, Node, PathStep
from tpuprof.parsers.pages.graph.programs import Program

_GIVEN = frozenset(("parameter", "constant", "iota", "partition-id", "replica-id", "rng-get-and-update-state"))
"""What needs no computing before."""

_RARELY_FUSED = frozenset(
    (
        *COLLECTIVE_KINDS,
        *("infeed", "outfeed", "custom-call", "sort", "rng", "fft", "call"),
        *("after-all", "partition-id", "replica-id", "rng-bit-generator", "cholesky", "triangular-solve", "domain"),
    )
)
_HALVES = ("-start", "-update", "-done")
_NAMED = 2
_LEAST_SHARE = 0.0005


def answers(program: Program, op: Node, back: Reached, on: Reached) -> tuple[str, ...]:
    """Sentences, the most useful first: what it waits for and feeds; what it is for where it only copies."""
    first = f"{_waits(program, op, back)}; {_feeds(program, op, on)}."
    return (first[0].upper() + first[1:], *_copies(op), *_pair(program, op))


def _waits(program: Program, op: Node, back: Reached) -> str:
    graph = program.graph
    if op.opcode == "parameter" and not back.rows:
        return "is an argument of the program" if _is_entry(graph, op.row) else "is a parameter that its callers pass"
    computed = [row for row in back.rows if graph.opcode(row) not in _GIVEN]
    if not computed:
        kinds = sorted({_given_word(graph, row) for row in back.rows})
        return f"waits for nothing: needs {_listed(kinds)}" if kinds else "needs nothing"
    if op.opcode.endswith("-done") and op.partner:
        what = "what" if op.opcode == "async-done" else "the transfer that"
        return f"waits for {what} {op.partner} started{_time_words(op)}"
    more = "" if back.is_all else " or more"
    before = _last_before(graph, op.row, computed)
    if before is None:
        longest = sorted(computed, key=lambda row: -(program.node(row).self_ps or 0))
        named = [graph.name(row) + _time_words(program.node(row)) for row in longest[:_NAMED]]
        return f"needs {_some(named, len(computed))}{more}"
    last, is_pass_before = before
    name, when = graph.name(last), ", in the pass before" if is_pass_before else ""
    words = f"waits for {'itself' if last == op.row else name}"
    if len(computed) > 1:
        words = f"of {len(computed)}{more} ops that it waits for, {name} is last"
    return words + when + _time_words(program.node(last))


def _given_word(graph: HloGraph, row: int) -> str:
    opcode = graph.opcode(row)
    if opcode == "parameter":
        return "arguments of the program" if _is_entry(graph, row) else "values from its caller"
    return "constants" if opcode == "constant" else opcode


def _last_before(graph: HloGraph, op: int, rows: Sequence[int]) -> tuple[int, bool] | None:
    """Of several instructions the one that ran last before an op, and whether it ran in the loop's pass before.

    It is looked for from the inside out, in the computation of the op and in those around it. What a call holds runs
    when that does. Of two that the same call holds the later one in it counts, as far as both are in one computation.

    Returns:
        None where the module does not record the order: the inside of a fusion has none.
    """
    ways = {row: {number: place for number, place, _ in _places(graph, row)} for row in rows}
    for number, place, caller in _places(graph, op):
        at = {row: graph.position(ways[row][number]) for row in rows if number in ways[row]}
        if at and not graph.has_order(number):
            return None
        own = graph.position(place)
        ahead = [row for row in at if at[row] < own]
        around = [row for row in at if at[row] == own and graph.opcode(place) == "while"]  # seen from its condition
        is_pass_before = bool(around) or not ahead
        if ahead or around or (at and caller is not None and graph.opcode(caller) == "while"):
            return max(around or ahead or at, key=lambda row: (at[row], graph.position(row))), is_pass_before
    return None


def _places(graph: HloGraph, row: int) -> Iterable[tuple[int, int, int | None]]:
    """The computations from that of a row out to the program's own, with the row or call in each, and its caller."""
    for number, caller in graph.chain(row):
        yield number, row, caller
        row = row if caller is None else caller


def _time_words(node: Node) -> str:
    if node.fraction is None or node.fraction < _LEAST_SHARE:
        return ""
    return f" ({100 * node.fraction:.1f}% of the time)"


def _feeds(program: Program, op: Node, on: Reached) -> str:
    graph = program.graph
    rows = _users(graph, on)
    is_result = len(rows) < len(on.rows) or op.row == int(graph.root[graph.entry])
    if not rows and is_result:
        return "its result is what the program returns"
    if not rows:
        at, caller = next(graph.chain(op.row))
        is_given = op.is_root and caller is not None
        return (
            f"is what {graph.computation_name(at)} returns to {graph.name(caller or 0)}" if is_given else "feeds no op"
        )
    more = "" if on.is_all else " or more"
    names = ["itself in the next pass" if row == op.row else graph.name(row) for row in rows[:_NAMED]]
    around = _loops(graph, op.row)
    inside = sum(bool(_loops(graph, row) - around) for row in rows)  # in a loop that it is not in itself
    where = f", {inside} in the loop" if inside and len(rows) > 1 else ", in the loop" if inside else ""
    words = f"feeds {counted(len(rows), 'op')}{more}{where}: {_some(names, len(rows))}"
    return f"{words}; the program returns it too" if is_result else words


def _users(graph: HloGraph, on: Reached) -> list[int]:
    """What uses a result, without the tuple that the program returns."""
    root = int(graph.root[graph.entry])
    return [row for row in on.rows if row != root or graph.opcode(row) not in PLUMBING]


def _loops(graph: HloGraph, row: int) -> frozenset[int]:
    return frozenset(caller for _, caller in graph.chain(row) if caller is not None and graph.opcode(caller) == "while")


def _copies(op: Node) -> Iterable[str]:
    if op.changes_layout:
        yield f"It only rearranges an array: {op.moves}."
    elif " to " in op.moves:
        yield f"It moves an array from {op.moves} unchanged."
    elif op.moves:
        yield "It copies an array unchanged: either the original is changed in place, or two ops need it."


def _pair(program: Program, op: Node) -> Iterable[str]:
    if not op.partner:
        return
    graph = program.graph
    other = graph.row(op.partner)
    if other is None:
        return
    begin, end = (op.row, other) if op.opcode.endswith("-start") or op.opcode in ("send", "recv") else (other, op.row)
    between = graph.position(end) - graph.position(begin) - 1
    at = graph.computation(begin)
    is_known = graph.has_order(at) and at == graph.computation(end)
    if op.row == begin:
        yield f"It starts what {op.partner} waits for{_time_words(program.node(other))}."
    if is_known:
        yield f"{counted(between, 'instruction')} {'lies' if between == 1 else 'lie'} between start and done."


def why_not_fused(program: Program, op: Node, back: Reached, on: Reached) -> tuple[str, ...]:
    """Why an op stands on its own, as far as its neighbours show; nothing where the question does not arise."""
    graph = program.graph
    is_plumbing = op.opcode in PLUMBING or op.opcode in _GIVEN
    if is_plumbing or op.opcode == "fusion" or op.opcode.endswith(_HALVES) or not _runs_alone(graph, op.row):
        return ()
    if op.opcode in _RARELY_FUSED:
        return (f"XLA rarely fuses {op.opcode} ops with others",)
    reasons = []
    makers = {graph.opcode(row) for row in back.rows}
    users = _users(graph, on)
    opcodes = {graph.opcode(row) for row in users}
    if back.rows and makers <= {"parameter"}:
        reasons.append("its operands are arguments of the program: there is no op before it to fuse with")
    elif makers & (_RARELY_FUSED | {"while", "conditional"}):
        reasons.append(f"its operands come from {_listed(sorted(makers & (_RARELY_FUSED | {'while', 'conditional'})))}")
    if not users:
        reasons.append("only the program's caller, or the next pass of the loop, uses its result")
    elif opcodes <= _RARELY_FUSED | {one for one in opcodes if one.endswith(_HALVES)}:
        reasons.append(f"its users read arrays from memory: {_listed(sorted(opcodes))}")
    elif len(users) > 1:
        reasons.append(f"{len(users)} ops use its result: if fused, each would compute it again")
    if op.changes_layout and not reasons:
        reasons.append("a copy that changes the layout stands between two ops with different layouts")
    return tuple(reasons) or ("its neighbours do not show why",)


def _runs_alone(graph: HloGraph, row: int) -> bool:
    """Whether an instruction is an op of its own: of the program, or of what a loop, a branch or a call runs."""
    callers = [caller for _, caller in graph.chain(row) if caller is not None]
    return all(graph.opcode(caller) in ("while", "conditional", "call") for caller in callers)


def _is_entry(graph: HloGraph, row: int) -> bool:
    return graph.computation(row) == graph.entry


def _some(first: Sequence[str], count: int) -> str:
    """The first of so many names, and how many more there are."""
    return _listed([*first, f"{count - len(first)} more"] if count > len(first) else first)


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


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

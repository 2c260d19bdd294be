"""What the graph page shows of an op: itself, its neighbours, the computations around it and inside it."""

from __future__ import annotations

from tpuprof.parsers.base.record import dataclass

NO_PROFILE = "compiled modules alone have no times: open the profile of a run for these"
INSIDE = "it is part of a fusion's time: the profile times only whole fusions"
NOT_TIMED = "the profile has no event of it: it takes no time of its own, or was not traced"
NO_SIZE = "its shape has no layout that gives a size, or no data"


@dataclass(frozen=True, slots=True)
class Node:
    """One instruction.

    Attributes:
        row: in the module's graph.
        name, opcode: such as ``fusion.397`` and ``fusion``.
        computation: name of the computation that it is in.
        shape: of its result in XLA's notation, with layout and tiling.
        size_bytes: of its result in memory, padding among them; of a tuple its arrays together; None where unknown.
        op: row in the table of the profile's ops; None where that has no time of it.
        self_ps, occurrences: of all its runs and cores together; None where unknown.
        fraction: self time as a fraction (0-1) of that of the cores; None where unknown.
        framework_op, source: where it comes from; None where the compiler does not say.
        is_root: whether it is what its computation returns.
        moves: what a copy changes: ``layout {1,0} to {0,1}``, ``HBM to VMEM`` or ``as it is``; empty for others.
        partner: the other half of an asynchronous pair; empty where it is none.
        inside: how many instructions a fusion or another call holds, without parameters; 0 for what holds none.
        why_untimed: why `self_ps` is unknown; empty where it is known.
    """

    row: int
    name: str
    opcode: str
    computation: str
    shape: str
    size_bytes: int | None
    op: int | None
    self_ps: int | None
    occurrences: int | None
    fraction: float | None
    framework_op: str | None
    source: str | None
    is_root: bool
    moves: str = ""
    partner: str = ""
    inside: int = 0
    why_untimed: str = ""

    @property
    def changes_layout(self) -> bool:
        """Whether it copies an array only to lay it out in another way."""
        return self.moves.startswith(("layout", "tiles"))


@dataclass(frozen=True, slots=True)
class Neighbour:
    """An operand or a user of an op.

    Attributes:
        node: the instruction.
        places: which operand it is, or as which operand it takes the op, from 0; () where no value goes over directly.
        behind: where the instruction only hands values on, as a tuple does: what makes or uses the value behind it.
        is_all_behind: whether there are no more of these.
        is_control: whether it only has to run before or after (a control dependency).
    """

    node: Node
    places: tuple[int, ...]
    behind: tuple[str, ...] = ()
    is_all_behind: bool = True
    is_control: bool = False


@dataclass(frozen=True, slots=True)
class CalledComputation:
    """A computation that an instruction calls.

    Attributes:
        number: in the module's graph.
        name, role: its name, and what it is to its caller: ``calls``, ``body``, ``condition``, ``branch 0``.
        instructions: how many it has.
        root: row of what it returns; None for an empty one.
        first: names of its instructions, parameters and constants left out, the last ones first; at most `MOST_INSIDE`.
        more: how many more there are.
    """

    number: int
    name: str
    role: str
    instructions: int
    root: int | None
    first: tuple[str, ...]
    more: int


MOST_INSIDE = 24


@dataclass(frozen=True, slots=True)
class PathStep:
    """A computation on the way from the program's own to an op's.

    Attributes:
        computation: its name.
        caller: name of the instruction that calls it, and its row; None for the program's own.
        role: what it is to that: ``body``, ``calls``.
    """

    computation: str
    caller: str | None
    caller_row: int | None
    role: str

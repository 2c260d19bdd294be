"""The graph of a compiled module as columns: operands, users and called computations of each instruction by row.

A row is an instruction's place in the module, computation by computation as the module stores them. Lists of rows lie
one behind the other in an array, with an array of where each begins. An instruction itself is decoded when somebody
asks for it: a module may have a hundred thousand of them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property, reduce
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.xspace.walk import text

if TYPE_CHECKING:
    from tpuprof.parsers.formats.proto import hlo_pb2

Rows = NDArray[np.int32]

MISSING = -1
"""The row of an operand that the module lacks."""

_MOST_ORDERED = 64
_DEEPEST = 64  # calls within calls; a chain that returns to itself ends here


@dataclass(frozen=True, slots=True)
class Adjacency:
    """A list of rows for each row.

    Attributes:
        begin: int32[n + 1]; where each list begins in `rows`.
        rows: int32; the lists, one behind the other.
    """

    begin: Rows
    rows: Rows

    def __getitem__(self, row: int) -> Rows:
        return self.rows[self.begin[row] : self.begin[row + 1]]

    @classmethod
    def of(cls, counts: Sequence[int], rows: Sequence[int]) -> Adjacency:
        """Lists of rows, `counts` of them each."""
        begin = np.zeros(len(counts) + 1, np.int32)
        np.cumsum(counts, out=begin[1:])
        return cls(begin, np.asarray(rows, np.int32))

    def transposed(self, count: int) -> Adjacency:
        """For each of `count` targets the rows whose lists name it, ascending and each once; missing ones left out."""
        origin = np.repeat(np.arange(len(self.begin) - 1, dtype=np.int64), np.diff(self.begin))
        known = self.rows >= 0
        size = len(self.begin)
        pairs = np.unique(self.rows[known].astype(np.int64) * size + origin[known])
        target, origin = np.divmod(pairs, size)
        begin = np.searchsorted(target, np.arange(count + 1)).astype(np.int32)
        return Adjacency(begin, origin.astype(np.int32))


class HloGraph:
    """The instructions of a module with what they take, feed and call.

    Attributes:
        module: the module; `proto` decodes one instruction of it.
        first: int32[c + 1]; the first row of each computation, and behind the last.
        operands, users: of each row; an operand as often as it is one, `MISSING` where the module lacks it; users once.
        controls, controlled: rows that must run before or after without a value that is needed (control dependencies).
        called: computations that each row calls, in the order in which it names them.
        callers: of each computation, the rows that call it.
        order: int32[n]; place in the schedule of its computation, as stored where it has none.
        root: int32[c]; the row of each computation's root.
        entry: number of the program's own computation.
    """

    def __init__(self, module: HloModule) -> None:
        self.module = module
        proto = module.proto.hlo_module
        self._computations = list(proto.computations)
        number = {computation.id: at for at, computation in reversed(list(enumerate(self._computations)))}
        self.first = np.zeros(len(self._computations) + 1, np.int32)
        self.root = np.full(len(self._computations), MISSING, np.int32)
        everywhere: dict[int, int] = {}
        counts: dict[str, list[int]] = {"operands": [], "controls": [], "called": []}
        ids: dict[str, list[int]] = {"operands": [], "controls": [], "called": []}
        names: list[bytes] = []
        opcodes: list[bytes] = []
        elements: dict[int, int] = {}
        row = 0
        for at, computation in enumerate(self._computations):
            own: dict[int, int] = {}
            begins = len(ids["operands"]), len(ids["controls"])
            for instruction in computation.instructions:
                own.setdefault(instruction.id, row)
                names.append(instruction.name)
                opcodes.append(instruction.opcode)
                if opcodes[-1] == b"get-tuple-element":
                    elements[row] = instruction.tuple_index
                for kind, listed in (
                    ("operands", instruction.operand_ids),
                    ("controls", instruction.control_predecessor_ids),
                    ("called", instruction.called_computation_ids),
                ):
                    counts[kind].append(len(listed))
                    if listed:
                        ids[kind].extend(listed)
                row += 1
            for kind, begin in zip(("operands", "controls"), begins, strict=True):
                mine = ids[kind]
                mine[begin:] = [own.get(each, everywhere.get(each, MISSING)) for each in mine[begin:]]
            for key, place in own.items():
                everywhere.setdefault(key, place)
            self.first[at + 1] = row
            self.root[at] = own.get(computation.root_id, row - 1 if own else MISSING)
        self.operands = Adjacency.of(counts["operands"], ids["operands"])
        self.controls = Adjacency.of(counts["controls"], ids["controls"])
        self.called = Adjacency.of(counts["called"], [number.get(each, MISSING) for each in ids["called"]])
        self.users = self.operands.transposed(row)
        self.controlled = self.controls.transposed(row)
        self.callers = self.called.transposed(len(self._computations))
        self.entry = number.get(proto.entry_computation_id, len(self._computations) - 1)
        self._row_of = dict(zip(reversed(names), range(row - 1, -1, -1), strict=True))
        self._names, self._opcodes, self._elements = names, opcodes, elements
        self._first: list[int] = self.first.tolist()
        self._parameters: dict[int, dict[int, int]] = {}
        self._ordered: dict[int, list[int]] = {}
        self.order, self._has_order = self._schedule()

    def __len__(self) -> int:
        return int(self.first[-1])

    @property
    def computation_count(self) -> int:
        return len(self._computations)

    def _schedule(self) -> tuple[Rows, list[bool]]:
        """Each row's place in its computation's schedule, and which computations have one."""
        sequences = self.module.proto.hlo_module.schedule.sequences
        order, has_order = np.arange(len(self), dtype=np.int32), [False] * len(self._computations)
        for at, computation in enumerate(self._computations):
            begin, end = int(self.first[at]), int(self.first[at + 1])
            order[begin:end] -= begin
            ids = sequences[computation.id].instruction_ids if computation.id in sequences else ()
            if len(ids) == end - begin:
                place = {number: index for index, number in enumerate(ids)}
                mine = [place.get(instruction.id, MISSING) for instruction in computation.instructions]
                if MISSING not in mine:
                    order[begin:end] = mine
                    has_order[at] = True
        return order, has_order

    @property
    def is_scheduled(self) -> bool:
        return any(self._has_order)

    def has_order(self, number: int) -> bool:
        """Whether it says so of a computation: a fusion's inside has no order of its own."""
        return self._has_order[number]

    # --- an instruction

    def row(self, name: str) -> int | None:
        """The row of the instruction of this name, with or without ``%``; None where the module has none."""
        return self._row_of.get(name.removeprefix("%").encode("utf-8", "replace"))

    def name(self, row: int) -> str:
        return text(self._names[row])

    def proto(self, row: int) -> hlo_pb2.HloInstructionProto:
        at = self.computation(row)
        return self._computations[at].instructions[row - self._first[at]]

    def opcode(self, row: int) -> str:
        return text(self._opcodes[row])

    def element(self, row: int) -> int:
        """Which element of a tuple a ``get-tuple-element`` takes."""
        return self._elements.get(row, 0)

    def computation(self, row: int) -> int:
        return bisect_right(self._first, row) - 1

    def position(self, row: int) -> int:
        """The place of an instruction in its computation's order, from 0."""
        return int(self.order[row])

    # --- a computation

    def computation_name(self, number: int) -> str:
        return text(self._computations[number].name)

    def rows(self, number: int) -> Sequence[int]:
        """The rows of a computation in the order in which they run, as stored where the module does not say."""
        known = self._ordered.get(number)
        if known is None:
            begin, end = self._first[number], self._first[number + 1]
            known = (begin + np.argsort(self.order[begin:end], kind="stable")).tolist()
            if len(self._ordered) >= _MOST_ORDERED:
                self._ordered.clear()
            self._ordered[number] = known
        return known

    def size(self, number: int) -> int:
        return int(self.first[number + 1] - self.first[number])

    def count(self, number: int, opcode: str) -> int:
        return self._opcodes[self._first[number] : self._first[number + 1]].count(opcode.encode())

    def parameter(self, number: int, index: int) -> int | None:
        """The row of a computation's parameter; None where it has none of that number."""
        known = self._parameters.get(number)
        if known is None:
            rows = range(int(self.first[number]), int(self.first[number + 1]))
            parameters = [row for row in rows if self._opcodes[row] == b"parameter"]
            known = self._parameters[number] = {self.proto(row).parameter_number: row for row in parameters}
        return known.get(index)

    def chain(self, row: int) -> Iterator[tuple[int, int | None]]:
        """The computation of a row and the row that calls it, from the inside out; None at the last one.

        Of several callers it takes the first.
        """
        at, known = self.computation(row), set[int]()
        for _ in range(_DEEPEST):
            callers = self.callers[at]
            caller = int(callers[0]) if len(callers) and at != self.entry else None
            yield at, caller
            known.add(at)
            if caller is None or (at := self.computation(caller)) in known:
                return

    # --- searching

    @cached_property
    def _searched(self) -> tuple[bytes, NDArray[np.int64]]:
        """Name, opcode and framework op of every instruction, a line each in lower case, and where each begins."""
        lines = [
            b"%b %b %b" % (one.name, one.opcode, one.metadata.op_name)
            for computation in self._computations
            for one in computation.instructions
        ]
        text_of_all = b"\n".join(line.replace(b"\n", b" ") for line in lines).lower()
        begin = np.zeros(len(lines), np.int64)
        np.cumsum([len(line) + 1 for line in lines[:-1]], out=begin[1:])
        return text_of_all, begin

    def prepare(self) -> None:
        """Reads what a search needs, which takes a while in a large module."""
        _ = self._searched

    @property
    def searched_texts(self) -> list[str]:
        """Name, opcode and framework op of every instruction in lower case, as `find` looks at them."""
        return self._searched[0].decode("utf-8", "replace").split("\n")

    def find(self, words: str) -> Rows:
        """Rows with every word in name, opcode or framework op, ascending; large and small letters are the same."""
        wanted = words.lower().split()
        if not wanted or not len(self):
            return np.zeros(0, np.int32)
        return reduce(np.intersect1d, map(self._with, wanted))

    def _with(self, word: str) -> Rows:
        searched, begin = self._searched
        pattern = re.escape(word.encode("utf-8", "replace"))
        found = np.fromiter((match.start() for match in re.finditer(pattern, searched)), np.int64)
        return np.unique(np.searchsorted(begin, found, side="right") - 1).astype(np.int32)

"""The compiled modules of a run as graphs, with the times that the profile has of their ops."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, ProfileError, one_part
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import examples, nearest, printable
from tpuprof.parsers.formats.hlo.graph import Adjacency, HloGraph
from tpuprof.parsers.formats.hlo.shapes import Shape, shape_of_proto, shape_text
from tpuprof.parsers.formats.xspace.walk import text
from tpuprof.parsers.memory.model import ModuleLabel, space_name
from tpuprof.parsers.ops.framework_op import parse_framework_op
from tpuprof.parsers.pages.graph.model import INSIDE, NO_PROFILE, NOT_TIMED, Node
from tpuprof.parsers.pages.memory.compiled import CompiledModules
from tpuprof.parsers.pages.memory.key import MEMORY
from tpuprof.parsers.pages.ops.key import OPS
from tpuprof.parsers.pages.shared.key import PageKey, PageSession

if TYPE_CHECKING:
    from tpuprof.parsers.formats.proto import hlo_pb2
    from tpuprof.parsers.pages.ops.ops import OpsPage

_ONLY_MOVES = frozenset(("parameter", "bitcast", "copy", "transpose", "reshape"))
_PLAIN_SPACES = (0, 1, 4, 5)  # the others have names that do not say what they are on every chip
_MOST_MOVING = 8
_MOST_KEPT = 20_000
_LEAST_ALIKE, _MOST_ALIKE = 4, 100
_AGAIN = "capture it again, or dump it with --xla_dump_to=FOLDER --xla_dump_hlo_as_proto"


class OpTimes:
    """Finds an op's row in the table of a profile's ops.

    Attributes:
        page: the table; None without a profile.
    """

    def __init__(self, page: OpsPage | None) -> None:
        self.page = page
        ids, names = ((), ()) if page is None else (page.table.program_id.tolist(), page.table.name)
        self._rows = {key: row for row, key in reversed(list(enumerate(zip(ids, names, strict=True))))}

    def row(self, program_id: int | None, name: str) -> int | None:
        """The row of an op of a program; None where no event is of it."""
        return None if program_id is None else self._rows.get((program_id, name))

    @property
    def why_none(self) -> str:
        """Why no op has a time; empty where some have."""
        return NO_PROFILE if self.page is None else self.page.unknown.get("ops", "")

    def programs_of(self, name: str) -> list[tuple[int, str]]:
        """Program and name of the HLO ops of that name, or of that framework op, the longest first."""
        if self.page is None:
            return []
        table = self.page.table
        rows = [row for row, known in enumerate(table.name) if known == name]
        rows = rows or [
            row for row, full in enumerate(table.framework_op) if full and parse_framework_op(full).name == name
        ]
        return [(int(table.program_id[row]), table.name[row]) for row in rows]


class Program:
    """One compiled module: its graph, and the times of its instructions.

    Attributes:
        label: which module it is.
        graph: its instructions as columns.
        times: of the profile's ops.
    """

    def __init__(self, label: ModuleLabel, graph: HloGraph, times: OpTimes) -> None:
        self.label = label
        self.graph = graph
        self.times = times
        self._nodes: dict[int, Node] = {}

    @property
    def is_simulated(self) -> bool:
        """Whether the profile says of itself that its times were composed, not measured."""
        return self.times.page is not None and self.times.page.simulated

    def node(self, row: int) -> Node:
        known = self._nodes.get(row)
        if known is None:
            if len(self._nodes) >= _MOST_KEPT:
                self._nodes.clear()
            known = self._nodes[row] = self._decoded(row)
        return known

    def _decoded(self, row: int) -> Node:
        graph, proto = self.graph, self.graph.proto(row)
        name, number = text(proto.name), graph.computation(row)
        op, page = self.times.row(self.label.program_id, name), self.times.page
        own: int | None = None
        count: int | None = None
        fraction: float | None = None
        if page is not None and op is not None:
            own, count = int(page.table.self_ps[op]), int(page.table.occurrences[op])
            share = float(page.self_fraction[op])
            fraction = share if np.isfinite(share) else None
        return Node(
            row=row,
            name=name,
            opcode=text(proto.opcode),
            computation=graph.computation_name(number),
            shape=shape_text(proto.shape),
            size_bytes=_size(_result(proto)),
            op=op,
            self_ps=own,
            occurrences=count,
            fraction=fraction,
            framework_op=text(proto.metadata.op_name) or None,
            source=graph.module.source(proto),
            is_root=row == int(graph.root[number]),
            moves=moves(graph, row),
            partner=partner(graph, row),
            inside=sum(graph.size(one) for one in graph.called[row].tolist() if one >= 0),
            why_untimed="" if own is not None else self._why_untimed(row),
        )

    def _why_untimed(self, row: int) -> str:
        if self.times.why_none:
            return self.times.why_none
        caller = next((caller for _, caller in self.graph.chain(row)), None)
        return INSIDE if caller is not None and self.graph.opcode(caller) == "fusion" else NOT_TIMED


@dataclass(frozen=True, slots=True)
class FoundInstruction:
    """An instruction of a module."""

    program: Program
    row: int


class Programs:
    """The modules of a run; each is parsed when it is asked for, and kept.

    Several threads may ask at a time.

    Attributes:
        compiled: the modules, as the memory page reads them.
        warnings: what is wrong with the places that they, and the times, come from.
    """

    def __init__(self, compiled: CompiledModules, ops: OpsPage | None) -> None:
        self.compiled = compiled
        self.times = OpTimes(ops)
        own = compiled.warnings() if compiled.places else ()
        self.warnings = tuple(dict.fromkeys((*own, *(() if ops is None else ops.warnings))))
        self._known: dict[ModuleLabel, Program] = {}
        self._damaged: set[ModuleLabel] = set()
        self._lock = threading.Lock()

    @property
    def hosts(self) -> tuple[str, ...]:
        return self.compiled.hosts

    def program(self, label: ModuleLabel) -> Program:
        """A module as a graph.

        Raises:
            ProfileError: `damaged_module`: it can't be read, or holds no instructions.
        """
        with self._lock:
            known = self._known.get(label)
            if known is None:
                source, number = self.compiled.places[label]
                module = source.modules.whole(number)
                if isinstance(module, str):
                    raise ProfileError("damaged_module", module, _AGAIN)
                with one_part(f"follow the compiled HLO of {printable(str(label))}", is_decoder=True):
                    graph = HloGraph(module)
                if not len(graph):
                    raise ProfileError("damaged_module", f"{printable(str(label))} holds no instructions.", _AGAIN)
                known = self._known[label] = Program(label, graph, self.times)
            return known

    def find(self, name: str | None, program_id: int | None = None, module: str | None = None) -> FoundInstruction:
        """Finds an instruction.

        Args:
            name: of an instruction, or of a framework op, for which the HLO op stands that takes most of its time; None
                for the op that takes most time, or what the program returns.
            program_id, module: which program, where that is known: its id, or name, ``name(program id)`` or file.

        Raises:
            ProfileError: `no_hlo`, `unknown_module` or `unknown_op`, exit code 3; `damaged_module`.
        """
        labels = list(self.compiled.places)
        if not labels:
            raise no_modules(self.compiled, "operands and users of its ops are")
        chosen = [label for label in labels if module is None or module in (str(label), label.name, label.origin)]
        if not chosen:
            hint = f"one of: {examples([str(label) for label in labels], 10)}"
            raise ProfileError("unknown_module", f"There is no module {printable(module or '')}.", hint, EXIT_NOT_FOUND)
        chosen = [label for label in chosen if program_id in (None, label.program_id)] or chosen
        if name is None:
            return self._first(chosen)
        problems: list[ProfileError] = []
        for label, instruction in self._candidates(chosen, name):
            try:
                program = self.program(label)
            except ProfileError as error:
                problems.append(error)
                continue
            row = program.graph.row(instruction)
            if row is not None:
                return FoundInstruction(program, row)
        if problems and len(problems) == len(chosen):
            raise problems[0]
        raise ProfileError("unknown_op", *self._why_no_op(chosen, name), EXIT_NOT_FOUND)

    def _candidates(self, labels: list[ModuleLabel], name: str) -> Iterator[tuple[ModuleLabel, str]]:
        """Modules and the instruction to look for in them, those in which the op takes most time first."""
        ran = self.times.programs_of(name)
        for number, instruction in ran:
            yield from ((label, instruction) for label in labels if label.program_id == number)
        yield from ((label, name) for label in labels)

    def _first(self, labels: list[ModuleLabel]) -> FoundInstruction:
        """The op of some modules that takes most time, else what the first one returns; damaged ones are left out."""
        page = self.times.page
        by_id = {label.program_id: label for label in labels if label.program_id is not None}
        ops = () if page is None else zip(page.table.program_id.tolist(), page.table.name, strict=True)
        for number, name in ops:
            program = self._readable(by_id[number]) if number in by_id else None
            if program is not None and (row := program.graph.row(name)) is not None:
                return FoundInstruction(program, row)
        program = next(filter(None, map(self._readable, labels)), None) or self.program(labels[0])  # which says why
        return FoundInstruction(program, max(0, int(program.graph.root[program.graph.entry])))

    def _readable(self, label: ModuleLabel) -> Program | None:
        """A module as a graph; None, and a warning, if it can't be read."""
        if label in self._damaged:
            return None
        try:
            return self.program(label)
        except ProfileError as error:
            self._damaged.add(label)
            self.warnings = tuple(dict.fromkeys((*self.warnings, error.sentence)))
            return None

    def _why_no_op(self, labels: list[ModuleLabel], name: str) -> tuple[str, str]:
        where = f"{printable(str(labels[0]))} has" if len(labels) == 1 else f"None of the {len(labels)} modules has"
        no = "no" if len(labels) == 1 else "an"
        known = [self._known[label].graph for label in labels if label in self._known]
        part, names = name.removeprefix("%"), list[str]()
        while not names and len(part) >= _LEAST_ALIKE:  # the longest beginning that some names have
            rows = ((graph, row) for graph in known for row in graph.find(part)[:_MOST_ALIKE].tolist())
            names = list(dict.fromkeys(graph.name(row) for graph, row in rows))
            names.sort(key=lambda each: (not each.startswith(part), len(each), each))
            part = part[:-1]
        every = "tpuprof-tui report ops lists the ops that ran"
        if self.times.page is None:
            every = "--format hlo without --op prints a module, with the names of all its instructions"
        elif not names:
            names = nearest(name, dict.fromkeys(self.times.page.table.name), 5)
        hint = f"one of: {examples(names, 5)}" if names else every
        return f"{where} {no} instruction {printable(name)}.", hint


def no_modules(compiled: CompiledModules, unknown: str) -> ProfileError:
    """Why there are no compiled modules, with what is unknown without them: ``its memory is``; exit code 3."""
    sentence, _, hint = compiled.why_none(unknown).partition(". ")
    return ProfileError("no_hlo", f"{sentence}.", hint, EXIT_NOT_FOUND)


# --- what the shapes of an instruction show


def moves(graph: HloGraph, row: int) -> str:
    """What a copy changes of what it copies; empty for what is no copy."""
    opcode = graph.opcode(row)
    if opcode == "copy-done":
        starts = graph.operands[row]
        return moves(graph, int(starts[0])) if len(starts) and starts[0] >= 0 else ""
    operands = [each for each in graph.operands[row].tolist() if each >= 0]
    if len(operands) != 1 or not (opcode in ("copy", "copy-start") or _only_moves(graph, row)):
        return ""
    result = graph.proto(row).shape
    after = shape_of_proto(result.tuple_shapes[0] if opcode == "copy-start" and result.tuple_shapes else result)
    before = shape_of_proto(graph.proto(operands[0]).shape)
    if before is None or after is None or before.element_type != after.element_type:
        return ""
    return _changed(before, after) if opcode != "fusion" or before.dimensions == after.dimensions else ""


def _changed(before: Shape, after: Shape) -> str:
    if before.minor_to_major != after.minor_to_major:
        return f"layout {_order(before)} to {_order(after)}"
    if before.memory_space != after.memory_space:
        return f"{_space(before.memory_space)} to {_space(after.memory_space)}"
    if before.tiles != after.tiles:
        return f"tiles {_tiles(before)} to {_tiles(after)}"
    return "as it is"


def _space(number: int) -> str:
    return space_name(number) if number in _PLAIN_SPACES else f"memory space {number}"


def _order(shape: Shape) -> str:
    return f"{{{','.join(map(str, shape.minor_to_major))}}}"


def _tiles(shape: Shape) -> str:
    return "".join(f"({','.join(map(str, tile))})" for tile in shape.tiles) or "none"


def _only_moves(graph: HloGraph, row: int) -> bool:
    """Whether a fusion does nothing but lay an array out in another way."""
    called = graph.called[row].tolist()
    if graph.opcode(row) != "fusion" or len(called) != 1 or called[0] < 0 or graph.size(called[0]) > _MOST_MOVING:
        return False
    return {graph.opcode(each) for each in graph.rows(called[0])} <= _ONLY_MOVES


def partner(graph: HloGraph, row: int) -> str:
    """The other half of an asynchronous pair: of a start its done, of a done its start; empty for what is no half."""
    opcode = graph.opcode(row)
    if opcode in ("send", "recv") or opcode.endswith("-start"):
        return _half(graph, row, graph.users, ("-done",))
    if opcode.endswith("-done"):
        return _half(graph, row, graph.operands, ("-start", "send", "recv"))
    return ""


def _half(graph: HloGraph, row: int, lists: Adjacency, ends: tuple[str, ...]) -> str:
    known: set[int] = set()
    while row not in known:
        known.add(row)
        for each in lists[row]:
            if each >= 0 and graph.opcode(int(each)).endswith(ends):
                return graph.name(int(each))
        row = next((int(each) for each in lists[row] if each >= 0 and graph.opcode(int(each)).endswith("-update")), row)
    return ""


def _result(proto: hlo_pb2.HloInstructionProto) -> hlo_pb2.ShapeProto:
    """The shape of what an instruction makes: of a start, whose tuple holds its operands too, what its done gives."""
    parts, opcode = proto.shape.tuple_shapes, text(proto.opcode)
    if opcode == "copy-start" and parts:
        return parts[0]
    return parts[1] if opcode.endswith("-start") and len(parts) > 1 else proto.shape


def _size(proto: hlo_pb2.ShapeProto, depth: int = 0) -> int | None:
    """Bytes of a shape with its padding, of a tuple those of its arrays; None where one is unknown."""
    if proto.tuple_shapes:
        parts = [_size(part, depth + 1) for part in proto.tuple_shapes] if depth < 32 else [None]
        return None if None in parts else sum(part or 0 for part in parts)
    shape = shape_of_proto(proto)
    if shape is None or shape.element_type == "token":
        return 0 if shape is not None else None
    return shape.padded_bytes if shape.padded_bytes is not None else shape.unpadded_bytes


def graphs_of_run(session: PageSession, host: str | None) -> Programs:
    """The compiled modules as graphs with the times of their ops, none parsed yet."""
    return Programs(session.page(MEMORY, host), session.page(OPS, host))


GRAPHS = PageKey(graphs_of_run)

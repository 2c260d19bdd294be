"""A compiled module out of the texts that XLA dumps, where no proto of it is there.

``--xla_dump_to`` alone writes texts. Those of the last stage hold what an `HloProto` does: ``…-buffer-assignment.txt``
the allocations and the values in them, ``…-live-range.txt`` (in that same file, of older compilers) when each value is
alive in the schedule, and ``….txt`` or ``…-buffer-assignment-values.txt`` the instructions that define them.
`read_texts` puts them together as the `HloProto` that the compiler could have written, as far as they go.

The heap trace is made of the live ranges as XLA's heap simulator makes it: at each point of the schedule first what
begins there is allocated, then what ends there is freed; a value that begins at the very place of one that is still
alive shares it, or follows it where that ends there. The texts do not say which of the two; see `_Value.is_one_with`.
It changes which names the buffers have, and no size. Tables of pointers (tuples) are in no trace, as there.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache

from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.formats.hlo.shapes import parse_shape, shape_to_proto
from tpuprof.parsers.formats.proto import hlo_pb2

_TUPLE, _MOST_PARTS, _MOST_DEPTH, _MOST_INDEX = 13, 100_000, 32, 4096

_ALLOCATION = pattern(r"allocation (\d{1,18}): size (\d{1,18})([^:|]*)")
_VALUE = pattern(
    r" *value: <(\d{1,18}) ([^\s{>]+)(?:\{([0-9,]*)\})?( \(phi\))? @(-?\d{1,9})> "
    r"\(size=(\d{1,18}),offset=(\d{1,18})\): "
)
_LIVE = pattern(r" {4}([^\s{]+)\{([0-9,]*)\}:(\d{1,9})-(\d{1,9})$")
_INSTRUCTION = pattern(r" *(?:from instruction: )?(?:ROOT )?%?([^\s=%{(]+) = ")
_OPCODE = pattern(r" ([a-z][a-z0-9-]{0,60})\(")
_FIELD = pattern(r'(op_name|source_file|source_line|stack_frame_id)=(?:"((?:[^"\\]|\\.)*)"|(\d{1,9}))')
_TABLE = pattern(r'\d{1,9} (?:"(.*)"|\{([a-z_0-9= ]*)\})')
_NUMBER = pattern(r"([a-z_]+)=(\d{1,9})")
_COMMENT = pattern(r"/\*[^*]*\*/")
_BRACKET = pattern(r"[() ]")
_TOKEN = pattern(r"[(),]|[^(),\[\]{}]+\[[^\]]*\](?:\{[^{}]*\})?")
_ALLOCATE, _FREE, _SHARE = range(3)
_IN_PLACE = ("dynamic-update-slice", "scatter")
_DECODER = json.JSONDecoder()
_CONFIG, _SCOPED = "backend_config=", "used_scoped_memory_configs"


def read_texts(name: str, lines: Iterable[str]) -> hlo_pb2.HloProto:
    """The module that some texts describe; never raises.

    Args:
        name: of the module, where no text says it.
        lines: of all its texts, in any order but that of their own; the beginning of each is enough.
    """
    texts = _Texts()
    for line in lines:
        texts.take(line.rstrip("\n"))
    return texts.proto(name)


class _Value:
    """A logical buffer: its proto, the name and index of what defines it, and where it lies."""

    __slots__ = ("allocation", "index", "is_phi", "name", "offset", "proto", "shape")

    def __init__(self, match: re.Match[str], shape: str, allocation: int) -> None:
        number, self.name, index, phi, color, size, offset = match.groups("")
        self.is_phi = bool(phi)
        self.index = _index(index)
        self.offset, self.allocation, self.shape = int(offset), allocation, shape
        self.proto = hlo_pb2.LogicalBufferProto(id=int(number), size=int(size), color=max(0, int(color)))
        self.proto.defined_at.instruction_name = self.name.encode("utf-8", "replace")
        self.proto.defined_at.shape_index.extend(self.index)

    @property
    def place(self) -> tuple[int, int, int]:
        """Its allocation, offset and size."""
        return self.allocation, self.offset, self.proto.size

    def is_one_with(self, later: _Value) -> bool:
        """Whether it and the value that takes its place are one buffer to the compiler, not one after the other.

        So are the values of a loop or a branch (phi), and what is updated in place.
        """
        return self.is_phi or later.is_phi or any(word in later.name for word in _IN_PLACE)


class TextTables:
    """The module's name and its tables of source places, by the lines outside of computations.

    Attributes:
        name: of the module; empty as long as no line says it.
        frames: the tables.
    """

    def __init__(self) -> None:
        self.name = ""
        self.frames = hlo_pb2.StackFrameIndexProto()
        self._section = ""

    def take(self, line: str) -> None:
        """Reads a line; passes over what it does not know."""
        if line.startswith("HloModule "):
            self.name = self.name or re.split(r"[ ,]", line, maxsplit=2)[1]
        elif line in ("FileNames", "FunctionNames", "FileLocations", "StackFrames"):
            self._section = line
        elif self._section and (match := _TABLE.fullmatch(line)):
            self._take_place(match)

    def _take_place(self, match: re.Match[str]) -> None:
        """An entry of the tables of source places; the text counts a frame's parent from 1 too, 1 more than the proto.

        A frame that is its own parent has none.
        """
        text, numbers = match[1], {key: int(number) for key, number in _NUMBER.findall(match[2] or "")}
        if self._section == "FileNames":
            self.frames.file_names.append(_unquoted(text or ""))
        elif self._section == "FunctionNames":
            self.frames.function_names.append(_unquoted(text or ""))
        elif self._section == "FileLocations":
            known = {key: numbers[key] for key in ("file_name_id", "function_name_id", "line") if key in numbers}
            self.frames.file_locations.add(**known)
        else:
            parent = max(0, numbers.get("parent_frame_id", 0) - 1)
            self.frames.stack_frames.add(file_location_id=numbers.get("file_location_id", 0), parent_frame_id=parent)


class _Texts:
    """What the lines that were read so far contain."""

    def __init__(self) -> None:
        self._tables = TextTables()
        self._allocations: list[hlo_pb2.BufferAllocationProto] = []
        self._values: dict[int, _Value] = {}
        self._lives: dict[tuple[str, tuple[int, ...]], tuple[int, int]] = {}
        self._instructions: dict[str, str] = {}

    def take(self, line: str) -> None:
        """Reads a line; passes over what it does not know."""
        if match := _ALLOCATION.match(line):
            self._allocations.append(_allocation(match, line))
        elif match := _VALUE.match(line):
            self._take_value(match, line[match.end() :])
        elif match := _LIVE.match(line):
            self._lives.setdefault((match[1], _index(match[2])), (int(match[3]), int(match[4])))
        elif match := _INSTRUCTION.match(line):
            self._instructions.setdefault(match[1], line[match.end() :])
        else:
            self._tables.take(line)

    def _take_value(self, match: re.Match[str], shape: str) -> None:
        if not self._allocations:
            return
        allocation = self._allocations[-1]
        value = self._values.setdefault(int(match[1]), _Value(match, shape, len(self._allocations) - 1))
        if value.allocation == len(self._allocations) - 1:
            allocation.assigned.add(logical_buffer_id=value.proto.id, offset=value.offset, size=value.proto.size)

    def proto(self, name: str) -> hlo_pb2.HloProto:
        proto = hlo_pb2.HloProto()
        module, assignment = proto.hlo_module, proto.buffer_assignment
        module.name = (self._tables.name or name).encode("utf-8", "replace")
        module.stack_frame_index.CopyFrom(self._tables.frames)
        module.computations.add(id=1, name=b"entry").instructions.extend(self._defining())
        assignment.buffer_allocations.extend(self._allocations)
        assignment.logical_buffers.extend(value.proto for value in self._values.values())
        assignment.heap_simulator_traces.extend(self._traces())
        return proto

    def _defining(self) -> Iterator[hlo_pb2.HloInstructionProto]:
        """The instructions that define a value, and those that use scoped memory."""
        by_name: dict[str, list[_Value]] = defaultdict(list)
        for value in self._values.values():
            by_name[value.name].append(value)
        for name, text in self._instructions.items():
            if name in by_name or _SCOPED in text:
                by_name.setdefault(name, [])
        for number, (name, values) in enumerate(by_name.items(), 1):
            made = hlo_pb2.HloInstructionProto()
            read_instruction(self._instructions.get(name, ""), made)
            made.id, made.name = number, name.encode("utf-8", "replace")
            for value in sorted(values, key=lambda value: value.index):
                part = _part(made.shape, value.index)
                if part is not None:
                    part.CopyFrom(_shape(value.shape))
            yield made

    def _traces(self) -> Iterator[hlo_pb2.HeapSimulatorTrace]:
        """A trace for each memory space in which values of temporary allocations have live ranges."""
        spaces: dict[int, list[tuple[_Value, int, int]]] = defaultdict(list)
        for value in self._values.values():
            owner = self._allocations[value.allocation]
            throughout = (owner.is_entry_computation_parameter, owner.maybe_live_out)
            if any((*throughout, owner.is_thread_local, owner.is_constant)) or value.shape.startswith("("):
                continue
            if life := self._lives.get((value.name, value.index)):
                spaces[owner.color].append((value, *life))
        for lives in spaces.values():
            yield _trace(lives)


def _allocation(match: re.Match[str], line: str) -> hlo_pb2.BufferAllocationProto:
    """An allocation by its heading: ``allocation 1: size 65536, parameter 0, shape |f32[4]| at ShapeIndex {}:``."""
    words = [word.strip() for word in f"{match[3]}, {line.rpartition('|')[2].rstrip(':')}".split(",")]
    color = next((int(word[6:]) for word in words if re.fullmatch(r"color \d{1,9}", word)), 0)
    parameter = next((int(word[10:]) for word in words if re.fullmatch(r"parameter \d{1,9}", word)), None)
    return hlo_pb2.BufferAllocationProto(
        index=int(match[1]),
        size=int(match[2]),
        color=color,
        is_entry_computation_parameter=parameter is not None,
        parameter_number=parameter or 0,
        maybe_live_out="maybe-live-out" in words,
        is_thread_local="thread-local" in words,
        is_constant="constant" in words,
    )


def read_instruction(text: str, made: hlo_pb2.HloInstructionProto) -> int | None:
    """Fills an instruction by what stands behind ``name =``: its shape, opcode, and where it comes from.

    Returns:
        The place of the bracket behind the opcode; None where there is none, and nothing was filled.
    """
    opcode = _OPCODE.search(text, _shape_end(text))
    if opcode is None:
        return None
    made.shape.CopyFrom(_shape(text[: opcode.start()]))
    made.opcode = opcode[1].encode()
    for key, quoted, number in _FIELD.findall(text, max(0, text.rfind("metadata={"))) if "metadata={" in text else ():
        setattr(made.metadata, key, int(number or 0) if key in _NUMBERS else _unquoted(quoted))
    if _SCOPED in text:
        begin = text.find(_CONFIG) + len(_CONFIG)
        try:
            config, end = _DECODER.raw_decode(text, begin)
        except (ValueError, RecursionError):
            return opcode.end() - 1
        made.backend_config = (config if isinstance(config, str) else text[begin:end]).encode()
    return opcode.end() - 1


_NUMBERS = ("source_line", "stack_frame_id")


def _shape_end(text: str) -> int:
    """Where the shape at the beginning of a text ends: a tuple's behind its last bracket."""
    if not text.startswith("("):
        return max(0, text.find(" "))
    depth = 0
    for match in _BRACKET.finditer(text):
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        if depth <= 0:
            return match.start() + (match[0] == ")")
    return len(text)


@lru_cache(1 << 12)
def _shape(text: str) -> hlo_pb2.ShapeProto:
    """A shape in XLA's notation; of what can't be read an empty one. Nobody changes it: few shapes make up a module."""
    root = hlo_pb2.ShapeProto()
    open_tuples: list[hlo_pb2.ShapeProto] = []
    for number, match in enumerate(_TOKEN.finditer(_COMMENT.sub("", text))):
        part = match[0].strip()
        if number > _MOST_PARTS or len(open_tuples) > _MOST_DEPTH:
            return hlo_pb2.ShapeProto()
        if part == ")" and open_tuples:
            open_tuples.pop()
        elif part == "(" or part.endswith(("]", "}")):
            place = open_tuples[-1].tuple_shapes.add() if open_tuples else root
            if part == "(":
                place.element_type = _TUPLE
                open_tuples.append(place)
            elif (array := parse_shape(part)) is not None:
                shape_to_proto(array, place)
    return root


def _part(shape: hlo_pb2.ShapeProto, index: Iterable[int]) -> hlo_pb2.ShapeProto | None:
    """The element of a tuple at an index, made where it is not there; None for an index that can't be true."""
    for number in index:
        if number > _MOST_INDEX:
            return None
        shape.element_type = _TUPLE
        while len(shape.tuple_shapes) <= number:
            shape.tuple_shapes.add()
        shape = shape.tuple_shapes[number]
    return shape


def _trace(lives: list[tuple[_Value, int, int]]) -> hlo_pb2.HeapSimulatorTrace:
    """The heap simulator's events for values that are alive from one point of the schedule to another."""
    begins, ends = defaultdict[int, list[_Value]](list), defaultdict[int, list[_Value]](list)
    for value, begin, end in lives:
        begins[begin].append(value)
        ends[max(begin, end)].append(value)
    trace = hlo_pb2.HeapSimulatorTrace(whole_module_simulation=True)
    alive: dict[tuple[int, int, int], dict[int, _Value]] = defaultdict(dict)
    end_of = {value.proto.id: max(begin, end) for value, begin, end in lives}

    def event(kind: int, value: _Value, shared: int = 0) -> None:
        name = value.proto.defined_at.instruction_name
        trace.events.add(kind=kind, buffer_id=value.proto.id, instruction_name=name, share_with_canonical_id=shared)

    for point in sorted(begins.keys() | ends.keys()):
        for value in begins[point]:
            there = alive[value.place]
            shared = next(iter(there), 0)
            if all(end_of[number] == point and not old.is_one_with(value) for number, old in there.items()):
                for old in there.values():
                    event(_FREE, old)
                there.clear()
            event(_SHARE if shared else _ALLOCATE, value, shared)
            there[value.proto.id] = value
        for value in ends[point]:
            if alive[value.place].pop(value.proto.id, None) is not None:
                event(_FREE, value)
    return trace


def _index(text: str) -> tuple[int, ...]:
    """``{1,0}`` without its braces, as numbers."""
    return tuple(int(part) for part in text.split(",")[:_MOST_DEPTH] if part.isdigit() and len(part) < 10)


def _unquoted(text: str) -> bytes:
    return re.sub(r"\\(.)", r"\1", text).encode("utf-8", "replace")

"""Which op each event of a GPU's stream, or of a host thread that runs XLA:CPU, belongs to.

An event belongs to the HLO op that its stat `hlo_op` names in program `program_id`. Without that stat a kernel belongs
to the framework op that `tf_op` names, in older profiles the outermost `annotation`. One without either stands for
itself: a copy, a kernel of a library. What the compiler says of an HLO op comes from the program, where the profile
holds it; XProf leaves out the ops of programs that it does not hold, and what stands for itself, and calls that time
idle.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tpuprof.parsers.base.intervals import Int64s, no_ints, numbered
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.formats.hlo.shapes import shape_text
from tpuprof.parsers.formats.xspace.trace import Plane
from tpuprof.parsers.formats.xspace.walk import text
from tpuprof.parsers.ops.device import op_class
from tpuprof.parsers.ops.framework_op import parse_framework_op
from tpuprof.parsers.ops.host_events.events import HOST_PLANE, HostThread, SparseStat
from tpuprof.parsers.ops.table import without_number

if TYPE_CHECKING:
    from tpuprof.parsers.formats.proto import hlo_pb2

_HLO_OP, _PROGRAM, _FRAMEWORK_OP, _ANNOTATION, _LABEL, _MODULE = OP_STATS = (
    *("hlo_op", "program_id", "tf_op", "annotation", "name", "hlo_module"),
)
"""Stats of events that say which op they belong to."""

_INSIDE = "::"
"""Separates HLO ops, and annotations, that hold one another; of ops the innermost comes last."""

_COPY = pattern(r"mem(?:cpy)?\s*(?P<way>h2d|htod|d2h|dtoh|d2d|dtod|p2p|ptop|h2h|htoh|set)", re.IGNORECASE)
_WAYS = {"h": "host", "d": "device", "p": "peer"}

_SAYS_NOTHING = frozenset(("kernel", "kernel2", "device_kernel"))

_ELEMENTWISE = frozenset(
    b"abs round-nearest-afz round-nearest-even ceil count-leading-zeros convert bitcast-convert cosine erf exponential "
    b"exponential-minus-one floor imag is-finite log log-plus-one not negate popcnt real reduce-precision rsqrt sign "
    b"sine sqrt cbrt tan tanh logistic add atan2 compare complex divide maximum minimum multiply power remainder "
    b"subtract and or xor shift-left shift-right-arithmetic shift-right-logical stochastic-convert select clamp map "
    b"rng".split()
)
_FORMATTING = frozenset((b"transpose", b"copy", b"reshape", b"dynamic-reshape"))
_CALLS_HOST = pattern(r"custom_call_target=\"[^\"]*(?:python|callback)[^\"]*\"", re.IGNORECASE)
_HOST_CALL = pattern(r"(?:^|/)(?:pure|io|debug)_callback(?=[/:\[.]|$)")
"""How JAX names the primitives that call a function of the host's Python."""

_MOST_INSIDE = 10_000
"""Instructions of a fusion that are looked at."""
_FUSIONS = {b"kLoop": "loop", b"kInput": "input", b"kOutput": "output", b"kCustom": "custom"}


@dataclass(frozen=True, slots=True)
class StreamOp:
    """An op that events belong to.

    Attributes:
        program: its program's id, 0 for an op of none.
        module: its program's name, where the event gives that and the profile does not hold the program; else empty.
        name: of the HLO op; ``scope/op/kernel`` for a kernel of a framework op; else the event's name, shortened.
        framework_op: full name of the framework op, ``jit(f)/dot_general:``; empty where it is unknown.
        category: HLO category, type of the framework op, or what kind of copy it is; empty where it is unknown.
        expression, source, source_stack, deduplicated_name, shape: what the compiler says; empty where it does not.
    """

    program: int
    name: str
    framework_op: str
    category: str
    expression: str = ""
    source: str = ""
    source_stack: str = ""
    deduplicated_name: str = ""
    shape: str = ""
    module: str = ""

    @property
    def symbol(self) -> int:
        """A number that distinguishes ops of one name in programs without an id; 0 where there is no need."""
        if not self.module or self.program:
            return 0
        ident = f"{self.module}\0{self.name}".encode("utf-8", "replace")
        from hashlib import blake2b  # noqa: PLC0415 - it loads OpenSSL, which profiles of TPUs spare

        return int.from_bytes(blake2b(ident, digest_size=8).digest(), "little") | 1

    @property
    def is_callback(self) -> bool:
        """Whether it calls a function of the host's Python."""
        return is_callback(self.expression, self.name, self.framework_op)


def is_callback(expression: str, *names: str) -> bool:
    """Whether an op calls a function of the host's Python, by its HLO text or its names."""
    return _CALLS_HOST.search(expression) is not None or any(_HOST_CALL.search(name) for name in names)


@dataclass(frozen=True, slots=True)
class Attribution:
    """Ops, and for each stream the number of each event's op, int64[n]."""

    ops: tuple[StreamOp, ...]
    numbers: tuple[Int64s, ...]


def attributed(plane: Plane, streams: Sequence[HostThread], modules: HloModules) -> Attribution:
    """Finds the op of each event of a plane's streams, decoded with `OP_STATS`."""
    texts = _Texts(plane)
    columns = [texts.keys(stream) for stream in streams]
    if not columns:
        return Attribution((), ())
    keys = tuple(np.concatenate([column[index] for column in columns]) for index in range(len(columns[0])))
    number = numbered(*keys) if len(keys[0]) else no_ints()
    first = np.unique(number, return_index=True)[1]
    resolved = [texts.op(modules, *(int(key[row]) for key in keys)) for row in first.tolist()]
    ops = dict.fromkeys(resolved)  # kernels whose names differ in what is cut off are one op
    place = {op: index for index, op in enumerate(ops)}
    number = np.array([place[op] for op in resolved], np.int64)[number] if resolved else number
    borders = np.cumsum([len(stream) for stream in streams])[:-1]
    return Attribution(tuple(ops), tuple(np.split(number, borders)))


class _Texts:
    """The texts of a plane's stats, numbered from 1 on; 0 is the empty one."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane
        self._known = {"": 0}
        self._names: dict[int, str] = {}

    def keys(self, stream: HostThread) -> tuple[Int64s, ...]:
        """What identifies the op of each of a stream's events.

        Returns:
            Columns int64[n]: HLO op, program, whether that is known, framework op, label, module, kernel.
        """
        hlo, label = self._numbers(stream, _HLO_OP), self._numbers(stream, _LABEL)
        framework = self._numbers(stream, _FRAMEWORK_OP)
        label = np.where(label > 0, label, framework)
        if _ANNOTATION in stream.stats:
            framework = np.where(framework > 0, framework, self._numbers(stream, _ANNOTATION, outermost_annotation))
        is_hlo, zeros = hlo > 0, np.zeros(len(stream), np.int64)
        has_program = zeros.copy()
        has_program[stream.stat(_PROGRAM).rows] = 1
        return (
            hlo,
            np.where(is_hlo, stream.integers(_PROGRAM, 0), zeros),
            np.where(is_hlo, has_program, zeros),
            np.where(is_hlo, zeros, framework),
            np.where(is_hlo, label, zeros),
            np.where(is_hlo, self._numbers(stream, _MODULE), zeros),
            np.where(is_hlo, zeros, stream.metadata_id),
        )

    def _numbers(self, stream: HostThread, name: str, part: Callable[[str], str] = str) -> Int64s:
        """int64[n]: the number of each event's text, or of a part of it; each reference is resolved once."""
        stat, out = stream.stat(name), np.zeros(len(stream), np.int64)
        if len(stat.rows):
            number, values = distinct_texts(self._plane, stat)
            known = [self._known.setdefault(part(value), len(self._known)) for value in values]
            out[stat.rows] = np.array(known, np.int64)[number]
        return out

    def _text(self, number: int) -> str:
        if len(self._names) < len(self._known):
            self._names = {number: value for value, number in self._known.items()}
        return self._names[number]

    def op(
        self,
        modules: HloModules,
        hlo: int,
        program: int,
        has_program: int,
        framework: int,
        label: int,
        module: int,
        kernel: int,
    ) -> StreamOp:
        if hlo:
            name = self._text(hlo).rsplit(_INSIDE, 1)[-1]
            of = modules.module(program) if has_program else None
            found = hlo_op(of, program, name, self._text(label), is_on_cpu=self._plane.name == HOST_PLANE)
            return replace(found, module=self._text(module)) if module and of is None else found
        row = self._plane.event_metadata.row(kernel)
        event = self._plane.event_metadata.name(row) if row is not None else f"event {kernel}"
        if framework:
            full = self._text(framework)
            parsed = parse_framework_op(full)
            return StreamOp(0, f"{parsed.name}/{kernel_name(event)}", full, copy_kind(event) or parsed.type)
        return StreamOp(0, kernel_name(event), "", copy_kind(event))


def distinct_texts(plane: Plane, stat: SparseStat) -> tuple[Int64s, list[str]]:
    """The text of each event that has a stat as a number, and the texts."""
    column = stat.values
    number = numbered(column.kind, column.value, *([column.length] if len(column.length) else []))
    first = np.unique(number, return_index=True)[1].astype(np.int64)
    return number, [value or "" for value in plane.texts(column.take(first))]


def outermost_annotation(annotation: str) -> str:
    """The name of the outermost annotation: ``a/b:MatMul`` of ``a/b:MatMul#shape=(half[2])#::#edge=x#``."""
    return annotation.split(_INSIDE + "#", 1)[0].partition("#")[0]


def hlo_op(module: HloModule | None, program: int, name: str, label: str = "", *, is_on_cpu: bool = False) -> StreamOp:
    """An HLO op, with what its program says of it.

    Args:
        label: the framework op that the event itself names, for a program that the profile does not hold.
        is_on_cpu: whether it ran on the host's CPU. There a fusion is what a library computes at once, and a matrix
            product in it takes its time: it counts as the product, wherever that stands.
    """
    program &= 2**64 - 1
    proto = module.instruction_proto(name) if module is not None else None
    instruction = module.instruction(name) if module is not None else None
    if module is None or proto is None or instruction is None:
        opcode = without_number(name)  # of collectives, whose names the compiler keeps
        category = opcode if op_class(opcode) == "collective" else ""
        return StreamOp(program, name, label if not label or ":" in label else f"{label}:", category)
    proto_of_time = (_product(module, proto) if is_on_cpu else None) or proto
    origin = text(proto_of_time.metadata.op_name)
    return StreamOp(
        program=program,
        name=name,
        framework_op=f"{origin}:{text(proto_of_time.metadata.op_type)}" if origin else "",
        category=_category(proto.opcode, proto.fusion_kind),
        expression=instruction.expression,
        source=module.source(proto_of_time) or "",
        source_stack="\n".join(module.stack(proto_of_time)),
        deduplicated_name=text(proto.metadata.deduplicated_name),
        shape=shape_text(proto.shape),
    )


def _product(module: HloModule, fusion: hlo_pb2.HloInstructionProto) -> hlo_pb2.HloInstructionProto | None:
    """The first matrix product or convolution that a fusion holds; None where there is none."""
    inner = [fusion]
    for proto in inner:  # those of fusions in it join the list
        if proto.opcode != b"fusion" or len(inner) > _MOST_INSIDE:
            continue
        for number in proto.called_computation_ids:
            computation = module.computation(number)
            for each in computation.instructions if computation is not None else ():
                if each.opcode in (b"dot", b"convolution"):
                    return each
                inner.append(each)
    return None


def _category(opcode: bytes, fusion_kind: bytes) -> str:
    """The HLO category of an instruction, as XLA names it (`HloInstruction::ToCategory`)."""
    if opcode == b"fusion":
        return f"{_FUSIONS.get(bytes(fusion_kind), 'custom')} fusion"
    if opcode in _FORMATTING:
        return "data formatting"
    return "non-fusion elementwise" if opcode in _ELEMENTWISE else text(opcode)


def copy_kind(name: str) -> str:
    """What an event that is no op's does, by its name: ``memcpy host to device``, ``memset``, ``nccl``; else empty."""
    found = _COPY.match(name)
    if found is not None:
        way = found["way"].lower()
        return "memset" if way == "set" else f"memcpy {_WAYS[way[0]]} to {_WAYS[way[-1]]}"
    if "rocclr_copy" in name:
        return "memcpy"
    if "rocclr_fill" in name:
        return "memset"
    return "nccl" if name[:4].lower() in ("nccl", "rccl") else ""


def kernel_name(name: str) -> str:
    """A kernel's own name without namespaces, template arguments and parameters.

    ``void a::b<float>(int)`` gives ``b``; names that are no C++ stay as they are, but for the suffix of AMD's kernels.
    A name that says nothing, as CUTLASS has it, comes with its first template argument: ``Kernel<cutlass_80_gemm>``.
    """
    name = name.removesuffix(".kd").removeprefix("void ")
    short = "".join(_outside_brackets(name)).rpartition("::")[2].strip()
    if short.lower() in _SAYS_NOTHING:
        argument = re.split("[<,>]", name.partition(f"{short}<")[2], maxsplit=1)[0].strip()
        return f"{short}<{argument}>" if argument else short
    return short or name


def _outside_brackets(name: str) -> Iterator[str]:
    """The characters of a name that stand in no brackets, up to its parameters."""
    depth = 0
    for place, character in enumerate(name):
        if character == "(" and not depth and not name.startswith("(anonymous", place):
            return
        if character in "<(":
            depth += 1
        elif character in ">)":
            depth -= 1
        elif not depth:
            yield character

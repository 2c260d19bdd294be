"""What a compiled program is made of, as facts that two programs can differ by."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from tpuprof.parsers.base.errors import ProfileError, as_damage, behind_wall
from tpuprof.parsers.base.intervals import grouped
from tpuprof.parsers.base.op_class import COLLECTIVE_KINDS
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.formats.hlo.matrix import matrix_works
from tpuprof.parsers.formats.hlo.modules import KERNEL_TARGET, HloModule, braces
from tpuprof.parsers.formats.hlo.shapes import HOST_MEMORY, Shape, parse_shape, shape_of_proto, shape_text
from tpuprof.parsers.formats.mosaic.kernel import Kernel, read_kernel
from tpuprof.parsers.formats.mosaic.spec import module_bytes
from tpuprof.parsers.formats.xspace.walk import text
from tpuprof.parsers.memory.model import HBM, Buffer, ModuleLabel, SpaceMemory, space_name
from tpuprof.parsers.memory.modules.capacity import capacity_of
from tpuprof.parsers.memory.modules.space_memory import space_memory
from tpuprof.parsers.pages.program.fingerprint import kernel_and_rest
from tpuprof.parsers.pages.program.ops import Band, ProgramOp
from tpuprof.parsers.pages.program.tiles import tiles_of
from tpuprof.parsers.pages.program.trips import trip_count
from tpuprof.parsers.steps.boundaries.replica_groups import groups_of

if TYPE_CHECKING:
    from tpuprof.parsers.formats.proto import hlo_pb2
    from tpuprof.parsers.pages.program.programs import CompiledProgram

FIRST = ("memory", "buffer", "donated")
"""Kinds of facts on the whole program, which come first."""

LAST = ("tiles", "layout", "other")
"""Kinds that come last. Those between are ordered by the time of the instructions concerned, and by size."""

_HOST = ("send", "recv", "infeed", "outfeed")
_NO_FACT = ("parameter", "constant", "bitcast", "tuple", "get-tuple-element", "async-start")
_NO_ARRAY = (*_NO_FACT, "while", "conditional", "call")
_WRAPPERS = (b"fusion", b"async-start")
_RUNNERS = (b"while", b"conditional", b"call")
_SPARSE_CORE, _WINDOWED = b"sparsecore", b"windowed_dot_general"
_PRECISIONS = {1: " at high precision", 2: " at highest precision"}
_FLOPS_A_BYTE = 500  # about what a v6e multiplies while it moves a byte: so products and arrays have one order


@dataclass(frozen=True, slots=True)
class Fact:
    """How many there are of something in a program.

    Attributes:
        kind: one of `FIRST` or `LAST`, FLOPs, loop, kernel, remat, product, collective, custom call, host transfer,
            update, copy, array, argument, result or fusion.
        what: in words, the same in every program that has it: ``f32[8,128]``, ``bf16[8,16] x bf16[16,4]``.
        count: how many instructions, each once however often it runs; of ``FLOPs`` their sum, loops by their trips; of
            ``memory`` bytes.
        size: bytes, or FLOPs / 500, of all of them together, to order them by.
        name, source: of the first one; source is ``file:line`` or None.
        cost: what all runs of the instructions concerned take.
    """

    kind: str
    what: str
    count: int
    size: float
    name: str
    source: str | None
    cost: Cost

    @property
    def said(self) -> str:
        """How many, in words."""
        return _megabytes(self.count) if self.kind == "memory" else f"{self.count:,}"


class Cost(NamedTuple):
    """What all runs of some instructions take, in picoseconds: at least, and as told; either may be unknown.

    `reason` says why nothing is claimed; `most` is what they are ordered by, also where that is so.
    """

    bound_ps: int | None
    told_ps: Band | None
    reason: str
    most: int

    @classmethod
    def of(cls, costs: Iterable[Cost]) -> Cost:
        """Of several together."""
        every = list(costs)
        bounds = [each.bound_ps for each in every if each.bound_ps is not None]
        told = [each.told_ps for each in every if each.told_ps is not None]
        band = Band(sum(each.low for each in told), sum(each.high for each in told))
        return cls(
            sum(bounds) if len(bounds) == len(every) else None,
            band if len(told) == len(every) else None,
            next((each.reason for each in every if each.reason), ""),
            sum(each.most for each in every),
        )


NO_TIME = Cost(None, None, "no instruction takes time for it", 0)


def costs_of(module: HloModule, ops: Iterable[ProgramOp]) -> dict[str, Cost]:
    """What all runs of each instruction of the schedules take, by its name; of a loop or a branch all that is in it."""
    found, inside = dict[str, Cost](), dict[int, Cost]()
    for op in ops:
        runs, told = op.trips or 1, op.told_ps
        band = None if told is None else Band(told.low * runs, told.high * runs)
        bound = None if op.bound_ps is None else op.bound_ps * op.certain_trips
        found[op.name] = Cost(bound, band, op.reason, op.guess.high * runs)
    for computation in module.proto.hlo_module.computations:  # what is called lies before what calls it
        own = []
        for one in computation.instructions:
            if one.opcode in _RUNNERS:
                called = [inside[number] for number in one.called_computation_ids if number in inside]
                found[printable(text(one.name))] = Cost.of(called)
            own += [found[name] for name in (printable(text(one.name)),) if name in found]
        inside[computation.id] = Cost.of(own)
    return found


def facts_of(module: HloModule, costs: Mapping[str, Cost]) -> dict[tuple[str, str], Fact]:
    """All facts of a program by kind and what they are, in time linear in its size.

    Args:
        costs: see `costs_of`; empty where nothing is known of its time.
    """
    counts, sizes = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    first: dict[tuple[str, str], hlo_pb2.HloInstructionProto] = {}
    takers = defaultdict[tuple[str, str], set[str]](set)
    runs, within = _places(module)
    for computation in module.proto.hlo_module.computations:
        around = within.get(computation.id)
        for kind, what, count, size, proto in _of_computation(
            module, computation, runs[computation.id], around is None
        ):
            counts[kind, what] += count
            sizes[kind, what] += size
            first.setdefault((kind, what), proto)
            takers[kind, what].update({around or printable(text(proto.name))} & costs.keys())
    return {
        key: Fact(
            *key,
            count,
            sizes[key],
            text(first[key].name),
            module.source(first[key]),
            Cost.of(costs[name] for name in sorted(takers[key])) if takers[key] else NO_TIME,
        )
        for key, count in counts.items()
    }


def memory_of(assigned: HloModule, chip: str | None) -> SpaceMemory | None:
    """What a program takes of a chip's HBM; None where its buffers are not known."""
    with suppress(ProfileError):
        return space_memory(assigned, ModuleLabel(assigned.name, None, ""), HBM, capacity_of(chip, HBM))
    return None


@as_damage()
def memory_of_program(program: CompiledProgram | None, chip: str | None) -> SpaceMemory | None:
    """The same of a program whose buffers may lie in another file.

    Raises:
        Damaged: its parts do not fit together.
    """
    assigned = None if program is None else program.assigned()
    return None if assigned is None else memory_of(assigned, chip)


def memory_facts(assigned: HloModule) -> Iterator[Fact]:
    """How much HBM a program needs at its peak, and for what, by its buffers; nothing where they are not known."""
    memory = memory_of(assigned, None)
    if memory is None:
        return
    yield Fact("memory", "peak of HBM", memory.peak_bytes, memory.peak_bytes, "", None, NO_TIME)
    yield Fact("memory", "temporaries at that peak", memory.temporaries_bytes, 0, "", None, NO_TIME)
    there = [memory.buffers[row] for row in memory.at(memory.peak_position).tolist()]
    for (shown, size), same in grouped(((_plain(buffer), buffer.size_bytes), buffer) for buffer in there).items():
        what = f"{shown}, {_megabytes(size)} at the peak of HBM"
        yield Fact("buffer", what, len(same), size * len(same), same[0].name, same[0].source, NO_TIME)


def _plain(buffer: Buffer) -> str:
    shape = parse_shape(buffer.shape or "")
    return buffer.name if shape is None else shape.plain


_Found = Iterator[tuple[str, str, int, int, "hlo_pb2.HloInstructionProto"]]
"""Kind, what, how many, size, and the instruction."""


def _of_computation(
    module: HloModule, computation: hlo_pb2.HloComputationProto, runs: int, is_scheduled: bool
) -> _Found:
    """The facts of a computation that runs so often."""
    proto = module.proto.hlo_module
    if is_scheduled:
        yield from _overlaps(module, computation)
    for one in computation.instructions:
        yield from _of_opcode(module, one, runs, ", windowed" if computation.name.startswith(_WINDOWED) else "")
        if one.async_execution_thread == _SPARSE_CORE and one.opcode == b"async-start":
            yield from _of_sparse_core(module, one)
        if is_scheduled:
            yield from _of_scheduled(module, one, runs)
        if computation.id == proto.entry_computation_id:
            if one.opcode == b"parameter":
                yield "argument", shape_text(one.shape), 1, 0, one
            if one.id == computation.root_id:
                yield "result", shape_text(one.shape), 1, 0, one
                yield "donated", "arguments", len(donated(module)), 0, one


def _overlaps(module: HloModule, computation: hlo_pb2.HloComputationProto) -> _Found:
    """How much is multiplied between the halves of each asynchronous collective."""
    begun, done = dict[int, int](), 0
    for one in module.in_order(computation):
        start = next((number for number in one.operand_ids if number in begun), None)
        opcode = text(one.opcode)
        if opcode.endswith("-done") and start is not None:
            kind = text(one.name if opcode == "async-done" else one.opcode).partition("-done")[0]
            what = f"FLOPs between the halves of {kind} = {_plain_all(arrays(one.shape))}"
            yield "overlap", what, done - begun[start], 0, one
        elif opcode == "async-update" and start is not None:
            begun[one.id] = begun[start]
        elif _collective_kind(one) and opcode.endswith("-start"):
            begun[one.id] = done
        done += sum(work.flops for work in matrix_works(module, text(one.name), 128))


def _collective_kind(proto: hlo_pb2.HloInstructionProto) -> str:
    """``all-gather`` of what is or begins one, by its name where it is handed to another core; else empty."""
    base = text(proto.opcode).removesuffix("-start")
    base = text(proto.name).partition(".")[0] if base == "async" else base
    return base if base in COLLECTIVE_KINDS and base not in _HOST else ""


def _places(module: HloModule) -> tuple[dict[int, int], dict[int, str]]:
    """How often each computation runs, and which instruction of a schedule it is part of, if it is; both by its id.

    A loop whose trips are unknown counts once.
    """
    proto = module.proto.hlo_module
    runs, within = Counter({proto.entry_computation_id: 1}), dict[int, str]()
    for computation in reversed(proto.computations):  # what calls lies behind what it calls
        for one in computation.instructions:
            trips = (trip_count(module, one) if one.opcode == b"while" else 1) or 1
            for called in one.called_computation_ids:
                runs[called] += runs[computation.id] * trips
                if one.opcode not in _RUNNERS:
                    within[called] = within.get(computation.id) or printable(text(one.name))
    return runs, within


def _of_opcode(module: HloModule, proto: hlo_pb2.HloInstructionProto, runs: int, also: str) -> _Found:
    """The fact that an instruction is, wherever it stands; of an asynchronous one its start is.

    Args:
        also: what else is said of a collective.
    """
    opcode, own, name = text(proto.opcode), arrays(proto.shape), text(proto.name)
    base = opcode.removesuffix("-start")
    if opcode in _NO_FACT or opcode.endswith(("-done", "-update")):
        return
    if base != opcode:
        own = [array for array in own if array.dimensions][-1:]  # its result lies behind what it takes
    size, shape = sum(each.padded_bytes or 0 for each in own), _plain_all(own)
    if opcode in ("dot", "convolution"):
        operands = [each for one in module.operand_protos(proto) if one for each in arrays(one.shape)]
        flops = sum(work.flops for work in matrix_works(module, name, 128)) * runs
        precise = _PRECISIONS.get(max(proto.precision_config.operand_precision, default=0), "")
        yield "FLOPs", " x ".join(each.element_type for each in operands) + precise, flops, 0, proto
        what = f"{' x '.join(each.plain for each in operands)} = {shape}{precise}"
        yield "product", what, 1, flops // _FLOPS_A_BYTE, proto
    elif opcode == "custom-call" and proto.custom_call_target == KERNEL_TARGET:
        config = text(module.backend_config(proto))
        of_code = hashlib.blake2b(kernel_and_rest(config)[0], digest_size=4).hexdigest()
        what = f"{name.partition('.')[0]} = {shape}{_blocks(config)}, code {of_code}"
        yield "kernel", what, 1, size, proto
    elif opcode == "custom-call":
        yield "custom call", f"{text(proto.custom_call_target)} = {shape}", 1, size, proto
    elif opcode == "while":
        trips = trip_count(module, proto)
        yield "loop", "while" if trips is None else f"while of {trips} trips", 1, 0, proto
    elif opcode == "fusion":
        yield "fusion", text(proto.fusion_kind), 1, 0, proto
    elif base in COLLECTIVE_KINDS and base not in _HOST:
        groups = groups_of(proto)
        also = f"{f', {groups.label}' if groups else ''}{', asynchronous' if base != opcode else ''}{also}"
        yield "collective", f"{base} = {shape}, {_megabytes(size)}{also}", 1, size, proto
    elif base in _HOST or any(each.memory_space == HOST_MEMORY for each in own):
        yield "host transfer", f"{base} = {shape}, {_megabytes(size)}", 1, size, proto
    else:
        kind = {"copy": "copy", "transpose": "copy", "dynamic-update-slice": "update"}.get(base, "other")
        yield kind, f"{base} = {shape}", 1, size if kind == "copy" else 0, proto


def _of_sparse_core(module: HloModule, start: hlo_pb2.HloInstructionProto) -> _Found:
    """What an instruction hands to a SparseCore."""
    inside = module.wrapped(start)
    root = module.instruction_by_id(inside.root_id) if inside is not None else None
    made = arrays(root.shape) if root is not None else []
    size = sum(each.padded_bytes or 0 for each in made)
    kind, name = _collective_kind(start), text(start.name).partition(".")[0]
    what = f"{name} = {_plain_all(made)}, {_megabytes(size)}, on a SparseCore"
    yield "collective" if kind else "SparseCore", what, 1, size, start


def _blocks(config: str) -> str:
    """The grid of a kernel and the blocks of its arrays, in a few words; empty where its code can't be read."""

    @as_damage()
    def read() -> Kernel:
        return read_kernel(module_bytes(json.loads(config)["custom_call_config"]))

    kernel = behind_wall("read a Mosaic module", read, [], is_decoder=True)
    if kernel is None:
        return ""
    blocks = " ".join(braces(window.bounds) for window in kernel.windows if window.bounds)
    return f", grid {braces(kernel.grid)}{f' of {blocks}' if blocks else ''}"


def _of_scheduled(module: HloModule, proto: hlo_pb2.HloInstructionProto, runs: int) -> _Found:
    """What an instruction of the schedule is besides: rematerialised, arrays that it makes, tiles."""
    opcode = text(proto.opcode)
    if is_remat(proto):
        yield "remat", opcode, 1, 0, proto
        flops = sum(work.flops for work in matrix_works(module, text(proto.name), 128)) * runs
        yield "remat", "FLOPs", flops, flops // _FLOPS_A_BYTE, proto
    if opcode not in _NO_ARRAY and not opcode.endswith(("-start", "-update")):
        for array in arrays(proto.shape):
            size, space = array.padded_bytes or 0, space_name(array.memory_space)
            yield "array", f"{array.plain}, {_megabytes(size)} of {space}", 1, 0 if array.memory_space else size, proto
            yield "layout", str(array), 1, 0, proto
    if tiles := tiles_said(module, proto):
        yield "tiles", f"{_plain_all(arrays(proto.shape))}: {tiles}", 1, 0, proto


def is_remat(proto: hlo_pb2.HloInstructionProto) -> bool:
    """Whether an instruction computes again what was there once."""
    return b".remat" in proto.name or b"rematted_computation" in proto.metadata.op_name


def donated(module: HloModule) -> list[int]:
    """The arguments whose memory results take."""
    return [entry.parameter_number for entry in module.proto.hlo_module.input_output_alias.entries]


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


def arrays(shape: hlo_pb2.ShapeProto) -> list[Shape]:
    """The arrays of a shape, those of tuples one by one."""
    array = shape_of_proto(shape)
    return [one for part in shape.tuple_shapes for one in arrays(part)] if array is None else [array]


def _plain_all(shapes: Iterable[Shape]) -> str:
    """``f32[8,128], 4 of bf16[16]``."""
    counted = Counter(shape.plain for shape in shapes).items()
    return ", ".join(shown if count == 1 else f"{count} of {shown}" for shown, count in counted)


def tiles_said(module: HloModule, proto: hlo_pb2.HloInstructionProto) -> str:
    """The tiles that the compiler chose for an instruction, in a few words; empty where it says none."""
    try:
        tiles = tiles_of(module, proto, None)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return ""
    if tiles is None or not any(tiles.iteration):
        return ""
    windows = " ".join(map(braces, filter(None, tiles.windows)))
    scoped = "" if tiles.scoped_bytes is None else f", {tiles.scoped_bytes:,} B of scoped VMEM"
    return f"{braces(tiles.iteration)} steps of {windows}{scoped}"

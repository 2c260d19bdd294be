"""What a compiled program is made of, as facts that two programs can differ by."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from tpuprof.parsers.base.op_class import COLLECTIVE_KINDS
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.hlo.matrix import matrix_works
from tpuprof.parsers.formats.hlo.modules import KERNEL_TARGET, HloModule, braces
from tpuprof.parsers.formats.hlo.shapes import HOST_MEMORY, Shape, shape_of_proto, shape_text
from tpuprof.parsers.formats.xspace.walk import text
from tpuprof.parsers.pages.program.fingerprint import kernel_and_rest
from tpuprof.parsers.pages.program.tiles import tiles_of
from tpuprof.parsers.pages.program.trips import trip_count

if TYPE_CHECKING:
    from tpuprof.parsers.formats.proto import hlo_pb2

HEADLINES = ("kernel", "loop", "remat", "donated", "FLOPs")
"""Kinds of facts that come first whatever their size."""

LAST = ("tiles", "other")
"""Kinds that come last. Those between are ordered by size."""

_HOST = ("send", "recv", "infeed", "outfeed")
_NO_FACT = ("parameter", "constant", "bitcast", "tuple", "get-tuple-element", "async-start")
_NO_ARRAY = (*_NO_FACT, "while", "conditional", "call")
_WRAPPERS = (b"fusion", b"async-start")
_FLOPS_A_BYTE = 500  # about what a v6e multiplies while it moves a byte: so products and arrays have one order


@dataclass(frozen=True, slots=True)
class Fact:
    """How many there are of something in a program.

    Attributes:
        kind: one of `HEADLINES` or `LAST`, product, collective, custom call, host transfer, update, copy, array,
            argument, result or fusion.
        what: in words, the same in every program that has it: ``f32[8,128]``, ``bf16[8,16] x bf16[16,4]``.
        count: how many instructions, each once however often it runs; of ``FLOPs`` their sum, loops by their trips.
        size: bytes, or FLOPs / 500, of all of them together, to order them by.
        name, source: of the first one; source is ``file:line`` or None.
    """

    kind: str
    what: str
    count: int
    size: float
    name: str
    source: str | None


def facts_of(module: HloModule) -> dict[tuple[str, str], Fact]:
    """All facts of a program by kind and what they are, in time linear in its size."""
    counts, sizes = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    first: dict[tuple[str, str], hlo_pb2.HloInstructionProto] = {}
    for kind, what, count, size, proto in _all(module):
        counts[kind, what] += count
        sizes[kind, what] += size
        first.setdefault((kind, what), proto)
    return {
        key: Fact(*key, count, sizes[key], text(first[key].name), module.source(first[key]))
        for key, count in counts.items()
    }


_Found = Iterator[tuple[str, str, int, int, "hlo_pb2.HloInstructionProto"]]
"""Kind, what, how many, size, and the instruction."""


def _all(module: HloModule) -> _Found:
    proto = module.proto.hlo_module
    wraps = (each for part in proto.computations for each in part.instructions if each.opcode in _WRAPPERS)
    wrapped = {number for each in wraps for number in each.called_computation_ids}
    runs = _runs(module)
    for computation in proto.computations:
        for one in computation.instructions:
            yield from _of_opcode(module, one, runs.get(computation.id, 1))
            if computation.id not in wrapped:
                yield from _of_scheduled(module, one)
            if computation.id == proto.entry_computation_id:
                if one.opcode == b"parameter":
                    yield "argument", shape_text(one.shape), 1, 0, one
                if one.id == computation.root_id:
                    yield "result", shape_text(one.shape), 1, 0, one
                    yield "donated", "arguments", len(proto.input_output_alias.entries), 0, one


def _runs(module: HloModule) -> dict[int, int]:
    """How often each computation runs, by its id; a loop whose trips are unknown counts once."""
    proto = module.proto.hlo_module
    runs = Counter({proto.entry_computation_id: 1})
    for computation in reversed(proto.computations):  # what calls lies behind what it calls
        for one in computation.instructions:
            trips = (trip_count(module, one) if one.opcode == b"while" else 1) or 1
            for called in one.called_computation_ids:
                runs[called] += runs[computation.id] * trips
    return runs


def _of_opcode(module: HloModule, proto: hlo_pb2.HloInstructionProto, runs: int) -> _Found:
    """The fact that an instruction is, wherever it stands; of an asynchronous one its start is."""
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
        yield "FLOPs", " x ".join(each.element_type for each in operands), flops, 0, proto
        yield "product", f"{' x '.join(each.plain for each in operands)} = {shape}", 1, flops // _FLOPS_A_BYTE, proto
    elif opcode == "custom-call" and proto.custom_call_target == KERNEL_TARGET:
        code, _ = kernel_and_rest(text(module.backend_config(proto)))
        of_code = hashlib.blake2b(code, digest_size=4).hexdigest()
        yield "kernel", f"{name.partition('.')[0]} = {shape}, code {of_code}", 1, size, proto
    elif opcode == "custom-call":
        yield "custom call", f"{text(proto.custom_call_target)} = {shape}", 1, size, proto
    elif opcode == "while":
        trips = trip_count(module, proto)
        yield "loop", "while" if trips is None else f"while of {trips} trips", 1, 0, proto
    elif opcode == "fusion":
        yield "fusion", text(proto.fusion_kind), 1, 0, proto
    elif base in COLLECTIVE_KINDS and base not in _HOST:
        asynchronous = ", asynchronous" if base != opcode else ""
        yield "collective", f"{base} = {shape}, {_megabytes(size)}{asynchronous}", 1, size, proto
    elif base in _HOST or any(each.memory_space == HOST_MEMORY for each in own):
        yield "host transfer", f"{base} = {shape}, {_megabytes(size)}", 1, size, proto
    else:
        kind = {"copy": "copy", "transpose": "copy", "dynamic-update-slice": "update"}.get(base, "other")
        yield kind, f"{base} = {shape}", 1, size if kind == "copy" else 0, proto


def _of_scheduled(module: HloModule, proto: hlo_pb2.HloInstructionProto) -> _Found:
    """What an instruction of the schedule is besides: rematerialised, arrays that it makes, tiles."""
    opcode = text(proto.opcode)
    if b".remat" in proto.name or b"rematted_computation" in proto.metadata.op_name:
        yield "remat", opcode, 1, 0, proto
    if opcode not in _NO_ARRAY and not opcode.endswith("-start"):
        for array in arrays(proto.shape):
            size, is_near = array.padded_bytes or 0, array.memory_space == 1
            what = f"{array.plain}, {_megabytes(size)} of {'VMEM' if is_near else 'HBM'}"
            yield "array", what, 1, 0 if is_near else size, proto
    if tiles := tiles_said(module, proto):
        yield "tiles", f"{_plain_all(arrays(proto.shape))}: {tiles}", 1, 0, proto


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

"""The committed modules: what the compiler says of their memory, and what is computed here from the same protos."""

from __future__ import annotations

import functools
import json
import math
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.demo.profile.hlo_module import MODULES, Module
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.shapes import shape_of_proto
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.memory.model import HBM, SMEM, VMEM, ModuleLabel, SpaceMemory
from tpuprof.parsers.memory.modules.space_memory import space_memory

ENDING = ".hlo_proto.pb.gz"
NAMES = sorted(path.name.removesuffix(ENDING) for path in MODULES.glob("*" + ENDING))
SOURCES = {b"model.py", b"train.py", b"conv.py", b"mlp.py", b"decode.py", b"launch.py"}
GRANULE = {"v5e": 512, "v6e": 32}
"""Bytes that the compiler rounds a tuple's table of pointers up to."""

BITS = {
    "pred": 8, "s4": 4, "s8": 8, "u8": 8, "s32": 32, "u32": 32, "f8e4m3fn": 8, "bf16": 16, "f32": 32,
}  # fmt: skip


@functools.cache
def load(name: str) -> Module:
    return Module(name)


@functools.cache
def memory_of(name: str, space: int) -> SpaceMemory:
    return space_memory(HloModule(load(name).proto), ModuleLabel(name, None, "test"), space, None)


def facts(name: str) -> dict[str, int]:
    """The compiler's own totals, in bytes."""
    found: dict[str, int] = json.loads((MODULES / f"{name}.json").read_text())
    return found


def chip(name: str) -> str:
    return "v6e" if name.endswith("v6e") else "v5e"


def logical_buffers(module: Module) -> Iterator[tuple[hlo_pb2.LogicalBufferProto, hlo_pb2.ShapeProto]]:
    for buffer in module.proto.buffer_assignment.logical_buffers:
        part = module.instructions[buffer.defined_at.instruction_id].shape
        for index in buffer.defined_at.shape_index:
            part = part.tuple_shapes[index]
        yield buffer, part


# --- the modules


@pytest.mark.parametrize("name", NAMES)
def test_modules_are_small_and_name_no_path_of_the_machine_that_made_them(name: str) -> None:
    assert (MODULES / (name + ENDING)).stat().st_size <= 120_000
    module = load(name)
    for forbidden in (b"/work", b"/root", b"/home", b"/tmp", b"site-packages"):
        assert forbidden not in module.proto_bytes
    assert set(module.module.stack_frame_index.file_names) <= SOURCES
    assert name.startswith(module.module.name.decode())


# --- sizes of buffers


@functools.cache
def compared(name: str) -> Counter[str]:
    """How the size of each logical buffer comes about, by the first rule that gives the compiler's."""
    granule = GRANULE[chip(name)]
    counts: Counter[str] = Counter()
    for buffer, part in logical_buffers(load(name)):
        shape = shape_of_proto(part)
        if shape is None:
            pointers = 4 * len(part.tuple_shapes)
            rule = "tuple" if buffer.size == -(-pointers // granule) * granule else "unexplained"
        elif buffer.size == shape.padded_bytes:
            rule = "equal"
        elif not shape.tiles and not shape.dimensions and buffer.size == 1024 * (shape.unpadded_bytes or 0):
            rule = "untiled scalar"
        elif str(shape) == "s32[2]{0:S(4)}" and (buffer.color, buffer.size) == (SMEM, 4096):
            rule = "pair in SMEM"
        else:
            rule = "unexplained"
        counts[rule] += 1
    return counts


@pytest.mark.parametrize("name", NAMES)
def test_padded_sizes_are_the_compilers(name: str) -> None:
    assert compared(name)["equal"] and not compared(name)["unexplained"]


@pytest.mark.parametrize("name", NAMES)
def test_unpadded_sizes_are_those_of_the_elements(name: str) -> None:
    seen = 0
    for buffer, part in logical_buffers(load(name)):
        shape = shape_of_proto(part)
        if shape is None:
            continue
        bits = math.prod(part.dimensions) * BITS[shape.element_type]
        assert shape.unpadded_bytes == -(-bits // 8)
        assert shape.unpadded_bytes <= buffer.size
        seen += 1
    assert seen == compared(name).total() - compared(name)["tuple"]


# --- the compiler's totals


@pytest.mark.parametrize("name", NAMES)
def test_arguments_outputs_and_aliases_are_the_compilers(name: str) -> None:
    memory, wanted = memory_of(name, HBM), facts(name)
    assert memory.arguments_bytes == wanted["argument_size_in_bytes"]
    assert memory.outputs_bytes == wanted["output_size_in_bytes"]
    assert memory.aliased_bytes == wanted["alias_size_in_bytes"]


def plain_peak(module: Module, trace: hlo_pb2.HeapSimulatorTrace) -> int:
    """Most that a trace holds where each place counts from its first buffer to its last, whatever lies where."""
    sizes = {buffer.id: buffer.size for buffer in module.proto.buffer_assignment.logical_buffers}
    root: dict[int, int] = {}
    users: Counter[int] = Counter()
    now = most = 0
    for event in trace.events:
        if event.kind == 1:
            place = root.pop(event.buffer_id)
            users[place] -= 1
            now -= 0 if users[place] else sizes[place]
        else:
            place = event.buffer_id if event.kind == 0 else root.get(event.share_with_canonical_id, -1)
            place = event.share_with_canonical_id if place < 0 else place
            now += 0 if users[place] else sizes[place]
            users[place] += 1
            root[event.buffer_id] = place
        most = max(most, now)
    return most


@pytest.mark.parametrize("name", NAMES)
def test_the_peak_is_the_compilers(name: str) -> None:
    """Its peak is what is there throughout, thread-local buffers left out, and the most of any one heap trace.

    Where that is the HBM's trace, it is this page's peak. Programs that do nearly all in VMEM have the most there,
    and the compiler's figure adds VMEM to HBM.
    """
    memory, wanted = memory_of(name, HBM), facts(name)["peak_memory_in_bytes"]
    module = load(name)
    throughout = memory.arguments_bytes + memory.outputs_bytes - memory.aliased_bytes + memory.constants_bytes
    traces = [plain_peak(module, trace) for trace in module.proto.buffer_assignment.heap_simulator_traces]
    assert throughout + max(traces) == wanted
    if "mlp" in name or "decode" in name:
        assert memory.peak_bytes < wanted
        assert max(traces) >= memory_of(name, VMEM).peak_bytes > memory.peak_bytes - throughout
    else:
        assert memory.peak_bytes == wanted

"""The committed modules: sizes of their buffers. The totals are held by tests/parity/memory/test_memory_viewer.py."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.demo.profile.hlo_module import MODULES, Module
from tpuprof.parsers.formats.hlo.shapes import shape_of_proto
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.memory.model import SMEM

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

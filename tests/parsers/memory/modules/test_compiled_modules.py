"""The committed modules: what the compiler says of their memory, and what is computed here from the same protos."""

from __future__ import annotations

import functools
import json
import math
import os
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.demo.profile.hlo_module import MODULES, Module
from tpuprof.parsers.formats.hlo.files import find_hlo_files, read_hlo_file
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.shapes import Shape, shape_of_proto
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.memory.model import HBM, SMEM, VMEM, ModuleLabel, SpaceMemory
from tpuprof.parsers.memory.modules.space_memory import module_peaks, space_memory

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


def test_there_are_modules_of_two_chips_and_several_kinds() -> None:
    assert NAMES == [
        "jit_conv_step_v5e", "jit_conv_step_v6e", "jit_decode_step_v5e", "jit_decode_step_v6e", "jit_eval_step",
        "jit_mlp_step_v5e", "jit_mlp_step_v6e", "jit_train_step", "jit_train_step_v6e",
    ]  # fmt: skip
    assert all(load(name).facts["topology"] == f"{chip(name)}:2x2" for name in NAMES)  # type: ignore[comparison-overlap]
    donates = {name for name in NAMES if facts(name)["alias_size_in_bytes"]}
    assert donates == {name for name in NAMES if "mlp" not in name and "eval" not in name}
    loops = {name for name in NAMES if any(one.opcode == b"while" for one in load(name).instructions.values())}
    assert {name for name in NAMES if "mlp" not in name} <= loops


def test_they_are_found_and_read_as_files() -> None:
    files = find_hlo_files(str(MODULES))
    assert [os.path.basename(file.path) for file in files] == [name + ENDING for name in NAMES]
    for file in files:
        module = read_hlo_file(file)
        assert file.name.startswith(module.name)
        assert module.proto.buffer_assignment.buffer_allocations
        assert module.proto == load(file.name).proto


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


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("jit_conv_step_v5e", {"equal": 411, "tuple": 133}),
        ("jit_conv_step_v6e", {"equal": 429, "tuple": 136}),
        ("jit_decode_step_v5e", {"equal": 128, "tuple": 12}),
        ("jit_decode_step_v6e", {"equal": 128, "tuple": 13}),
        ("jit_eval_step", {"equal": 297, "tuple": 49, "pair in SMEM": 8}),
        ("jit_mlp_step_v5e", {"equal": 232, "tuple": 19, "pair in SMEM": 7, "untiled scalar": 3}),
        ("jit_mlp_step_v6e", {"equal": 119, "tuple": 13, "untiled scalar": 3}),
        ("jit_train_step", {"equal": 965, "tuple": 189, "pair in SMEM": 21, "untiled scalar": 17}),
        ("jit_train_step_v6e", {"equal": 1037, "tuple": 338, "untiled scalar": 29}),
    ],
)
def test_padded_sizes_are_the_compilers(name: str, counts: dict[str, int]) -> None:
    assert compared(name) == counts
    assert sum(counts.values()) == len(load(name).proto.buffer_assignment.logical_buffers)


def test_of_what_has_a_layout_every_size_is_the_compilers() -> None:
    total = sum((compared(name) for name in NAMES), Counter[str]())
    assert total == {"equal": 3746, "tuple": 902, "untiled scalar": 52, "pair in SMEM": 36}


def test_the_modules_hold_padding_and_narrow_types() -> None:
    padded: Counter[str] = Counter()
    for name in NAMES:
        for _, part in logical_buffers(load(name)):
            shape = shape_of_proto(part)
            if shape is not None:
                padded[f"{shape.element_type} {'padded' if (shape.expansion or 1) > 1 else 'exact'}"] += 1
    assert {kind.split()[0] for kind in padded} == BITS.keys()
    for kind in ("f32", "bf16", "s32", "pred", "s4", "s8", "f8e4m3fn", "u8"):
        assert padded[f"{kind} padded"] > 0, kind
    for kind in ("f32", "bf16", "s32", "u32", "pred"):
        assert padded[f"{kind} exact"] > 0, kind


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


@pytest.mark.parametrize("name", NAMES)
def test_rows_have_the_sizes_of_their_logical_buffers(name: str) -> None:
    by_id: dict[int, tuple[int, int, Shape | None]] = {
        buffer.id: (buffer.color, buffer.size, shape_of_proto(part)) for buffer, part in logical_buffers(load(name))
    }
    rows = 0
    for space in (HBM, VMEM):
        memory = memory_of(name, space)
        columns = (memory.live_ranges.logical_buffer, memory.live_ranges.size_bytes, memory.live_ranges.unpadded_bytes)
        for key, size, unpadded in zip(*(column.tolist() for column in columns), strict=True):
            if key < 0:
                continue
            color, stated, shape = by_id[key]
            rows += 1
            assert color == space
            assert size >= stated  # a buffer that shares a larger one's place shows that one's size
            if shape is not None and shape.unpadded_bytes is not None:
                assert 0 <= shape.unpadded_bytes <= size
                assert unpadded in (shape.unpadded_bytes, -1) or size > stated
    assert rows > 30


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


@pytest.mark.parametrize("name", NAMES)
def test_figures_of_a_space_fit_together(name: str) -> None:
    # temp_size_in_bytes is left out: no sum over the buffer assignment gives it, in either direction
    peaks = module_peaks(HloModule(load(name).proto), ModuleLabel(name, None, "test")).peaks
    assert {HBM, VMEM} <= peaks.keys()
    for space, peak in peaks.items():
        memory = memory_of(name, space)
        assert memory.peak_bytes == peak == memory.heap_bytes[memory.peak_position] == memory.heap_bytes.max()
        assert memory.live_ranges.size_bytes[memory.at(memory.peak_position)].sum() == peak
        assert memory.padding_bytes is None or 0 <= memory.padding_bytes <= peak
        assert memory.fragmentation is None or 0 <= memory.fragmentation <= 1

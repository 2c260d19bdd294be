"""One memory space of a module: its sums, its rows described, and modules with something missing or odd."""

from __future__ import annotations

import pytest

from tests.support.made.heaps import ALLOCATE, F32, FREE, LABEL, TUPLE, ModuleBuilder
from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.memory.model import HBM, VMEM
from tpuprof.parsers.memory.modules.space_memory import module_peaks, space_memory

PARAMETER, OUTPUT = "is_entry_computation_parameter", "maybe_live_out"


def small() -> ModuleBuilder:
    """A parameter, a donated one, an output, a constant, a thread-local one, and two temporaries in 4 KiB."""
    made = ModuleBuilder()
    for number, size in ((1, 1000), (2, 500), (3, 80), (4, 16), (5, 512), (6, 2048), (7, 1024)):
        made.buffer(number, size, elements=size // 8 if number in (2, 6) else None)
    made.allocation(0, 1000, (1, 0), kind=PARAMETER)
    made.allocation(1, 512, (2, 0), kind=f"{PARAMETER} {OUTPUT}")
    made.allocation(2, 80, (3, 0), kind=OUTPUT)
    made.allocation(3, 16, (4, 0), kind="is_constant")
    made.allocation(4, 512, (5, 0), kind="is_thread_local")
    made.allocation(5, 4096, (6, 0), (7, 2048))
    made.trace((ALLOCATE, 6), (ALLOCATE, 7), (FREE, 6), (FREE, 7))
    return made


def test_a_buffer_is_described_by_its_instruction() -> None:
    made = ModuleBuilder()
    inner = hlo_pb2.ShapeProto(element_type=16, dimensions=[3, 5])
    inner.layout.minor_to_major[:] = [1, 0]
    pair = hlo_pb2.ShapeProto(element_type=TUPLE, tuple_shapes=[hlo_pb2.ShapeProto(element_type=F32), inner])
    nested = hlo_pb2.ShapeProto(element_type=TUPLE, tuple_shapes=[hlo_pb2.ShapeProto(element_type=4), pair])
    buffer = made.buffer(1, 4096)
    instruction = made.entry.instructions[0]
    instruction.shape.CopyFrom(nested)
    instruction.name, instruction.opcode = b"copy-start", b"copy-start"
    instruction.metadata.op_name = b"jit(step)/layer/add"
    instruction.metadata.stack_frame_id = 2
    buffer.defined_at.shape_index[:] = [1, 1]
    index = made.proto.hlo_module.stack_frame_index
    index.file_names.extend([b"train.py", b"<embedded module>"])
    index.function_names.append(b"main")
    index.file_locations.add(file_name_id=1, function_name_id=1, line=12)
    index.file_locations.add(file_name_id=2, line=7)
    index.stack_frames.add(file_location_id=1, parent_frame_id=2)  # a chain that never ends
    index.stack_frames.add(file_location_id=2, parent_frame_id=3)
    index.stack_frames.add(file_location_id=9, parent_frame_id=1)
    made.allocation(0, 4096, (1, 64))
    made.trace((ALLOCATE, 1))
    row = made.memory().buffers[0]
    assert (row.name, row.opcode, row.shape) == ("copy-start{1,1}", "copy-start", "bf16[3,5]{1,0}")
    assert (row.framework_op, row.source) == ("jit(step)/layer/add", "<embedded module>:7")
    assert row.stack == ("<embedded module>:7", "train.py:12 main")
    assert (row.unpadded_bytes, row.padding_bytes, row.logical_buffer) == (30, 4066, 1)
    # a tuple is a table of pointers: it has no padding; an index that leads nowhere leaves the shape unknown
    del buffer.defined_at.shape_index[:]
    assert made.memory().buffers[0].unpadded_bytes == 4096
    buffer.defined_at.shape_index[:] = [1, 2]
    memory = made.memory()
    assert (memory.buffers[0].shape, memory.buffers[0].unpadded_bytes) == (None, None)
    assert (memory.peak_unpadded_bytes, memory.padding_bytes) == (None, None)
    assert {"peak_unpadded_bytes", "padding_bytes"} <= set(memory.unknown)
    assert memory.heap_unpadded_bytes.tolist() == [0, 4096]


@pytest.mark.parametrize(
    ("element_type", "dimensions", "unpadded"),
    [(11, [2, 3], 24), (21, [3], 2), (17, [], 0), (14, [], 0), (99, [4], None), (11, [-1], None), (11, [2**62], None)],
)
def test_what_elements_take(element_type: int, dimensions: list[int], unpadded: int | None) -> None:
    made = ModuleBuilder()
    made.buffer(1, 64)
    made.entry.instructions[0].shape.CopyFrom(hlo_pb2.ShapeProto(element_type=element_type, dimensions=dimensions))
    made.allocation(0, 64, (1, 0), kind=PARAMETER)
    assert made.memory().buffers[0].unpadded_bytes == unpadded


def test_older_compilers_give_the_instruction_by_name() -> None:
    made = ModuleBuilder()
    place = made.buffer(1, 64, name="fusion.3").defined_at
    place.instruction_id, place.instruction_name = 0, b"fusion.3"
    made.allocation(0, 64, (1, 0), kind=PARAMETER)
    assert made.memory().buffers[0].name == "fusion.3"
    place.instruction_name = b"gone"
    assert made.memory().buffers[0].name == "gone"
    place.instruction_name = b""
    assert made.memory().buffers[0].name == "logical buffer 1"


def test_without_a_buffer_assignment_there_are_no_figures() -> None:
    hlo = HloModule(hlo_pb2.HloProto())
    peaks = module_peaks(hlo, LABEL)
    assert peaks.peaks == {}
    assert peaks.problem == "The compiled HLO of jit_step(7) has no buffer assignment, so its use of memory is unknown."
    with pytest.raises(ProfileError) as caught:
        space_memory(hlo, LABEL, HBM, None)
    assert caught.value.sentence == peaks.problem
    assert caught.value.hint


def test_allocations_that_no_trace_tells_count_throughout() -> None:
    made = ModuleBuilder()
    for number in (1, 2, 3):
        made.buffer(number, 64)
    made.allocation(0, 64, (1, 0))
    made.allocation(1, 200, (2, 0))
    made.allocation(2, 64, (3, 0))
    memory = made.memory()
    assert memory.heap_bytes.tolist() == [328]
    assert [memory.buffers[row].name for row in range(3)] == ["op.1", "allocation 1", "op.3"]
    assert memory.warnings == (
        "HBM: there is no heap trace of 3 temporary allocations (328 bytes); "
        "all of that counts as in memory throughout.",
    )
    # of two traces the first allocation's is run: the other's clock is another one
    made.trace((ALLOCATE, 3), (FREE, 3))
    made.trace((ALLOCATE, 1), (FREE, 1))
    memory = made.memory()
    assert memory.heap_bytes.tolist() == [264, 328, 264]
    assert memory.temporaries_bytes == 328
    assert memory.instructions == ("op.1", "op.1")
    assert len(memory.warnings) == 1


def test_damage_in_the_assignment_is_told() -> None:
    made = ModuleBuilder()
    made.buffer(1, -5)
    made.buffer(1, 64)
    made.buffer(2, 2**63 - 1)
    made.allocation(0, 2**60, (1, 0), (2, -4), (77, 0), kind=PARAMETER)
    made.allocation(0, 8)
    made.allocation(1, 8, (2, 0), kind=PARAMETER)
    memory = made.memory()
    assert memory.heap_bytes.tolist() == [8]
    assert len(memory.warnings) == 6
    assert all(sentence.startswith("Buffer assignment: ") and sentence.endswith(".") for sentence in memory.warnings)


def test_a_heap_that_does_not_fit_its_allocation_is_told() -> None:
    made = ModuleBuilder()
    made.buffer(1, 64)
    made.allocation(0, 32, (1, 0))
    made.trace((ALLOCATE, 1))
    memory = made.memory()
    assert memory.warnings == ("HBM: the heap trace comes to 64 bytes in allocations of 32 bytes.",)
    assert memory.fragmentation == 0.0


def scoped(*configs: bytes) -> HloModule:
    made = small()
    for at, config in enumerate(configs):
        made.entry.instructions[at].backend_config = config
    return made.module()


@pytest.mark.parametrize(
    "config",
    [
        b"used_scoped_memory_configs",
        b'{"used_scoped_memory_configs":7}',
        b'["used_scoped_memory_configs"]',
        b'{"used_scoped_memory_configs":[7,{"memory_space":1},{"size":true,"memory_space":1},{"size":-4,"memory_space":1}]}',
        b'{"used_scoped_memory_configs":[{"memory_space":1,"size":"9e9"},{"memory_space":1,"size":1e5}]}',
        b'{"used_scoped_memory_configs":[{"memory_space":1,"size":' + b"9" * 5000 + b"}]}",
        b'{"used_scoped_memory_configs":' + b"[" * 100_000,
        b'\xff{"used_scoped_memory_configs":[{"memory_space":1,"size":4}]}',
    ],
)
def test_odd_backend_configs_tell_nothing(config: bytes) -> None:
    assert space_memory(scoped(config), LABEL, VMEM, None).scoped_bytes is None

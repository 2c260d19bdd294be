"""Ops of GPUs' streams and of host threads: which op an event belongs to, the table of ops, and kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.support.build import PlaneBuilder, StatInput, present, trace_of
from tests.support.gpus import cpu_profile, session_of
from tpuprof.parsers.formats.proto.hlo_pb2 import HloProto
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.ops.host_events.events import read_threads
from tpuprof.parsers.ops.streams.attribution import OP_STATS, copy_kind, kernel_name
from tpuprof.parsers.ops.streams.devices import StreamDevice, cpu_device, read_gpus, runs_on_cpu
from tpuprof.parsers.ops.streams.kernels import launch, uses_tensor_cores
from tpuprof.parsers.pages.ops.key import OPS
from tpuprof.parsers.pages.ops.sources import sources_page

US = 1_000_000
Event = tuple[str, int, int, Mapping[str, StatInput]]
"""Name, start and end in microseconds, and stats."""


def with_hlo(space: XSpace) -> None:
    """Adds program 7: a fusion of a framework op, a library call and an elementwise op."""
    proto = HloProto()
    module = proto.hlo_module
    module.name, module.id = b"jit_f", 7
    computation = module.computations.add(name=b"main", id=1)
    for number, (name, opcode) in enumerate(
        [(b"fusion.1", b"fusion"), (b"gemm", b"custom-call"), (b"add.2", b"add"), (b"copy.3", b"copy")], 1
    ):
        instruction = computation.instructions.add(name=name, opcode=opcode, id=number)
        if opcode == b"fusion":
            instruction.fusion_kind = b"kLoop"
        if number < 3:
            instruction.metadata.op_name = b"jit(f)/dot_general"
            instruction.metadata.source_file, instruction.metadata.source_line = b"model.py", 12
    plane = PlaneBuilder(space, "/host:metadata", 0)
    stats: dict[str, StatInput] = {"Hlo Proto": proto.SerializeToString(), "program_id": 7}
    plane.event_id("jit_f(7)", "", **stats)


def gpu_of(streams: Sequence[Sequence[Event]], hlo: bool = False, vendor: str = "") -> StreamDevice:
    space = XSpace()
    if hlo:
        with_hlo(space)
    plane = PlaneBuilder(space, "/device:GPU:0", 1)
    if vendor:
        plane.stat("device_vendor", vendor)
    for events in streams:
        plane.spans("Stream", events, US)
    [gpu] = read_gpus(trace_of(space))
    return gpu


def rows(device: StreamDevice) -> list[tuple[str, str | None, str, int, int]]:
    """Name, category, framework op, occurrences and time in microseconds, longest first."""
    table = device.sums().table
    order = np.argsort(-table.self_ps, kind="stable").tolist()
    return [
        (
            table.name[row],
            table.category[row],
            table.framework_op[row],
            int(table.occurrences[row]),
            table.self_ps[row] // US,
        )
        for row in order
    ]


def test_kernels_belong_to_the_innermost_hlo_op_of_a_program() -> None:
    events: list[Event] = [
        ("k1", 0, 40, {"hlo_op": "call::fusion.1", "program_id": 7, "tf_op": "XlaModule:"}),
        ("k2", 40, 60, {"hlo_op": "fusion.1", "program_id": 7}),
        ("cutlass", 60, 75, {"hlo_op": "gemm", "program_id": 7}),
        ("k3", 80, 90, {"hlo_op": "add.2", "program_id": 7}),
        ("k3", 90, 94, {"hlo_op": "copy.3", "program_id": 7}),
    ]
    gpu = gpu_of([events], hlo=True)
    assert rows(gpu) == [
        ("fusion.1", "loop fusion", "jit(f)/dot_general:", 2, 60),
        ("gemm", "custom-call", "jit(f)/dot_general:", 1, 15),
        ("add.2", "non-fusion elementwise", "", 1, 10),
        ("copy.3", "data formatting", "", 1, 4),
    ]
    sums = gpu.sums()
    assert (sums.op_events, sums.idle_ps, sums.total_ps) == (5, 5 * US, 94 * US)
    fusion, gemm = sums.table.name.index("fusion.1"), sums.table.name.index("gemm")
    assert sums.table.program_id.tolist() == [7] * 4
    assert sums.table.expression(fusion).startswith("%fusion.1 = ")
    assert sums.table.texts("source", np.array([fusion])) == ["model.py:12"]
    assert (sums.table.classes()[fusion], sums.table.classes()[gemm]) == ("vector", "compute")
    assert np.isnan(sums.table.flops).all() and np.isnan(sums.table.hbm_bytes).all()


@pytest.mark.parametrize("label", [{"name": "jit(g)/sin"}, {"tf_op": "jit(g)/sin:"}])
def test_a_program_that_is_not_there_leaves_name_and_label(label: dict[str, str]) -> None:
    event: Event = ("k", 0, 5, {"hlo_op": "fusion.9", "program_id": 3, **label})
    assert rows(gpu_of([[event]])) == [("fusion.9", None, "jit(g)/sin:", 1, 5)]


def test_kernels_without_hlo_belong_to_framework_ops_and_the_rest_stands_for_itself() -> None:
    annotation = "a/b:MatMul#shape=(half[2];float[])#::#edge_name=x#"
    events: list[Event] = [
        ("void ns::gemm<float, 3>(int)", 0, 30, {"tf_op": "a/b:MatMul"}),
        ("void ns::gemm<double>(int)", 30, 40, {"annotation": annotation}),
        ("MemcpyH2D", 40, 48, {}),
        ("ncclDevKernel_AllReduce", 50, 54, {}),
        ("someone", 54, 55, {"tf_op": ""}),
    ]
    gpu = gpu_of([events])
    assert rows(gpu) == [
        ("a/b/gemm", "MatMul", "a/b:MatMul", 2, 40),
        ("MemcpyH2D", "memcpy host to device", "", 1, 8),
        ("ncclDevKernel_AllReduce", "nccl", "", 1, 4),
        ("someone", None, "", 1, 1),
    ]
    table = gpu.sums().table
    assert dict(zip(table.name, table.classes(), strict=True)) == {
        "a/b/gemm": "compute",
        "MemcpyH2D": "host",
        "ncclDevKernel_AllReduce": "collective",
        "someone": "unknown",
    }


def test_ops_of_the_hosts_cpu_lie_inside_one_another() -> None:
    space = XSpace()
    with_hlo(space)
    host = PlaneBuilder(space, "/host:CPU", 1)
    line = host.line("tf_XLAEigen/1")
    events: list[Event] = [
        ("train", 0, 100, {}),
        ("while", 10, 60, {"hlo_op": "fusion.1", "program_id": 7}),
        ("add", 20, 40, {"hlo_op": "add.2", "program_id": 7}),
        ("end: add", 39, 40, {}),
    ]
    for name, start, end, stats in events:
        host.event(line, host.event_id(name), start * US, (end - start) * US, **stats)
    trace = trace_of(space)
    plane = present(runs_on_cpu(trace))
    cpu = cpu_device(trace, plane, list(read_threads(plane, OP_STATS)))
    assert cpu is not None and cpu.is_host and cpu.kernels() == () and cpu.info.device_type == "CPU"
    assert [(name, count, time) for name, _, _, count, time in rows(cpu)] == [("fusion.1", 1, 30), ("add.2", 1, 20)]
    assert cpu.sums().idle_ps == 0
    PlaneBuilder(space, "/device:GPU:0", 5)
    assert runs_on_cpu(trace_of(space)) is None


@pytest.mark.parametrize(
    ("equation", "op", "eligible"),
    [
        ("ij,jk->ik", "a/Einsum:Einsum", True),
        ("ij->ji", "a/Einsum:Einsum", False),
        ("", "a/Einsum:Einsum", False),
        ("", "jit(f)/dot_general:", True),
        ("", "a/Conv2DBackpropInput:Conv2DBackpropInput", True),
        ("", "a/BatchMatMulV2:BatchMatMulV2", True),
        ("", "MatMul:MatMul", False),
    ],
)
def test_which_ops_tensor_cores_can_do(equation: str, op: str, eligible: bool) -> None:
    stats = {"kernel_details": "regs:1", "tf_op": op, **({"equation": equation} if equation else {})}
    [kernel] = gpu_of([[("k", 0, 1, stats)]]).kernels()
    assert kernel.is_eligible is eligible


@pytest.mark.parametrize(
    ("name", "vendor", "uses"),
    [
        ("volta_h884gemm", "Nvidia", True),
        ("volta_h884gemm", "AMD", False),
        ("Cijk_MT256_MI16x16x16x1_SN", "AMD", True),
        ("Cijk_MT256_MI16x16x16x1_SN", "Nvidia", False),
        ("Cijk_MT256_MI16x16_SN", "AMD", False),
        ("gemm_fusion_dot_1", "AMD", True),
        ("volta_h884gemm", None, True),
        ("Cijk_MI16x16x16x1", None, True),
        ("add", None, False),
    ],
)
def test_which_kernels_use_tensor_cores(name: str, vendor: str | None, uses: bool) -> None:
    assert uses_tensor_cores(name, vendor) is uses


@pytest.mark.parametrize(
    ("details", "expected"),
    [
        (" grid:4,64,1 block:256,1,1 private_mem:0 group_mem:8704 occ_pct:0", ("256,1,1", "4,64,1", None, 8704, None)),
        ("regs:38 shm:0 grid:160,1,1 block:1024,1,1", ("1024,1,1", "160,1,1", 38, 0, None)),
        ("regs:x static_shared: grid:1,1 block:a,b,c occ_pct:nan junk a:b:c", ("", "", None, None, None)),
        ("regs:99999999999999999999 occ_pct:100\ngrid:1,2,3", ("", "1,2,3", None, None, 1.0)),
        ("", ("", "", None, None, None)),
    ],
)
def test_what_launches_tell(details: str, expected: tuple[str, str, int | None, int | None, float | None]) -> None:
    assert launch(details) == expected


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("void a::b<c<float>, 3>(d::e const*, int)", "b"),
        ("void (anonymous namespace)::kern<int>(int)", "kern"),
        ("void cutlass::Kernel<cutlass_80_gemm, x<int>>(cutlass_80_gemm::Params)", "Kernel<cutlass_80_gemm>"),
        ("kernel", "kernel"),
        ("loop_fusion.kd", "loop_fusion"),
        ("Cijk_Ailk_MI16x16", "Cijk_Ailk_MI16x16"),
        ("_ZN3foo3barEv", "_ZN3foo3barEv"),
        ("<<>>", "<<>>"),
        ("", ""),
    ],
)
def test_short_names_of_kernels(name: str, short: str) -> None:
    assert kernel_name(name) == short


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("MemcpyHtoD", "memcpy host to device"),
        ("MEMCPYD2H", "memcpy device to host"),
        ("MemcpyP2P", "memcpy peer to peer"),
        ("Memset", "memset"),
        ("__amd_rocclr_copyBuffer.kd", "memcpy"),
        ("__amd_rocclr_fillBufferAligned.kd", "memset"),
        ("ncclKernel", "nccl"),
        ("memory_bound_kernel", ""),
    ],
)
def test_kinds_of_copies(name: str, kind: str) -> None:
    assert copy_kind(name) == kind


def test_the_first_program_of_a_process_has_the_id_0(tmp_path: Path) -> None:
    """Its ops are described by the program like any other's."""
    space = cpu_profile(4, [], [("fusion.1", 10, 30), ("wrapped_tanh", 40, 60)], hlo=True)
    host = next(plane for plane in space.planes if plane.name == b"/host:CPU")
    numbers = {id for id, stat in host.stat_metadata.items() if stat.name == b"program_id"}
    for stat in (stat for line in host.lines for event in line.events for stat in event.stats):
        if stat.metadata_id in numbers:
            stat.int64_value = 0
    metadata = next(plane for plane in space.planes if plane.name == b"/host:metadata")
    (entry,) = metadata.event_metadata.values()
    entry.name = b"jit_step(0)"
    for stat in entry.stats:
        if stat.WhichOneof("value") == "int64_value":
            stat.int64_value = 0
        else:
            proto = HloProto.FromString(stat.bytes_value)
            proto.hlo_module.id = 0
            stat.bytes_value = proto.SerializeToString()
    page = session_of(space, tmp_path).page(OPS)
    assert set(page.program) == {"jit_step(0)"} and set(page.table.category) == {"loop fusion"}
    assert set(page.table.framework_op) == {"jit(step)/mlp/add:", "jit(step)/mlp/tanh:"}


@pytest.mark.parametrize("has_product", [True, False])
def test_a_fusion_on_the_cpu_counts_as_the_product_in_it(has_product: bool, tmp_path: Path) -> None:
    space = cpu_profile(1, [], [("fusion.1", 10, 40)])
    proto = HloProto()
    proto.hlo_module.name, proto.hlo_module.id = b"jit_step", 7
    inner = proto.hlo_module.computations.add(name=b"fused", id=2)
    for number, opcode in enumerate((b"dot" if has_product else b"add", b"reduce"), 10):
        each = inner.instructions.add(name=opcode, opcode=opcode, id=number)
        each.metadata.op_name = b"jit(step)/dot_general" if opcode == b"dot" else b"jit(step)/reduce_max"
        each.metadata.source_file, each.metadata.source_line = b"model.py", number
    main = proto.hlo_module.computations.add(name=b"main", id=1)
    fusion = main.instructions.add(name=b"fusion.1", opcode=b"fusion", id=1, fusion_kind=b"kCustom")
    fusion.called_computation_ids.append(2)
    fusion.metadata.op_name = b"jit(step)/reduce_max"
    stats: dict[str, StatInput] = {"Hlo Proto": proto.SerializeToString(), "program_id": 7}
    PlaneBuilder(space, "/host:metadata", 0).event_id("jit_step(7)", "", **stats)
    page = session_of(space, tmp_path).page(OPS)
    expected = ("jit(step)/dot_general:", "compute") if has_product else ("jit(step)/reduce_max:", "vector")
    assert (page.table.framework_op[0], page.op_class[0]) == expected
    assert [line for line in sources_page(page).source if line] == ["model.py:10"] * has_product

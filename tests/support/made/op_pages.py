"""The op pages of a small profile made by hand: two programs, two steps, a loop, copies of one fusion, gaps in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from tests.support.build import PlaneBuilder, StatInput
from tests.support.host_events import host_ops
from tpuprof.parsers.files.logdir import HostFile, Run
from tpuprof.parsers.formats.hlo.modules import Instruction
from tpuprof.parsers.formats.proto.xplane_pb2 import MemoryAccessBreakdown, XSpace
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.hosts.summary import summarise
from tpuprof.parsers.pages.ops.framework_ops import FrameworkOpsPage, framework_ops_page
from tpuprof.parsers.pages.ops.op_profile import OpProfilePage, op_profile_page
from tpuprof.parsers.pages.ops.ops import OpsPage, ops_page
from tpuprof.parsers.pages.ops.roofline import RooflinePage, roofline_page

US = 1_000_000  # picoseconds
STEP_ID, INIT_ID = 11_529_215_046_068_469_761, 42
HBM, VMEM = 1, 3
READ, WRITE = 1, 2

PEAKS = {
    "peak_teraflops_per_second": 100.0,
    "peak_hbm_bw_gigabytes_per_second": 1000.0,
    "peak_sram_rd_bw_gigabytes_per_second": 8000.0,
    "peak_sram_wr_bw_gigabytes_per_second": 4000.0,
    "peak_vmem_rd_bw_gigabytes_per_second": 8000.0,
    "peak_vmem_wr_bw_gigabytes_per_second": 4000.0,
}


@dataclass(frozen=True, slots=True)
class Pages:
    ops: OpsPage
    op_profile: OpProfilePage
    framework_ops: FrameworkOpsPage
    roofline: RooflinePage


def traffic(*accesses: tuple[int, int, int]) -> bytes:
    breakdown = MemoryAccessBreakdown()
    for operation, space, size in accesses:
        breakdown.memory_accessed.add(operation_type=operation, memory_space=space, bytes_accessed=size)
    return breakdown.SerializeToString()


def _op(plane: PlaneBuilder, name: str, symbol: int, program: int = STEP_ID, text: str = "", **stats: StatInput) -> int:
    """Event metadata of an op; program ids are unsigned, the builder's integers signed."""
    signed = program - 2**64 if program >= 2**63 else program
    return plane.event_id(text or f"%{name} = f32[8] custom()", name, program_id=signed, symbol_id=symbol, **stats)


def _while_body(plane: PlaneBuilder) -> list[tuple[int, int, int]]:
    """Metadata id, offset and duration of the ops of one step."""
    loop = _op(plane, "while.1", 1, hlo_category="while", flops=60_000_000, bytes_accessed=90_000)
    matmul = _op(
        plane,
        "fusion.7",
        2,
        text="%fusion.7 = bf16[128,256]{1,0:T(8,128)(2,1)} fusion(%p.0, %p.1), kind=kOutput, calls=%fused.7",
        hlo_category="convolution fusion",
        tf_op="jit(step)/jvp(mlp)/dot_general:",
        source="/src/model.py:12",
        shape_with_layout="bf16[128,256]{1,0:T(8,128)(2,1)}",
        flops=50_000_000,
        model_flops=40_000_000,
        bytes_accessed=40_000,
        memory_access_breakdown=traffic((READ, HBM, 30_000), (READ, VMEM, 6_000), (WRITE, VMEM, 4_000)),
    )
    copies = [
        _op(
            plane,
            f"fusion.{number}",
            number,
            text=f"%fusion.{number} = f32[8,128]{{1,0}} fusion(%p.{number}), kind=kLoop, calls=%fused.{number}",
            hlo_category="loop fusion",
            tf_op="jit(step)/jvp(mlp)/gelu/mul:",
            source="/src/model.py:14",
            shape_with_layout="f32[8,128]{1,0}",
            deduplicated_name="fusion.21",
            flops=1_000_000,
            bytes_accessed=20_000,
            memory_access_breakdown=traffic((READ, HBM, 20_000)),
        )
        for number in (21, 22, 23)
    ]
    infeed = _op(plane, "infeed.3", 31, hlo_category="infeed", bytes_accessed=1_000)
    kernel = _op(plane, "custom-call.9", 32, hlo_category="custom-call", tf_op="jit(step)/attention/flash:")
    inside = [(matmul, 10 * US, 40 * US), *((op, (52 + 4 * at) * US, 4 * US) for at, op in enumerate(copies))]
    return [(loop, 8 * US, 60 * US), *inside, (infeed, 70 * US, 5 * US), (kernel, 76 * US, 12 * US)]


def op_space() -> XSpace:
    """Two cores that run `jit_init` once and two steps of `jit_step`, and a host with input ops."""
    space = XSpace()
    for ordinal in range(2):
        plane = PlaneBuilder(space, f"/device:TPU:{ordinal}", ordinal + 1)
        plane.stat("device_type_string", "TPU test")
        for name, value in PEAKS.items():
            plane.stat(name, value)
        steps, modules, ops = plane.line("Steps"), plane.line("XLA Modules"), plane.line("XLA Ops")
        fill = _op(
            plane,
            "broadcast.1",
            1,
            INIT_ID,
            hlo_category="broadcast",
            tf_op="jit(init)/broadcast_in_dim:",
            flops=0,
            bytes_accessed=50_000,
            memory_access_breakdown=traffic((WRITE, HBM, 50_000)),
        )
        plane.event(modules, plane.event_id(f"jit_init({INIT_ID})"), 0, 6 * US)
        plane.event(ops, fill, 0, 6 * US)
        plane.event(ops, 900_001, 6 * US, 1 * US)  # an op of which the profile has lost the metadata
        body = _while_body(plane)
        for step in range(2):
            begin = (10 + 100 * step) * US
            plane.event(steps, plane.event_id(str(step)), begin, 100 * US)
            plane.event(modules, plane.event_id(f"jit_step({STEP_ID})"), begin + 8 * US, 80 * US)
            for metadata_id, offset, duration in body:
                plane.event(ops, metadata_id, begin + offset, duration)
    host = PlaneBuilder(space, "/host:CPU", 9)
    thread = host.line("python")
    host.event(thread, host.event_id("Iterator::Root::Map"), 0, 30 * US)
    host.event(thread, host.event_id("Iterator::Root::Range"), 5 * US, 10 * US)
    host.event(thread, host.event_id("InfeedEnqueueTuple:InfeedEnqueueTuple"), 50 * US, 10 * US)
    return space


def empty_space() -> XSpace:
    """A host alone: no op, no device."""
    space = XSpace()
    PlaneBuilder(space, "/host:CPU", 1).line("python")
    return space


def pages_of(space: XSpace) -> Pages:
    trace = Trace.from_bytes(space.SerializeToString())
    summaries = [summarise(trace, "host0")]
    ops = ops_page(summaries)
    return Pages(
        ops=ops,
        op_profile=op_profile_page(ops),
        framework_ops=framework_ops_page(ops, [host_ops(trace)]),
        roofline=roofline_page(ops, summaries),
    )


@cache
def small_pages() -> Pages:
    return pages_of(op_space())


def fusions(ops: OpsPage) -> Mapping[int, Sequence[Instruction]]:
    """What is inside the fusions of `op_space`, by row of its ops page."""
    inside = (
        Instruction(
            name="convolution.7",
            opcode="convolution",
            shape="f32[128,256]{1,0}",
            operands=("p.0", "p.1"),
            expression="%convolution.7 = f32[128,256]{1,0} convolution(%p.0, %p.1)",
            framework_op="jit(step)/jvp(mlp)/dot_general",
            source="/src/model.py:12",
            is_fusion=False,
        ),
        Instruction(
            name="convert.8",
            opcode="convert",
            shape="bf16[128,256]{1,0}",
            operands=("convolution.7",),
            expression="%convert.8 = bf16[128,256]{1,0} convert(%convolution.7)",
            framework_op=None,
            source=None,
            is_fusion=False,
        ),
    )
    return {ops.table.name.index("fusion.7"): inside, ops.table.name.index("fusion.22"): inside[1:]}


def run_of(hosts: Sequence[str] = ("host0",)) -> Run:
    """The run that the pages are said to be of."""
    folder = "/logs/plugins/profile/2026_11_21_07_00_00"
    files = tuple(HostFile(host, f"{folder}/{host}.xplane.pb", 1_000, 1_795_230_000.0, False) for host in hosts)
    return Run("2026_11_21_07_00_00", folder, files, ())

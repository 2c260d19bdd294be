"""Made-up profiles of GPUs, and of JAX on the CPU, small enough to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from tests.support.build import PlaneBuilder, StatInput, session_at, write_run
from tpuprof.parsers.formats.proto.hlo_pb2 import HloProto
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.session.session import Session

US = 1_000_000

POOL = "tf_XLAEigen/1"
"""The thread of the ops of `cpu_profile`."""

_OPS = (  # name, opcode, framework op
    ("fusion.1", b"fusion", "jit(step)/mlp/add"),
    ("cublas-gemm.2", b"custom-call", "jit(step)/mlp/dot_general"),
    ("wrapped_tanh", b"fusion", "jit(step)/mlp/tanh"),
    ("all-reduce.3", b"all-reduce", "jit(step)/psum"),
    ("copy.4", b"copy", ""),
)


def hlo_plane(space: XSpace) -> None:
    """Adds program 7, ``jit_step``, with the ops of `_OPS`."""
    proto = HloProto()
    proto.hlo_module.name, proto.hlo_module.id = b"jit_step", 7
    computation = proto.hlo_module.computations.add(name=b"main", id=1)
    for number, (name, opcode, framework_op) in enumerate(_OPS, 1):
        instruction = computation.instructions.add(name=name.encode(), opcode=opcode, id=number)
        instruction.metadata.op_name = framework_op.encode()
        instruction.fusion_kind = b"kLoop" if opcode == b"fusion" else b""
        instruction.metadata.source_file, instruction.metadata.source_line = b"model.py", 10 + number
    stats: dict[str, StatInput] = {"Hlo Proto": proto.SerializeToString(), "program_id": 7}
    PlaneBuilder(space, "/host:metadata", 0).event_id("jit_step(7)", "", **stats)


_KERNELS = (  # name, HLO op, from, to, launch
    ("MemcpyH2D", "", 20, 32, ""),
    ("input_fusion_1", "fusion.1", 40, 62, "regs:32 static_shared:0 grid:1024,1,1 block:128,1,1 occ_pct:100"),
    (
        *("void cutlass::Kernel<cutlass_80_tensorop_f16_s16816gemm_f16_128x128>(Params)", "cublas-gemm.2", 62, 118),
        "regs:230 static_shared:0 dynamic_shared:73728 grid:32,8,1 block:128,1,1 occ_pct:12.5",
    ),
    ("wrapped_tanh", "wrapped_tanh", 130, 141, "regs:24 static_shared:0 grid:512,1,1 block:128,1,1 occ_pct:93.75"),
    ("ncclDevKernel_AllReduce_Sum_f16(ncclDevComm*)", "all-reduce.3", 141, 160, "regs:96 grid:24,1,1 block:512,1,1"),
    ("MemcpyD2H", "", 170, 176, ""),
)


def gpu_profile(steps: int = 4, gpus: int = 2) -> XSpace:
    """GPUs that run the steps of a host, 240 us apart: copies, kernels, launches and some Python."""
    space = XSpace()
    hlo_plane(space)
    host = PlaneBuilder(space, "/host:CPU", 9)
    python = host.line("python")
    planes = []
    for ordinal in range(gpus):
        plane = PlaneBuilder(space, f"/device:GPU:{ordinal}", ordinal + 1)
        for stat, value in (("device_vendor", "Nvidia"), ("compute_cap_major", 8), ("compute_cap_minor", 0)):
            plane.stat(stat, value)
        plane.stat("memory_bandwidth", 2_039_000_000_000)
        planes.append((plane, plane.line("Stream #13(Compute)")))
    for step in range(steps):
        begin = 240 * step
        host.event(python, host.event_id("train"), begin * US, 200 * US, _r=1, step_num=step + 100)
        host.event(python, host.event_id("load_batch"), (begin + 5) * US, 12 * US)
        for number, (name, op, start, end, details) in enumerate(_KERNELS):
            correlation = 100 * step + number
            launch = host.event_id("cuLaunchKernel" if op else "cuMemcpyAsync")
            at = begin + (18, 34, 36, 112, 124, 142)[number]
            host.event(python, launch, at * US, 2 * US, correlation_id=correlation)
            for ordinal, (plane, line) in enumerate(planes):
                stats: dict[str, StatInput] = {"correlation_id": correlation}
                stats |= {"hlo_op": op, "program_id": 7, "tf_op": "XlaModule:"} if op else {}
                stats |= {"kernel_details": details} if details else {}
                later = begin + ordinal
                plane.event(line, plane.event_id(name), (later + start) * US, (end - start) * US, **stats)
    return space


def cpu_profile(
    steps: int,
    inside: Sequence[tuple[str, int, int]],
    ops: Sequence[tuple[str, int, int]] = (),
    hlo: bool = False,
    has_runs: bool = False,
    numbers_runs: bool = True,
    beside: Mapping[str, Sequence[tuple[str, int, int]]] = MappingProxyType({}),
) -> XSpace:
    """A host alone: steps of 100 us, 150 apart, each with these events on its thread, and these ops on another one.

    Args:
        has_runs: whether ops name the run of the program that they are of, one in each step.
        beside: events of each step on more threads, or on that of the ops (`POOL`).
        numbers_runs: whether each run has a number of its own, and not -1, as those of TensorFlow have.
    """
    space = XSpace()
    if hlo:
        hlo_plane(space)
    host = PlaneBuilder(space, "/host:CPU", 1)
    python, pool = host.line("python"), host.line(POOL)
    others = [(pool if name == POOL else host.line(name), events) for name, events in beside.items()]
    for step in range(steps):
        begin = 150 * step
        for line, name, start, end in ((line, *event) for line, events in others for event in events):
            host.event(line, host.event_id(name), (begin + start) * US, (end - start) * US)
        host.event(python, host.event_id("train"), begin * US, 100 * US, _r=1, step_num=step + 20)
        for name, start, end in inside:
            host.event(python, host.event_id(name), (begin + start) * US, (end - start) * US)
        for name, start, end in ops:
            stats: dict[str, StatInput] = {"hlo_op": name, "hlo_module": "jit_step", "program_id": 7}
            stats |= {"run_id": step + 1 if numbers_runs else -1, "device_ordinal": 0} if has_runs else {}
            host.event(pool, host.event_id(name), (begin + start) * US, (end - start) * US, **stats)
    return space


def session_of(space: XSpace, folder: Path) -> Session:
    """A session over a profile in a folder's run."""
    return session_at(write_run(folder, host0=space))

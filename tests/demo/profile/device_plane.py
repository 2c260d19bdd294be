"""`/device:TPU:n`: modules, ops, asynchronous ops and steps of one core."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np

from tests.demo.profile import encode, hlo_cost
from tests.demo.profile.hlo_module import Module
from tests.demo.profile.planes import PlaneWriter, StatValue, Uint
from tests.demo.profile.schedule import QUANTUM_PS, V5E, Device, Op, Template, Times
from tests.demo.profile.timeline import Launch, Timeline
from tpuprof.parsers.formats.proto.xplane_pb2 import CoreDetails, MemoryAccessBreakdown

LAUNCHES_A_BLOCK = 32
CONSUMER_TYPE = 12
"""What real profiles have in `_ct`/`_pt` between a program's enqueueing and its run."""

CHILDREN_OF = "convolution fusion"


def link_id(host: int, run_id: int, core: int) -> int:
    """The id that ties an execution to the host event that enqueued it: any 64 bits, equal on both sides."""
    digest = hashlib.sha256(f"{host}/{run_id}/{core}".encode()).digest()
    return int.from_bytes(digest[:8], "little", signed=True)


def device_plane(timeline: Timeline, core: int, device: Device = V5E) -> PlaneWriter:
    plane = PlaneWriter(f"/device:TPU:{core}", 2 + 8 * core)
    plane.plane_stats(device_stats(device, core, timeline.host * timeline.spec.cores + core))
    shared = plane.event_id("dependency-wait"), plane.event_id("barrier-cores")
    own = [_own_metadata(plane, plan) for plan in timeline.programs]
    _steps(plane, timeline, core)
    _modules(plane, timeline, core)
    _ops(plane, timeline, core, own)
    if core == 0:  # real profiles trace asynchronous ops on one core
        _async_ops(plane, timeline, core, [_async_metadata(plane, plan) for plan in timeline.programs])
    else:
        plane.line("Async XLA Ops", 4)
    plane.line("Overlay", 7)
    _trace_me(plane, timeline, core, shared)
    return plane


def device_stats(device: Device, core: int, number: int) -> dict[str, StatValue]:
    """What a plane says of its core, one of its host and, by another number, of all."""
    details = CoreDetails(device_ordinal=core, local_chip_id=core, global_chip_id=number, global_core_id=number)
    return {
        "core_details": details.SerializeToString(deterministic=True),
        "device_type_string": device.kind,
        "peak_teraflops_per_second": device.flops / 1e12,
        "peak_hbm_bw_gigabytes_per_second": device.hbm_bytes / 1e9,
        "peak_cmem_rd_bw_gigabytes_per_second": 0.0,
        "peak_cmem_wr_bw_gigabytes_per_second": 0.0,
        "peak_vmem_rd_bw_gigabytes_per_second": device.vmem_read_bytes / 1e9,
        "peak_vmem_wr_bw_gigabytes_per_second": device.vmem_write_bytes / 1e9,
        "peak_sram_rd_bw_gigabytes_per_second": device.vmem_read_bytes / 1e9,
        "peak_sram_wr_bw_gigabytes_per_second": device.vmem_write_bytes / 1e9,
        "has_megacore": 0,
        "has_merged_vmem": 1,
    }


def _own_metadata(plane: PlaneWriter, plan: Template) -> list[int]:
    """Metadata ids of a program's ops."""
    own = []
    for op in plan.ops:
        name = op.instruction.name.decode()
        entry = plane.new_metadata(plan.module.text(op.instruction), name, op_stats(plan.module, op))
        own.append(entry.id)
        if op.category == CHILDREN_OF:
            entry.child_id.extend(_children(plane, plan.module, op.instruction))
    return own


def _async_metadata(plane: PlaneWriter, plan: Template) -> dict[int, int]:
    """Op number of each asynchronous start → metadata id of what it shows on the asynchronous line."""
    ids = {}
    for number in dict.fromkeys(plan.event_ops[start] for start, _ in plan.pairs):
        op = plan.ops[number]
        name = f"async-{op.category.removesuffix('-start').replace('custom fusion', 'collective')}"
        ids[number] = plane.new_metadata(plan.module.text(op.instruction), name, op_stats(plan.module, op)).id
    return ids


def _children(plane: PlaneWriter, module: Module, fusion: hlo_cost.Instruction) -> Iterator[int]:
    """Entries for the fused instructions that compute something, with their FLOPs."""
    for inner in module.called(fusion)[0].instructions:
        if inner.opcode == b"fusion":
            yield from _children(plane, module, inner)
            continue
        flops = hlo_cost.flops(module, inner)
        if flops >= 1 << 26:
            stats: dict[str, StatValue] = {
                "hlo_category": "convolution" if inner.opcode == b"convolution" else hlo_cost.category(module, inner),
                "program_id": Uint(module.program_id),
                "symbol_id": Uint(module.symbols[inner.id]),
                "flops": flops,
                "model_flops": flops,
            }
            yield plane.new_metadata(module.text(inner), inner.name.decode(), stats).id


def op_stats(module: Module, op: Op) -> dict[str, StatValue]:
    instruction = op.instruction
    breakdown = MemoryAccessBreakdown()
    for operation, space, size in (
        (1, 1, op.traffic.hbm_read),
        (2, 1, op.traffic.hbm_written),
        (1, 3, op.traffic.vmem_read),
        (2, 3, op.traffic.vmem_written),
    ):
        if size:
            breakdown.memory_accessed.add(operation_type=operation, memory_space=space, bytes_accessed=size)
    stats: dict[str, StatValue] = {
        "hlo_category": op.category,
        "program_id": Uint(module.program_id),
        "symbol_id": Uint(module.symbols[instruction.id]),
        "flops": op.flops,
        "model_flops": op.flops,
        "bytes_accessed": op.traffic.total,
        "memory_access_breakdown": breakdown.SerializeToString(deterministic=True),
    }
    stack = module.stack(instruction)
    if stack:
        stats["source"] = stack[-1]
        stats["source_stack"] = "\n".join(stack)
    stats["raw_bytes_accessed"] = op.traffic.total
    stats["shape_with_layout"] = (
        module.text(instruction).split(" = ", 1)[1].split(f" {instruction.opcode.decode()}(")[0]
    )
    if instruction.metadata.op_name:
        stats["tf_op"] = instruction.metadata.op_name.decode() + ":"
    name = module.deduplicated_names.get(instruction.id)
    if name:
        stats["deduplicated_name"] = name
    return stats


def _steps(plane: PlaneWriter, timeline: Timeline, core: int) -> None:
    line = plane.line("Steps", 1)
    for step in timeline.steps:
        plane.event(line, str(step.number), step.core_begin[core], step.core_end[core])


def _launches(timeline: Timeline) -> list[Launch]:
    return [launch for step in timeline.steps for launch in step.launches]


def _modules(plane: PlaneWriter, timeline: Timeline, core: int) -> None:
    line = plane.line("XLA Modules", 2)
    for launch in _launches(timeline):
        name = timeline.programs[launch.program].module.full_name
        stats: dict[str, StatValue] = {
            "run_id": Uint(launch.run_id),
            "replica_id": 0,
            "queue_id": Uint(0),
            "core_type": Uint(0),
            "_ct": CONSUMER_TYPE,
            "_c": link_id(timeline.host, launch.run_id, core),
        }
        plane.event(line, name, launch.begin[core], launch.end[core], stats)


def _ops(plane: PlaneWriter, timeline: Timeline, core: int, ids: list[list[int]]) -> None:
    """All op events, encoded a block of launches at a time."""
    offset_id, duration_id = plane.stat_id("device_offset_ps"), plane.stat_id("device_duration_ps")
    meeting_id = plane.stat_id("all_reduce_unique_id")
    rows = [np.array(table, np.uint64)[plan.event_ops] for table, plan in zip(ids, timeline.programs, strict=True)]
    meets = [np.array([plan.ops[op].category == "all-reduce" for op in plan.event_ops]) for plan in timeline.programs]
    launches = _launches(timeline)
    chunks: list[bytes] = []
    for first in range(0, len(launches), LAUNCHES_A_BLOCK):
        block = launches[first : first + LAUNCHES_A_BLOCK]
        metadata = np.concatenate([rows[launch.program] for launch in block])
        offset = np.concatenate([_event_begins(timeline, launch, core) for launch in block]).astype(np.uint64)
        duration = np.concatenate(
            [timeline.runs[launch.program].duration[:, launch.run, core] for launch in block]
        ).astype(np.uint64)
        present = np.concatenate([meets[launch.program] for launch in block])
        counts = np.concatenate([launch.run_id * 64 + np.cumsum(meets[launch.program]) for launch in block])
        unique = (counts.astype(np.uint64) << np.uint64(16)) | np.uint64(1)
        stats = [
            encode.StatColumn(offset_id, encode.UINT64_VALUE, offset),
            encode.StatColumn(duration_id, encode.UINT64_VALUE, duration),
            encode.StatColumn(meeting_id, encode.UINT64_VALUE, unique, present),
        ]
        chunks += encode.events(metadata, offset, duration, stats)
    plane.add_line_bytes("XLA Ops", 3, chunks)


def _event_begins(timeline: Timeline, launch: Launch, core: int) -> Times:
    return timeline.runs[launch.program].start[:, launch.run, core] + launch.begin[core]


def _async_ops(plane: PlaneWriter, timeline: Timeline, core: int, ids: list[dict[int, int]]) -> None:
    """From the issue of each asynchronous op to the end of its wait."""
    chunks: list[bytes] = []
    flow = 616_168_039 + 8 * timeline.host
    names = [plane.stat_id(name) for name in ("hlo_op", "_a", "flow", "id")]
    for launch in _launches(timeline):
        plan, runs = timeline.programs[launch.program], timeline.runs[launch.program]
        starts, dones = np.array(plan.pairs).T
        begins = _event_begins(timeline, launch, core)
        ends = begins[dones] + runs.duration[dones, launch.run, core]
        order = np.argsort(begins[starts], kind="stable")
        done_names = np.array(
            [plane.stat_id(plan.ops[plan.event_ops[done]].instruction.name.decode()) for done in dones]
        )
        flows = flow + 4 * np.arange(len(starts))
        flow += 4 * len(starts)
        values = (done_names, np.ones(len(starts)), flows, 2 * (flows // 4 % 8))
        fields = (encode.REF_VALUE, encode.INT64_VALUE, encode.UINT64_VALUE, encode.UINT64_VALUE)
        stats = [
            encode.StatColumn(key, kind, value[order].astype(np.uint64))
            for key, kind, value in zip(names, fields, values, strict=True)
        ]
        metadata = np.array([ids[launch.program][plan.event_ops[start]] for start in starts], np.uint64)
        chunks += encode.events(
            metadata[order],
            begins[starts][order].astype(np.uint64),
            (ends - begins[starts])[order].astype(np.uint64),
            stats,
        )
    plane.add_line_bytes("Async XLA Ops", 4, chunks)


def _trace_me(plane: PlaneWriter, timeline: Timeline, core: int, shared: tuple[int, int]) -> None:
    line = plane.line("XLA TraceMe", 6)
    for launch in _launches(timeline):
        begin = launch.begin[core]
        meet = max(launch.begin) - begin
        line.events.add(metadata_id=shared[0], offset_ps=begin + 78, duration_ps=1_094)
        line.events.add(metadata_id=shared[1], offset_ps=begin + QUANTUM_PS, duration_ps=meet + QUANTUM_PS)

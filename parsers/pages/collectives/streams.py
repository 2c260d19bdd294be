"""The collectives of GPUs, and of the host's CPU in a profile without a device: kernels and ops on streams and threads.

Each event of one is a whole transfer: the runtime runs both halves of an asynchronous collective as one kernel. It is
hidden where another stream or thread of the same device computes meanwhile. A loop on a host thread lasts for all of
its ops, so only ops that hold no other count. A program on the CPU may have several devices, whose number stands at
each of its ops.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tpuprof.parsers.base.intervals import Bools, Int64s, distinct, no_ints
from tpuprof.parsers.base.op_class import COLLECTIVE_KINDS
from tpuprof.parsers.files.core_names import core_label
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Trace
from tpuprof.parsers.ops.device import device_ordinal, op_class
from tpuprof.parsers.ops.framework_op import pass_of
from tpuprof.parsers.ops.host_events.events import HostThread, read_threads
from tpuprof.parsers.ops.streams.attribution import OP_STATS, StreamOp
from tpuprof.parsers.ops.streams.devices import DEVICE, StreamDevice, cpu_device, read_gpus, runs_on_cpu
from tpuprof.parsers.pages.collectives.host_sums import DEVICES, Collective, CoreCollectives, summed
from tpuprof.parsers.pages.collectives.instruction import PARTITION_ID, read_instruction
from tpuprof.parsers.pages.collectives.transfers import TimeUntil, TransferOverlap, Transfers


def stream_collectives(trace: Trace, host: str, on_chunk: ChunkDone | None) -> dict[str, CoreCollectives]:
    """The collectives of each GPU, or of each of the program's devices on the host's CPU, by name: ``host:2``."""
    plane, modules = runs_on_cpu(trace), HloModules.of(trace)
    if plane is None:
        gpus = read_gpus(trace, (), on_chunk)
        return {
            core_label(host, device_ordinal(gpu.plane)): _device(
                gpu, modules, [np.ones(len(stream), np.bool_) for stream in gpu.streams]
            )
            for gpu in gpus
            if any(map(len, gpu.streams))
        }
    cpu = cpu_device(trace, plane, list(read_threads(plane, (*OP_STATS, DEVICE), on_chunk)))
    if cpu is None:
        return {}
    devices = [thread.integers(DEVICE, 0) for thread in cpu.streams]
    return {
        core_label(host, number): _device(cpu, modules, [of == number for of in devices])
        for number in distinct(np.concatenate(devices)).tolist()
    }


def _device(device: StreamDevice, modules: HloModules, chosen: list[Bools]) -> CoreCollectives:
    """The collectives of a device.

    Args:
        chosen: for each stream which of its events are the device's.
    """
    ops = device.attribution.ops
    moves = np.array(
        [op_class(op.category, op.name) == "collective" and op.category != PARTITION_ID for op in ops], np.bool_
    )
    used = [op for number, op in enumerate(ops) if moves[number]]
    place_of = np.cumsum(moves) - 1
    parts, work, span = [], [(no_ints(), no_ints())], [no_ints()]
    for stream, number, mine in _leaves(device, chosen):
        moving = mine & moves[number]
        start, end = stream.start_ps[moving], stream.end_ps[moving]
        parts.append(Transfers(place_of[number[moving]], start, end, end - start, start))
        work.append((stream.start_ps[mine & ~moves[number]], stream.end_ps[mine & ~moves[number]]))
        span += [stream.start_ps[mine], stream.end_ps[mine]]
    transfers = Transfers.joined(parts)
    busy = TimeUntil.within(*(np.concatenate(column) for column in zip(*work, strict=True)))
    overlap = TransferOverlap(transfers, busy, TimeUntil.within(transfers.begin_ps, transfers.end_ps))
    collectives = tuple(_collective(op, modules) for op in used)
    times = np.concatenate(span)
    whole = (times.min(keepdims=True), times.max(keepdims=True)) if len(times) else (no_ints(), no_ints())
    return summed(collectives, transfers, overlap, (no_ints(), no_ints()), whole)


def _leaves(device: StreamDevice, chosen: list[Bools]) -> Iterator[tuple[HostThread, Int64s, Bools]]:
    """Each stream, the number of each event's op, and which of its events are the device's and hold no other."""
    columns = zip(device.streams, device.attribution.numbers, device.leaves(), chosen, strict=True)
    for stream, number, is_leaf, mine in columns:
        yield stream, number, is_leaf & mine


def _collective(op: StreamOp, modules: HloModules) -> Collective:
    """What the compiler says of it, or the name of its kernel where no program is known."""
    module = modules.module(op.program) if op.expression else None
    read = read_instruction(op.category, op.name, op.expression, module)
    words = op.name.lower().replace("_", "").replace("-", "")
    by_name = next((kind for kind in COLLECTIVE_KINDS if kind.replace("-", "") in words), read.kind)
    kind = read.kind if read.kind in COLLECTIVE_KINDS else by_name
    framework_op = op.framework_op
    return Collective(
        op.program, op.name, DEVICES, kind, read.groups, pass_of(framework_op, False), False, read.payload, framework_op
    )

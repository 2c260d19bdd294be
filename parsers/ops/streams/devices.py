"""What runs ops in streams: GPUs, and the host's CPU in a profile without a device."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from tpuprof.parsers.base.intervals import Bools, Int64s, distinct, in_nesting_order, no_ints, positions, union_length
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.formats.xspace.core.api import nest, self_times
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Plane, Trace
from tpuprof.parsers.ops import device
from tpuprof.parsers.ops.core.ops import op_table, totals_of
from tpuprof.parsers.ops.host_events.events import HOST_PLANE, HostThread, SparseStat, read_threads
from tpuprof.parsers.ops.streams.attribution import OP_STATS, Attribution, StreamOp, attributed
from tpuprof.parsers.ops.streams.kernels import KERNEL_STATS, Kernel, gpu_kernels
from tpuprof.parsers.ops.table import OpTable


@dataclass(frozen=True, slots=True)
class StreamSums:
    """What the events of one device's streams add up to.

    Attributes:
        table: time by op.
        op_events: number of events.
        span_ps: from the first event to the last; idle_ps: of that, when none ran.
    """

    table: OpTable
    op_events: int
    span_ps: int
    idle_ps: int

    @property
    def total_ps(self) -> int:
        """The time of the ops, and idle time."""
        return int(self.table.self_ps.sum()) + self.idle_ps


def stream_sums(streams: Sequence[HostThread], attribution: Attribution, *, nested: bool = False) -> StreamSums:
    """Adds up the events of the streams of one device: a row an op, as of a TPU's core.

    Streams and threads run side by side. So the time of ops is theirs added up, and idle is the time in which no event
    of any stream runs: the whole time is both together, which is the time from the first event to the last where
    streams take turns. XProf takes that time for the whole even where they overlap, and for idle what the ops leave of
    it. The share of idle time is of the time from the first event to the last.

    Args:
        attribution: the ops of all their events.
        nested: whether events lie inside one another, as on host threads, and not only side by side.
    """
    start, end, number, own = (
        np.concatenate(column) for column in zip(*_columns(streams, attribution, nested), strict=True)
    )
    used, key = np.unique(number, return_inverse=True)
    totals = totals_of(key, np.arange(1, len(used) + 1, dtype=np.int64), end - start, own, {})
    ops = [attribution.ops[place] for place in used.tolist()]
    table = op_table(_described(ops), totals)
    symbol = np.array([op.symbol for op in ops], np.uint64)
    if symbol.any():  # ops whose program's name alone is known stay apart from those of that name in other programs
        table = replace(table, symbol_id=symbol, has_ids=symbol > 0)
    span = int(end.max()) - int(start.min()) if len(start) else 0
    return StreamSums(table, len(start), span, max(0, span - union_length(start, end)))


def _columns(
    streams: Sequence[HostThread], attribution: Attribution, nested: bool
) -> list[tuple[Int64s, Int64s, Int64s, Int64s]]:
    """Start, end, op and self time of the events of each stream; at least one part."""
    none = no_ints()
    parts = [(none, none, none, none)]
    for stream, of_stream in zip(streams, attribution.numbers, strict=True):
        start, end, number = stream.start_ps, stream.end_ps, of_stream
        if nested:
            start, end, number = in_nesting_order(start, end, number)
        parts.append((start, end, number, self_times(start, end) if nested else end - start))
    return parts


def _described(ops: Sequence[StreamOp]) -> Plane:
    """A plane whose event metadata describes ops, numbered from 1 on, as a TPU's plane describes its own."""
    from tpuprof.parsers.formats.proto import xplane_pb2  # noqa: PLC0415 - profiles of TPUs have no need of it here

    space = xplane_pb2.XSpace()
    plane = space.planes.add(name=b"ops")
    texts = ("hlo_category", "tf_op", "source", "source_stack", "deduplicated_name", "shape_with_layout")
    names = ("program_id", *texts)
    for stat, name in enumerate(names, 1):
        plane.stat_metadata[stat].id, plane.stat_metadata[stat].name = stat, name.encode()
    for number, op in enumerate(ops, 1):
        entry = plane.event_metadata[number]
        entry.id, entry.name, entry.display_name = number, _bytes(op.expression), _bytes(op.name)
        if op.program:
            entry.stats.add(metadata_id=1, uint64_value=op.program)
        values = op.category, op.framework_op, op.source, op.source_stack, op.deduplicated_name, op.shape
        for stat, value in enumerate(values, 2):
            if value:
                entry.stats.add(metadata_id=stat, str_value=_bytes(value))
    return Trace.from_bytes(space.SerializeToString()).planes[0]


def _bytes(words: str) -> bytes:
    return words.encode("utf-8", "replace")


GPU_STATS = (*OP_STATS, *KERNEL_STATS)
"""Stats to read of the events of GPUs."""

DEVICE = "device_ordinal"
"""Stat of an op on the host's CPU: which of the program's devices it is of."""

RUN = "run_id"
"""Stat of an op on the host's CPU: which run of the program it is of."""

CPU = "CPU"
"""The type of device where the host's own processor ran the ops."""


@dataclass(frozen=True, slots=True)
class StreamDevice:
    """A device and the events of its streams.

    Attributes:
        plane: the GPU's, or the host's.
        streams: what ran on it; the host's threads with those of their events alone that are ops.
        attribution: the ops of all events.
        info: the device.
    """

    plane: Plane
    streams: tuple[HostThread, ...]
    attribution: Attribution
    info: device.DeviceInfo

    @property
    def is_host(self) -> bool:
        return self.plane.name == HOST_PLANE

    def sums(self) -> StreamSums:
        """The time of its ops; on host threads these lie inside one another."""
        return stream_sums(self.streams, self.attribution, nested=self.is_host)

    def leaves(self) -> tuple[Bools, ...]:
        """For each stream which of its events hold no other: a loop on a host thread lasts for all of its ops."""
        return tuple(_leaves(stream) if self.is_host else np.ones(len(stream), np.bool_) for stream in self.streams)

    def only(self, devices: Sequence[int]) -> StreamDevice:
        """The host's CPU with what some of its devices ran; threads without any of that stay, and are empty."""
        rows = [np.isin(device_numbers(stream), devices).nonzero()[0] for stream in self.streams]
        streams = tuple(_only(stream, chosen) for stream, chosen in zip(self.streams, rows, strict=True))
        numbers = [number[chosen] for number, chosen in zip(self.attribution.numbers, rows, strict=True)]
        used = distinct(np.concatenate(numbers))
        ops = tuple(self.attribution.ops[op] for op in used.tolist())
        attribution = Attribution(ops, tuple(np.searchsorted(used, number) for number in numbers))
        return replace(self, streams=streams, attribution=attribution)

    def kernels(self) -> tuple[Kernel, ...]:
        return () if self.is_host else gpu_kernels(self.plane, self.streams, self.attribution)


def device_numbers(stream: HostThread) -> Int64s:
    """int64[n]: which of the program's devices each op on a thread of the host's CPU is of."""
    return np.maximum(stream.integers(DEVICE, 0), 0)


def _leaves(stream: HostThread) -> Bools:
    """bool[n]: which events of a thread hold no other."""
    start, end, rows = in_nesting_order(stream.start_ps, stream.end_ps, np.arange(len(stream)))
    parent = nest(start, end).parent
    out = np.ones(len(stream), np.bool_)
    out[rows[parent[parent >= 0]]] = False
    return out


def gpu_planes(trace: Trace) -> list[Plane]:
    """The GPUs of a profile; none where it has TPUs, which alone count then."""
    if any(plane.name.startswith("/device:TPU:") for plane in trace.planes):
        return []
    return sorted(filter(device.is_gpu, trace.planes), key=device.device_ordinal)


def read_gpus(trace: Trace, stats: Iterable[str] = (), on_chunk: ChunkDone | None = None) -> tuple[StreamDevice, ...]:
    """Decodes the streams of all GPUs.

    Args:
        stats: to read besides `GPU_STATS`.
    """
    modules = HloModules.of(trace)
    wanted = tuple(dict.fromkeys((*GPU_STATS, *stats)))
    read = [(plane, tuple(read_threads(plane, wanted, on_chunk))) for plane in gpu_planes(trace)]
    return tuple(
        StreamDevice(plane, streams, attributed(plane, streams, modules), device.device_info(plane))
        for plane, streams in read
    )


def runs_on_cpu(trace: Trace) -> Plane | None:
    """The host's plane, in a profile without a device where the host's threads ran HLO ops; else None."""
    plane = trace.plane(HOST_PLANE)
    has_device = any(
        device.is_tensor_core(other) or device.is_sparse_core(other) or device.is_gpu(other) for other in trace.planes
    )
    return plane if plane is not None and not has_device and plane.stat_ids(OP_STATS[:1]) else None


def cpu_device(trace: Trace, plane: Plane, threads: Sequence[HostThread]) -> StreamDevice | None:
    """The host's CPU as a device; None where no event is an op.

    Args:
        threads: of the host, decoded with `OP_STATS`.
    """
    name = OP_STATS[0]
    ran = tuple(_only(thread, thread.stat(name).rows) for thread in threads if len(thread.stat(name).rows))
    if not ran:
        return None
    attribution = attributed(plane, ran, HloModules.of(trace))
    cpu = StreamDevice(plane, ran, attribution, device.DeviceInfo(CPU, device.Peaks(), HOST_PLANE))
    return cpu.only(sorted(trace.devices)) if trace.devices else cpu


def _only(thread: HostThread, rows: Int64s) -> HostThread:
    """Some events of a thread."""
    stats = {}
    for name in (*OP_STATS, DEVICE, RUN):
        stat = thread.stat(name)
        place = positions(stat.rows, rows)
        kept = (place >= 0).nonzero()[0]
        if len(kept):
            stats[name] = SparseStat(place[kept], stat.values.take(kept))
    return HostThread(thread.line, thread.metadata_id[rows], thread.start_ps[rows], thread.end_ps[rows], stats)


def streams_of(trace: Trace, on_chunk: ChunkDone) -> tuple[StreamDevice, ...]:
    """The GPUs of a profile without TPUs, or the host's CPU of one without a device, where it ran ops."""
    host = runs_on_cpu(trace)
    if host is None:
        return read_gpus(trace, (), on_chunk)
    cpu = cpu_device(trace, host, list(read_threads(host, OP_STATS, on_chunk)))
    return (cpu,) if cpu is not None else ()

"""What one host adds to the page of a TPU's kernels: the runs of each kernel, and the spans inside them."""

from __future__ import annotations

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.files.places import HostFile
from tpuprof.parsers.formats.thread_pool import ThreadPool
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Plane, Trace
from tpuprof.parsers.hosts.reduction import Reduction
from tpuprof.parsers.ops.core.calls import CallRuns, core_calls, merged_calls
from tpuprof.parsers.ops.core.ops import OPS_LINE, TRACE_ME_LINE
from tpuprof.parsers.ops.device import tensor_cores


@dataclass(frozen=True, slots=True)
class HostCalls:
    """The kernels of a host, over its cores."""

    host: str
    calls: tuple[CallRuns, ...]


def _needed_bytes(trace: Trace) -> int:
    lines = (line for plane in tensor_cores(trace) for line in plane.lines)
    return sum(line.size for line in lines if line.name in (OPS_LINE, TRACE_ME_LINE))


def _reduce(trace: Trace, file: HostFile, given: None, on_chunk: ChunkDone, threads: int) -> HostCalls:
    def of_core(plane: Plane) -> tuple[CallRuns, ...]:
        return tuple(core_calls(plane, on_chunk))

    with ThreadPool(threads) as pool:
        cores = pool.map(of_core, tensor_cores(trace))
    return HostCalls(file.label, merged_calls(call for core in cores for call in core))


CALLS_OF_HOST = Reduction("kernel-calls", HostCalls, _needed_bytes, _reduce)
"""The kernels of a host."""

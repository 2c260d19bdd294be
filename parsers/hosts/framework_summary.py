"""What one host adds to the page of framework ops: sums by op, and the framework ops of its threads."""

from __future__ import annotations

from tpuprof.parsers.base.record import dataclass, fields
from tpuprof.parsers.files.places import HostFile
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Trace
from tpuprof.parsers.hosts import op_summary
from tpuprof.parsers.hosts.op_summary import OPS_OF_HOST, OpSummary, summarise_ops
from tpuprof.parsers.hosts.reduction import Reduction
from tpuprof.parsers.ops.host_events.events import HOST_PLANE, read_threads, thread_lines
from tpuprof.parsers.ops.host_events.ops import HostOps, HostOpsReader, merge_host_ops


@dataclass(frozen=True, slots=True)
class FrameworkOpsSummary(OpSummary):
    """What the page of framework ops needs of one host.

    Attributes:
        host_ops: framework ops of the host's threads.
    """

    host_ops: HostOps


def needed_bytes(trace: Trace) -> int:
    """Bytes of the ops' lines and of the host's threads."""
    host = trace.plane(HOST_PLANE)
    threads = 0 if host is None else sum(line.size for line in thread_lines(host))
    return op_summary.needed_bytes(trace) + threads


def _reduce(trace: Trace, file: HostFile, given: None, on_chunk: ChunkDone, threads: int) -> FrameworkOpsSummary:
    ops = summarise_ops(trace, file, given, on_chunk, threads)
    known = {field.name: getattr(ops, field.name) for field in fields(ops)}
    return FrameworkOpsSummary(**known, host_ops=_host_ops(trace, on_chunk))


FRAMEWORK_OPS_OF_HOST = Reduction(
    "framework-ops",
    FrameworkOpsSummary,
    needed_bytes,
    _reduce,
    tables=("table",),
    includes=OPS_OF_HOST,
    given_by=("summary", "collectives", "steps"),
)
"""What the page of framework ops needs of a host."""


def _host_ops(trace: Trace, on_chunk: ChunkDone) -> HostOps:
    """The framework ops of the host's threads; none without them."""
    plane = trace.plane(HOST_PLANE)
    if plane is None:
        return merge_host_ops([])
    reader = HostOpsReader(plane)
    for thread in read_threads(plane, reader.stats, on_chunk) if reader.has_ops else ():
        reader.take(thread)
    return reader.ops()

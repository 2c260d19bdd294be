"""A host's threads and framework ops by themselves, which the program reads in one pass (`read_host_side`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.support.build import PlaneBuilder, Span, present, trace_of
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Trace
from tpuprof.parsers.ops.host_events.events import HOST_PLANE, HostEvents, read_threads
from tpuprof.parsers.ops.host_events.ops import HostOps, HostOpsReader, merge_host_ops


def read_host(trace: Trace, stats: Sequence[str] = ()) -> HostEvents | None:
    """Decodes the host's threads; None for a profile without a host plane."""
    plane = trace.plane(HOST_PLANE)
    if plane is None:
        return None
    return HostEvents(plane, tuple(read_threads(plane, stats)))


def host_of(*threads: Iterable[Span], stats: Sequence[str] = ()) -> HostEvents:
    """A host whose threads ran events of a name, start and end, as it is read."""
    return present(read_host(trace_of(PlaneBuilder.alone("/host:CPU").threads(threads).space), stats))


def host_ops(trace: Trace, on_chunk: ChunkDone | None = None) -> HostOps:
    """Framework ops of the host's threads; empty without a host plane."""
    plane = trace.plane(HOST_PLANE)
    if plane is None:
        return merge_host_ops([])
    reader = HostOpsReader(plane)
    for thread in read_threads(plane, reader.stats, on_chunk):
        reader.take(thread)
    return reader.ops()

"""A host's threads, read once: framework ops, what they do for input, and the events while they are needed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tpuprof.parsers.formats.xspace.trace import ChunkDone, Trace
from tpuprof.parsers.ops.host.events import HOST_PLANE, HostEvents, read_threads
from tpuprof.parsers.ops.host.input_events import INPUT_STATS, InputRows, input_rows, input_waits, merge_input_rows
from tpuprof.parsers.ops.host.ops import HostOps, HostOpsReader, merge_host_ops
from tpuprof.parsers.steps.duty import Intervals
from tpuprof.parsers.steps.groups.groups import GROUP_STATS
from tpuprof.parsers.steps.requests.requests import REQUEST_STATS


@dataclass(frozen=True, slots=True)
class HostSide:
    """What one pass over a host's threads gives.

    Attributes:
        events: all threads; None without a host plane.
        ops: framework ops.
        waits: disjoint intervals in order, in which a thread waited for input or sent it.
        input_rows: what the host did for input that is no framework op.
    """

    events: HostEvents | None
    ops: HostOps
    waits: Intervals
    input_rows: InputRows


def read_host_side(trace: Trace, on_chunk: ChunkDone | None = None) -> HostSide:
    """Decodes the host's threads."""
    plane = trace.plane(HOST_PLANE)
    none = np.zeros(0, np.int64)
    if plane is None:
        return HostSide(None, merge_host_ops([]), (none, none), merge_input_rows([]))
    reader = HostOpsReader(plane)
    stats = tuple(dict.fromkeys((*reader.stats, *GROUP_STATS, *INPUT_STATS, *REQUEST_STATS)))
    threads = []
    for thread, decoded in read_threads(plane, stats, on_chunk):
        reader.take(thread, decoded)
        threads.append(thread)
    events = HostEvents(plane, tuple(threads))
    return HostSide(events, reader.ops(), input_waits(events), input_rows(events))

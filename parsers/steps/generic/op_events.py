"""The events of XLA's ops on the CPU of a host, and how long each of the program's devices computes and waits."""

from __future__ import annotations

import numpy as np

from tpuprof.parsers.base.intervals import Columns, Int64s, Intervals, overlap, union
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.ops.device import device_ordinal, op_class
from tpuprof.parsers.ops.streams.attribution import StreamOp
from tpuprof.parsers.ops.streams.devices import RUN, StreamDevice, device_numbers
from tpuprof.parsers.steps.accounts.cpu import DeviceTimes

NO_RUN = -1
"""The run of an event without a number; TensorFlow gives it to all of them."""

COMPUTES, COLLECTIVE, CALLBACK, HOLDS_OPS, COPIES = range(5)
"""What an event is: of an op that computes, moves data between devices, or calls the host's Python; a loop's, which
lasts for all of its ops; or a copy of a GPU, which is no op."""


@dataclass(frozen=True, slots=True)
class OpEvents(Columns):
    """The events of ops on all threads: int64[n] each.

    Attributes:
        op: place of the op among those of the CPU; start, end: when it ran.
        device, run: which of the program's devices, and which of its runs.
        kind: what it is.
    """

    op: Int64s
    start: Int64s
    end: Int64s
    device: Int64s
    run: Int64s
    kind: Int64s

    def when(self, *kinds: int) -> Intervals:
        """When some thread ran an op of these kinds: disjoint intervals in order."""
        chosen = np.isin(self.kind, kinds)
        return union(self.start[chosen], self.end[chosen])


def op_events(cpu: StreamDevice | None) -> OpEvents:
    """The events of the ops that ran on a CPU or GPU; none where it is None."""
    parts = []
    if cpu is not None:
        of_op = np.array([_kind(op) for op in cpu.attribution.ops], np.int64)
        for stream, op, is_leaf in zip(cpu.streams, cpu.attribution.numbers, cpu.leaves(), strict=True):
            run, number = stream.integers(RUN, NO_RUN), device_ordinal(cpu.plane)
            device = device_numbers(stream) if cpu.is_host else np.full(len(stream), number, np.int64)
            kind = np.where(is_leaf, of_op[op], HOLDS_OPS)
            parts.append(OpEvents(op, stream.start_ps, stream.end_ps, device, run, kind))
    return OpEvents.joined(parts)


def _kind(op: StreamOp) -> int:
    if op.is_callback:
        return CALLBACK
    if op.category.startswith("memcpy"):
        return COPIES
    return COLLECTIVE if op_class(op.category, op.name) == "collective" else COMPUTES


def device_times(ops: OpEvents, steps: Intervals, numbers: Int64s) -> DeviceTimes | None:
    """What each of some devices does in the steps; None without any."""
    if not len(numbers):
        return None
    of_devices = [ops.take(ops.device == number) for number in numbers]
    computing = np.stack([overlap(*steps, *of.when(COMPUTES, CALLBACK)) for of in of_devices])
    moving = np.stack([overlap(*steps, *of.when(COLLECTIVE)) for of in of_devices])
    least = moving.min(axis=0, initial=np.iinfo(np.int64).max, where=moving > 0)
    return DeviceTimes(tuple(numbers.tolist()), computing, np.maximum(moving - least, 0))

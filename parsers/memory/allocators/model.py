"""What the memory profile is made of: allocators, their memory over time, and what was allocated at the peak."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Floats, Int64s, no_ints
from tpuprof.parsers.base.record import Sized, dataclass, field


@dataclass(frozen=True, slots=True)
class ActiveAllocation:
    """Memory in use at the peak; equal ones are counted together.

    Attributes:
        framework_op: which op asked for it; ``stack`` and ``unused preallocated device memory`` for memory that no
            allocation in the profile stands for.
        occurrences: how many equal ones.
        allocated_bytes, requested_bytes: of each; what the allocator gave, what it was asked for.
        region: ``temp``, ``output``, ``persist/dynamic``, …; None where the profile does not say, as the next ones.
        data_type, shape: such as ``float`` and ``[128,64]``.
    """

    framework_op: str | None
    occurrences: int
    allocated_bytes: int
    requested_bytes: int
    region: str | None = None
    data_type: str | None = None
    shape: str | None = None

    @property
    def total_bytes(self) -> int:
        return self.occurrences * self.allocated_bytes


@dataclass(frozen=True, slots=True)
class AllocatorProfile:
    """One allocator: the HBM of a device, or host memory.

    Attributes:
        id: as the profile names it: ``0``, ``mklcpu``.
        label: for people: ``HBM of device 0``.
        host: name of the host file.
        allocations, deallocations: how many events.
        time_ps: int64, one an event, ascending, on the trace's clock.
        stack_bytes, heap_bytes, free_bytes: int64, after each event; -1 where the profile does not say.
        fragmentation: float64, the share of free memory that is not in its largest piece, 0 to 1; NaN where the profile
            does not say.
        is_allocation: bool, one an event.
        peak_index: the event after which stack + heap is largest, the last of equal ones.
        capacity_bytes: stack + heap + free at that event; None where unknown.
        lifetime_peak_bytes: most of the heap that was in use since the process began; None where unknown.
        at_peak: what was in use then, largest first.
        flat: why a line that does not move is no fault, sentences; None where it moves.
        unknown: attribute name to why it is None or missing.
    """

    id: str
    label: str
    host: str
    allocations: int
    deallocations: int
    time_ps: Int64s
    stack_bytes: Int64s
    heap_bytes: Int64s
    free_bytes: Int64s
    fragmentation: Floats
    is_allocation: NDArray[np.bool_]
    peak_index: int
    capacity_bytes: int | None
    lifetime_peak_bytes: int | None
    at_peak: tuple[ActiveAllocation, ...]
    flat: str | None = None
    unknown: Mapping[str, str] = field(default_factory=dict)

    @property
    def peak_bytes(self) -> int:
        """Stack and heap at the peak."""
        return int(max(self.stack_bytes[self.peak_index], 0) + max(self.heap_bytes[self.peak_index], 0))

    @property
    def largest_free_bytes(self) -> int | None:
        """The largest piece of free memory at the peak; None where what is free or its fragmentation is unknown."""
        free, share = int(self.free_bytes[self.peak_index]), float(self.fragmentation[self.peak_index])
        return None if free < 0 or np.isnan(share) else round(free * (1 - share))

    @property
    def peak_time_ps(self) -> int:
        return int(self.time_ps[self.peak_index])


@dataclass(frozen=True, slots=True)
class MemoryProfilePage:
    """The allocators of a run.

    Attributes:
        hosts: names of the hosts that are covered.
        allocators: devices first, in order.
        why_empty: why there are no allocators and what to do, sentences; None where there are some.
        warnings: what else to know, a sentence each.
    """

    hosts: tuple[str, ...]
    allocators: tuple[AllocatorProfile, ...]
    why_empty: str | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceModuleRuns(Sized):
    """All runs of compiled modules on the devices of a host: columns over n runs, by start.

    Attributes:
        host: name of the host file.
        names, devices: texts that the columns point to, each once; a device such as ``TPU:0``.
        name, device: int32[n], indices into these.
        start_ps, end_ps: int64[n], on the trace's clock.
    """

    sized_by = "start_ps"
    host: str
    names: tuple[str, ...]
    devices: tuple[str, ...]
    name: NDArray[np.int32]
    device: NDArray[np.int32]
    start_ps: Int64s
    end_ps: Int64s

    def on(self, allocator: AllocatorProfile) -> NDArray[np.int64]:
        """Rows of the runs on the device whose memory an allocator hands out; none for another kind of memory."""
        label = f"TPU:{allocator.id}"
        if allocator.host != self.host or label not in self.devices:
            return no_ints()
        return np.flatnonzero(self.device == self.devices.index(label)).astype(np.int64)

"""Memory over time, as the allocators of a host reported it while the capture ran (XProf's `memory_profile`).

As in XProf (`xplane_to_memory_profile.cc`): the peak of the window is the largest sum of stack and heap, the last one
of equal ones; capacity is stack, heap and free memory together at that moment. Different from XProf, where it is wrong:

- time is the trace's clock; XProf leaves out where a line's clock begins, so that lines which begin at different times
  come in a wrong order.
- the peak over the lifetime is the largest that was reported; XProf takes what the last event in the file says.
- what is in use at the peak is every allocation of the capture that no deallocation followed up to then, with the size
  that the allocation says. XProf looks at the peak's step alone, counts what earlier steps hold as unused, and takes
  the size of what is freed from the deallocation, which on a TPU has none.
- nothing is sampled away.
"""

from __future__ import annotations

import operator
from collections.abc import Collection
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Int64s, no_ints
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted, natural_key, printable
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Plane, Trace
from tpuprof.parsers.memory.allocators.events import (
    AllocatorEvents,
    allocator_events,
    distinct_texts,
    host_plane,
    stats_at,
)
from tpuprof.parsers.memory.allocators.model import ActiveAllocation, AllocatorProfile, DeviceModuleRuns
from tpuprof.parsers.ops.core.ops import MODULES_LINE
from tpuprof.parsers.steps.boundaries.runs import module_runs

STACK, EARLIER = "stack", "allocated before the capture"
"""Stand for what is reserved for programs, and for what is on the heap though no allocation accounts for it."""

MOST_ROWS, REST = 10_000, "smaller allocations"
"""Different allocations that are listed, and what stands for the rest of them, which is one row."""

_TEXTS = ("tf_op", "region_type", "shape")

# TensorFlow's numbers of data types (DataType in its types.proto), 1 and on; 0 says that there is none.
_DATA_TYPES = (
    *("float", "double", "int32", "uint8", "int16", "int8", "string", "complex64", "int64", "bool", "qint8", "quint8"),
    *("qint32", "bfloat16", "qint16", "quint16", "uint16", "complex128", "half", "resource", "variant", "uint32"),
    *("uint64", "float8_e5m2", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2fnuz", "int4"),
    "uint4",
)
_REF_TYPES = 100
"""A reference to a variable has the type's number plus this."""


class Descriptions(NamedTuple):
    """What some events say of themselves, as columns.

    Attributes:
        texts: each once, and at their end None.
        op, region, shape: int32[n], indices into `texts`; -1 where the event does not say.
        data_type: int64[n], TensorFlow's number; 0 where the event does not say.
    """

    texts: tuple[str | None, ...]
    op: NDArray[np.int32]
    region: NDArray[np.int32]
    shape: NDArray[np.int32]
    data_type: Int64s


def data_type_name(number: int) -> str | None:
    """``float`` of 1, ``half`` of 19; None for 0 and ``type 77`` for a number without a name."""
    if number == 0:
        return None
    base, suffix = (number - _REF_TYPES, "_ref") if number > _REF_TYPES else (number, "")
    return f"{_DATA_TYPES[base - 1]}{suffix}" if 0 < base <= len(_DATA_TYPES) else f"type {number}"


def describe(plane: Plane, events: AllocatorEvents) -> Descriptions:
    """Reads what events say of themselves."""
    known: dict[str, int] = {}
    columns = {name: np.full(len(events), -1, np.int32) for name in _TEXTS}
    data_type = np.zeros(len(events), np.int64)
    for rows, stats, body in stats_at(plane, events.begin, events.length, (*_TEXTS, "data_type")):
        for name in _TEXTS:
            if name in stats:
                texts, which = distinct_texts(plane, stats[name], body)
                index = [known.setdefault(text, len(known)) if text else -1 for text in texts]
                columns[name][rows] = np.array([*index, -1], np.int32)[which]
        if "data_type" in stats:
            data_type[rows] = stats["data_type"].integers()
    return Descriptions((*known, None), columns["tf_op"], columns["region_type"], columns["shape"], data_type)


def live_at(events: AllocatorEvents, last: int) -> Int64s:
    """Rows of the allocations up to event `last` that nothing has freed by then, ascending.

    An address's last event decides: an allocation there is live, whatever was at that address before.

    Args:
        events: of one allocator, in order of time.
    """
    rows = np.flatnonzero(events.has_address[: last + 1])
    address = events.address[rows]
    order = np.argsort(address, kind="stable")
    is_last = np.append(address[order][1:] != address[order][:-1], True)[: len(order)]
    rows = rows[order[is_last]]
    return np.sort(rows[events.is_allocation[rows]]).astype(np.int64)


def in_use_at(plane: Plane, events: AllocatorEvents, peak: int) -> tuple[tuple[ActiveAllocation, ...], str]:
    """What is in use after an event, summed up by equal allocations.

    Args:
        events: of one allocator, in order of time.

    Returns:
        The allocations, the largest total first, and what they leave out, a phrase; empty where they add up.
    """
    live = live_at(events, peak)
    sized = live[events.allocated_bytes[live] >= 0]
    heap, stack = int(events.heap_bytes[peak]), max(int(events.stack_bytes[peak]), 0)
    rows, accounted = _merged(plane, events.take(sized))
    if heap > accounted:
        rows.append(ActiveAllocation(EARLIER, 1, heap - accounted, heap - accounted))
    if stack:
        rows.append(ActiveAllocation(STACK, 1, stack, stack, STACK))
    rows.sort(key=lambda row: -row.total_bytes)  # equal ones stay in order
    return tuple(rows), _lacks(events, peak, len(live) - len(sized), heap, accounted)


def _lacks(events: AllocatorEvents, peak: int, unsized: int, heap: int, accounted: int) -> str:
    lacks = []
    if unsized:
        lacks.append(f"{counted(unsized, 'allocation')} without a size (stat allocation_bytes)")
    if homeless := int((~events.has_address[: peak + 1]).sum()):
        lacks.append(f"{counted(homeless, 'event')} without an address (stat addr)")
    if heap < 0:
        lacks.append("what was allocated before the capture, because the size of the heap is unknown")
    elif accounted > heap:
        lacks.append(f"some deallocations, because the rows are {accounted - heap:,} bytes more than the heap")
    return "; ".join(lacks)


def _merged(plane: Plane, events: AllocatorEvents) -> tuple[list[ActiveAllocation], int]:
    """Equal allocations as one, by total, then size, then texts; and how many bytes they are together."""
    if not len(events):
        return [], 0
    texts, op, region, shape, data_type = describe(plane, events)
    columns = (events.allocated_bytes, events.requested_bytes, op, region, data_type, shape)
    order = np.lexsort(columns)
    differs = np.any([column[order][1:] != column[order][:-1] for column in columns], axis=0)
    first = np.flatnonzero(np.append(True, differs))
    rows, count = order[first], np.diff(np.append(first, len(order)))
    sizes = events.allocated_bytes[rows]
    ranked = np.lexsort((-sizes, -count * sizes.astype(np.float64)))  # the product may be beyond 64 bits
    accounted = _product_sum(count, sizes)
    allocations = [
        ActiveAllocation(
            framework_op=texts[op[row]],
            occurrences=int(number),
            allocated_bytes=int(size),
            requested_bytes=int(events.requested_bytes[row] if events.requested_bytes[row] >= 0 else size),
            region=texts[region[row]],
            data_type=data_type_name(int(data_type[row])),
            shape=texts[shape[row]],
        )
        for row, number, size in zip(*(column[ranked[:MOST_ROWS]] for column in (rows, count, sizes)), strict=True)
    ]
    allocations.sort(key=_order)
    rest = _product_sum(count[ranked[MOST_ROWS:]], sizes[ranked[MOST_ROWS:]])
    if rest:
        allocations.append(ActiveAllocation(REST, 1, rest, rest))
    return allocations, accounted


def _product_sum(count: NDArray[np.intp], sizes: Int64s) -> int:
    """Exact, whatever the sizes."""
    return sum(map(operator.mul, count.tolist(), sizes.tolist()))


def _order(row: ActiveAllocation) -> tuple[int, int, int, list[str]]:
    """By total, then size, then what was asked for, then texts."""
    texts = [text or "" for text in (row.framework_op, row.region, row.data_type, row.shape)]
    return -row.total_bytes, -row.allocated_bytes, -row.requested_bytes, texts


TPU_PLANES = "/device:TPU:"
MOST_ALLOCATORS = 1000
"""A host has a dozen; of a damaged profile at most this many are shown, those with most events."""

_STILL = 0.01
"""A line that stays within this share of its peak looks flat to the eye."""

FLAT_DEVICE = (
    "Memory in use hardly changes here, which is normal for TPU programs: a program gets the memory for its"
    " temporaries in one piece (the stack) when it is loaded, not tensor by tensor, so the heap moves only when arrays"
    " are made or deleted. The memory page of a module shows what its program does inside that piece."
)
FLAT_OTHER = "Memory in use hardly changes here: almost nothing was allocated or freed during the capture."

_UNKNOWN = {
    "stack_bytes": "the allocator's events do not give reserved memory (stat bytes_reserved)",
    "heap_bytes": "the allocator's events do not give allocated memory (stat bytes_allocated)",
    "free_bytes": "the allocator's events do not give free memory (stat bytes_available)",
    "fragmentation": "the allocator's events do not give fragmentation (stat fragmentation)",
    "lifetime_peak_bytes": "the allocator's events do not give the peak in use (stat peak_bytes_in_use)",
    "peak_bytes": "the allocator's events do not give memory in use (stats bytes_reserved, bytes_allocated)",
    "capacity_bytes": "the event at the peak lacks memory in use or free memory",
}


@dataclass(frozen=True, slots=True)
class HostMemory:
    """What one host's profile says about memory over time.

    Attributes:
        allocators: devices first, in order; then others by name.
        runs: of compiled modules on its devices, to lay over the graphs.
        why_empty: why there are no allocators and what to do; None where there are some.
    """

    host: str
    allocators: tuple[AllocatorProfile, ...]
    runs: DeviceModuleRuns
    why_empty: str | None


def needed_bytes(trace: Trace) -> int:
    """Bytes of the lines that `host_memory` decodes."""
    host = host_plane(trace)
    of_host = sum(line.size for line in host.lines) if host is not None else 0
    lines = [line for plane in trace.planes if plane.name.startswith(TPU_PLANES) for line in plane.lines]
    return of_host + sum(line.size for line in lines if line.name == MODULES_LINE)


def host_memory(
    trace: Trace, host: str, on_chunk: ChunkDone | None = None, of_devices: Collection[int] | None = None
) -> HostMemory:
    """All at once, as the page wants it, with arguments as of `memory_profile_of`."""
    read = trace.optional("read the allocators", partial(memory_profile_of, trace, host, on_chunk, of_devices))
    why = None if read else why_empty(trace) if read is not None else f"{trace.failed[-1].sentence}."
    return HostMemory(host, read or (), runs_of_devices(trace, host, on_chunk), why)


def memory_profile_of(
    trace: Trace, host: str, on_chunk: ChunkDone | None = None, of_devices: Collection[int] | None = None
) -> tuple[AllocatorProfile, ...]:
    """The allocators of a host; none where the profile has no allocator events.

    Args:
        host: name of the host file.
        on_chunk: progress; what it raises ends the decoding.
        of_devices: numbers of the devices whose allocators count, beside those of the host; None for all.
    """
    plane = host_plane(trace)
    events = None if plane is None else allocator_events(plane, on_chunk)
    if plane is None or events is None:
        return ()
    order = np.lexsort((events.time_ps, events.allocator))  # stable: of one time, the earlier in the file comes first
    borders = np.searchsorted(events.allocator[order], np.arange(len(events.ids) + 1))
    rows = list(range(len(events.ids)))
    if of_devices is not None:
        devices = set(map(str, of_devices))
        rows = [row for row in rows if not events.is_device[row] or events.ids[row] in devices]
    largest = sorted(rows, key=lambda row: borders[row] - borders[row + 1])[:MOST_ALLOCATORS]
    largest.sort(key=lambda row: (not events.is_device[row], natural_key(events.ids[row])))
    return tuple(
        _profile(plane, host, row, events.take(order[borders[row] : borders[row + 1]].astype(np.int64)))
        for row in largest
    )


def _profile(plane: Plane, host: str, allocator: int, events: AllocatorEvents) -> AllocatorProfile:
    """One allocator, index into the events' `ids`, of its events in order of time."""
    stack, heap = events.stack_bytes, events.heap_bytes
    known = (stack >= 0) | (heap >= 0)
    used = np.where(known, np.maximum(stack, 0) + np.maximum(heap, 0), np.int64(-1))
    peak = len(used) - 1 - int(np.argmax(used[::-1]))
    is_device, name = events.is_device[allocator], events.ids[allocator]
    lifetime, free = int(events.lifetime_peak_bytes.max()), int(events.free_bytes[peak])
    capacity = None if heap[peak] < 0 or free < 0 else int(used[peak]) + free
    at_peak, lacks = in_use_at(plane, events, peak)
    return AllocatorProfile(
        id=name,
        label=f"HBM of device {name}" if is_device else name or "allocator without a name",
        host=host,
        allocations=int(events.is_allocation.sum()),
        deallocations=int((~events.is_allocation).sum()),
        time_ps=events.time_ps,
        stack_bytes=stack,
        heap_bytes=heap,
        free_bytes=events.free_bytes,
        fragmentation=events.fragmentation,
        is_allocation=events.is_allocation,
        peak_index=peak,
        capacity_bytes=capacity,
        lifetime_peak_bytes=lifetime if lifetime >= 0 else None,
        at_peak=at_peak,
        flat=_flat(used[known], is_device),
        unknown={**_unknown(events, capacity), **({"at_peak": lacks} if lacks else {})},
    )


def _flat(used: Int64s, is_device: bool) -> str | None:
    """Why a line does not move; None where it does, or where there is none."""
    if not len(used) or int(used.max()) - int(used.min()) > _STILL * int(used.max()):
        return None
    return FLAT_DEVICE if is_device else FLAT_OTHER


def _unknown(events: AllocatorEvents, capacity: int | None) -> dict[str, str]:
    columns = ("stack_bytes", "heap_bytes", "free_bytes", "fragmentation", "lifetime_peak_bytes")
    known = {name for name in columns if (getattr(events, name) >= 0).any()}
    known |= {"peak_bytes"} if known & {"stack_bytes", "heap_bytes"} else set()
    known |= {"capacity_bytes"} if capacity is not None else set()
    return {name: reason for name, reason in _UNKNOWN.items() if name not in known}


def why_empty(trace: Trace) -> str:
    """Why a profile has no allocator events, and how to get them: some sentences."""
    page = "The static view of each compiled module needs none."
    has_none = "has no allocator events (MemoryAllocation, MemoryDeallocation)"
    if trace.source.origin:
        return f"A trace for a viewer {has_none}: XProf leaves them out. Open the .xplane.pb beside it. {page}"
    if trace.problems:
        lost = f"The readable part of this profile {has_none}; they may be in the lost part."
        return f"{lost} {trace.problems[0].sentence} {page}"
    if host_plane(trace) is None:
        return (
            "This profile has no host events, among which allocators report. Capture with the host"
            f" tracer at level 2 (host_tracer_level), JAX's default. {page}"
        )
    if not any(plane.name.startswith("/device:") for plane in trace.planes):
        return (
            f"This profile {has_none}, and no device. XLA on the CPU takes its memory from the system and reports"
            " nothing; capture on a TPU or GPU. For a picture of live arrays on any device there is"
            " jax.profiler.save_device_memory_profile."
        )
    return (
        f"This profile {has_none}. Either no array was made or deleted while the capture ran, or the host tracer was"
        f" below level 2 (host_tracer_level), at which allocators report, or this runtime records none. {page} For a"
        " picture of live arrays there is jax.profiler.save_device_memory_profile."
    )


def runs_of_devices(trace: Trace, host: str = "", on_chunk: ChunkDone | None = None) -> DeviceModuleRuns:
    """The runs of compiled modules on the TPUs of a host, by start, with arguments as of `memory_profile_of`."""
    names: dict[str, int] = {}
    devices: dict[str, int] = {}
    no_indices = no_ints().astype(np.int32)
    parts: list[tuple[NDArray[Any], ...]] = [(no_indices, no_indices, no_ints(), no_ints())]
    for plane in (plane for plane in trace.planes if plane.name.startswith(TPU_PLANES)):
        what = f"read the runs of modules of {printable(plane.name)}"
        runs = trace.optional(what, partial(module_runs, plane, on_chunk))
        if not runs:
            continue
        name = np.array([names.setdefault(name, len(names)) for name in runs.names], np.int32)
        number = devices.setdefault(plane.name.removeprefix("/device:"), len(devices))
        parts.append((name[runs.module], np.full(len(runs), number, np.int32), runs.start_ps, runs.end_ps))
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.argsort(columns[2], kind="stable")
    return DeviceModuleRuns(host, tuple(names), tuple(devices), *(column[order] for column in columns))

"""XProf's memory profile by its own rules, out of the events that we decode, and its answer as flat fields.

What the page does not keep of single events (addresses, steps, the texts of events that are not in use at the peak) is
taken as it is decoded, so that XProf's own selection can be repeated on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tests.parity.oracle.fields import Value
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.memory.allocators.events import allocator_events, host_plane, stats_at
from tpuprof.parsers.memory.allocators.profile import STACK, data_type_name, describe

UNUSED = "unused preallocated device memory"

SAMPLES = 1000
"""Points to which XProf thins a timeline."""

_STATS = ("stackReservedBytes", "heapAllocatedBytes", "freeMemoryBytes", "fragmentation", "peakBytesInUse")


@dataclass(frozen=True)
class Event:
    """One event as XProf keeps it."""

    time_ps: int
    is_allocation: bool
    stack: int
    heap: int
    free: int
    fragmentation: float
    lifetime: int = 0
    requested: int = 0
    allocated: int = 0
    address: int = 0
    op: str = ""
    region: str = ""
    data_type: str = ""
    shape: str = ""
    step: int = 0
    order: int = 0

    @property
    def used(self) -> int:
        return self.stack + self.heap

    @property
    def key(self) -> tuple[int, int, str, str, str, str]:
        """What XProf merges and sorts allocations by."""
        return (-self.allocated, -self.requested, self.op, self.region, self.data_type, self.shape)


# --- the decoded events, arranged by XProf's rules -----------------------------------------------------------------


def events_of(trace: Trace, with_clock: bool) -> dict[str, list[Event]]:
    """The decoded events of each allocator by time, with steps filled in and deallocations named as XProf does.

    Args:
        with_clock: times are the trace's; else they are counted from where each line begins, as XProf has them.
    """
    plane = host_plane(trace)
    columns = None if plane is None else allocator_events(plane)
    if plane is None or columns is None:
        return {}
    said = describe(plane, columns)
    steps = np.full(len(columns), -1, np.int64)
    has_type = np.zeros(len(columns), np.bool_)
    for rows, stats, _ in stats_at(plane, columns.begin, columns.length, ("group_id", "data_type")):
        if "group_id" in stats:
            steps[rows] = stats["group_id"].integers(-1)
        if "data_type" in stats:
            has_type[rows] = stats["data_type"].is_number
    time_ps = columns.time_ps.copy()
    for line in () if with_clock else plane.lines:
        time_ps[(columns.begin >= line.begin) & (columns.begin < line.end)] -= line.timestamp_ns * 1000
    found: dict[str, list[Event]] = {}
    for at in np.argsort(time_ps, kind="stable").tolist():
        found.setdefault(columns.ids[columns.allocator[at]], []).append(
            Event(
                time_ps=int(time_ps[at]),
                is_allocation=bool(columns.is_allocation[at]),
                stack=max(int(columns.stack_bytes[at]), 0),
                heap=max(int(columns.heap_bytes[at]), 0),
                free=max(int(columns.free_bytes[at]), 0),
                fragmentation=float(np.nan_to_num(columns.fragmentation[at])),
                lifetime=max(int(columns.lifetime_peak_bytes[at]), 0),
                requested=max(int(columns.requested_bytes[at]), 0),
                allocated=max(int(columns.allocated_bytes[at]), 0),
                address=int(columns.address[at]),
                op=said.texts[said.op[at]] or "",
                region=said.texts[said.region[at]] or "",
                data_type=(data_type_name(int(said.data_type[at])) or "INVALID") if has_type[at] else "",
                shape=said.texts[said.shape[at]] or "",
                step=int(steps[at]),
                order=at,
            )
        )
    return {name: _named(_stepped(events)) for name, events in found.items()}


def _stepped(events: Iterable[Event]) -> list[Event]:
    """An event without a step is of the one after the last that was seen."""
    out, last = [], -1
    for event in events:
        last = event.step if event.step != -1 else last
        out.append(event if event.step != -1 else replace(event, step=last + 1))
    return out


def _named(events: Iterable[Event]) -> list[Event]:
    """A deallocation says what the allocation at its address said."""
    out: list[Event] = []
    living: dict[int, Event] = {}
    for event in events:
        said = event
        if event.is_allocation:
            living.setdefault(event.address, event)
        elif event.address in living:
            of = living.pop(event.address)
            said = replace(event, op=of.op, region=of.region, data_type=of.data_type, shape=of.shape)
        out.append(said)
    return out


def sampled(events: Sequence[Event]) -> list[Event]:
    """XProf's timeline: the first event with most in use of each stretch, the later stretches one event longer."""
    if len(events) <= SAMPLES:
        return list(events)
    width, longer = divmod(len(events), SAMPLES)
    sizes = [width] * (SAMPLES - longer) + [width + 1] * longer
    out, at = [], 0
    for size in sizes:
        out.append(max(events[at : at + size], key=lambda event: event.used))
        at += size
    return out


def xprofs_peak(events: Sequence[Event]) -> Event:
    """The last of the largest, in the order of the file."""
    return max(events, key=lambda event: (event.used, event.order))


def xprofs_rows(events: Sequence[Event], peak: Event) -> list[Event]:
    """What XProf lists at the peak: of the peak's step what it takes for living, and what stands for the rest."""
    step = next((event.step for event in reversed(events) if event.used == peak.used), 0)
    unmapped, freed = peak.heap, 0
    living: dict[int, Event] = {}
    for event in events:
        if event.time_ps > peak.time_ps:
            break
        if event.step != step:
            continue
        if event.is_allocation:
            living[event.address] = event
            unmapped -= event.allocated
        else:
            freed += 0 if living.pop(event.address, None) else event.allocated
            unmapped += event.allocated
    nobody = replace(peak, is_allocation=True, address=0, data_type="INVALID", shape="unknown", step=step, order=-1)
    found = list(living.values())
    for size, op, region in ((unmapped - freed, UNUSED, "persist/dynamic"), (peak.stack, STACK, "stack")):
        if size > 0:
            found.append(replace(nobody, op=op, region=region, allocated=size, requested=size))
    return found


def merged(rows: Iterable[Event]) -> list[tuple[Event, int]]:
    """Equal ones counted together, in XProf's order."""
    same: dict[tuple[int, int, str, str, str, str], list[Event]] = {}
    for event in sorted(rows, key=lambda event: event.key):
        same.setdefault(event.key, []).append(event)
    return [(events[0], len(events)) for events in same.values()]


def repeated_fields(events: dict[str, list[Event]]) -> dict[str, Value]:
    """XProf's whole answer about allocators, by its own rules, out of the events that we decode."""
    fields: dict[str, Value] = {"memoryIds": " ".join(sorted(events)), "numHosts": 1}
    for name, of_it in events.items():
        peak = xprofs_peak(of_it)
        fields |= summary(name, peak, max(of_it, key=lambda event: event.order).lifetime)
        for row, event in enumerate(sampled(of_it)):
            fields |= snapshot(f"{name}.sampledTimelineSnapshots.{row}", event)
        rows = xprofs_rows(of_it, peak)
        special = [event for event in rows if event.order < 0]
        for row, event in enumerate(special):
            fields |= metadata(f"{name}.specialAllocations.{row}", event)
        kept = 0
        for row, (event, occurrences) in enumerate(merged(rows)):
            at = special.index(event) if event.order < 0 else -1
            fields |= {
                f"{name}.activeAllocations.{row}.snapshotIndex": kept if at < 0 else -1 - at,
                f"{name}.activeAllocations.{row}.specialIndex": at,
                f"{name}.activeAllocations.{row}.numOccurrences": occurrences,
            }
            if at < 0:
                one_of_them = snapshot(f"{name}.memoryProfileSnapshots.{kept}", event)
                fields |= {key: value for key, value in one_of_them.items() if _all_share(key)}
                kept += 1
    return fields


def summary(name: str, peak: Event, lifetime: int) -> dict[str, Value]:
    """The peak, as fields."""
    return {
        f"{name}.profileSummary.peakBytesUsageLifetime": lifetime,
        f"{name}.profileSummary.peakStatsTimePs": peak.time_ps,
        f"{name}.profileSummary.memoryCapacity": peak.used + peak.free,
        f"{name}.profileSummary.peakStats.stackReservedBytes": peak.stack,
        f"{name}.profileSummary.peakStats.heapAllocatedBytes": peak.heap,
        f"{name}.profileSummary.peakStats.freeMemoryBytes": peak.free,
        f"{name}.profileSummary.peakStats.fragmentation": peak.fragmentation,
        f"{name}.profileSummary.peakStats.peakBytesInUse": peak.used,
    }


def snapshot(prefix: str, event: Event) -> dict[str, Value]:
    """An event, as fields."""
    stats = zip(_STATS, (event.stack, event.heap, event.free, event.fragmentation, event.lifetime), strict=True)
    return {
        f"{prefix}.timeOffsetPs": event.time_ps,
        **{f"{prefix}.aggregationStats.{name}": value for name, value in stats},
        **metadata(f"{prefix}.activityMetadata", event),
    }


def metadata(prefix: str, event: Event) -> dict[str, Value]:
    """What an event is about, as fields."""
    return {
        f"{prefix}.memoryActivity": "ALLOCATION" if event.is_allocation else "DEALLOCATION",
        f"{prefix}.requestedBytes": event.requested,
        f"{prefix}.allocationBytes": event.allocated,
        f"{prefix}.address": event.address,
        f"{prefix}.tfOpName": event.op,
        f"{prefix}.stepId": event.step,
        f"{prefix}.regionType": event.region,
        f"{prefix}.dataType": event.data_type,
        f"{prefix}.tensorShape": event.shape,
    }


def _all_share(key: str) -> bool:
    """Of equal allocations XProf keeps any event: what they share can be compared, time and address can't."""
    shared = (
        "memoryActivity",
        "requestedBytes",
        "allocationBytes",
        "tfOpName",
        "regionType",
        "dataType",
        "tensorShape",
    )
    return key.endswith(shared)


# --- XProf's answer ------------------------------------------------------------------------------------------------


def xprof_fields(answer: Any) -> dict[str, Value]:
    """XProf's answer about allocators, flat; numbers that it prints as text are numbers."""
    fields: dict[str, Value] = {"memoryIds": " ".join(answer["memoryIds"]), "numHosts": answer["numHosts"]}
    for name, allocator in answer["memoryProfilePerAllocator"].items():
        for key, value in leaves(name, allocator):
            if ".memoryProfileSnapshots." not in key or _all_share(key):
                fields[key] = value
    return fields


def leaves(prefix: str, value: Any) -> Iterable[tuple[str, Value]]:
    """The fields of nested JSON, each with its path."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(f"{prefix}.{key}", item)
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from leaves(f"{prefix}.{at}", item)
    else:
        yield prefix, int(value) if isinstance(value, str) and value.lstrip("-").isdigit() else value


def module_fields(answer: Any) -> dict[str, Value]:
    """The runs of modules."""
    return dict(leaves("hloModules", answer["hloModules"]))

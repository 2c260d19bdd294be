"""Profiles with the events of allocators, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from tests.support.build import PlaneBuilder, StatInput, tpu_plane, trace_of
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.memory.allocators.model import AllocatorProfile, DeviceModuleRuns, MemoryProfilePage
from tpuprof.parsers.memory.allocators.profile import host_memory, memory_profile_of
from tpuprof.parsers.pages.memory.over_time import memory_profile_page

MIB = 1 << 20
GIB = 1 << 30
MS = 1_000_000_000


@dataclass(frozen=True)
class Made:
    """An event: what it does, when, and its stats; `thread` says on which line it stands."""

    kind: str
    time_ps: int
    stats: dict[str, StatInput]
    thread: int = 0


def given(time_ps: int, thread: int = 0, /, **stats: StatInput) -> Made:
    """An allocation."""
    return Made("MemoryAllocation", time_ps, stats, thread)


def freed(time_ps: int, thread: int = 0, /, **stats: StatInput) -> Made:
    """A deallocation."""
    return Made("MemoryDeallocation", time_ps, stats, thread)


def host_space(events: Sequence[Made]) -> XSpace:
    """A host with threads that hold these events, in the order given."""
    plane = PlaneBuilder.alone("/host:CPU")
    lines = [plane.line(f"thread {at}") for at in range(max((event.thread for event in events), default=0) + 1)]
    for event in events:
        plane.event(lines[event.thread], plane.event_id(event.kind), event.time_ps, 0, **event.stats)
    return plane.space


def profiles_of(space: XSpace) -> tuple[AllocatorProfile, ...]:
    return memory_profile_of(trace_of(space), "host0")


def training_space() -> XSpace:
    """Two TPUs: one that fills up with arrays step by step, one where nothing moves; and pinned memory."""
    capacity, stack = 32 * GIB, 6 * GIB
    events, heap = [], 9 * GIB
    for step in range(20):
        for part, (op, size, shape) in enumerate(
            (
                ("jit(step)/dot_general", 512 * MIB, "f32[8192,16384]{1,0:T(8,128)}"),
                ("", 64 * MIB, "bf16[4096,8192]{1,0:T(8,128)(2,1)}"),
            )
        ):
            heap += size
            time = (10 * step + part) * MS
            address = 1000 * step + part
            common: dict[str, StatInput] = {"index_on_host": 0, "bytes_reserved": stack, "bytes_allocated": heap}
            common |= {"bytes_available": capacity - stack - heap, "peak_bytes_in_use": 20 * GIB, "fragmentation": 0.02}
            named: dict[str, StatInput] = {"tf_op": op, "shape": shape} if op else {}
            events.append(given(time, requested_bytes=size - 8, allocation_bytes=size, addr=address, **common, **named))
        if step % 5 == 4:  # every fifth step lets the small arrays go
            for earlier in range(step - 4, step + 1):
                heap -= 64 * MIB
                common |= {"bytes_allocated": heap, "bytes_available": capacity - stack - heap}
                events.append(freed((10 * step + 5) * MS + earlier, 1, addr=1000 * earlier + 1, **common))
    for step in range(20):
        still: dict[str, StatInput] = {"index_on_host": 1, "bytes_reserved": stack, "bytes_allocated": 9 * GIB + 512}
        still |= {"bytes_available": capacity - stack - 9 * GIB - 512, "peak_bytes_in_use": 9 * GIB + 512}
        still |= {"fragmentation": 0, "addr": 7, "requested_bytes": 4, "allocation_bytes": 512}
        events += [given((10 * step + 1) * MS, 1, **still), freed((10 * step + 2) * MS, 1, **still)]
    pinned: dict[str, StatInput] = {"allocator_name": "pinned_host", "bytes_reserved": 0, "bytes_available": 64 * GIB}
    events.append(given(3 * MS, bytes_allocated=40 * MIB, allocation_bytes=2 * MIB, addr=1, data_type=19, **pinned))
    events.append(freed(180 * MS, bytes_allocated=30 * MIB, allocation_bytes=10 * MIB, addr=0, **pinned))
    space = host_space(events)
    runs = [(f"jit_step({77})", 10 * at * MS, (10 * at + 8) * MS) for at in range(20)]
    tpu_plane(space, 0, [], modules=runs)
    tpu_plane(space, 1, [], modules=[("jit_init(3)", 0, 60 * MS), ("jit_step(77)", 60 * MS, 200 * MS)])
    return space


@cache
def training_page() -> tuple[MemoryProfilePage, tuple[DeviceModuleRuns, ...]]:
    """The page of `training_space`, and the runs of its modules."""
    found = host_memory(trace_of(training_space()), "host0")
    return memory_profile_page([found.allocators], ["host0"]), (found.runs,)

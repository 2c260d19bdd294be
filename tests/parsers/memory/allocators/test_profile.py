"""Memory over time: peaks, what is in use at them, and events that are damaged, sparse or many."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tests.parsers.memory.allocators.made import MS, Made, freed, given, host_space, profiles_of, training_space
from tests.support.build import PlaneBuilder, bare_host, tpu_plane, trace_of
from tpuprof.parsers.base.errors import Cancelled
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.memory.allocators.events import MOST_BYTES
from tpuprof.parsers.memory.allocators.model import AllocatorProfile
from tpuprof.parsers.memory.allocators.profile import (
    EARLIER,
    FLAT_DEVICE,
    FLAT_OTHER,
    MOST_ROWS,
    REST,
    host_memory,
    memory_profile_of,
    runs_of_devices,
)
from tpuprof.parsers.pages.memory.over_time import memory_profile_page


def one(*events: Made) -> AllocatorProfile:
    """The only allocator of some events."""
    found = profiles_of(host_space(events))
    assert len(found) == 1
    return found[0]


def state(heap: int, stack: int = 0, free: int = 1000) -> dict[str, int]:
    return {"bytes_allocated": heap, "bytes_reserved": stack, "bytes_available": free}


def test_so_many_kinds_that_the_rest_is_one_row() -> None:
    events = [given(at, addr=at, allocation_bytes=at + 1, **state(1)) for at in range(MOST_ROWS + 3)]
    rows = one(*events).at_peak
    assert len(rows) == MOST_ROWS + 1
    assert rows[0].allocated_bytes == MOST_ROWS + 3 and rows[-1].allocated_bytes == 4
    assert next(row.allocated_bytes for row in rows if row.framework_op == REST) == 1 + 2 + 3


def test_events_without_any_stats_still_count() -> None:
    profile = one(given(1), freed(2), given(3))
    assert profile.id == "" and profile.label == "allocator without a name"
    assert (profile.allocations, profile.deallocations) == (2, 1)
    assert profile.heap_bytes.tolist() == [-1, -1, -1] and np.isnan(profile.fragmentation).all()
    assert profile.at_peak == () and profile.capacity_bytes is None and profile.lifetime_peak_bytes is None
    names = {"stack_bytes", "heap_bytes", "free_bytes", "fragmentation", "lifetime_peak_bytes", "peak_bytes"}
    assert set(profile.unknown) == names | {"capacity_bytes", "at_peak"}
    assert profile.flat is None


def test_numbers_past_two_to_the_63_are_unknown_sizes_but_good_addresses() -> None:
    space = host_space([given(1, bytes_allocated=5, allocation_bytes=5), given(2, bytes_allocated=5), freed(3)])
    plane = space.planes[0]
    address = next(number for number, entry in plane.stat_metadata.items() if entry.name == b"bytes_allocated")
    added = max(plane.stat_metadata) + 1
    plane.stat_metadata[added].id, plane.stat_metadata[added].name = added, b"addr"
    for event in plane.lines[0].events:
        event.stats.add(metadata_id=added, uint64_value=2**64 - 16)
    plane.lines[0].events[1].stats[0].metadata_id = address
    plane.lines[0].events[1].stats[0].uint64_value = 2**63 + 5
    profile = profiles_of(space)[0]
    assert profile.heap_bytes.tolist() == [5, -1, -1]
    assert profile.peak_index == 0 and profile.at_peak[0].allocated_bytes == 5


def test_texts_may_be_references_or_text_and_are_the_same() -> None:
    space = host_space(
        [given(at, addr=at, allocation_bytes=8, tf_op="same", region_type="temp", **state(64)) for at in range(4)]
    )
    plane = space.planes[0]
    number = max(plane.stat_metadata) + 1
    plane.stat_metadata[number].id, plane.stat_metadata[number].name = number, b"same"
    op = next(key for key, entry in plane.stat_metadata.items() if entry.name == b"tf_op")
    for event in list(plane.lines[0].events)[:2]:
        next(stat for stat in event.stats if stat.metadata_id == op).ref_value = number
    rows = profiles_of(space)[0].at_peak
    assert [(row.framework_op, row.occurrences, row.region) for row in rows] == [
        ("same", 4, "temp"),
        (EARLIER, 1, None),
    ]


def test_allocators_come_with_devices_first_in_natural_order() -> None:
    names = ["GPU_10_bfc", "GPU_2_bfc", "pinned"]
    events = [given(at, allocator_name=name, **state(1)) for at, name in enumerate(names)]
    events += [given(9, index_on_host=number, **state(1)) for number in (10, 2)]
    events += [given(9, device_ordinal=1, **state(1))]
    found = profiles_of(host_space(events))
    assert [profile.id for profile in found] == ["1", "2", "10", "GPU_2_bfc", "GPU_10_bfc", "pinned"]


def test_no_more_allocators_than_anybody_can_look_at() -> None:
    events = [given(at, allocator_name=f"a{at}", **state(1)) for at in range(1_200)]
    events += [given(at, allocator_name="busy", **state(1)) for at in range(3)]
    found = profiles_of(host_space(events))
    assert len(found) == 1_000 and "busy" in {profile.id for profile in found}


def test_a_line_that_does_not_move_is_explained() -> None:
    events = [given(at, addr=at, **state(1000 + at % 3, 50)) for at in range(9)]
    assert one(*events).flat == FLAT_OTHER
    on_device = [Made(event.kind, event.time_ps, {**event.stats, "index_on_host": 0}) for event in events]
    assert one(*on_device).flat == FLAT_DEVICE
    assert one(*on_device, given(20, index_on_host=0, addr=77, **state(2000))).flat is None


# --- why there is nothing, and the page ----------------------------------------------------------------------------


def why(space: XSpace) -> str:
    found = host_memory(trace_of(space), "host0")
    assert found.allocators == ()
    return found.why_empty or ""


def test_each_reason_for_an_empty_page_names_what_is_missing() -> None:
    space = bare_host()
    assert "XLA on the CPU" in why(space)
    tpu_plane(space, 0, [("fusion.1", "fusion", 0, 10)])
    assert "host_tracer_level" in why(space) and "no array was made" in why(space)
    assert "no host events" in why(tpu_plane(XSpace(), 0, [("fusion.1", "fusion", 0, 10)]).space)
    defined = XSpace()
    PlaneBuilder(defined, "/host:CPU").event_id("MemoryAllocation")
    assert "no allocator events" in why(defined)


def test_a_page_of_several_hosts_says_whose_memory_it_is() -> None:
    of_one = profiles_of(host_space([given(1, index_on_host=0, **state(5))]))
    page = memory_profile_page([of_one], ["host0"])
    assert page.allocators == of_one and page.why_empty is None
    page = memory_profile_page([of_one, of_one, ()], ["host0", "host1", "host2"], warnings=["host3 is broken"])
    assert [allocator.label for allocator in page.allocators] == ["HBM of device 0, host0"] * 2
    assert page.warnings == ("host3 is broken",)
    page = memory_profile_page([(), ()], ["host0", "host1"], [None, "no host threads"])
    assert page.why_empty == "no host threads"
    assert memory_profile_page([], []).why_empty


def test_runs_of_modules_are_found_with_their_device() -> None:
    trace = trace_of(training_space())
    found = host_memory(trace, "host0")
    assert len(found.runs) == 22 and found.runs.devices == ("TPU:0", "TPU:1")
    runs = found.runs
    first = (runs.names[runs.name[0]], runs.devices[runs.device[0]], int(runs.start_ps[0]), int(runs.end_ps[0]))
    assert first in (("jit_step(77)", "TPU:0", 0, 8 * MS), ("jit_init(3)", "TPU:1", 0, 60 * MS))
    assert [len(found.runs.on(profile)) for profile in found.allocators] == [20, 2, 0]
    assert found.runs.start_ps.tolist() == sorted(found.runs.start_ps.tolist())
    assert len(runs_of_devices(trace, "another host").on(found.allocators[0])) == 0


def test_decoding_can_be_cancelled() -> None:
    def stop(size: int, events: int) -> None:
        raise Cancelled

    trace = trace_of(training_space())
    with pytest.raises(Cancelled):
        memory_profile_of(trace, "host0", stop)


# --- any events ----------------------------------------------------------------------------------------------------

SIZES = st.sampled_from([0, 1, 256, 4096, MOST_BYTES, MOST_BYTES + 1, -1, 2**63 - 1, -(2**63)])
EVENTS = st.lists(
    st.builds(
        lambda kind, time, thread, stats: Made(kind, time, {k: v for k, v in stats.items() if v is not None}, thread),
        st.sampled_from(["MemoryAllocation", "MemoryDeallocation"]),
        st.sampled_from([0, 1, 1, 2, 1000, -5, 2**62, -(2**62)]),
        st.integers(0, 2),
        st.fixed_dictionaries(
            {
                "bytes_allocated": st.none() | SIZES,
                "bytes_reserved": st.none() | SIZES,
                "bytes_available": st.none() | SIZES,
                "peak_bytes_in_use": st.none() | SIZES,
                "allocation_bytes": st.none() | SIZES,
                "requested_bytes": st.none() | SIZES,
                "fragmentation": st.none() | st.floats(),
                "addr": st.none() | st.integers(0, 4),
                "tf_op": st.none() | st.text(max_size=3),
                "data_type": st.none() | st.integers(-3, 140),
                "allocator_name": st.none() | st.sampled_from(["a", "b", ""]),
                "index_on_host": st.none() | st.integers(-1, 1),
            }
        ),
    ),
    min_size=1,
    max_size=30,
)


@for_all(EVENTS)
@settings(max_examples=2 * EXAMPLES)
def test_any_events_give_profiles_that_agree_with_themselves(events: list[Made]) -> None:
    found = profiles_of(host_space(events))
    assert sum(profile.allocations + profile.deallocations for profile in found) == len(events)
    for profile in found:
        times = profile.time_ps.tolist()
        assert times == sorted(times) and len(times) == profile.allocations + profile.deallocations
        stack, heap = np.maximum(profile.stack_bytes, 0), np.maximum(profile.heap_bytes, 0)
        used = [int(value) for value in stack + heap]
        if "peak_bytes" not in profile.unknown:
            assert profile.peak_bytes == max(used)
            assert max(used) == 0 or max(used) not in used[profile.peak_index + 1 :]
        assert (profile.stack_bytes >= -1).all() and (profile.heap_bytes <= MOST_BYTES).all()
        assert profile.capacity_bytes is None or profile.capacity_bytes >= profile.peak_bytes
        total = sum(row.occurrences * row.allocated_bytes for row in profile.at_peak)
        if "at_peak" not in profile.unknown and "peak_bytes" not in profile.unknown:
            assert total == profile.peak_bytes
        assert (profile.lifetime_peak_bytes is None) == ("lifetime_peak_bytes" in profile.unknown)


@for_all(st.lists(st.tuples(st.booleans(), st.integers(0, 5), st.integers(1, 9)), min_size=1, max_size=60))
def test_what_lives_is_what_a_walk_over_the_events_finds(steps: list[tuple[bool, int, int]]) -> None:
    events: list[Made] = []
    living: dict[int, int] = {}
    for time, (is_allocation, address, size) in enumerate(steps):
        living.pop(address, None)
        if is_allocation:
            living[address] = size
        used = 10_000 if time == len(steps) - 1 else 0
        make = given if is_allocation else freed
        events.append(make(time, addr=address, allocation_bytes=size, requested_bytes=size, **state(used)))
    counts = {row.allocated_bytes: row.occurrences for row in one(*events).at_peak if row.framework_op != EARLIER}
    assert counts == {size: list(living.values()).count(size) for size in living.values()}

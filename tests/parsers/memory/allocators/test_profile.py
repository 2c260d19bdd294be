"""Memory over time: peaks, what is in use at them, and events that are damaged, sparse or many."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tests.parsers.memory.allocators.made import (
    GIB,
    MIB,
    MS,
    Made,
    freed,
    given,
    host_space,
    profiles_of,
    training_space,
)
from tests.support.build import PlaneBuilder, bare_host, present, tpu_plane, trace_of
from tpuprof.parsers.base.errors import Cancelled
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.memory.allocators.at_peak import EARLIER, MOST_ROWS, REST, STACK, data_type_name, describe
from tpuprof.parsers.memory.allocators.events import MOST_BYTES, allocator_events, host_plane
from tpuprof.parsers.memory.allocators.model import AllocatorProfile
from tpuprof.parsers.memory.allocators.profile import (
    FLAT_DEVICE,
    FLAT_OTHER,
    host_memory,
    memory_profile_of,
    runs_of_devices,
)
from tpuprof.parsers.pages.memory import memory_profile_page


def one(*events: Made) -> AllocatorProfile:
    """The only allocator of some events."""
    found = profiles_of(host_space(events))
    assert len(found) == 1
    return found[0]


def state(heap: int, stack: int = 0, free: int = 1000) -> dict[str, int]:
    return {"bytes_allocated": heap, "bytes_reserved": stack, "bytes_available": free}


def test_the_figures_of_a_device() -> None:
    profile = one(
        given(10, index_on_host=3, addr=1, allocation_bytes=256, requested_bytes=200, tf_op="a", **state(256)),
        given(
            20, index_on_host=3, addr=2, allocation_bytes=512, requested_bytes=500, fragmentation=0.5, **state(768, 9)
        ),
        freed(30, index_on_host=3, addr=1, peak_bytes_in_use=4096, **state(512)),
    )
    assert (profile.id, profile.label, profile.host) == ("3", "HBM of device 3", "host0")
    assert (profile.allocations, profile.deallocations) == (2, 1)
    assert profile.time_ps.tolist() == [10, 20, 30]
    assert profile.heap_bytes.tolist() == [256, 768, 512] and profile.stack_bytes.tolist() == [0, 9, 0]
    assert profile.is_allocation.tolist() == [True, True, False]
    assert (profile.peak_index, profile.peak_bytes, profile.peak_time_ps) == (1, 777, 20)
    assert profile.capacity_bytes == 9 + 768 + 1000 and profile.lifetime_peak_bytes == 4096
    assert np.isnan(profile.fragmentation[[0, 2]]).all() and profile.fragmentation[1] == 0.5
    assert [(row.framework_op, row.allocated_bytes) for row in profile.at_peak] == [(None, 512), ("a", 256), (STACK, 9)]
    assert profile.flat is None and profile.unknown == {}


def test_what_was_there_before_the_capture_is_a_row_of_its_own() -> None:
    profile = one(
        freed(5, addr=99, allocation_bytes=50, **state(950)),
        given(10, addr=1, allocation_bytes=50, requested_bytes=1, **state(1000, 30)),
    )
    rows = [(row.framework_op, row.allocated_bytes, row.region) for row in profile.at_peak]
    assert rows == [(EARLIER, 950, None), (None, 50, None), (STACK, 30, STACK)]
    assert sum(row.occurrences * row.allocated_bytes for row in profile.at_peak) == profile.peak_bytes


def test_equal_allocations_count_together_and_the_largest_total_comes_first() -> None:
    events = [given(at, addr=at, allocation_bytes=100, requested_bytes=90, tf_op="many", **state(0)) for at in range(8)]
    events.append(given(8, addr=8, allocation_bytes=300, requested_bytes=300, tf_op="one", **state(0)))
    events.append(given(9, addr=9, allocation_bytes=100, requested_bytes=91, tf_op="many", **state(1200)))
    rows = [(row.framework_op, row.occurrences, row.requested_bytes) for row in one(*events).at_peak]
    assert rows == [("many", 8, 90), ("one", 1, 300), ("many", 1, 91)]


def test_of_equal_peaks_the_last_one_in_time_counts_wherever_it_stands_in_the_file() -> None:
    profile = one(
        given(50, 1, addr=2, **state(700)), given(90, 1, addr=3, **state(100)), given(60, 0, addr=4, **state(700))
    )
    assert profile.time_ps.tolist() == [50, 60, 90]
    assert (profile.peak_index, profile.peak_time_ps) == (1, 60)


def test_threads_whose_clocks_begin_at_different_times_come_in_the_order_of_time() -> None:
    events = (given(9_000_000, 0, addr=1, **state(1)), given(3_000_000, 1, addr=2, **state(2)))
    profile = profiles_of(host_space(events, timestamps_ns=(9_000, 1_000)))[0]
    assert profile.time_ps.tolist() == [3_000_000, 9_000_000]
    assert profile.heap_bytes.tolist() == [2, 1]


def test_what_a_deallocation_says_of_its_size_does_not_matter() -> None:
    quiet = one(given(1, addr=1, allocation_bytes=64, **state(64)), freed(2, addr=1, **state(0)), given(3, **state(99)))
    assert [(row.framework_op, row.allocated_bytes) for row in quiet.at_peak] == [(EARLIER, 99)]
    assert "an address" in quiet.unknown["at_peak"] and "a size" not in quiet.unknown["at_peak"]


def test_an_address_that_is_given_twice_is_counted_once() -> None:
    profile = one(
        given(1, addr=1, allocation_bytes=64, tf_op="first", **state(64)),
        given(2, addr=1, allocation_bytes=32, tf_op="second", **state(64)),
    )
    assert [(row.framework_op, row.allocated_bytes) for row in profile.at_peak] == [("second", 32), (EARLIER, 32)]


def test_sums_past_64_bits_are_exact() -> None:
    events = [given(at, addr=at, allocation_bytes=MOST_BYTES, **state(1)) for at in range(20)]
    assert f"{20 * MOST_BYTES - 1:,} bytes more than the heap" in one(*events).unknown["at_peak"]


def test_so_many_kinds_that_the_rest_is_one_row() -> None:
    events = [given(at, addr=at, allocation_bytes=at + 1, **state(1)) for at in range(MOST_ROWS + 3)]
    rows = one(*events).at_peak
    assert len(rows) == MOST_ROWS + 1
    assert rows[0].allocated_bytes == MOST_ROWS + 3 and rows[-1].allocated_bytes == 4
    assert next(row.allocated_bytes for row in rows if row.framework_op == REST) == 1 + 2 + 3


def test_deallocations_that_are_missing_are_noticed() -> None:
    profile = one(
        given(1, addr=1, allocation_bytes=64, **state(64)), given(2, addr=2, allocation_bytes=64, **state(64))
    )
    assert "64 bytes more than the heap" in profile.unknown["at_peak"]


def test_events_without_any_stats_still_count() -> None:
    profile = one(given(1), freed(2), given(3))
    assert profile.id == "" and profile.label == "allocator without a name"
    assert (profile.allocations, profile.deallocations) == (2, 1)
    assert profile.heap_bytes.tolist() == [-1, -1, -1] and np.isnan(profile.fragmentation).all()
    assert profile.at_peak == () and profile.capacity_bytes is None and profile.lifetime_peak_bytes is None
    names = {"stack_bytes", "heap_bytes", "free_bytes", "fragmentation", "lifetime_peak_bytes", "peak_bytes"}
    assert set(profile.unknown) == names | {"capacity_bytes", "at_peak"}
    assert profile.flat is None


@pytest.mark.parametrize("value", [-1, -(2**63), 2**63 - 1, MOST_BYTES + 1, "much", b"\x00", float("nan")])
def test_numbers_that_no_memory_has_are_unknown(value: int | float | str | bytes) -> None:
    stats = dict.fromkeys(("bytes_allocated", "bytes_reserved", "bytes_available", "peak_bytes_in_use"), value)
    profile = one(given(1, addr=1, allocation_bytes=value, requested_bytes=value, fragmentation=value, **stats))
    unknown = -1 if not isinstance(value, float) else int(profile.heap_bytes[0])
    assert profile.heap_bytes.tolist() == [unknown]
    assert profile.lifetime_peak_bytes in (None, 0) and len(profile.at_peak) <= 1
    assert np.isnan(profile.fragmentation).all()


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


def test_a_reference_to_nothing_and_text_that_is_none() -> None:
    space = host_space([given(1, addr=1, allocation_bytes=8, tf_op=b"\xff\xfe", shape="\0", **state(8))])
    op = next(key for key, entry in space.planes[0].stat_metadata.items() if entry.name == b"shape")
    stat = next(stat for stat in space.planes[0].lines[0].events[0].stats if stat.metadata_id == op)
    stat.ref_value = 999
    row = profiles_of(space)[0].at_peak[0]
    assert row.framework_op == "\ufffd\ufffd" and row.shape is None


def test_texts_of_one_length_stay_apart_with_zero_bytes_at_their_ends() -> None:
    names = ("ab", "a\0", "\0a", "\0\0", "ba")
    events = [given(at, addr=at, allocation_bytes=8, tf_op=name, **state(40)) for at, name in enumerate(names)]
    plane = present(host_plane(trace_of(host_space(events))))
    said = describe(plane, present(allocator_events(plane)))
    assert [said.texts[index] for index in said.op] == list(names)


def test_a_text_of_any_length_is_read_in_part() -> None:
    rows = one(given(1, addr=1, allocation_bytes=8, tf_op="x" * 100_000, **state(8))).at_peak
    assert rows[0].framework_op == "x" * 4096


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


def test_other_events_of_the_threads_do_not_count() -> None:
    events = [given(at, addr=at, allocation_bytes=2, **state(2 * at + 2)) for at in range(50)]
    plain, mixed = profiles_of(host_space(events))[0], profiles_of(host_space(events, others=3))[0]
    assert plain.at_peak == mixed.at_peak and plain.heap_bytes.tolist() == mixed.heap_bytes.tolist()


def test_more_events_than_are_decoded_at_a_time() -> None:
    count = 40_000
    events = [
        given(at, at % 3, addr=at, allocation_bytes=4, tf_op=f"op{at % 7}", **state(4 * at + 4)) for at in range(count)
    ]
    profile = one(*events)
    assert profile.heap_bytes.tolist() == [4 * at + 4 for at in range(count)]
    assert {row.framework_op: row.occurrences for row in profile.at_peak} == {
        f"op{at}": len(range(at, count, 7)) for at in range(7)
    }


def test_a_line_that_does_not_move_is_explained() -> None:
    events = [given(at, addr=at, **state(1000 + at % 3, 50)) for at in range(9)]
    assert one(*events).flat == FLAT_OTHER
    on_device = [Made(event.kind, event.time_ps, {**event.stats, "index_on_host": 0}) for event in events]
    assert one(*on_device).flat == FLAT_DEVICE
    assert one(*on_device, given(20, index_on_host=0, addr=77, **state(2000))).flat is None


def test_data_types_have_tensorflows_names() -> None:
    assert [data_type_name(number) for number in (0, 1, 14, 19, 29, 30, 31, 101, 100, -4)] == [
        None, "float", "bfloat16", "half", "int4", "uint4", "type 31", "float_ref", "type 100", "type -4",
    ]  # fmt: skip


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


def test_allocator_events_of_a_cut_off_profile_may_be_what_is_lost() -> None:
    whole = host_space([given(1, addr=1, **state(5))]).SerializeToString()
    trace = Trace.from_bytes(whole[: len(whole) // 4])
    found = host_memory(trace, "host0")
    assert found.allocators == () and found.why_empty is not None and trace.problems
    assert "may be in the lost part" in found.why_empty and trace.problems[0].sentence in found.why_empty


def test_a_host_plane_with_a_longer_name_will_do() -> None:
    space = host_space([given(1, addr=1, **state(5))])
    space.planes[0].name = b"/host:CPU 1"
    assert profiles_of(space)[0].peak_bytes == 5


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


def test_no_runs_where_there_is_no_tpu() -> None:
    runs = runs_of_devices(trace_of(host_space([given(1)])))
    assert len(runs) == 0 and runs.names == () and runs.devices == ()


def test_decoding_can_be_cancelled() -> None:
    def stop(size: int, events: int) -> None:
        raise Cancelled

    trace = trace_of(training_space())
    with pytest.raises(Cancelled):
        memory_profile_of(trace, "host0", stop)


def test_the_training_profile_of_the_tests() -> None:
    moving, still, pinned = profiles_of(training_space())
    assert (moving.label, still.label, pinned.label) == ("HBM of device 0", "HBM of device 1", "pinned_host")
    assert moving.flat is None and still.flat == FLAT_DEVICE
    peak = 6 * GIB + 9 * GIB + 20 * 512 * MIB + 5 * 64 * MIB
    assert moving.peak_bytes == peak == sum(row.occurrences * row.allocated_bytes for row in moving.at_peak)
    assert [(row.framework_op, row.occurrences) for row in moving.at_peak] == [
        ("jit(step)/dot_general", 20), (EARLIER, 1), (STACK, 1), (None, 5),
    ]  # fmt: skip


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


def test_a_cut_profile_gives_the_events_before_the_cut() -> None:
    whole = training_space().SerializeToString()
    for cut in range(200, len(whole), 397):
        found = memory_profile_of(Trace.from_bytes(whole[:cut]), "host0")
        assert all(profile.allocations + profile.deallocations <= 200 for profile in found)


@pytest.mark.parametrize("core", ["c", "numpy"])
def test_both_cores_agree(core: str, tmp_path: Path) -> None:
    file = tmp_path / "host0.xplane.pb"
    file.write_bytes(training_space().SerializeToString())
    script = (
        "import sys; from tpuprof.parsers.formats.xspace.trace import Trace;"
        "from tpuprof.parsers.memory.allocators.profile import memory_profile_of;"
        "print([(one.label, one.peak_bytes, one.at_peak) for one in memory_profile_of(Trace.open(sys.argv[1]), 'h')])"
    )
    environment = {**os.environ, "TPUPROF_CORE": core}
    done = subprocess.run(
        [sys.executable, "-c", script, str(file)], capture_output=True, text=True, env=environment, check=False
    )
    if "no_compiled_core" in done.stderr or "can't be imported" in done.stderr:
        pytest.skip("no compiled core here")
    expected = [(one.label, one.peak_bytes, one.at_peak) for one in profiles_of(training_space())]
    assert done.stdout == f"{expected}\n"

"""The memory profile against XProf 2.24.2: stored answers about the golden profiles, and the XProf that is installed.

Every field of XProf's JSON is compared with what its own rules give on the events that we decode; and what its page
shows with our page. Where our answer differs on purpose, what it must be instead is worked out here once
more, event by event.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.parity.oracle import xprof_memory
from tests.parity.oracle.fields import Agrees, Comparison, Difference, Value, compare
from tests.parity.oracle.golden import GPUS, PROFILES, RUNS, files_of, golden_answer
from tests.parity.oracle.live import ask
from tests.support.build import PlaneBuilder
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.memory.allocators.model import ActiveAllocation, AllocatorProfile
from tpuprof.parsers.memory.allocators.profile import (
    EARLIER,
    FLAT_DEVICE,
    STACK,
    memory_profile_of,
    runs_of_devices,
)

CLOCK = "XProf leaves out where the line's clock begins; ours is the trace's clock, as in the trace viewer"
LAST_EVENT = "XProf takes the event that stands last in the file, of whatever thread; ours is the largest reported"
LIVING = "XProf looks at the peak's step alone, and takes the size of what is freed from the deallocation"

NO_THREADS = ("synthetic-b", "synthetic-c")

# --- our page ------------------------------------------------------------------------------------------------------


def page_fields(profiles: Sequence[AllocatorProfile]) -> dict[str, Value]:
    """What XProf's page shows, out of ours: the summary, the timeline thinned as XProf does, and the peak's rows."""
    fields: dict[str, Value] = {}
    for profile in profiles:
        at, name = profile.peak_index, profile.id
        fields |= xprof_memory.summary(name, _point(profile, at), profile.lifetime_peak_bytes or 0)
        fields[f"{name}.profileSummary.memoryCapacity"] = profile.capacity_bytes
        fields[f"{name}.profileSummary.peakStats.peakBytesInUse"] = profile.peak_bytes
        fields[f"{name}.profileSummary.peakStatsTimePs"] = profile.peak_time_ps
        points = [_point(profile, row) for row in range(len(profile.time_ps))]
        for row, event in enumerate(xprof_memory.sampled(points)):
            made = xprof_memory.snapshot(f"{name}.timeline.{row}", event)
            fields |= {key: value for key, value in made.items() if _is_of_page(key)}
        for kind in profile.at_peak:
            fields[_kind(name, kind)] = kind.occurrences
    return fields


def _is_of_page(key: str) -> bool:
    return ".activityMetadata." not in key and ".aggregationStats.peakBytesInUse" not in key


def _point(profile: AllocatorProfile, at: int) -> xprof_memory.Event:
    """An event of the page's timeline."""
    stack, heap, free = (int(c[at]) for c in (profile.stack_bytes, profile.heap_bytes, profile.free_bytes))
    share = float(np.nan_to_num(profile.fragmentation[at]))
    return xprof_memory.Event(
        int(profile.time_ps[at]), True, max(stack, 0), max(heap, 0), max(free, 0), share, order=at
    )


def _kind(name: str, kind: ActiveAllocation) -> str:
    """Name of the field that counts equal allocations at the peak."""
    return f"{name}.at_peak.{kind.allocated_bytes}.{kind.requested_bytes}.{kind.framework_op or ''}." + (
        f"{kind.region or ''}.{kind.data_type or ''}.{kind.shape or ''}"
    )


def _active(event: xprof_memory.Event) -> ActiveAllocation:
    """An event as our table has it; what stands for no event says nothing of types, and calls the rest otherwise."""
    is_rest = event.op == xprof_memory.UNUSED
    return ActiveAllocation(
        EARLIER if is_rest else event.op or None,
        1,
        event.allocated,
        event.requested,
        None if is_rest else event.region or None,
        None if event.data_type in ("INVALID", "") else event.data_type,
        None if event.order < 0 else event.shape or None,
    )


def shown_fields(events: dict[str, list[xprof_memory.Event]]) -> dict[str, Value]:
    """What XProf's page shows, by its rules, in the terms of `page_fields`."""
    fields: dict[str, Value] = {}
    for name, of_it in events.items():
        peak = xprof_memory.xprofs_peak(of_it)
        fields |= xprof_memory.summary(name, peak, max(of_it, key=lambda event: event.order).lifetime)
        fields |= _thinned(name, of_it)
        for event, occurrences in xprof_memory.merged(xprof_memory.xprofs_rows(of_it, peak)):
            fields[_kind(name, _active(event))] = occurrences
    return fields


def _thinned(name: str, events: Sequence[xprof_memory.Event]) -> dict[str, Value]:
    fields: dict[str, Value] = {}
    for row, event in enumerate(xprof_memory.sampled(events)):
        made = xprof_memory.snapshot(f"{name}.timeline.{row}", event)
        fields |= {key: value for key, value in made.items() if _is_of_page(key)}
    return fields


def right_fields(events: dict[str, list[xprof_memory.Event]]) -> dict[str, Value]:
    """What is right, event by event on the trace's clock, in the terms of `page_fields`."""
    fields: dict[str, Value] = {}
    for name, of_it in events.items():
        last = max(range(len(of_it)), key=lambda at: (of_it[at].used, at))
        peak = of_it[last]
        fields |= xprof_memory.summary(name, peak, max(event.lifetime for event in of_it))
        fields |= _thinned(name, of_it)
        living: dict[int, xprof_memory.Event] = {}
        for event in of_it[: last + 1]:
            living.pop(event.address, None)
            if event.is_allocation:
                living[event.address] = event
        rows = list(living.values())
        rest = peak.heap - sum(event.allocated for event in rows)
        nobody = replace(peak, op="", region="", data_type="INVALID", shape="", order=-1)
        if rest > 0:
            rows.append(replace(nobody, op=xprof_memory.UNUSED, allocated=rest, requested=rest))
        if peak.stack:
            rows.append(replace(nobody, op=STACK, region=STACK, allocated=peak.stack, requested=peak.stack))
        for event, occurrences in xprof_memory.merged(rows):
            fields[_kind(name, _active(event))] = occurrences
    return fields


def differences(theirs: dict[str, Value], right: dict[str, Value]) -> dict[str, Difference]:
    """In what XProf is wrong, and what is right instead; a kind of allocation that one of both lacks counts 0 there."""
    found: dict[str, Difference] = {}
    for key in theirs | right:
        if theirs.get(key, 0) != right.get(key, 0):
            why = LIVING if ".at_peak." in key else LAST_EVENT if key.endswith("UsageLifetime") else CLOCK
            found[key] = Difference(right.get(key, 0), why)
    return found


# --- tests ---------------------------------------------------------------------------------------------------------


def compare_memory_profile(answer: Any, trace: Trace) -> tuple[Comparison, Comparison]:
    """All of XProf's fields against its rules on our events, and what its page shows against our page."""
    repeated = compare(
        xprof_memory.xprof_fields(answer),
        xprof_memory.repeated_fields(xprof_memory.events_of(trace, with_clock=False)),
        {},
    )
    return repeated, shown_as_xprof(trace)


def shown_as_xprof(trace: Trace) -> Comparison:
    """Our page against what XProf's would show, by its rules."""
    theirs = shown_fields(xprof_memory.events_of(trace, with_clock=False))
    right = right_fields(xprof_memory.events_of(trace, with_clock=True))
    ours = page_fields(memory_profile_of(trace, "host0"))
    assert {key: ours.get(key) for key in ours | right} == {key: right.get(key) for key in ours | right}
    both = theirs | dict.fromkeys((key for key in right if key not in theirs), 0)
    mine = {key: ours.get(key, 0) for key in both}
    return compare(both, mine, differences(theirs, right))


def our_modules(trace: Trace) -> dict[str, Value]:
    """The runs of modules, device after device as in the file."""
    runs = runs_of_devices(trace)
    fields: dict[str, Value] = {}
    for at, row in enumerate(np.argsort(runs.device, kind="stable").tolist()):
        fields |= {
            f"hloModules.{at}.name": runs.names[runs.name[row]],
            f"hloModules.{at}.startTimePs": int(runs.start_ps[row]),
            f"hloModules.{at}.endTimePs": int(runs.end_ps[row]),
            f"hloModules.{at}.id": at,
            f"hloModules.{at}.planeName": runs.devices[runs.device[row]],
        }
    return fields


def late_modules(trace: Trace, theirs: dict[str, Value]) -> dict[str, Difference]:
    """The times of runs on lines that begin late; all lines of these profiles begin at one time."""
    begins = {
        line.timestamp_ns
        for plane in trace.planes
        for line in plane.lines
        if plane.name.startswith("/device:TPU:") and line.name == "XLA Modules"
    }
    shift = 1000 * max(begins, default=0)
    assert len(begins) <= 1
    found: dict[str, Difference] = {}
    for key, value in theirs.items():
        if key.endswith("TimePs") and isinstance(value, int) and shift:
            found[key] = Difference(value + shift, CLOCK)
    return found


@pytest.mark.shared
@pytest.mark.parametrize("name", [name for name in (*RUNS, GPUS) if name not in NO_THREADS])
def test_every_field_of_the_goldens(shared: Path, name: str, agrees: Agrees) -> None:
    for host, path in files_of(shared, name).items():
        answer, trace = golden_answer(shared, name, "memory_profile", host), Trace.open(str(path))
        repeated, shown = compare_memory_profile(answer, trace)
        theirs = xprof_memory.module_fields(answer)
        modules = compare(theirs, our_modules(trace), late_modules(trace, theirs))
        assert [part.unexplained for part in (repeated, shown, modules)] == [[], [], []]
        assert repeated.explained == 0 and repeated.compared == len(xprof_memory.xprof_fields(answer))
        assert modules.compared == len(our_modules(trace)) == 5 * len(answer["hloModules"])
        assert answer["hloModules"] or name == GPUS
        agrees(repeated, "memory profile by XProf's rules")
        shown.add(modules)
        agrees(shown, "memory profile")


@pytest.mark.shared
def test_the_training_golden_out_of_its_own_events(shared: Path, agrees: Agrees) -> None:
    answer = golden_answer(shared, "tpu-v5p-training", "memory_profile")
    trace = Trace.from_bytes(rebuilt(answer))
    theirs = xprof_memory.xprof_fields({"numHosts": 1, **answer})
    result = compare(theirs, xprof_memory.repeated_fields(xprof_memory.events_of(trace, with_clock=False)), {})
    assert result.compared == len(theirs) > 13_000
    page = shown_as_xprof(trace)
    assert page.equal > 4_000
    assert all(one.flat == FLAT_DEVICE for one in memory_profile_of(trace, "host0"))  # as training on TPUs looks
    agrees(result, "memory profile by XProf's rules, training golden rebuilt")
    agrees(page, "memory profile, training golden rebuilt")


def rebuilt(answer: Any) -> bytes:
    """A profile with the events of an answer that was not thinned, each allocator's in a thread of its own."""
    plane = PlaneBuilder.alone("/host:CPU")
    numbers = {"bytes_reserved": "stackReservedBytes", "bytes_allocated": "heapAllocatedBytes"}
    numbers |= {"bytes_available": "freeMemoryBytes", "peak_bytes_in_use": "peakBytesInUse"}
    activity = {"requested_bytes": "requestedBytes", "allocation_bytes": "allocationBytes", "addr": "address"}
    activity |= {"group_id": "stepId"}
    for name, allocator in answer["memoryProfilePerAllocator"].items():
        line = plane.line(f"thread {name}")
        snapshots = allocator["sampledTimelineSnapshots"]
        assert len(snapshots) < xprof_memory.SAMPLES
        for one in snapshots:
            stats, said = one.get("aggregationStats", {}), one["activityMetadata"]
            kind = "MemoryAllocation" if said["memoryActivity"] == "ALLOCATION" else "MemoryDeallocation"
            plane.event(
                line,
                plane.event_id(kind),
                int(one["timeOffsetPs"]),
                0,
                index_on_host=int(name),
                fragmentation=float(stats.get("fragmentation", 0)),
                **({"data_type": 0} if said.get("dataType") else {}),
                tf_op=said.get("tfOpName", ""),
                shape=said.get("tensorShape", ""),
                region_type=said.get("regionType", ""),
                **{stat: int(stats.get(key, 0)) for stat, key in numbers.items()},
                **{stat: int(said.get(key, 0)) for stat, key in activity.items()},
            )
    return plane.space.SerializeToString()


LIVE = {
    "V100": "profiles/gpu-v100-bert/plugins/profile/run/worker0.xplane.pb",
    "MI300": "profiles/gpu-mi300-jax/plugins/profile/run/tw003.xplane.pb",
    "v6e": PROFILES["tpu-v6e-inference"],
}


@pytest.mark.shared
@pytest.mark.parametrize("name", LIVE)
def test_every_field_of_the_installed_xprof(shared: Path, name: str, tmp_path: Path, agrees: Agrees) -> None:
    source = shared / LIVE[name]
    answer = ask(source.read_bytes(), tmp_path, ("memory_profile",))["memory_profile"]
    repeated, shown = compare_memory_profile(answer, Trace.open(str(source)))
    assert repeated.explained == 0 and repeated.compared == len(xprof_memory.xprof_fields(answer)) > 4000
    assert shown.equal > shown.explained / 2 > 0
    agrees(repeated, f"memory profile by XProf's rules, live {name}")
    agrees(shown, f"memory profile, live {name}")

"""The static memory page against XProf's memory viewer: every figure, every point of the heap, every buffer."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.parity.oracle.fields import Agrees, Comparison, Difference, compare, same
from tests.parity.oracle.golden import PROFILES, golden_answer
from tests.parity.oracle.live import SPACES, ask_memory
from tests.parity.oracle.memory_fields import MIB, Fields, our_fields, our_heap, their_fields
from tests.parity.oracle.op_fields import NOT_HELD, modules_of
from tests.support.made.heaps import Stay, curve, merged, plain_stays
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.memory.model import ModuleLabel, SpaceMemory
from tpuprof.parsers.memory.modules.space_memory import module_peaks, space_memory

MODULES = sorted((Path(__file__).parents[2] / "demo" / "modules").glob("*.hlo_proto.pb.gz"))

IN_PLACE = "XProf counts bytes that are worked on in place twice, for two buffers at one address"
PLACE_IN_USE = "a place that several buffers share one after the other is in use until the last of them is freed"
FILLED = "XProf names an array that begins empty after what sets it aside, we after what fills it"
UNTRACED = "XProf leaves out a temporary allocation without a heap trace; the program sets it aside all the same"


def memory_of(hlo: HloModule, space: int) -> SpaceMemory:
    return space_memory(hlo, ModuleLabel(hlo.name, None, "file"), space, None)


def trace_of(hlo: HloModule, space: int) -> hlo_pb2.HeapSimulatorTrace | None:
    """The heap trace whose buffers are of a memory space: real modules have one a space at most."""
    colors = {buffer.id: buffer.color for buffer in hlo.proto.buffer_assignment.logical_buffers}
    traces = hlo.proto.buffer_assignment.heap_simulator_traces
    return next((trace for trace in traces if trace.events and colors[trace.events[0].buffer_id] == space), None)


def untraced_bytes(hlo: HloModule, space: int) -> int:
    """Temporary allocations of a space without a trace."""
    if trace_of(hlo, space) is not None:
        return 0
    return sum(
        part.size
        for part in hlo.proto.buffer_assignment.buffer_allocations
        if part.color == space
        and not (part.is_entry_computation_parameter or part.is_constant or part.maybe_live_out or part.is_thread_local)
    )


def differences(theirs: Fields, memory: SpaceMemory, hlo: HloModule, point: int) -> dict[str, Difference]:
    """Where we differ and by what, worked out from the trace and the addresses without the code under test."""
    result = {name: Difference(None, NOT_HELD) for name in ("entryComputationName", "nonReusableMib")}
    trace = trace_of(hlo, memory.space)
    if trace is None:
        return result | _untraced(theirs, memory, hlo)
    plain = plain_stays(hlo.proto, trace)
    live_ranges = merged(plain)
    if live_ranges == plain:
        return result | _spans(theirs, live_ranges, PLACE_IN_USE)
    sums = curve(live_ranges, len(trace.events) + 1)
    lasting = round(theirs["indefiniteBufferAllocationMib"] * MIB)  # type: ignore[operator]
    expected: Fields = {f"heapSizes/{at}": (size + lasting) / MIB for at, size in enumerate(sums)}
    expected["peakHeapMib"] = (max(sums) + lasting) / MIB
    expected["peakHeapSizePosition"] = sums.index(max(sums)) - 1
    unpadded = {
        row.logical_buffer: row.unpadded_bytes for row in (memory.buffers[at] for at in range(len(live_ranges)))
    }
    elements = curve(
        [Stay(stay.buffer, unpadded[stay.buffer] or 0, stay.start, stay.end) for stay in live_ranges], len(sums)
    )
    expected |= {f"unpaddedHeapSizes/{at}": (size + lasting) / MIB for at, size in enumerate(elements)}
    expected["peakUnpaddedHeapMib"] = (elements[sums.index(max(sums))] + lasting) / MIB
    there = {stay.buffer for stay in live_ranges if stay.start < point <= stay.end}
    heap = our_heap(
        [memory.buffers[at] for at in range(len(live_ranges)) if memory.buffers[at].logical_buffer in there]
    )
    expected |= {name: heap.get(name) for name in theirs if name.startswith(("buffer/", "bySize/", "small"))}
    changed = {name: value for name, value in expected.items() if name in theirs and not same(theirs[name], value)}
    return (
        result
        | _spans(theirs, live_ranges, IN_PLACE)
        | {name: Difference(value, IN_PLACE) for name, value in changed.items()}
    )


def _filled(theirs: Fields, ours: Fields, hlo: HloModule) -> dict[str, Difference]:
    """The op and its source of arrays that something without a name, or a broadcast, sets aside for a loop to fill."""
    filled = set[str]()
    for buffer in hlo.proto.buffer_assignment.logical_buffers:
        made = hlo.instruction_by_id(buffer.defined_at.instruction_id)
        if made is not None and (not made.metadata.op_name or made.opcode in (b"broadcast", b"custom-call")):
            filled.add(str(buffer.id))
    texts = [name for name, value in theirs.items() if name in ours and isinstance(value, str)]
    of_filled = [name for name in texts if name.startswith(("block/", "buffer/")) and name.split("/")[1] in filled]
    return {name: Difference(ours[name], FILLED) for name in of_filled if not same(theirs[name], ours[name])}


def _spans(theirs: Fields, live_ranges: list[Stay], why: str) -> dict[str, Difference]:
    """Ends of stays that are not XProf's."""
    result: dict[str, Difference] = {}
    seen: set[int] = set()
    for stay in live_ranges:
        if stay.buffer not in seen:
            for name in (f"span/{stay.buffer}/limit", f"block/{stay.buffer}/endStep"):
                if name in theirs and theirs[name] != stay.end:
                    result[name] = Difference(stay.end, why)
        seen.add(stay.buffer)
    return result


def _untraced(theirs: Fields, memory: SpaceMemory, hlo: HloModule) -> dict[str, Difference]:
    """What a temporary allocation without a trace changes."""
    size = untraced_bytes(hlo, memory.space)
    if not size:
        return {}
    count = sum(name.startswith("bySize/") for name in theirs)
    sizes = sorted([*(float(theirs[f"bySize/{at}"] or 0) for at in range(count)), size / MIB], reverse=True)
    changed = {
        f"bySize/{at}": value for at, value in enumerate(sizes) if theirs.get(f"bySize/{at}") not in (None, value)
    }
    changed["peakHeapMib"] = float(theirs["peakHeapMib"] or 0) + size / MIB
    return {name: Difference(value, UNTRACED) for name, value in changed.items()} | {
        "peakUnpaddedHeapMib": Difference(None, UNTRACED)
    }


def compare_memory(answer: Any, hlo: HloModule, space: int) -> Comparison:
    """Every field of XProf's answer about one memory space of a module."""
    memory = memory_of(hlo, space)
    point = int(answer.get("peakHeapSizePosition", 0)) + 1 if "heapSizes" in answer else 0  # after XProf's event
    theirs, ours = their_fields(answer), our_fields(memory, point)
    known = differences(theirs, memory, hlo, point) | _filled(theirs, ours, hlo)
    gone = {name: None for name, known_as in known.items() if known_as.ours is None and name not in ours}
    result = compare(theirs, ours | gone, known)
    assert not result.unused_specific(known)
    return result


GOLDEN = (
    "jit__psum(9646411105960254074)",
    "jit_broadcast_in_dim(11287434908481120160)",
    "jit_convert_element_type(2433868464432466958)",
    "jit_f(12190760917235803885)",
)


@pytest.mark.shared
@pytest.mark.parametrize("module", GOLDEN)
def test_a_real_program_from_a_v6e(shared: Path, module: str, agrees: Agrees) -> None:
    hlo = modules_of(shared / PROFILES["tpu-v6e-inference"]).module(int(module.partition("(")[2][:-1]))
    assert hlo is not None
    result = compare_memory(golden_answer(shared, "tpu-v6e-inference", f"memory_viewer.{module}"), hlo, 0)
    assert result.compared > 20
    agrees(result, "memory viewer, tpu-v6e-inference")


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int], Any]:
    """XProf's answers about the modules that this repository holds."""
    modules = {file.name.partition(".")[0]: gzip.decompress(file.read_bytes()) for file in MODULES}
    return ask_memory(modules, tmp_path_factory.mktemp("xprof"))


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("file", MODULES, ids=lambda file: file.name.partition(".")[0])
def test_a_compiled_module(answers: dict[tuple[str, int], Any], file: Path, space: int, agrees: Agrees) -> None:
    result = compare_memory(answers[file.name.partition(".")[0], space], hlo_of(file), space)
    assert result.compared >= 12
    agrees(result, f"memory viewer, live space {space}")


def hlo_of(file: Path) -> HloModule:
    return HloModule(hlo_pb2.HloProto.FromString(gzip.decompress(file.read_bytes())))


@pytest.mark.parametrize("file", MODULES, ids=lambda file: file.name.partition(".")[0])
def test_the_compiler_reports_the_same_peak(file: Path) -> None:
    """JAX's `peak_memory_in_bytes`: what lasts in HBM, and the largest peak of all heap traces.

    The largest one can be VMEM's, in programs with next to no temporary buffers in HBM; then it is no peak of HBM.
    """
    report = json.loads(file.with_name(f"{file.name.partition('.')[0]}.json").read_text())
    hlo = hlo_of(file)
    memory = memory_of(hlo, 0)
    traces = hlo.proto.buffer_assignment.heap_simulator_traces
    peaks = [max(curve(plain_stays(hlo.proto, trace), len(trace.events) + 1)) for trace in traces]
    lasting = memory.peak_bytes - memory.temporaries_bytes
    assert report["peak_memory_in_bytes"] == lasting + max(peaks)
    if memory.temporaries_bytes == max(peaks):
        assert memory.peak_bytes == report["peak_memory_in_bytes"]
    assert memory.arguments_bytes == report["argument_size_in_bytes"]
    assert memory.outputs_bytes == report["output_size_in_bytes"]
    assert memory.aliased_bytes == report["alias_size_in_bytes"]
    assert module_peaks(hlo, memory.module).peaks[0] == memory.peak_bytes

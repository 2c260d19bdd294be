"""What a profile's events say of a question, by arithmetic beside `tests.insight.raw`: no page is asked."""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import fmean

from tests.insight.raw import RawCore, RawEvent, RawOp, mean_over, times_of
from tests.support.made.heaps import plain_stays
from tpuprof.parsers.formats.proto.hlo_pb2 import HloProto
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace

MODULES = Path(__file__).parents[2] / "demo" / "modules"

Cores = Sequence[RawCore]


def durations(space: XSpace, name: str, line: str = "XLA Modules") -> list[int]:
    """Picoseconds of each event of a name on the lines of all cores; a module's goes without its program's number."""
    found = []
    for plane in (plane for plane in space.planes if plane.name.startswith(b"/device:TPU:")):
        called = {key: _short(value.name.decode()) for key, value in plane.event_metadata.items()}
        for each in plane.lines:
            if each.name == line.encode():
                found += [time.device_ps for time in times_of(plane, each) if called[time.key] == name]
    return found


def _short(name: str) -> str:
    return name.partition(" = ")[0].removeprefix("%").partition("(")[0]


def host_events(space: XSpace, name: str) -> int:
    """How many events of a name the host's threads have."""
    (plane,) = (plane for plane in space.planes if plane.name == b"/host:CPU")
    ids = {key for key, value in plane.event_metadata.items() if value.name.decode() == name}
    return sum(event.metadata_id in ids for line in plane.lines for event in line.events)


def self_times(events: Iterable[RawEvent]) -> Counter[str]:
    """Self time of each op by name."""
    found: Counter[str] = Counter()
    for event in events:
        found[event.op.name] += event.self_ps
    return found


def opcode_ms(cores: Cores) -> dict[str, float]:
    """Milliseconds a step of the ops of each opcode, mean over cores."""
    found: Counter[str] = Counter()
    for core in cores:
        for op, times in core.by_op.items():
            found[op.opcode] += sum(times)
    return {opcode: ps / sum(len(core.steps) for core in cores) / 1e9 for opcode, ps in found.items()}


def step_average_ms(cores: Cores) -> float:
    """Milliseconds of a mean step, mean over cores."""
    return fmean(fmean(core.step_ps) for core in cores) / 1e9


def share_of_ops(cores: Cores, belongs: Callable[[RawOp], bool]) -> float:
    """The share of these ops in the self time of all."""
    return mean_over(cores, lambda core: core.self_ms(belongs)) / mean_over(cores, lambda core: core.self_ms(_any))


def _any(op: RawOp) -> bool:
    return True


def share_of_peak(cores: Cores, belongs: Callable[[RawOp], bool] = _any) -> float:
    """FLOPs of these ops over those that the matrix units could have done in the steps."""
    did = sum(op.flops * len(times) for core in cores for op, times in core.by_op.items() if belongs(op))
    return did / sum(core.peak_flops * sum(core.step_ps) / 1e12 for core in cores)


def share_of_roof(cores: Cores, name: str) -> float:
    """The least time that an op's FLOPs and bytes need at the peaks, over what it takes."""
    least, taken = _least_and_taken(cores)[name]
    return least / taken


def loses_most(cores: Cores) -> str:
    """The op that computes, and takes most time above what its FLOPs and bytes need."""
    lost = {name: taken - least for name, (least, taken) in _least_and_taken(cores).items() if least}
    return max(lost, key=lost.__getitem__)


def _least_and_taken(cores: Cores) -> dict[str, tuple[float, float]]:
    """Of each op that computes, what its FLOPs and bytes need at the peaks, and what it takes."""
    found: dict[str, tuple[float, float]] = {}
    for core in cores:
        for op, times in core.by_op.items():
            if op.computes:
                least, taken = found.get(op.name, (0.0, 0.0))
                found[op.name] = least + core.roof_ps(op) * len(times), taken + sum(times)
    return found


def rate_of(cores: Cores, name: str) -> float:
    """FLOP/s of an op over the matrix unit's peak."""
    pairs = [
        (op.flops * len(times), sum(times)) for core in cores for op, times in core.by_op.items() if op.name == name
    ]
    return sum(flops for flops, _ in pairs) / sum(ps for _, ps in pairs) * 1e12 / cores[0].peak_flops


def is_recomputed(op: RawOp) -> bool:
    """Whether it computes again what the forward pass has computed, by the name that JAX gives such ops."""
    return "rematted_computation" in op.scope


def is_callback(op: RawOp) -> bool:
    """Whether it sends something to the host's program, or waits for what comes back."""
    return op.opcode in ("send", "recv-done") and "is_host_transfer=true" in op.text


def far_from_roof(cores: Cores, share: float, least_share: float) -> frozenset[str]:
    """Ops that compute, whose work is counted, below a share of their roof, and that take a least share of op time."""
    whole = sum(event.self_ps for core in cores for event in core.events)
    return frozenset(
        name
        for name, (least, taken) in _least_and_taken(cores).items()
        if taken > least_share * whole and 0 < least < share * taken
    )


def waited_for(cores: Cores) -> tuple[str, int]:
    """The collective in which cores wait longest for the last one, and how long altogether."""
    waits: dict[str, int] = defaultdict(int)
    tables = [{op.name: times for op, times in core.by_op.items() if op.is_collective} for core in cores]
    for name in tables[0]:
        for exchange in zip(*(table[name] for table in tables), strict=True):
            waits[name] += sum(exchange) - min(exchange) * len(exchange)
    return max(waits.items(), key=lambda item: item[1])


def peak_bytes(module: str) -> int:
    """What a module of the demo takes at its peak, as its compiler said."""
    return int(json.loads((MODULES / f"{module}.json").read_text())["peak_memory_in_bytes"])


def largest_at_peak(module: str) -> int:
    """Bytes of the largest buffer that lives at the peak of a module's HBM, by its heap's trace."""
    proto = HloProto.FromString(gzip.decompress((MODULES / f"{module}.hlo_proto.pb.gz").read_bytes()))
    traces = [plain_stays(proto, trace) for trace in proto.buffer_assignment.heap_simulator_traces]
    live = ([stay.size for stay in stays if stay.start <= at.start < stay.end] for stays in traces for at in stays)
    return max((sum(sizes), max(sizes)) for sizes in live)[1]

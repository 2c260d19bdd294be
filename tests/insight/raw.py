"""What a profile's own events say, by plain arithmetic: nothing here goes through the program's readers or sums.

Messages are parsed by protobuf's classes. A core's ops get their self time from how they nest, and lie in the step in
which they begin. Where events lie is read on the trace's clock, and how long they take on the device's own where they
have its times: the trace's clock is corrected now and then, by as much as a fifth of a second. Times are picoseconds.
"""

from __future__ import annotations

import gzip
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from tpuprof.parsers.formats.proto.xplane_pb2 import MemoryAccessBreakdown, XEventMetadata, XLine, XPlane, XSpace, XStat

Span = tuple[int, int]

_COLLECTIVE = re.compile(
    r"(all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute|async-collective)(-start|-done)?(?![a-z])"
)
_DATA_MOVED = re.compile(r"(copy|async)-(start|done)$|(copy|transpose|reshape|slice)$")
_MOVES = {"copy", "transpose", "bitcast", "reshape"}
"""What fusions are named after that only move data, and compute nothing: ``copy_bitcast_fusion.3``."""
_DEVICE_SPAN = (b"device_offset_ps", b"device_duration_ps")
HBM = 1
"""Memory space of a breakdown's entry."""


@dataclass(frozen=True)
class RawOp:
    """What a core's plane says of an op."""

    name: str
    opcode: str
    text: str
    category: str
    scope: str
    flops: int
    hbm_bytes: int

    @property
    def is_collective(self) -> bool:
        """Whether it exchanges data between cores, or starts or awaits such an exchange."""
        fused = self.name.startswith("async-collective") or "all-reduce-scatter" in self.category
        return fused or bool(_COLLECTIVE.match(self.opcode))

    @property
    def is_of_host_memory(self) -> bool:
        """Whether it moves an array from or to the host's memory."""
        return "S(5)" in self.text and not self.is_collective

    @property
    def computes(self) -> bool:
        """Whether it does arithmetic, or moves data as a part of that."""
        moves = self.is_collective or self.is_of_host_memory or self.is_fused_copy or _DATA_MOVED.match(self.opcode)
        return not moves and not self.is_loop

    @property
    def is_fused_copy(self) -> bool:
        """Whether it is a fusion that only moves data, by the instructions that XLA named it after."""
        parts = self.name.partition(".")[0].split("_")
        return len(parts) > 1 and parts[-1] == "fusion" and _MOVES.issuperset(parts[:-1])

    @property
    def is_loop(self) -> bool:
        """Whether other ops run inside it."""
        return self.opcode in ("while", "conditional", "call")


@dataclass(frozen=True)
class RawEvent:
    """An op that ran: when it began, its self time, and its step's number."""

    op: RawOp
    begin: int
    self_ps: int
    step: int


@dataclass(frozen=True)
class RawCore:
    """A core: its steps, how long each takes, and its ops within them in the order they began."""

    steps: list[Span]
    step_ps: list[int]
    events: list[RawEvent]
    peak_flops: float
    peak_hbm: float

    def self_ms(self, belongs: Callable[[RawOp], bool]) -> float:
        """Milliseconds a step of these ops."""
        return sum(sum(times) for op, times in self.by_op.items() if belongs(op)) / len(self.steps) / 1e9

    @cached_property
    def by_op(self) -> dict[RawOp, list[int]]:
        """Self times of each op."""
        found: dict[RawOp, list[int]] = defaultdict(list)
        for event in self.events:
            found[event.op].append(event.self_ps)
        return found

    def roof_ps(self, op: RawOp) -> float:
        """The least time that the chip's peaks allow."""
        return max(op.flops / self.peak_flops, op.hbm_bytes / self.peak_hbm) * 1e12


def read(path: Path) -> XSpace:
    """The messages of a file."""
    data = path.read_bytes()
    return XSpace.FromString(gzip.decompress(data) if path.suffix == ".gz" else data)


def cores_of(space: XSpace) -> list[RawCore]:
    """The TPU cores of a host."""
    return [_core(plane) for plane in space.planes if re.fullmatch(rb"/device:TPU:\d+", plane.name)]


def _core(plane: XPlane) -> RawCore:
    lines = {line.name.decode(): line for line in plane.lines}
    ops = {key: _op(plane, value) for key, value in plane.event_metadata.items()}
    times = times_of(plane, lines["XLA Ops"])
    if "Steps" in lines:
        steps = sorted((event.offset_ps, event.offset_ps + event.duration_ps) for event in lines["Steps"].events)
        step_ps = [end - begin for begin, end in steps]
    else:
        steps, step_ps = _between_ends(lines["XLA Modules"], times)
    stats = _stats(plane, plane.stats)
    peaks = float(str(stats["peak_teraflops_per_second"])), float(str(stats["peak_hbm_bw_gigabytes_per_second"]))
    return RawCore(steps, step_ps, _events(times, ops, steps), peaks[0] * 1e12, peaks[1] * 1e9)


@dataclass(frozen=True, order=True)
class _Time:
    """An event of an op: its span on the device's clock, and when it began on the trace's."""

    device_begin: int
    minus_device_end: int
    begin: int
    key: int

    @property
    def device_ps(self) -> int:
        """How long it takes."""
        return -self.minus_device_end - self.device_begin


def times_of(plane: XPlane, line: XLine) -> list[_Time]:
    """When each event of a line ran, in order: by the device's own clock where the event has its times."""
    names = {key: value.name for key, value in plane.stat_metadata.items()}
    found = []
    for event in line.events:
        device = {names[stat.metadata_id]: stat.uint64_value for stat in event.stats}
        span = event.offset_ps, event.duration_ps
        begin, length = (device.get(name, own) for name, own in zip(_DEVICE_SPAN, span, strict=True))
        found.append(_Time(begin, -begin - length, event.offset_ps, event.metadata_id))
    return sorted(found)


def _between_ends(line: XLine, times: Sequence[_Time]) -> tuple[list[Span], list[int]]:
    """Steps of a program without step markers: from one end of the module that takes most to the next.

    A module's end on the device's clock is that of its last op.
    """
    taken: dict[int, int] = defaultdict(int)
    for event in line.events:
        taken[event.metadata_id] += event.duration_ps
    most = max(taken, key=taken.__getitem__)
    runs = sorted(
        (event.offset_ps, event.offset_ps + event.duration_ps) for event in line.events if event.metadata_id == most
    )
    device_ends = [max(-time.minus_device_end for time in times if begin <= time.begin < end) for begin, end in runs]
    spans = [(before[1], after[1]) for before, after in pairwise(runs)]
    return spans, [after - before for before, after in pairwise(device_ends)]


def _stats(plane: XPlane, stats: Iterable[XStat]) -> dict[str, object]:
    found: dict[str, object] = {}
    for stat in stats:
        which = stat.WhichOneof("value")
        found[plane.stat_metadata[stat.metadata_id].name.decode()] = getattr(stat, which) if which else None
    return found


def _op(plane: XPlane, metadata: XEventMetadata) -> RawOp:
    text = metadata.name.decode()
    stats = _stats(plane, metadata.stats)
    breakdown = MemoryAccessBreakdown.FromString(_bytes(stats.get("memory_access_breakdown", b"")))
    moved = sum(part.bytes_accessed for part in breakdown.memory_accessed if part.memory_space == HBM)
    name, _, rest = text.partition(" = ")
    return RawOp(
        name.removeprefix("%"), _opcode(rest), text, _text(stats.get("hlo_category", b"")),
        _text(stats.get("tf_op", b"")), int(str(stats.get("flops", 0))), moved,
    )  # fmt: skip


def _bytes(value: object) -> bytes:
    assert isinstance(value, bytes)
    return value


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _opcode(rest: str) -> str:
    """The opcode behind the shape, which is a tuple in brackets or has no blank."""
    depth = 0
    for at, letter in enumerate(rest):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == " " and depth == 0:
            return rest[at + 1 :].partition("(")[0]
    return ""


def _events(times: Sequence[_Time], ops: dict[int, RawOp], steps: Sequence[Span]) -> list[RawEvent]:
    """The ops of the steps, each with the time in which no other runs inside it."""
    inside = [0] * len(times)
    around: list[int] = []
    for number, time in enumerate(times):
        while around and -times[around[-1]].minus_device_end <= time.device_begin:
            around.pop()
        if around:
            inside[around[-1]] += time.device_ps
        around.append(number)
    found = []
    step = 0
    for time, nested in zip(times, inside, strict=True):
        while step < len(steps) and time.begin >= steps[step][1]:
            step += 1
        if step < len(steps) and time.begin >= steps[step][0]:
            found.append(RawEvent(ops[time.key], time.begin, time.device_ps - nested, step))
    return found


def mean_over(cores: Sequence[RawCore], value: Callable[[RawCore], float]) -> float:
    return fmean(map(value, cores))


def step_ms(cores: Sequence[RawCore]) -> list[float]:
    """Milliseconds of each step, mean over cores."""
    return [fmean(times) / 1e9 for times in zip(*(core.step_ps for core in cores), strict=True)]


def before_first_op_ms(cores: Sequence[RawCore], step: int) -> float:
    """Milliseconds from a step's begin to its first op, mean over cores."""
    return (
        fmean(min(event.begin for event in core.events if event.step == step) - core.steps[step][0] for core in cores)
        / 1e9
    )


def without_op_ms(core: RawCore) -> float:
    """Milliseconds a step in which no op runs."""
    return (sum(core.step_ps) - sum(event.self_ps for event in core.events)) / len(core.steps) / 1e9


def moving_and_waiting_ms(cores: Sequence[RawCore]) -> tuple[float, float]:
    """Milliseconds a step that collectives move data, and that cores wait for the last one in them.

    The n-th event of an op is one exchange on all cores. The shortest of them is the transfer, and what others take
    beyond it is waiting.
    """
    moving, whole = 0, 0
    times = [{op: found for op, found in core.by_op.items() if op.is_collective} for core in cores]
    names = {op.name for op in times[0]}
    for name in names:
        of_cores = [next(found for op, found in table.items() if op.name == name) for table in times]
        for exchange in zip(*of_cores, strict=True):
            moving += min(exchange) * len(exchange)
            whole += sum(exchange)
    steps = sum(len(core.steps) for core in cores)
    return moving / steps / 1e9, (whole - moving) / steps / 1e9

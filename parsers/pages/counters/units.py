"""How each unit was used while it was sampled: what it achieved against its peak.

There are three sources. A reading of the registers (`samples.RegisterReading`) has one value for the whole time that
was sampled: the cycles that it counts itself. Registers that the profiler reads now and then show it by how much they
grow. And ``% util`` of custom calls is what the compiler counted of each unit's instructions, over measured time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import numpy as np

from tpuprof.parsers.base.intervals import Floats, positions
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.ops.counters.chips import CYCLES, Chip, Core, Group, HardwareUnit, Measure, Node, tensor_units
from tpuprof.parsers.ops.counters.kernels import SEEN
from tpuprof.parsers.ops.counters.samples import UTILIZATION, RegisterReading, Sampled, register_name

Source = Literal["reading", "periodic", "LLO"]
"""How it is known: one reading of the registers, registers read now and then, or the compiler's count."""

_LANES: Mapping[str, Group] = {
    "MXU": "matrix",
    "Scalar ALU": "scalar",
    "Vector ALU": "vector",
    "Vector EUP": "vector",
    "Vector Load": "load/store",
    "Vector Store": "load/store",
    "XLU": "cross-lane",
}
"""What the compiler's counts are of, by the names that the profiler gives them."""

_PS = 1e12


@dataclass(frozen=True, slots=True)
class UnitUse:
    """What a unit did while it was sampled.

    Attributes:
        plane: name of the device plane.
        core, number: which core of its chip; for the compiler's counts and registers read now and then 0.
        source: how it is known; sample: the id of the reading; kernel: what it is of, empty for the whole capture.
        name, group, measure, meaning, is_share: see `chips.HardwareUnit`.
        achieved, peak: in `measure` (ps: of time); None where no counter of it was sampled.
        sampled_ps: for how long it was sampled; None where no clock was.
    """

    plane: str
    core: Core
    number: int
    source: Source
    sample: int
    kernel: str
    name: str
    group: Group
    measure: Measure
    meaning: str
    is_share: bool
    achieved: float | None
    peak: float | None
    sampled_ps: int | None

    @property
    def use(self) -> float | None:
        """Achieved over peak, 0-1; None where either is unknown."""
        return self.achieved / self.peak if self.achieved is not None and self.peak else None


def of_readings(plane: str, chip: Chip, readings: Iterable[RegisterReading]) -> Iterator[UnitUse]:
    """The units of a chip by each reading of its registers."""
    wanted = np.array(sorted({at for node in chip.nodes for ids in node.registers.values() for at in ids}), np.int64)
    places = [{name: positions(np.array(ids), wanted) for name, ids in node.registers.items()} for node in chip.nodes]
    for reading in readings:
        found = positions(reading.number.view(np.int64), wanted)
        value = np.full(len(wanted), np.nan)
        value[found[found >= 0]] = np.maximum(reading.value, 0)[found >= 0]
        for node, of_node in zip(chip.nodes, places, strict=True):
            yield from _of_node(plane, chip, node, reading, {name: _sum(value[at]) for name, at in of_node.items()})


def _sum(values: Floats) -> float | None:
    """The sum of those that are known; None where none is."""
    known = values[np.isfinite(values)]
    return float(known.sum()) if len(known) else None


def _of_node(
    plane: str, chip: Chip, node: Node, reading: RegisterReading, registers: Mapping[str, float | None]
) -> Iterator[UnitUse]:
    """The units of a core; nothing where none of its counters was sampled."""
    if all(value is None for name, value in registers.items() if not name.endswith((CYCLES, "CYCLE_COUNT"))):
        return
    for unit in node.units:
        achieved = _achieved(unit, registers)
        clock = registers.get(unit.clock) if unit.clock else registers.get(CYCLES)
        peak = _peak(unit, clock) if unit.clock else _achieved_of_all(node, registers)
        sampled = round(clock / chip.frequency_hz * _PS) if clock else None
        said = (unit.name, unit.group, unit.measure, unit.meaning, unit.is_share)
        where = (plane, node.core, node.number, "reading", reading.sample, reading.kernel)
        yield UnitUse(*where, *said, achieved, peak, sampled)  # type: ignore[arg-type]


def _achieved(unit: HardwareUnit, registers: Mapping[str, float | None]) -> float | None:
    """What the sampled ones of a unit's counters add up to; None where none was."""
    known = [(value, weight) for name, weight in unit.terms if (value := registers.get(name)) is not None]
    return sum(value * weight for value, weight in known) if known else None


def _achieved_of_all(node: Node, registers: Mapping[str, float | None]) -> float | None:
    """What a share of the traffic is a share of: all of it."""
    whole = next(unit for unit in node.units if unit.group == "memory")
    return _achieved(whole, registers)


def _peak(unit: HardwareUnit, cycles: float | None) -> float | None:
    """What the unit can do in some cycles; whole instructions and cycles, as XProf counts them."""
    if not cycles:
        return None
    most = unit.per_cycle * cycles
    return most if unit.measure == "bytes" else float(np.floor(most + 1e-9))


def of_samples(plane: str, chip: Chip | None, tracks: Sequence[Sampled]) -> Iterator[UnitUse]:
    """The units of a core by what was sampled over time."""
    lanes = [lane_use(plane, track) for track in tracks if track.stat == UTILIZATION]
    longest = max((lane.sampled_ps or 0 for lane in lanes), default=0)
    for lane in lanes:  # one that has a sample of a nanosecond a call, where others have the whole call, is not known
        is_seen = (lane.sampled_ps or 0) >= SEEN * longest
        yield lane if is_seen else replace(lane, achieved=None, peak=None, sampled_ps=None)
    if chip is not None:
        yield from _periodic(plane, chip, [track for track in tracks if register_name(track.event) is not None])


def lane_use(plane: str, track: Sampled) -> UnitUse:
    """A unit by the compiler's count: busy time of the time that was sampled."""
    held, sampled = track.weights()
    busy = float((track.value * held).sum() / 100) if sampled else None
    said = ("time of its instructions by the compiler's count, as a share of the sampled time of custom calls", False)
    group = _LANES.get(track.event, "vector")
    peak = float(sampled) or None
    where: tuple[str, Core, int, Source, int, str] = (plane, "TensorCore", 0, "LLO", 0, "")
    return UnitUse(*where, track.event, group, "ps", *said, busy, peak, sampled or None)


def _periodic(plane: str, chip: Chip, tracks: Sequence[Sampled]) -> Iterator[UnitUse]:
    """The units of a TensorCore by how much its registers grew from the first sample to the last."""
    grown: dict[str, float] = {}
    spans: list[int] = []
    for track in tracks:
        name, span = register_name(track.event), int(track.start_ps[-1] - track.start_ps[0])
        if name is not None and span > 0 and bool((np.diff(track.value) >= 0).all()):
            grown[name] = float(track.value[-1] - track.value[0])
            spans.append(span)
    if not spans:
        return
    sampled = max(spans)
    cycles = grown.get(CYCLES) or sampled / _PS * chip.frequency_hz
    for unit in tensor_units(chip):
        achieved = _achieved(unit, grown)
        if achieved is not None:
            where: tuple[str, Core, int, Source, int, str] = (plane, "TensorCore", 0, "periodic", 0, "")
            said = (unit.name, unit.group, unit.measure, unit.meaning, unit.is_share)
            yield UnitUse(*where, *said, achieved, _peak(unit, cycles), sampled)

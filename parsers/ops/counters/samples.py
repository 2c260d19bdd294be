"""Values of a device's counters over time, as the profile holds them.

The events of a line ``_counters_`` each give one counter a value. What lasts no time holds until the counter's next
value, such as ``power`` of ``HBM FW Power Meter PL2(W)`` or a register that the profiler reads now and then. What lasts
is given for its own time only: ``% util`` of ``MXU`` stands for a microsecond of a custom call, and between two calls
nothing was sampled (docs/custom_call_profiling.md of XProf).

Lines named ``counters_…`` hold one reading of many registers: an event a register, with the stat ``counter_value``.
XProf's `xplane_to_perf_counters.cc` lists them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Floats, Int64s
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.formats.proto import xplane_pb2
from tpuprof.parsers.formats.xspace.events import Events
from tpuprof.parsers.formats.xspace.metadata import KIND_DOUBLE
from tpuprof.parsers.formats.xspace.trace import Line, Plane
from tpuprof.parsers.ops.core.ops import Keys, event_spans
from tpuprof.parsers.ops.op_metadata import MetadataStats, OpSource

SAMPLED_LINE = "_counters_"
UTILIZATION = "% util"
"""The stat of a unit's use in percent; the compiler's count over measured time, not a hardware counter."""

_LARGEST = 1e100  # no counter has such a value; sums of smaller ones are numbers
_READING = "counters_"
_COUNT = "COUNT_"
"""What the names of registers begin with."""

_VALUE, _NUMBER = "counter_value", "performance_counter_id"
_TEXTS = ("performance_counter_description", "performance_counter_sets")

_NO_VALUES = frozenset(
    {
        *("group_id", "device_offset_ps", "device_duration_ps", "run_id", "program_id", "symbol_id", "flow"),
        "correlation_id",
    }
)
"""Stats that say where an event belongs and hold no value, like stats whose names begin with ``_``."""

UNIT_LINE = pattern(r"((?:SALU|VALU|EUP|XLU|VLD|VST|MXU.*)) Instructions\Z")
"""Lines of the instructions of one unit, which the profiler writes for custom calls."""

_UNIT = pattern(r"\(([^()]{1,12})\)\s*$")


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """A counter's values over time.

    Attributes:
        event, stat: names of the counter and of its value.
        label: the counter's name, with the value's where it has several.
        start_ps, end_ps: int64[n], ascending by start; equal for a value that holds until the next.
        value: float64[n], finite.
        unit: as in the profile; empty where unknown.
    """

    event: str
    stat: str
    label: str
    start_ps: Int64s
    end_ps: Int64s
    value: Floats
    unit: str

    @property
    def lasts(self) -> bool:
        """Whether each of its values is given for a time of its own."""
        return bool((self.end_ps > self.start_ps).any())

    def weights(self) -> tuple[Floats, int]:
        """How long each value holds, and for how long the counter was sampled, in picoseconds.

        A value that holds until the next one is known until the last of them; the last one weighs nothing.
        """
        if self.lasts:
            held = (self.end_ps - self.start_ps).astype(np.float64)
        else:
            held = np.append(np.diff(self.start_ps), 0).astype(np.float64)
        return held, int(held.sum())

    def mean(self) -> float:
        """The mean over the time that was sampled; of values of one instant the plain mean."""
        held, sampled = self.weights()
        if not sampled:
            return float((self.value / len(self.value)).sum())
        return float((self.value * (held / held.sum())).sum())


@dataclass(frozen=True, slots=True, eq=False)
class RegisterReading:
    """One reading of a device's registers: the events of a line ``counters_…``.

    Attributes:
        line, sample: name and id of the line.
        metadata_id: int64[n], the events' metadata.
        number: uint64[n], the counters' numbers.
        start_ps: int64[n].
        value: float64[n], finite.
        exact: uint64[n]; the same, to the last digit, of whole numbers; is_whole: bool[n], which values these are.
        texts: description and sets of each counter, by metadata id; None where it has none.
    """

    line: str
    sample: int
    metadata_id: Int64s
    number: NDArray[np.uint64]
    start_ps: Int64s
    value: Floats
    exact: NDArray[np.uint64]
    is_whole: Bools
    texts: Mapping[int, tuple[str | None, ...]]

    @property
    def kernel(self) -> str:
        """What the reading is of: the end of its name; empty for one of the whole capture, which has but a number."""
        name = self.line.removeprefix(_READING)
        return "" if name.isdigit() else name


def has_counters(plane: Plane) -> bool:
    """Whether a plane has counters, or instructions of units; it reads names of lines alone."""
    names = [line.name for line in plane.lines]
    return any(name == SAMPLED_LINE or name.startswith(_READING) or UNIT_LINE.match(name) for name in names)


def unit_of(name: str) -> str:
    """The unit in a counter's name, such as ``W`` in ``Power(W)``; empty where there is none."""
    match = _UNIT.search(name)
    return match.group(1).strip() if match else "%" if name == UTILIZATION else ""


def sampled(plane: Plane) -> Iterator[Sampled]:
    """The counters of the lines ``_counters_``, a value's name at a time, in the order of the file."""
    for line in plane.lines:
        if line.name == SAMPLED_LINE:
            yield from _sampled(plane, line)


def readings(plane: Plane) -> Iterator[RegisterReading]:
    """The readings of a plane's registers, in the order of the file."""
    for line in plane.lines:
        if line.name.startswith(_READING):
            reading = _reading(plane, line)
            if len(reading.number):
                yield reading


def event_name(plane: Plane, number: int) -> str:
    """What a plane calls the events of a metadata id."""
    metadata, row = plane.event_metadata, plane.event_metadata.row(number)
    return f"event {number}" if row is None else metadata.display_name(row) or metadata.name(row)


def register_name(event: str) -> str | None:
    """The register that an event's name stands for: ``COUNT_MXU_BUSY_1``; None where it stands for none."""
    _, found, name = event.upper().rpartition(_COUNT)
    return name if found and name else None


def by_id(ids: Keys) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Each id with its events, in the order in which the ids first occur."""
    if not len(ids):
        return
    order = np.argsort(ids, kind="stable")
    borders = np.flatnonzero(np.append(True, ids[order][1:] != ids[order][:-1]))
    groups = np.split(order, borders[1:])
    for group in sorted(groups, key=lambda group: int(group[0])):
        yield int(ids[group[0]]), group


def _sampled(plane: Plane, line: Line) -> Iterator[Sampled]:
    places = line.events()
    events = line.events(_value_stats(plane, places), places=False)
    start, end = event_spans(line, events)
    values = {name: column.floats() for name, column in events.stats.items()}
    for number, chosen in by_id(events.metadata_id):
        name = event_name(plane, number)
        finite = {stat: chosen[abs(column[chosen]) < _LARGEST] for stat, column in values.items()}
        known = {stat: rows for stat, rows in finite.items() if len(rows)}
        for stat, of_stat in known.items():
            label = name if len(known) == 1 else f"{name} {stat}"
            rows = of_stat[np.argsort(start[of_stat], kind="stable")]
            unit = unit_of(stat) or unit_of(name)
            yield Sampled(name, stat, label, start[rows], end[rows], values[stat][rows], unit)


def _value_stats(plane: Plane, events: Events) -> list[str]:
    """Names of the stats that the first event of each counter carries."""
    names: dict[str, None] = {}
    _, first = np.unique(events.metadata_id, return_index=True)
    for event in np.sort(first).tolist():
        with suppress(DecodeError):
            raw = plane.source.read(int(events.begin[event]), int(events.length[event]))
            names |= dict.fromkeys(
                plane.stat_name(stat.metadata_id) for stat in xplane_pb2.XEvent.FromString(raw).stats
            )
    return [name for name in names if name not in _NO_VALUES and not name.startswith("_")]


def _reading(plane: Plane, line: Line) -> RegisterReading:
    """A line's registers; what an event does not say of its counter, its metadata may."""
    events = line.events((_VALUE, _NUMBER, *_TEXTS), places=False)
    ids = events.metadata_id.astype(np.int64)
    known, first, of_event = np.unique(ids, return_index=True, return_inverse=True)
    source = OpSource(plane.event_metadata, plane.stat_metadata)
    metadata = MetadataStats(source, plane.event_metadata.rows(known), (_VALUE, _NUMBER, *_TEXTS))
    value, number = metadata.number(_VALUE)[of_event], metadata.unsigned(_NUMBER)[0][of_event]
    exact, is_whole = np.zeros(len(ids), np.uint64), np.zeros(len(ids), np.bool_)
    if _VALUE in events.stats:
        column = events.stats[_VALUE]
        own = column.floats()
        value = np.where(abs(own) < _LARGEST, own, value)
        is_whole = column.is_number & (column.kind != KIND_DOUBLE) & (own >= 0)
        exact[is_whole] = column.value[is_whole].view(np.uint64)
    if _NUMBER in events.stats:
        of_its_own = events.stats[_NUMBER].integers().view(np.uint64)
        number = np.where(of_its_own == 0, number, of_its_own)
    number = np.where(number == 0, ids.view(np.uint64), number)
    texts = zip(*(_texts(plane, events, name, metadata, first) for name in _TEXTS), strict=True)
    kept = abs(value) < _LARGEST
    return RegisterReading(
        line.name,
        line.header.id,
        ids[kept],
        number[kept],
        event_spans(line, events)[0][kept],
        value[kept],
        exact[kept],
        is_whole[kept],
        dict(zip(known.tolist(), texts, strict=True)),
    )


def _texts(plane: Plane, events: Events, name: str, metadata: MetadataStats, first: Int64s) -> list[str | None]:
    """A text of each counter: that of its first event, else that of its metadata."""
    common = metadata.texts(name)
    if name not in events.stats:
        return common
    own = plane.texts(events.stats[name].take(first))
    return [text or other for text, other in zip(own, common, strict=True)]

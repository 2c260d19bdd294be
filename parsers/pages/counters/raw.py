"""The counters themselves: what each of them said while it was sampled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from tpuprof.parsers.base.intervals import grouped
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.xspace.trace import Plane
from tpuprof.parsers.ops.counters.samples import RegisterReading, Sampled, event_name, register_name


@dataclass(frozen=True, slots=True)
class Counter:
    """A counter of a device.

    Attributes:
        plane, name: of which device, and what the profile calls it; of registers in lower case, as XProf has it.
        kernel: what a reading is of; empty for the whole capture, and for what was sampled over time.
        number: the register's number; None for what has none. register: what it is called, empty where unknown.
        unit: as in the profile; empty where it names none.
        description, sets: in the profile's words; empty where it has none.
        value: the last one: whole numbers to the last digit.
        samples: how many values there are.
        first_ps, last_ps: when the first and the last was taken.
        minimum, mean, maximum: over these; the mean over the time that was sampled.
        sampled_ps: for how long; None for readings at one instant, which count since the capture began.
        is_reading: whether it is a register that was read as a whole.
    """

    plane: str
    name: str
    kernel: str
    number: int | None
    register: str
    unit: str
    description: str
    sets: str
    value: int | float
    samples: int
    first_ps: int
    last_ps: int
    minimum: float
    mean: float
    maximum: float
    sampled_ps: int | None
    is_reading: bool


def sampled_counters(plane: Plane, tracks: Iterable[Sampled]) -> Iterator[Counter]:
    """The counters that were sampled over time."""
    for track in tracks:
        value, (_, sampled) = track.value, track.weights()
        last = float(value[-1])
        span = int(track.start_ps[0]), int(track.end_ps.max())
        stat_sums = float(value.min()), track.mean(), float(value.max())
        number = int(last) if last.is_integer() and abs(last) < 2**53 else last
        of_name = ("", None, register_name(track.event) or "", track.unit, "", "")
        yield Counter(plane.name, track.label, *of_name, number, len(value), *span, *stat_sums, sampled or None, False)


def read_counters(plane: Plane, readings: Sequence[RegisterReading], names: Mapping[int, str]) -> Iterator[Counter]:
    """The registers, those of all readings of one kernel together.

    Args:
        names: of the registers that are known, by number.
    """
    for kernel, of_kernel in grouped((reading.kernel, reading) for reading in readings).items():
        yield from _registers(plane, kernel, of_kernel, names)


def _registers(
    plane: Plane, kernel: str, readings: Sequence[RegisterReading], names: Mapping[int, str]
) -> Iterator[Counter]:
    ids, start, value = (
        np.concatenate([getattr(reading, name) for reading in readings])
        for name in ("metadata_id", "start_ps", "value")
    )
    exact, whole, numbers = (
        np.concatenate([getattr(reading, name) for reading in readings]) for name in ("exact", "is_whole", "number")
    )
    order = np.lexsort((start, ids))
    begin = np.flatnonzero(np.append(True, ids[order][1:] != ids[order][:-1]))
    end = np.append(begin[1:], len(order))
    sorted_value = value[order]
    low, high = np.minimum.reduceat(sorted_value, begin), np.maximum.reduceat(sorted_value, begin)
    mean = np.add.reduceat(sorted_value, begin) / (end - begin)
    first_seen = np.argsort(np.minimum.reduceat(order, begin), kind="stable")
    for group in first_seen.tolist():
        first, last = int(order[begin[group]]), int(order[end[group] - 1])
        metadata_id = int(ids[first])
        texts = next((reading.texts[metadata_id] for reading in readings if metadata_id in reading.texts), (None, None))
        yield Counter(
            plane.name,
            event_name(plane, metadata_id).lower(),
            kernel,
            int(numbers[last]),
            names.get(int(numbers[last]), ""),
            "",
            texts[0] or "",
            texts[1] or "",
            int(exact[last]) if whole[last] else float(value[last]),
            int(end[group] - begin[group]),
            int(start[first]),
            int(start[last]),
            float(low[group]),
            float(mean[group]),
            float(high[group]),
            None,
            True,
        )

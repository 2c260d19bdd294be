"""Counters over time: power, temperature and whatever else a device sampled while it ran.

The events of a line ``_counters_`` are instants. Each is named after a counter, and its stats are the counter's values
from then on, such as ``power`` of ``HBM FW Power Meter PL2(W)``. XProf draws these. Lines named ``counters_…`` hold
hardware counters, one event per counter and sample, with the stat `counter_value`. XProf lists them on a page of their
own and draws none; this module also takes those that have different values at different times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Floats, Int64s
from tpuprof.parsers.formats.proto import xplane_pb2
from tpuprof.parsers.formats.xspace.events import Events
from tpuprof.parsers.formats.xspace.trace import Line, Plane
from tpuprof.parsers.ops.core.ops import Keys, event_spans
from tpuprof.parsers.timeline.model import CounterTrack

_HARDWARE_VALUE = "counter_value"

_NO_VALUES = frozenset(
    {
        *("group_id", "device_offset_ps", "device_duration_ps", "run_id", "program_id", "symbol_id", "flow"),
        "correlation_id",
    }
)
"""Stats that tell where an event belongs and no value, like stats whose names begin with ``_``."""

_UNIT = re.compile(r"\(([^()]{1,12})\)\s*$")


def counter_tracks(plane: Plane) -> tuple[CounterTrack, ...]:
    """The counters of a plane, in the order in which they first occur in the file."""
    sampled = [track for line in plane.lines if line.name == "_counters_" for track in _sampled(plane, line)]
    return (*sampled, *_hardware(plane, [line for line in plane.lines if line.name.startswith("counters_")]))


def unit_of(name: str) -> str:
    """The unit in a counter's name, such as ``W`` in ``Power(W)``; empty where there is none."""
    match = _UNIT.search(name)
    return match.group(1).strip() if match else ""


def _sampled(plane: Plane, line: Line) -> Iterator[CounterTrack]:
    """The counters of one line, a track for each number that their events carry."""
    places = line.events()
    events = line.events(_value_stats(plane, places), places=False)
    start, _ = event_spans(line, events)
    values = {name: column.floats() for name, column in events.stats.items()}
    for number, chosen in _by_id(events.metadata_id):
        name = _event_name(plane, number)
        with_values = {stat: known for stat, column in values.items() if len(known := _known(column, chosen))}
        for stat, known in with_values.items():
            label = name if len(with_values) == 1 else f"{name} {stat}"
            yield _track(label, start[known], values[stat][known], unit_of(stat) or unit_of(name))


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


def _hardware(plane: Plane, lines: Sequence[Line]) -> Iterator[CounterTrack]:
    """Hardware counters that change over the capture; a line is one sample of them, or several."""
    ids, times, values = [], [], []
    for line in lines:
        events = line.events((_HARDWARE_VALUE,), places=False)
        if _HARDWARE_VALUE in events.stats:
            ids.append(events.metadata_id.astype(np.int64))
            times.append(event_spans(line, events)[0])
            values.append(events.stats[_HARDWARE_VALUE].floats())
    if not ids:
        return
    start, value = np.concatenate(times), np.concatenate(values)
    for number, chosen in _by_id(np.concatenate(ids)):
        known = _known(value, chosen)
        if len(known) > 1 and np.ptp(start[known]) > 0 and np.ptp(value[known]) > 0:
            name = _event_name(plane, number)
            yield _track(name.lower(), start[known], value[known], unit_of(name))


def _known(column: Floats, chosen: NDArray[np.intp]) -> NDArray[np.intp]:
    """The events of `chosen` that have a finite number."""
    return chosen[np.isfinite(column[chosen])]


def _by_id(ids: Keys) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Each id with its events, in the order in which the ids first occur."""
    if not len(ids):
        return
    order = np.argsort(ids, kind="stable")
    borders = np.flatnonzero(np.append(True, ids[order][1:] != ids[order][:-1]))
    groups = np.split(order, borders[1:])
    for group in sorted(groups, key=lambda group: int(group[0])):
        yield int(ids[group[0]]), group


def _event_name(plane: Plane, number: int) -> str:
    metadata, row = plane.event_metadata, plane.event_metadata.row(number)
    return f"event {number}" if row is None else metadata.display_name(row) or metadata.name(row)


def _track(name: str, time: Int64s, value: Floats, unit: str) -> CounterTrack:
    order = np.argsort(time, kind="stable")
    return CounterTrack(name, time[order], value[order], unit)

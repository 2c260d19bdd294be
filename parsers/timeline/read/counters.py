"""Counters over time: power, temperature and whatever else a device sampled while it ran.

`parsers.ops.counters.samples` describes how a profile holds them. XProf draws those of the lines ``_counters_``. The
registers of the lines ``counters_…`` it lists on a page of their own, and draws none; this module also takes those
that have different values at different times.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tpuprof.parsers.formats.xspace.trace import Plane
from tpuprof.parsers.ops.counters.placed import CustomCalls, placed_tracks
from tpuprof.parsers.ops.counters.samples import Sampled, by_id, event_name, readings, sampled, unit_of
from tpuprof.parsers.timeline.model import CounterTrack


def counter_tracks(plane: Plane) -> tuple[CounterTrack, ...]:
    """The counters of a plane, in the order in which they first occur in the file."""
    tracks = placed_tracks(CustomCalls(plane), list(sampled(plane)))
    return (*map(_of_sampled, tracks), *_hardware(plane))


def _of_sampled(track: Sampled) -> CounterTrack:
    """A counter's track. Values that last stand for their own time: then nothing is known until the next one."""
    if not track.lasts:
        return CounterTrack(track.label, track.start_ps, track.value, track.unit)
    follows = np.append(track.start_ps[1:], np.iinfo(np.int64).max)
    ends = np.flatnonzero(track.end_ps < follows)
    time = np.concatenate([track.start_ps, track.end_ps[ends]])
    value = np.concatenate([track.value, np.full(len(ends), np.nan)])
    order = np.argsort(time, kind="stable")
    return CounterTrack(track.label, time[order], value[order], track.unit)


def _hardware(plane: Plane) -> Iterator[CounterTrack]:
    """Hardware counters that change over the capture; a line is one reading of them, or several."""
    read = list(readings(plane))
    if not read:
        return
    ids, start, value = (
        np.concatenate([getattr(reading, name) for reading in read]) for name in ("metadata_id", "start_ps", "value")
    )
    for number, chosen in by_id(ids):
        if len(chosen) > 1 and np.ptp(start[chosen]) > 0 and np.ptp(value[chosen]) > 0:
            name = event_name(plane, number)
            rows = chosen[np.argsort(start[chosen], kind="stable")]
            yield CounterTrack(name.lower(), start[rows], value[rows], unit_of(name))

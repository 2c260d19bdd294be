"""How long events of a core took by its own clock, beside the trace's clock, which aligns cores with the host.

The profiler maps device times to the host's clock anew every now and then. So on the trace's clock a run may seem a
quarter longer or shorter than it was. Pages of steps and ops measure by the device's clock; the timeline draws on the
trace's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Int64s, Intervals, distinct
from tpuprof.parsers.formats.xspace.metadata import KIND_INT64, KIND_UINT64
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.ops.core.ops import DEVICE_SPAN
from tpuprof.parsers.ops.core.plain_pass import around, device_times
from tpuprof.parsers.timeline.model import Section, Timeline, Track, TrackId
from tpuprof.parsers.timeline.read.stat_chunks import stat_chunks

UNKNOWN = -1

KINDS = ("ops", "steps", "modules", "async")
"""Tracks of whose events the device's time may be known."""


def durations_of(
    timeline: Timeline,
    places: Sequence[TrackId],
    of_track: NDArray[np.int32],
    index: Int64s,
    opened: Callable[[str], Trace],
) -> list[int | None]:
    """How long some events took by the device's clock, in picoseconds; None where that is not known.

    Args:
        places, of_track, index: the tracks, which of them each event is of, and which event of it.
        opened: gives the profile at a path, open.
    """
    out = np.full(len(index), None, object)
    for number in np.unique(of_track).tolist():
        place, track = places[number], timeline.track(places[number])
        if track.kind not in KINDS:
            continue  # and no profile is opened for it
        trace, mine = opened(timeline.path_of(place[0])), np.flatnonzero(of_track == number)
        device_ps = durations(trace, timeline.sections[place[0]], track, index[mine])
        out[mine[device_ps >= 0]] = device_ps[device_ps >= 0]
    return out.tolist()


def durations(trace: Trace, section: Section, track: Track, events: Int64s) -> Int64s:
    """int64[n]: how long some events of a track took by the device's clock, in picoseconds; `UNKNOWN` where none tells.

    Ops say it themselves, and so may steps. Else the ops at the borders of an event show the device's time there.

    Args:
        trace: the open profile that has the track.
    """
    if track.kind not in KINDS:
        return np.full(len(events), UNKNOWN, np.int64)
    own = _device_spans(trace, track, events)[1]
    ops = next((other for other in section.tracks if other.kind == "ops" and len(other)), None)
    if ops is None or track.kind == "ops" or (own >= 0).all():
        return own
    start, end = track.start_ps[events], track.end_ps[events]
    times = distinct(np.concatenate([start, end]))
    outer = np.arange(int(ops.lanes[0]), int(ops.lanes[1]))
    before = np.searchsorted(ops.start_ps[outer], times, side="right") - 1
    near = outer[distinct(np.clip(np.concatenate([before, before + 1]), 0, len(outer) - 1))]
    begin, lasted = _device_spans(trace, ops, near)
    near, begin, lasted = (column[lasted >= 0] for column in (near, begin, lasted))
    if len(near) < 2:  # one op gives no rate
        return own
    device = device_times(times, around(times, (ops.start_ps[near], ops.end_ps[near]), (begin, begin + lasted)))
    taken = device[np.searchsorted(times, end)] - device[np.searchsorted(times, start)]
    return np.where(own >= 0, own, np.where(taken >= 0, taken, UNKNOWN))


def _device_spans(trace: Trace, track: Track, events: Int64s) -> Intervals:
    """int64[n] each: when events began by the device's clock, and how long they took; `UNKNOWN` where none is said."""
    spans = np.full((len(DEVICE_SPAN), len(events)), UNKNOWN, np.int64)
    if track.is_derived:
        return spans[0], spans[1]
    place = np.argsort(events, kind="stable")
    ids = trace.planes[track.plane_index].stat_ids(DEVICE_SPAN)
    for chunk in stat_chunks(trace, track, events):
        at = place[np.searchsorted(events, chunk.events, sorter=place)]
        for span, name in zip(spans, DEVICE_SPAN, strict=True):
            for row in np.flatnonzero(chunk.ids == ids.get(name)):
                has = np.isin(chunk.stats.kind[row], (KIND_UINT64, KIND_INT64))
                span[at[has]] = chunk.stats.value[row][has]
    return spans[0], spans[1]

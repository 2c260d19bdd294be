"""The custom calls of a core, and where the compiler's counts of them belong in time.

A core with trace points in its kernels (``bundle.N`` on the line ``Tensor Core``) has a sample of each unit from one
point to the next. In a real capture of a v6e the two points around a predicated body run at once, 78 ps to 1.3 ns
apart, and the body runs behind the second: the sample that counts the body's instructions lies before it, and that of
the body's own time counts what surrounds it. The last sample of a call lasts until the next call begins, over
whatever the core did meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from tpuprof.parsers.base.intervals import Int64s, Intervals, no_ints, union, union_of
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.formats.xspace.trace import Plane
from tpuprof.parsers.ops.core.ops import CATEGORY, OPS_LINE, TRACE_ME_LINE, Keys, event_spans
from tpuprof.parsers.ops.counters.samples import UTILIZATION, Sampled, by_id, event_name
from tpuprof.parsers.ops.device import CUSTOM_CALL
from tpuprof.parsers.ops.op_metadata import MetadataStats, OpSource

MARKER_PS = 2_000
"""A sample that is no longer lies between two trace points, and holds no body; a cycle takes about 1 ns."""

NO_SPANS: Intervals = (no_ints(), no_ints())


@dataclass(frozen=True, slots=True, eq=False)
class CustomCall:
    """A custom call: its runs, as disjoint spans, and how many there were."""

    program_id: int
    symbol_id: int
    name: str
    runs: int
    spans: Intervals


class CustomCalls:
    """Those of one core; each line is decoded when it is asked for first."""

    def __init__(self, plane: Plane) -> None:
        self.plane = plane

    @cached_property
    def calls(self) -> tuple[CustomCall, ...]:
        return tuple(_calls(self.plane))

    @property
    def spans(self) -> Intervals:
        """When the core ran any, as disjoint spans."""
        return union_of(call.spans for call in self.calls)

    def scopes(self) -> dict[str, Intervals]:
        """The scopes by name, each as disjoint spans: what the core's runtime recorded."""
        ids, (start, end) = self.scope_events
        return {event_name(self.plane, number): union(start[rows], end[rows]) for number, rows in by_id(ids)}

    @cached_property
    def scope_events(self) -> tuple[Keys, Intervals]:
        line = self.plane.line(TRACE_ME_LINE)
        if line is None:
            return no_ints(), NO_SPANS
        events = line.events(places=False)
        return events.metadata_id, event_spans(line, events)


def _calls(plane: Plane) -> Iterator[CustomCall]:
    line = plane.line(OPS_LINE)
    if line is None:
        return
    source = OpSource(plane.event_metadata, plane.stat_metadata)
    every = np.arange(len(source.events), dtype=np.int64)
    is_call = MetadataStats(source, every, (CATEGORY,)).is_one_of(CATEGORY, (CUSTOM_CALL,))
    chosen = every[is_call]
    if not len(chosen):
        return
    ids = source.events.ids[chosen]
    metadata = MetadataStats(source, chosen, ("program_id", "symbol_id"))
    programs, symbols = (metadata.unsigned(name)[0].tolist() for name in ("program_id", "symbol_id"))
    of = {number: (program, symbol) for number, program, symbol in zip(ids.tolist(), programs, symbols, strict=True)}
    events = line.events(places=False)
    start, end = event_spans(line, events)
    kept = np.flatnonzero(np.isin(events.metadata_id, ids))
    for number, rows in by_id(events.metadata_id[kept]):
        runs = kept[rows]
        yield CustomCall(*of[number], event_name(plane, number), len(runs), union(start[runs], end[runs]))


def placed_tracks(core: CustomCalls, tracks: Sequence[Sampled]) -> list[Sampled]:
    """The counters of a core, with the compiler's counts where they belong in time (see `placed`)."""
    if not any(track.stat == UTILIZATION and track.lasts for track in tracks):
        return list(tracks)
    calls, (_, scopes) = core.spans, core.scope_events
    return [placed(track, calls, scopes) for track in tracks]


def placed(track: Sampled, calls: Intervals, scopes: Intervals) -> Sampled:
    """A counter whose samples are those of the time that they stand in.

    A sample ends with its custom call. One of at most `MARKER_PS` is that of the scope which begins at most
    `MARKER_PS` behind it; of several such samples it is that of the last. Where the core records no scopes, it is that
    of the time up to the second point after it.

    Args:
        calls: runs of custom calls, disjoint and in order.
        scopes: spans of scopes within them, in any order.
    """
    if track.stat != UTILIZATION or not track.lasts or not len(calls[0]):
        return track
    track = _within(track, calls)
    is_marker = track.end_ps - track.start_ps <= MARKER_PS
    if not is_marker.any():
        return track
    return _at_scopes(track, is_marker, scopes) if len(scopes[0]) else _shifted(track, is_marker)


def _within(track: Sampled, calls: Intervals) -> Sampled:
    """Cuts samples where their call ends; those outside any call stay."""
    begin, finish = calls
    call = np.searchsorted(begin, track.start_ps, "right") - 1
    last = finish[np.maximum(call, 0)]
    inside = (call >= 0) & (track.start_ps < last)
    return replace(track, end_ps=np.where(inside, np.minimum(track.end_ps, last), track.end_ps))


def _shifted(track: Sampled, is_marker: np.ndarray) -> Sampled:
    """Gives each sample that follows a marker the marker's value."""
    after = np.flatnonzero(is_marker[:-1] & (track.end_ps[:-1] >= track.start_ps[1:]) & ~is_marker[1:]) + 1
    value = track.value.copy()
    value[after] = track.value[after - 1]
    return replace(track, value=value)


def _at_scopes(track: Sampled, is_marker: np.ndarray, scopes: Intervals) -> Sampled:
    """Lays markers over the scopes that they count; other samples keep the rest of their time."""
    marker = np.flatnonzero(is_marker)
    before = np.searchsorted(track.start_ps[marker], scopes[0], "right") - 1
    of_scope = marker[np.maximum(before, 0)]
    is_near = (before >= 0) & (scopes[0] - track.end_ps[of_scope] <= MARKER_PS)
    chosen, start, end = of_scope[is_near], scopes[0][is_near], scopes[1][is_near]
    order = np.lexsort((-end, chosen))  # of scopes that begin together, the outermost
    chosen, start, end = chosen[order], start[order], end[order]
    first = np.append(True, chosen[1:] != chosen[:-1])[: len(chosen)]
    chosen, start, end = chosen[first], start[first], end[first]
    end = np.minimum(end, np.append(start[1:], np.iinfo(np.int64).max))[: len(start)]
    begin, finish, value = _outside(track, union(start, end))
    starts, ends = np.concatenate([begin, start]), np.concatenate([finish, end])
    values = np.concatenate([value, track.value[chosen]])
    in_order = np.argsort(starts, kind="stable")
    return replace(track, start_ps=starts[in_order], end_ps=ends[in_order], value=values[in_order])


def _outside(track: Sampled, spans: Intervals) -> tuple[Int64s, Int64s, np.ndarray]:
    """The samples, which follow one another, without the time of disjoint spans."""
    edges = np.unique(np.concatenate([track.start_ps, track.end_ps, *spans]))
    begin, finish = edges[:-1], edges[1:]
    sample = np.searchsorted(track.start_ps, begin, "right") - 1
    span = np.searchsorted(spans[0], begin, "right") - 1
    known = (sample >= 0) & (begin < track.end_ps[np.maximum(sample, 0)])
    if len(spans[0]):
        known &= ~((span >= 0) & (begin < spans[1][np.maximum(span, 0)]))
    return begin[known], finish[known], track.value[sample[known]]

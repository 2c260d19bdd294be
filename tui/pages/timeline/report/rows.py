"""What a report says of a timeline: the part that is asked for, its rates and counters, its events' arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, ProfileError
from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.base.text import examples, printable
from tpuprof.parsers.formats.proto import xplane_pb2
from tpuprof.parsers.formats.xspace.metadata import StatValue
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.timeline.details import event_stats
from tpuprof.parsers.timeline.measure import TrackShare, measure
from tpuprof.parsers.timeline.model import CounterTrack, RateTrack, Section, Timeline, Track, TrackId
from tpuprof.parsers.timeline.windows import lane_events, mean_rate

TOP_OPS = 10
"""Names of a track that the summary of an interval lists."""

_SEPARATOR = " / "
_SPACES = {1: "hbm", 2: "cmem", 3: "vmem"}
_OPERATIONS = {1: "read", 2: "write"}
_RATE_UNITS = {"MXU": "FLOP/s", "HBM": "bytes/s"}
_MOST_COMPARED = 2000
_NEAREST = 3
_NAME_SEEN = 200
_CHARACTERS_KEPT = 1 << 24
"""Of the arguments that names have in common: with more of them the oldest are read again."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Which part of a timeline a report is about; None and empty for all of it.

    Attributes:
        from_ps, to_ps: begin and end on the trace's clock.
        track: part of ``section / track``, upper and lower case alike.
    """

    from_ps: int | None = None
    to_ps: int | None = None
    track: str = ""

    @property
    def is_everything(self) -> bool:
        """Whether the report is about the tracks as a whole, not about events."""
        return self.from_ps is None and self.to_ps is None and not self.track


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """The part of a timeline that is asked for.

    Attributes:
        timeline: the whole.
        start_ps, end_ps: the interval, without its end.
        places: its tracks; derived ones only where they are asked for by name, for their events are the ops again.
        rates, counters: with the section of each.
    """

    timeline: Timeline
    start_ps: int
    end_ps: int
    places: tuple[TrackId, ...]
    rates: tuple[tuple[Section, RateTrack], ...]
    counters: tuple[tuple[Section, CounterTrack], ...]

    def track(self, place: TrackId) -> Track:
        """One of its tracks."""
        return self.timeline.sections[place[0]].tracks[place[1]]


def part_of(timeline: Timeline, interval: Interval) -> Part:
    """The part that is asked for.

    Raises:
        ProfileError: no track has such a name; exit code 3, with the names that come nearest.
    """
    start, end = _bounds(timeline, interval)
    wanted = interval.track.casefold()

    def matches(section: Section, name: str) -> bool:
        return wanted in f"{section.title}{_SEPARATOR}{name}".casefold()

    places = tuple(
        (at, number)
        for at, section in enumerate(timeline.sections)
        for number, track in enumerate(section.tracks)
        if (matches(section, track.name) if wanted else not track.is_derived)
    )
    sections = timeline.sections
    rates = tuple((one, rate) for one in sections for rate in one.rates if matches(one, rate.name))
    counters = tuple((one, counter) for one in sections for counter in one.counters if matches(one, counter.name))
    if wanted and not (places or rates or counters):
        raise _no_such_track(timeline, interval.track)
    return Part(timeline, start, end, places, rates, counters)


def _bounds(timeline: Timeline, interval: Interval) -> tuple[int, int]:
    """Begin and end of what is asked for; where the end is open, so that an event of no duration there is in it."""
    start = timeline.first_ps if interval.from_ps is None else interval.from_ps
    if interval.to_ps is not None:
        return min(start, interval.to_ps), interval.to_ps
    return start, max(start, timeline.last_ps + _has_instant_at(timeline, timeline.last_ps))


def _has_instant_at(timeline: Timeline, instant: int) -> bool:
    """Whether an event of no duration or a counter's value is the last of its row, at this instant."""
    for section in timeline.sections:
        for track in section.tracks:
            if len(track):
                last = track.lanes[1:] - 1
                last = last[last >= track.lanes[:-1]]
                if ((track.start_ps[last] == instant) & (track.end_ps[last] == instant)).any():
                    return True
    values = (counter.time_ps for section in timeline.sections for counter in section.counters)
    return any(len(times) and int(times[-1]) == instant for times in values)


def _no_such_track(timeline: Timeline, wanted: str) -> ProfileError:
    """The error that names the tracks whose names come nearest."""
    import difflib  # noqa: PLC0415 - only here

    names: dict[str, None] = {}
    for section in timeline.sections:
        rows: tuple[Track | RateTrack | CounterTrack, ...] = (*section.tracks, *section.rates, *section.counters)
        names |= dict.fromkeys(f"{section.title}{_SEPARATOR}{row.name}"[:_NAME_SEEN] for row in rows)
    text = wanted.casefold()[:_NAME_SEEN]

    def likeness(name: str) -> float:
        parts = (name, name.rpartition(_SEPARATOR)[2], *name.split())
        return max(difflib.SequenceMatcher(None, text, part.casefold()).ratio() for part in parts)

    nearest = sorted(list(names)[:_MOST_COMPARED], key=likeness, reverse=True)[:_NEAREST]
    hint = f"--track with a part of: {examples(nearest, _NEAREST)}" if nearest else "the profile has no events"
    sentence = f"No track of {printable(timeline.host)} has {printable(wanted)} in its name."
    return ProfileError("unknown_track", sentence, hint, EXIT_NOT_FOUND)


# --- tracks, rates, counters


@dataclass(frozen=True, slots=True)
class RateFigure:
    """What the ops of a core ask for, on average.

    Attributes:
        section, plane, name: of which core, and of what.
        unit: ``FLOP/s`` or ``bytes/s``.
        per_second: the average; None for an interval of no duration.
        peak: what the core can do at most; None where the profile does not say.
    """

    section: str
    plane: str
    name: str
    unit: str
    per_second: float | None
    peak: float | None

    @property
    def use_fraction(self) -> float | None:
        """The average over the peak; None where either is unknown."""
        return self.per_second / self.peak if self.per_second is not None and self.peak else None


@dataclass(frozen=True, slots=True)
class CounterFigure:
    """What a counter said.

    Attributes:
        section, plane, name, unit: which counter; the unit is empty where the profile does not say.
        samples: values in the interval.
        first_ps, last_ps: when the first and the last of them was taken; None without one.
        minimum, maximum, mean: also of a value from before that holds on; each value counts as long as it holds. None
            where there is none that is a number.
    """

    section: str
    plane: str
    name: str
    unit: str
    samples: int
    first_ps: int | None
    last_ps: int | None
    minimum: float | None
    maximum: float | None
    mean: float | None


def rate_figures(part: Part) -> list[RateFigure]:
    """The average rates."""
    figures = []
    for section, rate in part.rates:
        per_second = mean_rate(rate, part.start_ps, part.end_ps) if part.end_ps > part.start_ps else None
        unit = _RATE_UNITS.get(rate.name, "1/s")
        figures.append(RateFigure(section.title, section.plane, rate.name, unit, per_second, rate.peak or None))
    return figures


def counter_figures(part: Part) -> list[CounterFigure]:
    """Least, greatest and mean value of each counter."""
    return [_counter_figure(section, counter, part.start_ps, part.end_ps) for section, counter in part.counters]


def _counter_figure(section: Section, counter: CounterTrack, start: int, end: int) -> CounterFigure:
    first = int(np.searchsorted(counter.time_ps, start, side="left"))
    last = int(np.searchsorted(counter.time_ps, end, side="left"))
    is_new = first < len(counter.time_ps) and int(counter.time_ps[first]) == start
    holds = first if is_new else max(0, first - 1)
    time, value = counter.time_ps[holds:last], counter.value[holds:last]
    known = np.isfinite(value)
    borders = np.append(np.maximum(time, start), end)
    weight = np.maximum(np.diff(borders), 0)[known].astype(np.float64)
    value = value[known]
    low, high = (float(value.min()), float(value.max())) if len(value) else (None, None)
    return CounterFigure(
        section=section.title,
        plane=section.plane,
        name=counter.name,
        unit=counter.unit,
        samples=last - first,
        first_ps=int(counter.time_ps[first]) if last > first else None,
        last_ps=int(counter.time_ps[last - 1]) if last > first else None,
        minimum=low,
        maximum=high,
        mean=_mean(value, weight) if len(value) else None,
    )


def _mean(value: NDArray[np.float64], weight: NDArray[np.float64]) -> float:
    """The mean of some values, each with its weight; all alike where none has any."""
    if not weight.any():
        weight = np.ones(len(value))
    share = weight / weight.sum()
    return float((value * share).sum())


def busy_fraction(timeline: Timeline, track: Track) -> float | None:
    """Share of the trace in which at least one event of a track ran; None for a trace that takes no time."""
    whole = timeline.last_ps - timeline.first_ps
    return track.busy_ps / whole if whole > 0 else None


# --- events


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """The events of a part, by their begin; of those that begin together the outer one comes first.

    Attributes:
        of_track: int32[n]; which of the part's places each is of.
        index: int64[n]; which event of the track.
        lane: int32[n]; its lane, the depth where events nest.
    """

    of_track: NDArray[np.int32]
    index: Int64s
    lane: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.index)


def select(part: Part) -> Selection:
    """The events that overlap the interval or, lasting no time, lie in it."""
    pieces: list[tuple[int, int, int, int]] = []
    for number, place in enumerate(part.places):
        track = part.track(place)
        if not len(track) or track.span[0] >= part.end_ps or track.span[1] < part.start_ps:
            continue
        for lane in range(track.depth):
            first, last = lane_events(track, lane, part.start_ps, part.end_ps)
            if first < last:
                pieces.append((number, lane, first, last))
    sizes = [last - first for _, _, first, last in pieces]
    of_track = np.repeat(np.array([piece[0] for piece in pieces], np.int32), sizes)
    lanes = np.repeat(np.array([piece[1] for piece in pieces], np.int32), sizes)
    none = np.zeros(0, np.int64)
    index = np.concatenate([none, *(np.arange(first, last) for _, _, first, last in pieces)])
    starts = [part.track(part.places[number]).start_ps[first:last] for number, _, first, last in pieces]
    order = np.argsort(np.concatenate([none, *starts]), kind="stable")
    return Selection(of_track[order], index[order], lanes[order])


@dataclass(frozen=True, slots=True)
class TopOp:
    """The events of one name, as far as they lie in an interval; ops of several programs may share a name.

    Attributes:
        name, op_class: what they are called, and the class of the first of them.
        occurrences: how many there are.
        total_ps, self_ps: their time, and that without the events nested in them.
    """

    name: str
    op_class: OpClass
    occurrences: int
    total_ps: int
    self_ps: int


@dataclass(frozen=True, slots=True)
class TrackSummary:
    """What ran on a track in the interval.

    Attributes:
        share: how busy it was.
        top: the names with most self time.
    """

    share: TrackShare
    top: tuple[TopOp, ...]


def summaries(part: Part) -> list[TrackSummary]:
    """What ran on each track of a part in its interval."""
    found = measure(part.timeline, part.start_ps, part.end_ps, part.places)
    by_name: dict[TrackId, dict[str, TopOp]] = {}
    for row in found.rows(sort="track"):
        ops = by_name.setdefault(row.place, {})
        one = ops.get(row.name, TopOp(row.name, row.op_class, 0, 0, 0))
        sums = (one.occurrences + row.occurrences, one.total_ps + row.total_ps, one.self_ps + row.self_ps)
        ops[row.name] = TopOp(row.name, one.op_class, *sums)
    return [TrackSummary(share, _top(by_name.get(share.place, {}).values())) for share in found.tracks]


def _top(ops: Iterable[TopOp]) -> tuple[TopOp, ...]:
    return tuple(sorted(ops, key=lambda op: (-op.self_ps, -op.total_ps, op.name))[:TOP_OPS])


Args = dict[str, object]


def argument_reader(trace: Trace, tracks: Sequence[Track]) -> Callable[[int, int], Args]:
    """Reads all stats of single events, those of each name's metadata only once.

    Returns:
        A function of the track, an index of `tracks`, and the event. Its names and values are fit for JSON, see
        `plain_value`. A name that stands twice with different values gets a number, so that nothing is lost.
    """
    of_name: dict[tuple[int, int], Args] = {}
    kept = 0

    def common_args(track: Track, number: int, index: int) -> Args:
        nonlocal kept
        key = (number, int(track.key[index]))
        if key not in of_name:
            if kept > _CHARACTERS_KEPT:
                of_name.clear()
                kept = 0
            long_name = track.names.long_name(key[1])
            more = [("long_name", long_name)] if long_name else []
            of_name[key] = _merged([*event_stats(trace, track, index).of_metadata, *more])
            kept += 100 + sum(len(value) for value in of_name[key].values() if isinstance(value, str))
        return of_name[key]

    def read(number: int, index: int) -> Args:
        track = tracks[number]
        own = _merged(_own_stats(trace, track, index))
        common = common_args(track, number, index)
        if own.keys().isdisjoint(common):
            return {**own, **common}
        for name, value in common.items():
            _put(own, name, value)
        return own

    return read


def _own_stats(trace: Trace, track: Track, index: int) -> Sequence[tuple[str, StatValue]]:
    """The event's own stats, without those of its metadata."""
    if track.is_derived:
        return ()
    plane = trace.planes[track.plane_index]
    begin = plane.lines[track.line_index].begin + int(track.place[index])
    try:
        event = xplane_pb2.XEvent.FromString(trace.source.read(begin, int(track.length[index])))
    except DecodeError:
        return ()
    return [(plane.stat_name(stat.metadata_id), plane.stat_value(stat)) for stat in event.stats]


def _merged(stats: Iterable[tuple[str, StatValue]]) -> Args:
    """Stats as arguments."""
    args: Args = {}
    for name, value in stats:
        _put(args, printable(name), plain_value(name, value))
    return args


def _put(args: Args, name: str, value: object) -> None:
    """Adds an argument; under another name where one of that name says something else."""
    free, number = name, 2
    while free in args:
        if args[free] == value:
            return
        free, number = f"{name} ({number})", number + 1
    args[free] = value


def plain_value(name: str, value: StatValue) -> object:
    """A stat's value as JSON can hold it: bytes as what they hold, where that is known, else as their length.

    A breakdown of memory accesses becomes a list of objects; what is no finite number, None.
    """
    if isinstance(value, str):
        return printable(value)
    if not isinstance(value, bytes):
        return None if isinstance(value, float) and not math.isfinite(value) else value
    if name == "memory_access_breakdown":
        try:
            accesses = xplane_pb2.MemoryAccessBreakdown.FromString(value).memory_accessed
        except DecodeError:
            return f"{len(value)} damaged bytes"
        return [
            {
                "operation": _OPERATIONS.get(access.operation_type, "unknown"),
                "memory": _SPACES.get(access.memory_space, f"space {access.memory_space}"),
                "bytes": access.bytes_accessed,
            }
            for access in accesses
        ]
    return f"{len(value)} bytes"

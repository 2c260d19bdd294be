"""The part of a timeline that a report is about: its tracks, rates and counters, its events, and what ran in it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, repeat
from typing import NamedTuple

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, ProfileError
from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.base.record import Sized, dataclass
from tpuprof.parsers.base.text import examples, printable
from tpuprof.parsers.files.core_names import host_of
from tpuprof.parsers.formats.proto import xplane_pb2
from tpuprof.parsers.formats.xspace.metadata import StatValue
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.timeline.details import metadata_stats, own_stats
from tpuprof.parsers.timeline.measure import MeasuredRow, TrackShare, measure
from tpuprof.parsers.timeline.model import CounterTrack, RateTrack, Section, Timeline, Track, TrackId
from tpuprof.parsers.timeline.read.device_clock import durations_of
from tpuprof.parsers.timeline.windows import held_values, mean_rate, mean_value

MOST_TOP_OPS = 10
"""Names of a track that the summary of an interval lists."""

_SEPARATOR = " / "
_RATE_UNITS = {"FLOPS": "FLOP/s", "HBM": "bytes/s"}
_MOST_COMPARED = 2000
_NEAREST = 3
_NAME_SEEN = 200
_CHUNK = 50
"""Events that are read and written together: each may have arguments of megabytes."""

_SPACES = {1: "hbm", 2: "cmem", 3: "vmem"}
_OPERATIONS = {1: "read", 2: "write"}
_CHARACTERS_KEPT = 1 << 24
"""How many characters of the arguments that names have in common are kept: beyond them the oldest are read again."""

Args = dict[str, object]


@dataclass(frozen=True, slots=True)
class Interval:
    """Which part of a timeline a report is about; None and empty for all of it.

    Attributes:
        from_ps, to_ps: begin and end on the trace's clock.
        track: part of ``section / track``, upper and lower case alike; the section may be a core's name or its plane.
    """

    from_ps: int | None = None
    to_ps: int | None = None
    track: str = ""

    @property
    def is_everything(self) -> bool:
        """Whether the report is about the tracks as a whole, not about events."""
        return self.from_ps is None and self.to_ps is None and not self.track


@dataclass(frozen=True, slots=True, eq=False)
class TimelinePart:
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


def is_wanted(interval: Interval) -> Callable[[Section, Track | RateTrack | CounterTrack], bool]:
    """Whether a report is about a track, a rate or a counter: those asked for by name, else all but derived ones."""
    wanted = interval.track.casefold()

    def of_core(core: str, row: Track | RateTrack | CounterTrack) -> bool:
        # a core is named whole, for host:1 is part of host:12
        begin = f"{core}{_SEPARATOR}".casefold()
        return f"{wanted}{_SEPARATOR}" == begin or (
            wanted.startswith(begin) and wanted.removeprefix(begin) in row.name.casefold()
        )

    def matches(section: Section, row: Track | RateTrack | CounterTrack) -> bool:
        if wanted:
            is_part = wanted in f"{section.label}{_SEPARATOR}{row.name}".casefold()
            return is_part or any(of_core(core, row) for core in _core_names(section))
        return not (isinstance(row, Track) and row.is_derived)

    return matches


def _core_names(section: Section) -> tuple[str, ...]:
    """What a core is called besides its title: as all pages call it, by its plane, and by that with its host's name."""
    host = host_of(section.core)
    return (section.core, section.plane, f"{host} {section.plane}") if section.core else ()


def part_of(timeline: Timeline, interval: Interval) -> TimelinePart:
    """The part that is asked for.

    Raises:
        ProfileError: no track has such a name; exit code 3, with the names that come nearest.
    """
    start, end = _bounds(timeline, interval)
    matches, sections = is_wanted(interval), timeline.sections
    places = tuple(place for place, of, track in timeline.tracks() if matches(of, track))
    rates = tuple((of, rate) for of in sections for rate in of.rates if matches(of, rate))
    counters = tuple((of, counter) for of in sections for counter in of.counters if matches(of, counter))
    if interval.track and not (places or rates or counters):
        raise _no_such_track(timeline, interval.track)
    return TimelinePart(timeline, start, end, places, rates, counters)


def _bounds(timeline: Timeline, interval: Interval) -> tuple[int, int]:
    """Begin and end of what is asked for; where the end is open, so that an event of no duration there is in it."""
    start = timeline.first_ps if interval.from_ps is None else interval.from_ps
    if interval.to_ps is not None:
        return min(start, interval.to_ps), interval.to_ps
    return start, max(start, timeline.last_ps + _has_instant_at(timeline, timeline.last_ps))


def _has_instant_at(timeline: Timeline, instant: int) -> bool:
    """Whether an event of no duration or a counter's value is the last of its row, at this instant."""
    for *_, track in timeline.tracks():
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
        names |= dict.fromkeys(f"{section.label}{_SEPARATOR}{row.name}"[:_NAME_SEEN] for row in rows)
    text = wanted.casefold()[:_NAME_SEEN]

    def likeness(name: str) -> float:
        parts = (name, name.rpartition(_SEPARATOR)[2], *name.split())
        return max(difflib.SequenceMatcher(None, text, part.casefold()).ratio() for part in parts)

    nearest = sorted(list(names)[:_MOST_COMPARED], key=likeness, reverse=True)[:_NEAREST]
    hint = f"--track with a part of: {examples(nearest, _NEAREST)}" if nearest else "the profile has no events"
    whose = f"{len(timeline.hosts):,} hosts" if len(timeline.hosts) > 1 else printable(timeline.host)
    sentence = "; ".join((f"No track of {whose} has {printable(wanted)} in its name", *without_host(timeline)))
    return ProfileError("unknown_track", f"{sentence}.", hint, EXIT_NOT_FOUND)


def without_host(timeline: Timeline) -> tuple[str, ...]:
    """What to say of a timeline that has none of the host's threads; nothing of another."""
    has_host = any(section.kind == "host" for section in timeline.sections)
    lost = ", or they were lost with the rest of the file" if timeline.lost else ""
    return () if has_host else (f"no thread of the host was traced{lost}",)


# --- tracks, rates, counters


class MeanRate(NamedTuple):
    """What the ops of a core ask for, on average.

    Attributes:
        section, name: of which core, and of what.
        unit: ``FLOP/s`` or ``bytes/s``.
        per_second: the average; None for an interval of no duration.
        peak: what the core can do at most; None where the profile does not say.
    """

    section: Section
    name: str
    unit: str
    per_second: float | None
    peak: float | None

    @property
    def use_fraction(self) -> float | None:
        """The average over the peak; None where either is unknown."""
        return self.per_second / self.peak if self.per_second is not None and self.peak else None


class CounterRange(NamedTuple):
    """What a counter said.

    Attributes:
        section, name, unit: which counter; the unit is empty where the profile does not say.
        samples: values in the interval.
        first_ps, last_ps: when the first and the last of them was taken; None without one.
        minimum, maximum, mean: also of a value from before that holds on; each value counts as long as it holds. None
            where there is none that is a number.
    """

    section: Section
    name: str
    unit: str
    samples: int
    first_ps: int | None
    last_ps: int | None
    minimum: float | None
    maximum: float | None
    mean: float | None


def mean_rates(part: TimelinePart) -> list[MeanRate]:
    """The average rates."""
    takes_time = part.end_ps > part.start_ps
    return [
        MeanRate(
            *(section, rate.name, _RATE_UNITS.get(rate.name, "1/s")),
            mean_rate(rate, part.start_ps, part.end_ps) if takes_time else None,
            rate.peak or None,
        )
        for section, rate in part.rates
    ]


def counter_ranges(part: TimelinePart) -> list[CounterRange]:
    """Least, greatest and mean value of each counter."""
    ranges, start, end = [], part.start_ps, part.end_ps
    for section, counter in part.counters:
        first, last = (int(index) for index in np.searchsorted(counter.time_ps, [start, end], side="left"))
        taken = counter.time_ps[first:last][np.isfinite(counter.value[first:last])]
        value, _ = held_values(counter, start, end)
        made = CounterRange(
            section=section,
            name=counter.name,
            unit=counter.unit,
            samples=len(taken),
            first_ps=int(taken[0]) if len(taken) else None,
            last_ps=int(taken[-1]) if len(taken) else None,
            minimum=float(value.min()) if len(value) else None,
            maximum=float(value.max()) if len(value) else None,
            mean=mean_value(counter, start, end),
        )
        ranges.append(made)
    return ranges


class TrackRow(NamedTuple):
    """A track over the whole trace or in an interval.

    Attributes:
        section, track: which one.
        events: how many it has in that time.
        busy_ps: time in which at least one of them ran; busy_fraction: its share, None for no time at all.
        decimals: of its instants in milliseconds, see `time_decimals`.
        top: the names with most self time; of an interval only. Ops of several programs may share a name.
    """

    section: Section
    track: Track
    events: int
    busy_ps: int
    busy_fraction: float | None
    decimals: int = 3
    top: tuple[MeasuredRow, ...] = ()


def track_rows(timeline: Timeline, limit: int) -> list[TrackRow]:
    """The first tracks in the order of the screen, all of them for a limit of 0, over the whole trace."""
    whole_ps, decimals = timeline.last_ps - timeline.first_ps, time_decimals(timeline.first_ps, timeline.last_ps)
    return [
        TrackRow(
            section, track, len(track), track.busy_ps, track.busy_ps / whole_ps if whole_ps > 0 else None, decimals
        )
        for _, section, track in islice(timeline.tracks(), limit or None)
    ]


def summaries(part: TimelinePart) -> list[TrackRow]:
    """What ran on each track of a part in its interval."""
    measured = measure(part.timeline, part.start_ps, part.end_ps, part.places)
    by_name: dict[TrackId, dict[str, MeasuredRow]] = {}
    for row in measured.rows():
        ops = by_name.setdefault(row.place, {})
        ops[row.name] = ops[row.name].with_more(row) if row.name in ops else row
    rows = []
    for share in measured.tracks:
        ops = by_name.get(share.place, {})
        top = sorted(ops.values(), key=lambda op: (-op.self_ps, -op.total_ps, op.name))[:MOST_TOP_OPS]
        rows.append(busy_row(part.timeline, share, tuple(top)))
    return rows


def busy_row(timeline: Timeline, of: TrackShare, top: tuple[MeasuredRow, ...] = ()) -> TrackRow:
    """How busy a track was in an interval."""
    section, track = timeline.sections[of.place[0]], timeline.track(of.place)
    return TrackRow(section, track, of.events, of.busy_ps, of.busy_fraction, top=top)


def time_decimals(start_ps: int, end_ps: int) -> int:
    """Decimals of milliseconds that resolve a thousandth of an interval."""
    span = end_ps - start_ps
    return next((decimals for decimals in range(3, 9) if span >= 10 ** (12 - decimals)), 9) if span > 0 else 3


# --- events


@dataclass(frozen=True, slots=True, eq=False)
class Selection(Sized):
    """The events of a part, by their begin; of those that begin together the outer one comes first.

    Attributes:
        of_track: int32[n]; which of the part's places each is of.
        index: int64[n]; which event of the track.
        lane: int32[n]; its lane, the depth where events nest.
    """

    sized_by = "index"
    of_track: NDArray[np.int32]
    index: Int64s
    lane: NDArray[np.int32]


def select(part: TimelinePart) -> Selection:
    """The events that overlap the interval or, lasting no time, lie in it."""
    none = np.zeros(0, np.int64)
    pieces: list[tuple[int, int, range]] = []
    starts = [none]
    for number, place in enumerate(part.places):
        track = part.timeline.track(place)
        is_near = len(track) and track.span[0] < part.end_ps and track.span[1] >= part.start_ps
        for lane in range(track.depth if is_near else 0):
            events = range(*track.between(lane, part.start_ps, part.end_ps))
            pieces.append((number, lane, events))
            starts.append(track.start_ps[events.start : events.stop])
    sizes = [len(events) for *_, events in pieces]
    of_track, lanes = (np.repeat(np.array([piece[of] for piece in pieces], np.int32), sizes) for of in (0, 1))
    index = np.concatenate([none, *(np.arange(events.start, events.stop) for *_, events in pieces)])
    order = np.argsort(np.concatenate(starts), kind="stable")
    return Selection(of_track[order], index[order], lanes[order])


@dataclass(frozen=True, slots=True, eq=False)
class TimelineContent:
    """What a report holds.

    Attributes:
        part: which part of the timeline.
        selection: its events; None where the report is on the tracks as a whole.
        shown: how many of the events are printed, the first ones.
        warnings: what there is to warn of.
    """

    part: TimelinePart
    selection: Selection | None
    shown: int
    warnings: Sequence[str]


class EventRow(NamedTuple):
    """An event.

    Attributes:
        section, track, number, lane: which one; of events that nest the lane is the depth.
        start_ps, end_ps: on the trace's clock.
        decimals: of its begin in milliseconds, see `time_decimals`.
        device_ps: how long it took by the device's clock; None where that is not known, or not shown.
        args: its arguments; none where the report shows none.
        place: where its track is in the timeline.
    """

    section: Section
    track: Track
    number: int
    lane: int
    start_ps: int
    end_ps: int
    decimals: int
    device_ps: int | None
    args: Args
    place: TrackId


def event_rows(content: TimelineContent, opened: Callable[[str], Trace] | None = None) -> Iterator[Sequence[EventRow]]:
    """The events that are printed, some at a time.

    Args:
        opened: gives the profile at a path, open, where their arguments and the device's clock are wanted.
    """
    part, selection = content.part, content.selection
    if selection is None:
        return
    tracks = [(part.timeline.sections[place[0]], part.timeline.track(place), place) for place in part.places]
    read = None if opened is None else readers(part, opened)
    decimals = time_decimals(part.start_ps, part.end_ps)
    for begin in range(0, content.shown, _CHUNK):
        chunk = slice(begin, min(content.shown, begin + _CHUNK))
        rows = []
        device: Iterable[int | None] = repeat(None)
        if opened is not None:
            device = durations_of(part.timeline, part.places, selection.of_track[chunk], selection.index[chunk], opened)
        columns = (column[chunk].tolist() for column in (selection.of_track, selection.index, selection.lane))
        for (number, index, lane), device_ps in zip(zip(*columns, strict=True), device, strict=False):
            section, track, place = tracks[number]
            start, end = int(track.start_ps[index]), int(track.end_ps[index])
            args = read(number, index) if read is not None else {}
            rows.append(EventRow(section, track, index, lane, start, end, decimals, device_ps, args, place))
        yield rows


# --- arguments


def readers(part: TimelinePart, opened: Callable[[str], Trace]) -> Callable[[int, int], Args]:
    """`argument_reader` of the tracks of a part, which may be of several files: each is opened when it is needed."""
    paths = [part.timeline.path_of(place[0]) for place in part.places]
    tracks = [part.timeline.track(place) for place in part.places]
    readers: dict[str, Callable[[int, int], Args]] = {}

    def read(number: int, index: int) -> Args:
        path = paths[number]
        if path not in readers:
            readers[path] = argument_reader(opened(path), tracks)
        return readers[path](number, index)

    return read


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
            of_name[key] = _merged([*metadata_stats(trace, track, index), *more])
            kept += 100 + sum(len(value) for value in of_name[key].values() if isinstance(value, str))
        return of_name[key]

    def read(number: int, index: int) -> Args:
        own = _merged(own_stats(trace, tracks[number], index))
        common = common_args(tracks[number], number, index)
        if own.keys().isdisjoint(common):
            return {**own, **common}
        for name, value in common.items():
            _put(own, name, value)
        return own

    return read


def _merged(stats: Iterable[tuple[str, StatValue]]) -> Args:
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

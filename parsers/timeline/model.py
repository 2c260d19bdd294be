"""Tracks and sections: what the timeline is made of.

A track's events lie in lanes. No two events of a lane overlap, so that a lane fits into one row, and binary search
answers every question about it. Lane 0 comes first with its events in order of time, then lane 1 and so on; where
events nest, as the calls of a thread do, the lane is the depth.

All times are int64 picoseconds on the trace's clock.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Floats, Int64s, union_length
from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.base.record import Sized, dataclass, field
from tpuprof.parsers.ops.op_metadata import OpSource
from tpuprof.parsers.timeline.durations import Durations, Ends

CLASSES: tuple[OpClass, ...] = get_args(OpClass)
"""Classes of events; a class's index is its code in `EventNames.classes`."""

TrackKind = Literal[  # in the order of the screen
    "steps",  # step markers of a core
    "modules",  # runs of HLO modules
    "scopes",  # framework name scopes, derived from the ops
    "framework_ops",  # framework ops, derived from the ops
    "source",  # source lines, derived from the ops
    "ops",  # HLO ops of a TensorCore or SparseCore
    "async",  # asynchronous ops, which overlap
    "traceme",  # what the core's runtime records
    "thread",  # a host thread
    "stream",  # a GPU's stream
    "other",
]
SectionKind = Literal["core", "sparse_core", "gpu", "host", "other"]

_WORK: tuple[TrackKind, ...] = ("stream", "ops", "modules", "steps")
"""What shows when a device worked: the first of these kinds that it has."""

TrackId = tuple[int, int]
"""A track of a timeline: index of its section, and its own in that section."""

EventId = tuple[int, int, int]
"""An event of a timeline: index of its section, of its track in that section, and its own in the track."""

TrackKeys = NDArray[np.uint16] | NDArray[np.int32]
"""Keys of events: two bytes each, where all of a track fit."""


def small_keys(keys: NDArray[np.integer]) -> TrackKeys:
    """Keys in the smallest type; none is negative."""
    return keys.astype(np.uint16) if int(keys.max(initial=0)) < 1 << 16 else keys.astype(np.int32)


@dataclass(eq=False)
class EventNames(Sized):
    """Names and classes of the events of some tracks, by key.

    Attributes:
        source: the plane's metadata; key k below `len(source.events)` is its row k. None for derived tracks.
        texts: names of the further keys: of derived events, or ``event 17`` for an id without metadata.
        classes: uint8[keys], index in `CLASSES`.
        flops, hbm_bytes: float64[keys], work of one occurrence as the compiler counts it. NaN where unknown, and for an
            op that only contains others, or starts or awaits one. None where no key has any.
        holds: bool[keys], ops that only contain others, such as loops; None where no key is one.
    """

    sized_by = "classes"
    source: OpSource | None
    texts: tuple[str, ...]
    classes: NDArray[np.uint8]
    flops: Floats | None = None
    hbm_bytes: Floats | None = None
    holds: Bools | None = None

    @property
    def metadata_rows(self) -> int:
        """Keys below this are rows of the event metadata."""
        return len(self.source.events) if self.source is not None else 0

    def name(self, key: int) -> str:
        """An event's name: the display name in the profile (an HLO op's short name), else the name."""
        if self.source is None or key >= self.metadata_rows:
            return self.texts[key - self.metadata_rows]
        return self.source.events.display_name(key) or self.source.events.name(key)

    def long_name(self, key: int) -> str:
        """The long name where it differs from `name`, such as an HLO op's text; else empty."""
        if self.source is None or key >= self.metadata_rows:
            return ""
        return self.source.events.name(key) if self.source.events.display_name(key) else ""


@dataclass(frozen=True, eq=False)
class Track:
    """The events of one line of a plane, or events derived from them.

    The columns take 18 bytes an event, where names and long events are few.

    Attributes:
        name: name on the screen: the line's display name or name.
        kind: what the track holds.
        names: names of its events.
        start_ps: int64[n], when each event begins; lane by lane, within a lane in order of time.
        lasting: how long each lasts. An event of no duration is alone at its instant in its lane.
        key: uint16[n], or int32[n] in a track with more names; see `EventNames`.
        lanes: int64[lanes + 1]; lane i is the events from `lanes[i]` to `lanes[i + 1]`.
        plane_index, line_index: where in the file the line is; -1 for a derived track.
        place: where each event lies in its line in the file, its size right before it; empty for a derived track. It is
            uint32[n], or int64[n] in a line of more than 4 GB.
        lost_bytes: bytes of the line that the file lacks.
        malformed: number of events with damaged bytes.
        sort_id: the line's display id or id, by which XProf sorts.
        is_derived: whether it is made from other tracks.
    """

    name: str
    kind: TrackKind
    names: EventNames
    start_ps: Int64s
    lasting: Durations
    key: TrackKeys
    lanes: Int64s
    plane_index: int = -1
    line_index: int = -1
    place: NDArray[np.uint32] | Int64s = field(default_factory=lambda: np.zeros(0, np.uint32))
    lost_bytes: int = 0
    malformed: int = 0
    sort_id: int = 0
    is_derived: bool = False

    def __len__(self) -> int:
        return len(self.start_ps)

    @property
    def end_ps(self) -> Ends:
        return Ends(self.start_ps, self.lasting)

    @property
    def depth(self) -> int:
        return len(self.lanes) - 1

    def lane(self, number: int) -> slice:
        return slice(int(self.lanes[number]), int(self.lanes[number + 1]))

    def between(self, lane: int, start_ps: int, end_ps: int) -> tuple[int, int]:
        """The events [first, last) of a lane that overlap an interval or, lasting no time, lie in it."""
        part = self.lane(lane)
        first = int(self.first_within(part, np.array([start_ps]))[0])
        last = part.start + int(np.searchsorted(self.start_ps[part], end_ps, side="left"))
        return first, max(first, last)

    def first_until(self, part: slice, instants: Int64s) -> Int64s:
        """int64[instants]: of a lane's events `part` the first that ends at each instant or later; else its stop."""
        first: Int64s = part.start + np.searchsorted(self.start_ps[part], instants, side="left")
        some = np.flatnonzero(first > part.start)
        first[some] -= self.end_ps[first[some] - 1] >= instants[some]  # of those that began before, the last alone may
        return first

    def first_within(self, part: slice, instants: Int64s) -> Int64s:
        """int64[instants]: as `first_until`, without an event that ends at the instant; one of no duration is there."""
        first = self.first_until(part, instants)
        some = np.flatnonzero(first < part.stop)
        near, at = first[some], instants[some]
        first[some] += (self.end_ps[near] == at) & (self.start_ps[near] < at)
        return first

    def lane_of(self, index: int) -> int:
        return bisect_right(self.lanes, index) - 1

    def label(self, index: int) -> str:
        return self.names.name(int(self.key[index]))

    def event_class(self, index: int) -> OpClass:
        return CLASSES[int(self.names.classes[int(self.key[index])])]

    @cached_property
    def span(self) -> tuple[int, int]:
        """First start and last end; zeros without events."""
        if not len(self):
            return 0, 0
        some = self.lanes[1:] > self.lanes[:-1]  # of a part of a track lanes may be empty
        return int(self.start_ps[self.lanes[:-1][some]].min()), int(self.end_ps[self.lanes[1:][some] - 1].max())

    @cached_property
    def busy_ps(self) -> int:
        """Time in which at least one event ran."""
        if self.depth == 1:
            return int(self.lasting[:].sum())  # they do not overlap
        return union_length(self.start_ps, self.end_ps[:])

    @cached_property
    def mean_ps(self) -> float:
        """How long an event lasts on average; 0 without events."""
        return float(self.lasting[:].sum()) / max(1, len(self))

    @cached_property
    def counts(self) -> Int64s:
        return np.bincount(self.key, minlength=len(self.names)).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class CounterTrack:
    """A counter's values over time; each holds until the next, and NaN means that nothing is known from then on.

    Attributes:
        time_ps: int64[n], ascending.
        value: float64[n].
        unit: the unit as in the profile; empty where unknown.
    """

    name: str
    time_ps: Int64s
    value: Floats
    unit: str = ""

    @property
    def value_range(self) -> tuple[float, float] | None:
        """Least and greatest value; None where there is none."""
        value = self.value[np.isfinite(self.value)]
        return (float(value.min()), float(value.max())) if len(value) else None


@dataclass(frozen=True, slots=True, eq=False)
class RateTrack:
    """How much work a core's ops do over time, as the compiler counts it, against what the core can do.

    Attributes:
        name, ops: such as ``FLOPS``; and the track of the ops.
        work: float64[keys]: FLOPs or bytes of one occurrence, 0 where unknown.
        peak: the peak per second; None where the profile does not record it, so that utilization is unknown.
    """

    name: str
    ops: Track
    work: Floats
    peak: float | None


@dataclass(frozen=True, slots=True, eq=False)
class Section:
    """The tracks of a core, of the host's threads, or of another plane.

    Attributes:
        title: such as ``Chip 2: TPU core 1``.
        plane, kind: name of the plane, and what it is.
        tracks, rates, counters: in the order of the screen.
        is_read: false where they are still being read: none of them is here yet.
        host: whose it is, on a timeline of several hosts; empty on that of one.
        core: the name of the core that it is of, ``host:2``, as all pages have it; empty where it is of none.
    """

    title: str
    plane: str
    kind: SectionKind
    tracks: tuple[Track, ...]
    rates: tuple[RateTrack, ...] = ()
    counters: tuple[CounterTrack, ...] = ()
    is_read: bool = True
    host: str = ""
    core: str = ""

    @property
    def label(self) -> str:
        return f"{self.host} / {self.title}" if self.host else self.title


@dataclass(frozen=True, slots=True)
class StepSpan:
    """A step: it begins on its earliest core, and lasts as long as on its slowest core."""

    name: str
    start_ps: int
    end_ps: int


ClockSource = Literal["axis", "collectives", "start times", "none"]
"""What brings a host's times to the common axis: they are its own; collectives; when captures began; nothing."""


@dataclass(frozen=True, slots=True)
class Clock:
    """How the times of a host were brought to the time axis that several hosts share.

    Attributes:
        source: by what.
        shift_ps: what was added to the host's own times.
        collectives: how many collectives the host shares with the one that it is aligned with, which agree on this.
        error_ps: how far they scatter around it, nine in ten of them; where one host is always late, how far it may be
            off. None without collectives.
    """

    source: ClockSource = "axis"
    shift_ps: int = 0
    collectives: int = 0
    error_ps: int | None = None


@dataclass(frozen=True, slots=True)
class HostPart:
    """One of the hosts of a timeline of several.

    Attributes:
        host, path: its name, and the path of its file.
        first, last: its sections are those from `first` to the one before `last`.
        clock: None as long as nothing of it is read.
        is_whole: false where only its first section is here, or none.
        problem: why it can't be read; empty where it can, or nobody has tried.
        began_ns: as of a `Timeline`.
    """

    host: str
    path: str
    first: int
    last: int
    clock: Clock | None = None
    is_whole: bool = False
    problem: str = ""
    began_ns: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """All that one host did, or several.

    Attributes:
        host, path: the host's name, and the path of its file; of several hosts the first one's that is read.
        sections: cores first, then the host's threads, then other planes; those that are still being read at the end.
        first_ps, last_ps: start of the first event read and end of the last; zeros without any.
        steps: the steps of the overview, in order.
        steps_are_inferred: whether steps are periods of a module and not markers.
        lost: sentences on what the capture or the file lacks; empty where nothing is known to be missing.
        warnings: other remarks.
        began_ns: when the capture began by the host's own clock, in nanoseconds since 1970; None where it says nothing.
        hosts: the hosts of a timeline of several, in order; empty for that of one.
    """

    host: str
    path: str
    sections: tuple[Section, ...]
    first_ps: int
    last_ps: int
    steps: tuple[StepSpan, ...] = ()
    steps_are_inferred: bool = False
    lost: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    began_ns: int | None = None
    hosts: tuple[HostPart, ...] = ()

    def part_of(self, section: int) -> HostPart | None:
        """The host that a section is of, on a timeline of several hosts; None on that of one."""
        return next((part for part in self.hosts if part.first <= section < part.last), None)

    def path_of(self, section: int) -> str:
        part = self.part_of(section)
        return self.path if part is None else part.path

    def unix_ns(self, section: int, time_ps: Int64s) -> Int64s | None:
        """Instants in a section by its host's clock, in nanoseconds since 1970; None where `began_ns` is."""
        part = self.part_of(section)
        began_ns = self.began_ns if part is None else part.began_ns
        shift_ps = 0 if part is None or part.clock is None else part.clock.shift_ps
        return None if began_ns is None else began_ns + (time_ps - shift_ps) // 1000

    @property
    def unread(self) -> int:
        return sum(not section.is_read for section in self.sections)

    def step_at(self, time_ps: int) -> int | None:
        """Index of the step at an instant: the last step that began by then, if it has not ended.

        Where cores drift apart, steps overlap a little; then the later one counts, as it does for an event that starts
        where a step ends.
        """
        step = self.step_begun(time_ps)
        return step if step is not None and time_ps < self.steps[step].end_ps else None

    def track(self, place: tuple[int, ...]) -> Track:
        return self.sections[place[0]].tracks[place[1]]

    def tracks(self) -> Iterator[tuple[TrackId, Section, Track]]:
        """All tracks with their places and sections, in the order of the screen."""
        for number, section in enumerate(self.sections):
            for item, track in enumerate(section.tracks):
                yield (number, item), section, track

    def step_begun(self, time_ps: int) -> int | None:
        """Index of the last step that began by an instant; None before the first."""
        last_begun = bisect_right(self.steps, time_ps, key=lambda step: step.start_ps) - 1
        return last_begun if last_begun >= 0 else None

    @property
    def worked_ps(self) -> tuple[int, int] | None:
        """From the first op on a device to the end of the last one; of modules or steps where a device records no ops.

        It is None where no device did anything, as far as is read.
        """
        spans = []
        for section in self.sections:
            kinds = {track.kind for track in section.tracks if len(track)}
            own = next((kind for kind in _WORK if kind in kinds), None)
            if section.kind in ("core", "sparse_core", "gpu"):
                spans += [track.span for track in section.tracks if track.kind == own and len(track)]
        return (min(first for first, _ in spans), max(last for _, last in spans)) if spans else None

    @property
    def event_count(self) -> int:
        return sum(len(track) for *_, track in self.tracks() if not track.is_derived)


def busy_between(track: Track, start_ps: int, end_ps: int) -> int:
    """Time between two instants in which at least one event of the track ran."""
    if end_ps <= start_ps or not len(track):
        return 0
    spans = [slice(*track.between(lane, start_ps, end_ps)) for lane in range(track.depth)]
    starts = [np.maximum(track.start_ps[span], start_ps) for span in spans if span.start < span.stop]
    ends = [np.minimum(track.end_ps[span], end_ps) for span in spans if span.start < span.stop]
    if len(starts) < 2:
        return int((ends[0] - starts[0]).sum()) if starts else 0
    return union_length(np.concatenate(starts), np.concatenate(ends))

"""Reads a profile into the timeline's tracks: every line of every plane, each event once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from threading import Lock, local
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Int64s, nesting_order, no_ints
from tpuprof.parsers.base.record import replace
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.text import counted, printable
from tpuprof.parsers.formats.thread_pool import ThreadPool
from tpuprof.parsers.formats.xspace.core.api import lane_bounds, lane_order, lanes, trim
from tpuprof.parsers.formats.xspace.core.types import LanedEvents
from tpuprof.parsers.formats.xspace.events import ColumnRoom
from tpuprof.parsers.formats.xspace.trace import ChunkDone, Line, Plane, Trace
from tpuprof.parsers.ops import device
from tpuprof.parsers.ops.core import ops as core_ops
from tpuprof.parsers.ops.counters.placed import CustomCalls, placed_tracks
from tpuprof.parsers.ops.counters.samples import Sampled, by_id, event_name, readings, sampled, unit_of
from tpuprof.parsers.ops.host_events.events import HOST_PLANE, region_ends, region_ids
from tpuprof.parsers.timeline import model
from tpuprof.parsers.timeline.durations import Durations
from tpuprof.parsers.timeline.read.classes import PlaneKeys, event_names
from tpuprof.parsers.timeline.read.columns import line_columns
from tpuprof.parsers.timeline.read.derived import derived_tracks

if TYPE_CHECKING:
    from concurrent.futures import Future

_CHUNK_EVENTS = 1 << 15
"""How many events a chunk of a line has at most, nearly always."""

_MOST_DERIVED = 8
"""How many lines of ops in a plane it derives tracks from; sound profiles have one."""

_SEEN = 1000
"""It shows so many characters of a sentence, as names in it may have any length."""

_MOST_SAID = 50
"""It lists so many sentences of the profiler."""

_DROPPED = pattern(r"(?i)drop|lost|overflow")

# What a profiler says when it could not keep all that it saw.
_LOSS = pattern(r"(?i)drop|lost|loss|truncat|overflow|overwrit|discard|incomplete|exceed|too (many|large)|fail")
_KINDS: dict[str, model.TrackKind] = {
    core_ops.STEPS_LINE: "steps",
    core_ops.MODULES_LINE: "modules",
    core_ops.OPS_LINE: "ops",
    core_ops.ASYNC_OPS_LINE: "async",
    core_ops.TRACE_ME_LINE: "traceme",
    "Sparse Core Steps": "steps",
    "Sparse Core Modules": "modules",
    "Sparse Core Ops": "ops",
}
_GPU_KINDS: dict[str, model.TrackKind] = {
    "Steps": "steps",
    "XLA Modules": "modules",
    "XLA Ops": "ops",
    "Name Scope": "scopes",
    "TensorFlow Ops": "framework_ops",
    "Framework Ops": "framework_ops",
    "Source code": "source",
}
"""Lines that the profiler derives from a GPU's streams, by the end of their names."""
_ORDER: tuple[model.TrackKind, ...] = get_args(model.TrackKind)
_SECTIONS: tuple[model.SectionKind, ...] = get_args(model.SectionKind)

_NO_KEYS = np.zeros(0, np.int32)
_NO_DURATIONS = Durations.of(no_ints())
_NO_NAMES = model.EventNames(None, (), np.zeros(0, np.uint8))

OnPart = Callable[[model.Timeline], None]
"""Receives a timeline of which some sections are still being read."""


class _Read(NamedTuple):
    """A line: its track, yet without names and keys; that of a core's ops without durations, too.

    Attributes:
        ids: metadata ids of the events.
        end: int64[n], when each op of a core ends; empty for all other lines.
        lane: int32[n], the lanes of the first op, the second, and so on in order of time, the outer first; as `end`.
        aggregated: how many more events have no place in time.
    """

    track: model.Track
    ids: core_ops.Keys
    end: Int64s
    lane: NDArray[np.int32]
    aggregated: int


def needed_bytes(trace: Trace) -> int:
    """Bytes of the lines that the timeline decodes."""
    return sum(plane.lines[index].size for plane in trace.planes for index in _event_lines(plane))


def read_timeline(
    trace: Trace,
    host: str,
    path: str,
    steps: Sequence[model.StepSpan] = (),
    steps_are_inferred: bool = False,
    on_chunk: ChunkDone | None = None,
    threads: int = 1,
    on_part: OnPart | None = None,
    only_first: bool = False,
) -> model.Timeline:
    """Decodes every line of a profile, one section after the other.

    Args:
        host, path: the host's name, and the path of its file.
        steps: the overview's steps.
        on_chunk: receives the progress, on any of the threads.
        threads: how many lines are decoded at once.
        on_part: receives, on the calling thread, what is read so far: all sections up to each but the last.
        only_first: whether to read the first section alone.
    """
    told = partial(model.Timeline, host, path, steps=tuple(steps), steps_are_inferred=steps_are_inferred)
    made = partial(told, began_ns=device.capture_start_ns(trace.plane(device.ENVIRONMENT_PLANE)))
    sections: list[model.Section] = []
    with ThreadPool(threads) as pool:
        rooms, with_bytes = local(), (plane for plane in trace.planes if any(line.size for line in plane.lines))
        planes = sorted(
            (_PlaneRead(plane, rooms, on_chunk) for plane in with_bytes), key=lambda read: _SECTIONS.index(read.kind)
        )
        planes = planes[:1] if only_first else planes
        work: list[list[Future[None]]] = []

        def begin(reads: Sequence[_PlaneRead]) -> None:
            work.extend([pool.submit(read.take, batch) for batch in read.batches] for read in reads)

        def show(read: Sequence[model.Section], number: int) -> None:
            if on_part is not None:
                yet = (other.unread() for other in planes[number:])
                lost = tuple(dict.fromkeys(_losses(trace, 0)))
                on_part(made((*read, *yet), *_time_span(read), lost=lost))

        for read in planes[:1]:  # all threads read its lines, so that it is there early
            read.when_read = partial(begin, planes[1:])
            begin([read])
        for number, read in enumerate(planes, 1):
            for batch in work[number - 1]:
                batch.result()
            if read.section is not None:
                sections.append(read.section)
                if number < len(planes):
                    show(sections, number)
    malformed, aggregated = (sum(getattr(read, name) for read in planes) for name in ("malformed", "aggregated"))
    lost = tuple(dict.fromkeys((*_losses(trace, malformed), *_dropped(sections))))
    return made(tuple(sections), *_time_span(sections), lost=lost, warnings=tuple(_remarks(trace, aggregated)))


class _PlaneRead:
    """A plane whose lines several threads read; the one that reads the last of them makes the section at once.

    Attributes:
        kind: what the plane is.
        batches: its lines' indices, one each; one without any for a plane that has no lines of events.
        section: what its lines make; None where that is nothing, and until all of them are read.
        malformed, aggregated: events with damaged bytes, and those that have no place in time.
        when_read: called once all lines are read, before they make the section.
    """

    def __init__(self, plane: Plane, rooms: local, on_chunk: ChunkDone | None) -> None:
        self.kind = _section_kind(plane)
        self.batches = [[index] for index in _event_lines(plane)] or [[]]
        self.section: model.Section | None = None
        self.malformed = self.aggregated = 0
        self.when_read: Callable[[], None] = lambda: None
        self._plane = plane
        self._rooms = rooms
        self._on_chunk = on_chunk
        self._regions = region_ids(plane) if self.kind == "host" else None
        self._lock = Lock()
        self._lines: dict[int, _Read] = {}
        self._batches_left = len(self.batches)

    def take(self, batch: Sequence[int]) -> None:
        lines = {index: self._read(index) for index in batch}
        with self._lock:
            self._lines |= lines
            self._batches_left -= 1
            if self._batches_left:
                return
        self.when_read()
        self.malformed = sum(line.track.malformed for line in self._lines.values())
        self.aggregated = sum(line.aggregated for line in self._lines.values())
        with_events = [line for _, line in sorted(self._lines.items()) if len(line.track)]
        self._lines = {}
        if with_events or any(_is_counter(line) for line in self._plane.lines):
            is_large = sum(len(line.track) for line in with_events) > _CHUNK_EVENTS
            if is_large:
                trim()  # of what its lines were decoded and put in order in
            section = replace(_section(self._plane, with_events), counters=counter_tracks(self._plane))
            self.section = section if section.tracks or section.counters else None
            if is_large:
                trim()  # of what its columns were made from, else the next plane's come on top

    def _read(self, index: int) -> _Read:
        # each thread has a room of its own for chunks: memory that is new to the process takes longer to write
        if not hasattr(self._rooms, "room"):
            self._rooms.room = ColumnRoom(0, places=True, capacity=_CHUNK_EVENTS)
        return _read_line(self._plane.lines[index], index, self._rooms.room, self._on_chunk, self._regions)

    def unread(self) -> model.Section:
        """What stands for the section until it is there."""
        return model.Section(_title(self._plane, self.kind), self._plane.name, self.kind, (), is_read=False)


def _is_counter(line: Line) -> bool:
    return line.name.strip("_").startswith("counters")


def _event_lines(plane: Plane) -> Iterator[int]:
    """Yields the indices of the lines whose events are drawn as slices."""
    return (index for index, line in enumerate(plane.lines) if line.size and not _is_counter(line))


def _read_line(
    line: Line, index: int, room: ColumnRoom, on_chunk: ChunkDone | None, regions: tuple[int, int] | None = None
) -> _Read:
    """Decodes the line with an index, and sorts its events into lanes. It leaves the room empty.

    Args:
        regions: what begins and ends pieces of work of a thread, as of `region_ends`.
    """
    plane = line.plane
    events = line_columns(line, room, on_chunk)
    tail = line.tail(events.end)
    start, end = core_ops.event_spans(line, events, in_place=True)
    end = region_ends(events.ids, start, end, regions)
    columns: list[NDArray[Any]] = [start, end, events.ids, events.place]
    malformed, aggregated = events.malformed, events.aggregated
    del events, start, end  # each column is let go when it is put into another order
    order = nesting_order(columns[0], columns[1])
    if order is not None:
        for number, column in enumerate(columns):
            columns[number] = column.take(order)
    lane = lanes(columns[0], columns[1])
    bounds = lane_bounds(lane)
    if len(bounds) > 2:
        order = lane_order(lane)
        for number, column in enumerate(columns):
            columns[number] = column.take(order)
    start, end, ids, short = columns
    section_kind = _section_kind(plane)
    track = model.Track(
        name=tail.display_name or line.name or f"line {line.id}",
        kind=_kind_of(line.name, section_kind),
        names=_NO_NAMES,
        start_ps=start,
        lasting=_NO_DURATIONS,
        key=_NO_KEYS,
        lanes=bounds,
        plane_index=plane.index,
        line_index=index,
        place=short,
        lost_bytes=line.lost_bytes,
        malformed=malformed,
        sort_id=tail.display_id or line.id,
    )
    read = _Read(track, ids, end, lane, aggregated)
    return read if section_kind == "core" and track.kind == "ops" else _with_durations(read)


def _with_durations(line: _Read) -> _Read:
    """A line with durations in place of its ends, which it overwrites."""
    lasting = np.subtract(line.end, line.track.start_ps, out=line.end)
    return line._replace(track=replace(line.track, lasting=Durations.of(lasting)), end=no_ints(), lane=_NO_KEYS)


def _section(plane: Plane, lines: list[_Read]) -> model.Section:
    """Makes a plane's tracks, and those that derive from its ops, but no counters.

    It takes what it no longer needs out of the lines.
    """
    kind = _section_kind(plane)
    plane_keys = PlaneKeys(plane)
    keys: list[NDArray[np.integer]] = []
    for index, line in enumerate(lines):
        key = plane_keys.of(line.ids)
        keys.append(key if len(line.end) else model.small_keys(key))
        lines[index] = line._replace(ids=_NO_KEYS)  # they take as much as the keys
    names = event_names(plane, kind, plane_keys.lost_names())
    groupings = (line.track for wanted in ("steps", "modules") for line in lines if line.track.kind == wanted)
    grouping = next(groupings, None)
    tracks: list[model.Track] = []
    derived: list[model.Track] = []
    rates: tuple[model.RateTrack, ...] = ()
    ops = [index for index, line in enumerate(lines) if len(line.end)]
    for index, line in enumerate(lines):
        if index in ops[:_MOST_DERIVED]:
            spans = line.track.start_ps, line.end, keys[index].astype(np.int32, copy=False)
            derived += derived_tracks(names, LanedEvents(*spans, line.lane, line.track.lanes), grouping)
            del spans
        lines[index] = _with_durations(line) if index in ops else line
        tracks.append(replace(lines[index].track, names=names, key=model.small_keys(keys[index])))
        keys[index] = _NO_KEYS
        if index in ops[:_MOST_DERIVED]:
            rates = rates or _rates(plane, tracks[-1])
    tracks = sorted([*tracks, *derived], key=lambda track: (_ORDER.index(track.kind), track.sort_id))
    return model.Section(_title(plane, kind), plane.name, kind, tuple(tracks), rates)


def _kind_of(name: str, kind: model.SectionKind) -> model.TrackKind:
    """The kind of a line with that name on a plane of that kind."""
    if kind in ("core", "sparse_core"):
        return _KINDS.get(name, "other")
    if kind == "gpu":
        return next((derived for ending, derived in _GPU_KINDS.items() if name.endswith(ending)), "stream")
    return "thread" if kind == "host" else "other"


def _section_kind(plane: Plane) -> model.SectionKind:
    if device.is_tensor_core(plane):
        return "core"
    if device.is_sparse_core(plane):
        return "sparse_core"
    if device.is_gpu(plane):
        return "gpu"
    return "host" if plane.name.startswith(HOST_PLANE) else "other"


def _title(plane: Plane, kind: model.SectionKind) -> str:
    """Returns ``Chip 2: TPU core 1`` where the plane says so, else a title from the plane's name."""
    if kind == "host":
        return "Host threads"
    if kind not in ("core", "sparse_core"):
        return plane.name
    titled = device.core_title(plane)
    if titled:
        return titled if kind == "core" else titled.replace("TPU core", "SparseCore")
    return f"TPU {device.device_ordinal(plane)}" if kind == "core" else plane.name.removeprefix("/device:")


def _rates(plane: Plane, ops: model.Track) -> tuple[model.RateTrack, ...]:
    """FLOPs and bytes of HBM against their peaks, where the profile counts the ops' work."""
    peaks = device.device_info(plane).peaks
    uses = (("FLOPS", ops.names.flops, peaks.flops_per_second), ("HBM", ops.names.hbm_bytes, peaks.hbm))
    return tuple(model.RateTrack(name, ops, np.nan_to_num(work), peak) for name, work, peak in uses if work is not None)


def _time_span(sections: Sequence[model.Section]) -> tuple[int, int]:
    """From the first event or counter value to the last."""
    spans = [track.span for section in sections for track in section.tracks if len(track)]
    times = [track.time_ps for section in sections for track in section.counters if len(track.time_ps)]
    spans += [(int(time[0]), int(time[-1])) for time in times]
    return (min(first for first, _ in spans), max(last for _, last in spans)) if spans else (0, 0)


def _losses(trace: Trace, malformed: int) -> Iterator[str]:
    """What the file or the capture lacks."""
    yield from (printable(problem.sentence[:_SEEN]) for problem in trace.losses)
    yield from _said(text for text in (*trace.errors, *trace.warnings) if _LOSS.search(text))
    if malformed:
        yield f"{malformed:,} events are damaged; the readable parts are shown"


def _said(texts: Iterable[str]) -> Iterator[str]:
    """Yields sentences of the profiler, fit to print, up to `_MOST_SAID`."""
    for number, text in enumerate(texts):
        if number == _MOST_SAID:
            yield "the profiler reports more than is listed here"
            return
        yield printable(text[:_SEEN])


def _dropped(sections: Sequence[model.Section]) -> Iterator[str]:
    """Sentences on trace entries that the cores' runtimes could not keep; events on their track record them."""
    tracks = [(section, track) for section in sections for track in section.tracks if track.kind == "traceme"]
    for section, track in tracks:
        keys = [key for key in np.flatnonzero(track.counts).tolist() if _DROPPED.search(track.names.name(key))]
        if keys:
            rows = np.flatnonzero(np.isin(track.key, keys))
            first, lasting = int(track.start_ps[rows].min()), int(track.lasting[rows].sum())
            yield (
                f"{section.title} dropped trace entries {counted(len(rows), 'time')}, first at "
                f"{first / 1e9:,.3f} ms, for {lasting / 1e9:,.3f} ms in all; they are marked on {track.name}"
            )


def _remarks(trace: Trace, aggregated: int) -> Iterator[str]:
    """What else the profiler says, and what is not drawn."""
    if trace.source.origin:
        yield printable(trace.source.origin[:_SEEN])
    yield from _said(text for text in (*trace.errors, *trace.warnings) if not _LOSS.search(text))
    if aggregated:
        yield f"{aggregated:,} aggregated events have no place in time and are left out"


# --- counters over time: power, temperature and whatever else a device sampled while it ran
#
# `parsers.ops.counters.samples` describes how a profile holds them. XProf draws those of the lines ``_counters_``. The
# registers of the lines ``counters_…`` it lists on a page of their own, and draws none; this module also takes those
# that have different values at different times.


def counter_tracks(plane: Plane) -> tuple[model.CounterTrack, ...]:
    """The counters of a plane, in the order in which they first occur in the file."""
    tracks = placed_tracks(CustomCalls(plane), list(sampled(plane)))
    return (*map(_of_sampled, tracks), *_hardware(plane))


def _of_sampled(track: Sampled) -> model.CounterTrack:
    """A counter's track. Values that last stand for their own time: then nothing is known until the next one."""
    if not track.lasts:
        return model.CounterTrack(track.label, track.start_ps, track.value, track.unit)
    follows = np.append(track.start_ps[1:], np.iinfo(np.int64).max)
    ends = np.flatnonzero(track.end_ps < follows)
    time = np.concatenate([track.start_ps, track.end_ps[ends]])
    value = np.concatenate([track.value, np.full(len(ends), np.nan)])
    order = np.argsort(time, kind="stable")
    return model.CounterTrack(track.label, time[order], value[order], track.unit)


def _hardware(plane: Plane) -> Iterator[model.CounterTrack]:
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
            yield model.CounterTrack(name.lower(), start[rows], value[rows], unit_of(name))
